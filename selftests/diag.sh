# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What tests of the diagnostics share; to be sourced behind tap.sh.
#
#   valid TOOL FILE           fail unless the file is JSON as that tool's schema has it
#   page_shows PAGE COMMAND   fail unless what the manual page shows behind "$ COMMAND" is what ./out
#                             has: line by line, figures and widths aside
#   prints STATUS WORDS COMMAND...  fail unless it ends so, and what it prints has the words
#   explain_timed [OPTION]... what muster_trace explain says as JSON in ./json, its status in $code
#   hang_counted CULPRITS     ./json is of a hang that these ranks ("1 2 ") are to blame for: count that
#   hang_figures WHERE        what was counted so far, in a line
#   figure WORDS              a line for who measures; in the file $MUSTER_FIGURES, too, if that is set
#   $LOOK_VERSION             of the pages that a process shows, for who plays one

diag_top=${diag_top:-$tap_home/..}
LOOK_VERSION=$(sed -n 's/^#define MUSTER_LOOK_VERSION[[:space:]]*//p' "$diag_top/uapi/muster_look.h")
export LOOK_VERSION

diag_validates=$(/usr/bin/python3 -c 'import jsonschema; print("yes")' 2>/dev/null)

can_validate() {
	[ "$diag_validates" ]
}

valid() {
	/usr/bin/python3 -W ignore -m jsonschema -i "$2" "$diag_top/tools/schema/$1.json"
}

# Numbers, and names of jobs, as N; blanks as one.
figures_aside() {
	sed -E 's/\b[0-9a-f]{8}\b/N/g; s/[0-9]+([.:][0-9]+)*/N/g; s/[[:space:]]+/ /g; s/ $//'
}

page_shows() {
	awk -v command="    \$ $2" '
		/^[^ ]/ { on = 0 }
		on { sub(/^    /, ""); print }
		$0 == command { on = 1 }' "$diag_top/Documentation/man/$1.rst" | figures_aside |
		sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >shown
	figures_aside <out | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >printed
	test -s shown
	diff shown printed
}

prints() {
	status=$1 words=$2
	shift 2
	found=$(status_of "$@")
	cat out err
	same "$status" "$found"
	cat out err | grep -q -- "$words"
}

figure() {
	echo "# $*"
	[ -z "${MUSTER_FIGURES:-}" ] || echo "$*" >>"$MUSTER_FIGURES"
}

explain_timed() {
	code=0
	began=$(date +%s%N)
	"$MUSTER_BUILD/tools/muster_trace" explain --json "$@" >json || code=$?
	took=$((($(date +%s%N) - began) / 1000000))
}

# Of an explanation that is taken: its time in ms, whether all are named, and how many others.
hang_counted() {
	sed -n 's/.*"rank": \([0-9]*\).*/\1/p' json | sort -nu | awk -v took="$took" -v culprits="$1" '
		BEGIN { left = split(culprits, all); for (i in all) guilty[all[i]] = 1 }
		$1 in guilty { left--; next }
		{ innocent++ }
		END { print took, left == 0, innocent + 0 }' >>hangs
}

hang_figures() {
	figure "$(sort -n hangs | awk -v where="$1" '
		{ ms[NR] = $1; right += $2; wrong += $3 }
		END {
			printf "hangs %s: %d explained, in %d of them the culprit named, innocents named: %d; ", where, NR, right, wrong
			printf "explain took %d ms (median), at most %d in 9 of 10, at most %d (300 of it it watches)",
				ms[int((NR + 1) / 2)], ms[int((9 * NR + 9) / 10)], ms[NR]
		}')"
}
