# SPDX-License-Identifier: MIT
"""What the owner does in the workspace while it is mounted shows in the view, as far as the agent has not changed it."""
import json
import multiprocessing
import os
import shutil
import stat
import subprocess
import sys
import time

from harness.kit import *  # noqa: F403
from harness.view import case

# Not compared across a remount: the last edit's event may still be on its way when the case ends.
edited = case(workspace_changes=True, remount=False)
once = case(modes=('fresh',), workspace_changes=True, remount=False)
NEVER = 30  # seconds after which an edit counts as not shown at all; how long it took is printed, not judged


def seen(what, shows):
    """The seconds until it shows."""
    begin = time.monotonic()
    while not shows():
        check(time.monotonic() - begin < NEVER, f'{what} does not show in {NEVER} s')
        time.sleep(0.0005)
    return time.monotonic() - begin


def text(path):
    try:
        return read(path)
    except OSError:
        return None


def edit(t, number):
    """One edit of five kinds; returns the predicate that tells that the view shows it."""
    name, version = f'd/f{number % 40}', b'version %d' % number
    low, mnt, kind = t.w(name), t.m(name), number % 5
    if kind == 0:
        append(low, version)
        want = read(low)
        return lambda: text(mnt) == want
    if kind == 1:
        write(low + '.new', version)
        os.rename(low + '.new', low)
        return lambda: text(mnt) == version
    if kind == 2:
        os.unlink(low)
        return lambda: is_gone(mnt)
    if kind == 3:
        write(low, version)
        os.chmod(low, 0o600 + number % 2 * 0o44)
        mode = stat.S_IMODE(os.stat(low).st_mode)
        return lambda: not is_gone(mnt) and stat.S_IMODE(os.stat(mnt).st_mode) == mode and text(mnt) == version
    new = f'd/new{number}'
    write(t.w(new), version)
    return lambda: f'new{number}' in names(t.m('d')) and text(t.m(new)) == version


def lookups(t):
    return json.loads(t.sbxfs('status', t.name, '--json').out)['messages']['lookup']


def delays(t, label):
    took = []
    for number in range(200):
        took.append(seen(f'edit {number}', edit(t, number)) * 1000)
        if number % 5 == 2:
            write(t.w(f'd/f{number % 40}'), 'again')
            took[-1] += seen(f'edit {number}, made again', lambda: text(t.m(f'd/f{number % 40}')) == b'again') * 1000
    took.sort()
    print(f'delay of 200 edits, {label}: median {took[100]:.1f} ms, 90 % {took[180]:.1f} ms, 99 % {took[198]:.1f} ms, longest {took[-1]:.1f} ms', file=sys.stderr)


def spin():
    while True:
        pass


@once
def test_edits_show(t):
    t.seed({f'd/f{number}': '0' for number in range(40)})
    yield
    for name in names(t.m('d')):
        read(t.m('d', name))
    # Cached without a time limit: only being told of the edits can show them then.
    before = lookups(t)
    time.sleep(1.5)
    for name in names(t.m('d')):
        os.stat(t.m('d', name))
    eq(lookups(t), before, 'names asked for again after a pause')
    delays(t, 'idle')
    load = [multiprocessing.Process(target=spin, daemon=True) for _ in range(2 * os.cpu_count())]
    for process in load:
        process.start()
    try:
        delays(t, 'under load')
    finally:
        for process in load:
            process.kill()
            process.join()


@edited
def test_another_branch_checked_out(t):
    t.seed({f'src/{part}/f{number}': f'{part} {number}' for part in 'abc' for number in range(30)})
    git = ['git', '-C', t.low, '-c', 'user.name=o', '-c', 'user.email=o@example.invalid']
    for arguments in (['init', '-q'], ['add', '-A'], ['commit', '-qm', 'one'], ['checkout', '-qb', 'other']):
        subprocess.run([*git, *arguments], check=True, stdin=subprocess.DEVNULL)
    shutil.rmtree(t.w('src/a'))
    write(t.w('src/b/f1'), 'other')
    write(t.w('src/d'), 'a file')
    subprocess.run([*git, 'add', '-A'], check=True)
    subprocess.run([*git, 'commit', '-qm', 'two'], check=True)
    subprocess.run([*git, 'checkout', '-q', '-'], check=True)
    yield
    write(t.m('src/c/f2'), "the agent's")
    for directory, _, files in os.walk(t.m('src')):
        for name in files:
            read(os.path.join(directory, name))
    subprocess.run([*git, 'checkout', '-q', 'other'], check=True)
    seen('the branch', lambda: is_gone(t.m('src/a')) and text(t.m('src/b/f1')) == b'other' and text(t.m('src/d')) == b'a file')
    eq(read(t.m('src/c/f2')), b"the agent's", 'what the agent changed')
    shutil.rmtree(t.w('src'))
    seen('the removal', lambda: is_gone(t.m('src/b')) and is_gone(t.m('src/d')))
    eq((names(t.m('src')), read(t.m('src/c/f2'))), (['c'], b"the agent's"), 'what is left')


@edited
def test_what_both_changed_is_a_conflict(t):
    t.seed({'f': 'base', 'g': 'base'})
    yield
    write(t.m('f'), 'agent')
    time.sleep(0.02)
    write(t.w('f'), 'owner')
    write(t.w('g'), 'owner')
    seen('the other file', lambda: text(t.m('g')) == b'owner')
    eq(read(t.m('f')), b'agent', "the agent's version stays")
    check('f' in t.sbxfs('commit', t.name, '-y', code=5).out + t.sbxfs('commit', t.name, '-y', code=5).err, 'the conflict names it')
    eq(read(t.w('f')), b'owner', 'the workspace')
