#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Who may include and link what. The tables below are the architecture.

    check.py TREE [--executable NAME=PATH]… [--pure ROOM=ARCHIVE]…

Prints one line a violation; exit status 1 when there is any. tests/arch/selftest.py plants one of each.
"""
import argparse
import os
import re
import subprocess
import sys

# Third-party libraries: how their headers begin, and their shared objects.
LIBRARIES = {
    "libfyaml": (r"libfyaml\.h", r"libfyaml"),
    "jansson": (r"jansson", r"libjansson"),
    "libpsl": (r"libpsl\.h", r"libpsl"),
    "libidn2": (r"idn2\.h", r"libidn2"),
    "pcre2": (r"pcre2", r"libpcre2"),
    "ldns": (r"ldns/", r"libldns"),
    "libunbound": (r"unbound", r"libunbound"),
    "libevent": (r"event2/|event\.h|evutil", r"libevent"),
    "libcrypto": (r"openssl/", r"libcrypto|libssl"),
    "libmnl": (r"libmnl/", r"libmnl"),
    "libnetfilter_queue": (r"libnetfilter_queue/|libnfnetlink/", r"libnetfilter_queue|libnfnetlink"),
    "libcap-ng": (r"cap-ng\.h", r"libcap-ng"),
    "libseccomp": (r"seccomp\.h", r"libseccomp"),
    "cmocka": (r"cmocka", r"libcmocka"),
}
# Part of the C library, and what sanitizers bring.
PLATFORM = r"libc\.so|libm\.so|libpthread\.so|libdl\.so|librt\.so|ld-linux|linux-vdso|lib[at]san|libubsan|liblsan|libgcc_s"

# What each executable may have in its dynamic section.
EXECUTABLES = {
    "pinfold": {"libfyaml", "jansson", "libpsl", "libidn2", "pcre2", "libcap-ng", "libseccomp"},
    "pinfold-resolver": {"jansson", "ldns", "libunbound", "libevent", "libcrypto", "libcap-ng", "libseccomp"},
    "pinfold-cni": {"jansson"},
    "pinfold-gate": {"jansson", "libmnl", "libnetfilter_queue", "libcrypto", "pcre2", "libcap-ng", "libseccomp"},
}

# What each room may include: other rooms, and libraries. Arrows point one way.
BELOW = {"include", "base"}
SHARED = BELOW | {"rules", "pins", "inspect"}
COMMAND = SHARED | {"config", "filter"}
ROOMS = {
    "include": (set(), set()),
    "base": ({"include"}, set()),
    "rules": (BELOW, set()),
    "secrets": (BELOW, {"pcre2"}),
    "pins": (BELOW, set()),
    "hook": (BELOW | {"rules"}, {"jansson"}),
    "inspect": (BELOW, {"libcrypto"}),
    "owner": (BELOW, set()),
    "resolver": (SHARED | {"hook", "owner"}, EXECUTABLES["pinfold-resolver"] - {"jansson"}),
    "nfq": (SHARED | {"secrets", "hook", "owner"}, EXECUTABLES["pinfold-gate"] - {"pcre2", "jansson"}),
    "filter": (SHARED, set()),
    "config": (COMMAND, {"libfyaml", "libpsl", "libidn2"}),
    "daemon": (COMMAND, {"jansson", "libcap-ng", "libseccomp"}),
    "confine": (COMMAND | {"daemon"}, {"libcap-ng", "libseccomp"}),
    "cni": (BELOW, {"jansson"}),
    "cli": (COMMAND | {"daemon", "confine", "secrets", "hook"}, {"jansson", "libidn2", "libcap-ng"}),
}

# Rooms without I/O and without a clock: the only system headers they may include, and what they may not call.
PURE = {"rules", "inspect"}
PURE_HEADERS = {
    "assert.h", "ctype.h", "endian.h", "errno.h", "inttypes.h", "limits.h", "netinet/in.h", "stdalign.h",
    "stdbool.h", "stddef.h", "stdint.h", "stdlib.h", "string.h", "strings.h",
}
PURE_FORBIDDEN = re.compile(
    r"(f?open(at)?(64)?|f?read|f?write|p(read|write)(64)?|close|socket|connect|bind|send(to|msg)?|recv(from|msg)?|"
    r"ioctl|mmap(64)?|(v?[fd]?|__f?)printf(_chk)?|puts|fputs|perror|syslog|getenv|secure_getenv|system|fork|execve?|"
    r"time|gettimeofday|clock(_gettime)?|localtime(_r)?|gmtime(_r)?|rand|random|getrandom|arc4random)$")

SOURCE = (".c", ".h")
SPDX = SOURCE + (".py", ".sh", ".S")
TEXT = SPDX + (".md", ".build", ".txt", ".yaml", ".yml", ".tsv", ".conf", ".8", ".5")
SPDX_LINE = "SPDX-License-Identifier: GPL-2.0-or-later"
# The workplace of the authors is nobody's business. Written in two halves: this file is read as well.
WORDS = [re.compile(r"\.\./" + "shared" + r"\b"), re.compile(r"(?<![\w.])/wo" + r"rk/")]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)
PROTOTYPE = re.compile(r"^(?!static|typedef|#|\s|extern \"C\")[A-Za-z_][\w \t\*]*?\b([a-z_]\w*)\([^;{}()]*(?:\([^;{}]*\)[^;{}]*)*\)[^;{}]*;", re.M)


def files(tree):
    """Every file of the tree but build directories and what begins with a dot."""
    for folder, folders, names in os.walk(tree):
        folders[:] = sorted(f for f in folders
                            if not f.startswith((".", "build-")) and f not in ("build", "__pycache__"))
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                yield os.path.relpath(path, tree)


def read(tree, path):
    with open(os.path.join(tree, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", lambda m: "\n" * m.group(0).count("\n"), text, flags=re.S)


def library_of(header):
    for name, (begin, _) in LIBRARIES.items():
        if re.match(begin, header):
            return name
    return None


def room_of_include(tree, room, folder, header):
    """The room that a quoted header stands in; None when it is in none."""
    for base in (folder, ".", "include"):
        path = os.path.normpath(os.path.join(base, header))
        if os.path.exists(os.path.join(tree, path)):
            return path.split(os.sep)[0]
    first = (os.path.normpath(os.path.join(folder, header)) if header.startswith("..") else header).split("/")[0]
    return first if first in ROOMS else room  # made by the build, beside its user


def check_includes(tree):
    for path in files(tree):
        room = path.split(os.sep)[0]
        if room not in ROOMS or not path.endswith(SOURCE):
            continue
        rooms, libraries = ROOMS[room]
        text = without_comments(read(tree, path))
        for mark, header in INCLUDE.findall(text):
            library = library_of(header)
            if library is not None:
                if library not in libraries:
                    yield f"{path}: {room}/ may not include {library} (<{header}>)"
            elif mark == '"':
                other = room_of_include(tree, room, os.path.dirname(path), header)
                if other != room and other not in rooms:
                    yield f"{path}: {room}/ may not include {other}/ (\"{header}\")"
            elif room in PURE and header not in PURE_HEADERS:
                yield f"{path}: {room}/ does no I/O and reads no clock (<{header}>)"


def check_rooms(tree):
    for name in sorted(os.listdir(tree)):
        path = os.path.join(tree, name)
        if os.path.isdir(path) and name not in ROOMS and name not in ("tests", "docs"):
            if any(f.startswith(name + os.sep) and f.endswith(SOURCE) for f in files(tree)):
                yield f"{name}/: a room without a row in tests/arch/check.py"


def check_words(tree):
    for path in files(tree):
        if not (path.endswith(TEXT) or "." not in os.path.basename(path)):
            continue
        for number, line in enumerate(read(tree, path).splitlines(), 1):
            if any(word.search(line) for word in WORDS):
                yield f"{path}:{number}: names the authors' workplace"


def check_licences(tree):
    for path in files(tree):
        if path.endswith(SPDX) and SPDX_LINE not in read(tree, path)[:400]:
            yield f"{path}: no {SPDX_LINE}"


def check_prototypes(tree):
    seen = {}
    for path in files(tree):
        if not path.endswith(".h") or path.split(os.sep)[0] not in ROOMS:
            continue
        for name in set(PROTOTYPE.findall(without_comments(read(tree, path)))):
            if name in seen:
                yield f"{path}: {name}() has a prototype in {seen[name]} already"
            seen.setdefault(name, path)


def check_executable(name, path):
    allowed = EXECUTABLES[name]
    if not os.path.exists(path):
        yield f"{name}: not built"
        return
    output = subprocess.run(["readelf", "-dW", path], check=True, capture_output=True, text=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output)
    if not needed:
        yield f"{name}: no dynamic section"
    for soname in needed:
        if re.match(PLATFORM, soname):
            continue
        if not any(re.match(f"(?:{LIBRARIES[library][1]})[-_.]", soname) for library in allowed):
            yield f"{name}: may not link {soname}"


def check_pure(room, path):
    output = subprocess.run(["nm", "-uP", path], check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        symbol = line.split()[0].split("@")[0] if line.strip() else ""
        if PURE_FORBIDDEN.match(symbol):
            yield f"{room}/: calls {symbol}()"


def check_tree(tree):
    for check in (check_rooms, check_includes, check_words, check_licences, check_prototypes):
        yield from check(tree)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tree")
    parser.add_argument("--executable", action="append", default=[])
    parser.add_argument("--pure", action="append", default=[])
    options = parser.parse_args()
    problems = list(check_tree(options.tree))
    for item in options.executable:
        problems += check_executable(*item.split("=", 1))
    for item in options.pure:
        problems += check_pure(*item.split("=", 1))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
