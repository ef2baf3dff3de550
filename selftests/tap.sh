# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What behaviour tests share; to be sourced: . "$(dirname "$0")/tap.sh"
#
#   check NAME COMMAND [ARGUMENT]...  ok when the command (mostly a function, under
#                                     set -e) succeeds; else its output is shown
#   rest NAME COMMAND [ARGUMENT]...   the same, where MUSTER_REST says that what takes long is wanted, too
#   little_or LITTLE MUCH             prints how much to do of what has no end: much there, else little
#   skip NAME REASON                  say why a case was not tried
#   skip_all REASON                   the same for the whole file, and end
#   finish                            print the plan and exit: 0 pass, 1 fail, 4 skipped
#
# $tap_dir is a scratch folder that goes away at the end, and where tests run.
# Programs are found in $MUSTER_BUILD, by default build/ beside selftests/.

tap_home=$(cd "$(dirname "$0")" && pwd)
MUSTER_BUILD=${MUSTER_BUILD:-$tap_home/../build}
case $MUSTER_BUILD in
/*) ;;
*) MUSTER_BUILD=$PWD/$MUSTER_BUILD ;;
esac
export MUSTER_BUILD

# The system's own programs: somebody's python3 may be a script that looks for one first, for a second.
PATH=/usr/bin:/bin:$PATH
export PATH

# What somebody has tuned here for himself chooses nothing in tests.
export MUSTER_TUNING=off

tap_cpus=$(nproc)
tap_nr=0
tap_failed=0
tap_skipped=0
tap_dir=$(mktemp -d "${TMPDIR:-/tmp}/muster-test.XXXXXX") || exit 1
trap 'cd / && rm -rf "$tap_dir"' EXIT
trap 'exit 1' HUP INT TERM
cd "$tap_dir" || exit 1

check() {
	tap_name=$1
	shift
	tap_nr=$((tap_nr + 1))
	# Not in a condition: that would switch set -e off inside.
	(
		set -e
		"$@"
	) >"$tap_dir/.log" 2>&1
	tap_status=$?
	if [ $tap_status -eq 0 ]; then
		echo "ok $tap_nr - $tap_name"
	else
		tap_failed=$((tap_failed + 1))
		echo "not ok $tap_nr - $tap_name"
		echo "# $* ended with $tap_status, after:"
		tail -n 40 "$tap_dir/.log" | sed 's/^/# /'
	fi
}

rest() {
	[ -z "${MUSTER_REST:-}" ] || check "$@"
}

little_or() {
	[ -z "${MUSTER_REST:-}" ] && echo "$1" || echo "$2"
}

skip() {
	tap_nr=$((tap_nr + 1))
	tap_skipped=$((tap_skipped + 1))
	echo "ok $tap_nr - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 4
}

finish() {
	echo "1..$tap_nr"
	[ $tap_failed -eq 0 ] || exit 1
	[ $tap_skipped -lt $tap_nr ] || exit 4
	exit 0
}

# ---- for the cases themselves --------------------------------------------------

# same EXPECTED ACTUAL: fail unless they are equal, showing both.
same() {
	[ "$1" = "$2" ] && return
	printf 'expected: %s\nfound:    %s\n' "$1" "$2"
	return 1
}

# fails COMMAND [ARGUMENT]...: succeed when it does not (set -e does not mind "!").
fails() {
	if "$@"; then
		return 1
	fi
}

# status_of COMMAND [ARGUMENT]...: its exit status, as text; its output goes to ./out and ./err.
status_of() {
	tap_code=0
	"$@" >out 2>err || tap_code=$?
	echo $tap_code
}

# within SECONDS COMMAND [ARGUMENT]...: repeat it until it succeeds. The seconds are those of a
# machine that is not busy: while N times as many processes want to run as there are
# processors, a second counts for 1/N of one. Nor is it slow: $MUSTER_PATIENCE says how many
# times as long everything takes; there looking takes time from what is waited for.
within() {
	tap_left=$(($1 * 1000 * ${MUSTER_PATIENCE:-1}))
	tap_pause=050
	tap_tries=0
	is_slow && tap_pause=500
	shift
	until "$@"; do
		[ $tap_left -gt 0 ] || { echo "waited in vain for: $*"; return 1; }
		# What takes longer may be asked for less often.
		[ $((tap_tries += 1)) -ne 20 ] || is_slow || tap_pause=200
		sleep 0.$tap_pause
		read -r _ _ _ tap_running _ </proc/loadavg
		tap_running=$((${tap_running%/*} > tap_cpus ? ${tap_running%/*} : tap_cpus))
		tap_left=$((tap_left - (${tap_pause#0} * tap_cpus + tap_running - 1) / tap_running))
	done
}

# is_slow: does everything take many times as long here? Then once is enough of what is repeated.
is_slow() {
	[ "${MUSTER_PATIENCE:-1}" -gt 1 ]
}

# others_run PROGRAM: are we root, and could another user run it, too? Its folders may be ours alone.
others_run() {
	[ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --clear-groups --inh-caps=-all test -x "$1"
}

# here PROGRAM: its processes that were started in the folder of this test; none is no success.
here() {
	for tap_pid in $(pgrep -x "$1"); do
		[ "$(readlink "/proc/$tap_pid/cwd")" != "$(pwd -P)" ] || echo "$tap_pid"
	done | grep .
}

# gone PID: is there no such process (or only its shell, a zombie)?
gone() {
	! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status"
}
