#!/bin/sh
# usage: tests/run/limits.sh BUILD     Programs whose addresses are limited (ulimit -v): at every limit they do their work or say that memory is out.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
if grep -q '__asan_init\|__tsan_init' "$build/bin/blkc"; then # their shadow memory needs all addresses
	skip 1
	finish
fi
{ echo 'kernel k(x: *f32) grid(1) { var a = 0.0;'; i=0; while [ $i -lt 200 ]; do echo "a = a * 1.5 + load(x + $i);"; i=$((i + 1)); done; echo 'store(x, a); }'; } >long.blk
export BLK_CACHE=off

limited() { # KiB command...: 0, or 1 with a sentence; 127 and no word of ours where the system cannot even load it.  $got says which
	limit=$1
	shift
	# shellcheck disable=SC3045 # dash has it
	(ulimit -c 0; ulimit -v "$limit"; exec timeout 120 "$@") >out 2>err
	got=$?
	case $got in
	0) ok ;;
	1) grep -q 'out of memory' out err && ok || { bad "$* with $limit KiB: exit status 1 and no word of memory"; cat out err; } ;;
	127) grep -q 'error while loading shared libraries' err && ok || bad "$* with $limit KiB: exit status 127" ;;
	*) bad "$* with $limit KiB: exit status $got"; cat out err ;;
	esac
}
sweep() { # first step command...: limits from `first` until it succeeds three times; both other ends are seen on the way
	at=$1 step=$2 good=0 out_of_memory=0
	shift 2
	while [ $good -lt 3 ] && [ "$at" -lt 4000000 ]; do
		limited "$at" "$@"
		[ $got = 0 ] && good=$((good + 1))
		[ $got = 1 ] && out_of_memory=$((out_of_memory + 1))
		at=$((at + step))
	done
	[ $good = 3 ] && [ $out_of_memory -ge 3 ] && ok || bad "$*: $out_of_memory limits were too low, $good were not"
}
sweep 8000 3000 "$build/bin/blkc" long.blk --target=sm_90a -o long.ptx
sweep 8000 3000 "$build/bin/blkc" long.blk --target=cpu -o long.o
sweep 16000 9000 "$build/bin/blkrun" --device=cpu long.blk x='f32[200]'
sweep 16000 9000 "$build/bin/blkrun" --device=sim long.blk x='f32[200]'
finish
