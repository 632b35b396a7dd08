#!/bin/sh
# usage: fuzz.sh BUILD      Replays random programs: each must give the same bits on cpu and on the simulator.  Then the
# fuzzer itself: where results are changed behind its back, it says so, and writes a smaller program that blkrun runs.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
programs=$build/fuzz-programs seeds=$root/tests/fuzz/programs/seeds.txt
case $build in
*-san) sed 's/^1-100/1-12/' "$seeds" >seeds.txt ;;
*) cp "$seeds" seeds.txt ;;
esac
suite "$programs" --replay=seeds.txt --quiet --stop=3 --reduce=0
status 0 "two jobs" "$programs" --programs=5 --seed=11 --jobs=2
says '^5 passed, 0 failed$'; says '^5 of 5 programs, 0 failed'
status 2 "an unknown option" "$programs" --nothing
says '^usage:'
"$programs" --print --seed=7 >a.blk && "$programs" --print --seed=7 >b.blk && cmp -s a.blk b.blk && ok || bad "a seed is not one program"
status 0 "a program as a file" "$build/bin/blkc" a.blk -o a.ptx
status 1 "a difference" "$programs" --seed=3 --programs=1 --spoil --quiet --reduce=8 --out="$dir/found"
says '^seed 3: differ on sim'; says '^reduced: differ on sim'
[ "$(wc -l <found/3.blk)" -lt "$("$programs" --print --seed=3 | wc -l)" ] && ok || bad "nothing was reduced"
grep '^blkrun' out >line
status 0 "the line that repeats it" sh -c "PATH=$build/bin:\$PATH; $(cat line)"
says 'good, equal'
# A fuzzer that is killed leaves no worker behind.
"$programs" --programs=100000 --seed=77 --quiet >killed 2>&1 &
parent=$!
sleep 1
worker=$(cat /proc/$parent/task/$parent/children 2>/dev/null)
kill -9 $parent
wait $parent 2>/dev/null
sleep 1
case $worker$(sed -n 's/^State:\t\(.\).*/\1/p' /proc/${worker% }/status 2>/dev/null) in
'' | *[RSD]) bad "a worker runs on without the one that watches it" ;;
*) ok ;;
esac
# Each run of a reader's fuzzer takes a seed of its own, or the one that is asked for.
seed() { make -s -n -C "$root" fuzz-ptx "$@" | sed -n 's/.* -seed=\([0-9]*\) .*/\1/p'; }
one=$(seed) other=$(seed)
[ -n "$one" ] && [ -n "$other" ] && [ "$one" != "$other" ] && ok || bad "two runs of make fuzz with the seeds '$one' and '$other'"
[ "$(seed FUZZ_SEED=7)" = 7 ] && ok || bad "FUZZ_SEED=7 is not taken"
finish
