#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster-run by itself: the ranks here are shell commands that know nothing of Muster.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
[ -x "$run" ] || skip_all "there is no $run (make all)"

# ---- what ranks are given ---------------------------------------------------------

each_rank_knows_itself() {
	"$run" -n 3 --no-prefix sh -c 'echo $MUSTER_RANK of $MUSTER_SIZE' | sort >out
	same "0 of 3,1 of 3,2 of 3" "$(paste -sd, out)"
}
check "each rank is told its rank and the size" each_rank_knows_itself

one_rendezvous_a_job() {
	for job in 1 2; do
		"$run" -n 3 --no-prefix sh -c 'echo $MUSTER_RENDEZVOUS' | sort -u >out$job
		same 1 "$(wc -l <out$job)"
		grep -q '^unix:.' out$job
	done
	fails cmp -s out1 out2
}
check "ranks of a job share a meeting point, jobs do not" one_rendezvous_a_job

input_is_for_rank_0() {
	same "[0] 4" "$(echo abc | "$run" -n 3 sh -c 'wc -c | grep -v ^0 || true')"
}
check "only rank 0 reads the standard input" input_is_for_rank_0

arguments_pass_unchanged() {
	same "[0] <a b><-n><*><>" "$("$run" -n 1 -- printf '<%s>' 'a b' -n '*' '')"
	same "[0] 2 -n 7" "$("$run" -n 1 sh -c 'echo $# "$@"' sh -n 7)"
}
check "arguments reach the program as they are" arguments_pass_unchanged

bind_goes_round() {
	unset OMP_NUM_THREADS OMP_THREAD_LIMIT	# which nproc would say instead
	cpus=$(nproc)
	for bind in --bind ''; do
		# shellcheck disable=SC2086 # an option or nothing
		"$run" -n $((cpus * 2)) $bind --no-prefix sh -c 'grep Cpus_allowed_list /proc/self/status' \
			>out
		same "$cpus" "$(sort -u out | wc -l)"
		same 2 "$(sort out | uniq -c | awk '{ print $1 }' | sort -u)"
	done
	"$run" -n $((cpus * 2 + 1)) --no-prefix nproc >out
	same "$cpus" "$(sort -u out)"
	"$run" -n "$cpus" --no-bind --no-prefix nproc >out
	same "$cpus" "$(sort -u out)"
}
check "each rank gets one CPU in turn, but where some CPUs would have more, or nobody wants it" bind_goes_round

# The kernel shares out processors by session: a rank that yields gives way to its own alone.
ranks_are_one_session() {
	"$run" -n 3 --no-prefix sh -c 'ps -o sid= -p $$' >out
	same 1 "$(sort -u out | wc -l)"
	"$run" -n 3 --no-prefix sh -c 'ps -o pgid= -p $$' >out
	same 3 "$(sort -u out | wc -l)"
}
check "ranks are one session, and each its own process group" ranks_are_one_session

# ---- what they print ----------------------------------------------------------------

lines_have_prefixes() {
	"$run" -n 2 sh -c 'echo out; echo err >&2' >out 2>err
	same "[0] out,[1] out" "$(sort out | paste -sd,)"
	same "[0] err,[1] err" "$(sort err | paste -sd,)"
}
check "stdout and stderr keep apart and each line has its rank" lines_have_prefixes

partial_line_is_printed() {
	same "[0] no newline" "$("$run" -n 1 printf 'no newline')"
	"$run" -n 1 --no-prefix printf 'a\nno newline' >out
	printf 'a\nno newline' | cmp - out
}
check "a last line without its end is printed too" partial_line_is_printed

lines_stay_whole() {
	"$run" -n 4 sh -c 'for i in $(seq 300); do printf "%s-" $MUSTER_RANK $MUSTER_RANK; echo; done' >out
	same 1200 "$(wc -l <out)"
	same 0 "$(grep -cv -e '^\[0\] 0-0-$' -e '^\[1\] 1-1-$' -e '^\[2\] 2-2-$' -e '^\[3\] 3-3-$' out || true)"
}
check "lines of ranks never mix" lines_stay_whole

large_output_is_complete() {
	"$run" -n 2 --no-prefix seq 200000 >out
	seq 200000 | awk '{ print; print }' >expected
	sort -n out | cmp - expected
}
check "large outputs arrive complete" large_output_is_complete

long_line_comes_in_pieces() {
	"$run" -n 1 sh -c 'head -c 200000 /dev/zero | tr "\0" x; echo' >out
	same 1 "$(grep -c '^\[0\] x' out)"
	same 3 "$(grep -c '^\[0\]+ x' out)"
	same 200000 "$(tr -dc x <out | wc -c)"
}
check "a very long line comes in marked pieces and loses nothing" long_line_comes_in_pieces

slow_reader_delays_only() {
	"$run" -n 2 --no-prefix seq 200000 | { sleep 0.5; cat >out; }
	same 400000 "$(wc -l <out)"
}
check "a slow reader loses nothing" slow_reader_delays_only

gone_reader_ends_it() {
	timeout 300 sh -c '{ "$1" -n 2 yes; echo $? >status; } | head -1 >out' sh "$run"
	within 60 test -s status
	same 141 "$(cat status)"
}
check "a reader that goes away ends the run" gone_reader_ends_it

# ---- how it ends --------------------------------------------------------------------

success_is_0() {
	same 0 "$(status_of "$run" -n 4 true)"
	same "" "$(cat err)"
}
check "exit status 0 when all ranks succeed" success_is_0

status_is_passed_on() {
	same 7 "$(status_of "$run" -n 3 sh -c '[ $MUSTER_RANK -ne 1 ] || exit 7')"
	grep -q 'rank 1 exited with status 7' err
}
check "a rank's exit status is passed on, and the rank is named" status_is_passed_on

signal_is_passed_on() {
	same 137 "$(status_of "$run" -n 2 sh -c '[ $MUSTER_RANK -ne 1 ] || kill -9 $$')"
	grep -q 'rank 1 was killed by signal 9 (Killed)' err
}
check "a rank that is killed gives 128 and the signal" signal_is_passed_on

first_failure_counts() {
	same 3 "$(status_of "$run" -n 3 sh -c '
		case $MUSTER_RANK in
		0) until grep -q "rank 1 exited" err; do sleep 0.05; done; exit 5 ;;
		1) exit 3 ;;
		2) until grep -q "rank 0 exited" err; do sleep 0.05; done ;;
		esac')"
	grep -q 'rank 1 exited with status 3; the others have 12 s to end' err
	grep -q 'rank 0 exited with status 5$' err
}
check "of several failures the first in time counts" first_failure_counts

last_words_come_first() {
	"$run" -n 2 sh -c 'echo last words >&2; exit 1' 2>err >out || true
	same 2 "$(grep -c 'last words' err)"
	for rank in 0 1; do
		grep -n "^\[$rank\] last words" err | cut -d: -f1 >said
		grep -n "rank $rank exited" err | cut -d: -f1 >ended
		[ "$(cat said)" -lt "$(cat ended)" ]
	done
}
check "what a rank says stands before how it ended" last_words_come_first

others_have_grace() {
	same 1 "$(status_of "$run" -n 2 --grace 60 sh -c '
		[ $MUSTER_RANK -eq 0 ] && exit 1; sleep 0.5; echo by myself')"
	grep -q '^\[1\] by myself$' out
	same 1 "$(status_of timeout 300 "$run" -n 2 --grace 0.2 sh -c '
		[ $MUSTER_RANK -eq 0 ] && exit 1; sleep 600; echo by myself')"
	fails grep -q 'by myself' out
	grep -q 'rank 1 did not end within 0.2 s and is stopped' err
}
check "after a failure the others have --grace to end, then they are stopped" others_have_grace

deaf_rank_is_killed() {
	same 1 "$(status_of timeout 300 "$run" -n 2 --grace 0.1 sh -c '
		[ $MUSTER_RANK -eq 0 ] && exit 1; trap "" TERM; while :; do sleep 0.1; done')"
}
check "a rank that ignores SIGTERM is killed" deaf_rank_is_killed

program_not_found() {
	same 127 "$(status_of "$run" -n 3 ./there/is/none)"
	same "muster-run: cannot run './there/is/none': No such file or directory" "$(cat err)"
	same 126 "$(status_of "$run" -n 3 /)"
}
check "a program that cannot be run is named once: 127, or 126" program_not_found

bad_usage_is_refused() {
	for ranks in 0 -1 x 4x '' 1025 99999999999999999999; do
		same 2 "$(status_of "$run" -n "$ranks" touch started)"
		grep -q 'number of ranks from 1 to 1024' err
	done
	same 2 "$(status_of "$run" touch started)"
	same 2 "$(status_of "$run" -n 2)"
	same 2 "$(status_of "$run" -n 2 --grace soon touch started)"
	same 2 "$(status_of "$run" -n 2 --nonsense touch started)"
	[ ! -e started ]
}
check "wrong usage is refused before anything starts" bad_usage_is_refused

help_and_version() {
	"$run" --help | grep -q '^Usage: muster-run -n RANKS'
	"$run" --version | grep -q '^muster-run [0-9]'
}
check "--help and --version" help_and_version

# ---- nothing is left -------------------------------------------------------------------

# Each rank leaves the ids of itself, of a child, and of a child in a session of its own.
cat >family <<'END'
#!/bin/sh
sleep 600 &
echo $! >child.$MUSTER_RANK
setsid sh -c 'echo $$ >far.$MUSTER_RANK; exec sleep 600' &
echo $$ >self.$MUSTER_RANK
[ "$1" = stay ] || exec sleep 600
while [ ! -e leave ]; do sleep 0.05; done
END
chmod +x family

family_is_there() {
	for file in self.0 self.1 child.0 child.1 far.0 far.1; do
		[ -s $file ] || return 1
	done
}

family_is_gone() {
	for file in self.0 self.1 child.0 child.1 far.0 far.1; do
		gone "$(cat $file)" || return 1
	done
}

# Only a test that fails leaves something to do here.
end_family() {
	for file in self.* child.* far.*; do
		gone "$(cat "$file")" || kill -9 "$(cat "$file")"
	done
}

start_family() {
	rm -f self.* child.* far.* leave
	trap end_family EXIT
	# A shell ignores SIGINT for what it starts in the background, and nohup SIGHUP: undo that.
	perl -e '$SIG{$_} = "DEFAULT" for "INT", "HUP"; exec @ARGV' "$run" -n 2 ./family "$@" >out 2>err &
	pid=$!
	within 60 family_is_there
}

end_leaves_nothing() {
	start_family stay
	touch leave
	wait $pid
	family_is_gone
}
check "when the ranks end, what they left behind ends too" end_leaves_nothing

closed_streams_are_no_files_of_ours() {
	code=0
	timeout 300 "$run" -n 2 sh -c 'cat; echo said' <&- >&- 2>err || code=$?
	same 125 $code
	grep -q "cannot write the ranks' output: Bad file descriptor" err
	timeout 300 "$run" -n 2 true <&- >&- 2>&-
}
check "closed standard streams are not taken for others" closed_streams_are_no_files_of_ours

signal_ends_all() {
	start_family
	kill -"$1" $pid
	code=0
	wait $pid || code=$?
	same "$2" $code
	family_is_gone
}
user_signal_is_passed_on() {
	: >out
	"$run" -n 2 sh -c 'trap "echo heard" USR2; trap "exit 7" USR1; echo up; while :; do sleep 0.1; done' >out 2>err &
	launcher=$!
	trap 'kill $launcher 2>/dev/null' EXIT
	both_said() {
		same 2 "$(grep -c "$1" out)"
	}
	within 60 both_said up
	kill -USR2 $launcher
	within 60 both_said heard
	kill -USR1 $launcher
	status=0
	wait $launcher || status=$?
	trap - EXIT
	same 7 $status
}
check "SIGUSR1 and SIGUSR2 are for the ranks, and end nothing by themselves" user_signal_is_passed_on
check "SIGINT ends everything" signal_ends_all INT 130
check "SIGTERM ends everything" signal_ends_all TERM 143
check "SIGHUP ends everything" signal_ends_all HUP 129

kill_leaves_nothing() {
	start_family
	kill -9 $pid
	within 60 family_is_gone
}
check "kill -9 of muster-run leaves nothing" kill_leaves_nothing

keeper_of() {
	cat "/proc/$1/task/$1/children"
}

# The limit of open files is what poll() takes at most.
unwatched_ranks_end() {
	start_family
	prlimit --pid "$(keeper_of $pid | tr -d ' ')" --nofile=1
	kill -CHLD "$(keeper_of $pid | tr -d ' ')"
	code=0
	wait $pid || code=$?
	same 125 $code
	grep -q "cannot watch the ranks: Invalid argument" err
	family_is_gone
}
check "ranks that cannot be watched any more are ended" unwatched_ranks_end

killed_keeper_leaves_nothing() {
	start_family
	kill -9 $(keeper_of $pid)
	code=0
	wait $pid || code=$?
	same 125 $code
	family_is_gone
	grep -q 'was killed by signal 9; all ranks are stopped' err
}
check "kill -9 of the process that watches the ranks leaves nothing" killed_keeper_leaves_nothing

finish
