#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The count at the end of ./test: what it must not miss. Prints TAP."""
import json
import os
import subprocess
import sys
import tempfile

COUNT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "count.py")
CMOCKA_GOOD = "[==========] Running 2 test(s).\n[       OK ] one\n[       OK ] two\n[  PASSED  ] 2 test(s).\n"
CMOCKA_BAD = "[  FAILED  ] two\n[  PASSED  ] 1 test(s).\n[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] two\n"
CMOCKA_SKIP = "[  SKIPPED ] two\n[  PASSED  ] 1 test(s).\n[  SKIPPED ] 1 test(s), listed below:\n[  SKIPPED ] two\n"

# what it is, (result, output) of each program, more arguments, the last line, exit status
CASES = [
    ("cmocka cases", [("OK", CMOCKA_GOOD)], [], "2 passed, 0 failed, 0 skipped", 0),
    ("a failed cmocka case", [("FAIL", CMOCKA_BAD)], [], "1 passed, 1 failed, 0 skipped", 1),
    ("a skipped cmocka case", [("OK", CMOCKA_SKIP)], [], "1 passed, 0 failed, 1 skipped", 0),
    ("TAP", [("OK", "ok 1 - a\nok 2\n1..2\n")], [], "2 passed, 0 failed, 0 skipped", 0),
    ("a failed TAP case", [("FAIL", "ok 1 - a\nnot ok 2 - b\n")], [], "1 passed, 1 failed, 0 skipped", 1),
    ("a skipped TAP case", [("OK", "ok 1 - a\nok 2 - b # SKIP no kernel\n")], [], "1 passed, 0 failed, 1 skipped", 0),
    ("a program without cases", [("OK", "fine\n")], [], "1 passed, 0 failed, 0 skipped", 0),
    ("a program that fails without cases", [("FAIL", "")], [], "0 passed, 1 failed, 0 skipped", 1),
    ("a crash after good cases", [("FAIL", CMOCKA_GOOD)], [], "2 passed, 1 failed, 0 skipped", 1),
    ("a time-out", [("TIMEOUT", "ok 1 - a\n")], [], "1 passed, 1 failed, 0 skipped", 1),
    ("a skipped program", [("OK", ""), ("SKIP", "1..0 # SKIP needs root\n")], [], "1 passed, 0 failed, 1 skipped", 0),
    ("nothing but skipped", [("SKIP", "no\n")], [], "0 passed, 0 failed, 1 skipped", 1),
    ("nothing at all", [], [], "0 passed, 0 failed, 0 skipped", 1),
    ("a build that broke", [("OK", "")], ["--broken", "clang"], "1 passed, 1 failed, 0 skipped", 1),
]


def run(programs, arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as log:
        for result, output in programs:
            log.write(json.dumps({"name": "program", "result": result, "stdout": output}) + "\n")
        log.flush()
        done = subprocess.run([sys.executable, COUNT, log.name, *arguments], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    return lines[-1] if lines else "", done.returncode


failed = 0
for number, (name, programs, arguments, line, status) in enumerate(CASES, 1):
    got = run(programs, arguments)
    if got == (line, status):
        print(f"ok {number} - {name}")
    else:
        failed += 1
        print(f"not ok {number} - {name}\n# {got}, not {(line, status)}")
print(f"1..{len(CASES)}")
sys.exit(1 if failed else 0)
