#!/bin/sh
# usage: tests/run/budget.sh BUILD     Compiles that would take minutes and gigabytes: what becomes of long tiles, and how much of it;
# the estimate of a kernel's code and its limits; ptxas that is slow, greedy, killed or wordless.
. "$(dirname "$0")/../lib.sh"
enter_scratch "${1:-build}"
blkc=$build/bin/blkc

# command...: in 10 seconds of a processor (it takes less than one of a quick one) and 1 GiB; sanitizers map terabytes
limits='ulimit -v 1048576; ulimit -t 10; exec' briefly=$PWD/briefly
nm "$blkc" 2>/dev/null | grep -q __asan && limits='ulimit -t 60; exec'
printf '#!/bin/sh\n%s "$@"\n' "$limits" >briefly
chmod +x briefly

cat >small.blk <<'B'
kernel k(x: *f32, n: i32) { store(x + n, 1.0); }
B

# ---- unrolling ----
cat >unknown.blk <<'B'
kernel k(y: *i32) grid(1) {
    var a = 0;
    for i in static_range(1000000000) { a = a + unknown; }
    store(y, a);
}
B
status 1 "an unknown name in a long loop" "$briefly" "$blkc" unknown.blk
says_text "unknown.blk:3:49: error[E0201]: unknown name 'unknown'"
says_text "unknown.blk:3:14: error[E0705]"
[ "$(grep -c 'error\[' err)" = 2 ] && ok || bad "an unknown name is reported again: $(cat err)"
sed 's/unknown;/i;/' unknown.blk >long.blk
status 1 "a loop of 1,000,000,000 rounds" "$briefly" "$blkc" long.blk
says_text "long.blk:3:14: error[E0705]: more than 1,000,000 operations"
sed 's/unknown;/i; if i == 5 { break; }/' unknown.blk >left.blk
status 0 "a long loop that is left" "$briefly" "$blkc" left.blk
sed 's/1000000000/4/; s/a + unknown/a + (i == 2 ? unknown : i)/' unknown.blk >third.blk
status 1 "an error of the third round" "$briefly" "$blkc" third.blk
says_text "E0201"

# ---- long tiles ----
cat >tiles.blk <<'B'
kernel sums(y: *i32, s: *i32, x: *const i8) grid(1) {
    let i = arange(0, 1024);
    let v = load(x + i[:, None] * 1024 + i[None, :]).to(i32);
    store(y, sum(v));
    store(s + i, sum(v, axis = 1));
}
kernel expression(y: *f32, x: *const f32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * 1024 + i[None, :];
    let v = load(x + p);
    store(y + p, sin(exp(v) + tanh(v) * pow(v, v)));
}
kernel in_place(x: *f32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * 1024 + i[None, :];
    store(x + p, load(x + p) * 1.5);
}
kernel rows(y: *f32, x: *const f32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * 1024 + i[None, :];
    store(y + p, softmax(load(x + p)));
}
kernel product(y: *f32, x: *const f32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * 1024 + i[None, :];
    store(y + p, dot(load(x + p), load(x + p)));
}
kernel shifted(x: *f32, n: i32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * 1024 + i[None, :];
    store(x + p + n, load(x + p));
}
kernel same_place(x: *f32, n: i32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * n + i[None, :];
    store(x + p, load(x + p) + 1.0);
}
kernel iterate(y: *f32, x: *const f32, n: i32) grid(1) {
    let i = arange(0, 1024);
    let p = i[:, None] * 1024 + i[None, :];
    var v = load(x + p);
    for k in range(n) { v = sin(v); }
    store(y + p, v);
}
kernel ieee(y: *f32, x: *const f32, w: *const f32) grid(1) {
    let i = arange(0, 256);
    let p = i[:, None] * 256 + i[None, :];
    store(y + p, dot(load(x + p), load(w + p), precision = "ieee"));
}
kernel transposed(y: *i32, x: *const i32) grid(1) {
    let i = arange(0, 131072);
    store(y + i, sort(load(x + i)));
}
kernel running(y: *f32, z: *f32, x: *const f32) grid(1) {
    let p = arange(0, 256)[:, None] * 512 + arange(0, 512)[None, :];
    let s = cumsum(load(x + p), axis = 1);
    store(y + p, s);
    store(z + p, s * 2.0);
}
kernel several(y: *i32, x: *const i32) grid(1) {
    let i = arange(0, 131072);
    let v = sort(sort(load(x + i)) ^ i);
    store(y + i, flip(i));
    store(y + 131072 + i, v);
}
kernel added(y: *i64, x: *const i64, n: i32) grid(1) options(num_warps = 1) {
    let i = arange(0, 65536);
    var v = load(x + i);
    for k in range(0, n) { v = v + n.to(i64); }
    store(y + i, v);
}
kernel nothing(x: *f32) grid(1) { }
kernel endless(x: *f32) grid(1) { while (true) { } }
B
for kernel in sums expression in_place rows product ieee; do
	for target in sm_80 sm_90a; do
		status 0 "$kernel on $target" "$briefly" "$blkc" tiles.blk --kernel=$kernel --target=$target -o tile.ptx
		silent W0723
		[ "$(wc -c <tile.ptx)" -lt 1000000 ] && ok || bad "$kernel: $(wc -c <tile.ptx) bytes of PTX"
		status 0 "$kernel" "$briefly" "$blkc" tiles.blk --kernel=$kernel --target=$target --emit=layout -o -
		says "= for .*%part: i32\|^ *for .*%part: i32"
	done
done
# What must not be cut.
for kernel in shifted same_place iterate; do
	status 0 "$kernel" "$briefly" "$blkc" tiles.blk --kernel=$kernel --emit=layout -o -
	silent "%part"
done
status 1 "what a loop carries" "$briefly" "$blkc" tiles.blk --kernel=iterate
says "tiles.blk:42:.*: error.E0723.: kernel 'iterate' becomes about [0-9]* instructions a thread, more than 500000"
says_text "no loop over parts of this tile: a loop carries it"
says_text "--max-code=N"
status 1 "what needs all of a tile" "$briefly" "$blkc" tiles.blk --kernel=transposed --max-code=1000
says_text "no loop over parts of this tile: it is made by sort, which needs all of it"
status 1 "a sum of floats with two users" "$briefly" "$blkc" tiles.blk --kernel=running --max-code=10000
says_text "no loop over parts of this tile: it takes a sum of floats that has another use, and would be another one in parts"
status 1 "the most code first" "$briefly" "$blkc" tiles.blk --kernel=several --max-code=10000
[ "$(sed -n 's/^note: tiles.blk:\(.*\):5: no loop .* made by \([a-z]*\),.*/\1 \2/p' err | tr '\n' ' ')" = "64 sort 63 flip " ] && ok || bad "several: $(cat err)"
status 0 "one value added to each register of a long tile" "$briefly" "$blkc" tiles.blk --kernel=added --target=sm_80 -o tile.ptx
for kernel in nothing endless; do
	status 1 "$kernel" "$briefly" "$blkc" tiles.blk --kernel=$kernel --max-code=5
	says "tiles.blk:[0-9]*:8: error.E0723.: kernel '$kernel' becomes about [0-9]* instructions a thread, more than 5"
	status 0 "$kernel" "$briefly" "$blkc" tiles.blk --kernel=$kernel --max-code=20 -o tile.ptx
	says "W0723"
done
status 1 "a limit" "$briefly" "$blkc" tiles.blk --kernel=shifted --max-code=10000
says "E0723.*more than 10000"
says_text 'what it loads through *T may be stored to in another part'
status 1 "a product's code" "$briefly" "$blkc" tiles.blk --kernel=ieee --max-code=10000
says "about [0-9]* in 100 of them: dot f32.256,256., 512 elements a thread"
status 0 "a warning" "$blkc" tiles.blk --kernel=sums --max-code=2000 -o tile.ptx
says_text "W0723"
status 1 "a warning that is an error" "$blkc" tiles.blk --kernel=sums --max-code=2000 -Werror -o tile.ptx
status 0 "no limit" "$blkc" tiles.blk --kernel=sums --max-code=none -o tile.ptx
silent W0723
status 2 "a limit that is none" "$blkc" tiles.blk --max-code=0
status 2 "a limit of letters" "$blkc" tiles.blk --max-code=1k

# ---- the same for hosts ----
blkrun=$build/bin/blkrun
export BLK_CACHE_DIR="$PWD/cache"
on_sim() { # name=value...: the environment
	status "$1" "$2" env "$3" "$blkrun" tiles.blk:sums --device=sim "y=i32[1]" "s=i32[1024]" "x=i8[1048576]" --sim-steps=1000
}
on_sim 1 "a limit for hosts" BLK_MAX_CODE=500
says_text "E0723"
on_sim 1 "a limit of words" BLK_MAX_CODE=much
says_text "BLK_MAX_CODE=much: a number above 0, or none"
on_sim 1 "ptxas for -1 seconds" BLK_PTXAS_SECONDS=-1
says_text "BLK_PTXAS_SECONDS=-1: a number above 0, or none"
status 0 "no limit for hosts" env BLK_MAX_CODE=none "$blkrun" small.blk --device=sim "x=f32[4]" n=3 --grid=1
status 0 "empty ones" env BLK_MAX_CODE= BLK_PTXAS_MEMORY= "$blkrun" small.blk --device=sim "x=f32[4]" n=2 --grid=1

# ---- the estimate: within a factor of two of what is made ----
within() { # name: of what --time-passes says in err
	ratio=$(sed -n 's/^instructions *\([0-9]*\) estimated, \([0-9]*\) made/\1 \2/p' "$dir/err")
	[ -n "$ratio" ] && echo "$ratio" | awk '{ exit !($1 <= 2 * $2 + 60 && $2 <= 2 * $1) }' && ok || bad "$1: estimated, made: $ratio"
}
for f in "$root"/examples/*/*.blk; do
	"$blkc" "$f" -o whole.ptx -I "$root/examples" 2>/dev/null || continue
	for kernel in $(sed -n 's|^// blk: kernel ||p' whole.ptx); do
		status 0 "$kernel" "$blkc" "$f" --kernel="$kernel" -I "$root/examples" --target=sm_90a --time-passes -o one.ptx
		silent W0723
		within "$kernel"
	done
done
cat >order.blk <<'B'
fn pick(a, i, b, j) { let c = a > b; return (where(c, a, b), where(c, i, j)); }
kernel scan(y: *f32, x: *const f32, const A: i32 = 1, const B: i32 = 1) grid(1) {
    let p = arange(0, A)[:, None] * B + arange(0, B)[None, :];
    store(y + p, cumsum(cumsum(load(x + p), axis = 0), axis = 1));
}
kernel order(y: *f32, x: *const f32, const A: i32 = 1, const B: i32 = 1) grid(1) {
    let p = arange(0, A)[:, None] * B + arange(0, B)[None, :];
    store(y + p, sort(load(x + p), axis = 1));
}
kernel best(y: *i64, x: *const i64, const A: i32 = 1, const B: i32 = 1) grid(1) {
    let p = arange(0, A)[:, None] * B + arange(0, B)[None, :];
    let (v, n) = reduce((load(x + p), p), 0, pick);
    store(y + arange(0, B), v + n);
}
kernel product(y: *f32, x: *const f32, const A: i32 = 1, const B: i32 = 1) grid(1) {
    let p = arange(0, A)[:, None] * B + arange(0, B)[None, :];
    store(y + p, dot(load(x + p), load(x + arange(0, B)[:, None] * B + arange(0, B)[None, :]), precision = "ieee"));
}
B
for kernel in scan order best product; do
	for size in "256 64 4" "64 128 16" "128 64 1" "64 64 8"; do
		# shellcheck disable=SC2086
		set -- $size
		status 0 "$kernel $size" "$blkc" order.blk --kernel=$kernel -D A="$1" -D B="$2" -D num_warps="$3" --time-passes -o one.ptx
		within "$kernel $size"
	done
done
# A scan or a reduction whose axis steps warps first takes no more shared memory than there is.
for warps in 1 2 4 8 16; do
	status 0 "scan with $warps warps" "$briefly" "$blkc" order.blk --kernel=scan -D A=256 -D B=256 -D num_warps=$warps -o one.ptx
	[ "$(sed -n 's|^// blk: shared ||p' one.ptx)" -le 98304 ] && ok || bad "scan with $warps warps: $(grep 'blk: shared' one.ptx)"
	status 0 "best with $warps warps" "$briefly" "$blkc" order.blk --kernel=best -D A=256 -D B=64 -D num_warps=$warps -o one.ptx
done

# ---- ptxas ----
fake() { # name: a ptxas of what follows
	{ echo '#!/bin/sh'; cat; } >"$1"
	chmod +x "$1"
}
# It starts something that goes on: nobody waits for that.
fake slow <<'F'
sleep 30
F
fake busy <<'F'
while :; do :; done
F
fake greedy <<'F'
exec awk 'BEGIN { s = "x"; while (1) s = s s }'
F
fake crash <<'F'
echo "about to crash" >&2
kill -SEGV $$
F
fake killed <<'F'
kill -KILL $$
F
fake wordless <<'F'
exit 3
F
fake refusing <<'F'
echo "ptxas fatal : no such thing, line 7" >&2
exit 255
F
fake starving <<'F'
echo "ptxas fatal   : Memory allocation failure" >&2
exit 255
F
fake empty <<'F'
exit 0
F
fake background <<'F'
sleep 30 &
exit 3
F
for what in slow busy; do
	status 1 "ptxas: $what" timeout 20 "$blkc" small.blk --emit=cubin --ptxas="$PWD/$what" --ptxas-seconds=1
	says "E0812.*ptxas was stopped after 1 s, the time limit"
	says_text "--ptxas-seconds="
	silent "refuses"
done
status 1 "ptxas: greedy" timeout 60 "$blkc" small.blk --emit=cubin --ptxas="$PWD/greedy" --ptxas-memory=256
says "E0812"
says "256 MiB\|ran out of memory"
silent "refuses"
status 1 "ptxas: crash" "$blkc" small.blk --emit=cubin --ptxas="$PWD/crash"
says "E0812.*ptxas was killed by signal 11 (SIGSEGV)"
silent "refuses"
status 1 "ptxas: killed" "$blkc" small.blk --emit=cubin --ptxas="$PWD/killed"
says "E0812.*ptxas was killed by signal 9 (SIGKILL), not by us"
status 1 "ptxas: wordless" "$blkc" small.blk --emit=cubin --ptxas="$PWD/wordless"
says "E0812.*it refuses the code: exit status 3"
status 1 "ptxas: refusing" "$blkc" small.blk --emit=cubin --ptxas="$PWD/refusing"
says "E0812.*it refuses the code: ptxas fatal : no such thing"
status 1 "ptxas: starving" "$blkc" small.blk --emit=cubin --ptxas="$PWD/starving"
says "E0812.*ptxas ran out of memory: its limit is 4096 MiB"
status 1 "ptxas: starving, no limit" "$blkc" small.blk --emit=cubin --ptxas="$PWD/starving" --ptxas-memory=none
says "E0812.*ptxas ran out of memory;"
status 1 "ptxas: empty" "$blkc" small.blk --emit=cubin --ptxas="$PWD/empty"
says "E0812.*it left no output"
status 1 "ptxas: in the background" timeout 20 "$blkc" small.blk --emit=cubin --ptxas="$PWD/background"
says "exit status 3"
# A report goes on without it, and says so.
status 0 "a report of what was stopped" timeout 20 "$blkc" small.blk --explain --ptxas="$PWD/slow" --ptxas-seconds=1
says "W0812.*ptxas was stopped after 1 s"
says "registers unknown: ptxas was stopped after 1 s, the time limit (tiles need about"
status 0 "a report of what crashed" "$blkc" small.blk --emit=explain -o - --ptxas="$PWD/crash"
says "cubin unknown: ptxas was killed by signal 11 (SIGSEGV)"
status 2 "a wrong number of seconds" "$blkc" small.blk --ptxas-seconds=-1
says_text "a number above 0 or none, not '-1'"
status 2 "no memory" "$blkc" small.blk --ptxas-memory=0

finish
