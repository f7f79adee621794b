#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Keys and tokens on their way out: in the target of a cleartext request.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
policy
secret=ABCDEFGHIJKLMNOPQRSTuvwxyz0123456789 # behind its prefix
encoded() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n' | sed 's/../%&/g'; }
twice() { encoded "$1" | sed 's/%/%25/g'; }
kept_secret() { check 'the log does not hold it' never "$secret" lab_new audit; }

scenario 'a token in the query' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host v4.harbour.com' secret_url fetch "http://v4.harbour.com/?token=ghp_$secret"
check 'its shape' audited secret_url github-token
kept_secret

scenario 'a token in the query, over IPv6' "$LAB_WEB6"
twin_bytes "$LAB_WEB6" 'host v6.harbour.com' secret_url fetch "http://v6.harbour.com/?token=ghp_$secret"
kept_secret

scenario 'a token in the path' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host v4.harbour.com' secret_url fetch "http://v4.harbour.com/a/ghp_$secret/b"
kept_secret

scenario 'a token that is encoded, once and twice' "$LAB_WEB"
twin_bytes "$LAB_WEB" 'host v4.harbour.com' secret_url fetch "http://v4.harbour.com/?token=$(encoded "ghp_$secret")"
twin_bytes "$LAB_WEB" 'host v4.harbour.com' secret_url fetch "http://v4.harbour.com/?off=10%&token=$(twice "ghp_$secret")"
kept_secret

scenario 'a token in the second request of a connection' "$LAB_WEB"
check 'the first is answered' says 'host v4.harbour.com' guarded client sh -c 'curl "$@"; true' sh \
	"${fetch_options[@]}" http://v4.harbour.com/ --next "${fetch_options[@]}" "http://v4.harbour.com/?token=ghp_$secret"
check 'the second does not leave' never "$secret" lab_new web
check 'reason' audited secret_url github-token

scenario 'what only looks like one' "$LAB_WEB"
check 'a word with the prefix inside' says 'host v4.harbour.com' guarded fetch "http://v4.harbour.com/highp_$secret"
check 'a long target' says 'host v4.harbour.com' guarded fetch "http://v4.harbour.com/?$(printf 'ey-%.0s' $(seq 5000))"

scenario 'a policy that lets them pass' "$LAB_WEB"
policy '{block_secret_bearing_urls: false}'
check 'it is sent' says 'host v4.harbour.com' guarded fetch "http://v4.harbour.com/?token=ghp_$secret"
lab_end
