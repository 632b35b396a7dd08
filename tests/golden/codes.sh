#!/bin/sh
# usage: tests/golden/codes.sh     Every code of codes.def has an entry in docs/diagnostics.md, under its title, and a
# golden, and is reported somewhere; and the page and the goldens name no code that does not exist.
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.." || exit 2
docs=docs/diagnostics.md
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

sed -n 's/^CODE(\([0-9]*\), "\(.*\)")$/\1 \2/p' compiler/support/codes.def | sed 's/\\"/"/g' >"$tmp/codes"
# goldens, and the one that run.sh makes
LC_ALL=C grep -ahoE '//!([-+][0-9]+|\?)? *[EWN][0-9]{4}|\\t[EW][0-9]{4}\\t' tests/golden/bad/*.blk tests/golden/bad/*/*.blk tests/golden/run.sh 2>/dev/null |
	sed 's/.*[EWN]0*\([0-9]\{3\}\).*/\1/' | sort -u >"$tmp/golden"
# Goldens cannot cause these: ptxas is there or not (814), the rest are the compiler's checks of itself.
unreachable='810 811 814 890 899'
while read -r number title; do
	grep -qxE "### [EWN]0$number: .*" "$docs" && grep -qF "0$number: $title" "$docs"
	result $? "$docs has no heading '### E0$number: $title' (or W0$number)"
	LC_ALL=C grep -qE "(^|[^0-9])$number[,;: ]" -r --include='*.c' --include='*.re' compiler
	result $? "nothing in the compiler reports E0$number or W0$number"
	case " $unreachable " in *" $number "*) continue ;; esac
	grep -qx "$number" "$tmp/golden"
	result $? "no golden in tests/golden/bad expects E0$number or W0$number"
done <"$tmp/codes"
cut -d' ' -f1 "$tmp/codes" | sort -u >"$tmp/known"
sed -n 's/^### [EWN]0\([0-9]*\):.*/\1/p' "$docs" | sort -u | comm -23 - "$tmp/known" >"$tmp/stray"
result "$(wc -l <"$tmp/stray")" "$docs names codes that do not exist: $(tr '\n' ' ' <"$tmp/stray")"
comm -23 "$tmp/golden" "$tmp/known" >"$tmp/stray"
result "$(wc -l <"$tmp/stray")" "goldens expect codes that do not exist: $(tr '\n' ' ' <"$tmp/stray")"
LC_ALL=C grep -hoE '(diag_error|diag_warning|diag_add|[a-z]+_error|[a-z]+_warning|wrong)\([^;"]*[ (][1-9][0-9]{2},' -r --include='*.c' --include='*.re' compiler |
	sed 's/.*[ (]\([1-9][0-9][0-9]\),$/\1/' | sort -u | comm -23 - "$tmp/known" >"$tmp/stray"
result "$(wc -l <"$tmp/stray")" "the compiler reports codes that codes.def lacks: $(tr '\n' ' ' <"$tmp/stray")"
finish
