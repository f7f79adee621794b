#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What pinfold.service promises to systemd, seen from systemd's end of the socket: READY=1 once everything stands,
WATCHDOG=1 in time and only for whom it is meant, RELOADING=1 and READY=1 for a reload, STOPPING=1 at the end.

    service.py PINFOLD
"""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap

PROGRAM = sys.argv[1]
WATCHDOG = 0.4  # seconds that the manager would wait
CONFIGURATION = """\
resolver: {{listen: ["127.0.0.1@53"], trust_anchor: none}}
control: {{socket: {folder}/control.sock}}
"""


class Manager:
    """The service manager's socket."""

    def __init__(self, folder):
        self.path = f"{folder}/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard = []

    def hear(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                self.heard.append((time.monotonic(), self.socket.recv(4096).decode()))
            except TimeoutError:
                return

    def wait_for(self, state, seconds=20):
        """Whether it is heard, from now on."""
        end, first = time.monotonic() + seconds, len(self.heard)
        while time.monotonic() < end:
            self.hear(0.05)
            if any(text.startswith(state) for _, text in self.heard[first:]):
                return True
        return False

    def watchdogs(self):
        return [when for when, text in self.heard if text == "WATCHDOG=1"]


def start(folder, manager, **environment):
    with open(f"{folder}/pinfold.yaml", "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(folder=folder))
    return subprocess.Popen([PROGRAM, "daemon", "-c", f"{folder}/pinfold.yaml"],
                            env={"PATH": os.environ["PATH"], "NOTIFY_SOCKET": manager.path, **environment})


def watched(folder):
    manager = Manager(folder)
    daemon = start(folder, manager, WATCHDOG_USEC=str(int(WATCHDOG * 1e6)))
    tap.report(manager.wait_for("READY=1"), "READY=1", manager.heard)
    manager.heard.clear()
    manager.hear(6 * WATCHDOG)
    beats = manager.watchdogs()
    gaps = [b - a for a, b in zip(beats, beats[1:])]
    tap.report(len(beats) >= 6 and max(gaps, default=99) < 2 * WATCHDOG, "WATCHDOG=1 in time", gaps)
    os.kill(daemon.pid, signal.SIGHUP)
    tap.report(manager.wait_for("RELOADING=1"), "RELOADING=1", manager.heard)
    stamp = [re.search(r"MONOTONIC_USEC=(\d+)", text) for _, text in manager.heard if "RELOADING" in text]
    tap.report(bool(stamp and stamp[0]), "its time stamp", manager.heard)
    tap.report(any(text == "READY=1" for _, text in manager.heard) or manager.wait_for("READY=1"), "READY=1 after it",
               manager.heard)
    os.kill(daemon.pid, signal.SIGSTOP)
    manager.hear(0.2)
    manager.heard.clear()
    manager.hear(3 * WATCHDOG)
    tap.report(not manager.watchdogs(), "a stopped service is silent", manager.heard)
    os.kill(daemon.pid, signal.SIGCONT)
    daemon.terminate()
    tap.report(manager.wait_for("STOPPING=1"), "STOPPING=1", manager.heard)
    tap.report(daemon.wait(20) == 0, "ends in order")


def unwatched(folder, name, **environment):
    manager = Manager(folder)
    daemon = start(folder, manager, **environment)
    ready = manager.wait_for("READY=1")
    manager.hear(3 * WATCHDOG)
    tap.report(ready and not manager.watchdogs(), name, manager.heard)
    daemon.terminate()
    daemon.wait(20)


def main():
    if "--inside" not in sys.argv:
        if os.geteuid() != 0:
            print("1..0 # SKIP needs root")
            return 77
        inside = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, *sys.argv, "--inside"])
        return inside.returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    microseconds = str(int(WATCHDOG * 1e6))
    with tempfile.TemporaryDirectory() as folder:
        watched(folder)
    with tempfile.TemporaryDirectory() as folder:
        unwatched(folder, "nobody watches: no WATCHDOG=1")
    with tempfile.TemporaryDirectory() as folder:
        unwatched(folder, "another process is watched", WATCHDOG_USEC=microseconds, WATCHDOG_PID="1")
    with tempfile.TemporaryDirectory() as folder:
        unwatched(folder, "WATCHDOG_USEC is no number", WATCHDOG_USEC="10s")
    return tap.end()


sys.exit(main())
