#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# The PageRank example: right scores, the same bits on both paths, and clear
# errors about files that are not lists of packages.

. "$(dirname "$0")/tap.sh"

run=$MUSTER_BUILD/tools/muster-run
pagerank=$MUSTER_BUILD/userlib/examples/pagerank
for program in "$run" "$pagerank"; do
	[ -x "$program" ] || skip_all "there is no $program (make all)"
done

# Every form of dependency: versions, architectures, alternatives of which some are
# not there, virtual packages, folded lines, a second version of a package, itself.
cat >packages <<'END'
Package: alpha
Status: install ok installed
Depends: beta (>= 1.0~), gamma:any (<< 2) | beta
Description: first
 with: a longer text
 .
 Package: nobody

Package: beta
Pre-Depends: not-there | gamma
Provides: virtual (= 1), other

Package: gamma
Depends: alpha,
 virtual

Package: delta
depends: not-there, gamma, delta
Provides: virtual

Package: beta
Version: 2
Depends: delta

Package: epsilon
END
cat >links <<'END'
alpha beta
alpha gamma
beta gamma
gamma alpha
gamma beta
delta gamma
epsilon -
END

# The same computed apart: 300 rounds over the list of links.
expected_scores() {
	awk '
	{ from[NR] = $1; to[NR] = $2; names[$1] = 1; if ($2 != "-") links[$1]++ }
	END {
		for (p in names) { n++; score[p] = 1 }
		for (p in names) score[p] /= n
		for (round = 0; round < 300; round++) {
			rest = 0
			for (p in names) { sum[p] = 0; if (!links[p]) rest += score[p] }
			for (i = 1; i <= NR; i++)
				if (to[i] != "-") sum[to[i]] += score[from[i]] / links[from[i]]
			for (p in names) score[p] = 0.15 / n + 0.85 * (sum[p] + rest / n)
		}
		for (p in names) printf "%.6f %s\n", score[p], p
	}' links | sort -k1,1nr -k2
}

scores() {
	sed -n 's/^ *[0-9]*\.  \([0-9.]*\)  \(.*\)/\1 \2/p' "$1"
}

scores_are_right() {
	expected_scores >expected
	for ranks in 1 2 3 5 8; do
		"$run" -n $ranks --no-prefix "$pagerank" packages >out
		grep -q "^PageRank of 5 packages with 6 dependencies (packages), $ranks ranks" out
		scores out | sort -k1,1nr -k2 | diff expected -
		grep -q '^Both gave the same bits.' out
	done
}
check "scores are those of an independent computation, on 1 to 8 ranks" scores_are_right

installed_packages() {
	[ -r /var/lib/dpkg/status ]
	"$run" -n 4 --no-prefix "$pagerank" >out
	same 10 "$(scores out | wc -l)"
	same 2 "$(grep -c '^  NIC ' out)"
	same 2 "$(grep -c '^  host ' out)"
	grep -q '^Both gave the same bits.' out
}
if [ -r /var/lib/dpkg/status ]; then
	check "the packages of this machine, both paths with the same bits" installed_packages
else
	skip "the packages of this machine" "there is no /var/lib/dpkg/status"
fi

# refused MESSAGE FILE: no result, exit status 1, said once.
refused() {
	same 1 "$(status_of "$run" -n 2 "$pagerank" "$2")"
	same "" "$(cat out)"
	same "[0] pagerank: $1" "$(grep -v '^muster-run: rank . exited with status 1' err)"
}

not_readable() {
	refused "cannot read ./none: No such file or directory" ./none
	refused "cannot read /: Is a directory" /
}
check "a file that cannot be read is refused" not_readable

not_packages() {
	: >file
	refused "file: line 1: there are no packages" file
	printf 'Package: a\n\nthis is no field\n' >file
	refused 'file: line 3: expected "Field: value" or an empty line' file
	printf 'Package: a\nDepends: b (>= 1\n' >file
	refused "file: line 2: a version has no closing ')'" file
	printf 'Package: a\nDepends: b c\n' >file
	refused "file: line 2: expected ',' or '|' between packages" file
	printf 'Package: a\nDepends: b,\n , c\n' >file
	refused "file: line 3: expected the name of a package" file
	printf 'Version: 1\n' >file
	refused "file: line 1: a paragraph without Package" file
	printf 'Package: a\nPackage: b\n' >file
	refused "file: line 2: a second Package in one paragraph" file
	head -c 65536 /dev/urandom >file
	same 1 "$(status_of "$run" -n 2 "$pagerank" file)"
}
check "a file that is no list of packages is refused, with line and reason" not_packages

finish
