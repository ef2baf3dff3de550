#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Whether those that watch the driver are awake (make planted-kernel): of what is green without a
# bug the kernel must complain with each of guest/planted.txt in the driver, and say what it is.
# ONLY: names of bugs.
. "$(dirname "$0")/driver.sh"

[ "$(basename "$VM_DIR")" = vm-debug ] || skip_all "only the kernel that watches sees them: KERNEL=debug"

PLANTED=$MUSTER_BUILD/kernel-planted
SOURCE=$tap_home/../kernel
export PLANTED

rm -rf "$PLANTED" && mkdir "$PLANTED"

# usage: bugs_do FUNCTION: with name, file, regular expression and sed expression of each
bugs_do() {
	while read -r name file word expression; do
		case $name in '' | '#'*) continue ;; esac
		case " ${ONLY:-$name} " in *" $name "*) ;; *) continue ;; esac
		"$1" "$name" "$file" "$word" "$expression" </dev/null
	done <"$GUEST/planted.txt"
}

# The driver with one line changed, built beside the right one. The bug before is taken out by
# writing its file anew: then just that and this one's are compiled.
# usage: build NAME FILE WORD EXPRESSION
build() {
	for changed in "$PLANTED"/*.c; do
		[ ! -f "$changed" ] || cat "$SOURCE/${changed##*/}" >"$changed"
	done
	sed "$4" "$SOURCE/$2" >"$PLANTED/$2"
	same 1 "$(diff "$SOURCE/$2" "$PLANTED/$2" | grep -c '^>')"
	KERNEL=debug OVERLAY=$PLANTED "$tap_home/../tools/setup/kernel.sh"
	cp "$PLANTED/muster.ko" "$PLANTED/$1.ko"
	echo "$1 $3" >>named
}

caught() {
	# shellcheck disable=SC2046 # a name and a word each
	in_guest 600 -- "$GUEST/planted.sh" $(cat named)
}

check "the bugs are planted" bugs_do build
check "nothing is said without a bug, and each is caught" caught
sed -n 's/^ok [0-9]* - /# /p' "$tap_dir/.log"
finish
