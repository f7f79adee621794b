#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual keeps up with the program: each command of `pinfold help` and each option of its help has a place in
pinfold(8), and mandoc finds no fault in any page.

    manual.py PINFOLD FOLDER    the program, docs/man
"""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap

PROGRAM, FOLDER = sys.argv[1:3]


def output(*arguments):
    return subprocess.run(arguments, check=True, capture_output=True, text=True).stdout


def documented(page, option):
    """mdoc writes --json as `Fl -json`, -c as `Fl c`."""
    return re.search(r"\bFl " + re.escape(option[1:]) + r"(?![\w-])", page) is not None


def main():
    with open(os.path.join(FOLDER, "pinfold.8"), encoding="utf-8") as file:
        page = file.read()
    rows = []
    for command in re.findall(r"^  ([a-z][a-z-]*) ", output(PROGRAM, "help"), re.M):
        named = re.search(r"\b(?:It )?Cm " + re.escape(command) + r"\b", page)
        rows.append((f"pinfold {command}", [] if named else ["not in pinfold(8)"]))
        options = re.findall(r"^  (-[\w-]+)", output(PROGRAM, "help", command), re.M)
        missing = [option for option in dict.fromkeys(options) if not documented(page, option)]
        rows.append((f"options of {command}", [f"{option} is not in pinfold(8)" for option in missing]))
    for path in sorted(glob.glob(os.path.join(FOLDER, "*.[1-9]"))):
        if shutil.which("mandoc") is None:
            rows.append((f"{os.path.basename(path)} # SKIP no mandoc", []))
            continue
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", path], capture_output=True, text=True)
        rows.append((os.path.basename(path), done.stdout.splitlines()))
    for title, problems in rows:
        tap.report(not problems, title, "\n".join(problems))
    return tap.end()


sys.exit(main())
