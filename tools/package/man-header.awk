# blk.h as a manual page: its opening comment is the description, every section after it is shown as it is written.
function text(s)
{
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	return s ~ /^[.']/ ? "\\&" s : s
}
function show(on)
{
	if (on != shown) print on ? ".nf" : ".fi"
	shown = on
}
NR == 1 {
	sub(/^\/\* libblk: /, "")
	sub(/\.$/, "")
	printf ".TH BLK.H 3 \"\" \"blk %s\" \"Library Functions Manual\"\n.SH NAME\nblk.h \\- %s\n", version, text($0)
	print ".SH SYNOPSIS\n.B #include <blk.h>\n.PP\nLink with \\-lblk.\n.SH DESCRIPTION"
	opening = 1
	next
}
opening {
	end = sub(/ *\*\/$/, "")
	sub(/^ \* ?/, "")
	if ($0 == "") { show(0); print ".PP" }
	else if (/^\t/) { show(1); sub(/^\t/, "    "); print text($0) }
	else if (/^ - /) { show(0); sub(/^ - /, ""); print ".IP \\(bu 2\n" text($0) }
	else { show(0); sub(/^ */, ""); print text($0) }
	if (end) { show(0); opening = 0 }
	next
}
/^\/\* ---- .* ---- \*\/$/ {
	show(0)
	gsub(/^\/\* ---- | ---- \*\/$/, "")
	print ".SH " toupper(text($0))
	begun = 1
	next
}
/^}$/ && last == "#ifdef __cplusplus" { exit } # the end of extern "C"
last != "" { show(1); print text(last) }
{ last = "" }
/^#ifdef __cplusplus$/ { last = $0; next }
begun { show(1); print text($0) }
END {
	show(0)
	print ".SH SEE ALSO\n.BR blkc (1),\n.BR blkrun (1),\n.BR blk (7)"
}
