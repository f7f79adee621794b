#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An authoritative server that lies as its clients' names tell it to, and writes down every question.

Below the zone the name says what the answer is, read from left to right; addresses are labels with dashes:

    93-184-216-34.only.ZONE                    A 93.184.216.34
    93-184-216-34.10-77-0-10.flip.ZONE         the first answer is the first address, every later one the second
    93-184-216-34.10-77-0-10.both.ZONE         both, in this order
    93-184-216-34.10-77-0-10.hint.ZONE         A of the first; HTTPS with ipv4hint or ipv6hint of the second
    metadata.google.internal.cname.ZONE        CNAME metadata.google.internal.

An IPv6 address has all its eight groups. A first label that begins with "n-" is ignored: a fresh name. All TTLs are 0. With
--open ADDRESS it answers every name with that address instead, as somebody else's resolver would.
"""
import argparse
import ipaddress
import os
import socket
import struct
import threading

A, NS, CNAME, SOA, AAAA, OPT, HTTPS = 1, 2, 5, 6, 28, 41, 65
TYPES = {1: "A", 2: "NS", 5: "CNAME", 6: "SOA", 28: "AAAA", 48: "DNSKEY", 43: "DS", 65: "HTTPS", 255: "ANY"}
NOERROR, FORMERR, NXDOMAIN, REFUSED = 0, 1, 3, 5


def wire_name(name):
    labels = [label for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label.encode("ascii") for label in labels) + b"\0"


def read_question(message):
    """(id, flags, name, type, class, wire of the question, has OPT), or None for what is no query."""
    if len(message) < 17:
        return None
    number, flags, questions, answers, authority, additional = struct.unpack_from("!6H", message)
    if flags & 0x8000 or questions != 1 or answers or authority:
        return None
    at, labels = 12, []
    while message[at]:
        length = message[at]
        if length > 63 or at + 1 + length + 5 > len(message):
            return None
        labels.append(message[at + 1:at + 1 + length].decode("latin-1"))
        at += 1 + length
    at += 1
    kind, klass = struct.unpack_from("!2H", message, at)
    return number, flags, ".".join(labels) + ".", kind, klass, message[12:at + 4], additional > 0


def label_address(label):
    text = label.replace("-", "." if label.count("-") == 3 else ":")
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


class Zone:
    def __init__(self, apex, opened):
        self.apex = apex
        self.opened = opened and ipaddress.ip_address(opened)
        self.seen = {}
        self.lock = threading.Lock()

    def addresses(self, chosen, kind):
        version = {A: 4, AAAA: 6}.get(kind)
        return [(kind, address.packed) for address in chosen if address and address.version == version]

    def answer(self, name, kind):
        """(rcode, [(type, rdata)…])"""
        if self.opened:
            return NOERROR, self.addresses([self.opened], kind)
        name = name.lower().rstrip(".")
        if name == self.apex:
            return NOERROR, [(NS, wire_name("ns." + self.apex))] if kind == NS else []
        if not name.endswith("." + self.apex):
            return REFUSED, []
        labels = name[:-len(self.apex) - 1].split(".")
        if labels[0].startswith("n-"):
            labels = labels[1:]
        if not labels:
            return NOERROR, []
        mode, arguments = labels[-1], labels[:-1]
        handler = getattr(self, "mode_" + mode, None)
        if handler is None:
            return (NOERROR, []) if mode == "ns" else (NXDOMAIN, [])
        return NOERROR, handler(name, kind, arguments)

    def mode_only(self, _name, kind, arguments):
        return self.addresses(map(label_address, arguments), kind)

    def mode_both(self, _name, kind, arguments):
        return self.addresses(map(label_address, arguments), kind) if len(arguments) > 1 else []

    def mode_flip(self, name, kind, arguments):
        records = self.addresses(map(label_address, arguments), kind)
        if len(arguments) < 2 or not records:
            return []
        with self.lock:
            count = self.seen.get((name, kind), 0)
            self.seen[(name, kind)] = count + 1
        return [records[min(count, len(records) - 1)]]

    def mode_hint(self, _name, kind, arguments):
        if len(arguments) < 2:
            return []
        first, second = map(label_address, arguments[:2])
        if kind == HTTPS and second:
            key = 4 if second.version == 4 else 6
            return [(HTTPS, struct.pack("!H", 1) + b"\0" + struct.pack("!2H", key, len(second.packed)) + second.packed)]
        return self.addresses([first], kind)

    def mode_cname(self, _name, _kind, arguments):
        return [(CNAME, wire_name(".".join(arguments)))] if arguments else []


def reply(zone, message, log, transport):
    question = read_question(message)
    if question is None:
        return None
    number, flags, name, kind, klass, wire, edns = question
    log(f"question {transport} {name} {TYPES.get(kind, kind)}")
    rcode, records = zone.answer(name, kind) if klass == 1 else (REFUSED, [])
    authority = b""
    if not records and rcode in (NOERROR, NXDOMAIN) and not zone.opened:
        apex = wire_name(zone.apex)
        rdata = wire_name("ns." + zone.apex) + wire_name("hostmaster." + zone.apex) + struct.pack("!5I", 1, 3600, 600, 86400, 0)
        authority = apex + struct.pack("!2HIH", SOA, 1, 0, len(rdata)) + rdata
    out = struct.pack("!6H", number, 0x8400 | (flags & 0x0110) | (0x0080 if zone.opened else 0) | rcode, 1, len(records),
                      1 if authority else 0, 1 if edns else 0) + wire
    for record, rdata in records:
        out += b"\xc0\x0c" + struct.pack("!2HIH", record, 1, 0, len(rdata)) + rdata
    out += authority
    if edns:
        out += b"\0" + struct.pack("!2HIH", OPT, 1232, 0, 0)
    return out


def serve_udp(sock, zone, log):
    while True:
        message, peer = sock.recvfrom(4096)
        out = reply(zone, message, log, "udp")
        if out:
            sock.sendto(out, peer)


def serve_stream(connection, zone, log):
    with connection:
        connection.settimeout(5)
        file = connection.makefile("rb")
        try:
            while True:
                head = file.read(2)
                if len(head) < 2:
                    return
                out = reply(zone, file.read(struct.unpack("!H", head)[0]), log, "tcp")
                if out is None:
                    return
                connection.sendall(struct.pack("!H", len(out)) + out)
        except OSError:
            return


def serve_tcp(sock, zone, log):
    while True:
        connection, _ = sock.accept()
        threading.Thread(target=serve_stream, args=(connection, zone, log), daemon=True).start()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zone", default="")
    parser.add_argument("--open", default="")
    parser.add_argument("--address", action="append", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--ready", required=True)
    options = parser.parse_args()
    file = open(options.log, "a", encoding="utf-8", buffering=1)

    def log(line):
        file.write(line + "\n")

    zone = Zone(options.zone, options.open)
    for address in options.address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        for kind, serve in ((socket.SOCK_DGRAM, serve_udp), (socket.SOCK_STREAM, serve_tcp)):
            sock = socket.socket(family, kind)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, 53))
            if kind == socket.SOCK_STREAM:
                sock.listen(64)
            threading.Thread(target=serve, args=(sock, zone, log), daemon=True).start()
    os.close(os.open(options.ready, os.O_CREAT | os.O_WRONLY))
    threading.Event().wait()


if __name__ == "__main__":
    main()
