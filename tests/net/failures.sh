#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# A start that cannot work: one clear line, exit status 2, nothing left behind.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start
lab_stop_unbound

# no_start PATTERN RUNNER…: `pinfold $start` ends at once with status 2 and one line that matches.
start=(daemon -c "$lab/bad.yaml")
no_start() {
	local pattern=$1 status
	shift
	timeout 10 nsenter --target "$lab_host_pid" --net --mount "$@" "$PINFOLD" "${start[@]}" >"$lab/bad.out" 2>&1
	status=$?
	[[ $status == 2 ]] || { printf 'status %d: ' "$status"; cat "$lab/bad.out"; return 1; }
	grep -qiE -- "$pattern" "$lab/bad.out" || { cat "$lab/bad.out"; return 1; }
	[[ $(wc -l <"$lab/bad.out") == 1 ]] || { echo 'more than a line:'; cat "$lab/bad.out"; return 1; }
}
clean() {
	local left
	left=$(in_host iptables-save | grep -- -A; in_host ip6tables-save | grep -- -A; ps -e -o comm= | grep pinfold; ls "$lab/control.sock" 2>/dev/null)
	[[ -z $left ]] || { printf 'left behind: %s\n' "$left"; return 1; }
}
base="$(lab_resolver_yaml '"127.0.0.1@53"' '127.0.0.0/8')
control: {socket: $lab/control.sock}"
config() { printf '%s\n' "$base" "$@" >"$lab/bad.yaml"; }

scenario 'port 53 is taken'
in_host_background "$lab/taker.log" python3 -c 'import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(("127.0.0.1", 53)); print("bound", flush=True); time.sleep(60)'
taker=$!
wait_for 5 grep -q bound "$lab/taker.log"
config
check 'no start' no_start '127\.0\.0\.1.*53.*(in use|taken)'
check 'nothing left' clean
kill "$taker"
wait "$taker" 2>/dev/null

scenario 'the log cannot be written'
config 'log: {file: /nonexistent/folder/audit.log}'
check 'no start' no_start '/nonexistent/folder/audit\.log'
check 'nothing left' clean

scenario 'the queue number is taken'
config 'gate: {queue: 7}'
cp "$lab/bad.yaml" "$lab/first.yaml"
sed -i 's/127.0.0.1@53/127.0.0.2@53/; s/control.sock/first.sock/' "$lab/first.yaml"
in_host_background "$lab/first.err" "$PINFOLD" daemon -c "$lab/first.yaml"
first=$!
check 'the first starts' wait_for 10 in_host "$PINFOLD" status -c "$lab/first.yaml"
check 'no start' no_start 'queue 7'
kill "$first"
wait "$first"
check 'its rules are removed' in_host "$PINFOLD" rules remove -c "$lab/first.yaml"
check 'nothing left' clean

scenario 'a capability is missing'
config
check 'no start' no_start 'CAP_NET_ADMIN|permitted|permission' setpriv --bounding-set -net_admin --inh-caps -net_admin
check 'nothing left' clean

# Kernels that this machine does not have. Two stand-ins for what they answer, and nothing else of them is imitated: a filter
# that refuses the netlink family of nfnetlink, and iptables without the extension of a target.
extension=$(find /usr/lib -path '*/xtables/libxt_NFLOG.so' -print -quit)

policy '{}'
for kind in daemon run; do
	start=(daemon -c "$lab/bad.yaml")
	[[ $kind == daemon ]] || start=(run --policy "$lab/policy.yaml" -- touch "$lab/was-run")
	scenario "the kernel has no NFQUEUE and no NFLOG: $kind"
	config
	check 'no start' no_start 'the kernel has no (NFQUEUE|NFLOG)' python3 -B "$lab_here/without_nfnetlink.py"
	check 'the command is not run' test ! -e "$lab/was-run"
	check 'nothing left' clean

	scenario "iptables does not have NFQUEUE, or NFLOG: $kind"
	for target in NFQUEUE NFLOG; do
		# shellcheck disable=SC2016
		check "no start without $target" no_start "$target" unshare --mount --propagation private \
			sh -c 'mount --bind /dev/null "$0" && exec "$@"' "${extension/NFLOG/$target}"
		check 'the command is not run' test ! -e "$lab/was-run"
		check 'nothing left' clean
	done
done
start=(daemon -c "$lab/bad.yaml")

scenario 'the trust anchor is missing, or is none'
printf 'resolver: {trust_anchor: /nonexistent/root.key}\n' >"$lab/bad.yaml"
check 'no start' no_start '/nonexistent/root\.key'
printf 'nonsense\n' >"$lab/nonsense.key"
printf 'resolver: {trust_anchor: %s}\n' "$lab/nonsense.key" >"$lab/bad.yaml"
check 'no start' no_start 'trust.anchor'
check 'nothing left' clean

# One line a finding here, each with its place.
garbage() { # NAME PLACE TEXT
	scenario "configuration: $1"
	printf '%b' "$3" >"$lab/bad.yaml"
	timeout 10 nsenter --target "$lab_host_pid" --net --mount "$PINFOLD" daemon -c "$lab/bad.yaml" >"$lab/bad.out" 2>&1
	check 'status 2' test $? = 2
	check 'place' grep -qE -- "bad\.yaml:$2: error: " "$lab/bad.out"
	check 'nothing left' clean
}
garbage 'no YAML' '[0-9]+:[0-9]+' 'resolver: [\n'
garbage 'a list instead of a mapping' '1:1' '- resolver\n'
garbage 'an unknown key' '2:3' 'gate:\n  hok: output\n'
garbage 'a wrong type' '1:[0-9]+' 'gate: {queue: [1, 2]}\n'
garbage 'a number out of range' '1:[0-9]+' 'gate: {queue: 70000}\n'
garbage 'a duplicate key' '2:1' 'gate: {}\ngate: {}\n'
garbage 'an entry of the floor' '1:[0-9]+' 'policies: {default: {allow_hosts: [169.254.169.254]}}\n'
garbage 'an entry that cannot match' '1:[0-9]+' 'policies: {default: {allow_hosts: ["exa mple.com"]}}\n'
garbage 'a public suffix' '1:[0-9]+' 'policies: {default: {allow_hosts: [com]}}\n'
garbage 'a policy that is not there' '1:[0-9]+' 'clients: [{name: a, uid: 1, policy: none}]\n'
garbage 'a NUL byte' '[0-9]+:[0-9]+' 'gate: {}\n\0\n'

scenario 'the same for pinfold run'
printf 'nonsense: 1\n' >"$lab/policy.yaml"
guarded client touch "$lab/was-run" 2>"$lab/run.err"
check 'status 2' test $? = 2
check 'place' grep -qE 'policy\.yaml:1:1: error: ' "$lab/run.err"
check 'the command is not run' test ! -e "$lab/was-run"
check 'nothing left' clean
lab_end
