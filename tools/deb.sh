#!/bin/sh
# usage: [DEB_FLAGS=-Zxz] deb.sh BUILD     BUILD/deb/blk_VERSION_ARCHITECTURE.deb of what `make install` installs.
# On what it depends is what its binaries are linked with, by dpkg-shlibdeps.
set -eu
cd "$(dirname "$0")/.."
for tool in dpkg-deb dpkg-shlibdeps; do
	command -v $tool >/dev/null || { echo "make deb needs $tool (packages dpkg and dpkg-dev)" >&2 && exit 1; }
done
out=$1/deb
tree=$out/tree
version=$(sed -n 's/^VERSION := //p' Makefile)
architecture=$(dpkg --print-architecture)
rm -rf "$out"
mkdir -p "$tree/DEBIAN" "$out/debian"
DESTDIR=$tree PREFIX=/usr LIBDIR=/usr/lib sh tools/install.sh install "$1"
strip --strip-unneeded "$tree"/usr/lib/*.so.*.* "$tree"/usr/lib/blk-trial "$tree"/usr/bin/*
gzip -9n "$tree"/usr/share/man/man*/*
mkdir -p "$tree/usr/share/doc/blk"
cp LICENSE "$tree/usr/share/doc/blk/copyright"
printf 'Source: blk\n\nPackage: blk\nArchitecture: any\n' >"$out/debian/control"
# The package's own libraries have no package yet.
depends=$(cd "$out" && dpkg-shlibdeps -O --ignore-missing-info -ltree/usr/lib tree/usr/bin/* tree/usr/lib/*.so.*.* tree/usr/lib/blk-trial 2>warnings |
	sed -n 's/^shlibs:Depends=//p') || { cat "$out/warnings" >&2 && exit 1; }
cat >"$tree/DEBIAN/control" <<END
Package: blk
Version: $version
Architecture: $architecture
Maintainer: blk maintainers <maintainers@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $depends
Suggests: libcuda1, gnuplot-nox
Description: block-level kernel language: compiler, runtime and headers
 Kernels over tiles, compiled to PTX or to this machine's code by blkc, run,
 checked and timed by blkrun, launched from C and C++ by libblk.
END
echo 'activate-noawait ldconfig' >"$tree/DEBIAN/triggers"
(cd "$tree" && find usr -type f -exec md5sum {} + >DEBIAN/md5sums)
find "$tree" -type d -exec chmod 755 {} +
# shellcheck disable=SC2086
dpkg-deb ${DEB_FLAGS:--Zxz} --root-owner-group --build "$tree" "$out/blk_${version}_$architecture.deb" >/dev/null
echo "$out/blk_${version}_$architecture.deb"
