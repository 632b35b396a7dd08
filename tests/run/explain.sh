#!/bin/sh
# usage: explain.sh BUILD      --emit=explain, --emit=json, --explain, --emit=sass, and budgets, from the shell.
# Numbers are counted by hand: f32[1024] over 128 threads is 8 elements a thread, a softmax row is one warp's 32 lanes ..
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc
python() { # a check of the JSON in $dir/j, as an expression of k, the first kernel, and rows(kind)
	python3 - "$dir/j" "$1" <<'P' >"$dir/py" 2>&1 && ok || { bad "JSON: $1"; tail -3 "$dir/py"; }
import json, sys
d = json.load(open(sys.argv[1]))
k = d["kernels"][0]
rows = lambda kind: [r for r in k["rows"] if r["kind"] == kind]
assert eval(sys.argv[2]), k
P
}
cp -r "$root/examples" examples
softmax="examples/softmax/softmax.blk --kernel=softmax_rows"
have_ptxas=false
{ command -v ptxas || [ -x /usr/local/cuda/bin/ptxas ]; } >/dev/null 2>&1 && have_ptxas=true

# The text: why an access is narrow, in the program's names, and what makes it wide.
status 0 "explain" "$blkc" $softmax --emit=explain -o -
says_text "load x f32[1024]: 8 accesses of 4 bytes a thread; a warp's covers 128 contiguous bytes, masked, read-only"
says_text "nothing is promised of 'x' and 'stride'"
says_text "would help: --specialize=x%16,stride%16,n%16"
says_text "reduction (max) f32[1024]: 8:1 inside threads, then 32:1 between lanes (5 shuffles a thread), then 4:1 between warps, 1 barrier"
status 0 "promises" "$blkc" $softmax --emit=explain -o - --specialize=x%16,y%16,stride%16,n%16
says_text "load x f32[1024]: 2 accesses of 16 bytes a thread; a warp's covers 512 contiguous bytes, masked, read-only"
silent "not wider"
status 0 "the mask alone" "$blkc" $softmax --emit=explain -o - --specialize=x%16,y%16,stride%16
says_text "the mask may change inside the access: 'n' is not known to be divisible by 4"
status 0 "one warp" "$blkc" $softmax --emit=explain -o - -D num_warps=1
says_text "shared memory 0 bytes, barriers 0"
status 0 "--explain" "$blkc" $softmax --explain -o plain.ptx
says_text "kernel softmax_rows"
"$blkc" $softmax -o same.ptx
cmp -s plain.ptx same.ptx && ok || bad "--explain changes the output"
status 2 "no GPU code, no record" "$blkc" $softmax --target=cpu --emit=explain

# Sums of rows beside stored blocks: what stands under the check is told, and not counted as barriers.
status 0 "checked accesses" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_90a --emit=explain -o - \
	--specialize=o%16,lse%16,q%16,k%16,v%16 -D DK=128 -D BM=128 -D BN=128 -D num_warps=8
says_text "barrier [loop depth 1]: of the CTA, before the access or block, where it shares memory with stored blocks"
says_text "barrier [loop depth 1]: of the CTA, before the next stored block, in that case"
says_text ", barriers 1"

# Where each product is waited for: scores behind the product that is begun since, which runs on; that one behind the exponentials.
status 0 "waits" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_90a --emit=explain -o - \
	--specialize=o%16,lse%16,q%16,k%16,v%16 -D DK=128 -D BM=128 -D BN=128 -D num_warps=8
says "product s f32.128,128. .loop depth 1.: wgmma .*, waited for$"
says "product s f32.128,128. .loop depth 2.: wgmma .*, waited for behind the next product, with 1 in flight$"
says "product sum_pv f32.128,128. .loop depth 2.: wgmma .*, waited for behind vector work$"
says_text "order: begun in turns of the warpgroups, with the products up to the first wait"
silent "do not take turns"
status 0 "no turns without a producer" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_90a --emit=explain -o - \
	-D DK=64 -D BM=128 -D BN=64 -D num_warps=8
says_text "order: warpgroups do not take turns at beginning it: no producer warp copies for them"

# A maximum of 64 scores of each row, of which a thread has 16: lanes meet in a branch, and the second product keeps its name.
status 0 "a maximum that has not moved" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_90a \
	--emit=explain -o - --specialize=o%16,lse%16,q%16,k%16,v%16 -D DK=64 -D BM=128 -D BN=64 -D num_warps=8
says_text "maximum: lanes exchange it, and sums are scaled, only where it has moved in a row of the warp"
says_text "product sum_pv f32[128,64] [loop depth 2]: wgmma"
status 0 "maxima of mma.sync" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_80 --emit=explain -o - \
	--specialize=o%16,lse%16,q%16,k%16,v%16 -D DK=64 -D BM=128 -D BN=64 -D num_warps=8
silent "maximum: lanes exchange it"
says_text "maximum: sums are scaled in every iteration: operands of mma.sync are in registers, which are short"
status 0 "a sum that is there" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_90a --emit=explain -o -
says_text "maximum: sums are scaled in every iteration: no product adds to the sum meanwhile"
status 0 "a row of several warps" "$blkc" examples/attention_decode/attention_decode.blk --kernel=attention_decode --target=sm_90a --emit=explain -o -
says_text "maximum: sums are scaled in every iteration: several warps hold parts of a row"
cat >seen.blk <<'B'
kernel seen(o: *f16, r: *f32, q: *const f16, k: *const f16, v: *const f16, n: i32) options(num_warps = 8) {
    let Q = tensor(q, [128, 128]); let K = tensor(k, [n, 128]); let V = tensor(v, [n, 128]); let O = tensor(o, [128, 128]);
    let x = Q.load([0, 0], [128, 128]);
    var acc = zeros([128, 128], f32); var m = zeros([128], f32); var t = zeros([128], f32);
    for j in range(0, n, 128) {
        let s = dot(x, trans(K.load([j, 0], [128, 128])));
        let most = max(s, axis = 1);
        let next = maximum(m, most);
        let a = exp2(m - next);
        acc = dot(exp2(s - next[:, None]).to(f16), V.load([j, 0], [128, 128]), acc * a[:, None]);
        t += most; m = next;
    }
    O.store([0, 0], acc.to(f16)); store(r + arange(0, 128), t);
}
B
status 0 "a maximum that others see" "$blkc" seen.blk --target=sm_90a --emit=explain -o - --specialize=o%16,r%16,q%16,k%16,v%16,n%128
says_text "maximum: sums are scaled in every iteration: more than the row's next value is made of it"

# A mask of a loop with products, under a branch, and what keeps it from one.
masked="examples/attention/attention.blk --kernel=attention --target=sm_90a --emit=explain -o - --specialize=o%16,lse%16,q%16,k%16,v%16 -D DK=128 -D CAUSAL=true"
status 0 "a mask under a branch" "$blkc" $masked -D BM=128 -D BN=128 -D num_warps=8
says_text "mask: looked at only where it does not hold for the whole tile"
silent "looked at for each element"
status 0 "loops one behind the other" "$blkc" $masked -D BM=128 -D BN=128 -D num_warps=8 -D ONE_LOOP=false
says_text "mask: looked at for each element: loops that hand values to each other stay as they are"
status 0 "a mask of groups of rows" "$blkc" $masked -D DK=64 -D BM=192 -D BN=128 -D num_warps=12
says_text "mask: looked at for each element: groups of rows have one control flow"
cat >masks.blk <<'B'
kernel masks(y: *f32, a: *const f16, b: *const f16, n: i32, const N: i32 = 64, const WHAT: i32 = 0) options(num_warps = 4) {
    let i = arange(0, 64); let c = arange(0, N); let r = i[:, None];
    let A = tensor(a, [64, n]); let B = tensor(b, [n, N]); let u = r.to(i64) * n;
    var acc = zeros([64, N], f32);
    for j in range(0, n, 64) {
        let s = dot(A.load([0, j], [64, 64]), B.load([j, 0], [64, N]));
        let k = (j + c)[None, :];
        acc += s + where(WHAT % 4 == 0 ? r >= k : WHAT == 1 ? (r ^ k) < 9 : WHAT == 2 ? u >= k.to(i64) : s > 0.0, WHAT == 4 ? 1.0 : s, 2.0);
    }
    store(y + r * N + c[None, :], acc);
}
B
masks() { # options
	status 0 "masks $*" "$blkc" masks.blk --target=sm_90a --emit=explain -o - --specialize=y%16,a%16,b%16,n%64 "$@"
}
masks; says_text "mask: looked at only where it does not hold for the whole tile"
masks -D N=16; says_text "mask: looked at for each element: a thread has few elements, for which a branch costs more"
masks -D WHAT=1; says_text "mask: looked at for each element: it is not made of comparisons of signed sums"
masks -D WHAT=2; says_text "mask: looked at for each element: whether it holds for the whole tile is no sum of scalars"
masks -D WHAT=4; says_text "mask: looked at for each element: where it holds stands a constant, which would be copied"
masks -D WHAT=3; silent "mask: looked at"

# A product behind the wait that its exponentials outlast, where threads meet; where they do not, half of a row an iteration ahead.
backward="examples/attention_backward/attention_backward.blk --kernel=attention_backward --target=sm_90a -o - -D T=bf16 -D DK=64 -D BM=128 -D BN=128
	-D num_warps=8 --specialize=q%16,k%16,v%16,g%16,dk%16,dv%16,lse2%16,delta%16,sums%16,padded%16,nq%16,nk%16,heads%16"
status 0 "a late product" "$blkc" $backward --emit=explain
says_text "order: begun behind the wait for the product beside its exponentials, which take longer"
says "product dp f32.128,128. .loop depth 1.: wgmma .*, waited for behind vector work$"
says_text "order: warpgroups do not take turns at beginning it: all threads meet in the iteration"
silent "order: held"
silent "iteration ahead"
status 0 "a late product as JSON" "$blkc" $backward --emit=json
says_text '"kind": "order"'
says_text '"left_running": false, "begun_before_wait": 2, "in_flight_at_wait": 2, "work_before_wait": false'
status 0 "half a row ahead" "$blkc" $backward --emit=explain -D SUM_DQ=false
says_text "order: half of it is read an iteration ahead"
says_text "order: warpgroups do not take turns at beginning it: no exponentials are held beside a product"
silent "begun behind"
status 0 "a row ahead" "$blkc" $backward --emit=explain -D DK=128 -D BM=64
says_text "order: read an iteration ahead"
silent "begun behind"

# dq in two stages, which both read the keys; and what keeps it in one: registers, or room for the keys once more (slots of q and g, and
# two of k, v and k again, 512 bytes of scratch and 16 KiB of slack are 180,736 bytes).
dq="examples/attention_backward/attention_backward.blk --kernel=attention_backward_dq --target=sm_90a --emit=explain -o - -D T=bf16
	-D DK=128 -D BM=128 -D num_warps=8 --specialize=q%16,k%16,v%16,g%16,dq%16,lse2%16,delta%16,padded%16,nq%16,nk%16,heads%16"
status 0 "two stages" "$blkc" $dq -D BN=64 -D max_shared=180736
says_text "order: begun an iteration later, beside that one's first products"
says_text "order: loaded twice, as it is needed in the next iteration, too"
status 0 "no registers for two stages" "$blkc" $dq -D BN=128
says_text "order: begun in its own iteration: threads have no registers for two at a time"
says_text "order: held in front of the wait for the product beside it"
silent "loaded twice"
status 0 "no room for two stages" "$blkc" $dq -D BN=64 -D max_shared=180735
says_text "order: begun in its own iteration: shared memory has no room for the blocks of two"
silent "loaded twice"

# What keeps a loop whose products depend on each other from two stages altogether: one line a loop.
status 0 "a product beside the vector work" "$blkc" $backward --emit=explain
says_text "order: begun in its own iteration: another product runs beside the vector work already"
status 0 "several first products" "$blkc" $dq -D BM=64 -D BN=64 -D num_warps=4
says_text "order: begun in its own iteration: several first products want turns of warpgroups, and there is one"
cat >own.blk <<'B'
kernel own(y: *f32, q: *const f16, k: *const f16, v: *const f16, t: *i32, n: i32, const WHAT: i32 = 0) options(num_warps = 4) {
    let i = arange(0, 64); let e = i[:, None] * 64 + i[None, :];
    let Q = tensor(q, [64, 64]); let K = tensor(k, [n, 64]); let V = tensor(v, [n, 64]);
    let x = Q.load([0, 0], [64, 64]);
    var acc = zeros([64, 64], f32);
    var r = zeros([64, 64], f32);
    for j in range(0, n, WHAT == 4 ? n : 64) {
        let at = WHAT == 1 ? load(t + j) : j;
        let s = dot(x, trans(K.load([at, 0], [64, 64])), WHAT == 3 ? acc : r);
        let p = exp2(s);
        acc = dot(WHAT == 5 ? V.load([j, 0], [64, 64]) : p.to(f16), V.load([j, 0], [64, 64]), acc);
        if WHAT == 2 { store(y + e, acc); }
    }
    store(y + e, acc);
}
B
own() { # WHAT
	status 0 "its own iteration, $1" "$blkc" own.blk --target=sm_90a --emit=explain -o - --specialize=y%16,q%16,k%16,v%16,t%16,n%64 -D WHAT=$1
}
own 0; says_text "order: begun an iteration later"; silent "in its own iteration"
own 1; says_text "order: begun in its own iteration: a first product takes a load that is not hoisted"
own 2; says_text "order: begun in its own iteration: an operation with effects depends on it"
own 3; says_text "order: begun in its own iteration: the next iteration's first product takes its result"
own 4; says_text "order: begun in its own iteration: the loop does not count upwards, as a number of 32 bits, by a step that is known"
own 5; silent "in its own iteration"
# Scores that depend on the distance, by a slope that is loaded in the loop.
status 0 "a slope" "$blkc" examples/attention/attention.blk --kernel=attention_alibi --target=sm_90a --emit=explain -o - \
	--specialize=o%16,lse%16,q%16,k%16,v%16,nq%16,nk%16 -D BM=128 -D BN=64 -D num_warps=8
says_text "order: begun an iteration later"; silent "in its own iteration"; says_text "maximum: lanes exchange it"
# Keys in pages, whose numbers the loop reads: the producer reads them too, and keeps registers for that.
status 0 "pages" "$blkc" examples/attention/attention.blk --kernel=attention_paged --target=sm_90a --emit=explain -o - \
	--specialize=o%16,lse%16,q%16,k%16,v%16,nq%16 -D BM=128 -D BN=64 -D num_warps=8
says_text "order: begun an iteration later"; says_text "maximum: lanes exchange it"
$have_ptxas && says_text "registers 168, 232 for consumers and 40 for the producer, spills 0 bytes" || skip 1

# An operand that stays in shared memory: 128 x 128 values of 2 bytes by 128 threads, 16 bytes an access.
status 0 "an operand that stays" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_80 --emit=explain -o - \
	--specialize=o%16,lse%16,q%16,k%16,v%16 -D DK=128 -D BM=128 -D BN=32 -D num_warps=4 -D PERSISTENT=false
says_text "copy ahead q f16[128,128]: once, as registers are short in a loop that reads it, 16 accesses of 16 bytes a thread, masked, matrix loads, 32768 bytes of shared memory"
silent "not 2 stages"

# Blocks that two products read, one of them transposed: each from the slot, without a conversion.
status 0 "blocks that two products read" "$blkc" examples/attention_backward/attention_backward.blk --kernel=attention_backward \
	--target=sm_80 --emit=explain -o - -D DK=128 -D BM=64 -D BN=128 -D num_warps=8 \
	--specialize=dk%16,dv%16,sums%16,q%16,k%16,v%16,g%16,lse2%16,delta%16,heads%16,nq%16,nk%16,padded%16
says_text "copy ahead q f16[64,128]: a multibuffer of 2 stages, 4 accesses of 16 bytes a thread, masked, matrix loads, 32768 bytes"
says_text "copy ahead g f16[64,128]: a multibuffer of 2 stages, 4 accesses of 16 bytes a thread, masked, matrix loads, 32768 bytes"
silent "conversion q f16"
silent "conversion g f16"
silent "conversion f16[128,64]"

# A loop that loads ahead.
status 0 "copies" "$blkc" examples/matmul/matmul.blk --kernel=matmul --emit=explain -o - --specialize=a%16,b%16,c%16,M%16,N%16,K%16
says_text "copy ahead a f16[128,32]: a multibuffer of 3 stages, 2 accesses of 16 bytes a thread, masked, matrix loads, 24576 bytes"
says_text "barrier [loop depth 1]"

says_text "product acc f32[128,128] [loop depth 1]: mma.sync m16n8k16"
silent "not wgmma"
matmul="examples/matmul/matmul.blk --kernel=matmul --target=sm_90a --emit=explain -o -"
status 0 "warpgroups" "$blkc" $matmul --specialize=a%16,b%16,c%16,M%16,N%16,K%16 -D BK=64 -D num_stages=4
says_text "tensor copy a f16[128,64]: load ahead by a tensor map, 1 copy of 16384 bytes, by one thread, swizzled in 128 bytes, into a multibuffer of 4 stages"
says_text "product acc f32[128,128] [loop depth 1]: wgmma m64n128k16, 4 a warpgroup, a from multibuffer, b from multibuffer, in flight round the loop"
silent "not copied ahead"
status 0 "products as JSON" "$blkc" examples/matmul/matmul.blk --kernel=matmul --target=sm_90a --emit=json -o - -D BK=32 --specialize=a%16,b%16,c%16,M%16,N%16,K%16
says_text '"instruction": "wgmma m64n128k16", "instructions": 2, "a_from": "multibuffer", "b_from": "multibuffer", "left_running": true, "begun_before_wait": null, "in_flight_at_wait": null'
rows="examples/matmul/matmul.blk --kernel=matmul_tuned --target=sm_90a -o - -D BM=192 -D BK=64 -D num_warps=12 --specialize=a%16,b%16,c%16,M%16,N%16,K%16"
status 0 "groups of rows" "$blkc" $rows --emit=explain
says_text "12 warps in 3 groups of rows and 4 of a producer"
says_text "tensor copy a f16[64,64]: load ahead by a tensor map, 1 copy of 8192 bytes, by one thread of a producer warp, for each of 3 groups of rows, swizzled in 128 bytes, into a multibuffer of 3 stages, 73728 bytes"
silent "are 8"
status 0 "groups of rows as JSON" "$blkc" $rows --emit=json
says_text '"num_warps": 12, "row_groups": 3, "producer_warps": 4'
says_text '"stages": 3, "row_groups": 3'
status 0 "rows together" "$blkc" $rows -D maxnreg=128 --emit=explain
says_text "num_warps = 12 are 8, not three groups of rows or columns: maxnreg is given"
status 0 "no producer" "$blkc" $rows -D num_stages=1 --emit=json
says_text '"rows_together": "no producer can copy for them"'
status 1 "too many stages for groups of rows, and for 8 warps" "$blkc" $rows -D BN=256 -D num_stages=5 --emit=json
cat >scaled.blk <<'B'
kernel scaled(c: *f32, a: *const f16, b: *const f16, d: *const f16, m: i32, n: i32, k: i32) grid(1) options(num_warps = 12, num_stages = 4) {
    let A = tensor(a, [m, k]); let B = tensor(b, [k, n]); let C = tensor(c, [m, n]); let s = load(d + arange(0, 192));
    var acc = zeros([208, 192], f32);
    for l in range(0, k, 64) { acc = dot(A.load([0, l], [208, 64]), B.load([l, 0], [64, 192]) * s[None, :], acc); }
    C.store([0, 0], acc);
}
B
status 0 "too many stages for groups of columns only" "$blkc" scaled.blk --target=sm_90a --emit=json -o - --specialize=a%16,b%16,c%16,d%16,m%16,n%16,k%16
says_text '"rows_together": "no producer can copy for them"'
status 0 "clusters" "$blkc" $matmul --specialize=a%16,b%16,c%16,M%16,N%16,K%16 -D BK=64 -D num_ctas=2
says_text "8 warps and 1 of a producer, clusters of 2 programs"
says_text "tensor copy a f16[128,64]: load ahead by a tensor map, 2 copies of 8192 bytes, by one thread of a producer warp, swizzled in 128 bytes, into a multibuffer of"
says_text "            by programs of a cluster of 2 together, where they load the same block"
status 0 "clusters as JSON" "$blkc" examples/matmul/matmul.blk --kernel=matmul_persistent --target=sm_90a --emit=json -o - -D num_ctas=4 --specialize=a%16,b%16,c%16,M%16,N%16,K%16
says_text '"cluster": 4'
says_text '"by_a_cluster": true'
status 0 "a while" "$blkc" examples/matmul/matmul.blk --kernel=matmul_stream_k --target=sm_90a --emit=explain -o - -D num_ctas=2 --specialize=a%16,b%16,c%16,M%16,N%16,K%16
says_text "no clusters, though num_ctas = 2: no loop has copies that programs could share"
says_text "not by a cluster together: a \`while\` may wait for other programs"
status 0 "whole tiles and parts in one loop" "$blkc" examples/matmul/matmul.blk --kernel=matmul_waves --target=sm_90a --emit=explain -o - -D BM=128 -D BN=256 -D BK=64 \
	-D num_stages=4 --specialize=a%16,b%16,c%16,parts%16,arrived%16,M%16,N%16,K%16
says_text "sm_90a, 8 warps and 4 of a producer"
says_text "by one thread of a producer warp, swizzled in 128 bytes, into a multibuffer of 4 stages, 131072 bytes of shared memory"
says_text "tensor copy c f16[128,256] [loop depth 1]: store by a tensor map"
says_text "wgmma m64n256k16, 4 a warpgroup, a from multibuffer, b from multibuffer, in flight round the loop"
status 0 "no clusters there" "$blkc" examples/matmul/matmul.blk --kernel=matmul --target=sm_80 --emit=explain -o - -D num_ctas=2
says_text "no clusters, though num_ctas = 2: the target's programs share no copies"
status 0 "nor here" "$blkc" $matmul -D num_ctas=2
says_text "no clusters, though num_ctas = 2: no loop has copies that programs could share"
status 0 "nothing promised" "$blkc" $matmul
says_text "not copied ahead: its accesses have less than 4 bytes"
says_text "a from shared memory, b from shared memory, waited for, 1 barrier"
says_text "no tensor copy: address, strides and first element are not known to be multiples of 16 bytes"
status 0 "few rows" "$blkc" $matmul -D BM=32
says_text "product acc f32[128,32] [loop depth 1]: wgmma m64n32k16, 2 a warpgroup, a from shared memory, b from shared memory, transposed onto warpgroups"
status 0 "few rows in flight" "$blkc" $matmul --specialize=a%16,b%16,c%16,M%16,N%16,K%16 -D BM=16 -D BK=64 -D num_warps=4
says_text "wgmma m64n16k16, 8 a warpgroup, a from multibuffer, b from multibuffer, transposed onto warpgroups, in flight round the loop"
status 0 "too few rows" "$blkc" $matmul -D BM=4
says_text "not wgmma: wgmma wants 64 rows, and 8 columns for every four warps"
says_text "not transposed onto warpgroups: wgmma wants 8 rows for every four warps that share 64 columns"
status 0 "half of the columns" "$blkc" $matmul -D BM=32 -D BN=96
says_text "not transposed onto warpgroups: something else than products by warpgroups takes an operand"
status 0 "few rows as JSON" "$blkc" examples/matmul/matmul.blk --kernel=matmul --target=sm_90a --emit=json -o - -D BM=4
says_text '"not_transposed_because": "wgmma wants 8 rows'
status 0 "one stage" "$blkc" $matmul --specialize=a%16,b%16,K%16,N%16 -D num_stages=1
says_text "not copied ahead: the loop has one stage"

# Blocks of tensors that run ahead: a multibuffer each.
tensors="examples/matmul/matmul.blk --kernel=matmul_tensor --target=sm_90a --specialize=a%16,b%16,c%16,M%16,N%16,K%16"
status 0 "blocks ahead" "$blkc" $tensors --emit=explain -o -
says_text "tensor copy a f16[128,32]: load ahead by a tensor map, 1 copy of 8192 bytes, by one thread, swizzled in 64 bytes, into a multibuffer of 3 stages, 24576 bytes"
says_text "tensor copy b f16[32,128]: load ahead by a tensor map, 2 copies of 4096 bytes"
says_text "not by a producer warp: no loop is around this one"
status 0 "blocks ahead as JSON" "$blkc" $tensors --emit=json -o -
says_text '"producer": false, "why_no_producer": "no loop is around this one, and'

# Tiles one after the other: a warp of its own makes the copies.
status 0 "stores by warps" "$blkc" $tensors --emit=explain -o -
says_text "tensor copy c f16[128,128]: store by a tensor map, 2 copies of 2048 bytes, by one thread of each warp, swizzled in 128 bytes"
status 0 "stores by warps as JSON" "$blkc" $tensors --emit=json -o -
says_text '"how": "store", "copies": 2, "copy_bytes": 2048, "swizzle": 128, "by_warps": true'
rows="examples/matmul/matmul.blk --kernel=matmul_tensor --target=sm_90a --specialize=a%16,b%16,c%16,M%16,N%8,K%16"
status 0 "stores by rows" "$blkc" $rows --emit=explain -o -
says_text "tensor copy c f16[128,128]: store row by row, 16 rows of 256 bytes of each warp, as they may begin inside a sector, 17408 bytes of shared memory"
status 0 "stores by rows as JSON" "$blkc" $rows --emit=json -o -
says_text '"how": "store", "copies": 16, "copy_bytes": 256, "swizzle": 0, "by_warps": true, "by_rows": true'
tuned="examples/matmul/matmul.blk --kernel=matmul_tuned --target=sm_90a --specialize=a%16,b%16,c%16,M%16,N%16,K%16"
joined="$tuned -D BM=144 -D BN=64 -D BK=64 -D num_warps=4 -D num_stages=6"
status 0 "joined products" "$blkc" $joined --emit=explain -o -
says_text "product acc f32[64,128] [loop depth 1]: wgmma m64n144k16, 4 a warpgroup, a from multibuffer"
says_text "product acc f32[64,16] [loop depth 1]: wgmma m64n144k16 of the product in front, a from multibuffer"
says_text "tensor copy a f16[128,64]: load ahead by a tensor map, 1 copy of 16384 bytes, by one thread, swizzled in 128 bytes, into a multibuffer of 6 stages, 98304 bytes"
says_text "tensor copy a f16[16,64]: load ahead by a tensor map, 1 copy of 2048 bytes, by one thread, swizzled in 128 bytes, into a multibuffer of 6 stages, 12288 bytes"
status 0 "joined products as JSON" "$blkc" $joined --emit=json -o -
says_text '"joined": true'
persistent="examples/matmul/matmul.blk --kernel=matmul_persistent --target=sm_90a --specialize=a%16,b%16,c%16,M%16,N%16,K%16"
status 0 "a producer" "$blkc" $persistent -D BN=128 --emit=explain -o -
says_text "sm_90a, 8 warps and 1 of a producer"
silent "for consumers"
says_text "by one thread of a producer warp, swizzled in 64 bytes, into a multibuffer of 3 stages"
status 0 "a producer's warpgroup" "$blkc" $persistent -D BN=256 -D BK=64 -D num_stages=4 --emit=explain -o -
says_text "sm_90a, 8 warps and 4 of a producer"
says_text "order: held in front of the wait for the products that the loop leaves running"
$have_ptxas && says_text "registers 168, 240 for consumers and 24 for the producer, spills 0 bytes" || skip 1
status 0 "a producer's warpgroup as JSON" "$blkc" $persistent -D BN=256 -D BK=64 -D num_stages=4 --emit=json -o -
says_text '"consumer_registers": 240, "producer_registers": 24'
# A producer that draws its next tile, and what keeps it from that.
counter() { # the draw's further arguments, what stands behind the draw; the kernel's options
	cat >counter.blk <<-E
		kernel k(c: *f32, a: *const f16, b: *const f16, next: *i32, K: i32, tiles: i32) grid(9) options($3) {
		    let A = tensor(a, [tiles * 64, K]); let B = tensor(b, [64, K]); let C = tensor(c, [tiles * 64, 64]);
		    var t = program_id(0);
		    while t < tiles {
		        assume(t >= 0);
		        var s = zeros([64, 64], f32);
		        for k in range(0, K, 64) { s = dot(A.load([t * 64, k], [64, 64]), trans(B.load([0, k], [64, 64])), s); }
		        C.store([t * 64, 0], s);
		        t = num_programs(0) + atomic_add($1);
		        $2
		    }
		}
	E
	status 0 "a counter: $*" "$blkc" counter.blk --target=sm_90a --specialize=c%16,a%16,b%16,K%16 --emit=explain -o -
}
counter 'next, 1, sem = "relaxed"' '' 'num_warps = 4'
says_text "4 warps and 1 of a producer"
says_text "atomic next i32 [loop depth 1]: 4 bytes, by one thread of a producer warp, which sends the others what it returns"
status 0 "a counter as JSON" "$blkc" counter.blk --target=sm_90a --specialize=c%16,a%16,b%16,K%16 --emit=json -o -
says_text '"sent_by_producer": true'
counter 'next, 1' '' 'num_warps = 4'
says_text 'not by a producer warp: what it copies depends on an atomic that orders memory, sem = "relaxed" does not'
counter 'next, 1, sem = "relaxed"' '' 'num_warps = 4, num_ctas = 2'
says_text "not by a producer warp: what it copies depends on an atomic, and programs of a cluster are in step"
counter 'load(next + 2).to(i64).to(*i32), 1, sem = "relaxed"' '' 'num_warps = 4'
says_text "not by a producer warp: what it copies depends on"
counter '(t > 5 ? next : next + 1), 1, sem = "relaxed"' '' 'num_warps = 4'
says_text "not by a producer warp: what it copies depends on an atomic whose address is made of no parameter"
counter 'next, 1, sem = "relaxed"' 'atomic_xchg(next, 0, sem = "relaxed");' 'num_warps = 4'
says_text "not by a producer warp: what it copies depends on an atomic whose memory may be accessed in another way too"
counter 'next, 1, sem = "relaxed"' 'store(t > 5 ? c : c + 1, 0.0);' 'num_warps = 4'
says_text "not by a producer warp: what it copies depends on an atomic whose memory may be accessed in another way too"
counter 'next, 1, sem = "relaxed"' 'atomic_add(c, 0.0, sem = "release");' 'num_warps = 4'
says_text "not by a producer warp: what it copies depends on an atomic, in front of which something orders memory"
counter 'next, 1, sem = "relaxed"' 'debug_barrier();' 'num_warps = 4'
says_text "not by a producer warp: what it copies depends on an atomic, in front of which something orders memory"
status 0 "a producer as JSON" "$blkc" $persistent -D BN=128 --emit=json -o -
says_text '"producer": true'; says_text '"producer_warps": 1'
status 0 "registers that the user counts" "$blkc" $persistent -D maxnreg=255 --emit=explain -o -
says_text "not by a producer warp: maxnreg is given"

# More stages than shared memory holds.
many="examples/matmul/matmul.blk --kernel=matmul --emit=explain -o - --specialize=a%16,b%16,c%16,M%16,N%16,K%16 -D BK=64"
status 0 "stages that fit" "$blkc" $many --target=sm_86 -D num_stages=3
silent "shared memory does not hold them"
status 0 "fewer stages" "$blkc" $many --target=sm_86 -D max_shared=81920
says_text "a multibuffer of 2 stages"
says_text "not 3 stages: shared memory does not hold them"
status 1 "more stages than fit" "$blkc" $many --target=sm_86 -D num_stages=4
says_text "hint: num_stages = 3 fits"

# Reasons of other kinds.
cat >reasons.blk <<'B'
kernel reasons(y: *f32, x: *const f32, index: *const i32, stride: i32, const B: i32 = 1024) {
    let i = arange(0, B);
    let gathered = load(x + load(index + i));
    let spread = load(x + i * stride);
    let odd = load(x + i + 1);
    let few = load(x + arange(0, 64));
    let hinted = load(x + i, cache = "cg");
    store(y + i, gathered + spread + odd + hinted + sum(few) + load(y));
}
kernel turn(y: *f32, x: *const f32) {
    let i = arange(0, 64);
    let p = i[:, None] * 64 + i[None, :];
    store(y + p, trans(load(x + p)));
}
kernel counted(y: *i32, x: *const i32) {
    store(y, sum(load(x + arange(0, 1024))));
}
B
status 0 "reasons" "$blkc" reasons.blk --emit=explain -o - --specialize=x%16,y%16,index%16
says_text "offsets come from memory"
says_text "offsets are multiplied by 'stride'"
says_text "would help: --specialize=stride=1"
says_text "the offset 1"
says_text "64 elements for 128 threads leave no more to a thread"
says_text "cache cg"
says_text "load y f32: 4 bytes, by one thread, handed on through shared memory, 1 barrier"
says_text "conversion f32[64,64]: by shared memory, 16384 bytes each way"
silent "bank conflicts"
says_text "8:1 inside threads, then 32:1 between lanes (redux.sync.add), then 4:1 between warps"

# The same record as JSON.
status 0 "json" "$blkc" $softmax --emit=json -o j --specialize=x%16,y%16,stride%16,n%16
python3 -m json.tool j >/dev/null 2>&1 && ok || bad "--emit=json is no JSON"
python 'k["name"] == "softmax_rows" and k["num_warps"] == 4 and k["shared_bytes"] == 32'
python '[r["bytes_per_access"] for r in rows("load") + rows("store")] == [16, 16]'
python '[r["accesses_per_thread"] for r in rows("load")] == [2] and rows("load")[0]["not_wider_because"] is None'
python '[(r["combine"], r["inside_threads"], r["between_lanes"], r["between_warps"]) for r in rows("reduction")] == [("max", 8, 32, 4), ("sum", 8, 32, 4)]'
python 'max(l["registers"] for l in k["live_registers"]) >= 8'
"$blkc" reasons.blk --kernel=turn --emit=json -o j
python '[(r["by"], r["bytes_through_shared"]) for r in rows("conversion")] == [("shared memory", 16384)]'
python 'all(r[s]["wavefronts"] == r[s]["least"] for r in rows("conversion") for s in ("store", "load"))'
"$blkc" examples/*/softmax.blk --emit=json -o j
python 'len(d["kernels"]) == 5'
"$blkc" examples/*/softmax.blk --emit=json -o again && cmp -s j again && ok || bad "other bytes the second time"
for e in examples/*/*.blk; do "$blkc" "$e" --emit=json -o - --target=sm_90a | python3 -m json.tool >/dev/null 2>&1 && ok || bad "$e: no JSON"; done

# A copy ahead: 128 x 32 elements of 2 bytes by 128 threads are 4 accesses of 16 bytes; three stages hold 24576 bytes.
"$blkc" examples/matmul/matmul.blk --kernel=matmul --emit=json -o j --specialize=a%16,b%16,c%16,M%16,N%16,K%16 -D num_warps=4
python '[(r["name"], r["stages"], r["accesses"], r["access_bytes"], r["masked"], r["read_by"], r["shared_bytes"], r["stages_asked_for"]) for r in rows("copy ahead")] == [("a", 3, 4, 16, True, "matrix loads", 24576, None), ("b", 3, 4, 16, True, "matrix loads", 24576, None)]'

# Who is to blame: names up to four, a mask from memory, what is computed, and a pointer that a loop carries.
cat >blame.blk <<'B'
kernel many(y: *f32, x: *const f32, a: i32, b: i32, c: i32, d: i32, e: i32, f: f32) {
    let i = arange(0, 1024);
    store(y + i, load(x + a + b + c + d + e + i) + load(x + a + a + i));
    store(y + f.to(i32) + i, 1.0);
}
kernel masked(y: *f32, x: *const f32, m: *const bool) {
    let i = arange(0, 1024);
    store(y + i, load(x + i, mask = load(m + i)), mask = i < 1022);
}
kernel spread(y: *f32, x: *const f32, n: i64) {
    let i = arange(0, 1024);
    store(y + i, load(x + (i ^ 5)) + load(x + i.to(i64) * n) + load(x + i * 6));
}
kernel carried(y: *f32, x: *const f32, n: i32) {
    var p = x + arange(0, 1024);
    var s = zeros([1024], f32);
    var k = 0;
    while k < n { s += load(p); p += n; k += 1; }
    for r in range(n) { s += load(x + arange(0, 1024) * r); }
    store(y + arange(0, 1024), s);
}
kernel swapped(y: *i32, n: i32) {
    let i = arange(0, 1024);
    let was = atomic_cas(y + i, 0, 1, mask = i < n);
    atomic_add(y + i, was, mask = i < n);
}
kernel one_warp(y: *i32, c: *i32, z: *i64, d: *i64) options(num_warps = 1) {
    store(y + atomic_add(c, 1), 7);
    store(z + atomic_add(d, 1), 7);
}
kernel cached(y: *f32, v: *f32) {
    let i = arange(0, 1024);
    store(y + i, load(v + i, cache = "cg"));
}
kernel looked_up(y: *f32, x: *const f32, t: *const i32) {
    let i = arange(0, 128);
    store(y + i, gather(load(x + i), load(t + i), axis = 0));
}
kernel exact(c: *f64, a: *const f64, d: *f32, b: *const f32) {
    let i = arange(0, 16);
    let p = i[:, None] * 16 + i[None, :];
    store(c + p, dot(load(a + p), load(a + p)));
    store(d + p, dot(load(b + p), load(b + p), precision = "ieee"));
}
kernel chosen(y: *f32, x: *const f32, a: i32, b: i32, n: i32) {
    let i = arange(0, 1024);
    store(y + i, load(x + where(n > 3, a, b) + i));
}
kernel large(y: *f32, x: *const f32) {
    let i = arange(0, 256);
    let p = i[:, None] * 256 + i[None, :];
    store(y + p, trans(load(x + p)));
}
kernel turn(y: *i8, x: *const i8) options(num_warps = 1) {
    let i = arange(0, 32);
    let j = arange(0, 64);
    store(y + j[:, None] * 32 + i[None, :], trans(load(x + i[:, None] * 64 + j[None, :])));
}
B
blames() { # kernel promises, words behind it
	status 0 "who is to blame in $1" "$blkc" blame.blk --kernel="$1" --emit=explain -o - --specialize="$2"
}
blames many y%16; says_text "nothing is promised of 'x', 'a', 'b' and 'c'"; says_text "nothing is promised of 'x' and 'a'"; says 'a multiple of 16 bytes$'; silent "'f'"
blames masked x%16,y%16,m%16; says 'the mask may change inside the access$'; says_text "its bound 1022 is not divisible by 4"
blames spread x%16,y%16; says 'not known to be adjacent in memory$'
says_text "offsets are multiplied by 'n'"; says_text "offsets are multiplied or divided by 6"
blames carried x%16,y%16; says '  load f32\[1024\] \[loop depth 1\]'; says '  load x f32\[1024\] \[loop depth 1\]'
blames swapped n%16; says 'atomics of this kind act on no more at once$'; silent "would help"
blames one_warp y%16; says_text "atomic c i32: 4 bytes, by one thread, handed on by 1 shuffle"; says_text "atomic d i64: 8 bytes, by one thread, handed on by 2 shuffles"
blames cached y%16,v%16; says_text "covers 512 contiguous bytes, cache cg"
blames looked_up x%16; says_text "exchange gather f32[128]: between threads, 1 barrier, 512 bytes of shared memory"
blames exact a%16; says_text "product f64[16,16]: mma.sync m8n8k4"; says_text "product f32[16,16]: shuffles and fma"
blames chosen x%16,y%16; says_text "nothing is promised of 'a' and 'b'"
printf 'kernel k(y: *f32) { store(y,\t1.0); }' >last.blk
status 0 "a last line" "$blkc" last.blk --emit=explain -o -; says '^    1 | kernel k(y: \*f32) { store(y, 1.0); }$'
# 256 KiB do not fit at once; a quarter of them is exchanged between two barriers, and none is needed in front of the first
blames large x%16,y%16; says_text "262144 bytes each way in 4 passes"; says_text "7 barriers, 65536 bytes of shared memory"
blames turn x%16,y%16; says_text "a warp stores in 2 wavefronts where 1 would do (bank conflicts)"
for kind in explain json; do
	"$blkc" blame.blk --kernel=turn --emit=$kind -o j --specialize=x%16,y%16
done
python '[(r["store"]["wavefronts"], r["store"]["least"], r["by"]) for r in rows("conversion")] == [(2, 1, "shared memory of each warp")]'
# What only the assembler knows.
status 0 "without ptxas" env PATH=/nonexistent "$blkc" $softmax --emit=json,explain
if [ -x /usr/local/cuda/bin/ptxas ]; then skip 3; else
	cp softmax.json j
	python 'k["registers"] is None and k["cubin_bytes"] is None and k["ptx_bytes"] > 1000'
	cat softmax.explain >out
	says_text "registers unknown: no ptxas"
	says_text "cubin unknown: no ptxas"
fi
if $have_ptxas; then
	"$blkc" $softmax --emit=json,cubin
	cp softmax.json j
	python '16 <= k["registers"] <= 64 and k["spill_bytes"] == 0 and k["warps_per_sm"] == 64 and k["limited_by"] == "warps"'
	python "k['cubin_bytes'] == $(wc -c <softmax.cubin)"
	"$blkc" $softmax -o s.ptx
	python "k['ptx_bytes'] == $(wc -c <s.ptx)"
	sed '0,/options(/s//options(max_registers = 8, /' examples/softmax/softmax.blk >budget.blk
	status 1 "a budget of registers" "$blkc" budget.blk -I examples/softmax --emit=cubin --kernel=softmax_rows
	says_text "E0815"
	says_text "registers hold values here: v f32[1024] in 8"
	# A budget that is tuned over one value: what spills on a target is none of its configurations.
	cat >spills.blk <<'B'
kernel k(y: *f32, x: *const f32, const B: i32 = 4096) {
    let v = load(x + arange(0, B));
    store(y + arange(0, B), v / (max(v) + sum(v)));
}
autotune k key(B) { maxnreg: [24, 64], max_spills: [0]; }
B
	status 0 "a package of configurations without spills" "$blkc" spills.blk --emit=package --target=sm_80 -o spills.blkpkg
	says "configuration maxnreg=24,max_spills=0 of kernel k is left out for sm_80: .*E0815"
	grep -aq 'maxnreg=64,max_spills=0' spills.blkpkg && ! grep -aq 'maxnreg=24,max_spills=0' spills.blkpkg && ok || bad "what spills.blkpkg holds"
else skip 10; fi

# A parent that ignores SIGCHLD takes away how a child ended.
if $have_ptxas; then
	ignoring() { (trap '' CHLD; exec "$@"); }
	ignoring "$blkc" $softmax --emit=cubin -o ignored.cubin 2>err && ok || { bad "SIGCHLD ignored"; cat err; }
	[ -s ignored.cubin ] && ok || bad "no cubin where SIGCHLD is ignored"
	printf 'kernel k(z: *i32, n: i32) { store(z, inline_asm("pop.b32 $0, $1;", "=r,r", [n], i32)); }' >refused.blk
	ignoring "$blkc" refused.blk --emit=cubin -o refused.cubin 2>err && bad "refused code where SIGCHLD is ignored" || ok
	name="SIGCHLD ignored, refused code"
	says_text "Not a name of any known instruction"
else skip 4; fi

# Disassembly: by the real program where there is one, and by a stand-in that prints in its form.
assembler=$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)
if $have_ptxas; then
	mkdir tools
	ln -s "$assembler" tools/ptxas
	cat >tools/nvdisasm <<'N'
#!/bin/sh
[ "$1 $2" = "-c -g" ] && [ -s "$3" ] && [ $# = 3 ] || exit 1
echo '.text.softmax_rows:'
printf '\t//## File "examples/softmax/softmax.blk", line 6\n'
echo '        /*0000*/                   MOV R1, c[0x0][0x28] ;'
printf '\t//## File "examples/softmax/softmax.blk", line 6\n'
echo '        /*0010*/                   MOV R2, R1 ;'
printf '\t//## File "examples/softmax/softmax.blk", line 7 inlined at "x.blk", line 3\n'
printf '\t//## File "elsewhere.blk", line 1\n'
echo '        /*0020*/                   EXIT ;'
N
	chmod +x tools/nvdisasm
	status 0 "sass" "$blkc" $softmax --emit=sass --ptxas=tools/ptxas
	cat >wanted <<'W'
// softmax_rows, sm_80
.text.softmax_rows:
	// examples/softmax/softmax.blk:6  let v = load(x + row * stride + columns, mask = mask, other = -inf);
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   MOV R2, R1 ;
	// examples/softmax/softmax.blk:7  let e = exp(v - max(v, axis = 0));
        /*0020*/                   EXIT ;
W
	diff wanted softmax.sass && ok || bad "line marks"
	printf '#!/bin/sh\necho "no such machine" >&2\nexit 1\n' >tools/nvdisasm
	status 1 "a disassembler that fails" "$blkc" $softmax --emit=sass --ptxas=tools/ptxas -o none.sass
	says_text "E0816"
	says_text "no such machine"
	[ -e none.sass ] && bad "an output after an error" || ok
	rm tools/nvdisasm
	# The system's own, or none.
	if command -v nvdisasm >/dev/null || [ -x /usr/local/cuda/bin/nvdisasm ]; then
		status 0 "the real one" "$blkc" $softmax --emit=sass -o -
		says_text "// examples/softmax/softmax.blk:6  let v = load("
		says_text "LDG.E"
		skip 4
	elif command -v cuobjdump >/dev/null || [ -x /usr/local/cuda/bin/cuobjdump ]; then
		status 0 "cuobjdump" "$blkc" $softmax --emit=sass -o -
		says_text "LDG.E"
		skip 5
	else
		printf '#!/bin/sh\n[ "$1" = -sass ] && [ -s "$2" ] && echo "	code for sm_80"\n' >tools/cuobjdump
		chmod +x tools/cuobjdump
		status 0 "cuobjdump alone" "$blkc" $softmax --emit=sass --ptxas=tools/ptxas -o -
		says_text "source lines are known to nvdisasm only"
		says_text "code for sm_80"
		rm tools/cuobjdump
		status 1 "none" "$blkc" $softmax --emit=sass --ptxas=tools/ptxas -o none.sass
		says_text "neither nvdisasm nor cuobjdump"
		skip 2
	fi
else skip 14; fi
status 1 "no ptxas" "$blkc" $softmax --emit=sass --ptxas=/nonexistent/ptxas -o none.sass
says_text "E0813"

finish
