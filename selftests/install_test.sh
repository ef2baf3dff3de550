#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What make install puts down is enough by itself: README's program is built and run outside
# of the checkout, by an installed muster-run; pages, completion and uninstall.
. "$(dirname "$0")/tap.sh"

top=$(realpath "$tap_home/..")
[ -x "$MUSTER_BUILD/tools/muster-run" ] || skip_all "the tools are not built (make all)"
command -v rst2man >/dev/null || skip_all "python3-docutils is not installed (make install does it)"

# As a user would call it, not as a part of the make that runs the tests.
install() {
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS make -s -C "$top" \
		BUILD="$(realpath --relative-to="$top" "$MUSTER_BUILD")" "$@"
}

# usage: alone COMMAND...: with a search path of what is installed and the system's, and, where
# that can be done here, without any file of the checkout.
alone() {
	set -- env -i PATH="$tap_dir/usr/bin:/usr/bin:/bin" LD_LIBRARY_PATH="$tap_dir/usr/lib" "$@"
	case $tap_dir in
	"$top"/*) "$@" ;;
	*) if unshare -rm true 2>/dev/null; then
		unshare -rm sh -c 'mount -t tmpfs none "$0" && exec "$@"' "$top" "$@"
	else
		"$@"
	fi ;;
	esac
}

check "make install installs" install install PREFIX="$tap_dir/usr"

readme_program() {
	sed -n '/^```c$/,/^```$/{/^```/!p}' "$top/README.md" >hello.c
	export PKG_CONFIG_PATH="$tap_dir/usr/lib/pkgconfig"
	# shellcheck disable=SC2046 # options
	alone gcc -Wall -Werror hello.c $(pkg-config --cflags --libs muster) -o hello
	alone muster-run -n 2 ./hello >out
	cat out
	same 2 "$(grep -c 'the sum is 2$' out)"
	same "$(sed -n 's/.*MUSTER_VERSION "\(.*\)"/\1/p' "$top/userlib/version.h")" \
		"$(pkg-config --modversion muster)"
}
check "README's program is built with pkg-config alone, and runs" readme_program

# The header promises nothing that the library lacks.
all_there() {
	sed -nE '/^typedef/!s/^[a-z].*[ *](muster_[a-z_]+)\(.*/\1/p' usr/include/muster.h | sort -u >promised
	nm -D --defined-only usr/lib/libmuster.so | sed 's/.* T //; s/@.*//' | sort -u >exported
	grep -q muster_exscan_start promised
	same "" "$(comm -23 promised exported)"
	same "" "$(comm -13 promised exported | grep '^muster_')"
}
check "the library exports what the header declares, and nothing else" all_there

soname() {
	same "libmuster.so.0" "$(objdump -p usr/lib/libmuster.so | awk '$1 == "SONAME" { print $2 }')"
	same libmuster.so.0 "$(readlink usr/lib/libmuster.so)"
	same libmuster.so.0.0.1 "$(readlink usr/lib/libmuster.so.0)"
}
check "the library has a versioned name" soname

tools_run() {
	for tool in usr/bin/*; do
		alone "${tool##*/}" --version >out
		cat out
		grep -q "^${tool##*/} [0-9]" out
		alone "${tool##*/}" --help >out
		grep -q "^Usage: " out
		test -s "usr/share/man/man1/${tool##*/}.1"
	done
}
check "every installed tool runs alone, and has a manual page" tools_run

# usage: completed WORD...: what is offered for the last of them, the cursor being there
completed() {
	PATH=$tap_dir/usr/bin:$PATH bash -c '
		. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_muster
		echo "${COMPREPLY[*]}"' "$tap_dir/usr/share/bash-completion/completions/$1" "$@"
}

completes() {
	for tool in usr/bin/*; do
		same "--help" "$(completed "${tool##*/}" --he)"
		bash -c '. "$0"; complete -p "$1"' "usr/share/bash-completion/completions/${tool##*/}" "${tool##*/}"
	done
	same "--validate" "$(completed muster-run -n 4 muster_perf --va)"
	same "pareto" "$(completed muster-synth pa)"
	same "--pid" "$(completed muster_trace explain --p)"
}
check "the shell completes options and commands of every tool" completes

# usage: verbs_have_pages ROOT
verbs_have_pages() {
	sed -nE 's/^[a-z].*[ *](musterdv_[a-z_]+)\(.*/\1/p' "$top/provider/musterdv.h" >verbs
	grep -qx musterdv_doorbell verbs
	while read -r verb; do
		page=$1/usr/share/man/man3/$verb.3
		{ grep -q "$verb(" "$page" && grep -q "^$verb \\\\- " "$page"; } || {
			echo "$verb() has no manual page of its own"
			return 1
		}
	done <verbs
}

provider_goes_along() {
	rm -rf root && mkdir root
	install install install-provider DESTDIR="$PWD/root" PREFIX=/usr
	same "driver /usr/lib/libibverbs/libmuster" "$(cat root/etc/libibverbs.d/muster.driver)"
	test -s root/usr/lib/libibverbs/libmuster-rdmav34.so
	verbs_have_pages root
	fails grep -rl "$PWD" root
	PKG_CONFIG_PATH=root/usr/lib/pkgconfig
	export PKG_CONFIG_PATH
	echo '#include <musterdv.h>' >dv.c
	# shellcheck disable=SC2046 # options
	gcc -Wall -Werror -c $(PKG_CONFIG_SYSROOT_DIR=root pkg-config --cflags musterdv) dv.c
	install uninstall DESTDIR="$PWD/root" PREFIX=/usr
	same "" "$(find root ! -type d)"
}
if [ -f "$MUSTER_BUILD/libmuster-verbs.so.0" ]; then
	check "DESTDIR= takes provider and all, and make uninstall takes it away" provider_goes_along
else
	skip "DESTDIR= takes provider and all, and make uninstall takes it away" "there is no provider (make provider)"
fi

uninstalled() {
	install uninstall PREFIX="$tap_dir/usr"
	same "" "$(find usr ! -type d)"
}
check "make uninstall leaves no file" uninstalled
finish
