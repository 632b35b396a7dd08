#!/bin/sh
# usage: tests/run/assemble.sh BUILD [all]     What the examples' kernels, in every configuration that they tune over, and products of
# every type become on each GPU target, assembled: no warning (of products by warpgroups that wait for one another, C75xx, for one), no
# spilled registers; and the instructions of a round of the matrix products' loops, counted.  A configuration that says
# max_spills=0 may spill where it is left out for that, on targets other than sm_90a.
# Each kernel with each configuration on one target or two; all: on every target.  ONLY_COMPILE=1: up to PTX, for builds that
# are there to look at our own code; ONE_CASE_IN=N: one job in N.
. "$(dirname "$0")/../lib.sh"
enter_scratch "${1:-build}"
blkc=$build/bin/blkc
ptxas=$(PATH=$PATH:/usr/local/cuda/bin command -v ptxas)
if [ -z "$ptxas" ]; then
	skip 1
	finish
fi
all=${2:-}
targets="sm_80 sm_86 sm_89 sm_90a sm_100a sm_120a"

# A job: file, kernel, target, then the configuration, "-" or "BM=64,num_warps=4".
turn=0
rotate() { # file kernel configuration
	if [ -n "$all" ]; then
		for target in $targets; do echo "$1 $2 $target $3"; done
		return
	fi
	turn=$((turn % 6 + 1))
	target=$(echo "$targets" | cut -d' ' -f$turn)
	echo "$1 $2 $target $3"
	case $1-$target in *matmul*-sm_90a | *attention*-sm_90a) ;; *matmul* | *attention*) [ $((turn % 2)) = 1 ] && echo "$1 $2 sm_90a $3" ;; esac
}
# "autotune key n axis A 1 2 axis B 3 config C=4" -> one line a configuration; of a space that is too large to try, none
configurations() {
	awk '{
		all = 1; values = 0
		for (i = 2; i <= NF + 1; i++) {
			if (i > NF || $i ~ /^(axis|config|where|reset|restore|scratch|tolerance|key)$/) {
				if (values) all *= values
				values = 0
				if ($i == "axis") { i++; counts = 1 } else counts = 0
			} else values += counts
			if (i <= NF && $i == "where") while (i < NF && $i !~ /}$/) i++
		}
		if (all > 100) next
		n = 1; made[1] = ""; more = 0
		for (i = 2; i <= NF; i++) {
			if ($i == "config") { print $(++i); continue }
			if ($i ~ /^(reset|restore|scratch|tolerance|key)$/) { i++; continue }
			if ($i == "where") { while (i < NF && $i !~ /}$/) i++; continue }
			if ($i != "axis") continue
			name = $(++i); m = 0; more = 1
			while (i < NF && $(i + 1) !~ /^(axis|config|where|reset|restore|scratch|tolerance|key)$/) {
				i++
				for (k = 1; k <= n; k++) next_made[++m] = made[k] (made[k] == "" ? "" : ",") name "=" $i
			}
			n = m
			for (k = 1; k <= n; k++) made[k] = next_made[k]
		}
		for (k = 1; more && k <= n; k++) print made[k]
	}'
}
# KERNEL CONFIGURATION: whether it meets the `where` clauses in wheres, which the shell can compute; a kernel's own const values first.
meets() (
	eval "$(sed -n "/^\/\/ blk: kernel $1\$/,/^\/\/ blk: target/s/^\/\/ blk: const \([A-Za-z0-9_]*\) i32 \(.*\)/\1=\2/p" whole.ptx)"
	eval "$(sed -n "/^\/\/ blk: kernel $1\$/,/^\/\/ blk: target/s/^\/\/ blk: const \([A-Za-z0-9_]*\) bool \(.*\)/\1=\2/p" whole.ptx | sed 's/=true$/=1/; s/=false$/=0/' | grep '=[01]$')"
	eval "$(echo "$2" | tr ',' '\n' | sed 's/=true$/=1/; s/=false$/=0/' | grep '=[0-9]*$')"
	while read -r clause; do
		[ $(($clause)) != 0 ] || exit 1
	done <wheres
)

# Products of two tiles, operands either way round, in a loop.
for t in "f16 f32 32" "bf16 f32 32" "f8e4m3 f32 64" "f8e5m2 f32 64" "i8 i32 64" "f32 f32 64" "f64 f64 16"; do
	for way in nn nt tn tt; do
		# shellcheck disable=SC2086
		set -- $t
		case $way in n*) a='load(a + i[:, None] * k + l[None, :])' ;; *) a='load(a + l[None, :] * m + i[:, None])' ;; esac
		case $way in *n) b='load(b + l[:, None] * n + j[None, :])' ;; *) b='load(b + j[None, :] * k + l[:, None])' ;; esac
		cat >"product_$1_$way.blk" <<B
kernel product(c: *$2, a: *const $1, b: *const $1, m: i32, n: i32, k: i32) {
    let i = program_id(0) * 64 + arange(0, 64); let j = program_id(1) * 64 + arange(0, 64);
    var s = zeros([64, 64], $2);
    for at in range(0, k, $3) { let l = at + arange(0, $3); s = dot($a, $b, s); }
    store(c + i[:, None] * n + j[None, :], s);
}
B
	done
done

for f in "$root"/examples/*/*.blk product_*.blk; do
	"$blkc" "$f" -o whole.ptx -I "$root/examples" 2>/dev/null || continue
	sed -n 's|^// blk: kernel ||p' whole.ptx >kernels
	while read -r kernel; do
		rotate "$f" "$kernel" -
		awk -v k="$kernel" '$2 == "blk:" && $3 == "kernel" { on = $4 == k } on && $2 == "blk:" && $3 == "autotune"' whole.ptx |
			sed 's|^// blk: ||' >clauses
		configurations <clauses >made
		grep -o 'where {[^}]*}' clauses | sed 's/^where {\(.*\)}$/\1/' >wheres
		# What is tuned for each of its values: other ones than the defaults.
		others=
		grep -q 'key [^ ]*DK,CAUSAL' clauses && others="DK=128,CAUSAL=true DK=256,CAUSAL=true DK=96,T=bf16${all:+ DK=128 CAUSAL=true}"
		for k in - $others; do
			case $k in - | DK=256*) ;; *) rotate "$f" "$kernel" "$k" ;; esac # the defaults are for smaller ones
			while read -r c; do
				[ "$k" = - ] || c=$k,$c
				if meets "$kernel" "$c"; then rotate "$f" "$kernel" "$c"; fi
			done <made
		done
	done <kernels
done >jobs
# Programs that form clusters.
for n in 2 4; do
	for kernel in matmul_tensor matmul_persistent matmul; do
		for stages in 3 4; do
			echo "$root/examples/matmul/matmul.blk $kernel sm_90a BM=128,BN=256,BK=64,num_warps=8,num_stages=$stages,num_ctas=$n"
			echo "$root/examples/matmul/matmul.blk $kernel sm_90a BM=128,BN=128,BK=64,num_warps=4,num_stages=$stages,num_ctas=$n"
		done
	done
done >>jobs
# Of spaces that are too large to try: what has won somewhere, and the corners.
for c in TRANSPOSED=false,BM=128,BN=128,num_warps=8,num_stages=4,PERSISTENT=true TRANSPOSED=true,BM=128,BN=64,num_warps=4,num_stages=3; do
	echo "$root/examples/swiglu/swiglu.blk swiglu sm_90a $c"
done >>jobs
for c in BM=128,BN=256,num_warps=8,num_stages=4,num_ctas=2,GROUP=16 BM=128,BN=256,num_warps=8,num_stages=3,PERSISTENT=true \
	BM=128,BN=256,num_warps=8,num_stages=4,num_ctas=2,PERSISTENT=true BM=256,BN=128,num_warps=8,num_stages=4 \
	BM=256,BN=64,num_warps=4,num_stages=5 BM=64,BN=256,num_warps=4,num_stages=5,num_ctas=2 BM=128,BN=64,num_warps=4,num_stages=8 \
	BM=192,BN=128,GROUP=16,num_warps=8,num_stages=5,PERSISTENT=true BM=128,BN=128,num_warps=8,num_stages=6,num_ctas=4 \
	BM=192,BN=128,num_warps=12,num_stages=5 BM=192,BN=160,num_warps=12,num_stages=4,num_ctas=2,PERSISTENT=true \
	BM=192,BN=192,num_warps=12,num_stages=4,PERSISTENT=true BM=192,BN=192,num_warps=12,num_stages=4,num_ctas=2 \
	BM=192,BN=256,num_warps=12,num_stages=3,PERSISTENT=true BM=192,BN=256,num_warps=12,num_stages=3,num_ctas=2 \
	BM=208,BN=128,GROUP=1,num_warps=8,num_stages=4,num_ctas=2,PERSISTENT=true BM=80,BN=64,num_warps=4,num_stages=8 \
	BM=144,BN=192,num_warps=12,num_stages=4,PERSISTENT=true BM=160,BN=192,num_warps=12,num_stages=4,num_ctas=2,GROUP=1 \
	BM=256,BN=192,num_warps=8,num_stages=3,num_ctas=2,PERSISTENT=true BM=256,BN=144,num_warps=8,num_stages=3,num_ctas=2 \
	BM=144,BN=128,num_warps=8,num_stages=5,PERSISTENT=true BM=112,BN=128,num_warps=4,num_stages=6,num_ctas=4 \
	BM=128,BN=208,num_warps=8,num_stages=4 BM=192,BN=176,num_warps=12,num_stages=4 \
	BM=128,BN=128,num_warps=4,num_stages=3 BM=64,BN=160,GROUP=16,num_warps=4,num_stages=7,num_ctas=4 \
	BM=64,BN=32,num_warps=4,num_stages=8 BM=64,BN=64,num_warps=4,num_stages=8,num_ctas=4 \
	BM=8,BN=64,num_warps=4,num_stages=8 BM=16,BN=128,num_warps=4,num_stages=6,PERSISTENT=true BM=32,BN=256,num_warps=4,num_stages=4,num_ctas=2; do
	for transposed in false true; do
		echo "$root/examples/matmul/matmul.blk matmul_tuned sm_90a BK=64,TRANSPOSED=$transposed,$c"
	done
done >>jobs
for c in BM=64,BN=64,BK=128,SPLIT=8,num_warps=4,num_stages=6 BM=16,BN=64,BK=128,SPLIT=4,num_warps=4,num_stages=4 \
	BM=128,BN=256,BK=64,SPLIT=2,num_warps=8,num_stages=4 BM=128,BN=128,BK=64,SPLIT=4,num_warps=8,num_stages=6,num_ctas=2; do
	echo "$root/examples/matmul/matmul.blk matmul_split_k sm_90a $c"
done >>jobs
for c in BM=128,BN=256,num_warps=8,num_stages=4 BM=192,BN=128,num_warps=8,num_stages=5 BM=64,BN=256,num_warps=4,num_stages=5; do
	echo "$root/examples/matmul/matmul.blk matmul_waves sm_90a BK=64,PART=384,$c"
done >>jobs

cat >job <<'J'
# FILE KERNEL TARGET CONFIGURATION: a line "ok", "skip" (shared memory does not hold the stages, or registers the
# values of one that does without the target then), or "FAILED: .."
file=$1 kernel=$2 target=$3 name="$2 of $(basename "$1") for $3, $4"
mine=$(mktemp -d ./XXXXXX)
defines= emulated=no
case $file-$kernel-$target in product_f8*-sm_100a | *-matmul_fp8*-sm_100a) emulated=yes ;; esac # the assembler makes mma.sync of fp8 of other instructions there
[ "$4" = - ] || defines=$(echo "$4" | sed 's/,max_spills=0//; s/^/-D /; s/,/ -D /g')
case $target,$4 in sm_90a,*) budget=no ;; *,max_spills=0*) budget=yes ;; *) budget=no ;; esac
"$blkc" "$file" --kernel="$kernel" -I "$root/examples" $defines -o "$mine/plain" >"$mine/why" 2>&1
promises=$(sed -n 's/^\/\/ blk: param \([^ ]*\) \(\*.*\|i32\|i64\)$/\1%16/p' "$mine/plain" | tr '\n' ',')
if ! "$blkc" "$file" --kernel="$kernel" --target="$target" -I "$root/examples" $defines ${promises:+--specialize="${promises%,}"} \
	-o "$mine/ptx" >"$mine/why" 2>&1; then
	grep -q 'E0722' "$mine/why" && echo skip || { echo "FAILED: $name"; sed 's/^/    /' "$mine/why"; }
elif [ -n "${ONLY_COMPILE:-}" ]; then
	echo ok
elif ! "$ptxas" -v -arch="$target" "$mine/ptx" -o "$mine/cubin" >"$mine/why" 2>&1 || grep -qE 'warning|\(C75' "$mine/why" ||
	{ grep -q '[1-9][0-9]* bytes spill' "$mine/why" && [ "$emulated$budget" = nono ]; }; then
	echo "FAILED: $name"
	sed 's/^/    /' "$mine/why"
elif [ $budget = yes ] && grep -q '[1-9][0-9]* bytes spill' "$mine/why"; then
	echo skip
else
	echo ok
fi
# A round: 64 rows and up to 256 columns an instruction, 32 bytes of k; what a warpgroup of four warps makes of the tile,
# or of its parts; of fewer than 64 rows, and of weights that are converted, the transposed product, whose rows are the columns.
number() { sed -n "s/^\/\/ blk: $1 //p" "$mine/ptx"; }
instructions() { echo $(($1 * 4 > 64 * warps ? $1 * 4 / 64 / warps : 1)); } # rows
pieces() { # the powers of two in an extent
	rest=$1 power=1048576
	while [ "$rest" -gt 0 ]; do
		[ "$power" -gt "$rest" ] || { echo "$power" && rest=$((rest - power)); }
		power=$((power / 2))
	done
}
case $file-$target in
*matmul*-sm_90a)
	if [ -s "$mine/ptx" ]; then
		m=$(number 'const BM i32') n=$(number 'const BN i32')
		k=$(number 'const BK i32') warps=$(number num_warps) bytes=2
		case $(number 'const T type') in f8*) bytes=1 ;; f32) bytes=4 ;; esac
		case $kernel in
		matmul_i8 | matmul_fp8 | matmul_fp8_tensor) bytes=1 ;;
		matmul_fp8_blocks) bytes=1 k=128 ;; # of which a scale is
		esac
		wanted=0 widest=256
		whole=$(((m + ((n + 63) & ~63)) * k * bytes * $(number num_stages))) # with panels that are brought whole
		if [ "$warps" = 12 ]; then # a group of rows, or of columns
			warps=4 widest=128
			if [ $((m % 64)) = 0 ]; then m=64; else n=64; fi
		fi
		turned=no most=256 # are rows columns of instructions; of how many
		for rows in $(pieces "$m"); do [ "$rows" -ge 64 ] || turned=yes; done
		[ "$widest" = 256 ] || most=192
		for rows in $(pieces "$m"); do
			narrow=$((n % 64)) # columns whose panels are others than those of the rest
			[ "$(number 'const TRANSPOSED bool')" = true ] && [ $((k * bytes)) -le 128 ] && narrow=0
			room=212992 # beside what a persistent program stores
			[ "$(number 'const PERSISTENT bool')" != false ] || room=229376
			case $narrow in 16 | 32) [ $whole -gt $room ] || narrow=0 ;; esac
			if [ $turned = no ] && [ $((rows * 4 / 64)) -ge "$warps" ] && [ "$n" -le $most ] && [ "$n" -ge 64 ] && [ "$kernel" != matmul_weights ]; then
				for columns in 1 $(pieces $narrow); do wanted=$((wanted + $(instructions "$rows"))); done # other pieces are one
				continue
			fi
			for columns in $(pieces "$n"); do
				[ "$columns" -le $widest ] || wanted=$((wanted + $(instructions "$rows")))
				long=$rows
				[ $turned = no ] && [ "$kernel" != matmul_weights ] || long=$columns # converted weights are the first factor
				[ "$long" -ge 64 ] && [ "$warps" -ge 4 ] || continue
				# pieces of rows are one: the first
				[ $turned = yes ] && [ $((columns * 4 / 64)) -ge "$warps" ] && [ $((k * bytes)) -le 128 ] && [ "$rows" != "$(pieces "$m" | head -n 1)" ] ||
					wanted=$((wanted + $(instructions "$long")))
			done
		done
		wanted=$((wanted * k * bytes / 32))
		got=$(grep -c 'wgmma.mma_async' "$mine/ptx")
		if [ "$got" != "$wanted" ] || grep -q '\.local' "$mine/ptx"; then
			echo "FAILED: $name: $got instructions of wgmma a round, not $wanted, or local memory"
		else
			echo ok
		fi
	fi ;;
esac
rm -rf "$mine"
J
export blkc ptxas root
awk -v n="${ONE_CASE_IN:-1}" 'NR % n == 1 % n' jobs | xargs -P "$(nproc)" -L 1 sh job >results
ok=$(grep -c '^ok' results) left=$(grep -c '^skip' results) failed=$(grep -c '^FAILED' results)
passed=$ok skipped=$left
grep -v '^ok\|^skip' results
finish
