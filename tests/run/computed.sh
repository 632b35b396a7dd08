#!/bin/sh
# usage: computed.sh BUILD      Const parameters that launches compute, as commands see them: what blkc says of code that stands
# alone, packages with some values, headers, and what is refused.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc blkrun=$build/bin/blkrun
BLK_CACHE_DIR=$dir/cache
export BLK_CACHE_DIR
cat >rows.blk <<'END'
kernel rows(y: *f32, x: *const f32, m: i32, n: i32,
    const BLOCK: i32 = max(16, next_pow2(n)) in 16..4096, const HALF: i32 = BLOCK / 2)
    grid(m) requires n > 0
{
    let j = arange(0, BLOCK);
    let inside = j < n;
    let v = load(x + program_id(0) * n + j, mask = inside);
    store(y + program_id(0) * n + j, v * (HALF * 2 == BLOCK ? 2.0 : 0.0), mask = inside);
}
END
sizes() { # n: arguments
	echo "y=f32[3,$1]:poison x=f32[3,$1]:randn m=3 n=$1"
}
cp rows.blk styled.blk
status 0 "in the one style" "$blkc" --format=check styled.blk
sed 's/ in 16\.\.4096/   in  16 .. 4096/' rows.blk >loose.blk
status 0 "brought into it" "$blkc" --format loose.blk && cmp -s loose.blk rows.blk && ok || bad "another style"

# Code that stands alone is for one value, and says so.
status 0 "alone" "$blkc" rows.blk
says '^blkc: note: kernel rows: BLOCK = max(16, next_pow2(n)) is computed at each launch; this code is for launches with BLOCK = 1024;'
says 'HALF = BLOCK / 2 is computed at each launch; this code is for launches with HALF = 512;'
status 0 "given" "$blkc" rows.blk -D BLOCK=64 -o given.ptx
silent 'note'
for n in 600 1024; do
	# shellcheck disable=SC2046
	status 0 "PTX, $n" "$blkrun" --device=sim rows.ptx $(sizes $n)
done
# shellcheck disable=SC2046
status 1 "other launches" "$blkrun" --device=sim rows.ptx $(sizes 300)
says 'requires BLOCK == max(16, next_pow2(n)) (it is computed at each launch, and this code is for one value), which does not hold: n = 300, BLOCK = 1024'
# shellcheck disable=SC2046
status 0 "a value that was given, for all" "$blkrun" --device=sim given.ptx $(sizes 30)

# Around the bounds, on every device.
for device in cpu sim:sm_80 sim:sm_90a; do
	for n in 1 16 17 4095 4096; do
		# shellcheck disable=SC2046
		status 0 "$n on $device" "$blkrun" --device=$device rows.blk $(sizes $n) --check cpu
		says '^check y against .*: good'
	done
	# shellcheck disable=SC2046
	status 1 "too long on $device" "$blkrun" --device=$device rows.blk $(sizes 4097)
	says '^blkrun: kernel rows: BLOCK = max(16, next_pow2(n)) is 8192, which is not in 16..4096: n = 4097$'
done

# Packages: the values that are named, and what follows from them.
status 0 "a package" "$blkc" rows.blk --emit=package --values=BLOCK=64,1024 --target=sm_80,cpu
for device in cpu sim:sm_80; do
	for n in 40 64 1000; do
		# shellcheck disable=SC2046
		status 0 "packed, $n on $device" "$blkrun" --device=$device rows.blkpkg $(sizes $n) --check cpu
		says '^check y against .*: good'
	done
	# shellcheck disable=SC2046
	status 1 "a value that is not packed, on $device" "$blkrun" --device=$device rows.blkpkg $(sizes 100)
	says '^blkrun: rows.blkpkg: kernel rows has no code for BLOCK=128,HALF=64; it has BLOCK=64,HALF=32; BLOCK=1024,HALF=512$'
	# shellcheck disable=SC2046
	status 1 "out of bounds, on $device" "$blkrun" --device=$device rows.blkpkg $(sizes 5000)
	says 'is 8192, which is not in 16..4096: n = 5000$'
done
# shellcheck disable=SC2046
status 1 "a define of what is computed" "$blkrun" --device=cpu rows.blkpkg $(sizes 40) -D BLOCK=64
says 'launches of kernel rows compute BLOCK, as it was packed: a define cannot give it'
status 0 "a package with a value given" "$blkc" rows.blk --emit=package -D BLOCK=64 --target=cpu -o one.blkpkg
# shellcheck disable=SC2046
status 0 "which is for every launch" "$blkrun" --device=cpu one.blkpkg $(sizes 20)
status 0 "the usual values" "$blkc" rows.blk --emit=package --target=cpu -o usual.blkpkg
# shellcheck disable=SC2046
status 0 "one of them" "$blkrun" --device=cpu usual.blkpkg $(sizes 2049)
status 2 "values of nothing" "$blkc" rows.blk --emit=package --values=BLOK=64
says '^blkc: --values=BLOK=64: no kernel computes BLOK at a launch$'
status 1 "a value out of bounds" "$blkc" rows.blk --emit=package --values=BLOCK=8
says 'BLOCK = 8 is not in its bounds, 16..4096'
status 2 "no values" "$blkc" rows.blk --emit=package --values=BLOCK=
says '^blkc: --values needs NAME=VALUE\[,VALUE\]'
status 2 "values of PTX" "$blkc" rows.blk --values=BLOCK=64
says '^blkc: --values is for --emit=package; -D BLOCK=VALUE binds one'
echo 'kernel any(y: *i32, n: i32, const N: i32 = n) grid(1) { store(y, N); }' >any.blk
status 1 "without bounds" "$blkc" any.blk --emit=package --target=cpu
says 'launches of kernel any compute N, so a package holds code for chosen values of it: --values=N=256,512, or bounds'
status 0 "without bounds, named" "$blkc" any.blk --emit=package --target=cpu --values=N=3,5
status 0 "a value of an identity" "$blkrun" --device=cpu any.blkpkg y=i32[1] n=5
says '^ *5$'
# Values that a bound allows but the kernel does not are left out, where nobody named them.
echo 'kernel some(y: *i32, n: i32, const N: i32 = n in 1..8) grid(1) { static_assert(N != 4, "not 4"); store(y, N); }' >some.blk
status 0 "values that compile" "$blkc" some.blk --emit=package --target=cpu
status 0 "one that does" "$blkrun" --device=cpu some.blkpkg y=i32[1] n=8
status 1 "one that does not" "$blkrun" --device=cpu some.blkpkg y=i32[1] n=4
says 'has no code for N=4; it has N=1; N=2; N=8$'
status 1 "named, it is an error" "$blkc" some.blk --emit=package --target=cpu --values=N=4
says 'error\[E0312\]'

# Headers: launchers, and questions that need no buffers.
status 0 "a header" "$blkc" rows.blk --emit=header
grep -q '^ \* A launch computes BLOCK = max(16, next_pow2(n)) in 16..4096\.$' rows.h && ok || bad "rows.h: no BLOCK"
grep -q 'one value' rows.h && bad "rows.h speaks of one code" || ok
cat >host.c <<'END'
#include "rows.h"
#include <stdio.h>
static int failed(void) { return printf("%s\n", blk_error()), 1; }
int main(int argc, char **argv)
{
	blk_device *d;
	blk_module *m;
	blk_buffer *x, *y;
	float out[90];
	int64_t block, half;
	if (argc < 3 || blk_device_open(argv[1], &d) || blk_module_open(d, argv[2], NULL, 0, &m)) return failed();
	if (rows_computed_BLOCK(m, 3, 30, &block) || rows_computed_HALF(m, 3, 1000, &half)) return failed();
	printf("%d %d\n", (int)block, (int)half);
	if (rows_computed_BLOCK(m, 3, 9000, &block) != BLK_ERROR_ARGUMENT) return 2;
	if (blk_buffer_create(d, sizeof out, &x) || blk_buffer_create(d, sizeof out, &y)) return failed();
	for (int i = 0; i < 90; i++) out[i] = (float)i;
	if (blk_buffer_write(x, 0, out, sizeof out) || rows_launch_buffers(m, NULL, y, x, 2, 45)) return failed();
	if (blk_buffer_read(y, 0, out, sizeof out)) return failed();
	for (int i = 0; i < 90; i++) if (out[i] != 2 * i) return 3;
	blk_module_close(m);
	blk_device_close(d);
	return 0;
}
END
status 0 "it compiles" ${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$root/runtime" host.c -L"$build/lib" -lblk -Wl,-rpath,"$build/lib" -o host
# A sanitizer's runtime has to come first in a program.
if ldd "$build/lib/libblk.so" | grep -q 'libasan\|libubsan\|libtsan'; then skip 6; finish; fi
for code in rows.blk rows.blkpkg; do
	status 0 "it runs on cpu, $code" ./host cpu $code
	says '^32 512$'
	status 0 "it runs on a simulator, $code" ./host sim:sm_80 $code
done
finish
