# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=bash
#
# bash completion for all of Muster's tools. What can be completed is what the tool itself
# says with --help: options, and commands of those that have any. So nothing is listed here.
# Installed once, with a link of each tool's name.

# The last of our tools on the line, and the word behind it, which may be a command of it: in
# "muster-run -n 4 muster_perf --j" it is muster_perf.
_muster_tool() {
	local i
	for ((i = COMP_CWORD - 1; i >= 0; i--)); do
		case ${COMP_WORDS[i]##*/} in
		muster-* | muster_*)
			tool=$(type -P -- "${COMP_WORDS[i]}") || continue
			[ $((i + 1)) -ge "$COMP_CWORD" ] || command=${COMP_WORDS[i + 1]}
			return
			;;
		esac
	done
}

_muster_commands() {
	"$1" --help 2>/dev/null </dev/null | sed -nE '/^Usage: [^ ]+ COMMAND/,/^[A-Z]/s/^  ([a-z]+) .*/\1/p'
}

# usage: _muster_options TOOL [COMMAND]
_muster_options() {
	"$@" --help 2>/dev/null </dev/null | grep -oE '(^|[ ,])--?[A-Za-z][A-Za-z0-9-]*' | tr -d ' ,' | sort -u
}

_muster() {
	local cur=${COMP_WORDS[COMP_CWORD]} tool="" command="" words
	_muster_tool
	[ -n "$tool" ] || return 0
	if [[ $cur != -* ]]; then
		words=$([ -n "$command" ] || _muster_commands "$tool")
	elif [ -n "$command" ] && _muster_commands "$tool" | grep -qx -- "$command"; then
		words=$(_muster_options "$tool" "$command")
	else
		words=$(_muster_options "$tool")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	# What muster-run starts may be any command.
	[[ ${#COMPREPLY[@]} -gt 0 || $cur == -* || $tool != */muster-run ]] ||
		mapfile -t COMPREPLY < <(compgen -c -- "$cur")
}

complete -o default -F _muster "${BASH_SOURCE[0]##*/}"
