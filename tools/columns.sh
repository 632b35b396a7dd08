#!/bin/sh
# usage: tools/columns.sh MOST FILE...     Names lines that are longer, with tabs of 8; fails where there are any.
# clang-format leaves comments and long strings as they are.
most=$1
shift
LC_ALL=C awk -v most="$most" '
	{
		n = split($0, part, "\t")
		width = length(part[1])
		for (i = 2; i <= n; i++) width = int(width / 8) * 8 + 8 + length(part[i])
	}
	width > most { printf "%s:%d: %d columns, %d at most\n", FILENAME, FNR, width, most; found = 1 }
	END { exit found }' "$@"
