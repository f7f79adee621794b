#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# `pinfold daemon` on the output hook, two users as clients, and what may happen to it: killed children, a flushed
# rule set, a reload. Nothing in any failure opens a path.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
one() { lab_runner=(as_uid 4001) && "$@"; }
two() { lab_runner=(as_uid 4002) && "$@"; }
other() { lab_runner=(as_uid 4003) && "$@"; }
foreign_pin() { fetch --resolve "www.quarry.net:80:$LAB_WEB" http://www.quarry.net/; }

scenario 'without Pinfold all of this works' "$LAB_WEB" "$LAB_META"
check 'HTTP' says "web $LAB_WEB" one fetch http://v4.harbour.com/
check 'metadata' says secret-credentials one fetch "http://$LAB_META/"
check 'a name of another client' says 'host www.quarry.net' two foreign_pin

# Something of somebody else's, in the chains that ours jump from. Empty tables are none.
in_host iptables -A OUTPUT -d 198.51.100.7 -j DROP
in_host iptables -t mangle -A OUTPUT -d 198.51.100.7 -j MARK --set-xmark 0x1/0x1
rules() { in_host sh -c 'iptables-save; ip6tables-save' | grep -E '^-A|^:.* -' ; }
rules >"$lab/rules.before"
daemon_start "$(lab_resolver_yaml '"127.0.0.1@53"' '127.0.0.0/8')
gate: {hook: output}
clients:
  - {name: one, uid: 4001, policy: default}
  - {name: two, uid: 4002, policy: default}
policies:
  default: {}" || lab_fatal 'the daemon does not start'

scenario 'users are clients' "$LAB_WEB" "$LAB_META"
check 'HTTP' says "web $LAB_WEB" one fetch http://v4.harbour.com/
check 'HTTPS' says 'host www.harbour.com' two fetch -4 https://www.harbour.com/
check 'metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'its owner' says 'host www.quarry.net' one fetch -4 http://www.quarry.net/
lab_mark
check 'the pin of another client' never 'host www.quarry.net' two foreign_pin
check 'no byte' silent "$LAB_WEB"
check 'reason' audited name_mismatch
check 'client' audited name_mismatch '"two"'
check 'somebody who is no client is not governed' says secret-credentials other fetch "http://$LAB_META/"

pinned() { fetch --resolve "v4.harbour.com:80:$LAB_WEB" http://v4.harbour.com/; }
child_is_new() { local now; now=$(daemon_child "$1") && [[ $now != "$2" ]]; }

scenario 'the gate is killed: closed until it is back, pins survive' "$LAB_WEB" "$LAB_META"
check 'before' says "web $LAB_WEB" one fetch http://v4.harbour.com/
gate=$(daemon_child pinfold-gate)
kill -STOP "$daemon_pid" # so that nobody restarts it yet
kill -KILL "$gate"
lab_mark
check 'no gate: nothing passes' never web one pinned
check 'no gate: no packet' unreached "$LAB_WEB"
check 'no gate: metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'no gate: no packet' unreached "$LAB_META"
kill -CONT "$daemon_pid"
check 'it is restarted' wait_for 5 child_is_new pinfold-gate "$gate"
check 'the pin is still there' wait_for 5 says "web $LAB_WEB" one pinned
check 'metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"

scenario 'the resolver is killed: no new pins until it is back' "$LAB_WEB" "$LAB_META"
resolver=$(daemon_child pinfold-resolver)
kill -STOP "$daemon_pid"
kill -KILL "$resolver"
check 'a pinned name works on' says "web $LAB_WEB" one pinned
check 'nothing is resolved' never web one fetch --max-time 2 http://www.plain.com/
kill -CONT "$daemon_pid"
check 'it is restarted' wait_for 5 child_is_new pinfold-resolver "$resolver"
check 'it resolves again' wait_for 5 says "web $LAB_WEB" one fetch http://www.plain.com/

scenario 'another tool flushes our rules: closed or repaired' "$LAB_WEB" "$LAB_META"
in_host iptables -t mangle -F
lab_mark
check 'mangle flushed: metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'mangle flushed: no packet' unreached "$LAB_META"
check 'repaired' wait_for 8 says "web $LAB_WEB" one fetch http://v4.harbour.com/
for table in mangle filter; do # and what is somebody else's goes with it
	in_host iptables -t "$table" -F && in_host iptables -t "$table" -X
	in_host ip6tables -t "$table" -F && in_host ip6tables -t "$table" -X
done
repaired() { in_host "$PINFOLD" rules verify -c "$lab/daemon.yaml" >"$lab/verify.out" 2>&1; }
check 'everything flushed: noticed and repaired' wait_for 8 repaired
lab_mark
check 'then metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'then no packet' unreached "$LAB_META"
in_host iptables -A OUTPUT -d 198.51.100.7 -j DROP
in_host iptables -t mangle -A OUTPUT -d 198.51.100.7 -j MARK --set-xmark 0x1/0x1
check 'then HTTP' says "web $LAB_WEB" one fetch http://v4.harbour.com/

scenario 'reload: an error keeps the running policy, a good one replaces it' "$LAB_WEB"
cp "$lab/daemon.yaml" "$lab/daemon.good"
printf 'nonsense: [\n' >>"$lab/daemon.yaml"
check_not 'an error' in_host "$PINFOLD" reload -c "$lab/daemon.good"
check 'works on' says "web $LAB_WEB" one fetch http://v4.harbour.com/
sed 's/default: {}/default: {block_hosts: [harbour.com]}/' "$lab/daemon.good" >"$lab/daemon.yaml"
check 'a good one' in_host "$PINFOLD" reload -c "$lab/daemon.yaml"
lab_mark
check 'refused now' never "web $LAB_WEB" one fetch http://v4.harbour.com/
check 'no packet' unreached "$LAB_WEB"

scenario 'it ends closed, and the rules go without a trace' "$LAB_WEB"
daemon_stop
check 'orderly end' test "$daemon_status" = 0
check 'no process' never pinfold ps -e -o comm=
check 'closed' never web one fetch --max-time 2 "http://$LAB_WEB/"
check 'no packet' unreached "$LAB_WEB"
check 'removed' in_host "$PINFOLD" rules remove -c "$lab/daemon.yaml"
rules >"$lab/rules.after"
check 'the rule set is as it was' cmp "$lab/rules.before" "$lab/rules.after"
check 'open' says "web $LAB_WEB" one fetch http://v4.harbour.com/
lab_end
