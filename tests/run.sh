#!/bin/sh
# usage: tests/run.sh BUILD [quick|coverage|sanitized]     Runs every test that this machine can run; the last line is the sum.
# quick: those that end in seconds, for the time between two edits: under 90 seconds on two cores.
# coverage: without those that run the same lines very often; sanitized: without those whose work is the assembler's, or
# the simulator's over and over on other programs.  Of the device suites both take some of the cases (ONE_CASE_IN).
# A test program is a cmocka binary (its [  PASSED  ] lines are counted) or a script whose last line is
# "N passed, M failed[, K skipped]".  A program that dies counts as one failure.
# As many run at a time as there are cores (JOBS says otherwise), each with a cache folder of its own, the longest first;
# those that watch the clock run alone, at the end.
cd "$(dirname "$0")/.." || exit 2
build=$1
logs=$build/test-logs

number() { sed -n "s/$1/\\1/p" "$2" | tail -1; }
one() { # name command...: runs a test, prints its line and leaves the counts in its log's neighbour
	name=$1
	shift
	log=$logs/$name.log
	mkdir "$BLK_CACHE_DIR/$name" || exit 2
	start=$(date +%s)
	BLK_CACHE_DIR=$BLK_CACHE_DIR/$name timeout "${TEST_TIMEOUT:-3000}" "$@" >"$log" 2>&1 </dev/null
	status=$?
	p=$(number '^\[  PASSED  \] \([0-9]*\) test.*' "$log")
	f=$(number '^ *\([0-9]*\) FAILED TEST.*' "$log")
	s=$(number '^\[  SKIPPED \] [^0-9]*\([0-9][0-9]*\) test.*' "$log")
	if [ -z "$p$f$s" ]; then
		p=$(number '^\([0-9]*\) passed, [0-9]* failed.*' "$log")
		f=$(number '^[0-9]* passed, \([0-9]*\) failed.*' "$log")
		s=$(number '^[0-9]* passed, [0-9]* failed, \([0-9]*\) skipped.*' "$log")
	fi
	p=${p:-0} f=${f:-0} s=${s:-0}
	[ "$status" != 0 ] && [ "$f" = 0 ] && f=1
	[ "$status" = 0 ] && [ "$p" = 0 ] && [ "$s" = 0 ] && f=1
	echo "$p $f $s" >"$logs/$name.counts"
	{
		printf '%-28s %5d passed %3d failed %3d skipped %5d s\n' "$name" "$p" "$f" "$s" $(($(date +%s) - start))
		if [ "$f" != 0 ]; then
			echo "  exit status $status; the end of $log:"
			tail -25 "$log" | sed 's/^/    /'
		fi
	} >"$logs/$name.line"
	cat "$logs/$name.line"
	rm -rf "${BLK_CACHE_DIR:?}/$name"
}
if [ "${2:-}" = one ]; then
	shift 2
	one "$@"
	exit 0
fi

slow=
[ "${2:-}" != quick ] || slow=" test_out_of_memory test_system_faults run-limits test_atomics test_cpu_elements test_cpu_random test_layout test_layout_convert test_nvptx test_robust
 test_syntax test_tune golden-ptx run-bench run-blkrun run-budget run-cli run-cpp run-device run-examples run-fuzz run-html run-install run-isolated run-mutations
 run-packages run-sim run-tune "
[ "${2:-}" != coverage ] || slow=" run-mutations run-device-same_bits "
[ "${2:-}" != sanitized ] || slow=" run-mutations run-workarounds run-device-same_bits "
case ${2:-} in
coverage) export ONLY_COMPILE=1 ONE_CASE_IN=4 ;;
sanitized) export ONLY_COMPILE=1 ONE_CASE_IN=4 ;;
esac
alone=" run-isolated run-bench test_bench test_tune "
long=" run-packages run-device-dot run-device-tiles run-mutations run-device-scans run-device-elementwise run-device-shapes run-cli run-device-atomics golden-ptx "

# Every test as a line: its name, then its command.
tests() {
	for t in "$build"/tests/test_*; do
		case $t in *.d | *.o) continue ;; esac
		[ -x "$t" ] && echo "$(basename "$t") $t"
	done
	for t in tests/golden/*.sh tests/run/*.sh; do
		name=$(basename "$(dirname "$t")")-$(basename "$t" .sh)
		case $name in
		run-device) parts=$(find "$build/device" -maxdepth 1 -type f -perm -u+x -exec basename {} \;) ;;
		run-examples) parts=$(for e in examples/*/main.c; do basename "$(dirname "$e")"; done) ;;
		*) parts= ;;
		esac
		case $slow in *[[:space:]]"$name"[[:space:]]*) continue ;; esac
		[ -n "$parts" ] || echo "$name sh $t $build"
		for part in $parts; do echo "$name-$part sh $t $build $part"; done
	done
}
chosen() { # yes|no list: the lines of standard input whose name is, or is not, in the list
	while read -r name command; do
		case $2 in *[[:space:]]"$name"[[:space:]]*) is=yes ;; *) is=no ;; esac
		[ $is != "$1" ] || echo "$name $command"
	done
}
case $build in *[[:space:]]*) echo "$build: a path without spaces is needed" >&2 && exit 2 ;; esac
mkdir -p "$logs"
rm -f "$logs"/*.counts
BLK_CACHE_DIR=$(mktemp -d)
export BLK_CACHE_DIR
# Under the address sanitizer an impossible allocation fails as it does in life: it returns null and does not stop the test.
export ASAN_OPTIONS="allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
trap 'rm -rf "$BLK_CACHE_DIR"' EXIT
all=$BLK_CACHE_DIR/all
tests | chosen no "$slow" >"$all"
run() { xargs -r -P "$1" -L 1 sh tests/run.sh "$build" one; }
{
	for name in $long; do grep "^$name " "$all"; done
	chosen no "$long$alone" <"$all"
} | run "${JOBS:-$(nproc)}"
chosen yes "$alone" <"$all" | run 1

passed=0 failed=0 skipped=0
while read -r name command; do
	p=0 f=1 s=0
	[ ! -e "$logs/$name.counts" ] || read -r p f s <"$logs/$name.counts"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done <"$all"
[ "$failed" = 0 ] || for name in $(cut -d' ' -f1 "$all"); do
	grep -q '^[0-9]* 0 ' "$logs/$name.counts" 2>/dev/null || sed -n 1p "$logs/$name.line"
done
line="$passed passed, $failed failed"
[ "$skipped" != 0 ] && line="$line, $skipped skipped"
echo "$line"
[ "$failed" = 0 ]
