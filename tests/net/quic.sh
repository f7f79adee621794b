#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# QUIC: refused, or let through by the name in its ClientHello. The peers are ngtcp2's.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
command -v gtlsclient >/dev/null && command -v gtlsserver >/dev/null || lab_skip 'no ngtcp2'
lab_start
mkdir -p "$lab/quic" "$lab/page"
echo 'a page over QUIC' >"$lab/page/index.html"
head -c 3000000 /dev/urandom >"$lab/page/large"

# server [OPTION…]: in place of the one before.
server_pid=''
listens() { in_ns web ss -Hlun "sport = 443" | grep -qF "$LAB_QUIC:443"; }
server() {
	[[ -z $server_pid ]] || { kill "$server_pid" && wait "$server_pid"; } 2>/dev/null
	in_ns_background web "$lab/server.log" sh -c '
		gtlsserver -q --no-quic-dump -d "$0" "$@" & six=$!; trap "kill \$six \$four" EXIT TERM; shift
		gtlsserver -q --no-quic-dump -d "$0" '"$LAB_QUIC"' "$@" & four=$!; wait' \
		"$lab/page" "$LAB_QUIC6" 443 "$lab/key.pem" "$lab/ca.pem" "$@"
	server_pid=$!
	wait_for 10 listens || lab_fatal "gtlsserver does not start: $(tail -n 1 "$lab/server.log")"
}

patience=4 # seconds
# h3 NAME FILE [OPTION…]: gets https://NAME/FILE and prints it, if it is short.
h3() {
	local name=$1 file=$2
	shift 2
	rm -f "$lab/quic/$file"
	client timeout $((patience + 2)) gtlsclient -q --no-quic-dump --no-http-dump --exit-on-all-streams-close --timeout="${patience}s" \
		--download="$lab/quic" "$@" "$name" 443 "https://$name/$file" >"$lab/client.log" 2>&1
	[[ -e $lab/quic/$file ]] || return 1
	[[ $file != index.html ]] || cat "$lab/quic/$file"
}
page='a page over QUIC'

server
policy '{}'
scenario 'quic: refuse' "$LAB_QUIC" "$LAB_QUIC6"
check 'without Pinfold' says "$page" bare h3 quic.harbour.com index.html
lab_mark
check 'with Pinfold' never "$page" guarded h3 quic.harbour.com index.html
check 'no packet at the target' unreached "$LAB_QUIC"
check 'no packet at the target, IPv6' unreached "$LAB_QUIC6"
check 'reason' audited protocol

scenario 'a refusal comes at once' "$LAB_QUIC"
# Sends one datagram that is no QUIC and prints how long the refusal took.
at_once() {
	client python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((sys.argv[1], 443))
start = time.monotonic()
s.send(b"x" * 1200)
try:
    s.recv(100)
except OSError as error:
    print("told after", "50 ms or less" if time.monotonic() - start <= 0.05 else time.monotonic() - start, error)' "$LAB_QUIC"
}
check 'refuse' says 'told after 50 ms or less' guarded at_once
policy '{}' '{quic: inspect}'
check 'inspect' says 'told after 50 ms or less' guarded at_once
check 'reason' audited scheme
check 'no packet at the target' unreached "$LAB_QUIC"

scenario 'quic: inspect, the name that was resolved' "$LAB_QUIC" "$LAB_QUIC6"
check 'both families' says "$page" guarded h3 quic.harbour.com index.html
check 'IPv4 alone' says "$page" guarded h3 quic.quarry.net index.html
check 'a large file' guarded h3 quic.harbour.com large
check 'is whole' cmp "$lab/page/large" "$lab/quic/large"

# For an address, gtlsclient's SNI is localhost.
scenario 'the name of another' "$LAB_QUIC"
check 'without Pinfold' says "$page" bare h3 "$LAB_QUIC" index.html
lab_mark
check 'with Pinfold' never "$page" guarded h3 "$LAB_QUIC" index.html
check 'no packet at the target' unreached "$LAB_QUIC"
check 'reason' audited name_mismatch '"name":"localhost"'

scenario 'literals: deny' "$LAB_QUIC"
policy '{literals: deny}' '{quic: inspect}'
lab_mark
check 'with Pinfold' never "$page" guarded h3 "$LAB_QUIC" index.html
check 'no packet at the target' unreached "$LAB_QUIC"
check 'reason' audited unpinned

scenario 'an allow list' "$LAB_QUIC" "$LAB_QUIC6"
policy '{default: deny, allow_hosts: [quic.harbour.com]}' '{quic: inspect}'
check 'on it' says "$page" guarded h3 quic.harbour.com index.html
lab_mark
check 'not on it' never "$page" guarded h3 "$LAB_QUIC" index.html
check 'no packet at the target' unreached "$LAB_QUIC"
check 'reason' audited not_allowlisted

scenario 'an unknown version' "$LAB_QUIC"
policy '{}' '{quic: inspect}'
check 'without Pinfold' says "$page" bare h3 quic.quarry.net index.html --version=v2draft
lab_mark
check 'with Pinfold' never "$page" guarded h3 quic.quarry.net index.html --version=v2draft
check 'no packet at the target' unreached "$LAB_QUIC"
check 'reason' audited malformed

scenario 'a Retry' "$LAB_QUIC" "$LAB_QUIC6"
server --validate-addr
check 'with Pinfold' says "$page" guarded h3 quic.harbour.com index.html
check 'there was one' grep -q 'address validation' "$lab/server.log"

scenario 'a HelloRetryRequest' "$LAB_QUIC" "$LAB_QUIC6"
server --groups=-GROUP-ALL:+GROUP-SECP521R1
check 'with Pinfold' says "$page" guarded h3 quic.harbour.com index.html

scenario 'packets lost' "$LAB_QUIC" "$LAB_QUIC6"
server
# What is lost is sent again after 1, 2, 4 and 8 seconds (RFC 9002 section 6.2).
patience=25
for number in 1 2 3; do
	check "run $number" says "$page" guarded h3 quic.harbour.com index.html --tx-loss=0.2 --rx-loss=0.1
done
lab_end
