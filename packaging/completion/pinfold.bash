# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of pinfold(8) for bash. Nothing is listed here: commands come from `pinfold help`, options and
# their values from `pinfold help COMMAND`, so that they are those of the program that is installed.

# The words of a usage that stand for themselves: `a|b|c` after the command, or after one of its options.
_pinfold_usage_words() { # HELP BEFORE
	local line word pattern="(^|[ []|	)$2 (\[[^]]*\] )*([a-z]+(\|[a-z]+)*)([] ]|\$)"
	while IFS= read -r line; do
		[[ $line =~ $pattern ]] || continue
		word=${BASH_REMATCH[3]}
		printf '%s\n' "${word//|/$'\n'}"
	done <<<"$1"
}

# What stands for the value of OPTION in its line: FILE, NAME, …; nothing when it takes none.
_pinfold_value_of() { # HELP OPTION
	local line pattern="^  $2 ([^ ]+)(  |\$)"
	while IFS= read -r line; do
		[[ $line =~ $pattern ]] || continue
		printf '%s\n' "${BASH_REMATCH[1]}"
		return
	done <<<"$1"
}

_pinfold_words() { # WORD…: those that begin as the word under the cursor
	local IFS=$'\n'
	mapfile -t COMPREPLY < <(compgen -W "$*" -- "${COMP_WORDS[COMP_CWORD]}" | awk '!seen[$0]++')
}

_pinfold_files() {
	compopt -o filenames 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
}

_pinfold() {
	local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} current=${COMP_WORDS[COMP_CWORD]}
	local previous=${COMP_WORDS[COMP_CWORD - 1]} commands help value i

	COMPREPLY=()
	commands=$("$program" help 2>/dev/null | sed -n 's/^  \([a-z][a-z-]*\)  *.*/\1/p')
	if ((COMP_CWORD == 1)); then
		_pinfold_words "$commands"
		return
	fi
	help=$("$program" help "$command" 2>/dev/null) || return
	for ((i = 2; i < COMP_CWORD; i++)); do
		if [[ ${COMP_WORDS[i]} == -- ]]; then # the command line of somebody else
			if declare -F _command_offset >/dev/null; then
				_command_offset $((i + 1))
			elif ((COMP_CWORD == i + 1)); then
				mapfile -t COMPREPLY < <(compgen -c -- "$current")
			else
				_pinfold_files
			fi
			return
		fi
	done
	if [[ $previous == -* ]]; then
		value=$(_pinfold_value_of "$help" "$previous")
		case $value in
		'') ;;
		*FILE*) _pinfold_files; return ;;
		*) _pinfold_words "$(_pinfold_usage_words "$help" "$previous")"; return ;;
		esac
	fi
	if [[ $current == -* ]]; then
		_pinfold_words "$(sed -n 's/^  \(-[^ ]*\).*/\1/p' <<<"$help")" \
			"$([[ $help != *' -- COMMAND'* ]] || echo --)"
		return
	fi
	if [[ $command == help ]]; then
		_pinfold_words "$commands"
	elif value=$(_pinfold_usage_words "$help" "pinfold $command") && [[ -n $value ]]; then
		_pinfold_words "$value"
		((${#COMPREPLY[@]})) || _pinfold_files
	else
		_pinfold_files
	fi
}

complete -F _pinfold pinfold
