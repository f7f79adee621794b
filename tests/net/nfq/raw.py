#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A TCP client made by hand, for segments that no kernel sends.

    raw.py DEVICE SOURCE GATEWAY-MAC DESTINATION PORT STEPS

SOURCE is no address of this namespace, so its kernel does not answer. STEPS is a JSON list of
    ["syn", TEXT]            connects and waits for SYN+ACK; TEXT is data of the SYN (may be "")
    ["seg", OFFSET, TEXT]    sends TEXT, OFFSET counted from the first byte of the stream
    ["flags", FLAGS, OFFSET] sends an empty segment
    ["again", SEQUENCE]      sends a SYN with another sequence number
    ["wait", SECONDS]        writes down what comes
Prints a JSON list of what came: {"flags", "ack" (from the first byte), "data"}.
"""
import json
import os
import random
import socket
import struct
import sys
import time

device, source, mac, destination, port, steps = sys.argv[1:]
SYN, ACK, RST, FIN = 2, 16, 4, 1
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
wire.bind((device, 0))
own = open(f"/sys/class/net/{device}/address").read().strip()
frame = bytes.fromhex(mac.replace(":", "")) + bytes.fromhex(own.replace(":", "")) + b"\x08\x00"
local, isn, theirs = random.randrange(20000, 60000), random.randrange(1 << 32), 0
came = []


def checksum(data):
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def send(sequence, flags, data=b""):
    ends = socket.inet_aton(source) + socket.inet_aton(destination)
    head = struct.pack("!HHIIBBHHH", local, int(port), sequence & 0xffffffff, theirs if flags & ACK else 0,
                       5 << 4, flags, 65535, 0, 0)
    sum_ = checksum(ends + struct.pack("!BBH", 0, 6, len(head) + len(data)) + head + data)
    head = head[:16] + struct.pack("!H", sum_) + head[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(head) + len(data), 0, 0, 64, 6, 0) + ends
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    wire.send(frame + ip + head + data)


def listen(seconds, until=None):
    global theirs
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        wire.settimeout(left)
        try:
            packet, address = wire.recvfrom(65536)
        except TimeoutError:
            return False
        ip = packet[14:]
        if address[2] == socket.PACKET_OUTGOING or ip[9] != 6 or ip[16:20] != socket.inet_aton(source):
            continue
        tcp = ip[(ip[0] & 15) * 4:struct.unpack("!H", ip[2:4])[0]]
        _, to, sequence, ack = struct.unpack("!HHII", tcp[:12])
        if to != local:
            continue
        data = tcp[(tcp[12] >> 4) * 4:]
        came.append({"flags": tcp[13], "ack": (ack - isn - 1) & 0xffffffff, "data": data.decode("latin-1")})
        if not tcp[13] & RST:
            theirs = (sequence + len(data) + (1 if tcp[13] & (SYN | FIN) else 0)) & 0xffffffff
        if until is not None and tcp[13] & until:
            return True
    return False


for step in json.loads(steps):
    if step[0] == "syn":
        send(isn, SYN, step[1].encode())
        if not listen(3, SYN | RST):
            break
        if not came[-1]["flags"] & RST:
            send(isn + 1, ACK)
    elif step[0] == "seg":
        send(isn + 1 + step[1], ACK, step[2].encode())
    elif step[0] == "flags":
        send(isn + 1 + step[2], step[1])
    elif step[0] == "again":
        send(isn + step[1], SYN)
    else:
        listen(step[1])
print(json.dumps(came))
