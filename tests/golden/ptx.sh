#!/bin/sh
# usage: tests/golden/ptx.sh BUILD     PTX of small kernels against the lines in them.
#
# ptx/*.blk: `// run: FLAGS` gives blkc's flags (--target, --specialize); the CHECK lines are FileCheck's.  Each is also
# compiled twice (the same bytes must come out) and, where ptxas is installed, for every GPU target: without a warning,
# without spilled registers.
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.." || exit 2
blkc=${1:-build}/bin/blkc
check=$(command -v FileCheck-22 || command -v FileCheck)
ptxas=$(PATH=$PATH:/usr/local/cuda/bin command -v ptxas)
if [ ! -x "$blkc" ] || [ -z "$check" ]; then
	skip 1
	finish
fi
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
why=$tmp/why
emit() { # file flags...: PTX into $tmp/ptx
	file=$1
	shift
	"$blkc" --emit=ptx "$@" -o "$tmp/ptx" "$file" >"$tmp/why" 2>&1
}
for f in tests/golden/ptx/*.blk; do
	flags=$(sed -n 's|^// run: *||p' "$f" | head -1)
	# shellcheck disable=SC2086
	emit "$f" $flags && "$check" --input-file="$tmp/ptx" "$f" >"$tmp/why" 2>&1
	result $? "$f"
	cp "$tmp/ptx" "$tmp/first"
	# shellcheck disable=SC2086
	emit "$f" $flags && cmp "$tmp/first" "$tmp/ptx" >"$tmp/why" 2>&1
	result $? "$f, twice"
	for target in $("$blkc" --list-targets | sed -n 's/^ *\(sm_[0-9a-z]*\).*/\1/p'); do
		if [ -z "$ptxas" ]; then
			skip 1
			continue
		fi
		# shellcheck disable=SC2086
		emit "$f" $flags --target="$target"
		made=$?
		if [ $made != 0 ] && grep -q E0722 "$tmp/why"; then # the stages that it asks for do not fit there
			skip 1
			continue
		fi
		[ $made = 0 ] &&
			"$ptxas" -v -arch="$target" "$tmp/ptx" -o "$tmp/cubin" >"$tmp/why" 2>&1 &&
			! grep -qE 'warning|\(C75' "$tmp/why" && ! grep -q '[1-9][0-9]* bytes spill' "$tmp/why"
		result $? "$f for $target"
	done
done
finish
