#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# packaging/ci/pinfold-ci: a job of another user tries what it should not reach; the summary tells.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
lab_stop_unbound
ci() { in_host env PINFOLD="$PINFOLD" "$lab_top/packaging/ci/pinfold-ci" "$@"; }
resolver="root_hints: $lab/zones/root.hints, trust_anchor: $lab/zones/root.anchor"
job() { lab_runner=(as_uid 4001) && "$@"; }
agent() { lab_runner=(as_uid 4003) && "$@"; }
names() { in_host cat /etc/resolv.conf; }
names >"$lab/names.before"

scenario 'enforced: the listed host and nothing else' "$LAB_WEB" "$LAB_SECOND"
check 'start' says enforced: ci start --uid 4001 --allow v4.harbour.com --resolver "$resolver"
check 'the listed host' says "web $LAB_WEB" job fetch http://v4.harbour.com/
check 'an unlisted registry' never 'host www.quarry.net' job fetch http://www.quarry.net/
check 'metadata' never secret-credentials job fetch "http://$LAB_META/"
check 'another resolver' never "$LAB_SECOND" job client dig +time=1 +tries=1 +short "@$LAB_OTHER" v4.harbour.com
check 'DoH by literal' never web job fetch -k "https://$LAB_SECOND/dns-query"
check 'no packet' unreached "$LAB_META"
check 'no packet' unreached "$LAB_SECOND"
check 'the agent is not governed' says "web $LAB_WEB" agent fetch "http://$LAB_WEB/"
ci stop --summary "$lab/summary.md" --fail-on-refusal >"$lab/stop.out" 2>&1
check 'refusals are a failure if asked' test $? = 1
check 'told: metadata' grep -q '^| 169.254.169.254 | 80/tcp | metadata |' "$lab/summary.md"
check 'told: the registry' grep -q '^| www.quarry.net | .*allowlisted' "$lab/summary.md"
check 'told: what was reached' grep -q '^| v4.harbour.com | 80/tcp | 1 |' "$lab/summary.md"
check 'names are back' test "$(names)" = "$(<"$lab/names.before")"
check 'rules are gone' test -z "$(in_host sh -c 'iptables-save; ip6tables-save' | grep PF-)"

scenario 'audit: it passes, and the list is suggested' "$LAB_WEB"
check 'start' ci start --uid 4001 --audit --resolver "$resolver"
check 'passes' says "web $LAB_WEB" job fetch http://v4.harbour.com/
check 'but metadata' never secret-credentials job fetch "http://$LAB_META/"
check 'stop' ci stop --summary "$lab/audit.md"
check 'suggested' grep -q 'v4.harbour.com' <(sed -n '/Suggested/,$p' "$lab/audit.md")

scenario 'it says what is wrong'
check_not 'root' ci start --uid 0
check_not 'nothing to stop' ci stop
lab_end
