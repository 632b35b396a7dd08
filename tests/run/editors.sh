#!/bin/sh
# usage: editors.sh BUILD      The editors' grammars: made from today's tables, and colouring what they should; Vim and tree-sitter are
# asked where they are installed.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
if ! command -v python3 >/dev/null; then
	skip 1
	finish
fi
status 0 "the grammars" python3 "$root/tools/editors.py" --check
[ -s out ] && { cat out; bad "grammars differ"; } || ok
cat >a.blk <<'E'
// a comment
autotune k key(n) {
    where B > 1;
    try 3;
}
kernel k(o: *f32, n: i32, const B: i32 = 0x10)
    grid(cdiv(n, B)) requires n > 0, "text \" more"
{
    let x = where(arange(0, B) < n, 1.0e-3, inf);
    store(o + arange(0, B), x);
}
E
# line column group, for each editor
cat >wanted <<'E'
1 1 comment
2 1 declare
2 12 clause
3 5 clause
4 5 clause
4 9 number
6 1 declare
6 14 type
6 27 declare
6 42 number
7 5 clause
7 10 function
7 22 clause
7 38 string
9 5 declare
9 13 function
9 19 function
9 37 number
9 45 literal
10 5 function
E
cat >textmate.py <<'E'
import json, re, sys
grammar = json.load(open(sys.argv[1]))
kinds = {"comment": "comment", "string": "string", "constant.numeric": "number", "keyword.control": "control", "storage.type": "declare",
    "constant.language": "literal", "support.function": "function", "keyword.other": "clause", "support.type": "type"}
def kind(name):
    return next((k for prefix, k in kinds.items() if name.startswith(prefix)), "none")
for n, line in enumerate(open("a.blk").read().split("\n"), 1):
    at = 0
    while at < len(line):
        best = None
        for p in grammar["patterns"]:
            m = re.compile(p.get("match") or p["begin"]).search(line, at)
            if m and m.end() > m.start() and (best is None or m.start() < best[0].start()): best = m, p
        if not best: break
        m, p = best
        end = m.end()
        if "end" in p:
            body = re.compile(r"(\\.|[^\"\\])*" + "(" + p["end"] + ")").match(line, end)
            end = body.end() if body else len(line)
        name = p.get("name") or p["captures"]["1"]["name"]
        start = m.start() + len(m.group()) - len(m.group().lstrip())
        print(n, start + 1, kind(name))
        at = end
E
status 0 "TextMate" python3 textmate.py "$root/editors/vscode/syntaxes/blk.tmLanguage.json"
while read -r line; do
	grep -qx "$line" out && ok || { bad "TextMate: no '$line'"; }
done <wanted
for f in "$root"/editors/vscode/*.json; do status 0 "$f" python3 -m json.tool "$f"; done
cat >package.py <<'E'
import json, os, re, sys
folder = sys.argv[1]
own = json.load(open(folder + "/package.json"))["contributes"]
(language,), (grammar,), (matcher,) = own["languages"], own["grammars"], own["problemMatchers"]
for path in language["configuration"], grammar["path"]:
    assert os.path.isfile(os.path.join(folder, path)), path + " is not there"
assert language["id"] == grammar["language"] == "blk" and language["extensions"] == [".blk"]
assert json.load(open(os.path.join(folder, grammar["path"])))["scopeName"] == grammar["scopeName"]
configuration = json.load(open(os.path.join(folder, language["configuration"])))
assert configuration["comments"]["lineComment"] == "//" and ["{", "}"] in configuration["brackets"]
pattern = matcher["pattern"]
m = re.match(pattern["regexp"], "a.blk:3:14: error[E0201]: unknown name 'x'")
assert m and [m[pattern[k]] for k in ("file", "line", "column", "severity", "code", "message")] == [
    "a.blk", "3", "14", "error", "E0201", "unknown name 'x'"]
E
status 0 "VS Code's package" python3 package.py "$root/editors/vscode"
if command -v vim >/dev/null; then
	{
		echo "set runtimepath^=$root/editors/vim"
		echo 'filetype plugin on'
		echo 'syntax on'
		echo 'edit a.blk'
		echo 'redir! > groups'
		while read -r l c g; do echo "silent echo '$l $c ' . tolower(strpart(synIDattr(synID($l, $c, 1), 'name'), 3))"; done <wanted
		echo 'silent echo &commentstring'
		echo 'redir END'
		echo 'qa!'
	} >script.vim
	timeout 60 vim -u NONE -N -es -S script.vim a.blk </dev/null >/dev/null 2>&1
	while read -r line; do
		grep -qx "$line" groups && ok || bad "Vim: no '$line'"
	done <wanted
	grep -qx '// %s' groups && ok || bad "Vim: no comments"
else
	skip 1
fi
# tree-sitter's parser, made here: no file of the repository holds an error, and the same places have the same colours.
if command -v tree-sitter >/dev/null; then
	cp -r "$root/editors/tree-sitter" grammar
	export HOME="$dir/home" XDG_CACHE_HOME="$dir/home" XDG_CONFIG_HOME="$dir/home"
	mkdir -p home
	cd grammar || exit 2
	status 0 "tree-sitter generate" tree-sitter generate
	for f in "$root"/examples/*.blk "$root"/examples/*/*.blk "$root"/compiler/lib/*.blk "$root"/compiler/lib/blk/*.blk "$root"/tests/golden/good/*.blk; do
		status 0 "tree-sitter: $f" tree-sitter parse --quiet "$f"
	done
	echo 'kernel k( { let' >"$dir/broken.blk"
	status 1 "tree-sitter: a broken file" tree-sitter parse --quiet "$dir/broken.blk"
	status 0 "tree-sitter query" tree-sitter query queries/highlights.scm "$dir/a.blk"
	cd "$dir" || exit 2
	cat >captures.py <<'E'
import re, sys
kinds = {"comment": "comment", "string": "string", "number": "number", "keyword.control": "control", "keyword.directive": "clause",
    "keyword": "declare", "constant.builtin": "literal", "function.builtin": "function", "type.builtin": "type"}
best, pattern = {}, 0
for line in open(sys.argv[1]):
    if m := re.match(r" *pattern: (\d+)", line): pattern = int(m[1])
    m = re.search(r"capture: (?:\d+ - )?([a-z.]+), start: \((\d+), (\d+)\)", line)
    if m: best[int(m[2]) + 1, int(m[3]) + 1] = max(best.get((int(m[2]) + 1, int(m[3]) + 1), (-1, "")), (pattern, m[1]))
for (row, column), (_, name) in sorted(best.items()): print(row, column, kinds.get(name, "none"))
E
	cp out captured
	status 0 "tree-sitter's captures" python3 captures.py captured
	while read -r line; do
		grep -qx "$line" out && ok || bad "tree-sitter: no '$line'"
	done <wanted
else
	echo "skipped: there is no tree-sitter"
	skip 1
fi
finish
