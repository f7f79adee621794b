#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Web sites that write down every connection and the bytes that came with it.

    web.py --name WHO … KIND:PORT:ADDRESS…        KIND: http, https, udp

Log lines:   connect ADDRESS PORT            a TCP connection was accepted
             bytes ADDRESS PORT N FIRST…     its first bytes arrived, and what they look like
             request ADDRESS PORT HOST TARGET
             dripped ADDRESS PORT HOST       a client that asked for /drip went away
             datagram ADDRESS PORT N         (which counts as bytes as well)
"""
import argparse
import os
import socket
import ssl
import threading
import time

HEAD_MAX = 1 << 17
DRIPS = 1200  # lines of an answer that takes its time: a minute
IDLE = 10  # seconds a connection may say nothing


class Site:
    def __init__(self, options):
        self.name = options.name
        self.file = open(options.log, "a", encoding="utf-8", buffering=1)
        self.context = None
        if options.certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(options.certificate, options.key)

    def log(self, line):
        self.file.write(line + "\n")

    def listen(self, kind, port, address):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        if kind == "udp":
            target = self.datagrams
        else:
            sock.listen(512)
            target = self.accept
        threading.Thread(target=target, args=(sock, kind, port, address), daemon=True).start()

    def datagrams(self, sock, _kind, port, address):
        while True:
            data, peer = sock.recvfrom(65536)
            self.log(f"bytes {address} {port} {len(data)} datagram")
            sock.sendto(self.name.encode() + b"\n", peer)

    def accept(self, sock, kind, port, address):
        while True:
            connection, _ = sock.accept()
            self.log(f"connect {address} {port}")
            threading.Thread(target=self.connection, args=(connection, kind, port, address), daemon=True).start()

    def connection(self, connection, kind, port, address):
        try:
            connection.settimeout(IDLE)
            first = connection.recv(4096, socket.MSG_PEEK)
            if not first:
                return
            text = first.split(b"\r\n")[0][:100]
            self.log(f"bytes {address} {port} {len(first)} {text!r}")
            if kind == "https":
                connection = self.context.wrap_socket(connection, server_side=True)
            while self.request(connection, port, address):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def request(self, connection, port, address):
        """Answers one request; True when another may follow."""
        data = b""
        while b"\r\n\r\n" not in data:
            more = connection.recv(65536)
            if not more or len(data) > HEAD_MAX:
                return False
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        target = lines[0].split(" ")[1] if lines[0].count(" ") >= 2 else "?"
        fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
        missing = int(fields.get("content-length", "0")) - len(body)
        while missing > 0:
            more = connection.recv(65536)
            if not more:
                return False
            missing -= len(more)
        host = fields.get("host", "-")
        self.log(f"request {address} {port} {host} {target[:200]}")
        if target == "/drip":
            return self.drip(connection, address, port, host)
        keep = lines[0].endswith("HTTP/1.1") and fields.get("connection", "").lower() != "close"
        text = f"{self.name} {address} {port} host {fields.get('host', '-')}\n".encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n%s\r\n%s" %
                           (len(text), b"" if keep else b"Connection: close\r\n", text))
        return keep

    def drip(self, connection, address, port, host):
        """A line now and then until the client has enough."""
        connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
        try:
            for _ in range(DRIPS):
                connection.sendall(f"drip {host}\n".encode())
                time.sleep(0.05)
        except OSError:
            self.log(f"dripped {address} {port} {host}")
        return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--ready", required=True)
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    parser.add_argument("sites", nargs="+")
    options = parser.parse_args()
    site = Site(options)
    for item in options.sites:
        kind, port, address = item.split(":", 2)
        site.listen(kind, int(port), address)
    os.close(os.open(options.ready, os.O_CREAT | os.O_WRONLY))
    threading.Event().wait()


if __name__ == "__main__":
    main()
