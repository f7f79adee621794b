#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Cloud metadata services, in every way to name them. Each attack works without Pinfold.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
# What no policy can open: the most permissive one is used.
policy "{allow_hosts: [harbour.com, rebind.com], allow_private_answers: [harbour.com, rebind.com], allow_private_cidrs: [169.254.0.0/16], infrastructure: allow}"

literal() { # ADDRESS URL
	scenario "literal $2" "$1"
	twin "$1" secret-credentials metadata fetch "$2"
	check 'rule' audited metadata floor.txt:
}
literal "$LAB_META" "http://$LAB_META/latest/meta-data/"
literal "$LAB_META6" "http://[$LAB_META6]/"
literal "$LAB_META" "http://[$LAB_META_MAPPED]/"
literal "$LAB_META64" "http://[$LAB_META64]/"
literal "$LAB_META" http://2852039166/
literal "$LAB_META" http://0xa9.0376.43518/
literal "$LAB_AZURE" "http://$LAB_AZURE/"
literal "$LAB_ALIBABA" "http://$LAB_ALIBABA/"

scenario 'the name metadata.google.internal' "$LAB_META"
twin "$LAB_META" secret-credentials metadata fetch http://metadata.google.internal/
check 'it is never asked' unasked internal

named() { # NAME ADDRESS
	scenario "a public name that answers it: $1" "$2"
	twin "$2" secret-credentials metadata fetch "http://$1/"
}
named meta.harbour.com "$LAB_META"
named mapped.harbour.com "$LAB_META"
named nat64.harbour.com "$LAB_META64"
named cloud.harbour.com "$LAB_META"
named 169-254-169-254.only.rebind.com "$LAB_META"
named fd00-ec2-0-0-0-0-0-254.only.rebind.com "$LAB_META6"
named metadata.google.internal.cname.rebind.com "$LAB_META"

scenario 'an address of a good name with the Host of the service' "$LAB_META"
twin "$LAB_META" secret-credentials metadata fetch --resolve "www.harbour.com:80:$LAB_META" http://www.harbour.com/
lab_end
