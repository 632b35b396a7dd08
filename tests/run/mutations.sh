#!/bin/sh
# usage: mutations.sh BUILD      Without any one of the barriers, waits, fences, orders and masks that the compiler emitted in the
# examples the simulator must speak (tests/mutation).  In two processes; under sanitizers a part of the mutants, and one in
# ONE_MUTANT_IN where that is set.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
cp -r "$root/examples/." .
# Four groups of matrices: one of no K, the last one of one element at the end of each buffer.
npy sizes.npy 4 77 48 208 16 16 16 130 16 0 1 1 1
npy even.npy 4 77 48 208 16 16 16 16 16 48 16 16 80 16 16 144 130 16 0 # aligned; K of one to four rounds
npy a.npy 8 0 16016 16272 16272
npy b.npy 8 0 9984 10240 10240
npy c.npy 8 0 3696 3952 6032
npy lengths.npy 4 96 137 48 3 193 # of sequences, for attention_decode
npy first_queries.npy 4 0 16 93   # and where two begin and end, for attention_packed
npy first_keys.npy 4 0 48 249
BLK_CACHE=off
export BLK_CACHE
every=${ONE_MUTANT_IN:-1}
grep -q __asan_init "$build/mutation/mutate" && every=23
for part in 0 1; do
	"$build/mutation/mutate" "$root/tests/mutation/kernels.txt" $part 2 $every >part$part 2>&1 &
done
wait
for part in 0 1; do suite cat part$part; done
finish
