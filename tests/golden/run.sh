#!/bin/sh
# usage: tests/golden/run.sh BUILD|BLKC     Diagnostics against the lines they belong to.
#
# bad/*.blk:  a line that must be diagnosed ends in `//! E0203 text` (or W0203; several may stand in a line): blkc has to
#             report that code with a message that holds the text on that line, and nothing else.  `E0203 text => more`
#             wants `more` in its notes or its hint (`=>` several times: each).  Where no comment can
#             stand in the line itself, `//!-1 E0105 text` speaks of the line above (any signed number of lines);
#             `//!? E0803 text` of a message about no place in these files.
#             Exit status: 1 where an error is expected (2 for E0803: wrong usage), 0 where only warnings are.
# good/*.blk: must compile without a word; where NAME.expect stands beside, that is the output (BLESS=1 rewrites it).
# `// run: FLAGS`, `// env: NAME=VALUE` in a file say how blkc is run, `// needs: PROGRAM` skips the file where there is
# none; `// with: FILE` (bad) names a file whose marks count too.
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.." || exit 2
blkc=${1:-build}
[ -d "$blkc" ] && blkc=$blkc/bin/blkc
if [ ! -x "$blkc" ]; then
	echo "no $blkc"
	skip 1
	finish
fi
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
why=$tmp/why
case $blkc in /*) ;; *) blkc=$PWD/$blkc ;; esac

said() { # word file: what follows "// word:"
	tr '\000' ' ' <"$2" | LC_ALL=C sed -n "s|^// $1: *||p" | head -1
}
run() { # file: runs blkc as the file says; false where that is not possible here
	flags=$(said run "$1") setting=$(said env "$1") needs=$(said needs "$1")
	if [ -n "$needs" ] && ! command -v "$needs" >/dev/null; then
		skip 1
		return 1
	fi
	# shellcheck disable=SC2086
	env $setting "$blkc" --diagnostics=text $flags -o "$tmp/o" "$1" >"$tmp/out" 2>&1 </dev/null
	status=$?
	return 0
}

# file:line TAB code TAB text, for each mark
marks() {
	for marked in "$@"; do
		tr '\000' ' ' <"$marked" | LC_ALL=C awk -v f="$marked" '{
			n = split($0, part, "//!")
			for (i = 2; i <= n; i++) {
				line = NR
				place = 0
				if (sub(/^\?/, "", part[i])) place = "nowhere"
				if (match(part[i], /^[-+][0-9]+/)) {
					line += substr(part[i], 1, RLENGTH)
					part[i] = substr(part[i], RLENGTH + 1)
				}
				if (!match(part[i], /^ *[EWN][0-9][0-9][0-9][0-9]/)) continue
				code = substr(part[i], RLENGTH - 4, 5)
				text = substr(part[i], RLENGTH + 1)
				gsub(/^[ \t]+|[ \t\r]+$/, "", text)
				print (place ? place : f ":" line) "\t" code "\t" text
			}
		}'
	done
}
# the same of what blkc said
reports() {
	LC_ALL=C awk '/^([^ ].*: )?(error|warning|note)\[[EWN][0-9]+\]: / {
		match($0, /(error|warning|note)\[/)
		place = substr($0, 1, RSTART - 1)
		rest = substr($0, RSTART + RLENGTH)
		sub(/:[0-9]+: $/, "", place)
		if (report != "") print report
		report = (place ~ /^tests\// ? place : "nowhere") "\t" substr(rest, 1, 5) "\t" substr(rest, 9)
		next
	}
	/^[0-9]+ (error|warning)/ { next }
	report != "" { sub(/ *\/\/!.*/, ""); gsub(/\t/, " "); report = report " \001 " $0 } # notes, labels, the hint
	END { if (report != "") print report }' "$1"
}
compare() { # marks reports: each mark takes one report
	LC_ALL=C awk -F '\t' 'NR == FNR { place[++n] = $1; code[n] = $2; text[n] = $3; next }
		function says(report, wanted,   part, k, count) {
			count = split(wanted, part, " *=> *")
			for (k = 1; k <= count; k++) if (!index(report, part[k])) return 0
			return 1
		}
		{
			for (i = 1; i <= n; i++)
				if (!taken[i] && place[i] == $1 && code[i] == $2 && says($3, text[i])) { taken[i] = 1; next }
			gsub(" \001 ", "\n\t", $3)
			print "not expected: " $1 ": " $2 " " $3
			bad = 1
		}
		END {
			for (i = 1; i <= n; i++) if (!taken[i]) { print "not reported: " place[i] ": " code[i] " " text[i]; bad = 1 }
			exit bad
		}' "$1" "$2"
}
check_bad() { # name status
	wanted=0
	grep -q "$(printf '\tE')" "$tmp/marks" && wanted=1
	grep -q "$(printf '\tE0803')" "$tmp/marks" && wanted=2
	reports "$tmp/out" >"$tmp/reports"
	compare "$tmp/marks" "$tmp/reports" >"$tmp/why"
	ok=$?
	if [ "$2" != $wanted ]; then
		echo "exit status $2, not $wanted" >>"$tmp/why"
		ok=1
	fi
	[ -s "$tmp/marks" ] || { echo "no marks" >>"$tmp/why"; ok=1; }
	[ $ok = 0 ] || cat "$tmp/out" >>"$tmp/why"
	result $ok "$1   ($blkc --diagnostics=text $flags $1)"
}

for f in tests/golden/bad/*.blk; do
	[ -e "$f" ] || continue
	with=$(tr '\000' ' ' <"$f" | LC_ALL=C sed -n 's|.*// with: *\([^ ]*\).*|tests/golden/bad/\1|p')
	marks "$f" $with >"$tmp/marks"
	run "$f" && check_bad "$f" $status
done

# Too large to keep: a file beyond the limit, and 300 files that import one another.
flags=
head -c 16777217 /dev/zero | tr '\000' ' ' >"$tmp/large.blk"
printf 'nowhere\tE0702\tis larger than 16 MiB\n' >"$tmp/marks"
"$blkc" --diagnostics=text -o "$tmp/o" "$tmp/large.blk" >"$tmp/out" 2>&1
check_bad large.blk $?
i=0
while [ $i -lt 300 ]; do
	echo "import \"import$((i + 1)).blk\";" >"$tmp/import$i.blk"
	i=$((i + 1))
done
echo >"$tmp/import300.blk"
printf 'nowhere\tE0708\timports nest deeper than 256\n' >"$tmp/marks"
"$blkc" --diagnostics=text -o "$tmp/o" "$tmp/import0.blk" >"$tmp/out" 2>&1
check_bad import0.blk $?

for f in tests/golden/good/*.blk; do
	[ -e "$f" ] || continue
	expect=${f%.blk}.expect
	run "$f" || continue
	mv "$tmp/out" "$tmp/why"
	ok=$status
	[ -s "$tmp/why" ] && ok=1
	[ "$ok" = 0 ] || echo "exit status $status" >>"$tmp/why"
	if [ "$ok" = 0 ] && [ -e "$expect" ]; then
		[ -n "$BLESS" ] && cp "$tmp/o" "$expect"
		diff "$expect" "$tmp/o" >"$tmp/why" || ok=1
	fi
	result "$ok" "$f   ($blkc --diagnostics=text $flags $f)"
done
finish
