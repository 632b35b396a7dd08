#!/bin/sh
# usage: tests/run/passes.sh BUILD     Passes on the text of tile IR: tests/passes/PASS/*.ir, held against their CHECK lines by FileCheck.
# A file's first lines say what runs, each held against all of the file: `; blkc --target=sm_90a --passes=pipeline`.
# `; not blkc ..` shall fail, and what it says is held against the CHECK lines.
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
first_lines() { # file: those that say what runs
	awk '!/^; (not )?blkc / { exit } 1' "$1"
}
run() { # options: what the passes leave is in $made
	# shellcheck disable=SC2086
	timeout 60 "$build/bin/blkc" $1 "$ir" >"$made" 2>"$why"
}
for ir in tests/passes/*/*.ir; do
	first_lines "$ir" | grep -q . || bad "$ir: its first line does not say what runs"
	while read -r _ how options; do
		if [ "$how" = not ]; then
			! run "${options#blkc }" && cp "$why" "$made"
		else
			run "$options"
		fi && "$check" --allow-empty "$ir" <"$made" 2>"$why"
		result $? "$ir ($how $options)"
	done <<-EOF
		$(first_lines "$ir")
	EOF
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
# a second function, and what is none
printf 'func @f() {\nreturn\n}\nfunc @g() {\nreturn\n}\n' >"$made"
[ "$("$build/bin/blkc" --passes=dce - <"$made" | grep -c '^func @[fg]()')" = 2 ]
result $? "two functions"
echo x >>"$made"
"$build/bin/blkc" --passes=dce - <"$made" 2>"$why" >/dev/null
[ $? = 1 ] && grep -q '^<stdin>:7:1: error\[E0110\]: tile IR: expected .func' "$why"
result $? "behind two functions"
"$build/bin/blkc" --list-passes >"$made"
grep -q '^barriers ' "$made" && ok || bad "--list-passes"
# every pass has a file
for pass in $(sed 's/ .*//' "$made" | sort -u); do
	[ -n "$(ls "tests/passes/$pass" 2>/dev/null)" ]
	result $? "tests/passes/$pass"
done
finish
