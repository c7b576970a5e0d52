# SPDX-License-Identifier: MIT
"""import-codex: a permission profile of Codex becomes a profile of sbxfs that is never more open."""
import os
import shutil

from harness.kit import *  # noqa: F403
from harness.secrets import *  # noqa: F403
from harness.view import case

once = case(mount=False, modes=('fresh',))
CONFIG = '''
model = "some-model"
default_permissions = "edit"

[permissions.edit]
description = "Edit the project,  no secrets"
extends = ":workspace"

[permissions.edit.filesystem]
glob_scan_max_depth = 3
":minimal" = "read"
"~/.cargo/bin" = "read"

[permissions.edit.filesystem.":workspace_roots"]
"." = "write"
".git" = "read"
"docs/final" = "read"
"docs/final/draft" = "write"
"a,b" = "read"
"!odd name" = "deny"
"private" = "deny"
"private/open" = "write"
"**/*.env" = "deny"
"*.pass" = "deny"

[permissions.edit.network]
enabled = true

[permissions.edit.network.domains]
"api.example.com" = "allow"
"**.example.org" = "allow"
"evil.example.com" = "deny"
'''


def importer(t, config, *arguments, code=0):
    write(t.path('config.toml'), config)
    program = os.path.join(os.path.dirname(shutil.which('sbxfs')), '../share/sbxfs/import-codex')
    return t.program('/usr/bin/python3', program, t.path('config.toml'), *arguments, code=code)


def imported(t, config, *arguments):
    """The profile, checked by sbxfs itself."""
    text = importer(t, config, *arguments).out
    write(t.policy_file, text)
    t.sbxfs('profile', 'check', t.policy_file)
    return text


def refuses(t, config, *keys, arguments=()):
    done = importer(t, config, *arguments, code=3)
    eq(done.out, '', 'a refusal prints no profile')
    for key in keys:
        check(key in done.err, f'{key} is not named: {done.err}')


def entry(line):
    return f'[permissions.x]\nextends = ":workspace"\n[permissions.x.filesystem.":workspace_roots"]\n{line}\n'


@once
def test_an_imported_profile_holds(t):
    t.seed({'.env': MARK, 'prod.env': MARK, 'a/b.env': MARK, 'x.pass': MARK, 'd/x.pass': MARK, '!odd name': MARK, 'private/k': MARK, 'private/open': MARK, '.git/config': 'c', 'a,b': 'x',
            '.agents/a': 'a', 'docs/final/f': 'f', 'docs/final/draft/f': 'f', 'src/f': 'f', 'id_rsa': MARK})
    yield
    imported(t, CONFIG)
    t.mount()
    for name in ('.env', 'prod.env', 'a/b.env', 'x.pass', 'd/x.pass', '!odd name', 'private/k', 'private/open', 'id_rsa'):
        denied(bytes_of, t.m(name))
    for name in ('new.env', 'src/new.env', 'new/deep/new.env', 'src/n.pass', 'private/n'):
        os.makedirs(t.m('new/deep'), exist_ok=True)
        denied(create, t.m(name))
        check(is_gone(t.m(name)), f'{name} was made')
    for name in ('.git/config', '.agents/a', 'docs/final/f', 'a,b'):
        check(read(t.m(name)), f'{name} can be read')
        fails(REFUSED, append, t.m(name), 'x')
        fails(REFUSED, os.unlink, t.m(name))
    fails(REFUSED, create, t.m('.git/hooks'))
    append(t.m('src/f'), 'x')
    append(t.m('docs/final/draft/f'), 'x')
    sweep(t)


@once
def test_what_the_network_and_the_home_become(t):
    yield
    text = imported(t, CONFIG)
    for line in ('description = Edit the project, no secrets', 'default = deny', 'allow = api.example.com', 'allow = example.org, *.example.org', 'deny = evil.example.com', 'home.read = .cargo/bin',
                 'read = /a\\,b'):
        check(line in text.splitlines(), f'{line}: {text}')
    check('private/open' in importer(t, CONFIG).err, 'a note of what stays denied')
    check('allow' not in imported(t, CONFIG.replace('enabled = true', 'enabled = false')), 'a network that is off')
    check('default = allow' in imported(t, CONFIG.replace('"api.example.com"', '"*"')), 'all domains')


@once
def test_extends_and_choice(t):
    """A child's entries replace its parent's; which profile is meant has to be clear."""
    yield
    two = '[permissions.a]\nextends = ":read-only"\n[permissions.a.filesystem.":workspace_roots"]\n"x" = "deny"\n"y" = "deny"\n' \
          '[permissions.b]\nextends = "a"\n[permissions.b.filesystem.":workspace_roots"]\n"y" = "write"\n'
    text = imported(t, two, '--profile', 'b', '--name', 'mine')
    check('read = **' in text and 'deny = /x' in text and 'write = /y' in text and '[profile mine]' in text, text)
    refuses(t, two, 'default_permissions')
    refuses(t, two.replace('":read-only"', '"b"'), 'circle', arguments=('--profile', 'b'))
    refuses(t, two.replace('":read-only"', '"c"'), 'permissions.c', arguments=('--profile', 'b'))
    refuses(t, two.replace('":read-only"', '":danger-full-access"'), ':danger-full-access', arguments=('--profile', 'a'))
    refuses(t, '[permissions.x]\n', '":workspace_roots"')
    refuses(t, '[permissions."a b"]\nextends = ":workspace"\n', 'a b', '--name')
    refuses(t, 'permissions = 1\n', 'permissions')
    refuses(t, 'not toml\n')
    check('base' not in imported(t, two, '--profile', 'a', '--bare'), '--bare')


@once
def test_one_path_in_several_spellings(t):
    """The most closed counts, whatever the order."""
    yield
    lines = ['"x" = "deny"', '"./x" = "read"', '"x/" = "write"']
    for order in (lines, lines[::-1]):
        text = imported(t, entry('\n'.join(order)))
        check('deny = /x\n' in text and 'write = /x\n' not in text, f'{order}: {text}')
    roots = '[permissions.x.filesystem]\n":project_roots" = "write"\n[permissions.x.filesystem.":workspace_roots"]\n"." = "read"\n"./" = "write"\n'
    check('read = **\n' in imported(t, '[permissions.x]\n' + roots), 'the workspace itself')
    text = imported(t, '[permissions.x]\nextends = ":workspace"\n[permissions.x.filesystem]\n"~/b" = "read"\n"~/./b" = "write"\n')
    check('home.read = b\n' in text, text)
    refuses(t, 'a = ' + '[' * 5000, 'nested')


@once
def test_what_cannot_be_said_is_named(t):
    """Nothing is dropped that would leave more open, whatever it is; all faults are told at once."""
    yield
    for line, key in (('"../x" = "deny"', '../x'), ('"/etc" = "deny"', '/etc'), ('"*.md" = "write"', '*.md'), ('"a/*/b" = "read"', 'a/*/b'), ('"*.{a,b}" = "deny"', '*.{a,b}'),
                      ('"a\\\\b" = "deny"', 'a\\b'), ('" x" = "deny"', ' x'), ('"x\\ny" = "deny"', 'control'), ('"x" = "allow"', 'allow'), ('"x" = 1', 'x'),
                      ('"a//b" = "deny"', 'a//b'), ('"~/x" = "deny"', '~/x')):
        refuses(t, entry(line), key)
    head = '[permissions.x]\nextends = ":workspace"\n'
    for line, key in (('[permissions.x.filesystem]\n"/opt" = "deny"', '/opt'), ('[permissions.x.filesystem]\n":root" = "read"', ':root'), ('[permissions.x.filesystem]\n":new" = "read"', ':new'),
                      ('[permissions.x.filesystem]\n"~/a" = "read"\n"~/a/b" = "deny"', '~/a/b'), ('[permissions.x.filesystem]\n"~" = "read"', '"~"'), ('[permissions.x.shell]\n', 'permissions.x.shell'),
                      ('[permissions.x.network]\nproxy_url = "http://h"', 'proxy_url'), ('[permissions.x.network]\nmode = "limited"', 'mode'), ('[permissions.x.network]\nenabled = "yes"', 'enabled'),
                      ('[permissions.x.network.domains]\n"h,g" = "allow"', 'h,g'), ('[permissions.x.network.domains]\n"h" = "ask"', 'ask'),
                      ('[permissions.x.workspace_roots]\n"~/b" = true', 'workspace_roots')):
        refuses(t, head + line + '\n', key)
    refuses(t, entry('"/etc" = "deny"\n"../x" = "deny"\n') + '[permissions.x.network]\nnew = 1\n', '/etc', '../x', 'permissions.x.network.new')
    imported(t, entry('"/etc" = "deny"\n"y" = "deny"\n'), '--without', '/etc')
    refuses(t, entry('"y" = "deny"\n'), 'no-such', arguments=('--without', 'no-such'))
