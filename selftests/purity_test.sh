#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# Engine, bump, switch and pure wire reach the world only through their tables.
. "$(dirname "$0")/tap.sh"

# foreign FILE...: what they need that neither they nor the list have
foreign() {
	nm -u "$@" | awk 'NF == 2 { print $2 }' | sort -u >needed
	nm --defined-only "$@" | awk 'NF == 3 { print $3 }' | sort -u >own
	comm -23 needed own | grep -vxE 'mem(cpy|move|set|cmp)|__cpu_model|__cpu_indicator_init|_GLOBAL_OFFSET_TABLE_'
}

pure() {
	same "" "$(foreign "$@")"
}

check "the engine calls no clock, thread, socket, allocation or output" \
	pure "$MUSTER_BUILD/qemu-device/engine/lib.a"

wire=$MUSTER_BUILD/qemu-device/wire
check "the reliable part of the wire calls none either" \
	pure "$wire"/reliable.o "$wire"/pace.o "$wire"/frame.o "$wire"/crc32c.o "$wire"/ring.o

bump=$MUSTER_BUILD/qemu-device/bump
check "the bump calls none either, and knows of the engine only its arithmetic" \
	pure "$bump"/bump.o "$bump"/cfe.o "$bump"/cipe.o "$bump"/cycles.o "$bump"/frame.o "$bump"/group.o \
	"$bump"/operation.o "$bump"/program.o "$bump"/queues.o "$bump"/repair.o \
	"$MUSTER_BUILD"/qemu-device/engine/arith*s.o "$MUSTER_BUILD"/qemu-device/engine/arith.o

switch=$MUSTER_BUILD/qemu-device/switch
check "nor does the switch" \
	pure "$switch"/aggregation.o "$switch"/credit.o "$switch"/forward.o "$switch"/generator.o "$switch"/group.o \
	"$switch"/handover.o "$switch"/lock.o "$switch"/reach.o "$switch"/receive.o "$switch"/ring.o "$switch"/segment.o \
	"$switch"/switch.o \
	"$MUSTER_BUILD"/qemu-device/engine/arith*s.o "$MUSTER_BUILD"/qemu-device/engine/arith.o

layouts() {
	for header in "$tap_home"/../uapi/muster_*.h "$tap_home"/../uapi/rdma/*.h "$tap_home"/../userlib/muster.h \
		"$tap_home"/../qemu-device/engine/*.h "$tap_home"/../qemu-device/wire/*.h "$tap_home"/../qemu-device/bump/*.h \
		"$tap_home"/../qemu-device/switch/*.h; do
		echo "$header"
		gcc -std=gnu11 -Wall -Wextra -Werror -I"$tap_home/../uapi" -I"$tap_home/../userlib" \
			-I"$tap_home/../qemu-device/engine" -I"$tap_home/../qemu-device/wire" \
			-I"$tap_home/../qemu-device/bump" -I"$tap_home/../qemu-device/switch" \
			-fsyntax-only -x c "$header"
	done
}
check "every shared header compiles alone" layouts

exported() {
	gcc -E -P "$tap_home/../userlib/muster.h" | grep -v "^typedef" | grep -o 'muster_[a-z_]*(' | tr -d '(' | sort -u >declared
	nm -D --defined-only "$MUSTER_BUILD/libmuster.so.0" | awk '$2 == "T" { print $3 }' |
		sed 's/@.*//' | sort -u >symbols
	same "" "$(comm -3 declared symbols)"
}
check "the shared library has the functions of its header, and no others" exported
finish
