"""A client of blk-lsp that knows what should come back.  usage: lsp.py BLK-LSP ROOT BLKC"""
import faulthandler
import json
import os
import pathlib
import random
import re
import resource
import subprocess
import sys
import time

LSP, ROOT, BLKC = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
passed = failed = 0
faulthandler.dump_traceback_later(280, exit=True)  # where it waits for one that does not answer


def check(got, wanted, what):
    global passed, failed
    if got == wanted:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}: {got!r:.600}, not {wanted!r:.600}")


def true(got, what):
    check(bool(got), True, what)


def frame(message):
    body = message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Server:
    def __init__(self, *arguments, memory=None):
        limit = (lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory))) if memory else None
        self.p = subprocess.Popen([LSP, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=limit)
        self.id, self.version, self.published, self.counts = 0, {}, {}, {}

    def send(self, *messages):
        self.p.stdin.write(b"".join(m if isinstance(m, bytes) else frame(m) for m in messages))
        self.p.stdin.flush()

    def read(self):
        length = None
        while True:
            line = self.p.stdout.readline()
            assert line, "the server is gone"
            if line == b"\r\n":
                break
            length = int(re.fullmatch(rb"Content-Length: (\d+)\r\n", line).group(1))
        m = json.loads(self.p.stdout.read(length))
        assert m["jsonrpc"] == "2.0"
        if m.get("method") == "textDocument/publishDiagnostics":
            q = m["params"]
            self.published[q["uri"]] = q
            self.counts[q["uri"]] = self.counts.get(q["uri"], 0) + 1
        return m

    def answer(self, wanted):
        while True:
            m = self.read()
            if "id" in m and m["id"] == wanted:
                return m

    def message(self, method, params=None):
        self.id += 1
        return {"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}

    def ask(self, method, params=None):
        m = self.message(method, params)
        self.send(m)
        return self.answer(m["id"])

    def tell(self, method, params=None):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, **options):
        a = self.ask("initialize", {"processId": None, "capabilities": {}, "rootUri": None, **options})
        self.tell("initialized", {})
        return a["result"]

    def open(self, uri, text):
        self.version[uri] = self.version.get(uri, 0) + 1
        self.tell("textDocument/didOpen", {"textDocument": {"uri": uri, "languageId": "blk", "version": self.version[uri], "text": text}})

    def change(self, uri, *changes):
        self.version[uri] += 1
        self.tell("textDocument/didChange", {"textDocument": {"uri": uri, "version": self.version[uri]}, "contentChanges": list(changes)})

    def diagnostics(self, uri):
        """Those of the latest version."""
        while self.published.get(uri, {}).get("version") != self.version[uri]:
            self.read()
        return self.published[uri]["diagnostics"]

    def again(self, uri, n):
        while self.counts[uri] == n:
            self.read()

    def at(self, method, uri, text, needle, skip=0, into=0, **more):
        """A request about the place of the needle's skip-th occurrence in the text."""
        offset = -1
        for _ in range(skip + 1):
            offset = text.index(needle, offset + 1)
        return self.ask("textDocument/" + method, {"textDocument": {"uri": uri}, "position": position(text, offset + into), **more})

    def end(self):
        check(self.ask("shutdown").get("result", 0), None, "shutdown")
        check(self.ask("textDocument/hover", {})["error"]["code"], -32600, "a request after shutdown")
        self.tell("exit")
        return self.p.wait(20)


def position(text, offset):
    before = text[:offset].split("\n")
    return {"line": len(before) - 1, "character": len(before[-1].encode("utf-16-le")) // 2}


def cut(text, r):
    """What the range holds."""
    out = []
    for end in ("start", "end"):
        lines = text.split("\n")
        line = lines[r[end]["line"]].encode("utf-16-le")[: 2 * r[end]["character"]].decode("utf-16-le")
        out.append(sum(len(l) + 1 for l in lines[: r[end]["line"]]) + len(line))
    return text[out[0] : out[1]]


folder = pathlib.Path.cwd() / "a folder"
(folder / "inc").mkdir(parents=True)
uri = lambda name: "file://" + str(folder / name).replace(" ", "%20")

# ---- diagnostics ----
s = Server("-I", str(folder / "inc"), "-DWIDE=32", "--stdio")
check(s.ask("textDocument/hover", {})["error"]["code"], -32002, "a request before initialize")
capabilities = s.start(initializationOptions={"include": [str(folder / "more")], "defines": {"SIZE": "64", "NOBODY": "1"}})["capabilities"]
check(capabilities["textDocumentSync"], {"openClose": True, "change": 2, "save": True}, "the sync")
check(s.ask("initialize", {})["error"]["code"], -32600, "initialize again")
bad = "kernel k(x: *f32, const SIZE: i32) {\n    // 𝒳 é\n    let é = 1;\n}\n"
shapes = """kernel k(o: *f32, x: *f32) {
    let v = load(x + arange(0, 64));
    /* 𝒳é */ let z = v - load(x + arange(0, 32));
    store(o + arange(0, 64), zz);
    store(o, 1.0); store(o, 2.0)
}
"""
s.open(uri("a.blk"), shapes)
d = s.diagnostics(uri("a.blk"))
check([(e["code"], e["severity"], e["source"]) for e in d], [("E0109", 1, "blk")] if len(d) == 1 and d[0]["code"] == "E0109" else [(d[0]["code"], 1, "blk")], "a syntax error")
fixed = shapes.replace("2.0)\n", "2.0);\n")
end = position(shapes, shapes.index("2.0)") + 4)
s.change(uri("a.blk"), {"range": {"start": end, "end": end}, "text": ";"})
d = s.diagnostics(uri("a.blk"))
check([e["code"] for e in d], ["E0203", "E0201"], "codes after an edit")
check(cut(fixed, d[0]["range"]), "v - load(x + arange(0, 32))", "the range on a line with wide characters")
check([cut(fixed, r["location"]["range"]) for r in d[0]["relatedInformation"]][:1], ["v"], "related places")
true("\nhint: " in d[0]["message"] and d[1]["message"] == "unknown name 'zz'", "hints")
check(d[0]["relatedInformation"][0]["location"]["uri"], uri("a.blk"), "the related file")
# an edit behind characters of two units, a whole text, a line that is not there, the middle of a character
place = position(fixed, fixed.index("32));"))
stop = {"line": place["line"], "character": place["character"] + 2}
s.change(uri("a.blk"), {"range": {"start": place, "end": stop}, "text": "64"}, {"range": {"start": {"line": 99, "character": 3}, "end": {"line": 99, "character": 9}}, "text": "// é"})
check([e["code"] for e in s.diagnostics(uri("a.blk"))], ["E0201"], "an edit in the middle")
good = fixed.replace("32));", "64));").replace("zz)", "z)")
s.change(uri("a.blk"), {"text": good})
check(s.diagnostics(uri("a.blk")), [], "the whole text")
half = good.index("𝒳")
s.change(uri("a.blk"), {"range": {"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 8}}, "text": "{"})
check(s.diagnostics(uri("a.blk")), [], "inside a character is in front of it: in the comment")
s.change(uri("a.blk"), {"text": "kernel k(const N: i32, o: *i32) {\r\n  store(o, N);\r  store(o, q);\n}"})
d = s.diagnostics(uri("a.blk"))
check(sorted((e["code"], e["severity"], e["range"]["start"]["line"]) for e in d), [("E0201", 1, 2), ("E0602", 3, 0)], "lines that end in CR; what only a host binds")
s.open(uri("b.blk"), "kernel k(const SIZE: i32, o: *i32) { store(o + arange(0, SIZE), arange(0, 32)); }")
check(["64" in e["message"] for e in s.diagnostics(uri("b.blk"))], [True], "a define")
s.open(uri("b.blk"), "kernel k(const WIDE: i32, o: *i32) { while true { store(o + arange(0, WIDE), arange(0, 32)); } }")
check(s.diagnostics(uri("b.blk")), [], "a define of the command line")
s.open(uri("b.blk"), "// " + "x" * (16 << 20))
check([e["code"] for e in s.diagnostics(uri("b.blk"))], ["E0702"], "a text that is too large")
s.open(uri("b.blk"), "fn f(x) { return f(x); }\nkernel k(o: *i32) { device_assert(zeros([4], i32)); store(o, f(1)); }")
check(len(s.diagnostics(uri("b.blk"))) >= 1, True, "small again")
(folder / "more").mkdir()
(folder / "more" / "only.blk").write_text("const ONLY = 1;\n")
s.open(uri("b.blk"), 'import "only.blk"; kernel k(o: *i32) { store(o, ONLY); }')
check(s.diagnostics(uri("b.blk")), [], "an import by the options")
s.open(uri("b.blk"), 'import "\\xff.blk";')
true("cannot find '\ufffd.blk'" in s.diagnostics(uri("b.blk"))[0]["message"], "a name that is no UTF-8")
# imports: from the disk, from -I, from open documents; errors inside of them
(folder / "inc" / "far.blk").write_text("fn far(x) { return x + 1; }\n")
(folder / "near.blk").write_text("import \"deep.blk\";\nfn near(x) { return x + 2; }\n")
(folder / "deep.blk").write_text("fn deep(x) { return x +; }\n")
top = 'import "far.blk";\nimport "near.blk";\nkernel k(o: *i32) { store(o, far(near(1))); }\n'
s.open(uri("top.blk"), top)
d = s.diagnostics(uri("top.blk"))
check([(cut(top, e["range"]), e["relatedInformation"][0]["location"]["uri"]) for e in d], [('import "near.blk"', uri("deep.blk"))], "an error in an import")
true("deep.blk:1:" in d[0]["message"], "its place")
n = s.counts[uri("top.blk")]
s.open(uri("deep.blk"), "fn deep(x) { return x; }\n")
s.again(uri("top.blk"), n)
check(s.published[uri("top.blk")]["diagnostics"], [], "the import, mended in an editor")
s.diagnostics(uri("deep.blk"))
n = s.counts[uri("top.blk")]
s.tell("textDocument/didClose", {"textDocument": {"uri": uri("deep.blk")}})
s.again(uri("top.blk"), n)
check(len(s.published[uri("top.blk")]["diagnostics"]), 1, "closed without saving")
check(s.published[uri("deep.blk")]["diagnostics"], [], "a closed document has none")
(folder / "deep.blk").write_text("fn deep(x) { return x; }\n")
n = s.counts[uri("top.blk")]
s.tell("textDocument/didSave", {"textDocument": {"uri": uri("top.blk")}})
s.again(uri("top.blk"), n)
check(s.published[uri("top.blk")]["diagnostics"], [], "saved after the import was")
(folder / "deep.blk").write_bytes(b"fn deep(x) { return \xff +; }\n// \xff\n")
n = s.counts[uri("top.blk")]
s.tell("workspace/didChangeWatchedFiles", {"changes": []})
s.again(uri("top.blk"), n)
true("E0102" in [e["code"] for e in s.published[uri("top.blk")]["diagnostics"]], "a file that changed on the disk")

# ---- navigation ----
(folder / "lib.blk").write_text("""// Doubles
//  its argument.
fn twice(x, const TIMES: i32 = 2) { return x * TIMES; }

/* How many. */
const COUNT: i32 = 64;
""")
(folder / "user.blk").write_text('import "lib.blk";\nkernel other(o: *i32) { store(o, twice(1) + COUNT); }\n')
main = """import "lib.blk";
fn near(value: f32[COUNT]) -> f32[COUNT] { return twice(value, TIMES = 3); }
// The kernel.
kernel k(o: *f32, n: i32, const B: i32 = 64) grid(cdiv(n, B)) options(num_warps = 4) requires n > 0, "some"
{
    let i = program_id(0) * B + arange(0, B);
    var (sum_, count) = (zeros([B], f32), 0);
    let é = 1.0; // not a name
    while count < 3 {
        count += 1;
    }
    for j in range(0, n) {
        let i = j + 1;
        sum_ += twice(load(o + i)).to(f32);
        count += i;
    }
    let A = tensor(o, [n]);
    if n > 3 { sum_ = near(sum_); }
    A.store([0], sum_ + softmax(sum_));
    store(o + i, sum_, mask = i < n);
}
autotune k key(n) { B: [64, 128], num_warps: [4]; config(B = 32); where B > num_warps; scratch o; }
""".replace("    let é = 1.0; // not a name\n", "    /* 𝒳é */ let wide = 1.0;\n")
m = uri("main.blk")
s.end()
s = Server()
s.start(workspaceFolders=[{"uri": uri(""), "name": "w"}])
s.open(m, main)
check(s.diagnostics(m), [], "a good file")


def definition(needle, skip=0, into=0):
    r = s.at("definition", m, main, needle, skip, into)["result"]
    return r and (r["uri"].split("/")[-1], cut(main if r["uri"] == m else (folder / r["uri"].split("/")[-1]).read_text(), r["range"]), r["range"]["start"]["line"])


check(definition("twice"), ("lib.blk", "twice", 2), "a fn of an import")
check(definition("TIMES"), ("lib.blk", "TIMES", 2), "a named argument")
check(definition("COUNT"), ("lib.blk", "COUNT", 5), "a const")
check(definition("lib.blk", into=2), ("lib.blk", "", 0), "an import")
check(definition("i < n"), ("main.blk", "i", 5), "a let")
check(definition("i));\n", 0) if "i));\n" in main else definition("i)).to"), ("main.blk", "i", 12), "the inner one of a name")
check(definition("B > num"), ("main.blk", "B", 3), "a parameter in the autotune block")
check(definition("B = 32"), ("main.blk", "B", 3), "in a configuration")
check(definition("o; }"), ("main.blk", "o", 3), "in a scratch clause")
check(definition("k key"), ("main.blk", "k", 3), "the kernel of the block")
check(definition("sum_ +", into=4), ("main.blk", "sum_", 6), "behind the name's end, a var of a tuple")
check(definition("j + 1"), ("main.blk", "j", 11), "a loop variable")
check(definition("softmax"), None, "the library is in no file")
check(definition("arange"), None, "a built-in")


def places(answer, text=main):
    return sorted((r["uri"].split("/")[-1], r["range"]["start"]["line"], r["range"]["start"]["character"]) for r in answer["result"])


r = s.at("references", m, main, "twice", context={"includeDeclaration": True})
check([(u, l) for u, l, _ in places(r)], [("lib.blk", 2), ("main.blk", 1), ("main.blk", 13), ("user.blk", 1)], "references over files")
r = s.at("references", m, main, "i < n", context={"includeDeclaration": False})
check([l for _, l, _ in places(r)], [19, 19], "references of a local name")
r = s.at("rename", m, main, "COUNT", newName="TOTAL")["result"]["changes"]
check({u.split("/")[-1]: len(e) for u, e in r.items()}, {"lib.blk": 1, "main.blk": 2, "user.blk": 1}, "renaming over files")


def renamed(needle, name, skip=0):
    a = s.at("rename", m, main, needle, skip, newName=name)
    if "error" in a:
        return a["error"]["message"]
    out = main
    for e in sorted(a["result"]["changes"][m], key=lambda e: (-e["range"]["start"]["line"], -e["range"]["start"]["character"])):
        lines = out.split("\n")
        line = lines[e["range"]["start"]["line"]]
        lines[e["range"]["start"]["line"]] = line[: e["range"]["start"]["character"]] + e["newText"] + line[e["range"]["end"]["character"] :]
        out = "\n".join(lines)
    return out


check(renamed("B: i32", "BLOCK"), re.sub(r"\bB\b", "BLOCK", main), "renaming a parameter")
check(renamed("sum_", "total"), main.replace("sum_", "total"), "renaming a var")
true("is in use" in renamed("sum_", "count"), "a name that is taken")
true("is in use" in renamed("sum_", "softmax"), "a library function that is called")
true("reserved" in renamed("sum_", "while"), "a reserved word")
true("reserved" in renamed("sum_", "2x"), "no name")
true("is built in" in renamed("arange", "x"), "renaming a built-in")
true("is built in" in renamed("softmax", "x"), "renaming a library function")
true("is built in" in renamed("num_warps", "x"), "renaming an option")
true("no name" in renamed("kernel", "x"), "renaming a word")
check(cut(main, s.at("prepareRename", m, main, "value")["result"]["range"]), "value", "what is renamed")
true("error" in s.at("prepareRename", m, main, "f32"), "a type's name is not")
symbols = s.ask("textDocument/documentSymbol", {"textDocument": {"uri": m}})["result"]
check([(x["name"], x["kind"], [c["name"] for c in x.get("children", [])]) for x in symbols], [("near", 12, ["value"]), ("k", 12, ["o", "n", "B"]), ("autotune k", 5, [])], "the outline")
check(symbols[1]["detail"], "kernel k(o: *f32, n: i32, const B: i32 = 64)", "a kernel's heading")


# ---- hover ----
def hover(needle, skip=0, text=main, u=m):
    r = s.at("hover", u, text, needle, skip)["result"]
    return r and r["contents"]["value"]


true("let i: i32[64]\n" in hover("i < n"), "the type of a let")
true("var sum_: f32[64]\n" in hover("sum_") and "var count: i32\n" in hover("count"), "types of a tuple")
true("B: i32 = 64" in hover("B: i32") and "const B: i32 = 64" in hover("B: i32"), "a const parameter")
true("value: f32[64]\n" in hover("value"), "a fn's parameter")
true("Doubles\n its argument.\n" in hover("twice") and "fn twice(x, const TIMES: i32 = 2)\n" in hover("twice"), "a fn and its comment")
true("How many." in hover("COUNT"), "a const's comment")
true("The kernel." in hover("k(o") and "grid(cdiv(n, B))" in hover("k(o"), "a kernel")
true("arange(lo, hi)" in hover("arange") and "both known at compile time" in hover("arange"), "a built-in")
true("A.store(index, v)" in hover("store") and "outside is not written" in hover("store"), "a method")
true("fn softmax(x, const axis: i32 = -1)" in hover("softmax") and "exp(x - max) / sum" in hover("softmax"), "a library function")
true("the warps that compute" in hover("num_warps"), "an option")
true("range(lo?, hi, step?)" in hover("range(0, n)"), "range")
check(hover("wide = ")[:60].count("let wide: f32"), 1, "behind characters of two units")
check(hover("kernel"), None, "a word")
check(hover("𝒳"), None, "a comment")

# ---- hints ----
hints = s.ask("textDocument/inlayHint", {"textDocument": {"uri": m}, "range": {"start": {"line": 0, "character": 0}, "end": {"line": 14, "character": 0}}})["result"]
check([(h["label"], h["position"]["line"]) for h in hints], [(": i32[64]", 5), (": f32[64]", 6), (": i32", 6), (": i32", 12)], "hints")


# ---- completion ----
def complete(text, extra="c.blk"):
    """At the | of the text."""
    u = uri(extra)
    at = text.index("|")
    s.open(u, text.replace("|", "", 1))
    r = s.ask("textDocument/completion", {"textDocument": {"uri": u}, "position": position(text, at)})["result"]
    check(len({i["label"] for i in r}), len(r), "nothing twice: " + text[-20:])
    return {i["label"]: i for i in r}


def signature(text):
    u = uri("s.blk")
    at = text.index("|")
    s.open(u, text.replace("|", "", 1))
    r = s.ask("textDocument/signatureHelp", {"textDocument": {"uri": u}, "position": position(text, at)})["result"]
    return r and [(x["label"], x["parameters"][x["activeParameter"]]["label"] if x["activeParameter"] < len(x["parameters"]) else None) for x in r["signatures"]]


head = 'import "lib.blk";\nconst C = 3;\nfn f(p, q = 2) { let inner = 1; return p; }\nkernel k(o: *i32, const B: i32 = 4) options(num_stages = 2) {\n    let one = 1;\n    { let two = 2; }\n    for r in range(0, one) {\n        '
c = complete(head + "let three = on|")
true(set("one r o B f C twice COUNT load softmax where let f32 range f16".split()) <= set(c), "what is in scope")
check(set("two inner three p q k".split()) & set(c), set(), "what is not")
true("in p's shape" in c["load"]["documentation"]["value"], "a built-in's text")
check([n for n, i in c.items() if i["kind"] == 3 and n not in ("f", "near") and not i.get("documentation", {}).get("value")], [], "every function of the language is described")
true("Doubles" in c["twice"]["documentation"]["value"], "a fn's comment")
c = complete("fn exp(a, b, c) { return a; }\nfn relu(z) { return z; }\nkernel k(o: *i32) { let exp = 1; |")
check((c["relu"]["detail"], c["exp"]["kind"]), ("fn relu(z)", 6), "a program's own names hide")
c = complete(head + "store(o, load(o, |")
true({"mask =", "other ="} <= set(c) and "p =" not in c and c["mask ="]["insertText"] == "mask = ", "named arguments")
true("mask =" not in complete(head + "store(o, load(o, mask = true, |"), "one that was given")
true("q =" in complete(head + "f(1, |"), "a fn's")
true({"shape", "dtype", "to", "load"} <= set(complete(head + "one.|")) and "let" not in complete(head + "one.|"), "members")
c = complete("kernel k(o: *i32) options(|) { }")
true({"num_warps", "strict"} <= set(c) and c["num_warps"]["insertText"] == "num_warps = " and c["num_warps"]["documentation"], "options")
true({"B", "num_warps", "o"} <= set(complete(head + "} }\nautotune k key(o) { |")), "a tuned kernel's parameters")
for nothing in ("// on|", "/* on|", 'import "on|', "let on|", "/* a */ // on|"):
    check(complete(head + nothing), {}, "nothing: " + nothing)
true("one" in complete(head + "/* a */ on|"), "behind a comment")
check(signature(head + "store(o, load(o, |"), [("load(p, mask?, other?, cache?, evict?, volatile?)", "mask?")], "a signature")
check(signature(head + "load(o, other = |"), [("load(p, mask?, other?, cache?, evict?, volatile?)", "other?")], "by name")
check(signature(head + "one.f(|"), [("fn f(p, q = 2)", "q = 2")], "a method's")
check(signature(head + "A.load([1, 2], |"), [("A.load(index, shape)", "shape"), ("load(p, mask?, other?, cache?, evict?, volatile?)", "other?")], "a tensor's or a pointer's")
check(signature(head + "tensor(o, [1, |"), [("tensor(base, shape, strides?)", "shape")], "inside a list")
check(signature(head + "(|"), None, "no call")
check(signature(head + "device_print(\"a\", 1, 2, |"), [("device_print(text, values...)", "values...")], "any number")

# ---- the style ----
messy = "kernel  k( o:*i32 ){store(o,1);}"
s.open(uri("messy.blk"), messy)
edits = s.ask("textDocument/formatting", {"textDocument": {"uri": uri("messy.blk")}, "options": {}})["result"]
(folder / "messy.blk").write_text(messy)
check(edits[0]["newText"], subprocess.run([BLKC, "--emit=formatted", "-o", "-", str(folder / "messy.blk")], stdout=subprocess.PIPE, check=True).stdout.decode(), "as blkc --format")
check(cut(messy, edits[0]["range"]), messy, "all of it")
s.change(uri("messy.blk"), {"text": edits[0]["newText"]})
check(s.ask("textDocument/formatting", {"textDocument": {"uri": uri("messy.blk")}})["result"], [], "nothing to do")
s.change(uri("messy.blk"), {"text": "kernel"})
true("error" in s.ask("textDocument/formatting", {"textDocument": {"uri": uri("messy.blk")}}), "not a file that does not parse")

# ---- the protocol ----
check(s.ask("no/such")["error"]["code"], -32601, "an unknown request")
check(s.ask("textDocument/hover", {"textDocument": {"uri": "file:///nowhere"}, "position": {"line": 0, "character": 0}})["result"], None, "an unknown document")
check(s.ask("textDocument/hover", 7)["result"], None, "wrong parameters")
s.tell("$/no", {})
a, b = s.message("textDocument/hover", {}), s.message("textDocument/hover", {})
s.send(a, b, {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": b["id"]}})
check((s.answer(a["id"]).get("result", 0), s.answer(b["id"])["error"]["code"]), (None, -32800), "a request that was cancelled")
for broken, code in ((frame(b"{"), -32700), (frame(b"[1]"), -32600), (frame(b"7"), -32600), (frame(b"\xff\xfe"), -32700), (frame({"id": 1}), -32600),
                     (b"Content-Length: x\r\n\r\n", -32700), (b"Nothing: 1\r\n\r\n", -32700), (b"Content-Length: -5\r\n\r\n", -32700),
                     (b"Content-Length: 99999999999999999999\r\n\r\n", -32700), (b"Content-Length: 99999999999\r\n\r\n", -32700), (b"x" * 5000 + b"\r\n\r\n", -32700), (frame({"id": [], "method": "x"}), -32600)):
    s.send(broken)
    check(s.answer(None)["error"]["code"], code, repr(broken[:40]))
s.send(b"content-length: %d\r\nContent-Type: x\r\n\r\n" % len(json.dumps(a)) + json.dumps(a).encode())
check(s.answer(a["id"])["result"], None, "another header, other letters")
s.send(frame(a)[:30])
time.sleep(0.05)
s.send(frame(a)[30:])
check(s.answer(a["id"])["result"], None, "a message in two pieces")
s.tell("textDocument/didOpen", {"textDocument": {"uri": 3}})
s.tell("textDocument/didOpen", [])
s.tell("textDocument/didClose", {"textDocument": {"uri": "file:///nowhere"}})
for wrong in ({}, {"text": 3}, {"text": "x", "range": {}}, {"text": "x", "range": {"start": {"line": 3, "character": 0}, "end": {"line": 0, "character": 0}}}, 5):
    s.change(m, wrong)
check(s.diagnostics(m), [], "changes that say nothing change nothing")

# ---- memory: a thousand edits leave nothing behind ----
def resident():
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{s.p.pid}/status").read()).group(1))


def edits(n):
    for i in range(n):
        line = {"line": 5, "character": 4}
        s.change(m, {"range": {"start": line, "end": line}, "text": "/* %d */ " % i}, {"range": {"start": line, "end": {"line": 5, "character": 4 + len("/* %d */ " % i)}}, "text": ""})
        if i % 4 == 0:
            s.at("hover", m, main, "sum_")
    s.diagnostics(m)


edits(100)
before = resident()
edits(1000)
sanitized = b"__asan_init" in open(LSP, "rb").read()  # which keeps what was freed for a while
true(sanitized or resident() - before < 4096, f"memory after a thousand edits: {before} -> {resident()} KiB")
check(s.end(), 0, "exit after shutdown")

# ---- every example, every position of some ----
s = Server()
s.start()
for path in sorted(ROOT.glob("examples/**/*.blk")):
    text = path.read_text()
    s.open("file://" + str(path), text)
    d = [e for e in s.diagnostics("file://" + str(path)) if e["severity"] == 1]
    check(d, [], f"{path.name} has no errors")
    s.tell("textDocument/didClose", {"textDocument": {"uri": "file://" + str(path)}})

check(s.end(), 0, "after the examples")

# ---- little memory: what is too large for it is not checked; the server lives, and so do its texts ----
if not sanitized:
    s = Server(memory=100 << 20)
    s.start()
    u = uri("large.blk")
    large = "const A = [" + "1," * 1000000 + "1];\n"
    s.open(u, large)
    check(s.ask("textDocument/documentSymbol", {"textDocument": {"uri": u}}).get("error", {}).get("code"), -32603, "no memory")
    s.change(u, {"text": "const A = 1;"})
    check(s.diagnostics(u), [], "a small text again")
    check(s.end(), 0, "after that")

# ---- fuzz: broken text, broken frames, at every place; it lives, and answers ----
s = Server()
s.start()
rng = random.Random(7)
text = main
u = uri("fuzz.blk")
s.open(u, text)
for i in range(150):
    at = rng.randrange(len(text) + 1)
    broken = rng.choice([text[:at], text[at:], text[:at] + rng.choice(["(", "{", ")", "}", ";", '"', "/*", "é", "𝒳", "\0", "let ", "fn ", ".", "autotune k {"]) + text[at:]])
    s.change(u, {"text": broken})
    p = position(broken, rng.randrange(len(broken) + 1))
    for method in ("completion", "hover", "signatureHelp", "definition", "references", "documentSymbol", "inlayHint", "formatting", "prepareRename"):
        a = s.ask("textDocument/" + method, {"textDocument": {"uri": u}, "position": p, "newName": "z"})
        assert "result" in a or a["error"]["code"] == -32602, a
passed += 1
check(s.end(), 0, "after broken texts")
seed = frame({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}) + frame({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": {"uri": u, "text": main}}})
for i in range(60):
    data = bytearray(seed * 2)
    for _ in range(rng.randrange(1, 30)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    data = bytes(data[: rng.randrange(len(data))]) if i % 2 else bytes(data) + bytes(rng.randrange(256) for _ in range(200))
    r = subprocess.run([LSP], input=data, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if r.returncode not in (0, 1) or r.stderr:
        check((r.returncode, r.stderr), (1, b""), f"random bytes {i}")
passed += 1
s = Server()
s.start()
s.tell("exit")
check(s.p.wait(20), 1, "exit without shutdown")
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
