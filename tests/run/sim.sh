#!/bin/sh
# usage: sim.sh BUILD      The simulator from the shell: its options and counters, and that it finds what is taken out of
# the compiler's code: every barrier, one at a time, of kernels whose warps depend on one another.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
cp -r "$root/examples" examples
blkrun=$build/bin/blkrun blkc=$build/bin/blkc
BLK_CACHE_DIR=$dir/cache
export BLK_CACHE_DIR
add=examples/vector_add/vector_add.blk
softmax="examples/softmax/softmax.blk:softmax_rows y=f32[7,1000]:poison x=f32[7,1000]:randn stride=1000 rows=7 n=1000"

# shellcheck disable=SC2086
status 0 "counters" "$blkrun" --device=sim --counters $softmax
says '^counters'; says '^  programs  *7$'; says '^  barriers passed  *14$'; says '^  bank conflicts  *0$'; says '^  shared bytes  *32$'
says '^  global loads .* 15.62 sectors a request, 100% of their bytes used' # 125 sectors a row in 8 requests
# shellcheck disable=SC2086
status 0 "schedules" "$blkrun" --device=sim:sm_90a --sim-seed=5 --sim-schedules=4 $softmax --check cpu
# shellcheck disable=SC2086
status 1 "counters of another device" "$blkrun" --device=cpu --counters $softmax
says 'only the device "sim" has options and counters'
status 2 "no number" "$blkrun" --device=sim --sim-schedules=x examples/softmax/softmax.blk
says 'sim-schedules is a number'
# The device suites and the examples take a seed as well.
for program in "$build/device/dot" "$build/bin/examples/vector_add"; do
	status 1 "a seed for another device" "$program" --device=cpu --sim-seed=1
	says 'only the device "sim" has options and counters'
	status 2 "a seed that is no number" "$program" --device=sim --sim-seed=1x
	says 'sim-seed'
done

# Functions of many thousand instructions: long blocks in pieces, operands of inline asm in local copies.
cat >long.blk <<'END'
kernel straight(x: *f32, n: i32) grid(1) {
    var a = load(x);
    for j in range(n) { for i in static_range(0, 2000) { a = a * 0.5 + load(x + i); } }
    store(x, a);
}
kernel branches(x: *f32, n: i32) grid(1) {
    let o = arange(0, 256);
    var a = load(x + o, mask = o < n, other = 0.0);
    for i in static_range(0, 1000) {
        if n > i { a = a * 0.5 + load(x + o + i, mask = o < n, other = 1.0); } else { a = a - load(x + i); }
    }
    store(x + o, a, mask = o < n);
}
END
for n in 3 200 2000; do
	status 0 "branches $n" "$blkrun" --device=sim long.blk:branches n=$n x=f32[4096]:randn --check cpu
done
status 0 "straight" "$blkrun" --device=sim long.blk:straight n=3 x=f32[4096]:randn --check cpu
"$blkc" long.blk --kernel=branches -o long.ptx && grep -q 'mov.pred' long.ptx && ok || bad "no local copies"

# Faulty kernels and their reports
cat >faulty.blk <<'END'
kernel off_by_one(z: *f32, x: *const f32, n: i32, const BLOCK: i32 = 128) grid(cdiv(n, BLOCK)) {
    let o = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + o, mask = o <= n);
    store(z + o, v, mask = o < n);
}
kernel one_address(z: *f32, n: i32) grid(n) {
    store(z, 1.0);
}
kernel written_const(z: *f32, x: *const f32, n: i32) grid(1) {
    let o = arange(0, 64);
    store(z + o, load(x + o) + load(z + o + 64, mask = o < n));
}
kernel columns(z: *f32) { if program_id(1) > 0 { store(z + 1, program_id(1).to(f32)); } }
kernel doubled(z: *f32, x: *const f32) grid(1) { store(z + arange(0, 64), load(x + arange(0, 64)) * 2.0); }
END
status 1 "off by one" "$blkrun" --device=sim faulty.blk:off_by_one z=f32[1000] x=f32[1000] n=1000
says '^blkrun: faulty.blk:3: 4 bytes are read outside x, which has 4000 bytes: at offset 4000$'; says 'program (7, 0, 0)'; says 'hint: compare the mask'
status 1 "one address" "$blkrun" --device=sim faulty.blk:one_address z=f32[1] n=9
says '^blkrun: faulty.blk:7: a race on z at offset 0: it is written here and was written by program (.* at faulty.blk:7, in no order$'
status 0 "one address, one program" "$blkrun" --device=sim faulty.blk:one_address z=f32[1] n=1
status 1 "json" "$blkrun" --device=sim --diagnostics=json faulty.blk:off_by_one z=f32[1000] x=f32[1000] n=1000
says '^{"problem": "4 bytes are read outside x, which has 4000 bytes: at offset 4000", "file": "faulty.blk", "line": 3, .*"program": \[7, 0, 0\]'

# The same as fields, d of what a JSON parser reads; one thread of the host, so that the same program comes second
json() { # name expression blkrun's arguments...
	what=$1 facts=$2
	shift 2
	status 1 "$what" env BLK_CPU_THREADS=1 "$blkrun" --device=sim --diagnostics=json "$@"
	python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), d' "$dir/err" "$facts" 2>"$dir/py" &&
		ok || { bad "$what: not $facts:"; tail -1 "$dir/py"; }
}
memory='[d[k] for k in ("space", "buffer", "owner", "size", "offset", "bytes", "kind")]'
other='[d["other"][k] for k in ("file", "line", "program", "thread", "engine", "kind")]'
json "outside, as fields" "$memory == ['global', 'x', None, 4000, 4000, 4, 'read'] and d['other'] is None and d['kernel'] == 'off_by_one' \
	and 'compare the mask' in d['hint']" faulty.blk:off_by_one z=f32[1000] x=f32[1000] n=1000
json "programs that clash, as fields" "$memory == ['global', 'z', None, 8, 4, 4, 'write'] and d['program'] == [1, 1, 0] \
	and $other == ['faulty.blk', 13, [0, 1, 0], 0, None, 'write'] and d['other']['ptx_line'] == d['ptx_line']" \
	faulty.blk:columns z=f32[2] --grid=2,3
"$blkc" examples/softmax/softmax.blk --kernel=softmax_rows -D BLOCK=1024 -o kernel.ptx
awk '/bar.sync/ && !gone { gone = 1; next } 1' kernel.ptx >mutant.ptx
json "threads that clash, as fields" "$memory == ['shared', None, [0, 0, 0], d['size'], 0, 4, 'read'] and 4 <= d['size'] < 4096 \
	and $other == [d['file'], d['line'], [0, 0, 0], 0, None, 'write'] and d['thread'] == 1 and d['line'] == 7" \
	mutant.ptx y=f32[2,1000] x=f32[2,1000]:randn stride=1000 rows=2 n=1000
"$blkc" faulty.blk --kernel=doubled -o - | sed '/ld\.global/d' >mutant.ptx
json "what nothing wrote, as fields" "$memory == ['global', 'z', None, 256, 0, 4, 'write'] and d['other'] is None \
	and d['problem'] == 'an undefined value is stored'" mutant.ptx z=f32[64] x=f32[64]

# Readers of the four bytes of a word are told apart: in place is no race, and what is one is found.
cat >bytes.blk <<'END'
kernel in_place(x: *i8, n: i32) grid(cdiv(n, 129)) {
    let o = program_id(0) * 129 + arange(0, 256);
    let mask = (o < n) & (arange(0, 256) < 129);
    store(x + o, load(x + o, mask = mask) + 1, mask = mask);
}
kernel neighbours(x: *i8, n: i32) grid(n) {
    let v = load(x + (program_id(0) + 1) % n);
    store(x + program_id(0), v);
}
kernel relu(z: *i32, x: *i32, n: i32) grid(1) {
    let o = arange(0, 128);
    let v = load(x + o, mask = o < n);
    store(z + o, maximum(maximum(v, v * 3 - 7), 0) + maximum(minimum(v, 9), 0), mask = o < n);
}
kernel either(z: *i64, x: *const i8, a: u64, b: u64) grid(1) { store(z, ((load(x) != 0) ? a.to(i32) : b.to(i32)).to(i64)); }
kernel low(z: *u16, a: u64) grid(1) { store(z + (arange(0, 32)[:, None] * 4 + arange(0, 4)[None, :]), broadcast_to(a, [32, 4]).to(u16)); }
kernel halves(x: *f32, a: f16, b: bf16) grid(1) { store(x + arange(0, 4), a.to(f32) + b.to(f32)); }
END
status 0 "bytes in place" "$blkrun" --device=sim --sim-schedules=3 bytes.blk:in_place x=i8[1000] n=1000 --check cpu
status 1 "bytes of neighbours" "$blkrun" --device=sim bytes.blk:neighbours x=i8[3] n=3
says 'a race on x at offset'
status 0 "f16 and bf16 parameters" "$blkrun" --device=sim bytes.blk:halves x=f32[4]:poison a=1.5 b=-2.25 --check cpu
"$blkc" bytes.blk --kernel=low -D num_warps=1 --specialize=z%16 --target=sm_80 -o - | grep -q 'ld.param.v4.b16' && ok || bad "no parts of a parameter"
status 0 "parts of a parameter" "$blkrun" --device=sim bytes.blk:low z=u16[128]:poison a=16189448205215698482 -D num_warps=1 --check cpu
"$blkc" bytes.blk --kernel=either --target=sm_80 -o - | grep -q 'ld.param.*\[%rd' && ok || bad "no parameter by its address"
for x in zeros ones; do
	status 0 "one of two parameters, $x" "$blkrun" --device=sim bytes.blk:either z=i64[1]:poison x=i8[1]:$x a=5000000000 b=18446744073709551609 --check cpu
done
"$blkc" bytes.blk --kernel=relu --target=sm_90a -o - | grep -q 'max.relu.s32' && ok || bad "no max.relu.s32"
status 0 "max.relu" "$blkrun" --device=sim:sm_90a bytes.blk:relu z=i32[100]:poison x=i32[100]:randn n=100 --check cpu

# Each byte keeps its writers: stores of neighbouring lanes into one word, of programs that write the same places, the
# same and others beside them, in many orders.
for t in i8 u8 i16 u16 f16 bf16; do
	cat >parts.blk <<-END
	kernel same(o: *$t, const N: i32) grid(2) { store(o + arange(0, N), program_id(0).to($t)); }
	kernel told(o: *$t, y: *$t, const N: i32) grid(2) {
	    let i = arange(0, N);
	    if program_id(0) == 0 { store(o + i, (1).to($t)); } else { store(y + i, load(o + i)); }
	}
	kernel one(o: *$t, const N: i32) grid(3) {
	    let i = arange(0, N);
	    store(o + i * 3 + program_id(0), (2).to($t), mask = (i != 5) | (program_id(0) != 1));
	    if program_id(0) == 2 { store(o + 14, (3).to($t)); }
	    if program_id(0) == 1 { store(o + 14, (4).to($t)); }
	}
	kernel apart(o: *$t, const N: i32) grid(4) {
	    let i = arange(0, N) * 4 + program_id(0);
	    store(o + i, load(o + i) + (1).to($t));
	    store(o + i, load(o + i) + (1).to($t));
	}
	END
	for n in 8 16 32 64 128 256 512; do
		status 1 "two programs write $t[$n]" "$blkrun" --device=sim --sim-schedules=4 parts.blk:same -D N=$n o=$t[$n]:zeros
		says 'a race on o at offset 0: it is written here and was written by program'
	done
	for n in 8 64 512; do
		status 1 "one program writes $t[$n], one reads" "$blkrun" --device=sim --sim-schedules=8 parts.blk:told -D N=$n o=$t[$n]:zeros y=$t[$n]
		says 'a race on o at offset'
		status 1 "two programs write one of $t[$n]" "$blkrun" --device=sim --sim-schedules=8 parts.blk:one -D N=$n o=$t[$((3 * n))]:zeros
		says 'a race on o at offset'
		status 0 "programs write bytes beside one another, $t[$n]" "$blkrun" --device=sim --sim-schedules=4 parts.blk:apart \
			-D N=$n o=$t[$((4 * n))]:zeros --check cpu
	done
done

# Atomics of 8 and 16 bits act on a word, and are of their own bytes: at a buffer's end, beside plain stores.
for t in i8 u8 i16 u16; do
	case $t in *8) n=5 bytes=1 ;; *) n=3 bytes=2 ;; esac
	for op in or $([ $t = u16 ] || echo and) $([ $t = i8 ] && echo xor); do
		cat >narrow.blk <<-END
		kernel at(x: *$t, y: *i32, k: i32) grid(1) { store(y, atomic_$op(x + k, 5).to(i32)); }
		kernel beside(x: *$t, n: i32) grid(n) { atomic_$op(x + program_id(0) * 2, 5); store(x + program_id(0) * 2 + 1, 3); }
		kernel upon(x: *$t) grid(2) { if program_id(0) == 0 { atomic_$op(x + 1, 5); } else { store(x + 1, 3); } }
		kernel many(x: *$t, y: *$t) grid(1) {
		    let i = arange(0, 64);
		    store(y + i, atomic_$op(x + i, (i + 1).to($t), mask = i != 7));
		}
		END
		status 0 "$op at the end of $t[$n]" "$blkrun" --device=sim narrow.blk:at x=$t[$n]:randn y=i32[1]:poison k=$((n - 1)) --check cpu
		status 1 "$op behind the end of $t[$n]" "$blkrun" --device=sim narrow.blk:at x=$t[$n]:randn y=i32[1] k=$n
		says "^blkrun: narrow.blk:1: $bytes bytes are written outside x, which has $((n * bytes)) bytes: at offset $((n * bytes))\$"
		status 1 "$op in front of $t[$n]" "$blkrun" --device=sim narrow.blk:at x=$t[$n]:randn y=i32[1] k=-1
		says "outside x, which has $((n * bytes)) bytes: at offset -$bytes\$"
		status 0 "$op beside stores, $t" "$blkrun" --device=sim --sim-schedules=8 narrow.blk:beside x=$t[128]:randn n=64 --check cpu
		status 1 "$op upon a store, $t" "$blkrun" --device=sim --sim-schedules=8 narrow.blk:upon x=$t[4]:zeros
		says "a race on x at offset $bytes"
		status 0 "$op of a tile, $t" "$blkrun" --device=sim narrow.blk:many x=$t[64]:randn y=$t[64]:poison --check cpu
	done
done
json "an atomic of a byte, as fields" "$memory == ['global', 'x', None, 6, 6, 2, 'write']" narrow.blk:at x=u16[3]:randn y=i32[1] k=3
# Without the line that names the element the instruction is one on the word.
sed 's/u16/u8/' narrow.blk >word.blk
"$blkc" word.blk --kernel=beside -o - | sed '/check\.part/d' >word.ptx
status 1 "an atomic on a word" "$blkrun" --device=sim --sim-schedules=2 word.ptx x=u8[128]:zeros n=64
says 'a race on x at offset'

# A quotient by 0 and what gather picks outside of the tile are undefined: reported where something depends on them.
for t in i8 u8 i16 u16 i32 u32 i64 u64; do
	cat >undefined.blk <<-END
	kernel quotient(y: *$t, x: *const $t) grid(1) { let i = arange(0, 64);
	    let q = 5 / load(x + i);
	    store(y + i, q + 1); }
	kernel rest(y: *$t, x: *const $t) grid(1) { let i = arange(0, 64);
	    let q = load(x + (i + 1) % 64) % load(x + i);
	    store(y + i, q); }
	kernel chosen(y: *$t, x: *const $t) grid(1) { let i = arange(0, 64);
	    let d = load(x + i);
	    store(y + i, where(d != 0, 100 / d, 7) + where(d == 0, 0, 9 % d)); }
	kernel guarded(y: *$t, x: *const $t) grid(1) { let i = arange(0, 64);
	    let d = maximum(load(x + i), 1);
	    store(y + i, 100 / d); }
	kernel masked(y: *$t, x: *const $t) grid(1) { let i = arange(0, 64);
	    let d = load(x + i);
	    store(y + i, 100 / d, mask = d != 0);
	    store(y + i, d + 3, mask = d == 0); }
	kernel picked(y: *i32, x: *const $t) grid(1) { let i = arange(0, 64);
	    let v = gather(i * 3, load(x + i));
	    store(y + i, v); }
	kernel within(y: *i32, x: *const $t) grid(1) { let i = arange(0, 64);
	    let k = load(x + i);
	    store(y + i, where((k >= 0) & (k < 64), gather(i * 3, k), -1)); }
	END
	for k in quotient rest; do
		status 0 "$k of $t" "$blkrun" --device=sim undefined.blk:$k y=$t[64]:poison x=$t[64]:ones --check cpu
		line=2
		[ $k = rest ] && line=5
		status 1 "$k of $t by 0" "$blkrun" --device=sim undefined.blk:$k y=$t[64]:poison x=$t[64]:arange
		says "^blkrun: undefined.blk:$((line + 1)): an undefined value is stored: it comes from a division by 0 at undefined.blk:$line\$"
		says 'thread 0, line'
	done
	for k in chosen guarded masked; do
		status 0 "$k, $t" "$blkrun" --device=sim undefined.blk:$k y=$t[64]:poison x=$t[64]:arange --check cpu
	done
	status 0 "within, $t" "$blkrun" --device=sim undefined.blk:within y=i32[64]:poison x=$t[64]:randn --check cpu
	status 0 "picked, $t" "$blkrun" --device=sim undefined.blk:picked y=i32[64]:poison x=$t[64]:arange --check cpu
	status 1 "picked outside, $t" "$blkrun" --device=sim undefined.blk:picked y=i32[64]:poison x=$t[64]:poison
	says '^blkrun: undefined.blk:19: an undefined value is stored: it comes from a gather at undefined.blk:18, whose index .* is outside of the 64 elements$'
done
cat >undefined.blk <<'END'
kernel tables(y: *f32, x: *const i32, n: i32) grid(1) {
    let i = arange(0, 32);
    let k = load(x + i);
    let v = gather(i.to(f32), k + n);
    store(y + i, v * 0.5);
}
kernel branches(y: *i32, n: i32, d: i32) grid(1) {
    let q = n / d;
    if d != 0 { store(y, q); } else { store(y, -1); }
    if q > 3 { store(y + 1, 1); } else { store(y + 1, 2); }
}
kernel address(y: *i32, n: i32, d: i32) grid(1) { store(y + n % d, 1); }
kernel sums(y: *i32, x: *const i32) grid(1) {
    let i = arange(0, 1024);
    let q = 1000 / load(x + i);
    store(y, sum(where(i > 0, q, 0)));
    store(y + 1, sum(q));
}
kernel counts(y: *i32, x: *const i32) grid(1) { atomic_add(y + arange(0, 4), 3 / load(x + arange(0, 4)), sem = "relaxed"); }
kernel rows(y: *i32, x: *const i32) grid(1) {
    let i = arange(0, 64)[:, None] * 32 + arange(0, 32)[None, :];
    let q = 7 / load(x + i);
    store(y + i, permute(q, [1, 0]).to(i8).to(i32).reshape([64, 32]));
}
kernel loops(y: *i32, n: i32) grid(1) {
    var s = 0;
    for k in range(n) { s += where(k > 0, 12 / k, 0); }
    store(y, s);
}
kernel bytes(y: *i8, x: *const i8) grid(1) {
    let i = arange(0, 256);
    store(y + i, 7 / max(7 / load(x + i)[:, None], axis = 1));
}
END
cause='[d["cause"][k] for k in ("file", "line", "operation", "value", "extent")]'
json "a gather outside, as fields" "$memory == ['global', 'y', None, 128, 4, 4, 'write'] and d['line'] == 5 \
	and $cause == ['undefined.blk', 4, 'gather', 32, 32]" undefined.blk:tables y=f32[32]:poison x=i32[32]:arange n=31
json "a division by 0, as fields" "$cause == ['undefined.blk', 8, 'division', 0, None] and d['line'] == 10 and d['space'] is None \
	and d['problem'].startswith('a branch is decided by an undefined value')" undefined.blk:branches y=i32[2]:poison n=7 d=0
json "no such cause, as fields" "d['cause'] is None" faulty.blk:off_by_one z=f32[1000] x=f32[1000] n=1000
status 0 "branches" "$blkrun" --device=sim undefined.blk:branches y=i32[2]:poison n=7 d=2 --check cpu
status 1 "an address" "$blkrun" --device=sim undefined.blk:address y=i32[2]:poison n=7 d=0
says 'undefined.blk:12: an address is undefined: it comes from a division by 0 at undefined.blk:12'
status 1 "sums" "$blkrun" --device=sim undefined.blk:sums y=i32[2]:poison x=i32[1024]:arange
says 'undefined.blk:17: .*: it comes from a division by 0 at undefined.blk:15'
status 1 "an atomic" "$blkrun" --device=sim undefined.blk:counts y=i32[4]:zeros x=i32[4]:arange
says 'undefined.blk:19: an undefined value is the operand of an atomic: it comes from a division by 0 at undefined.blk:19'
status 1 "through shared memory" "$blkrun" --device=sim undefined.blk:rows y=i32[2048]:poison x=i32[2048]:arange
says 'undefined.blk:23: an undefined value is stored: it comes from a division by 0 at undefined.blk:22'
status 0 "a loop" "$blkrun" --device=sim undefined.blk:loops y=i32[1]:poison n=9 --check cpu
# PTX holds the lines that this needs where it is asked for them, and is a GPU's otherwise.
"$blkc" undefined.blk --kernel=tables -o plain.ptx && "$blkc" undefined.blk --kernel=tables --checks -o checked.ptx
grep -q '//@' plain.ptx && bad "checks in plain PTX" || ok
[ "$(grep -c '//@ check.gather.b32.s32 .*, 32;' checked.ptx)" = 1 ] && ok || bad "no check in PTX with checks"
status 0 "plain PTX" "$blkrun" --device=sim plain.ptx y=f32[32]:poison x=i32[32]:poison n=1
status 1 "checked PTX" "$blkrun" --device=sim checked.ptx y=f32[32]:poison x=i32[32]:poison n=1
says 'it comes from a gather at undefined.blk:4'

# What the layouts of the examples cost: a layout that gets worse changes these.
cost() { # what counter value
	grep -q "^  $2  *$3" "$dir/out" && ok || { bad "$1: $2 is not $3:"; grep "^  " "$dir/out"; }
}
status 0 "transpose counted" "$blkrun" --device=sim --counters examples/transpose/transpose.blk y=f32[1,256,256] x=f32[1,256,256] batch=1 rows=256 columns=256
cost transpose "bank conflicts" 0
cost transpose "global loads" "512   16.00 sectors a request, 100%"
cost transpose "global stores" "512   16.00 sectors a request, 100%"
status 0 "add counted" "$blkrun" --device=sim --counters $add n=4096 x=f32[4096] y=f32[4096] z=f32[4096]
cost add "global loads" "64   16.00 sectors a request, 100%"
cost add "global stores" "32   16.00 sectors a request, 100%"
cost add "barriers passed" 0

# Every barrier that the compiler emits is needed: without it the simulator speaks.
masks() { # name blkrun's arguments...: every mask of a load or store of kernel.ptx
	what=$1
	shift
	n=$(grep -c '^[[:space:]]*@%p[0-9]* \(ld\|st\)\.global' kernel.ptx)
	for k in $(seq "$n"); do
		awk -v k="$k" '/^[ \t]*@%p[0-9]* (ld|st)\.global/ && ++seen == k { sub(/@%p[0-9]+ /, "") } { print }' kernel.ptx >mutant.ptx
		status 1 "$what without mask $k of $n" "$blkrun" --device=sim --sim-schedules=4 mutant.ptx "$@"
		says 'outside\|a race on'
	done
}
barriers() { # name blkrun's arguments...: of kernel.ptx
	what=$1
	shift
	n=$(grep -c 'bar\.sync' kernel.ptx)
	status 0 "$what as compiled" "$blkrun" --device=sim kernel.ptx "$@"
	for k in $(seq "$n"); do
		awk -v k="$k" '/bar\.sync/ && ++seen == k { next } { print }' kernel.ptx >mutant.ptx
		status 1 "$what without barrier $k of $n" "$blkrun" --device=sim --sim-schedules=4 mutant.ptx "$@"
		says 'a race on\|undefined'
	done
}
"$blkc" $add -o kernel.ptx
masks add n=1 x=f32[1] y=f32[1] z=f32[1]
"$blkc" examples/softmax/softmax.blk --kernel=softmax_rows -D BLOCK=1024 -o kernel.ptx
masks softmax y=f32[1,1] x=f32[1,1] stride=1 rows=1 n=1
barriers softmax y=f32[7,1000] x=f32[7,1000]:randn stride=1000 rows=7 n=1000
"$blkc" examples/transpose/transpose.blk -o kernel.ptx
barriers transpose y=f32[3,65,31] x=f32[3,31,65]:randn rows=31 columns=65 batch=3
"$blkc" examples/cross_entropy/cross_entropy.blk -o kernel.ptx
barriers cross_entropy loss=f32[5] x=f32[5,5000]:randn target=i32[5] n=5000 rows=5

# A pipeline's waits and barriers: those of the loop are needed, behind it nothing uses shared memory.
"$blkc" examples/matmul/matmul.blk --kernel=matmul -D BM=64 -D BN=32 -D BK=64 --specialize=c%16,a%16,b%16,M%16,N%16,K%16 -o kernel.ptx
product="c=f16[128,96] a=f16[128,256]:randn b=f16[256,96]:randn M=128 N=96 K=256"
# shellcheck disable=SC2086
status 0 "copies at the earliest and the latest moment" "$blkrun" --device=sim --sim-schedules=4 kernel.ptx $product
for k in 1 2; do
	awk -v k="$k" '/cp\.async\.wait|bar\.sync/ && ++seen == k { next } { print }' kernel.ptx >mutant.ptx
	# shellcheck disable=SC2086
	status 1 "product without wait or barrier $k" "$blkrun" --device=sim --sim-schedules=4 mutant.ptx $product
	says 'a race on\|undefined\|under way'
done

# Programs of a cluster that bring each other blocks: each must release slots to the others and copy for all.
for kernel in matmul_tensor matmul_persistent; do
	"$blkc" examples/matmul/matmul.blk --kernel=$kernel --target=sm_90a -D BM=64 -D BN=64 -D BK=64 -D num_warps=4 -D num_stages=3 \
		-D num_ctas=2 --specialize=c%16,a%16,b%16,M%16,N%16,K%16 -o kernel.ptx
	product="c=f16[128,192] a=f16[128,512]:randn b=f16[512,192]:randn M=128 N=192 K=512"
	# shellcheck disable=SC2086
	status 0 "$kernel by clusters" "$blkrun" --device=sim:sm_90a --sim-schedules=3 kernel.ptx $product
	sed 's/@%p[0-9]* mbarrier.arrive.shared::cluster.*//' kernel.ptx >mutant.ptx
	# shellcheck disable=SC2086
	status 1 "$kernel keeps its slots" "$blkrun" --device=sim:sm_90a mutant.ptx $product; says 'wait for ever'
	sed '/multicast::cluster \[/s/, [^,]*;$/, 1;/' kernel.ptx >mutant.ptx
	# shellcheck disable=SC2086
	status 1 "$kernel brings blocks to one" "$blkrun" --device=sim:sm_90a mutant.ptx $product; says 'wait for ever'
	sed 's/barrier.cluster.[a-z]*.aligned;//' kernel.ptx >mutant.ptx
	# shellcheck disable=SC2086
	status 1 "$kernel begins without the others" "$blkrun" --device=sim:sm_90a mutant.ptx $product; says 'mbarrier'
done

# An operand goes to shared memory in wide accesses and from there by matrix loads, whichever way it lies in memory: four warps, four
# rounds, four copies and eight matrix loads each, none of which waits for another.
cat >orders.blk <<'END'
kernel product(const T: type = f16, const ACC: type = f32, c: *ACC, a: *const T, b: *const T, M: i32, N: i32, K: i32,
    const TA: bool = false, const TB: bool = false, const BK: i32 = 32)
    grid(cdiv(M, 64), cdiv(N, 64))
{
    let i = program_id(0) * 64 + arange(0, 64);
    let j = program_id(1) * 64 + arange(0, 64);
    var acc = zeros([64, 64], ACC);
    for k in range(0, K, BK) {
        let l = k + arange(0, BK);
        let x = TA ? trans(load(a + l[:, None] * M + i[None, :], mask = (l < K)[:, None] & (i < M)[None, :]))
                   : load(a + i[:, None] * K + l[None, :], mask = (i < M)[:, None] & (l < K)[None, :]);
        let y = TB ? trans(load(b + j[:, None] * K + l[None, :], mask = (j < N)[:, None] & (l < K)[None, :]))
                   : load(b + l[:, None] * N + j[None, :], mask = (l < K)[:, None] & (j < N)[None, :]);
        acc = dot(x, y, acc);
    }
    store(c + i[:, None] * N + j[None, :], acc, mask = (i < M)[:, None] & (j < N)[None, :]);
}
END
for ta in false true; do
	for tb in false true; do
		status 0 "product with TA=$ta TB=$tb" "$blkrun" --device=sim --counters orders.blk -D TA=$ta -D TB=$tb \
			c=f32[64,64]:poison a=f16[64,128]:randn b=f16[128,64]:randn M=64 N=64 K=128 --check cpu
		says '^  shared accesses *192$'
		says '^  bank conflicts *0$'
	done
done

# A block that is smaller than the program: warps that hold the same elements leave writing them for the bulk copy to one
cat >small.blk <<'END'
kernel small(o: *i32, p: *const i32)
{
    let i = arange(0, 2)[:, None, None] * 16 + arange(0, 4)[None, :, None] * 4 + arange(0, 4);
    tensor(o, [2, 4, 4]).store([0, 0, 0], load(p + i));
}
END
status 0 "a small block" "$blkrun" --device=sim:sm_90a small.blk --grid=1 o=i32[32]:poison p=i32[32]:arange --check cpu
says 'check o against .*: good, equal'

# A factor that is a constant: it is in its registers before the fence
cat >zero.blk <<'END'
kernel zero(c: *f32, b: *const f16, n: i32) {
    let i = arange(0, 64);
    var acc = full([64, 64], 1.0, f32);
    for r in range(0, n) {
        var s = zeros([64, 64], f32);
        for k in range(0, 2) {
            s = dot(zeros([64, 64], f16), load(b + (r * 128 + k * 64 + i)[:, None] * 64 + i[None, :]), s);
        }
        acc = acc + s;
    }
    store(c + i[:, None] * 64 + i[None, :], acc);
}
END
status 0 "a constant factor" "$blkrun" --device=sim:sm_90a zero.blk --grid=1 n=3 c=f32[64,64]:poison b=f16[768,64]:randn --check cpu
says 'check c against .*: good, equal'
# A mask whose product wraps around (32 * 2^27 is 0 in 32 bits) lets elements through at which the pointers are 2^32 further on: what is
# there is read, and not what a map has at 0.
cat >far.blk <<'END'
kernel far(c: *f32, a: *const f16, b: *const f16, M: i32, K: i32, first: i32, last: i32, back: i64) grid(1) {
	let i = arange(0, 64);
	let l = arange(0, 32);
	var s = zeros([64, 64], f32);
	for k in range(first, last) {
		let p = a + back + i[:, None].to(i64) * K + (k.to(i64) * 134217728 + l)[None, :];
		s = dot(load(p, mask = (i < M)[:, None] & (l < K - k * 134217728)[None, :]), load(b + l[:, None] * 64 + i[None, :]), s);
	}
	store(c + i[:, None] * 64 + i[None, :], s);
}
END
far="c=f32[64,64]:poison a=f16[64,32]:randn b=f16[32,64]:randn M=64 K=32"
status 0 "a product of rounds" "$blkrun" --device=sim:sm_90a far.blk $far first=0 last=1 back=0 --check cpu --verbose; says '^code .*, 2 tensor maps'
status 0 "a product that wraps around" "$blkrun" --device=sim:sm_90a far.blk $far first=32 last=33 back=-4294967296 --check cpu --verbose
says '^code for any arguments, 0 tensor maps'; says 'check c against .*: good'

# What lies below 0 only the mask excludes: rounds whose index would come out as 0 again in 32 bits.
cat >back.blk <<'END'
kernel back(c: *f32, a: *const f16, b: *const f16, M: i32, K: i32, first: i32, last: i32) grid(1) {
	let i = arange(0, 64);
	let l = arange(0, 32);
	var s = zeros([64, 64], f32);
	for k in range(first, last) {
		let at = k.to(i64) * 134217728 + l.to(i64);
		let inside = (i < M)[:, None] & ((at >= 0) & (at < K.to(i64)))[None, :];
		s = dot(load(a + i[:, None].to(i64) * K + at[None, :], mask = inside), load(b + l[:, None] * 64 + i[None, :]), s);
	}
	store(c + i[:, None] * 64 + i[None, :], s);
}
END
status 0 "rounds from below 0" "$blkrun" --device=sim:sm_90a back.blk $far first=-2 last=3 --check cpu --verbose
says '^code .*, 2 tensor maps'; says 'check c against .*: good'
status 0 "rounds from far below 0" "$blkrun" --device=sim:sm_90a back.blk $far first=-32 last=2 --check cpu --verbose
says '^code for any arguments, 0 tensor maps'; says 'check c against .*: good'

finish
