#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# A run of tests that is interrupted, terminated or killed, whichever part of it, leaves
# nothing: here of a test that has processes in sessions of their own, as guests are.
. "$(dirname "$0")/tap.sh"

keep=$MUSTER_BUILD/tools/keep
[ -x "$keep" ] || skip_all "there is no $keep (make all)"

cat >stays_test <<'END'
#!/bin/sh
echo $$ >"$HOME/self"
timeout 600 sleep 600 &
setsid sh -c 'echo $$ >"$HOME/far"; trap "" TERM INT; while :; do sleep 1; done' &
echo $! >"$HOME/child"
wait
END
printf 'check:\n\t@exec %s/run.sh ./stays_test\n' "$tap_home" >Makefile
chmod +x stays_test

run_is_up() {
	[ -s self ] && [ -s child ] && [ -s far ]
}

run_is_gone() {
	gone "$make" && gone "$(cat self)" && gone "$(cat far)" && gone "$(cat child)"
}

# Only a test that fails leaves something to do here.
end_run() {
	run_is_gone || kill -9 "$make" $(cat self child far) || :
}

# A shell ignores SIGINT for what it starts in the background: undo that.
start_run() {
	rm -f self child far
	HOME=$PWD perl -e '$SIG{INT} = "DEFAULT"; setpgrp; exec @ARGV' make -s check >out 2>&1 &
	make=$!
	trap end_run EXIT
	within 60 run_is_up
}

# usage: parent_of PID; the runner's parts stand above the test: keeper, front, and so on.
parent_of() {
	sed -n 's/^PPid:[[:space:]]*//p' "/proc/$1/status"
}

signal_ends_all() {
	start_run
	kill -"$1" "$2$make"
	within 60 run_is_gone
}

# usage: killed_part STEPS: kill -9 of what is so many steps above the test
killed_part() {
	start_run
	victim=$(cat self)
	for _ in $(seq "$1"); do
		[ "$victim" = "$make" ] || victim=$(parent_of "$victim")
	done
	tr '\0' ' ' <"/proc/$victim/cmdline"
	kill -9 "$victim"
	within 60 run_is_gone
}

check "SIGINT of a terminal ends tests and what they started" signal_ends_all INT -
check "SIGTERM of make alone ends them" signal_ends_all TERM ""
check "SIGHUP of a terminal ends them" signal_ends_all HUP -
for steps in 0 1 2 3 4 5 6 7; do
	check "kill -9 of the part $steps above the test ends them" killed_part $steps
done

time_is_over() {
	same 124 "$(status_of "$keep" -t 1 sleep 60)"
	same 7 "$(status_of "$keep" -t 60 sh -c 'exit 7')"
	same 137 "$(status_of "$keep" sh -c 'kill -9 $$')"
	same 127 "$(status_of "$keep" ./there/is/none)"
	same 0 "$(status_of "$keep" -t 4 sh -c 'for i in 1 2 3 4 5 6; do echo $i; sleep 1; done')"
}
check "a program's end is told, and that it said nothing for too long" time_is_over
finish
