#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# usage: coverage.sh BUILD ROOM... -- PROGRAM...
#
# Runs programs that count lines, and says of each room's files how many of them were reached.
# Lines that are not are explained in coverage.txt, by file and number; BUILD/lines/missed has them.
# Fails if a room has fewer than 95 % reached, or a file more lines that are not than are explained.
build=$1
shift
rooms=
while [ "$1" != -- ]; do
	rooms="$rooms $1"
	shift
done
shift
here=$(cd "$(dirname "$0")" && pwd)
work=$build/lines
find "$build" -name '*.gcda' -exec rm {} +
rm -rf "$work"
mkdir -p "$work" || exit

# usage: run PROGRAM, as much of it as makes sense
run() {
	case $1 in
	*/dst)
		"$1" --jobs "$(nproc)" --seeds 1 "${SEEDS:-300}" &&
			"$1" --library --jobs "$(nproc)" --seeds 1 "${SEEDS:-300}"
		;;
	*/fuzz_*) "$1" "$here/fuzz/$(basename "$1" | sed 's/fuzz_//').hex" 20000 ;;
	*) "$1" ;;
	esac
}

failed=0
: >"$work/missed"
for program; do
	run "$program" >"$work/log" 2>&1 && continue
	echo "$program failed:"
	tail -n 20 "$work/log"
	failed=1
done

# usage: lines ROOM: "FILE:LINE:how often:text" of each line that could run
lines() {
	for source in "$1"/*.c; do
		case $source in *_test.c) continue ;; esac
		gcov -t -o "$build/$1" "$source" 2>/dev/null |
			awk -F: -v file="$source" '$3 == "Source" || index($0, "0:Source:") { ours = index($0, file) > 0 }
				ours && $2 + 0 > 0 { how = $1; gsub(/[ *]/, "", how); if (how != "-") {
					text = $0; sub(/^[^:]*:[^:]*:/, "", text); print file ":" $2 + 0 ":" how ":" text } }'
	done
}

for room in $rooms; do
	lines "$room" >"$work/room"
	awk -F: -v room="$room" '{ all[$1]++; if ($3 !~ /#/) hit[$1]++; sum++; sumhit += $3 !~ /#/ }
		END { for (f in all) printf "%6.1f %%  %5d lines  %s\n", 100 * hit[f] / all[f], all[f], f
			printf "%6.1f %%  %5d lines  %s\n", 100 * sumhit / sum, sum, room
			exit sumhit < 0.95 * sum }' "$work/room" >"$work/table" || failed=1
	sort -n "$work/table"
	awk -F: '$3 ~ /#/' "$work/room" >>"$work/missed"
done

# usage: allowed FILE
allowed() {
	awk -F'\t' -v file="$1" '$1 == file { nr = $2 } END { print nr + 0 }' "$here/coverage.txt"
}

echo "not reached: $(wc -l <"$work/missed") lines, of:"
for file in $(cut -d: -f1 "$work/missed" | sort -u); do
	nr=$(grep -c "^$file:" "$work/missed")
	if [ "$nr" -gt "$(allowed "$file")" ]; then
		echo "$file: $nr lines, of which $(allowed "$file") are explained (selftests/coverage.txt):"
		grep "^$file:" "$work/missed" | sed 's/:#*:/: /'
		failed=1
	else
		printf '%4d  %s: %s\n' "$nr" "$file" "$(awk -F'\t' -v file="$file" '$1 == file { print $3 }' "$here/coverage.txt")"
	fi
done
exit $failed
