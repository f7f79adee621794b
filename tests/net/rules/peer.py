#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The two ends of a connection, for tests of the rules alone.

    peer.py serve LOG|- PORT…                 TCP and UDP on every address; writes down what comes and echoes it
    peer.py tcp ADDRESS PORT [WORD|@FILE]…    connects, sends each word and waits for its echo; waits for a file
    peer.py leave ADDRESS PORT WORD           fills the connection, sends WORD behind and closes at once
    peer.py udp ADDRESS PORT WORD
    peer.py mptcp ADDRESS PORT WORD

With AS=UID in the environment all of it is done by that user. A client prints how it ended in one word (echoed, connected, refused, reset, prohibited, timeout) and how long it took:
"now" or "late" (more than 500 ms). Port 99 is read after a second and not echoed.
"""
import errno
import os
import select
import socket
import sys
import time

ENDS = {errno.ECONNREFUSED: "refused", errno.ECONNRESET: "reset", errno.EPIPE: "reset", errno.EACCES: "prohibited",
        errno.EHOSTUNREACH: "prohibited", errno.EPERM: "prohibited"}


def family_of(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def serve(log, ports):
    log = sys.stdout if log == "-" else open(log, "a", buffering=1)
    listeners, streams, late = [], [], {}
    for port in ports:
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                one = socket.socket(family, kind)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                if port == 99:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                one.bind((address, port))
                if kind == socket.SOCK_STREAM:
                    one.listen(16)
                listeners.append(one)
    print("ready", file=log, flush=True)
    while True:
        now = time.monotonic()
        watched = listeners + [s for s in streams if late.get(s, 0) < now]
        for one in select.select(watched, [], [], 0.05)[0]:
            if one in listeners and one.type == socket.SOCK_STREAM:
                stream, peer = one.accept()
                streams.append(stream)
                port = one.getsockname()[1]
                if port == 99:
                    late[stream] = now + 1
                print("connect", port, file=log)
            elif one in listeners:
                data, peer = one.recvfrom(65536)
                print("datagram", one.getsockname()[1], data.decode("ascii", "replace"), file=log)
                one.sendto(data, peer)
            else:
                try:
                    data = one.recv(65536)
                    if data and one not in late:
                        one.send(data[-64:])
                except OSError:
                    data = b""
                if data:
                    print("bytes", one.getsockname()[1], data[-40:].decode("ascii", "replace"), file=log)
                else:
                    print("end", one.getsockname()[1], file=log)
                    streams.remove(one)
                    one.close()


waited = 0.0


def wait_for(path):
    global waited
    start = time.monotonic()
    while not os.path.exists(path) and time.monotonic() < start + 30:
        time.sleep(0.02)
    waited = time.monotonic() - start


def talk(connection, words):
    end = "connected"
    for word in words:
        if word[0] == "@":
            wait_for(word[1:])
            continue
        connection.sendall(word.encode())
        end = "echoed" if connection.recv(4096).decode() == word else "reset"
        if end == "reset":
            break
    return end


def leave(connection, word):
    """The peer reads late, so most of this is sent by the kernel when the socket is closed already."""
    connection.sendall(b"x" * 200000 + word.encode())
    connection.close()
    return "connected"


def client(kind, address, port, words):
    start = time.monotonic()
    protocol = 262 if kind == "mptcp" else 0
    connection = socket.socket(family_of(address), socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM, protocol)
    if kind == "leave":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 21)
    connection.settimeout(float(os.environ.get("PATIENCE", "0.8")))
    try:
        connection.connect((address, port))
        end = leave(connection, words[0]) if kind == "leave" else talk(connection, words)
    except TimeoutError:
        end = "timeout"
    except OSError as error:
        end = ENDS.get(error.errno, str(error))
    print(end, "now" if time.monotonic() - start - waited < 0.5 else "late")


if "AS" in os.environ:
    os.setgroups([])
    os.setresgid(*[int(os.environ["AS"])] * 3)
    os.setresuid(*[int(os.environ["AS"])] * 3)
if sys.argv[1] == "serve":
    serve(sys.argv[2], [int(port) for port in sys.argv[3:]])
else:
    client(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:])
