#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A server that writes down what reaches it.

    server.py LOG PORT…

Listens on every PORT, both families. One line in LOG a connection and a piece of it: `open PORT PEER`,
`bytes PORT PEER HEX`, `close PORT PEER`. Every HTTP head is answered with a short 200.
"""
import socket
import sys
import threading

lock = threading.Lock()
log = open(sys.argv[1], "a", buffering=1)


def write(*words):
    with lock:
        print(*words, file=log)


def serve(connection, port, peer):
    write("open", port, peer)
    pending, body = b"", 0
    try:
        while data := connection.recv(65536):
            write("bytes", port, peer, data.hex())
            pending += data
            while True:
                if body:
                    skip = min(body, len(pending))
                    pending, body = pending[skip:], body - skip
                    if body:
                        break
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntaken")
                if b"\r\n\r\n" not in pending:
                    break
                head, pending = pending.split(b"\r\n\r\n", 1)
                for line in head.split(b"\r\n"):
                    if line.lower().startswith(b"content-length:"):
                        body = int(line.split(b":")[1])
                if not body:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    except OSError:
        pass
    write("close", port, peer)
    connection.close()


def listen(port):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=512)
    while True:
        connection, peer = listener.accept()
        threading.Thread(target=serve, args=(connection, port, peer[0].removeprefix("::ffff:")), daemon=True).start()


for text in sys.argv[2:]:
    threading.Thread(target=listen, args=(int(text),), daemon=True).start()
write("ready")
threading.Event().wait()
