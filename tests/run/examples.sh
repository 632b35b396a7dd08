#!/bin/sh
# usage: examples.sh BUILD [EXAMPLE]      Every example, or one, on the cpu device, on the simulator, and on the GPU where there is one; products
# on the simulator of sm_90a too, for which they become other code, and on both with data landing at the latest moment.
# Where a run takes some of the cases only (ONE_CASE_IN), products run on cpu and, with data landing late, as sm_90a's code.
. "$(dirname "$0")/../lib.sh"
for e in examples/${2:-*}/main.c; do
	program=$1/bin/examples/$(basename "$(dirname "$e")")
	case $program in
	*/matmul* | */attention*) devices="cpu sim sim:sm_90a sim,1 sim:sm_90a,1" some="cpu sim:sm_90a,1" ;;
	*) devices="cpu sim" some=$devices ;;
	esac
	[ -z "${ONE_CASE_IN:-}" ] || devices=$some
	for device in $devices; do
		case $device in
		*,*) suite "$program" --device="${device%,*}" --sim-seed="${device#*,}" --quick ;;
		*) suite "$program" --device="$device" --quick ;;
		esac
	done
	if have_gpu; then suite "$program" --device=cuda --quick; else skip 1; fi
done
finish
