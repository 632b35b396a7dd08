#!/bin/sh
# usage: tools/diagnostics.sh BLKC >docs/diagnostics.md     The page of all diagnostics: titles and paragraphs from
# codes.def, each title with the first message of its code that the goldens in tests/golden/bad cause (those that need
# another program come last).
cd "$(dirname "$0")/.." || exit 2
blkc=${1:-build/bin/blkc}
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

# Every message, a block each, headed by a line "@ CODE"; the goldens' marks are taken out of the source lines.
cd tests/golden/bad || exit 2
case $blkc in /*) ;; *) blkc=$PWD/../../../$blkc ;; esac
for f in $(LC_ALL=C grep -aL '^// needs:' *.blk) $(LC_ALL=C grep -al '^// needs:' *.blk); do
	flags=$(tr '\000' ' ' <"$f" | LC_ALL=C sed -n 's|^// run: *||p' | sed 's|tests/golden/bad/||' | head -1)
	setting=$(tr '\000' ' ' <"$f" | LC_ALL=C sed -n 's|^// env: *||p' | head -1)
	# shellcheck disable=SC2086
	env $setting "$blkc" --diagnostics=text $flags -o "$tmp/o" "$f" 2>&1 </dev/null
done | LC_ALL=C awk '
	/^([^ ].*: )?(error|warning|note)\[[EWN][0-9]+\]: / {
		match($0, /\[[EWN][0-9]+\]/)
		print "@ " substr($0, RSTART + 1, RLENGTH - 2)
		print
		next
	}
	!/^ *[0-9]* \| |^note: |^hint: / { next } # what other programs say
	/^ *[0-9]+ \| / { sub(/ *(\/\/|\/\*)? *\/\/!.*/, ""); width = length($0) }
	/^ *\|[ \t^~]*$/ && length($0) > width { $0 = substr($0, 1, width) }
	{ print }' >"$tmp/blocks"
cd ../../..

cat <<'END'
# Diagnostics

Every message of the compiler has a code, a place and, where it helps, a second place and a hint. `error[E0203]` stops the
compile, `warning[W0302]` does not (`-Werror` makes it an error). As many errors as are independent are reported in one
run, at most 100; the rest are counted. `--diagnostics=json` gives the same facts as an array of

```json
{"severity": "error", "code": "E0203", "file": "a.blk", "line": 9, "column": 13, "end_line": 9, "end_column": 18,
 "message": "...", "labels": [{"file": "a.blk", "line": 9, "column": 13, "end_line": 9, "end_column": 14, "text": "..."}],
 "hint": "..."}
```

Lines and columns count from 1, a column is a character (a tab is one), `end_column` is one past the last character. What has
no place has `file` null and zeros; what has no hint has null.

This page is made by `tools/diagnostics.sh` from `compiler/support/codes.def` and the files in `tests/golden/bad`.

## Limits

| limit | value | code |
| --- | --- | --- |
| nesting: brackets, blocks, prefix operators and arms of `?:` that are open at one place | 256 | E0701 |
| a source file | 16 MiB | E0702 |
| operators in one chain or nest, links of `else if` (the height of the tree) | 2,000 | E0703 |
| elements of a tile | 1,048,576 | E0704 |
| operations of a kernel after unrolling and inlining | 1,000,000 | E0705 |
| run-time branches and loops inside each other, after inlining | 256 | E0706 |
| calls inside calls; expressions, statements and calls inside each other, after inlining | 256; 1,500 | E0707 |
| imports, one in another | 256 deep | E0708 |
| instructions of a thread that a kernel becomes on a GPU, estimated | 500,000, or `--max-code` | E0723 |
| values in a tuple; tuples inside each other | 4,096; 64 | E0710 |
| configurations of an autotune block | 100,000; 1,000,000 before `where` clauses | E0709 |
END
# A line for each code: its number and title, and its paragraph behind a '|'.
awk '
	function end_row() { if (row != "") print row "|" page; row = page = "" }
	/^CODE\(/ { end_row(); match($0, /[0-9]+/); row = substr($0, RSTART, RLENGTH) " " $0
		sub(/CODE\([0-9]+, "/, "", row); sub(/"\)$/, "", row); gsub(/\\"/, "\"", row) }
	/^\/\* page: / { on = 1; sub(/^\/\* page: /, "") }
	on { sub(/^ \* /, ""); on = !sub(/ *\*\/$/, ""); page = page (page == "" ? "" : "\\n") $0 }
	END { end_row() }' compiler/support/codes.def >"$tmp/codes"
range=
while IFS= read -r row; do
	title=${row%%|*} page=${row#*|}
	number=${title%% *} title=${title#* }
	if [ "${number%??}" != "$range" ]; then
		range=${number%??}
		case $range in
		1) echo; echo "## Lexing and parsing" ;;
		2) echo; echo "## Names, types and shapes" ;;
		3) echo; echo "## Compile-time evaluation, calls and declarations" ;;
		4) echo; echo "## Control flow" ;;
		5) echo; echo "## Built-ins" ;;
		6) echo; echo "## Kernels, options, grids and autotune" ;;
		7) echo; echo "## Beyond a limit" ;;
		8) echo; echo "## Code generation, files and tools" ;;
		9) echo; echo "## Not on this target" ;;
		esac
	fi
	letter=$(LC_ALL=C sed -n "s/^@ \([EWN]\)0$number\$/\1/p" "$tmp/blocks" | head -1)
	printf '\n### %s0%s: %s\n' "${letter:-E}" "$number" "$title"
	if [ -n "$letter" ]; then
		printf '\n```text\n'
		LC_ALL=C awk -v code="@ ${letter}0$number" '/^@ / { on = $0 == code && !done; done = done || on; next } on' "$tmp/blocks"
		printf '```\n'
	fi
	[ -z "$page" ] || printf '\n%b\n' "$page"
done <"$tmp/codes"
