#!/usr/bin/env python3
"""Editors' grammars, made from the compiler's own tables.

In: the lexer's words, the tables of built-in functions and of element types, the library.  Out: editors/vim/syntax/blk.vim,
editors/vscode/syntaxes/blk.tmLanguage.json and the queries of editors/tree-sitter.  With --check: says which of them are
not what it would write, and which of the lexer's words and signs the grammar of tree-sitter lacks, and fails.
"""
import glob
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LITERALS = {"true", "false", "None", "inf", "nan"}
DECLARES = {"import", "const", "fn", "kernel", "autotune", "let", "var"}
BRACKETS = ["(", ")", "[", "]", "{", "}"]
DELIMITERS = [",", ";", ":", "."]
PLACES = {"grid", "options", "cost", "requires", "key", "config", "where", "reset", "restore", "scratch", "tolerance", "order", "try"}


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def words():
    """The lexer's words, by what they are."""
    found = set(re.findall(r'"([A-Za-z]+)" \{ *TOKEN\([A-Z]+\)', read("compiler/syntax/lexer.re")))
    assert LITERALS | DECLARES | PLACES <= found
    return {"literal": LITERALS, "declare": DECLARES, "place": PLACES, "control": found - LITERALS - DECLARES - PLACES}


def signs():
    """The lexer's operators and brackets."""
    return sorted(set(re.findall(r'"([^A-Za-z"\\]+)" \{ *TOKEN\(', read("compiler/syntax/lexer.re"))))


def types():
    rows = re.findall(r'^\tX\([A-Z0-9]+, "([a-z0-9]+)"', read("compiler/support/scalar.h"), re.M)
    return set(rows) | {"tensor", "type", "shape"}


def functions():
    found = set()
    for path in glob.glob(str(ROOT / "compiler/sema/builtins*.c")):
        found |= set(re.findall(r'^\t\{"([a-z_0-9]+)", "', pathlib.Path(path).read_text(encoding="utf-8"), re.M))
    found |= {"range", "static_range", "static_assert", "static_print"}
    # Rows of the table of operations that are built-ins under their own names.
    found |= set(re.findall(r'^(?:OP|EACH)\(\w+, *"(\w+)",[^\n]*\bBUILTIN\b', read("compiler/ir/ops.def"), re.M))
    for path in glob.glob(str(ROOT / "compiler/lib/**/*.blk"), recursive=True):
        if not pathlib.Path(path).name.startswith("math"):
            found |= set(re.findall(r"^fn ([a-z_0-9]+)\(", pathlib.Path(path).read_text(encoding="utf-8"), re.M))
    return found - PLACES - {"tensor"}


def alternatives(names):
    return "|".join(sorted(names, key=lambda n: (-len(n), n)))


def vim():
    w = words()
    lines = [
        '" Vim syntax file for blk, made by tools/editors.py',
        'if exists("b:current_syntax")',
        "  finish",
        "endif",
        "syn keyword blkControl " + " ".join(sorted(w["control"])),
        "syn keyword blkDeclare " + " ".join(sorted(w["declare"])),
        "syn keyword blkLiteral " + " ".join(sorted(w["literal"])),
        "syn keyword blkType " + " ".join(sorted(types())),
        "syn match blkFunction /\\<\\%(" + "\\|".join(sorted(functions() | {"where"})) + "\\)\\ze\\s*(/",
        "syn match blkClause /\\<\\%(" + "\\|".join(sorted(PLACES - {"where"})) + "\\)\\ze\\s*(/",
        "syn match blkClause /^\\s*\\%(" + "\\|".join(sorted(PLACES)) + "\\)\\>\\ze\\s\\+[^=;]/",
        "syn match blkClause /\\<requires\\>/",
        "syn match blkNumber /\\<\\%(0x\\x[0-9A-Fa-f_]*\\|0b[01][01_]*\\|\\d[0-9_]*\\%(\\.\\d\\+\\)\\?\\%([eE][-+]\\?\\d\\+\\)\\?\\)\\>/",
        'syn region blkString start=/"/ skip=/\\\\./ end=/"/ end=/$/',
        "syn keyword blkTodo TODO FIXME XXX contained",
        "syn match blkComment +//.*$+ contains=blkTodo,@Spell",
        "syn region blkComment start=+/\\*+ end=+\\*/+ contains=blkTodo,@Spell",
        "hi def link blkControl Statement",
        "hi def link blkDeclare Keyword",
        "hi def link blkClause PreProc",
        "hi def link blkLiteral Constant",
        "hi def link blkType Type",
        "hi def link blkFunction Function",
        "hi def link blkNumber Number",
        "hi def link blkString String",
        "hi def link blkTodo Todo",
        "hi def link blkComment Comment",
        'let b:current_syntax = "blk"',
    ]
    return "\n".join(lines) + "\n"


def textmate():
    w = words()
    rule = lambda name, match: {"name": name + ".blk", "match": match}
    grammar = {
        "name": "blk",
        "scopeName": "source.blk",
        "fileTypes": ["blk"],
        "patterns": [
            rule("comment.line.double-slash", "//.*$"),
            {"name": "comment.block.blk", "begin": "/\\*", "end": "\\*/"},
            {
                "name": "string.quoted.double.blk",
                "begin": '"',
                "end": '"|$',
                "patterns": [rule("constant.character.escape", "\\\\.")],
            },
            rule("constant.numeric", "\\b(0x[0-9A-Fa-f][0-9A-Fa-f_]*|0b[01][01_]*|[0-9][0-9_]*(\\.[0-9]+)?([eE][-+]?[0-9]+)?)\\b"),
            {
                "match": "\\b(fn|kernel|autotune)\\s+([A-Za-z_][A-Za-z0-9_]*)",
                "captures": {"1": {"name": "storage.type.blk"}, "2": {"name": "entity.name.function.blk"}},
            },
            rule("keyword.control", "\\b(" + alternatives(w["control"]) + ")\\b"),
            rule("storage.type", "\\b(" + alternatives(w["declare"]) + ")\\b"),
            rule("constant.language", "\\b(" + alternatives(w["literal"]) + ")\\b"),
            rule("support.function", "\\b(" + alternatives(functions() | {"where"}) + ")(?=\\s*\\()"),
            rule("keyword.other", "\\b(" + alternatives(PLACES - {"where"}) + ")(?=\\s*\\()|\\brequires\\b|^\\s*(" + alternatives(PLACES) + ")\\b(?=\\s+[^=;\\s])"),
            rule("support.type", "\\b(" + alternatives(types()) + ")\\b"),
            rule("keyword.operator", "->|<<=?|>>=?|[-+*/%&|^=!<>]=?|&&|\\|\\||[~?:]"),
        ],
    }
    return json.dumps(grammar, indent=2) + "\n"


def tree_sitter():
    w = words()
    quoted = lambda names: "\n".join(f'  "{n}"' for n in sorted(names))
    lines = [
        "; Colours of blk for tree-sitter, made by tools/editors.py.  A later pattern wins.",
        "(identifier) @variable",
        "(parameter name: (identifier) @variable.parameter)",
        "(named_argument name: (identifier) @variable.parameter)",
        "(member name: (identifier) @property)",
        "(call function: (identifier) @function.call)",
        "(call function: (member name: (identifier) @function.call))",
        f'((identifier) @type.builtin\n  (#match? @type.builtin "^({alternatives(types())})$"))',
        "(call function: (identifier) @function.builtin\n"
        f'  (#match? @function.builtin "^({alternatives(functions() | {"where"})})$"))',
        "(function name: (identifier) @function)",
        "(kernel name: (identifier) @function)",
        "(autotune name: (identifier) @function)",
        "(axis name: (identifier) @property)",
        "(literal) @constant.builtin",
        "[(integer) (float)] @number",
        "(string_part) @string",
        "(comment) @comment",
        "[\n" + quoted(w["control"]) + "\n] @keyword.control",
        "[\n" + quoted(w["declare"]) + "\n] @keyword",
        "[\n" + quoted(w["place"]) + "\n] @keyword.directive",
        "[\n" + quoted(s for s in signs() if s not in BRACKETS and s not in DELIMITERS) + "\n] @operator",
        "[" + " ".join(f'"{s}"' for s in BRACKETS) + "] @punctuation.bracket",
        "[" + " ".join(f'"{s}"' for s in DELIMITERS) + "] @punctuation.delimiter",
    ]
    return "\n".join(lines) + "\n"


def lacking():
    """The lexer's words and signs that editors/tree-sitter/grammar.js does not quote."""
    there = set(re.findall(r'"([^"\s]+)"', read("editors/tree-sitter/grammar.js")))
    return sorted((set().union(*words().values()) | set(signs())) - there)


def main():
    wrong = 0
    if lacking():
        print("editors/tree-sitter/grammar.js has no " + " ".join(lacking()))
        wrong = 1
    for path, text in (
        ("editors/vim/syntax/blk.vim", vim()),
        ("editors/vscode/syntaxes/blk.tmLanguage.json", textmate()),
        ("editors/tree-sitter/queries/highlights.scm", tree_sitter()),
    ):
        if "--check" not in sys.argv:
            (ROOT / path).write_text(text, encoding="utf-8")
        elif read(path) != text:
            print(f"{path} is not what tools/editors.py writes: run it")
            wrong = 1
    return wrong


sys.exit(main())
