# SPDX-License-Identifier: MIT
"""Review: what the difference says, that its patch makes the same tree, and what a commit writes, refuses and leaves alone."""
import os
import shutil
import stat
import time

from harness.kit import *  # noqa: F403
from harness.view import case

commits = case(workspace_changes=True)
edited = case(workspace_changes=True, remount=False)  # by its owner too, behind the back of the view


def pristine(t):
    """A copy of the workspace as it is now."""
    shutil.copytree(t.low, t.path('base'), symlinks=True, copy_function=shutil.copy2)


def check_patch(t, *arguments):
    """The patch turns the copy into the tree of the view, as far as git knows trees."""
    write(t.path('patch'), t.diff(*arguments).bytes)
    if os.path.getsize(t.path('patch')):
        t.program('git', 'apply', '--whitespace=nowarn', '-p1', t.path('patch'), cwd=t.path('base'))
    same_lists(digest(t.path('base'), ('git',)), digest(t.mnt, ('git',)), 'the patched copy against the view')


def check_commit(t, *arguments, **named):
    """After a commit workspace and view are one, and nothing is pending."""
    want = digest(t.mnt, ('owner', 'xattr'))
    t.commit(*arguments, **named)
    same_lists(digest(t.low, ('owner', 'xattr')), want, 'the workspace after the commit')
    same_lists(digest(t.mnt, ('owner', 'xattr')), want, 'the view after the commit')
    eq(t.name_status(), {}, 'pending after the commit')
    t.remount()
    same_lists(digest(t.mnt, ('owner', 'xattr')), want, 'the view after a remount')


def check_both(t):
    check_patch(t)
    check_commit(t)


def numbers(last):
    return ''.join(f'{i}\n' for i in range(1, last + 1))


@commits
def test_text_files(t):
    t.seed({'a': numbers(100), 'd/b': numbers(50), 'd/e/del': numbers(5), 'keep': 'keep\n', 'last': 'no newline', 'full': numbers(3), 'zero': ''})
    pristine(t)
    yield
    t.shell("sed -i 's/^50$/fifty/' a; echo tail >>d/b; rm d/e/del; mkdir -p n/m; echo new >n/m/new; : >empty; printf 'no newline either' >last; : >full; echo x >zero")
    eq(t.name_status(), {'a': 'M', 'd/b': 'M', 'd/e/del': 'D', 'n/m/new': 'A', 'empty': 'A', 'last': 'M', 'full': 'M', 'zero': 'M'}, 'changes')
    check_both(t)


@commits
def test_modes_and_kinds(t):
    t.seed({'x': '#!/bin/sh\n', 'y': ('#!/bin/sh\n', 0o755), 'f2l': 'file\n', 'l2f': ('->', 'target'), 'd2f/in': 'in\n', 'f2d': 'file\n', 'both': 'text\n', 'l2d': ('->', 'x')})
    pristine(t)
    yield
    os.chmod(t.m('x'), 0o755)
    os.chmod(t.m('y'), 0o644)
    os.unlink(t.m('f2l'))
    os.symlink('somewhere', t.m('f2l'))
    os.unlink(t.m('l2f'))
    write(t.m('l2f'), 'now a file\n')
    shutil.rmtree(t.m('d2f'))
    write(t.m('d2f'), 'now a file\n')
    os.unlink(t.m('f2d'))
    grow(t.m('f2d'), {'in': 'below\n'})
    append(t.m('both'), 'more\n')
    os.chmod(t.m('both'), 0o755)
    os.unlink(t.m('l2d'))
    grow(t.m('l2d'), {'in': 'below\n'})
    check_both(t)


@commits
def test_symlinks_are_carried_and_never_followed(t):
    t.seed({'retarget': ('->', 'old'), 'del': ('->', 'x'), 'old': 't\n', 'd/f': 'f\n', 'dirlink': ('->', 'd')})
    pristine(t)
    write(t.path('outside'), 'outside')
    yield
    for name in ('retarget', 'del', 'dirlink'):
        os.unlink(t.m(name))
    for name, target in (('retarget', 'new-target'), ('abs', t.path('outside')), ('dangling', 'nowhere'), ('d/self', '.'), ('d/up', '../../../../../etc/hostname'), ('dirlink', '/tmp')):
        os.symlink(target, t.m(name))
    check_both(t)
    eq(read(t.path('outside')), b'outside', 'the file outside')


@commits
def test_binary_files(t):
    t.seed({'mod': noise(4096), 'del': noise(300_000), 't2b': 'text\n', 'b2t': b'a\0b', 'move': noise(100_000, 2), 'same': noise(70_000, 3)})
    pristine(t)
    yield
    with opened(t.m('mod'), os.O_RDWR) as fd:
        os.pwrite(fd, b'X', 2000)
    os.unlink(t.m('del'))
    write(t.m('new'), noise(1 << 20, 4))
    write(t.m('t2b'), b'x\0y\n')
    write(t.m('b2t'), 'text\n')
    os.rename(t.m('move'), t.m('moved'))
    with opened(t.m('moved'), os.O_RDWR) as fd:
        os.pwrite(fd, b'Y', 5)
    write(t.m('nul'), b'\0')
    write(t.m('utf16'), b'\xff\xfea\0b\0')
    check_both(t)


@commits
def test_line_endings_survive(t):
    t.seed({'crlf': b'a\r\nb\r\nc\r\n', 'mixed': b'a\r\nb\nc\r\n', 'cr': b'a\rb\rc', 'bom': b'\xef\xbb\xbfx\r\n', '.gitattributes': '* text=auto eol=lf\n*.sh text eol=crlf\n', 's.sh': b'x\r\n'})
    pristine(t)
    yield
    for name, data in (('crlf', b'a\r\nB\r\nc\r\nd\r\n'), ('mixed', b'a\r\nb\nc\r\nd\n'), ('cr', b'a\rB\rc'), ('bom', b'\xef\xbb\xbfy\r\n'), ('new', b'n1\r\nn2\r\n'), ('s.sh', b'y\n')):
        write(t.m(name), data)
    check_both(t)


@commits
def test_odd_names_are_quoted(t):
    odd = ['with space', 'tab\there', 'new\nline', '"quoted"', 'back\\slash', 'caf\u00e9', ' lead', 'trail ', '-dash', 'a b/c d', 'dev/null', 'a => b', '{x}', '.gitignore']
    t.seed({name: f'{name}\n' for name in odd} | {f'del/{name}': 'x\n' for name in odd[:8]})
    write(os.fsencode(t.low) + b'/\xff\xfe', b'raw\n')
    shutil.copytree(os.fsencode(t.low), os.fsencode(t.path('base')), symlinks=True)
    yield
    for name in odd:
        append(t.m(name), 'edited\n')
        write(t.m('new', name.replace('/', '_')) if os.path.isdir(t.m('new')) else os.makedirs(t.m('new')) or t.m('new', name.replace('/', '_')), 'new\n')
    append(os.fsencode(t.mnt) + b'/\xff\xfe', b'edited\n')
    for name in odd[:8]:
        os.rename(t.m('del', name), t.m('del', name + '.moved'))
    status = {change['path'] for change in t.diff('--json').json()['changes'] if 'path_b64' not in change}
    check(set(odd) <= status, 'paths in the JSON')
    entries = t.diff('--name-status', '-z').bytes.split(b'\0')
    check(b'new\nline' in entries and b'\xff\xfe' in entries, 'paths of --name-status -z')
    check_both(t)


@commits
def test_a_renamed_directory_arrives_whole(t):
    t.seed({f'src/client/f{i}': f'client {i}\n' * 5 for i in range(30)} | {f'src/client/deep/g{i}': f'deep {i}\n' * 5 for i in range(30)} |
           {'src/client/l': ('->', 'f1'), 'src/client/run': ('#!/bin/sh\n', 0o755)})
    pristine(t)
    yield
    os.rename(t.m('src/client'), t.m('src/client2'))
    append(t.m('src/client2/f3'), 'edit\n')
    os.unlink(t.m('src/client2/deep/g4'))
    os.rename(t.m('src/client2/deep'), t.m('deep2'))
    renamed = [c for c in t.diff('--json').json()['changes'] if c['status'] == 'R' and c['path'].startswith('deep2/')]
    check(len(renamed) > 20 and all(c['from_path'].startswith('src/client/deep/') for c in renamed), f'{len(renamed)} renames')
    check_both(t)
    eq((is_gone(t.w('src/client')), len(names(t.w('deep2')))), (True, 29), 'the workspace')


@commits
def test_renames_that_cross(t):
    t.seed({name: f'{name}\n' * 20 for name in ('a', 'b', 'c', 'x', 'y')} | {'d1/f': 'd1 f\n' * 20, 'd2/f': 'd2 f\n' * 20})
    pristine(t)
    yield
    exchange(t.m('a'), t.m('b'))
    os.rename(t.m('x'), t.m('y'))
    exchange(t.m('d1'), t.m('d2'))
    os.rename(t.m('c'), t.m('d1/c'))
    os.mkdir(t.m('c'))
    os.rename(t.m('d1/c'), t.m('c/c'))
    check_both(t)


@commits
def test_nothing_to_show_when_nothing_changed_in_the_end(t):
    t.seed({f'd/f{i}': f'{i}\n' for i in range(1, 8)} | {'d/e/x': 'x', 'l': ('->', 'd')})
    before = digest(t.low, EVERYTHING)
    yield
    write(t.m('d/tmp'), 't')
    os.unlink(t.m('d/tmp'))
    append(t.m('d/f1'), 'x')
    os.truncate(t.m('d/f1'), 2)
    write(t.m('d/f7'), '7\n')
    os.rename(t.m('d/f2'), t.m('q'))
    os.rename(t.m('q'), t.m('d/f2'))
    os.utime(t.m('d/f3'))
    os.chmod(t.m('d/f4'), 0o600)
    os.chmod(t.m('d/f4'), 0o644)
    t.program('sed', '-i', 's/5/5/', t.m('d/f5'))
    os.mkdir(t.m('z'))
    os.rmdir(t.m('z'))
    os.unlink(t.m('l'))
    os.symlink('d', t.m('l'))
    eq((t.diff().out, t.name_status()), ('', {}), 'the difference')
    t.diff('--exit-code', code=0)
    t.commit()
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace after the commit')


@commits
def test_forms_of_the_difference(t):
    t.seed({'a': numbers(10), 'b': 'b\n', 'd/x': 'x\n', 'd/y': 'y\n'})
    yield
    t.diff('--exit-code', code=0)
    t.shell('echo 11 >>a; rm b; chmod +x d/x; echo n >n')
    t.diff('--exit-code', code=1)
    eq(sorted(t.diff('--name-status').out.splitlines()), ['A\tn', 'D\tb', 'M\ta', 'P\td/x'], '--name-status')
    stat_ = t.diff('--stat').out
    check(all(name in stat_ for name in ('a', 'b', 'd/x', 'n')) and '4 files changed' in stat_, f'--stat: {short(stat_)}')
    whole = t.diff('--json').json()
    eq((whole['schema'], whole['workspace'], len(whole['digest'])), ('sbxfs.diff/1', t.low, 64), 'JSON')
    change = next(c for c in whole['changes'] if c['path'] == 'a')
    eq((change['added'], change['removed'], change['binary'], change['old']['size'], change['new']['size']), (1, 0, False, 21, 24), 'one change')
    eq(set(t.name_status('--', 'd')), {'d/x'}, '-- PATH')
    check('diff --git a/a b/a' in t.diff('--', 'a').out and 'b/n' not in t.diff('--', 'a').out, '-- PATH as a patch')
    eq(whole['digest'], t.diff('--json').json()['digest'], 'the digest is stable')
    append(t.m('a'), '12\n')
    check(whole['digest'] != t.diff('--json').json()['digest'], 'the digest follows the content')
    color = t.program('sbxfs-diff', t.name, env={'NO_COLOR': ''}).out
    check('\x1b' not in color, 'no colour in a pipe')


@case()
def test_owners_and_attributes_in_every_form(t):
    t.seed({name: 'x\n' for name in ('attr', 'both', 'owned', 'text')} | {'d/': None})
    yield
    os.setxattr(t.m('attr'), 'user.k', b'v')
    os.setxattr(t.m('both'), 'user.k', b'v')
    os.chmod(t.m('both'), 0o4755)
    os.setxattr(t.m('text'), 'user.k', b'v')
    write(t.m('text'), 'y\n')
    os.setxattr(t.m('d'), 'user.k', b'v')
    want = ['M\ttext', 'P\tboth', 'X\tattr', 'X\td']
    if t.is_root:
        os.chown(t.m('owned'), 4711, 4712)
        want.append('P\towned')
    eq(sorted(t.diff('--name-status').out.splitlines()), sorted(want), '--name-status')
    changes = {c['path']: c for c in t.diff('--json').json()['changes']}
    for path in ('attr', 'both', 'text', 'd'):
        eq((changes[path]['old'].get('xattrs', {}), changes[path]['new']['xattrs']), ({}, {'user.k': 'dg=='}), f'xattrs of {path}')
    patch, stat_ = t.diff().out, t.diff('--stat').out
    check('# sbxfs: M text: xattrs\ndiff --git a/text b/text\n' in patch, f'the patch: {short(patch)}')
    check('# sbxfs: P both: mode 0644 -> 4755, xattrs\n' in patch and '(mode 0644 -> 4755, xattrs)' in stat_, f'mode and attribute: {short(stat_)}')
    if t.is_root:
        eq([(changes['owned'][side]['uid'], changes['owned'][side]['gid']) for side in ('old', 'new')], [(0, 0), (4711, 4712)], 'owners')
        check('# sbxfs: P owned: owner 0:0 -> 4711:4712\n' in patch and '(owner 0:0 -> 4711:4712)' in stat_, 'the owner')


@case()
def test_globs_and_odd_names_in_every_form(t):
    odd = ['a b.c', 'tab\t.c', 'new\nline.c', '"q".c', 'caf\u00e9.c', '[x].c', '-n.c', 'sub/*.c']
    t.seed({name: 'x\n' for name in odd} | {'other.h': 'x\n', 'sub/move.c': numbers(20)})
    yield
    for name in odd:
        append(t.m(name), 'y\n')
    append(t.m('other.h'), 'y\n')
    os.rename(t.m('sub/move.c'), t.m('sub/to\n.c'))
    write(os.fsencode(t.mnt) + b'/\xff.c', b'z\n')
    fields = t.diff('--name-status', '-z', '--', '*.c').bytes.split(b'\0')
    eq(set(fields), {b'M', b'A', b'R100', b'', b'\xff.c', b'sub/move.c', b'sub/to\n.c'} | {os.fsencode(name) for name in odd}, '-z')
    stat_ = t.diff('--stat', '--', '*.c').out.splitlines()
    eq((len(stat_), stat_[-1]), (len(odd) + 3, f' {len(odd) + 2} files changed, {len(odd) + 1} insertions(+), 0 deletions(-)'.replace(', 0 deletions(-)', '')), '--stat')
    for shown in ('"new\\nline.c"', '"tab\\t.c"', '"\\377.c"', 'sub/move.c => "sub/to\\n.c"', '"caf\\303\\251.c"'):
        check(any(line.strip().startswith(shown + ' ') for line in stat_), f'{shown}: {short(stat_)}')
    eq(set(t.name_status('--', 'sub/[*].c')), {'sub/*.c'}, 'a glob that is also a name')
    eq(set(t.name_status('--', '[x].c')), {'[x].c'}, 'a name that is also a glob')
    eq(t.program('sbxfs-diff', '--name-status', '--', '*.c', cwd=t.m('sub')).out.splitlines(), ['M\tsub/*.c', 'R100\tsub/move.c\t"sub/to\\n.c"'], 'from below')
    for form in ([], ['--stat'], ['--name-status'], ['--json'], ['--html', '-']):
        t.diff(*form, '--exit-code', '--', '*.nothing', code=0)
        t.diff(*form, '--exit-code', '--', '*.h', code=1)
        t.diff(*form, '--', 'nothing', code=7)


@case()
def test_between_snapshots(t):
    t.seed({'a': numbers(10), 'b': 'b\n', 'd/x': 'x\n'})
    yield
    append(t.m('a'), 'one\n')
    t.snapshot('one')
    os.unlink(t.m('b'))
    os.rename(t.m('d'), t.m('e'))
    t.snapshot('two')
    write(t.m('n'), 'n\n')
    eq(t.name_status('--to', 'one'), {'a': 'M'}, 'start to one')
    eq(t.name_status('--from', 'one', '--to', 'two')['b'], 'D', 'one to two')
    eq(t.name_status('--from', 'two'), {'n': 'A'}, 'two to now')
    eq(t.name_status('--from', 'two', '--to', 'one')['b'], 'A', 'backwards')
    t.diff('--from', 'nowhere', code=7)
    patch = t.diff('--from', 'one', '--to', 'two').bytes
    t.rollback('one')
    shutil.copytree(t.mnt, t.path('base'), symlinks=True)
    t.rollback('two')
    write(t.path('patch'), patch)
    t.program('git', 'apply', t.path('patch'), cwd=t.path('base'))
    same_lists(digest(t.path('base'), ('git',)), digest(t.mnt, ('git',)), 'the patch from one to two')


@commits
def test_moved_in_a_way_that_only_the_bytes_tell(t):
    """For who reads it is a rename. What is digested and committed is what was done: a deletion and a new file."""
    t.seed({'src/a.c': numbers(100), 'b.txt': numbers(40), 'c': (numbers(20), 0o755), 'gone': 'unlike all\n', 'zero': '', 'link': ('->', 'x'), 'bin': noise(5000), 'name': 'x\n'})
    pristine(t)
    yield
    t.shell("mv src/a.c a.c; sed 's/^50$/fifty/' a.c >tmp; mv tmp a.c; mkdir d; cat b.txt >d/b.txt; rm b.txt; { cat c; echo end; } >e; rm c; rm gone zero link; : >zero2; ln -s x link2; "
            "cat bin >bin2; rm bin; mv name renamed; echo new >new")
    plain = ['A\ta.c', 'A\tbin2', 'A\td', 'A\td/b.txt', 'A\te', 'A\tlink2', 'A\tnew', 'A\tzero2', 'D\tb.txt', 'D\tbin', 'D\tc', 'D\tgone', 'D\tlink', 'D\tsrc/a.c', 'D\tzero', 'R100\tname\trenamed']
    shown = ['A\td', 'A\tlink2', 'A\tnew', 'A\tzero2', 'D\tgone', 'D\tlink', 'D\tzero', 'R092\tc\te', 'R097\tsrc/a.c\ta.c', 'R100\tb.txt\td/b.txt', 'R100\tbin\tbin2', 'R100\tname\trenamed']
    eq(sorted(t.diff('--name-status', '--no-renames').out.splitlines()), plain, 'the plain list')
    eq(sorted(t.diff('--name-status').out.splitlines()), shown, 'what is read')
    eq([line[0] for line in t.diff('--name-status').out.splitlines()][:4], ['D', 'D', 'D', 'R'], 'deletions come first')
    check(b'R097\0src/a.c\0a.c\0' in t.diff('--name-status', '-z').bytes, '-z')
    patch = t.diff()
    check('diff --git a/src/a.c b/a.c\nsimilarity index 97%\nrename from src/a.c\nrename to a.c\nindex ' in patch.out and '\n-50\n+fifty\n' in patch.out, f'the patch: {short(patch.out)}')
    check('diff --git a/c b/e\nold mode 100755\nnew mode 100644\nsimilarity index 92%\n' in patch.out, 'the mode')
    check('\n-1\n' not in patch.out and '\n+1\n' not in patch.out, 'a whole file')
    stat_ = t.diff('--stat').out
    check(' src/a.c => a.c ' in stat_ and ' 12 files changed, 4 insertions(+), 3 deletions(-)' in stat_, f'--stat: {short(stat_)}')
    answer, plain_answer = t.diff('--json').json(), t.diff('--json', '--no-renames').json()
    change = next(c for c in answer['changes'] if c['path'] == 'a.c')
    eq((change['status'], change['from_path'], change['similarity'], change['added'], change['removed'], change['old']['size']), ('R', 'src/a.c', 97, 1, 1, 292), '--json')
    eq((answer['summary']['renamed'], answer['summary']['deleted'], plain_answer['summary']['renamed'], plain_answer['summary']['deleted']), (5, 3, 1, 7), 'summaries')
    eq(answer['digest'], plain_answer['digest'], 'the digest')
    check(f'digest: {answer["digest"]}\n' in patch.err, 'the digest beside the patch')
    web = t.diff('--html', '-').out
    check('97% alike' in web and answer['digest'] in web and web.count('<details open class=file') == len(shown), 'the page')
    check(len(t.diff('--name-status', '--', 'a.c', 'b.txt').out.splitlines()) == 2, 'a half that was not asked for')
    check_patch(t)
    check_commit(t, '--expect', answer['digest'])


@commits
def test_no_rename_out_of_what_may_not_be_read(t):
    closed = ('masked', 'denied', 'hidden', 'scratch')
    t.seed({name: name + numbers(50) for name in closed} | {'open': 'open' + numbers(50)})
    yield
    for name in (*closed, 'open'):
        data = read(t.m(name))
        os.unlink(t.m(name))
        write(t.m(name + '.copy'), data)
        write(t.m(name + '.like'), data + b'more\n')
    eq(t.diff('--name-status', '--', 'masked', 'masked.like').out, 'R096\tmasked\tmasked.like\n', 'while it may be read')
    t.umount()
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\nmask = masked\ndeny = denied\nhide = hidden\nscratch = scratch\n')
    t.mount()
    want = ['R100\topen\topen.copy', 'A\topen.like'] + [f'A\t{name}.{kind}' for name in closed for kind in ('copy', 'like')]
    eq(sorted(t.diff('--name-status').out.splitlines()), sorted(want), 'what is read')
    check('rename from open\n' in t.diff().out and not any(f'from {name}\n' in t.diff().out for name in closed), 'the patch')


@commits
def test_commit_of_a_part(t):
    t.seed({'d/a': 'a', 'd/b': 'b', 'e/a': 'a', 'f': 'f', 'both/x': 'x'})
    yield
    for name in ('d/a', 'e/a', 'f'):
        write(t.m(name), 'changed')
    os.unlink(t.m('d/b'))
    grow(t.m(), {'d/new/deep': 'n', 'e/new': 'n'})
    os.rename(t.m('both'), t.m('moved'))
    rest = {path: kind for path, kind in t.name_status().items() if not path.startswith('d/') and path != 'f'}
    view = digest(t.mnt, ('owner',))
    t.commit(paths=['d', 'f'])
    eq((read(t.w('d/a')), is_gone(t.w('d/b')), read(t.w('d/new/deep')), read(t.w('f'))), (b'changed', True, b'n', b'changed'), 'what was named')
    eq((read(t.w('e/a')), is_gone(t.w('e/new')), names(t.w('both'))), (b'a', True, ['x']), 'what was not')
    eq(t.name_status(), rest, 'pending')
    same_lists(digest(t.mnt, ('owner',)), view, 'the view')
    t.rollback()
    eq((read(t.m('e/a')), names(t.m('both')), read(t.m('d/a')), is_gone(t.m('d/b'))), (b'a', ['x'], b'changed', True), 'the rest rolled back')
    same_lists(digest(t.mnt, ('owner',)), digest(t.low, ('owner',)), 'view and workspace')


@edited
def test_conflicts_write_nothing(t):
    t.seed({'both': 'base', 'only': 'base', 'd/z': 'z', 'gone': 'base', 'kind': 'base', 'p/f': 'f'})
    yield
    for name in ('both', 'only', 'gone', 'kind', 'p/f'):
        write(t.m(name), 'sandbox')
    write(t.m('new'), 'sandbox')
    os.unlink(t.m('d/z'))
    t.umount()  # so that the edits below are no race with what the view remembers
    write(t.w('both'), 'owner')
    os.unlink(t.w('gone'))
    os.unlink(t.w('kind'))
    os.mkdir(t.w('kind'))
    write(t.w('new'), 'owner')
    shutil.rmtree(t.w('p'))
    write(t.w('p'), 'no directory any more')
    append(t.w('d/z'), 'owner')
    t.mount()
    before = digest(t.low, EVERYTHING)
    refused = t.commit(code=5)
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace after a refused commit')
    for name in ('both', 'gone', 'kind', 'new', 'd/z', 'p'):
        check(name in refused.err + refused.out, f'the message names {name}: {short(refused.err)}')
    conflicts = t.commit('--json', code=5)
    import json
    listed = {c['path'] for c in json.loads(conflicts.out if '"conflicts"' in conflicts.out else conflicts.err)['conflicts']}
    check({'both', 'gone', 'kind', 'new', 'd/z'} <= listed and 'only' not in listed, f'conflicts in JSON: {listed}')
    eq((read(t.m('both')), read(t.m('only')), read(t.m('new'))), (b'sandbox',) * 3, "the sandbox's work")
    t.commit(paths=['only'])
    eq((read(t.w('only')), read(t.w('both'))), (b'sandbox', b'owner'), 'a part without a conflict')


@edited
def test_the_owners_other_edits_survive(t):
    t.seed({f'd/{name}': 'base' for name in ('a', 'o', 'del', 'mode')})
    yield
    for name in names(t.m('d')):
        read(t.m('d', name))
    write(t.m('d/a'), 'sandbox')
    write(t.m('d/an'), 'sandbox')
    write(t.w('d/o'), 'owner')
    write(t.w('d/on'), 'owner')
    os.unlink(t.w('d/del'))
    os.chmod(t.w('d/mode'), 0o700)
    t.commit()
    eq({name: read(t.w('d', name)) for name in names(t.w('d'))}, {'a': b'sandbox', 'an': b'sandbox', 'mode': b'base', 'o': b'owner', 'on': b'owner'}, 'the workspace')
    eq(permissions(t.w('d/mode')), 0o700, "the owner's chmod")


@edited
def test_mode_on_one_side_content_on_the_other(t):
    t.seed({'f': 'base', 'g': 'base'})
    yield
    write(t.m('f'), 'sandbox')
    os.chmod(t.w('f'), 0o755)
    os.chmod(t.m('g'), 0o755)
    write(t.w('g'), 'owner')
    code = t.commit(code=(0, 5)).code
    want = ((b'sandbox', 0o755), (b'owner', 0o755)) if code == 0 else ((b'base', 0o755), (b'owner', 0o644))
    eq(((read(t.w('f')), permissions(t.w('f'))), (read(t.w('g')), permissions(t.w('g')))), want, 'the workspace')


@edited
def test_a_commit_writes_through_no_link(t):
    t.seed({'d/f': 'base', 'g': 'base', 'e/old': 'o'})
    grow(t.path('out'), {'f': 'victim', 'g': 'victim', 'new': 'victim'})
    yield
    write(t.m('d/f'), 'sandbox')
    write(t.m('g'), 'sandbox')
    grow(t.m('e'), {'sub/new': 'n', 'new': 'n'})
    os.rename(t.w('d'), t.w('d.owner'))
    os.symlink(t.path('out'), t.w('d'))
    os.unlink(t.w('g'))
    os.symlink(t.path('out/g'), t.w('g'))
    shutil.rmtree(t.w('e'))
    os.symlink(t.path('out'), t.w('e'))
    t.commit(code=5)
    eq({name: read(t.path('out', name)) for name in names(t.path('out'))}, {'f': b'victim', 'g': b'victim', 'new': b'victim'}, 'files outside')


@commits
def test_hard_links(t):
    t.seed({'a': 'base', 'b': ('=', 'a'), 's1': 'base', 's2': ('=', 's1'), 'x': 'x'})
    yield
    append(t.m('a'), '+')
    os.unlink(t.m('s2'))
    write(t.m('s2'), 'own')
    os.link(t.m('x'), t.m('y'))
    append(t.m('y'), 'more')
    write(t.m('n1'), 'n')
    os.link(t.m('n1'), t.m('n2'))
    want = {name: read(t.m(name)) for name in names(t.mnt)}
    t.commit()
    eq({name: read(t.w(name)) for name in names(t.w())}, want, 'contents')
    check(not os.path.samefile(t.w('s1'), t.w('s2')), 'separated names are linked')
    eq((os.path.samefile(t.w('n1'), t.w('n2')), os.path.samefile(t.w('a'), t.w('b'))), (True, True), 'linked names')


@commits
def test_attributes_empty_directories_and_special_files(t):
    t.seed({'f': 'f', 'd/x': 'x', 'empty/': None})
    yield
    os.makedirs(t.m('n/e/m'))
    os.rmdir(t.m('empty'))
    os.mkfifo(t.m('p'), 0o640)
    os.chmod(t.m('d'), 0o700)
    write(t.m('n/f'), 'f')
    os.utime(t.m('n/f'), ns=(1_000_000_001, 2_000_000_002))
    try:
        os.setxattr(t.m('n/f'), 'user.k', b'v')
        os.setxattr(t.m('f'), 'user.k', b'v')
    except OSError:
        pass
    if t.is_root:
        os.chown(t.m('n/f'), 12, 34)
    check_commit(t)
    eq((os.stat(t.w('n/f')).st_mtime_ns, stat.S_ISFIFO(os.lstat(t.w('p')).st_mode), permissions(t.w('d'))), (2_000_000_002, True, 0o700), 'time, kind, mode')


@commits
def test_unreadable_and_read_only_places(t):
    t.seed({'ro/f': ('f', 0o444), 'ro/g': ('g', 0o400)})
    yield
    os.chmod(t.m('ro/f'), 0o644)
    write(t.m('ro/f'), 'changed')
    os.chmod(t.m('ro/f'), 0o444)
    os.unlink(t.m('ro/g'))
    write(t.m('ro/n'), 'n')
    os.chmod(t.m('ro'), 0o555)
    check_commit(t)
    for top in (t.w('ro'), t.m('ro')):
        os.chmod(top, 0o755)


@edited
def test_what_was_committed_is_the_new_ground(t):
    t.seed({'f': 'one', 'd/x': 'x'})
    yield
    for number in range(3):
        write(t.m('f'), f'round {number}')
        write(t.m(f'd/n{number}'), 'n')
        t.commit()
        eq(t.name_status(), {}, f'round {number}')
    write(t.m('f'), 'dropped')
    t.rollback()
    eq((read(t.m('f')), names(t.m('d'))), (b'round 2', ['n0', 'n1', 'n2', 'x']), 'after a rollback')
    append(t.w('f'), ' owner')
    time.sleep(1.5)
    eq(read(t.m('f')), b'round 2 owner', "the owner's edit after the commit shows")
    append(t.m('f'), ' sandbox')
    t.commit()
    eq(read(t.w('f')), b'round 2 owner sandbox', 'and can be built upon')


@commits
def test_dry_run_question_and_digest(t):
    t.seed({'f': 'base'})
    yield
    write(t.m('f'), 'sandbox')
    before = digest(t.low, EVERYTHING)
    out = t.program('sbxfs-commit', t.name, '-n').out
    check('f' in out, 'the dry run names the file')
    check(t.program('sbxfs-commit', t.name, code=None).code != 0, 'without -y and without a terminal')
    t.commit('--expect', '0' * 64, code=6)
    same_lists(digest(t.low, EVERYTHING), before, 'the workspace')
    t.commit('--expect', t.diff('--json').json()['digest'])
    eq(read(t.w('f')), b'sandbox', 'committed with the right digest')


@commits
def test_review_while_nothing_is_mounted(t):
    t.seed({'a': 'a\n', 'b': 'b\n', 'c': 'c\n'})
    yield
    for name in 'abc':
        append(t.m(name), 'more\n')
    t.umount()
    eq(t.name_status(), {'a': 'M', 'b': 'M', 'c': 'M'}, 'the difference')
    t.commit(paths=['a'])
    t.rollback(paths=['b'])
    eq((read(t.w('a')), t.name_status()), (b'a\nmore\n', {'c': 'M'}), 'after a commit and a rollback of parts')
    t.mount()
    eq([read(t.m(name)) for name in 'abc'], [b'a\nmore\n', b'b\n', b'c\nmore\n'], 'the view')


@case(workspace_changes=True, modes=('fresh',))
def test_a_commit_killed_at_any_moment_is_whole(t):
    """Every file is old or new, nothing foreign stays, and the next commit completes it."""
    import signal
    import subprocess
    count = 60
    t.seed({f'f{i}': b'O' * 30_000 for i in range(count)})
    yield
    for number in range(count):
        write(t.m(f'f{number}'), b'N' * 30_000)
        if number < 20:
            write(t.m(f'new{number}'), 'n')
    want = digest(t.mnt, ())
    for milliseconds in (5, 20, 40, 60, 80, 100, 130, 160, 200, 300, 500, 800):
        process = subprocess.Popen(['sbxfs-commit', t.name, '-y'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(milliseconds / 1000)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for name in names(t.low):
            data = read(t.w(name))
            check(data in ((b'O' * 30_000, b'N' * 30_000) if name.startswith('f') else (b'n',)), f'{name} is half written after {milliseconds} ms')
    t.commit()
    same_lists(digest(t.low, ()), want, 'the workspace after the last commit')
    eq(t.name_status(), {}, 'pending')


@case(workspace_changes=True)
def test_a_commit_beside_a_writer_takes_whole_files(t):
    size = 500_000
    t.seed({'f': b'A' * size})
    yield
    pid = os.fork()
    if pid == 0:
        for number in range(400):
            write(t.m('.tmp'), (b'B', b'A')[number % 2] * size)
            os.rename(t.m('.tmp'), t.m('f'))
        os._exit(0)
    for _ in range(5):
        t.commit(paths=['f'])
        one_of(read(t.w('f')), (b'A' * size, b'B' * size), 'the committed file')
    eq(os.waitpid(pid, 0)[1], 0, 'the writer')


@commits
def test_a_large_file_with_one_changed_byte(t):
    with open(t.w('big'), 'wb') as file:
        for number in range(64):
            file.write(noise(1 << 20, number))
    yield
    with opened(t.m('big'), os.O_RDWR) as fd:
        os.pwrite(fd, b'X', 30 << 20)
    eq(t.name_status(), {'big': 'M'}, 'the difference')
    t.commit()
    data = read(t.w('big'))
    check(len(data) == 64 << 20 and data[30 << 20] == ord('X') and data[:1 << 20] == noise(1 << 20, 0) and data[63 << 20:] == noise(1 << 20, 63), 'content')
