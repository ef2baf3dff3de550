# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# bash completion for all of Muster's tools. What can be completed is what the tool itself
# says with --help: options, and commands of those that have any. So nothing is listed here.
# Installed once, with a link of each tool's name.

# The last of our tools on the line: in "muster-run -n 4 muster_perf --j" it is muster_perf.
_muster_tool() {
	local i
	for ((i = COMP_CWORD - 1; i >= 0; i--)); do
		case ${COMP_WORDS[i]##*/} in
		muster-* | muster_*) type -P -- "${COMP_WORDS[i]}" && return ;;
		esac
	done
}

# usage: _muster_words TOOL [-]: its options, or its commands
_muster_words() {
	case ${2:-} in
	-*) "$1" --help 2>/dev/null </dev/null | grep -oE '(^|[ ,])--?[A-Za-z][A-Za-z0-9-]*' | tr -d ' ,' ;;
	*) "$1" --help 2>/dev/null </dev/null | sed -nE '/^Usage: [^ ]+ COMMAND/,/^[A-Z]/s/^  ([a-z]+) .*/\1/p' ;;
	esac
}

_muster() {
	local cur=${COMP_WORDS[COMP_CWORD]} tool words
	tool=$(_muster_tool)
	[ -n "$tool" ] || return 0
	words=$(_muster_words "$tool" "$cur")
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	# What muster-run starts may be any command.
	[[ ${#COMPREPLY[@]} -gt 0 || $cur == -* || $tool != */muster-run ]] ||
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
}

complete -o default -F _muster "${BASH_SOURCE[0]##*/}"
