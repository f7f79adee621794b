# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The zones of the lab, signed when the lab starts, one key each:
#
#     .  signed
#     ├── com  signed
#     │   ├── harbour.com  signed; honest names, and rebinding ones that DNSSEC vouches for
#     │   ├── plain.com    unsigned
#     │   ├── bogus.com    signed, then changed
#     │   └── rebind.com   unsigned, authority.py
#     ├── net  signed
#     │   └── quarry.net   signed; shares an address with harbour.com
#     └── internal  unsigned: what a cloud's own resolver adds
#         └── google.internal

ZONES_LEAF=(harbour.com plain.com bogus.com quarry.net google.internal)

zone_file() { if [[ $1 == . ]]; then echo root.zone; else echo "$1.zone"; fi; }

zones_head() { # ZONE SERVER
	printf '$ORIGIN %s\n$TTL 300\n@ SOA ns.%s hostmaster.%s 1 3600 600 86400 60\n' "${1%.}." "$2" "$2"
}

zones_harbour() {
	cat <<-END
		@       NS    ns
		ns      A     $LAB_ZONES
		ns      AAAA  $LAB_ZONES6
		www     A     $LAB_WEB
		www     AAAA  $LAB_WEB6
		@       A     $LAB_WEB
		v4      A     $LAB_WEB
		v6      AAAA  $LAB_WEB6
		second  A     $LAB_SECOND
		shop    CNAME www
		quic    A     $LAB_QUIC
		quic    AAAA  $LAB_QUIC6
		*.loop  A     $LAB_WEB
		meta    A     $LAB_META
		mapped  AAAA  $LAB_META_MAPPED
		nat64   AAAA  $LAB_META64
		lan     A     $LAB_LAN
		local   CNAME localhost.
		cloud   CNAME metadata.google.internal.
		hint    A     $LAB_WEB
		hint    HTTPS 1 . ipv4hint=$LAB_LAN
		hello   HTTPS 1 . alpn=h2 ech=AEX+DQBBpQAgACB0hKmFEW5pRkpZ2p8s4ym7dSqVIgDn8XNFkR8yYMNnGwAEAAEAAQASY2xvdWRmbGFyZS1lY2guY29tAAA=
		xn--bcher-kva A $LAB_WEB
		text    TXT   "plain words"
	END
	local i
	for ((i = 0; i < ${LAB_NAMES:-0}; i++)); do # for benchmarks: names with an address each
		printf 'n%d.many A 93.184.%d.%d\n' "$i" $((100 + i / 250)) $((i % 250 + 1))
	done
}

zones_leaf() {
	case $1 in
	harbour.com) zones_harbour ;;
	plain.com) printf '%s\n' '@ NS ns' "ns A $LAB_ZONES" "ns AAAA $LAB_ZONES6" "www A $LAB_WEB" ;;
	bogus.com) printf '%s\n' '@ NS ns' "ns A $LAB_ZONES" "ns AAAA $LAB_ZONES6" "www A $LAB_WEB" ;;
	quarry.net) printf '%s\n' '@ NS ns' "ns A $LAB_ZONES" "ns AAAA $LAB_ZONES6" "www A $LAB_WEB" "www AAAA $LAB_WEB6" "own A $LAB_SECOND" "quic A $LAB_QUIC" ;;
	google.internal) printf '%s\n' '@ NS ns' "ns A $LAB_ZONES" "ns AAAA $LAB_ZONES6" "metadata A $LAB_META" ;;
	esac
}

# zones_delegation NAME NS ADDRESS ADDRESS6: with DS when a key of NAME is there.
zones_delegation() {
	printf '%s. NS ns.%s.\nns.%s. A %s\nns.%s. AAAA %s\n' "$1" "$1" "$1" "$2" "$1" "$3"
	cat "K$1.+"*.ds 2>/dev/null
}

zones_sign() { # ZONE
	local file key
	file=$(zone_file "$1")
	key=$(echo "K${1%.}.+"*.key)
	ldns-signzone "$file" "${key%.key}" && mv "$file.signed" "$file"
}

zones_make() ( # DIRECTORY
	set -e
	mkdir -p "$1"
	cd "$1"
	for zone in harbour.com bogus.com quarry.net com net .; do
		ldns-keygen -k -a ECDSAP256SHA256 "$zone" >/dev/null &
	done
	wait
	for zone in "${ZONES_LEAF[@]}"; do
		{ zones_head "$zone" "$zone." && zones_leaf "$zone"; } >"$zone.zone"
	done
	{
		zones_head com com. && printf '@ NS ns\nns A %s\nns AAAA %s\n' "$LAB_TLD" "$LAB_TLD6"
		for zone in harbour.com plain.com bogus.com; do zones_delegation "$zone" "$LAB_ZONES" "$LAB_ZONES6"; done
		zones_delegation rebind.com "$LAB_AUTH" "$LAB_AUTH6"
	} >com.zone
	{
		zones_head net net. && printf '@ NS ns\nns A %s\nns AAAA %s\n' "$LAB_TLD" "$LAB_TLD6"
		zones_delegation quarry.net "$LAB_ZONES" "$LAB_ZONES6"
	} >net.zone
	{
		zones_head internal internal. && printf '@ NS ns\nns A %s\nns AAAA %s\n' "$LAB_TLD" "$LAB_TLD6"
		zones_delegation google.internal "$LAB_ZONES" "$LAB_ZONES6"
	} >internal.zone
	{
		zones_head . a.root. && printf '@ NS a.root.\na.root. A %s\na.root. AAAA %s\n' "$LAB_ROOT" "$LAB_ROOT6"
		for zone in com net internal; do zones_delegation "$zone" "$LAB_TLD" "$LAB_TLD6"; done
		# The real root has no localhost, but many a resolver answers it: the attack gets its best chance.
		printf 'localhost. A 127.0.0.1\n'
	} >root.zone
	for zone in harbour.com bogus.com quarry.net com net .; do zones_sign "$zone" & done
	wait
	# Same signature, another address.
	sed -i "s/^\(www\.bogus\.com\..*\tA\t\).*/\1$LAB_SECOND/" bogus.com.zone
	grep -q "^www\.bogus\.com\..*$LAB_SECOND" bogus.com.zone
	printf '. 3600000 NS a.root.\na.root. 3600000 A %s\na.root. 3600000 AAAA %s\n' "$LAB_ROOT" "$LAB_ROOT6" >root.hints
	cat K.+*.key >root.anchor
)
