# SPDX-License-Identifier: MIT
# bash completion for sbxfs. The program itself is asked for its commands and options, so they cannot go out of step; names of sandboxes are
# those of their directories, since `sbxfs list` would count the changes of each.

_sbxfs_commands() {
	LC_ALL=C sbxfs --help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\)  *.*/\1/p'
}

# _sbxfs_options COMMAND - one a line; those that take a value end in =
_sbxfs_options() {
	LC_ALL=C sbxfs "$1" --help 2>/dev/null | sed -n 's/^  \(-[a-zA-Z]\), \(--[a-z-]*=\{0,1\}\).*/\1\n\2/p; s/^  \(--[a-z-]*=\{0,1\}\).*/\1/p'
}

# _sbxfs_verbs COMMAND - "create NAME | list" gives create and list
_sbxfs_verbs() {
	LC_ALL=C sbxfs "$1" --help 2>/dev/null | sed -n '2{s/^[^]]*] //;p}' | tr '|' '\n' | sed -n 's/^ *\([a-z][a-z]*\)\( .*\)\{0,1\}$/\1/p'
}

_sbxfs_sandboxes() {
	local store
	for store in "${XDG_STATE_HOME:-$HOME/.local/state}"/sbxfs/*/store.db; do
		[ -e "$store" ] && basename "${store%/store.db}"
	done
}

_sbxfs_words() {
	mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
}

_sbxfs() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
	COMPREPLY=()
	if [ "$COMP_CWORD" = 1 ]; then
		_sbxfs_words "$(_sbxfs_commands) --help --version" "$word"
		return
	fi
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [ "${COMP_WORDS[i]}" = -- ]; then # paths, or the program to run
			[ "$command" = run ] && [ $((i + 1)) = "$COMP_CWORD" ] && mapfile -t COMPREPLY < <(compgen -c -- "$word")
			compopt -o default
			return
		fi
	done
	case $before in
	-p | --profile) _sbxfs_words "$(sbxfs profile list 2>/dev/null | cut -d' ' -f1)" "$word"; compopt -o default; return ;;
	-n | --name) _sbxfs_words "$(_sbxfs_sandboxes)" "$word"; return ;;
	esac
	case $word in
	-*) _sbxfs_words "$(_sbxfs_options "$command")" "$word"; return ;;
	esac
	if [ "$COMP_CWORD" = 2 ] && [ -n "$(_sbxfs_verbs "$command")" ]; then
		_sbxfs_words "$(_sbxfs_verbs "$command")" "$word"
		return
	fi
	_sbxfs_words "$(_sbxfs_sandboxes)" "$word"
	compopt -o default
}

complete -F _sbxfs sbxfs
