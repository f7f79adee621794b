#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# rules.sh [nft|legacy]…: `pinfold rules` on the real kernel, with a small queue program (rules/queue.py) in place of the gate.
#
#     guest ── tap0 host eth0 ── server     10.1.0.2 ── 10.1.0.1  10.2.0.1 ── 10.2.0.2, 169.254.169.254, 10.2.0.9
#                                           fd01::2  ── fd01::1   fd02::1  ── fd02::2, fd00:ec2::254, 64:ff9b::a9fe:a9fe
#
# Hook output: the client is uid 1000 in `host`. Hook forward: the client is `guest`, behind tap0.
# shellcheck disable=SC2154 # lab.sh sets $lab, $lab_here
LAB_TIMEOUT=${LAB_TIMEOUT:-900}
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

rules_here=$lab_here/../rules
mask=0x00ff0000 queue=4400
# No scenario of a lab that is not started: what is counted here is what the server writes down.
lab_guard() { :; }
lab_mark() { :; }
lab_strays() { echo 0; }

ip link set lo up
for name in guest host server; do lab_namespace "$name" || lab_fatal "no namespace $name"; done
ip link add eth0 netns guest type veth peer name tap0 netns host && ip link add eth0 netns host type veth peer name eth0 netns server || lab_fatal 'no links'
configure() { # NAMESPACE, lines of ip -batch
	local name=$1
	shift
	printf '%s\n' "$@" | in_ns "$name" ip -batch - || lab_fatal "cannot configure $name"
}
configure guest 'addr add 10.1.0.2/24 dev eth0' 'addr add fd01::2/64 dev eth0 nodad' 'link set eth0 up' \
	'route add default via 10.1.0.1' 'route add default via fd01::1'
configure host 'addr add 10.1.0.1/24 dev tap0' 'addr add fd01::1/64 dev tap0 nodad' 'link set tap0 up' \
	'addr add 10.2.0.1/24 dev eth0' 'addr add fd02::1/64 dev eth0 nodad' 'link set eth0 up' \
	'route add default via 10.2.0.2' 'route add default via fd02::2'
configure server 'addr add 10.2.0.2/24 dev eth0' 'addr add fd02::2/64 dev eth0 nodad' 'link set eth0 up' \
	'addr add 169.254.169.254/32 dev lo' 'addr add 10.2.0.9/32 dev lo' 'addr add fd00:ec2::254/128 dev lo nodad' \
	'addr add 64:ff9b::a9fe:a9fe/128 dev lo nodad' 'route add 10.1.0.0/24 via 10.2.0.1' 'route add fd01::/64 via fd02::1'
in_ns host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'

peer() { python3 -B "$rules_here/peer.py" "$@"; }
serve() { # NAMESPACE PORT…
	in_ns_background "$1" "$lab/$1.err" python3 -B "$rules_here/peer.py" serve "$lab/$1.log" "${@:2}"
	wait_for 10 grep -q ready "$lab/$1.log" || lab_fatal "$1: $(cat "$lab/$1.err")"
}
serve server 53 80 81 82 83 84 99 9000 9001
serve host 5000
serve guest 5000

# --- gate, rules, client -----------------------------------------------------------------------------------------

gate_pid=''
gate_start() {
	: >"$lab/queue.log"
	in_ns_background host "$lab/queue.err" python3 -B "$rules_here/queue.py" "$queue" "$mask" "$lab/queue.log"
	gate_pid=$!
	wait_for 10 grep -q ready "$lab/queue.log" || lab_fatal "queue: $(cat "$lab/queue.err")"
}
gate_stop() {
	[[ -n $gate_pid ]] || return 0
	{
		kill -KILL "$gate_pid"
		wait "$gate_pid"
	} 2>/dev/null
	gate_pid=''
}
queued() { grep -E -- "$1" "$lab/queue.log"; }
unqueued() { ! queued "$1"; }
# noticed COUNT TEXT: so many notices of the static floor came, and no more.
has_notices() { (($(grep -cE -- "^notice $2" "$lab/queue.log") == $1)); }
noticed() { wait_for 5 has_notices "$@" && sleep 0.2 && has_notices "$@" || { grep notice "$lab/queue.log"; return 1; }; }
arrived() { wait_for 10 grep -qE -- "$1" "$lab/server.log"; }
absent() { ! grep -E -- "$1" "$lab/server.log"; }
forget() {
	: >"$lab/server.log"
	[[ -z $gate_pid ]] || : >"$lab/queue.log"
}

backend=nft
printf 'resolver: {listen: ["10.1.0.1@5000", "fd01::1@5000"], clients: ["10.1.0.0/24", "fd01::/64"]}\n' >"$lab/rules.yaml"
rules() { in_ns host "$PINFOLD" rules "$1" -c "$lab/rules.yaml" --backend "$backend" "${governed[@]}" "${@:2}"; }
client() { "${client[@]}" python3 -B "$rules_here/peer.py" "$@"; }
ends() { # RESULT KIND …: how the client ends
	local want=$1 got
	shift
	got=$(client "$@" 2>&1)
	[[ $got == "$want" ]] || { printf 'ended %s\n' "$got"; return 1; }
}

save() {
	local program
	for program in "iptables-$backend-save" "ip6tables-$backend-save"; do
		in_ns host "$program" | sed '/^#/d; s/\[[0-9:]*\]//'
	done
}
x() { in_ns host "$1-$backend" "${@:2}"; } # iptables or ip6tables of the host

# Rules of somebody else in the same tables.
foreign() {
	local program
	for program in iptables ip6tables; do
		in_ns host "$program-$backend-restore" --noflush <<-'END' || return 1
			*mangle
			:OTHER - [0:0]
			-A PREROUTING -j OTHER
			-A OTHER -p tcp --dport 65000 -j MARK --set-xmark 0x1/0x1
			COMMIT
			*filter
			-A INPUT -p tcp --dport 65001 -j DROP
			-A FORWARD -p tcp --dport 65002 -j DROP
			-A OUTPUT -p tcp --dport 65003 -j DROP
			COMMIT
		END
	done
}
flush() {
	local program table
	for program in iptables ip6tables; do
		for table in mangle filter nat; do
			x "$program" -t "$table" -F 2>/dev/null && x "$program" -t "$table" -X 2>/dev/null
		done
	done
	return 0
}

# --- what every hook and family does -----------------------------------------------------------------------------

no_gate() { # SERVER METADATA
	check 'a connection is dropped' ends 'timeout late' tcp "$1" 80 hello
	check 'a datagram is dropped' ends 'timeout late' udp "$1" 9000 hello
	check 'nothing arrived' absent 'connect|datagram'
	check 'the floor is refused' ends 'refused now' tcp "$2" 80 hello
	check 'the floor is refused over UDP' ends 'prohibited now' udp "$2" 9000 hello
}

with_gate() { # SERVER METADATA
	check 'a request passes' ends 'echoed now' tcp "$1" 80 hello again
	check 'it was read' queued 'tcp 80 .* hello'
	check 'so was the next' queued 'tcp 80 .* again'
	check 'bare acknowledgments were not' unqueued 'tcp 80 F?R?A 0x[0-9a-f]+ -'
	forget
	check 'a refused connection is refused at once' ends 'refused now' tcp "$1" 82 hello
	check 'it did not arrive' absent 'connect 82'
	check 'a refused request is reset at once' ends 'reset now' tcp "$1" 80 bad
	check 'the connection came' arrived 'connect 80'
	check 'not a byte of it arrived' absent 'bytes 80'
	forget
	check 'a later request is refused' ends 'reset now' tcp "$1" 80 hello bad
	check 'the first arrived' arrived 'bytes 80 hello'
	check 'the second did not' absent 'bad'
	forget
	check 'an allowed flow is left alone' ends 'echoed now' tcp "$1" 80 good bad
	check 'nothing was read after' unqueued 'bad'
	check 'a flow allowed from its first packet' ends 'echoed now' tcp "$1" 81 bad
	check 'was not read at all' unqueued 'tcp 81 .* bad'
	check 'a verdict without a mark is none' ends 'timeout late' tcp "$1" 83 hello
	check 'it did not arrive' absent 'connect 83'
	check 'a held SYN' ends 'echoed now' tcp "$1" 84 hello
	check 'an allowed datagram' ends 'echoed now' udp "$1" 9000 hello
	check 'a refused datagram is refused at once' ends 'prohibited now' udp "$1" 9001 hello
	check 'it did not arrive' absent 'datagram 9001'
	forget
	check 'the floor is refused' ends 'refused now' tcp "$2" 80 hello
	check 'and not read' unqueued '^[46] tcp 80 '
	check 'but noticed, once' noticed 1 '[46] tcp 80 S'
	check 'its other ports, once as well' ends 'refused now' tcp "$2" 8081 hello
	check 'noticed' noticed 1 '[46] tcp 8081 S'
	check 'its datagrams too' ends 'prohibited now' udp "$2" 9000 hello
	check 'noticed' noticed 1 '[46] udp 9000'
	check 'but its DNS port is' ends 'echoed now' tcp "$2" 53 hello
	check 'by the gate' queued 'tcp 53 S'
	check 'its DNS port is not noticed' noticed 0 '[46] tcp 53 '
	check 'nothing else of it arrived' absent 'connect 80'
	check 'MPTCP is taken off' ends 'echoed now' mptcp "$1" 80 hello
	check 'before it is read' unqueued 'mptcp'
}

# The flow is watched when its gate dies, or when somebody spoils the rules.
while_watched() { # SERVER WHAT COMMAND…
	local server=$1 what=$2
	shift 2
	forget
	rm -f "$lab/go"
	client tcp "$server" 80 hello "@$lab/go" bad >"$lab/client.out" 2>&1 &
	local pid=$!
	arrived 'bytes 80 hello' || lab_problems+=("$what: no first request")
	"$@" >"$lab/spoil.out" 2>&1 || lab_problems+=("$what: $(cat "$lab/spoil.out")")
	: >"$lab/go"
	wait "$pid"
	check "$what: the next request does not pass" absent 'bad'
}

bypassed() { # PROGRAM: the queue rule as it must never be
	local rule
	rule=$(x "$1" -t mangle -S PF-pinfold-gov | grep -c '^-A') && x "$1" -t mangle -R PF-pinfold-gov "$rule" -j NFQUEUE --queue-num "$queue" --queue-bypass
}

bypass_dead() { # PROGRAM
	gate_stop
	bypassed "$1"
}

spoiled() { # SERVER PROGRAM
	gate_start
	while_watched "$1" 'gate killed' gate_stop
	gate_start
	while_watched "$1" 'gate killed, bypass' bypass_dead "$2"
	forget
	check 'bypass: a connection is dropped' ends 'timeout late' tcp "$1" 80 hello
	check_not 'bypass: a datagram is dropped' ends 'echoed now' udp "$1" 9000 hello
	check 'bypass: nothing arrived' absent 'connect|datagram'
	check 'repaired' rules install
	gate_start
	while_watched "$1" 'mangle flushed' x "$2" -t mangle -F
	forget
	check 'no mangle: a connection is dropped' ends 'timeout late' tcp "$1" 80 hello
	check 'no mangle: nothing arrived' absent 'connect'
	check 'repaired' rules install
	check 'it works again' ends 'echoed now' tcp "$1" 80 hello
	gate_stop
}

both_families() {
	scenario "$backend, $hook: no gate"
	no_gate 10.2.0.2 169.254.169.254
	no_gate fd02::2 fd00:ec2::254
	check 'an embedded floor address' ends 'refused now' tcp 64:ff9b::a9fe:a9fe 80 hello

	gate_start
	scenario "$backend, $hook: with a gate, IPv4"
	forget
	with_gate 10.2.0.2 169.254.169.254
	scenario "$backend, $hook: with a gate, IPv6"
	forget
	with_gate fd02::2 fd00:ec2::254

	scenario "$backend, $hook: the floor before and behind DNAT"
	forget
	local chain=OUTPUT
	[[ $hook == output ]] || chain=PREROUTING
	check 'a rule to the floor' x iptables -t nat -A "$chain" -d 10.2.0.9 -p tcp --dport 80 -j DNAT --to-destination 169.254.169.254:80
	check 'another to the floor' x iptables -t nat -A "$chain" -d 10.2.0.9 -p tcp --dport 82 -j DNAT --to-destination 169.254.169.254:82
	check 'a rule from the floor' x iptables -t nat -A "$chain" -d 169.254.169.254 -p tcp --dport 81 -j DNAT --to-destination 10.2.0.2:81
	check 'to it' ends 'refused now' tcp 10.2.0.9 80 hello
	check 'noticed behind' noticed 1 '4 tcp 80 S'
	check 'from it' ends 'refused now' tcp 169.254.169.254 81 hello
	check 'noticed before' noticed 1 '4 tcp 81 S'
	check 'refused before the floor: no notice' ends 'refused now' tcp 10.2.0.9 82 hello
	check 'read' queued '^4 tcp 82 '
	check 'no notice' noticed 0 '4 tcp 82 '
	check 'nothing arrived' absent 'connect'
	x iptables -t nat -F
	gate_stop

	scenario "$backend, $hook: spoiled rules, IPv4"
	spoiled 10.2.0.2 iptables
	scenario "$backend, $hook: spoiled rules, IPv6"
	spoiled fd02::2 ip6tables
}

# --- one hook ----------------------------------------------------------------------------------------------------

only_output() {
	gate_start
	scenario "$backend, output: who is governed"
	forget
	check 'uid 0 is not' says 'echoed now' in_ns host python3 -B "$rules_here/peer.py" tcp 10.2.0.2 80 bad
	check 'nor read' unqueued tcp
	check 'what a closed socket left behind is read' ends 'connected now' leave 10.2.0.2 99 bad
	check 'and does not arrive' sh -c "sleep 2; ! grep '99 .*bad' '$lab/server.log'"
	check 'the beginning arrived' arrived 'bytes 99 x'
	check 'what root leaves behind arrives' says 'connected now' in_ns host python3 -B "$rules_here/peer.py" leave 10.2.0.2 99 bad
	check 'whole' arrived 'bytes 99 .*bad'
	check 'loopback is governed too' ends 'echoed now' tcp 127.0.0.1 5000 hello
	check 'and read' queued 'tcp 5000 .* hello'
	check 'loopback over IPv6' ends 'reset now' tcp ::1 5000 bad
	gate_stop

	scenario "$backend, output: what comes in is not judged"
	check 'a server of uid 0' says 'echoed now' in_ns server python3 -B "$rules_here/peer.py" tcp 10.2.0.1 5000 bad
	in_ns_background host "$lab/user.err" env AS=1000 python3 -B "$rules_here/peer.py" serve - 5001
	local pid=$!
	wait_for 5 grep -q ready "$lab/user.err"
	check 'a server of uid 1000' says 'echoed now' in_ns server python3 -B "$rules_here/peer.py" tcp 10.2.0.1 5001 bad
	check 'over IPv6' says 'echoed now' in_ns server python3 -B "$rules_here/peer.py" tcp fd02::1 5001 bad
	kill "$pid"
}

only_forward() {
	gate_start
	scenario "$backend, forward: neighbours, the resolver, errors"
	in_ns guest ip neigh flush all
	in_ns host ip neigh flush all
	in_ns guest ip -6 neigh flush all
	in_ns host ip -6 neigh flush all
	check 'neighbour discovery' ends 'echoed now' tcp fd02::2 80 hello
	forget
	check 'DNS to the resolver, UDP' ends 'echoed now' udp 10.1.0.1 5000 hello
	check 'DNS to the resolver, TCP' ends 'echoed now' tcp 10.1.0.1 5000 bad
	check 'DNS to the resolver, IPv6' ends 'echoed now' udp fd01::1 5000 hello
	check 'none of it is read' unqueued '5000'
	check 'another socket of the host is' ends 'echoed now' tcp 10.2.0.1 5000 hello
	check 'and read' queued 'tcp 5000 .* hello'
	check 'and refused' ends 'reset now' tcp 10.2.0.1 5000 bad
	check 'a datagram to it is refused' ends 'prohibited now' udp 10.2.0.1 5000 hello
	check 'a connection to the guest' says 'echoed now' in_ns server python3 -B "$rules_here/peer.py" tcp 10.1.0.2 5000 bad
	check 'an ICMP error of a connection to the guest' says 'refused now' in_ns server python3 -B "$rules_here/peer.py" udp 10.1.0.2 5009 x
	gate_stop
	check 'another interface is not governed' says 'echoed now' in_ns server python3 -B "$rules_here/peer.py" tcp 10.2.0.1 5000 bad
}

# --- install, verify, remove -------------------------------------------------------------------------------------

damaged() { # WHAT COMMAND…: verify finds it, install repairs it
	local what=$1
	shift
	check "$what: done" "$@"
	check_not "$what: verify" rules verify
	check "$what: repaired" rules install
	check "$what: verify again" rules verify
}

damages() {
	local program hook_chain=OUTPUT top=PF-pinfold-out
	[[ $hook == output ]] || hook_chain=PREROUTING top=PF-pinfold-gov
	for program in iptables ip6tables; do
		damaged "$program: mangle flushed" x "$program" -t mangle -F
		damaged "$program: filter flushed" x "$program" -F
		damaged "$program: a chain flushed" x "$program" -F PF-pinfold-floor
		damaged "$program: the first rule of a chain gone" x "$program" -t mangle -D PF-pinfold-gov 1
		damaged "$program: the last rule of a chain gone" sh -c "n=\$(ip netns exec host $program-$backend -S PF-pinfold-gov | grep -c ^-A) && ip netns exec host $program-$backend -D PF-pinfold-gov \$n"
		damaged "$program: a rule more" x "$program" -I PF-pinfold-gov 3 -j ACCEPT
		damaged "$program: a rule changed" x "$program" -R PF-pinfold-infra 1 -p tcp -m multiport --dports 53,80 -j RETURN
		damaged "$program: the queue with a bypass" bypassed "$program"
		damaged "$program: not first" x "$program" -t mangle -I "$hook_chain" 1 -j ACCEPT
		x "$program" -t mangle -D "$hook_chain" -j ACCEPT
		damaged "$program: twice" x "$program" -t mangle -A "$hook_chain" -j "$top"
		damaged "$program: no save" x "$program" -t mangle -D POSTROUTING 1
	done
}

comes_and_goes() {
	scenario "$backend, $hook: damage is found and repaired"
	check 'installed' rules install
	check 'verified' rules verify
	damages

	scenario "$backend, $hook: instances side by side"
	local other=(in_ns host "$PINFOLD" rules)
	check 'another hook of the same instance is found' sh -c "! ip netns exec host '$PINFOLD' rules verify -c '$lab/rules.yaml' --uid 77"
	check 'it stands' rules verify
	check 'installed over it' "${other[@]}" install -c "$lab/rules.yaml" --backend "$backend" --interface veth9 --interface veth8
	check 'verified' "${other[@]}" verify -c "$lab/rules.yaml" --backend "$backend" --interface veth9 --interface veth8
	check_not 'the former is gone' rules verify
	check 'and back' rules install
	check 'verified' rules verify

	scenario "$backend, $hook: gone without a trace"
	flush
	check 'rules of others' foreign
	save >"$lab/before"
	check 'installed' rules install
	check 'verified' rules verify
	check 'removed' rules remove
	check_not 'verify says so' rules verify
	save >"$lab/after"
	check 'as before' diff "$lab/before" "$lab/after"
	check 'removed again' rules remove
}

run_hook() { # HOOK
	hook=$1
	if [[ $hook == output ]]; then
		governed=(--hook output) client=(in_ns host env AS=1000)
	else
		governed=(--interface tap0) client=(in_ns guest)
	fi
	foreign || lab_fatal 'no rules of others'
	scenario "$backend, $hook: without rules all passes"
	for server in 10.2.0.2 fd02::2 169.254.169.254 fd00:ec2::254 64:ff9b::a9fe:a9fe; do
		check "$server" ends 'echoed now' tcp "$server" 80 bad
	done
	check 'datagrams' ends 'echoed now' udp 10.2.0.2 9001 bad
	check 'datagrams' ends 'echoed now' udp fd02::2 9001 bad
	forget
	scenario "$backend, $hook: installed"
	check 'installed' rules install
	check 'verified' rules verify
	both_families
	"only_$hook"
	comes_and_goes
	scenario_end
	flush
}

for backend in "${@:-nft}"; do
	run_hook output
	run_hook forward
done

backend=nft governed=(--hook output)
scenario 'all or nothing: IPv6 fails, nothing of IPv4 stays'
if PATH=$PATH:/usr/sbin command -v nft >/dev/null; then
	check 'a table' in_ns host nft add table ip6 filter
	check 'a chain' in_ns host nft add chain ip6 filter OUTPUT '{ type filter hook output priority 0; }'
	check 'a rule that the front end cannot read' in_ns host nft add rule ip6 filter OUTPUT fib daddr type local accept
	check_not 'installed' rules install
	check 'nothing stands' sh -c "! ip netns exec host iptables-nft-save | grep PF-"
	in_ns host nft delete table ip6 filter
else
	scenario_skip 'no command nft'
fi
lab_end
