#!/bin/sh
# usage: [DESTDIR= PREFIX=/usr/local LIBDIR=PREFIX/lib] install.sh install|uninstall BUILD
# One list says what is installed and where; uninstall takes the same files away, and the folders that are blk's own.
set -eu
cd "$(dirname "$0")/.."
build=$2
PREFIX=${PREFIX:-/usr/local} DESTDIR=${DESTDIR:-}
LIBDIR=${LIBDIR:-$PREFIX/lib}
setting() { sed -n "s/^$1 := //p" Makefile; }
version=$(setting VERSION) abi=$(setting ABI)
major=${abi%%.*}
made=$build/install
share=$PREFIX/share

# mode (or "link"), source (or what the link holds), destination
list() {
	cat <<END
755 $build/bin/blkc $PREFIX/bin/blkc
755 $build/bin/blkrun $PREFIX/bin/blkrun
755 $build/bin/blk-lsp $PREFIX/bin/blk-lsp
755 $build/lib/blk-trial $LIBDIR/blk-trial
644 runtime/blk.h $PREFIX/include/blk.h
644 runtime/blk.hpp $PREFIX/include/blk.hpp
644 compiler/blkc.h $PREFIX/include/blkc.h
644 $made/blk.pc $LIBDIR/pkgconfig/blk.pc
644 $made/blk-config.cmake $LIBDIR/cmake/blk/blk-config.cmake
644 $made/blk-config-version.cmake $LIBDIR/cmake/blk/blk-config-version.cmake
644 docs/man/blkc.1 $share/man/man1/blkc.1
644 docs/man/blkrun.1 $share/man/man1/blkrun.1
644 docs/man/blk-lsp.1 $share/man/man1/blk-lsp.1
644 $made/blk.h.3 $share/man/man3/blk.h.3
644 $made/blk.7 $share/man/man7/blk.7
644 tools/package/completion.bash $share/bash-completion/completions/blkc
link blkc $share/bash-completion/completions/blkrun
644 tools/package/_blk $share/zsh/site-functions/_blk
END
	for name in libblk libblkc; do
		cat <<END
755 $build/lib/$name.so.$major $LIBDIR/$name.so.$abi
link $name.so.$abi $LIBDIR/$name.so.$major
link $name.so.$major $LIBDIR/$name.so
END
	done
}
put() {
	mkdir -p "$made"
	up=$(realpath -ms --relative-to="$LIBDIR/cmake/blk" "$PREFIX")
	for name in blk.pc blk-config.cmake blk-config-version.cmake; do
		sed "s|@PREFIX@|$PREFIX|; s|@LIBDIR@|$LIBDIR|; s|@UP@|$up|; s|@VERSION@|$version|; s|@ABI@|$abi|; s|@ABI_MAJOR@|$major|" \
			"tools/package/$name.in" >"$made/$name"
	done
	awk -v version="$version" -f tools/package/man-header.awk runtime/blk.h >"$made/blk.h.3"
	awk -v version="$version" -f tools/package/man-markdown.awk docs/language.md >"$made/blk.7"
	list | while read -r mode from to; do
		install -d "$(dirname "$DESTDIR$to")"
		if [ "$mode" = link ]; then ln -sf "$from" "$DESTDIR$to"; else install -m "$mode" "$from" "$DESTDIR$to"; fi
	done
}
case $1 in
install) put ;;
uninstall)
	list | while read -r mode from to; do rm -f "$DESTDIR$to"; done
	rmdir "$DESTDIR$LIBDIR/cmake/blk" 2>/dev/null || true
	;;
esac
# The dynamic linker finds libraries in its usual folders by a cache.
if [ -z "$DESTDIR" ] && [ "$(id -u)" = 0 ]; then PATH=$PATH:/sbin:/usr/sbin ldconfig; fi
