#!/usr/bin/env python3
"""Prints what share of lines and branches the tests reached, by folder, and fails under tools/coverage.floors; see docs/proof.md.

usage: coverage.py BUILD [--files] [--raise]     BUILD was made by gcc with --coverage and its tests were run.
--files: the files too, those with most branches that no test takes first, and their lines.  --raise: the floors go up to what is reached.

gcov reads the counters.  A line that says `not reached: why` in a comment counts neither as a line nor as branches.
"""
import collections
import json
import multiprocessing
import os
import subprocess
import sys

FLOORS = "tools/coverage.floors"
FOLDERS = ("compiler/", "runtime/")
MARK = "/* not reached: "


def read(counters):
    """What one object's counters say: (file, line, how often, each branch's how often)."""
    made = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", counters], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    out = []
    if made.returncode:  # counts of an older build, mostly
        print(f"coverage: not counted: {made.stderr.decode().strip()}; rm -r the build and run again", file=sys.stderr)
        return out
    for text in made.stdout.splitlines():
        for f in json.loads(text)["files"]:
            if f["file"].startswith(FOLDERS):
                out += [(f["file"], l["line_number"], l["count"], [b["count"] for b in l["branches"]]) for l in f["lines"]]
    return out


def measure(build):
    """{file: {line: [count, branches]}}; a header's lines come from many objects."""
    counters = [os.path.join(folder, name) for folder, _, names in os.walk(build) for name in names if name.endswith(".gcda")]
    files = collections.defaultdict(dict)
    with multiprocessing.Pool() as pool:
        for rows in pool.imap_unordered(read, sorted(c for c in counters if c[len(build) + 1:].startswith(FOLDERS))):
            for name, line, count, branches in rows:
                known = files[name].setdefault(line, [0, []])
                known[0] += count
                known[1] += [0] * (len(branches) - len(known[1]))
                for i, taken in enumerate(branches):
                    known[1][i] += taken
    for name, lines in files.items():
        for number, text in enumerate(open(name, errors="replace"), 1):
            if MARK in text:
                lines.pop(number, None)
    return files


def total(lines):
    """Lines reached, lines, branches taken, branches."""
    return [sum(c != 0 for c, _ in lines), len(lines), sum(t != 0 for _, b in lines for t in b), sum(len(b) for _, b in lines)]


def floors():
    return {f: (float(lines), float(branches)) for f, lines, branches in
            (line.split() for line in open(FLOORS) if line.strip() and not line.startswith("#"))}


def percent(part, whole):
    return 100 * part / whole if whole else 100.0


def spans(numbers):
    """1 2 3 7 as 1-3 7."""
    out = []
    for n in numbers:
        if out and n == out[-1][1] + 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return " ".join(f"{a}-{b}" if a != b else f"{a}" for a, b in out)


def print_files(files):
    for name in sorted(files, key=lambda f: total(files[f].values())[2] - total(files[f].values())[3]):
        a, b, c, d = total(files[name].values())
        if a == b and c == d:
            continue
        print(f"{name}: {b - a} of {b} lines, {d - c} of {d} branches are not reached")
        print(f"    lines {spans([n for n in sorted(files[name]) if not files[name][n][0]])}")
        print(f"    branches in {spans([n for n in sorted(files[name]) if files[name][n][0] and 0 in files[name][n][1]])}")


def main(arguments):
    files = measure(arguments[0])
    rows = collections.defaultdict(lambda: [0, 0, 0, 0])
    for name, lines in files.items():
        for row in (os.path.dirname(name), "all"):
            rows[row] = [a + b for a, b in zip(rows[row], total(lines.values()))]
    low, failed, reached, margin = floors(), [], {}, {}
    print(f"{'folder':<22}{'lines':>7}{'reached %':>10}{'floor':>7}{'branches':>10}{'reached %':>10}{'floor':>7}")
    for row in sorted(rows, key=lambda r: (r == "all", r)):
        a, b, c, d = rows[row]
        reached[row] = percent(a, b), percent(c, d)
        margin[row] = percent(3, b), percent(3, d)
        if row not in low:
            failed.append(f"{FLOORS} has no line for {row}")
        want = low.get(row, (0, 0))
        print(f"{row:<22}{b:>7}{reached[row][0]:>10.1f}{want[0]:>7g}{d:>10}{reached[row][1]:>10.1f}{want[1]:>7g}")
        for what, now, floor in zip(("lines", "branches"), reached[row], want):
            if now < floor:
                failed.append(f"{row}: {now:.2f} % of the {what} are reached by tests, fewer than {floor:g} %")
    if "--files" in arguments:
        print_files(files)
    if "--raise" in arguments:
        write(low, reached, margin)
        return 0
    for line in failed:
        print(f"coverage: {line}", file=sys.stderr)
    return 1 if failed else 0


def write(low, reached, margin):
    """A floor is a whole percent, at least one and at least three lines or branches under what is reached: what a run takes depends a
    little on the machine."""
    text = [line for line in open(FLOORS) if line.startswith("#")]
    for row in sorted(reached, key=lambda r: (r == "all", r)):
        numbers = [max(int(now - max(1, less)), old) for now, less, old in zip(reached[row], margin[row], low.get(row, (0, 0)))]
        text.append(f"{row:<22}{numbers[0]:>5g}{numbers[1]:>5g}\n")
    with open(FLOORS, "w") as f:
        f.writelines(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
