#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`pinfold run` as a process: what COMMAND gets, what it cannot reach, and that nothing is left behind.

Everything happens in network, PID and mount namespaces of the test's own, whose network namespace plays the host; /etc
and /usr/sbin are overlays there, so that the cases can change them. Prints TAP.

    run.py PINFOLD root|user [PATTERN]     by whom; only the cases whose name holds PATTERN
"""

import contextlib
import ctypes
import errno
import fcntl
import ipaddress
import os
import pty
import random
import re
import select
import signal
import socket
import subprocess
import sys
import termios
import time

PINFOLD = os.path.abspath(sys.argv[1])
WHO = sys.argv[2]
UID = 12345 if WHO == "user" else 0
# What makes a process the caller's. The user has a group beside his own, whose files stay open to him.
CALLER = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--groups", "23456"] if UID else []
HOST_SYSCTLS = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/wan/accept_ra",
                "net/ipv6/conf/default/accept_ra", "net/ipv4/conf/wan/forwarding"]
SKIP = 77


def enter():
    """Runs this script again in namespaces that die with it."""
    if os.environ.get("INSIDE") == "1":
        return
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        sys.exit(SKIP)
    unshare = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if subprocess.run(unshare + ["true"], stderr=subprocess.DEVNULL).returncode != 0:
        print("1..0 # SKIP the kernel refuses namespaces")
        sys.exit(SKIP)
    os.environ["INSIDE"] = "1"
    os.environ["PATH"] = "/usr/sbin:/usr/bin:/sbin:/bin"
    os.execvp("timeout", ["timeout", "--foreground", "-s", "KILL", "280"] + unshare + [sys.executable] + sys.argv)


def shell(command, check=True):
    return subprocess.run(command, shell=True, check=check, stdout=subprocess.PIPE, text=True).stdout


def prepare():
    """A host with a way out over both families, and a /run, /etc and /usr/sbin that may be changed."""
    shell("""
        set -e
        mount -t tmpfs -o mode=755 test /run && mkdir -p /run/lock /run/over
        for d in etc usr/sbin; do
            mkdir -p /run/over/$d/up /run/over/$d/work
            mount -t overlay -o lowerdir=/$d,upperdir=/run/over/$d/up,workdir=/run/over/$d/work over /$d
        done
        ip link set lo up
        ip link add wan type veth peer name far && ip link set wan up && ip link set far up
        ip address add 203.0.113.2/24 dev wan && ip route add default via 203.0.113.1
        ip address add 2001:db8::2/64 dev wan nodad && ip -6 route add default via 2001:db8::1
        mount -t tmpfs -o mode=755,dev test /dev/net && mknod -m 666 /dev/net/tun c 10 200
        rm -f /etc/resolv.conf && echo 'nameserver 203.0.113.1' >/etc/resolv.conf
        sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0
        # What the iptables programs themselves leave at their first use is not ours.
        touch /run/xtables.lock && ip netns add first && ip netns del first
        for f in iptables ip6tables; do
            $f -t nat -A POSTROUTING -j ACCEPT && $f -t nat -F && $f -A FORWARD -j ACCEPT && $f -F
        done
    """)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def processes():
    """pid -> command line of everything but this test and what it calls."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                line = read(f"/proc/{name}/cmdline").replace("\0", " ").strip()
                if line and "run.py" not in line:
                    found[int(name)] = line
    return found


def rules():
    saved = "".join(shell(f"{name}-save", check=False) for name in
                    ("iptables-nft", "ip6tables-nft", "iptables-legacy", "ip6tables-legacy"))
    return [re.sub(r"\[\d+:\d+\]", "", line) for line in saved.splitlines() if not line.startswith("#")]


def host():
    """What a run must leave as it was."""
    return {
        "links": re.findall(r"^\d+: ([^:@]+)", shell("ip -o link"), re.M),
        "routes": shell("ip -4 route; ip -6 route").splitlines(),
        "rules": rules(),
        "settings": [read(f"/proc/sys/{key}") for key in HOST_SYSCTLS],
        "processes": processes(),
        "files": sorted(os.listdir("/run")),
        "mounts": len(read("/proc/self/mounts").splitlines()),
    }


def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


class Fault(Exception):
    pass


def expect(found, wanted, what=""):
    if found != wanted:
        raise Fault(f"{what}: {found!r}, not {wanted!r}")


def expect_in(part, whole):
    if part not in whole:
        raise Fault(f"{part!r} is not in {whole!r}")


def run(*command, options=(), **keywords):
    return subprocess.run([*CALLER, PINFOLD, "run", *options, "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=60, stdin=keywords.pop("stdin", subprocess.DEVNULL), **keywords)


def status(*command, **keywords):
    return run(*command, **keywords).returncode


@contextlib.contextmanager
def running(*command, **keywords):
    """A run whose COMMAND has printed a line."""
    process = subprocess.Popen([*CALLER, PINFOLD, "run", "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, stdin=subprocess.DEVNULL, **keywords)
    try:
        process.line = process.stdout.readline().strip()
        yield process
    finally:
        process.kill()
        process.communicate()


def child(pid, name):
    """The pid of a descendant whose command line holds NAME."""
    for line in shell("ps -e -o pid=,ppid=,args=").splitlines():
        found, parent, arguments = line.split(None, 2)
        if int(parent) == pid and re.search(name, arguments):
            return int(found)
    return 0


def parts(runner):
    """The processes of a run: middle has the two programs as children, inner has COMMAND."""
    lines = [line.split(None, 2) for line in shell("ps -e -o pid=,ppid=,args=").splitlines()]
    kids = [int(pid) for pid, parent, arguments in lines if int(parent) == runner and not arguments.startswith("pasta")]
    middle = next(kid for kid in kids if child(kid, "pinfold-gate"))
    inner = next(kid for kid in kids if kid != middle)
    return middle, inner


SLEEP = ("sh", "-c", "echo ready; exec sleep 1000")
CASES = []


def case(function):
    CASES.append(function)
    return function


def only(who):
    """A case for root or for an ordinary user alone."""
    return case if WHO == who else lambda function: function


@case
def statuses():
    for command, wanted in ((["true"], 0), (["false"], 1), (["sh", "-c", "exit 7"], 7), (["sh", "-c", "kill -9 $$"], 137),
                            (["sh", "-c", "kill -TERM $$"], 143), (["sh", "-c", "kill -SEGV $$"], 139)):
        expect(status(*command), wanted, command)


@case
def commands_that_cannot_run():
    found = run("no-such-command")
    expect((found.returncode, found.stderr), (127, "pinfold: no-such-command: command not found\n"))
    expect(run("/nonexistent/x").returncode, 127)
    found = run("/etc")
    expect((found.returncode, found.stderr), (126, "pinfold: /etc: Permission denied\n"))
    expect(run("/etc/passwd").returncode, 126)


@case
def wrong_usage():
    def fails(arguments, text):
        found = subprocess.run([PINFOLD, "run", *arguments], stderr=subprocess.PIPE, text=True)
        expect(found.returncode, 2, arguments)
        expect_in(text, found.stderr)
    fails([], "there is no command to run")
    fails(["--"], "there is no command to run")
    fails(["--nonsense", "true"], "unknown option '--nonsense'")
    fails(["--policy", "/nonexistent/p.yaml", "true"], "/nonexistent/p.yaml")
    fails(["--allow", "169.254.169.254", "true"], "--allow 169.254.169.254: ")
    fails(["--allow", "", "true"], "--allow : ")
    fails(["--policy"], "--policy needs a value")
    with open("/run/bad.yaml", "w", encoding="ascii") as file:
        file.write("policies: {default: {allow_hots: []}}\n")
    fails(["--policy", "/run/bad.yaml", "true"], "/run/bad.yaml:1:")
    os.unlink("/run/bad.yaml")


@case
def as_if_not_there():
    """Streams, descriptors, environment, folder, arguments, mask, ignored signals."""
    found = run("sh", "-c", "cat; echo error >&2", stdin=open("/etc/passwd", encoding="ascii"))
    expect((found.stdout, found.stderr), (read("/etc/passwd"), "error\n"))
    pinfold = " ".join([*CALLER, PINFOLD])
    reader, writer = os.pipe()
    expect(status("sh", "-c", f"echo through >&{writer}", pass_fds=[writer]), 0)
    os.close(writer)
    expect(os.read(reader, 100), b"through\n")
    os.close(reader)
    found = run("sh", "-c", "echo $X; pwd; umask", env={"X": "a b", "PATH": os.environ["PATH"]}, cwd="/usr/share", umask=0o27)
    expect(found.stdout, "a b\n/usr/share\n0027\n")
    expect(run("printf", "%s|", "a b", "", "--", "*").stdout, "a b||--|*|")
    expect(run("ls", "/proc/self/fd").stdout.split(), ["0", "1", "2", "3"])
    expect(shell(f"{pinfold} run sh -c 'echo out; exit 3' <&- 2>&-; echo $?"), "out\n3\n")
    expect(shell(f"{pinfold} run sh -c 'exit 3' <&- >&- 2>&-; echo $?"), "3\n")
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    found = run("sh", "-c", "kill -HUP $$; grep SigBlk /proc/self/status; echo alive", restore_signals=False)
    signal.signal(signal.SIGHUP, before)
    expect(found.stdout, "SigBlk:\t0000000000000000\nalive\n")


@case
def sockets_of_the_host():
    """A socket that the caller left open is of the host's network: it would be a way around."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        command = ("import os, stat, sys; n = int(sys.argv[1])\n"
                   "try: print(stat.S_ISSOCK(os.fstat(n).st_mode))\nexcept OSError: print('closed')")
        expect(run("python3", "-c", command, str(way.fileno()), pass_fds=[way.fileno()]).stdout, "closed\n")
        found = run("true", stdin=way)
        expect(found.returncode, 2)
        expect_in("standard input, output or error is a network socket", found.stderr)


@case
def signals_and_limits_of_a_bad_caller():
    """SIGCHLD ignored, files of no size: the first is no reason to fail, the second one to say so."""
    pinfold = " ".join([*CALLER, PINFOLD])
    expect(shell(f"trap '' CHLD; {pinfold} run sh -c 'exit 5'; echo $?"), "5\n")
    for blocks in ("0", "1"):
        found = subprocess.run(["bash", "-c", f"ulimit -f {blocks}; exec {pinfold} run true"], stderr=subprocess.PIPE, text=True)
        expect_in("pinfold: ", found.stderr) if found.returncode else None
        expect(found.returncode in (0, 2), True, f"{blocks}: {found}")
    expect(run("grep", "Sig[BI]", "/proc/self/status").stdout, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n")


@only("root")
def root_of_its_files():
    expect(run("id", "-u").stdout, "0\n")
    expect(status("sh", "-c", "touch /run/mine && chown 1234:1234 /run/mine && chmod 600 /run/mine && cat /etc/shadow >/dev/null"), 0)
    found = os.stat("/run/mine")
    expect((found.st_uid, found.st_gid), (1234, 1234))
    os.unlink("/run/mine")
    expect(run("setpriv", "--reuid", "65534", "--clear-groups", "id", "-u").stdout, "65534\n")
    # And of its own network.
    expect(status("sh", "-c", "ip address add 192.0.2.9/32 dev lo && iptables-legacy -A OUTPUT -j ACCEPT"), 0)


@case
def its_network():
    text = run("sh", "-c", "ip -o link; ip -4 route; ip -6 route; cat /etc/resolv.conf /etc/hosts").stdout
    links = re.findall(r"^\d+: ([^:@]+)", text, re.M)
    expect(sorted(links), ["eth0", "lo"])
    gateway = re.search(r"^default via (198\.1[89]\.\d+\.\d+) dev eth0", text, re.M).group(1)
    gateway6 = re.search(r"^default via (fd[0-9a-f:]+) dev eth0", text, re.M).group(1)
    expect(re.findall(r"^nameserver (.*)$", text, re.M), [gateway, gateway6])
    expect_in("127.0.0.1 localhost\n", text)
    expect(run("sh", "-c", "echo x | timeout 5 python3 -c '\nimport socket\ns = socket.create_server((\"127.0.0.1\", 0))\n"
               "c = socket.create_connection(s.getsockname())\nprint(\"lo\")'").stdout, "lo\n")


@case
def no_ipv6_way_out():
    shell("ip -6 route del default")
    try:
        text = run("sh", "-c", "ip -6 route; cat /etc/resolv.conf").stdout
        expect(len(re.findall("nameserver", text)), 1)
        expect("default" in text, False)
    finally:
        shell("ip -6 route add default via 2001:db8::1")


@case
def resolv_conf_is_a_link():
    shell("mkdir -p /run/systemd/resolve /run/nscd && echo 'nameserver 127.0.0.53' >/run/systemd/resolve/stub-resolv.conf; "
          "touch /run/nscd/socket; ln -sf ../run/systemd/resolve/stub-resolv.conf /etc/resolv.conf")
    try:
        found = run("sh", "-c", "cat /etc/resolv.conf; ls -A /run/systemd/resolve /run/nscd")
        expect(found.stderr, "")
        expect(re.sub(r"nameserver .*", "nameserver", found.stdout),
               "nameserver\nnameserver\n/run/nscd:\n\n/run/systemd/resolve:\nstub-resolv.conf\n")
        expect(read("/etc/resolv.conf"), "nameserver 127.0.0.53\n")
        shell("ln -sf /run/nowhere/resolv.conf /etc/resolv.conf")
        found = run("true")
        expect((found.returncode, "cannot" in found.stderr), (2, True))
        shell("mkdir /run/nowhere")
        found = run("true")
        expect((found.returncode, found.stderr),
               (2, "pinfold: cannot replace /etc/resolv.conf: there is no /run/nowhere/resolv.conf\n"))
        shell("rmdir /run/nowhere")
    finally:
        shell("rm -rf /run/systemd /run/nscd /etc/resolv.conf; echo 'nameserver 203.0.113.1' >/etc/resolv.conf")


ESCAPES = {
    "another network namespace by name": "nsenter --net=/run/netns/outside true",
    "the host's network namespace by a process": "nsenter --target 2 --net ip link show wan",
    "a host process is not to be seen": "pgrep -x pinfold-gate",
    "process 1 leads nowhere else": "sh -c 'there=$(readlink /proc/1/ns/net) && test \"$there\" != \"$(readlink /proc/self/ns/net)\"'",
    "core_pattern runs programs outside": "sh -c 'echo x >/proc/sys/kernel/core_pattern'",
    "core_pattern after a remount": "sh -c 'mount -o remount,rw,bind /proc/sys && echo x >/proc/sys/kernel/core_pattern'",
    "core_pattern after an unmount": "sh -c 'umount /proc/sys && echo x >/proc/sys/kernel/core_pattern'",
    "a new /proc": "sh -c 'mount -t proc p /mnt && echo x >/mnt/sys/kernel/core_pattern'",
    "sysrq": "sh -c 'echo h >/proc/sysrq-trigger'",
    "/sys": "sh -c 'echo 0 >/sys/class/net/lo/mtu || mount -o remount,rw,bind /sys'",
    "our resolv.conf goes away": "umount /etc/resolv.conf",
    "our resolv.conf is changed": "sh -c 'echo nameserver 8.8.8.8 >/etc/resolv.conf'",
    "what we hide comes back": "umount /run/pinfold",
    "a device": "mknod /run/device b 8 0",
    "a kernel module": "modprobe dummy",
    "a network namespace from above": "ip netns exec outside true",
    "the host's interface pulled in": "ip link set wan netns 1",
}


@case
def escapes():
    shell("ip netns add outside && mkdir /run/escapes")
    try:
        commands = [*ESCAPES.values(), "true"] # the last one shows that an open door would be seen
        for number, command in enumerate(commands):
            with open(f"/run/escapes/{number}", "w", encoding="ascii") as file:
                file.write(command + "\n")
        found = run("sh", "-c", f"for n in $(seq 0 {len(commands) - 1}); do sh /run/escapes/$n >/dev/null 2>&1; echo $((!$?)); done")
        answers = found.stdout.split()
        expect((len(answers), answers[-1]), (len(commands), "1"), "answers")
        expect([name for name, answer in zip(ESCAPES, answers) if answer != "0"], [], "open")
    finally:
        shell("ip netns del outside; rm -rf /run/escapes /run/device")


@case
def calls_around_the_namespace():
    code = """
import ctypes, errno, fcntl, socket
def closed(call, number):
    try:
        call()
    except OSError as error:
        print(error.errno == number)
    else:
        print("open")
for family in (40, 31, 21, 27, 43, 44, 45, 63, 64, 1000):
    closed(lambda: socket.socket(family, socket.SOCK_STREAM, 0), errno.EAFNOSUPPORT)
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(41, ctypes.c_long(0x700000028), 1, 0) == -1 and ctypes.get_errno() == errno.EAFNOSUPPORT)
print(libc.syscall(425, 8, ctypes.create_string_buffer(256)) == -1 and ctypes.get_errno() == errno.ENOSYS)
closed(lambda: fcntl.ioctl(0, 0x5412, b"x"), errno.EPERM)
closed(lambda: fcntl.ioctl(0, 0x541C, b"\\3"), errno.EPERM)
for family, kind in ((1, 1), (2, 1), (2, 2), (2, 3), (10, 1), (16, 3), (17, 3)):
    if kind == 3 and family != 16 and %d:
        continue # not open to an ordinary user anywhere
    socket.socket(family, kind, 1 if kind == 3 and family == 2 else 0).close()
print("rest open")
"""
    found = run("python3", "-c", code % UID)
    expect(found.stderr, "")
    expect(found.stdout.split("\n"), ["True"] * 14 + ["rest open", ""])


@only("user")
def he_stays_who_he_is():
    """His uid, his files, those of his groups; and no setuid program makes him another."""
    expect(run("sh", "-c", "id -u; id -g; grep Cap[PE] /proc/self/status").stdout,
           f"{UID}\n{UID}\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n")
    shell(f"mkdir -m 755 /run/his && cp /usr/bin/id /run/his/id && chmod 4755 /run/his/id && echo shared >/run/his/group && "
          f"chown 0:23456 /run/his/group && chmod 640 /run/his/group && chown {UID} /run/his")
    try:
        expect(subprocess.run([*CALLER, "/run/his/id", "-u"], stdout=subprocess.PIPE, text=True).stdout, "0\n", "setuid outside")
        expect(run("/run/his/id", "-u").stdout, f"{UID}\n")
        expect(run("sh", "-c", "cat /run/his/group; echo mine >/run/his/new").stdout, "shared\n")
        expect(os.stat("/run/his/new").st_uid, UID)
    finally:
        shell("rm -rf /run/his")


@only("user")
def same_uid_outside():
    """
    Every process of the run is his as well. With the host's /proc at hand, which no run has, and by the pids there, COMMAND
    gets at none of them: they are of a user namespace above.
    """
    shell("mkdir /run/proc && mount --bind /proc /run/proc")
    attack = """
pid=$1
cat /run/proc/$pid/environ; echo environ $?
ls /run/proc/$pid/root/; echo root $?
readlink /run/proc/$pid/fd/0; echo fd $?
head -c1 /run/proc/$pid/mem; echo mem $?
nsenter --net=/run/proc/$pid/ns/net true; echo net $?
nsenter --user=/run/proc/$pid/ns/user true; echo user $?
unshare -Ur nsenter --net=/run/proc/$pid/ns/net true; echo nested $?
kill -0 $pid; echo kill $?
"""
    try:
        with running(*SLEEP) as process:
            middle = parts(process.pid)[0]
            for pid in (process.pid, middle, child(middle, "pinfold-gate"), child(middle, "pinfold-resolver"), child(process.pid, "^pasta")):
                expect(pid != 0, True)
                found = run("sh", "-c", attack, "sh", str(pid)).stdout
                expect(re.findall(r"^(\w+) 0$", found, re.M), [], f"open, {processes()[pid]}")
                expect(len(re.findall(r"^\w+ \d+$", found, re.M)), 8)
            # Outside, the door is open: it is his process.
            expect(subprocess.run([*CALLER, "kill", "-0", str(middle)]).returncode, 0)
            expect(subprocess.run([*CALLER, "cat", f"/proc/{middle}/environ"], stdout=subprocess.DEVNULL).returncode, 0)
    finally:
        shell("umount /run/proc && rmdir /run/proc")


@only("user")
def rules_are_out_of_reach():
    """Not even root of a namespace of his own may look at the network that the run has, and least change it."""
    for command in ("iptables-nft -t mangle -F", "unshare -Ur iptables-nft -t mangle -F", "unshare -Ur ip link set eth0 down",
                    "unshare -Ur ip route flush table main", "ip address add 192.0.2.1/32 dev lo"):
        expect(run("sh", "-c", command + " 2>/dev/null").returncode != 0, True, command)
    # Of a network namespace that he makes himself he is root, and it leads nowhere.
    expect(run("unshare", "-Urn", "sh", "-c", "ip link set lo up && ip -o link").stdout.count("\n"), 1)


@only("user")
def loopback_of_the_host():
    """What listens on 127.0.0.1 and ::1 of the host is behind no address that the run has."""
    code = ("import socket, sys\nfor to in sys.argv[2:]:\n    try:\n        s = socket.create_connection((to, int(sys.argv[1])), 2)\n"
            "        print(to, s.recv(9))\n    except OSError: pass\n")
    listeners = [socket.create_server((address, 4321), family=family) for family, address in
                 ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))]
    try:
        links = run("sh", "-c", "ip -4 route; ip -6 route").stdout
        gateways = re.findall(r"via (\S+)", links)
        expect(len(gateways), 2)
        ends = [str(ipaddress.ip_address(gateway) + step) for gateway in gateways for step in (-4, -3, 0)]
        found = run("sh", "-c", f"python3 -c '{code}' 4321 127.0.0.1 ::1 localhost 203.0.113.2 2001:db8::2 {' '.join(ends)}")
        expect(found.stdout, "")
        for listener in listeners:
            listener.settimeout(0)
            with contextlib.suppress(BlockingIOError):
                listener.accept()
                raise Fault("something arrived")
    finally:
        for listener in listeners:
            listener.close()


@only("user")
def his_session_is_closed():
    """systemd and D-Bus of his session would start programs for him, outside."""
    shell(f"mkdir -p /run/user/{UID}/systemd && touch /run/user/{UID}/systemd/private && chown -R {UID} /run/user/{UID}")
    try:
        with socket.socket(socket.AF_UNIX) as bus:
            bus.bind(f"/run/user/{UID}/bus")
            os.chmod(f"/run/user/{UID}/bus", 0o777)
            bus.listen()
            code = f"import socket; s = socket.socket(socket.AF_UNIX); print(s.connect_ex('/run/user/{UID}/bus'))"
            expect(subprocess.run([*CALLER, "python3", "-c", code], stdout=subprocess.PIPE, text=True).stdout, "0\n")
            expect(run("python3", "-c", code).stdout, f"{errno.ECONNREFUSED}\n")
            expect(run("ls", "-A", f"/run/user/{UID}/systemd").stdout, "")
    finally:
        shell("rm -rf /run/user")


@only("user")
def pasta_is_killed():
    with running(*SLEEP) as process:
        os.kill(child(process.pid, "^pasta"), signal.SIGKILL)
        error = process.communicate(timeout=20)[1]
        expect((process.returncode, error.splitlines()[-1]), (2, "pinfold: the way out is gone; the command was killed"))


@only("user")
def runner_and_middle_are_killed():
    with running(*SLEEP) as process:
        middle = parts(process.pid)[0]
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(middle, signal.SIGKILL)
        process.kill()
        process.wait()
        expect(until(lambda: not processes()), True, f"left: {processes()}")


@only("user")
def some_at_once():
    many = [subprocess.Popen([*CALLER, PINFOLD, "run", "sh", "-c", f"exit {i}"]) for i in range(6)]
    expect([process.wait(60) for process in many], list(range(6)))


@only("user")
def no_way_out():
    """A host without a default route: COMMAND runs, and learns at once that there is no way."""
    shell("ip route del default; ip -6 route del default")
    try:
        found = run("sh", "-c", "echo here; python3 -c \"import socket; socket.create_connection(('198.51.100.1', 80), 2)\"")
        expect(found.stdout, "here\n")
        expect("timed out" in found.stderr, False)
    finally:
        shell("ip route add default via 203.0.113.1; ip -6 route add default via 2001:db8::1")


@only("user")
def what_is_missing_is_named():
    def fails(text, prefix=()):
        found = subprocess.run([*prefix, *CALLER, PINFOLD, "run", "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect((found.returncode, found.stdout, found.stderr.count("\n")), (2, "", 1), found.stderr)
        expect_in(text, found.stderr)
    program = os.path.realpath("/usr/bin/pasta")
    shell(f"mount --bind /dev/null {program}")
    try:
        fails("needs the program pasta (Debian's package passt)")
    finally:
        shell(f"umount {program}")
    shell("chmod 600 /dev/net/tun")
    try:
        fails("needs /dev/net/tun: Permission denied; root can allow it: chmod 0666 /dev/net/tun")
        shell("mv /dev/net/tun /dev/net/away")
        fails("needs /dev/net/tun: No such file or directory; root can allow it: modprobe tun")
    finally:
        shell("mv /dev/net/away /dev/net/tun; chmod 666 /dev/net/tun")
    # In a user namespace of the test's own, so that the limit is not that of this machine.
    fails("user.max_user_namespaces=0 forbids here; root can allow it: sysctl -w user.max_user_namespaces=",
          [sys.executable, __file__, PINFOLD, "limit"])


def limit():
    """`run.py PINFOLD limit COMMAND…`: COMMAND where nobody can make a user namespace."""
    reader, writer = os.pipe()
    outer = os.getpid()
    mapper = os.fork()
    if mapper == 0:
        os.read(reader, 1)
        for which in ("uid_map", "gid_map"):
            with open(f"/proc/{outer}/{which}", "w", encoding="ascii") as file:
                file.write("0 0 4294967295\n")
        os._exit(0)
    if ctypes.CDLL(None).unshare(0x10000000) != 0: # CLONE_NEWUSER
        sys.exit("no user namespace")
    os.write(writer, b"x")
    os.waitpid(mapper, 0)
    with open("/proc/sys/user/max_user_namespaces", "w", encoding="ascii") as file:
        file.write("0")
    os.execvp(sys.argv[3], sys.argv[3:])


@case
def audit_lines_of_a_short_run():
    """What ends at once after its refusal has its line: of the static floor, of the gate, of the resolver."""
    def lines(command, times):
        return [run("bash", "-c", command).stderr.count('"verdict":"deny"') for _ in range(times)]
    expect(lines(": </dev/tcp/169.254.169.254/80", times=50), [1] * 50, "metadata")
    expect(lines(":", times=1), [0], "nothing refused")
    expect(lines("echo x >/dev/udp/192.0.2.1/9", times=10), [1] * 10, "gate")
    expect(lines("getent ahostsv4 metadata.google.internal", times=10), [1] * 10, "resolver")


@case
def a_report():
    """What was refused and what was reached, also when the log tells refusals alone; COMMAND cannot touch it meanwhile."""
    shell("mkdir -m 777 /run/out && ip netns add away && ip link add nic type veth peer name nic netns away && "
          "ip address add 203.0.114.1/24 dev nic && ip link set nic up && ip -n away address add 203.0.114.2/24 dev nic && "
          "ip -n away link set nic up && ip -n away route add default via 203.0.114.1")
    serve = ("import socket\ns = socket.create_server(('203.0.114.2', 80))\nwhile True:\n    c = s.accept()[0]\n    c.recv(4096)\n"
             "    c.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n')\n    c.close()\n")
    server = subprocess.Popen(["ip", "netns", "exec", "away", "python3", "-c", serve])
    try:
        until(lambda: shell("ip netns exec away ss -Hltn").strip() != "")
        fetch = ("import urllib.request as r\nfor to in ('203.0.114.2', '169.254.169.254'):\n    try: r.urlopen('http://%s/' % to, timeout=5)\n"
                 "    except OSError: pass\n")
        for name in ("r.md", "r.html"):
            found = run("sh", "-c", f"python3 -c \"{fetch}\"; exit 7", options=["--report", f"/run/out/{name}"])
            expect((found.returncode, "203.0.114.2" in found.stderr, "metadata" in found.stderr), (7, False, True))
            expect(os.stat(f"/run/out/{name}").st_uid, UID)
        expect_in("| 169.254.169.254 | 80/tcp | metadata | floor.txt:", read("/run/out/r.md"))
        expect_in("| 203.0.114.2 | 80/tcp | 1 |", read("/run/out/r.md"))
        expect_in("<td>203.0.114.2</td>", read("/run/out/r.html"))
        expect(run("true", options=["--report", "/nonexistent/r.md"]).returncode, 2)
    finally:
        server.kill()
        server.wait()
        shell("ip netns del away; rm -rf /run/out; until ! ip link show nic 2>/dev/null; do sleep 0.02; done")


@case
def the_rest_dies_with_it():
    expect(status("sh", "-c", "sleep 1000 & setsid sleep 1000 & (sleep 1000 & ) ; exit 3"), 3)
    expect([line for line in processes().values() if "sleep" in line], [])


@case
def signals_are_passed_on():
    for number, wanted in ((signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130), (signal.SIGUSR1, 138)):
        with running(*SLEEP) as process:
            process.send_signal(number)
            expect(process.wait(20), wanted, number)
    with running("sh", "-c", "trap 'echo got; exit 5' TERM; echo ready; while :; do sleep 0.05; done") as process:
        process.send_signal(signal.SIGTERM)
        expect((process.communicate(timeout=20)[0], process.returncode), ("got\n", 5))


def terminal(*command):
    """A session with a terminal of its own, whose foreground group the runner leads."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp((CALLER + [PINFOLD])[0], [*CALLER, PINFOLD, "run", "--", *command])
    return pid, fd


def hear(fd, text, seconds=20):
    """What the terminal shows until TEXT is in it."""
    shown, end = "", time.monotonic() + seconds
    while text not in shown and time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                shown += os.read(fd, 4096).decode(errors="replace")
            except OSError:
                break
    if text not in shown:
        raise Fault(f"the terminal shows {shown!r}, and not {text!r}")
    return shown


def finish(pid, fd):
    os.set_blocking(fd, False)
    found = None

    def over():
        nonlocal found
        with contextlib.suppress(OSError):
            os.read(fd, 4096)
        done, state = os.waitpid(pid, os.WNOHANG)
        if done:
            found = os.waitstatus_to_exitcode(state)
        return done != 0
    if not until(over, 20):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise Fault("it does not end")
    os.close(fd)
    return found


@case
def ctrl_c():
    pid, fd = terminal("sh", "-c", "echo ready; exec sleep 1000")
    hear(fd, "ready")
    os.write(fd, b"\x03")
    expect(finish(pid, fd), 130)
    # One signal for one key, and COMMAND decides what it means.
    pid, fd = terminal("sh", "-c", "trap 'n=$((n+1))' INT; echo ready; sleep 1; sleep 0.2; echo \"count $n\"; exit 4")
    hear(fd, "ready")
    os.write(fd, b"\x03")
    hear(fd, "count 1")
    expect(finish(pid, fd), 4)


@case
def ctrl_c_while_it_starts():
    for delay in (0.0, 0.02, 0.05, 0.1, 0.2, 0.4):
        pid, fd = terminal("sleep", "1000")
        until(lambda: any("sleep 1000" in line for line in processes().values()))
        time.sleep(delay)
        os.write(fd, b"\x03")
        found = finish(pid, fd)
        if found not in (130, -signal.SIGINT): # the latter: before it had looked at its signals
            raise Fault(f"after {delay} s: {found}")


@case
def signals_while_it_starts():
    """Signals at every moment of the start, to the runner or from a terminal's key to its group, once or twice: whatever it
    was doing, nothing of it stays. ROUNDS makes it longer."""
    def left():
        found = host()
        return {key: found[key] for key in before if found[key] != before[key]}
    shell(f"{PINFOLD} run true")
    before, dice = host(), random.Random(7)
    for number in range(int(os.environ.get("ROUNDS", "24"))):
        kind, delay = dice.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]), dice.uniform(0, 0.5)
        send, again = dice.choice([os.kill, os.killpg]), dice.choice([None, 0, dice.uniform(0, 0.3)])
        process = subprocess.Popen([PINFOLD, "run", "--", "sleep", "1000"], stderr=subprocess.PIPE, text=True, start_new_session=True)
        time.sleep(delay)
        send(process.pid, kind)
        if again is not None:
            time.sleep(again)
            with contextlib.suppress(ProcessLookupError):
                send(process.pid, kind)
        error = process.communicate(timeout=20)[1]
        if process.returncode not in (128 + kind, -kind) or left():
            raise Fault(f"round {number}, {send.__name__} {kind.name} after {delay:.3f} s, {again}: {process.returncode} {error!r} {left()}")


@case
def ctrl_z():
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp("bash", ["bash", "--norc", "-i"])
    os.write(fd, f"{' '.join([*CALLER, PINFOLD])} run -- sh -c 'echo rea\\dy; sleep 1; echo aga\\in; exit 6'\n".encode())
    hear(fd, "ready")
    os.write(fd, b"\x1a")
    hear(fd, "Stopped")
    time.sleep(1.5)
    os.write(fd, b"fg\n")
    hear(fd, "again")
    os.write(fd, b"exit $?\n")
    expect(finish(pid, fd), 6)


@case
def a_shell_on_the_terminal():
    pid, fd = terminal("bash", "--norc", "-i")
    os.write(fd, b"sleep 1000 & jobs; kill %1; stty -a | head -1; echo do''ne\n")
    shown = hear(fd, "done")
    if "no job control" in shown or "cannot set terminal" in shown:
        raise Fault(shown)
    os.write(fd, b"sleep 1000\n")
    time.sleep(0.5)
    os.write(fd, b"\x03")
    os.write(fd, b"echo al''ive\n")
    hear(fd, "alive")
    os.write(fd, b"exit 9\n")
    expect(finish(pid, fd), 9)


@case
def the_terminal_hangs_up():
    pid, fd = terminal(*SLEEP)
    hear(fd, "ready")
    os.close(fd)
    expect(until(lambda: os.waitpid(pid, os.WNOHANG)[0] != 0), True, "it is gone")


@case
def the_runner_is_killed():
    with running(*SLEEP) as process:
        process.kill()
        expect(process.wait(), -9)
        expect(until(lambda: not processes()), True, f"left: {processes()}")


@case
def the_middle_is_killed():
    with running(*SLEEP) as process:
        os.kill(parts(process.pid)[0], signal.SIGKILL)
        error = process.communicate(timeout=20)[1]
        expect((process.returncode, error), (2, "pinfold: resolver and gate are gone; the command was killed\n"))
    with running(*SLEEP) as process:
        os.kill(parts(process.pid)[0], signal.SIGTERM)
        expect(process.wait(20), 2)


@case
def the_inner_is_killed():
    with running(*SLEEP) as process:
        os.kill(parts(process.pid)[1], signal.SIGKILL)
        expect(process.wait(20), 137)


@case
def the_programs_are_killed():
    with running(*SLEEP) as process:
        middle = parts(process.pid)[0]
        for name in ("pinfold-gate", "pinfold-resolver"):
            old = child(middle, name)
            os.kill(old, signal.SIGKILL)
            expect(until(lambda: child(middle, name) not in (0, old)), True, f"{name} is back")
        expect(process.poll(), None, "COMMAND runs on")


@only("root")
def everything_is_killed():
    """Runner and middle at the same time: the next run takes away what they left on the host."""
    with running(*SLEEP) as process:
        middle = parts(process.pid)[0]
        os.kill(process.pid, signal.SIGSTOP)
        os.kill(middle, signal.SIGSTOP)
        os.kill(middle, signal.SIGKILL)
        process.kill()
        process.wait()
        expect(until(lambda: not processes()), True, f"left: {processes()}")
        expect(any("pinfold-run:" in line for line in rules()), True, "there is something to sweep")
    expect(status("true"), 0)


@only("root")
def several_at_once():
    expect(read("/proc/sys/net/ipv4/ip_forward"), "0\n")
    with running(*SLEEP) as one, running(*SLEEP) as two:
        expect((one.line, two.line), ("ready", "ready"))
        expect(len([link for link in host()["links"] if link.startswith("pfu")]), 2)
        one.terminate()
        expect(one.wait(20), 143)
        expect(read("/proc/sys/net/ipv4/ip_forward"), "1\n", "the other one needs it")
        expect(two.poll(), None)
    until(lambda: not processes())
    many = [subprocess.Popen([PINFOLD, "run", "sh", "-c", f"exit {i}"]) for i in range(6)]
    expect([process.wait(60) for process in many], list(range(6)))


@only("root")
def settings_of_the_host_stay():
    shell("sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
    try:
        expect(status("true"), 0)
        expect((read("/proc/sys/net/ipv4/ip_forward"), read("/proc/sys/net/ipv6/conf/all/forwarding")), ("1\n", "1\n"))
    finally:
        shell("sysctl -qw net.ipv4.ip_forward=0 net.ipv6.conf.all.forwarding=0")


@only("root")
def rules_of_the_host_stay():
    shell("iptables -P FORWARD DROP; iptables -A FORWARD -s 192.0.2.1 -j ACCEPT; iptables -t nat -A POSTROUTING -j ACCEPT")
    try:
        before = rules()
        with running(*SLEEP) as process:
            # Another tool flushes what is not its own.
            shell("iptables -t nat -F; iptables -t nat -A POSTROUTING -j ACCEPT")
            process.terminate()
            process.wait(20)
        expect(rules(), before)
    finally:
        shell("iptables -P FORWARD ACCEPT; iptables -F FORWARD; iptables -t nat -F")


@case
def without_iptables():
    shell("rm -f /usr/sbin/iptables* /usr/sbin/ip6tables*")
    try:
        found = run("true")
        expect((found.returncode, found.stderr.count("\n")), (2, 1), found.stderr)
        expect_in("iptables", found.stderr)
    finally:
        shell("umount /usr/sbin && rm -rf /run/over/usr/sbin/up/* /run/over/usr/sbin/work/* && "
              "mount -t overlay -o lowerdir=/usr/sbin,upperdir=/run/over/usr/sbin/up,workdir=/run/over/usr/sbin/work over /usr/sbin")


@only("root")
def rules_that_cannot_be_removed():
    """They are said to stay, and the next run takes them away. A user's go with his network namespace."""
    with running(*SLEEP) as process:
        shell("rm /usr/sbin/iptables-restore && printf '#!/bin/sh\necho broken >&2; exit 1\n' >/usr/sbin/iptables-restore && "
              "chmod 755 /usr/sbin/iptables-restore")
        try:
            process.terminate()
            error = process.communicate(timeout=20)[1]
        finally:
            shell("ln -sf /etc/alternatives/iptables-restore /usr/sbin/iptables-restore")
        expect_in("cannot take the packet-filter rules of run", error)
        expect_in("broken", error)
    expect(any("pinfold-run:" in line for line in rules()), True, "there is something to sweep")
    expect(status("true"), 0)


def main():
    if WHO == "limit":
        limit()
    enter()
    if UID and subprocess.run([*CALLER, "test", "-x", PINFOLD]).returncode != 0:
        print(f"1..0 # SKIP {PINFOLD} is not open to an ordinary user")
        return SKIP
    if UID and not os.path.exists("/usr/bin/pasta"):
        print("1..0 # SKIP there is no pasta (package passt)")
        return SKIP
    prepare()
    pattern = sys.argv[3] if len(sys.argv) > 3 else ""
    chosen = [function for function in CASES if pattern in function.__name__]
    failed = 0
    print(f"1..{len(chosen)}")
    for number, function in enumerate(chosen, 1):
        before, problem = host(), ""
        try:
            function()
        except (Fault, OSError, subprocess.SubprocessError, StopIteration, AttributeError) as fault:
            problem = f"{type(fault).__name__}: {fault}"
        if not problem:
            until(lambda: host() == before, 3)
            after = host()
            problem = "; ".join(f"left behind, {key}: {after[key]}, before {before[key]}" for key in before if after[key] != before[key])
        if problem:
            for pid in processes():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            until(lambda: not processes())
            status("true")
        failed += problem != ""
        print(f"{'not ok' if problem else 'ok'} {number} - {function.__name__.replace('_', ' ')}")
        if problem:
            print(f"# {problem}")
        sys.stdout.flush()
    return 1 if failed else 0


sys.exit(main())
