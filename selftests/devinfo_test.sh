#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster_devinfo on a machine as it is; with NICs: guest/diag_test.sh.
. "$(dirname "$0")/tap.sh"
# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

devinfo=$MUSTER_BUILD/tools/muster_devinfo
[ -x "$devinfo" ] || skip_all "there is no $devinfo (make all)"

local_is_shown() {
	"$devinfo" -d local >out
	cat out
	page_shows muster_devinfo.1 "muster_devinfo -d local"
}
check "the local device is as the manual page shows it" local_is_shown

# In the order of the header, each under its name.
limits_are_named() {
	sed -n '/^enum muster_limit {/,/^}/s/^\tMUSTER_\([A-Z_]*\) = .*/\1/p' "$diag_top/uapi/muster_desc.h" |
		grep -v NODE_AGGREGATION | tr A-Z a-z >expected
	"$devinfo" -d local -v | sed -n '/operations:/,$s/^\t\([a-z_]*\):.*/\1/p' | grep -v operations >found
	diff expected found
	"$devinfo" -d local -v | grep -q 'seq_descs_max:.*64$'
}
check "every limit of the hardware is named" limits_are_named

capabilities_are_named() {
	sed -n 's/^#define MUSTER_CAP_\([A-Z_]*\).*/\1/p' "$diag_top/uapi/muster_regs.h" | tr A-Z a-z |
		while read -r name; do
			grep -q "\"$name\"" "$diag_top/tools/diag_devices.c" || echo "$name"
		done >missing
	same "" "$(cat missing)"
}
check "every capability has a name" capabilities_are_named

list() {
	"$devinfo" --list >out
	grep -q "HCAs* found:" out
	grep -qxP '\tlocal' out
}
check "--list has the local device" list

no_such_device() {
	same 1 "$(status_of "$devinfo" -d muster77)"
	same "muster_devinfo: there is no device 'muster77'; --list says which there are" "$(cat err)"
}
check "a device that there is not is named" no_such_device

usage() {
	for wrong in --frobnicate "-d" "local" "-l -j"; do
		# shellcheck disable=SC2086 # options
		same 2 "$(status_of "$devinfo" $wrong)"
		grep -q "muster_devinfo --help" err
	done
}
check "wrong usage is refused" usage

# What cannot be written was not shown.
full() {
	same 1 "$(status_of sh -c '"$0" --json >/dev/full' "$devinfo")"
	grep -q "could not be written" err
}
check "output that cannot be written is an error" full

schema() {
	"$devinfo" --json >json 2>err
	valid muster_devinfo json
	sed 's/"local"/"lokal"/' json >wrong
	fails valid muster_devinfo wrong
}
if can_validate; then
	check "--json is as its schema says" schema
else
	skip "--json is as its schema says" "python3-jsonschema is not installed (make check installs it)"
fi
finish
