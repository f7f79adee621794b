#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The example hook by itself, and asked by `explain --ask-hook`: example.py PINFOLD HOOK"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time

PINFOLD, HOOK = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
FAILED = []


def expect(name, got, want):
    if got != want:
        FAILED.append(name)
        print(f"{name}: want {want!r}, got {got!r}")


def connect(path):
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(20)
    sock.connect(path)
    return sock, sock.makefile("r", encoding="utf-8")


def start(folder, table):
    path, file = os.path.join(folder, "hook.sock"), os.path.join(folder, "table")
    with open(file, "w", encoding="utf-8") as out:
        out.write(table)
    process = subprocess.Popen([sys.executable, "-B", HOOK, path, file])
    for _ in range(1000):
        try:
            connect(path)[0].close()
            return process, path
        except OSError:
            time.sleep(0.02)
    sys.exit("the hook does not start")


def protocol(path):
    many = [connect(path) for _ in range(20)]
    # half a line on one holds up nobody
    many[0][0].sendall(b'{"id":1,"stage":"resolve","name":"a.deny.exam')
    for number, (sock, lines) in enumerate(many[1:], 1):
        question = {"id": number, "stage": "resolve", "name": "x.deny.example"}
        sock.sendall(json.dumps(question).encode() + b"\n")
        expect("answer", json.loads(lines.readline()),
               {"id": number, "verdict": "deny", "reason": "table: deny deny.example"})
    many[0][0].sendall(b'ple"}\n')
    expect("half a line", json.loads(many[0][1].readline())["verdict"], "deny")
    # more than any buffer holds, all in one go
    sock, lines = many[1]
    text = "".join(json.dumps({"id": i, "stage": "request", "name": "x.example", "target": "/" + "a" * 500}) + "\n"
                   for i in range(5000))
    threading.Thread(target=sock.sendall, args=(text.encode(),), daemon=True).start()
    expect("pipelined", [json.loads(lines.readline())["id"] for _ in range(5000)], list(range(5000)))
    for sock, lines in many:
        lines.close()
        sock.close()


def explain(folder, custom, *words):
    config = os.path.join(folder, "pinfold.yaml")
    with open(config, "w", encoding="utf-8") as out:
        out.write("policies: {default: {default: deny, allow_hosts: [allowed.example, deny.example, keep.example, "
                  "meta.example], custom_timeout: 5, " + custom + "}}\n")
    done = subprocess.run([PINFOLD, "explain", "-c", config, *words], capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode()


def asked(folder, path):
    hook = f'custom: "unix:{path}"'
    rows = [
        (["resolve", "www.keep.example"], 0, "allowed"),
        (["resolve", "www.deny.example"], 3, "custom"),
        (["resolve", "www.lift.example"], 0, "allowed"),
        (["resolve", "other.example"], 3, "not_allowlisted"),
        (["resolve", "metadata.google.internal"], 3, "metadata"),
        (["answer", "www.lift.example", "93.184.216.34"], 0, "allowed"),
        (["answer", "www.lift.example", "10.0.0.1"], 3, "not_allowlisted"),
        (["answer", "www.keep.example", "10.0.0.1"], 3, "rebinding"),
        (["connect", "93.184.216.34", "80"], 3, "not_allowlisted"),
        (["connect", "93.184.216.35", "80"], 0, "allowed"),
        (["connect", "93.184.216.34", "80", "--pinned", "www.lift.example"], 0, "allowed"),
        (["connect", "169.254.169.254", "80"], 3, "metadata"),
        (["request", "http://www.keep.example/a", "--to", "93.184.216.34", "--pinned", "www.keep.example"], 0,
         "allowed"),
        (["request", "http://www.keep.example/secret/a", "--to", "93.184.216.34", "--pinned", "www.keep.example"], 3,
         "custom"),
        (["request", "http://www.lift.example/", "--to", "93.184.216.34", "--pinned", "www.lift.example"], 0,
         "allowed"),
        (["request", "http://www.lift.example/", "--to", "93.184.216.34", "--pinned", "www.keep.example"], 3,
         "not_allowlisted"),
        (["request", "http://www.keep.example/", "--to", "93.184.216.34", "--pinned", "www.lift.example"], 3,
         "name_mismatch"),
    ]
    for words, status, reason in rows:
        got, out = explain(folder, hook, *words, "--ask-hook", "--json")
        expect(" ".join(words), (got, json.loads(out)["reason"]), (status, reason))
    head = os.path.join(folder, "head")
    with open(head, "wb") as out:
        out.write(b"GET /secret HTTP/1.1\r\nHost: www.keep.example\r\n\r\n")
    got, out = explain(folder, hook, "bytes", head, "--to", "93.184.216.34:80", "--pinned", "www.keep.example",
                       "--ask-hook", "--json")
    expect("bytes", (got, json.loads(out)["reason"], json.loads(out)["stage"]), (3, "custom", "request"))
    # not asked: the verdict so far, and that there is one to ask
    got, out = explain(folder, hook, "resolve", "www.deny.example", "--json")
    expect("not asked", (got, json.loads(out).get("hook")), (0, path))
    got, out = explain(folder, hook, "resolve", "metadata.google.internal", "--json")
    expect("never asked", (got, json.loads(out).get("hook")), (3, None))
    got, out = explain(folder, hook + ", custom_stages: [connect]", "resolve", "www.deny.example", "--ask-hook")
    expect("another stage", got, 0)
    got, out = explain(folder, hook, "resolve", "www.deny.example", "--ask-hook")
    expect("words", (got, "table: deny deny.example" in out), (3, True))


def odd_hook(path, reply):
    """Answers each question with what REPLY makes of its id; None: never."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()

    def serve():
        while True:
            peer, _ = listener.accept()
            question = json.loads(peer.makefile("r", encoding="utf-8").readline())
            text = reply(question["id"])
            try:
                if text is not None:
                    peer.sendall(text)
                peer.recv(1)  # until it is closed
            except OSError:
                pass
            peer.close()

    threading.Thread(target=serve, daemon=True).start()


def odd(folder):
    rows = {
        "junk": (lambda n: b"perhaps\n", "not right"),
        "unknown": (lambda n: b'{"id":%d,"verdict":"maybe"}\n' % n, "no such verdict"),
        "other": (lambda n: b'{"id":%d,"verdict":"allow"}\n' % (n + 5000), "not right"),
        "endless": (lambda n: b" " * 8192, "not right"),
        "silent": (lambda n: None, "in time"),
    }
    for name, (reply, words) in rows.items():
        path = os.path.join(folder, name)
        odd_hook(path, reply)
        got, out = explain(folder, f'custom: "unix:{path}"', "resolve", "www.keep.example", "--ask-hook")
        expect(name, (got, "policy_error" in out, words in out), (3, True, True))
    got, out = explain(folder, f'custom: "unix:{folder}/missing"', "resolve", "www.keep.example", "--ask-hook")
    expect("missing", (got, "policy_error" in out, "No such file" in out), (3, True, True))


def main():
    with tempfile.TemporaryDirectory() as folder:
        process, path = start(folder, "deny deny.example # a comment\n\nallow lift.example\ndeny * /secret\n"
                                      "allow 93.184.216.35\n")
        try:
            protocol(path)
            asked(folder, path)
        finally:
            process.kill()
            process.wait()
        odd(folder)
        for line in ("perhaps a.example", "deny", "deny a b c"):
            with open(os.path.join(folder, "table"), "w", encoding="utf-8") as out:
                out.write("keep *\n" + line)
            done = subprocess.run([sys.executable, "-B", HOOK, path, os.path.join(folder, "table")],
                                  capture_output=True, timeout=60, check=False)
            expect("bad table", (done.returncode, b"table:2:" in done.stderr), (1, True))
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
