#!/bin/sh
# usage: install.sh BUILD      What `make install` and `make deb` give: every file and link is there and goes again; programs are
# built against it by pkg-config and by CMake and run; completion and manual pages say what --help says.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
BLK_CACHE_DIR=$dir/cache
export BLK_CACHE_DIR
version=$(sed -n 's/^VERSION := //p' "$root/Makefile")

# Where it is installed stands in the files; ldconfig runs where root installs into the system's own folders.
mkdir fake
printf '#!/bin/sh\necho "$0" >>%s/ldconfig.ran\n' "$dir" >fake/ldconfig && chmod +x fake/ldconfig
PATH=$dir/fake:$PATH
export PATH
status 0 "install under DESTDIR" env DESTDIR="$dir/stage" PREFIX=/opt/blk LIBDIR=/opt/blk/lib64 sh "$root/tools/install.sh" install "$build"
[ -e ldconfig.ran ] && bad "ldconfig ran under DESTDIR" || ok
[ "$(readlink stage/opt/blk/lib64/libblk.so.1)" = "libblk.so.$(sed -n 's/^ABI := //p' "$root/Makefile")" ] && ok || bad "libblk.so.1"
PKG_CONFIG_PATH=$dir/stage/opt/blk/lib64/pkgconfig
export PKG_CONFIG_PATH
told="$(pkg-config --modversion blk) $(pkg-config --cflags --libs blk)"
[ "$(echo $told)" = "$version -I/opt/blk/include -L/opt/blk/lib64 -lblk" ] && ok || bad "blk.pc: $told"
touch stage/opt/blk/lib64/other
status 0 "uninstall under DESTDIR" env DESTDIR="$dir/stage" PREFIX=/opt/blk LIBDIR=/opt/blk/lib64 sh "$root/tools/install.sh" uninstall "$build"
[ "$(find stage ! -type d)" = stage/opt/blk/lib64/other ] && [ ! -e stage/opt/blk/lib64/cmake/blk ] && ok || bad "left: $(find stage ! -type d)"
status 0 "install" env PREFIX="$dir/prefix" sh "$root/tools/install.sh" install "$build"
if [ "$(id -u)" = 0 ]; then [ -e ldconfig.ran ] && ok || bad "no ldconfig"; else skip 1; fi
status 0 "what is installed compiles" prefix/bin/blkc "$root/examples/vector_add/vector_add.blk" -o x.ptx

# ---- Completion: bash alone ----
completed() { # line: what is offered for its end
	bash -c '. '"$root"'/tools/package/completion.bash; PATH='"$build/bin:$PATH"'; compopt() { :; }
		COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=1; _blk; printf "%s\n" "${COMPREPLY[@]}" | xargs' bash "$1"
}
offers() { # line, what
	[ "$(completed "$1")" = "$2" ] && ok || bad "completion of '$1': $(completed "$1")"
}
offers 'blkc --em' '--emit='
offers 'blkc --emit=c' 'cubin'
offers 'blkc --emit=package,he' 'package,header'
offers 'blkc --target=sm_8' 'sm_80 sm_86 sm_89'
offers 'blkc --print-after=al' 'allocate_shared all'
offers 'blkc --diagnostics=' 'text json'
offers 'blkc --list-' '--list-passes --list-targets'
offers 'blkc -W' '-Werror'
offers 'blkc a' ''
offers 'blkrun --che' '--check'
offers 'blkrun --cache=' 'list clear'
offers 'blkrun --device=c' 'cpu'
offers 'blkrun --sim-s' '--sim-schedules= --sim-seed= --sim-steps='
# What is offered is what the manual page lists, and the other way round.
for command in blkc blkrun; do
	completed "$command -" | tr ' ' '\n' | sed 's/=$//' | sort -u >offered
	sed 's/\\-/-/g; s/\\f[A-Z]//g; s/"//g' "$root/docs/man/$command.1" | grep -A1 '^\.TP' | grep -oE -- '(^|[ |])--?[A-Za-z][-A-Za-z0-9]*' | tr -d ' |' | sort -u >listed
	diff offered listed >difference && ok || { bad "--help and docs/man/$command.1 differ"; cat difference; }
done
bash -n "$root/tools/package/completion.bash" && ok || bad "completion.bash"
if command -v zsh >/dev/null 2>&1; then zsh -n "$root/tools/package/_blk" && ok || bad "_blk"; else skip 1; fi

# ---- Manual pages ----
pages=prefix/share/man
if command -v groff >/dev/null 2>&1; then
	for page in "$pages"/man*/*; do
		groff -man -Kutf8 -Tutf8 -ww "$page" >text 2>warnings && [ -s text ] && [ ! -s warnings ] && ok || { bad "$page"; head -5 warnings; }
	done
else skip 4; fi
for name in $(grep -oE '\bblk_[a-z_]+\(' "$root/runtime/blk.h" | tr -d '(' | sort -u); do
	grep -q "$name" $pages/man3/blk.h.3 || bad "blk.h.3 has no $name"
done
for call in $(grep -oE '^\| `[a-z_0-9]+\(' "$root/docs/language.md" | tr -d '|`( '); do grep -q "$call" $pages/man7/blk.7 || bad "blk.7 has no $call"; done
grep -q '`\|\](' $pages/man7/blk.7 && bad "blk.7 has marks left: $(grep -n '`\|\](' $pages/man7/blk.7 | head -3)" || ok

# ---- Programs ----
if ldd "$build/lib/libblk.so" | grep -q 'libasan\|libubsan\|libtsan'; then skip 8; finish; fi
cp "$root/examples/vector_add/vector_add.blk" add.blk
awk '/^```/ { on = $0 == "```cpp"; next } on' "$root/docs/api.md" >add.cpp
# shellcheck disable=SC2046
status 0 "by pkg-config" c++ -std=c++17 -o by-pkg-config add.cpp $(PKG_CONFIG_PATH=prefix/lib/pkgconfig pkg-config --cflags --libs blk)
status 0 "what is linked by pkg-config runs" env LD_LIBRARY_PATH="$dir/prefix/lib" BLK_CPU=checked ./by-pkg-config
if ! command -v dpkg-deb >/dev/null 2>&1 || ! command -v dpkg-shlibdeps >/dev/null 2>&1; then
	echo "no dpkg-deb or dpkg-shlibdeps: no package is made"
	skip 6
	finish
fi
status 0 "make deb" env DEB_FLAGS=-Znone sh "$root/tools/deb.sh" "$build"
deb=$(cat out)
case $deb in /*) ;; *) deb=$root/$deb ;; esac
status 0 "its fields" dpkg-deb -f "$deb" Package Version Depends
says "^Version: $version\$"
says '^Depends: .*libc6 (>= 2'
status 0 "unpacked" dpkg-deb -x "$deb" system
[ -s system/usr/share/doc/blk/copyright ] && [ -s system/usr/share/man/man7/blk.7.gz ] && ok || bad "copyright or manual page"
if ! command -v cmake >/dev/null 2>&1; then
	echo "no cmake: find_package(blk) is not tried"
	skip 3
	finish
fi
# The lines of docs/api.md, and a program that uses what they make.
{
	printf 'cmake_minimum_required(VERSION 3.14)\nproject(add CXX)\n'
	awk '/^```/ { on = $0 == "```cmake"; next } on' "$root/docs/api.md"
} >CMakeLists.txt
sed -i 's|^#include <blk.hpp>|&\n#include "add.h"|; s|"add.blk", {{"BLOCK", 2048}}|BLK_KERNELS "/add.blkpkg"|' add.cpp
status 0 "cmake" cmake -S . -B made -DCMAKE_PREFIX_PATH="$dir/system/usr" -DCMAKE_BUILD_TYPE=Debug
status 0 "cmake --build" cmake --build made
status 0 "what CMake linked runs" env BLK_CPU=checked made/add
status 0 "a later version" sh -c 'sed "s/find_package(blk/& 99/" CMakeLists.txt >later && mkdir none && mv later none/CMakeLists.txt && ! cmake -S none -B never -DCMAKE_PREFIX_PATH="$1/system/usr"' sh "$dir"
finish
