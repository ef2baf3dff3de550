#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Other traffic between two hosts with bumps: rank 0 serves, rank 1 copies MIB by TCP and
sends ECHOES pings and as many datagrams that come back. Ranks may be more; they do nothing.

usage: bump_traffic.py MIB ECHOES
Rank 1 prints the MiB/s, whether the checksums agree, and how many pings and echoes were lost."""
import hashlib
import os
import socket
import struct
import sys
import time

PORT = 5000
CHUNK = 1 << 20


def retransmissions():
    with open("/proc/net/snmp", encoding="ascii") as f:
        names, values = (line.split() for line in f if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def serve():
    echo = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echo.bind(("0.0.0.0", PORT))
    listener = socket.create_server(("0.0.0.0", PORT))
    connection = listener.accept()[0]
    digest = hashlib.blake2b()
    while data := connection.recv(CHUNK):
        digest.update(data)
    connection.sendall(digest.digest())
    connection.close()
    while (data := echo.recvfrom(2048))[0] != b"end":
        echo.sendto(*data)


def copy(mib):
    for _ in range(200):
        try:
            s = socket.create_connection(("10.77.0.1", PORT))
            break
        except OSError:
            time.sleep(0.05)
    data = os.urandom(CHUNK)
    digest = hashlib.blake2b()
    begin = time.monotonic()
    for _ in range(mib):
        s.sendall(data)
        digest.update(data)
    s.shutdown(socket.SHUT_WR)
    theirs = s.recv(64, socket.MSG_WAITALL)
    seconds = time.monotonic() - begin
    print(f"{mib / seconds:.0f} MiB/s, checksums {'agree' if theirs == digest.digest() else 'DIFFER'}, "
          f"{retransmissions()} retransmissions")


def internet_sum(data):
    words = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    return ~words & 0xFFFF


def pings(nr):
    s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    s.connect(("10.77.0.1", 0))
    s.settimeout(30)
    lost = 0
    for i in range(nr):
        # As large as Ethernet takes them, too.
        rest = struct.pack(">HH", 77, i & 0xFFFF) + bytes([i & 0xFF]) * (2 * (i % 737))
        s.send(struct.pack(">BBH", 8, 0, internet_sum(b"\x08\0" + rest)) + rest)
        try:
            while (answer := s.recv(2048)[20:])[4:] != rest or answer[0] or internet_sum(answer):
                pass
        except socket.timeout:
            lost += 1
    print(f"{lost} of {nr} pings lost")


def echoes(nr):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("10.77.0.1", PORT))
    s.settimeout(30)
    lost = 0
    for i in range(nr):
        # Large ones too: up to what Ethernet takes.
        data = i.to_bytes(4, "little") * (1 + i % 368)
        s.send(data)
        try:
            while s.recv(2048) != data:
                pass
        except socket.timeout:
            lost += 1
    s.send(b"end")
    print(f"{lost} of {nr} echoes lost")


rank = int(os.environ["MUSTER_RANK"])
if rank == 0:
    serve()
elif rank == 1:
    copy(int(sys.argv[1]))
    pings(int(sys.argv[2]))
    echoes(int(sys.argv[2]))
