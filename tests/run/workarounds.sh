#!/bin/sh
# usage: tests/run/workarounds.sh BUILD     Does ptxas still need what the compiler does for its sake?  (docs/nvptx.md has the table.)
# Each workaround is taken out of PTX that has it.  With it the trouble must not show, which is the test; where the
# trouble does not show without it either, a line says that this ptxas no longer needs it.  That is no failure.
# No GPU is needed.  Without ptxas all is skipped; without nvdisasm all but what ptxas itself complains of.
. "$(dirname "$0")/../lib.sh"
enter_scratch "${1:-build}"
PATH=$PATH:/usr/local/cuda/bin
CHECKS=10
if ! command -v ptxas >/dev/null; then
	skip $CHECKS
	finish
fi
version=$(ptxas --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
tab=$(printf '\t')

# FILE.ptx -> FILE.log, what ptxas says, and FILE.sass, an instruction a line, where there is a disassembler.
assemble() { # file
	: >"$1.sass"
	ptxas -v -arch=sm_90a "$1.ptx" -o "$1.cubin" >"$1.log" 2>&1 || { echo "refused" >>"$1.log"; return; }
	! command -v nvdisasm >/dev/null || nvdisasm -c "$1.cubin" | sed -n 's|^ */\*[0-9a-f]*\*/ *||p' >"$1.sass"
}
# Compares with.ptx and without.ptx by `trouble FILE`, which is true where the trouble shows.
check() { # name what-to-take-out [sass]: sass: by the disassembly, if there is a disassembler that knows this ptxas's code
	cmp -s with.ptx without.ptx && { bad "$1: nothing was taken out"; return; }
	assemble with
	if grep -q '^refused' with.log || { [ -s with.sass ] || [ "${3:-}" != sass ]; } && trouble with; then
		bad "$1: the trouble is there in spite of it"
		sed 's/^/    /' with.log
		return
	fi
	if [ "${3:-}" = sass ] && ! [ -s with.sass ]; then
		skip 1
		return
	fi
	ok
	assemble without
	trouble without || echo "note: ptxas $version no longer needs $1: take out $2"
}
compile() { # arguments of blkc
	"$build/bin/blkc" --target=sm_90a -g0 "$@" -o with.ptx 2>err || { bad "$*"; cat err; }
}

cat >persistent.blk <<'B'
kernel product(c: *f16, a: *const f16, b: *const f16, s: *const f32, u: *const f32, m: i32, n: i32, k: i32,
	const N: i32 = 128, const SCALED: bool = false) grid(132) options(num_warps = 8)
{
    let A = tensor(a, [m, k]); let B = tensor(b, [k, n]); let C = tensor(c, [m, n]);
    let across = cdiv(n, N);
    for tile in range(program_id(0), cdiv(m, 128) * across, 132) {
        let i = tile / across * 128; let j = tile % across * N;
        var sum = zeros([128, N], f32);
        for t in range(0, k, 64, num_stages = 3) {
            sum = dot(A.load([i, t], [128, 64]), B.load([t, j], [64, N]), sum);
        }
        if SCALED {
            let rows = i + arange(0, 128); let columns = j + arange(0, N);
            sum = sum * load(s + rows, mask = rows < m)[:, None] * load(u + columns, mask = columns < n)[None, :];
        }
        C.store([i, j], sum.to(f16));
    }
}
kernel shared(c: *f16, a: *const f16, b: *const f16, m: i32, n: i32, k: i32) options(num_warps = 8, num_ctas = 2)
{
    let A = tensor(a, [m, k]); let B = tensor(b, [k, n]); let C = tensor(c, [m, n]);
    let i = program_id(0) * 128; let j = program_id(1) * 128;
    var sum = zeros([128, 128], f32);
    for t in range(0, k, 64, num_stages = 4) { sum = dot(A.load([i, t], [128, 64]), B.load([t, j], [64, 128]), sum); }
    C.store([i, j], sum.to(f16));
}
B
product="persistent.blk --kernel=product --specialize=a%16,b%16,c%16,s%16,u%16,m%16,n%16,k%16"

# The order in which a kernel's SASS has the patterns' first matches behind the last instruction of wgmma: "division wait".
order() { # file name pattern name pattern ..
	file=$1
	shift
	awk -v patterns="$*" '
		/GMMA/ { n = 0; for (i in seen) delete seen[i] }
		{ k = split(patterns, p, " "); for (i = 1; i < k; i += 2) if (!seen[i] && $0 ~ p[i + 1]) { seen[i] = 1; found[++n] = p[i] } }
		/^EXIT/ { exit }
		END { for (i = 1; i <= n; i++) printf "%s ", found[i] }' "$file.sass"
}

compile $product
cp with.ptx product.ptx
sed '/popc\.b32/d; /setp\.gt\.u32 *never/d; /nanosleep/d' with.ptx >without.ptx
trouble() { case "$(order "$1" division 'MUFU[.]RCP' wait 'DEPBAR.*gsb0,.0x0')" in division*) return 1 ;; esac; }
check sched_barrier "the pass sched_barrier and its lowering" sass

# Loads where the program has them: in front of what takes them.
compile $product -D SCALED=true -D N=256
awk '/ld\.global\.nc/ { match($0, /%r[0-9]+, \[/); held[substr($0, RSTART, RLENGTH - 3)] = $0; next }
	{ for (r in held) if (index($0 ";", r ";")) { print held[r]; delete held[r] } print }' with.ptx >without.ptx
trouble() { [ "$(awk '/DEPBAR.*gsb0,.0x0/ { on = 1 } on && /^(@!?P[0-9] )?LDG/ { n++ } END { print n + 0 }' "$1.sass")" != 0 ]; }
check "loads in front of the last wait" "lift() of async/overlap_epilogue.c" sass

# Zeros written beside the loop where it has no iteration, instead of an iteration of zeros.
cp product.ptx with.ptx
awk '{ line[NR] = $0 }
	/^\$L/ { before = last; last = NR }
	/wgmma\.mma_async/ && !loop { loop = before }
	/wgmma\.wait_group\.sync\.aligned 0;/ { split(line[last], behind, ":") }
	END {
		for (i = 1; i <= NR; i++) {
			if (i == loop) {
				print "\tld.param.b32 %r0, [product_param_7];\n\tsetp.gt.s32 %p0, %r0, 0;\n\t@%p0 bra some;"
				for (k = 0; k < 64; k++) print "\tmov.b32 %sum1_" k ", 0;"
				print "\tbra " behind[1] ";\nsome:"
			}
			print line[i]
		}
	}' with.ptx >without.ptx
trouble() { grep -q '(C75' "$1.log"; }
check "a loop's iteration of zeros" "the selects of async/accumulator_init.c"

cp product.ptx with.ptx
sed 's/fence\.proxy\.async\.shared::cta/fence.proxy.async/' with.ptx >without.ptx
trouble() { grep -q 'MEMBAR.*\.GPU' "$1.sass"; }
check "the fence of shared memory alone" "IR_PROXY_SHARED of async/synchronise.c" sass

compile persistent.blk --kernel=shared --specialize=a%16,b%16,c%16,m%16,n%16,k%16
sed 's/mbarrier\.arrive\.shared::cluster/mbarrier.arrive.release.cluster.shared::cluster/' with.ptx >without.ptx
trouble() { grep -q '^@.*MEMBAR.*\.GPU' "$1.sass"; }
check "an arrival without .release.cluster" "the shorter form in target/nvptx/tma.c" sass

cat >rows.blk <<'B'
kernel rows(o: *f16, q: *const f16, k: *const f16, v: *const f16, n: i32) grid(cdiv(n, 256)) options(num_warps = 8)
{
    let Q = tensor(q, [n, 64]); let K = tensor(k, [n, 64]); let V = tensor(v, [n, 64]); let O = tensor(o, [n, 64]);
    let a = Q.load([program_id(0) * 256, 0], [256, 64]);
    var sum = zeros([256, 64], f32);
    var most = full([256], -inf, f32);
    for j in range(0, n, 64) {
        let s = dot(a, trans(K.load([j, 0], [64, 64])));
        let m = maximum(most, max(s, 1));
        sum = dot(exp2(s - m[:, None]).to(f16), V.load([j, 0], [64, 64]), sum * exp2(most - m)[:, None]);
        most = m;
    }
    O.store([program_id(0) * 256, 0], sum.to(f16));
}
B
compile rows.blk --specialize=o%16,q%16,k%16,v%16,n%16
grep -v minnctapersm with.ptx >without.ptx
trouble() { grep -q '(C7508)' "$1.log"; }
check ".minnctapersm beside setmaxnreg" "the attribute in target/nvptx/nvptx.c"

cat >abs.blk <<'B'
kernel k(y: *i16, x: *const i16) { let i = arange(0, 128); store(y + i, abs(load(x + i)) >> 1); }
B
compile abs.blk
sed "s/{ .reg .s32 t; cvt.s32.s16 t, \(%rs[0-9]*\); abs.s32 t, t; cvt.u16.u32 \(%rs[0-9]*\), t; }/abs.s16 \2, \1;/" with.ptx >without.ptx
# 16 bits of the result must be taken, with their sign, before they are shifted.
trouble() { awk '/IABS/ { on = 1; next } on && /PRMT|SHF|I2I/ { bad = /SHF/; exit } END { exit !bad }' "$1.sass"; }
check "abs of i16 by way of 32 bits" "abs_i16() of target/nvptx/arithmetic.c" sass

# A constant factor of fp8 whose register has a copy that is written later: its second half becomes another constant.
cat >with.ptx <<'P'
.version 8.4
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 z, .param .u64 x)
{
	.reg .b64 %d<2>; .reg .b32 %r<12>; .reg .pred %p<1>;
	ld.param.b64 %d0, [z]; ld.param.b64 %d1, [x];
	mov.u32 %r0, %tid.x;
	setp.lt.u32 %p0, %r0, 7;
	mov.b32 %r1, 0;
	mov.b32 %r10, %r1;
	@%p0 ld.global.u16 %r10, [%d1+32];
	ld.global.v4.b32 {%r6, %r7, %r8, %r9}, [%d1];
	mov.b32 %r11, 0;
	mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%r2, %r3, %r4, %r5}, {%r6, %r7, %r8, %r9}, {%r11, %r11}, {%r6, %r7, %r8, %r9};
	@%p0 ld.global.b32 %r1, [%d1+16];
	st.global.v4.b32 [%d0], {%r2, %r3, %r4, %r5};
	st.global.v2.b32 [%d0+16], {%r1, %r10};
	ret;
}
P
sed 's/{%r11, %r11}/{%r1, %r1}/' with.ptx >without.ptx
trouble() { grep -q 'E5M2\.UNPACK_B R[0-9]*, [1-9]' "$1.sass"; }
check "a register of its own for a known fp8 factor" "own_register() of target/nvptx/mma/sync_lower.c" sass

cp product.ptx with.ptx
printf '\t// \303\251\n' | cat - product.ptx >without.ptx
trouble() { grep -q '^refused' "$1.log"; }
check "comments in ASCII" "put_ascii() of target/nvptx/ptx.c"

# The number of moves from registers to uniform registers in the loop of products.
cp product.ptx with.ptx
sed "s/shfl\.sync\.idx\.b32[ $tab]*\(%r[0-9]*\), \(%r[0-9]*\), 0, 31, -1;/mov.b32 \1, \2;/" with.ptx >without.ptx
trouble() { awk '/TRYWAIT/ { n = 0 } /R2UR/ { n++ } /GMMA/ { m = n } END { exit !m }' "$1.sass"; }
check "the warp's number from lane 0" "uniform() of target/nvptx/values.c" sass
finish
