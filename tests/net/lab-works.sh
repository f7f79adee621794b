#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The lab itself: its servers answer, and each of its checks can fail. No Pinfold is needed.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start

scenario 'the servers answer, and write down what came' "$LAB_WEB" "$LAB_WEB6"
check 'HTTP over IPv4' says "web $LAB_WEB 80" fetch http://v4.harbour.com/
check 'HTTP over IPv6' says "web $LAB_WEB6 80" fetch http://v6.harbour.com/
check 'HTTPS' says 'host www.harbour.com' fetch https://www.harbour.com/
check 'a request was served' served "$LAB_WEB" 'GET / HTTP/1.1'
check 'packets came over IPv6' reached "$LAB_WEB6"
check 'the question is there' asked v4.harbour.com

scenario 'validation tells signed, unsigned and bogus apart'
check 'signed' says ' ad;' client dig www.quarry.net
check 'unsigned' says 'NOERROR' client dig www.plain.com
check 'unsigned is not called signed' never ' ad;' client dig www.plain.com
check 'bogus' says 'SERVFAIL' client dig www.bogus.com
check 'bogus, unchecked' says "$LAB_SECOND" client dig +cd +short www.bogus.com

scenario 'the lying authority lies as it is told'
check 'one' says 10.77.0.10 client dig +short 10-77-0-10.only.rebind.com
check 'first' says "$LAB_WEB" client dig +short 93-184-216-34.10-77-0-10.flip.rebind.com
check 'then' says 10.77.0.10 client dig +short 93-184-216-34.10-77-0-10.flip.rebind.com
check 'then for good' says 10.77.0.10 client dig +short 93-184-216-34.10-77-0-10.flip.rebind.com
check 'both' says 10.77.0.10 client dig +short 93-184-216-34.10-77-0-10.both.rebind.com
check 'both' says "$LAB_WEB" client dig +short 10-77-0-10.93-184-216-34.both.rebind.com
check 'hint' says 'ipv4hint=10.77.0.10' client dig +short HTTPS 93-184-216-34.10-77-0-10.hint.rebind.com
check 'CNAME' says 127.0.0.1 client dig +short localhost.cname.rebind.com
check 'IPv6' says ::ffff:169.254.169.254 client dig +short AAAA 0-0-0-0-0-ffff-a9fe-a9fe.only.rebind.com
check 'over TCP' says 10.77.0.10 client dig +tcp +short n-tcp.10-77-0-10.only.rebind.com "@$LAB_AUTH"
check 'it writes the questions down' grep -q 'question udp 10-77-0-10.only.rebind.com. A' "$lab/auth.log"

# fires TEXT: the scenario that just ran inside `trial` failed with this text.
trial() { (
	lab_scenario='' lab_number=0 lab_failures=0
	"$1"
	scenario_end
) >"$lab/trial.out" 2>&1; }
fires() { grep -q '^not ok' "$lab/trial.out" && grep -qF -- "$1" "$lab/trial.out"; }
stays_quiet() { grep -q '^ok' "$lab/trial.out"; }

stray() { scenario stray "$LAB_WEB"; fetch "http://$LAB_SECOND/"; }
stray6() { scenario stray "$LAB_WEB6"; fetch "http://[$LAB_SECOND6]/"; }
no_stray() { scenario fine "$LAB_SECOND"; fetch "http://$LAB_SECOND/"; }
not_reached() { scenario x "$LAB_WEB"; check 'no packet' reached "$LAB_WEB"; }
was_reached() { scenario x "$LAB_WEB"; fetch "http://$LAB_WEB/"; check 'a packet' unreached "$LAB_WEB"; }
was_reached6() { scenario x "$LAB_META64"; fetch "http://[$LAB_META64]/"; check 'a packet' unreached "$LAB_META64"; }
forgotten() { scenario x "$LAB_WEB"; fetch "http://$LAB_WEB/"; lab_mark; check 'no packet' unreached "$LAB_WEB"; check 'no byte' silent "$LAB_WEB"; }
unknown_address() { scenario x; check 'nobody' unreached 192.0.2.1; }
not_served() { scenario x "$LAB_WEB"; check 'no byte' served "$LAB_WEB"; }
was_served() { scenario x "$LAB_WEB"; fetch "http://$LAB_WEB/"; check 'bytes' silent "$LAB_WEB"; }
only_connected() { scenario x "$LAB_WEB"; client bash -c "exec 3<>/dev/tcp/$LAB_WEB/80"; wait_for 2 connected "$LAB_WEB"; check 'no byte' silent "$LAB_WEB"; }
was_asked() { scenario x; client dig second.harbour.com; check 'a question' unasked second.harbour.com; }
was_not_asked() { scenario x; check 'no question' asked nothing.harbour.com; }
wrong_text() { scenario x; check 'text' says this client echo that; }
leak() { scenario x; check 'text' never that client echo that; }
failing() { scenario x; check 'text' says that client sh -c 'echo that; exit 1'; }
no_audit() { scenario x; check 'reason' lab_audited metadata; }
slow() { scenario x; check 'slow' quickly sleep 1.6; }
unexpected() { scenario x; check_not 'works' true; }

# A Pinfold that lets everything through, and one that does not work at all, are found out by every twin run.
printf '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift; exec "$@"\n' >"$lab/open-pinfold"
printf '#!/bin/sh\nexit 2\n' >"$lab/dead-pinfold"
chmod +x "$lab/open-pinfold" "$lab/dead-pinfold"
open_twin() { scenario x "$LAB_META"; PINFOLD=$lab/open-pinfold twin "$LAB_META" secret-credentials metadata fetch "http://$LAB_META/"; }
open_bytes() { scenario x "$LAB_META"; PINFOLD=$lab/open-pinfold twin_bytes "$LAB_META" secret-credentials metadata fetch "http://$LAB_META/"; }
dead_twin() { scenario x "$LAB_META"; PINFOLD=$lab/dead-pinfold twin "$LAB_META" secret-credentials metadata fetch "http://$LAB_META/"; }
dead_attack() { scenario x "$LAB_META"; PINFOLD=$lab/dead-pinfold twin "$LAB_META" no-such-text metadata fetch "http://$LAB_META/"; }

scenario 'each check of the harness can fail' "$LAB_WEB"
while read -r name text; do
	trial "$name"
	check "$name" fires "$text"
done <<-END
	stray packets to addresses outside
	stray6 packets to addresses outside
	not_reached no packet
	was_reached a packet
	was_reached6 a packet
	unknown_address nobody
	not_served no byte
	was_served bytes
	was_asked a question
	was_not_asked no question
	wrong_text printed that
	leak printed that
	failing text
	no_audit reason
	slow took
	unexpected succeeded
	open_twin no packet at the target
	open_bytes no byte at the target
	dead_twin reason: audited
	dead_attack without Pinfold: says
END
for name in no_stray forgotten only_connected; do
	trial "$name"
	check "$name" stays_quiet
done
lab_guard "${LAB_SERVERS[@]}" "${LAB_SERVERS6[@]}"
lab_end
