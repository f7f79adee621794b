#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds up what meson's test logs say, case by case.

    count.py LOG.json… [--broken NAME…]

A program that prints cmocka's or TAP's results counts as its cases, any other as one. Prints every
failed and every skipped case with its reason, then `N passed, N failed, N skipped`. Exit status 0 only
when something passed and nothing failed.
"""
import argparse
import json
import re
import sys

CMOCKA = re.compile(r"^\[\s+(PASSED|FAILED|SKIPPED)\s+\]\s+(\d+) test\(s\)", re.M)
CMOCKA_FAILED = re.compile(r"^\[\s+FAILED\s+\]\s+([A-Za-z_]\w*)$", re.M)
CMOCKA_SKIPPED = re.compile(r"^\[\s+SKIPPED\s+\]\s+([A-Za-z_]\w*)$", re.M)
TAP = re.compile(r"^(ok|not ok) \d+(?: -)?([^#\n]*)(?:#\s*skip\b[ :]*(.*))?$", re.M | re.I)


class Count:
    def __init__(self):
        self.passed = 0
        self.failed = []
        self.skipped = []

    def program(self, test):
        """Adds one line of a meson JSON log."""
        name, result = test["name"], test["result"]
        text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
        before = len(self.failed)
        counted = self.tap(name, text) or self.cmocka(name, text)
        if result in ("OK", "EXPECTEDFAIL"):
            if not counted:
                self.passed += 1
        elif result == "SKIP":
            if not counted:
                lines = [line for line in text.splitlines() if line.strip()]
                self.skipped.append((name, lines[-1].strip() if lines else "no reason given"))
        elif len(self.failed) == before:
            # It failed outside its cases: a crash, a time-out, a leak.
            self.failed.append((name, result.lower()))

    def tap(self, name, text):
        found = False
        for match in TAP.finditer(text):
            found = True
            line, status = match.group(0), match.group(1)
            title, skip = f"{name}: {match.group(2).strip()}", match.group(3) or ""
            if status.lower() != "ok":
                self.failed.append((title, ""))
            elif "# skip" in line.lower():
                self.skipped.append((title, skip.strip()))
            else:
                self.passed += 1
        return found

    def cmocka(self, name, text):
        found = False
        for word, number in CMOCKA.findall(text):
            found = True
            if word == "PASSED":
                self.passed += int(number)
        failed, skipped = CMOCKA_FAILED.findall(text), CMOCKA_SKIPPED.findall(text)
        # cmocka names each case once where it happens and once in the closing list.
        self.failed += [(f"{name}: {case}", "") for case in dict.fromkeys(failed)]
        self.skipped += [(f"{name}: {case}", "cmocka skip") for case in dict.fromkeys(skipped)]
        return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("logs", nargs="*")
    parser.add_argument("--broken", nargs="*", default=[])
    options = parser.parse_args()
    count = Count()
    for path in options.logs:
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                if line.strip():
                    count.program(json.loads(line))
    for name in options.broken:
        count.failed.append((f"build: {name}", ""))
    print()
    for name, reason in count.skipped:
        print(f"skipped  {name}" + (f": {reason}" if reason else ""))
    for name, reason in count.failed:
        print(f"FAILED   {name}" + (f": {reason}" if reason else ""))
    if count.passed == 0 and not count.failed:
        print("no test ran")
    print(f"{count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    return 0 if count.passed and not count.failed else 1


if __name__ == "__main__":
    sys.exit(main())
