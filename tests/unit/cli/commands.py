#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit statuses and output of `check`, `explain`, `help`, `version` and `rules print`: commands.py PINFOLD"""
import json
import os
import subprocess
import sys
import tempfile

PINFOLD = os.path.abspath(sys.argv[1])
FAILED = []


def run(*words, text=""):
    done = subprocess.run([PINFOLD, *words], input=text.encode(), capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def expect(name, got, want):
    if got != want:
        FAILED.append(name)
        print(f"{name}: want {want!r}, got {got!r}")


def explain(config, *words):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(config)
        file.flush()
        status, out, err = run("explain", "-c", file.name, *words)
    return status, out.replace(file.name, "FILE"), err.replace(file.name, "FILE")


def usage():
    wrong = [
        [], ["nothing"], ["help", "nothing"], ["help", "check", "check"], ["version", "x"],
        ["suggest"], ["suggest", "a", "b"], ["suggest", "--loud"], ["suggest", "--client"], ["suggest", "/nonexistent"],
        ["check", "--loud"], ["check", "a", "b"],
        ["explain"], ["explain", "guess"], ["explain", "--loud", "resolve", "a.example"],
        ["explain", "resolve"], ["explain", "resolve", "a", "A", "A"], ["explain", "resolve", "a", "NOTYPE"],
        ["explain", "resolve", "a", "TYPE65536"], ["explain", "resolve", "a", "--to", "10.0.0.1"],
        ["explain", "resolve", "a", "-c"], ["explain", "--client"],
        ["explain", "answer"], ["explain", "answer", "a.example", "b.example"],
        ["explain", "answer", "a.example", "1.2.3.4", "--hint", "x"],
        ["explain", "answer", "a.example", "1.2.3.4", "--pinned", "x.example"],
        ["explain", "connect", "1.2.3.4"], ["explain", "connect", "a.example", "80"],
        ["explain", "connect", "1.2.3.4", "0"], ["explain", "connect", "1.2.3.4", "65536"],
        ["explain", "connect", "1.2.3.4", "80/sctp"], ["explain", "connect", "1.2.3.4", "-1"],
        ["explain", "connect", "1.2.3.4", "80", "--pinned", "a b"],
        ["explain", "connect", "1.2.3.4", "80", "--pinned", "a.example=x"],
        ["explain", "connect", "1.2.3.4", "80", "--pinned", ""],
        ["explain", "request", "a.example"], ["explain", "request", "http://a.example/", "--to", "x"],
        ["explain", "request", "http://a.example/", "--to", "1.2.3.4:0"],
        ["explain", "bytes", "/dev/null"], ["explain", "bytes", "/dev/null", "--to", "1.2.3.4"],
        ["explain", "bytes", "/nonexistent", "--to", "1.2.3.4:80"],
        ["explain", "bytes", "/", "--to", "1.2.3.4:80"],
        ["explain", "-c", "/nonexistent", "resolve", "a.example"],
        ["run"], ["run", "--"], ["run", "--strict"], ["run", "--loud", "true"], ["run", "--policies", "x", "true"],
        ["run", "--policy"], ["run", "--policy", "--strict", "true"], ["run", "--policy=/nonexistent", "true"],
        ["run", "--allow"], ["run", "--allow", "--", "true"], ["run", "--allow", "a b", "true"],
        ["client"], ["client", "nothing"], ["client", "add"], ["client", "remove"], ["client", "add", "a", "b"],
        ["client", "add", "a", "--policy"], ["client", "add", "a", "--policy", "x", "--policy", "y"],
        ["client", "remove", "a", "--policy", "x"], ["client", "list", "a"], ["client", "add", "a", "--json"],
        ["rules"], ["rules", "nothing"], ["rules", "print", "verify"], ["rules", "print", "-c"],
        ["rules", "print", "--loud", "x"], ["rules", "print", "--hook", "input"], ["rules", "print", "--backend", "x"],
        ["rules", "print", "--uid", ""], ["rules", "print", "--uid", "-1"], ["rules", "print", "--uid", "2-1"],
        ["rules", "print", "--uid", "4294967295"], ["rules", "print", "--uid", "1x"], ["rules", "print", "--uid", "+1"],
        ["rules", "print", "--interface", ""], ["rules", "print", "--interface", "sixteen-letters-"],
        ["rules", "print", "--interface", "tap0 -j ACCEPT"], ["rules", "print", "--uid", "1", "--interface", "a"],
        ["rules", "print", "--interface", "a", "--hook", "output"], ["rules", "print", "-c", "/nonexistent"],
        ["rules", "print", "-c", "/dev/null", "--hook", "forward"],
        ["rules", "print", *["--uid", "1"] * 257],
        ["explain", "-c", "/dev/null", "--client", "nobody", "resolve", "a.example"],
    ]
    for words in wrong:
        if words[:1] == ["explain"] and "-c" not in words:
            words = words[:1] + ["-c", "/dev/null"] + words[1:]
        status, out, err = run(*words)
        expect(f"{words}: status", status, 2)
        expect(f"{words}: nothing on standard output", out, "")
        expect(f"{words}: a message", err != "", True)


def helping():
    for words in (["help"], ["--help"], ["-h"], ["version"], ["--version"], ["help", "check"], ["check", "--help"],
                  ["explain", "-h"], ["help", "explain"]):
        status, out, err = run(*words)
        expect(f"{words}: status", status, 0)
        expect(f"{words}: output", out != "" and err == "", True)
    listed = [line.split()[0] for line in run("help")[1].splitlines() if line.startswith("  ")]
    for name in listed:
        expect(f"help {name}", run("help", name)[0], 0)
    for name in ("check", "explain", "help", "version"):
        expect(f"{name} is listed", name in listed, True)


def checking():
    expect("empty file", run("check", "-"), (0, "", ""))
    status, out, err = run("check", "-", text="gate: {queue: x}\nlog: {allowed: 1}\n")
    expect("errors: status", status, 1)
    expect("errors: lines", err.splitlines(),
           ["-:1:15: error: queue must be a number from 0 to 65535", "-:2:16: error: allowed must be true or false"])
    expect("errors: nothing is printed", run("check", "--print", "-", text="gate: 1")[1], "")
    status, out, err = run("check", "-", text="clients: [{name: a, interface: x}]")
    expect("a warning is no error", (status, "warning" in err), (0, True))
    status, first, _ = run("check", "--print", "-")
    expect("print: status", status, 0)
    expect("print: again", run("check", "--print", "-", text=first)[1], first)
    expect("missing file", run("check", "/nonexistent")[0], 1)
    # a status of 0 must mean that the output arrived
    with open("/dev/full", "wb") as full:
        done = subprocess.run([PINFOLD, "check", "--print", "-"], stdin=subprocess.DEVNULL, stdout=full,
                              stderr=subprocess.DEVNULL, check=False)
    expect("full disk", done.returncode, 2)


def explaining():
    status, out, _ = explain("", "resolve", "metadata.google.internal", "--json")
    answer = json.loads(out)
    expect("deny: status", status, 3)
    expect("deny: keys", sorted(answer), ["enforced", "reason", "rule", "stage", "verdict"])
    expect("deny", (answer["verdict"], answer["reason"], answer["stage"], answer["enforced"]),
           ("deny", "metadata", "resolve", True))
    expect("deny: rule", answer["rule"].split(":")[0], "floor.txt")
    expect("one line", out.count("\n"), 1)

    status, out, _ = explain("policies:\n  default:\n    block_hosts:\n      - ads.example\n", "resolve",
                             "x.ads.example", "--json")
    expect("the rule has its place", (status, json.loads(out)["rule"]), (3, "FILE:4"))
    status, out, _ = explain("policies:\n  default:\n    block_hosts: [ads.example]\n", "resolve", "x.ads.example")
    expect("for people", (status, out), (3, "deny blocked_host, by FILE:3, at stage resolve\n"))

    audit = "policies: {default: {mode: audit, block_hosts: [ads.example]}}"
    status, out, _ = explain(audit, "resolve", "ads.example", "--json")
    expect("audit", (status, json.loads(out)["verdict"], json.loads(out)["enforced"]), (3, "deny", False))
    status, out, _ = explain(audit, "resolve", "metadata", "--json")
    expect("audit and the floor", (status, json.loads(out)["enforced"]), (3, True))

    clients = "clients: [{name: ci, uid: 7, policy: ci}]\npolicies: {ci: {default: deny}}"
    expect("client", explain(clients, "resolve", "a.example.com", "--client", "ci")[0], 3)
    expect("no client", explain(clients, "resolve", "a.example.com")[0], 0)
    status, _, err = explain("polices: {}", "resolve", "a.example.com")
    expect("bad configuration", (status, err.startswith("FILE:1:1: error: unknown key 'polices'")), (2, True))

    expect("root", explain("", "resolve", ".", "NS")[0], 0)
    expect("a word that begins with a dash", explain("", "resolve", "--", "-x.example.com")[0], 0)
    expect("UTF-8", explain("policies: {default: {block_hosts: [xn--bcher-kva.example]}}", "resolve",
                            "bücher.example")[0], 3)
    expect("lower-case type", explain("", "resolve", "example.com", "https")[0], 0)
    expect("brackets", explain("", "connect", "[fd00:ec2::254]", "80")[0], 3)
    expect("port of --to", explain("", "request", "http://a.example.com:82/", "--to", "[2001:4860::1]:81", "--pinned",
                                   "a.example.com")[0], 3)


def tracing():
    config = "policies:\n default:\n  default: deny\n  allow_hosts:\n   - example.com\n   - 10.1.2.3\n"
    status, out, _ = explain(config, "answer", "www.example.com", "10.0.0.1", "--trace")
    expect("trace: an answer", (status, out.splitlines()[:-1]), (3, [
        "answer:", "    malformed passed", "    metadata passed", "    blocked_host passed", "    encrypted_dns passed",
        "    allow list matched, FILE:5", "    not_allowlisted lifted by FILE:5",
        "    rebinding refused by address-classes.txt:26"]))
    status, out, _ = explain(config, "connect", "10.1.2.3", "80", "--trace", "--json", "--pinned", "a.example.net")
    steps = json.loads(out)["trace"]
    expect("trace: names", [step.get("name") for step in steps if step["rule"] == "not_allowlisted"],
           ["a.example.net", None])
    expect("trace: results", [step["result"] for step in steps if step["rule"] == "not_allowlisted"],
           ["refused", "lifted"])
    expect("trace: places", [step.get("place") for step in steps if step["rule"] in ("allow list", "malformed", "self")],
           ["FILE:6", None])
    private = "policies:\n default:\n  allow_private_network: false\n  allow_loopback: false\n"
    cidrs = private + "  allow_private_cidrs: [10.0.0.0/8]\n"
    answers = private + "  allow_private_answers: [example.com]\n"
    for what, text, words, step in (
            ("a range", cidrs, ["answer", "a.example.com", "10.0.0.1"], "rebinding lifted by FILE:5"),
            ("a range reached", cidrs, ["connect", "10.0.0.1", "80"], "private_address lifted by FILE:5"),
            ("a name", answers, ["answer", "a.example.com", "10.0.0.1"], "rebinding lifted by FILE:5"),
            ("a name pinned", answers, ["connect", "10.0.0.1", "80", "--pinned", "a.example.com"],
             "rebinding lifted by FILE:5"),
            ("a literal", private + "  allow_hosts: [10.0.0.1]\n", ["request", "http://10.0.0.1/"],
             "private_address lifted by the configuration"),
            ("a private name", private + "  allow_hosts: [nas.lan]\n", ["resolve", "nas.lan"],
             "private_host lifted by the configuration"),
            ("a forwarder", "resolver: {forward: {lan: [10.0.0.53]}}", ["resolve", "nas.lan"],
             "special_name lifted by the configuration")):
        out = explain(text, *words, "--trace")[1]
        expect("trace: lifted by " + what, [line.strip() for line in out.splitlines() if " lifted " in line][:1], [step])
    out = explain("policies: {default: {mode: audit}}", "request", "http://metadata/", "--trace")[1]
    expect("trace: audit asks the floor first", out.splitlines()[1][:31], "    metadata refused by floor.t")


def suggesting():
    def line(**more):
        return json.dumps({"time": "t", "stage": "connect", "verdict": "deny", "reason": "not_allowlisted", "rule": "f:1",
                           "client": "vm", "enforced": False, "port": 443, "protocol": "tcp", **more}) + "\n"
    good = line(name="www.example.com", addresses=["93.184.216.34"], suppressed=2)
    status, out, err = run("suggest", "-", text=good)
    expect("suggest", (status, err, out.splitlines()[-1]), (0, "", '      - "www.example.com:443"  # 3 times'))
    expect("suggest: pasted", run("check", "-", text=out)[0], 0)
    expect("suggest: nothing", run("suggest", "-")[1].splitlines()[-1], "    allow_hosts: []")
    expect("suggest: of one client", run("suggest", "--client", "x", "-", text=good)[1].splitlines()[-1],
           "    allow_hosts: []")
    for bad in ("junk\n", "\n", "[]\n", "{}\n", line(stage="x"), line(reason="x"), line(name="a b"), line(name=1),
                line(addresses=["x"]), line(addresses=[]), line(port=65536), line(port=-1), line(port="80"),
                line(protocol="x"), line(suppressed=-1), line(verdict="wait"), '{"a":1,"a":2}\n', "\0\n", "\udcff\n"):
        done = subprocess.run([PINFOLD, "suggest", "-"], input=(bad + good).encode(errors="surrogateescape"),
                              capture_output=True, timeout=60, check=False)
        expect("suggest: " + repr(bad), (done.returncode, done.stderr[:11], b"www.example.com:443" in done.stdout),
               (1, b"-:1: error:", True))


def bytes_of_a_flow():
    with tempfile.TemporaryDirectory() as folder:
        def segments(*parts):
            names = []
            for number, part in enumerate(parts):
                names.append(os.path.join(folder, str(number)))
                with open(names[-1], "wb") as file:
                    file.write(part)
            return names

        def ask(*parts, config=""):
            return explain(config, "bytes", *segments(*parts), "--to", "93.184.216.34:80", "--pinned",
                           "www.example.com", "--json")

        head = b"GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"
        expect("allow", ask(head)[0], 0)
        expect("wait", (ask(head[:-1])[0], json.loads(ask(head[:-1])[1])["verdict"]), (4, "wait"))
        expect("nothing at all waits", ask(b"")[0], 4)
        expect("empty segments", ask(b"", head[:9], b"", head[9:], b"")[0], 0)
        for cut in range(1, len(head)):
            expect(f"cut at {cut}", ask(head[:cut], head[cut:])[0], 0)
        other = head.replace(b"www", b"xyz")
        expect("a second request", ask(head, other)[0], 3)
        expect("half a second request waits", ask(head + other[:9])[0], 4)
        expect("a denial needs no more", ask(other, b"x" * 100)[0], 3)
        big = b"GET / HTTP/1.1\r\nHost: www.example.com\r\nA: " + b"x" * 60000 + b"\r\n\r\n"
        expect("a long head", ask(big)[0], 0)
        status, out, _ = ask(b"\x00\x01", config="policies: {default: {mode: audit}}")
        expect("audit", (status, json.loads(out)["enforced"]), (3, False))


def rules_print():
    status, out, _ = run("rules", "print", "-c", "/dev/null")
    expect("rules: status", status, 0)
    expect("rules: both families", [line for line in out.splitlines() if line[:1] == "#"],
           ["# for iptables-restore --noflush", "# for ip6tables-restore --noflush"])
    expect("rules: two tables each", out.count("COMMIT\n"), 4)
    expect("rules: all but root", "--uid-owner 1-4294967294 -g PF-pinfold-gov\n" in out, True)
    expect("rules: the resolver's sockets", "-d 127.0.0.1/32 -p udp -m udp --dport 53 " in out, True)
    out = run("rules", "print", "-c", "/dev/null", "--uid", "7", "--uid", "8-9")[1]
    expect("rules: instead of all", [out.count(" --uid-owner " + who) for who in ("7 -g", "8-9 -g", "1-")], [4, 4, 0])
    out = run("rules", "print", "-c", "/dev/null", "--interface", "tap0")[1]
    expect("rules: forward", ("-I FORWARD 1 -i tap0 -j PF-pinfold-gov\n" in out, "-m owner" in out), (True, False))
    out = run("rules", "print", "-c", "-", text="""
gate: {hook: forward, queue: 77, mark_mask: 0x0000ff00}
clients: [{name: vm, interface: tap7}]
floor: {addresses: [10.9.0.0/16]}
""")[1]
    expect("rules: the configuration's", [text in out for text in
           ("-i tap7 ", "--queue-num 77\n", "0x100/0xf00", "-A PF-pinfold-floor -d 10.9.0.0/16 -j PF-pinfold-infra\n",
            "-d 64:ff9b::a09:0/112 ", "PF-pinfold-out")], [True] * 5 + [False])


for part in (rules_print, usage, helping, checking, explaining, tracing, suggesting, bytes_of_a_flow):
    part()
sys.exit(1 if FAILED else 0)
