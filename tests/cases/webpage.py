# SPDX-License-Identifier: MIT
"""The web page: everything that changed is on it, nothing in it comes alive, and what is denied is not there."""
import os
import re

from harness import chromium
from harness.kit import *  # noqa: F403
from harness.page import Page
from harness.view import case

POLICY = '[profile cases]\n[files cases]\nwrite = **\n'
CHECKS = '[gate cases]\nchecks = all\n'
gated = case(policy=POLICY + CHECKS)


def page(t, *arguments):
    """The page of the changes, as strict as Page is."""
    t.diff('--html', t.path('page.html'), *arguments)
    return Page(read(t.path('page.html')))


def numbers(last):
    return ''.join(f'{i}\n' for i in range(1, last + 1))


def shown(path):
    return path.replace('\n', '\\n')


def same_list(t, p, *arguments):
    """The page's parts and its tree have the changes that the JSON has, in that order."""
    whole = t.diff('--json', *arguments).json()
    want = [(c['status'], (c['from_path'] + ' \u2192 ' if 'from_path' in c else '') + shown(c['path'])) for c in whole['changes'] if 'path_b64' not in c]
    odd = sum('path_b64' in c for c in whole['changes'])
    got = [c for c in p.changes() if not re.search(r'\\x[89a-f]', c[1])]
    same_lists(got, want, 'the changes of the page')
    eq(len(p.files), len(want) + odd, 'parts of the page')
    eq([identity for identity, _ in p.nav], [f.id for f in p.files], 'the tree of the page')
    check(whole['digest'] in p.header, 'the digest in the header')
    return whole


@gated
def test_every_kind(t):
    t.seed({'mod': numbers(30), 'del': 'gone\n', 'd/gone': 'x\n', 'move': numbers(20), 'kind': 'file\n', 'link': ('->', 'old-target'), 'mode': 'x\n',
            'attr': 'x\n', 'bin': b'\0' + noise(2000), 'both': 'x\n', 'last': 'no newline', 'same': 'same\n', 'cr': 'a\r\nb\n'})
    yield
    t.shell("sed -i 's/^15$/fifteen/' mod; rm del; rm -r d; mv move moved; echo more >>moved; rm kind; ln -s mod kind; ln -sfn new-target link; "
            "chmod 4755 mode; echo new >new; mkdir -p empty/dirs; mkfifo pipe; echo end >>last; printf 'a\\nb\\n' >cr")
    os.setxattr(t.m('attr'), 'user.note', b'<i>\xff')
    os.setxattr(t.m('both'), 'user.note', b'v')
    write(t.m('both'), 'y\n')
    write(t.m('bin'), b'\0other')
    p = page(t)
    whole = same_list(t, p)
    eq([f.status for f in p.files][:3], ['D', 'D', 'D'], 'deletions come first')
    eq({f.status for f in p.files}, set('ADMRTPX'), 'kinds')
    mod = p.file('mod')
    eq((mod.rows, mod.marks), ([['-', 15, '15'], ['+', 15, 'fifteen']], []), 'rows')
    check('+1 \u22121' in mod.facts and '14' in mod.text, 'counts and context')
    eq(p.file('del').rows, [['-', 1, 'gone']], 'the content of what was deleted')
    check('alike' in p.file('move \u2192 moved').facts and p.file('move \u2192 moved').rows == [['+', 21, 'more']], 'the rename')
    eq(p.file('kind').rows, [['-', 1, 'file'], ['+', 1, 'mod']], 'another type')
    check('file -> symlink' in p.file('kind').facts and 'symlink' in p.file('link').facts, 'types in words')
    eq(p.file('link').rows, [['-', 1, 'old-target'], ['+', 1, 'new-target']], 'targets')
    eq(p.file('link').marks, ['old', 'new'], 'words of the targets')
    check('mode 0644 -> 4755' in p.file('mode').facts, 'the mode')
    check('user.note = <i>\\xff' in p.file('attr').text and p.file('attr').samples == ['\\xff'], 'the attribute')
    check('user.note' in p.file('both').text and 'xattrs' in p.file('both').facts and p.file('both').rows, 'an attribute beside a content')
    check('2001 bytes' in p.file('bin').text and '6 bytes' in p.file('bin').text, 'sizes of the binary file')
    sha = next(c for c in whole['changes'] if c['path'] == 'bin')['new']['sha256']
    check(sha in p.file('bin').text, 'its hash')
    check('fifo' in p.file('pipe').facts and 'directory' in p.file('empty/dirs').facts, 'no files')
    eq(p.file('last').rows, [['-', 1, 'no newlineno newline at end of file'], ['+', 1, 'no newlineend']], 'no newline')
    eq(p.file('cr').rows, [['-', 1, 'a\\r'], ['+', 1, 'a']], 'a line ending')
    check(t.name in p.title and all(word in p.header for word in (t.name, t.low, 'the workspace', 'the view')), 'the header')
    summary = whole['summary']
    check(f'+{summary["lines_added"]}' in p.header and f'\u2212{summary["lines_removed"]}' in p.header, 'counts of lines')
    eq(read(t.path('page.html')), t.diff('--html', '-').bytes, 'the same changes give the same page')
    if t.is_root:
        os.chown(t.m('same'), 4711, 4712)
        check('owner 0:0 -> 4711:4712' in page(t).file('same').facts, 'the owner')


EVIL = ['</script><img src=x onerror=alert(1)>', '<script>alert(1)</script>', '"><svg onload=alert(1)>', "' onmouseover='alert(1)", '&lt;b&gt;&amp;',
        '<!-- -->', ']]>', '</style></details></main></body></html>', '\u202eexe.gnp\u202c', '\u200bzero\ufeff', '\x1b]0;title\x07', '{{7*7}}', 'javascript:alert(1)']


@gated
def test_hostile_names_and_contents(t):
    t.seed({'edit': ''.join(f'{e} old\n' for e in EVIL)})
    yield
    names_ = [e.replace('/', '\u2215') for e in EVIL] + ['new\nline', 'a b', '#f1', '%41', 'tab\tname']
    for name in names_:
        write(t.m(name), ''.join(e + '\n' for e in EVIL))
    raw = os.fsencode(t.mnt) + b'/bad\xff\xfe'
    write(raw, b'bytes \xff\xc0\xaf \xed\xa0\x80 <b>\x00?'.replace(b'\x00', b'') + b'\r\n')
    write(t.m('edit'), ''.join(f'{e} new\n' for e in EVIL))
    os.symlink('<img src=x>\n\u202e', t.m('link'))
    os.setxattr(t.m('a b'), 'user.<b>"\'', b'</script>')
    os.makedirs(t.m('<b>', '"x"'))
    write(t.m('<b>', '"x"', '\u2028'), '\n')
    t.snapshot('s<b>"&')
    p = page(t, '--to', 's<b>"&')
    eq(p.title, f'{t.name} \u2013 changes', 'the title')
    check('snapshot s<b>"&' in p.header, 'the name of the snapshot')

    def visible(text):
        return ''.join(f'\\x{ord(c):02x}' if ord(c) < 32 else f'\\u{{{ord(c):x}}}' if c in '\u202e\u202c\u200b\ufeff\u2028' else c for c in text)
    paths = {f.path for f in p.files}
    for name in names_:
        check(visible(name).replace('\\x0a', '\\n').replace('\\x09', '\t') in paths, f'a part for {name!r}: {short(sorted(paths))}')
    check('bad\\xff\\xfe' in paths and '<b>/"x"/\\u{2028}' in paths, f'odd paths: {short(sorted(paths))}')
    eq([row[2] for row in p.file('a b').rows], [visible(e) for e in EVIL], 'lines')
    check("\\x5c" not in p.file('a b').text and '\\u{202e}' in p.file('a b').samples, 'escapes are marked')
    eq(p.file('bad\\xff\\xfe').rows[0][2], 'bytes \\xff\\xc0\\xaf \\xed\\xa0\\x80 <b>?\\r', 'bytes that are no UTF-8')
    eq({m for m in p.file('edit').marks}, {'old', 'new'}, 'marks of words')
    check('user.<b>"\'' in p.file('a b').text and '</script>' in p.file('a b').text, 'the attribute')
    eq(p.file('link').rows, [['+', 1, '<img src=x>'], ['+', 2, '\\u{202e}']], 'the link')


@case(policy=POLICY + 'deny = private/, *.key\nmask = settings.env\nhide = ghost\nscratch = target/\n' + CHECKS)
def test_denied_and_masked_content_is_not_on_it(t):
    t.seed({'private/a': 'DENIEDCONTENT\n', 'x.key': 'DENIEDCONTENT\n', 'settings.env': 'KEY=MASKEDCONTENT\n', 'ghost': 'HIDDENCONTENT\n', 'a': 'a\n',
            'box/settings.env': 'K=MASKEDCONTENT\n', 'box/b.key': 'DENIEDCONTENT\n', 'box/c': 'c\n'})
    yield
    write(t.m('a'), 'changed\n')
    os.rename(t.m('box'), t.m('moved'))
    write(t.m('moved/c'), 'more\n')
    os.makedirs(t.m('target'))
    write(t.m('target/out'), 'SCRATCHCONTENT\n')
    for arguments in ([], ['--', 'moved'], ['--', '*']):
        page(t, *arguments)
        text = read(t.path('page.html')).decode()
        for word in ('DENIEDCONTENT', 'MASKEDCONTENT', 'HIDDENCONTENT', 'SCRATCHCONTENT', 'ghost', 'private', 'settings', 'x.key', 'b.key'):
            check(word not in text, f'{word} is on the page')
    same_list(t, page(t))


@case(policy=POLICY + CHECKS + 'test = touch ran-by-the-gate\n', workspace_changes=True, remount=False)
def test_findings_of_the_gate_are_at_their_lines(t):
    t.seed({'conf.py': numbers(40), 'package.json': '{"name": "x"}\n'})
    yield
    key = 'gh' + 'p_' + 'x8Kd2mQp7Rt4Wz9Lb3Nv6Yc1Hs5Gf0JaEuTi'
    write(t.m('conf.py'), numbers(20) + f'key = "{key}"\nmore\nlines\n' + numbers(40)[-60:])
    write(t.m('AGENTS.md'), 'obey\n')
    os.chmod(t.m('package.json'), 0o4755)
    p = page(t)
    findings = t.sbxfs('gate', t.name, '--json', '--checks', 'scope, secrets, manifests, control, modes, size', code=1).json()['findings']
    eq([(row[0], row[1], row[2]) for row in p.gate], [(f['level'], f['check'], (f['path'] or '') + (f':{f["line"]}' if f['line'] else '')) for f in findings], 'findings')
    check(len(p.gate) >= 3 and all(f['rule'] in row[3] and f['message'] in row[3] for f, row in zip(findings, p.gate)), 'rules and messages')
    level, line, text = p.file('conf.py').findings[0]
    eq((level, line), ('refuse', 21), 'where the finding stands')
    check('secrets/github-token' in text and key not in text, 'the finding shows its rule, and its excerpt redacted')
    eq([f[:2] for f in p.file('AGENTS.md').findings], [['review', None]], 'a finding without a line')
    check(is_gone(t.m('ran-by-the-gate')), 'the test command was run')
    nav = dict((identity, text) for identity, text in p.nav)
    check('refuse' in nav[p.file('conf.py').id], 'the tree shows the level')


@case(modes=('fresh',), remount=False, timeout=400)
def test_ten_thousand_changes(t):
    t.seed({f'{i // 100}/{i}': f'old {i}\n' for i in range(2500)})
    yield
    for i in range(2500):
        if i % 2:
            os.unlink(t.m(f'{i // 100}/{i}'))
        else:
            write(t.m(f'{i // 100}/{i}'), f'new {i}\n')
    for i in range(7500):
        os.makedirs(t.m(f'n/{i // 100}'), exist_ok=True)
        write(t.m(f'n/{i // 100}/{i}'), f'content {i}\n')
    p = page(t)
    listed = t.diff('--name-status').out.splitlines()
    same_lists(['\t'.join(c) for c in p.changes()], listed, 'the changes of the page')
    check(len(listed) >= 10000, f'{len(listed)} changes')
    eq(p.changes()[0][0], 'D', 'deletions come first')
    eq(len(p.nav), len(listed), 'the tree')
    check(all(f.rows for f in p.files if 'directory' not in f.facts), 'each file has its lines')


@case(modes=('fresh',), remount=False)
def test_large_contents_are_whole(t):
    t.seed({'long': 'var a = 1; ' * 9000 + '\n', 'lines': numbers(9000)})
    yield
    write(t.m('long'), 'var a = 1; ' * 4000 + 'EVIL(); ' + 'var a = 1; ' * 5000 + '\n')
    write(t.m('lines'), ''.join(f'line {i}\n' for i in range(9000)))
    write(t.m('huge'), b'0123456789abcde\n' * (1 << 21) + b'x')
    p = page(t)
    eq([re.sub(r'\d+ more bytes', '', row[2]) for row in p.file('long').rows], ['var a = 1; ' * 9000, read(t.m('long')).decode()[:-1]], 'the long line')
    check('EVIL(); ' in p.file('long').marks[-1], 'what changed in it')
    text = p.file('lines').text
    check(all(f'line {i}\n' in text or ['+', i + 1, f'line {i}'] in p.file('lines').rows for i in range(0, 9000, 97)), 'all lines')
    check('8999' in text and '-9000\n' in text, 'the last lines')
    check('too large' in p.file('huge').text and str((16 << 21) + 1) in p.file('huge').text, 'a content too large for lines')


@gated
def test_places_for_the_page(t):
    t.seed({'a': 'a\n', 'sub/b': 'b\n'})
    yield
    write(t.m('a'), 'changed\n')
    os.makedirs(t.path('out'))
    target = t.path('out', 'page.html')
    write(target, 'old')
    os.chmod(target, 0o640)
    os.symlink('out/page.html', t.path('link.html'))
    eq(t.diff('--html', t.path('link.html')).out, '', 'standard output')
    check(os.path.islink(t.path('link.html')), 'the link stays')
    Page(read(target))
    eq((permissions(target), names(t.path('out'))), (0o640, ['page.html']), 'what is there')
    t.program('sbxfs-diff', t.name, '--html', 'new.html', cwd=t.path('out'))
    eq(permissions(t.path('out/new.html')), 0o666 & ~os.umask(os.umask(0o022)) & 0o777, 'mode of a new file')
    pipe = t.program('bash', '-c', f'sbxfs-diff {t.name} --html >(cat >{t.path("piped")}; touch {t.path("done")}) ; while [ ! -e {t.path("done")} ]; do sleep .05; done')
    eq((pipe.out, read(t.path('piped'))), ('', read(target)), 'through a pipe')
    eq(t.diff('--html', '-').bytes, read(target), 'to standard output')
    # what fails leaves what was there
    before = read(target)
    for arguments, code in ((['--html', t.path('nowhere/x')], 7), (['--html', t.path('out')], None), (['--html', '/dev/full'], 9), (['--html', target, '--stat'], 2),
                            (['--html', target, '--json'], 2), (['--html', target, '-z'], 2), (['--html', target, '--to', 'nothing'], 7)):
        done = t.diff(*arguments, code=code)
        check(done.code != 0 and done.out == '', f'{arguments}: {done.code}')
    done = t.program('bash', '-c', f"trap '' XFSZ; ulimit -f 8; exec sbxfs-diff {t.name} --html {target}", code=None)
    check(done.code != 0 and target in done.err, f'a disk quota: {done.code} {done.err}')
    eq((read(target), names(t.path('out'))), (before, ['new.html', 'page.html']), 'after the failures')
    # in the view it would be a change
    os.symlink(t.m('sub'), t.path('into'))
    for place in (t.m('page.html'), t.m('sub/page.html'), t.path('into/page.html'), t.m('a')):
        done = t.diff('--html', place, code=2)
        check('in the view' in done.err, f'the message: {done.err}')
    t.sbxfs('gate', t.name, '--sarif', t.m('x.sarif'), code=2)
    t.commit('--patch', t.m('x.patch'), code=2)
    eq(t.name_status(), {'a': 'M'}, 'changes')
    eq(read(t.m('a')), b'changed\n', 'the file in the view')


@case(in_place=True, remount=False)
def test_in_place_the_workspace_is_the_view(t):
    t.seed({'a': 'a\n'})
    yield
    write(t.m('a'), 'changed\n')
    t.program('sbxfs-diff', '--html', 'page.html', cwd=t.mnt, code=2)
    eq(t.name_status(), {'a': 'M'}, 'changes')
    page(t)


@case(workspace_changes=True)
def test_in_the_workspace_it_is_the_owners(t):
    t.seed({'a': 'a\n'})
    yield
    write(t.m('a'), 'changed\n')
    t.diff('--html', t.w('page.html'))
    Page(read(t.w('page.html')))
    eq(t.name_status(), {'a': 'M'}, 'changes')
    os.unlink(t.w('page.html'))


@case()
def test_between_snapshots_and_by_path(t):
    t.seed({'src/a.c': 'a\n', 'src/b.h': 'b\n', 'doc/a.c': 'a\n', 'e f/[x]': 'x\n'})
    yield
    for path in ('src/a.c', 'src/b.h', 'doc/a.c', 'e f/[x]'):
        append(t.m(path), 'one\n')
    t.snapshot('one')
    append(t.m('src/a.c'), 'two\n')
    os.unlink(t.m('src/b.h'))
    t.snapshot('two')
    write(t.m('n'), 'n\n')
    for arguments in (['--to', 'one'], ['--from', 'one', '--to', 'two'], ['--from', 'two', '--to', 'one'], ['--from', 'two'], ['--', '*.c'],
                      ['--', 'src', 'e f/[x]'], ['--from', 'one', '--', 'src/*.h'], ['--to', 'one', '--', 'doc/*', '*f/*']):
        p = page(t, *arguments)
        check(len(same_list(t, p, *arguments)['changes']) > 0, f'{arguments}: nothing')
        eq(t.diff('--html', '-', '--exit-code', *arguments, code=1).bytes, read(t.path('page.html')), 'the exit code')
        check(('snapshot ' + arguments[1] in p.header) == (arguments[0] != '--'), 'the snapshot in the header')
    p = page(t, '--from', 'two', '--', 'src')
    eq((p.files, 'No differences' in read(t.path('page.html')).decode()), ([], True), 'a page of nothing')
    t.diff('--html', '-', '--exit-code', '--from', 'two', '--', 'src', code=0)


@gated
def test_in_a_browser(t):
    if not chromium.program():
        t.skip('no Chromium is installed')
    t.seed({f'd/f{i}': numbers(60) for i in range(6)} | {'gone': numbers(3), 'del': numbers(400), '\u05d0': 'moves\n'})
    yield
    for i in range(6):
        t.shell(f"sed -i -e 's/^5$/five/' -e 's/^50$/fifty/' d/f{i}")
    os.unlink(t.m('gone'))
    os.unlink(t.m('del'))
    os.rename(t.m('\u05d0'), t.m('\u05d1'))
    for number, name in enumerate(EVIL):
        write(t.m(f'{number}' + name.replace('/', '\u2215')), name)
    write(t.m('AGENTS.md'), 'obey\n')
    page(t)
    browser = chromium.Chromium(t.path('browser'))
    try:
        look_around(t, browser)
    finally:
        browser.close()


def look_around(t, b):
    def at():
        return b.eval("(e => e && [e.className.split(' ')[0], e.closest('.file').querySelector('.path').textContent])(document.querySelector('.here'))")

    b.screen(1400, 900)
    b.open(t.path('page.html'))
    eq(b.eval("document.querySelectorAll('.file').length"), len(t.diff('--name-status').out.splitlines()), 'parts of the page')
    eq(b.eval("[document.querySelectorAll('img, svg, iframe, object, script').length, document.querySelectorAll('[onerror], [onload]').length]"), [1, 0], 'elements')
    moved = "[...document.querySelectorAll('.path')].find(e => e.textContent.includes('\u05d0'))"
    eq(b.eval(f"(([a, z]) => a.left < z.left)([...{moved}.querySelectorAll('bdi')].map(e => e.getBoundingClientRect()))"), True,
       'a rename of names that are written from right to left')
    b.press('j')
    eq(at(), ['file', 'del'], 'the first file')
    b.press('j', 'n')
    eq(at(), ['hunk', 'gone'], 'a hunk')
    b.press('k', 'g')
    eq(at(), ['finding', 'AGENTS.md'], 'a finding')
    eq(b.eval("[document.activeElement.className, Math.abs(document.activeElement.getBoundingClientRect().top) < 200]"), ['finding review here', True], 'the focus')
    b.press('?')
    eq(b.eval("document.getElementById('help').open"), True, 'the help')
    b.press('Escape', 'v')
    eq(b.eval("[document.querySelectorAll('.seen.file').length, document.getElementById('status').textContent.startsWith('1 of ')]"), [1, True], 'what was read')
    b.press('/', *'d/f3')
    eq(b.eval("[...document.querySelectorAll('.file:not([hidden]) .path')].map(e => e.textContent)"), ['d/f3'], 'the filter')
    b.press('Enter', 'j', 'n', 'n')
    eq(at(), ['hunk', 'd/f3'], 'after the filter')
    # unified on a phone, beside each other on a screen; no scrolling to the side
    rows = "(r => [r[0].top < r[1].top, document.documentElement.scrollWidth <= innerWidth])(['del', 'ins'].map(e => document.querySelector('.file:not([hidden]) ' + e).getBoundingClientRect()))"
    eq(b.eval(rows), [False, True], 'the wide layout')
    b.screen(390, 844, dark=True, phone=True)
    eq(b.eval(rows), [True, True], 'the narrow layout')
    eq(b.eval("getComputedStyle(document.body).backgroundColor"), 'rgb(16, 20, 26)', 'dark')
    eq(b.complaints, [], 'complaints of the browser')
