#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What pinfold-resolver answers, over UDP and TCP, IPv4 and IPv6, from a small signed DNS (fixture.py).

    resolver.py PARENT RESOLVER        prints TAP; runs in a network namespace of its own
"""
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback

from fixture import Client, Dns, Reply, Resolver, question, read_tcp, run, wait_for

HOST = "ff02" + "00" * 14
CASES = []
CONFIG = """
resolver:
  listen: ["127.0.0.1@5353", "::1@5353", "10.77.0.1@53", "fd77::1@53"]
  clients: [127.0.0.0/8, "::1/128", 10.77.0.0/24, "fd77::/64"]
  trust_anchor: {folder}/root.key
  root_hints: {folder}/root.hints
  hosts: {{"build.internal": [10.1.1.1, "fd00::11"]}}
  forward: {{internal: [10.9.9.53]}}
{resolver}
gate: {{govern: all, hook: {hook}}}
log: {{allowed: false}}
{clients}
policies:
  default: {{}}
{policies}
"""


def case(function):
    CASES.append(function)
    return function


def config(folder, name="pinfold.yaml", resolver="", clients="", policies="", hook="output"):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(CONFIG.format(folder=folder, resolver=resolver, clients=clients, policies=policies, hook=hook))
    return path


def replace(path, old, new):
    with open(path) as file:
        text = file.read()
    assert old in text, old
    with open(path, "w") as file:
        file.write(text.replace(old, new))


def same(got, wanted):
    assert got == wanted, f"{got!r}, not {wanted!r}"


def as_user(uid, function):
    """What FUNCTION returns in a process of that user, as text."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            os.write(writing, repr(function()).encode())
        except BaseException as problem:
            os.write(writing, repr(problem).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read().decode()
    os.waitpid(pid, 0)
    return text


def refused(reply, reason):
    same(reply.rcode, "NXDOMAIN")
    same(reply.answer, [])
    same([(kind, ttl) for _, kind, ttl, _ in reply.authority], [(6, 10)])
    same(reply.ede, (15, reason))


@case
def addresses_of_a_name(t):
    "A and AAAA of a signed name: both families of transport, AD only when asked for, pins with TTL and grace"
    for client in (t.v4, t.v6):
        reply = client.ask("WWW.example.lab")
        same(reply.rcode, "NOERROR")
        same(reply.values("A"), ["93.184.2.1", "93.184.2.2"])
        same(reply.question, "WWW.example.lab.")
        same(reply.flags, {"qr", "rd", "ra"})
        same(reply.edns, False)
        same(reply.authority + reply.additional, [])
    reply = t.v4.ask("www.example.lab", "AAAA", flags=0x120)
    same(reply.values("AAAA"), ["2606:2800:2::1"])
    assert "ad" in reply.flags
    pins = t.resolver.pins()
    for address in ("93.184.2.1", "93.184.2.2", "2606:2800:2::1"):
        assert 300 <= pins[(HOST, "www.example.lab", address)] <= 400, pins
    t.v4.ask("short.example.lab")
    assert 55 <= t.resolver.pins()[(HOST, "short.example.lab", "93.184.2.3")] <= 130


@case
def dnssec_for_those_who_ask(t):
    "DO brings signatures and AD; without it there is none, but the type that was asked for"
    reply = t.v4.ask("www.example.lab", edns=1232, do=True)
    assert "ad" in reply.flags and reply.edns
    same(sorted({kind for _, kind, _, _ in reply.answer}), [1, 46])
    same({kind for _, kind, _, _ in t.v4.ask("www.example.lab", edns=1232).answer}, {1})
    same({kind for _, kind, _, _ in t.v4.ask("example.lab", "DNSKEY").answer}, {48})
    assert "ad" not in t.v4.ask("www.unsigned.lab", edns=1232, do=True).flags
    reply = t.v4.ask("nothing.example.lab", edns=1232, do=True)
    same(reply.rcode, "NXDOMAIN")
    assert 47 in {kind for _, kind, _, _ in reply.authority} and "ad" in reply.flags
    same(reply.ede, None)


@case
def negative_answers(t):
    "NXDOMAIN and NODATA come through with the zone's own SOA"
    reply = t.v4.ask("nothing.example.lab", edns=1232)
    same(reply.rcode, "NXDOMAIN")
    same([(owner, kind) for owner, kind, _, _ in reply.authority], [("example.lab.", 6)])
    reply = t.v4.ask("www.example.lab", "MX")
    same((reply.rcode, reply.answer), ("NOERROR", []))
    same([kind for _, kind, _, _ in reply.authority], [6])


@case
def bogus_data(t):
    "bogus data is SERVFAIL with EDE 6 and a reason, CD or not"
    for flags in (0x100, 0x110):
        reply = t.v4.ask("www.bogus.lab", edns=1232, flags=flags)
        same(reply.rcode, "SERVFAIL")
        same(reply.answer, [])
        same(reply.ede[0], 6)
        assert "validation failure" in reply.ede[1] or "DS" in reply.ede[1] or "signature" in reply.ede[1], reply.ede
    same(t.v4.ask("www.bogus.lab").ede, None)
    assert not [pin for pin in t.resolver.pins() if pin[1] == "www.bogus.lab"]


@case
def rebinding(t):
    "a public name with a private address is refused whole, first time and from the cache, behind a CNAME too"
    start = t.resolver.mark()
    for name in ("bad", "bad", "tobad"):
        refused(t.v4.ask(name + ".example.lab", edns=1232), "rebinding")
        refused(t.v4.ask(name + ".unsigned.lab", edns=1232), "rebinding")
    same(t.v4.ask("bad6.example.lab").values("A"), ["93.184.2.1"])
    refused(t.v4.ask("bad6.example.lab", "AAAA", edns=1232), "rebinding")
    refused(t.v4.ask("loopback.example.lab", edns=1232), "rebinding")
    line = t.resolver.wait("audit answer deny rebinding", start)
    assert "client=host name=bad.example.lab qtype=1" in line and "10.0.0.5" in line, line
    assert not [pin for pin in t.resolver.pins() if pin[1].startswith(("bad.", "tobad.", "loopback."))]


@case
def metadata_addresses(t):
    "floor addresses in any form, and CNAMEs to floor names, are `metadata`"
    refused(t.v4.ask("meta.example.lab", edns=1232), "metadata")
    refused(t.v4.ask("mapped.example.lab", "AAAA", edns=1232), "metadata")
    refused(t.v4.ask("nat64.example.lab", "AAAA", edns=1232), "metadata")
    refused(t.v4.ask("tometa.example.lab", edns=1232), "metadata")


@case
def targets(t):
    "CNAMEs into localhost or a dotless name are refused; a good chain is pinned under the name asked"
    refused(t.v4.ask("tolocal.example.lab", edns=1232), "rebinding")
    refused(t.v4.ask("todotless.example.lab", edns=1232), "rebinding")
    reply = t.v4.ask("chain.example.lab")
    same(reply.values("A"), ["93.184.2.1", "93.184.2.2"])
    same(reply.values("CNAME"), ["alias.example.lab.", "www.example.lab."])
    pins = t.resolver.pins()
    assert (HOST, "chain.example.lab", "93.184.2.1") in pins and (HOST, "alias.example.lab", "93.184.2.1") not in pins
    same(t.v4.ask("classless.example.lab", "PTR").values("PTR"), ["www.example.lab."])


@case
def services(t):
    "HTTPS: hints are pinned, `ech` goes with signatures and AD, bad hints and targets refuse the whole"
    reply = t.v4.ask("svc.example.lab", "HTTPS", edns=1232, do=True)
    same(len(reply.answer), 1)
    same(reply.answer[0][3], bytes.fromhex("000100" "00010003026832" "00040004" "5db80207" "00060010"
                                           "26062800000200000000000000000007"))
    assert "ad" not in reply.flags
    pins = t.resolver.pins()
    assert (HOST, "svc.example.lab", "93.184.2.7") in pins and (HOST, "svc.example.lab", "2606:2800:2::7") in pins
    refused(t.v4.ask("badhint.example.lab", "HTTPS", edns=1232), "rebinding")
    refused(t.v4.ask("svclocal.example.lab", "HTTPS", edns=1232), "rebinding")


@case
def aliases(t):
    "an HTTPS record that sends the client to another name: addresses of that one are pinned for the first too"
    def pinned(name, address):
        return (HOST, name + ".example.lab", address) in t.resolver.pins()
    same(t.v4.ask("pool.example.lab").values("A"), ["93.184.2.40"])
    assert not pinned("away", "93.184.2.40")
    same(len(t.v4.ask("away.example.lab", "HTTPS").answer), 1)
    assert pinned("away", "93.184.2.40"), "what the client had before"
    assert not pinned("away", "2606:2800:2::40"), "what the client was not told"
    t.v4.ask("pool.example.lab", "AAAA")
    assert pinned("away", "2606:2800:2::40")
    t.v4.ask("away2.example.lab", "HTTPS")
    t.v4.ask("away.example.lab", "HTTPS")
    t.v4.ask("pool.example.lab")
    assert pinned("away2", "93.184.2.40"), "by way of another alias"
    t.v4.ask("_8443._https.away.example.lab", "HTTPS")
    t.v4.ask("pool2.example.lab")
    assert pinned("away", "93.184.2.41") and pinned("away", "93.184.2.42")
    # Others have no part in it, and what the name itself may not have is not pinned for it.
    assert not [pin for pin in t.resolver.pins() if pin[1].startswith("away") and pin[0] != HOST]


@case
def malformed_answers(t):
    "records of the wrong size and odd names for hosts are refused as malformed"
    same(t.v4.ask("good.odd.lab").values("A"), ["93.184.2.1"])
    for name, kind in (("a3", "A"), ("a5", "A"), ("aaaa15", "AAAA"), ("hint3", "HTTPS"), ("order", "HTTPS"),
                       ("oddname", "A")):
        reply = t.v4.ask(name + ".odd.lab", kind, edns=1232)
        assert (reply.rcode, reply.ede) == ("NXDOMAIN", (15, "malformed")) or reply.rcode == "SERVFAIL", \
            (name, reply.rcode, reply.ede)
        same(reply.answer, [])


@case
def refused_names_stay_here(t):
    "a refused question is never sent upstream, and says why"
    t.dns.asked.clear()
    for name, kind, reason in (("1.2.3.4.odd.lab.0x7f", "A", "malformed"), ("metadata.google.internal", "A", "metadata"),
                               ("metadata", "AAAA", "metadata"), ("x.metadata.goog", "HTTPS", "metadata"),
                               ("dns.google", "A", "encrypted_dns"), ("use-application-dns.net", "A", "encrypted_dns"),
                               ("mask.icloud.com", "HTTPS", "encrypted_dns"), ("printer.local", "A", "special_name"),
                               ("nas.lan", "A", "special_name"), ("intranet", "A", "special_name"),
                               ("x.onion", "A", "special_name"), ("tunnel.odd.lab", "NULL", "qtype"),
                               ("any.odd.lab", "ANY", "qtype"), (b"\x03a b\x03odd\x03lab\0", "A", "malformed")):
        reply = t.v4.ask(name, kind, edns=1232)
        try:
            refused(reply, reason)
        except AssertionError as problem:
            raise AssertionError(f"{name} {kind}: {problem}") from problem
    same(t.dns.asked, [])


@case
def local_names(t):
    "localhost, reverse zones, resolver.arpa, ipv4only.arpa and static names are answered here"
    same(t.v4.ask("localhost").values("A"), ["127.0.0.1"])
    same(t.v4.ask("a.localhost", "AAAA").values("AAAA"), ["::1"])
    reply = t.v4.ask("localhost", "TXT")
    same((reply.rcode, reply.answer), ("NOERROR", []))
    same(t.v4.ask("1.0.0.10.in-addr.arpa", "PTR", edns=1232).rcode, "NXDOMAIN")
    same(t.v4.ask("1.0.0.10.in-addr.arpa", "PTR", edns=1232).ede, None)
    reply = t.v4.ask("_dns.resolver.arpa", 64, edns=1232)
    same((reply.rcode, reply.answer, reply.ede), ("NOERROR", [], None))
    same(t.v4.ask("ipv4only.arpa").values("A"), ["192.0.0.170", "192.0.0.171"])
    same(t.v4.ask("build.internal").values("A"), ["10.1.1.1"])
    same(t.v4.ask("build.internal", "AAAA").values("AAAA"), ["fd00::11"])
    assert (HOST, "build.internal", "10.1.1.1") in t.resolver.pins()


@case
def forwarders(t):
    "a forwarder on a private address serves its zone, which has no chain of trust"
    same(t.v4.ask("www.internal").values("A"), ["10.1.2.3"])


@case
def truncation_and_tcp(t):
    "an answer over the client's size is truncated to nothing, and whole over TCP"
    for edns, limit in ((None, 512), (512, 512), (1232, 1232), (4096, 1232)):
        raw = t.v4.send(question("big.example.lab", "TXT", edns=edns))
        reply = Reply(raw)
        assert "tc" in reply.flags and reply.answer == [] and len(raw) <= limit
    reply = t.v4.ask_tcp("big.example.lab", "TXT")
    same((len(reply.answer), "tc" in reply.flags), (30, False))
    same(t.v6.ask_tcp("www.example.lab").values("A"), ["93.184.2.1", "93.184.2.2"])


@case
def tcp_streams(t):
    "TCP: pipelined and cut queries, a half-closed client, junk and idle connections"
    names = [f"t{i}.race.example.lab" for i in range(100)]
    with t.v4.connect(socket.SOCK_STREAM) as client:
        data = b"".join(struct.pack("!H", len(q)) + q for q in (question(n, "A", ident=i) for i, n in enumerate(names)))
        for at in range(0, len(data), 7):
            client.sendall(data[at:at + 7])
        client.shutdown(socket.SHUT_WR)
        seen = set()
        while True:
            message = read_tcp(client)
            if message is None:
                break
            reply = Reply(message)
            same(reply.values("A"), ["93.184.2.9"])
            same(reply.question, names[reply.id] + ".")
            seen.add(reply.id)
        same(len(seen), 100)
    for junk in (b"\0\0", b"\xff\xff" + bytes(100), b"\0\5abcde"):
        with t.v4.connect(socket.SOCK_STREAM) as client:
            client.sendall(junk)
            client.shutdown(socket.SHUT_WR)
            same(read_tcp(client), None)
    many = [t.v4.connect(socket.SOCK_STREAM) for _ in range(40)]
    time.sleep(0.3)
    gone = 0
    for client in many:
        client.setblocking(False)
        try:
            gone += client.recv(1) == b""
        except BlockingIOError:
            pass
        except ConnectionResetError:
            gone += 1
        client.close()
    same(gone, 8)
    same(t.v4.ask("www.example.lab").rcode, "NOERROR")


@case
def tcp_of_a_network(t):
    "TCP: the addresses of one IPv6 network share its connections, another network has its own"
    addresses = [f"2606:4700:{net}::{host}" for net in (77, 78) for host in (1, 2)]
    for address in addresses:
        run("ip", "address", "add", address + "/128", "dev", "lo", "nodad")

    def connect(source):
        client = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        client.settimeout(0.3)
        client.bind((source, 0))
        client.connect(("::1", 5353))
        return client

    def stays(client):
        try:
            return client.recv(1) != b""
        except TimeoutError:
            return True
        except ConnectionResetError:
            return False

    held = [connect(addresses[0]) for _ in range(32)]
    same([stays(held[-1])] + [stays(connect(address)) for address in addresses], [True, False, False, True, True])
    for client in held:
        client.close()
    for address in addresses:
        run("ip", "address", "del", address + "/128", "dev", "lo")


@case
def odd_queries(t):
    "FORMERR, NOTIMP, BADVERS, REFUSED and silence"
    good = question("www.example.lab", "A")
    same(t.v4.ask("www.example.lab", edns=1232, version=1).rcode, "BADVERS")
    same(t.v4.ask("version.bind", "TXT", klass=3).rcode, "REFUSED")
    same(t.v4.ask("www.example.lab", flags=0).rcode, "REFUSED")
    same(Reply(t.v4.send(good[:2] + b"\x29" + good[3:])).rcode, "NOTIMP")
    same(Reply(t.v4.send(good + b"x")).rcode, "FORMERR")
    same(Reply(t.v4.send(good[:-1])).rcode, "FORMERR")
    quick = Client("127.0.0.1", 5353, timeout=0.3)
    same(quick.send(good[:2] + b"\x81" + good[3:]), None)
    same(quick.send(b"abc"), None)
    same(quick.send(b""), None)


@case
def fuzzed_queries(t):
    "20,000 broken queries, then a proper one"
    random.seed(3)
    base = [question("www.example.lab", "A", edns=1232), question("localhost", "AAAA"), question("a.localhost", "HTTPS")]
    for kind, rounds in ((socket.SOCK_DGRAM, 20000), (socket.SOCK_STREAM, 300)):
        client = t.v4.connect(kind)
        for i in range(rounds):
            data = bytearray(random.choice(base))
            for _ in range(random.randrange(6)):
                data[random.randrange(len(data))] = random.randrange(256)
            # No name under odd.lab or the like: what is asked upstream must exist in the fixture.
            data = bytes(data[:random.choice((len(data), random.randrange(len(data) + 1)))])
            try:
                client.send(data if kind == socket.SOCK_DGRAM else struct.pack("!H", random.choice((len(data), 7))) + data)
            except OSError:
                client.close()
                client = t.v4.connect(kind)
        client.close()
    wait_for(lambda: t.v4.ask("www.example.lab").rcode == "NOERROR", "answer after the fuzz", 30)


@case
def networks(t):
    "who is not in `clients` gets REFUSED and no data"
    run("ip", "address", "add", "172.30.0.1/32", "dev", "lo")
    stranger = Client("127.0.0.1", 5353, source="172.30.0.1")
    reply = stranger.ask("www.example.lab", edns=1232)
    same((reply.rcode, reply.answer, reply.ede), ("REFUSED", [], None))


@case
def other_namespace(t):
    "a client behind an interface is a client of its own; the answer leaves from the address that was asked"
    for server, key in (("10.77.0.1", "00" * 10 + "ffff" + "0a4d0002"), ("fd77::1", "fd77" + "00" * 13 + "02")):
        for tcp in ("0", "1"):
            text = run("nsenter", "-t", str(t.vm.pid), "-n", sys.executable, "-c",
                       "import sys; sys.path.insert(0, sys.argv[1]); from fixture import Client\n"
                       "c = Client(sys.argv[2]); print((c.ask_tcp if sys.argv[3] == '1' else c.ask)('alias.example.lab').values('A'))",
                       os.path.dirname(os.path.abspath(__file__)), server, tcp)
            same(text.strip(), "['93.184.2.1', '93.184.2.2']")
        assert (key, "alias.example.lab", "93.184.2.1") in t.resolver.pins()


@case
def pin_before_reply(t):
    "5,000 answers: the pin is there whenever the reply is"
    same(t.resolver.command("race 127.0.0.1@5353 race.example.lab 93.184.2.9 5000", "race"), "race late=0 unanswered=0")


@case
def glue(t):
    "glue never leads to metadata, loopback or private servers; the trap works"
    quick = Client("127.0.0.1", 5353, timeout=20)
    t.dns.trapped.clear()
    for zone in ("meta", "loop", "private", "mapped"):
        same(quick.ask("www." + zone + ".lab").rcode, "SERVFAIL")
    same(t.dns.trapped, [])
    # The same with a public address reaches its trap, so the traps are not deaf.
    quick.timeout = 2
    quick.send(question("www.open.lab", "A"))
    wait_for(lambda: "93.184.1.9" in t.dns.trapped, "query at the open trap")


@case
def slow_servers(t):
    "a server that is silent: SERVFAIL within 15 s, one lookup for many askers"
    t.dns.asked.clear()
    clients = [t.v4.connect(socket.SOCK_DGRAM) for _ in range(20)]
    for i, client in enumerate(clients):
        client.send(question("slow.odd.lab", "A", ident=i, edns=1232))
    start = time.monotonic()
    for i, client in enumerate(clients):
        reply = Reply(client.recv(4096))
        same((reply.id, reply.rcode), (i, "SERVFAIL"))
        client.close()
    assert time.monotonic() - start < 15
    assert len([name for name, _ in t.dns.asked if name == "slow.odd.lab"]) < 15


@case
def status(t):
    "the counters count"
    before = t.resolver.status()
    t.v4.ask("www.example.lab")
    t.v4.ask("metadata.goog")
    after = t.resolver.status()
    same(after["queries"] - before["queries"], 2)
    same(after["answers"] - before["answers"], 2)
    same(after["refused_answers"] - before["refused_answers"], 1)


@case
def audit_limit(t):
    "a client that is denied without end is not logged without end"
    time.sleep(1)
    start = t.resolver.mark()
    for _ in range(300):
        t.v4.ask("metadata.goog")
    t.resolver.status()
    count = len(t.resolver.audits(start))
    assert 10 <= count <= 60, count
    time.sleep(0.5)
    start = t.resolver.mark()
    t.v4.ask("metadata.goog")
    assert "suppressed=0" not in t.resolver.wait("audit resolve deny metadata", start)


@case
def users(t):
    "uid clients: the owner of the asking socket, over UDP and TCP, both families"
    path = config(t.folder, "users.yaml", clients="clients:\n  - {name: runner, uid: 4321, policy: strict}",
                  policies="  strict: {default: deny, allow_hosts: [example.lab]}")
    same(t.resolver.command("reload " + path, ("reloaded", "failed")), "reloaded")
    def ask_all():
        return [(ask("www.unsigned.lab", edns=1232).ede, ask("alias.example.lab").rcode)
                for client in (t.v4, t.v6) for ask in (client.ask, client.ask_tcp)]
    same(as_user(4321, ask_all), repr([((15, "not_allowlisted"), "NOERROR")] * 4))
    same(t.v4.ask("www.unsigned.lab").rcode, "NOERROR")
    keys = {pin[0] for pin in t.resolver.pins() if pin[1] == "alias.example.lab"}
    assert any(key.startswith("ff01") for key in keys), keys


@case
def closed_sockets(t):
    "a socket that was closed right after the query has no owner: not root's, and its name is not sent upstream"
    def ask_and_close(kind, name):
        client = t.v4.connect(kind)
        data = question(name, "A")
        client.send(data if kind == socket.SOCK_DGRAM else struct.pack("!H", len(data)) + data)
        client.close()

    pid = int(t.resolver.wait("pid").split()[1])
    t.dns.asked.clear()
    for number, kind in enumerate((socket.SOCK_DGRAM, socket.SOCK_STREAM)):
        os.kill(pid, signal.SIGSTOP)
        try:
            same(as_user(4321, lambda: ask_and_close(kind, f"leak{number}.odd.lab")), "None")
            time.sleep(0.2)  # until the FIN is acknowledged and the client's socket is a shadow of itself
        finally:
            os.kill(pid, signal.SIGCONT)
    t.v4.ask("good.odd.lab")
    time.sleep(0.5)
    t.v4.ask("www.example.lab")
    same([name for name, _ in t.dns.asked if name.startswith("leak")], [])


@case
def root_is_not_governed(t):
    "`govern: users`: uid 0 is not judged and not pinned, other users are"
    path = config(t.folder, "root.yaml")
    replace(path, "govern: all", "govern: users")
    same(t.resolver.command("reload " + path, ("reloaded", "failed")), "reloaded")
    same(t.v4.ask("bad.example.lab").values("A"), ["10.0.0.5", "93.184.2.1"])
    same(t.v4.ask_tcp("meta.example.lab").values("A"), ["169.254.169.254"])
    assert not [pin for pin in t.resolver.pins() if pin[1] in ("bad.example.lab", "meta.example.lab")]
    same(as_user(4321, lambda: (t.v4.ask("bad.example.lab", edns=1232).ede, t.v6.ask_tcp("meta.example.lab", edns=1232).ede)),
         repr(((15, "rebinding"), (15, "metadata"))))


@case
def aliases_under_policy(t):
    "what a target may answer and the name itself may not is not pinned for the name"
    path = config(t.folder, "aliases.yaml")
    replace(path, "default: {}", "default: {allow_private_answers: [pool3.example.lab]}")
    same(t.resolver.command("reload " + path, ("reloaded", "failed")), "reloaded")
    same(len(t.v4.ask("away3.example.lab", "HTTPS").answer), 1)
    same(t.v4.ask("pool3.example.lab").values("A"), ["10.0.0.9"])
    same(t.v4.ask("pool3.example.lab", "AAAA").values("AAAA"), ["2606:2800:2::43"])
    pins = t.resolver.pins()
    assert (HOST, "pool3.example.lab", "10.0.0.9") in pins and (HOST, "away3.example.lab", "10.0.0.9") not in pins
    assert (HOST, "away3.example.lab", "2606:2800:2::43") in pins


@case
def kept_answers(t):
    "a kept answer differs from the first in nothing but the TTL, is pinned again, and is nobody else's business"
    def hits():
        return t.resolver.status()["cache_hits"]
    for name, kind in (("kept.race.example.lab", "A"), ("chain.example.lab", "A"), ("no.example.lab", "AAAA"),
                       ("example.lab", "DNSKEY"), ("big.example.lab", "TXT"), ("www.bogus.lab", "A")):
        for edns, do in ((None, False), (1232, False), (1232, True)):
            query = question(name, kind, ident=7, edns=edns, do=do)
            first = Reply(t.v4.send(query))
            t.dns.asked.clear()
            before = hits()
            again = Reply(t.v4.send(query))
            same(hits(), before + 1)
            same(t.dns.asked, [])
            for part in ("rcode", "flags", "question", "ede", "edns"):
                same(getattr(again, part), getattr(first, part))
            for old, new in zip(first.answer + first.authority, again.answer + again.authority, strict=True):
                same((new[0], new[1], new[3]), (old[0], old[1], old[3]))
                assert 0 <= old[2] - new[2] <= 2, (old, new)
    name = "short.example.lab"
    t.v4.ask(name)
    time.sleep(1.1)
    before = hits()
    same(t.v4.ask(name).values("A"), ["93.184.2.3"])
    same(hits(), before)


@case
def failures_are_kept(t):
    "a name that cannot be resolved is not asked again at once; with serve_stale its last answer is given, and pinned"
    name = "fleeting.odd.lab"
    for stale in (False, True):
        path = config(t.folder, "stale.yaml", resolver="  serve_stale: 3600" if stale else "")
        same(t.resolver.command("reload " + path, ("reloaded", "failed")), "reloaded")
        t.dns.broken.clear()
        same(t.v4.ask(name).values("A"), ["93.184.2.1"])
        t.dns.broken.add("fleeting")
        time.sleep(2.1)
        t.dns.asked.clear()
        for _ in range(3):
            reply = t.v4.ask(name, edns=1232)
            if stale:
                same((reply.rcode, reply.values("A"), reply.ede), ("NOERROR", ["93.184.2.1"], (3, "")))
                same(reply.answer[0][2], 30)
            else:
                same((reply.rcode, reply.answer), ("SERVFAIL", []))
            asked = len(t.dns.asked)
            assert asked > 0
        same(len(t.dns.asked), asked)
        assert (HOST, name, "93.184.2.1") in t.resolver.pins()
    t.dns.broken.clear()


@case
def rate(t):
    "a client has so many lookups a second; kept answers are no lookups"
    path = config(t.folder, "rate.yaml", resolver="  client_rate: 5")
    same(t.resolver.command("reload " + path, ("reloaded", "failed")), "reloaded")
    same(t.v4.ask("www.example.lab").rcode, "NOERROR")
    replies = [t.v4.ask(f"rate{i}.race.example.lab", edns=1232) for i in range(40)]
    late = [reply for reply in replies if reply.rcode == "SERVFAIL"]
    assert 20 <= len(late) <= 31, len(late)
    same({reply.ede for reply in late}, {(0, "too many questions a second")})
    for _ in range(40):
        same(t.v4.ask("www.example.lab").rcode, "NOERROR")
    same(t.resolver.command("reload " + config(t.folder), ("reloaded", "failed")), "reloaded")


@case
def reload_while_waiting(t):
    "a query that waits is judged by the policy of the time of its answer; other settings keep working"
    path = config(t.folder, "blocked.yaml", resolver="  pin_min: 77", policies="",)
    replace(path, "default: {}", "default: {block_hosts: [odd.lab], strip_ech: false}")
    client = t.v4.connect(socket.SOCK_DGRAM)
    client.send(question("slow.odd.lab", "AAAA", edns=1232))
    time.sleep(0.3)
    same(t.resolver.command("reload " + path, ("reloaded", "failed")), "reloaded")
    refused(Reply(client.recv(4096)), "blocked_host")
    client.close()
    refused(t.v4.ask("good.odd.lab", edns=1232), "blocked_host")
    reply = t.v4.ask("svc.example.lab", "HTTPS", edns=1232, do=True)
    assert b"\0\5\0\3" in reply.answer[0][3] and "ad" in reply.flags


@case
def bad_reload(t):
    "a reload that cannot work keeps the old policy"
    key = os.path.join(t.folder, "broken.key")
    with open(key, "w") as file:
        file.write("this is no key\n")
    path = config(t.folder, "broken.yaml")
    replace(path, "/root.key", "/broken.key")
    same(t.resolver.command("reload " + path, ("reloaded", "failed")), "failed trust anchor, line 1: no usable record")
    refused(t.v4.ask("good.odd.lab", edns=1232), "blocked_host")
    same(t.v4.ask("www.example.lab").rcode, "NOERROR")


@case
def sandboxed(t):
    "the process has no capability, no new privileges, another uid, a filter, and no file but what it was given"
    pid = t.resolver.wait("pid").split()[1]
    with open(f"/proc/{pid}/status") as file:
        fields = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    same(fields["Uid"].split(), ["65534"] * 4)
    same(fields["Gid"].split(), ["65534"] * 4)
    same(fields.get("Groups", "").split(), [])
    same([int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], [0] * 5)
    same((fields["NoNewPrivs"], fields["Seccomp"]), ("1", "2"))
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError: # a query to a server that is over
            continue
        assert target.startswith(("socket:", "anon_inode:", "pipe:", "/dev/null", "/memfd:")) or fd in "012", (fd, target)


@case
def end(t):
    "the parent goes, the resolver ends by itself"
    pid = int(t.resolver.wait("pid").split()[1])
    t.resolver.process.send_signal(signal.SIGKILL)
    t.resolver.process.wait()

    def gone():
        try:
            with open(f"/proc/{pid}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True
    wait_for(gone, "end of the resolver", 5)


@case
def failing_starts(t):
    "a start that cannot work says why in one line"
    path = config(t.folder, "start.yaml")
    replace(path, "/root.key", "/broken.key")
    resolver = Resolver(t.parent, t.executable, path)
    same(resolver.wait(("failed", "ready", "gone")), "failed trust anchor, line 1: no usable record")
    same(resolver.wait("status-of-child"), "status-of-child 512")
    resolver.process.wait()
    # Without a parent it says what it is.
    result = subprocess.run([t.executable], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, close_fds=True)
    same((result.returncode, result.stderr), (2, "pinfold-resolver: to be started by pinfold\n"))


class Test:
    def __init__(self, parent, executable):
        self.parent, self.executable = parent, executable
        self.folder = tempfile.mkdtemp(prefix="pinfold-resolver-")
        self.dns = Dns(self.folder)
        self.vm = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        wait_for(lambda: os.readlink(f"/proc/{self.vm.pid}/ns/net") != os.readlink("/proc/self/ns/net"), "namespace")
        run("ip", "link", "add", "vm0", "type", "veth", "peer", "name", "vm1", "netns", str(self.vm.pid))
        for words in ("address add 10.77.0.1/24 dev vm0", "address add fd77::1/64 dev vm0 nodad", "link set vm0 up"):
            run("ip", *words.split())
        for words in ("address add 10.77.0.2/24 dev vm1", "address add fd77::2/64 dev vm1 nodad", "link set vm1 up"):
            run("nsenter", "-t", str(self.vm.pid), "-n", "ip", *words.split())
        self.resolver = Resolver(parent, executable, config(self.folder))
        line = self.resolver.wait(("ready", "failed", "error", "gone"))
        if line != "ready":
            raise SystemExit(f"the resolver does not start: {line}; {self.resolver.lines}")
        self.v4, self.v6 = Client("127.0.0.1", 5353), Client("::1", 5353)

    def stop(self):
        self.vm.kill()
        self.vm.wait()
        if self.resolver.process.poll() is None:
            self.resolver.stop()
        self.dns.stop()
        shutil.rmtree(self.folder)


def main():
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root for a network namespace")
        return 77
    if os.environ.get("PINFOLD_TEST_NAMESPACE") != "1":
        os.environ["PINFOLD_TEST_NAMESPACE"] = "1"
        os.execvp("unshare", ["unshare", "--net", sys.executable] + sys.argv)
    test, failed = Test(*sys.argv[1:3]), 0
    wanted = sys.argv[3:]
    try:
        print(f"1..{len(CASES)}")
        for number, function in enumerate(CASES, 1):
            if wanted and function.__name__ not in wanted:
                continue
            try:
                function(test)
                print(f"ok {number} - {function.__doc__}", flush=True)
            except Exception as problem:
                failed += 1
                print(f"not ok {number} - {function.__doc__}", flush=True)
                print("  # " + f"{function.__name__}: {problem}".replace("\n", "\n  # "))
                if not isinstance(problem, AssertionError):
                    traceback.print_exc()
                else:
                    frame = traceback.extract_tb(problem.__traceback__)
                    print("  # " + " < ".join(f"{f.name}:{f.lineno}" for f in frame), flush=True)
    finally:
        test.stop()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
