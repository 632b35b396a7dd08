#!/bin/sh
# usage: tests/golden/counters.sh BUILD     What the examples' code costs, in numbers that the simulator counts.
#
# counters/*.txt: a line "$ WORDS" is a launch, by blkrun's words in the folder examples; below stand its counters.  Lines
# with '#' say which of them are the least possible, and why others are not.  A layout that gets worse, a barrier more, a
# conflict: a difference, which is printed.  Where it is meant (the change's text says why), UPDATE=1 takes it over;
# read the remarks then.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
why=$dir/why
# Memory, exchange and synchronisation; how many instructions the arithmetic takes is LLVM's business.
kept='/^  \(load\|barrier\|atomic\|shuffle\|matrix\|global\|shared\|bank\)/p; /^blkrun:/p'
BLK_CACHE=off BLK_CPU_THREADS=1 # one thread: programs that wait for each other always take the same turns
export BLK_CACHE BLK_CPU_THREADS
cd "$root/examples" || exit 2
for f in "$root"/tests/golden/counters/*.txt; do
	while IFS= read -r line; do
		case $line in
		'#'* | '') echo "$line" ;;
		'$ '*)
			echo "$line"
			# shellcheck disable=SC2086
			"$build/bin/blkrun" --device=sim --counters ${line#??} 2>&1 | sed -n "$kept"
			;;
		esac
	done <"$f" >"$dir/now"
	diff -u "$f" "$dir/now" >"$why"
	differs=$?
	[ -z "$UPDATE" ] || cp "$dir/now" "$f"
	[ -n "$UPDATE" ] || result $differs "$f: other counters (UPDATE=1 takes them over)"
done
finish
