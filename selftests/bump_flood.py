#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A host that floods its bump does not make it deaf to others: between hosts 1 and 2 is the bump
of host 0, and rank 0 sends it more than it can pass, while the ranks 1 and 2 add up. They say
so when they are through with it (the file ENOUGH), and the flood ends then.

usage: bump_flood.py ENOUGH"""
import os
import socket
import struct
import sys

HEADER = "<I4BIIHH4BHHHHHHH2BQ16x"  # Documentation/bump.md
OPERATIONS, TRIES, FLOODERS = 20, 500, 4


def number(name, base=10):
    return int(os.environ[name], base)


def flood(enough):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("eth0", 0))
    frame = b"\2\0\0\0\0\x99" + b"\2\0\0\0\0\x98" + b"\x88\xb5" + bytes(50)
    while not os.path.exists(enough):
        for _ in range(1000):
            try:
                s.send(frame)
            except OSError:  # the queue is full
                pass


def allreduce(s, ident, rank):
    header = struct.pack(
        HEADER, 0x504D424D, 1, 1, 0, 0, number("MUSTER_BUMP_GROUP"), ident, 0, 0,
        1, 3, 2, 1, 1, 0, 2, 1, 1, 2, rank - 1, 0, 1, number("MUSTER_BUMP_KEY", 16))
    for _ in range(TRIES):
        s.send(header + struct.pack("<d", rank))
        try:
            answer = s.recv(2048)
        except socket.timeout:
            continue
        if struct.unpack_from(HEADER, answer)[6] == ident:
            return answer[5] == 2 and struct.unpack_from("<d", answer, 64)[0] == 3
    return False


rank = number("MUSTER_RANK")
if rank == 0:
    for _ in range(FLOODERS - 1):
        if not os.fork():
            break
    flood(sys.argv[1])
    sys.exit()
bump = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
bump.settimeout(0.02)
bump.connect(("10.77.255.254", 19778))
right = 0
while right < OPERATIONS and allreduce(bump, right, rank):
    right += 1
open(f"{sys.argv[1]}.{rank}", "w", encoding="ascii").close()
if os.path.exists(f"{sys.argv[1]}.{3 - rank}"):
    open(sys.argv[1], "w", encoding="ascii").close()
print(f"{right} of {OPERATIONS} operations right")
sys.exit(right != OPERATIONS)
