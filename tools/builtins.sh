#!/bin/sh
# usage: builtins.sh docs/language.md >builtins.c    What the language's reference says of built-in functions and options,
# by name, as a C array (see compiler/lsp/lsp.h).  Of section 6: rows of tables, and paragraphs that begin with a call; of
# sections 4 and 5: items that do; of section 3: items that begin with an option.
set -e
echo '#include "lsp/lsp.h"'
echo 'const language_entry language_entries[] = {'
awk '
function quote(s) {
	gsub(/\\\|/, "|", s)
	gsub(/\\/, "\\\\", s)
	gsub(/"/, "\\\"", s)
	return "\"" s "\""
}
function entry(name, said) {
	sub(/^A\./, "tensor.", name)
	sub(/^.*\./, name ~ /^tensor\./ ? "tensor." : "", name)
	if (options && name !~ /^(num_|max|strict)/) return
	if (name ~ /^(tensor\.)?[a-z_][a-z_0-9]*$/ && said != "" && !((name, said) in done)) print "\t{\"" name "\", " quote(said) "},"
	done[name, said] = 1
}
# Names of the calls, or else of the words, in the code of `lead`.
function names(lead, said, bare,    code, i, n, list, paren) {
	while (match(lead, /`[^`]*`/)) {
		code = substr(lead, RSTART + 1, RLENGTH - 2)
		lead = substr(lead, RSTART + RLENGTH)
		paren = index(code, "(")
		if (!paren && !bare) continue
		n = split(paren ? substr(code, 1, paren - 1) : code, list, " ")
		for (i = 1; i <= n; i++) entry(list[i], said)
	}
}
function flush(    item, said) {
	item = held ~ /^ *- /
	said = held
	sub(/^ *- /, "", said)
	sub(/^\*[A-Z][a-z]*\*: /, "", said)
	if (said ~ /^`/) {
		options = section == 3
		if (options && held ~ /^  - /) names(said, said, 1)
		options = 0
		if (section == 4 && item) names(said, said, 0)
		if (section == 5 && item && said !~ /^`x\.f/) names(substr(said, 1, 20), said, 0)
		if (section == 6 && !item) names(said, said, 0)
	}
	held = ""
}
/^## / { flush(); section = $2 + 0 }
/^```/ { flush(); fence = !fence; next }
fence { next }
/^\|/ {
	flush()
	if (section != 6) next
	n = split($0, cell, / *\| */)
	if (cell[2] == "call" || cell[2] == "function") { kind = cell[2] " " cell[3] }
	if (kind !~ /^call|^function elements/ || cell[3] ~ /^-+$|^meaning$|^result$|^on$|^elements/) next
	said = cell[3]
	for (i = 4; i < n; i++) said = said ": " cell[i]
	sub(/: below$/, "; how exact: section 6 of docs/language.md", said)
	names(cell[2], said, 1)
	next
}
/^$/ || /^#/ { flush(); kind = $0 ~ /^$/ ? kind : ""; next }
/^ *- / { flush(); held = $0; next }
{
	line = $0
	sub(/^ +/, "", line)
	held = held == "" ? line : held " " line
}
END { flush() }
' "$1"
echo '	{0, 0},'
echo '};'
