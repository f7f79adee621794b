#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Resolves a new name and connects to its address at once, again and again. Prints `N rounds, N refused`."""
import argparse
import os
import socket
import struct


def nameserver():
    with open("/etc/resolv.conf", encoding="ascii") as file:
        for line in file:
            word = line.split()
            if word[:1] == ["nameserver"]:
                return word[1]
    raise SystemExit("no nameserver")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--suffix", required=True)
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    server = nameserver()
    query = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    query.settimeout(5)
    query.connect((server, 53))
    suffix = b"".join(bytes([len(label)]) + label.encode() for label in options.suffix.split(".")) + b"\0"
    refused, unresolved, nonce = 0, 0, os.getpid()
    for number in range(options.rounds):
        label = b"r%d-%d" % (nonce, number)
        ident = number & 0xffff
        query.send(struct.pack("!6H", ident, 0x0100, 1, 0, 0, 0) + bytes([len(label)]) + label + suffix + struct.pack("!2H", 1, 1))
        reply = query.recv(4096)
        while struct.unpack_from("!H", reply)[0] != ident:
            reply = query.recv(4096)
        if reply[3] & 15 or struct.unpack_from("!H", reply, 6)[0] == 0:
            unresolved += 1
            continue
        address = socket.inet_ntoa(reply[-4:])  # the one A record comes last
        connection = socket.socket()
        connection.settimeout(5)
        # No TIME_WAIT on either side: the port range is smaller than the rounds.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        try:
            connection.connect((address, options.port))
        except OSError:
            refused += 1
        connection.close()
    if unresolved:
        print(f"{unresolved} names without an address")
    print(f"{options.rounds} rounds, {refused} refused")


if __name__ == "__main__":
    main()
