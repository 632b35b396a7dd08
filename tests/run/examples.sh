#!/bin/sh
# usage: examples.sh BUILD [EXAMPLE]      Every example, or one, on the cpu device, on the simulator, and on the GPU where there is one; products
# on the simulator of sm_90a too, for which they become other code, and on both with data landing at the latest moment.
. "$(dirname "$0")/../lib.sh"
for e in examples/${2:-*}/main.c; do
	program=$1/bin/examples/$(basename "$(dirname "$e")")
	suite "$program" --device=cpu --quick
	suite "$program" --device=sim --quick
	case $program in
	*/matmul* | */attention*)
		suite "$program" --device=sim:sm_90a --quick
		suite "$program" --device=sim --sim-seed=1 --quick
		suite "$program" --device=sim:sm_90a --sim-seed=1 --quick
		;;
	esac
	if have_gpu; then suite "$program" --device=cuda --quick; else skip 1; fi
done
finish
