#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Plants one violation of each kind in a temporary tree and sees that tests/arch/check.py fires.

A check that cannot fail proves nothing. Each case also sees that the tree without its violation is clean.
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap
import check

SPDX = "/* " + check.SPDX_LINE + " */\n"

CLEAN = {
    "include/policy.h": SPDX + "#include <stdint.h>\n#include \"name.h\"\nint policy_ask(int x);\n",
    "include/name.h": SPDX + "int name_read(const char *text);\n",
    "base/name.c": SPDX + "#include <string.h>\n#include \"name.h\"\n",
    "rules/rules.c": SPDX + "#include <string.h>\n#include \"policy.h\"\n",
    "resolver/main.c": SPDX + "#include <ldns/ldns.h>\n#include <unbound-event.h>\n#include \"policy.h\"\n",
    "nfq/main.c": SPDX + "#include <libmnl/libmnl.h>\n#include <time.h>\n#include \"policy.h\"\n",
    "config/config.h": SPDX + "void config_free(void);\n",
    "daemon/main.c": SPDX + "#include <jansson.h>\n#include \"config/config.h\"\n",
    "README.md": "work/ and /workbench are words, and so is shared.\n",
}

# (what it is, file, text, part of the expected line)
PLANTED = [
    ("the gate includes ldns", "nfq/bad.c", "#include <ldns/ldns.h>\n", "may not include ldns"),
    ("the gate includes libunbound", "nfq/bad.c", "#include <unbound.h>\n", "may not include libunbound"),
    ("the resolver includes libmnl", "resolver/bad.c", "# include <libmnl/libmnl.h>\n", "may not include libmnl"),
    ("the resolver includes the gate", "resolver/bad.c", "#include \"nfq/main.h\"\n", "may not include nfq/"),
    ("the gate includes the resolver", "nfq/bad.c", "#include \"../resolver/x.h\"\n", "may not include resolver/"),
    ("the resolver includes config", "resolver/bad.c", "#include \"config/config.h\"\n", "may not include config/"),
    ("base includes rules", "base/bad.c", "#include \"rules/source.h\"\n", "may not include rules/"),
    ("config includes daemon", "config/bad.c", "#include \"daemon/parent.h\"\n", "may not include daemon/"),
    ("a contract includes a library", "include/bad.h", "#include <jansson.h>\n", "may not include jansson"),
    ("a contract includes a room", "include/bad.h", "#include \"config/config.h\"\n", "may not include config/"),
    ("the rules read a clock", "rules/bad.c", "#include <time.h>\n", "reads no clock"),
    ("the readers do I/O", "inspect/bad.c", "#include <unistd.h>\n", "reads no clock"),
    ("a source without licence line", "base/bad.c", None, "no SPDX"),
    ("a script without licence line", "tests/bad.sh", None, "no SPDX"),
    ("two prototypes of one function", "config/bad.h", "int policy_ask(int x);\n", "has a prototype in"),
    ("a room without a row", "extra/bad.c", "int x;\n", "a room without a row"),
    ("a path of the workplace", "docs/bad.md", "see /wo" + "rk/x\n", "workplace"),
    ("a file beside the project", "tests/bad.tsv", "../sha" + "red/x\n", "workplace"),
]


def write(tree, path, text):
    path = os.path.join(tree, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def planted(name, path, text, expected):
    with tempfile.TemporaryDirectory() as tree:
        for clean, content in CLEAN.items():
            write(tree, clean, content)
        before = list(check.check_tree(tree))
        if text is None:
            write(tree, path, "\n")
        else:
            write(tree, path, SPDX + text if path.endswith(check.SOURCE) else text)
        after = list(check.check_tree(tree))
        good = not before and len(after) == 1 and path.split("/")[0] in after[0] and expected in after[0]
        tap.report(good, name, f"before {before}, after {after}")


def compile_c(folder, name, text, *arguments):
    source = os.path.join(folder, name + ".c")
    write(folder, name + ".c", text)
    output = os.path.join(folder, name)
    subprocess.run([os.environ.get("CC", "cc"), "-o", output, source, *arguments], check=True)
    return output


def objects():
    with tempfile.TemporaryDirectory() as folder:
        plain = compile_c(folder, "plain", "int main(void) { return 0; }\n")
        mnl = compile_c(folder, "mnl", "int main(void) { return 0; }\n", "-Wl,--no-as-needed", "-lmnl")
        static = compile_c(folder, "static", "int main(void) { return 0; }\n", "-static")
        for name in check.EXECUTABLES:
            tap.report(not list(check.check_executable(name, plain)), f"{name} may link the C library")
        tap.report(any("libmnl" in line for line in check.check_executable("pinfold-resolver", mnl)),
                   "the resolver links libmnl")
        tap.report(not list(check.check_executable("pinfold-gate", mnl)), "the gate may link libmnl")
        tap.report(any("libmnl" in line for line in check.check_executable("pinfold", mnl)), "pinfold links libmnl")
        tap.report(bool(list(check.check_executable("pinfold", static))), "an executable that hides what it links")
        tap.report(bool(list(check.check_executable("pinfold", plain + "-not-there"))), "an executable that is not there")
        clock = compile_c(folder, "clock.o", "#include <time.h>\nlong now(void);\nlong now(void) { return time(0); }\n", "-c")
        tap.report(any("time()" in line for line in check.check_pure("rules", clock)), "the rules call time()")
        quiet = compile_c(folder, "quiet.o", "int one(void);\nint one(void) { return 1; }\n", "-c")
        tap.report(not list(check.check_pure("rules", quiet)), "the rules call nothing")


for row in PLANTED:
    planted(*row)
objects()
sys.exit(tap.end())
