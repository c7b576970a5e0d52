# SPDX-License-Identifier: MIT
"""The gate: what it finds in a mounted view, what a commit does then, and that only the policy has a say."""
import json
import os
import time

from harness.kit import *  # noqa: F403
from harness.view import case

POLICY = '[profile cases]\n[files cases]\nwrite = **\ndeny = hidden/\n[gate cases]\n'
gated = case(policy=POLICY + 'checks = all\n', workspace_changes=True, remount=False)


def fake_key(tail=''):
    """Looks like a token of a provider; put together here."""
    return 'gh' + 'p_' + 'x8Kd2mQp7Rt4Wz9Lb3Nv6Yc1Hs5Gf0JaEu' + (tail or 'Ti')


def gate(t, *arguments, code=0):
    return t.sbxfs('gate', t.name, *arguments, code=code)


def rules(t, *arguments, code=0):
    """[(level, rule, path, line)] of the findings that are no mere notes."""
    answer = gate(t, '--json', *arguments, code=code).json()
    eq(answer['schema'], 'sbxfs.gate/1', 'schema')
    eq({0: 'pass', 4: 'review', 1: 'refuse'}[code], answer['verdict'], 'verdict')
    return [(f['level'], f['rule'], f['path'], f['line']) for f in answer['findings'] if f['level'] != 'pass']


@gated
def test_pass(t):
    t.seed({'a': 'one\n'})
    yield
    eq(rules(t), [], 'nothing changed')
    write(t.m('a'), 'two\n')
    eq(rules(t), [], 'a harmless change')
    check('verdict: pass' in gate(t).out, 'the text says so')
    t.commit()
    eq(read(t.w('a')), b'two\n', 'the workspace')


@gated
def test_refuse(t):
    t.seed({'a': 'one\n'})
    yield
    write(t.m('a'), f'one\nkey = {fake_key()}\n')
    eq(rules(t, code=1), [('refuse', 'secrets/github-token', 'a', 2)], 'findings')
    done = t.commit('--reviewed', code=1)
    check(fake_key() not in done.out + done.err, 'the commit shows the key')
    check(fake_key() not in gate(t, code=1).out, 'the gate shows the key')
    t.commit('-n', '--reviewed', code=1)
    eq(read(t.w('a')), b'one\n', 'the workspace after the refusals')
    error = json.loads(t.commit('--json', '--reviewed', code=1).err.splitlines()[-1])
    eq(error['error']['code'], 'differences', 'the JSON error')
    eq(rules(t, '--checks', 'modes, size'), [], 'other checks')
    write(t.m('a'), 'one\ntwo\n')
    t.commit()


@gated
def test_review(t):
    t.seed({'a': 'one\n'})
    yield
    write(t.m('a'), 'two\n')
    write(t.m('AGENTS.md'), 'obey\n')
    eq(rules(t, code=4), [('review', 'control/agent', 'AGENTS.md', None)], 'findings')
    t.commit(code=4)
    check(is_gone(t.w('AGENTS.md')) and read(t.w('a')) == b'one\n', 'something was written without a review')
    eq(rules(t, '--', 'a'), [], 'one path')
    t.commit(paths=['a'])
    t.commit('--reviewed')
    eq(read(t.w('AGENTS.md')), b'obey\n', 'written after the review')


@case(policy=POLICY + 'checks = none\n', workspace_changes=True, remount=False)
def test_switched_off(t):
    t.seed({})
    yield
    write(t.m('a'), fake_key())
    gate(t)
    gate(t, '--checks', 'secrets', code=1)
    gate(t, '--checks', 'nonsense', code=2)
    gate(t, '--checks', '', code=2)
    gate(t, '--test', '', code=2)
    gate(t, '--json', '--sarif', 'x', code=2)
    t.commit()


@gated
def test_nothing_in_the_view_switches_it_off(t):
    t.seed({'.gitignore': 'a\n'})
    yield
    write(t.m('.sbxfs.ini'), '[profile x]\n[gate x]\nchecks = none\nsecret_paths = **\n')
    write(t.m('.gitleaksignore'), 'a\n')
    write(t.m('.gitattributes'), '* -diff binary\n')
    write(t.m('a'), f'k={fake_key()} # gitleaks:allow\n')
    check(('refuse', 'secrets/github-token', 'a', 1) in rules(t, code=1), 'the key is found')
    t.remount()
    check(('refuse', 'secrets/github-token', 'a', 1) in rules(t, code=1), 'and after a remount')


@gated
def test_denied_paths_are_not_read(t):
    t.seed({'hidden/key': fake_key(), 'a': 'x\n'})
    yield
    write(t.m('a'), 'y\n')
    eq(rules(t), [], 'findings')


@case(policy=POLICY + 'checks = tests\ntest = ./check\ntest_time = 30\n', workspace_changes=True, remount=False)
def test_tests(t):
    t.seed({'check': ('#!/bin/sh\ngrep -q good state\n', 0o755), 'state': 'good\n'})
    yield
    write(t.m('state'), 'good\nnew\n')
    eq(rules(t), [], 'the tests see the view')
    write(t.m('state'), 'bad\n')
    eq(rules(t, code=1), [('refuse', 'tests/failed', None, None)], 'failing tests')
    eq(rules(t, '--reason', 'known', code=4), [('review', 'tests/failed', None, None)], 'failing tests with a reason')
    eq(rules(t, '--test', 'true'), [], 'another command')
    t.commit('--reviewed', code=1)
    t.commit('--reviewed', '--reason', 'known')
    eq(read(t.w('state')), b'bad\n', 'the workspace')


@gated
def test_sarif(t):
    t.seed({})
    yield
    write(t.m('a b'), f'\n{fake_key()}\n')
    gate(t, '--sarif', t.path('out.sarif'), code=1)
    with open(t.path('out.sarif'), encoding='utf-8') as file:
        run = json.load(file)['runs'][0]
    result = run['results'][0]
    place = result['locations'][0]['physicalLocation']
    eq((result['level'], place['artifactLocation']['uri'], place['region']['startLine']), ('error', 'a%20b', 2), 'the result')
    eq([r['id'] for r in run['tool']['driver']['rules']][0], result['ruleId'], 'its rule')
    eq(json.loads(gate(t, '--sarif', '-', code=1).out)['version'], '2.1.0', 'on standard output')


@gated
def test_large_changes_take_little_time(t):
    t.seed({})
    yield
    line = b'int value = compute(token, key) + 0x1234; /* some comment */\n'
    for i in range(20):
        write(t.m(f'f{i}.c'), line * 30000)
    write(t.m('long.js'), b'var a = 1;' * 3000000 + f'"{fake_key()}"'.encode())
    start = time.monotonic()
    found = rules(t, '--checks', 'secrets', code=1)
    eq(found, [('refuse', 'secrets/github-token', 'long.js', 1)], 'findings')
    check(time.monotonic() - start < 60, f'{time.monotonic() - start:.0f} s for 66 MB')
    os.unlink(t.m('long.js'))
