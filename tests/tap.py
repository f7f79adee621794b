# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests in Python print: TAP, a line a case."""

number = failed = 0


def report(good, name, detail=""):
    """One case; DETAIL, a line or several, stands behind one that failed."""
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not good:
        for line in str(detail).splitlines():
            print(f"# {line}")


def end():
    """The plan; the exit status of the program."""
    print(f"1..{number}")
    return int(failed > 0)
