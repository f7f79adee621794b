#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A gate for tests of the rules alone: reads one NFQUEUE and gives verdicts by what the packet says.

    queue.py NUMBER MASK LOG

Destination port of TCP without payload: 81 allowed, 82 refused, 83 accepted without any mark, 84 watched after 300 ms,
others watched. TCP payload: "good" allowed, "bad" refused, else watched. UDP to port 9000 allowed, everything else
refused. One line a packet in LOG: FAMILY PROTOCOL PORT FLAGS MARK PAYLOAD. What comes as a notice of the static floor
(the log group of the same number) is written down with "notice" before it.
"""
import select
import socket
import struct
import sys
import time

NUMBER, MASK, LOG = int(sys.argv[1]), int(sys.argv[2], 0), open(sys.argv[3], "a", buffering=1)
SHIFT = (MASK & -MASK).bit_length() - 1
ALLOWED, WATCHED, REFUSED = 1, 2, 3
NFNL_SUBSYS_QUEUE, MSG_PACKET, MSG_VERDICT, MSG_CONFIG = 3, 0, 1, 2
NFNL_SUBSYS_ULOG, LOG_MSG_CONFIG = 4, 1


def attribute(kind, data):
    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)


def message(kind, flags, *attributes, subsystem=NFNL_SUBSYS_QUEUE):
    body = struct.pack("=BBH", 0, 0, socket.htons(NUMBER)) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), subsystem << 8 | kind, flags, 0, 0) + body


def attributes(data):
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        found[kind & 0x3FFF] = data[4:length]
        data = data[(length + 3) & ~3:]
    return found


def configure(netlink):
    for data in (attribute(1, struct.pack(">BBH", 1, 0, socket.AF_INET)),  # NFQA_CFG_CMD: bind
                 attribute(2, struct.pack(">IB", 0xFFFF, 2)),  # NFQA_CFG_PARAMS: whole packets
                 attribute(4, struct.pack(">I", 4)) + attribute(5, struct.pack(">I", 4))):  # NFQA_CFG_F_GSO
        netlink.send(message(MSG_CONFIG, 5, data))
        answer = netlink.recv(65536)
        if struct.unpack_from("=i", answer, 16)[0] != 0:
            sys.exit("the queue refuses")


def configure_log(netlink):
    """NFLOG: bind, and each notice at once."""
    for data in (attribute(1, b"\1"), attribute(5, struct.pack(">I", 1))):  # NFULA_CFG_CMD, NFULA_CFG_QTHRESH
        netlink.send(message(LOG_MSG_CONFIG, 5, data, subsystem=NFNL_SUBSYS_ULOG))
        answer = netlink.recv(65536)
        if struct.unpack_from("=i", answer, 16)[0] != 0:
            sys.exit("the log group refuses")


def judge(packet):
    """State or None, and what to write down."""
    if packet[0] >> 4 == 4:
        family, protocol, rest = 4, packet[9], packet[(packet[0] & 15) * 4:]
    else:
        family, protocol, rest = 6, packet[6], packet[40:]
    if protocol == 17:
        port = struct.unpack_from(">H", rest, 2)[0]
        return ALLOWED if port == 9000 else REFUSED, f"{family} udp {port} -", rest[8:]
    if protocol != 6:
        return REFUSED, f"{family} {protocol} 0 -", b""
    port, flags, payload = struct.unpack_from(">H", rest, 2)[0], rest[13], rest[(rest[12] >> 4) * 4:]
    text = "".join(letter for bit, letter in enumerate("FSRPAU") if flags >> bit & 1)
    options = rest[20:(rest[12] >> 4) * 4]
    if 30 in option_kinds(options):
        text += "+mptcp"
    if payload:
        state = REFUSED if b"bad" in payload else ALLOWED if b"good" in payload else WATCHED
    else:
        state = {81: ALLOWED, 82: REFUSED, 83: None}.get(port, WATCHED)
        if port == 84:
            time.sleep(0.3)
    return state, f"{family} tcp {port} {text}", payload


def option_kinds(options):
    while options and options[0] != 0:
        yield options[0]
        options = options[1:] if options[0] == 1 else options[max(options[1], 2):]


def messages(netlink, subsystem):
    """The attributes of each packet that came."""
    data = netlink.recv(1 << 17)
    while len(data) >= 20:
        length, kind = struct.unpack_from("=IH", data)
        if kind == subsystem << 8 | MSG_PACKET:
            yield attributes(data[20:length])
        data = data[(length + 3) & ~3:]


def take(netlink, found):
    number, mark = found[1][:4], struct.unpack(">I", found.get(3, bytes(4)))[0]
    state, text, payload = judge(found[10])
    print(text, hex(mark), payload[:40].decode("ascii", "replace") or "-", file=LOG)
    verdict = attribute(2, struct.pack(">I", 1) + number)
    if state is not None:
        verdict += attribute(3, struct.pack(">I", mark & ~MASK | state << SHIFT))
    netlink.send(message(MSG_VERDICT, 1, verdict))


def note(found):
    """NFULA_PAYLOAD and NFULA_PREFIX."""
    if found[10] == b"pinfold-floor\0":
        print("notice", judge(found[9])[1], file=LOG)


with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as netlink, \
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as log:
    for one in (netlink, log):
        one.bind((0, 0))
        one.setsockopt(socket.SOL_SOCKET, 33, 1 << 22)  # SO_RCVBUFFORCE
    configure(netlink)
    configure_log(log)
    print("ready", file=LOG)
    while True:
        ready = select.select([netlink, log], [], [])[0]
        if netlink in ready:
            for found in messages(netlink, NFNL_SUBSYS_QUEUE):
                take(netlink, found)
        if log in ready:
            for found in messages(log, NFNL_SUBSYS_ULOG):
                note(found)
