#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The completions of bash and zsh, by typing: an interactive shell in a terminal of its own gets a line and the
tabulator, and what it shows is compared.

    completion.py PINFOLD FOLDER    the program, packaging/completion
"""
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tap

PROGRAM, FOLDER = (os.path.abspath(path) for path in sys.argv[1:3])
MARK = "pinfold-test-prompt"

# (what is typed before the tabulator, what must be shown, what must not)
CASES = [
    ("pinfold expl", ["pinfold explain"], []),
    ("pinfold rel", ["pinfold reload"], []),
    ("pinfold re", ["reload", "report"], []),
    ("pinfold ", ["run", "daemon", "check", "explain", "rules", "version"], ["usage"]),
    ("pinfold run --", ["--policy", "--allow", "--strict"], ["--hook"]),
    ("pinfold run --pol", ["pinfold run --policy"], []),
    ("pinfold explain ", ["resolve", "answer", "connect", "request", "bytes"], []),
    ("pinfold rules ins", ["pinfold rules install"], []),
    ("pinfold rules install --hook ", ["output", "forward"], ["legacy"]),
    ("pinfold rules install --backend leg", ["pinfold rules install --backend legacy"], []),
    ("pinfold check exam", ["pinfold check example.yaml"], []),
    ("pinfold run --policy exam", ["pinfold run --policy example.yaml"], []),
    ("pinfold help expl", ["pinfold help explain"], []),
    ("pinfold run -- zzz-a-comm", ["pinfold run -- zzz-a-command"], []),
]

# What a user's start-up file does, but for the prompt.
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             "bind 'set enable-bracketed-paste off'; bind 'set show-all-if-ambiguous on'; "
             "bind 'set completion-query-items 0'; bind 'set page-completions off'; . {folder}/pinfold.bash"),
    "zsh": (["zsh", "-f", "-i"],
            "unsetopt zle_bracketed_paste prompt_cr prompt_sp list_ambiguous 2>/dev/null; LISTMAX=1000; "
            "fpath=({folder} $fpath); autoload -Uz compinit && compinit -u -D; bindkey -e"),
}


class Terminal:
    """A shell on a pseudo-terminal, in a folder of its own."""

    def __init__(self, arguments, folder):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.environ.update(TERM="dumb", PATH=f"{folder}/bin:{os.environ['PATH']}", PS1="", HOME=folder)
            os.environ.pop("ZDOTDIR", None)
            os.execvp(arguments[0], arguments)

    def write(self, text):
        os.write(self.fd, text.encode())

    def read_until(self, pattern, seconds, quiet=None):
        """What is shown until PATTERN, or with QUIET until nothing came for so long."""
        text, end = "", time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.fd], [], [], quiet or 0.1)[0]:
                text += os.read(self.fd, 65536).decode(errors="replace")
            elif quiet and text:
                break
            if pattern and re.search(pattern, text):
                break
        return text

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0e-\x1f]", "", text)


def shown(terminal, typed, expected):
    """Types it and tabulators, waits for what is expected, takes the line back."""
    terminal.write(typed + "\t\t")
    text, end = "", time.monotonic() + 10
    while time.monotonic() < end and not all(word in plain(text) for word in expected):
        text += terminal.read_until(None, 0.2)
    text += terminal.read_until(None, 0.2)
    terminal.write("\x15")  # ^U
    terminal.write(f"echo {MARK[:4]}''{MARK[4:]}\r")
    terminal.read_until(re.escape(MARK) + r"\r", 10)
    return plain(text)


def cases(shell, folder):
    arguments, start = SHELLS[shell]
    terminal = Terminal(arguments, folder)
    terminal.write(start.format(folder=FOLDER) + f"; PS1='> '; echo {MARK[:4]}''{MARK[4:]}\r")
    terminal.read_until(re.escape(MARK) + r"\r", 20)
    for typed, expected, forbidden in CASES:
        text = shown(terminal, typed, expected)
        wrong = [word for word in expected if word not in text] + [word for word in forbidden if word in text]
        tap.report(not wrong, f"{shell}: {typed}<tab>", f"{wrong} in {text!r}")
    terminal.close()


def main():
    folder = subprocess.run(["mktemp", "-d"], check=True, capture_output=True, text=True).stdout.strip()
    try:
        os.makedirs(f"{folder}/bin")
        os.symlink(PROGRAM, f"{folder}/bin/pinfold")
        for name in ("bin/zzz-a-command", "example.yaml"):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\n")
        os.chmod(f"{folder}/bin/zzz-a-command", 0o755)
        for shell in SHELLS:
            if shutil.which(shell) is None:
                tap.report(True, f"{shell} # SKIP no {shell}")
            else:
                cases(shell, folder)
    finally:
        shutil.rmtree(folder)
    return tap.end()


sys.exit(main())
