#!/bin/sh
# usage: mutations.sh BUILD      Without any one of the barriers, waits, fences, orders and masks that the compiler emitted in the
# examples the simulator must speak (tests/mutation).  In two processes; under sanitizers a part of the mutants.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
cp -r "$root/examples/." .
BLK_CACHE=off
export BLK_CACHE
every=1
grep -q __asan_init "$build/mutation/mutate" && every=23
for part in 0 1; do
	"$build/mutation/mutate" "$root/tests/mutation/kernels.txt" $part 2 $every >part$part 2>&1 &
done
wait
for part in 0 1; do suite cat part$part; done
finish
