#!/bin/sh
# usage: tests/golden/page.sh BUILD     docs/diagnostics.md is what tools/diagnostics.sh makes, but for the numbers of registers
# that a ptxas of another version counts.
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.." || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
if command -v ptxas >/dev/null 2>&1; then
	sh tools/diagnostics.sh "${1:-build}/bin/blkc" >"$tmp/made"
	for page in "$tmp/made" docs/diagnostics.md; do LC_ALL=C sed 's/uses [0-9]* registers/uses N registers/' "$page" >"$tmp/$(basename "$page").plain"; done
	why=$tmp/difference
	diff "$tmp/diagnostics.md.plain" "$tmp/made.plain" >"$why"
	result $? "docs/diagnostics.md is old: tools/diagnostics.sh build/bin/blkc >docs/diagnostics.md"
else skip 1; fi
finish
