# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Sourced by ./run, ./test and tests/bench: the packages that are missing, and build directories.
#
#   prepare_packages GROUP…         installs what packaging/dependencies.txt names and is not there
#   prepare_build DIRECTORY [ARGUMENT…]   meson setup (once) and ninja, with meson's arguments

prepare_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

prepare_say() { printf '%s\n' "$*" >&2; }

# Runs COMMAND; what it prints is shown only when it fails.
prepare_quietly() {
	local log status=0
	log=$(mktemp) || return
	"$@" </dev/null >"$log" 2>&1 || status=$?
	((status == 0)) || cat "$log" >&2
	rm -f "$log"
	return "$status"
}

# Prints the packages of the groups that dpkg does not know as installed.
prepare_missing() {
	local group package rest wanted=" $* "
	while read -r group package rest; do
		[[ -n $group && $group != '#'* && $wanted == *" $group "* ]] || continue
		[[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
			printf '%s\n' "$package"
	done <"$prepare_top/packaging/dependencies.txt"
}

# Some of the packages are servers, which Debian starts when it installs them. They are wanted as programs
# alone: a policy-rc.d of ours forbids the start, and then they are disabled for the next boot.
prepare_install() {
	local -a as_root=()
	local policy=/usr/sbin/policy-rc.d file package status=0
	[[ $EUID -eq 0 ]] || as_root=(sudo)
	if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
		prepare_say "missing packages, and only root can install them:" "$@"
		return 1
	fi
	prepare_say "installing: $*"
	local own_policy=no
	if [[ ! -e $policy ]]; then
		printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null &&
			"${as_root[@]}" chmod 755 "$policy" && own_policy=yes
	fi
	prepare_quietly "${as_root[@]}" apt-get -q update &&
		prepare_quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y \
			--no-install-recommends "$@" || status=1
	[[ $own_policy == no ]] || "${as_root[@]}" rm -f "$policy"
	for package in "$@"; do
		grep -qE "^[a-z]+ +$package +daemon:" "$prepare_top/packaging/dependencies.txt" || continue
		while read -r file; do
			case $file in
			*/systemd/system/*.service)
				! command -v systemctl >/dev/null ||
					"${as_root[@]}" systemctl disable --quiet "${file##*/}" 2>/dev/null
				;;
			/etc/init.d/*) "${as_root[@]}" update-rc.d "${file##*/}" disable 2>/dev/null ;;
			esac
		done < <(dpkg -L "$package" 2>/dev/null)
	done
	return "$status"
}

prepare_packages() {
	local -a missing
	if ! command -v dpkg-query >/dev/null; then
		prepare_say "not a Debian system: see packaging/dependencies.txt for what is needed"
		return 0
	fi
	mapfile -t missing < <(prepare_missing "$@")
	((${#missing[@]})) || return 0
	prepare_install "${missing[@]}"
}

prepare_build() {
	local directory=$1
	shift
	if [[ ! -e $directory/build.ninja ]]; then
		prepare_say "building in $directory: a minute or two, this once"
		prepare_quietly meson setup "$directory" "$prepare_top" "$@" || return
	fi
	prepare_quietly ninja -C "$directory"
}
