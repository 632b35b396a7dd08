"""The CSV of peers.py as the Markdown tables of docs/performance.md, and as one chart.

usage: python3 tests/bench/table.py peers.csv [--plot=docs/performance.svg] [--write=docs/performance.md]
  prints the tables; --write puts them between the marks "<!-- measured -->" and "<!-- /measured -->" of a page; --plot
  draws softmax over its row lengths (gnuplot).
"""
import csv, os, subprocess, sys

# work: (the floor in bytes moved, what we aim at: ours over the best peer)
MEMORY = {
    "copy 4 GiB": (2**32, None),
    **{f"add f32 2^{p}": (12 * 2**p, 1.05 if p <= 22 else 1.0) for p in (20, 22, 24, 27)},
    "gelu f32 16384^2": (8 * 2**28, 1.0),
    **{f"softmax f32 4096 x {n}": (8 * 4096 * n, a) for n, a in ((256, 1.15), (781, None), (1024, 1.3), (2048, None), (4096, 1.07), (8192, 1.08), (12672, 1.05))},
    "softmax f32 16384 x 16384": (8 * 2**28, 1.05),
    "softmax f32 1024 x 65536": (8 * 2**26, 1.8),
    "softmax f32 256 x 262144": (8 * 2**26, 1.8),
    "dropout rand f32 2^27": (8 * 2**27, 1.05),
    "dropout rand4x f32 2^27": (8 * 2**27, 1.0),
    **{f"layer norm fwd f16 4096 x {n}": (4 * 4096 * n, a) for n, a in ((1024, 1.25), (2048, None), (4096, 1.25), (8192, None), (16384, 1.25))},
    **{f"layer norm bwd f16 4096 x {n}": (6 * 4096 * n, a) for n, a in ((1024, 1.5), (2048, None), (4096, 1.6), (8192, None), (16384, 1.5))},
}
# What the aims are stated against: torch and the tutorials' form of Triton's kernels, or one of them only.
AGAINST = {"softmax f32 1024 x 65536": "torch", "softmax f32 256 x 262144": "torch", "dropout rand f32 2^27": "triton"}


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


def host_table(rows):
    yield "| what | who | ms | ratio to blk's peer | note |"
    yield "| --- | --- | --- | --- | --- |"
    for r in rows:
        if r["section"] in ("compile", "start", "launch", "tune") and r["ms"]:
            yield f"| {r['work']} | {r['who']} | {float(r['ms']):.4g} | {r['ratio']} | {r['variant']} |"


def failures(rows):
    for r in rows:
        if r["note"]:
            yield f"- {r['work']}, {r['who']} {r['variant']}: {r['note']}"


def tables(rows):
    machine = next((f"{r['work']}, {r['who']}, {r['variant']}" for r in rows if r["section"] == "machine"), "")
    text = f"{machine}.\n\n" if machine else ""
    text += "\n".join(memory_table(rows)) + "\n\n" + "\n".join(host_table(rows)) + "\n"
    failed = list(failures(rows))
    return text + ("\nWhat failed or was left out:\n\n" + "\n".join(failed) + "\n" if failed else "")


def write(path, text):
    with open(path) as f:
        page = f.read()
    begin, end = "<!-- measured -->\n", "<!-- /measured -->"
    if begin not in page or end not in page:
        sys.exit(f"{path} has no marks {begin.strip()} and {end}")
    page = page[: page.index(begin) + len(begin)] + text + page[page.index(end) :]
    with open(path, "w") as f:
        f.write(page)


def plot(path, rows):
    names = {"blk": "blk", "torch": "torch", "triton tutorial": "Triton, tutorial", "triton": "Triton, other shapes"}
    points = {}
    for r in rows:
        if r["work"].startswith("softmax f32 4096 x ") and r["who"] in names and r["rate"]:
            spread = float(r["spread"] or 0) * float(r["rate"]) / 2
            points.setdefault(r["who"], []).append((int(r["work"].split(" x ")[1]), float(r["rate"]), spread))
    copy = next((float(r["rate"]) for r in rows if r["section"] == "copy" and r["rate"]), 0)
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
    if "write" in options:
        write(options["write"], text)
    else:
        print(text, end="")
    if "plot" in options:
        plot(options["plot"], rows)


main()
