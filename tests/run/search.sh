#!/bin/sh
# usage: search.sh BUILD      a tuner that searches, on the cpu device: what an order lets be tried, conditions and keys over
# arguments, the nearest key's choice, lists of sizes, tunings that are interrupted.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
export BLK_CACHE_DIR="$dir/cache"
run() { # name arguments...
	title=$1
	shift
	status 0 "$title" "$build/bin/blkrun" --device=cpu "$@"
}
clean() { rm -rf cache/tune; }
records() { cat cache/tune/* 2>/dev/null; }
cat >k.blk <<'K'
fn waves(tiles) { return cdiv(tiles, 4); }
fn predicted(n, const BLOCK: i32, const MORE: i32 = 0, scale = 1.0) {
    let tiles = cdiv(n, BLOCK);
    let rounds = waves(tiles) + MORE;
    if MORE > 0 { return scale * rounds * rounds; }
    return BLOCK == 64 ? 0.0 - 1 : scale * rounds + (BLOCK == 128 ? (n - n) / (n - n) : 0);
}
kernel k(y: *f32, n: i32, const BLOCK: i32 = 8, const ADD: i32 = 1)
    grid(cdiv(n, BLOCK))
    requires n < 1000
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, load(y + i, mask = i < n, other = 0.0) + ADD.to(f32), mask = i < n);
}
autotune k key(n) {
    BLOCK: [4, 8, 16, 32, 64, 128, 256];
    where BLOCK <= n;
    order predicted(n, BLOCK);
    try 2;
}
K
job() { what=$1; shift; run "$what" k.blk y=f32[200]:zeros "$@"; }
# Of 140 in blocks of 4, 8, 16 and 32: 9, 5, 3, 2 rounds; -1 and nan are behind them; 256 is no block for so few.
job "the two best" n=140 --tune
says '^[ *] BLOCK=16 '; says '^[ *] BLOCK=32 '; says '^2 configurations tried, 4 left out$'
says 'BLOCK=256 .*does not fit: the autotune block.s where refuses it for these arguments'
[ "$(records | grep -c '^good')" = 2 ] && ok || bad "other than two records"
job "nothing is left to try" n=140 --tune; says '^0 configurations tried, all 2 known, 4 left out$'
sed 's/try 2/try 6/' k.blk >six.blk
run "nan and negative ones are last" six.blk y=f32[200]:zeros n=140 --tune; says '^4 configurations tried, the others known$'
says '^[ *] BLOCK=64 '; says '^[ *] BLOCK=128 '
job "by an argument" n=5 --tune; says '^1 configuration tried$'; says '^\* BLOCK=4 '
clean
job "unasked, the most promising one is used" n=140 --verbose; says ', BLOCK=32$'
[ -e cache/tune ] && bad "it was tuned unasked" || ok
sed '/order/d' k.blk >spread.blk
run "without an order they are spread" spread.blk y=f32[200]:zeros n=200 --tune
says '^[ *] BLOCK=4 '; says '^[ *] BLOCK=64 '; says '^2 configurations tried, 4 left out$'
sed 's/try 2;/try 2; BLOCK2: [1];/; s/const ADD/const BLOCK2: i32 = 0, const ADD/; s/predicted(n, BLOCK)/predicted(n, BLOCK, MORE = BLOCK2, scale = 2.0 * ADD)/' k.blk >known.blk
clean
run "an if over what is known" known.blk y=f32[200]:zeros n=140 --tune; says '^[ *] BLOCK=128'; says '^[ *] BLOCK=64'

# ---- A space that a block imports: its parameters, and what the block says itself ----
cat >space.blk <<'END'
autotune blocks(N, T = f16) { BLOCK: [32, 64, 128]; num_warps: [8]; where BLOCK * T.bytes <= N; order N / BLOCK; try 1; }
kernel k(y: *f32, n: i32, const BLOCK: i32 = 16) grid(cdiv(n, BLOCK)) {
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, i.to(f32), mask = i < n);
}
autotune k key(n) { import blocks(2 * n, T = f32); num_warps: [1]; try 3; }
END
run "a space" space.blk y=f32[140]:zeros n=140 --tune; says '^2 configurations tried'; says '^[ *] BLOCK=64,num_warps=1 '; says 'BLOCK=128,num_warps=1 .*does not fit'

# ---- The order of gemm_waves: a last wave of 8 tiles on 132 is cut in parts, a whole one is not ----
cat >waves.blk <<'END'
import "blk/gemm.blk";
kernel waves(y: *f32, parts: *f32, M: i32, N: i32, K: i32, const BM: i32 = 64, const BN: i32 = 64, const BK: i32 = 64,
    const GROUP: i32 = 8, const PART: i32 = 0) grid(1) { store(y, (BM + BN + BK + GROUP + PART).to(f32)); }
autotune waves key(M, N, K) { import gemm_waves_space(M, N, K, parts); }
END
waves() { what=$1; shift; BLK_CPU_THREADS=132 run "$what" waves.blk y=f32[1]:poison parts=f32[1] --verbose "$@"; }
for n in 2560 5120; do waves "parts, $n" M=$n N=5120 K=3072; says ',PART=\(192\|384\),'; done
waves "four whole waves" M=4224 N=4096 K=4096; says ', BM=128,BN=256,BK=64,PART=0,'
waves "a short K" M=5120 N=5120 K=256; says ',PART=0,'

# ---- What is wrong, or does not compile, is never chosen, however it is predicted; another takes the place of the latter ----
cat >bad.blk <<'K'
kernel bad(y: *f32, n: i32, const BLOCK: i32 = 8, const ADD: i32 = 1) grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, load(y + i, mask = i < n, other = 0.0) + ADD.to(f32), mask = i < n);
}
autotune bad key(n) {
    config(BLOCK = 8); config(BLOCK = 16); config(BLOCK = 32, ADD = 2); config(BLOCK = 131); config(BLOCK = 262); config(BLOCK = 64);
    order (BLOCK == 32 ? 0 : BLOCK % 131 == 0 ? 1 : BLOCK) + 0.0 * n;
    try 3;
}
K
clean
run "bad ones" bad.blk n=50 y=f32[50]:zeros --tune
says 'BLOCK=131 .*does not compile'; says 'BLOCK=262 .*does not compile'; says 'BLOCK=32,ADD=2 .*wrong result'
says '^[ *] BLOCK=8 '; says '^[ *] BLOCK=16 '; says '^5 configurations tried, 1 left out$'; says '  1  1  1'

# ---- Keys of expressions: arguments of one key share a record, as far as the block's conditions let them ----
cat >coarse.blk <<'K'
kernel coarse(y: *f32, n: i32, const BLOCK: i32 = 8) grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, load(y + i, mask = i < n, other = 0.0) + 1.0, mask = i < n);
}
autotune coarse key(next_pow2(n), n % 8 / 2) { BLOCK: [8, 16, 32, 64]; where BLOCK + 8 <= n; order 100.0 - BLOCK; try 2; }
K
coarse() { what=$1; shift; run "$what" coarse.blk y=f32[200]:zeros "$@"; }
clean
coarse "a key of an expression" n=60 --tune; says '^2 configurations tried, 1 left out$'
says '^[ *] BLOCK=16 '; says '^[ *] BLOCK=32 '; says 'BLOCK=64 .*does not fit'
records | grep -q '^key next_pow2(n) 64$' && records | grep -q '^key n % 8 / 2 2$' && ok || bad "the record's key: $(records)"
coarse "another argument of the same key" n=52 --tune; says '^0 configurations tried, all 2 known'
coarse "one that is refused what the record has" n=36 --tune; says 'BLOCK=32 .*does not fit'; says '^1 configuration tried, the other known$'
coarse "another key" n=50 --tune; says '^2 configurations tried'

# ---- The nearest key's choice ----
clean
BLK_TUNE=nearest job "nearest, nothing known" n=100; [ "$(records | grep -c '^good')" = 2 ] && ok || bad "it was not tuned"
chosen=$(records | sed -n 's/^good \([0-9.e-]*\) \(.*\)/\1 \2/p' | sort -g | sed -n '1s/.* //p')
BLK_TUNE=nearest job "nearest" n=110 --verbose; says ", $chosen\$"
[ "$(ls cache/tune | wc -l)" = 1 ] && ok || bad "nearest tuned beside a known key"
BLK_TUNE=nearest job "a nearest that these arguments cannot use" n=6; [ "$(ls cache/tune | wc -l)" = 2 ] && ok || bad "it was not tuned"
BLK_TUNE=nearest job "asked for" n=110 --tune; says '^2 configurations tried'

# ---- A package carries order, conditions and keys ----
clean
status 0 "a package" "$build/bin/blkc" --emit=package --target=cpu coarse.blk -o coarse.blkpkg
run "a package searches" coarse.blkpkg y=f32[200]:zeros n=60 --tune
says '^[ *] BLOCK=16 '; says '^[ *] BLOCK=32 '; says '^2 configurations tried, 1 left out$'; says 'BLOCK=64 .*does not fit'
run "a package's keys" coarse.blkpkg y=f32[200]:zeros n=52 --tune; says '^0 configurations tried'

# ---- A list of sizes, ahead of time ----
clean
job "a list" n=20,40,100 --tune; says '^n = 40$'
[ "$(ls cache/tune | wc -l)" = 3 ] && ok || bad "not a record for each size"
job "a list again" n=20,40,100 --tune; grep -q '^[1-9].* tried' out && bad "it tried again" || ok

# ---- A tuning that is interrupted keeps what it measured ----
# Each of eight measurements takes about a second: while the first two are looked for, the tuning still runs.
cat >slow.blk <<'K'
kernel slow(y: *f32, n: i32, const TURNS: i32 = 1) grid(1)
{
    var x = load(y + arange(0, 8));
    for i in range(0, n) { x = sin(x) + 1.0; }
    store(y + arange(0, 8), x);
}
autotune slow key(n) { TURNS: [1, 2, 3, 4, 5, 6, 7, 8]; reset y; }
K
for how in isolated auto; do
	clean
	BLK_TUNE=$how "$build/bin/blkrun" --device=cpu slow.blk n=15000000 y=f32[8] >out 2>err &
	tuning=$!
	for i in $(seq 300); do
		[ "$(records | grep -c '^good')" -ge 2 ] && break
		sleep 0.1
	done
	kill -KILL $tuning 2>/dev/null && ok || bad "$how: it had ended"
	wait $tuning 2>/dev/null
	kept=$(records | grep -c '^good')
	[ "$kept" -ge 2 ] && ok || bad "$how: $kept of its measurements were kept"
done
# The library's space, for each type of operands and either order of B, is no more than a kernel may take.
for t in f8e4m3:f16 f16:f16 bf16:bf16 f32:f32; do
	in=${t%:*} out=${t#*:}
	for order in "false b=$in[K,N]:ones" "true b=$in[N,K]:ones"; do
		BLK_TUNE=first run "the space of products of $in, TRANSPOSED ${order% *}" "$root/examples/matmul/matmul.blk:matmul_tuned" -D T=$in -D OUT=$out \
			-D TRANSPOSED="${order% *}" c=$out[M,N] a=$in[M,K]:ones "${order#* }" M=24 N=40 K=16
		says '\[0, 0\] 16  16  16'
	done
done
finish
