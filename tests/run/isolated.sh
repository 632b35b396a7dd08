#!/bin/sh
# usage: isolated.sh BUILD [DEVICE]      configurations that fault, or never end: tuned in a process of their own, and in this one.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
device=${2:-cpu}
export BLK_CACHE_DIR="$dir/cache" BLK_TUNE_LIMIT=6
# A fault ends the process by its signal, as it does in life: the sanitizer's report of it can take longer than the limit.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}handle_segv=0:handle_sigbus=0"
[ "$device" != cpu ] || export BLK_CPU=fast # where faults are the process's
cat >bad.blk <<'K'
kernel bad(y: *f32, n: i32, const BLOCK: i32 = 8, const FAR: i64 = 0, const SPIN: i32 = 0)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    var v = load(y + i, mask = i < n, other = 0.0) + 1.0;
    if SPIN == 1 {
        var go = true;
        while go { go = load(y, volatile = true) > -1000.0; }
    }
    store(y + i + FAR, v, mask = i < n);
}
autotune bad key(n) {
    config(BLOCK = 16, FAR = 100000000000000);
    config(BLOCK = 32, SPIN = 1);
    config(BLOCK = 8);
    config(BLOCK = 64, FAR = 200000000000000);
    config(BLOCK = 128);
}
K
run() { # name arguments...
	title=$1
	shift
	status 0 "$title" "$build/bin/blkrun" --device="$device" bad.blk n=5 y=f32[5]:arange "$@"
}
clean() { rm -rf cache/tune; }
judged() {
	says 'BLOCK=16,FAR.*failed: '
	says 'BLOCK=32,SPIN=1 .*failed: it did not end in time'
	says 'BLOCK=64,FAR.*failed: '
	grep '^\*' out | grep -q 'BLOCK=\(8\|128\) ' && ok || bad "$name: no good configuration was chosen"
	says '  1  2  3  4  5'
}
run "isolated, blkrun --tune" --tune; judged; says '^5 configurations tried'
[ "$device" != cpu ] || says 'BLOCK=16,FAR.*failed: it ended the process'
run "isolated, all known" --tune; judged; says '^0 configurations tried'
clean
BLK_TUNE=isolated run "BLK_TUNE=isolated"; says '  1  2  3  4  5'
BLK_TUNE=cached run "after BLK_TUNE=isolated" --tune; judged; says '^0 configurations tried'
BLK_CACHE=off run "isolated, no cache" --tune; judged

# In this process: each start ends at the next bad configuration, and skips those before.
clean
export BLK_TUNE=auto # on cpu too
here() { timeout 60 "$build/bin/blkrun" --device="$device" bad.blk n=5 y=f32[5]:arange >out 2>err; }
here && bad "the first fault went unseen" || ok
[ "$device" = cpu ] || says 'configuration BLOCK=16,FAR=100000000000000 failed'
"$build/bin/blkrun" --device="$device" bad.blk n=5 y=f32[5]:arange >out 2>err &
looping=$!
for i in $(seq 600); do # until it is in the endless loop
	grep -qs SPIN cache/tune/.trying* && break
	sleep 0.1
done
kill -9 $looping
wait $looping 2>/dev/null
grep -q '^\(suspect\|failed\) 0 BLOCK=16,FAR' cache/tune/* && ok || bad "the first fault is not recorded"
here && bad "the second fault went unseen" || ok
run "in this process, all skipped"
[ "$device" != cpu ] || says 'BLOCK=64,FAR=200000000000000 is skipped'
says '  1  2  3  4  5'
[ -z "$(find cache/tune -name '.trying*')" ] && ok || bad "a mark was left"
BLK_TUNE=cached run "suspects are kept"; says '  1  2  3  4  5'
grep -q '^suspect 0 BLOCK=32,SPIN=1' cache/tune/* && ok || bad "no suspect in the record"
run "isolation settles suspects" --tune; judged
[ "$device" != cpu ] || says '^3 configurations tried'

unset BLK_TUNE

# Where faults are the launch's, this process tunes over them, and so does the other.
if [ "$device" = cpu ]; then
	cat >far.blk <<'K'
kernel far(y: *f32, n: i32, const BLOCK: i32 = 8, const FAR: i64 = 0)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i + FAR, load(y + i, mask = i < n, other = 0.0) + 1.0, mask = i < n);
}
autotune far key(n) {
    config(BLOCK = 16, FAR = 100000000000000);
    config(BLOCK = 8);
    config(BLOCK = 64, FAR = 200000000000000);
}
K
	for how in isolated always; do
		clean
		for mode in guarded checked; do
			BLK_TUNE=$how BLK_CPU=$mode status 0 "faults of launches, $how, $mode" "$build/bin/blkrun" --device=cpu far.blk n=5 y=f32[5]:arange
			says '  1  2  3  4  5'
		done
		grep -q '^failed 0 BLOCK=16,FAR.*far.blk:5: .*outside' cache/tune/* && ok || bad "$how: the fault is not recorded"
		grep -q '^failed 0 BLOCK=64,FAR' cache/tune/* && ok || bad "$how: the second fault is not recorded"
	done
fi

# The helper is missing, is another program, is of another version.
clean
mkdir -p lone/bin lone/lib
cp "$build/bin/blkrun" lone/bin/ && cp "$build/lib/libblk.so.1" lone/lib/ && ln -s "$build/lib/libblkc.so.1" lone/lib/
lone() { name=$1; timeout 60 lone/bin/blkrun --device=$device bad.blk n=5 y=f32[5]:arange --tune >out 2>&1 && bad "$name" || ok; }
lone "no helper"; says 'blk-trial, which is not beside libblk'
printf '#!/bin/sh\nexit 3\n' >lone/lib/blk-trial && chmod +x lone/lib/blk-trial
lone "a helper that does nothing"; says 'blk-trial ended'
"$build/lib/blk-trial" >out 2>&1; [ $? = 2 ] && ok || bad "blk-trial by hand"; says 'is started by libblk'
finish
