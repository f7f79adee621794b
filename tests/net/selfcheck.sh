#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `pinfold selfcheck`: passes in a governed client, and fails with the right probe for each protection that is taken away.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
everything=("$LAB_META" "$LAB_META6" "$LAB_META64" 192.0.2.0/24 "$LAB_OTHER")

# fails PROBE COMMAND…: it exits with 1 or 2, and this probe is among those that it names.
fails() {
	local probe=$1
	shift
	"$@" >"$lab/fails.out" 2>&1
	local code=$?
	((code == 1 || code == 2)) && grep -q "^not_enforced: $probe" "$lab/fails.out" || { printf 'status %d: %s\n' "$code" "$(<"$lab/fails.out")"; return 1; }
}

in_run() { in_host "$PINFOLD" run --policy "$lab/policy.yaml" --selfcheck "$@"; }
policy
scenario 'in a run: COMMAND starts, with its status and without our descriptor'
check 'starts' says started in_run -- sh -c 'echo started'
in_run --strict -- sh -c 'ls -l /proc/self/fd | grep -q memfd && exit 1; exit 7' >/dev/null 2>&1
check 'its status' test $? = 7

scenario 'in a run whose policy opens something: COMMAND does not start' "${everything[@]}"
policy '{udp: allow}'
check 'DNS to others' fails other_resolver in_run -- touch "$lab/started"
policy '{block_encrypted_dns: false}'
check 'DNS over HTTPS' fails dns_over_https in_run -- touch "$lab/started"
policy '{mode: audit}'
check 'audit' fails dns_over_tls in_run -- touch "$lab/started"
check 'not started' test ! -e "$lab/started"

# Without rules of its own, which it would repair.
start() {
	lab_stop_unbound
	cat >"$lab/daemon.yaml" <<-END
		log: {file: $lab/audit.log}
		control: {socket: $lab/control.sock}
		$(lab_resolver_yaml '"127.0.0.1@53"' '127.0.0.0/8')
		gate: {hook: output}
		clients: [{name: one, uid: 4001, policy: default}]
		policies: {default: {default: deny}}
	END
	in_host_background "$lab/daemon.err" "$PINFOLD" daemon -c "$lab/daemon.yaml" --no-rules
	daemon_pid=$!
	wait_for 10 daemon_ready || lab_fatal 'the daemon does not start'
	in_host "$PINFOLD" rules install -c "$lab/daemon.yaml" || lab_fatal 'no rules'
}
selfcheck() { in_host "$PINFOLD" selfcheck -c "$lab/daemon.yaml" --uid "${user:-4001}" --strict; }

scenario 'beside the service: a governed user passes' "${everything[@]}"
start
check 'passes' says enforced: selfcheck
user=4009 check 'another user is not governed' fails metadata_address selfcheck

scenario 'what is queued in IPv4 is flushed' "${everything[@]}"
in_host sh -c 'iptables -t mangle -F OUTPUT'
check 'told' fails dns_over_tls selfcheck
daemon_stop

scenario 'what is refused in IPv4 is flushed' "${everything[@]}"
start
in_host sh -c 'iptables -F OUTPUT'
check 'told' fails metadata_address selfcheck
daemon_stop

scenario 'all of IPv6 is flushed' "${everything[@]}"
start
in_host sh -c 'ip6tables -F OUTPUT; ip6tables -t mangle -F OUTPUT'
check 'told' fails metadata_ipv6 selfcheck
check 'embedded' grep -q '^not_enforced: metadata_embedded' "$lab/fails.out"
daemon_stop

scenario 'the gate is stopped' "${everything[@]}"
start
kill -STOP "$(daemon_child pinfold-gate)"
check 'told' fails dns_over_tls selfcheck
kill -CONT "$(daemon_child pinfold-gate)"
daemon_stop

scenario 'resolv.conf names another server' "${everything[@]}"
start
cp /etc/resolv.conf "$lab/resolv.keep"
in_host sh -c "cat /etc/resolv.conf >$lab/resolv.keep; echo nameserver $LAB_OTHER >/etc/resolv.conf"
check 'told' fails metadata_name selfcheck
in_host sh -c "cat $lab/resolv.keep >/etc/resolv.conf"

scenario 'a host without a network refuses everything, and proves nothing' "${everything[@]}"
check 'told' fails metadata_address in_host unshare --net "$PINFOLD" selfcheck -c "$lab/daemon.yaml"
daemon_stop
check 'nobody to ask' fails witness selfcheck
lab_end
