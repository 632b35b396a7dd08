#!/bin/sh
# usage: pages.sh BUILD      The programs and command lines of README.md and of the pages below, run as they are
# printed on the best device: what a page promises of them holds, and none takes long.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
BLK_CACHE_DIR=$dir/cache PATH=$build/bin:$PATH
export BLK_CACHE_DIR PATH
ln -s "$root/examples" examples

# Blocks of a page in a language; a program's first line names its file, and README's only one is softmax.blk.
blocks() { # page language
	awk -v language="$2" '/^```/ { on = $0 == "```" language; if (on) print "// next"; next } on' "$root/$1"
}
programs() { # page
	blocks "$1" blk | awk '
		/^\/\/ next/ { out = ""; next }
		out == "" { out = match($0, /^\/\/ [a-z_]+\.blk: /) ? substr($0, 4, index($0, ":") - 4) : /^\/\/ softmax/ ? "softmax.blk" : "rest.blk" }
		{ print > out }'
}
commands() { # page
	blocks "$1" sh | sed -e :a -e '/\\$/{N;s/\\\n *//;ta' -e '}' | sed -n 's/ *#.*//; s|^build/bin/||; /^blk[a-z]* /p'
}
for page in README.md docs/tutorial.md docs/from-triton.md docs/nvptx.md; do
	programs $page
	commands $page >commands
	[ "$(wc -l <commands)" -ge 3 ] && ok || bad "$page has no commands"
	while read -r line; do
		wanted=0
		case $line in
		*--plot*) # minutes, and gnuplot's
			skip 1
			continue
			;;
		*5000*) wanted=1 ;;
		esac
		# shellcheck disable=SC2086
		status $wanted "$page: $line" $line
		case $line in
		*5000*) says '^blkrun: kernel softmax_rows requires n <= BLOCK (a row fits one tile), which does not hold: n = 5000, BLOCK = 1024$' ;;
		*--check*) says '^check [a-z] against .*: good'; silent 'not written' ;;
		*--tune*) says '^\* ROWS='; says '^9 configurations tried' ;;
		esac
	done <commands
done
# What the tutorial says of the same kernel without its clause.
sed -i '/^ *requires n <= BLOCK/d' softmax.blk
status 1 "no clause" blkrun softmax.blk y=f32[2,5000]:poison x=f32[2,5000]:randn stride=5000 rows=2 n=5000 --check cpu
says_text 'check y: WRONG, 7952 of 10000 elements were not written (they still hold poison), the first at [0, 1024]'
finish
