#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Frames with a VLAN tag pass bumps with it: rank 0 sends some, rank 1 looks at one."""
import os
import socket
import struct
import sys
import time

SOL_PACKET, PACKET_AUXDATA = 263, 8
TYPE, TAG = 0x88B5, 0x6005  # an experimental protocol; priority 3, VLAN 5

s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("eth0", 0))
if os.environ["MUSTER_RANK"] == "0":
    frame = b"\xff" * 6 + b"\2\0\0\0\0\1" + struct.pack(">HHH", 0x8100, TAG, TYPE) + b"tagged" * 20
    for _ in range(40):
        s.send(frame)
        time.sleep(0.05)
elif os.environ["MUSTER_RANK"] == "1":
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.settimeout(30)
    while True:
        data, extra, _, _ = s.recvmsg(2048, 256)
        if data[14:] == b"tagged" * 20:
            break
    tag = struct.unpack("IIIHHHH", extra[0][2][:20])[5]
    if data[12:14] != struct.pack(">H", TYPE) or tag != TAG:
        sys.exit(f"tag {tag:#x}, type {data[12:14].hex()}")
    print("the tag is there")
