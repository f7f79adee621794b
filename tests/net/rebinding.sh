#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# DNS rebinding: a public name that leads to a machine that is not public. Each attack works without Pinfold.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
policy # private addresses may be connected to by default; a public name may not lead there

scenario 'a private address, vouched for by DNSSEC' "$LAB_LAN"
twin "$LAB_LAN" private-admin-page rebinding fetch http://lan.harbour.com/

scenario 'a private IPv6 address' "$LAB_LAN6"
twin "$LAB_LAN6" private-admin-page rebinding fetch http://fd77-10-0-0-0-0-0-10.only.rebind.com/

scenario 'first the site, then the private machine, TTL 0' "$LAB_WEB" "$LAB_LAN"
# Over IPv4 alone: a resolver that minimises may ask for A on the way to an AAAA, and that would be the first question.
twice() { client sh -c 'curl "$@"; curl "$@"' sh -4 "${fetch_options[@]}" "$1"; }
check 'without Pinfold' says private-admin-page bare twice http://93-184-216-34.10-77-0-10.flip.rebind.com/
lab_mark
check 'with Pinfold, the site' says "web $LAB_WEB" guarded client sh -c 'curl "$@"; curl "$@"; true' sh -4 "${fetch_options[@]}" \
	http://n-again.93-184-216-34.10-77-0-10.flip.rebind.com/
check 'both were asked for' test "$(lab_new auth | grep -c 'n-again.*flip.rebind.com. A$')" -ge 2
check 'no packet at the target' unreached "$LAB_LAN"
check 'reason' audited rebinding

# On a port where only the private machine listens, a client falls through to it whatever the order.
scenario 'both at once, the private one second' "$LAB_WEB" "$LAB_LAN"
twin "$LAB_LAN" private-admin-page rebinding fetch http://93-184-216-34.10-77-0-10.both.rebind.com:81/

scenario 'both at once, the private one first' "$LAB_WEB" "$LAB_LAN"
twin "$LAB_LAN" private-admin-page rebinding fetch http://10-77-0-10.93-184-216-34.both.rebind.com:81/

scenario 'a good IPv4 address beside a private IPv6 one' "$LAB_WEB" "$LAB_LAN6"
check 'without Pinfold' says private-admin-page bare fetch -6 http://93-184-216-34.fd77-10-0-0-0-0-0-10.only.rebind.com/
lab_mark
check 'with Pinfold' never private-admin-page guarded fetch -6 http://93-184-216-34.fd77-10-0-0-0-0-0-10.only.rebind.com/
check 'no packet at the target' unreached "$LAB_LAN6"
check 'reason' audited rebinding

# The client reads the address from the HTTPS record, as browsers do.
scenario 'an address hint of an HTTPS record' "$LAB_WEB" "$LAB_LAN"
hinted() {
	# shellcheck disable=SC2016
	client sh -c 'name=$1; shift; hint=$(dig +short HTTPS "$name" | sed -n "s/.*ipv4hint=\([0-9.]*\).*/\1/p")
		[ -n "$hint" ] && curl "$@" --resolve "$name:80:$hint" "http://$name/"' sh "$1" "${fetch_options[@]}"
}
twin "$LAB_LAN" private-admin-page rebinding hinted 93-184-216-34.10-77-0-10.hint.rebind.com

scenario 'the same hint in a signed zone' "$LAB_WEB" "$LAB_LAN"
twin "$LAB_LAN" private-admin-page rebinding hinted hint.harbour.com

# The service on the client's own loopback: in the host, and in the namespace of `pinfold run`.
beside() { # URL
	rm -f "$lab/loopback.ready"
	# shellcheck disable=SC2016
	client sh -c 'python3 -B "$1" --name loopback-service --log "$2/loopback.log" --ready "$2/loopback.ready" http:8000:127.0.0.1 &
		until [ -e "$2/loopback.ready" ]; do sleep 0.05; done
		shift 2; curl "$@"; status=$?; kill $!; exit $status' sh "$lab_here/web.py" "$lab" "${fetch_options[@]}" "$1"
}
loopback() { # URL REASON
	check 'without Pinfold' says loopback-service bare beside "$1"
	check 'without Pinfold, at the target' grep -q '^bytes 127.0.0.1 8000' "$lab/loopback.log"
	: >"$lab/loopback.log"
	lab_mark
	check 'with Pinfold' never loopback-service guarded beside "$1"
	check 'no connection at the target' test ! -s "$lab/loopback.log"
	check 'reason' audited "$2"
}
scenario 'a CNAME to localhost'
loopback http://localhost.cname.rebind.com:8000/ rebinding
scenario 'a CNAME to localhost in a signed zone'
loopback http://local.harbour.com:8000/ rebinding
scenario 'a public name for 127.0.0.1'
loopback http://127-0-0-1.only.rebind.com:8000/ rebinding
scenario 'a public name for 0.0.0.0'
loopback http://0-0-0-0.only.rebind.com:8000/ rebinding

scenario 'loopback by its own name and address works'
check 'localhost' says loopback-service guarded beside http://localhost:8000/
check '127.0.0.1' says loopback-service guarded beside http://127.0.0.1:8000/

scenario 'an exemption is by name and by range' "$LAB_LAN"
policy '{allow_private_answers: [harbour.com]}'
check 'by name' says private-admin-page guarded fetch http://lan.harbour.com/
check 'no other name' never private-admin-page guarded fetch http://10-77-0-10.only.rebind.com/
policy "{allow_private_cidrs: [10.77.0.0/24]}"
check 'by range' says private-admin-page guarded fetch http://n-range.10-77-0-10.only.rebind.com/
lab_end
