#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What somebody does with Muster on a Debian 12 machine of their own: build and load the
# driver by DKMS, look at the device as an ordinary user, run a program. Runs as root in that
# machine (selftests/image_test.sh).
. "$(dirname "$0")/tap.sh"

VERSION=$(basename /usr/src/muster-* | sed 's/.*-//')

as_user() {
	su -s /bin/sh user -c "$*"
}

dkms_builds() {
	dkms install "muster/$VERSION"
	dkms status | tee status
	grep -q "muster/$VERSION.*installed" status
}

it_loads() {
	modprobe muster
	within 60 test -c /dev/infiniband/uverbs0
}

# udev may have given it a name by its place: it is found as what it is.
a_user_sees_it() {
	as_user ibv_devinfo | tee info
	grep -q "node_guid:.*024d:5354" info
	grep -q PORT_ACTIVE info
}

hello_passes() {
	as_user muster_hello | tee out
	same "Test Passed." "$(tail -n 1 out)"
	grep -q "^nic run *ok" out
}

# What is wrong comes with what to do.
hello_names_the_limit() {
	fails as_user "ulimit -l 64; muster_hello" >out
	cat out
	grep -q "^memlock *FAIL" out
	tail -n 1 out | grep "^Fix first:.*limits"
}

cat >/tmp/hello.c <<'C'
#include <err.h>
#include <stdio.h>
#include <muster.h>

int main(void)
{
	struct muster *job;
	double in = 1, sum;

	if (muster_init(&job))
		errx(1, "%s", muster_error(NULL));
	if (muster_allreduce(muster_world(job), &in, &sum, 1, MUSTER_F64, MUSTER_SUM))
		errx(1, "%s", muster_error(job));
	printf("the sum is %g\n", sum);
	muster_finalize(job);
}
C

a_program_is_built_and_runs() {
	as_user 'cd /tmp && gcc hello.c $(pkg-config --cflags --libs muster) -o hello && muster-run -n 2 ./hello' | tee out
	same 2 "$(grep -c 'the sum is 2' out)"
}

it_unloads() {
	modprobe -r muster
	fails test -c /dev/infiniband/uverbs0
}

nothing_is_wrong() {
	dmesg --level=emerg,alert,crit,err,warn | grep -i muster | grep -v "module verification failed\|out-of-tree module" && return 1
	return 0
}

useradd -m user
ldconfig
check "DKMS builds and installs the driver" dkms_builds
check "modprobe loads it, and udev makes its node" it_loads
check "an ordinary user sees the device" a_user_sees_it
check "muster_hello passes for an ordinary user, over the NIC too" hello_passes
check "a low limit of locked memory is named with its cure" hello_names_the_limit
check "README's program is built there and runs" a_program_is_built_and_runs
check "the driver unloads" it_unloads
check "the kernel has nothing to complain of" nothing_is_wrong
finish
