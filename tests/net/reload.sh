#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A reload of the policy and connections that the old one has decided: what the new one denies is cut within a second
# of its next packet, everything else lives.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
lab_runner=(as_uid 4001)
mkdir -m 777 "$lab/drips"

# Downloads that take their time, by NAME: what came is in drips/NAME, curl's status in drips/NAME.status.
drip() { # NAME CURL-ARGUMENT…
	rm -f "$lab/drips/$1" "$lab/drips/$1.status"
	(fetch --no-buffer --max-time 60 --output "$lab/drips/$1" "${@:2}"; echo $? >"$lab/drips/$1.status") &
	wait_for 5 test -s "$lab/drips/$1"
}
cut() { wait_for 1 test -s "$lab/drips/$1.status" && says 56 cat "$lab/drips/$1.status"; } # a reset
lives() { # NAME: it goes on to come
	local size
	size=$(stat -c %s "$lab/drips/$1")
	wait_for 2 eval "((\$(stat -c %s $lab/drips/$1) > size))" && test ! -e "$lab/drips/$1.status"
}
change() { # POLICIES
	sed "s/^  default: .*/  default: $1/" "$lab/daemon.yaml" >"$lab/new.yaml" && mv "$lab/new.yaml" "$lab/daemon.yaml"
	in_host "$PINFOLD" reload -c "$lab/daemon.yaml"
}

daemon_start "$(lab_resolver_yaml '"127.0.0.1@53"' '127.0.0.0/8')
gate: {hook: output}
clients:
  - {name: one, uid: 4001, policy: default}
policies:
  default: {}" || lab_fatal 'the daemon does not start'

scenario 'downloads under a policy that denies some of them later' "$LAB_WEB" "$LAB_WEB6"
check 'HTTPS' drip tls https://v4.harbour.com/drip
check 'HTTPS over IPv6' drip tls6 https://v6.harbour.com/drip
check 'HTTP' drip plain http://v4.harbour.com/drip
check 'another name at the same address' drip other -4 https://www.quarry.net/drip
check 'and over IPv6' drip other6 -6 https://www.quarry.net/drip
check 'and HTTP' drip plain-other -4 http://www.quarry.net/drip
check_not 'a reload that fails' change '{block_hosts: [}'
for name in tls tls6 plain other other6 plain-other; do check "$name lives" lives "$name"; done

# One that says nothing meanwhile.
mkfifo -m 666 "$lab/speech"
client openssl s_client -quiet -connect v4.harbour.com:443 -servername v4.harbour.com <"$lab/speech" >"$lab/idle" 2>&1 &
silent=$!
exec 5>"$lab/speech"
check 'a silent one is open' wait_for 5 grep -q verify "$lab/idle"
lab_mark
check 'the reload' change '{block_hosts: [harbour.com]}'
for name in tls tls6 plain; do check "$name is cut" cut "$name"; done
check 'reason' audited blocked_host 'cut by a new policy'
for name in other other6 plain-other; do check "$name lives" lives "$name"; done
printf 'GET /late HTTP/1.1\r\nHost: v4.harbour.com\r\n\r\n' >&5
check 'the silent one is cut as it speaks' wait_for 2 eval '! kill -0 "$silent"'
check 'none of it arrives' never /late lab_new web
exec 5>&-

scenario 'a policy that denies by default' "$LAB_WEB" "$LAB_WEB6"
check 'the reload' change '{default: deny, allow_hosts: [quarry.net]}'
for name in other other6 plain-other; do check "$name lives" lives "$name"; done
check 'and one without it' change '{default: deny, allow_hosts: [harbour.com]}'
for name in other other6 plain-other; do check "$name is cut" cut "$name"; done

scenario 'a gate that forgot: by address alone' "$LAB_WEB"
check 'the reload' change '{}'
check 'HTTPS' drip tls https://v4.harbour.com/drip
kill -KILL "$(daemon_child pinfold-gate)"
check 'a new gate' wait_for 10 grep -q 'gate runs again' "$lab/daemon.err"
check 'under the same policy it lives' lives tls
check 'under one that lets addresses pass, too' change '{block_hosts: [quarry.net]}'
check 'it lives' lives tls
check 'under one that does not' change '{default: deny, allow_hosts: [harbour.com]}'
check 'it is cut' cut tls

scenario 'datagrams' "$LAB_WEB"
check 'the reload' change '{udp: allow}'
speak() { client python3 -c 'import socket,sys,time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 9999)); s.settimeout(0.5)
while True:
    try:
        s.send(b"hello")
        print(s.recv(100).decode().strip(), flush=True)
    except OSError as error:
        print(type(error).__name__, flush=True)
    time.sleep(0.05)' "$LAB_WEB"; }
speak >"$lab/datagrams" 2>&1 &
datagrams=$!
check 'they pass' wait_for 3 grep -q web "$lab/datagrams"
check_not 'all of them' grep -qvw web "$lab/datagrams"
check 'the reload' change '{udp: deny}'
check 'they are refused' wait_for 1 grep -qvw web "$lab/datagrams"
kill "$datagrams"
lab_end
