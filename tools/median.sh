# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2034
# For benchmarks, sourced: functions of awk's, which go before a program: awk "$median"'...'.

# median(LIST): of numbers with spaces between; of an even count the lower one. quantile(LIST, PART):
# the same for another part of them than half.
median='
function quantile(list, part,    v, n, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] + 0 > v[j] + 0; j--) {
			t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
		}
	return v[1 + int((n - 1) * part)]
}
function median(list) {
	return quantile(list, 0.5)
}
'
