#!/bin/sh
# usage: cpp.sh BUILD      blk.hpp: both compilers, both standards, without a warning; its test program on cpu and in the
#                          simulator; the program of docs/api.md as it is printed; without exceptions.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
BLK_CACHE_DIR=$dir/cache
export BLK_CACHE_DIR
sanitized=no
if ldd "$build/lib/libblk.so" | grep -q 'libasan\|libubsan\|libtsan'; then sanitized=yes; fi
strict="-Wall -Wextra -Werror -Wshadow -pedantic -I$root/runtime"
linked="-L$build/lib -lblk -Wl,-rpath,$build/lib"
cp "$root/examples/vector_add/vector_add.blk" add.blk
awk '/^```/ { on = $0 == "```cpp"; next } on' "$root/docs/api.md" >add.cpp
cat >quiet.cpp <<'END'
#include <blk.hpp>
int main()
{
	blk::result<blk::device> d = blk::device::try_open("cpu");
	if (!d || blk::device::try_open("toaster").status() != BLK_ERROR_ARGUMENT) return 1;
	blk::result<blk::module> m = blk::module::try_open(*d, "add.blk");
	blk::result<blk::kernel> k = m ? m->try_kernel("add") : blk::failure{m.status(), std::string(m.text())};
	return !k || k->try_launch(1).status() != BLK_ERROR_TYPE;
}
END
for which in g++:c++17: clang++:c++20: g++:c++20:-fsyntax-only clang++:c++17:-fsyntax-only; do
	compiler=${which%%:*} flags=${which##*:} standard=${which#*:}
	standard=${standard%:*}
	command -v "$compiler" >/dev/null 2>&1 || { skip 1; continue; }
	# shellcheck disable=SC2086
	status 0 "blk.hpp, $compiler -std=$standard $flags" $compiler -std=$standard $strict -o "api-$compiler" "$root/tests/cpp/api.cpp" ${flags:-$linked}
done
if [ $sanitized = yes ]; then skip 6; finish; fi
for device in cpu sim; do
	if [ -e api-g++ ]; then suite ./api-g++ $device; else skip 1; fi
done
if [ -e api-clang++ ]; then suite ./api-clang++ cpu; else skip 1; fi
compiler=$(command -v g++ || command -v clang++)
# shellcheck disable=SC2086
status 0 "the program of docs/api.md" $compiler -std=c++17 $strict -o add add.cpp $linked
status 0 "it runs" env BLK_CPU=checked ./add
# shellcheck disable=SC2086
status 0 "no exceptions" $compiler -std=c++17 -fno-exceptions $strict -o quiet quiet.cpp $linked
status 0 "failures as values" ./quiet
mv add.blk gone.blk
status 1 "the program of docs/api.md without its kernel" ./add; says 'add.blk'
finish
