#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
#   packaging/deb.sh FOLDER [BUILD]   makes a release and the Debian package from it
#
# `meson dist` of the build directory BUILD (default: build) makes the tarball: what is committed, and nothing else.
# From it come FOLDER/pinfold_VERSION.orig.tar.xz and, unpacked anew and with its unit tests passed, the packages.
# Packages that this needs: groups `build` and `package` of packaging/dependencies.txt.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ $# -eq 1 || $# -eq 2 ]] || { sed -n '4,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
folder=$1 build=${2:-$top/build}

mkdir -p "$folder"
meson dist -C "$build" --no-tests --allow-dirty --formats xztar
version=$(meson introspect "$build" --projectinfo | python3 -c 'import json, sys; print(json.load(sys.stdin)["version"])')
cp "$build/meson-dist/pinfold-$version.tar.xz" "$folder/pinfold_$version.orig.tar.xz"
rm -rf "$folder/pinfold-$version"
tar -C "$folder" -xf "$folder/pinfold_$version.orig.tar.xz"
cp -r "$folder/pinfold-$version/packaging/debian" "$folder/pinfold-$version/debian"
cd "$folder/pinfold-$version"
exec dpkg-buildpackage --unsigned-source --unsigned-changes
