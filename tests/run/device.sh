#!/bin/sh
# usage: device.sh BUILD [SUITE]      The device suites, or one, on cpu, on the simulator, and on the GPU where there is one.
# Those with asynchronous copies run there twice, with data landing at the earliest and at the latest moment (docs/sim.md).
. "$(dirname "$0")/../lib.sh"
build=$1
part() { # suite: where a whole one takes a minute on the simulator, words of the cases that run there
	case $1 in
	scans) echo "sort topk cumsum.f32 cumsum_reverse. cumprod last_reverse. affine.i32 affine_reverse.i64 flip. both. carry mixed rows turns" ;;
	esac
}
# What sm_90a does in its own way: bulk copies by tensor maps, wgmma, and instructions that it alone has.
hopper() { # suite: its words, nothing for all of it, - for none
	case $1 in
	dot) echo "tile.f16.64x tile.f16.128 tile.f16.256x16 tile.bf16.64x tile.i8.128 tile.e4m3.128x64 tile.e5m2.128x64
	pairs. batch. zeros. loop. stages. form." ;;
	atomics) echo "tensor" ;;
	elementwise) echo ".i16 umulhi" ;;
	types) echo "bool.f8 bool.i16 constant.u meet" ;;
	parts) echo "product reduce.sum place" ;;
	aliases | bounds | clusters | counters | early_return | extents | gemm | instructions | liberties | lines | loops | masks | maxima) ;;
	operands | tensors | tuning | waves | windows) ;;
	*) echo "-" ;;
	esac
}
simulated() { # device suite [word...]
	device=$1 t=$2
	shift 2
	echo "$t on $device:"
	suite "$build/device/$t" --device="$device" "$@"
	case $t in
	dot) set -- loop. stages. form. ;; # the others copy nothing
	clusters | counters | early_return | instructions | loops | maxima | operands | tensors | waves | windows) ;;
	gemm) set -- rows. ;;
	atomics) [ "$device" = sim:sm_90a ] || return ;;
	*) return ;;
	esac
	echo "$t on $device, data landing late:"
	suite "$build/device/$t" --device="$device" --sim-seed=1 "$@"
}
for t in "$build"/device/${2:-*}; do
	[ -x "$t" ] && [ -f "$t" ] || continue
	t=$(basename "$t")
	echo "$t on cpu:"
	suite "$build/device/$t" --device=cpu
	# shellcheck disable=SC2046
	simulated sim "$t" $(part "$t")
	words=$(hopper "$t")
	# shellcheck disable=SC2086
	[ "$words" = - ] || simulated sim:sm_90a "$t" $words
	if have_gpu; then
		echo "$t on cuda:"
		suite "$build/device/$t" --device=cuda --all
	else
		skip 1
	fi
done
finish
