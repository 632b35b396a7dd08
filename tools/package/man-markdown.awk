# docs/language.md as a manual page: headings, lists of two levels, tables (a row is its first cell and what the others say)
# and programs, which is all that the page uses.  A paragraph's lines are gathered first: code and links go over their ends.
function plain(s)
{
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	return s
}
function guarded(s)
{
	return s ~ /^[.']/ ? "\\&" s : s
}
function replaced(s, pattern, skipped, before, after,    out, found) # what matches loses `skipped` characters at its ends
{
	out = ""
	while (match(s, pattern)) {
		found = substr(s, RSTART + skipped, RLENGTH - 2 * skipped)
		out = out substr(s, 1, RSTART - 1) before found after
		s = substr(s, RSTART + RLENGTH)
	}
	return out s
}
function spoken(s) # no code
{
	s = replaced(s, "[*][*][^*]+[*][*]", 2, "\\fI", "\\fP")
	return replaced(s, "[*][A-Za-z][^*]*[A-Za-z.][*]", 1, "\\fI", "\\fP")
}
function words(s,    out, link, at, long)
{
	s = plain(s)
	while (match(s, /\[[^]]*\]\([^)]*\)/)) { # links: their text alone
		link = substr(s, RSTART + 1, RLENGTH - 1)
		s = substr(s, 1, RSTART - 1) substr(link, 1, index(link, "](") - 1) substr(s, RSTART + RLENGTH)
	}
	out = ""
	while (match(s, /`[^`]*`/)) {
		at = RSTART
		long = RLENGTH
		out = out spoken(substr(s, 1, at - 1)) "\\fB" substr(s, at + 1, long - 2) "\\fP"
		s = substr(s, at + long)
	}
	return guarded(out spoken(s))
}
function flush()
{
	if (gathered != "") print words(gathered)
	gathered = ""
}
function level(n)
{
	for (; depth < n; depth++) print ".RS 2"
	for (; depth > n; depth--) print ".RE"
}
/^ *```/ {
	flush()
	code = !code
	print code ? ".PP\n.nf\n.RS 4" : ".RE\n.fi"
	next
}
code { print guarded(plain($0)); next }
/^# / {
	printf ".TH BLK 7 \"\" \"blk %s\" \"Miscellaneous Information Manual\"\n.SH NAME\nblk \\- the blk language for kernels over tiles\n", version
	print ".SH DESCRIPTION"
	next
}
/^##+ / {
	flush()
	level(0)
	section = /^## / ? ".SH " : ".SS "
	sub(/^#+ /, "")
	print section words($0)
	next
}
/^ *\| *-/ { next }
/^ *\|/ {
	flush()
	gsub(/\\\|/, "\001")
	sub(/^ *\| */, "")
	sub(/ *\| *$/, "")
	n = split($0, cell, / *\| */)
	for (i = 1; i <= n; i++) gsub(/\001/, "|", cell[i])
	print ".TP\n" words(cell[1])
	s = cell[2]
	for (i = 3; i <= n; i++) s = s "; " cell[i]
	print words(s)
	table = 1
	next
}
/^ *- / {
	flush()
	level(/^  / ? 1 : 0)
	sub(/^ *- /, "")
	print ".IP \\(bu 2"
	gathered = $0
	next
}
/^$/ { flush(); level(0); print ".PP"; table = 0; next }
{
	if (table) print ".PP"
	table = 0
	sub(/^ */, "")
	gathered = gathered (gathered == "" ? "" : " ") $0
}
END {
	flush()
	level(0)
	print ".SH SEE ALSO\n.BR blkc (1),\n.BR blkrun (1),\n.BR blk.h (3)"
}
