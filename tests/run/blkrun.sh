#!/bin/sh
# usage: blkrun.sh BUILD      blkrun from the shell on the cpu device: values, outputs, checks, exit statuses, the cache.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkrun=$build/bin/blkrun
BLK_CACHE_DIR=$dir/cache
export BLK_CACHE_DIR
quiet() { [ -s "$dir/err" ] && { bad "$name says:"; cat "$dir/err"; } || ok; }
same() { cmp -s "$1" "$2" && ok || bad "$1 and $2 differ"; }
cp -r "$root/examples" examples
add=examples/vector_add/vector_add.blk
run() { # wanted name arguments... on the cpu
	w=$1 n=$2
	shift 2
	status "$w" "$n" "$blkrun" --device=cpu "$@"
}

# Values, outputs
run 0 "add" $add n=5 x=f32[5]:arange y=f32[5]:ones z=f32[5]:poison
quiet
says '^add on '; says '^grid 1 x 1 x 1'; says '^time '; says 'B/s'; says '^z: f32\[5\]'; says '1  2  3  4  5'
if nm "$build/bin/blkrun" 2>/dev/null | grep -q __asan; then skip 4; else # its shadow takes more than there is
	for limit in unlimited 80000; do # the second finds its code in the cache: there is no room to compile
		status 0 "guards within $limit" sh -c 'ulimit -v '$limit'; exec "$@"' sh \
			"$blkrun" --device=cpu:guarded $add n=5 x=f32[5]:arange y=f32[5]:ones z=f32[5]
		[ $limit = 80000 ] || quiet
	done
	says '^a buffer lies without guard pages: 2 buffers have some (vm.max_map_count'
fi
run 0 "two buffers to one device" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out x=/dev/null --out y=/dev/null; quiet
run 0 "kernel by name" $add:add n=5 x=f32[5] y=f32[5] z=f32[5]
run 0 "spaced options" $add n=5 x=f32[5] y=f32[5] z=f32[5] --grid 3,1,1 --out z=z.npy
says '^grid 3 x 1 x 1'
run 0 "npy out" $add n=1000 x=f32[10,100]:randn:3 y=f32[10,100]:rand z=f32[10,100]:poison --out x=x.npy --out z=z.npy --out=y=y.npy
[ "$(wc -c <z.npy)" = 4128 ] && ok || bad "z.npy has $(wc -c <z.npy) bytes"
# A file keeps its mode, and one that is mounted by itself its place.
echo old >private.npy
chmod 600 private.npy
run 0 "private" $add n=5 x=f32[5]:ones y=f32[5]:ones z=f32[5] --out z=private.npy
[ "$(stat -c %a private.npy)" = 600 ] && ok || bad "private.npy has mode $(stat -c %a private.npy)"
for how in "unshare --mount" "unshare --user --map-root-user --mount" none; do
	[ "$how" != none ] || break
	touch mounted.npy outside.npy
	$how mount --bind outside.npy mounted.npy 2>/dev/null && break
done
if [ "$how" = none ]; then skip 2; else
	status 0 "mounted" $how sh -c 'mount --bind outside.npy mounted.npy && exec "$@"' sh \
		"$blkrun" --device=cpu $add n=5 x=f32[5]:ones y=f32[5]:ones z=f32[5] --out z=mounted.npy
	same outside.npy private.npy
	rm -f mounted.npy outside.npy
fi
run 0 "npy in" $add n=1000 x=@x.npy y=@y.npy z=f32[10,100]:poison --out z=again.npy --check z.npy
same z.npy again.npy
says 'check z against z.npy: good, equal'
run 0 "check by name" $add n=1000 x=@x.npy y=@y.npy z=f32[10,100] --check z=z.npy
run 1 "mismatch" $add n=999 x=@x.npy y=@y.npy z=f32[10,100]:poison --check z.npy
says 'WRONG'; says 'at \[9, 99\]: nan'; says '1 of 1000 elements'
run 0 "tolerance" $add n=1000 x=@x.npy y=@x.npy z=f32[10,100] --check z.npy --atol=1e6
run 1 "tight tolerance" $add n=1000 x=@x.npy y=@x.npy z=f32[10,100] --check z.npy --rtol=1e-9
for check in nowhere.npy z=nowhere.npy; do run 1 "a reference that is not there" $add n=10 x=f32[10] y=f32[10] z=f32[10] --check $check; says '^blkrun: nowhere.npy: No such file or directory$'; silent 'add on'; done
for check in own.npy z=own.npy; do
	rm -f own.npy
	run 0 "a reference that the run writes" $add n=10 x=f32[10]:ones y=f32[10] z=f32[10] --out y=other.npy --out z=own.npy --check $check; says '^check z against own.npy: good, equal$'
done
run 1 "other shape" $add n=10 x=f32[10] y=f32[10] z=f32[10] --check z.npy
says '1000 elements'
run 0 "check on another device" $add n=1000 x=@x.npy y=@y.npy z=f32[1000] --check cpu
run 0 "other seeds by default" $add n=100 x=f32[100]:randn y=f32[100]:randn z=f32[100] --out x=sx.npy --out y=sy.npy
cmp -s sx.npy sy.npy && bad "two buffers are filled alike" || ok
run 0 "empty work" $add n=0 x=f32[0] y=f32[0] z=f32[4]:ones
says 'nothing was launched'
run 0 "bench" $add n=1000 x=@x.npy y=@y.npy z=f32[1000] --bench
says 'median of '; says 'copy rate measured'
run 0 "gelu" examples/gelu/gelu.blk n=3 x=f32[3]:zeros y=f32[3]:poison
says '  0  0  0'
run 0 "define" examples/softmax/softmax.blk:softmax_rows -D BLOCK=128 -Dnum_warps=2 stride=100 rows=3 n=100 x=f32[3,100]:zeros y=f32[3,100]:poison
says '0.01  0.01'
run 0 "the last of two defines" $add -D BLOCK=64 -D BLOCK=128 n=5 x=f32[BLOCK]:ones y=f32[5] z=f32[BLOCK]; says '^z: f32\[128\]'
names=$(seq -f 'x%g' 255)
echo "kernel all($(printf '%s: i32, ' $names) y: *i32) grid(1) { store(y, x1 + 1000 * x255); }" >all.blk
# shellcheck disable=SC2046
run 0 "256 parameters" all.blk $(printf '%s=7 ' $names) y=i32[1]; says '^  7007$'
run 0 "half precision" examples/layer_norm/layer_norm.blk:layer_norm_forward -D T=f16 -D BLOCK=128 y=f16[4,100]:poison x=f16[4,100]:randn w=f16[100]:ones b=f16[100] mean=f32[4]:poison rstd=f32[4]:poison stride=100 rows=4 n=100 eps=1e-5 --check cpu
run 0 "bf16 out" examples/layer_norm/layer_norm.blk:layer_norm_forward -D T=bf16 -D BLOCK=128 y=bf16[4,100] x=bf16[4,100]:randn w=bf16[100]:ones b=bf16[100] mean=f32[4] rstd=f32[4] stride=100 rows=4 n=100 eps=1e-5 --out y=bf.npy
says 'NumPy has no bf16'
run 0 "bf16 in" examples/layer_norm/layer_norm.blk:layer_norm_forward -D T=bf16 -D BLOCK=128 y=bf16[4,100] x=@bf.npy w=bf16[100]:ones b=bf16[100] mean=f32[4] rstd=f32[4] stride=100 rows=4 n=100 eps=1e-5

# A slot that mma.sync reads while it multiplies, beside a product of warpgroups: the producer has it back behind that.
cat >released.blk <<'B'
kernel mixed(o: *f32, q: *const f16, k: *const f16, v: *const f32, nk: i32) grid(1) options(num_warps = 4) {
    let Q = tensor(q, shape = [64, 64]);
    let K = tensor(k, shape = [nk, 64]);
    let V = tensor(v, shape = [nk, 64]);
    let qb = Q.load([0, 0], [64, 64]);
    var acc = zeros([64, 64], f32);
    for j in range(0, nk, 32) {
        let p = exp2(dot(qb, trans(K.load([j, 0], [32, 64]))) * 0.05);
        acc = dot(p, V.load([j, 0], [32, 64]), acc, precision = "tf32x3");
    }
    tensor(o, shape = [64, 64]).store([0, 0], acc);
}
// more warps than there are parts of the operand: one of those with the same part stores it
kernel shared(o: *f32, a: *const f16, b: *const f16) grid(1) options(num_warps = 16) {
    let x = tensor(a, shape = [64, 64]).load([0, 0], [64, 64]);
    tensor(o, shape = [64, 32]).store([0, 0], dot(x, tensor(b, shape = [64, 32]).load([0, 0], [64, 32])));
}
B
for stages in 2 3 4; do
	status 0 "a slot that mma.sync reads, $stages stages" "$blkrun" --device=sim:sm_90a released.blk:mixed -D num_stages=$stages o=f32[64,64]:poison \
		q=f16[64,64]:randn k=f16[200,64]:randn v=f32[200,64]:randn nk=200 --check cpu
done
status 0 "16 warps store 64 rows" "$blkrun" --device=sim:sm_90a released.blk:shared o=f32[64,32]:poison a=f16[64,64]:randn b=f16[64,32]:randn --check cpu

# What was launched, and why it is not the best: a product over nothing has no array that a tensor map could describe
product() { # K more arguments
	k=$1
	shift
	status 0 "product over $k $*" "$blkrun" --device=sim:sm_90a examples/matmul/matmul.blk:matmul_tensor -D BM=64 -D BN=64 -D num_warps=4 \
		M=64 N=64 K=$k a=f16[64,$k]:ones b=f16[$k,64]:ones c=f16[64,64]:poison "$@"
}
product 32 --verbose
says '^code for c%16,a%16,b%16,M%16,N%16,K%16, 3 tensor maps, compiled now'; says '\[0, 0\] 32  32'
grep -q 'though these promise more' out && bad "a fallback where there is none" || ok
product 32 --verbose; says 'from the cache'
product 31 --verbose; says '^code for c%16,a%16,b%16,M%16,N%16, '
product 0
says 'code for any arguments, though these promise more: kernel matmul_tensor: no tensor map . can be made'; says '\[0, 0\] 0  0'

# Wrong usage: 2
run 2 "no value" $add n=5 x=f32[5] y=f32[5]; says 'parameter z (\*f32) has no value'
run 2 "unknown parameter" $add n=5 x=f32[5] y=f32[5] z=f32[5] w=3; says "no parameter 'w'; it has: z x y n"
run 2 "given twice" $add n=5 n=6; says 'given twice: n'
run 2 "out of range" $add n=5000000000 x=f32[5] y=f32[5] z=f32[5]; says 'does not fit'
run 2 "no integer" $add n=1.5 x=f32[5] y=f32[5] z=f32[5]; says 'no integer'
run 2 "wrong element" $add n=5 x=f16[5] y=f32[5] z=f32[5]; says 'parameter is \*const f32, but the buffer holds f16'
run 2 "scalar for a buffer" $add n=5 x=3 y=f32[5] z=f32[5]; says 'f32\[4096,1024\]'
run 2 "unknown fill" $add n=5 x=f32[5]:gauss y=f32[5] z=f32[5]; says 'unknown way'
run 2 "out of a scalar" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out n=n.npy; says 'is no buffer'
run 2 "bad grid" $add n=5 x=f32[5] y=f32[5] z=f32[5] --grid=1,2,3,4; says '--grid takes'
run 2 "bad tolerance" $add --rtol=-1
run 2 "unknown option" $add --frobnicate; says 'unknown option --frobnicate'
run 2 "value missing" $add --out; says 'value is missing'
status 2 "nothing" "$blkrun"

# Addresses of buffers: what is shown, written and compared are the buffers, each device's own; several orders begin from the
# same bytes of them.  The simulator knows them by their table and keeps programs apart in them.
cat >addresses.blk <<'END'
kernel twice(at: *const i64, n: i32) grid(1) {
    let i = arange(0, 8);
    let x = load(at).to(*const f32);
    let y = load(at + 1).to(*f32);
    store(y + i, load(y + i, mask = i < n) + 2.0 * load(x + i, mask = i < n), mask = i < n);
}
kernel race(at: *const u64, n: i32) grid(n) { store(load(at + 1).to(*f32), 1.0); }
kernel number(x: *f32, n: i32) grid(1) { store(x, n.to(f32)); }
END
twice() { # wanted name device at more arguments...
	w=$1 n=$2 device=$3 at=$4
	shift 4
	status "$w" "$n" "$blkrun" --device="$device" addresses.blk:twice at="$at" "$@"
}
for device in cpu sim sim:sm_90a; do
	twice 0 "addresses on $device" $device 'to:f32[5]:arange+f32[1,5]:ones+f32[5]' n=5 --check cpu --out 'at[1]=at.npy'
	quiet; says '^at\[1\]: f32\[1, 5\]'; says '\[0, 0\] 1  3  5  7  9$'; says '^check at\[1\] against .*: good, equal'; silent 'at[0]'; silent 'at[2]'
	twice 0 "addresses against a file on $device" $device 'to:f32[n]:arange+f32[n]:ones' n=5 --check 'at[1]=at.npy' --bench
	says 'check at\[1\] against at.npy: good, equal'
done
twice 0 "addresses in several orders" sim 'to:f32[5]:arange+f32[5]:ones' n=5 --sim-schedules=3; says '  1  3  5  7  9$'
twice 0 "addresses over sizes" cpu 'to:f32[n]:arange+f32[n],to:f32[n]:ones+f32[n]' n=5,7 --check cpu; says '^at = to:f32\[n\]:ones'; silent WRONG
twice 0 "seeds of addresses" cpu 'to:f32[5]:randn+f32[5]:randn' n=0 --out 'at[0]=s0.npy' --out 'at[1]=s1.npy'; quiet
cmp -s s0.npy s1.npy && bad "two buffers of a table are filled alike" || ok
twice 1 "an address's end" sim 'to:f32[5]:ones+f32[8]:ones' n=6; says ' read outside the buffer at at\[0\], which has 20 bytes: at offset 20$'
status 1 "a race behind addresses" "$blkrun" --device=sim addresses.blk:race at=to:f32[1]+f32[1] n=2
says 'a race on the buffer at at\[1\] at offset 0'
status 1 "a race behind addresses, as fields" "$blkrun" --device=sim --diagnostics=json addresses.blk:race at=to:f32[1]+f32[1] n=2
says '"space": "global", "buffer": "at\[1\]", "owner": null, "size": 4, "offset": 0, "bytes": 4, "kind": '
twice 2 "no address" cpu to: n=5; says '^blkrun: at\[0\]: addresses are of fresh buffers'
twice 2 "address of a file" cpu 'to:f32[5]+@x.npy' n=5; says '^blkrun: at\[1\]: addresses are of fresh buffers'
twice 2 "address of no type" cpu 'to:f32[5]+f33[5]' n=5; says '^blkrun: at\[1\]: its element type is unknown'
twice 2 "a buffer for addresses" cpu 'f32[5]' n=5; says 'but the buffer holds f32 (to: in front'
twice 2 "addresses as a file" cpu 'to:f32[5]+f32[5]' n=5 --out at=at.npy; says 'at: it holds addresses; its buffers are at\[0\] to at\[1\]'
twice 2 "an address too far" cpu 'to:f32[5]+f32[5]' n=5 --out 'at[2]=at.npy'; says "no parameter 'at\[2\]'"
twice 2 "addresses and one of several" cpu 'to:f32[5]+f32[5]' n=5 --check at.npy; says 'several buffers'
twice 2 "trials with addresses" cpu 'to:f32[5]+f32[5]' n=5 --tune; says 'at: its addresses mean nothing'
# Tables behind other parameters; what a kernel writes into a table is none of its outputs.
cat >tables.blk <<'END'
kernel move(n: i32, a: *const i64, b: *i64) grid(1) {
    let i = arange(0, 8);
    store(load(b + 1).to(*f32) + i, load(load(a).to(*const f32) + i, mask = i < n) + 1.0, mask = i < n);
    store(b, 0);
}
END
run 0 "two tables" tables.blk:move n=4 a=to:f32[4]:arange b=to:f32[1]+f32[4]+f32[2]; says '^b\[1\]: f32\[4\]$'; says '^  1  2  3  4$'; silent 'b: '; silent 'a['; silent 'b[0]'; silent 'b[2]'
# shellcheck disable=SC2046
{
	echo "kernel tables($(printf '%s: *const i64, ' $(seq -f 'x%g' 60)) y: *i32) grid(1) { store(y, 1); }" >many.blk
	run 2 "too many buffers" many.blk y=i32[1] $(seq -f "x%g=to:f32[1]$(printf '+f32[1]%.0s' $(seq 17))" 60); says '^blkrun: x54: there are too many buffers$'
}
run 2 "addresses for numbers" addresses.blk:number x=to:f32[1] n=1; says 'x: addresses (to:) need a parameter that is \*i64 or \*u64'

# A warning is printed once, though the source is checked and then compiled
echo 'kernel k(x: *f32) grid(1) { static_print("said"); store(x, 1 / 2); }' >warning.blk
for time in first cached; do
	run 0 "warning, $time" warning.blk x=f32[1]
	[ "$(grep -c 'W0302' err) $(grep -c 'note: said' err)" = "1 1" ] && ok || { bad "$time: a warning not once:"; cat err; }
done
# What static_print says stands once: with a launch that fails, on two devices, for kernels that share a fn, for each size; another value is told
cat >static.blk <<'END'
fn shared(const N: i32) { static_print("shared", N); return N.to(f32); }
kernel a(x: *f32, n: i32, const B: i32 = 4) grid(1) { static_print("block", B); device_assert(arange(0, 8) < n, "few"); store(x + arange(0, 8), shared(3)); }
kernel b(x: *f32, n: i32, const B: i32 = 4) grid(1) { static_print("block", B); store(x + arange(0, 8), shared(3)); }
autotune b key(n) { B: [4, 8]; }
END
lines() { [ "$(grep -c "note: $1\$" err)" = "$2" ] && ok || { bad "$name says '$1' not $2 times:"; cat err; }; }
for time in first cached; do
	run 1 "static_print and a failed assert, $time" static.blk:a x=f32[8] n=3; lines 'block 4' 2; lines 'shared 3' 1
	says 'static.blk:2: assertion failed in program (0, 0, 0), element (3): few'
	run 0 "static_print for sizes, $time" static.blk:a x=f32[8] n=8,16,17; lines 'block 4' 2; lines 'shared 3' 1
	run 0 "static_print on two devices, $time" static.blk:b x=f32[8] n=8 --check sim; lines 'block 4' 2; lines 'shared 3' 1
	run 0 "static_print of another value, $time" static.blk:b -D B=8 x=f32[8] n=8; lines 'block 8' 2; lines 'block 4' 0
done
run 0 "static_print and tuning" static.blk:b x=f32[8] n=9 --tune; lines 'block 4' 2; lines 'shared 3' 1
run 2 "fraction as an extent" $add n=1.5 x=f32[n] y=f32[4] z=f32[4]; says 'x: an extent is no integer'

# Prints say the same on every device: tiles stretch to one shape, an element has one line with everything, whatever layouts they come in
cat >print.blk <<'END'
kernel k(x: *const f32, y: *f32) grid(2)
{
    let i = arange(0, 4);
    let s = sum(load(x + i[:, None] * 8 + arange(0, 8)), axis = 1);
    device_print("scalars: 100%", program_id(0), 1.5, true);
    device_print("tiles", i, s, program_id(0));
    device_print("stretched", 2.5, i[:, None], arange(0, 2)[None, :] == 1, s[None, :, None]);
    store(y + program_id(0) * 4 + i, s);
}
END
for i in 0 1; do
	echo "pid ($i, 0, 0) scalars: 100%: $i 1.5 1"
	for j in 0 1 2 3; do
		s=$((64 * j + 28))
		echo "pid ($i, 0, 0) idx ($j) tiles: $j $s $i"
		echo "pid ($i, 0, 0) idx (0, $j, 0) stretched: 2.5 $j 0 $s"
		echo "pid ($i, 0, 0) idx (0, $j, 1) stretched: 2.5 $j 1 $s"
	done
done | sort >prints
for device in cpu sim sim:sm_90a; do
	status 0 "prints on $device" "$blkrun" --device=$device print.blk -D num_warps=2 x=f32[32]:arange y=f32[8]
	grep '^pid' out | sort >lines
	same lines prints
done

# The simulator: results as the cpu device's, a problem with its line and the way out
status 0 "sim" "$blkrun" --device=sim $add n=1000 x=f32[1000]:randn y=f32[1000]:rand z=f32[1000]:poison --check cpu
says 'simulator of sm_80'; says 'z:'
status 0 "check against sim" "$blkrun" --device=cpu $add n=1000 x=f32[1000]:randn y=f32[1000]:rand z=f32[1000]:poison --check sim
status 1 "sim finds" "$blkrun" --device=sim:sm_90a $add n=1000 x=f32[1000] y=f32[1000] z=f32[999]
says 'vector_add.blk:9: .* written outside z, which has 3996 bytes: at offset 3984'; says 'in kernel add, program (0, 0, 0), thread'; says 'hint: '
status 2 "no such target" "$blkrun" --device=sim:sm_1 $add n=1 x=f32[1] y=f32[1] z=f32[1]
says 'runs no target "sm_1"'
status 2 "cache of an unknown kind" "$blkrun" --cache=frob
status 0 "--help" "$blkrun" --help; says usage
status 0 "--version" "$blkrun" --version; says blkrun

# A device says nothing about itself: on the cpu, the cpu is the simulator, whose findings fail the check
cat >race.blk <<'END'
kernel smooth(x: *f32, n: i32, const BLOCK: i32 = 128) grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let left = load(x + i - 1, mask = (i > 0) & (i < n), other = 0.0);
    store(x + i, load(x + i, mask = i < n) + left, mask = i < n);
}
END
run 0 "a race unseen" race.blk x=f32[1000]:randn n=1000
run 1 "a race seen" race.blk x=f32[1000]:randn n=1000 --check cpu
says '^check: the kernel ran on the cpu, so the simulator checks it$'; says 'race.blk:[45]: a race on x at offset 508: '; silent good
run 0 "one program" race.blk x=f32[100]:randn n=100 --check cpu; says '^check x against simulator of sm_80: good, equal$'
run 1 "a check that takes too long" $add n=5000 x=f32[5000] y=f32[5000] z=f32[5000] --check cpu --sim-budget=200
says 'kernel add has not ended after 200 instructions of all its programs: the simulation is given up'
says '^blkrun: nothing is checked: give smaller sizes, or --check sim'; silent good
run 0 "a check that may take long" $add n=5000 x=f32[5000] y=f32[5000] z=f32[5000] --check cpu --sim-budget=20000; says 'good, equal'
status 1 "a launch that takes too long" "$blkrun" --device=sim $add n=5000 x=f32[5000] y=f32[5000] z=f32[5000] --sim-budget=200; says 'is given up'
status 0 "a device against itself" "$blkrun" --device=sim $add n=10 x=f32[10] y=f32[10] z=f32[10] --check sim
says 'that two runs agree says little; check against cpu'; says 'good, equal'
status 0 "another target" "$blkrun" --device=sim $add n=10 x=f32[10] y=f32[10] z=f32[10] --check sim:sm_90a; silent 'says little'

# What still holds poison was not written: of every type, also where what was written looks like poison or is another buffer's; nothing is
# left of the runs that tell
cat >parts.blk <<'END'
kernel part(const T: type = f32, y: *T, x: *const T, n: i32) grid(1) { let i = arange(0, 256); store(y + i, load(x + i), mask = i < n); }
kernel chain(const T: type = f32, a: *T, b: *T, c: *T, n: i32) grid(1) {
	let i = arange(0, 256);
	store(b + i, 1, mask = i < n); store(a + i, load(b + i)); store(c + i, load(a + i), mask = i < 128);
}
kernel add_one(y: *i32) grid(1) { let i = arange(0, 256); store(y + i, load(y + i) + 1); }
kernel ticket(y: *i8, c: *i32, o: *i32) grid(4) { store(y + 2 * atomic_add(c, 1), 7); store(o + program_id(0), 1); }
END
for t in bool i8 i16 i32 i64 u8 u16 u32 u64 f8e4m3 f8e5m2 f16 bf16 f32 f64; do
	run 0 "$t written in part" parts.blk:part -D T=$t "y=${t}[2,128]:poison" "x=${t}[256]:poison" n=130 --out y=p.npy --out x=x1.npy
	says '^y: 126 of 256 elements were not written (they still hold poison), the first at \[1, 2\]$'
	tail -c 128 p.npy >y.tail; tail -c 128 x1.npy >x.tail; same y.tail x.tail
	run 0 "$t copied" parts.blk:chain -D T=$t "a=${t}[256]:poison" "b=${t}[256]:poison" "c=${t}[256]:poison" n=100
	silent 'a: 1'; says '^b: 156 of 256 elements were not written .* \[100\]$'; says '^c: 128 of 256 elements were not written .* \[128\]$'
	run 0 "$t written" parts.blk:part -D T=$t "y=${t}[256]:poison" "x=${t}[256]:poison" n=256; silent 'not written'
done
run 0 "in place" parts.blk:add_one y=i32[256]:poison; silent 'not written'
run 0 "no poison" parts.blk:part y=f32[256] x=f32[256] n=3; silent 'not written'
run 0 "tickets" parts.blk:ticket y=i8[10]:poison c=i32[1] o=i32[4]:poison
says '^y: 6 of 10 elements were not written (they still hold poison), the first at \[1\]$'; says '^  4$'; silent 'o: 0'
for device in cpu sim sim:sm_90a; do
	status 1 "a part, checked on $device" "$blkrun" --device=$device parts.blk:part y=f32[256]:poison x=f32[256]:randn n=100 --check cpu
	says '^check y: WRONG, 156 of 256 elements were not written (they still hold poison), the first at \[100\]; --allow-unwritten takes that$'
	status 0 "a part, allowed on $device" "$blkrun" --device=$device parts.blk:part y=f32[256]:poison x=f32[256]:randn n=100 --check cpu --allow-unwritten
	says '^y: 156 of 256 elements were not written'; says '^check y against .*: good'
done
run 1 "a part against a file" $add n=900 x=@x.npy y=@y.npy z=f32[10,100]:poison --check z.npy; says '^check z: WRONG, 100 of 1000 elements were not written'
run 0 "nothing launched" $add n=0 x=f32[1] y=f32[1] z=f32[4]:poison; silent 'not written'
run 1 "a row that does not fit" examples/softmax/softmax.blk:softmax_rows -D BLOCK=1024 stride=5000 rows=2 n=5000 x=f32[2,5000]:randn y=f32[2,5000]:poison --check cpu
says '^blkrun: kernel softmax_rows requires n <= BLOCK (a row fits one tile), which does not hold: n = 5000, BLOCK = 1024$'
# A define that breaks a requires clause of one kernel does not concern the other kernels of the file.
cat >two.blk <<'END'
kernel narrow(x: *f32, const B: i32 = 64) grid(1) requires 128 % B == 0, "a part of 128" { store(x, 1.0); }
kernel any(x: *f32, const B: i32 = 64) grid(1) { store(x, B.to(f32)); }
END
status 0 "the kernel that takes it" "$blkrun" --device=cpu two.blk:any -D B=256 'x=f32[1]'
says ' 256$'
status 1 "the one that does not" "$blkrun" --device=cpu two.blk:narrow -D B=256 'x=f32[1]'
says '^blkrun: kernel narrow requires 128 % B == 0 (a part of 128), which does not hold: B = 256$'
run 0 "a tile that the launch computes" examples/softmax/softmax.blk:softmax_rows stride=5000 rows=2 n=5000 x=f32[2,5000]:randn y=f32[2,5000]:poison --check cpu
says '^check y against .*: good'
run 1 "a row beyond the bounds" examples/softmax/softmax.blk:softmax_rows stride=16385 rows=1 n=16385 x=f32[16385] y=f32[16385]
says '^blkrun: kernel softmax_rows: BLOCK = next_extent(n) is 20480, which is not in 16..16384: n = 16385$'
run 0 "a tile that is given, beyond the bounds" examples/softmax/softmax.blk:softmax_rows -D BLOCK=32768 stride=5 rows=1 n=5 x=f32[5]:randn y=f32[5]:poison --check cpu
run 0 "and below them" examples/softmax/softmax.blk:softmax_rows -D BLOCK=8 stride=5 rows=1 n=5 x=f32[5]:randn y=f32[5]:poison --check cpu

# Lists of sizes
sizes() { # wanted name arguments... of add over n
	w=$1 n=$2
	shift 2
	run "$w" "$n" $add x=f32[n]:randn y=f32[n]:randn z=f32[n]:poison "$@"
}
sizes 0 "extents by name" n=7; says '^z: f32\[7\]'
sizes 0 "list" n=5,1000,33 --check cpu
[ "$(grep -c 'check z against .*: good' out)" = 3 ] && ok || bad "three sizes, three checks"
says '^n = 1000$'; grep -q '^z: ' out && bad "a list prints outputs" || ok
sizes 0 "range" n=3..24 --bench
[ "$(sed -n '/^n  *us/,$p' out | awk '{print $1}' | tr '\n' ' ')" = "n 3 6 12 24 " ] && ok || bad "the table of a range"
says '^n  *us  *spread  *GB/s  *of copy'
run 0 "lists in step" examples/softmax/softmax.blk:softmax_rows rows=3,5 n=100,1000 stride=100,1000 -D BLOCK=128,1024 x=f32[rows,n]:randn y=f32[rows,n]:poison --bench --check cpu
[ "$(grep -c 'good' out)" = 2 ] && ok || bad "two sizes, two checks"
sizes 0 "numbers" n=256..1024 --plot=p.csv
[ "$(sed -n '2,$s/^"add","\([0-9]*\)",\1,.*/\1/p' p.csv | tr '\n' ' ')" = "256 512 1024 " ] && ok || bad "p.csv: $(cat p.csv)"
if command -v gnuplot >/dev/null; then
	sizes 0 "plot" n=256..1024 --plot "it's a plot.svg"
	grep -q '</svg>' "it's a plot.svg" && grep -q 'device copy' "it's a plot.svg" && ok || bad "no picture"
	sizes 1 "plot into nowhere" n=8 --plot=nowhere/p.svg; says '--plot: nowhere/p.svg: No such file'
else skip 5; fi
status 1 "no gnuplot" env PATH=/nowhere "$blkrun" --device=cpu $add n=8 x=f32[n] y=f32[n] z=f32[n] --plot=p.svg
says 'gnuplot, which draws the plot, is not on PATH'; [ -e p.svg ] && bad "half a plot" || ok
sizes 1 "mismatch in a list" n=5,6 --check z.npy; says 'holds 1000 elements'
sizes 2 "lists out of step" n=1,2 -D BLOCK=16,32,64; says 'BLOCK: lists advance in step, but this one has 3 items and that of n 2'
sizes 2 "falling range" n=8..2; says 'a range goes up'
sizes 2 "files of a list" n=1,2 --out z=q.npy; says 'a list of sizes writes no files'
run 2 "unknown extent" $add n=5 x=f32[n] y=f32[n] z=f32[m]; says 'an extent is no number'
cat >tuned.blk <<'K'
kernel twice(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 64) grid(cdiv(n, BLOCK)) cost(bytes = 8 * n)
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, 2.0 * load(x + i, mask = i < n), mask = i < n);
}
autotune twice key(n) { BLOCK: [64, 128, 256]; }
K
run 0 "all together" tuned.blk n=1000,5000 x=f32[n]:randn y=f32[n]:poison --bench --plot=all.csv --tune --check cpu
[ "$(grep -c '^3 configurations tried' out)" = 2 ] && [ "$(grep -c 'good, equal' out)" = 2 ] && [ "$(wc -l <all.csv)" = 3 ] && ok || bad "all together: $(cat out)"

# Errors: 1
run 1 "zero grid" $add n=5 x=f32[5] y=f32[5] z=f32[5] --grid=0; says '0 programs along x'
run 1 "missing file" nowhere.blk; says 'nowhere.blk: No such file'
run 2 "no such kernel" $add:sub; says 'no kernel "sub"; it has: add'
run 1 "missing npy" $add n=5 x=@nowhere.npy y=f32[5] z=f32[5]; says 'nowhere.npy: No such file'
echo rubbish >rubbish.npy
run 1 "no npy" $add n=5 x=@rubbish.npy y=f32[5] z=f32[5]; says 'it is no .npy file'
run 1 "unwritable output" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out z=nowhere/z.npy; says '^blkrun: nowhere/z.npy: No such file'; silent 'add on'
mkdir -p folder/z.npy
run 1 "a folder for an output" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out x=x2.npy --out z=folder/z.npy; says 'folder/z.npy: Is a directory'; silent 'add on'
[ ! -e x2.npy ] && [ -z "$(ls -A folder/z.npy)" ] && ok || bad "an output that was only looked for"
run 1 "an output below a file" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out z=z.npy/z.npy; says 'z.npy/z.npy: Not a directory'; silent 'add on'
run 1 "a plot below nothing" $add n=5 x=f32[5] y=f32[5] z=f32[5] --plot=nowhere/p.csv; says '^blkrun: --plot: nowhere/p.csv: No such file'; silent 'add on'
run 2 "a scalar before the run" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out n=x2.npy; [ ! -e x2.npy ] && ok || bad "x2.npy is there"
echo kept >kept.npy
run 2 "an output of a run that is none" $add n=5 x=f32[5] y=f32[5] --out x=kept.npy; [ "$(cat kept.npy)" = kept ] && ok || bad "kept.npy is gone"
run 0 "an output on the way" $add n=5 x=f32[5]:arange y=f32[5] z=f32[5] --out z=/dev/stdout; says_text NUMPY
mkfifo pipe pipe.npy
run 1 "a pipe as npy" $add n=5 x=@pipe y=f32[5] z=f32[5]; says 'pipe: it is a pipe or a device and no regular file'
run 1 "a device as npy" $add n=5 x=@/dev/zero y=f32[5] z=f32[5]; says '/dev/zero: it is a pipe or a device and no regular file'
run 1 "a pipe to compare with" $add n=5 x=f32[5] y=f32[5] z=f32[5] --check pipe.npy; says 'no regular file'
run 1 "a pipe as source" pipe; says 'pipe: it is a pipe or a device and no regular file'
echo 'import "pipe"; kernel k(x: *f32) grid(1) { store(x, 1.0); }' >imports_pipe.blk
run 1 "a pipe as import" imports_pipe.blk x=f32[1]; says "'pipe': it is a pipe and no regular file"
status 1 "a pipe of records" timeout 10 "$blkrun" --cache=import pipe; says 'no regular file'
run 1 "full disk" $add n=5 x=f32[5] y=f32[5] z=f32[5] --out z=/dev/full; says '/dev/full: No space'
# In a folder that others may write: neither a link that waits at a name that can be guessed nor one at the output's own is followed.
echo precious >victim
# shellcheck disable=SC2016 # the shell's own number is the program's
status 0 "planted links" sh -c 'ln -s victim z.npy.tmp$$; ln -s victim y.npy; exec "$@"' sh "$blkrun" --device=cpu $add n=5 x=f32[5] y=f32[5] z=f32[5] --out z=z.npy --out y=y.npy
[ "$(cat victim)" = precious ] && [ ! -L y.npy ] && [ "$(wc -c <z.npy)" = "$(wc -c <y.npy)" ] && ok || bad "planted links: followed"
ln -s victim p2.csv
sizes 0 "planted plot" n=256..1024 --plot=p2.csv
[ "$(cat victim)" = precious ] && [ ! -L p2.csv ] && ok || bad "planted plot: followed"
ln -s victim tunes
status 0 "planted export" env BLK_CACHE_DIR="$dir/none" "$blkrun" --cache=export tunes
[ "$(cat victim)" = precious ] && [ ! -L tunes ] && ok || bad "planted export: followed"
ls -- *.tmp-* 2>/dev/null && bad "temporary files are left" || ok
status 0 "nothing to tune" "$blkrun" $add --device=cpu -D BLOCK=64 x=f32[3] y=f32[3] z=f32[3] n=3 --tune; says "^nothing to tune"
status 2 "unknown device" "$blkrun" $add --device=gpu; says 'no device is called "gpu"'
echo 'kernel k(x: *f32) grid(1) { store(x, yy); }' >wrong.blk
run 1 "diagnostics" wrong.blk x=f32[1]; says '^wrong.blk:1:'; says 'error\[E'
echo 'kernel k(n: i32) grid(1) { device_assert(n == 3, "n must be three"); device_print("n is", n); device_print("no value"); }' >assert.blk
run 0 "assert holds" assert.blk n=3; says 'n is: 3$'; says 'no value$'
run 1 "assert fails" assert.blk n=4; says 'n must be three'
echo 'kernel k(x: *f32) { store(x, 1.0); }' >nogrid.blk
run 1 "no grid" nogrid.blk x=f32[1]; says 'has no grid clause'
run 0 "own grid" nogrid.blk x=f32[1] --grid=1
echo 'kernel k(x: *f32, a: i32, b: i32, c: i32) grid(a, b, c) { store(x, 1.0); }' >grids.blk
for axis in a b c; do
	run 0 "no programs along $axis" grids.blk x=f32[1] a=1 b=1 c=1 --check cpu; says '^  1$'
	run 0 "no programs along $axis" grids.blk x=f32[1] $(echo "a=1 b=1 c=1" | sed "s/$axis=1/$axis=0/"); says 'no programs, so nothing was launched'; says '^  0$'
done
echo 'kernel k(x: *const f32, n: i32) grid(1) { device_assert(load(x) >= 0.0, "no"); }' >reads.blk
run 0 "no output to check" reads.blk x=f32[1] n=1 --check cpu; says '^check: the kernel writes no buffer$'
run 2 "no output to check against a file" reads.blk x=f32[1] n=1 --check z.npy; says '^blkrun: --check: the kernel writes no buffer$'
npy five.npy 4 1 2 3 4 5
run 1 "a file of another type" $add n=5 x=f32[5] y=f32[5] z=f32[5] --check five.npy; says '^blkrun: five.npy holds 5 elements of i32, but z has 5 of f32$'
cp $add odd:name.blk
run 0 "a colon in a name" odd:name.blk n=5 x=f32[5] y=f32[5] z=f32[5]; says '^add on'
run 0 "a kernel behind a colon in a name" odd:name.blk:add n=5 x=f32[5] y=f32[5] z=f32[5]; says '^add on'
run 1 "a name that begins with a colon" :add n=5; says '^blkrun: :add: No such file'
run 0 "diagnostics as text" --diagnostics=text $add n=5 x=f32[5] y=f32[5] z=f32[5]; says '^add on'
echo 'kernel k(x: *f32, a: f32) grid(1) { store(x, a); }' >number.blk
run 0 "an infinity" number.blk x=f32[1] a=inf; says '^  inf$'
run 2 "an infinity by accident" number.blk x=f32[1] a=1e39; says '^blkrun: a: it does not fit the type$'
run 2 "a space in front" number.blk x=f32[1] 'a= 1'; says '^blkrun: a: it begins with a space$'
echo 'kernel a() grid(1) { } kernel b() grid(1) { }' >two.blk
run 2 "which kernel" two.blk; says 'several kernels, name one: a, b'
run 0 "no parameters" two.blk:b

# The cache
status 0 "list" "$blkrun" --cache=list; says ' add$'; says 'entries, '
before=$(ls cache/code | wc -l)
run 0 "warm" $add n=5 x=f32[5]:arange y=f32[5]:ones z=f32[5]:poison
[ "$(ls cache/code | wc -l)" = "$before" ] && ok || bad "a warm start wrote to the cache"
for f in cache/code/*; do printf 'x' | dd of="$f" bs=1 seek=70 conv=notrunc 2>/dev/null; done
run 0 "damaged cache" $add n=5 x=f32[5]:arange y=f32[5]:ones z=f32[5]:poison; says 'is not used: damaged'; says '1  2  3  4  5'
run 0 "repaired cache" $add n=5 x=f32[5]:arange y=f32[5]:ones z=f32[5]:poison; quiet
echo 'fn f(x) { return x + 1.0; }' >common.blk
echo 'import "common.blk"; kernel k(x: *f32) grid(1) { store(x, f(load(x))); }' >imports.blk
run 0 "import" imports.blk x=f32[1]; says '  1$'
echo 'fn f(x) { return x + 2.0; }' >common.blk
run 0 "changed import" imports.blk x=f32[1]; says '  2$'
status 0 "clear" "$blkrun" --cache=clear; says 'entries removed'
[ -z "$(ls cache/code)" ] && ok || bad "the cache is not empty"
BLK_CACHE=off run 0 "no cache" $add n=5 x=f32[5] y=f32[5] z=f32[5]
[ -z "$(ls cache/code)" ] && ok || bad "BLK_CACHE=off writes a cache"
BLK_CACHE_DIR=/dev/null/x run 0 "impossible cache" $add n=5 x=f32[5] y=f32[5] z=f32[5]
quiet

# LLVM 22 makes vectors of sums that begin with 0 + x of wrong operands, if we leave any (compiler/target/cpu/cpu.c).
echo 'kernel k(z: *i32, a: *const i64) grid(1) { let i = arange(0, 2)[:, None]; let j = arange(0, 8)[None, :] * 2;
	let v = load(a + (i[:, :, None] + arange(0, 2)[None, :, None] * 16 + j[:, None, :])).to(i32) * 3; store(z + (i + j), sum(v, axis = 1)); }' >lanes.blk
run 0 "sums of converted integers" lanes.blk a=i64[64]:arange z=i32[16]:poison; says '  48  54  60  66  72  78  84  90  '

# What cannot be said is an error; what code there is for arguments that promise nothing is said.
status 1 "no room for the version" sh -c '"$0" --version >/dev/full' "$blkrun"; says 'standard output cannot be written'
status 1 "no room for the numbers" sh -c '"$0" "$@" >/dev/full' "$blkrun" $add n=5 x=f32[5] y=f32[5] z=f32[5]; says 'standard output cannot be written'
status 1 "no room for a mismatch" sh -c '"$0" "$@" >/dev/full' "$blkrun" $add n=5 x=f32[5]:ones y=f32[5] z=f32[5] --check five.npy; says 'five.npy holds'; says 'standard output cannot be written'
status 2 "no room beside wrong usage" sh -c '"$0" "$@" >/dev/full' "$blkrun" $add n=5 x=f32[5]:ones y=f32[5] z=f32[5] --check nothing; says 'no device is called "nothing"'; says 'standard output cannot be written'
echo 'kernel k(x: f32) grid(1) { device_assert(x > 0.0, "no"); }' >nothing.blk
run 0 "no promises" nothing.blk x=1.5 --verbose; says '^code for any arguments, 0 tensor maps, '

# The header in the languages that it promises.
printf '#include "blk.h"\nblk_status f(blk_kernel *k, blk_buffer *b) { return blk_launch(k, 0, 0, BLK_ARGS(blk_buf(b), blk_i32(3))); }\n' >use.c
cp use.c use.cc
for c in gcc clang; do
	if command -v $c >/dev/null 2>&1; then status 0 "C11 by $c" $c -std=c11 -Wall -Wextra -Werror -pedantic -I"$root/runtime" -fsyntax-only use.c
	else skip 1; fi
done
for c in g++ clang++; do
	if command -v $c >/dev/null 2>&1; then status 0 "C++17 by $c" $c -std=c++17 -Wall -Wextra -Werror -pedantic -I"$root/runtime" -fsyntax-only use.cc
	else skip 1; fi
done

finish
