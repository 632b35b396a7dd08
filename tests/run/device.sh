#!/bin/sh
# usage: device.sh BUILD [SUITE]      The device suites, or one, on cpu, on the simulator, and on the GPU where there is one.
# A simulated case costs one more compile, so of the large suites only some run there: the words are in their names.
. "$(dirname "$0")/../lib.sh"
part() { # suite
	case $1 in
	elementwise) echo "cast div exp f16" ;;
	scans) echo "sort histogram gather" ;;
	dot) echo "tile.f16. tile.i8 loop.tf32. form. pairs.f16 pairs.i8 pairs.tf32. pairs.e4m3." ;;
	shapes) echo "asm join gather" ;;
	tiles) echo "reduce argmax tensor" ;;
	tensors) echo "copy.f nn tn" ;;
	clusters) echo "second." ;;
	esac
}
# What sm_90a does in its own way.
hopper() { # suite
	case $1 in
	dot) echo "tile.f16.64x tile.f16.128 tile.f16.256x16 tile.i8.128 tile.e4m3.128x64 loop.f16. loop.e4m3. loop.tf32.
	stages.f16.rows64 pairs.f16. pairs.bf16 pairs.tf32. pairs.i8 pairs.e" ;;
	esac
}
for t in "$1"/device/${2:-*}; do
	[ -x "$t" ] && [ -f "$t" ] || continue
	for device in cpu sim cuda; do
		words=
		if [ $device = cuda ] && ! have_gpu; then
			skip 1
			continue
		fi
		[ $device = sim ] && words=$(part "$(basename "$t")")
		echo "$(basename "$t") on $device:"
		[ $device = cuda ] && words=--all
		suite "$t" --device=$device $words
	done
	words=$(hopper "$(basename "$t")")
	[ -n "$words" ] || continue
	echo "$(basename "$t") on sim:sm_90a:"
	suite "$t" --device=sim:sm_90a $words
done
# What only Hopper has: bulk copies by tensor maps, and instructions.
for t in atomics clusters tensors instructions; do
	[ "${2:-$t}" = $t ] || continue
	words=
	[ $t = atomics ] && words=tensor
	echo "$t on sim:sm_90a:"
	suite "$1/device/$t" --device=sim:sm_90a $words
done
finish
