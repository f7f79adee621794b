#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# New HTTP connections a second, one request each: no queue, a program that accepts all (SYN only, and every packet
# of the client), and Pinfold judging SYN and first request of each. The same client, server and path for all.
#
#     host: wrk, as the governed user ─── router ─── web: nginx
. "$(dirname "${BASH_SOURCE[0]}")/bench.sh"
seconds=${SECONDS_EACH:-5} rounds=${ROUNDS:-3} connections=${CONNECTIONS:-32}
uid=4001 port=8888
lab_start
lab_guard "${LAB_SERVERS[@]}" "${LAB_SERVERS6[@]}" "$LAB_WEB"
mkdir -p "$lab/nginx"
cat >"$lab/nginx.conf" <<-END
	worker_processes 1; daemon off; pid $lab/nginx/pid; error_log $lab/nginx/error.log; user root;
	events { worker_connections 4096; }
	http { access_log off; client_body_temp_path $lab/nginx/b; proxy_temp_path $lab/nginx/p; fastcgi_temp_path $lab/nginx/f;
		uwsgi_temp_path $lab/nginx/u; scgi_temp_path $lab/nginx/s;
		server { listen $LAB_WEB:$port backlog=4096; location / { return 200 "hello\n"; } } }
END
in_ns_background web "$lab/nginx.out" nginx -p "$lab/nginx" -c "$lab/nginx.conf" -e "$lab/nginx/error.log"
url=http://v4.harbour.com:$port/
wait_for 5 says hello fetch "$url" || lab_fatal "nginx does not answer: $(cat "$lab/nginx.out" "$lab/nginx/error.log")"
for name in host router; do
	in_ns "$name" sh -c 'echo 1 >/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait' 2>/dev/null
done

best() { # connections a second, the best round
	local round rate best=0
	for ((round = 0; round < rounds; round++)); do
		as_uid "$uid" wrk -t 1 -c "$connections" -d "${seconds}s" -H 'Connection: close' "$url" >"$lab/wrk.out" 2>&1
		rate=$(awk '/Requests\/sec:/ { print int($2) }' "$lab/wrk.out")
		grep -E 'Socket errors|Non-2xx' "$lab/wrk.out" | sed 's/^ */  errors: /' >&2
		((${rate:-0} <= best)) || best=$rate
	done
	printf '%d\n' "$best"
}
accept_all() { # iptables match…
	in_host iptables -t mangle -A OUTPUT -m owner --uid-owner "$uid" -p tcp --dport "$port" "$@" -j NFQUEUE --queue-num 1
	in_host_background "$lab/accept.out" "$bench_top/build-bench/tests/bench/accept-all" 1
	local pid=$!
	best
	in_host iptables -t mangle -F OUTPUT
	kill "$pid"
	wait "$pid" 2>/dev/null
}

# Conntrack for all four, as every Pinfold host has it.
in_host iptables -A OUTPUT -m conntrack --ctstate INVALID -j DROP
none=$(best)
syn=$(accept_all --syn)
every=$(accept_all)
daemon_start "$(lab_resolver_yaml '"127.0.0.1@53"' 127.0.0.0/8)
gate: {hook: output}
clients: [{name: bench, uid: $uid, policy: default}]" || lab_fatal 'the daemon does not start'
pinfold=$(best)

printf '%-36s %14s %10s\n' 'on the path' 'connections/s' relative
row() { awk -v n="$1" -v r="$2" -v b="$none" 'BEGIN { printf "%-36s %14d %10.2f\n", n, r, b ? r / b : 0 }'; }
row 'no queue' "$none"
row 'accept-all, SYN only' "$syn"
row 'accept-all, every client packet' "$every"
row 'Pinfold, SYN and first request' "$pinfold"
lab_scenario=''
