#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Clients that are registered while the service runs, as a network plugin does: told apart by address on interfaces that
# are nobody's, governed from the answer on, and without anything of whoever had the address before.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
lab_guests || lab_fatal 'no guests'
vm1() { lab_runner=(in_guest 1) && "$@"; }
vm2() { lab_runner=(in_guest 2) && "$@"; }
foreign_pin() { fetch --resolve "own.quarry.net:80:$LAB_SECOND" http://own.quarry.net/; }
pinfold() { in_host "$PINFOLD" "$@" -c "$lab/daemon.yaml"; }
add() { pinfold client add "$@" >"$lab/client.out" 2>&1; }
pins_of() { [[ $(pinfold pins | grep -c "^$1 ") == "$2" ]]; }
refuses() { # TEXT COMMAND…: it fails and says why
	local text=$1 output
	shift
	output=$("$@" 2>&1) && { printf 'succeeded: %s\n' "$output"; return 1; }
	[[ $output == *"$text"* ]] || { printf 'printed %s\n' "$output"; return 1; }
}
ONE=(--address 10.88.1.2 --address 2a00:1450:88:1::2 --via vm1)
TWO=(--address 10.88.2.2 --address 2a00:1450:88:2::2 --via vm2)

scenario 'without Pinfold all of this works' "$LAB_WEB" "$LAB_WEB6" "$LAB_LAN" "$LAB_SECOND"
for vm in vm1 vm2; do
	check 'HTTP' says "web $LAB_WEB" $vm fetch http://v4.harbour.com/
	check 'IPv6' says "web $LAB_WEB6" $vm fetch http://v6.harbour.com/
	check 'an answer that leads inside' says private-admin-page $vm fetch http://lan.harbour.com/
	check 'a name of another client' says 'host own.quarry.net' $vm foreign_pin
done

config="$(lab_resolver_yaml '"10.88.1.1@53", "10.88.2.1@53"' '10.88.0.0/16')
gate: {hook: forward, interfaces: [\"vm+\"]}
policies:
  default: {default: deny}
  web: {}
  inside: {literals: deny, allow_private_answers: [lan.harbour.com]}
  narrow: {default: deny, allow_hosts: [quarry.net]}"
daemon_start "$config" || lab_fatal 'the daemon does not start'

scenario 'somebody who is not registered yet has the policy default' "$LAB_WEB"
check 'refused' never "web $LAB_WEB" vm1 fetch http://v4.harbour.com/
check 'no packet' unreached "$LAB_WEB"
check 'reason' audited not_allowlisted

scenario 'registered: governed by its policy when the command ends' "$LAB_WEB" "$LAB_WEB6"
check 'registered' add one --policy web "${ONE[@]}"
check 'HTTP' says "web $LAB_WEB" vm1 fetch http://v4.harbour.com/
check 'asked over IPv4, connected over IPv6' says "web $LAB_WEB6" vm1 fetch http://v6.harbour.com/
check 'the other is not' never "web $LAB_WEB" vm2 fetch http://v4.harbour.com/
check 'once more' says 'was there already' pinfold client add one --policy web "${ONE[@]}"
check 'listed' says '10.88.1.2 2a00:1450:88:1::2' pinfold client list

scenario 'refused registrations change nothing' "$LAB_WEB"
check 'the name' refuses "another client 'one'" pinfold client add one --policy narrow "${ONE[@]}"
check 'the address' refuses "10.88.1.2 is the client 'one'" pinfold client add other --address 10.88.1.2
check 'the policy' refuses "no policy 'none'" pinfold client add other --policy none "${TWO[@]}"
check 'an interface that is not governed' refuses "'eth0' is not in" pinfold client add other --address 10.88.2.2 --via eth0
check 'still there' says "web $LAB_WEB" vm1 fetch http://v4.harbour.com/

scenario 'one cached answer, judged for each of two' "$LAB_WEB" "$LAB_LAN" "$LAB_SECOND"
check 'registered' add two --policy inside "${TWO[@]}"
check 'inside, the first' says private-admin-page vm2 fetch http://lan.harbour.com/
lab_mark
check 'inside, the other' never private-admin-page vm1 fetch http://lan.harbour.com/
check 'no packet' unreached "$LAB_LAN"
check 'reason' audited rebinding '"one"'
check 'from the cache' unasked lan.harbour.com
check 'the other first' says 'host own.quarry.net' vm1 fetch http://own.quarry.net/
lab_mark
check 'its pin is no pin of the first' never 'host own.quarry.net' vm2 foreign_pin
check 'no packet' unreached "$LAB_SECOND"
check 'reason' audited unpinned '"two"'
check 'from the cache, a pin of its own' says 'host own.quarry.net' vm2 fetch http://own.quarry.net/
check 'from the cache' unasked own.quarry.net

scenario 'an address that is taken over starts empty' "$LAB_SECOND" "$LAB_WEB"
check 'pinned' pins_of two 2
check 'removed' says 'two is removed' pinfold client remove two
check 'not there any more' refuses "no registered client 'two'" pinfold client remove two
check 'its pins are gone' pins_of two 0
check 'the policy default again' never 'host own.quarry.net' vm2 fetch http://own.quarry.net/
check 'the same name and address' add two --policy inside "${TWO[@]}"
lab_mark
check 'no pin of before' never 'host own.quarry.net' vm2 foreign_pin
check 'no packet' unreached "$LAB_SECOND"
check 'reason' audited unpinned '"two"'
check 'it resolves for itself' says 'host own.quarry.net' vm2 fetch http://own.quarry.net/

scenario 'a reload keeps them, or refuses' "$LAB_WEB"
cp "$lab/daemon.yaml" "$lab/daemon.good"
sed '/^  web:/d' "$lab/daemon.good" >"$lab/daemon.yaml"
check 'without their policy' refuses "the registered client 'one': there is no policy 'web'" pinfold reload
sed 's/^  web: {}/  web: {block_hosts: [harbour.com]}/' "$lab/daemon.good" >"$lab/daemon.yaml"
check 'with another one' pinfold reload
check 'which holds' never "web $LAB_WEB" vm1 fetch http://v4.harbour.com/
check 'no packet' unreached "$LAB_WEB"
cp "$lab/daemon.good" "$lab/daemon.yaml"
check 'and back' pinfold reload
check 'which holds' says "web $LAB_WEB" vm1 fetch http://v4.harbour.com/

scenario 'they outlive the service' "$LAB_WEB" "$LAB_SECOND"
daemon_stop
check 'closed' never "web $LAB_WEB" vm1 fetch --max-time 2 "http://$LAB_WEB/"
daemon_start "$config" || lab_fatal 'the daemon does not start again'
check 'one' says "web $LAB_WEB" vm1 fetch http://v4.harbour.com/
check 'two' says 'host own.quarry.net' vm2 fetch http://own.quarry.net/
check 'two has its policy' never "web $LAB_SECOND" vm2 fetch "http://$LAB_SECOND/"

crowd() { # COMMAND: two hundred at once
	local i
	local -a jobs=()
	for ((i = 0; i < 200; i++)); do
		if [[ $1 == add ]]; then
			pinfold client add "pod-$i" --policy web --address "10.90.0.$i" --address "fd90::$i" --via vm1 >>"$lab/crowd.log" 2>&1 &
		else
			pinfold client remove "pod-$i" >>"$lab/crowd.log" 2>&1 &
		fi
		jobs+=($!)
	done
	wait "${jobs[@]}"
}
registered() { [[ $(pinfold client list | grep -c " registered ") == "$1" ]]; }

scenario 'two hundred at once' "$LAB_WEB"
crowd add
check 'all are there' registered 202
crowd remove
check 'all are gone' registered 2
check 'nobody else is' says "web $LAB_WEB" vm1 fetch http://v4.harbour.com/

interface_rules() { in_host iptables -t mangle -S PREROUTING | grep -c -- '-i tap9 '; }
scenario 'an interface of its own has rules as long as it is registered'
check 'before' test "$(interface_rules)" = 0
check 'added' add guest --interface tap9
check 'its rules' test "$(interface_rules)" = 1
check 'verified' pinfold rules verify
check 'removed' pinfold client remove guest
check 'no rules' test "$(interface_rules)" = 0
check 'verified' pinfold rules verify
lab_end
