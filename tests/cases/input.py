# SPDX-License-Identifier: MIT
"""Bad input: the exit code of the contract, a message that names the thing, and nothing half done."""
import json
import os
import shutil
import sqlite3
import subprocess

from harness.kit import *  # noqa: F403
from harness.view import OPEN_POLICY, case, mounts

by_itself = case(mount=False, modes=('fresh',))


def nothing_left(t, what):
    """A refused mount leaves no mount and no store."""
    eq([mount.point for mount in mounts(t.dir)], [], f'mounts after {what}')
    check(not os.path.exists(t.store()), f'a store was left by {what}')


@by_itself
def test_workspaces_that_are_none(t):
    t.seed({'file': 'f'})
    yield
    for workspace, code in ((t.path('nowhere'), 7), (t.w('file'), (2, 7))):
        done = t.mount(low=workspace, code=code)
        check(workspace in done.err and not done.out, f'the message names {workspace}: {short(done.err)}')
        nothing_left(t, workspace)
    t.sbxfs('mount', code=2)


@by_itself
def test_mountpoints_that_cannot_be(t):
    t.seed({'sub/f': 'f'})
    grow(t.path('m'), {'something': 's'})
    grow(t.path(), {'file': 'f'})
    yield
    for mountpoint, code in ((t.path('m'), (2, 8)), (t.path('file'), (2, 7)), (t.path('no/such'), (2, 7))):
        done = t.program('sbxfs', 'mount', '-n', t.name, '-p', t.policy_file, t.low, mountpoint, code=None)
        one_of(done.code, code, f'exit for {mountpoint} ({short(done.err)})')
        check(os.path.basename(mountpoint) in done.err, f'the message names it: {short(done.err)}')
        nothing_left(t, mountpoint)
    eq(names(t.path('m')), ['something'], 'the directory that was not empty')
    os.unlink(t.path('m/something'))


@by_itself
def test_a_mountpoint_inside_the_workspace(t):
    t.seed({'a/f': 'f', 'mnt/': None})
    yield
    done = t.program('sbxfs', 'mount', '-n', t.name, '-p', t.policy_file, t.low, t.w('mnt'), code=None, timeout=60)
    if done.code:
        check('mnt' in done.err, f'the message names it: {short(done.err)}')
        eq(mounts(t.dir), [], 'mounts')
        return
    t.program('ls', '-laR', t.w('mnt'), timeout=60)
    eq(read(t.w('mnt/a/f')), b'f', 'a file')
    write(t.w('mnt/n'), 'n')
    t.umount()


@by_itself
def test_policies_that_are_wrong(t):
    t.seed({'f': 'f'})
    yield
    head = '[profile cases]\ndescription = x\n'
    wrong = {
        'an unknown key': (head + 'descrption = y\n', 'descrption', ':3'), 'an unknown action': (head + '[files cases]\nwrite = **\nforbid = x\n', 'forbid', ':5'),
        'an unknown section': (head + '[fils cases]\nwrite = **\n', 'fils', ':3'), 'a regex that does not compile': (head + '[files cases]\nwrite = **\ndeny = re:(unclosed\n', 'unclosed', ':5'),
        'a glob that does not compile': (head + '[files cases]\nwrite = **\ndeny = [a-\n', '[a-', ':5'), 'no section': ('write = **\n', 'write', ':1'),
        'an unknown parent': (head + 'extends = no-such-profile\n', 'no-such-profile'), 'itself as parent': (head + 'extends = cases\n', 'cases'),
        'a line that is none': (head + 'this is no line\n', ':3'), 'a boolean that is none': (head + 'nocase = perhaps\n', 'perhaps', ':3'),
        'an empty file': ('', os.path.basename(t.path('bad.ini'))),
    }
    for what, (text, *mentions) in wrong.items():
        write(t.path('bad.ini'), text)
        done = t.program('sbxfs', 'mount', '-n', t.name, '-p', t.path('bad.ini'), t.low, t.mnt, code=None)
        eq(done.code, 3, f'exit for {what} ({short(done.err)})')
        for word in ('bad.ini', *mentions):
            check(word in done.err, f'{what}: the message names {word!r}: {short(done.err)}')
        nothing_left(t, what)
    t.sbxfs('mount', '-n', t.name, '-p', t.path('no-such.ini'), t.low, t.mnt, code=(3, 7))
    t.sbxfs('mount', '-n', t.name, '-p', 'no-such-profile', t.low, t.mnt, code=(3, 7))
    if not t.is_root:
        os.chmod(t.path('bad.ini'), 0)
        t.sbxfs('mount', '-n', t.name, '-p', t.path('bad.ini'), t.low, t.mnt, code=3)


@by_itself
def test_a_policy_of_the_workspace_can_only_tighten(t):
    t.seed({'f': 'f', 'private': 'p', '.sbxfs.ini': '[profile local]\n[files local]\nwrite = **\ndeny = private\n', 'x.deny': 'x'})
    write(t.policy_file, '[profile cases]\n[files cases]\nwrite = **\ndeny = *.deny\n')
    yield
    done = t.mount(code=None)
    if done.code:
        t.skip('policies of the workspace come later')
    fails('EACCES', lambda: os.read(os.open(t.m('x.deny'), os.O_RDONLY), 9))
    t.umount()


@by_itself
def test_a_store_of_a_newer_version(t):
    t.seed({'f': 'f'})
    yield
    t.mount()
    write(t.m('f'), 'precious')
    t.umount()
    database = sqlite3.connect(os.path.join(t.store(), 'store.db'))
    version = database.execute('PRAGMA user_version').fetchone()[0]
    if version:
        database.execute('PRAGMA user_version = 9999')
    else:
        table = next(name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%key%value%'"))
        eq(database.execute(f"UPDATE {table} SET value = 9999 WHERE key LIKE '%schema%' OR key LIKE '%version%'").rowcount, 1, 'rows with the version')
    database.commit()
    done = t.mount(code=None)
    eq((done.code, mounts(t.dir)), (3, []), f'exit and mounts ({short(done.err)})')
    check('newer' in done.err or '9999' in done.err, f'the message says why: {short(done.err)}')
    for command in (['sbxfs-diff', t.name], ['sbxfs-commit', t.name, '-y'], ['sbxfs-rollback', t.name, '-y'], ['sbxfs', 'snapshot', 'create', 'x', t.name]):
        check(t.program(*command, code=None).code != 0, f'{command[0]} of a newer store')
    if version:
        database.execute(f'PRAGMA user_version = {version}')
        database.commit()
        database.close()
        t.mount()
        eq(read(t.m('f')), b'precious', 'nothing was lost')
        t.umount()
    else:
        database.close()


@by_itself
def test_a_damaged_store_is_no_mount(t):
    t.seed({'f': 'f'})
    yield
    t.mount()
    write(t.m('f'), 'precious')
    t.umount()
    os.rename(t.store(), t.path('kept'))
    shutil.copytree(t.path('kept'), t.store())
    for name in os.listdir(t.store()):
        if name.startswith('store.db'):
            write(os.path.join(t.store(), name), b'this is no database at all' * 400)
    done = t.mount(code=None)
    check(done.code not in (0, 2), f'exit {done.code}')
    check('store' in done.err, f'the message names the store: {short(done.err)}')
    eq(mounts(t.dir), [], 'mounts')
    remove_tree(t.store())
    os.rename(t.path('kept'), t.store())
    t.mount()
    eq(read(t.m('f')), b'precious', 'the old database')
    t.umount()


@by_itself
def test_a_store_belongs_to_its_workspace(t):
    t.seed({'f': 'f'})
    os.mkdir(t.path('other'))
    yield
    t.mount()
    t.umount()
    done = t.mount(low=t.path('other'), code=None)
    check(done.code != 0, 'the same name for another workspace')
    check(t.low in done.err or t.name in done.err, f'the message says whose it is: {short(done.err)}')
    eq(mounts(t.dir), [], 'mounts')


@case(mount=False, modes=('fresh',), root=True)
def test_without_a_fuse_device(t):
    t.seed({'f': 'f'})
    yield
    hide = f'mount -t tmpfs none /dev; exec sbxfs mount -n {t.name} -p {t.policy_file} {t.low} {t.mnt}'
    done = t.program('unshare', '-m', '--propagation', 'private', 'bash', '-c', hide, code=10)
    check('/dev/fuse' in done.err, f'the message names it: {short(done.err)}')
    check('modprobe' in done.err or 'device' in done.err, f'and the remedy: {short(done.err)}')
    nothing_left(t, 'a mount without a device')


@case(mount=False, modes=('fresh',), root=True)
def test_without_the_mount_helper(t):
    """An ordinary user needs fusermount3; its absence has a message."""
    t.seed({'f': 'f'})
    for name in ('state', 'run', 'w', 'm', 'tmp', 'config', 'home'):
        os.chown(t.path(name), 65534, 65534)
    yield
    helper = t.shell('command -v fusermount3', cwd='/').out.strip()
    script = f'mount --bind /dev/null {os.path.realpath(helper)}; exec setpriv --reuid=65534 --regid=65534 --clear-groups sbxfs mount -n {t.name} -p {t.policy_file} {t.low} {t.mnt}'
    done = t.program('unshare', '-m', '--propagation', 'private', 'bash', '-c', script, code=10)
    check('fusermount3' in done.err, f'the message names it: {short(done.err)}')


@case(modes=('fresh',))
def test_usage(t):
    t.seed({'f': 'f'})
    yield
    for args in (['no-such-command'], ['mount', '--no-such-option'], ['umount', 'a', 'b'], ['snapshot', 'frobnicate'], ['diff', '--from'], ['commit', '--no-such'], []):
        done = t.sbxfs(*args, code=2)
        check(done.err and not done.out, f'the message of {args} goes to standard error')
    for args in (['status', 'nowhere-at-all'], ['diff', 'nowhere-at-all'], ['commit', '-y', 'nowhere-at-all'], ['rollback', '-y', 'nowhere-at-all'], ['umount', 'nowhere-at-all'],
                 ['destroy', 'nowhere-at-all'], ['rollback', t.name, '-y', '--to', 'no-such-snapshot'], ['diff', t.name, '--from', 'no-such-snapshot']):
        done = t.sbxfs(*args, code=7)
        check('nowhere-at-all' in done.err or 'no-such-snapshot' in done.err, f'{args}: the message names it: {short(done.err)}')
    done = t.sbxfs('status', 'nowhere-at-all', '--json', code=7)
    error = json.loads(done.err)['error']
    check({'code', 'message'} <= set(error), f'the JSON of an error: {error}')
    for name in ('', 'a/b', '..', '.', 'x' * 300, 'new\nline'):
        done = t.sbxfs('mount', '-n', name, '-p', t.policy_file, t.low, t.path('tmp'), code=None)
        one_of(done.code, (2, 3), f'exit for the name {name!r}')
    check('usage' in t.sbxfs('--help').out.lower(), '--help')
    check(t.sbxfs('--version').out.strip(), '--version')
    for command in ('mount', 'umount', 'list', 'status', 'snapshot', 'diff', 'commit', 'rollback', 'why', 'destroy'):
        check(t.program(f'sbxfs-{command}', '--help').out, f'sbxfs-{command} --help')


@case(modes=('fresh',), remount=False)
def test_targets_in_every_form(t):
    t.seed({'d/f': 'f'})
    yield
    write(t.m('d/n'), 'n')
    for target in (t.name, t.mnt, t.m('d'), t.m('d/f'), t.low):
        eq(t.sbxfs('status', target, '--json').json()['sandbox'], t.name, f'status {target}')
    eq(t.sbxfs('status', '--json', cwd=t.m('d')).json()['sandbox'], t.name, 'by the current directory')
    eq(t.sbxfs('status', '--json', cwd='/').json()['sandbox'], t.name, 'the only live one')
    check(t.name in t.sbxfs('list').out and t.low in t.sbxfs('list').out, 'list')
    os.mkdir(t.path('m2'))
    t.mount(name='second', mnt=t.path('m2'))
    done = t.sbxfs('status', cwd='/', code=None)
    check(done.code != 0 and t.name in done.err and 'second' in done.err, f'two live ones are listed: {short(done.err)}')
    check(t.sbxfs('status', t.low, code=None).code != 0, 'a workspace of two sandboxes')
    write(t.path('m2/d/n2'), 'n2')
    eq((names(t.m('d')), names(t.path('m2/d'))), (['f', 'n'], ['f', 'n2']), 'two sandboxes of one workspace')
    t.sbxfs('umount', 'second')
    t.sbxfs('destroy', 'second', code=None)
    t.sbxfs('destroy', 'second', '--force', code=(0, 7))
    t.umount()
    done = t.sbxfs('destroy', t.name, code=None)
    check(done.code != 0 and os.path.isdir(t.store()), 'destroy refuses to drop changes')
    t.sbxfs('destroy', t.name, '--force')
    check(not os.path.exists(t.store()), 'destroyed')


@case(modes=('fresh',))
def test_a_reader_that_goes_away(t):
    t.seed({f'f{i}': 'x' * 1000 for i in range(100)})
    yield
    for number in range(100):
        write(t.m(f'f{number}'), 'changed ' * 500)
    for command, begin in (('diff', 'diff --git'), ('log', '20'), ('log --json', '{"schema"')):
        done = t.shell(f'sbxfs {command} {t.name} | head -1; exit "${{PIPESTATUS[0]}}"', code=None)
        check(done.code == 0 and done.out.startswith(begin) and 'standard output' not in done.err, f'{command}: exit {done.code}: {done.err}')
        process = subprocess.run(['sbxfs', *command.split(), t.name], stdout=open('/dev/full', 'wb'), stderr=subprocess.PIPE)
        eq(process.returncode, 9, f'{command} with a full disk under standard output')


@case(modes=('fresh',), policy=OPEN_POLICY)
def test_options_of_mount(t):
    t.seed({'f': 'f'})
    yield
    t.umount()
    done = t.sbxfs('mount', '-n', t.name, '-p', t.policy_file, '-o', 'no_such_option', t.low, t.mnt, code=None)
    check(done.code != 0 and 'no_such_option' in done.err, f'an unknown -o: {short(done.err)}')
    t.sbxfs('mount', '-n', t.name, '-o', 'ro', t.low, t.mnt)
    fails('EROFS', create, t.m('n'))
    fails('EROFS', os.unlink, t.m('f'))
    eq(read(t.m('f')), b'f', 'a read-only mount')
    t.umount()
    out = t.mount('--json').json()
    eq((out['sandbox'], out['mountpoint']), (t.name, t.mnt), 'mount --json')
