#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# muster_hello on a machine as it is, and on ones where something is wrong; with a NIC:
# guest/diag_test.sh.
. "$(dirname "$0")/tap.sh"
# shellcheck source=selftests/diag.sh
. "$tap_home/diag.sh"

hello=$MUSTER_BUILD/tools/muster_hello
[ -x "$hello" ] || skip_all "there is no $hello (make all)"

# usage: user COMMAND...: somebody without rights, if we have any and can be another
user() {
	if others_run "$1"; then
		setpriv --reuid 65534 --clear-groups --inh-caps=-all "$@"
	else
		"$@"
	fi
}

passes() {
	user "$hello" -d local >out
	cat out
	same "Test Passed." "$(tail -n 1 out)"
	# Where it runs differs: the library's place, whether a module is installed, and limits.
	sed -i 's|/.*/libmuster.so.0|/usr/local/lib/libmuster.so.0|; s/muster.ko is .*;/muster.ko is not installed;/
		s/^files .*without limit.*/files     ok    1 open files (ulimit -Hn), enough for about 1 local ranks/
		s/^memlock .*/memlock   none  1 KiB of locked memory (ulimit -l); the local device locks none/' out
	page_shows muster_hello.1 "muster_hello -d local"
}
check "an ordinary user's machine passes, as the manual page shows it" passes

# usage: fails_at CHECK CURE COMMAND...: that line fails, and the cure is what the end says.
fails_at() {
	line=$1 cure=$2
	shift 2
	status=$(status_of "$@")
	cat out err
	same 1 "$status"
	same "$line FAIL" "$(awk '$2 == "FAIL" { print $1, $2; exit }' out)"
	tail -n 1 out | grep -q "^Fix first: .*$cure"
	fails grep -q "Test Passed" out
}

check "too few open files are named, with the cure" \
	fails_at files "ulimit -n [0-9]" sh -c 'ulimit -n 20; exec "$0" -d local' "$hello"
check "no room for shared memory is named" \
	fails_at memory "free memory" sh -c 'ulimit -f 1000; exec "$0" -d local' "$hello"

cp "$hello" alone
if ldconfig -p 2>/dev/null | grep -q libmuster.so.0; then
	skip "a library that is not found is named" "this system has one installed"
else
	check "a library that is not found is named" fails_at library "make install" ./alone -d local
fi

another_version() {
	mkdir -p lib
	echo 'const char *muster_version(void) { return "77.1"; }' >version.c
	gcc -shared -fPIC -Wl,-soname,libmuster.so.0 -o lib/libmuster.so.0 version.c
	fails_at library "from one build" env LD_LIBRARY_PATH="$PWD/lib" ./alone -d local
	grep -q "is version 77.1, this tool is" out
}
check "a library of another version is named" another_version

# usage: broken WHAT TEXT: the ranks of the local run meet with that instead of memory
broken() {
	printf '#include <errno.h>\n#include <stdlib.h>\n#include <string.h>\nint memfd_create(const char *name, unsigned int flags)
	{ if (!strcmp(name, "muster-hello")) { errno = 0; extern long syscall(long, ...);
	return (int)syscall(319, name, flags); } %s }\n' "$1" >broken.c
	gcc -Wall -shared -fPIC -o broken.so broken.c
	fails_at local "$2" env LD_PRELOAD="$PWD/broken.so" "$hello" -d local
	grep -q "^local  *FAIL  rank [01]: " out
}
if [ "$(uname -m)" = x86_64 ]; then
	check "what a rank says is what is to be fixed" broken 'errno = ENFILE; return -1;' "Too many open files in system"
	check "a rank that crashes is named" broken 'abort();' "ended by signal 6"
else
	skip "what a rank says is what is to be fixed" "the test knows x86_64's system calls"
fi

# The machine is asked, not the environment.
environment() {
	MUSTER_DEVICE=verbs MUSTER_OFFLOAD=off MUSTER_WIRE=nonsense MUSTER_RANK=77 "$hello" -d local >out
	tail -n 1 out | grep -qx "Test Passed."
}
check "variables that are set count for nothing" environment

check "a device that there is not is named" \
	same 1 "$(status_of "$hello" -d muster77)"

schema() {
	"$hello" -d local --json >json
	valid muster_hello json
	(
		ulimit -n 20
		fails "$hello" -d local --json >json
	)
	valid muster_hello json
	sed 's/"FAIL"/"ok"/' json >wrong
	fails valid muster_hello wrong
}
if can_validate; then
	check "--json is as its schema says, whatever it finds" schema
else
	skip "--json is as its schema says, whatever it finds" "python3-jsonschema is not installed (make check installs it)"
fi
finish
