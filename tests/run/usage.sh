#!/bin/sh
# usage: usage.sh BUILD      blkc and blkrun with wrong command lines: exit status 2 and a line that names the word and the way out;
# nothing is written, nothing runs.
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
wrong "unknown option '--tagret=sm_90a'; did you mean '--target'" add.blk --tagret=sm_90a
wrong "unknown option '-Werorr'; did you mean '-Werror'" add.blk -Werorr
wrong "unknown option or missing value: '-x'" add.blk -x
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
# the GPU of this machine, by a driver that is played: $CAPABILITY is what it has, $REFUSES how many of its calls do not fail
cat >cuda.c <<'END'
#include <stdlib.h>
static int left(void)
{
	static int calls;
	const char *most = getenv("REFUSES");
	return !most || calls++ < atoi(most);
}
int cuInit(unsigned flags)
{
	return left() && flags == 0 ? 0 : 100;
}
#ifndef BARE
int cuDeviceGetAttribute(int *out, int attribute, int device)
{
	int capability = atoi(getenv("CAPABILITY"));
	if (!left() || device) return 1;
	*out = attribute == 75 ? capability / 10 : attribute == 76 ? capability % 10 : -1;
	return 0;
}
#endif
END
mkdir driver bare
if cc -shared -fPIC -o driver/libcuda.so.1 cuda.c 2>err && cc -DBARE -shared -fPIC -o bare/libcuda.so.1 cuda.c; then
	for pair in 80:sm_80 86:sm_86 88:sm_86 89:sm_89 90:sm_90a 91:sm_90 100:sm_100a 120:sm_120a; do
		status 0 "a GPU of ${pair%:*}" env LD_LIBRARY_PATH="$dir/driver" CAPABILITY="${pair%:*}" "$blkc" --target=native -o - add.blk
		says "^\.target ${pair#*:}\$"
	done
	native() { # name, folder, how many calls do not fail, capability
		status 2 "$1" env LD_LIBRARY_PATH="$dir/$2" REFUSES="$3" CAPABILITY="$4" "$blkc" --target=native -o - add.blk
		says '--target=native finds no GPU and driver here'
	}
	native "a GPU that is too old" driver 9 75
	for calls in 0 1 2; do native "a driver that refuses after $calls" driver $calls 90; done
	native "half a driver" bare 9 90
else skip 26; fi

# what is right, and what fails behind a right command line
wrong "add.blk has no kernel 'ad'" add.blk --kernel=ad -o x.ptx
status 0 "a name behind --" "$blkc" -o - -- add.blk; says '.visible .entry add'
status 0 "help" "$blkc" --help; says '^usage: blkc'
status 0 "-h" "$blkc" -h; says '^usage: blkc'
status 0 "verified" "$blkc" --verify-each add.blk -o - ; says '.visible .entry'
status 0 "an empty file's tokens" "$blkc" --emit=tokens -o - empty.blk
status 0 "an empty file's tree" "$blkc" --emit=ast,tokens empty.blk; [ -s empty.ast ] && [ -s empty.tokens ] && ok || bad "no tree or no tokens"
printf 'kernel k(y: *f32) { store(y, 1.0)' >half.blk
status 1 "half a file's tree" "$blkc" --emit=ast -o half.ast half.blk; [ -e half.ast ] && bad "the tree of half a file" || ok
# shellcheck disable=SC2046
wrong "more than 256 files: 'add.blk'" -- $(many 257 add.blk)
status 0 "a file without kernels, checked" "$blkc" --emit=tile -o - none.blk
if [ -e /dev/full ]; then
	"$blkc" -o - add.blk >/dev/full 2>"$dir/err"
	[ $? = 1 ] && grep -q 'blkc: cannot write standard output' "$dir/err" && ok || bad "a full standard output: $(cat "$dir/err")"
else skip 1; fi

# ---- blkrun ----
run() { # status, words, arguments
	code=$1 words=$2
	shift 2
	status "$code" "blkrun $*" "$build/bin/blkrun" --device=cpu "$@"
	says_text "$words"
	silent 'add on'
}
run 2 'no file given; blkrun --help'
run 2 'unknown option --nothing' add.blk --nothing
run 2 'unknown option --nothing=3' add.blk --nothing=3
run 2 'unknown option --bench=3' add.blk --bench=3
run 2 'unknown option -x' add.blk -x
run 2 'unknown option --chekc; did you mean --check?' add.blk --chekc cpu
run 2 'unknown option --' -- add.blk
run 2 'unknown option -' -
run 2 'a value is missing after --grid' add.blk --grid
run 2 'NAME=VALUE is missing after -D' add.blk -D
run 2 'name=value is missing after -D' add.blk -D BLOCK
run 2 'name=value is missing after n' add.blk n
run 2 'name=value is missing after =8' add.blk =8
run 2 'name=value is missing after --out' add.blk --out x
run 2 "the kernel's name is missing behind add.blk" add.blk:
run 2 "no file given; blkrun --help says what to type"
run 2 'two buffers cannot be written to one file: o.npy' add.blk --out x=o.npy --out y=o.npy
run 2 'given twice: x' add.blk --out x=o.npy --out x=p.npy
run 2 '--check is given twice, and a run is compared once: z.npy' add.blk --check cpu --check z.npy
run 2 "a file's name is missing after --plot" add.blk --plot=
run 2 '--diagnostics is text or json, not xml' add.blk --diagnostics=xml
run 2 '--cache is list, clear, export or import, not sell' --cache=sell
run 2 'a file is missing after --cache=export' --cache=export
run 2 'a source or values mean nothing to --cache=import' add.blk --cache=import
run 2 'a source or values mean nothing to --cache=export' cache.tar n=3 --cache=export
run 2 'a source or values mean nothing to --cache=export' add.blkpkg --cache=export
for what in list clear; do
	run 2 "a source or values mean nothing to --cache=$what" add.blk --cache=$what
	run 2 "a source or values mean nothing to --cache=$what" add.blk n=8 --cache=$what
done
mkdir folder.blk.d
for file in rec:ords rec: folder.blk.d/records .blk.records; do
	BLK_CACHE_DIR=$dir/none run 0 "0 tuning records written to $file" --cache=export "$file"
	[ -e "$file" ] && [ ! -e rec ] && ok || bad "$file is not there"
done
for grid in x 1,x 1,2,3,4 -1 4294967296 99999999999999999999 1,99999999999999999999 1. ''; do run 2 '--grid takes one to three numbers' add.blk "--grid=$grid"; done
for t in x 1x -1 nan ''; do run 2 'a tolerance is a number, not' add.blk "--rtol=$t"; run 2 'a tolerance is a number, not' add.blk "--atol=$t"; done
for n in x -1 1x 18446744073709551616 ''; do for o in sim-seed sim-steps sim-budget sim-schedules; do run 2 "--$o is a number up to" add.blk "--$o=$n"; done; done
run 2 '--sim-schedules is a number up to 100000' add.blk --sim-schedules=100001
# shellcheck disable=SC2046
{
	run 2 'more than 256 of n257=3' add.blk $(seq -f 'n%g=3' 257)
	run 2 'more than 64 of -D' add.blk $(seq -f '-DA%g=1' 65)
	run 2 'more than 64 of --out' add.blk $(seq 65 | sed 's/.*/--out=x&=y&/')
}
# values: what is wrong with each is said behind its name
value() { # words, value of n or of x
	words=$1
	shift
	case $1 in
	n=*) run 2 "$words" add.blk 'x=f32[8]' 'y=f32[8]' 'z=f32[8]' "$@" ;;
	*) run 2 "$words" add.blk n=8 'y=f32[8]' 'z=f32[8]' "$@" ;;
	esac
}
for n in x 3x 1.5; do value 'it is no integer' "n=$n"; done
for n in 2147483648 -2147483649 99999999999999999999; do value 'it does not fit the type' "n=$n"; done
value 'it is empty' n=
value 'a buffer is written f32[4096,1024]:randn or @file.npy' x=8
value 'its element type is unknown' 'x=f33[8]'
value 'an extent is no number' 'x=f32[n,]'
value 'an extent is too large' 'x=f32[99999999999999999999]'
value 'an extent is no integer' 'x=f32[8.5]'
value "its extents do not end with ']'" 'x=f32[8'
value 'it has more than 8 extents' 'x=f32[1,1,1,1,1,1,1,1,1]'
value "behind its extents stands ':'" 'x=f32[8]randn'
value 'it is filled in an unknown way' 'x=f32[8]:nothing'
value 'it is filled in an unknown way' 'x=f32[8]:averylongkindoffilling'
for seed in x '' -1 99999999999999999999; do value 'its seed is no number' "x=f32[8]:randn:$seed"; done
for text in --help -h; do status 0 "blkrun $text" "$build/bin/blkrun" $text; says '^usage: blkrun'; done
status 0 "blkrun --version" "$build/bin/blkrun" --version; says '^blk'
# conditions
echo 'kernel k(y: *i32, b: bool) grid(1) { store(y, where(b, 3, 4)); }' >bool.blk
for b in true 1 false 0; do status 0 "b=$b" "$build/bin/blkrun" --device=cpu bool.blk "y=i32[1]" "b=$b"; done
run 2 'a bool is true or false' bool.blk 'y=i32[1]' b=maybe
# colours: on a terminal that has them, where NO_COLOR does not say otherwise; the text stays the same
cat >wrong.blk <<'E'
kernel k(y: *f32, const B: i32 = 8) grid(1) {
	store(y + arange(0, B), fp16);
}
E
cat >terminal.py <<'E'
import os, pty, sys
pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 4096))
E
shown() { # settings command...: what it says on a terminal
	settings=$1
	shift
	# shellcheck disable=SC2086
	env -u NO_COLOR TERM=xterm $settings python3 terminal.py "$@" </dev/null | tr -d '\r'
}
escape=$(printf '\033')
"$blkc" wrong.blk -o out.ptx 2>plain
grep -q "$escape" plain && bad "colours in a file" || ok
grep -q 'error\[E0201\]' plain && grep -q '^hint' plain && ok || { bad "an error with a hint"; cat plain; }
for setting in NO_COLOR=1 TERM=dumb; do
	shown $setting "$blkc" wrong.blk -o out.ptx >said
	cmp -s plain said && ok || { bad "$setting"; diff plain said; }
done
for setting in A=1 NO_COLOR=; do
	shown $setting "$blkc" wrong.blk -o out.ptx >said
	grep -q "$escape\[1;31merror\[E0201\]$escape\[0m" said && grep -q "$escape\[1;36mhint:$escape" said && ok || { bad "colours"; cat said; }
	sed "s/$escape\[[0-9;]*m//g" said | cmp -s plain - && ok || bad "colours changed the text"
done
shown A=1 "$build/bin/blkrun" --device=cpu wrong.blk 'y=f32[8]' >said
grep -q "$escape\[1;31merror\[E0201\]" said && ok || { bad "blkrun's colours"; cat said; }
echo 'kernel k(y: *f32) grid(100000) { store(y + program_id(0) * 100000, 1.0); }' >wide.blk
shown A=1 "$blkc" wide.blk -o out.ptx >said
grep -q "$escape\[1;33mwarning\[W0220\]" said && ok || { bad "a warning's colour"; cat said; }
finish
