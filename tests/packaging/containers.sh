#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
# The container files: well formed, and every configuration in them and in docs/containers.md loads.
#
#     containers.sh PINFOLD SOURCE
set -uo pipefail
pinfold=$1 top=$2 number=0 failures=0
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
check() { # WHAT COMMAND…
	local what=$1
	shift
	number=$((number + 1))
	if "$@" >"$work/out" 2>&1 && [[ ! -s $work/out ]]; then
		printf 'ok %d - %s\n' "$number" "$what"
	else
		printf 'not ok %d - %s\n' "$number" "$what"
		sed 's/^/# /' "$work/out"
		failures=$((failures + 1))
	fi
}
folder=$top/packaging/containers
if command -v yamllint >/dev/null; then
	check 'YAML' yamllint -d '{extends: default, rules: {line-length: {max: 120}, document-start: disable}}' "$folder"/*.yaml
else
	number=$((number + 1))
	printf 'ok %d - YAML # SKIP no yamllint\n' "$number"
fi
check 'JSON' python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$folder/pinfold.conflist"
check 'pinfold.yaml' "$pinfold" check "$folder/pinfold.yaml"
sed -n '/^  pinfold.yaml: |/,/^---/{ s/^    //p }' "$folder/daemonset.yaml" >"$work/daemonset.yaml"
check 'the configuration of the DaemonSet' "$pinfold" check "$work/daemonset.yaml"
sed -n '/^    # \/etc\/pinfold\/pinfold.yaml/,/^$/{ s/^    //p }' "$top/docs/containers.md" >"$work/docker.yaml"
check 'the configuration for Docker' "$pinfold" check "$work/docker.yaml"
# What the manifest says of names of the cluster, put to its policy `pods`.
sed 's/^  pods:/  default:/; /^  default: {/d' "$work/daemonset.yaml" >"$work/pods.yaml"
explain() { "$pinfold" explain -c "$work/pods.yaml" "$@" >/dev/null; }
refused() { ! explain "$@"; }
check 'a service of the cluster resolves' explain answer web.default.svc.cluster.local 10.96.3.4
check 'and may be connected to' explain connect 10.96.3.4 80/tcp --pinned web.default.svc.cluster.local
check 'not without its name' refused connect 10.96.3.4 80/tcp
check 'nor by a public one' refused connect 10.96.3.4 80/tcp --pinned www.example.com
check 'none of them is empty' test -s "$work/daemonset.yaml" -a -s "$work/docker.yaml"
printf '1..%d\n' "$number"
exit $((failures > 0))
