#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns rules/secret-shapes.txt into a C table.

usage: generate.py SHAPES OUTPUT.c

Every error is reported as FILE:LINE: text and ends the build.
"""

import re
import sys


def fail(path, line, text):
    sys.exit(f"{path}:{line}: {text}")


def quoted(text):
    """A C string literal; only printable ASCII occurs in the file."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") + '"'


def read_shapes(path):
    shapes = []
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip("\n")
            if not line or line.startswith("#"):
                continue
            heading = re.fullmatch(r"\[([a-z0-9-]+)\]", line)
            if heading:
                shapes.append({"name": heading[1], "line": number, "yes": [], "no": []})
                continue
            key, _, value = line.partition(" ")
            if not shapes or not value:
                fail(path, number, "expected [name] or KEY VALUE")
            shape = shapes[-1]
            if key in ("yes", "no"):
                shape[key].append(value)
            elif key in ("shape", "after"):
                if key in shape:
                    fail(path, number, f"second {key} in [{shape['name']}]")
                shape[key] = value
            else:
                fail(path, number, f"unknown key {key}")
    names = set()
    for shape in shapes:
        if shape["name"] in names:
            fail(path, shape["line"], f"[{shape['name']}] stands twice")
        names.add(shape["name"])
        if "shape" not in shape or "after" not in shape or not shape["yes"] or not shape["no"]:
            fail(path, shape["line"], f"[{shape['name']}] needs shape, after, yes and no")
    return shapes


def write_table(shapes, out):
    out.write('#include "secrets/table.h"\n\n')
    for kind in ("yes", "no"):
        for index, shape in enumerate(shapes):
            items = ", ".join(quoted(text) for text in shape[kind])
            out.write(f"static const char *const {kind}_{index}[] = {{{items}, NULL}};\n")
    out.write("\nconst struct secret_shape secret_shapes[] = {\n")
    for index, shape in enumerate(shapes):
        after = "" if shape["after"] == "-" else f"(?![{shape['after']}])"
        pattern = quoted(f"(?:{shape['shape']}){after}")
        out.write(f"\t{{{quoted(shape['name'])}, {shape['line']}, {pattern}, yes_{index}, no_{index}}},\n")
    out.write("};\n\nconst size_t secret_shape_count = sizeof(secret_shapes) / sizeof(secret_shapes[0]);\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    shapes = read_shapes(sys.argv[1])
    with open(sys.argv[2], "w", encoding="ascii") as out:
        write_table(shapes, out)


if __name__ == "__main__":
    main()
