#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A real runtime: podman with its CNI back end and runc, Debian's bridge plugin, and pinfold-cni behind it. No image and no
# registry: a container sees this system's /usr.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
for command in podman runc /usr/lib/cni/bridge; do
	command -v "$command" >/dev/null || lab_skip "no $command"
done
lab_start

pod=$lab/podman group=/pinfold-test-$$-$RANDOM
mkdir -p "$pod"/{rootfs/{usr,proc,sys,dev,etc,tmp},networks,store}
for folder in bin lib lib64; do ln -s "usr/$folder" "$pod/rootfs/$folder"; done
in_host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'

# What runc leaves of its cgroups, which namespaces do not hide.
leave_cgroups() { find /sys/fs/cgroup -depth -type d -path "*$group*" -exec rmdir {} \; 2>/dev/null; lab_leave; }
trap leave_cgroups EXIT

cat >"$pod/containers.conf" <<END
[network]
network_backend = "cni"
cni_plugin_dirs = ["/usr/lib/cni", "$(dirname "${PINFOLD_CNI:-$lab_top/build/cni/pinfold-cni}")"]
network_config_dir = "$pod/networks"
default_network = "pods"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
END
network() { # NAME [PLUGIN]
	cat >"$pod/networks/$1.conflist" <<-END
		{"cniVersion": "0.4.0", "name": "$1", "plugins": [
		  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": {"type": "host-local", "dataDir": "$pod/ipam",
		   "ranges": [[{"subnet": "10.88.0.0/16"}], [{"subnet": "2a00:1450:88::/64"}]], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}${2:+,
		  $2}]}
	END
}
network plain
network pods '{"type": "pinfold-cni", "socket": "'"$lab/control.sock"'"}'
network strict '{"type": "pinfold-cni", "socket": "'"$lab/control.sock"'", "policy": "strict"}'

in_podman() {
	in_host env CONTAINERS_CONF="$pod/containers.conf" podman --root "$pod/store" --runroot "$pod/run" --storage-driver vfs "$@"
}
# pod_run NETWORK COMMAND…: in a new container; pod_begin the same in the background.
pod_run() { in_podman run --rm --network "$1" --cgroup-parent "$group" --volume /usr:/usr:ro --rootfs "$pod/rootfs" "${@:2}"; }
pod_begin() { in_podman run --rm --detach --network "$1" --cgroup-parent "$group" --volume /usr:/usr:ro --rootfs "$pod/rootfs" "${@:2}"; }
# The first start also tells whether podman works here at all, as in a container it may not.
pod_run plain /bin/sh -c 'echo started' >"$pod/first" 2>&1 || lab_skip "podman does not work here: $(tail -n 1 "$pod/first")"
pod_fetch() { pod_run "$1" curl -sS --connect-timeout 3 --max-time 6 "$2"; }
registered() { in_host "$PINFOLD" client list -c "$lab/daemon.yaml" --json | grep -c '"cni-'; }
is() { local wanted=$1 got; shift; got=$("$@"); [[ $got == "$wanted" ]] || { printf '%s instead of %s\n' "$got" "$wanted"; return 1; }; }

scenario 'without Pinfold' "$LAB_META"
check 'metadata' says secret-credentials pod_fetch plain "http://$LAB_META/"

# The bridge is made by the first container: the service stands before it.
in_ns host ip link delete cni0
daemon_start "$(lab_resolver_yaml '"10.88.0.1@53"' '10.88.0.0/16')
gate: {hook: forward, interfaces: [cni0]}
policies:
  default: {}
  strict: {default: deny, allow_hosts: [harbour.com]}" || lab_fatal 'the daemon does not start'
check 'it stands before the bridge' grep -q 'no address of this host yet' "$lab/daemon.err"

scenario 'a container asks us and is governed' "$LAB_WEB" "$LAB_META" "$LAB_LAN"
check 'its nameserver' says 'nameserver 10.88.0.1' pod_run pods /bin/cat /etc/resolv.conf
check 'HTTP' says "web $LAB_WEB" pod_fetch pods http://v4.harbour.com/
lab_mark
check 'metadata' never secret-credentials pod_fetch pods "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'reason' audited metadata '"cni-'
check 'rebinding' never private-admin-page pod_fetch pods http://lan.harbour.com/
check 'no packet' unreached "$LAB_LAN"
check 'nobody is left' is 0 registered

scenario 'the policy of the network' "$LAB_WEB"
check 'listed' says "web $LAB_WEB" pod_fetch strict http://v4.harbour.com/
check 'not listed' never 'host own.quarry.net' pod_fetch strict http://own.quarry.net/
check 'reason' audited not_allowlisted '"cni-'

scenario 'a detached container, until it is stopped'
check 'run' pod_begin pods /bin/sh -c 'exec sleep 60'
check 'one' is 1 registered
check 'stop' in_podman stop -a -t 1
check 'none' is 0 registered

scenario 'no service, no start'
daemon_stop
check_not 'run' pod_run pods /bin/sh -c 'echo started'
lab_end
