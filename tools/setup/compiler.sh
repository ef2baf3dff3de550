#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Fetch a C compiler that is newer than the machine's own and unpack it into the cache, with
# the libraries that it runs on; nothing is installed. It runs through the loader of its own
# release, and takes headers, assembler, linker and libraries from the machine: what it links runs there. It has no sanitizers.
# Afterwards
#   build/compilers/gcc-14   compiles as gcc-14 would
# usage: compiler.sh SERIES SUITE      (14 trixie)
set -eu
. "$(dirname -- "$0")/common.sh"

[ $# -eq 2 ] || die "usage: compiler.sh SERIES SUITE"
SERIES=$1
SUITE=$2
DIR=$MUSTER_CACHE/compilers
ARCH=$(uname -m)-linux-gnu
DONE=$DIR/$SERIES.links		# all of it is there

# usage: needs PACKAGE...: they and all that they need, but for what the machine has.
needs() {
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
		--no-replaces --no-enhances --no-pre-depends "$@" | grep '^[a-z]' |
		grep -vE '^(binutils|.*-dev$|lib[a-z]*san)' | sort -u
}

fetch_packages() {
	private_apt "$SUITE"
	[ -n "$(apt-cache madison "gcc-$SERIES")" ] || die "there is no gcc-$SERIES in $SUITE"
	rm -rf "$DIR/download" && mkdir -p "$DIR/download"
	# shellcheck disable=SC2046 # a list of names
	(cd "$DIR/download" && with_log "$DIR/fetch.log" "fetching gcc-$SERIES (about 40 MB)" \
		apt-get -q download "libgcc-$SERIES-dev" $(needs "gcc-$SERIES" libc6))
}

# A program of the other release, as one of this machine.
# usage: wrap FILE ROOT PROGRAM [OPTION]
wrap() {
	cat >"$1" <<-WRAPPER
		#!/bin/sh
		root=$2
		lib=\$root/usr/lib/$ARCH:\$root/lib/$ARCH
		exec "\$(echo "\$root"/usr/lib/$ARCH/ld-linux*)" --library-path "\$lib" \\
			"\$root/$3" ${4:-} "\$@"
	WRAPPER
	chmod +x "$1"
}

fetch() {
	need dpkg-deb flock as
	cache_lock compilers
	[ ! -f "$DONE" ] || return 0
	mkdir -p "$DIR"
	fetch_packages
	root=$DIR/gcc-$SERIES
	unpack_packages "$DIR/download" "$root"
	mkdir "$root/wrapped"
	for part in cc1 collect2; do
		wrap "$root/wrapped/$part" "$root" "usr/libexec/gcc/$ARCH/$SERIES/$part"
	done
	wrap "$root/gcc-$SERIES" "$root" "usr/bin/$ARCH-gcc-$SERIES" "-B '$root/wrapped/' -fno-use-linker-plugin"
	echo 'int main(void) { return 0; }' | "$root/gcc-$SERIES" -x c -o "$DIR/download/runs" - && "$DIR/download/runs" ||
		die "gcc-$SERIES of $SUITE does not run on this machine"
	rm -rf "$DIR/download"
	echo "$SUITE" >"$DONE"
}

[ -f "$DONE" ] || fetch
mkdir -p "$MUSTER_ROOT/build/compilers"
ln -sfn "$DIR/gcc-$SERIES/gcc-$SERIES" "$MUSTER_ROOT/build/compilers/gcc-$SERIES"
