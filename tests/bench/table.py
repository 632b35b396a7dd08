"""The CSV of peers.py as the Markdown tables of docs/performance.md and docs/lab/tables.md, and as one chart.

usage: python3 tests/bench/table.py peers.csv [--plot=docs/performance.svg] [--write=docs/performance.md,docs/lab/tables.md]
  prints the tables; --write puts each between its marks, "<!-- NAME -->" and "<!-- /NAME -->", on the pages that have them:
  measured  all of memory-bound work and of the host      matrix    all of matrix products
  memory    memory-bound work without configurations      products  cool and hot in one table, without configurations
  host      launches, compiling and tuning, a row for what is done
  if the CSV has rows for it; --plot draws softmax over its row lengths (gnuplot).
"""
import csv, math, os, subprocess, sys

# work: (the floor in bytes moved, what we aim at: ours over the best peer)
MEMORY = {
    "copy 4 GiB": (2**32, None),
    **{f"copy, bytes of add 2^{p}": (12 * 2**p, None) for p in (20, 22)},
    **{f"add f32 2^{p}": (12 * 2**p, 1.05 if p <= 22 else 1.0) for p in (20, 22, 24, 27)},
    "gelu f32 16384^2": (8 * 2**28, 1.0),
    **{f"softmax f32 4096 x {n}": (8 * 4096 * n, a) for n, a in ((256, 1.15), (781, None), (1024, 1.3), (2048, None), (4096, 1.07), (5000, None), (8192, 1.08), (12672, 1.05))},
    "softmax f32 16384 x 16384": (8 * 2**28, 1.05),
    "softmax f32 1024 x 65536": (8 * 2**26, 1.8),
    "softmax f32 256 x 262144": (8 * 2**26, 1.8),
    "dropout rand f32 2^27": (8 * 2**27, 1.05),
    "dropout rand4x f32 2^27": (8 * 2**27, 1.0),
    **{f"layer norm fwd f16 4096 x {n}": (4 * 4096 * n, a) for n, a in ((1024, 1.25), (2048, None), (2560, None), (4096, 1.25), (5120, None), (7168, None), (8192, None), (16384, 1.25))},
    **{f"layer norm bwd f16 4096 x {n}": (6 * 4096 * n, a) for n, a in ((1024, 1.5), (2048, None), (4096, 1.6), (8192, None), (16384, 1.5))},
}
# What the aims are stated against: torch and the tutorials' form of Triton's kernels, or one of them only.
AGAINST = {"softmax f32 1024 x 65536": "torch", "softmax f32 256 x 262144": "torch", "dropout rand f32 2^27": "triton"}


# work: what we aim at over cuBLAS; e4m3 counts for itself, the others' geometric mean is to be 1.00 with tuning on
MATRIX = {
    **{f"matmul f16 {s}": a for s, a in (("512 x 512 x 512", 1.0), ("1024 x 1024 x 1024", 1.0), ("2048 x 2048 x 2048", 1.0), ("4096 x 4096 x 4096", 1.0),
                                         ("8192 x 8192 x 8192", 1.03), ("8192 x 8192 x 1024", 1.03), ("4096 x 4096 x 16384", 1.0), ("16 x 4096 x 4096", 1.0),
                                         ("128 x 8192 x 8192", 1.0), ("3072 x 1024 x 8192", 0.92), ("4096 x 14336 x 4096", 0.92), ("14336 x 4096 x 2048", 0.92),
                                         ("1000 x 1032 x 1056", 0.92), ("64 x 4096 x 4096", 0.92), ("32 x (512 x 512 x 512)", 0.92))},
    "matmul e4m3 8192 x 8192 x 8192": 1.0,
}
POINTERS = 0.85


def size(n):
    for unit, scale in (("GB", 1e9), ("MB", 1e6)):
        if n >= scale:
            return f"{n / scale:.3g} {unit}"
    return f"{n / 1e3:.3g} kB"


def fastest(figures, *prefixes):
    rows = [r for who, r in figures.items() if who in prefixes]
    return min(rows, key=lambda r: float(r["ms"]), default=None)


def memory_table(rows):
    figures = {}
    for r in rows:
        if r["rate"] and not r["note"]:
            figures.setdefault(r["work"], {})[r["who"]] = r
    yield "| work | bytes moved | blk | torch | Triton, tutorials' form | Triton, other shapes | blk / best of all | blk / torch and tutorial | aim | blk's configuration |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    for work, (moved, aim) in MEMORY.items():
        have = figures.get(work, {})
        ours, torch = have.get("blk"), fastest(have, "torch", "torch autograd")
        tutorial, triton = have.get("triton tutorial"), have.get("triton")
        judges = {"torch": [torch], "triton": [tutorial, triton]}.get(AGAINST.get(work), [torch, tutorial if tutorial else triton])
        over = lambda those: min((float(r["ms"]) for r in those if r), default=0) / float(ours["ms"]) if ours else 0
        all_of_them, judged = over([torch, tutorial, triton]), over(judges)
        number = lambda v: f"{v:.2f}" if v else ""
        goal = "" if aim is None else f"{aim:.2f}"
        if work in AGAINST:
            goal += f" of {AGAINST[work].replace('triton', 'Triton')}"
        if judged and aim is not None:
            goal += ", met" if round(judged, 2) >= aim else ", missed"
        cell = lambda r: f"{float(r['rate']):.0f}" if r else ""
        cells = [work, size(moved), cell(ours), cell(torch), cell(tutorial), cell(triton), number(all_of_them), number(judged), goal, ours["variant"] if ours else ""]
        yield "| " + " | ".join(cells) + " |"


def verdict(ratio, aim):
    return f"{aim:.2f}, {'met' if round(ratio, 2) >= aim else 'missed'}" if ratio else f"{aim:.2f}"


def mean(ratios):
    ratios = [r for r in ratios if r]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0


def matrix_table(rows, section):
    figures = {}
    for r in rows:
        if r["section"] == section and r["rate"] and not r["note"]:
            figures.setdefault(r["work"], {})[r["who"]] = r
    if not figures:
        return
    yield "| work | blk | blk, tuner's choice | blk, pointers | cuBLAS | Triton | best blk / cuBLAS | tuner / cuBLAS | aim | pointers / cuBLAS | aim | blk's configuration |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    over = {"best": [], "tuner": []}
    for work in [w for w in MATRIX if w in figures] + [w for w in figures if w not in MATRIX]:
        have = figures[work]
        ours, tuned, pointers, triton = (have.get(who) for who in ("blk", "blk tuned", "blk pointers", "triton"))
        cublas, best = fastest(have, "cuBLAS", "cuBLASLt"), fastest(have, "blk", "blk tuned")
        ratio = lambda r: float(cublas["ms"]) / float(r["ms"]) if cublas and r else 0
        if " f16 " in work:
            over["best"].append(ratio(best))
            over["tuner"].append(ratio(tuned))
        number, cell = lambda v: f"{v:.2f}" if v else "", lambda r: f"{float(r['rate']):.0f}" if r else ""
        aim = verdict(ratio(best), MATRIX[work]) if work in MATRIX else ""
        row = [work, cell(ours), cell(tuned), cell(pointers), cell(cublas), cell(triton), number(ratio(best)), number(ratio(tuned)), aim]
        row += [number(ratio(pointers)), verdict(ratio(pointers), POINTERS) if pointers else "", best["variant"] if best else ""]
        yield "| " + " | ".join(row) + " |"
    yield ""
    yield f"Geometric mean over f16: {mean(over['best']):.3f} of cuBLAS, {mean(over['tuner']):.3f} with the tuner's choice (aim 1.00)."


def tuner_table(rows):
    rows = [r for r in rows if r["section"] == "tuner" and r["ms"]]
    if rows:
        yield "| tuned | seconds | configurations, the choice |"
        yield "| --- | --- | --- |"
    for r in rows:
        yield f"| {r['work']} | {float(r['ms']) / 1e3:.2f} | {r['variant']} |"


def matrix_tables(rows):
    parts = []
    for section, title in (("matrix", "TFLOP/s, each round after the same rest (cool)."), ("matrix_hot", "TFLOP/s, each round after a quarter of a second of the same work (hot).")):
        table = list(matrix_table(rows, section))
        if table:
            parts.append("\n".join([title, ""] + table))
    tuned = list(tuner_table(rows))
    return "\n\n".join(parts + ["\n".join(tuned)] * bool(tuned)) + "\n" if parts else ""


def host_table(rows):
    yield "| what | who | ms | ratio to blk's peer | note |"
    yield "| --- | --- | --- | --- | --- |"
    for r in rows:
        if r["section"] in ("empty", "compile", "start", "launch", "tune") and r["ms"]:
            yield f"| {r['work']} | {r['who']} | {float(r['ms']):.4g} | {r['ratio']} | {r['variant']} |"


def cells(line):
    return line[2:-2].split(" | ")


def lined(rows):
    return ["| " + " | ".join(row) + " |" for row in rows]


def without_last(table):
    return lined(cells(line)[:-1] for line in table)


def products_table(cool, hot):
    """Of the rows of both tables the columns that say most; the hot ones behind the cool ones of the same work."""
    of_hot = {cells(line)[0]: [cells(line)[k] for k in (1, 2, 4, 6, 8)] for line in hot}
    of_hot["work"] = ["hot: blk", "tuner's choice", "cuBLAS", "best blk / cuBLAS", "aim"]
    return lined([row[k] for k in (0, 1, 2, 3, 4, 5, 6, 8, 9)] + of_hot.get(row[0], [""] * 5) for row in map(cells, cool))


def by_who(table):
    """Of the host's table a row for what is done and a column for who does it, with the ratio where there is one."""
    rows = [cells(line) for line in table[2:]]
    compiling = [r for r in rows if r[0].startswith("compile ")]
    for title, some in (("ms", [r for r in rows if r not in compiling]), ("compile, ms (Triton's over ours)", compiling)):
        if some:
            who = list(dict.fromkeys(r[1] for r in some))
            figure = {(r[0], r[1]): r[2] + (f" ({r[3]})" if r[3] else "") for r in some}
            yield from lined([[title] + who, ["---"] * (len(who) + 1)])
            yield from lined([what] + [figure.get((what, w), "") for w in who] for what in dict.fromkeys(r[0] for r in some))
            yield ""


def failures(rows):
    for r in rows:
        if r["note"]:
            yield f"- {r['work']}, {r['who']} {r['variant']}: {r['note']}"


def headed(rows, text):
    """With the machine before it and what failed behind it."""
    machine = next((f"{r['work']}, {r['who']}, {r['variant']}" for r in rows if r["section"] == "machine"), "")
    failed = list(failures(rows))
    return (f"{machine}.\n\n" if machine else "") + text + ("\nWhat failed or was left out:\n\n" + "\n".join(failed) + "\n" if failed else "")


def tables(rows):
    """By the name of their marks."""
    products = [r for r in rows if r["section"] in ("matrix", "matrix_hot", "tuner")]
    others = [r for r in rows if r not in products]
    machine = [r for r in rows if r["section"] == "machine"]
    out = {}
    if any(r not in machine for r in others) or not products:
        memory, host = list(memory_table(others)), list(host_table(others))
        out["measured"] = headed(others, "\n".join(memory) + "\n\n" + "\n".join(host) + "\n")
        out["memory"] = "\n".join(without_last(memory)) + "\n"
        out["host"] = "\n".join(by_who(host))
    if products:
        out["matrix"] = headed(machine + products, matrix_tables(products))
        cool, hot = (list(matrix_table(products, section)) for section in ("matrix", "matrix_hot"))
        if cool:
            means = [f"{title}: {table[-1]}" for title, table in (("Cool", cool), ("Hot", hot)) if table]
            out["products"] = "\n".join(products_table(cool[:-2], hot[:-2]) + ["", "\n\n".join(means)]) + "\n"
    return out


def write(path, text):
    """Puts each of the tables between its marks, if the page has them."""
    with open(path) as f:
        page = f.read()
    had = False
    for mark in text:
        begin, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
        if begin in page and end in page:
            page = page[: page.index(begin) + len(begin)] + text[mark] + page[page.index(end) :]
            had = True
    if not had:
        sys.exit(f"{path} has no marks of {', '.join(text)}")
    with open(path, "w") as f:
        f.write(page)


def plot(path, rows):
    names = {"blk": "blk", "torch": "torch", "triton tutorial": "Triton, tutorial", "triton": "Triton, other shapes"}
    points = {}
    for r in rows:
        if r["work"].startswith("softmax f32 4096 x ") and r["who"] in names and r["rate"]:
            spread = float(r["spread"] or 0) * float(r["rate"]) / 2
            points.setdefault(r["who"], []).append((int(r["work"].split(" x ")[1]), float(r["rate"]), spread))
    copy = max((float(r["rate"]) for r in rows if r["section"] == "copy" and r["rate"]), default=0)  # of many bytes
    machine = next((r["work"] for r in rows if r["section"] == "machine"), "")
    columns = sorted({p[0] for series in points.values() for p in series})
    if not columns:
        sys.exit("the CSV has no softmax rows to plot")
    tics = ", ".join(f"'{c}' {c}" for c in columns)
    script = f"""set terminal svg size 860,480 dynamic noenhanced font 'sans-serif,13' background rgb 'white'
set title 'softmax of 4096 rows of f32, {machine}'
set xlabel 'columns'
set ylabel 'GB/s'
set grid y
set key bottom right
set logscale x 2
set xtics ({tics})
set yrange [0:{max([copy] + [p[1] for s in points.values() for p in s]) * 1.08}]
set xrange [{columns[0] * 0.8}:{columns[-1] * 1.25}]
plot """
    parts = [f"{copy} with lines dashtype 2 linecolor rgb '#777777' title 'device copy'"] if copy else []
    shown = [who for who in names if who in points]
    parts += [f"'-' using 1:2:3 with yerrorlines pointtype 7 pointsize 0.5 linewidth 1.5 title '{names[who]}'" for who in shown]
    script += ", ".join(parts) + "\n"
    for who in shown:
        script += "".join(f"{x} {y} {d}\n" for x, y, d in sorted(points[who])) + "e\n"
    try:
        with open(path, "w") as out:
            subprocess.run(["gnuplot"], input=script, stdout=out, text=True, check=True)
    except FileNotFoundError:
        os.remove(path)
        sys.exit("gnuplot, which draws the plot, is not on PATH (Debian: apt-get install gnuplot-nox)")


def main():
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    options = dict((a[2:].split("=", 1) + [""])[:2] for a in sys.argv[1:] if a.startswith("--"))
    if len(paths) != 1 or set(options) - {"plot", "write"}:
        sys.exit(__doc__)
    with open(paths[0], newline="") as f:
        rows = list(csv.DictReader(f))
    text = tables(rows)
    for path in options["write"].split(",") if "write" in options else []:
        write(path, text)
    if "write" not in options:
        print("".join(text[mark] for mark in ("measured", "matrix") if mark in text), end="")
    if "plot" in options:
        plot(options["plot"], rows)


if __name__ == "__main__":
    main()
