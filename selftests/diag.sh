# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh
#
# What tests of the diagnostics share; to be sourced behind tap.sh.
#
#   valid TOOL FILE           fail unless the file is JSON as that tool's schema has it
#   page_shows PAGE COMMAND   fail unless what the manual page shows behind "$ COMMAND" is what ./out
#                             has: line by line, figures and widths aside

diag_top=${diag_top:-$tap_home/..}

can_validate() {
	/usr/bin/python3 -c 'import jsonschema' 2>/dev/null
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
