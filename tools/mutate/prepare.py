#!/usr/bin/env python3
"""Draws mutants of the C sources and writes a tree in which all of them are compiled in; see docs/proof.md.

usage: prepare.py --out=FOLDER [--mutants=2000] [--seed=1] [--list] [--print] [SOURCE...] -- CLANG'S FLAGS

In: the sources (those of FOLDERS below where none is named), read by clang, which prints its syntax tree as JSON.
Out: FOLDER/tree, a copy of the repository in which every drawn place is a macro of mutant.h, and FOLDER/mutants.json, what
each number stands for.  A mutant is drawn by a hash of the seed, its function and its text, so that most of a sample stays
the same when the sources change elsewhere.  --list prints the mutants instead, --print the changed text of one source.
"""
import glob
import hashlib
import json
import multiprocessing
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ["runtime", "runtime/base", "runtime/cache", "runtime/device", "runtime/package", "runtime/sim", "runtime/tune", "compiler/analysis", "compiler/async",
           "compiler/layout", "compiler/passes", "compiler/target/nvptx", "compiler/target/nvptx/mma", "compiler/transform"]

# What an operator becomes: the nearest bound first, then the opposite.
BINARY = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "+": ["-"], "-": ["+"], "*": ["+"], "/": ["*"], "%": ["/"],
    "&": ["|"], "|": ["&"], "^": ["|"], "<<": [">>"], ">>": ["<<"],
}
ASSIGN = {"+=": "-=", "-=": "+=", "*=": "+=", "/=": "*=", "%=": "/=", "&=": "|=", "|=": "&=", "^=": "|=", "<<=": ">>=", ">>=": "<<="}

# No code is made for these, or it must be constant.
CONSTANT = {"ConstantExpr", "UnaryExprOrTypeTraitExpr", "OffsetOfExpr", "StaticAssertDecl", "GenericSelectionExpr", "StmtExpr"}


class Site:
    """A place: its span in the file, the spans of its operands and its mutants as (slot, text)."""

    def __init__(self, kind, begin, end, **more):
        self.kind, self.begin, self.end = kind, begin, end
        self.mutants = []  # [slot, original, changed], then its number
        self.__dict__.update(more)


class Reader:
    """Walks the functions of one file and collects its sites."""

    def __init__(self, path, tree):
        self.path, self.sites = path, []
        self.text = open(path, "rb").read()
        self.bits, self.least = set(), set()  # bit fields; comparisons that choose the lesser or the greater of two
        self.find_bits(tree)
        for node in tree["inner"]:
            if node.get("kind") == "FunctionDecl" and "includedFrom" not in node.get("loc", {}) and "offset" in node.get("loc", {}):
                self.function = node["name"]
                for child in node.get("inner", []):
                    if child["kind"] == "CompoundStmt":
                        self.walk(child, None)

    def find_bits(self, node):
        if node.get("isBitfield"):
            self.bits.add(node["id"])
        if node.get("kind") in ("TranslationUnitDecl", "RecordDecl"):
            for child in node.get("inner", []):
                self.find_bits(child)

    def span(self, node):
        """Where a node is written, or None: not in this file, or made by a macro."""
        begin, end = node["range"]["begin"], node["range"]["end"]
        for at in (begin, end):
            if "offset" not in at or "includedFrom" in at:
                return None
        return begin["offset"], end["offset"] + end["tokLen"]

    def loose_span(self, node):
        """The same, of an operand, which may begin or end in a macro: from its name to the end of its arguments."""
        out = []
        for which in ("begin", "end"):
            at = node["range"][which]
            if "expansionLoc" in at:
                at = at["expansionLoc"]
                if "offset" not in at or "includedFrom" in at or at.get("isMacroArgExpansion"):
                    return None
                stop = at["offset"] + at["tokLen"]
                rest = self.text[stop:].lstrip(b" ")
                if rest.startswith(b"("):
                    stop = self.closing(len(self.text) - len(rest))
            elif "offset" not in at or "includedFrom" in at:
                return None
            else:
                stop = at["offset"] + at["tokLen"]
            out.append(at["offset"] if which == "begin" else stop)
        return tuple(out)

    def closing(self, at):
        depth = 0
        while True:
            c = self.text[at:at + 1]
            depth += (c == b"(") - (c == b")")
            at += 1
            if depth == 0:
                return at

    def operator(self, left, right, op):
        """Where the operator stands between two operands, parentheses around them included on their own side."""
        between = self.text[left[1]:right[0]]
        plain = re.sub(rb"/\*.*?\*/|//[^\n]*", lambda m: b" " * len(m.group()), between, flags=re.S)
        match = re.fullmatch(rb"\s*" + re.escape(op.encode()) + rb"\s*", plain)
        return left[1] + plain.index(op.encode()) if match else None

    def add(self, kind, node, span, mutants, **more):
        site = Site(kind, span[0], span[1], function=self.function, **more)
        for slot, original, changed in mutants:
            site.mutants.append([slot, original, changed, 0])
        if site.mutants:
            self.sites.append(site)

    def source(self, span):
        return " ".join(self.text[span[0]:span[1]].decode().split())

    def find_least(self, inner):
        """`if (a < b) a = b;` and `a < b ? a : b`: nobody can tell < from <=."""
        if inner[0].get("opcode") not in ("<", "<=", ">", ">="):
            return
        if len(inner) == 2 and inner[1].get("opcode") == "=":
            chosen = inner[1]["inner"]
        elif len(inner) == 3:
            chosen = inner[1:]
        else:
            return
        texts = [sorted(self.source(span) for span in map(self.loose_span, pair) if span) for pair in (inner[0]["inner"], chosen)]
        if len(texts[0]) == 2 and texts[0] == texts[1]:
            self.least.add(inner[0]["id"])

    def condition(self, node, statement):
        span = self.loose_span(node)
        begin = statement["range"]["begin"]
        if not span or "offset" not in begin or "includedFrom" in begin or node["kind"] == "IntegerLiteral":
            return  # the statement itself is a macro's
        text = self.source(span)
        loop = statement["kind"] in ("WhileStmt", "DoStmt", "ForStmt")
        mutants = [("no", text, "false")]
        if not loop:
            mutants.append(("yes", text, "true"))
        self.add("condition", node, span, mutants)

    def walk(self, node, parent, counted=False, step=False):
        kind = node.get("kind")
        if kind is None or kind in CONSTANT or (kind == "VarDecl" and node.get("storageClass") == "static"):
            return
        inner = [c for c in node.get("inner", []) if c]
        if kind == "CaseStmt":
            inner = inner[1:]
        if kind in ("IfStmt", "ConditionalOperator"):
            self.find_least(inner)
        if kind in ("IfStmt", "WhileStmt", "ConditionalOperator"):
            self.condition(inner[0], node)
        elif kind == "DoStmt":
            self.condition(inner[1], node)
        elif kind == "ForStmt":
            raw = node["inner"]  # init, declaration, condition, step, body; an absent one is {}
            if raw[2]:
                self.condition(raw[2], node)
            for i, child in enumerate(raw):
                if child:
                    self.walk(child, node, step=i == 3, counted=i == 0)
            return
        elif kind == "BinaryOperator":
            self.binary(node, inner)
        elif kind == "CompoundAssignOperator" and not step:
            self.assign(node, inner)
        elif kind == "UnaryOperator":
            self.unary(node, inner, parent, step)
        elif kind == "IntegerLiteral" and counted:
            self.literal(node)
        for i, child in enumerate(inner):
            within = (kind == "BinaryOperator" and node["opcode"] in BINARY) or kind == "CompoundAssignOperator" or \
                (kind == "ArraySubscriptExpr" and i == 1) or \
                (counted and kind in ("ImplicitCastExpr", "ParenExpr", "DeclStmt", "VarDecl")) or \
                (counted and kind == "BinaryOperator" and node["opcode"] == "=")
            if kind == "ImplicitCastExpr" and node.get("castKind") in ("NullToPointer", "IntegralToBoolean"):
                within = False
            self.walk(child, node, counted=within, step=step)

    def binary(self, node, inner):
        op = node["opcode"]
        if op not in BINARY and op not in ("&&", "||"):
            return
        span, left, right = self.span(node), self.loose_span(inner[0]), self.loose_span(inner[1])
        if not span or not left or not right or left[0] < span[0] or right[1] > span[1]:
            return
        at = self.operator(left, right, op)
        if at is None:
            return
        whole, l, r = self.source(span), self.source(left), self.source(right)
        if op in ("&&", "||"):
            other = "||" if op == "&&" else "&&"
            self.add("logic", node, span, [("other", whole, f"{l} {other} {r}"), ("left", whole, l), ("right", whole, r)],
                     op=op, left=left, right=right)
            return
        pointers = [self.pointer(c) for c in inner]
        if op in "+-" and (pointers[1]):
            return  # two pointers, or an index in front of one: there is no other operator
        skipped = 1 if node["id"] in self.least else 0
        self.add("binary", node, span, [(i, whole, f"{l} {other} {r}") for i, other in enumerate(BINARY[op]) if i >= skipped],
                 op=op, left=left, right=right, bits=[self.bitfield(c) for c in inner])

    def pointer(self, node):
        return node["type"].get("desugaredQualType", node["type"]["qualType"]).rstrip(" const").endswith(("*", "]"))

    def bitfield(self, node):
        return node.get("referencedMemberDecl") in self.bits or \
            (node["kind"] in ("ImplicitCastExpr", "ParenExpr") and any(self.bitfield(c) for c in node["inner"]))

    def assign(self, node, inner):
        op = node["opcode"]
        span, left, right = self.span(node), self.loose_span(inner[0]), self.loose_span(inner[1])
        if not span or not left or not right or self.operator(left, right, op) is None:
            return
        self.add("either", node, span, [("it", self.source(span), f"{self.source(left)} {ASSIGN[op]} {self.source(right)}")])

    def unary(self, node, inner, parent, step):
        op = node["opcode"]
        span, operand = self.span(node), self.loose_span(inner[0])
        if not span or not operand:
            return
        text, plain = self.source(span), self.source(operand)
        if op in ("++", "--") and not step and self.text[span[0]:span[1]].count(op.encode()) == 1:
            self.add("either", node, span, [("it", text, text.replace(op, "--" if op == "++" else "++"))])
        elif op in ("-", "~") and inner[0]["kind"] != "IntegerLiteral":
            self.add("either", node, span, [("it", text, plain)])
        elif op == "!" and not (parent and parent["kind"] in ("IfStmt", "ConditionalOperator")):
            self.add("either", node, span, [("it", text, f"!!({plain})")])

    def literal(self, node):
        span = self.span(node)
        if not span:
            return
        text = self.source(span)
        mutants = [("more", text, f"({text} + 1)")]
        if int(node["value"]) > 1:
            mutants.append(("less", text, f"({text} - 1)"))
        self.add("literal", node, span, mutants)


def nested(sites):
    """Sites as a forest by their spans; of two with the same span the first one is outside."""
    roots, open_ = [], []
    for site in sorted(sites, key=lambda s: (s.begin, -s.end)):
        while open_ and open_[-1].end <= site.begin:
            open_.pop()
        site.children = []
        (open_[-1].children if open_ else roots).append(site)
        open_.append(site)
    return roots


class Writer:
    """The text of a file with its drawn sites as macros."""

    def __init__(self, text, sites):
        self.text, self.roots = text, nested(sites)

    def all(self):
        return self.part(0, len(self.text), self.roots)

    def part(self, begin, end, sites):
        out, at = [], begin
        for site in sites:
            if site.begin < begin or site.end > end:
                continue
            out += [self.text[at:site.begin].decode(), self.site(site)]
            at = site.end
        return "".join(out) + self.text[at:end].decode()

    def site(self, s):
        number = {slot: n for slot, _, _, n in s.mutants}
        changed = {slot: text for slot, _, text, _ in s.mutants}
        n = lambda slot: number.get(slot, 0)
        if s.kind == "condition":
            return f"BLK_CONDITION({n('yes')}, {n('no')}, 0, ({self.part(s.begin, s.end, s.children)}))"
        if s.kind in ("logic", "binary"):
            left, right = (f"({self.part(*span, s.children)})" for span in (s.left, s.right))
        if s.kind == "logic":
            return f"{'BLK_AND' if s.op == '&&' else 'BLK_OR'}({n('other')}, {n('left')}, {n('right')}, {left}, {right})"
        if s.kind == "binary":
            other = BINARY[s.op] + [s.op]
            keep = ["BLK_BITS" if b else "BLK_PLAIN" for b in s.bits]
            return f"BLK_BINARY({n(0)}, {other[0]}, {n(1)}, {other[1]}, {s.op}, {keep[0]}, {left}, {keep[1]}, {right})"
        old = self.part(s.begin, s.end, s.children)
        for slot in changed:
            old = f"BLK_EITHER({number[slot]}, {old}, {changed[slot]})"
        return f"({old})"


def read(job):
    path, flags = job
    # Behind ccache's name for clang the tree of another file may come back.
    made = subprocess.run(["clang", "-fsyntax-only", "-w", "-Xclang", "-ast-dump=json", *flags, path], stdout=subprocess.PIPE,
                          env={**os.environ, "CCACHE_DISABLE": "1"})
    if made.returncode:
        raise RuntimeError(f"{path}: clang cannot read it")  # an exit would leave the pool waiting
    return path, Reader(path, json.loads(made.stdout)).sites


def rules(path):
    """equivalent.txt: patterns of the file, the function and "ORIGINAL -> MUTANT in LINE", with tabs between; '#' gives the reasons."""
    out = []
    for line in open(path):
        if line.strip() and not line.startswith("#"):
            parts = line.rstrip("\n").split("\t")
            if len(parts) != 3:
                sys.exit(f"{path}: three patterns with tabs between are wanted: {line}")
            out.append([re.compile(p) for p in parts])
    return out


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


def draw(files, seed, count, left_out):
    """The drawn (path, site, mutant), in drawn order, how many there were, and how many the rules left out."""
    ranked, dropped, seen = [], 0, {}
    for path, sites in files:
        text = open(path, "rb").read()
        for site in sites:
            there = text[text.rfind(b"\n", 0, site.begin) + 1:text.find(b"\n", site.begin)].decode().strip()
            for mutant in site.mutants:
                change = f"{mutant[1]} -> {mutant[2]}"
                if any(f.search(path) and g.search(site.function) and t.search(f"{change} in {there}") for f, g, t in left_out):
                    dropped += 1
                    continue
                name = f"{path}:{site.function}:{site.kind}:{change}"
                seen[name] = seen.get(name, 0) + 1
                name += f":{seen[name]}"
                line = text.count(b"\n", 0, site.begin) + 1
                ranked.append((digest(f"{seed}:{name}"), path, line, site, mutant, digest(name)[:16]))
    ranked.sort(key=lambda r: r[0])
    return ranked[:count], len(ranked), dropped


def write(path, data):
    """Leaves a file that is the same as it is, so that make builds nothing; true where it was another."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.exists(path) and open(path, "rb").read() == data:
        return False
    with open(path, "wb") as f:
        f.write(data)
    return True


def instrumented(path, sites, numbers):
    """The text of a file whose mutants have these numbers, one after the other."""
    live = []
    for site in sites:
        site.mutants = [m for m in site.mutants if m[3]]
        if site.mutants:
            live.append(site)
    return f"#define BLK_MUTANT_FIRST {numbers[0]}\n#define BLK_MUTANT_COUNT {len(numbers)}\n" + \
        open(os.path.join(HERE, "mutant.h")).read() + f'#line 1 "{path}"\n' + Writer(open(path, "rb").read(), live).all()


def main(arguments):
    flags = arguments[arguments.index("--") + 1:] if "--" in arguments else []
    words = arguments[:arguments.index("--")] if "--" in arguments else arguments
    options = dict(w[2:].split("=", 1) for w in words if w.startswith("--") and "=" in w)
    paths = [w for w in words if not w.startswith("--")] or sorted(p for f in FOLDERS for p in glob.glob(f + "/*.c") if p != "runtime/blkrun.c")
    with multiprocessing.Pool() as pool:
        files = pool.map(read, [(p, flags) for p in paths], chunksize=1)
    left_out = rules(os.path.join(HERE, "equivalent.txt"))
    drawn, total, dropped = draw(files, options.get("seed", "1"), int(options.get("mutants", 2000)), left_out)
    if "--print" not in words and "--list" not in words:
        print(f"{total} mutants in {len(paths)} files, {dropped} left out by tools/mutate/equivalent.txt, {len(drawn)} drawn")
    # Numbers run through each file, so that its record of what was reached is an array of its own.
    order = sorted(range(len(drawn)), key=lambda i: (drawn[i][1], drawn[i][2], i))
    listed, chosen = [], {}
    for number, i in enumerate(order, 1):
        _, path, line, site, mutant, name = drawn[i]
        mutant[3] = number
        chosen.setdefault(path, []).append(number)
        listed.append({"n": number, "id": name, "rank": i, "file": path, "line": line, "function": site.function, "original": mutant[1], "mutant": mutant[2]})
    if "--list" in words:
        for m in listed:
            print(f"{m['file']}:{m['line']}: {m['original']} -> {m['mutant']}")
        return
    if "--print" in words:
        print(instrumented(files[0][0], files[0][1], chosen.get(files[0][0], [0])), end="")
        return
    out, changed = options["out"], False
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], stdout=subprocess.PIPE, check=True).stdout.decode()
    tracked = set(tracked.split("\n"))
    for folder, _, names in os.walk(f"{out}/tree"):  # what is gone here goes there
        for path in (f"{folder}/{name}" for name in names):
            if not path.startswith(f"{out}/tree/build/") and os.path.relpath(path, f"{out}/tree") not in tracked:
                os.remove(path)
    for path in sorted(tracked):
        if path and os.path.isfile(path) and path not in chosen:
            changed |= write(f"{out}/tree/{path}", open(path, "rb").read())
            if os.access(path, os.X_OK):
                os.chmod(f"{out}/tree/{path}", 0o755)
    for path, sites in files:
        if path not in chosen:
            continue
        changed |= write(f"{out}/tree/{path}", instrumented(path, sites, chosen[path]).encode())
    changed |= write(f"{out}/mutants.json", json.dumps(listed, indent=0).encode())
    if changed and os.path.exists(f"{out}/reached.json"):
        os.remove(f"{out}/reached.json")


if __name__ == "__main__":
    main(sys.argv[1:])
