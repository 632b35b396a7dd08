#!/bin/sh
# usage: bench.sh BUILD      Every benchmark program on the cpu device at small sizes: its results are right, its table is
# written and drawn; and the scripts around them.
. "$(dirname "$0")/../lib.sh"
case $1 in /*) build=$1 ;; *) build=$PWD/$1 ;; esac
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
export BLK_CACHE_DIR="$dir/cache"
for f in tests/bench/*.c; do
	name=$(basename "$f" .c)
	case $name in launch | first | tune) continue ;; esac
	suite "$build/bench/$name" --device=cpu --quick --out="$dir"
	rows=$(wc -l <"$dir/$name.csv")
	[ "$rows" -ge 3 ] && ok || bad "$name.csv has $rows lines"
	if command -v gnuplot >/dev/null; then
		grep -q '</svg>' "$dir/$name.svg" && ok || bad "$name.svg is no picture"
	else skip 1; fi
done
status 0 "seed" "$build/bench/elementwise" --device=cpu --quick --seed=7
says 'seed 7'; says 'add f32  *98432'
status 0 "without gnuplot" env PATH="$dir" "$build/bench/elementwise" --device=cpu --quick --out="$dir"
says 'no plot: gnuplot, which draws the plot, is not on PATH'
status 1 "a folder that is not there" "$build/bench/elementwise" --device=cpu --quick --out="$dir/nowhere"
says 'nowhere/elementwise.csv cannot be written'
status 2 "wrong usage" "$build/bench/softmax" --fast
says '^usage: '
status 0 "first, cold" "$build/bench/first" --device=cpu
says 'code from source'
status 0 "first, warm" "$build/bench/first" --device=cpu
says 'code from the cache'
status 0 "tune" "$build/bench/tune" --device=cpu --quick
says '24 configurations cold in .* ms, warm (0 tried)'

# The shapes that no list names: the same for a seed, half of them multiples of 64; and how an order is judged.
status 0 "wide" python3 tests/bench/peers_wide.py --seed=3 --count=40
cp "$dir/out" "$dir/wide"
[ "$(wc -l <"$dir/wide")" = 40 ] && [ "$(awk '$1 % 64 == 0 && $2 % 64 == 0 && $3 % 64 == 0' "$dir/wide" | wc -l)" -ge 20 ] && ok || bad "the wide set"
awk '$1 % 8 || $2 % 8 || $3 % 8 || $1 < 64 || $2 < 64 || $3 < 64 || $1 > 12288 || $2 > 12288 || $3 > 12288' "$dir/wide" | grep -q . && bad "a wide shape" || ok
for what in 'f16 NN' 'bf16 NN' 'f16 NT' 'bf16 NT'; do [ "$(grep -c " $what\$" "$dir/wide")" = 10 ] && ok || bad "wide: $what"; done
status 0 "wide again" python3 tests/bench/peers_wide.py --seed=3 --count=40
cmp -s "$dir/out" "$dir/wide" && ok || bad "the wide set differs from itself"
status 0 "rank correlation" python3 -B -c 'import sys; sys.path.insert(0, "tests/bench"); import peers_wide as w
print(w.spearman([1, 2, 3], [10, 20, 40]), w.spearman([1, 2, 3], [3, 2, 1]), round(w.spearman([1, 1, 2, 2], [1, 2, 3, 4]), 3), w.spearman([1, 1, 1], [1, 2, 3]), w.spearman([1], [1]))'
says_text '1.0 -1.0 0.894 None None'

# The peers' figures as tables, and as a chart.
cat >"$dir/peers.csv" <<'C'
section,work,who,variant,ms,rate,unit,spread,ratio,note
machine,A GPU,torch 2,Triton 3,,,,,,
add,add f32 2^20,blk,BLOCK=512,0.004,3145.7,GB/s,0.01,1.25,
add,add f32 2^20,torch,add,0.005,2516.6,GB/s,0.01,1.25,
add,add f32 2^20,triton tutorial,BLOCK=1024,0.006,2097.2,GB/s,0.01,1.5,
softmax,softmax f32 4096 x 1024,blk,a,0.010,3355.4,GB/s,0.01,0.9,
softmax,softmax f32 4096 x 1024,triton,b,0.009,3728.3,GB/s,0.01,0.9,
softmax,softmax f32 4096 x 1024,triton tutorial,c,0.012,2796.2,GB/s,0.01,1.2,
softmax,softmax f32 4096 x 1024,torch,softmax,,,,,,RuntimeError: it fails
launch,host cost of one launch,blk,in C,0.0025,,,,0.98,
C
printf 'before\n<!-- measured -->\nold\n<!-- /measured -->\nafter\n' >"$dir/page.md"
status 0 "table" python3 tests/bench/table.py "$dir/peers.csv"
says '| add f32 2^20 | 12.6 MB | 3146 | 2517 | 2097 |  | 1.25 | 1.25 | 1.05, met | BLOCK=512 |'
says '| softmax f32 4096 x 1024 | 33.6 MB | 3355 |  | 2796 | 3728 | 0.90 | 1.20 | 1.30, missed | a |'
says 'softmax f32 4096 x 1024, torch softmax: RuntimeError: it fails'; says '| host cost of one launch | blk | 0.0025 |'
status 0 "table into a page" python3 tests/bench/table.py "$dir/peers.csv" --write="$dir/page.md"
[ "$(sed -n '1p;$p' "$dir/page.md" | tr '\n' ' ')" = "before after " ] && grep -q '^| add f32 2^20' "$dir/page.md" && ! grep -q '^old$' "$dir/page.md" && ok || bad "the page"
cat >"$dir/matrix.csv" <<'C'
section,work,who,variant,ms,rate,unit,spread,ratio,note
machine,A GPU,torch 2,Triton 3,,,,,,
matrix,matmul f16 512 x 512 x 512,cuBLAS,matmul,0.010,26.8,TFLOP/s,0.01,,
matrix,matmul f16 512 x 512 x 512,blk,matmul_tensor BM=64,0.008,33.6,TFLOP/s,0.01,1.25,
matrix,matmul f16 512 x 512 x 512,blk tuned,matmul_tensor BM=128,0.0125,21.5,TFLOP/s,0.01,0.8,
matrix,matmul f16 512 x 512 x 512,blk pointers,matmul BM=64,0.0125,21.5,TFLOP/s,0.01,0.8,
matrix,matmul f16 1000 x 1032 x 1056,cuBLAS,matmul,0.010,218,TFLOP/s,0.01,,
matrix,matmul f16 1000 x 1032 x 1056,blk,matmul_tensor BM=64,0.0125,174,TFLOP/s,0.01,0.8,
matrix,matmul e4m3 8192 x 8192 x 8192,cuBLASLt,_scaled_mm,1.0,1100,TFLOP/s,0.01,,
matrix,matmul e4m3 8192 x 8192 x 8192,blk tuned,matmul_fp8_tensor BM=128,1.25,880,TFLOP/s,0.01,0.8,
tuner,matmul_tensor 512 512 512,blk,"10 configurations, BM=128",1500,,,,,
C
status 0 "matrix table" python3 tests/bench/table.py "$dir/matrix.csv"
says '| matmul f16 512 x 512 x 512 | 34 | 22 | 22 | 27 |  | 1.25 | 0.80 | 1.00, met | 0.80 | 0.85, missed | matmul_tensor BM=64 |'
says '| matmul f16 1000 x 1032 x 1056 | 174 |  |  | 218 |  | 0.80 |  | 0.92, missed |'; says '| matmul e4m3 8192 x 8192 x 8192 |  | 880 |  | 1100 |'
says 'Geometric mean over f16: 1.000 of cuBLAS, 0.800 with'; says '| matmul_tensor 512 512 512 | 1.50 | 10 configurations, BM=128 |'
silent 'bytes moved'
printf '<!-- matrix -->\nold\n<!-- /matrix -->\n' >>"$dir/page.md"
status 0 "matrix table into a page" python3 tests/bench/table.py "$dir/matrix.csv" --write="$dir/page.md"
grep -q '^| matmul f16' "$dir/page.md" && grep -q '^| add f32 2^20' "$dir/page.md" && ! grep -q '^old$' "$dir/page.md" && ok || bad "the page with both"
for mark in memory host products; do printf '<!-- %s -->\nold\n<!-- /%s -->\n' $mark $mark; done >"$dir/short.md"
status 0 "short tables" python3 tests/bench/table.py "$dir/peers.csv" --write="$dir/short.md,$dir/page.md"
status 0 "short matrix table" python3 tests/bench/table.py "$dir/matrix.csv" --write="$dir/short.md"
cp "$dir/short.md" "$dir/out"
says '| add f32 2^20 | 12.6 MB | 3146 | 2517 | 2097 |  | 1.25 | 1.25 | 1.05, met |'; says '| host cost of one launch | 0.0025 (0.98) |'
says '| matmul f16 512 x 512 x 512 | 34 | 22 | 22 | 27 |  | 1.25 | 1.00, met | 0.80 |  |  |  |  |  |'; silent 'old'
printf 'no marks\n' >"$dir/none.md"
status 1 "a page without marks" python3 tests/bench/table.py "$dir/peers.csv" --write="$dir/none.md"
if command -v gnuplot >/dev/null; then
	status 0 "chart" python3 tests/bench/table.py "$dir/peers.csv" --plot="$dir/chart.svg"
	grep -q 'Triton, tutorial' "$dir/chart.svg" && ok || bad "no chart"
else skip 2; fi
status 1 "table of nothing" python3 tests/bench/table.py
says 'usage: '
python3 tests/bench/blk_abi.py >"$dir/abi.c"
status 0 "the structs of peers.py" cc -std=c11 -fsyntax-only -Iruntime "$dir/abi.c"
# All suites of a folder side by side: what fails, what does not end, and what is not there.
mkdir -p "$dir/gpu/device" "$dir/gpu/bin/examples"
printf '#!/bin/sh\necho "$@"; echo "5 passed, 0 failed"\n' >"$dir/gpu/device/good"
printf '#!/bin/sh\necho what is wrong; echo "3 passed, 2 failed"; exit 1\n' >"$dir/gpu/device/wrong"
printf '#!/bin/sh\necho "$@"; echo "7 passed, 0 failed, 1 skipped"\n' >"$dir/gpu/bin/examples/shown"
printf '#!/bin/sh\nsleep 60\n' >"$dir/gpu/device/endless"
chmod +x "$dir"/gpu/device/* "$dir"/gpu/bin/examples/*
echo 'echo "a tool, $*"; exit 3' >"$dir/tool"
status 0 "suites on a GPU" sh tests/gpu.sh "$dir/gpu" 30 good shown
says '^good .* 5 passed, 0 failed$'
says '^12 passed, 0 failed, 0 of 2 programs'
status 1 "suites that a tool runs" env BLK_GPU_TOOL="sh $dir/tool --hard" sh tests/gpu.sh "$dir/gpu" 30 good
says '^    a tool, --hard .*gpu/device/good --device=cuda$'
status 1 "a suite that fails, one without an end, one that is not there" sh tests/gpu.sh "$dir/gpu" 1 wrong endless none
says '^    what is wrong$'
says 'exit status 124: ended after 1 s'
says 'there is no .*gpu/bin/examples/none'
says '^3 passed, 2 failed, 3 of 3 programs'
status 1 "all suites" sh tests/gpu.sh "$dir/gpu" 1
says '^15 passed, 2 failed, 2 of 4 programs'
for f in tests/bench/*.py; do
	status 0 "$f" python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$f"
done
finish
