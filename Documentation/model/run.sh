#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Search the instances of the grant and window model, of the trees', their credits' and of the queues', one line
# each: name, what was expected, states searched, seconds, and what spin found. Instances named
# no-* lack a rule: there spin must find the error. `run.sh NAME` runs one of them and,
# where it ends in an error, prints the steps that lead there.
#
# Exit: 0 all as expected, 1 not, 4 no spin or gcc here.

here=$(cd "$(dirname "$0")" && pwd)
only=$1

for tool in spin gcc; do
	command -v $tool >/dev/null || { echo "model: skipped: no $tool (apt-get install $tool)"; exit 4; }
done

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$here"/*.pml .

# Sizes that an instance does not name itself.
sizes=(CONTEXTS=1 NUMBERS=1 PULSES=1 LIVE=2 WINDOW=2 ROOM=0 COPIES=1 KIND=LARGE)
failed=0
ran=0

flags_of()	# NAME or NAME=VALUE..., the defaults where nothing is said
{
	local size set
	for size in "${sizes[@]}"; do
		for set; do
			[ "${set%%=*}" = "${size%%=*}" ] && continue 2
		done
		echo "-D$size"
	done
	for set; do echo "-D$set"; done
}

model_of()	# NAME or NAME=VALUE...
{
	case " $* " in
	*" TREE "*) echo tree.pml ;;
	*" CREDIT "*) echo credit.pml ;;
	*" QUEUE "*) echo queue.pml ;;
	*) echo grant.pml ;;
	esac
}

search()	# model, flags: leaves spin's report in `report`
{
	local model=$1
	shift
	rm -f pan pan.* ./*.trail
	spin "$@" -a "$model" >report 2>&1 &&
	gcc -w -O1 -DSAFETY -DCOLLAPSE -DMEMLIM=1500 -DVECTORSZ=2048 -o pan pan.c >>report 2>&1 &&
	timeout 300 ./pan -m100000 -n >>report 2>&1
}

found()		# what the report says
{
	if grep -q 'search depth too small\|reached -DMEMLIM\|out of memory' report; then
		echo incomplete
	elif grep -q 'invalid end state (at' report; then
		echo deadlock
	elif grep -q 'assertion violated' report; then
		echo assertion
	elif grep -q 'errors: 0$' report; then
		echo none
	else
		echo incomplete
	fi
}

instance()	# name, expected error, then NAME or NAME=VALUE...
{
	local name=$1 expected=$2 model flags result states start=$SECONDS verdict="as expected"
	shift 2
	model=$(model_of "$@")
	[ -z "$only" ] || [ "$only" = "$name" ] || return
	ran=1
	mapfile -t flags < <(flags_of "$@")
	search "$model" "${flags[@]}"
	result=$(found)
	states=$(awk '/states, stored/ { print $1; exit }' report)
	[ "$result" = "$expected" ] || { verdict="NOT AS EXPECTED ($expected)"; failed=1; }
	printf '%-24s %9s states %3d s   error: %-10s %s\n' \
		"$name" "${states:-?}" $((SECONDS - start)) "$result" "$verdict"
	[ "$result" != incomplete ] || tail -n 5 report
	[ -z "$only" ] || [ ! -f "$model.trail" ] || spin "${flags[@]}" -t -p "$model"
}

instance exchange             none      EXCHANGE PULSES=3 ROOM=1
instance exchange-numbers     none      EXCHANGE PULSES=2 NUMBERS=2
instance exchange-window      none      EXCHANGE NUMBERS=4
instance exchange-contexts    none      EXCHANGE CONTEXTS=2 ROOM=1
instance exchange-reference   none      EXCHANGE PULSES=3 KIND=REFERENCE
instance doubling             none      DOUBLING
instance doubling-reference   none      DOUBLING KIND=REFERENCE
instance reduce               none      REDUCE PULSES=2
instance triangle             none      TRIANGLE
instance triangle-reference   none      TRIANGLE KIND=REFERENCE
instance ring                 none      RING CONTEXTS=2 ROOM=1
instance ends-early           none      ENDS_EARLY PULSES=3 LIVE=1
instance broadcast            none      BROADCAST NUMBERS=3 ROOM=1
instance broadcast-inline     none      BROADCAST NUMBERS=3 KIND=INLINE
instance stream               none      STREAM NUMBERS=7 WINDOW=4 KIND=INLINE
instance stream-asks-late     none      STREAM NUMBERS=7 WINDOW=4 KIND=INLINE NO_PIGGYBACK
instance roots                none      ROOTS NUMBERS=4
instance roots-inline         none      ROOTS NUMBERS=4 KIND=INLINE
instance exchange-eager       none      EXCHANGE NUMBERS=2 ROOM=1 KIND=EAGER
instance exchange-eager-none  none      EXCHANGE NUMBERS=2 COPIES=2 KIND=EAGER
instance exchange-eager-asks  none      EXCHANGE NUMBERS=2 ROOM=1 COPIES=0 KIND=EAGER
instance exchange-eager-two   none      EXCHANGE CONTEXTS=2 ROOM=1 KIND=EAGER
instance reduce-eager         none      REDUCE NUMBERS=2 ROOM=1 COPIES=2 KIND=EAGER
instance broadcast-eager      none      BROADCAST NUMBERS=2 ROOM=1 COPIES=2 KIND=EAGER
instance stream-eager         none      STREAM NUMBERS=5 WINDOW=4 ROOM=1 COPIES=2 KIND=EAGER
instance exchange-lent        none      EXCHANGE NUMBERS=2 COPIES=2 KIND=LENT
instance exchange-lent-waits  none      EXCHANGE NUMBERS=4 KIND=LENT
instance exchange-lent-two    none      EXCHANGE CONTEXTS=2 KIND=LENT
instance broadcast-lent       none      BROADCAST NUMBERS=2 COPIES=2 KIND=LENT
instance stream-lent          none      STREAM NUMBERS=5 WINDOW=4 COPIES=2 KIND=LENT
instance forward              none      CHAIN PULSES=2
instance forward-room         none      CHAIN NUMBERS=2 ROOM=1
instance forward-numbers      none      CHAIN NUMBERS=3 ROOM=1
instance forward-contexts     none      CHAIN CONTEXTS=2 ROOM=1
instance forward-two          none      FAN NUMBERS=2 ROOM=1
instance forward-sum          none      RELAY ROOM=1
instance no-stream            deadlock  REDUCE ROOM=1 NO_STREAM
instance no-scratch           deadlock  EXCHANGE NO_SCRATCH
instance no-scratch-reference deadlock  EXCHANGE NO_SCRATCH KIND=REFERENCE
instance no-grant-waits       assertion DOUBLING NO_GRANT_WAITS
instance no-credit            deadlock  STREAM NUMBERS=7 WINDOW=4 KIND=INLINE NO_PIGGYBACK NO_ASK
instance no-ask               deadlock  ROOTS NUMBERS=4 KIND=INLINE NO_ASK
instance no-one-by-one        deadlock  REDUCE NO_ONE_BY_ONE
instance no-copy              assertion REDUCE NUMBERS=2 COPIES=2 KIND=EAGER NO_COPY
instance no-keep              assertion EXCHANGE KIND=LENT NO_KEEP
instance no-refusal           deadlock  REDUCE NUMBERS=2 KIND=EAGER NO_REFUSAL
instance no-one-pulse         assertion REDUCE PULSES=3 LIVE=1 ROOM=2 COPIES=2 KIND=EAGER
instance no-empty-asks        assertion ENDS_EARLY PULSES=3 LIVE=1 NO_EMPTY_ASKS
instance no-over              deadlock  CHAIN NO_OVER
instance no-held              assertion CHAIN NO_HELD
instance no-turn              assertion RELAY NO_TURN
instance no-stream-forward    deadlock  RELAY ROOM=1 NO_STREAM
instance tree                 none      TREE PULSES=3
instance tree-numbers         none      TREE PULSES=1 NUMBERS=3 LIVE=1
instance no-second            deadlock  TREE PULSES=3 NO_SECOND
instance no-comparing         deadlock  TREE PULSES=3 NUMBERS=2 NO_COMPARING
instance no-sparing           assertion TREE PULSES=3 NUMBERS=2 LIVE=1 NO_SPARING
instance no-room              assertion TREE PULSES=3 NUMBERS=2 SEGMENTS=2
instance no-absorbing         assertion TREE PULSES=2 NO_ABSORBING
instance credit               none      CREDIT PULSES=6 SEGMENTS=3
instance credit-least         none      CREDIT PULSES=6 SEGMENTS=2
instance no-limited           deadlock  CREDIT PULSES=6 SEGMENTS=3 NO_LIMITED
instance no-keeping           assertion CREDIT PULSES=6 SEGMENTS=3 NO_KEEPING
instance no-second-segment    assertion CREDIT PULSES=6 SEGMENTS=1
instance queue-fetched        none      QUEUE FETCHES=3
instance queue-fetched-here   none      QUEUE FETCHES=1
instance queue-posted         none      QUEUE FETCHES=0
instance queue-fails          none      QUEUE FETCHES=3 FAILS
instance queue-kept           none      QUEUE FETCHES=1 KEPT
instance no-behind            assertion QUEUE FETCHES=1 NO_BEHIND
instance no-half              deadlock  QUEUE FETCHES=3 NO_HALF
instance no-every             deadlock  QUEUE FETCHES=0 NO_EVERY
instance no-rest              deadlock  QUEUE FETCHES=1 FAILS NO_REST
instance no-stop              assertion QUEUE FETCHES=1 FAILS NO_STOP
instance no-binding           assertion QUEUE FETCHES=1 KEPT NO_BINDING

[ $ran = 1 ] || { echo "model: no instance is called $only"; exit 1; }
exit $failed
