# SPDX-License-Identifier: GPL-2.0-or-later
"""A small signed DNS in one network namespace, and clients for it.

    lo  93.184.1.1  root      NSD      93.184.1.3  example.lab, unsigned.lab, bogus.lab   NSD
        93.184.1.2  lab       NSD      93.184.1.4  odd.lab: records no server would send  here
        traps at 169.254.169.254, 10.9.9.9, 127.0.0.1 and 93.184.1.9, port 53: glue points at them, nobody may come

    vm0 10.77.0.1, fd77::1 ===== vm1 10.77.0.2, fd77::2 in a namespace of its own: a client behind an interface
"""
import os
import socket
import struct
import subprocess
import threading
import time

TYPES = {"A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "NULL": 10, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "OPT": 41,
         "RRSIG": 46, "DNSKEY": 48, "SVCB": 64, "HTTPS": 65, "ANY": 255}
RCODES = {0: "NOERROR", 1: "FORMERR", 2: "SERVFAIL", 3: "NXDOMAIN", 4: "NOTIMP", 5: "REFUSED", 16: "BADVERS"}

ROOT_ZONE = """
. 3600 SOA a.root. nobody. 1 3600 1200 604800 60
. 3600 NS a.root.
a.root. 3600 A 93.184.1.1
lab. 3600 NS ns.lab.
ns.lab. 3600 A 93.184.1.2
"""
LAB_ZONE = """
lab. 3600 SOA ns.lab. nobody. 1 3600 1200 604800 60
lab. 3600 NS ns.lab.
ns.lab. 3600 A 93.184.1.2
example.lab. 3600 NS ns.example.lab.
ns.example.lab. 3600 A 93.184.1.3
unsigned.lab. 3600 NS ns.unsigned.lab.
ns.unsigned.lab. 3600 A 93.184.1.3
bogus.lab. 3600 NS ns.bogus.lab.
ns.bogus.lab. 3600 A 93.184.1.3
odd.lab. 3600 NS ns.odd.lab.
ns.odd.lab. 3600 A 93.184.1.4
meta.lab. 3600 NS ns.meta.lab.
ns.meta.lab. 3600 A 169.254.169.254
loop.lab. 3600 NS ns.loop.lab.
ns.loop.lab. 3600 A 127.0.0.1
private.lab. 3600 NS ns.private.lab.
ns.private.lab. 3600 A 10.9.9.9
mapped.lab. 3600 NS ns.mapped.lab.
ns.mapped.lab. 3600 AAAA ::ffff:127.0.0.1
open.lab. 3600 NS ns.open.lab.
ns.open.lab. 3600 A 93.184.1.9
"""
HEAD = """
{0}. 3600 SOA ns.{0}. nobody. 1 3600 1200 604800 60
{0}. 3600 NS ns.{0}.
ns.{0}. 3600 A 93.184.1.3
www.{0}. 300 A 93.184.2.1
"""
EXAMPLE_ZONE = HEAD + """
www.{0}. 300 A 93.184.2.2
www.{0}. 300 AAAA 2606:2800:2::1
short.{0}. 1 A 93.184.2.3
*.race.{0}. 300 A 93.184.2.9
alias.{0}. 300 CNAME www.{0}.
chain.{0}. 300 CNAME alias.{0}.
bad.{0}. 300 A 93.184.2.1
bad.{0}. 300 A 10.0.0.5
bad6.{0}. 300 A 93.184.2.1
bad6.{0}. 300 AAAA fd00::5
tobad.{0}. 300 CNAME bad.{0}.
tolocal.{0}. 300 CNAME localhost.
todotless.{0}. 300 CNAME intranet.
tometa.{0}. 300 CNAME metadata.google.internal.
loopback.{0}. 300 A 127.0.0.1
meta.{0}. 300 A 169.254.169.254
mapped.{0}. 300 AAAA ::ffff:169.254.169.254
nat64.{0}. 300 AAAA 64:ff9b::a9fe:a9fe
svc.{0}. 300 HTTPS 1 . alpn=h2 ipv4hint=93.184.2.7 ipv6hint=2606:2800:2::7 ech=AAAA
badhint.{0}. 300 HTTPS 1 . ipv4hint=93.184.2.1,10.0.0.1
svclocal.{0}. 300 HTTPS 0 localhost.
away.{0}. 300 HTTPS 1 pool.{0}. alpn=h2
away2.{0}. 300 HTTPS 0 away.{0}.
pool.{0}. 300 A 93.184.2.40
pool.{0}. 300 AAAA 2606:2800:2::40
_8443._https.away.{0}. 300 HTTPS 1 pool2.{0}. ipv4hint=93.184.2.41
pool2.{0}. 300 A 93.184.2.42
away3.{0}. 300 HTTPS 1 pool3.{0}.
pool3.{0}. 300 A 10.0.0.9
pool3.{0}. 300 AAAA 2606:2800:2::43
mx.{0}. 300 MX 10 www.{0}.
classless.{0}. 300 CNAME 1.0/25.{0}.
1.0/25.{0}. 300 PTR www.{0}.
""" + "".join('big.{0}. 300 TXT "%02d%s"\n' % (i, "x" * 180) for i in range(30))


def run(*words, **options):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


class Dns:
    """Zones, NSD, the odd authority and the traps."""

    def __init__(self, folder):
        self.folder, self.processes, self.trapped, self.asked = folder, [], [], []
        self.broken = set()  # first labels that odd.lab answers with SERVFAIL
        for words in ("link set lo up", "address add 93.184.1.1/32 dev lo", "address add 93.184.1.2/32 dev lo",
                      "address add 93.184.1.3/32 dev lo", "address add 93.184.1.4/32 dev lo",
                      "address add 93.184.1.9/32 dev lo", "address add 169.254.169.254/32 dev lo",
                      "address add 10.9.9.9/32 dev lo", "address add 10.9.9.53/32 dev lo"):
            run("ip", *words.split())
        ds = {}
        for zone in ("example.lab", "bogus.lab"):
            ds[zone] = self.write_zone(zone, EXAMPLE_ZONE.format(zone), True)
        self.write_zone("unsigned.lab", EXAMPLE_ZONE.format("unsigned.lab"), False)
        # The DS of another key: everything below is bogus.
        ds["bogus.lab"] = ds["bogus.lab"][:-9] + "00000000\n"
        lab = self.write_zone("lab", LAB_ZONE + ds["example.lab"] + ds["bogus.lab"], True)
        anchor = self.write_zone(".", ROOT_ZONE + lab, True)
        with open(self.path("root.key"), "w") as file:
            file.write(anchor)
        with open(self.path("root.hints"), "w") as file:
            file.write("; hints\n. 3600000 NS a.root.\na.root. 3600000 A 93.184.1.1\n")
        self.start_nsd("93.184.1.1", ["."])
        self.start_nsd("93.184.1.2", ["lab"])
        self.start_nsd("93.184.1.3", ["example.lab", "unsigned.lab", "bogus.lab"])
        self.start_nsd("10.9.9.53", ["internal"], {"internal": HEAD.format("internal").replace("93.184.2.1", "10.1.2.3")})
        threading.Thread(target=self.serve_odd, daemon=True).start()
        for address in ("169.254.169.254", "10.9.9.9", "127.0.0.1", "93.184.1.9"):
            threading.Thread(target=self.trap, args=(address,), daemon=True).start()

    def path(self, name):
        return os.path.join(self.folder, name)

    def file_of(self, zone):
        return self.path("zone-" + ("root" if zone == "." else zone))

    def write_zone(self, zone, text, signed):
        """Writes and signs a zone; returns its DS record."""
        name = self.file_of(zone)
        with open(name, "w") as file:
            file.write(text)
        if not signed:
            return ""
        key = run("ldns-keygen", "-a", "ECDSAP256SHA256", "-k", "-r", "/dev/urandom", zone, cwd=self.folder).strip()
        run("ldns-signzone", "-f", name + ".signed", name, key, cwd=self.folder)
        os.replace(name + ".signed", name)
        return run("ldns-key2ds", "-n", "-2", self.path(key + ".key"))

    def start_nsd(self, address, zones, texts=None):
        for zone, text in (texts or {}).items():
            self.write_zone(zone, text, False)
        name = self.path("nsd-" + address)
        with open(name, "w") as file:
            file.write(f"server:\n ip-address: {address}\n username: \"\"\n chroot: \"\"\n database: \"\"\n pidfile: \"\"\n"
                       f" zonelistfile: {name}.list\n xfrdfile: {name}.xfrd\n xfrdir: {self.folder}\n verbosity: 0\n"
                       " server-count: 1\nremote-control:\n control-enable: no\n")
            for zone in zones:
                file.write(f"zone:\n name: \"{zone}\"\n zonefile: {self.file_of(zone)}\n")
        self.processes.append(subprocess.Popen(["/usr/sbin/nsd", "-d", "-c", name], stdout=subprocess.DEVNULL,
                                               stderr=subprocess.DEVNULL))
        wait_for(lambda: Client(address).ask(zones[0] + ".", "SOA", flags=0).rcode == "NOERROR", f"NSD at {address}")

    def trap(self, address):
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind((address, 53))
        while True:
            data, peer = server.recvfrom(4096)
            self.trapped.append(address)

    def serve_odd(self):
        """odd.lab: the RDATA of what is asked, whatever its type."""
        answers = {
            "a3": ("A", b"\1\2\3"), "a5": ("A", b"\x5d\xb8\2\1\0"), "aaaa15": ("AAAA", b"\x26\6" + bytes(13)),
            "good": ("A", b"\x5d\xb8\2\1"), "fleeting": ("A", b"\x5d\xb8\2\1"), "hint3": ("HTTPS", b"\0\1\0\0\4\0\3\1\2\3"),
            "order": ("HTTPS", b"\0\1\0\0\4\0\4\x5d\xb8\2\1\0\1\0\3\2h2"),
            "oddname": ("CNAME", b"\3a b\3odd\3lab\0"),
        }
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("93.184.1.4", 53))
        while True:
            data, peer = server.recvfrom(4096)
            labels, at = [], 12
            while data[at]:
                labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1").lower())
                at += 1 + data[at]
            question, qtype = data[12:at + 5], struct.unpack("!H", data[at + 1:at + 3])[0]
            self.asked.append((".".join(labels), qtype))
            if labels[0] == "slow":
                continue
            if labels[0] in self.broken:
                server.sendto(data[:2] + struct.pack("!HHHHH", 0x8402, 1, 0, 0, 0) + question, peer)
                continue
            kind, rdata = answers.get(labels[0], (None, None))
            record = b""
            if kind and (TYPES[kind] == qtype or kind == "CNAME"):
                record = b"\xc0\x0c" + struct.pack("!HHIH", TYPES[kind], 1, 1 if labels[0] == "fleeting" else 60,
                                                   len(rdata)) + rdata
            server.sendto(data[:2] + struct.pack("!HHHHH", 0x8400, 1, 1 if record else 0, 0, 0) + question + record, peer)

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()


def wait_for(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.02)
    raise SystemExit(f"no {what} after {seconds} s")


def wire_name(name):
    if isinstance(name, bytes):
        return name
    return b"".join(bytes([len(part)]) + part.encode("latin-1") for part in name.rstrip(".").split(".") if part) + b"\0"


class Reply:
    """An answer taken apart."""

    def __init__(self, data):
        self.data = data
        self.id, flags, questions, *counts = struct.unpack("!6H", data[:12])
        self.flags = {name for name, bit in (("qr", 0x8000), ("aa", 0x400), ("tc", 0x200), ("rd", 0x100), ("ra", 0x80),
                                             ("ad", 0x20), ("cd", 0x10)) if flags & bit}
        code, at = flags & 15, 12
        self.sections, self.edns, self.ede = [], False, None
        for _ in range(questions):
            self.question, at = self.name(at)
            at += 4
        for count in counts:
            section = []
            for _ in range(count):
                owner, at = self.name(at)
                kind, klass, ttl, length = struct.unpack("!HHIH", data[at:at + 10])
                at += 10
                if kind == TYPES["OPT"]:
                    self.edns, code = True, code | ttl >> 24 << 4
                    self.options(data[at:at + length])
                else:
                    section.append((owner, kind, ttl, self.value(kind, at, length)))
                at += length
            self.sections.append(section)
        assert at == len(data), "trailing octets"
        self.rcode = RCODES.get(code, code)
        self.answer, self.authority, self.additional = self.sections

    def name(self, at):
        labels, end = [], None
        while True:
            length = self.data[at]
            if length >= 0xC0:
                end = end or at + 2
                at = struct.unpack("!H", self.data[at:at + 2])[0] & 0x3FFF
            elif length == 0:
                return ".".join(labels) + ".", end or at + 1
            else:
                labels.append(self.data[at + 1:at + 1 + length].decode("latin-1"))
                at += 1 + length

    def value(self, kind, at, length):
        data = self.data[at:at + length]
        if kind == TYPES["A"] and length == 4:
            return socket.inet_ntop(socket.AF_INET, data)
        if kind == TYPES["AAAA"] and length == 16:
            return socket.inet_ntop(socket.AF_INET6, data)
        if kind in (TYPES["CNAME"], TYPES["PTR"], TYPES["NS"]):
            return self.name(at)[0]
        return data

    def options(self, data):
        while data:
            code, length = struct.unpack("!HH", data[:4])
            if code == 15:
                self.ede = (struct.unpack("!H", data[4:6])[0], data[6:4 + length].decode())
            data = data[4 + length:]

    def values(self, kind):
        return sorted(value for _, k, _, value in self.answer if k == TYPES[kind])


def question(name, kind, ident=1, flags=0x100, edns=None, do=False, version=0, klass=1):
    kind = TYPES.get(kind, kind)
    data = struct.pack("!6H", ident, flags, 1, 0, 0, 0 if edns is None else 1) + wire_name(name)
    data += struct.pack("!HH", kind, klass)
    if edns is not None:
        data += b"\0" + struct.pack("!HHIH", 41, edns, version << 16 | (0x8000 if do else 0), 0)
    return data


class Client:
    def __init__(self, server, port=53, timeout=15, source=None, uid=None):
        self.server, self.port, self.timeout, self.source = server, port, timeout, source
        self.family = socket.AF_INET6 if ":" in server else socket.AF_INET

    def connect(self, kind):
        client = socket.socket(self.family, kind)
        client.settimeout(self.timeout)
        if self.source:
            client.bind((self.source, 0))
        client.connect((self.server, self.port))
        return client

    def send(self, data):
        """One datagram; the raw reply, or None."""
        with self.connect(socket.SOCK_DGRAM) as client:
            client.send(data)
            try:
                return client.recv(65535)
            except socket.timeout:
                return None

    def ask(self, name, kind="A", **options):
        data = question(name, kind, **options)
        return Reply(self.send(data) or b"")

    def ask_tcp(self, name, kind="A", **options):
        with self.connect(socket.SOCK_STREAM) as client:
            data = question(name, kind, **options)
            client.sendall(struct.pack("!H", len(data)) + data)
            return Reply(read_tcp(client))


def read_exactly(client, count):
    data = b""
    while len(data) < count:
        part = client.recv(count - len(data))
        if not part:
            return None
        data += part
    return data


def read_tcp(client):
    """One message of a stream, None at its end."""
    head = read_exactly(client, 2)
    return None if head is None else read_exactly(client, struct.unpack("!H", head)[0])


class Resolver:
    """pinfold-resolver under its stand-in parent."""

    def __init__(self, parent, executable, config, uid=65534):
        self.process = subprocess.Popen([parent, executable, config, str(uid)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)
        self.lines, self.news = [], threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.strip())
                self.news.notify_all()
        with self.news:
            self.lines.append("end-of-output")
            self.news.notify_all()

    def mark(self):
        with self.news:
            return len(self.lines)

    def wait(self, beginning, start=0, seconds=15):
        """The first line from START on that begins with one of BEGINNING."""
        beginning = (beginning,) if isinstance(beginning, str) else beginning
        end = time.monotonic() + seconds
        with self.news:
            while True:
                for line in self.lines[start:]:
                    if line.startswith(beginning):
                        return line
                if self.lines and self.lines[-1] == "end-of-output":
                    return "end-of-output"
                if not self.news.wait(max(0, end - time.monotonic())) and time.monotonic() >= end:
                    return f"nothing after {seconds} s"

    def command(self, line, answer, seconds=60):
        start = self.mark()
        self.process.stdin.write(line + "\n")
        return self.wait(answer, start, seconds)

    def pins(self):
        """{(client, name, address): seconds}"""
        start = self.mark()
        self.process.stdin.write("pins\n")
        self.wait("end", start)
        with self.news:
            rows = [line.split() for line in self.lines[start:] if line.startswith("pin ")]
        return {(row[1], row[2], row[3]): int(row[4]) for row in rows}

    def status(self):
        line = self.command("status", "status ")
        return {key: int(value) for key, value in (word.split("=") for word in line.split()[1:])}

    def audits(self, start=0):
        with self.news:
            return [line for line in self.lines[start:] if line.startswith("audit ")]

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)
