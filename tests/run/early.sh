#!/bin/sh
# usage: tests/run/early.sh BUILD     No access of global memory stands in front of the wait for the kernel before, as ptxas
# assembles the kernels of the examples that read by plain loads: at their defaults and with one warp, which has the most loads to
# move.  A kernel may start while the one before it still writes (docs/nvptx.md).
. "$(dirname "$0")/../lib.sh"
enter_scratch "${1:-build}"
PATH=$PATH:/usr/local/cuda/bin
if [ -n "${ONLY_COMPILE:-}" ] || ! command -v ptxas >/dev/null || ! command -v nvdisasm >/dev/null; then
	skip 1
	finish
fi
# An instruction a line; of a function the lines up to its wait, and whether it has one.
cat >early.awk <<'A'
/^\.text\./ { if (name && !waits) print name ": no wait"; name = $1; waits = 0 }
/ACQBULK/ { waits = 1 }
/LDG|STG|ATOM|REDG|RED\.|UTMALDG|UTMASTG|UBLKCP/ && !waits { print name ": " $0 }
END { if (!name) print "no kernel"; if (name && !waits) print name ": no wait" }
A
look() { # file target arguments...
	file=$1 target=$2
	shift 2
	if ! "$build/bin/blkc" --target="$target" -g0 "$@" -o all.ptx "$file" >err 2>&1; then
		bad "$file $target $*"
		sed 's/^/    /' err
		return
	fi
	if ! ptxas -arch="$target" all.ptx -o all.cubin >err 2>&1 || ! nvdisasm -c all.cubin >all.sass 2>>err; then
		bad "$file $target $*: $(head -1 err)"
		return
	fi
	early=$(awk -f early.awk all.sass)
	[ -z "$early" ] && ok || bad "$file $target $*: $(echo "$early" | head -3)"
}
for name in layer_norm rms_norm softmax rotary; do
	for target in sm_90a sm_120a; do
		look "$root/examples/$name/$name.blk" $target
		look "$root/examples/$name/$name.blk" $target -D num_warps=1
	done
done
look "$root/examples/attention_backward/attention_backward.blk" sm_90a
finish
