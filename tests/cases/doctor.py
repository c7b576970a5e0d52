# SPDX-License-Identifier: MIT
"""What `sbxfs doctor` finds: each thing it looks for is taken away once, and it says so, with what to do."""
import os
import shutil

from harness.kit import *  # noqa: F403
from harness.view import case

POLICY = '[profile cases]\n[files cases]\nwrite = **\ndeny = *.deny\nhide = *.hid\nmask = *.mask\n'
ruled = case(policy=POLICY, modes=('fresh',), remount=False)
once = case(modes=('fresh',), remount=False)
by_itself = case(mount=False, modes=('fresh',))
alone = case(mount=False, modes=('fresh',), root=True)


def doctor(t, *target, prefix=(), **named):
    """Its findings by their check, as (level, message, remedy). The exit code agrees with them."""
    done = t.program(*prefix, 'sbxfs', 'doctor', '--json', *target, code=None, **named)
    answer = done.json()
    lacking = [f for f in answer['findings'] if f['level'] == 'lacking']
    eq((done.code, answer['fine']), (10 if lacking else 0, not lacking), f'exit code and verdict ({short(done.err)})')
    found = {}
    for f in answer['findings']:
        found.setdefault(f['check'], []).append((f['level'], f['message'], f['remedy'] or ''))
    return found


def expect(found, check_name, level, *words):
    """One finding of that check has the level, and mentions the words."""
    texts = [message + ' ' + remedy for its, message, remedy in found.get(check_name, []) if its == level]
    check(any(all(word in text for word in words) for text in texts), f'{check_name} should be {level} and tell of {words}: {short(found.get(check_name))}')


@once
def test_a_sound_sandbox(t):
    t.seed({'f': 'f', 'g': ('=', 'f')})
    yield
    found = doctor(t, t.name)
    for name in ('fuse', 'fusermount3', 'kernel', 'runtime-directory', 'mount', 'policy', 'hard-links'):
        eq([level for level, *_ in found[name]], ['ok'], name)
    text = t.sbxfs('doctor', t.name, code=None).out
    check(f'ok       {t.name}: mount: mounted\n' in text, f'as text: {short(text)}')
    t.sbxfs('doctor', 'no-such-sandbox', code=7)


@ruled
def test_names_of_one_file_that_the_rules_tell_apart(t):
    t.seed({'a.deny': 'secret', 'd/open': ('=', 'a.deny'), 'b.hid': 'secret', 'c.deny': ('=', 'b.hid'), 'm.mask': 'K=v', 'd/plain': ('=', 'm.mask'),
            'x': 'x', 'y': ('=', 'x')})
    yield
    found = doctor(t, t.name)
    expect(found, 'hard-links', 'lacking', 'a.deny', 'd/open', 'copy')
    expect(found, 'hard-links', 'lacking', 'm.mask', 'd/plain')
    eq(len(found['hard-links']), 2, f'no others: {short(found["hard-links"])}')
    eq(read(t.m('d/open')), b'secret', 'what it warns of is so')


@ruled
def test_closed_paths_in_the_history(t):
    """Contents that were committed are readable through .git; the rules cannot change that, so it is said."""
    t.seed({'a.deny': 'secret', 'f': 'f', 'sub/x.mask': 'K=v', 'clean/f': 'f'})
    for top, add, remove in (('.', ('a.deny', 'f'), 'a.deny'), ('sub', ('x.mask',), None), ('clean', ('f',), None)):
        at = t.w(top)
        t.program('git', 'init', '-q', at)
        t.program('git', '-C', at, 'add', '-f', *add)
        t.program('git', '-C', at, 'commit', '-qm', 'first')
        if remove:
            t.program('git', '-C', at, 'rm', '-q', '--cached', remove)
            t.program('git', '-C', at, 'commit', '-qm', 'second')
    t.program('git', 'init', '-q', t.w('unborn'))
    yield
    found = doctor(t, t.name)
    expect(found, 'git-history', 'lacking', ' .git:', 'a.deny', 'revoke')
    expect(found, 'git-history', 'lacking', 'sub/.git:', 'sub/x.mask')
    expect(found, 'git-history', 'ok', 'clean/.git')
    expect(found, 'git-history', 'ok', 'unborn/.git')
    eq(len(found['git-history']), 4, f'repositories: {short(found["git-history"])}')
    eq(t.program('git', '-C', t.mnt, 'show', 'HEAD~1:a.deny').out, 'secret', 'what it warns of is so')


@once
def test_a_view_whose_process_is_gone(t):
    t.kill_daemon()
    expect(doctor(t, t.name), 'mount', 'lacking', t.mnt, 'gone', f'sbxfs umount {t.name}')
    t.umount()
    expect(doctor(t), 'mount', 'ok', 'unmounted')


@once
def test_a_policy_that_was_changed_or_broken(t):
    write(t.policy_file, read(t.policy_file).replace(b'write = **\n', b'write = **\ndeny = later\n'))
    expect(doctor(t, t.name), 'policy', 'note', 'changed since', '-p')
    append(t.policy_file, 'nonsense = x\n')
    expect(doctor(t, t.name), 'policy', 'note', 'nonsense', 'stays in force')


@case(mount=False, modes=('fresh',), workspace_changes=True)
def test_a_workspace_that_is_gone(t):
    yield
    t.mount()
    t.umount()
    os.rename(t.low, t.path('elsewhere'))
    expect(doctor(t, t.name), 'workspace', 'lacking', t.low)
    os.rename(t.path('elsewhere'), t.low)
    expect(doctor(t, t.name), 'hard-links', 'ok')


@case(policy=POLICY, mount=False, modes=('fresh',), workspace_changes=True)
def test_a_mount_tells_of_closed_paths_that_git_tracks(t):
    """Whoever hands a repository over should not have to think of the doctor first."""
    t.seed({'a.deny': 'secret', 'f': 'f', 'd/b.mask': 'K=v', 'd/f': 'f'})
    t.program('git', 'init', '-q', t.low)
    t.program('git', '-C', t.low, 'add', '-f', 'f', 'd/f')
    yield
    clean = t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, t.mnt)
    check('note' not in clean.err, f'nothing closed is tracked: {short(clean.err)}')
    t.umount()
    check('note' not in t.sbxfs('mount', '-n', 'other', '-p', t.policy_file, t.w('d'), t.mnt).err, 'below a directory')
    t.sbxfs('umount', 'other')
    t.program('git', '-C', t.low, 'add', '-f', 'a.deny', 'd/b.mask')
    told = t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, t.mnt)
    check('close a.deny and others' in told.err and f'sbxfs doctor {t.name}' in told.err, short(told.err))
    t.umount()
    check('note' not in t.sbxfs('mount', '-n', t.name, t.low, t.mnt).err, 'only with a new policy')
    t.umount()
    told = t.sbxfs('mount', '-n', 'third', '-p', t.policy_file, t.w('d'), t.mnt)
    check('close b.mask,' in told.err, f'below a directory: {short(told.err)}')
    t.sbxfs('umount', 'third')
    write(t.policy_file, POLICY + 'deny = .git/\n')
    t.sbxfs('destroy', '--force', t.name)
    told = t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, t.low, t.mnt)
    check('note' not in told.err, f'.git is closed, too: {short(told.err)}')
    t.umount()


@by_itself
def test_a_store_that_cannot_be_read(t):
    yield
    t.mount()
    t.umount()
    shutil.copytree(t.store(), t.path('kept'))
    write(os.path.join(t.store(), 'store.db'), b'no database' * 4000)
    expect(doctor(t, t.name), 'store', 'lacking', t.store())
    remove_tree(t.store())
    os.rename(t.path('kept'), t.store())
    expect(doctor(t, t.name), 'mount', 'ok')


@by_itself
def test_programs_that_are_missing(t):
    yield
    os.mkdir(t.path('bin'))
    os.symlink(shutil.which('sbxfs'), t.path('bin/sbxfs'))
    found = doctor(t, env={'PATH': t.path('bin')})
    expect(found, 'confinement', 'lacking', 'bwrap', 'bubblewrap')
    expect(found, 'fusermount3', 'lacking', 'fuse3')
    write(t.path('bin/bwrap'), '#!/bin/sh\necho the namespaces were refused >&2\nexit 1\n')
    shutil.copy(shutil.which('fusermount3'), t.path('bin/fusermount3'))
    os.chmod(t.path('bin/bwrap'), 0o755)
    found = doctor(t, env={'PATH': t.path('bin') + ':/bin:/usr/bin'})
    expect(found, 'confinement', 'lacking', 'the namespaces were refused')
    expect(found, 'fusermount3', *(['ok'] if t.is_root else ['lacking', 'set-user-ID']))


@alone
def test_a_system_without_the_device(t):
    yield
    hide = ('unshare', '-m', '--propagation', 'private', 'bash', '-c', 'mount -t tmpfs none /dev && exec "$@"', '-')
    expect(doctor(t, prefix=hide), 'fuse', 'lacking', '/dev/fuse', 'modprobe')


@alone
def test_where_the_stores_lie(t):
    yield
    for size, level in (('2g', 'ok'), ('500m', 'note'), ('1m', 'lacking')):
        over = ('unshare', '-m', '--propagation', 'private', 'bash', '-c', f'mount -t tmpfs -o size={size} none {t.path("state")} && exec "$@"', '-')
        found = doctor(t, prefix=over)
        expect(found, 'store-space', level, t.path('state'))
        expect(found, 'store-file-system', 'note', 'tmpfs', 'XDG_STATE_HOME')


@case(mount=False, modes=('fresh',), root=False)
def test_stores_that_cannot_be_made(t):
    yield
    os.chmod(t.path('state'), 0o500)
    expect(doctor(t), 'store', 'lacking', t.path('state'), 'XDG_STATE_HOME')
    os.chmod(t.path('state'), 0o700)
