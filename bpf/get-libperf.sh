#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# usage: get-libperf.sh WORK PREFIX [OTHER]
#
# Builds libperf.a and libapi.a into PREFIX. Debian has no package of libperf, but its kernel source
# package has the source: the installed one is used, else the .deb is downloaded by apt-get (139 MB,
# as any user, nothing is installed). 4 MB of sources stay in WORK, so that a rebuild needs no
# network; OTHER is the WORK of another build tree that may have them already.
set -eu
package=linux-source-6.1
work=$1 prefix=$2 other=${3:-}

say() { echo "get-libperf: $*" >&2; }

mkdir -p "$work" "$prefix"
cd "$work"

if [ ! -e sources.complete ] && [ -e "$other/sources.complete" ]; then
	rm -rf "$package"
	cp -r "$other/$package" .
	touch sources.complete
fi
if [ ! -e sources.complete ]; then
	archive=/usr/src/$package.tar.xz
	rm -rf "$package"
	if [ -e "$archive" ]; then
		unpack() { cat "$archive"; }
	else
		rm -f "$package"_*.deb
		say "downloading $package (139 MB)"
		# It warns that root's folder is not the sandbox user's; only its failure matters.
		apt-get download -q "$package" >download.log 2>&1 || {
			cat download.log >&2
			say "cannot download $package: run apt-get update, or install it, or" \
				"configure with -DVCPUSCOPE_LIBPERF=OFF"
			exit 1
		}
		unpack() { dpkg-deb --fsys-tarfile "$package"_*.deb | tar -xO "./usr/src/$package.tar.xz"; }
	fi
	unpack | xz -dc | tar -x \
		"$package/COPYING" "$package/tools/arch/x86/include" "$package/tools/build" \
		"$package/tools/include" "$package/tools/lib/api" "$package/tools/lib/perf" \
		"$package/tools/lib/zalloc.c" "$package/tools/lib/str_error_r.c" "$package/tools/scripts"
	rm -f "$package"_*.deb
	touch sources.complete
fi

# Kbuild must not see the variables of whoever called us.
mkdir -p out
env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u CFLAGS -u LDFLAGS \
	make -s -C "$package/tools/lib/perf" O="$work/out" prefix="$prefix" libdir="$prefix/lib" \
	install_lib install_headers >build.log 2>&1 || {
	cat build.log >&2
	say "libperf does not build"
	exit 1
}
cp out/libapi.a "$prefix/lib/"
