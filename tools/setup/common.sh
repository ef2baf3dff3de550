# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2034
# What the set-up scripts share: where the cache lies, how they speak, and a
# private apt that can read package sources although the machine's own
# configuration names binaries only. Sourced by a POSIX sh under `set -eu`;
# nothing here changes the system.

MUSTER_CACHE=${MUSTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/muster}
MUSTER_ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
# What guests run with, as links into the cache; the runner looks here. Another kernel's
# set-up says where.
MUSTER_VM_DIR=${SETUP_VM_DIR:-$MUSTER_ROOT/build/vm}
# The distribution's own python3 and tools, whatever else stands first.
PATH=/usr/bin:/bin:/usr/sbin:/sbin:$PATH
export MUSTER_CACHE PATH

say() {
	printf 'setup: %s\n' "$*"
}

die() {
	printf 'setup: %s\n' "$*" >&2
	exit 1
}

need() {
	for tool; do
		command -v "$tool" >/dev/null ||
			die "'$tool' is missing; run 'make setup' (tools/setup/setup.sh guest) first"
	done
}

# Two checkouts may share one cache: one writes at a time.
# usage: cache_lock NAME; held until the script ends.
cache_lock() {
	mkdir -p "$MUSTER_CACHE"
	exec 9>"$MUSTER_CACHE/$1.lock"
	flock -n 9 && return
	say "waiting for another set-up that holds $MUSTER_CACHE/$1.lock"
	flock 9
}

# Run a long command with its output in a log; a line every 10 s shows that it lives.
# usage: with_log LOG WHAT COMMAND...
with_log() {
	log=$1 what=$2
	shift 2
	say "$what (log: $log)"
	"$@" >"$log" 2>&1 &
	pid=$!
	trap 'kill $pid 2>/dev/null; exit 130' INT TERM
	seconds=0
	while kill -0 $pid 2>/dev/null; do
		sleep 1
		seconds=$((seconds + 1))
		[ $((seconds % 10)) -ne 0 ] || say "  ... ${seconds} s: $(tail -n 1 "$log" | cut -c1-90)"
	done
	trap - INT TERM
	wait $pid && return
	tail -n 20 "$log" | cut -c1-400 >&2
	die "$what failed; the last lines are above, all of it in $log"
}

# The machine's sources with a deb-src beside each deb, for both file formats.
private_sources() {
	rm -rf "$1" && mkdir -p "$1"
	if [ -f /etc/apt/sources.list ]; then
		sed -n 's/^deb[[:space:]]\(.*\)/deb \1\ndeb-src \1/p' /etc/apt/sources.list >"$1/main.list"
	fi
	for file in /etc/apt/sources.list.d/*.list; do
		[ ! -f "$file" ] ||
			sed -n 's/^deb[[:space:]]\(.*\)/deb \1\ndeb-src \1/p' "$file" >"$1/${file##*/}"
	done
	for file in /etc/apt/sources.list.d/*.sources; do
		[ ! -f "$file" ] || sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$1/${file##*/}"
	done
}

# One more suite from where the machine's own release comes from, signed as that is.
other_suite() {
	rm -rf "$1" && mkdir -p "$1"
	keyring=/usr/share/keyrings/debian-archive-keyring.gpg
	[ -f "$keyring" ] || keyring=
	apt-get indextargets --format '$(RELEASE) $(SITE)' "Release: $(codename)" |
		sed -n "1s|[^ ]* \(.*\)|deb ${keyring:+[signed-by=$keyring]} \1 $2 main|p" >"$1/main.list"
}

codename() {
	sed -n 's/^VERSION_CODENAME=//p' /etc/os-release
}

private_apt_config() {
	cat <<-CONF
		Dir::Etc::sourcelist "/dev/null";
		Dir::Etc::sourceparts "$1/sources.list.d";
		Dir::State::lists "$1/lists";
		Dir::Cache "$1/cache";
		Acquire::Languages "none";
		Acquire::Retries "3";
		APT::Sandbox::User "";
	CONF
}

# After this apt-get and apt-cache of this script read the private configuration,
# whose indexes are signed and checked as the machine's own are.
# usage: private_apt [SUITE]: the machine's own sources, or that suite of them alone.
private_apt() {
	dir=$MUSTER_CACHE/apt${1:+-$1}
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial"
	if [ -n "${1:-}" ]; then
		other_suite "$dir/sources.list.d" "$1"
	else
		private_sources "$dir/sources.list.d"
	fi
	private_apt_config "$dir" >"$dir/apt.conf"
	APT_CONFIG=$dir/apt.conf
	export APT_CONFIG
	say "reading the package indexes, with sources, into $dir"
	apt-get -q update >"$dir/update.log" 2>&1 ||
		say "some package indexes could not be read (see $dir/update.log); going on with the rest"
}

# ---- the distribution's kernel packages, unpacked and not installed -------------

# usage: dependency PACKAGE PREFIX: the first package of that prefix that it needs.
dependency() {
	apt-cache depends "$1" | sed -n "s/^ *Depends: \($2[^ ]*\)$/\1/p" | head -n 1
}

# usage: unpack_packages FOLDER ROOT
unpack_packages() {
	rm -rf "$2" && mkdir -p "$2"
	for package in "$1"/*.deb; do
		say "unpacking ${package##*/}"
		dpkg-deb -x "$package" "$2"
	done
}

# Debian's header packages name each other under /usr/src; point them to where they will lie.
# usage: relocate_headers ROOT PLACE
relocate_headers() {
	grep -rlF /usr/src/ "$1"/usr/src/linux-headers-*/Makefile |
		xargs -r sed -i "s|/usr/src/|$2/usr/src/|g"
}

# The kernel itself, of its file in ROOT/boot (whose header says where it lies and how long it
# is; its own length follows it), as ROOT/vmlinux.
# usage: extract_vmlinux ROOT RELEASE
extract_vmlinux() {
	/usr/bin/python3 - "$1/boot/vmlinuz-$2" "$1/vmlinux" <<-'PYTHON'
		import struct, subprocess, sys
		image = open(sys.argv[1], "rb").read()
		start, length = struct.unpack_from("<II", image, 0x248)
		start += (image[0x1f1] + 1) * 512
		packed = image[start:start + length - 4]
		unpack = {b"\xfd7zXZ\0": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
		tool = [unpack[magic] for magic in unpack if packed.startswith(magic)]
		if not tool:
		    sys.exit("neither xz nor zstd in " + sys.argv[1])
		subprocess.run([tool[0], "-dc"], input=packed, stdout=open(sys.argv[2], "wb"), check=True)
	PYTHON
	rm -r "${1:?}/boot"
}
