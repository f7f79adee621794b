#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""pinfold-cni as a runtime calls it, with a service of our own at the other end of the control socket: every verb of
the CNI specification 0.4.0, 1.0.0 and 1.1.0, and every error code.

    verbs.py PINFOLD-CNI
"""
import copy
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
import tap

PROGRAM = sys.argv[1]


class Service:
    """The control socket, with the registry of docs/control.md: names and addresses are one client's."""

    def __init__(self, path):
        self.path, self.clients, self.requests, self.refuse, self.stumbles = path, {}, [], {}, 0
        self.status = {"ok": True, "resolver": {"state": "ready"}, "gate": {"state": "ready"}, "rules": {"managed": True}}
        self.governed = {"cni0"}
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rw", encoding="utf-8") as file:
                for line in file:
                    answer = self.answer(json.loads(line))
                    if answer is None:
                        break
                    file.write(json.dumps(answer) + "\n")
                    file.flush()

    def answer(self, request):
        self.requests.append(request)
        command = request["command"]
        if self.stumbles > 0:
            self.stumbles -= 1
            return {"ok": False, "code": "failed", "error": "a child died over it"}
        if command in self.refuse:
            return self.refuse[command]
        if command == "client-list":
            return {"ok": True, "generation": 1, "clients": list(self.clients.values())}
        if command == "client-remove":
            return {"ok": True, "generation": 2, "changed": self.clients.pop(request["name"], None) is not None}
        if command == "status":
            return self.status
        entry = {key: value for key, value in request.items() if key not in ("command", "via")}
        entry["registered"] = True
        if "via" in request and request["via"] not in self.governed:
            return {"ok": False, "code": "invalid", "error": f"via: '{request['via']}' is not in `gate: {{interfaces}}`"}
        known = self.clients.get(entry["name"])
        if known == entry:
            return {"ok": True, "generation": 1, "changed": False}
        if known or any(set(entry["addresses"]) & set(other["addresses"]) for other in self.clients.values()):
            return {"ok": False, "code": "taken", "error": "it is another's"}
        self.clients[entry["name"]] = entry
        return {"ok": True, "generation": 2, "changed": True}

    def close(self):
        self.listener.close()
        os.unlink(self.path)


ENVIRONMENT = {"CNI_CONTAINERID": "0123456789abcdef", "CNI_NETNS": "/run/netns/x", "CNI_IFNAME": "eth0", "CNI_PATH": "/usr/lib/cni"}
RESULT = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "cni0", "mac": "02:00:00:00:00:01"}, {"name": "veth1"}, {"name": "eth0", "sandbox": "/run/netns/x"}],
    "ips": [{"interface": 2, "address": "10.88.0.2/16", "gateway": "10.88.0.1"},
            {"interface": 2, "address": "fd00::2/64", "gateway": "fd00::1"}],
    "routes": [{"dst": "0.0.0.0/0"}],
    "dns": {"nameservers": ["192.0.2.53"], "search": ["example.com"]},
}
CONFIG = {"cniVersion": "1.0.0", "name": "pods", "type": "pinfold-cni", "policy": "ci", "prevResult": RESULT}


def call(verb, config, **changes):
    """Exit status and what was printed, as JSON if it is JSON. A variable that is None is not set."""
    environment = {**ENVIRONMENT, "CNI_COMMAND": verb, **changes}
    text = config if isinstance(config, (str, bytes)) else json.dumps(config)
    done = subprocess.run([PROGRAM], input=text if isinstance(text, bytes) else text.encode(), capture_output=True,
                          env={key: value for key, value in environment.items() if value is not None})
    try:
        return done.returncode, json.loads(done.stdout) if done.stdout else None
    except ValueError:
        return done.returncode, done.stdout


def changed(base, **changes):
    config = copy.deepcopy(base)
    for key, value in changes.items():
        if value is None:
            config.pop(key)
        else:
            config[key] = value
    return config


def refused(name, code, verb, config, text="", **environment):
    status, output = call(verb, config, **environment)
    good = status == 1 and isinstance(output, dict) and output.get("code") == code and output.get("msg") and \
        output.get("cniVersion") and text in output["msg"]
    tap.report(bool(good), f"{verb}, {name}: error {code}", (status, output))


def prev(**changes):
    return changed(CONFIG, prevResult=changed(RESULT, **changes))


def errors(socket_path):
    base = changed(CONFIG, socket=socket_path)
    for verb in ("ADD", "DEL", "CHECK"):
        for variable in ("CNI_CONTAINERID", "CNI_IFNAME", "CNI_PATH") + (() if verb == "DEL" else ("CNI_NETNS",)):
            refused(f"no {variable}", 4, verb, base, variable, **{variable: None})
            refused(f"empty {variable}", 4, verb, base, variable, **{variable: ""})
    refused("no verb", 4, "", base, "CNI_COMMAND")
    refused("unknown verb", 4, "UPDATE", base, "UPDATE")
    for name in ("../x", "-x", "a b", "ä"):
        refused(f"container {name}", 4, "ADD", base, CNI_CONTAINERID=name)
    for name in ("a/b", "..", "sixteen-octets-x", "a b", "a:b"):
        refused(f"interface {name}", 4, "ADD", base, CNI_IFNAME=name)
    for text in ("", "{", "[]", "null", '{"a":1,"a":2}', b"\xff\xfe", "x" * (1 << 20) + "x"):
        refused(f"input {text[:12]!r}", 6, "ADD", text)
    for version in ("0.1.0", "0.3.1", "2.0.0", "1.0", "x"):
        refused(f"version {version}", 1, "ADD", changed(base, cniVersion=version), version)
    for verb in ("GC", "STATUS"):
        refused("version 1.0.0", 1, verb, base, verb)
    refused("no version", 7, "ADD", changed(base, cniVersion=None), "cniVersion")
    refused("a misspelt policy", 2, "ADD", changed(base, polcy="ci"), "polcy")
    for key, value in (("name", ""), ("name", "a/b"), ("name", 1), ("policy", 5), ("policy", ""), ("socket", []),
                       ("nameservers", []), ("nameservers", ["x"]), ("nameservers", "10.88.0.1"),
                       ("nameservers", ["10.0.0.1"] * 9), ("runtimeConfig", []), ("runtimeConfig", {"pinfoldPolicy": 1}),
                       ("socket", "/" + "x" * 200)):
        refused(f"{key} {str(value)[:20]}", 7, "ADD", changed(base, **{key: value}), "pinfoldPolicy" if value == {"pinfoldPolicy": 1} else key)
    refused("no name", 7, "ADD", changed(base, name=None), "name")
    refused("no prevResult", 7, "ADD", changed(base, prevResult=None), "prevResult")
    for name, result in (("no addresses", prev(ips=None)), ("empty addresses", prev(ips=[])), ("an address that is none", prev(ips=[{"address": "10.0.0.300/8"}])),
                         ("an address without length", prev(ips=[{"address": "10.0.0.3"}])),
                         ("a gateway that is none", prev(ips=[{"address": "10.0.0.3/8", "gateway": "x"}])),
                         ("no gateway and no nameservers", prev(ips=[{"address": "10.0.0.3/8"}])),
                         ("no host interface", prev(interfaces=[{"name": "eth0", "sandbox": "/x"}])),
                         ("no interfaces", prev(interfaces=None)), ("17 addresses", prev(ips=[{"address": "10.0.0.3/8"}] * 17))):
        refused(name, 7, "ADD", changed(result, socket=socket_path))


def away(folder):
    """No service: what can be done is done, the rest is for later."""
    path = f"{folder}/control.sock"
    base = changed(CONFIG, socket=path)
    refused("no service", 11, "ADD", base, path)
    refused("no service", 11, "CHECK", base)
    refused("no service", 50, "STATUS", changed(base, cniVersion="1.1.0"))
    tap.report(call("DEL", base) == (0, None), "DEL, no service and nobody registered: done")
    with open(f"{path}.clients", "w", encoding="utf-8") as file:
        tap.report(call("DEL", base) == (0, None), "DEL, no service and a file without clients: done")
        file.write("{}\n")
    refused("no service, but it remembers", 11, "DEL", base)
    os.unlink(f"{path}.clients")


def verbs(folder):
    path = f"{folder}/control.sock"
    service = Service(path)
    for version in ("0.4.0", "1.0.0", "1.1.0"):
        base = changed(CONFIG, socket=path, cniVersion=version)
        status, output = call("ADD", base)
        wanted = changed(RESULT, cniVersion=version, dns={"nameservers": ["10.88.0.1", "fd00::1"], "search": ["example.com"]})
        tap.report(status == 0 and output == wanted, f"{version} ADD: the result with our nameservers", output)
        client = next(iter(service.clients.values()), {})
        tap.report(client.get("addresses") == ["10.88.0.2", "fd00::2"] and client.get("policy") == "ci" and len(service.clients) == 1,
                   f"{version} ADD: both families are one client", service.clients)
        tap.report(service.requests[-1].get("via") == "cni0", f"{version} ADD: by the bridge", service.requests[-1])
        tap.report(call("ADD", base)[0] == 0 and len(service.clients) == 1, f"{version} ADD again", service.clients)
        tap.report(call("CHECK", base) == (0, None), f"{version} CHECK")
        tap.report(call("DEL", changed(base, prevResult=None)) == (0, None) and not service.clients, f"{version} DEL", service.clients)
        tap.report(call("DEL", base) == (0, None), f"{version} DEL again")
    base = changed(CONFIG, socket=path)

    refused("not registered", 100, "CHECK", base)
    call("ADD", base)
    refused("another policy", 101, "CHECK", changed(base, policy="browser"), "browser")
    refused("an address more", 101, "CHECK", changed(base, prevResult=changed(RESULT, ips=RESULT["ips"] + [{"address": "10.88.0.9/16"}])), "10.88.0.9")
    refused("an address less", 101, "CHECK", changed(base, prevResult=changed(RESULT, ips=RESULT["ips"][:1])))
    service.status["rules"]["problem"] = "a chain is missing"
    refused("damaged rules", 102, "CHECK", base, "a chain is missing")
    del service.status["rules"]["problem"]
    service.status["gate"]["state"] = "down"
    refused("no gate", 102, "CHECK", base, "gate")
    refused("no gate", 50, "STATUS", changed(base, cniVersion="1.1.0"), "gate")
    service.status["gate"]["state"] = "ready"
    tap.report(call("STATUS", changed(base, cniVersion="1.1.0")) == (0, None), "STATUS")

    # What was forgotten: the same container with another address, another container with the same address.
    call("ADD", changed(base, prevResult=changed(RESULT, ips=[{"address": "10.88.0.7/16", "gateway": "10.88.0.1"}])))
    tap.report([c["addresses"] for c in service.clients.values()] == [["10.88.0.7"]], "ADD without DEL: the new address", service.clients)
    call("ADD", changed(base, prevResult=changed(RESULT, ips=[{"address": "10.88.0.7/16", "gateway": "10.88.0.1"}])), CNI_CONTAINERID="other")
    tap.report(len(service.clients) == 1 and any("-other-" in name for name in service.clients), "ADD of a re-used address", service.clients)
    service.clients["runner"] = {"name": "runner", "policy": "ci", "addresses": ["10.88.0.8"], "registered": True}
    refused("an address of somebody else", 11, "ADD", changed(base, prevResult=changed(RESULT, ips=[{"address": "10.88.0.8/16", "gateway": "10.88.0.1"}])))
    refused("an address of another network", 11, "ADD", changed(base, name="other", prevResult=changed(RESULT, ips=[{"address": "10.88.0.7/16", "gateway": "10.88.0.1"}])))
    tap.report("runner" in service.clients and len(service.clients) == 2, "and nobody is removed", service.clients)

    service.clients.clear()
    call("ADD", changed(base, nameservers=["192.0.2.1"], runtimeConfig={"pinfoldPolicy": "browser"}))
    tap.report([c["policy"] for c in service.clients.values()] == ["browser"], "the runtime names the policy", service.clients)
    _, output = call("ADD", changed(base, nameservers=["192.0.2.1"], runtimeConfig={"pinfoldPolicy": "browser"}))
    tap.report(output["dns"]["nameservers"] == ["192.0.2.1"], "nameservers of the configuration", output)

    service.clients.clear()
    status, _ = call("ADD", changed(base, prevResult=changed(RESULT, interfaces=[{"name": "veth77"}, {"name": "eth0", "sandbox": "/x"}])))
    tap.report(status == 0 and [c.get("interface") for c in service.clients.values()] == ["veth77"], "an interface of its own gets rules", service.clients)
    service.clients.clear()

    # GC keeps who is valid, and who is not of this network.
    for container in ("one", "two", "three"):
        last = {"one": 11, "two": 12, "three": 13}[container]
        call("ADD", changed(base, prevResult=changed(RESULT, ips=[{"address": f"10.88.0.{last}/16", "gateway": "10.88.0.1"}])), CNI_CONTAINERID=container)
    call("ADD", changed(base, name="elsewhere", prevResult=changed(RESULT, ips=[{"address": "10.99.0.2/16", "gateway": "10.99.0.1"}])))
    service.clients["runner"] = {"name": "runner", "policy": "ci", "addresses": ["10.88.0.8"], "registered": True}
    gc = changed(base, cniVersion="1.1.0", prevResult=None)
    refused("no list", 7, "GC", gc, CNI_CONTAINERID=None)
    refused("half a list", 7, "GC", {**gc, "cni.dev/valid-attachments": [{"containerID": "two"}]})
    tap.report(len(service.clients) == 5, "and nobody is removed", service.clients)
    status = call("GC", {**gc, "cni.dev/valid-attachments": [{"containerID": "two", "ifname": "eth0"}]}, CNI_CONTAINERID=None, CNI_NETNS=None, CNI_IFNAME=None)
    tap.report(status == (0, None) and sorted(c["addresses"][0] for c in service.clients.values()) == ["10.88.0.12", "10.88.0.8", "10.99.0.2"], "GC", (status, service.clients))

    service.refuse["client-add"] = {"ok": False, "code": "invalid", "error": "there is no policy 'ci'"}
    refused("a policy that is not there", 7, "ADD", base, "no policy")
    for name, answer in (("a change that failed", {"ok": False, "code": "failed", "error": "no"}), ("an end without answer", None), ("an answer that is none", [])):
        service.refuse["client-add"] = answer
        refused(name, 11, "ADD", base)
    service.refuse, service.stumbles = {}, 2
    tap.report(call("ADD", base)[0] == 0, "ADD, the change fails twice")
    service.refuse = {"client-remove": {"ok": False, "code": "failed", "error": "no"}}
    refused("a change that failed", 11, "DEL", base)
    service.close()


def version():
    for text in ('{"cniVersion":"0.4.0"}', '{"cniVersion":"9.9.9"}', ""):
        status, output = call("VERSION", text, CNI_CONTAINERID=None, CNI_NETNS=None, CNI_IFNAME=None, CNI_PATH=None)
        wanted = json.loads(text)["cniVersion"] if text else "1.1.0"
        tap.report(status == 0 and output == {"cniVersion": wanted, "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]}, f"VERSION {text}", output)
    refused("input that is no JSON", 6, "VERSION", "{")


def closed_input():
    done = subprocess.run(["sh", "-c", 'exec "$0" <&-', PROGRAM], capture_output=True, text=True, env={**ENVIRONMENT, "CNI_COMMAND": "ADD"})
    tap.report(done.returncode == 1 and json.loads(done.stdout)["code"] == 5, "ADD, no standard input: error 5", done.stdout)


def main():
    folder = tempfile.mkdtemp()
    try:
        version()
        closed_input()
        errors(f"{folder}/nobody.sock")
        away(folder)
        verbs(folder)
    finally:
        shutil.rmtree(folder)
    return tap.end()


sys.exit(main())
