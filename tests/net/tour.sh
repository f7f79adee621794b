#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The tour: one curl after the other in the lab, each without Pinfold and with it, as a table.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"

if [[ -t 1 ]]; then bold=$'\e[1m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'; else bold='' red='' green='' plain=''; fi

printf 'Building a small internet in network namespaces: signed root, TLDs and zones, a web site,\n'
printf 'a rebinding site, a metadata service, a private machine …\n'
lab_start
lab_guard "${LAB_SERVERS[@]}" "${LAB_SERVERS6[@]}" "$LAB_WEB" "$LAB_WEB6" "$LAB_SECOND" "$LAB_LAN" "$LAB_LAN6" "$LAB_META" "$LAB_META6" "$LAB_META64"

wrong=0
row_format='%-55s %-9s %s%-7s%s %-17s %s\n'

# The reason of the newest denial.
tour_reason() { lab_new audit | grep -oE '"reason": ?"[^"]*"' | tail -n 1 | sed 's/.*"\([^"]*\)"$/\1/'; }

# tour WHAT EXPECTED TARGET COMMAND…: runs it twice and prints a line.
tour() {
	local what=$1 expected=$2 target=$3 without=fails verdict=allow reason=- colour=$green saw=no
	shift 3
	lab_mark
	bare "$@" >/dev/null 2>&1
	! served "$target" || without=works
	lab_mark
	guarded "$@" >/dev/null 2>&1 || verdict=deny colour=$red
	! served "$target" || saw=yes
	if [[ $verdict == deny ]]; then
		wait_for 2 lab_audited '[a-z0-9_]+'
		reason=$(tour_reason)
	fi
	# shellcheck disable=SC2059
	printf "$row_format" "$what" "$without" "$colour" "$verdict" "$plain" "${reason:=none}" "$saw"
	case $expected/$verdict/$saw/$without/$reason in
	*/none) wrong=$((wrong + 1)) ;; # every denial has one
	allow/allow/yes/works/- | deny/deny/no/works/*) ;;
	*) wrong=$((wrong + 1)) ;;
	esac
}

policy
# shellcheck disable=SC2059
printf "\n$bold$row_format$plain" 'curl under the default policy' 'without' '' 'with' '' 'reason' 'target saw a byte'
tour 'http://v4.harbour.com/' allow "$LAB_WEB" fetch http://v4.harbour.com/
tour 'https://v6.harbour.com/  (IPv6)' allow "$LAB_WEB6" fetch https://v6.harbour.com/
tour 'http://169.254.169.254/  (metadata)' deny "$LAB_META" fetch "http://$LAB_META/"
tour 'http://[64:ff9b::a9fe:a9fe]/  (the same, NAT64)' deny "$LAB_META64" fetch "http://[$LAB_META64]/"
tour 'http://metadata.google.internal/' deny "$LAB_META" fetch http://metadata.google.internal/
tour 'http://meta.harbour.com/  (signed, answers it)' deny "$LAB_META" fetch http://meta.harbour.com/
tour 'http://lan.harbour.com/  (public name, private address)' deny "$LAB_LAN" fetch http://lan.harbour.com/
flips=0
flip() { # a name of its own each time
	flips=$((flips + 1))
	client sh -c 'curl "$@" && curl "$@"' sh -4 "${fetch_options[@]}" "http://n-$flips.93-184-216-34.10-77-0-10.flip.rebind.com/"
}
tour 'first the site, then 10.77.0.10, TTL 0' deny "$LAB_LAN" flip
tour 'Host of another name on the same address' deny "$LAB_WEB" fetch --header 'Host: www.quarry.net' http://v4.harbour.com/
tour 'SNI of another name on the same address' deny "$LAB_WEB" fetch --connect-to www.quarry.net:443:v4.harbour.com:443 https://www.quarry.net/

policy '{default: deny, allow_hosts: [harbour.com]}'
# shellcheck disable=SC2059
printf "\n$bold$row_format$plain" 'default: deny, allow_hosts: [harbour.com]' 'without' '' 'with' '' 'reason' 'target saw a byte'
tour 'https://v4.harbour.com/' allow "$LAB_WEB" fetch https://v4.harbour.com/
tour 'http://own.quarry.net/' deny "$LAB_SECOND" fetch http://own.quarry.net/
tour "http://$LAB_SECOND/" deny "$LAB_SECOND" fetch "http://$LAB_SECOND/"

printf '\nColumn "without": the same command on a host that has no Pinfold. Every refusal is one JSON line, for instance\n\n'
tail -n 1 "$lab/audit.log" 2>/dev/null
printf '\nYour turn: ./run -- COMMAND, and build/cli/pinfold explain --help\n'
((wrong == 0)) || { printf '\n%d lines are not as they should be.\n' "$wrong"; exit 1; }
