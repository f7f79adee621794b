#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The options of a policy that have an effect in the kernel path and no script of their own: each shut and open, one
# service, one guest, a reload between them.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
lab_guests || lab_fatal 'no guests'
vm() { lab_runner=(in_guest 1) && "$@"; }
bytes_to() { # ADDRESS PORT TEXT: what comes back
	client bash -c "exec 3<>/dev/tcp/$1/$2; printf '$3' >&3; timeout 3 head -c 12 <&3"
}
packet() { # PROTOCOL ADDRESS PORT: what answers a datagram, an echo request, or a packet of a protocol of its own
	client python3 -c 'import socket, sys
kind, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
raw = socket.SOCK_RAW
if kind == "udp":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
else:
    s = socket.socket(socket.AF_INET, raw, socket.IPPROTO_ICMP if kind == "icmp" else 253)
s.settimeout(2)
s.connect((address, port))
s.send(bytes.fromhex("0800f7ff00000000") if kind == "icmp" else b"x" * 64)
if kind != "other":
    print("answered", s.recv(100)[:3])' "$@"
}
ask() { client dig +time=3 +tries=1 "$@"; }

configuration() { # POLICY
	lab_resolver_yaml '"10.88.1.1@53"' '10.88.0.0/16'
	printf '%s\n' 'gate: {hook: forward}' 'clients: [{name: guest, interface: vm1}]' "policies: {default: $1}"
}
under() { # POLICY
	{
		printf 'log: {file: %s}\ncontrol: {socket: %s}\n' "$lab/audit.log" "$lab/control.sock"
		configuration "$1"
	} >"$lab/daemon.yaml"
	in_host "$PINFOLD" reload -c "$lab/daemon.yaml" >"$lab/reload.out" 2>&1 || lab_problems+=("reload: $(cat "$lab/reload.out")")
	lab_mark
}
daemon_start "$(configuration '{}')" || lab_fatal 'the daemon does not start'

scenario 'mode: audit reports and refuses nothing but the floor' "$LAB_WEB" "$LAB_SECOND" "$LAB_META"
under '{mode: audit, default: deny, literals: deny}'
check 'a name that is not listed' says "web $LAB_WEB" vm fetch http://v4.harbour.com/
check 'reported' audited not_allowlisted '"enforced":false'
check 'a literal' says "web $LAB_SECOND" vm fetch "http://$LAB_SECOND/"
check 'HTTPS' says 'host www.harbour.com' vm fetch -4 https://www.harbour.com/
check 'a protocol of its own is read by nobody' vm bytes_to "$LAB_WEB" 80 'HELO me\r\n\r\n'
check 'reported' audited scheme '"enforced":false'
check 'it arrives' served "$LAB_WEB" HELO
check 'a datagram' says answered vm packet udp "$LAB_WEB" 9999
check 'reported' audited protocol '"enforced":false'
check 'the floor' never secret-credentials vm fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'its name' never secret-credentials vm fetch http://metadata.google.internal/
check 'refused' audited metadata '"enforced":true'

scenario 'default: deny, allowed_origins: scheme, host and port; *.x without the apex' "$LAB_WEB"
under '{default: deny, allowed_origins: ["http://*.harbour.com", "https://www.quarry.net", "http://www.plain.com:8080"]}'
check 'a child' says "web $LAB_WEB" vm fetch http://v4.harbour.com/
check 'the exact host' says 'host www.quarry.net' vm fetch -4 https://www.quarry.net/
check 'the port' says 'host www.plain.com' vm fetch http://www.plain.com:8080/
lab_mark
check 'the apex' never web vm fetch http://harbour.com/
check 'the apex' unreached "$LAB_WEB"
check 'reason' audited not_allowlisted
check 'another scheme' never 'host v4' vm fetch -4 https://v4.harbour.com/
check 'another scheme of the exact host' never 'host www.quarry.net' vm fetch -4 http://www.quarry.net/
check 'another port' never 'host v4' vm fetch http://v4.harbour.com:8080/
check 'the default port where another is written' never 'host www.plain' vm fetch http://www.plain.com/
check 'a child of the exact host' never 'host own' vm fetch -4 https://own.quarry.net/
check 'a literal' never web vm fetch "http://$LAB_WEB/"
check 'no byte' silent "$LAB_WEB"

scenario 'names are canonical once: case, trailing dot, U-labels' "$LAB_WEB"
under '{default: deny, allow_hosts: ["BÜCHER.Harbour.com.", "V4.HARBOUR.COM:80"]}'
check 'its A-label' says "web $LAB_WEB" vm fetch http://xn--bcher-kva.harbour.com/
check 'case' says "web $LAB_WEB" vm fetch http://v4.harbour.COM/
check 'trailing dot' says "web $LAB_WEB" vm fetch http://v4.harbour.com./
lab_mark
check 'another' never web vm fetch http://www.harbour.com/
check 'no packet' unreached "$LAB_WEB"

scenario 'allow_raw: first bytes are not read there, and only there' "$LAB_WEB" "$LAB_SECOND"
under '{allow_raw: ["'"$LAB_WEB"':8080"]}'
check 'listed' vm bytes_to "$LAB_WEB" 8080 'SSH-2.0-x\r\n\r\n'
check 'it arrives' served "$LAB_WEB" SSH
lab_mark
check 'another port' never 'HTTP' vm bytes_to "$LAB_WEB" 80 'SSH-2.0-x\r\n\r\n'
check 'another address' never 'HTTP' vm bytes_to "$LAB_SECOND" 8080 'SSH-2.0-x\r\n\r\n'
check 'no byte' silent "$LAB_WEB"
check 'no byte' silent "$LAB_SECOND"
check 'reason' audited scheme
under '{allow_raw: ["v4.harbour.com:8080"], default: deny, allow_hosts: [v4.harbour.com]}'
check 'without a pin' never HTTP vm bytes_to "$LAB_SECOND" 8080 'SSH-2.0-x\r\n\r\n'
check 'its address' ask +short v4.harbour.com A
vm ask v4.harbour.com A >/dev/null
check 'by name' vm bytes_to "$LAB_WEB" 8080 'SSH-2.0-x\r\n\r\n'
check 'it arrives' served "$LAB_WEB" SSH

scenario 'udp, icmp, other' "$LAB_WEB"
under '{}'
for kind in udp icmp; do
	check "$kind" never answered vm packet "$kind" "$LAB_WEB" 9999
done
check 'no packet' unreached "$LAB_WEB"
check 'reason' audited protocol
lab_mark
vm packet other "$LAB_WEB" 0 >/dev/null 2>&1
check 'a protocol of its own' audited protocol
under '{udp: allow, icmp: allow, other: allow}'
check 'udp' says answered vm packet udp "$LAB_WEB" 9999
check 'icmp' says answered vm packet icmp "$LAB_WEB" 0
check 'other' vm packet other "$LAB_WEB" 0
check 'not reported' never '"protocol"' lab_new audit
check 'UDP 443 all the same' never answered vm packet udp "$LAB_WEB" 443
check 'reason' audited protocol

scenario 'infrastructure of the providers' "$LAB_META"
under '{udp: allow}'
check 'their DNS' never status: vm ask "@$LAB_META" www.harbour.com
check 'no packet' unreached "$LAB_META"
check 'reason' audited infrastructure
under '{infrastructure: allow}'
vm ask "@$LAB_META" www.harbour.com >/dev/null
check 'open' reached "$LAB_META"
lab_mark
check 'the floor beside it' never secret-credentials vm fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"

scenario 'a private network that is shut, and what opens a part of it' "$LAB_LAN"
under '{allow_private_network: false}'
check 'shut' never private-admin-page vm fetch "http://$LAB_LAN/"
check 'no packet' unreached "$LAB_LAN"
check 'reason' audited private_address
under '{allow_private_network: false, allow_private_cidrs: [10.77.0.0/24]}'
check 'a range' says private-admin-page vm fetch "http://$LAB_LAN/"
check 'a public name into the range' says private-admin-page vm fetch http://lan.harbour.com/
under '{allow_private_network: false, allow_private_answers: [lan.harbour.com]}'
check 'a name opens no address' never private-admin-page vm fetch http://lan.harbour.com/
check 'no packet' unreached "$LAB_LAN"
under '{allow_private_answers: [lan.harbour.com]}'
check 'where the network is open' says private-admin-page vm fetch http://lan.harbour.com/

scenario 'proxies: the target of a request to one is judged by its name' "$LAB_SECOND"
through() { client curl --silent --show-error --max-time 5 --noproxy "" --proxy "http://$LAB_SECOND:8080" "$@"; }
under '{}'
check 'not listed' never 'host v4' vm through http://v4.harbour.com/
check 'no byte' silent "$LAB_SECOND"
check 'reason' audited name_mismatch
under '{default: deny, allow_hosts: [v4.harbour.com, "'"$LAB_SECOND"':8080"], proxies: ["'"$LAB_SECOND"':8080"]}'
check 'an allowed target' says 'host v4' vm through http://v4.harbour.com/
lab_mark
check 'another target' never 'host www' vm through http://www.quarry.net/
check 'a floor target' never 'host metadata' vm through http://metadata.google.internal/
check 'no byte' silent "$LAB_SECOND"
check 'reason' audited metadata

scenario 'strip_ech and block_encrypted_dns'
under '{}'
check 'no ech' never ech= vm ask +noall +answer hello.harbour.com HTTPS
check 'the rest of it' says alpn= vm ask +noall +answer hello.harbour.com HTTPS
check 'a provider' says NXDOMAIN vm ask cloudflare-dns.com
check 'reason' audited encrypted_dns
check 'nobody is asked' unasked cloudflare-dns.com
under '{strip_ech: false, block_encrypted_dns: false}'
check 'ech' says ech= vm ask +noall +answer hello.harbour.com HTTPS
vm ask cloudflare-dns.com >/dev/null
check 'asked' asked cloudflare-dns.com
lab_end
