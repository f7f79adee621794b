#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the gate lets leave, every server must read as it did: the same host, or a refusal.

    http_differ.py JUDGE_HEADS

Requests are made of a corpus by mutation, with a seed that is printed (PINFOLD_SEED takes its place). Those that the gate's
reader allows for the only name that is pinned go to nginx, Node.js and Python's http.server, as many of them as are
installed, over sockets in a folder of their own. A server that sees any other host has read another request than the gate.
"""
import http.server
import json
import os
import random
import re
import shutil
import socket
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time

GOOD, EVIL = b"good.example", b"evil.example"
STREAMS = 40000  # made
SECONDS = 20     # of sending, each server in its turn
REFUSED = 400    # statuses from here on are a server's refusal

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: evil.example\r\n\r\n"
CORPUS = [
    b"GET / HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"GET / HTTP/1.1\r\nUser-Agent: a\r\nHost: good.example\r\nAccept: */*\r\n\r\n",
    b"GET http://good.example/a?b HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"GET /a HTTP/1.0\r\nHost: good.example\r\nConnection: keep-alive\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: good.example:80\r\n\r\n",
    b"HEAD /x HTTP/1.1\r\nhOST:good.example \r\nConnection: keep-alive, Host\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 46\r\n\r\n" + HIDDEN,
    b"POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n2e\r\n" + HIDDEN + b"\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: chunked\r\n\r\n2e;a=b\r\n" + HIDDEN + b"\r\n0\r\nX: y\r\n\r\n",
    b"PUT / HTTP/1.1\r\nHost: good.example\r\nExpect: 100-continue\r\nContent-Length: 46\r\n\r\n" + HIDDEN,
    b"GET / HTTP/1.1\r\nHost: good.example\r\nContent-Length: 46\r\n\r\n" + HIDDEN,
    b"GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: good.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: good.example\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\n\r\n",
    b"GET //evil.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"GET /@evil.example HTTP/1.1\r\nHost: good.example\r\n\r\n",
    b"DELETE /a HTTP/1.1\r\nHost: good.example\r\nContent-Length: 0\r\n\r\n",
]
TOKENS = [
    b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\n\n", b" ", b"\t", b"\0", b"\x0b", b"\x0c", b"\x1f", b"\x7f", b"\x85", b"\xa0", b"\xff",
    b":", b",", b";", b"/", b"@", b"#", b"?", b"%0d%0a", b"\\", b'"', b"0", b"1", b"+", b"-", b"0x",
    b"Host: evil.example\r\n", b"Host : evil.example\r\n", b" Host: evil.example\r\n", b"Host:\tevil.example\r\n",
    b"\r\nHost: evil.example", b"\nHost: evil.example", b"\rHost: evil.example", b"X: y\n\tHost: evil.example\r\n", "ho\u017ft: evil.example\r\n".encode(),
    b"evil.example", b",evil.example", b"evil.example,", b"http://evil.example/", b"//evil.example", b"GET http://evil.example/ HTTP/1.1\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding:\x0bchunked\r\n",
    b"Transfer-Encoding: chunked, identity\r\n", b"Transfer-Encoding : chunked\r\n", b"TE: chunked\r\n", b"Trailer: Host\r\n",
    b"Content-Length: 0\r\n", b"Content-Length: 46\r\n", b"Content-Length: 46, 46\r\n", b"Content-Length: +46\r\n", b"Content-Length: 0046\r\n",
    b"Content-Length: 4_6\r\n", b"Content-Length : 46\r\n", b"Content-Length: 46 0\r\n", b"Content_Length: 46\r\n", b"Content-Length: \r\n",
    b"Connection: close\r\n", b"Connection: Content-Length\r\n", b"Upgrade: websocket\r\n", b"Expect: 100-continue\r\n", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2",
    HIDDEN, b"0\r\n\r\n", b"5\r\nabcde\r\n", b"\r\n0\r\n\r\n" + HIDDEN,
]


def places(stream):
    """Where a mutation may stand; borders of lines, words and fields come twice as often."""
    borders = [at for at in range(1, len(stream)) if stream[at - 1] in b"\r\n :," or stream[at] in b"\r\n :,"]
    return borders * 2 + list(range(len(stream) + 1))


def mutate(stream, chance):
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3))):
        at = chance.choice(places(stream))
        kind = chance.randrange(4)
        if kind < 2:
            stream = stream[:at] + chance.choice(TOKENS) + stream[at:]
        elif kind == 2:
            stream = stream[:at] + stream[at + chance.choice((1, 1, 2, 4, 16)):]
        else:
            token = chance.choice(TOKENS)
            stream = stream[:at] + token + stream[at + len(token):]
    return stream


def made(chance):
    """Streams without end, no two alike: the corpus, pairs of it, then mutations."""
    seen = set()
    for stream in CORPUS + [a + b for a in CORPUS for b in CORPUS[:6]]:
        seen.add(stream)
        yield stream
    while True:
        stream = chance.choice(CORPUS)
        if chance.randrange(3) == 0:
            stream += chance.choice(CORPUS)
        stream = mutate(stream, chance)
        if stream and stream not in seen:
            seen.add(stream)
            yield stream


def allowed(judge, streams):
    """Those that the gate's reader lets leave whole."""
    given = b"".join(struct.pack(">I", len(stream)) + stream for stream in streams)
    answers = subprocess.run([judge], input=given, capture_output=True, check=True).stdout.split()
    assert len(answers) == len(streams)
    return [stream for stream, answer in zip(streams, answers) if answer == b"allow"]


class Server:
    """One server at the socket PATH; seen() gives the hosts of the requests that it has taken since it was last asked."""

    def __init__(self, folder, name):
        self.name, self.path, self.log = name, os.path.join(folder, name), os.path.join(folder, name + ".log")
        self.process, self.at = None, 0

    def ready(self):
        for _ in range(200):
            try:
                if self.ask(CORPUS[0]) and self.seen() == [GOOD]:
                    return True
            except OSError:
                pass
            time.sleep(0.05)
        return False

    def ask(self, stream):
        """Sends all and the end; the answer is whatever comes until the server closes."""
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(5)
            peer.connect(self.path)
            answer = b""
            try:
                peer.sendall(stream)
                peer.shutdown(socket.SHUT_WR)
                while part := peer.recv(65536):
                    answer += part
            except (ConnectionError, TimeoutError):
                pass  # a refusal, before all was sent or read
            return answer

    def seen(self):
        with open(self.log, "rb") as file:
            file.seek(self.at)
            lines = file.read()
            self.at += len(lines)
        return [json.loads(line).encode("latin-1") for line in lines.splitlines()]

    def end(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait()


class Nginx(Server):
    CONFIG = """
        daemon off; pid %(folder)s/pid; error_log /dev/null; worker_processes 1; %(user)s
        events {}
        http {
            log_format host escape=json '"$host"';
            map $status $taken { ~^[45] 0; default 1; }
            client_body_temp_path %(folder)s/a; proxy_temp_path %(folder)s/b; fastcgi_temp_path %(folder)s/c;
            uwsgi_temp_path %(folder)s/d; scgi_temp_path %(folder)s/e;
            access_log %(log)s host if=$taken;
            server { listen unix:%(path)s; location / { return 200 "ok"; } }
        }"""

    def start(self, program, folder):
        config = os.path.join(folder, "nginx.conf")
        user = "user root;" if os.geteuid() == 0 else ""
        with open(config, "w", encoding="ascii") as file:
            file.write(self.CONFIG % {"folder": folder, "log": self.log, "path": self.path, "user": user})
        self.process = subprocess.Popen([program, "-c", config, "-e", "/dev/null"], stderr=subprocess.DEVNULL)


class Node(Server):
    PROGRAM = """
        const fs = require('fs'), [path, log] = process.argv.slice(1);
        require('http').createServer((request, response) => {
            const absolute = /^[a-z]+:\\/\\/([^\\/?#]*)/i.exec(request.url);
            const host = absolute ? absolute[1] : request.headers.host === undefined ? '' : request.headers.host;
            fs.appendFileSync(log, JSON.stringify(host) + '\\n');
            request.resume();
            request.on('end', () => response.end('ok'));
        }).listen(path);"""

    def start(self, program, _):
        self.process = subprocess.Popen([program, "-e", self.PROGRAM, self.path, self.log], stderr=subprocess.DEVNULL)


class Python(Server):
    def start(self, _, __):
        log = self.log

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def take(self):
                host = ", ".join(self.headers.get_all("Host", []))
                absolute = re.match(r"[A-Za-z]+://([^/?#]*)", self.path)
                if absolute:
                    host = absolute.group(1)
                with open(log, "a", encoding="ascii") as file:
                    file.write(json.dumps(host) + "\n")
                # the framing is the application's here; what it cannot frame it must close
                length = self.headers.get("Content-Length", "0")
                if "Transfer-Encoding" in self.headers or not length.isdecimal():
                    self.close_connection = True
                else:
                    self.rfile.read(int(length))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_OPTIONS = take

            def address_string(self):
                return "-"

            def log_message(self, *_):
                pass

        class Quiet(socketserver.UnixStreamServer):
            def handle_error(self, *_):
                pass

        server = Quiet(self.path, Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def servers(folder):
    found = []
    for kind, name, program in ((Nginx, "nginx", shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")),
                                (Node, "node", shutil.which("node")), (Python, "python", "python")):
        if program is None:
            continue
        server = kind(folder, name)
        with open(server.log, "wb"):
            pass
        server.start(program, folder)
        found.append(server)
    return found


def is_good(host):
    return host.lower().strip(b" \t") in (GOOD, GOOD + b":80")


def differ(server, streams):
    """The first stream in which SERVER sees another host; how many it was given and had requests in."""
    end, given, taken = time.monotonic() + SECONDS, 0, 0
    for stream in streams:
        if time.monotonic() > end:
            break
        server.ask(stream)
        hosts = server.seen()
        given += 1
        taken += len(hosts) > 0
        for host in hosts:
            if not is_good(host):
                return f"{server.name} saw {host!r} in {stream!r}", given, taken
    return None, given, taken


def main():
    seed = int(os.environ.get("PINFOLD_SEED", "20261201"))
    chance = random.Random(seed)
    source = made(chance)
    streams = allowed(sys.argv[1], [next(source) for _ in range(STREAMS)])
    print(f"seed {seed}: {len(streams)} of {STREAMS} streams are allowed")
    # the corpus comes first, the rest in any order, so that a slow machine tries a fair part of it
    streams = streams[:100] + chance.sample(streams[100:], len(streams) - 100)
    failed = len(streams) < 500
    with tempfile.TemporaryDirectory() as folder:
        found = servers(folder)
        try:
            for server in found:
                if not server.ready():
                    print(f"{server.name} does not start")
                    return 1
                # an open eye: the host that must never be seen is seen when it is sent
                server.ask(HIDDEN)
                if server.seen() != [EVIL]:
                    print(f"{server.name} is not seen to take requests")
                    return 1
                problem, given, taken = differ(server, streams)
                print(problem or f"{server.name}: {given} streams, {taken} with requests that it took")
                failed = failed or problem is not None or taken < given // 10
        finally:
            for server in found:
                server.end()
    if len(found) < 2:
        print("nginx or nodejs is not installed")
        return 77
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
