# SPDX-License-Identifier: MIT
# fish completion for sbxfs. The program itself is asked for its commands and options, see sbxfs.bash.

function __sbxfs_commands
	LC_ALL=C sbxfs --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *\(.*\)/\1\t\2/p'
end

function __sbxfs_options
	set -l words (commandline -opc)
	LC_ALL=C sbxfs $words[2] --help 2>/dev/null | sed -n 's/^  \(-[a-zA-Z]\), \(--[a-z-]*=\{0,1\}\)[^ ]*  *\(.*\)/\1\t\3\n\2\t\3/p; s/^  \(--[a-z-]*=\{0,1\}\)[^ ]*  *\(.*\)/\1\t\2/p'
end

function __sbxfs_verbs
	set -l words (commandline -opc)
	test (count $words) = 2
	and LC_ALL=C sbxfs $words[2] --help 2>/dev/null | sed -n '2{s/^[^]]*] //;p}' | tr '|' '\n' | sed -n 's/^ *\([a-z][a-z]*\)\( .*\)\{0,1\}$/\1/p'
end

function __sbxfs_sandboxes
	set -q XDG_STATE_HOME; and set -l state $XDG_STATE_HOME; or set -l state $HOME/.local/state
	for store in $state/sbxfs/*/store.db
		basename (dirname $store)
	end
end

function __sbxfs_has_command
	test (count (commandline -opc)) -ge 2
end

function __sbxfs_wants_option
	__sbxfs_has_command; and string match -q -- '-*' (commandline -ct)
end

complete -c sbxfs -n 'not __sbxfs_has_command' -f -a '(__sbxfs_commands)'
complete -c sbxfs -n __sbxfs_wants_option -f -a '(__sbxfs_options)'
complete -c sbxfs -n __sbxfs_has_command -a '(__sbxfs_verbs)'
complete -c sbxfs -n '__sbxfs_has_command; and test -z "$(__sbxfs_verbs)"' -a '(__sbxfs_sandboxes)'
