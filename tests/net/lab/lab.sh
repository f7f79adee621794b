# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A small internet in network namespaces, for the suite `net`, the tour and the benchmarks.
#
#     vm1 10.88.1.2 ──┐                          ┌── dns   NSD: root, TLDs com net internal, zones (zones.sh)
#                     │  host            router  ├── auth  authority.py: answers by the name asked; another resolver
#     vm2 10.88.2.2 ──┴─ 192.168.77.2 ─── guard ─┼── web   web.py: public sites, HTTP and HTTPS
#       (lab_guests)     2a00:1450:77::2         ├── meta  web.py: cloud metadata services
#                                                └── lan   web.py: a machine behind the firewall, 10.77.0.10
#
# `host` is the machine that Pinfold runs on: the only namespace where anything of it ever runs. All servers have
# public addresses (or those they imitate) and are reached through the router.
#
# Evidence. Every server's namespace counts the packets that arrive for each address (reached), the servers write
# down each connection and its bytes (served), and the router every DNS question of the host (asked). The router
# also guards the scenario: what the host sends to an address that the scenario did not name is refused, counted,
# and fails the scenario.
#
# Cleaning up. A script that sources this file runs itself again inside PID, mount and network namespaces of its
# own, with a /run of its own; when its first process ends, by whatever cause, all of it is gone. Nothing outside
# is changed.
#
# Use:  . lab/lab.sh; lab_start; scenario …; check …; lab_end

LAB_ROOT=198.41.0.4        LAB_ROOT6=2001:503:ba3e::2:30
LAB_TLD=192.5.6.30         LAB_TLD6=2001:503:a83e::2:30
LAB_ZONES=95.216.10.53     LAB_ZONES6=2a01:4f9:10::53
LAB_AUTH=95.216.66.53      LAB_AUTH6=2a01:4f9:66::53
LAB_OTHER=95.216.99.53     LAB_OTHER6=2a01:4f9:99::53
LAB_WEB=93.184.216.34      LAB_WEB6=2606:2800:220:1::34
LAB_SECOND=93.184.216.35   LAB_SECOND6=2606:2800:220:1::35
LAB_QUIC=93.184.216.36     LAB_QUIC6=2606:2800:220:1::36 # nothing answers here until a script starts something
LAB_LAN=10.77.0.10         LAB_LAN6=fd77:10::10
LAB_META=169.254.169.254   LAB_META6=fd00:ec2::254
LAB_META64=64:ff9b::a9fe:a9fe   # the metadata address behind a NAT64
LAB_META_MAPPED=::ffff:169.254.169.254
LAB_AZURE=168.63.129.16 LAB_ALIBABA=100.100.100.200
LAB_SERVERS=("$LAB_ROOT" "$LAB_TLD" "$LAB_ZONES" "$LAB_AUTH")
LAB_SERVERS6=("$LAB_ROOT6" "$LAB_TLD6" "$LAB_ZONES6" "$LAB_AUTH6")
LAB_TIMEOUT=${LAB_TIMEOUT:-600} # seconds; a script that needs longer is broken

lab_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
lab_top=$(cd "$lab_here/../../.." && pwd)
lab=/run/lab # of our own mount namespace
PINFOLD=${PINFOLD:-$lab_top/build/cli/pinfold}

lab_skip() {
	printf '1..0 # SKIP %s\n' "$*"
	exit 77
}

# --- entering ----------------------------------------------------------------------------------------------------

lab_requirements() {
	local command
	[[ $EUID -eq 0 ]] || lab_skip 'network namespaces of this kind need root'
	for command in unshare nsenter ip iptables ip6tables nsd ldns-keygen ldns-signzone unbound openssl curl dig python3; do
		PATH=$PATH:/usr/sbin:/sbin command -v "$command" >/dev/null || lab_skip "no command $command"
	done
	unshare --mount --net --pid --fork --mount-proc true 2>/dev/null || lab_skip 'the kernel refuses namespaces'
	[[ -z ${LAB_USER:-} ]] || command -v pasta >/dev/null || lab_skip 'no command pasta (package passt)'
	[[ -z ${LAB_USER:-} ]] || setpriv --reuid "$LAB_USER" --clear-groups test -x "$PINFOLD" ||
		lab_skip "$PINFOLD is not open to an ordinary user"
	unshare --net iptables -t mangle -A OUTPUT -p tcp -j NFQUEUE --queue-num 1 2>/dev/null ||
		lab_skip 'the kernel has no NFQUEUE target'
	unshare --net iptables -t mangle -A OUTPUT -p tcp -j NFLOG --nflog-group 1 2>/dev/null ||
		lab_skip 'the kernel has no NFLOG target'
}

if [[ -z ${LAB_INSIDE:-} ]]; then
	lab_requirements
	# A file that the caller keeps open shows through; everything else of /run is ours and empty.
	timeout --foreground -s KILL "$LAB_TIMEOUT" \
		unshare --mount --propagation private --net --pid --fork --kill-child --mount-proc \
		env LAB_INSIDE=1 PATH="/usr/sbin:/usr/bin:/sbin:/bin:$PATH" bash "$0" "$@" </dev/null &
	lab_outer=$!
	trap 'kill -KILL "$lab_outer" 2>/dev/null' INT TERM HUP
	wait "$lab_outer"
	exit
fi

set -uo pipefail
lab_resolv=$(readlink -f /etc/resolv.conf)
mount -t tmpfs -o mode=755 lab /run && mkdir -p "$lab" /run/netns /run/lock || exit 2
if [[ ! -e $lab_resolv ]]; then # it was a link into /run
	mkdir -p "${lab_resolv%/*}" && : >"$lab_resolv"
fi
lab_failures=0 lab_number=0 lab_scenario='' lab_host_pid=''
trap 'lab_leave' EXIT

lab_leave() {
	local status=$?
	if [[ -n ${LAB_KEEP:-} ]]; then
		mkdir -p "$LAB_KEEP" && cp -r "$lab/." "$LAB_KEEP/"
	fi
	[[ -z $lab_scenario ]] || { printf 'not ok %d - %s (the script ended inside it)\n' $((lab_number + 1)) "$lab_scenario"; status=1; }
	exit "$status"
}

lab_fatal() {
	printf 'Bail out! %s\n' "$*"
	lab_scenario=''
	exit 99
}

# Waits until the command succeeds, at most so many seconds.
wait_for() {
	local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		((${EPOCHREALTIME/./} < end)) || return 1
		sleep 0.02
	done
}

# --- namespaces --------------------------------------------------------------------------------------------------

in_ns() { # NAMESPACE COMMAND…
	local name=$1
	shift
	nsenter --net="/run/netns/$name" "$@"
}

# In the host: its network and its mounts (resolv.conf). The working directory is kept.
in_host() {
	# shellcheck disable=SC2016
	nsenter --target "$lab_host_pid" --net --mount sh -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}

# The same in the background, with a log of what it prints. $! is the command itself.
in_ns_background() { # NAMESPACE LOG COMMAND…
	nsenter --net="/run/netns/$1" "${@:3}" </dev/null >"$2" 2>&1 &
}
in_host_background() { # LOG COMMAND…
	# shellcheck disable=SC2016
	nsenter --target "$lab_host_pid" --net --mount sh -c 'cd "$0" && exec "$@"' "$PWD" "${@:2}" </dev/null >"$1" 2>&1 &
}

lab_namespace() {
	ip netns add "$1" || return 1
	in_ns "$1" sh -c 'cd /proc/sys/net
		echo 0 >ipv6/conf/all/accept_dad; echo 0 >ipv6/conf/default/accept_dad
		echo 0 >ipv6/conf/all/accept_ra; echo 0 >ipv6/conf/default/accept_ra
		echo 1 >ipv6/conf/all/disable_ipv6; echo 0 >ipv6/conf/all/disable_ipv6
		ip link set lo up'
}

# lab_counters ICMP TYPE ADDRESS…: rules that count what begins something with an address. Later packets do not count: a
# server that gives up on a refused connection gets an answer from the host, long after its scenario.
lab_counters() {
	local icmp=$1 type=$2 address
	shift 2
	printf '*raw\n'
	for address in "$@"; do
		printf -- '-A PREROUTING -d %s -p tcp --syn\n-A PREROUTING -d %s -p udp\n' "$address" "$address"
		printf -- '-A PREROUTING -d %s -p %s --%s-type %s\n' "$address" "$icmp" "${icmp/ipv6-icmp/icmpv6}" "$type"
	done
	printf 'COMMIT\n'
}

# lab_server NAME NUMBER ADDRESS…: a namespace with a link to the router and these addresses, each counted.
lab_server() {
	local name=$1 number=$2 address
	local -a four=() six=()
	shift 2
	lab_namespace "$name" || return 1
	for address in "$@"; do
		if [[ $address == *:* ]]; then six+=("$address"); else four+=("$address"); fi
	done
	ip link add eth0 netns "$name" type veth peer name "$name" netns router || return 1
	{
		printf 'addr add 100.64.%d.2/30 dev eth0\naddr add fd77:%d::2/64 dev eth0 nodad\nlink set eth0 up\n' "$number" "$number"
		((${#four[@]} == 0)) || printf 'addr add %s/32 dev lo\n' "${four[@]}"
		((${#six[@]} == 0)) || printf 'addr add %s/128 dev lo nodad\n' "${six[@]}"
		printf 'route add default via 100.64.%d.1\nroute add default via fd77:%d::1\n' "$number" "$number"
	} | in_ns "$name" ip -batch - || return 1
	{
		printf 'addr add 100.64.%d.1/30 dev %s\naddr add fd77:%d::1/64 dev %s nodad\nlink set %s up\n' "$number" "$name" "$number" "$name" "$name"
		((${#four[@]} == 0)) || printf "route add %s via 100.64.$number.2\n" "${four[@]}"
		((${#six[@]} == 0)) || printf "route add %s via fd77:$number::2\n" "${six[@]}"
	} | in_ns router ip -batch - || return 1
	lab_counters icmp echo-request "${four[@]}" | in_ns "$name" iptables-restore || return 1
	lab_counters ipv6-icmp echo-request "${six[@]}" | in_ns "$name" ip6tables-restore
}

lab_router_and_host() {
	lab_namespace router && lab_namespace host || return 1
	in_ns router sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
	ip link add eth0 netns host type veth peer name host netns router || return 1
	in_ns router ip -batch - <<-'END' || return 1
		addr add 192.168.77.1/24 dev host
		addr add 2a00:1450:77::1/64 dev host nodad
		link set host up
		route add 10.88.0.0/16 via 192.168.77.2
		route add 2a00:1450:88::/48 via 2a00:1450:77::2
	END
	in_ns host ip -batch - <<-'END' || return 1
		addr add 192.168.77.2/24 dev eth0
		addr add 2a00:1450:77::2/64 dev eth0 nodad
		link set eth0 up
		route add default via 192.168.77.1
		route add default via 2a00:1450:77::1
	END
	printf 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n' >"$lab/resolv.conf"
	printf '127.0.0.1 localhost\n::1 localhost\n' >"$lab/hosts"
	# shellcheck disable=SC2016
	in_ns_background host "$lab/host.log" unshare --mount --propagation private sh -c '
		mount --bind "$0/resolv.conf" "$1" && mount --bind "$0/hosts" /etc/hosts && : >"$0/host.ready" && exec sleep infinity' \
		"$lab" "$lab_resolv"
	lab_host_pid=$!
	wait_for 30 test -e "$lab/host.ready"
}

# Two machines behind the host, each on an interface of its own, with the host as router and resolver.
lab_guests() {
	local number
	in_ns host sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding'
	for number in 1 2; do
		lab_namespace "vm$number" &&
			ip link add eth0 netns "vm$number" type veth peer name "vm$number" netns host || return 1
		printf '%s\n' "addr add 10.88.$number.1/30 dev vm$number" "addr add 2a00:1450:88:$number::1/64 dev vm$number nodad" \
			"link set vm$number up" | in_ns host ip -batch - || return 1
		printf '%s\n' "addr add 10.88.$number.2/30 dev eth0" "addr add 2a00:1450:88:$number::2/64 dev eth0 nodad" "link set eth0 up" \
			"route add default via 10.88.$number.1" "route add default via 2a00:1450:88:$number::1" |
			in_ns "vm$number" ip -batch - || return 1
		printf 'nameserver 10.88.%d.1\noptions timeout:2 attempts:2\n' "$number" >"$lab/resolv.vm$number"
	done
}

in_guest() { # NUMBER COMMAND…
	local number=$1
	shift
	# shellcheck disable=SC2016
	in_ns "vm$number" unshare --mount --propagation private sh -c 'mount --bind "$0" "$1" && shift && exec "$@"' \
		"$lab/resolv.vm$number" "$lab_resolv" "$@"
}

# --- servers -----------------------------------------------------------------------------------------------------

lab_nsd() { # NAME ADDRESS,ADDRESS6 ZONE…
	local name=$1 addresses=$2 zone
	shift 2
	mkdir -p "$lab/nsd-$name"
	{
		printf 'server:\n  username: ""\n  chroot: ""\n  pidfile: ""\n  database: ""\n  server-count: 1\n  zonesdir: "%s"\n' "$lab/zones"
		printf '  xfrdir: "%s"\n  xfrdfile: ""\n  zonelistfile: "%s/list"\n  hide-version: yes\n' "$lab/nsd-$name" "$lab/nsd-$name"
		printf '  ip-address: %s\n' "${addresses%,*}" "${addresses#*,}"
		printf 'remote-control:\n  control-enable: no\n'
		for zone in "$@"; do
			printf 'zone:\n  name: "%s"\n  zonefile: "%s"\n' "$zone" "$(zone_file "$zone")"
		done
	} >"$lab/nsd-$name.conf"
	in_ns_background dns "$lab/nsd-$name.log" nsd -d -c "$lab/nsd-$name.conf"
}

lab_python() { # NAMESPACE NAME PROGRAM ARGUMENT…
	local namespace=$1 name=$2
	shift 2
	in_ns_background "$namespace" "$lab/$name.err" python3 -B "$lab_here/$1" --log "$lab/$name.log" --ready "$lab/$name.ready" "${@:2}"
}

lab_certificates() {
	local sans
	sans=$(printf 'DNS:%s,' harbour.com '*.harbour.com' quarry.net '*.quarry.net' plain.com '*.plain.com')
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj '/CN=lab' \
		-addext "subjectAltName=${sans}IP:$LAB_WEB,IP:$LAB_SECOND" \
		-keyout "$lab/key.pem" -out "$lab/ca.pem" >"$lab/openssl.log" 2>&1
}

# The resolver of a host without Pinfold: validating, and as trusting as resolvers are.
lab_unbound() {
	cat >"$lab/unbound.conf" <<-END
		server:
		  username: ""
		  chroot: ""
		  pidfile: ""
		  use-syslog: no
		  verbosity: 1
		  directory: "$lab"
		  root-hints: "$lab/zones/root.hints"
		  trust-anchor-file: "$lab/zones/root.anchor"
		  interface: 0.0.0.0
		  interface-automatic: yes
		  access-control: 0.0.0.0/0 allow
		  do-not-query-localhost: no
		remote-control:
		  control-enable: no
	END
	# Under another path, since a distribution's AppArmor profile may bind the program to its own folders.
	cp "$(command -v unbound)" "$lab/plain-resolver"
	in_host_background "$lab/unbound.log" "$lab/plain-resolver" -d -c "$lab/unbound.conf"
	lab_unbound_pid=$!
	wait_for 30 lab_resolves
}

lab_stop_unbound() {
	kill "$lab_unbound_pid" && wait "$lab_unbound_pid" 2>/dev/null
}

lab_resolves() { in_host dig +time=1 +tries=1 @127.0.0.1 www.harbour.com | grep -q 'flags:.* ad;'; }
lab_answers() { in_ns host dig +norecurse +time=1 +tries=1 "@$1" "$2" SOA | grep -q 'status: NOERROR'; }

lab_start() {
	# shellcheck source=zones.sh
	. "$lab_here/zones.sh"
	ip link set lo up
	lab_router_and_host || lab_fatal 'no router and host'
	lab_server dns 1 "$LAB_ROOT" "$LAB_ROOT6" "$LAB_TLD" "$LAB_TLD6" "$LAB_ZONES" "$LAB_ZONES6" || lab_fatal 'no namespace dns'
	lab_server auth 2 "$LAB_AUTH" "$LAB_AUTH6" "$LAB_OTHER" "$LAB_OTHER6" || lab_fatal 'no namespace auth'
	lab_server web 3 "$LAB_WEB" "$LAB_WEB6" "$LAB_SECOND" "$LAB_SECOND6" "$LAB_QUIC" "$LAB_QUIC6" || lab_fatal 'no namespace web'
	lab_server meta 4 "$LAB_META" "$LAB_META6" "$LAB_META64" "$LAB_AZURE" "$LAB_ALIBABA" || lab_fatal 'no namespace meta'
	lab_server lan 5 "$LAB_LAN" "$LAB_LAN6" || lab_fatal 'no namespace lan'
	lab_guard "${LAB_SERVERS[@]}" "${LAB_SERVERS6[@]}" || lab_fatal 'no guard'
	[[ -z ${LAB_USER:-} ]] || lab_admit_user || lab_fatal 'the user cannot be admitted'
	lab_certificates || lab_fatal 'no certificate'
	zones_make "$lab/zones" || lab_fatal 'the zones cannot be made'

	lab_nsd root "$LAB_ROOT,$LAB_ROOT6" .
	lab_nsd tld "$LAB_TLD,$LAB_TLD6" com net internal
	lab_nsd zones "$LAB_ZONES,$LAB_ZONES6" "${ZONES_LEAF[@]}"
	lab_python router questions questions.py --interface host
	lab_python auth auth authority.py --zone rebind.com --address "$LAB_AUTH" --address "$LAB_AUTH6"
	lab_python auth other authority.py --open "$LAB_SECOND" --address "$LAB_OTHER" --address "$LAB_OTHER6"
	lab_python web web web.py --name web --certificate "$lab/ca.pem" --key "$lab/key.pem" \
		{http:80,http:8080,https:443,udp:443,udp:9999}:{"$LAB_WEB","$LAB_WEB6","$LAB_SECOND","$LAB_SECOND6"}
	lab_python meta meta web.py --name secret-credentials \
		http:80:{"$LAB_META","$LAB_META6","$LAB_META64","$LAB_AZURE","$LAB_ALIBABA"}
	lab_python lan lan web.py --name private-admin-page {http:80,http:81}:{"$LAB_LAN","$LAB_LAN6"}
	local name
	for name in questions auth other web meta lan; do
		wait_for 30 test -e "$lab/$name.ready" || lab_fatal "$name does not start: $(tail -n 1 "$lab/$name.err")"
	done
	wait_for 30 lab_answers "$LAB_ROOT" . && wait_for 30 lab_answers "$LAB_TLD" com && wait_for 30 lab_answers "$LAB_ZONES" harbour.com ||
		lab_fatal "NSD does not answer: $(tail -qn 1 "$lab"/nsd-*.log)"
	lab_unbound || lab_fatal "unbound does not answer: $(tail -n 1 "$lab/unbound.log")"
	lab_mark
}

# --- evidence ----------------------------------------------------------------------------------------------------

lab_namespace_of() {
	case $1 in
	"$LAB_ROOT" | "$LAB_ROOT6" | "$LAB_TLD" | "$LAB_TLD6" | "$LAB_ZONES" | "$LAB_ZONES6") echo dns ;;
	"$LAB_AUTH" | "$LAB_AUTH6" | "$LAB_OTHER" | "$LAB_OTHER6") echo auth ;;
	"$LAB_WEB" | "$LAB_WEB6" | "$LAB_SECOND" | "$LAB_SECOND6" | "$LAB_QUIC" | "$LAB_QUIC6") echo web ;;
	"$LAB_META" | "$LAB_META6" | "$LAB_META64" | "$LAB_AZURE" | "$LAB_ALIBABA") echo meta ;;
	"$LAB_LAN" | "$LAB_LAN6") echo lan ;;
	*) return 1 ;;
	esac
}

lab_iptables() { if [[ $1 == *:* ]]; then echo ip6tables; else echo iptables; fi; }

# How many packets arrived for ADDRESS since lab_mark.
packets() {
	local namespace
	namespace=$(lab_namespace_of "$1") || { echo unknown; return 1; }
	in_ns "$namespace" "$(lab_iptables "$1")" -t raw -S PREROUTING -v | awk -v address="$1" '
		{ sub(/\/(32|128)$/, "", $4) } $4 == address { for (i = 5; i < NF; i++) if ($i == "-c") n += $(i + 1) } END { print n + 0 }'
}
reached() { local n; n=$(packets "$1") && ((n > 0)); }
unreached() { local n; n=$(packets "$1") && ((n == 0)); }

# The lines of a log that are newer than lab_mark.
lab_new() { [[ ! -e $lab/$1.log ]] || tail -n "+$((${lab_marks[$1]:-0} + 1))" "$lab/$1.log"; }

# served ADDRESS [PATTERN]: a connection to it brought bytes (whose first line matches).
served() { lab_new "$(lab_namespace_of "$1")" | grep -q -- "^bytes $1 .*${2:-}"; }
connected() { lab_new "$(lab_namespace_of "$1")" | grep -q -- "^connect $1 "; }
silent() { ! served "$@"; }

# asked NAME: the host asked some server for NAME, for a child of it, or for it as part of a longer one.
asked() { lab_new questions | grep -qiE -- "^question ([^ ]*\.)?${1//./\\.}\. "; }
unasked() { ! asked "$@"; }

# Forgets what happened so far, between the halves of a twin run.
declare -A lab_marks=()
lab_mark() {
	local name
	for name in dns auth web meta lan; do
		in_ns "$name" iptables -t raw -Z && in_ns "$name" ip6tables -t raw -Z
	done
	for name in auth other web meta lan questions audit; do
		lab_marks[$name]=0
		[[ ! -e $lab/$name.log ]] || lab_marks[$name]=$(wc -l <"$lab/$name.log")
	done
}

# --- scenarios ---------------------------------------------------------------------------------------------------

lab_guard() { # ADDRESS…: the only ones that the host may contact
	local address family
	for family in 4 6; do
		{
			printf '*filter\n:SCENARIO - [0:0]\n'
			[[ -n ${lab_guarded:-} ]] || printf -- '-A FORWARD -i host -j SCENARIO\n'
			# A late answer to a server's FIN, or to a reply that nobody waits for any more, contacts nobody.
			printf -- '-A SCENARIO -p tcp ! --syn -j RETURN\n-A SCENARIO -p %s -j RETURN\n' \
				"$([[ $family == 4 ]] && echo 'icmp --icmp-type destination-unreachable' || echo 'icmpv6 --icmpv6-type destination-unreachable')"
			for address in "$@"; do
				if { [[ $address == *:* ]] && [[ $family == 6 ]]; } || { [[ $address != *:* ]] && [[ $family == 4 ]]; }; then
					printf -- '-A SCENARIO -d %s -j RETURN\n' "$address"
				fi
			done
			printf -- '-A SCENARIO -m comment --comment stray -j REJECT\nCOMMIT\n'
		} | in_ns router "$([[ $family == 4 ]] && echo iptables-restore || echo ip6tables-restore)" --noflush || return 1
	done
	lab_guarded=yes
}

lab_strays() {
	{ in_ns router iptables -nvxL SCENARIO && in_ns router ip6tables -nvxL SCENARIO; } | awk '/stray/ { n += $1 } END { print n + 0 }'
}

# scenario NAME [ADDRESS…]: begins one; beside the DNS servers it may contact these addresses alone.
scenario() {
	scenario_end
	lab_scenario=$1 lab_problems=()
	shift
	lab_guard "${LAB_SERVERS[@]}" "${LAB_SERVERS6[@]}" "$@" || lab_problems+=('no guard')
	lab_mark
}

scenario_end() {
	[[ -n $lab_scenario ]] || return 0
	local strays
	strays=$(lab_strays)
	((strays == 0)) || lab_problems+=("$strays packets to addresses outside the scenario")
	lab_number=$((lab_number + 1))
	if ((${#lab_problems[@]})); then
		printf 'not ok %d - %s\n' "$lab_number" "$lab_scenario"
		printf '#   %s\n' "${lab_problems[@]}"
		lab_failures=$((lab_failures + 1))
	else
		printf 'ok %d - %s\n' "$lab_number" "$lab_scenario"
	fi
	lab_scenario=''
}

# Leaves the scenario out, with the reason.
scenario_skip() {
	lab_number=$((lab_number + 1))
	printf 'ok %d - %s # SKIP %s\n' "$lab_number" "$lab_scenario" "$*"
	lab_scenario=''
}

# check WHAT COMMAND…: the scenario fails when the command does.
check() {
	local what=$1
	shift
	"$@" >"$lab/check.out" 2>&1 || lab_problems+=("$what: $* $(tail -n 2 "$lab/check.out" | tr '\n' ' ')")
}
check_not() {
	local what=$1
	shift
	if "$@" >"$lab/check.out" 2>&1; then lab_problems+=("$what: $* succeeded"); fi
}

lab_end() {
	scenario_end
	printf '1..%d\n' "$lab_number"
	exit $((lab_failures > 0))
}

# --- clients -----------------------------------------------------------------------------------------------------

# policy [YAML [GATE]]: the configuration of `guarded`: the lab's root, this as policy `default`, and GATE as `gate`.
policy() {
	cat >"$lab/policy.yaml" <<-END
		resolver:
		  root_hints: $lab/zones/root.hints
		  trust_anchor: $lab/zones/root.anchor
		log: {file: $lab/audit.log}
		gate: ${2:-{\}}
		policies:
		  default: ${1:-{\}}
	END
}

# Who runs the client: a host without Pinfold, or `pinfold run`; root, or LAB_USER.
lab_caller=(in_host)
[[ -z ${LAB_USER:-} ]] || lab_caller=(as_uid "$LAB_USER")
lab_runner=("${lab_caller[@]}")
bare() {
	lab_runner=("${lab_caller[@]}")
	"$@"
}
guarded() {
	lab_runner=("${lab_caller[@]}" "$PINFOLD" run --policy "$lab/policy.yaml" --)
	"$@"
}
# What an ordinary user needs: his log and folder, and the device that pasta opens.
lab_admit_user() {
	chown "$LAB_USER" "$lab" && install -m 644 -o "$LAB_USER" /dev/null "$lab/audit.log" &&
		in_host sh -c 'mount -t tmpfs -o mode=755,dev lab /dev/net && mknod -m 666 /dev/net/tun c 10 200'
}

client() { "${lab_runner[@]}" "$@"; }
# curl that trusts the lab, uses no proxy, and waits no longer than it must.
fetch_options=(--silent --show-error --noproxy '*' --cacert "$lab/ca.pem" --connect-timeout 3 --max-time 6)
fetch() { client curl "${fetch_options[@]}" "$@"; }

# says TEXT COMMAND…: the command succeeds and prints TEXT.
says() {
	local text=$1 output
	shift
	output=$("$@" 2>&1) || { printf '%s\n' "$output"; return 1; }
	[[ $output == *"$text"* ]] || { printf 'printed %s\n' "$output"; return 1; }
}

# never TEXT COMMAND…: whatever the command does, it does not print TEXT. For what must not leak. Its exit status is kept
# in `status`.
never() {
	local text=$1 output
	shift
	output=$("$@" 2>&1)
	status=$?
	[[ $output != *"$text"* ]] || { printf 'printed %s\n' "$output"; return 1; }
}

# audited REASON [TEXT]: an audit line since the last mark has this reason (and this text in it).
lab_audited() { lab_new audit | grep -E -- "\"reason\": ?\"$1\"" | grep -qF -- "${2:-}"; }
audited() { wait_for 3 lab_audited "$@" || { lab_new audit | tail -n 3; return 1; }; }

# twin ADDRESS TEXT REASON COMMAND…: without Pinfold the command gets TEXT from ADDRESS; with it, it does not, no packet
# arrives there, the audit line has the reason, and the client is told instead of left waiting (curl's 28 is a time-out).
twin() {
	local address=$1 text=$2 reason=$3
	shift 3
	check 'without Pinfold' says "$text" bare "$@"
	check 'without Pinfold, at the target' served "$address"
	lab_mark
	check 'with Pinfold' never "$text" guarded "$@"
	check 'with Pinfold, in time' test "$status" -ne 28
	check 'no packet at the target' unreached "$address"
	check 'reason' audited "$reason"
}

# twin_bytes: the same, but a connection may be made: not one byte may come with it.
twin_bytes() {
	local address=$1 text=$2 reason=$3
	shift 3
	check 'without Pinfold' says "$text" bare "$@"
	check 'without Pinfold, at the target' served "$address"
	lab_mark
	check 'with Pinfold' never "$text" guarded "$@"
	check 'with Pinfold, in time' test "$status" -ne 28
	check 'no byte at the target' silent "$address"
	check 'reason' audited "$reason"
}

# quickly COMMAND…: it ends within a second, however it ends: a refusal is no hang.
quickly() {
	local start=${EPOCHREALTIME/./} took
	"$@" >/dev/null 2>&1
	took=$((${EPOCHREALTIME/./} - start))
	((took < 1500000)) || { printf 'took %d ms\n' $((took / 1000)); return 1; }
}

# --- the service -------------------------------------------------------------------------------------------------

# daemon_start YAML: `pinfold daemon` in the host with this configuration, in place of the plain resolver.
daemon_start() {
	lab_stop_unbound
	{
		cat <<-END
			log: {file: $lab/audit.log}
			control: {socket: $lab/control.sock}
		END
		printf '%s\n' "$1"
	} >"$lab/daemon.yaml"
	in_host_background "$lab/daemon.err" "$PINFOLD" daemon -c "$lab/daemon.yaml"
	daemon_pid=$!
	wait_for 10 daemon_ready || { cat "$lab/daemon.err"; return 1; }
}
daemon_ready() { kill -0 "$daemon_pid" && in_host "$PINFOLD" status -c "$lab/daemon.yaml"; }

daemon_stop() {
	kill "$daemon_pid" 2>/dev/null
	wait "$daemon_pid"
	daemon_status=$?
	lab_unbound
}

# The PID of the daemon's child of this name.
daemon_child() { ps -o pid=,args= --ppid "$daemon_pid" | awk -v name="$1" '$2 ~ name { print $1; found = 1 } END { exit !found }'; }

# The resolver's part of a configuration for a daemon in the host.
lab_resolver_yaml() { # LISTEN CLIENTS
	printf 'resolver: {listen: [%s], clients: [%s], root_hints: %s, trust_anchor: %s}\n' "$1" "$2" \
		"$lab/zones/root.hints" "$lab/zones/root.anchor"
}

as_uid() { in_host setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }
