#!/bin/sh
# usage: tests/run.sh BUILD [quick]     Runs every test that this machine can run; the last line is the sum.
# quick: those that end in seconds, for the time between two edits: under 90 seconds on two cores.
# A test program is a cmocka binary (its [  PASSED  ] lines are counted) or a script whose last line is
# "N passed, M failed[, K skipped]".  A program that dies counts as one failure.
cd "$(dirname "$0")/.." || exit 2
build=$1
slow=
[ "${2:-}" != quick ] || slow=" test_atomics test_cpu_elements test_cpu_random test_layout test_layout_convert test_nvptx test_robust
 test_syntax test_tune golden-ptx run-bench run-blkrun run-cli run-device run-examples run-fuzz run-isolated run-mutations
 run-packages run-tune "
logs=$build/test-logs
mkdir -p "$logs"
passed=0 failed=0 skipped=0
BLK_CACHE_DIR=$(mktemp -d)
export BLK_CACHE_DIR
# Under the address sanitizer an impossible allocation fails as it does in life: it returns null and does not stop the test.
export ASAN_OPTIONS="allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
trap 'rm -rf "$BLK_CACHE_DIR"' EXIT

number() { sed -n "s/$1/\\1/p" "$2" | tail -1; }
one() { # name command...
	name=$1
	shift
	case $slow in *[[:space:]]"$name"[[:space:]]*) return ;; esac
	log=$logs/$name.log
	timeout "${TEST_TIMEOUT:-3000}" "$@" >"$log" 2>&1 </dev/null
	status=$?
	p=$(number '^\[  PASSED  \] \([0-9]*\) test.*' "$log")
	f=$(number '^ *\([0-9]*\) FAILED TEST.*' "$log")
	s=$(number '^\[  SKIPPED \] \([0-9]*\) test.*' "$log")
	if [ -z "$p" ]; then
		p=$(number '^\([0-9]*\) passed, [0-9]* failed.*' "$log")
		f=$(number '^[0-9]* passed, \([0-9]*\) failed.*' "$log")
		s=$(number '^[0-9]* passed, [0-9]* failed, \([0-9]*\) skipped.*' "$log")
	fi
	p=${p:-0} f=${f:-0} s=${s:-0}
	[ "$status" != 0 ] && [ "$f" = 0 ] && f=1
	[ "$status" = 0 ] && [ "$p" = 0 ] && [ "$s" = 0 ] && f=1
	printf '%-28s %5d passed %3d failed %3d skipped\n' "$name" "$p" "$f" "$s"
	if [ "$f" != 0 ]; then
		echo "  exit status $status; the end of $log:"
		tail -25 "$log" | sed 's/^/    /'
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

for t in "$build"/tests/test_*; do
	case $t in *.d | *.o) continue ;; esac
	[ -x "$t" ] && one "$(basename "$t")" "$t"
done
for t in tests/golden/*.sh tests/run/*.sh; do
	[ -e "$t" ] && one "$(basename "$(dirname "$t")")-$(basename "$t" .sh)" sh "$t" "$build"
done
line="$passed passed, $failed failed"
[ "$skipped" != 0 ] && line="$line, $skipped skipped"
echo "$line"
[ "$failed" = 0 ]
