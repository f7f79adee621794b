#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Names and pins: what a connection says it is for must be what was resolved, and what policy allows.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
policy

scenario 'the Host of another name on the same address' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host www.quarry.net' name_mismatch fetch -4 --header 'Host: www.quarry.net' http://www.harbour.com/

scenario 'the Host of another name on the same address, over IPv6' "$LAB_WEB6"
twin_bytes "$LAB_WEB6" 'host www.quarry.net' name_mismatch fetch -6 --header 'Host: www.quarry.net' http://www.harbour.com/

scenario 'the SNI of another name on the same address' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host www.quarry.net' name_mismatch fetch -4 \
	--connect-to www.quarry.net:443:www.harbour.com:443 https://www.quarry.net/

scenario 'the SNI of another name, by openssl' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'Server certificate' name_mismatch client sh -c \
	"echo | openssl s_client -connect v4.harbour.com:443 -servername www.quarry.net -CAfile $lab/ca.pem"

scenario 'an absolute target that disagrees with Host' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host v4.harbour.com' name_mismatch fetch --request-target http://www.quarry.net/ http://v4.harbour.com/

scenario 'a second request for another name on a kept-alive connection' "$LAB_WEB"
check 'without Pinfold' says 'host www.quarry.net' bare fetch http://v4.harbour.com/ --next "${fetch_options[@]}" \
	--header 'Host: www.quarry.net' http://v4.harbour.com/
lab_mark
check 'with Pinfold, the first' says 'host v4.harbour.com' guarded client sh -c 'curl "$@"; true' sh "${fetch_options[@]}" http://v4.harbour.com/ \
	--next "${fetch_options[@]}" --header 'Host: www.quarry.net' http://v4.harbour.com/
check 'no second request' never www.quarry.net lab_new web
check 'reason' audited name_mismatch

scenario 'a name that was never resolved' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host www.quarry.net' name_mismatch fetch --resolve "www.quarry.net:80:$LAB_WEB" http://www.quarry.net/

scenario 'a request without Host' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host -' malformed fetch --header 'Host:' http://v4.harbour.com/

scenario 'a protocol that is neither HTTP nor TLS' "$LAB_WEB"
raw() { client bash -c "exec 3<>/dev/tcp/$LAB_WEB/80; printf 'HELO me\r\n\r\n' >&3; timeout 3 head -c 20 <&3"; }
twin_bytes "$LAB_WEB" 'HTTP/1.1 200' scheme raw

scenario 'literals: deny' "$LAB_WEB" "$LAB_SECOND"
policy '{literals: deny}'
twin "$LAB_SECOND" "web $LAB_SECOND" unpinned fetch "http://$LAB_SECOND/"
check 'a name still works' says "web $LAB_WEB" guarded fetch http://v4.harbour.com/

scenario 'default: deny, a literal' "$LAB_WEB" "$LAB_SECOND"
policy '{default: deny, allow_hosts: [harbour.com]}'
twin "$LAB_SECOND" "web $LAB_SECOND" not_allowlisted fetch "http://$LAB_SECOND/"
check 'the allowed name works' says "web $LAB_WEB" guarded fetch http://v4.harbour.com/

scenario 'default: deny, a literal that an allowed name has' "$LAB_WEB"
twin_bytes "$LAB_WEB" "web $LAB_WEB" not_allowlisted fetch "http://$LAB_WEB/"

scenario 'default: deny, another name' "$LAB_WEB"
twin "$LAB_WEB" 'host www.quarry.net' not_allowlisted fetch -4 http://www.quarry.net/
check 'it is never asked' unasked quarry.net

scenario 'allowed_origins: scheme and port' "$LAB_WEB"
policy '{default: deny, allowed_origins: ["https://v4.harbour.com"]}'
check 'https' says "web $LAB_WEB 443" guarded fetch https://v4.harbour.com/
twin "$LAB_WEB" "web $LAB_WEB 80" not_allowlisted fetch http://v4.harbour.com/

scenario 'block_hosts, and a CNAME into it' "$LAB_WEB"
policy '{block_hosts: [www.harbour.com]}'
twin "$LAB_WEB" 'host www.harbour.com' blocked_host fetch -4 http://www.harbour.com/
check 'it is never asked' unasked www.harbour.com
lab_mark
check 'CNAME' never 'host shop' guarded fetch -4 http://shop.harbour.com/
check 'CNAME: no packet' unreached "$LAB_WEB"
check 'CNAME: reason' audited blocked_host

scenario 'another resolver, over UDP' "$LAB_OTHER"
elsewhere() { client dig +short +time=2 +tries=1 "$@" "@$LAB_OTHER" elsewhere.harbour.com; }
check 'without Pinfold' says "$LAB_SECOND" bare elsewhere
lab_mark
check 'with Pinfold' never "$LAB_SECOND" guarded elsewhere
check 'no packet at the target' unreached "$LAB_OTHER"
check 'reason' audited protocol

scenario 'another resolver, over TCP' "$LAB_OTHER"
check 'without Pinfold' says "$LAB_SECOND" bare elsewhere +tcp
lab_mark
check 'with Pinfold' never "$LAB_SECOND" guarded elsewhere +tcp
check 'no question at the target' never question lab_new other
check 'reason' audited scheme

scenario 'a datagram, to another port and to QUIC'"'"'s' "$LAB_WEB"
datagram() {
	client python3 -c 'import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(2)
s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b"x" * 1200)
print(s.recv(100))' "$LAB_WEB" "$1"
}
for port in 9999 443; do
	lab_mark
	twin "$LAB_WEB" "b'web" protocol datagram "$port"
done
lab_end
