#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Containers on a bridge: pinfold-cni as a runtime calls it, with network namespaces for containers and a bridge that this
# script makes in the place of the plugin before it in the chain.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
PINFOLD_CNI=${PINFOLD_CNI:-$lab_top/build/cni/pinfold-cni}
lab_start

in_ns host ip -batch - <<-END || lab_fatal 'no bridge'
	link add cni0 type bridge
	addr add 10.88.0.1/16 dev cni0
	addr add 2a00:1450:88::1/64 dev cni0 nodad
	link set cni0 up
END
in_ns host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
printf 'nameserver 10.88.0.1\noptions timeout:2 attempts:2\n' >"$lab/resolv.container"

# container NAME NUMBER: a namespace with both addresses on the bridge.
container() {
	lab_namespace "$1" && ip link add eth0 netns "$1" type veth peer name "veth$2" netns host || return 1
	printf '%s\n' "link set veth$2 master cni0" "link set veth$2 up" | in_ns host ip -batch - || return 1
	printf '%s\n' "addr add 10.88.0.$2/16 dev eth0" "addr add 2a00:1450:88::$2/64 dev eth0 nodad" "link set eth0 up" \
		"route add default via 10.88.0.1" "route add default via 2a00:1450:88::1" | in_ns "$1" ip -batch -
}
in_container() { # NAME COMMAND…
	local name=$1
	shift
	# shellcheck disable=SC2016
	in_ns "$name" unshare --mount --propagation private sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' \
		"$lab/resolv.container" "$lab_resolv" "$@"
}
one() { lab_runner=(in_container one) && "$@"; }
two() { lab_runner=(in_container two) && "$@"; }

# cni VERB CONTAINER NUMBER [POLICY]: as the runtime calls it, after the bridge plugin.
cni() {
	local addresses='{"interface":2,"address":"10.88.0.'$3'/16","gateway":"10.88.0.1"}'
	addresses+=',{"interface":2,"address":"2a00:1450:88::'$3'/64","gateway":"2a00:1450:88::1"}'
	in_host env CNI_COMMAND="$1" CNI_CONTAINERID="$2" CNI_NETNS="/run/netns/$2" CNI_IFNAME=eth0 CNI_PATH=/usr/lib/cni "$PINFOLD_CNI" <<-END
		{"cniVersion": "1.0.0", "name": "pods", "type": "pinfold-cni", "policy": "${4:-default}", "socket": "$lab/control.sock",
		 "prevResult": {"cniVersion": "1.0.0", "dns": {}, "ips": [$addresses], "interfaces":
		   [{"name": "cni0"}, {"name": "veth$3"}, {"name": "eth0", "sandbox": "/run/netns/$2"}]}}
	END
}
registered() { in_host "$PINFOLD" client list -c "$lab/daemon.yaml" --json | grep -c '"cni-'; }
is() { local wanted=$1 got; shift; got=$("$@"); [[ $got == "$wanted" ]] || { printf '%s instead of %s\n' "$got" "$wanted"; return 1; }; }
foreign_pin() { fetch --resolve "own.quarry.net:80:$LAB_SECOND" http://own.quarry.net/; }

scenario 'without Pinfold all of this works' "$LAB_WEB" "$LAB_META" "$LAB_SECOND"
check 'a container' container one 2
check 'another' container two 3
check 'HTTP' says "web $LAB_WEB" one fetch http://v4.harbour.com/
check 'metadata' says secret-credentials one fetch "http://$LAB_META/"

daemon_start "$(lab_resolver_yaml '"10.88.0.1@53", "2a00:1450:88::1@53"' '10.88.0.0/16, "2a00:1450:88::/64"')
gate: {hook: forward, interfaces: [cni0]}
policies:
  default: {literals: deny}
  strict: {default: deny, allow_hosts: [harbour.com]}" || lab_fatal 'the daemon does not start'

scenario 'a container is governed before it is known' "$LAB_META" "$LAB_WEB"
check 'metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"

scenario 'ADD: names, metadata, both families' "$LAB_WEB" "$LAB_WEB6" "$LAB_META"
check 'ADD' says '"10.88.0.1"' cni ADD one 2
check 'CHECK' cni CHECK one 2
check 'HTTP' says "web $LAB_WEB" one fetch http://v4.harbour.com/
check 'asked over IPv4, connected over IPv6' says "web $LAB_WEB6" one fetch http://v6.harbour.com/
lab_mark
check 'metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'reason' audited metadata '"cni-'

scenario 'each has its own policy and its own pins' "$LAB_WEB" "$LAB_SECOND"
check 'ADD' cni ADD two 3 strict
check 'the other policy' never 'host own.quarry.net' two fetch http://own.quarry.net/
check 'reason' audited not_allowlisted
check 'its list' says "web $LAB_WEB" two fetch http://v4.harbour.com/
check 'the pin' says 'host own.quarry.net' one fetch http://own.quarry.net/

scenario 'DEL, and a re-used address inherits nothing' "$LAB_SECOND"
check 'the pin is there' says 'host own.quarry.net' one foreign_pin
check 'DEL' cni DEL one 2
check 'DEL again' cni DEL one 2
check_not 'CHECK' cni CHECK one 2
check 'ADD of the next one' cni ADD next 2
lab_mark
check 'no pin' never 'host own.quarry.net' one foreign_pin
check 'no packet' unreached "$LAB_SECOND"
check 'reason' audited unpinned
check 'a DEL that never came' cni ADD third 2
check 'one client each' is 2 registered

scenario 'what cannot be governed is not started'
check 'a policy that is not there' says '"code": 7' sh -c '! "$@"' - "$(command -v bash)" -c "$(declare -f in_host cni); lab_host_pid=$lab_host_pid PINFOLD_CNI=$PINFOLD_CNI lab=$lab; cni ADD four 9 nowhere"
check 'it is not registered' is 2 registered

scenario 'the service restarts: who was there is there'
old=$daemon_pid
kill "$old" && wait "$old"
in_host_background "$lab/daemon.err" "$PINFOLD" daemon -c "$lab/daemon.yaml"
daemon_pid=$!
check 'it starts' wait_for 10 daemon_ready
check 'registered' is 2 registered
check 'CHECK' cni CHECK two 3 strict

scenario '200 containers started and removed in parallel'
many() { # VERB
	local number failures=0 pids=()
	for number in $(seq 20 219); do
		cni "$1" "many$number" "$number" >"$lab/many.$number" 2>&1 &
		pids+=($!)
	done
	for number in "${pids[@]}"; do wait "$number" || failures=$((failures + 1)); done
	((failures == 0)) || { printf '%d failed: ' "$failures"; cat "$lab"/many.* | grep msg | sort | uniq -c | head -n 2; return 1; }
}
check 'ADD' many ADD
check 'all are registered' is 202 registered
check 'CHECK of one' cni CHECK many100 100
check 'DEL' many DEL
check 'none is left' is 2 registered

scenario 'all of it goes'
check 'DEL' cni DEL third 2
check 'DEL' cni DEL two 3
check 'none is left' is 0 registered
daemon_stop
check 'DEL without a service' cni DEL two 3
check 'rules' in_host "$PINFOLD" rules remove -c "$lab/daemon.yaml"
check 'no rule' never pinfold in_host sh -c "iptables-save; ip6tables-save"
lab_end
