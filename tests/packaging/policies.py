#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The example policies load without a warning, and each does what its first lines promise.

    policies.py PINFOLD FOLDER    the program, packaging/policies
"""
import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap

PROGRAM, FOLDER = sys.argv[1:3]
METADATA = "connect 169.254.169.254 80/tcp"

# (file, what is put to `pinfold explain`, reason of the refusal or None)
CASES = [
    ("agent-desk", "connect 1.1.1.1 443/tcp --pinned example.com", None),
    ("agent-desk", "request https://example.com/ --to 93.184.216.34 --pinned example.com", None),
    ("agent-desk", "connect 127.0.0.1 8080/tcp", None),
    ("agent-desk", "connect 192.168.1.1 80/tcp", "private_address"),
    ("agent-desk", "resolve metadata.google.internal", "metadata"),
    ("strict-agent", "resolve github.com", None),
    ("strict-agent", "resolve example.com", "not_allowlisted"),
    ("strict-agent", "connect 93.184.216.34 443/tcp", "not_allowlisted"),
    ("strict-agent", "request http://github.com/", "not_allowlisted"),
    ("ci", "--client runner resolve deb.debian.org", None),
    ("ci", "--client runner resolve registry.example.com", "not_allowlisted"),
    ("ci", "--client runner connect 172.20.0.5 5432/tcp", None),
    ("ci", "--client runner connect 10.0.0.5 5432/tcp", "not_allowlisted"),
    ("browser", "--client browser request http://example.com/ --to 93.184.216.34 --pinned example.com", None),
    ("browser", "--client browser connect 192.168.1.1 80/tcp", "private_address"),
    ("browser", "--client browser connect 93.184.216.34 443/tcp", "unpinned"),
    ("browser", "--client browser answer example.com 10.0.0.1", "rebinding"),
    ("kiosk", "resolve www.example.com", None),
    ("kiosk", "resolve example.org", "not_allowlisted"),
    ("kiosk", "connect 127.0.0.1 631/tcp", "not_allowlisted"),
]


def check(path):
    done = subprocess.run([PROGRAM, "check", path], capture_output=True, text=True)
    return [] if done.returncode == 0 and not done.stderr else [f"exit {done.returncode}", done.stderr.strip()]


def explain(path, arguments, reason):
    done = subprocess.run([PROGRAM, "explain", "-c", path, "--json", *arguments.split()],
                          capture_output=True, text=True)
    if done.returncode not in (0, 3):
        return [done.stderr.strip()]
    verdict = json.loads(done.stdout)
    wanted = "allow" if reason is None else "deny"
    wrong = verdict["verdict"] != wanted or (reason is not None and verdict["reason"] != reason)
    return [done.stdout.strip()] if wrong else []


def main():
    paths = sorted(glob.glob(f"{FOLDER}/*.yaml"))
    rows = [(f"{os.path.basename(path)} loads", check(path)) for path in paths]
    for name, arguments, reason in [(os.path.basename(p)[:-5], METADATA, "metadata") for p in paths] + CASES:
        rows.append((f"{name}: {arguments}", explain(f"{FOLDER}/{name}.yaml", arguments, reason)))
    tried = {name for name, _, _ in CASES}
    rows += [(f"{path} has cases", ["none"]) for path in paths if os.path.basename(path)[:-5] not in tried]
    for title, problems in rows:
        tap.report(not problems, title, "\n".join(problems))
    return tap.end()


sys.exit(main())
