#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# usage: build-libperf.sh SOURCE WORK PREFIX
#
# Builds libperf.a and libapi.a into PREFIX from the kernel sources in SOURCE (deploy/fetch-libperf),
# which stay as they are. Needs no network.
set -eu
source=$1 work=$2 prefix=$3

rm -rf "$work"
mkdir -p "$work/out" "$prefix"
cp -r "$source" "$work/source"
cd "$work"
# Kbuild must not see the variables of whoever called us.
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u LDFLAGS CFLAGS= EXTRA_CFLAGS="-O2 -fPIC -Wno-error" \
	make -s -C source/tools/lib/perf O="$work/out" prefix="$prefix" libdir="$prefix/lib" \
	install_lib install_headers >build.log 2>&1 || {
	cat build.log >&2
	echo "build-libperf: libperf does not build: see the lines above, or configure with" \
		"-DVCPUSCOPE_LIBPERF=OFF (no capture through perf)" >&2
	exit 1
}
cp out/libapi.a "$prefix/lib/"
