#!/bin/sh
# usage: tests/golden/counters.sh BUILD     What the examples' code costs, in numbers that the simulator counts.
#
# counters/*.txt: a line "$ WORDS" is a launch, by blkrun's words in a copy of the folder examples; below stand its counters.  Lines
# with '#' say which of them are the least possible, and why others are not.  A layout that gets worse, a barrier more, a
# conflict: a difference, which is printed.  Where it is meant (the change's text says why), UPDATE=1 takes it over;
# read the remarks then.  How many instructions the arithmetic takes is for a part LLVM's business: in the classes of `free`
# there may be fewer, and up to a 16th more.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
why=$dir/why
free='integer|float|half|double|move|predicate, select|branch'
BLK_CACHE=off BLK_CPU_THREADS=1 # one thread: programs that wait for each other always take the same turns
export BLK_CACHE BLK_CPU_THREADS
cp -r "$root/examples/." .
# matmul_grouped: two products that are together what the others of the file are; where their matrices begin in one buffer
npy halves80.npy 4 64 64 128 64 64 128
npy c80.npy 8 0 $((64 * 64))
npy a80.npy 8 0 $((64 * 128))
npy b80.npy 8 0 $((128 * 64))
npy halves90.npy 4 64 128 256 64 128 256
npy c90.npy 8 0 $((64 * 128))
npy a90.npy 8 0 $((64 * 256))
npy b90.npy 8 0 $((256 * 128))
for f in "$root"/tests/golden/counters/*.txt; do
	while IFS= read -r line; do
		case $line in
		'#'* | '') echo "$line" ;;
		'$ '*)
			echo "$line"
			# shellcheck disable=SC2086
			"$build/bin/blkrun" --device=sim --counters ${line#??} 2>&1 |
				sed -n '/^  programs /d; /^  lanes that/d; /^  [a-z]/p; /^blkrun:/p'
			;;
		esac
	done <"$f" >"$dir/now"
	awk -v free="^  ($free) +[0-9]+$" '
		NR == FNR { $0 ~ /^\$/ && at = $0; if ($0 ~ free) held[at, class($0)] = $0; next }
		{ $0 ~ /^\$/ && at = $0; old = $0 ~ free ? held[at, class($0)] : "" }
		old && $NF <= number(old) * 17 / 16 { print old; next }
		{ print }
		function class(line) { sub(/ +[0-9]+$/, "", line); return line }
		function number(line) { sub(/.* /, "", line); return line + 0 }' "$f" "$dir/now" >"$dir/close"
	diff -u "$f" "$dir/close" >"$why"
	differs=$?
	[ -z "$UPDATE" ] || cp "$dir/now" "$f"
	[ -n "$UPDATE" ] || result $differs "$f: other counters (UPDATE=1 takes them over)"
done
finish
