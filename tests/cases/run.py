#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Puts policy vectors to `pinfold explain` and compares verdict, reason and exit status.

    run.py PINFOLD [--only TEXT] [--jobs N] [TABLE…]

Prints every row that disagrees, then how many agree; exit status 1 when any disagrees. README.md tells what the
tables hold.
"""
import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
WHOLE = ("{resolver:", "{gate:", "{clients:", "{policies:")
STATUS = {0: "allow", 3: "deny", 4: "wait", 2: "error"}
UNSEEN = 77  # a layer's: rows of this kind never get to it


def table(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        head = file.readline().rstrip("\n").split("\t")
        for number, line in enumerate(file, 2):
            cells = line.rstrip("\n").split("\t")
            if len(cells) != len(head) or "" in cells:
                sys.exit(f"{path}:{number}: {len(cells)} cells, or an empty one")
            yield dict(zip(head, cells))


def words(row, folder):
    """The words after `pinfold explain -c FILE`."""
    if "arguments" in row:
        return row["arguments"].split(" ")
    line = ["bytes"] + [os.path.join(folder, name) for name in row["files"].split(" ")] + ["--to", row["to"]]
    for pin in [] if row["pinned"] == "-" else row["pinned"].split(" "):
        line += ["--pinned", pin]
    return line


def explain(pinfold, config, row, folder, layer):
    """None when PINFOLD agrees with the row, UNSEEN, else what it said."""
    try:
        done = subprocess.run([pinfold, "explain", "-c", config, *words(row, folder), "--json"],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return "no end within 60 seconds"
    if layer and done.returncode == UNSEEN:
        return UNSEEN
    got = STATUS.get(done.returncode, f"exit status {done.returncode}")
    reason, errors = "-", done.stderr.decode(errors="replace").strip()
    if got in ("allow", "deny", "wait"):
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            return f"{got}, and no JSON but {done.stdout!r} {errors}"
        reason = answer.get("reason")
        # a flow was refused before its request was read, for a reason of that stage
        if layer and got == row["verdict"] == "deny" and words(row, folder)[0] == "request" != answer["stage"]:
            return None
        if answer.get("verdict") != got:
            return f"exit status of {got}, JSON of {answer.get('verdict')}"
        if {"verdict", "reason", "rule", "stage"} - answer.keys():
            return f"JSON without all keys: {answer}"
    if got == row["verdict"] and row["reason"] in ("-", reason):
        return None
    return f"{got} {reason}" + (f"\n    {errors}" if got not in ("allow", "deny", "wait") else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pinfold")
    parser.add_argument("tables", nargs="*",
                        default=[os.path.join(HERE, "explain.tsv"), os.path.join(HERE, "bytes", "index.tsv")])
    parser.add_argument("--only", default="", help="rows whose id holds this text")
    parser.add_argument("--layer", action="store_true", help="PINFOLD is a program of layers/")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    pinfold = os.path.abspath(options.pinfold)

    rows = []
    for path in options.tables:
        rows += [(row, os.path.dirname(os.path.abspath(path))) for row in table(path)]
    ids = [row["id"] for row, _ in rows]
    if len(set(ids)) != len(ids):
        sys.exit("an id is there twice")
    rows = [(row, folder) for row, folder in rows if options.only in row["id"]]

    with tempfile.TemporaryDirectory() as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        configs, bad, unseen = {}, 0, 0
        for row, _ in rows:
            policy = row["policy"]
            if policy not in configs:
                configs[policy] = os.path.join(folder, f"{len(configs)}.yaml")
                with open(configs[policy], "w", encoding="utf-8") as file:
                    file.write(policy if policy.startswith(WHOLE) else f"policies:\n  default: {policy}\n")
        answers = pool.map(lambda item: explain(pinfold, configs[item[0]["policy"]], *item, options.layer), rows)
        for (row, _), said in zip(rows, answers):
            if said == UNSEEN:
                unseen += 1
            elif said is not None:
                bad += 1
                print(f"{row['id']}: want {row['verdict']} {row['reason']}, got {said}\n"
                      f"    policy {row['policy']}\n    {row.get('arguments') or row['files']}\n    note {row['note']}")
    seen = len(rows) - unseen
    print(f"{seen - bad} of {seen} agree" + (f", {unseen} are not seen here" if options.layer else ""))
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
