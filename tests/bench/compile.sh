#!/bin/sh
# usage: compile.sh BLKC [LLC]      Time and peak memory of whole compiles beside llc on the LLVM IR that blkc emits.
# Needs hyperfine and GNU time.  BLKC should be a release build (make LLVM_LINK=static).
blkc=$1
llc=${2:-$(llvm-config-22 --bindir)/llc}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for source in examples/*/*.blk; do
	name=$(basename "$source" .blk)
	kernel=$(sed -n 's/^kernel \([a-z0-9_]*\).*/\1/p' "$source" | head -1)
	"$blkc" "$source" --kernel="$kernel" --target=sm_90a --emit=llvm -o "$dir/$name.ll" || exit 1
	hyperfine -N --warmup 5 --runs 60 --export-json "$dir/t.json" \
		"$blkc $source --kernel=$kernel --target=sm_90a -o $dir/a.ptx" \
		"$llc -mcpu=sm_90a $dir/$name.ll -o $dir/b.ptx" >/dev/null 2>&1
	memory() { /usr/bin/time -f %M "$@" 2>&1 >/dev/null | tail -1; }
	ours=$(memory "$blkc" "$source" --kernel="$kernel" --target=sm_90a -o "$dir/a.ptx")
	theirs=$(memory "$llc" -mcpu=sm_90a "$dir/$name.ll" -o "$dir/b.ptx")
	python3 - "$dir/t.json" "$name" "$ours" "$theirs" <<'END'
import json, sys
a, b = (r["median"] * 1e3 for r in json.load(open(sys.argv[1]))["results"])
m, n = int(sys.argv[3]) / 1024, int(sys.argv[4]) / 1024
print(f"{sys.argv[2]:16s} blkc {a:6.1f} ms, llc alone {b:6.1f} ms, ratio {a/b:.2f}   memory {m:5.1f} / {n:5.1f} MiB, ratio {m/n:.2f}")
END
done
