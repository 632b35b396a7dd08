#!/usr/bin/env python3
"""Runs the tests against each drawn mutant; see docs/proof.md.

usage: run.py FOLDER [--jobs=N] [--seconds=N] [--first=N] [--slow=SECONDS] [--most=SECONDS] [--tests=NAME,NAME] [--again] [--known] [--keep] [--report]
--seconds: no new mutant is begun after so many; --first: only the first N of those drawn; --tests: only by these, traced anew: those that
are new or have changed; --again: those that survived too, after new tests; --known: those that KILLERS names count as killed without a run;
--keep: KILLERS is written; --report: only the report.

In: what prepare.py wrote to FOLDER, built.
Out: FOLDER/verdicts.jsonl, a line a mutant (a run goes on where an earlier one stopped), and the report on standard output.

The tests first run once with tracing, which says which test reaches which mutant in a way that changes a value; then each
mutant, in the order in which they were drawn, is run by the tests that reach it, those that failed on
others of its file and the quickest first, until one fails.
"""
import collections
import concurrent.futures
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

KILLERS = "tools/mutate/killers.txt"  # which test failed on which mutant, of earlier runs: that one is tried first
SLOW = 30  # tests of more seconds are left out, unless --slow says so
# Scripts that judge what is compiled and run; the others run the same code through other doors, or much longer.
SCRIPTS = ["golden/run.sh", "golden/counters.sh", "golden/ptx.sh", "run/sim.sh", "run/passes.sh", "run/bounds.sh", "run/limits.sh", "run/budget.sh", "run/explain.sh", "run/cli.sh", "run/blkrun.sh", "run/tune.sh", "run/search.sh"]
# Device suites go in parts, so that what fails is soon found: words of their cases' names (tests/run/device.sh).
PARTS = {"scans": ["sort.i", "sort.f", "sort.u", "sort_descending.", "topk_1.", "topk_8.", "topk_half.", "topk_all.", "cumsum.", "cumsum_reverse.", "cumprod", "affine.",
                   "affine_reverse.", "last.", "last_reverse.", "flip.", "both.", "carry mixed rows turns"],
         "shapes": ["join", "split", "cat", "interleave", "permute", "squeeze", "gather", "histogram", "asm_",
                    "swapped carried chase count_in_loop reduced reversed computed scalars butterfly branch nested table two_types last_axis in_place"],
         "tiles": ["sum.", "max.", "min.", "xor_sum.", "any. all.", "argm", "reduce_ trans reshape outer masked center scale", "loop break while early late negative",
                   "function static in_place store_then scalar_loads grid_3d nested"],
         "types": ["constant", "bool", "chain", "meet"],
         "atomics": ["counter histogram chain", "tensor", "ticket spin in_order message program_order narrow loop_of", "add max min and or xor xchg cas"],
         "dot": ["tile.f16.", "tile.bf16.", "tile.tf32", "tile.ieee", "tile.i8.", "tile.e", "tile.f64.", "pairs.", "batch.", "zeros.", "loop.", "stages.", "form."]}
LATE = ["dot", "clusters", "tensors", "windows", "atomics"]  # once more with data that lands at the latest moment
# These watch the clock: a failure counts when it happens twice.
CLOCK = {"test_tune", "test_bench", "run/tune.sh", "run/search.sh"}
MEMORY, FILE = 8 << 30, 1 << 30  # what a mutant may take
# A mutant that replaces files may replace the machine's devices, where it runs as root: it gets devices of its own.
DEVICES = """mount -t tmpfs none /mnt && cd /mnt && mknod -m 666 null c 1 3 && mknod -m 666 zero c 1 5 && mknod -m 666 full c 1 7 &&
mknod -m 666 random c 1 8 && mknod -m 666 urandom c 1 9 && mkdir shm && ln -s /proc/self/fd fd && ln -s fd/0 stdin && ln -s fd/1 stdout &&
ln -s fd/2 stderr && mkdir pts && mount --bind /dev/pts pts && ln -s pts/ptmx ptmx && mknod -m 666 tty c 5 0 && cd "$OLDPWD" && mount --move /mnt /dev && exec "$@" """


def confined():
    """What a command begins with so that its /dev is not the machine's; nothing where that is neither needed nor possible."""
    words = ["unshare", "--mount", "sh", "-c", DEVICES, "sh"]
    if os.geteuid() != 0:
        return []
    try:
        subprocess.run(words + ["true"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        sys.exit("mutants may replace the machine's devices: run this without root's rights, or where unshare --mount works")
    return words


CONFINED = confined()


def tests(tree):
    found = {}
    for name in sorted(os.listdir(f"{tree}/build/tests")):
        path = f"build/tests/{name}"
        if name.startswith("test_") and "." not in name and os.access(f"{tree}/{path}", os.X_OK):
            found[name] = [path]
    for script in SCRIPTS:
        if os.path.exists(f"{tree}/tests/{script}"):
            found[script] = ["sh", f"tests/{script}", "build"]
    for suite in sorted(os.listdir(f"{tree}/build/device")) if os.path.isdir(f"{tree}/build/device") else []:
        for part in PARTS.get(suite, [""]) if "." not in suite else []:
            name = f"device/{suite}{'/' if part else ''}{part.split(' ')[0]}"
            for device in ["cpu", "sim", "sim:sm_90a"]:
                found[f"{name}@{device}"] = [f"build/device/{suite}", f"--device={device}", *part.split()]
                if device != "cpu" and suite in LATE:
                    found[f"{name}@{device}:late"] = [f"build/device/{suite}", f"--device={device}", "--sim-seed=1", *part.split()]
    return found


def attempt(folder, command, mutant, wall, cpu=0, trace=None):
    """Runs one test in a scratch folder of its own: how it ended ('' for well), and its seconds."""
    scratch = tempfile.mkdtemp(prefix="blk-mutant-")
    os.mkdir(f"{scratch}/cache")
    environment = {**os.environ, "BLK_MUTANT": str(mutant), "BLK_CACHE_DIR": f"{scratch}/cache", "HOME": scratch, "TMPDIR": scratch,
                   "CMOCKA_TEST_ABORT": "1"}
    if trace:
        environment["BLK_MUTANT_TRACE"] = trace

    def limits():
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # guards are addresses only
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if cpu:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))

    start = time.time()
    process = subprocess.Popen(CONFINED + command, cwd=f"{folder}/tree", env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=limits)
    try:
        status = process.wait(wall)
        how = "" if status == 0 else f"signal {-status}" if status < 0 else f"exit {status}"
    except subprocess.TimeoutExpired:
        how = "time"
    try:
        os.killpg(process.pid, signal.SIGKILL)  # and what it left behind
    except ProcessLookupError:
        pass
    process.wait()
    shutil.rmtree(scratch, ignore_errors=True)
    return how, time.time() - start


def trace(folder, jobs, commands, anew, slow):
    """Which mutants each test reaches, and how long it takes; kept in FOLDER/reached.json, where all but `anew` are taken from."""
    kept = f"{folder}/reached.json"
    out = json.load(open(kept)) if os.path.exists(kept) else {}

    def one(item):
        name, command = item
        notes = f"{folder}/trace.{name.replace('/', '-')}"
        most = 5 + 2 * slow
        with open(notes, "w"):
            os.chmod(notes, 0o666)  # for children that have given up their rights
        how, seconds = attempt(folder, command, "trace", most, trace=notes)
        if how and how != "time":  # tracing opens a file and takes its time: that a test notices it does not make it useless
            how, seconds = attempt(folder, command, 0, most)
        reached = sorted({int(n) for n in open(notes)}) if os.path.exists(notes) else []
        if os.path.exists(notes):
            os.remove(notes)
        return name, {"seconds": seconds, "failed": how, "reached": reached}

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for name, what in pool.map(one, [c for c in commands.items() if c[0] in anew or c[0] not in out]):
            out[name] = what
            print(f"{name}: {what['seconds']:.1f} s, {len(what['reached'])} mutants{', not used: ' + what['failed'] if what['failed'] else ''}", flush=True)
    with open(kept + ".new", "w") as f:
        json.dump(out, f)
    os.rename(kept + ".new", kept)
    return out


def killers():
    """{mutant's id: test}."""
    return dict(line.split() for line in open(KILLERS)) if os.path.exists(KILLERS) else {}


def keep_killers(verdicts):
    """Adds what is known now; ids of code that has changed since stay until `git rm`."""
    known = {**killers(), **{v["id"]: v["by"] for v in verdicts.values() if v["verdict"] == "killed"}}
    with open(KILLERS + ".new", "w") as f:
        f.writelines(f"{i} {test}\n" for i, test in sorted(known.items()))
    os.rename(KILLERS + ".new", KILLERS)


def judge(folder, commands, only, reached, slow, most, first, fame, mutant):
    number, start = mutant["n"], time.time()
    reaching = [t for t in commands if t in reached and not reached[t]["failed"] and reached[t]["seconds"] <= slow and number in reached[t]["set"]]
    reaching.sort(key=lambda t: (t != first.get(mutant["id"]), (0.1 + reached[t]["seconds"]) / (1 + 4 * fame[mutant["file"], t] + fame[os.path.dirname(mutant["file"]), t])))
    for test in [t for t in reaching if not only or t in only]:
        seconds = reached[test]["seconds"]
        if time.time() - start + seconds > most:
            continue
        for again in range(2 if test in CLOCK else 1):
            how, _ = attempt(folder, commands[test], number, 30 + 10 * seconds, int(3 + 4 * seconds))
            if not how:
                break
        if how:
            return {"id": mutant["id"], "verdict": "killed", "by": test, "how": how, "seconds": round(time.time() - start, 2)}
    return {"id": mutant["id"], "verdict": "survived" if reaching else "not reached", "tests": len(reaching), "seconds": round(time.time() - start, 2)}


def report(mutants, verdicts):
    count = collections.defaultdict(collections.Counter)
    for m in mutants:
        if m["id"] in verdicts:
            for row in (os.path.dirname(m["file"]), "all"):
                count[row][verdicts[m["id"]]["verdict"]] += 1
    for m in sorted(mutants, key=lambda m: (m["file"], m["line"])):
        v = verdicts.get(m["id"])
        if v and v["verdict"] != "killed":
            print(f"{m['n']} {m['file']}:{m['line']}: {m['original']} -> {m['mutant']}{' (no test reaches it)' if v['verdict'] == 'not reached' else ''}")
    print(f"\n{'folder':<20}{'mutants':>8}{'killed':>8}{'survived':>9}{'unreached':>10}{'killed %':>9}")
    for row in sorted(count, key=lambda r: (r == "all", r)):
        c = count[row]
        n = sum(c.values())
        print(f"{row:<20}{n:>8}{c['killed']:>8}{c['survived']:>9}{c['not reached']:>10}{100 * c['killed'] / n:>9.1f}")
    print(f"{sum(count['all'].values())} of the {len(mutants)} drawn were run")


def main(arguments):
    options = dict(w[2:].split("=", 1) for w in arguments if w.startswith("--") and "=" in w)
    folder = os.path.abspath([w for w in arguments if not w.startswith("--")][0])
    jobs = int(options.get("jobs", os.cpu_count()))
    slow = float(options.get("slow", SLOW))
    most = float(options.get("most", 1e9))
    end = time.time() + float(options.get("seconds", 1e9))
    mutants = sorted(json.load(open(f"{folder}/mutants.json")), key=lambda m: m["rank"])[:int(options.get("first", 1 << 30))]
    path = f"{folder}/verdicts.jsonl"
    verdicts = {v["id"]: v for v in map(json.loads, open(path))} if os.path.exists(path) else {}
    if "--again" in arguments:
        verdicts = {i: v for i, v in verdicts.items() if v["verdict"] == "killed"}
    first = killers()
    if "--known" in arguments:
        verdicts = {**{m["id"]: {"id": m["id"], "verdict": "killed", "by": first[m["id"]]} for m in mutants if m["id"] in first}, **verdicts}
    if "--report" not in arguments:
        only = options["tests"].split(",") if "tests" in options else []
        commands, lock = tests(f"{folder}/tree"), threading.Lock()
        reached = trace(folder, jobs, commands, only, slow)
        for what in reached.values():
            what["set"] = set(what["reached"])
        with open(path, "a") as out, concurrent.futures.ThreadPoolExecutor(jobs) as pool:

            # How often a test failed on another mutant of a file or a folder.
            known = [(m["file"], verdicts[m["id"]]["by"]) for m in mutants if verdicts.get(m["id"], {}).get("by")]
            fame = collections.Counter(known + [(os.path.dirname(file), by) for file, by in known])

            def one(mutant):
                if time.time() < end:
                    v = judge(folder, commands, only, reached, slow, most, first, fame, mutant)
                    with lock:
                        verdicts[v["id"]] = v
                        print(json.dumps(v), file=out, flush=True)

            list(pool.map(one, [m for m in mutants if m["id"] not in verdicts]))
    if "--keep" in arguments:
        keep_killers(verdicts)
    report(mutants, verdicts)


if __name__ == "__main__":
    main(sys.argv[1:])
