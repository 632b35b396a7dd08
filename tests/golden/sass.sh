#!/bin/sh
# usage: tests/golden/sass.sh BUILD     What ptxas makes of the loops of attention, on sm_90a.
#
# sass/*.txt: a line "$ WORDS" is a compile by blkc in a copy of the folder examples; below stand its loops with products, in their
# order: the waits for blocks in front of the first product, the MUFU in front of each wait for products, the R2UR between
# products, BSSY, and votes on whether a maximum has moved.  A wait that ptxas moves in front of exponentials, a descriptor
# that goes through registers, a branch that diverges, a sum that is always scaled: a difference.  Where it is meant, UPDATE=1
# takes it over.  The counts are those of one version of ptxas, which the file names; with another one, or without nvdisasm,
# only what no version may do is looked at: spills, and warnings of products that wait.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
PATH=$PATH:/usr/local/cuda/bin
why=$dir/why
cp -r "$root/examples/." .
for f in "$root"/tests/golden/sass/*.txt; do
	cases=$(grep -c '^\$ ' "$f")
	if ! command -v ptxas >/dev/null; then
		skip $((cases + 1))
		continue
	fi
	counted=no
	! command -v nvdisasm >/dev/null || ! grep -q "^# ptxas $(ptxas --version | sed -n 's/.* V\([0-9.]*\)$/\1/p')\$" "$f" || counted=yes
	while IFS= read -r line; do
		case $line in
		'#'* | '') echo "$line" ;;
		'$ '*)
			echo "$line"
			# shellcheck disable=SC2086
			"$build/bin/blkc" --target=sm_90a -g0 ${line#??} -o ptx >"$why" 2>&1 &&
				ptxas -v -arch=sm_90a ptx -o cubin >"$why" 2>&1 &&
				! grep -qE 'warning|\(C75|[1-9][0-9]* bytes spill' "$why"
			result $? "$f: $line" >&2
			[ $counted = no ] || nvdisasm -c cubin >code 2>"$why" || counted=no # it may not know this version's code
			[ $counted = no ] || awk '
				/^ *\.L[^:]*:/ { sub(/^ */, ""); sub(/:.*/, ""); at[$0] = n + 0 }
				!/\/\*[0-9a-f]*\*\// { next }
				{ sub(/^ *\/\*[0-9a-f]*\*\/ */, ""); back[n + 0] = /^@!?U?P[0-9] +BRA/; sub(/^@!?U?P[0-9T]+ +/, ""); ins[n++] = $0 }
				END {
					for (i = 0; i < n; i++) # behind a loop stand pieces of it, which jump back into it in any case
						if (back[i] && match(ins[i], /\.L[A-Za-z0-9_]+/) && (l = substr(ins[i], RSTART, RLENGTH)) in at && at[l] <= i)
							iteration(at[l], i)
				}
				function iteration(from, to,    i, waits, blocks, mufu, r2ur, bssy, votes, held, some) {
					for (i = from; i <= to; i++) {
						if (ins[i] ~ /^EXIT/) return
						if (ins[i] ~ /^MUFU/) mufu++
						if (ins[i] ~ /^BSSY/) bssy++
						if (ins[i] ~ /^VOTE\./) votes++
						if (ins[i] ~ /^R2UR/) held++
						if (!some && ins[i] ~ /^SYNCS.*TRYWAIT/) blocks++
						if (ins[i] ~ /^[HQI]GMMA/) { if (some++) r2ur += held; held = 0 }
						if (ins[i] ~ /^WARPGROUP\.DEPBAR/) { waits = waits " " mufu + 0; mufu = 0 }
					}
					for (i = 0; i < shown; i++) if (begins[i] >= from) return # a loop around it
					if (some) begins[shown++] = from
					if (some) printf "  HGMMA %d, waits for blocks in front %d, MUFU in front of each wait%s, behind the last %d, R2UR between HGMMA %d, BSSY %d, VOTE %d\n", some, blocks, waits, mufu, r2ur, bssy, votes
				}' code
			;;
		esac
	done <"$f" >"$dir/now"
	if [ $counted = no ]; then
		skip 1
		continue
	fi
	[ -z "$UPDATE" ] || cp "$dir/now" "$f"
	diff -u "$f" "$dir/now" >"$why"
	result $? "$f: other counts (UPDATE=1 takes them over)"
done
finish
