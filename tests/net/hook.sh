#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The hook, asked by the whole service: what its word lifts and what it does not, and that nothing it does opens a path
# or holds up somebody else.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
one() { lab_runner=(as_uid 4001) && "$@"; }
two() { lab_runner=(as_uid 4002) && "$@"; }
example=$lab_top/packaging/examples/hook.py
socket=$lab/hook.sock

hook_table() { printf '%s\n' "$@" >"$lab/table.txt"; }
hook_start() { # PROGRAM…
	"$@" "$socket" "$lab/table.txt" </dev/null >"$lab/hook.log" 2>&1 &
	hook_pid=$!
	wait_for 5 test -S "$socket"
}
hook_stop() {
	kill -KILL "$hook_pid"
	wait "$hook_pid" 2>/dev/null
	rm -f "$socket"
}
# A hook that does what the table says, in one word.
cat >"$lab/odd.py" <<'END'
import os, socket, sys, threading, time
mode = open(sys.argv[2]).read().strip()
def serve(peer):
    data = b""
    while True:
        got = peer.recv(65536)
        if not got:
            return
        if mode == "junk":
            peer.sendall(b"perhaps\n")
        elif mode == "flood":
            try:
                while True:
                    peer.sendall(b"\n" * 65536)
            except OSError:
                return
        elif mode == "unknown":
            for line in got.splitlines():
                number = line.split(b'"id":')[1].split(b",")[0]
                peer.sendall(b'{"id":' + number + b',"verdict":"maybe"}\n')
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen()
while True:
    peer = s.accept()[0]
    threading.Thread(target=serve, args=(peer,), daemon=True).start()
END
odd_hook() {
	printf '%s\n' "$1" >"$lab/table.txt"
	hook_start python3 -B "$lab/odd.py"
}
in_time() { # MILLISECONDS COMMAND…: it ends within them
	local start=${EPOCHREALTIME/./}
	"${@:2}"
	local took=$(((${EPOCHREALTIME/./} - start) / 1000))
	((took < $1)) || { printf 'took %d ms\n' "$took"; return 1; }
}

hook_table 'allow harbour.com' 'allow rebind.com' 'allow metadata.google.internal' "allow $LAB_META" \
	'deny www.quarry.net' 'deny * /secret'
hook_start python3 -B "$example"
daemon_start "$(lab_resolver_yaml '"127.0.0.1@53"' '127.0.0.0/8')
gate: {hook: output}
clients:
  - {name: one, uid: 4001, policy: hooked}
  - {name: two, uid: 4002, policy: default}
policies:
  default: {}
  hooked: {default: deny, allow_hosts: [quarry.net, plain.com, lan.harbour.com], custom: \"unix:$socket\", custom_timeout: 4}" || lab_fatal 'the daemon does not start'

scenario 'allow lifts not_allowlisted, at every stage' "$LAB_WEB"
check 'HTTP' says 'web' one fetch -4 http://v4.harbour.com/
check 'HTTPS' says 'host v4.harbour.com' one fetch -4 https://v4.harbour.com/
check 'what the table leaves' says 'host www.plain.com' one fetch -4 http://www.plain.com/

scenario 'deny refuses what is allowed' "$LAB_WEB"
check 'resolve' never 'host www.quarry.net' one fetch -4 http://www.quarry.net/
check 'reason' audited custom '"one"'
check 'its words' audited custom 'table: deny www.quarry.net'
check 'request' never 'web' one fetch -4 http://www.plain.com/secret
check 'reason' audited custom '"request"'

scenario 'the metadata service stays shut' "$LAB_META"
check 'address' never secret-credentials one fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'name' never 169.254 one client dig +short +time=2 +tries=1 @127.0.0.1 metadata.google.internal
check 'reason' audited metadata '"one"'

scenario 'a rebinding answer stays out' "$LAB_WEB" "$LAB_LAN"
check 'a name that is allowed' never private-admin-page one fetch -4 http://lan.harbour.com/
check 'reason' audited rebinding '"one"'
check 'a name that the hook would let in' never private-admin-page one fetch -4 http://10-77-0-10.only.rebind.com/
check 'reason' audited not_allowlisted '"answer"'
check 'no packet' unreached "$LAB_LAN"

scenario 'a hundred connections at once' "$LAB_WEB"
hundred() { client sh -c 'for i in $(seq 100); do curl --silent --noproxy "*" --max-time 8 -4 http://v4.harbour.com/ & done; wait' | grep -c '^web'; }
check 'all get an answer' says 100 one hundred

scenario 'the hook is killed: policy_error within a second' "$LAB_WEB"
hook_stop
lab_mark
check 'resolve' never web in_time 1500 one fetch -4 http://v4.harbour.com/
check 'reason' audited policy_error '"one"'
check 'a pinned name' never web in_time 1500 one fetch --resolve "v4.harbour.com:80:$LAB_WEB" http://v4.harbour.com/
check 'no packet' unreached "$LAB_WEB"
check 'the other client' says 'web' two fetch -4 http://v4.harbour.com/
hook_table 'allow *'
hook_start python3 -B "$example"
check 'it is back' wait_for 5 says web one fetch -4 http://v4.harbour.com/
hook_stop

scenario 'a hook that never answers holds up nobody else' "$LAB_WEB"
odd_hook silent
lab_mark
silent_many() { client sh -c 'for i in $(seq 10); do curl --silent --noproxy "*" --max-time 8 -4 http://v4.harbour.com/ & done; wait'; }
(one silent_many) >"$lab/many.out" 2>&1 &
many=$!
check 'the other client' says 'host www.harbour.com' two fetch -4 http://www.harbour.com/
check 'the other client, again' says 'host www.plain.com' two fetch -4 http://www.plain.com/
check 'while they wait' kill -0 "$many"
wait "$many"
check 'in the end' test ! -s "$lab/many.out"
check 'reason' audited policy_error 'the hook did not answer in time'
hook_stop

for mode in junk flood unknown; do
	scenario "a hook that answers with $mode" "$LAB_WEB"
	odd_hook "$mode"
	sleep 0.3 # a connection to the last one is not tried again at once
	lab_mark
	check 'nothing' never web in_time 3000 one fetch -4 http://v4.harbour.com/
	check 'no packet' unreached "$LAB_WEB"
	check 'reason' audited policy_error '"one"'
	check 'the other client' says web two fetch -4 http://v4.harbour.com/
	hook_stop
done
lab_end
