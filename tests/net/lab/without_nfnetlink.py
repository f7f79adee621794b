#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a command as on a kernel that was built without nfnetlink, and so without NFQUEUE and NFLOG.

    without_nfnetlink.py COMMAND…

A stand-in for a kernel that this machine does not have: a seccomp filter gives socket(AF_NETLINK, …, NETLINK_NETFILTER) the answer
of such a kernel, EPROTONOSUPPORT. Everything else is the real thing.
"""

import ctypes
import errno
import os
import platform
import struct
import sys

SOCKET = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)} # architecture as in linux/audit.h, number of socket()
AF_NETLINK, NETLINK_NETFILTER = 16, 12
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, PR_SET_NO_NEW_PRIVS = 22, 2, 38
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06 # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER, ARCHITECTURE, ARGUMENT = 0, 4, 16 # offsets in struct seccomp_data


def checks(*pairs):
    """The filter: ERRNO when the word at each offset is the value beside it, else ALLOW."""
    code = []
    for place, (offset, value) in enumerate(pairs):
        left = len(pairs) - place - 1
        code += [(LOAD, 0, 0, offset), (EQUAL, 0, 2 * left + 1, value)]
    return code + [(RETURN, 0, 0, ERRNO | errno.EPROTONOSUPPORT), (RETURN, 0, 0, ALLOW)]


def main():
    if platform.machine() not in SOCKET:
        sys.exit(77)
    architecture, number = SOCKET[platform.machine()]
    code = checks((ARCHITECTURE, architecture), (NUMBER, number), (ARGUMENT, AF_NETLINK), (ARGUMENT + 16, NETLINK_NETFILTER))
    text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(text)))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program), 0, 0)):
        if libc.prctl(*(ctypes.c_ulong(argument) for argument in call)) != 0:
            sys.exit(f"seccomp: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
