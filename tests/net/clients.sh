#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `pinfold daemon` on the forward hook: two machines behind the host, each a client with its own pins.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
lab_guests || lab_fatal 'no guests'
vm1() { lab_runner=(in_guest 1) && "$@"; }
vm2() { lab_runner=(in_guest 2) && "$@"; }
foreign_pin() { fetch --resolve "own.quarry.net:80:$LAB_SECOND" http://own.quarry.net/; }
echo_request() {
	client python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
s.settimeout(2)
s.sendto(bytes.fromhex("0800f7ff00000000"), (sys.argv[1], 0))
while s.recvfrom(100)[1][0] != sys.argv[1]: pass
print("echoed")' "$1"
}
elsewhere() { client dig +short +time=2 +tries=1 "@$LAB_OTHER" elsewhere.harbour.com; }

scenario 'without Pinfold all of this works' "$LAB_WEB" "$LAB_WEB6" "$LAB_META" "$LAB_LAN" "$LAB_OTHER" "$LAB_SECOND"
for vm in vm1 vm2; do
	check 'HTTP' says "web $LAB_WEB" $vm fetch http://v4.harbour.com/
	check 'metadata' says secret-credentials $vm fetch "http://$LAB_META/"
done
check 'rebinding' says private-admin-page vm1 fetch http://lan.harbour.com/
check 'a name of another client' says 'host own.quarry.net' vm2 foreign_pin
check 'IPv6' says "web $LAB_WEB6" vm1 fetch http://v6.harbour.com/
check 'ICMP' says echoed vm1 echo_request "$LAB_WEB"
check 'another resolver' says "$LAB_SECOND" vm1 elsewhere

daemon_start "$(lab_resolver_yaml '"10.88.1.1@53", "10.88.2.1@53"' '10.88.0.0/16')
gate: {hook: forward}
clients:
  - {name: one, interface: vm1, policy: default}
  - {name: two, interface: vm2, policy: literals}
policies:
  default: {}
  literals: {literals: deny}" || lab_fatal 'the daemon does not start'

scenario 'allowed, over both families' "$LAB_WEB" "$LAB_WEB6"
for vm in vm1 vm2; do
	check 'HTTP' says "web $LAB_WEB" $vm fetch http://v4.harbour.com/
	check 'HTTPS' says 'host www.harbour.com' $vm fetch -4 https://www.harbour.com/
	check 'asked over IPv4, connected over IPv6' says "web $LAB_WEB6" $vm fetch http://v6.harbour.com/
done

scenario 'the pin of another client is no pin' "$LAB_SECOND"
check 'its owner' says 'host own.quarry.net' vm1 fetch http://own.quarry.net/
lab_mark
check 'the other' never 'host own.quarry.net' vm2 foreign_pin
check 'the other is refused in time' test "$status" -ne 28
check 'no packet' unreached "$LAB_SECOND"
check 'reason' audited unpinned
check 'client' audited unpinned '"two"'

scenario 'metadata and rebinding' "$LAB_META" "$LAB_LAN"
check 'literal' never secret-credentials vm1 fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'rebinding' never private-admin-page vm1 fetch http://lan.harbour.com/
check 'no packet' unreached "$LAB_LAN"
check 'reason' audited rebinding

scenario 'ICMP and another resolver' "$LAB_WEB" "$LAB_OTHER"
check 'ICMP' never echoed vm1 echo_request "$LAB_WEB"
check 'no packet' unreached "$LAB_WEB"
check 'reason' audited protocol
check 'another resolver' never "$LAB_SECOND" vm1 elsewhere
check 'no packet' unreached "$LAB_OTHER"

scenario 'the host itself is not governed by this hook' "$LAB_META"
check 'the host' says secret-credentials bare fetch "http://$LAB_META/"

scenario 'it ends closed, and the rules go without a trace' "$LAB_WEB"
daemon_stop
check 'orderly end' test "$daemon_status" = 0
check 'no process' never pinfold ps -e -o comm=
check 'closed' never web vm1 fetch --max-time 2 "http://$LAB_WEB/"
check 'no packet' unreached "$LAB_WEB"
check 'removed' in_host "$PINFOLD" rules remove -c "$lab/daemon.yaml"
check 'no rule' never pinfold in_host sh -c "iptables-save; ip6tables-save"
check 'open' says "web $LAB_WEB" vm1 fetch http://v4.harbour.com/
lab_end
