#!/bin/sh
# usage: device.sh BUILD     Gathers what a GPU machine needs from BUILD into BUILD/blk: at most 60 MB, no LLVM needed there.
set -eu
out=$1/blk
rm -rf "$out"
mkdir -p "$out/bin" "$out/lib" "$out/tests"
cp "$1"/bin/blk* "$out/bin/"
cp "$1"/lib/*.so.* "$1/lib/blk-trial" "$out/lib/"
cp -r "$1/bin/examples" "$out/bin/"
cp "$1/fuzz-programs" "$out/"
for d in examples/ examples/*/; do
	mkdir -p "$out/$d"
	cp "$d"*.blk "$out/$d"
done
for d in bench device; do
	mkdir -p "$out/$d"
	find "$1/$d" -maxdepth 1 -type f -perm -u+x -exec cp {} "$out/$d/" \;
done
cp -r tests/bench "$out/tests/"
cp tests/gpu.sh "$out/tests/"
mkdir -p "$out/tests/data" && cp tests/data/* "$out/tests/data/"
find "$out" -type f -perm -u+x -exec strip {} + 2>/dev/null || true
strip "$out"/lib/*.so.*
size=$(du -sm "$out" | cut -f1)
echo "$out: $size MB"
[ "$size" -le 60 ] || { echo "more than 60 MB" >&2; exit 1; }
