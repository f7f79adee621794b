#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Clients by cgroup v2, on the output hook: a service is governed by its own policy, its neighbours are not.
. "$(dirname "${BASH_SOURCE[0]}")/lab/lab.sh"
lab_start

# The hierarchy is the kernel's only one, so the two groups of the test show outside, under names of their own.
group=pinfold-test-$$-$RANDOM
cgroups() { in_host mount -t cgroup2 none /sys/fs/cgroup && in_host mkdir "/sys/fs/cgroup/$group" "/sys/fs/cgroup/$group/below" "/sys/fs/cgroup/$group-b"; }
in_group() { # NAME COMMAND…
	# shellcheck disable=SC2016
	in_host sh -c 'echo $$ >"/sys/fs/cgroup/$0/cgroup.procs" && exec "$@"' "$@"
}
leave_groups() { in_host rmdir "/sys/fs/cgroup/$group/below" "/sys/fs/cgroup/$group" "/sys/fs/cgroup/$group-b"; }
scenario 'cgroup v2'
cgroups 2>"$lab/cgroups.err" || { scenario_skip "cgroup v2: $(tail -n 1 "$lab/cgroups.err")"; lab_end; }
trap 'leave_groups; lab_leave' EXIT
in_group "$group" true || { scenario_skip 'cgroup v2: no process can be moved'; lab_end; }
in_host iptables -A OUTPUT -m cgroup --path "$group" -j ACCEPT || { scenario_skip 'no match for cgroup v2 (xt_cgroup)'; lab_end; }
in_host iptables -F OUTPUT

one() { lab_runner=(in_group "$group") && "$@"; }
two() { lab_runner=(in_group "$group-b") && "$@"; }
daemon_start "$(lab_resolver_yaml '"127.0.0.1@53"' '127.0.0.0/8')
gate: {hook: output}
clients:
  - {name: one, cgroup: /$group, policy: strict}
policies:
  default: {}
  strict: {default: deny, allow_hosts: [harbour.com]}" || lab_fatal 'the daemon does not start'

scenario 'a cgroup is a client' "$LAB_WEB" "$LAB_META" "$LAB_SECOND"
check 'what it may' says "web $LAB_WEB" one fetch http://v4.harbour.com/
check 'HTTPS' says "host www.harbour.com" one fetch -4 https://www.harbour.com/
lab_mark
check 'a name that it may not' never web one fetch http://www.plain.com/
check 'its reason' audited not_allowlisted '"one"'
check 'a literal' never web one fetch "http://$LAB_SECOND/"
check 'no packet' unreached "$LAB_SECOND"
check 'its client' audited not_allowlisted "$LAB_SECOND"
check 'metadata' never secret-credentials one fetch "http://$LAB_META/"
check 'no packet' unreached "$LAB_META"
check 'its reason' audited metadata

scenario 'whose socket is gone before the gate asks is nobody' "$LAB_SECOND"
datagram() { client bash -c "echo x >/dev/udp/$LAB_SECOND/9999"; }
check 'a datagram' one datagram
check 'no packet' unreached "$LAB_SECOND"

below() { lab_runner=(in_group "$group/below") && "$@"; }
scenario 'what is below a governed cgroup has not the policy of the host' "$LAB_SECOND"
check 'a literal' never "web $LAB_SECOND" below fetch "http://$LAB_SECOND/"
check 'no packet' unreached "$LAB_SECOND"
check 'reason' audited policy_error

scenario 'its neighbour is not governed' "$LAB_WEB" "$LAB_META"
check 'metadata' says secret-credentials two fetch "http://$LAB_META/"
lab_end
