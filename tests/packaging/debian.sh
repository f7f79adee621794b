#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A release as somebody gets it: the tarball of `meson dist` builds and passes its unit tests, the Debian package made
# from it has no fault that lintian finds, installs on a fresh Debian 12 by debootstrap, works there, and goes away.
#
#     debian.sh BUILD     a build directory of a git checkout; PINFOLD_DEB=FILE tries a package that is there
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=$1 mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

skip() { printf '1..0 # SKIP %s\n' "$*"; exit 77; }
[[ $EUID -eq 0 ]] || skip 'a fresh system needs root'
[[ -e $top/.git ]] || skip 'a release is made from a git checkout'
for command in debootstrap dpkg-buildpackage dh lintian; do
	command -v "$command" >/dev/null || skip "no command $command"
done
python3 -c 'import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + "/dists/bookworm/InRelease", timeout=20)' "$mirror" 2>/dev/null ||
	skip "the archive $mirror cannot be reached"

work=$(mktemp -d /var/tmp/pinfold-package.XXXXXX) || exit 2
trap 'rm -rf --one-file-system "$work"' EXIT
root=$work/root number=0 failures=0

# check WHAT COMMAND…
check() {
	local what=$1
	shift
	number=$((number + 1))
	if "$@" >"$work/out" 2>&1; then
		printf 'ok %d - %s\n' "$number" "$what"
	else
		printf 'not ok %d - %s\n' "$number" "$what"
		tail -n 20 "$work/out" | sed 's/^/# /'
		failures=$((failures + 1))
		return 1
	fi
}
finish() { printf '1..%d\n' "$number"; exit $((failures > 0)); }

# A command in the fresh system, with the network of this one. No service is started there.
in_root() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }

# The same in namespaces of its own, where it may do what it likes: with /proc, /dev, /run, and a way out that leads nowhere.
in_machine() {
	# shellcheck disable=SC2016
	unshare --mount --propagation private --net --pid --fork --kill-child bash -c '
		root=$1
		shift
		mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount -t sysfs sysfs "$root/sys" &&
			mount --bind /dev "$root/dev" && mount -t tmpfs -o mode=755 run "$root/run" || exit 99
		ip link set lo up && ip link add out0 type veth peer name out1 && ip address add 192.0.2.2/24 dev out0 &&
			ip link set out0 up && ip link set out1 up && ip route add default via 192.0.2.1 || exit 99
		# No chroot: the kernel makes no user namespace in one.
		cd "$root" && pivot_root . mnt && umount -l /mnt || exit 99
		exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "$@"' - "$root" "$@"
}

files() { find "$root" -xdev \( -path "$root/var/cache" -o -path "$root/var/lib/apt" -o -path "$root/var/lib/dpkg" -o -path "$root/tmp" \) -prune -o ! -name "*-" -print | sort; }

# The packages that a field of debian/control names, without what debhelper brings and the compilers that are always there.
field() { # NAME
	awk -v name="$1:" '/^[^ ]/ { on = ($1 == name); sub(/^[^ ]+ */, "") } on' "$top/packaging/debian/control" |
		tr ',' '\n' | sed 's/|.*//; s/(.*//; s/ //g; /^$/d; /^\$/d; /^debhelper/d; /^dh-/d; /^systemd/d' | sort
}
group() { awk -v name="$1" '$1 == name && $2 != "gcc" && $2 != "libc6-dev" { print $2 }' "$top/packaging/dependencies.txt" | sort; }
agrees() { diff <(group build) <(field Build-Depends) && diff <(group runtime) <(field Depends); }
check 'packaging/dependencies.txt and debian/control agree' agrees

[[ -n ${PINFOLD_DEB:-} ]] || check 'a release: the tarball builds, its unit tests pass, the package is made' "$top/packaging/deb.sh" "$work" "$build" || finish
package=${PINFOLD_DEB:-$(echo "$work"/pinfold_*.deb)}
check 'lintian finds no fault' lintian --allow-root --fail-on error,warning ${PINFOLD_DEB:-"$work"/pinfold_*.changes}

check 'a fresh system' debootstrap --variant=minbase bookworm "$root" "$mirror" || finish
cp /etc/resolv.conf "$root/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod 755 "$root/usr/sbin/policy-rc.d"
cp "$package" "$root/tmp/pinfold.deb"
in_root sh -c 'apt-get -q update && apt-get -qy --no-install-recommends --download-only install /tmp/pinfold.deb' >"$work/apt" 2>&1
# What it depends on stays when it goes.
in_root sh -c 'apt-get -qy --no-install-recommends install $(dpkg-deb -f /tmp/pinfold.deb Depends | sed "s/([^)]*)//g; s/|[^,]*//g; s/,/ /g")' >>"$work/apt" 2>&1
files >"$work/before"
check 'it installs' in_root apt-get -qy --no-install-recommends install /tmp/pinfold.deb || { sed 's/^/# /' "$work/apt"; finish; }

check 'its user' in_root id pinfold
check 'its version' in_root pinfold version
check 'its configuration' in_root pinfold check
check 'its examples' in_root sh -c 'for file in /usr/share/doc/pinfold/examples/*.yaml; do pinfold check "$file" || exit 1; done'
check 'its log folder' in_root test -d /var/log/pinfold
for page in man8/pinfold.8 man5/pinfold.yaml.5; do
	check "its manual, $page" in_root sh -c "zcat /usr/share/man/$page.gz | grep -q Nm"
done
# Beside the units of this system: the fresh one need not have any.
mkdir -p "$work/units/lib/systemd" "$work/units/usr/bin" && cp -r /lib/systemd/system "$work/units/lib/systemd/" &&
	cp "$root/lib/systemd/system/pinfold.service" "$work/units/lib/systemd/system/" && cp "$root/usr/bin/pinfold" "$work/units/usr/bin/"
check 'its unit' systemd-analyze --root="$work/units" --man=no verify pinfold.service
check 'its unit is confined' systemd-analyze security --offline=true --threshold=35 "$root/lib/systemd/system/pinfold.service"
check 'it is not started by itself' in_root sh -c '! ls /etc/systemd/system/*/pinfold.service'

check 'pinfold run -- true' in_machine pinfold run -- true
check 'pinfold run: the exit status' in_machine sh -c 'pinfold run -- sh -c "exit 7"; test $? = 7'
check 'pinfold run: the floor' in_machine bash -c \
	'pinfold run -- bash -c "exec 3<>/dev/tcp/169.254.169.254/80" 2>&1 | grep -q "\"reason\": *\"metadata\""'
check 'the service: its children are of the user pinfold' in_machine sh -c '
	pinfold daemon & daemon=$!
	for i in $(seq 100); do pinfold status >/dev/null 2>&1 && break; sleep 0.1; done
	wanted=$(id -u pinfold) found=0
	for status in /proc/[0-9]*/status; do
		case $(sed -n "s/^Name:[[:space:]]*//p" "$status") in
		pinfold-resolve* | pinfold-gate*) found=$((found + 1)); grep -q "^Uid:[[:space:]]*$wanted[[:space:]]" "$status" || exit 1 ;;
		esac
	done
	kill $daemon; wait $daemon && test $found = 2'

check 'it goes' in_root apt-get -qy purge pinfold
files >"$work/after"
check 'nothing of it stays' diff "$work/before" "$work/after"
finish
