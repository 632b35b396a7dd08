#!/bin/sh
# usage: tests/run/passes.sh BUILD     Passes on the text of tile IR: tests/passes/PASS/*.ir, held against their CHECK lines by FileCheck.
# A file's first line says what runs: `; blkc --target=sm_90a --passes=pipeline`.
. "$(dirname "$0")/../lib.sh"
build=$1
check=$("${LLVM_CONFIG:-llvm-config-22}" --bindir)/FileCheck
[ -x "$check" ] || check=$(command -v FileCheck-22 || command -v FileCheck)
if [ -z "$check" ]; then
	skip 1
	finish
fi
made=$(mktemp)
why=$(mktemp)
trap 'rm -f "$made" "$why"' EXIT
for ir in tests/passes/*/*.ir; do
	options=$(sed -n '1s/^; blkc //p' "$ir")
	[ -n "$options" ] || bad "$ir: its first line does not say what runs"
	# shellcheck disable=SC2086
	"$build/bin/blkc" $options "$ir" >"$made" 2>"$why" && "$check" --allow-empty "$ir" <"$made" 2>"$why"
	result $? "$ir"
done
# what is refused
refused() { # words, options
	words=$1
	shift
	"$build/bin/blkc" "$@" tests/passes/cse/regions.ir >"$made" 2>"$why"
	[ $? != 0 ] && grep -q -- "$words" "$why"
	result $? "blkc $*: $words"
}
refused "no pass 'nothing'" --passes=nothing
refused "no pass 'dse'" --passes=dse
refused "no pass 'cs'" --passes=cs
refused "'barriers' does not take IR of the tile level" --passes=cse,barriers
refused "no other --emit" --passes=cse --emit=ptx
"$build/bin/blkc" --list-passes | grep -q '^barriers ' && ok || bad "--list-passes"
finish
