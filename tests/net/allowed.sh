#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# What a command in `pinfold run` may do under the default policy: it works as it would without.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
policy

scenario 'HTTP by name over IPv4' "$LAB_WEB"
check 'page' says "web $LAB_WEB 80" guarded fetch http://v4.harbour.com/

scenario 'HTTP by name over IPv6' "$LAB_WEB6"
check 'page' says "web $LAB_WEB6 80" guarded fetch http://v6.harbour.com/

scenario 'HTTPS by name over IPv4' "$LAB_WEB"
check 'page' says "web $LAB_WEB 443" guarded fetch https://v4.harbour.com/

scenario 'HTTPS by name over IPv6' "$LAB_WEB6"
check 'page' says "web $LAB_WEB6 443" guarded fetch https://v6.harbour.com/

scenario 'a name behind a CNAME, and one of an unsigned zone' "$LAB_WEB" "$LAB_WEB6"
check 'CNAME' says 'host shop.harbour.com' guarded fetch https://shop.harbour.com/
check 'unsigned' says 'host www.plain.com' guarded fetch http://www.plain.com/

scenario 'a name on another port' "$LAB_WEB"
check 'port 8080' says 'host v4.harbour.com:8080' guarded fetch http://v4.harbour.com:8080/

scenario 'several requests on one connection' "$LAB_WEB"
check 'second page' says "host v4.harbour.com
web $LAB_WEB 80 host v4.harbour.com" guarded fetch http://v4.harbour.com/one http://v4.harbour.com/two
check 'one connection' test "$(lab_new web | grep -c '^connect')" = 1

scenario 'an upload of 300 kB after the head' "$LAB_WEB"
head -c 300000 /dev/zero >"$lab/upload"
check 'HTTP' says 'host v4.harbour.com' guarded fetch --data-binary "@$lab/upload" http://v4.harbour.com/
check 'HTTPS' says 'host v4.harbour.com' guarded fetch --data-binary "@$lab/upload" https://v4.harbour.com/

scenario 'a literal, as itself' "$LAB_WEB" "$LAB_LAN"
check 'public' says "web $LAB_WEB 80" guarded fetch "http://$LAB_WEB/"
check 'private, allowed by default' says private-admin-page guarded fetch "http://$LAB_LAN/"

scenario 'a ClientHello of two segments' "$LAB_WEB"
alpn=$(printf 'filler-%03d,' {1..250})http/1.1
check 'handshake' says 'Server certificate' guarded client sh -c \
	"echo | openssl s_client -connect v4.harbour.com:443 -servername v4.harbour.com -CAfile $lab/ca.pem -alpn $alpn"

scenario 'DNS: signed, unsigned, nonexistent, bogus'
check 'signed' says ' ad;' guarded client dig +dnssec www.quarry.net
check 'unsigned' says NOERROR guarded client dig www.plain.com
check 'nonexistent' says NXDOMAIN guarded client dig nothing.harbour.com
check 'TXT' says 'plain words' guarded client dig +short TXT text.harbour.com
check 'over TCP' says "$LAB_WEB" guarded client dig +tcp +short v4.harbour.com
check 'bogus data exists' says "$LAB_SECOND" bare client dig +cd +short www.bogus.com
check 'bogus' says SERVFAIL guarded client dig www.bogus.com
check 'bogus, with its reason' says 'EDE: 6' guarded client dig www.bogus.com
check 'bogus gives no address' never "$LAB_SECOND" guarded client dig www.bogus.com

scenario 'exit status and signals are the command'"'"'s'
check 'true' guarded client true
guarded client sh -c 'exit 42'
check '42' test $? = 42
guarded client sh -c 'kill -TERM $$'
check '128 + 15' test $? = 143
guarded client /nonexistent/command 2>/dev/null
check '127' test $? = 127

scenario 'two at once' "$LAB_WEB"
guarded fetch http://v4.harbour.com/one >"$lab/one.out" 2>&1 &
first=$!
check 'second' says 'host v4.harbour.com' guarded fetch http://v4.harbour.com/two
wait "$first"
check 'first' says 'host v4.harbour.com' cat "$lab/one.out"

scenario 'nothing is left behind'
check 'no process' never pinfold ps -e -o comm=
check 'no rule' never -A in_host iptables-save
check 'no IPv6 rule' never -A in_host ip6tables-save
check 'no interface' test "$(in_host sh -c 'ip -o link 2>/dev/null | grep -vc -e "lo:" -e "eth0@"')" = 0
check 'no forwarding' test "$(in_host cat /proc/sys/net/ipv4/ip_forward)" = 0
lab_end
