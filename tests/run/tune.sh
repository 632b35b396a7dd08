#!/bin/sh
# usage: tune.sh BUILD      the autotuner on the cpu device: verdicts, buffers put back, the records on disk.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
export BLK_CACHE_DIR="$dir/cache"
run() { # name arguments...
	title=$1
	shift
	status 0 "$title" "$build/bin/blkrun" --device=cpu "$@"
}
cat >k.blk <<'K'
kernel k(y: *f32, n: i32, const BLOCK: i32 = 8, const ADD: i32 = 1)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(y + i, mask = i < n, other = 0.0);
    store(y + i, v + ADD.to(f32), mask = i < n);
}
autotune k key(n) { config(BLOCK = 8); config(BLOCK = 64); config(BLOCK = 131); config(BLOCK = 64, ADD = 2); }
K
job() { what=$1; shift; run "$what" k.blk n=5 y=f32[5]:arange "$@"; }
job first --tune
says '^4 configurations tried$' # there are no others
says 'BLOCK=131 .*does not compile'
says 'BLOCK=64,ADD=2 .*wrong result: y differs'
grep '^\*' out | grep -q 'ADD\|=131' && bad "a bad configuration was chosen" || ok
says '  1  2  3  4  5' # in place: put back around every trial
job second --tune; says '^0 configurations tried, all 4 known'
run export --cache=export records.txt; says '^1 tuning records'
record=$(ls cache/tune/*)
cp "$record" good
size=$(wc -c <good)
for n in 0 1 20 $((size / 2)) $((size - 1)); do
	head -c "$n" good >"$record"
	job "truncated to $n" --tune; says '^4 configurations tried'; says 'damaged'
done
sed 's/^good 0/good 1/' good >"$record"
job "changed" --tune; says '^4 configurations tried'
rm -r cache/tune
run import --cache=import records.txt; says '^1 tuning records'
job imported --tune; says '^0 configurations tried'
rm -r cache/tune
BLK_TUNE=cached job cached; says '  1  2  3  4  5'; [ -e cache/tune ] && bad "cached tuned" || ok
pids=
for i in 1 2 3 4 5 6 7 8; do
	BLK_TUNE=auto "$build/bin/blkrun" --device=cpu k.blk n=5 y=f32[5]:arange >"out.$i" 2>&1 & pids="$pids $!"
done
for p in $pids; do wait "$p" && ok || bad "one of 8 processes"; done
for i in 1 2 3 4 5 6 7 8; do grep -q '  1  2  3  4  5' "out.$i" && ok || bad "process $i"; done
job after --tune; says '^0 configurations tried'
BLK_TUNE=auto BLK_CACHE_DIR=/proc/nowhere job "no folder"; says '  1  2  3  4  5'

clean() { rm -rf cache/tune; }
# ---- A package: each configuration says itself what it fits, and its times are not the source's ----
clean
cat >fit.blk <<'K'
kernel fit(y: *f32, n: i32, const BLOCK: i32 = 64)
    grid(1)
    requires n <= BLOCK, "all of it fits"
{
    let i = arange(0, BLOCK);
    store(y + i, i.to(f32), mask = i < n);
}
autotune fit key(n) { BLOCK: [8, 64, 128]; }
K
status 0 "a package" "$build/bin/blkc" --emit=package --target=cpu fit.blk -o fit.blkpkg
run "a package's misfit" fit.blkpkg n=20 y=f32[20] --tune
says '^2 configurations tried'; says 'BLOCK=8 .*requires n <= BLOCK'
grep -q '^source [0-9a-f]* packaged$' cache/tune/* && ok || bad "a package's record says nothing of it"
run "the source's own" fit.blk n=20 y=f32[20] --tune
says '^2 configurations tried'; says 'BLOCK=8 .*requires n <= BLOCK'
[ "$(grep -l '^source [0-9a-f]*$' cache/tune/* | wc -l)" = 1 ] && ok || bad "the source's record"
# ---- What tuning is told: off, always; unknown words; the defaults ----
clean
BLK_TUNE=off job off; says '  1  2  3  4  5'; [ -e cache/tune ] && bad "off tuned" || ok
BLK_TUNE=auto job auto; grep -q '^good .* BLOCK=8$' cache/tune/* && ok || bad "auto did not tune"
BLK_TUNE=always job always; says '  1  2  3  4  5'
BLK_TUNE=always job "always, shown" --tune; says '^4 configurations tried'
BLK_TUNE=sometimes job "an unknown word"; says 'BLK_TUNE=sometimes is not known'

# ---- Without being asked, cpu and sim take the first configuration that fits ----
cat >first.blk <<'K'
kernel first(y: *f32, n: i32, const BLOCK: i32 = 8)
    grid(n / BLOCK)
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(y + i);
    store(y + i, v + 1.0 + 0.0 * sum(v)); // a sum over warps takes shared memory
}
autotune first key(n) {
    config(BLOCK = 131);                   // no tile
    config(BLOCK = 2048);                 // no programs
    config(BLOCK = 128, max_shared = 4);  // too little for its sum, on a GPU
    config(BLOCK = 64, num_warps = 1);
    config(BLOCK = 32, num_warps = 1);
}
K
for device in cpu sim sim:sm_90a; do
	case $device in cpu) fits='BLOCK=128,max_shared=4' ;; *) fits='BLOCK=64,num_warps=1' ;; esac
	first() { what=$1; shift; status 0 "$what on $device" "$build/bin/blkrun" --device=$device --verbose first.blk n=128 y=f32[128]:zeros "$@"; }
	clean
	first "the first that fits"; says ", $fits\$"; says '  1  1  1'
	[ -e cache/tune ] && bad "$device was tuned unasked" || ok
	BLK_TUNE=first first "by name"; says ", $fits\$"
	BLK_TUNE=off first "off"; silent ', BLOCK='; says '^grid 16 x'
	BLK_TUNE=cached first "cached, nothing known"; silent ', BLOCK='; says '^grid 16 x'
	first "asked by --tune" --tune; says '^5 configurations tried$'; says '^. BLOCK=32,num_warps=1 '
	chosen=$(sed -n 's/^\* \(BLOCK=[^ ]*\) .*/\1/p' out)
	first "what is known is used"; says ", $chosen\$"
	printf 'x' >>"$(ls cache/tune/*)"
	first "a damaged record"; says ", $fits\$"; says 'damaged'
done
status 0 "nothing to do" "$build/bin/blkrun" --device=cpu --verbose first.blk n=0 y=f32[8]:zeros; says 'no programs'

# ---- reset, restore, scratch, tolerance ----
cat >clauses.blk <<'K'
kernel scaled(y: *f32, n: i32, const M: i32 = 2) grid(cdiv(n, 8))
{
    let i = program_id(0) * 8 + arange(0, 8);
    store(y + i, load(y + i, mask = i < n, other = 0.0) * M.to(f32), mask = i < n);
}
autotune scaled key(n) { M: [2, 3]; reset y; }
kernel unset(y: *f32, n: i32, const M: i32 = 2) grid(cdiv(n, 8))
{
    let i = program_id(0) * 8 + arange(0, 8);
    store(y + i, load(y + i, mask = i < n, other = 0.0) * M.to(f32), mask = i < n);
}
autotune unset key(n) { M: [2, 3]; restore y; }
kernel near(const T: type = f32, y: *T, n: i32, const M: f32 = 1.0) grid(cdiv(n, 8))
{
    let i = program_id(0) * 8 + arange(0, 8);
    store(y + i, i.to(f32) * M, mask = i < n);
}
autotune near key(n) { M: [1.0, 1.005]; }
kernel loose(y: *f32, n: i32, const M: f32 = 1.0) grid(cdiv(n, 8))
{
    let i = program_id(0) * 8 + arange(0, 8);
    store(y + i, i.to(f32) * M, mask = i < n);
}
autotune loose key(n) { M: [1.0, 1.005, 1.1]; tolerance 0.01; }
kernel works(y: *f32, w: *f32, n: i32, const M: i32 = 2) grid(1)
{
    store(w, load(w) + M.to(f32));
    store(y + arange(0, 8), 1.0, mask = arange(0, 8) < n);
}
autotune works key(n) { M: [2, 3]; scratch w; }
K
run "reset" clauses.blk:scaled n=5 y=f32[5]:ones --tune
grep -q 'M=3 .*wrong' out && bad "reset: y was not zero in the trials" || ok
grep -q '  [23]  [23]  [23]  [23]  [23]' out && ok || bad "reset: y was not put back"
run "restore" clauses.blk:unset n=5 y=f32[5]:ones --tune; says 'M=3 .*wrong result'; says '  2  2  2  2  2'
run "scratch" clauses.blk:works n=5 y=f32[5]:ones w=f32[1]:zeros --tune
grep -q wrong out && bad "scratch: w was compared" || ok
run "f32 by default" clauses.blk:near n=50 y=f32[50] --tune; says 'M=1.00.* .*wrong result'
run "f16 by default" clauses.blk:near -D T=f16 n=50 y=f16[50] --tune; grep -q wrong out && bad "f16" || ok
run "tolerance" clauses.blk:loose n=50 y=f32[50] --tune; says 'M=1.1.* .*wrong result'
grep -q 'M=1.00.* .*wrong' out && bad "tolerance: too strict" || ok

# ---- What a record depends on ----
clean
echo 'fn plus(x) { return x + 1.0; }' >common.blk
cat >grow.blk <<'K'
import "common.blk";
kernel grow(y: *f32, n: i32, const BLOCK: i32 = 8) grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, plus(load(y + i, mask = i < n, other = 0.0)), mask = i < n);
}
autotune grow key(n) { BLOCK: [8, 16]; }
K
grow() { what=$1; shift; run "$what" grow.blk y=f32[9]:zeros "$@" --tune; }
grow "a new key" n=5; says '^2 configurations tried'
grow "another value of the key" n=6; says '^2 configurations tried'
sed 's/16\]/16, 32]/' grow.blk >more.blk && mv more.blk grow.blk
grow "a new configuration times only itself" n=5; says '^1 configuration tried, the others known'
echo 'fn plus(x) { return x + 2.0; }' >common.blk
grow "an imported file has changed" n=5; says '^3 configurations tried'; says '  2  2  2  2  2  0'
sed 's/BLOCK: \[/tolerance 0.5; BLOCK: [/' grow.blk >more.blk && mv more.blk grow.blk
grow "another tolerance" n=5; says '^3 configurations tried'
grow "a define is another kernel" n=5 -D num_warps=2; says '^3 configurations tried'
grow "a bound axis leaves nothing" n=5 -D BLOCK=16; says 'nothing to tune'

# ---- The cache as a whole ----
run "list" --cache=list; says 'grow (tuning record)'; says 'cpu *grow$'
run "export" --cache=export all.txt
run "clear" --cache=clear; says 'entries removed'
[ -z "$(find cache -type f)" ] && ok || bad "clear left $(find cache -type f)"
run "an empty list" --cache=list; says '^0 entries'
run "import" --cache=import all.txt; run "the list after" --cache=list; says 'grow (tuning record)'
sed '0,/^good/s/^good/goof/' all.txt >spoilt.txt
status 1 "a damaged export" "$build/bin/blkrun" --cache=import spoilt.txt; says 'record 1 is damaged'
status 1 "no export" "$build/bin/blkrun" --cache=import nowhere.txt

# ---- Progress, for a terminal only ----
clean
job "no terminal" --tune; silent 'tuning '
if command -v script >/dev/null; then
	for how in "--tune" ""; do
		clean
		BLK_TUNE=auto script -qec "$build/bin/blkrun --device=cpu k.blk n=300007 y=f32[300007]:arange $how 2>&1 >plain" typescript >/dev/null 2>&1 </dev/null
		grep -q 'tuning [0-9]*/[0-9]*' typescript && ok || bad "no progress on a terminal with '$how'"
		grep -q 'best [0-9.e-]* ms, about [0-9.]* s left' typescript && ok || bad "no best and no time left with '$how'"
		grep -q 'tuning [0-9]*/' plain && bad "progress on standard output" || ok
	done
else
	skip 6
	echo "skipped: progress on a terminal, there is no 'script'"
fi

# ---- A cache that cannot be written, or no longer ----
clean
BLK_TUNE=auto job "before"; cp -r cache frozen
if [ "$(id -u)" = 0 ] && mkdir -p small && mount -t tmpfs -o size=64k blk-test small 2>/dev/null; then
	trap 'umount "$dir/small" 2>/dev/null; chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
	BLK_TUNE=auto BLK_CACHE_DIR=$dir/small job "a small cache"; says '  1  2  3  4  5'
	head -c 65536 /dev/zero >small/full 2>/dev/null
	for n in 5 4 3; do
		BLK_CACHE_DIR=$dir/small run "a full cache, $n" k.blk n=$n y=f32[5]:zeros --tune; says '^. BLOCK=8 '
	done
	[ -z "$(find small -name '*.tmp-*')" ] && ok || bad "a full cache: temporary files are left"
	rm small/full
	BLK_TUNE=auto BLK_CACHE_DIR=$dir/small job "room again"; says '  1  2  3  4  5'
	BLK_CACHE_DIR=$dir/small job "after that" --tune; says '^0 configurations tried'
	mount -o remount,ro small
	BLK_CACHE_DIR=$dir/small job "read-only, known" --tune; says '^0 configurations tried'
	for n in 4 3; do
		BLK_TUNE=auto BLK_CACHE_DIR=$dir/small run "read-only, new $n" k.blk n=$n y=f32[5]:arange; says '  1  2  3'
	done
	umount small
else
	skip 22
	echo "skipped: a full and a read-only cache, for which root mounts a small file system"
	chmod -R a-w frozen
	BLK_CACHE_DIR=$dir/frozen job "read-only, known" --tune; says '^0 configurations tried'
	BLK_TUNE=auto BLK_CACHE_DIR=$dir/frozen run "read-only, new" k.blk n=4 y=f32[5]:arange; says '  1  2  3'
fi
finish
