# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by the benchmarks: packages, builds, the lab, and the CPU time of processes.
LAB_TIMEOUT=${LAB_TIMEOUT:-900}
bench_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [[ -z ${LAB_INSIDE:-} ]]; then
	# shellcheck source=../../packaging/prepare.sh
	. "$bench_top/packaging/prepare.sh"
	prepare_packages build runtime lab bench || exit 2
	prepare_build "$bench_top/build-bench" --buildtype=release || exit 2
	ninja -C "$bench_top/build-bench" tests/bench/accept-all >/dev/null || exit 2
fi
export PINFOLD=${PINFOLD:-$bench_top/build-bench/cli/pinfold}
# shellcheck source=../net/lab/lab.sh
. "$bench_top/tests/net/lab/lab.sh"

# The PIDs of a process and all below it.
bench_tree() {
	local child
	printf '%s\n' "$1"
	for child in $(ps -o pid= --ppid "$1"); do bench_tree "$child"; done
}

# utime+stime in clock ticks of a process and all below it.
bench_cpu() {
	local pid total=0
	for pid in $(bench_tree "$1"); do
		[[ ! -r /proc/$pid/stat ]] || total=$((total + $(sed 's/^.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }')))
	done
	echo "$total"
}
bench_ticks=$(getconf CLK_TCK)
