#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pinfold-gate on the real kernel path, alone: pins by hand, a server that writes down what reaches it.

    gate.py GATE PARENT

Exit status 77 where the kernel has no NFQUEUE.
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import HERE, OTHER4, SERVER4, SERVER6, UID, Gate, Lab, Tap, run  # noqa: E402

GATE, PARENT = sys.argv[1:3]
CONFIG = """
gate: {hook: forward, queue: 4477}
policies:
  default: {literals: deny, block_hosts: [blocked.example], allow_raw: ["93.184.216.34:22"]}
"""
NOBODY = ("65534", "65534")
FLOOR4, FLOOR6 = "169.254.169.254", "fd00:ec2::254"
# Destinations that become the floor's by DNAT: the first of each family has a pin.
DNAT4, DNAT6 = ("93.184.216.36", "93.184.216.37"), ("2606:2800:220::36", "2606:2800:220::37")
AS_USER = ("setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups")

# Run in a namespace: connects, sends pieces, says what came and when.
CLIENT = r"""
import json, socket, sys, time
host, port, pause, patience = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
local = int(sys.argv[5])
pieces = json.load(sys.stdin)
result = {"connect": None, "data": "", "error": None, "seconds": None}
def attempt():
    s = socket.create_connection((host, port), timeout=min(patience, 5), source_address=("", local))
    result["connect"] = "ok"
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.settimeout(patience)
    for piece in pieces:
        if piece is None:
            # the answer to what was sent so far
            result["data"] += s.recv(65536).decode("latin-1")
            continue
        begin = time.monotonic()
        s.sendall(piece.encode("latin-1"))
        if pause: time.sleep(pause)
    try:
        result["data"] += s.recv(65536).decode("latin-1")
    finally:
        result["seconds"] = time.monotonic() - begin
begin = time.monotonic()
try:
    attempt()
except Exception as error:
    result["error"] = type(error).__name__
    if result["connect"] is None: result["seconds"] = time.monotonic() - begin
print(json.dumps(result))
"""


def get(host, extra="", path="/"):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n"


def exchange(lab, *pieces, to=SERVER4, port=80, pause=0, namespace="client", prefix=(), patience=5, local=0):
    answer = lab.inside(namespace, *prefix, sys.executable, "-c", CLIENT, to, str(port), str(pause), str(patience),
                        str(local), input=json.dumps(pieces)).stdout
    return json.loads(answer.splitlines()[-1])


def raw(lab, *steps):
    mac = lab.inside("gate", "cat", "/sys/class/net/gc/address").stdout.strip()
    return json.loads(lab.inside("client", sys.executable, os.path.join(HERE, "raw.py"), "cg", "10.77.0.9", mac,
                                 SERVER4, "80", json.dumps(steps)).stdout)


def check(condition, *what):
    if not condition:
        raise AssertionError(*what)


def resets(came):
    return [p for p in came if p["flags"] & 4]


def settled(lab, mark, count=1):
    """The server has written COUNT pieces since MARK; returns all bytes."""
    lab.until(lambda: sum(1 for l in lab.lines()[mark:] if l.startswith("bytes")) >= count, "bytes at the server")
    return lab.received(mark)


def quiet(lab, mark, seconds=0.3):
    """Nothing more may come; returns what came all the same."""
    time.sleep(seconds)
    return lab.received(mark)


class Cases:
    def __init__(self, lab, gate):
        self.lab, self.gate = lab, gate

    def all(self):
        return [(name[5:].replace("_", " "), getattr(self, name)) for name in type(self).__dict__
                if name.startswith("case_")]

    def case_privileges_are_gone(self):
        status = dict(l.split(":\t", 1) for l in open(f"/proc/{self.gate.pid}/status").read().splitlines() if ":\t" in l)
        net_admin = f"{1 << 12:016x}"
        for which in ("CapEff", "CapPrm"):
            check(status[which] == net_admin, which, status[which])
        for which in ("CapInh", "CapAmb", "CapBnd"):
            check(status[which] == "0" * 16, which, status[which])
        check(status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status)
        check(status["Uid"].split()[0] == "65534" and status["Groups"].strip() == "", status["Uid"], status["Groups"])
        maps = open(f"/proc/{self.gate.pid}/maps").read()
        check(" rwx" not in maps and " r-xp 00000000 00:00 0" in maps, "machine code", maps)
        check(int(status["VmRSS"].split()[0]) < 16384, "resident set", status["VmRSS"])

    def case_allowed_request(self):
        for address in (SERVER4, SERVER6):
            mark = self.lab.mark()
            bracketed = f"[{address}]" if ":" in address else address
            out = self.lab.inside("client", "curl", "-sS", "-m", "5", "--resolve", f"good.example:80:{bracketed}",
                                  "http://good.example/path").stdout
            check(out == "ok", out)
            check(b"GET /path HTTP/1.1" in settled(self.lab, mark))

    def case_refused_host_sends_no_byte(self):
        for address in (SERVER4, SERVER6):
            mark, before = self.lab.mark(), len(self.gate.audits)
            came = exchange(self.lab, get("elsewhere.example"), to=address)
            check(came["connect"] == "ok" and came["error"] == "ConnectionResetError", came)
            check(quiet(self.lab, mark) == b"", "bytes reached the server")
            lines = self.gate.audited(before + 1)[before:]
            check(len(lines) == 1 and lines[0].startswith("request deny name_mismatch"), lines)
            check("elsewhere.example" in lines[0], lines)

    def case_reset_within_50_ms(self):
        best = min(exchange(self.lab, get("elsewhere.example"))["seconds"] for _ in range(5))
        check(best < 0.05, best)

    def case_blocked_name_that_is_pinned(self):
        self.gate.pin("10.77.0.2", "blocked.example", SERVER4)
        mark = self.lab.mark()
        came = exchange(self.lab, get("blocked.example"))
        check(came["error"] == "ConnectionResetError" and quiet(self.lab, mark) == b"", came)
        check(self.gate.audited(1, "request deny blocked_host"), self.gate.audits)

    def case_unpinned_destination_gets_no_syn(self):
        mark = self.lab.mark()
        came = exchange(self.lab, get(OTHER4), to=OTHER4)
        check(came["error"] == "ConnectionRefusedError" and came["seconds"] < 0.2, came)
        check(not self.lab.lines()[mark:], self.lab.lines()[mark:])
        check(self.gate.audited(1, "connect deny unpinned"), self.gate.audits)

    def case_pin_of_another_client(self):
        self.gate.pin("10.77.0.77", "other.example", OTHER4)
        check(exchange(self.lab, get("other.example"), to=OTHER4)["error"] == "ConnectionRefusedError")

    def case_expired_pin(self):
        self.gate.pin("10.77.0.2", "old.example", OTHER4, 1)
        time.sleep(1.1)
        check(exchange(self.lab, get("old.example"), to=OTHER4)["error"] == "ConnectionRefusedError")
        check(self.gate.audited(1, "connect deny expired"), self.gate.audits)

    def case_not_read_where_allow_raw_says_so(self):
        mark = self.lab.mark()
        exchange(self.lab, "SSH-2.0-test\r\n", port=22, patience=0.2)
        check(settled(self.lab, mark) == b"SSH-2.0-test\r\n")

    def case_neither_http_nor_tls(self):
        mark = self.lab.mark()
        came = exchange(self.lab, "\x00\x01\x02hello")
        check(came["error"] == "ConnectionResetError" and quiet(self.lab, mark) == b"", came)
        check(self.gate.audited(1, "request deny scheme"), self.gate.audits)

    def case_byte_by_byte(self):
        mark = self.lab.mark()
        came = exchange(self.lab, *get("good.example"))
        check(came["data"].endswith("ok"), came)
        check(settled(self.lab, mark) == get("good.example").encode())
        mark = self.lab.mark()
        came = exchange(self.lab, *get("elsewhere.example"))
        check(came["error"] in ("ConnectionResetError", "BrokenPipeError"), came)
        check(quiet(self.lab, mark) == b"")

    def case_lines_one_by_one(self):
        pieces = get("good.example", "A: b\r\nC: d\r\n").splitlines(keepends=True)
        check(exchange(self.lab, *pieces, pause=0.03)["data"].endswith("ok"))

    def case_keep_alive(self):
        mark, before = self.lab.mark(), len(self.gate.audits)
        came = exchange(self.lab, get("good.example"), None, get("good.example", path="/2"), None,
                        get("elsewhere.example", path="/3"))
        check(came["data"].count("ok") == 2 and came["error"] == "ConnectionResetError", came)
        received = quiet(self.lab, mark)
        check(b"GET /2 " in received and b"elsewhere" not in received, received)
        check(len(self.gate.audited(before + 1)) == before + 1)

    def case_upload(self):
        for size in (65536, 1 << 20):
            mark = self.lab.mark()
            head = f"POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: {size}\r\n\r\n"
            came = exchange(self.lab, head + "u" * size, patience=20)
            check(came["data"].endswith("taken"), came)
            check(len(self.lab.received(mark)) == len(head) + size, size)

    def case_long_head(self):
        mark = self.lab.mark()
        extra = "".join(f"X-{n}: {'v' * 1000}\r\n" for n in range(40))
        came = exchange(self.lab, get("good.example", extra))
        check(came["data"].endswith("ok") and came["seconds"] < 2, came)
        check(settled(self.lab, mark).endswith(b"\r\n\r\n"))

    def case_long_head_contradicted_at_its_end(self):
        mark = self.lab.mark()
        extra = "".join(f"X-{n}: {'v' * 1000}\r\n" for n in range(40)) + "Host: elsewhere.example\r\n"
        came = exchange(self.lab, get("good.example", extra))
        check(came["error"] == "ConnectionResetError", came)
        received = quiet(self.lab, mark)
        check(b"\r\n\r\n" not in received and b"elsewhere" not in received, received[-100:])

    def case_segments_out_of_order(self):
        text = get("good.example")
        came = raw(self.lab, ["syn", ""], ["seg", 30, text[30:]], ["seg", 10, text[10:30]], ["wait", 0.2],
                   ["seg", 0, text[:10]], ["wait", 0.5])
        check(any(p["data"].endswith("ok") for p in came) and not resets(came), came)
        acks = [p["ack"] for p in came[1:]]
        check(all(a in (0, len(text)) for a in acks), "something was acknowledged before the verdict", acks)

    def case_segments_that_contradict(self):
        mark = self.lab.mark()
        text = get("good.example")
        came = raw(self.lab, ["syn", ""], ["seg", 0, text[:20]], ["seg", 10, "XXXXXXXXXXXXX"], ["wait", 0.3])
        check(resets(came) and quiet(self.lab, mark) == b"", came)
        # A second version of octets that were judged and sent on.
        mark = self.lab.mark()
        came = raw(self.lab, ["syn", ""], ["seg", 0, text], ["wait", 0.2],
                   ["seg", 0, text.replace("good", "evil")], ["wait", 0.3])
        check(resets(came) and b"evil" not in quiet(self.lab, mark), came)

    def case_duplicate_segments(self):
        text = get("good.example")
        mark = self.lab.mark()
        came = raw(self.lab, ["syn", ""], ["seg", 0, text[:20]], ["seg", 0, text[:20]], ["seg", 5, text[5:15]],
                   ["seg", 20, text[20:]], ["wait", 0.3], ["seg", 0, text], ["wait", 0.3])
        check(any(p["data"].endswith("ok") for p in came) and not resets(came), came)
        check(settled(self.lab, mark) == text.encode())

    def case_another_beginning(self):
        mark = self.lab.mark()
        text = get("good.example")
        # The server is at the first SYN; a gate that followed the second would read another stream.
        came = raw(self.lab, ["syn", ""], ["again", -5], ["wait", 1.2], ["again", -5], ["seg", -5, "xxxxx" + text],
                   ["wait", 0.4])
        check(not any("ok" in p["data"] for p in came), came)
        check(quiet(self.lab, mark) == b"", self.lab.received(mark))

    def case_reset_ends_the_flow(self):
        mark = self.lab.mark()
        text = get("good.example")
        came = raw(self.lab, ["syn", ""], ["seg", 0, text[:20]], ["flags", 4, 0], ["seg", 20, text[20:]], ["wait", 0.3])
        check(quiet(self.lab, mark) == b"" and not any("ok" in p["data"] for p in came), came)

    def case_a_refused_port_is_used_again(self):
        """The server and connection tracking still have the refused connection."""
        for address, port in ((SERVER4, 45678), (SERVER6, 45679)):
            came = exchange(self.lab, get("elsewhere.example"), to=address, local=port)
            check(came["error"] == "ConnectionResetError", came)
            came = exchange(self.lab, get("good.example"), to=address, local=port)
            check(came["data"].endswith("ok"), came)

    def case_sni(self):
        for name, allowed in (("good.example", True), ("elsewhere.example", False), ("blocked.example", False)):
            mark = self.lab.mark()
            subprocess_ = self.lab.start("client", "timeout", "1", "openssl", "s_client", "-connect", f"{SERVER4}:443",
                                         "-servername", name, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
            if allowed:
                check(settled(self.lab, mark)[:2] == b"\x16\x03")
            subprocess_.wait(timeout=5)
            if not allowed:
                check(quiet(self.lab, mark) == b"", name)
        check(self.gate.audited(1, "request deny name_mismatch 10.77.0.2 elsewhere.example 93.184.216.34 443"))

    def case_whole_tls(self):
        """TLS with and without a HelloRetryRequest: the connection leaves the gate and lives on."""
        folder = self.lab.folder
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=good.example", "-keyout", f"{folder}/key", "-out", f"{folder}/cert")
        for port, groups in ((4443, "X25519:P-256"), (4444, "P-521")):
            self.lab.start("server", "openssl", "s_server", "-accept", str(port), "-key", f"{folder}/key", "-cert",
                           f"{folder}/cert", "-groups", groups, "-www", "-quiet", stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            self.lab.until(lambda: f":{port} " in self.lab.inside("server", "ss", "-ltn").stdout, "s_server")
            before = self.gate.status()["packets"]
            out = self.lab.inside("client", "curl", "-ksS", "-m", "5", "--resolve", f"good.example:{port}:{SERVER4}",
                                  f"https://good.example:{port}/")
            check("HTTP/1.0 200 ok" in out.stdout or "s_server" in out.stdout, out.stdout[:300])
            # SYN, one or two hellos, and what turns the flow opaque; bare acknowledgments do not come.
            check(self.gate.status()["packets"] - before <= 5, before, self.gate.status())

    def case_datagrams(self):
        before = len(self.gate.audits)
        code = ("import socket,sys,time\n"
                "s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)\n"
                "s.settimeout(2); s.connect((sys.argv[1], 443))\n"
                "for _ in range(3):\n"
                "    t = time.monotonic()\n"
                "    try: s.send(b'x'); s.recv(9)\n"
                "    except Exception as e: print(type(e).__name__, e.errno, time.monotonic() - t < 0.5)\n")
        for address in (SERVER4, SERVER6):
            out = self.lab.inside("client", sys.executable, "-c", code, address).stdout
            check(out.count("True") >= 2 and "Timeout" not in out, out)
        echo = ("import socket\n"
                "s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); s.settimeout(2)\n"
                f"s.sendto(bytes.fromhex('0800f7ff00000000'), ('{SERVER4}', 0)); print(s.recv(99)[20:22].hex())\n")
        check(self.lab.inside("client", sys.executable, "-c", echo).stdout.strip() == "030d")
        lines = self.gate.audited(before + 3)[before:]
        check(len(lines) == 3 and all("deny protocol" in l for l in lines), lines)

    def case_own_traffic_of_a_uid(self):
        """Hook output: the client is `host`, by its uid."""
        self.gate.pin("host", "good.example", SERVER4)
        check(exchange(self.lab, get("good.example"), namespace="gate", prefix=AS_USER)["data"].endswith("ok"))
        mark = self.lab.mark()
        came = exchange(self.lab, get("elsewhere.example"), namespace="gate", prefix=AS_USER)
        check(came["error"] == "ConnectionResetError" and quiet(self.lab, mark) == b"", came)
        check(self.gate.audited(1, "request deny name_mismatch host elsewhere.example"), self.gate.audits)
        check(exchange(self.lab, "", to=OTHER4, namespace="gate", prefix=AS_USER)["error"] == "ConnectionRefusedError")

    def both_hooks(self, address):
        """(client, options of exchange) for the guest behind the interface and for the uid."""
        return ((("10.77.0.2", "fd77::2")[":" in address], {}), ("host", {"namespace": "gate", "prefix": AS_USER}))

    def floor_refuses(self, address):
        for client, options in self.both_hooks(address):
            mark = self.lab.mark()
            came = exchange(self.lab, "x", to=address, patience=1, **options)
            check(came["error"] == "ConnectionRefusedError" and came["seconds"] < 0.5, client, came)
            check(not self.lab.lines()[mark:], self.lab.lines()[mark:])
            yield client

    def one_line(self, before, text):
        """Exactly one audit line came since BEFORE, and begins with TEXT."""
        self.gate.audited(before + 1)
        time.sleep(0.2)
        lines = self.gate.audits[before:]
        check(len(lines) == 1 and lines[0].startswith(text), text, lines)

    def case_the_static_floor_is_reported(self):
        for tool, address, via in (("-4", FLOOR4, SERVER4), ("-6", FLOOR6, SERVER6)):
            self.lab.inside("gate", "ip", tool, "route", "replace", address, "via", via, "dev", "gs")
            packets, before = self.gate.status().get("packets"), len(self.gate.audits)
            for client in self.floor_refuses(address):
                self.one_line(before, f"connect deny metadata {client} - {address} 80 -")
                before = len(self.gate.audits)
            check(self.gate.status().get("packets") == packets, "the queue saw it")
            # A datagram that is longer than what is logged of it.
            self.lab.inside("client", sys.executable, "-c", (
                "import socket,sys\n"
                "s = socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)\n"
                "s.sendto(bytes(1200), (sys.argv[1], 80))\n"), address)
            self.one_line(before, f"connect deny metadata {('10.77.0.2', 'fd77::2')[':' in address]} - {address} 80 -")

    def case_the_static_floor_behind_dnat_is_reported(self):
        for tool, to, (pinned, unpinned) in (("iptables", FLOOR4, DNAT4), ("ip6tables", f"[{FLOOR6}]", DNAT6)):
            rules = [(chain, "-d", address, "-p", "tcp", "-j", "DNAT", "--to-destination", f"{to}:80")
                     for chain in ("PREROUTING", "OUTPUT") for address in (pinned, unpinned)]
            for rule in rules:
                self.lab.inside("gate", tool, "-t", "nat", "-A", *rule)
            for client, _ in self.both_hooks(pinned):
                self.gate.pin(client, "rewritten.example", pinned)
            before = len(self.gate.audits)
            for client in self.floor_refuses(pinned):
                self.one_line(before, f"connect deny metadata {client} - {to.strip('[]')} 80 -")
                before = len(self.gate.audits)
            # Who is refused ahead of it has a line already.
            for client in self.floor_refuses(unpinned):
                self.one_line(before, f"connect deny unpinned {client} - {unpinned} 80 -")
                before = len(self.gate.audits)
            for rule in rules:
                self.lab.inside("gate", tool, "-t", "nat", "-D", *rule)

    def case_what_others_log_is_no_notice(self):
        rule = ("FORWARD", "-p", "tcp", "-j", "NFLOG", "--nflog-group", "4477", "--nflog-prefix")
        for prefix in ("other", "pinfold-floor2"):
            self.lab.inside("gate", "iptables", "-t", "mangle", "-I", *rule, prefix)
        before, refused = len(self.gate.audits), self.gate.status().get("refused")
        check(exchange(self.lab, get("good.example"))["data"].endswith("ok"))
        for prefix in ("other", "pinfold-floor2"):
            self.lab.inside("gate", "iptables", "-t", "mangle", "-D", *rule, prefix)
        check(len(self.gate.audits) == before and self.gate.status().get("refused") == refused, self.gate.audits[before:])

    def case_many_at_once(self):
        code = ("import socket,sys,threading\n"
                "def go():\n"
                "    for _ in range(50):\n"
                "        s = socket.create_connection((sys.argv[1], 80), timeout=10); s.settimeout(10)\n"
                "        s.sendall(b'GET / HTTP/1.1\\r\\nHost: good.example\\r\\n\\r\\n')\n"
                "        if not s.recv(999).endswith(b'ok'): raise SystemExit('no')\n"
                "        s.close(); done.append(1)\n"
                "done = []; ts = [threading.Thread(target=go) for _ in range(10)]\n"
                "[t.start() for t in ts]; [t.join() for t in ts]; print(len(done))\n")
        out = self.lab.inside("client", sys.executable, "-c", code, SERVER4).stdout
        check(out.strip() == "500", out[-500:], self.gate.audits[-5:], self.gate.status())

    def case_fast_open(self):
        """A SYN with data is a first request."""
        mark = self.lab.mark()
        came = raw(self.lab, ["syn", get("elsewhere.example")], ["wait", 0.2])
        check(resets(came) and not self.lab.lines()[mark:], came, self.lab.lines()[mark:])
        came = raw(self.lab, ["syn", get("good.example")], ["seg", 0, get("good.example")], ["wait", 0.4])
        check(any(p["data"].endswith("ok") for p in came), came)

    def case_stalled_head(self):
        mark = self.lab.mark()
        came = exchange(self.lab, "GET / HTTP/1.1\r\nHost: good.exam", patience=14)
        check(came["error"] == "ConnectionResetError" and 9 < came["seconds"] < 13, came)
        check(quiet(self.lab, mark) == b"")
        check(self.gate.audited(1, "request deny malformed"), self.gate.audits)

    def case_nothing_stays_held(self):
        lines = self.lab.inside("gate", "cat", "/proc/net/netfilter/nfnetlink_queue").stdout
        fields = lines.split()
        check(fields[0] == "4477" and fields[2] == "0", "packets wait in the queue", lines)
        check(fields[5] == "0" and fields[6] == "0", "packets were dropped", lines)

    def case_reload(self):
        client = self.lab.start("client", sys.executable, "-c", (
            "import socket,sys\n"
            "s = socket.create_connection((sys.argv[1], 80), timeout=5); s.settimeout(5)\n"
            "def ask():\n"
            "    s.sendall(b'GET / HTTP/1.1\\r\\nHost: good.example\\r\\n\\r\\n'); return s.recv(999)[-2:]\n"
            "print(ask(), flush=True); input(); print(ask(), flush=True); input()\n"
            "try: print(ask())\n"
            "except ConnectionResetError: print('reset')\n"), SERVER4, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)
        check(client.stdout.readline().strip() == "b'ok'")
        check(self.gate.reload(CONFIG).startswith("reloaded"))
        client.stdin.write("\n")
        check(client.stdout.readline().strip() == "b'ok'")
        check(self.gate.reload(CONFIG.replace("queue: 4477", "queue: 4478")).startswith("failed gate: queue"))
        check(self.gate.reload(CONFIG.replace("blocked.example", "blocked.example, 93.184.216.0/24")).startswith("reloaded"))
        client.stdin.write("\n")
        check(client.stdout.readline().strip() == "reset")
        check(exchange(self.lab, get("good.example"))["error"] == "ConnectionRefusedError")
        check(self.gate.reload(CONFIG).startswith("reloaded"))
        check(exchange(self.lab, get("good.example"))["data"].endswith("ok"))

    def case_status(self):
        status = self.gate.status()
        for counter in ("packets", "flows", "allowed", "refused", "held", "name_mismatch"):
            check(status.get(counter, 0) > 0, counter, status)
        check("audit_lost" not in status, status)

    def case_a_flood_of_notices_delays_nobody(self):
        flood = self.lab.start("client", "timeout", "3", sys.executable, "-c", (
            "import socket\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "while True:\n"
            f"    s.sendto(b'x', ('{FLOOR4}', 80))\n"))
        before = self.gate.status().get("metadata", 0)
        self.lab.until(lambda: self.gate.status().get("metadata", 0) > before + 1000, "the flood")
        slowest, rounds = 0, 0
        while flood.poll() is None and rounds < 20:
            came = exchange(self.lab, get("good.example"))
            check(came["data"].endswith("ok"), came)
            slowest, rounds = max(slowest, came["seconds"]), rounds + 1
        flood.kill()
        flood.wait()
        check(rounds > 1 and slowest < 1, rounds, slowest)
        check("overflow" not in self.gate.status(), self.gate.status())

    def case_killed(self):
        """Held packets die with the gate, nothing passes without it, and its successor refuses what it does not know."""
        mark = self.lab.mark()
        client = self.lab.start("client", sys.executable, "-c", (
            "import socket,sys\n"
            "s = socket.create_connection((sys.argv[1], 80), timeout=5); s.settimeout(30)\n"
            "s.sendall(b'GET / HTTP/1.1\\r\\nHost: good.'); print('half', flush=True); input()\n"
            "try: s.sendall(b'example\\r\\n\\r\\n'); print(s.recv(99))\n"
            "except ConnectionResetError: print('reset')\n"), SERVER4, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)
        client.stdout.readline()
        check(self.gate.ask("kill") == "ended signal 9")
        client.stdin.write("\n")
        check(exchange(self.lab, get("good.example"), patience=1)["error"] == "TimeoutError")
        check(quiet(self.lab, mark) == b"")
        for address in (FLOOR4, FLOOR6):
            check(len(list(self.floor_refuses(address))) == 2, "the floor without a gate")
        after = Gate(self.lab, GATE, PARENT, CONFIG, *NOBODY)
        check(after.first.startswith("ready"), after.first)
        check(client.stdout.readline().strip() == "reset")
        check(quiet(self.lab, mark) == b"", self.lab.received(mark))
        after.end()


def starts(lab, tap):
    """What cannot start says why, in one line."""
    def first(config=CONFIG, *identity, prefix=()):
        gate = Gate(lab, GATE, PARENT, config, *identity) if not prefix else Prefixed(lab, config, prefix)
        line, ending = gate.first, gate.answers.get(timeout=10)
        gate.end()
        return line, ending

    class Prefixed(Gate):
        def __init__(self, lab_, config, prefix):
            super().__init__(lab_, *prefix_program(prefix), config)

    def prefix_program(prefix):
        script = os.path.join(lab.folder, "prefixed")
        with open(script, "w") as file:
            file.write("#!/bin/sh\nexec " + " ".join(prefix) + f" {GATE}\n")
        os.chmod(script, 0o755)
        return script, PARENT

    def taken():
        line, ending = first()
        check(line == "failed queue 4477: another program has it" and ending == "ended 2", line, ending)

    def log_taken():
        other = lab.start("gate", sys.executable, "-c", (
            "import socket,struct\n"
            "s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)\n"
            # NFULNL_MSG_CONFIG with NFULA_CFG_CMD: bind, for group 4481
            "s.send(struct.pack('=IHHIIBBHHHI', 28, 4 << 8 | 1, 5, 0, 0, 0, 0, socket.htons(4481), 5, 1, 1))\n"
            "print(struct.unpack_from('=i', s.recv(999), 16)[0], flush=True); input()\n"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        check(other.stdout.readline().strip() == "0")
        line, ending = first(CONFIG.replace("4477", "4481"))
        other.kill()
        check(line == "failed log group 4481: another program has it" and ending == "ended 2", line, ending)

    def unprivileged():
        line, ending = first(CONFIG.replace("4477", "4479"), prefix=("setpriv", "--bounding-set", "-net_admin",
                                                                     "--inh-caps", "-net_admin"))
        check(line == "failed queue 4479: CAP_NET_ADMIN is missing" and ending == "ended 2", line, ending)

    def junk():
        other = Gate(lab, GATE, PARENT, CONFIG.replace("4477", "4480"))
        check(other.first.startswith("ready"), other.first)
        check(other.ask("junk") == "ended 1")
        other.end()

    def orderly():
        other = Gate(lab, GATE, PARENT, CONFIG.replace("4477", "4480"))
        check(other.ask("quit") == "ended 0")
        other.end()

    def alone():
        out = run(GATE, check=False, stdin=subprocess.DEVNULL)
        check(out.returncode == 2 and "started by" in out.stdout, out)

    for function, name in ((taken, "a queue that another has"), (log_taken, "a log group that another has"),
                           (unprivileged, "no CAP_NET_ADMIN"),
                           (junk, "junk from the parent ends the gate"), (orderly, "ends with its parent"),
                           (alone, "started by hand")):
        tap.case(name, function)


def main():
    if os.geteuid() != 0 or not os.path.exists("/proc/net/netfilter/nfnetlink_queue"):
        print("1..0 # SKIP needs root and a kernel with NFQUEUE")
        return 77
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder, Lab(folder) as lab:
        mac = lab.inside("client", "cat", "/sys/class/net/cg/address").stdout.strip()
        lab.inside("gate", "ip", "neigh", "replace", "10.77.0.9", "lladdr", mac, "dev", "gc")
        lab.install(PARENT, CONFIG)
        gate = Gate(lab, GATE, PARENT, CONFIG, *NOBODY)
        tap.case("starts", lambda: check(gate.first.startswith("ready"), gate.first))
        for client in ("10.77.0.2", "10.77.0.9", "fd77::2"):
            gate.pin(client, "good.example", SERVER6 if ":" in client else SERVER4)
        starts(lab, tap)
        only = os.environ.get("ONLY")
        for name, function in Cases(lab, gate).all():
            if only is None or re.search(only, name):
                tap.case(name, function)
    return tap.end()


sys.exit(main())
