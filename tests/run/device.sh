#!/bin/sh
# usage: device.sh BUILD      The device suites on cpu, on the simulator, and on the GPU where there is one.
# A simulated case costs one more compile, so of the large suites only some run there: the words are in their names.
. "$(dirname "$0")/../lib.sh"
part() { # suite
	case $1 in
	elementwise) echo "cast div exp f16" ;;
	scans) echo "sort histogram gather" ;;
	dot) echo "tile.f16. tile.i8 loop.tf32. form." ;;
	shapes) echo "asm join gather" ;;
	tiles) echo "reduce argmax tensor" ;;
	esac
}
for t in "$1"/device/*; do
	[ -x "$t" ] && [ -f "$t" ] || continue
	for device in cpu sim cuda; do
		words=
		if [ $device = cuda ] && ! have_gpu; then
			skip 1
			continue
		fi
		[ $device = sim ] && words=$(part "$(basename "$t")")
		echo "$(basename "$t") on $device:"
		suite "$t" --device=$device $words
	done
done
finish
