#!/bin/sh
# usage: tests/gpu.sh BUILD [SECONDS] [NAME...]     Every device suite and example of BUILD on the first GPU, side by side.
# BUILD is the folder that `make device` makes; NAMEs leave the others out; a suite is ended after SECONDS (150).
# The last line is the sum; what failed has the end of its output above it.  A NAME may be a part of a suite, dot:1/4.
# BLK_GPU_TOOL: a command that runs each of them, a sanitizer for one:
#     BLK_GPU_TOOL='compute-sanitizer --error-exitcode 1 --tool racecheck' sh tests/gpu.sh BUILD 150 attention attention_backward
build=$1 seconds=${2:-150}
shift
[ $# -eq 0 ] || shift
logs=$(mktemp -d) || exit 2
trap 'rm -rf "$logs"' EXIT
export BLK_GPU_LOGS="$logs" BLK_GPU_SECONDS="$seconds" BLK_GPU_TOOL="${BLK_GPU_TOOL:-}"

# The longest first: what begins last is short.
suites=
for cut in scans:8 dot:4 tiles:4 extrema:4; do
	name=${cut%:*} parts=${cut#*:}
	[ -x "$build/device/$name" ] || continue
	for part in $(seq "$parts"); do suites="$suites $name:$part/$parts"; done
done
for name in attention shapes attention_backward clusters tensors gemm $(ls "$build/device" "$build/bin/examples"); do
	case " $suites " in *" $name "* | *" $name:"*) continue ;; esac
	[ ! -x "$build/device/$name" ] && [ ! -x "$build/bin/examples/$name" ] || suites="$suites $name"
done
[ $# -eq 0 ] || suites=$*

one='
	name=$1 suite=${1%:*} part=${1##*:} start=$(date +%s)
	log=$BLK_GPU_LOGS/$(echo "$name" | tr / -)
	program=$0/device/$suite more=
	[ "$part" = "$name" ] || more=--part=$part
	[ -x "$program" ] || { program=$0/bin/examples/$suite more=--quick; }
	[ -x "$program" ] || { echo "there is no $program" >"$log"; program=false; }
	timeout "$BLK_GPU_SECONDS" $BLK_GPU_TOOL "$program" --device=cuda $more >>"$log" 2>&1
	status=$?
	printf "%-24s %4d s  %s\n" "$name" $(($(date +%s) - start)) "$(tail -1 "$log")"
	[ $status = 0 ] && exit 0
	echo "  exit status $status$([ $status = 124 ] && echo ": ended after $BLK_GPU_SECONDS s"); its last lines:"
	tail -12 "$log" | sed "s/^/    /"
	: >"$log.failed"
'
echo $suites | xargs -P "$(($(nproc) < 12 ? $(nproc) : 12))" -n 1 sh -c "$one" "$build"

sum() { # the numbers of the closing lines that this takes out
	cat "$logs"/* | sed -n "s/$1/\\1/p" | awk '{ n += $1 } END { print n + 0 }'
}
broken=$(find "$logs" -name '*.failed' | wc -l)
echo "$(sum '^\([0-9]*\) passed, [0-9]* failed.*') passed, $(sum '^[0-9]* passed, \([0-9]*\) failed.*') failed," \
	"$broken of $(echo $suites | wc -w) programs with failures or not to their end"
[ "$broken" = 0 ]
