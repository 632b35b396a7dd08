#!/bin/sh
# usage: usage.sh BUILD      blkc and wrong command lines: exit status 2 and a line that names the word and the way out; nothing is written.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc
cp "$root/examples/vector_add/vector_add.blk" add.blk
echo 'const N = 3;' >none.blk
: >empty.blk
many() { # how often, words: repeated
	i=0
	while [ $i -lt "$1" ]; do
		printf '%s ' "$2"
		i=$((i + 1))
	done
}
wrong() { # words of the message, arguments
	words=$1
	shift
	status 2 "$*" "$blkc" "$@"
	says "$words"
	[ -z "$(ls ./*.ptx 2>/dev/null)" ] && ok || bad "$*: an output after an error"
}
wrong 'no input file'
wrong 'no input file' --
wrong "unknown --emit kind 'nothing'" add.blk --emit=nothing
wrong '--emit needs a kind' add.blk --emit=
wrong "-D needs NAME=VALUE, not 'N'" add.blk -D N
wrong "-D needs NAME=VALUE, not '=3'" add.blk -D =3
wrong '-D needs NAME=VALUE' add.blk -D
wrong '-I needs a folder' add.blk -I
wrong "takes x%16 or stride=1, not 'x'" add.blk --specialize=x
wrong "takes x%16 or stride=1, not '%16'" add.blk --specialize=%16
for promise in x%3 x%0 x%8192 x%16k x% n=2 n=; do wrong "a power of two up to 4096 after % and 1 after =: '$promise'" add.blk "--specialize=$promise"; done
wrong "unknown option or missing value: '--nothing'" add.blk --nothing
wrong "unknown option or missing value: '--kernel'" add.blk --kernel
wrong "--diagnostics is text or json, not 'xml'" add.blk --diagnostics=xml
wrong "--target=native finds no GPU" add.blk --target=native
wrong "unknown target 'sm_12'" add.blk --target=sm_12
wrong "there is no pass 'nothing'" add.blk --print-after=nothing
wrong 'object and asm are for --target=cpu' add.blk --emit=object
wrong 'target cpu has no layouts, PTX, cubin' add.blk --target=cpu --emit=ptx
wrong '-o x.ptx with several input files' add.blk none.blk -o x.ptx
wrong '-o x.ptx with several --emit kinds' add.blk --emit=ptx,tile -o x.ptx
wrong 'prints text where --diagnostics=json prints JSON' add.blk --explain --diagnostics=json
wrong 'prints text where --diagnostics=json prints JSON' add.blk --time-passes --diagnostics=json
wrong 'prints text where --diagnostics=json prints JSON' add.blk --print-after=all --diagnostics=json
wrong '--emit=package stands alone' add.blk --emit=package,ptx
wrong "several targets are for --emit=package: 'sm_80,sm_90'" add.blk --target=sm_80,sm_90
for limit in --max-code --ptxas-seconds --ptxas-memory; do wrong "$limit" add.blk "$limit=many"; done
# shellcheck disable=SC2046
{
	wrong "more than 256 -D: 'A=1'" add.blk $(many 257 '-DA=1')
	wrong "more than 256 -I: '-Ix'" add.blk $(many 257 -Ix)
	wrong "more than 256 promises: 'x%16'" add.blk "--specialize=$(many 257 x%16, | tr -d ' ')"
	wrong "more than 256 files: 'add.blk'" $(many 257 add.blk)
}
# what is right, and what fails behind a right command line
wrong "add.blk has no kernel 'ad'" add.blk --kernel=ad -o x.ptx
status 0 "a name behind --" "$blkc" -o - -- add.blk; says '.visible .entry add'
status 0 "help" "$blkc" --help; says '^usage: blkc'
status 0 "-h" "$blkc" -h; says '^usage: blkc'
status 0 "verified" "$blkc" --verify-each add.blk -o - ; says '.visible .entry'
status 0 "an empty file's tokens" "$blkc" --emit=tokens -o - empty.blk
status 0 "a file without kernels, checked" "$blkc" --emit=tile -o - none.blk
if [ -e /dev/full ]; then
	"$blkc" -o - add.blk >/dev/full 2>"$dir/err"
	[ $? = 1 ] && grep -q 'blkc: cannot write standard output' "$dir/err" && ok || bad "a full standard output: $(cat "$dir/err")"
else skip 1; fi
finish
