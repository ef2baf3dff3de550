#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# usage: planted.sh COUNT [NAME]...
#
# Bugs on purpose: each line of planted.txt changes one line of the sources. The simulated world
# is linked with that file instead of the right one and runs seeds until one fails, at most
# COUNT. Says for each within how many seeds it was found, and how; fails if one was not. With
# COUNT 0 nothing is built: whether each changes one line.
count=$1
shift
here=$(cd "$(dirname "$0")" && pwd)
work=${MUSTER_BUILD:?}/planted
mkdir -p "$work" || exit

# usage: change NAME FILE EXPRESSION
change() {
	sed "$3" "$2" >"$work/$1.c" || return
	if [ "$(diff "$2" "$work/$1.c" | grep -c '^>')" != 1 ]; then
		echo "$1: '$3' does not change one line of $2"
		return 1
	fi
}

# The changed file is the only thing that differs; its own headers lie where it comes from.
# usage: build NAME FILE
build() {
	# shellcheck disable=SC2086 # commands and lists
	$COMPILE -w -iquote "$(dirname "$2")" -c -o "$work/$1.o" "$work/$1.c" &&
		$LINK -o "$work/$1" "$work/$1.o" $PARTS -lm
}

# usage: find NAME FILE MODE
find_it() {
	option=
	[ "$3" = engine ] || option=--$3
	"$work/$1" $option --jobs "$(nproc)" --until-failure --seeds 1 "$count" >"$work/$1.txt" 2>/dev/null
	within=$(sed -n 's/.*first to fail is the \([0-9]*\)th.*/\1/p' "$work/$1.txt")
	how=$(sed -n "s/^seed $within \(failed at [0-9]* us: \)\{0,1\}//p" "$work/$1.txt" | head -n 1 | cut -c 1-88)
	printf '%-22s %-9s %7s  %s\n' "$1" "$(basename "$(dirname "$2")")" "${within:--}" "${how:-not found}"
	[ "$within" ]
}

planted=0
found=0
[ "$count" = 0 ] || printf '%-22s %-9s %7s  %s\n' bug room seeds "what the first failing seed says"
while read -r name file mode expression; do
	case $name in '' | '#'*) continue ;; esac
	[ $# = 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
	planted=$((planted + 1))
	change "$name" "$file" "$expression" || continue
	[ "$count" = 0 ] || { build "$name" "$file" && find_it "$name" "$file" "$mode"; } || continue
	found=$((found + 1))
done <"$here/planted.txt"
[ "$count" = 0 ] || echo "$found of $planted found, of $count seeds each"
[ "$found" = "$planted" ]
