"""What a page of `blkc --explain=html` holds, looked at without a browser.

usage: page.py PAGE SOURCE [--json=FILE] [--explain=FILE] [--ptx=FILE] [--tile=FILE] [--layout=FILE] [--kernel=K]
Each line of standard output is "ok" or "FAILED: what".  PTX is read here by itself: which line a .loc names is not taken
from the page."""
import html.parser
import json
import re
import sys

VOID = {"meta", "link", "input", "br", "hr", "img"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.ids, self.links, self.lines, self.scripts = [], [], [], [], {}, []
        self.facts, self.tags, self.outside, self.line, self.fact = [], {}, [], None, None
        self.feed(text)
        self.close()
        if self.open:
            self.wrong.append(f"left open: {self.open}")

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        self.tags[tag] = self.tags.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)
        if "id" in a:
            self.ids.append(a["id"])
        for name, value in a.items():
            if name == "href" and value.startswith("#"):
                self.links.append(value[1:])
            elif name in ("href", "src", "data", "action", "srcset", "poster") and not value.startswith("data:"):
                self.outside.append(value)
            if name.startswith("on"):
                self.wrong.append(f"a handler: {name}={value}")
        if tag == "p" and "id" in a:
            self.line = a["id"]
            self.lines[self.line] = {"text": "", "place": a.get("data-l"), "live": a.get("data-live")}
        if tag == "script":
            self.scripts.append([a.get("id"), ""])
        if tag == "article":
            self.fact = ""

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> closes {self.open[-1:]} at {self.getpos()}")
            return
        self.open.pop()
        if tag == "p":
            self.line = None
        if tag == "article":
            self.facts.append(self.fact)
            self.fact = None

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts[-1][1] += data
        if self.line and self.open[-1] == "code":
            self.lines[self.line]["text"] += data
        if self.fact is not None:
            self.fact += data

    def script(self, name):
        return next(text for i, text in self.scripts if i == name)

    def code(self, prefix):
        found = [(int(i[len(prefix):]), l) for i, l in self.lines.items() if i.startswith(prefix)]
        return [l for _, l in sorted(found, key=lambda x: x[0])]


def check(good, what, *more):
    print("ok" if good else f"FAILED: {what} {' '.join(map(str, more))[:300]}")


def plain(text):
    """As the page shows it: of bytes that no text has, one mark each."""
    return re.sub("[\x00-\x08\x0b-\x1f]", "\ufffd", text)


def lines_of(path):
    with open(path, "rb") as f:
        text = f.read().decode("utf-8", "replace")
    return [plain(l.rstrip("\r")) for l in text.split("\n")]


def places_of_ptx(lines, files):
    """The source line of each line of PTX, by its .loc directives alone."""
    numbers, now, out = {}, None, []
    for l in lines:
        m = re.match(r'\t\.file\t(\d+) "(.*)"', l)
        if m:
            numbers[int(m[1])] = m[2]
    for l in lines:
        m = re.match(r"\t\.loc\t(\d+) (\d+)", l)
        if m:
            name = numbers.get(int(m[1]))
            known = name in files and int(m[2]) > 0
            now = f"f{files.index(name)}-{int(m[2])}" if known else None
        out.append(now)
    return out


def main():
    path, source = sys.argv[1:3]
    options = dict(o[2:].split("=", 1) for o in sys.argv[3:])
    with open(path, "rb") as f:
        text = f.read().decode("utf-8")  # strict
    p = Page(text)
    report, extra = json.loads(p.script("report")), json.loads(p.script("extra"))
    check(not p.wrong, "well-formed", p.wrong)
    check(len(p.ids) == len(set(p.ids)), "ids are unique", [i for i in p.ids if p.ids.count(i) > 1][:5] if len(p.ids) < 3000 else "")
    check(set(p.links) <= set(p.ids), "links end somewhere", sorted(set(p.links) - set(p.ids))[:5])
    check(not p.outside, "nothing is asked of elsewhere", p.outside)
    check(not re.search(r"(?i)@import|url\(|https?://(?!www\.w3\.org/2000/svg)", "".join(t for i, t in p.scripts if i is None)), "nor by the script")
    check([i for i, _ in p.scripts] == ["report", "extra", "counters", None], "four scripts", [i for i, _ in p.scripts])
    check(p.tags.get("img", 0) == 0 and p.tags.get("iframe", 0) == 0, "no other elements", p.tags)
    wanted = lines_of(source)
    while wanted and not wanted[-1]:
        wanted.pop()
    have = [p.lines.get(f"f0-{n}", {"text": None})["text"] for n in range(1, len(wanted) + 1)]
    check(have == wanted, "every source line has its anchor", next((x for x in zip(have, wanted) if x[0] != x[1]), ""))
    check(len(p.facts) == sum(len(k["rows"]) for k in report["kernels"]), "a fact for each row")
    k = int(options.get("kernel", 0))
    if "json" in options:
        with open(options["json"], encoding="utf-8") as f:
            check(json.load(f) == report, "the facts are those of --emit=json")
    if "explain" in options:
        with open(options["explain"], encoding="utf-8") as f:
            said = re.sub(r"\s+", " ", f.read())
        missing = [x for x in p.facts if re.sub(r"\s+", " ", x).strip().split(" ", 3)[0] not in said]
        flat = re.sub(r"[\s:]+", " ", said)
        missing += [x for x in p.facts if re.sub(r"[\s:]+", " ", x).strip() not in flat]
        check(not missing, "and those of --explain, in its words", missing[:2])
    for form, name in (("ptx", "ptx"), ("tile", "tile"), ("scheduled", "layout")):
        if name not in options:
            continue
        lines = lines_of(options[name])
        if not lines[-1]:
            lines.pop()
        code = p.code(f"k{k}-{form}-")
        check([l["text"] for l in code] == lines, f"{name} is that of --emit={name}")
        check(any(l["place"] for l in code), f"{name} knows source lines")
        if form == "ptx":
            places = places_of_ptx(lines, extra["files"])
            bad = [(n + 1, l["place"], w) for n, (l, w) in enumerate(zip(code, places)) if l["place"] != w]
            check(not bad, "PTX lines are of the lines that .loc names", bad[:5])


if __name__ == "__main__":
    main()
