#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes down every DNS question that comes in at an interface over UDP, whoever it is for.

Log lines:   question NAME TYPE SERVER
"""
import argparse
import ipaddress
import os
import socket
import struct

ETH_P_ALL = 3


def datagram(frame):
    """(destination, port, payload) of a UDP packet, or None."""
    if frame[12:14] == b"\x08\x00":
        packet = frame[14:]
        length = (packet[0] & 15) * 4
        if packet[9] != 17:
            return None
        destination, rest = ipaddress.ip_address(packet[16:20]), packet[length:]
    elif frame[12:14] == b"\x86\xdd":
        packet = frame[14:]
        if packet[6] != 17:
            return None
        destination, rest = ipaddress.ip_address(packet[24:40]), packet[40:]
    else:
        return None
    return destination, struct.unpack_from("!H", rest, 2)[0], rest[8:]


def question(message):
    at, labels = 12, []
    while message[at]:
        labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    return ".".join(labels) + ".", struct.unpack_from("!H", message, at + 1)[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--interface", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--ready", required=True)
    options = parser.parse_args()
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    sock.bind((options.interface, 0))
    with open(options.log, "a", encoding="utf-8", buffering=1) as log:
        os.close(os.open(options.ready, os.O_CREAT | os.O_WRONLY))
        while True:
            frame, where = sock.recvfrom(65536)
            if where[2] == socket.PACKET_OUTGOING:
                continue
            try:
                found = datagram(frame)
                if found and found[1] == 53:
                    name, kind = question(found[2])
                    log.write(f"question {name} {kind} {found[0]}\n")
            except (IndexError, struct.error):
                log.write("question unreadable. 0 -\n")


if __name__ == "__main__":
    main()
