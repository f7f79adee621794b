#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# CPU per cached query: Pinfold with policy and pins on, beside other resolvers in the same run, and how long
# answers take at half of each one's load.
#
#     host                              router
#     the server, on the first core ─── dnsperf, on the second core
#
# Signed names with an address each, all cached by a warm-up round. CPU is utime+stime of the server's processes over
# the queries that were answered. SECONDS_EACH=5, ROUNDS=3, NAMES=1000 and PEERS (unbound bind powerdns knot pinfold) can
# be set; the best of the rounds counts, since noise only adds.
export LAB_NAMES=${NAMES:-1000}
. "$(dirname "${BASH_SOURCE[0]}")/bench.sh"
seconds=${SECONDS_EACH:-5} rounds=${ROUNDS:-3}
read -ra peers <<<"${PEERS:-unbound bind powerdns knot pinfold}"
lab_start
lab_stop_unbound
server=192.168.77.2
for ((i = 0; i < LAB_NAMES; i++)); do printf 'n%d.many.harbour.com A\n' "$i"; done >"$lab/queries"

start_unbound() {
	sed "s/interface: 0.0.0.0/interface: $server/; /interface-automatic/d; s/verbosity: .*/num-threads: 1/" "$lab/unbound.conf" >"$lab/peer.conf"
	in_host_background "$lab/unbound.bench" taskset -c 0 "$lab/plain-resolver" -d -c "$lab/peer.conf"
}
start_bind() {
	local key
	key=$(awk '/DNSKEY/ { print $4, $5, $6, "\"" $7 "\"" }' "$lab/zones/root.anchor")
	mkdir -p "$lab/bind"
	cat >"$lab/bind.conf" <<-END
		options {
			directory "$lab/bind"; pid-file none; session-keyfile none; listen-on { $server; }; listen-on-v6 { none; };
			recursion yes; allow-query { any; }; allow-recursion { any; }; dnssec-validation yes; empty-zones-enable no;
		};
		controls { };
		trust-anchors { . static-key $key; };
		zone "." { type hint; file "$lab/zones/root.hints"; };
	END
	cp "$(command -v named)" "$lab/bind-resolver"
	in_host_background "$lab/bind.log" taskset -c 0 "$lab/bind-resolver" -f -n 1 -c "$lab/bind.conf"
}
start_powerdns() {
	mkdir -p "$lab/powerdns"
	printf "clearTA()\naddTA('.', '%s')\n" "$(ldns-key2ds -n -2 "$lab/zones/root.anchor" | awk '{ print $(NF-3), $(NF-2), $(NF-1), $NF }')" \
		>"$lab/powerdns/anchor.lua"
	printf '%s\n' "local-address=$server" allow-from=0.0.0.0/0 threads=1 dnssec=validate daemon=no write-pid=no security-poll-suffix= \
		"socket-dir=$lab/powerdns" "hint-file=$lab/zones/root.hints" "lua-config-file=$lab/powerdns/anchor.lua" dont-query= \
		>"$lab/powerdns/recursor.conf"
	in_host_background "$lab/powerdns.log" taskset -c 0 pdns_recursor --config-dir="$lab/powerdns"
}
start_knot() {
	mkdir -p "$lab/knot"
	printf '%s\n' "net.listen('$server', 53, { kind = 'dns' })" "trust_anchors.add_file('$lab/zones/root.anchor', true)" \
		"modules = { 'hints > iterate' }" "hints.root_file('$lab/zones/root.hints')" 'cache.size = 64 * MB' >"$lab/knot/knot.conf"
	in_host_background "$lab/knot.log" taskset -c 0 kresd -n -c "$lab/knot/knot.conf" "$lab/knot"
}
start_pinfold() {
	printf '%s\n' "$(lab_resolver_yaml "\"$server@53\"" 192.168.77.0/24)" 'gate: {enabled: false}' \
		"control: {socket: $lab/control.sock}" >"$lab/bench.yaml"
	in_host_background "$lab/pinfold.log" taskset -c 0 "$PINFOLD" daemon -c "$lab/bench.yaml"
}

dnsperf_run() { in_ns router taskset -c 1 dnsperf -s "$server" -d "$lab/queries" -c 8 -q 200 "$@" 2>&1; }
answers() { in_ns router dig +time=1 +tries=1 "@$server" n1.many.harbour.com | grep -q 'NOERROR'; }
# dnsperf has no percentiles, but tells each answer's time: "> NOERROR name type seconds".
p99() { awk '$1 == ">" && $2 == "NOERROR" { print $NF * 1e6 }' | sort -n | awk '{ t[NR] = $1 } END { print NR ? int(t[int((NR * 99 + 99) / 100)]) : 0 }'; }

best() { # NAME: microseconds of CPU a query, queries a second, microseconds that 99 of 100 answers take at half of that
	local round before after completed rate cpu best='' best_rate=0
	"start_$1"
	local pid=$!
	wait_for 15 answers || { printf '%s does not answer\n' "$1" >&2; kill "$pid"; return 1; }
	dnsperf_run -n 2 >/dev/null
	for ((round = 0; round < rounds; round++)); do
		before=$(bench_cpu "$pid")
		dnsperf_run -l "$seconds" >"$lab/dnsperf.out"
		after=$(bench_cpu "$pid")
		completed=$(awk '/Queries completed:/ { print $3 }' "$lab/dnsperf.out")
		rate=$(awk '/Queries per second:/ { print int($4) }' "$lab/dnsperf.out")
		cpu=$(awk -v t=$((after - before)) -v hz="$bench_ticks" -v n="$completed" 'BEGIN { printf "%.2f", t / hz * 1e6 / n }')
		if [[ -z $best ]] || awk -v a="$cpu" -v b="$best" 'BEGIN { exit !(a < b) }'; then best=$cpu best_rate=$rate; fi
	done
	grep -q 'NOERROR.*100' "$lab/dnsperf.out" || printf '%s: not every answer was NOERROR\n' "$1" >&2
	dnsperf_run -v -l "$seconds" -Q $((best_rate / 2)) >"$lab/dnsperf.half"
	kill "$pid"
	wait "$pid" 2>/dev/null
	printf '%s %s %s\n' "$best" "$best_rate" "$(p99 <"$lab/dnsperf.half")"
}

declare -A cpu rate late program=([unbound]=unbound [bind]=named [powerdns]=pdns_recursor [knot]=kresd [pinfold]=$PINFOLD)
for name in "${peers[@]}"; do
	if ! command -v "${program[$name]}" >/dev/null; then
		printf 'no %s here: %s is left out\n' "${program[$name]}" "$name"
		continue
	fi
	read -r "cpu[$name]" "rate[$name]" "late[$name]" < <(best "$name") || cpu[$name]=0
done
printf '%-10s %14s %12s %22s %22s\n' server 'CPU a query' 'queries/s' 'CPU beside Unbound' 'p99 at half load'
for name in "${peers[@]}"; do
	[[ -n ${cpu[$name]:-} ]] || continue
	awk -v n="$name" -v c="${cpu[$name]:-0}" -v r="${rate[$name]:-0}" -v l="${late[$name]:-0}" -v u="${cpu[unbound]:-0}" 'BEGIN {
		printf "%-10s %11.2f µs %12d %22s %19d µs\n", n, c, r, c && u ? sprintf("%.2f", c / u) : "-", l }'
done
lab_scenario=''
