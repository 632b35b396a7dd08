#!/bin/sh
# usage: packages.sh BUILD     Packages and headers from the shell: made by blkc, run by libblk alone, compiled as C11 and
#                              as C++17; the same bytes everywhere; damaged files are errors.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc blkrun=$build/bin/blkrun
cp -r "$root/examples" examples
BLK_CACHE=off BLK_TUNE=off
export BLK_CACHE BLK_TUNE
add=examples/vector_add/vector_add.blk

cat >tuned.blk <<'END'
kernel scale(class: *f32, const_: *const f32, int: f32, n: i32, const BLOCK: i32 = 256)
	grid(cdiv(n, BLOCK))
{
	let i = program_id(0) * BLOCK + arange(0, BLOCK);
	store(class + i, load(const_ + i, mask = i < n) * int + BLOCK.to(f32), mask = i < n);
}
kernel every(a: *bool, b: *i8, c: *u16, d: *const f16, e: *bf16, f: *f8e4m3, g: *f64, blk_m: i64, blk_k: bool, h: i8, i: i16,
	j: u8, k: u16, l: u32, m: u64, o: f16, p: bf16, q: f32, r: f64, t: f8e5m2, x: i32, x_: i32)
{
	store(g, r);
}
kernel blk() grid(1) {}
autotune scale key(n) { BLOCK: [128, 512]; }
END
cat >main.c <<'END'
#include "tuned.h"
#include <stdio.h>

/* The launchers that take buffers, and what they refuse. */
static int run_buffers(blk_device *d, blk_module *m, float bias)
{
	enum { N = 1000 };
	static float host[N];
	blk_buffer *x, *z, *freed;
	for (int i = 0; i < N; i++) host[i] = (float)i;
	if (blk_buffer_create(d, sizeof host, &x) || blk_buffer_create(d, sizeof host, &z) || blk_buffer_create(d, 4, &freed) ||
		blk_buffer_write(x, 0, host, sizeof host) || blk_buffer_fill(z, 0, 0, sizeof host) ||
		scale_launch_buffers(m, NULL, z, x, 2.0f, N - 1) || blk_buffer_read(z, 0, host, sizeof host))
		return printf("%s\n", blk_error()), 1;
	for (int i = 0; i < N; i++)
		if (host[i] != (i < N - 1 ? 2 * (float)i + bias : 0)) return 1;
	blk_buffer_free(freed);
	return scale_launch_buffers(m, NULL, freed, x, 2.0f, N) != BLK_ERROR_HANDLE ||
	       scale_launch_buffers(m, NULL, NULL, x, 2.0f, N) != BLK_ERROR_ARGUMENT;
}

static int run(const char *path, const blk_define *defines, size_t n, float bias)
{
	enum { N = 1000 };
	static float x[N], z[N];
	static double g[1];
	blk_device *d;
	blk_module *m;
	int wrong = 0;
	for (int i = 0; i < N; i++) x[i] = (float)i, z[i] = -1;
	if (blk_device_open("cpu", &d)) return printf("%s\n", blk_error()), 1;
	const blk_grid one = {1, 1, 1};
	if (blk_module_open(d, path, defines, n, &m) || scale_launch(m, NULL, z, x, 2.0f, N - 1) ||
		every_launch(m, NULL, one, NULL, NULL, NULL, NULL, NULL, NULL, g, 1, true, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4.5, 1, 1, 1) ||
		blk_kernel_launch(m, NULL)) {
		printf("%s\n", blk_error());
		wrong = 1;
	}
	for (int i = 0; i < N && !wrong; i++) wrong = z[i] != (i < N - 1 ? 2 * (float)i + bias : -1);
	if (g[0] != 4.5 || run_buffers(d, m, bias)) wrong = 1;
	if (blk_module_open(d, "add.blkpkg", NULL, 0, &m) || scale_launch(m, NULL, z, x, 2.0f, N) != BLK_ERROR_NOT_FOUND) wrong = 1;
	blk_device_close(d);
	return wrong;
}

int main(void)
{
	static const blk_define big[] = {{"BLOCK", "512"}};
	return run("tuned.blkpkg", NULL, 0, 256) || run("tuned.blkpkg", big, 1, 512);
}
END

status 0 "--emit=package,header" "$blkc" tuned.blk --emit=package,header
[ -s tuned.blkpkg ] && [ -s tuned.h ] && ok || bad "tuned.blkpkg or tuned.h is missing"
status 0 "-o" "$blkc" $add --emit=package -o add.blkpkg
[ "$(head -c 6 add.blkpkg)" = blkpkg ] && ok || bad "add.blkpkg is no package"

# libblk alone: a folder that has no compiler in it.
mkdir alone && cp "$build/lib/libblk.so.1" alone/
strict="-Wall -Wextra -Werror -pedantic -I$root/runtime"
for compiler in gcc g++ clang clang++; do
	command -v $compiler >/dev/null 2>&1 || { skip 2; continue; }
	case $compiler in *++) language="-x c++ -std=c++17" ;; *) language="-x c -std=c11" ;; esac
	# shellcheck disable=SC2086
	status 0 "tuned.h with $compiler" $compiler $language $strict $SAN_FLAGS -o run_$compiler main.c -x none alone/libblk.so.1
	if ldd alone/libblk.so.1 | grep -q 'libasan\|libubsan'; then skip 1; continue; fi
	status 0 "the launchers, $compiler" env LD_LIBRARY_PATH="$dir/alone" ./run_$compiler
done
grep -q 'libblkc\|libLLVM' alone/libblk.so.1 && ldd alone/libblk.so.1 | grep -q 'libblkc\|libLLVM' && bad "libblk needs the compiler" || ok

# Every example packs, and a few of all kinds do again, to the same bytes wherever and with however many processors.
# One tile of matrix products and of attention is enough here: all of them take minutes on one processor.  Runs that take some of
# the cases take three of the examples.
for e in examples/*/*.blk; do
	n=$(basename "$e" .blk)
	[ -z "${ONE_CASE_IN:-}" ] || case $n in vector_add | softmax | attention_decode) ;; *) continue ;; esac
	case $n in matmul*) tile="-D BM=64 -D BN=32 -D BK=32 -D num_warps=4 -D num_stages=3" ;;
	attention) tile="-D BM=128 -D BN=32 -D num_warps=8 -D num_stages=2" ;;
	attention_backward) tile="-D BM=32 -D BN=32 -D num_warps=8 -D num_stages=2" ;;
	attention_decode) tile="-D BN=32 -D num_warps=2" ;;
	softmax | layer_norm | rms_norm) tile="--values=BLOCK=32,1024" ;;
	top_k) tile="--values=K=8,64" ;;
	*) tile= ;;
	esac
	status 0 "$e" "$blkc" "$e" $tile --emit=package -o "$n.blkpkg"
	case $n in vector_add | softmax | matmul_grouped | attention_decode) ;; *) continue ;; esac
	mkdir -p elsewhere && cp -r examples elsewhere/
	(cd elsewhere && env -i TZ=Asia/Tokyo taskset 1 "$blkc" "$e" $tile --emit=package -o two.blkpkg)
	cmp -s "$n.blkpkg" elsewhere/two.blkpkg && ok || bad "$e: other bytes from another folder or with one processor"
done

# blkrun takes a package like a source, and checks it against the source's results.
status 0 "blkrun" "$blkrun" --device=cpu add.blkpkg:add z=f32[1000]:poison x=f32[1000]:randn y=f32[1000]:randn n=1000 --out z=packed.npy
status 0 "blkrun, checked" "$blkrun" --device=cpu $add:add z=f32[1000]:poison x=f32[1000]:randn y=f32[1000]:randn n=1000 --check packed.npy
status 1 "a configuration that is not there" "$blkrun" --device=cpu tuned.blkpkg:scale class=f32[8] const_=f32[8] int=2.0 n=8 -D BLOCK=64
says 'has no configuration with BLOCK=64; it has the defaults; BLOCK=128; BLOCK=512'

# Tuning needs no compiler either; the second time all is known.
mkdir -p installed/bin installed/lib && cp "$blkrun" installed/bin/ && cp "$build/lib/libblk.so.1" "$build/lib/blk-trial" installed/lib/
cat >twice.blk <<'END'
kernel twice(z: *f32, x: *const f32, n: i32, const BLOCK: i32 = 256) grid(cdiv(n, BLOCK))
{
	let i = program_id(0) * BLOCK + arange(0, BLOCK);
	store(z + i, load(x + i, mask = i < n) * 2.0, mask = i < n);
}
autotune twice key(n) { BLOCK: [64, 128, 512]; }
END
status 0 "a package to tune" "$blkc" twice.blk --emit=package
for count in 3 0; do
	status 0 "tuning" env BLK_CACHE=on BLK_CACHE_DIR="$dir/cache" BLK_TUNE=auto installed/bin/blkrun --device=cpu --tune twice.blkpkg \
		z=f32[5000]:poison x=f32[5000]:arange n=5000 --out z=twice.npy
	says "^$count configurations tried"
	says '^\* BLOCK='
done
status 0 "what was tuned computes the same" env LD_LIBRARY_PATH= "$blkrun" --device=cpu twice.blk z=f32[5000]:poison x=f32[5000]:arange n=5000 --check twice.npy

# What a kernel requires goes with each configuration: only what these arguments fit is tried, by the host's arithmetic alone.
sed 's/^{/requires n <= BLOCK * 16, "*\/ it \xce\x94 fits"\n&/' twice.blk >fits.blk
status 0 "a package that requires" "$blkc" fits.blk --emit=package
for n in 1000 5000; do
	for file in fits.blk fits.blkpkg; do
		status 0 "$file for $n" env BLK_CACHE=on BLK_CACHE_DIR="$dir/cache$file" BLK_TUNE=auto "$blkrun" --device=cpu --tune $file z=f32[5000]:poison x=f32[5000]:arange n=$n
		[ $n = 5000 ] && { says '^  BLOCK=64 *does not fit: the kernel requires n <= BLOCK \* 16 (\*/ it Δ fits)$'; says '^\* BLOCK=512 '; says '^  BLOCK=128 *does not fit'; }
		[ $n = 1000 ] && silent 'does not fit'
	done
done
for file in fits.blk fits.blkpkg; do
	status 1 "$file for too many" env BLK_TUNE=auto "$blkrun" --device=cpu $file z=f32[9000] x=f32[9000] n=9000
	says '^blkrun: kernel twice requires n <= BLOCK \* 16 (\*/ it Δ fits), which does not hold: n = 9000, BLOCK = 256; none of its 3 configurations fits either$'
	status 1 "$file untuned" env BLK_TUNE=off "$blkrun" --device=cpu $file z=f32[5000] x=f32[5000] n=5000
	says '^blkrun: .*which does not hold: n = 5000, BLOCK = 256$'
done
status 0 "a header that requires" "$blkc" fits.blk --emit=header; grep -q 'It requires n <= BLOCK \* 16 (\./ it Δ fits)' fits.h && ok || bad "fits.h: $(head -20 fits.h)"
status 0 "PTX that requires" "$blkc" fits.blk; LC_ALL=C grep -q '[^ -~	]' fits.ptx && bad "fits.ptx is not ASCII" || ok
grep -q '^// blk: fits' fits.ptx && bad "fits.ptx speaks of configurations" || ok
status 1 "PTX for too many" "$blkrun" --device=sim fits.ptx z=f32[5000] x=f32[5000] n=5000; says 'which does not hold: n = 5000, BLOCK = 256$'

status 0 "other targets" "$blkc" $add --emit=package --target=sm_89 -o gpu.blkpkg
status 1 "no code for cpu" "$blkrun" --device=cpu gpu.blkpkg:add z=f32[8] x=f32[8] y=f32[8] n=8
says 'it has sm_89'
status 0 "more targets" "$blkc" $add --emit=package --target=+sm_100a,sm_120a -o more.blkpkg
grep -q sm_120a more.blkpkg && grep -q sm_90a more.blkpkg && ok || bad "more.blkpkg lacks targets"
status 0 "clusters" "$blkc" examples/matmul/matmul.blk --kernel=matmul_tensor -D BM=64 -D BN=64 -D BK=64 -D num_warps=4 -D num_stages=3 -D num_ctas=2 \
	--emit=package -o cluster.blkpkg
product="c=f16[128,64]:poison a=f16[128,128]:randn b=f16[128,64]:randn M=128 N=64 K=128"
# shellcheck disable=SC2086
status 0 "a cluster from a package" "$blkrun" --device=sim:sm_90a cluster.blkpkg:matmul_tensor $product --check cpu
if grep -aq '^cluster 2$' cluster.blkpkg; then ok; else bad "the package says nothing of clusters"; fi
status 2 "an unknown target" "$blkc" $add --emit=package --target=sm_80,sm_1 -o x.blkpkg; says "unknown target 'sm_1'"
status 2 "several targets for PTX" "$blkc" $add --target=sm_80,cpu; says 'for --emit=package'
status 2 "package beside ptx" "$blkc" $add --emit=package,ptx; says 'stands alone'
status 2 "a promise that packages do not know" "$blkc" $add --emit=package --specialize=n%32 -o x.blkpkg; says 'NAME%16'
status 2 "a promise that is not this kernel's step" "$blkc" $add --emit=package --specialize=n%8 -o x.blkpkg; says 'make 16 bytes'
status 0 "the step" "$blkc" $add --emit=package --specialize=n%4 -o x.blkpkg
status 0 "one more specialisation" "$blkc" $add --emit=package --specialize=n=1 -o x.blkpkg
grep -q 'param n i32 one' x.blkpkg && ok || bad "--specialize=n=1 is not in the package"
rm -f x.blkpkg
echo 'kernel k(x: *f32) grid(1) { store(x, yy); }' >wrong.blk
status 1 "a source with errors" "$blkc" wrong.blk --emit=package -o x.blkpkg; says 'error\[E'
echo 'kernel k(x: *f32, const N: i32 = 2) grid(1) { static_assert(N == 3, "not three"); store(x, 1.0); }' >wrong.blk
status 1 "defaults that do not compile" "$blkc" wrong.blk --emit=package -o x.blkpkg; says 'not three'
echo '// nothing' >wrong.blk
status 1 "no kernel" "$blkc" wrong.blk --emit=package -o x.blkpkg; says 'no kernel'
[ -e x.blkpkg ] && bad "a package after an error" || ok

# Damaged files: a sentence, never a crash.
size=$(wc -c <add.blkpkg)
for n in 0 1 7 8 95 96 500 $((size / 2)) $((size - 1)); do
	head -c "$n" add.blkpkg >cut.blkpkg
	status 1 "the first $n bytes" "$blkrun" --device=cpu cut.blkpkg:add z=f32[8] x=f32[8] y=f32[8] n=8
done
says 'truncated'
cp add.blkpkg other.blkpkg && printf 'X' | dd of=other.blkpkg bs=1 seek=$((size - 9)) conv=notrunc 2>/dev/null
status 1 "a changed byte" "$blkrun" --device=cpu other.blkpkg:add z=f32[8] x=f32[8] y=f32[8] n=8; says 'checksum'
cp $add source.blkpkg
status 1 "a source under a package's name" "$blkrun" --device=cpu source.blkpkg:add z=f32[8] x=f32[8] y=f32[8] n=8; says 'not a blk package'

finish
