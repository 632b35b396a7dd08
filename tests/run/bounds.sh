#!/bin/sh
# usage: bounds.sh BUILD      accesses outside of buffers on the cpu device as users meet them: blkrun, packages, a debugger.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
export BLK_CACHE_DIR="$dir/cache"
unset BLK_CPU
cat >twice.blk <<'K'
kernel twice(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 256)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + i);
    store(y + i, 2.0 * v);
}
K
run() { # status name arguments...
	wanted=$1 title=$2
	shift 2
	status "$wanted" "$title" "$build/bin/blkrun" --device=cpu "$@" n=1000 y=f32[4096]:poison x=f32[n]:randn
}

# Each access is checked, at the first start and from the cache.
for start in first second; do
	run 1 "checked, $start start" twice.blk
	says_text 'blkrun: twice.blk:5: 4 bytes are read outside x, which has 4000 bytes: at offset 4000'
	says_text '  in kernel twice, program (3, 0, 0)'
	says_text '  hint: compare the mask with the number of elements'
done
BLK_CPU=guarded run 0 "guarded: nothing faults so near" twice.blk
BLK_CPU=guarded run 1 "guarded, 4096 elements" twice.blk -D BLOCK=4096
says_text 'twice.blk:5: memory is read outside x, which has 4000 bytes: at offset 4096'
mkdir -p below/it && cp twice.blk below/it/
BLK_CPU=guarded run 1 "a file in a folder" below/it/twice.blk -D BLOCK=4096
says_text 'below/it/twice.blk:5: memory is read outside x'
BLK_CPU=fast run 0 fast twice.blk
silent 'each access checked'
status 1 "by the device's name" "$build/bin/blkrun" --device=cpu:checked twice.blk n=1 y=f32[1] x=f32[1]
status 0 "fast by name" "$build/bin/blkrun" --device=cpu:fast twice.blk n=1000 y=f32[1024] x=f32[1024]
status 2 "an unknown mode" "$build/bin/blkrun" --device=cpu:careful twice.blk n=1000 y=f32[1000] x=f32[1000]
says_text 'careful: the cpu device is fast, guarded or checked'
BLK_CPU=careful run 2 "an unknown BLK_CPU" twice.blk
says_text 'BLK_CPU=careful: the cpu device is fast, guarded or checked'

# What is checked and what is timed says so.
status 0 "a good run" "$build/bin/blkrun" --device=cpu twice.blk n=1024 y=f32[n]:poison x=f32[n]:ones
says '(one launch, each access checked)'
status 0 "--bench" "$build/bin/blkrun" --device=cpu --bench twice.blk n=1024 y=f32[n]:poison x=f32[n]:ones
says_text 'timed without checks of bounds (BLK_CPU=checked times with them)'
BLK_CPU=checked status 0 "--bench, checked" "$build/bin/blkrun" --device=cpu --bench twice.blk n=1024 y=f32[n] x=f32[n]:ones
silent 'without checks'

# A package's code is not checked, which is said, but it is guarded, and knows its lines.
status 0 package "$build/bin/blkc" --emit=package --target=cpu -D BLOCK=4096 twice.blk -o twice.blkpkg
for start in first second; do
	run 1 "package, $start start" twice.blkpkg
	says_text 'outside x, which has 4000 bytes: at offset 4096'
	says_text 'kernel twice comes from a package: its accesses are guarded, but not checked'
done

# Equal sources make equal objects, wherever the compiler stands; -g0 leaves the lines out.
mkdir -p elsewhere && cp twice.blk elsewhere/
"$build/bin/blkc" --target=cpu --emit=object twice.blk -o a.o && (cd elsewhere && "$build/bin/blkc" --target=cpu --emit=object twice.blk -o b.o)
cmp -s a.o elsewhere/b.o && ok || bad "objects of one source differ"
"$build/bin/blkc" --target=cpu --emit=object -g0 twice.blk -o c.o
grep -q debug_line a.o && ok || bad "the object has no lines"
grep -q debug_line c.o && bad "-g0 leaves the lines" || ok

# A debugger stops in a line of the source, shows it, and knows the kernel; nothing is left when the process ends.
if command -v gdb >/dev/null 2>&1; then
	cat >commands <<'G'
set breakpoint pending on
set confirm off
set debuginfod enabled off
break twice.blk:6
run
backtrace 2
list
delete
continue
G
	# A sanitizer that looks for leaks wants to be the one that traces.
	ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" BLK_CPU=guarded BLK_CPU_THREADS=1 timeout 120 gdb -batch -nx -x commands --args "$build/bin/blkrun" --device=cpu twice.blk n=1024 y=f32[n] x=f32[n] >out 2>err
	name=gdb
	if grep -q 'ptrace: Operation not permitted\|Cannot trace' out err; then skip 4; else
		says 'Breakpoint 1, .*twice.* at twice.blk:6'
		says '^6[[:space:]]*store(y + i, 2.0 \* v);'
		says '^#0 .*twice.program .*at twice.blk:6'
		says 'exited normally'
	fi
else
	skip 4
fi

# It stops in each line, also where code that only runs when a check fails has the same one.
if command -v gdb >/dev/null 2>&1; then
	cat >sound.blk <<'K'
kernel sound(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 1024)
    grid(n)
{
    let i = arange(0, BLOCK);
    let v = load(x + program_id(0) * BLOCK + i);
    device_assert(v < 17.0, "v");
    device_assert(n > 0, "n");
    store(y + program_id(0) * BLOCK + i, v + 1.0);
}
K
	{
		printf 'set breakpoint pending on\nset debuginfod enabled off\n'
		for line in 5 6 7 8; do echo "tbreak sound.blk:$line"; done
		printf 'run\ncontinue\ncontinue\ncontinue\ncontinue\n'
	} >commands
	for mode in guarded checked; do
		ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" BLK_CPU_THREADS=1 timeout 120 gdb -batch -nx -x commands --args "$build/bin/blkrun" --device=cpu:$mode sound.blk n=4 y=f32[4096] x=f32[4096] >out 2>err
		name="gdb, each line, $mode"
		if grep -q 'ptrace: Operation not permitted\|Cannot trace' out err; then skip 5; else
			for line in 5 6 7 8; do says "breakpoint [0-9]*, .*sound.* at sound.blk:$line"; done
			says 'exited normally'
		fi
	done
else
	skip 10
fi
finish
