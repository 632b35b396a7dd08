#!/bin/sh
# usage: tests/golden/checks.sh BUILD     docs/checks.md is what tools/checks.sh makes, but for the lines of the PTX, which change
# with LLVM.
. "$(dirname "$0")/../lib.sh"
cd "$(dirname "$0")/../.." || exit 2
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
sh tools/checks.sh "${1:-build}" | sed 's/line [0-9]* of its PTX/line N of its PTX/' >"$tmp/made"
why=$tmp/difference
sed 's/line [0-9]* of its PTX/line N of its PTX/' docs/checks.md | diff - "$tmp/made" >"$why"
result $? "docs/checks.md is old: tools/checks.sh build >docs/checks.md"
finish
