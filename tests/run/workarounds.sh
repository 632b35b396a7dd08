#!/bin/sh
# usage: tests/run/workarounds.sh BUILD     Does ptxas still need what the compiler does for its sake?  (docs/nvptx.md has the table.)
# Each workaround is taken out of PTX that has it.  With it the trouble must not show, which is the test; where the
# trouble does not show without it either, a line says that this ptxas no longer needs it.  That is no failure.
# No GPU is needed, but for what the driver does.  Without ptxas all else is skipped; without nvdisasm all but what ptxas itself
# complains of.
. "$(dirname "$0")/../lib.sh"
enter_scratch "${1:-build}"
PATH=$PATH:/usr/local/cuda/bin
CHECKS=13
compile() { # arguments of blkc
	"$build/bin/blkc" --target=sm_90a -g0 "$@" -o with.ptx 2>err || { bad "$*"; cat err; }
}

# Bytes of local memory a thread, as the driver compiles it: by its loader, or by its linker.
cat >local.c <<'C'
#include "runtime/device/cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define X(name, parameters) static CUresult(*name) parameters;
CUDA_CALLS(X)
#undef X
#define TRY(call)                                                                                                      \
	do {                                                                                                           \
		if ((r = (call))) return fprintf(stderr, "%s: %d\n", #call, r), 1;                                     \
	} while (0)

int main(int argc, char **argv) /* loader|linker FILE KERNEL */
{
	static char ptx[1 << 22];
	FILE *f = argc == 4 ? fopen(argv[2], "r") : NULL;
	void *driver = dlopen("libcuda.so.1", RTLD_NOW), *code = ptx;
	size_t n = f ? fread(ptx, 1, sizeof ptx - 1, f) : 0;
	int r, major = 0, bytes = 0;
	CUdevice d;
	CUcontext c;
	CUmodule m;
	CUfunction k;
	CUlinkState s;
	if (!driver || !n) return 77;
#define X(name, parameters) *(void **)&name = dlsym(driver, #name);
	CUDA_CALLS(X)
	if (cuInit(0) || cuDeviceGet(&d, 0) || cuDeviceGetAttribute(&major, CUDA_ATTRIBUTE_MAJOR, d) || major != 9)
		return 77;
	TRY(cuDevicePrimaryCtxRetain(&c, d));
	TRY(cuCtxPushCurrent_v2(c));
	if (strcmp(argv[1], "linker") == 0) {
		TRY(cuLinkCreate_v2(0, NULL, NULL, &s));
		TRY(cuLinkAddData_v2(s, CUDA_INPUT_PTX, ptx, n + 1, "k", 0, NULL, NULL));
		TRY(cuLinkComplete(s, &code, &n));
	}
	TRY(cuModuleLoadDataEx(&m, code, 0, NULL, NULL));
	TRY(cuModuleGetFunction(&k, m, argv[3]));
	TRY(cuFuncGetAttribute(&bytes, CUDA_FUNCTION_LOCAL, k));
	printf("%d\n", bytes);
	return 0;
}
C
have_driver() {
	have_gpu || return 1
	${CC:-cc} -I "$root" local.c -ldl -o local 2>err || { bad "local.c"; cat err; return 1; }
	./local loader with.ptx attention >loader 2>err
	[ $? != 77 ]
}
compile "$root/examples/attention/attention.blk" --kernel=attention -D DK=128 -D BM=128 -D BN=128 -D num_warps=8 -D num_stages=2 \
	--specialize=o%16,lse%16,q%16,k%16,v%16,heads%16,group%16,nq%16,nk%16
if have_driver; then
	[ "$(cat loader)" = 0 ] && ok || bad "registers that are handed over: the driver's loader makes $(cat loader err) bytes of local memory"
	./local linker with.ptx attention >linker 2>err
	[ "$(cat linker)" != 0 ] || echo "note: this driver's linker no longer ignores setmaxnreg: take out hands_registers_over() of runtime/device/cuda.c"
else skip 1; fi
if ! command -v ptxas >/dev/null; then
	skip $CHECKS
	finish
fi
version=$(ptxas --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
tab=$(printf '\t')

# FILE.ptx -> FILE.log, what ptxas says, and FILE.sass, an instruction or a label a line, where there is a disassembler.
assemble() { # file
	: >"$1.sass"
	ptxas -v -arch=sm_90a "$1.ptx" -o "$1.cubin" >"$1.log" 2>&1 || { echo "refused" >>"$1.log"; return; }
	! command -v nvdisasm >/dev/null || nvdisasm -c "$1.cubin" | sed -n 's|^ */\*[0-9a-f]*\*/ *||p; s|^\(\.L[^:]*\):.*|\1|p' >"$1.sass"
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
compile "$root/examples/layer_norm/layer_norm.blk" --kernel=layer_norm_forward_tiles -D num_warps=1 -D BLOCK=1024
grep -v "nctaid.z;\|never, z, 0;\|@never trap" with.ptx >without.ptx
trouble() { sed '/ACQBULK/q' "$1.sass" | grep -q LDG; }
check "a branch behind the wait for a kernel" "it in lower_gdc_wait() of target/nvptx/tma.c" sass
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

# Copies of a factor that stays in registers, taken out: is one of its registers read in an iteration, and written later in it?
# A move or a load would bring the factor back.
cat >gradients.blk <<'B'
kernel gradients(dq: *f32, dk: *f16, dv: *f16, q: *const f16, k: *const f16, v: *const f16, g: *const f16, l: *const f32,
	e: *const f32, c: f32, n: i32) grid(cdiv(n, 64)) options(num_warps = 8)
{
    let Q = tensor(q, [n, 64]); let K = tensor(k, [n, 64]); let V = tensor(v, [n, 64]); let G = tensor(g, [n, 64]);
    let DQ = tensor(dq, [n, 64]); let DK = tensor(dk, [n, 64]); let DV = tensor(dv, [n, 64]);
    let j = program_id(0) * 64;
    let keys = K.load([j, 0], [64, 64]);
    let values = V.load([j, 0], [64, 64]);
    var sum_k = zeros([64, 64], f32);
    var sum_v = zeros([64, 64], f32);
    for i in range(0, n, 64) {
        let x = Q.load([i, 0], [64, 64]);
        let y = G.load([i, 0], [64, 64]);
        let rows = i + arange(0, 64);
        let p = exp2(dot(keys, trans(x)) * c - load(l + rows)[None, :]);
        let s = (p * (dot(values, trans(y)) - load(e + rows)[None, :])).to(f16);
        sum_v = dot(p.to(f16), y, sum_v);
        sum_k = dot(s, x, sum_k);
        DQ.atomic_add([i, 0], dot(trans(s), keys));
    }
    DK.store([j, 0], sum_k.to(f16));
    DV.store([j, 0], sum_v.to(f16));
}
B
compile gradients.blk --specialize=dq%16,dk%16,dv%16,q%16,k%16,v%16,g%16,l%16,e%16,n%16
awk '
	/selp\.b32.*, 1, 0, never;/ { match($0, /%r[0-9]+/); nothing[substr($0, RSTART, RLENGTH)] = 1 }
	/^[ \t]*xor\.b32/ { split($0, w, /[ \t,;]+/); if (w[5] in nothing) { factor[w[3]] = w[4]; next } }
	{
		out = ""
		for (rest = $0; match(rest, /%r[0-9]+/); rest = substr(rest, RSTART + RLENGTH)) {
			r = substr(rest, RSTART, RLENGTH)
			out = out substr(rest, 1, RSTART - 1) (r in factor ? factor[r] : r)
		}
		print out rest
	}' with.ptx >without.ptx
trouble() {
	awk '
		/^\.L/ { at[$0] = n + 0; next }
		{ ends[n + 0] = /^@!?P[0-9] +BRA/; sub(/^@!?U?P[0-9T]+ +/, ""); line[n++] = $0 }
		END {
			for (i = 0; i < n; i++) # behind a loop stand pieces of it, which jump back into it in any case
				if (ends[i] && match(line[i], /\.L[A-Za-z0-9_]+/) && (l = substr(line[i], RSTART, RLENGTH)) in at && at[l] <= i)
					iteration(at[l], i)
			exit !given
		}
		function iteration(from, to,    i, r, w, wide, written, read, last) {
			for (i = from; i <= to; i++) {
				split(line[i], w, /[ ,]+/)
				if (w[1] ~ /^HGMMA/) {
					if (w[3] !~ /^R[0-9]+$/) continue
					for (r = substr(w[3], 2) + 0; r < substr(w[3], 2) + 4; r++) if (!(r in written)) read[r] = 1
				} else if (w[2] ~ /^R[0-9]+$/ && w[1] !~ /^(ST|RED|BAR)/) {
					wide = w[1] ~ /128|88\.4/ ? 4 : w[1] ~ /\.64/ ? 2 : 1
					for (r = substr(w[2], 2) + 0; wide--; r++) { written[r] = 1; last[r] = w[1] }
				}
			}
			for (r in read) if (r in last && last[r] !~ /MOV|^LD/) given = 1
		}' "$1.sass"
}
check "a copy of a factor that stays in registers" "nothing_of() of target/nvptx/mma/wgmma_lower.c" sass

# Each product has a fence, also one that begins beside another, with registers that were written in front of that one's.
compile "$root/examples/attention/attention.blk" --kernel=attention -D BM=128 -D BN=64 -D num_warps=8 -D num_stages=2 \
	--specialize=o%16,lse%16,q%16,k%16,v%16,heads%16,group%16,nq%16,nk%16
awk '/wgmma\.wait_group/ { waited = 1 } /wgmma\.fence/ { if (!waited) next; waited = 0 } 1' with.ptx >without.ptx
trouble() { grep -q '(C75' "$1.log"; }
check "a fence of each product's own" "is_fenced() of async/synchronise.c, for registers"

# The number of moves from registers to uniform registers in the loop of products.
cp product.ptx with.ptx
sed "s/shfl\.sync\.idx\.b32[ $tab]*\(%r[0-9]*\), \(%r[0-9]*\), 0, 31, -1;/mov.b32 \1, \2;/" with.ptx >without.ptx
trouble() { awk '/TRYWAIT/ { n = 0 } /R2UR/ { n++ } /GMMA/ { m = n } END { exit !m }' "$1.sass"; }
check "the warp's number from lane 0" "uniform() of target/nvptx/values.c" sass
finish
