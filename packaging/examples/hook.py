#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A hook for Pinfold (pinfold-hook(7)): allows and denies by a table.

    hook.py SOCKET [TABLE]

The table is a text file, read once, hook-table.txt beside this program by default. Each line has a verdict, a host and,
if wanted, the beginning of a request target; the first line that matches answers. A host matches itself and its
children, or an address as text; * is any. What no line matches keeps the decision so far.
"""
import json
import os
import selectors
import socket
import sys

LINE_MAX = 1 << 17  # octets of a question; Pinfold sends at most 96 KiB


def read_table(path):
    table = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] not in ("allow", "deny", "keep") or not 2 <= len(words) <= 3:
                sys.exit(f"{path}:{number}: neither VERDICT HOST nor VERDICT HOST TARGET")
            table.append((words[0], words[1].lower(), words[2] if len(words) == 3 else None))
    return table


def hosts_of(question):
    """What a question is about: the name asked, or the names and the address of a destination."""
    if "name" in question:
        return [question["name"]]
    return question.get("resolved_from", []) + question.get("addresses", [])


def matches(host, pattern):
    return pattern in ("*", host) or host.endswith("." + pattern)


def answer(question, table):
    for verdict, pattern, target in table:
        if target is not None and not question.get("target", "").startswith(target):
            continue
        if any(matches(host, pattern) for host in hosts_of(question)):
            return {"id": question["id"], "verdict": verdict, "reason": f"table: {verdict} {pattern}"}
    return {"id": question["id"], "verdict": "keep"}


class Connection:
    """One of Pinfold's connections: questions come line by line, answers go back in any order."""

    def __init__(self, sock, selector, table):
        self.sock, self.selector, self.table = sock, selector, table
        self.questions = self.answers = b""
        selector.register(sock, selectors.EVENT_READ, self.ready)

    def close(self):
        self.selector.unregister(self.sock)
        self.sock.close()

    def ready(self, events):
        try:
            if events & selectors.EVENT_READ and not self.read():
                self.close()
                return
            sent = self.sock.send(self.answers) if self.answers else 0
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close()
            return
        self.answers = self.answers[sent:]
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if self.answers else 0)
        self.selector.modify(self.sock, wanted, self.ready)

    def read(self):
        data = self.sock.recv(65536)
        *lines, self.questions = (self.questions + data).split(b"\n")
        for line in lines:
            self.answers += json.dumps(answer(json.loads(line), self.table)).encode() + b"\n"
        return bool(data) and len(self.questions) <= LINE_MAX


def listen(path):
    if os.path.exists(path):
        os.unlink(path)  # of a run before; nobody else may write to the folder
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o077)  # whoever connects learns nothing and changes nothing, but need not be there
    sock.bind(path)
    os.umask(before)
    sock.listen()
    sock.setblocking(False)
    return sock


def main():
    if not 2 <= len(sys.argv) <= 3:
        sys.exit(__doc__)
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook-table.txt")
    table = read_table(sys.argv[2] if len(sys.argv) == 3 else beside)
    selector = selectors.DefaultSelector()
    listener = listen(sys.argv[1])

    def accept(_events):
        sock, _ = listener.accept()
        sock.setblocking(False)
        Connection(sock, selector, table)

    selector.register(listener, selectors.EVENT_READ, accept)
    while True:
        for key, events in selector.select():
            key.data(events)


if __name__ == "__main__":
    main()
