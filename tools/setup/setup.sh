#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Install the Debian packages that Muster needs and that are missing.
# usage: setup.sh [--quiet] core|guest|mpi...     (--quiet: no word where nothing is missing)
# It says what it installs first, asks nothing, may be interrupted and repeated.
set -eu
. "$(dirname -- "$0")/common.sh"

# The names in one list, without comments.
packages() {
	list=$MUSTER_ROOT/tools/setup/packages.$1
	[ -f "$list" ] || die "there is no package list '$1'; usage: setup.sh core|guest|mpi"
	sed 's/#.*//' "$list"
}

installed() {
	[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing() {
	for name in $(packages "$1"); do
		installed "$name" || printf '%s ' "$name"
	done
}

# What becomes root here: nothing, sudo, or an explanation.
as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	elif sudo -n true 2>/dev/null; then
		sudo "$@"
	else
		die "installing needs root; run this, then repeat:
  sudo apt-get update && sudo apt-get install --no-install-recommends $wanted"
	fi
}

# One set-up of ours at a time; others that install are waited for.
# shellcheck disable=SC2086 # $wanted is a list of names
install_missing() {
	cache_lock packages
	say "installing Debian packages: $wanted"
	as_root apt-get -q update
	as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -y -q -o DPkg::Lock::Timeout=600 --no-install-recommends install $wanted
}

command -v apt-get >/dev/null || die "this is not a Debian system: install the packages named in \
tools/setup/packages.* by your own means"
quiet=
[ "${1:-}" != --quiet ] || { quiet=yes; shift; }
[ $# -gt 0 ] || die "usage: setup.sh core|guest|mpi..."
wanted=
for set; do
	packages "$set" >/dev/null
	wanted="$wanted$(missing "$set")"
done
[ -z "$wanted" ] || install_missing
[ -n "$quiet" ] || say "packages for $*: all present"
