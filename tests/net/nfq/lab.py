# SPDX-License-Identifier: GPL-2.0-or-later
"""Three network namespaces for the gate alone, a server that writes down what reaches it, and TAP.

     client                      gate                        server
    +------------+   cg  gc   +----------------+   gs  sg   +---------------------+
    | 10.77.0.2  |------------| 10.77.0.1      |------------| 93.184.216.34       |
    | fd77::2    |            |     93.184.216.1           | 2606:2800:220::34   |
    +------------+            +----------------+            +---------------------+

The gate's namespace forwards. The client's traffic goes through hook `forward`, what uid 1234 sends in the
gate's namespace through hook `output`.
"""
import os
import queue
import subprocess
import sys
import threading
import time

UID = 1234
SERVER4, SERVER6 = "93.184.216.34", "2606:2800:220::34"
OTHER4 = "93.184.216.35"
HERE = os.path.dirname(os.path.abspath(__file__))


def run(*words, check=True, **options):
    return subprocess.run(words, check=check, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


class Lab:
    def __init__(self, folder):
        self.folder = folder
        self.names = {n: f"nfqt{os.getpid()}{n[0]}" for n in ("client", "gate", "server")}
        self.processes = []

    def inside(self, namespace, *words, **options):
        return run("ip", "netns", "exec", self.names[namespace], *words, **options)

    def start(self, namespace, *words, **options):
        process = subprocess.Popen(["ip", "netns", "exec", self.names[namespace], *words], **options)
        self.processes.append(process)
        return process

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for name in self.names.values():
            run("ip", "netns", "delete", name, check=False)

    def build(self):
        for name in self.names.values():
            run("ip", "netns", "add", name)
        for n in self.names:
            self.inside(n, "ip", "link", "set", "lo", "up")
            self.inside(n, "sysctl", "-qw", "net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")
        run("ip", "link", "add", "cg", "netns", self.names["client"], "type", "veth", "peer", "gc", "netns", self.names["gate"])
        run("ip", "link", "add", "sg", "netns", self.names["server"], "type", "veth", "peer", "gs", "netns", self.names["gate"])
        for n, device, addresses in (("client", "cg", ("10.77.0.2/24", "fd77::2/64")),
                                     ("gate", "gc", ("10.77.0.1/24", "fd77::1/64")),
                                     ("gate", "gs", ("93.184.216.1/24", "2606:2800:220::1/64")),
                                     ("server", "sg", (SERVER4 + "/24", OTHER4 + "/24", SERVER6 + "/64"))):
            for address in addresses:
                self.inside(n, "ip", "address", "add", address, "dev", device, *(["nodad"] if ":" in address else []))
            self.inside(n, "ip", "link", "set", device, "up")
        for n, via4, via6 in (("client", "10.77.0.1", "fd77::1"), ("server", "93.184.216.1", "2606:2800:220::1")):
            self.inside(n, "ip", "route", "add", "default", "via", via4)
            self.inside(n, "ip", "-6", "route", "add", "default", "via", via6)
        self.inside("gate", "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        self.log = os.path.join(self.folder, "server.log")
        self.start("server", sys.executable, os.path.join(HERE, "server.py"), self.log, "80", "443", "22")
        self.until(lambda: os.path.exists(self.log) and "ready" in open(self.log).read(), "the server")

    def install(self, parent, config):
        """The rules that Pinfold installs: for the client's interface, and for a uid of the gate's namespace."""
        path = os.path.join(self.folder, "rules.yaml")
        with open(path, "w") as file:
            file.write(config)
        for selector in ("gc", str(UID)):
            for family, tool in (("4", "iptables"), ("6", "ip6tables")):
                self.inside("gate", tool + "-restore", "--noflush", input=run(parent, "--rules", family, path, selector).stdout)

    @staticmethod
    def until(condition, what, seconds=10.0):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"waited for {what}")
            time.sleep(0.01)

    def lines(self):
        return open(self.log).read().splitlines()

    def received(self, mark):
        """All bytes after `mark`, a count of log lines, by the order of arrival."""
        return b"".join(bytes.fromhex(line.split()[3]) for line in self.lines()[mark:] if line.startswith("bytes"))

    def mark(self):
        return len(self.lines())


class Gate:
    """A gate under its test parent."""

    def __init__(self, lab, program, parent, config, *identity, namespace="gate"):
        path = os.path.join(lab.folder, f"config{time.monotonic_ns()}.yaml")
        with open(path, "w") as file:
            file.write(config)
        self.lab = lab
        self.process = lab.start(namespace, parent, program, path, *identity, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True, bufsize=1)
        self.answers, self.audits, self.last = queue.Queue(), [], None
        threading.Thread(target=self.read, daemon=True).start()
        self.first = self.answer()
        self.pid = int(self.first.split()[1]) if self.first.startswith("ready") else None

    def read(self):
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if line.startswith("audit "):
                self.audits.append(line[6:])
            else:
                self.answers.put(line)
        self.answers.put(None)

    def answer(self):
        return self.answers.get(timeout=10)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        return self.answer()

    def pin(self, client, name, address, seconds=300):
        assert self.ask(f"pin {client} {name} {address} {seconds}") == "pinned 0"

    def reload(self, config):
        path = os.path.join(self.lab.folder, f"config{time.monotonic_ns()}.yaml")
        with open(path, "w") as file:
            file.write(config)
        return self.ask("reload " + path)

    def status(self):
        words = self.ask("status").split()[1:]
        return {k: int(v) for k, v in (w.split("=") for w in words)}

    def audited(self, count, text=None, seconds=5.0):
        """Waits until COUNT audit lines (with TEXT) are there; returns them."""
        chosen = lambda: [a for a in list(self.audits) if text is None or text in a]
        end = time.monotonic() + seconds
        while len(chosen()) < count and time.monotonic() < end:
            time.sleep(0.01)
        return chosen()

    def end(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(timeout=10)


class Tap:
    """One line a case; the exit status says whether all passed."""

    def __init__(self):
        self.count, self.failed = 0, 0

    def case(self, name, function):
        self.count += 1
        try:
            function()
            print(f"ok {self.count} - {name}", flush=True)
        except Exception as error:  # a case that breaks is a case that failed
            self.failed += 1
            import traceback
            print(f"not ok {self.count} - {name}", flush=True)
            for line in traceback.format_exc().splitlines():
                print(f"# {line}", flush=True)

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0
