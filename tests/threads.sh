#!/bin/sh
# usage: tests/threads.sh BUILD     Under ThreadSanitizer (make test-threads): what several threads run at once.
#
# In: the tests whose threads share a device, its pool, its cache, the tuner's tables, the compiler.  Left out: test_tune, whose times mean
# nothing at a tenth of the speed (test_threads tunes); and what runs in one thread: the layers of the compiler (each compile has an arena,
# tables and an LLVM context of its own) and the readers of files.
# LLVM is the system's and not instrumented, so an access within it is not seen; that two compiles may run at once is LLVM's own promise
# for contexts of their own.  Nothing is suppressed.
. "$(dirname "$0")/lib.sh"
build=$1
TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
export TSAN_OPTIONS
BLK_CACHE_DIR=$(mktemp -d)
export BLK_CACHE_DIR
trap 'rm -rf "$BLK_CACHE_DIR"' EXIT
for t in test_threads test_runtime test_cache test_cpu_run test_computed test_distance; do
	start=$(date +%s)
	timeout 1200 "$build/tests/$t" >"$BLK_CACHE_DIR/log" 2>&1
	got=$?
	p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test.*/\1/p' "$BLK_CACHE_DIR/log" | tail -1)
	passed=$((passed + ${p:-0}))
	if [ $got != 0 ] || grep -q 'WARNING: ThreadSanitizer' "$BLK_CACHE_DIR/log"; then
		bad "$t: exit status $got"
		grep -A40 'WARNING: ThreadSanitizer\|FAILED\|ERROR' "$BLK_CACHE_DIR/log" | head -80
	fi
	echo "$t: ${p:-0} passed, $(($(date +%s) - start)) s"
done
finish
