"""Products of shapes that no list names, for the tuner: what it chooses beside cuBLAS.

usage: python3 tests/bench/peers.py BUILD --only=wide [--out=wide.csv] [--seconds=540] [--seed=1] [--count=40] [--first=0] [--last=40]
           [--shapes=5120x5120x5120,bf16:NT:24x8192x8192,..] [--configurations=BM=128,BN=128,..;BM=64,..]
           [--try=N] [--waves] [--copy] [--verbose]
       python3 tests/bench/peers_wide.py [--seed=1] [--count=40]      prints the shapes, without a GPU
  The shapes are drawn by --seed: M, N and K log-uniform in 64 .. 12288, half of them multiples of 64, the others of 8; f16 and
  bf16, B as [K, N] and as [N, K] in turn.  --first and --last take a part of them, for runs that must end in time.  --shapes
  replaces them; of f16 and B as [K, N] unless a shape says otherwise.  --configurations: these instead of the tuner's
  choice, each a contender of its own, of matmul_split_k where it names SPLIT, else of matmul_tuned.  --copy adds a copy of
  as many bytes as operands and result have (half of them read, half
  written), and prints its time over ours.  --try=N replaces the number of configurations that the autotune blocks try, as --try=10000 for all.

Each shape is tuned anew (what an earlier one compiled is in the cache of the run), by matmul_tuned, where its tiles are few by matmul_split_k too, and with
--waves by matmul_waves; the fastest one by the tuner's
own times meets torch.matmul in rotation, each round after the same rest, behind a flushed L2.  A row says: cuBLAS's time over
ours, what won, the seconds of tuning, and how well the block's order ranks what was timed (Spearman; 1 is perfect).
"""
import math, random, re, sys, time

LOW, HIGH = 64, 12288


def draw(seed, count):
    """(M, N, K, type, whether B is [N, K]): the same for a seed on every machine."""
    r = random.Random(seed)
    out = []
    for i in range(count):
        step = 64 if i % 2 == 0 else 8
        extent = lambda: min(max(step, round(math.exp(r.uniform(math.log(LOW), math.log(HIGH))) / step) * step), HIGH)
        out.append((extent(), extent(), extent(), ("f16", "bf16")[i // 2 % 2], i // 4 % 2 == 1))
    return out


def ranks(values):
    """From 1; equal values share the mean of their places."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    out = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end < len(order) and values[order[end]] == values[order[at]]:
            end += 1
        for i in order[at:end]:
            out[i] = (at + end + 1) / 2
        at = end
    return out


def spearman(a, b):
    """None where there is nothing to compare."""
    if len(a) < 3:
        return None
    x, y = ranks(a), ranks(b)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    top = sum((p - mx) * (q - my) for p, q in zip(x, y))
    bottom = math.sqrt(sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y))
    return top / bottom if bottom > 0 else None


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""
    import torch

    FILE, GOOD = "matmul/matmul.blk", 1
    PARTS = (1 << 20) if p.DRY else 1 << 26  # f32: what split-K may leave behind
    types = {"f16": (torch.float16, 1e-3), "bf16": (torch.bfloat16, 8e-3)}
    workspace = {}

    def edit(text):
        """The block's own `try` counts, whatever the space that it imports says."""
        return re.sub(r"(import gemm_\w*space\b[^;]*;)", rf"\1 try {int(p.OPTIONS['try'])};", text) if p.OPTIONS.get("try") else text

    def kernels(m, n, k):
        """Those that may be the best, with the arguments that they take beside the product's."""
        yield "matmul_tuned", []
        tiles = -(-m // 128) * -(-n // 128)
        padded = -(-m // 128) * 128 * -(-n // 256) * 256
        if not workspace:
            workspace["parts"] = torch.empty(PARTS, device=p.DEVICE)
            workspace["arrived"] = torch.zeros(1 << 16, dtype=torch.int32, device=p.DEVICE)
        if (p.DRY or tiles <= p.SMS and k >= 1024) and 8 * padded <= PARTS:
            yield "matmul_split_k", [workspace["parts"], workspace["arrived"]]
        if "waves" in p.OPTIONS:
            yield "matmul_waves", [workspace["parts"], workspace["arrived"]]

    def error_of(out, want):
        largest = want.abs().max().item()
        return (out.double() - want).abs().max().item() / (largest if largest > 0 else 1)

    def verify(mine, c, want, kind, what):
        """Runs it once into a poisoned result."""
        tolerance = types[kind][1]
        c.fill_(float("nan"))
        mine()
        p.synchronize()
        error = error_of(c, want)
        if not error <= tolerance:
            raise RuntimeError(f"WRONG result by {what}, error {error:.2e}, allowed {tolerance:.0e}")

    def choose(m, n, k, kind, transposed, c, a, b, want):
        """(ms by the tuner, kernel, what it is, how many were timed) of the best of ours, all seconds, and what was predicted and
        measured of each that was timed."""
        best, spent, pairs = None, 0.0, []
        for name, extra in kernels(m, n, k):
            mine = p.Kernel(p.BLK, FILE, name, [c, a, b, *extra, m, n, k], {"T": kind, "TRANSPOSED": str(transposed).lower()}, edit=edit)
            trials, seconds = ([], 0.0) if p.DRY else mine.tune()  # what lies behind torch's pointers is known to CUDA's driver only
            spent += seconds
            timed = [t for t in trials if t[1] == GOOD and t[2] > 0]
            chosen = next((t for t in timed if t[4]), None)
            if name == "matmul_tuned":
                pairs = [(t[5], t[2]) for t in timed if t[5] == t[5]]
            if "verbose" in p.OPTIONS:
                for t in sorted(trials, key=lambda t: t[2] or 1e9):
                    if t[1] or t[3]:
                        p.say(f"    {t[2] * 1e3:9.2f} us  predicted {t[5]:9.2f}  {name} {t[0]} {t[3][:80]}")
            verify(mine, c, want, kind, f"{name} {chosen[0] if chosen else ''}")
            ms = chosen[2] if chosen else float("inf")
            if best is None or ms < best[0]:
                best = (ms, mine, f"{name} {chosen[0] if chosen else 'defaults'}", len(timed))
        return best, spent, pairs

    def by_hand(m, n, k, kind, transposed, c, a, b, want):
        """What --configurations asks for: (text, kernel) of each that is right."""
        for text in p.OPTIONS["configurations"].split(";"):
            defines = dict(d.split("=") for d in text.split(","))
            name = "matmul_split_k" if "SPLIT" in defines else "matmul_tuned"
            extra = next((e for other, e in kernels(m, n, k) if other == name), None)
            try:
                if extra is None:
                    raise RuntimeError("too many tiles for split-K's workspace, or K below 1024")
                defines.update({"T": kind, "TRANSPOSED": str(transposed).lower()})
                mine = p.Kernel(p.BLK, FILE, name, [c, a, b, *extra, m, n, k], defines)
                verify(mine, c, want, kind, text)
                yield text, mine
            except Exception as e:
                p.say(f"    {text}: {p.error_text(e)}")

    def take_turns(contenders):
        """Milliseconds of each: the median, in rotation, each round after the same rest."""
        times = {who: [] for who in contenders}
        for run in contenders.values():
            p.timed(run, 1 if p.DRY else 3)
        for _ in range(2 if p.DRY else 4):
            for who, run in contenders.items():
                p.synchronize()
                time.sleep(0 if p.DRY else 0.15)
                times[who] += p.timed(run, 2 if p.DRY else 12)
        return {who: sorted(t)[len(t) // 2] for who, t in times.items()}

    def shape_by_hand(m, n, k, kind, transposed, operands):
        c, result, a, b, right, want = operands
        contenders = {"cuBLAS": lambda: torch.matmul(a, right, out=c)}
        contenders.update(by_hand(m, n, k, kind, transposed, result, a, b, want))
        median = take_turns(contenders)
        work = f"{kind} {'NT' if transposed else 'NN'} {m} x {n} x {k}"
        p.say(work)
        for who, ms in median.items():
            ratio = median["cuBLAS"] / ms
            p.say(f"    {ms * 1e3:9.2f} us  {ratio:6.3f}  {who}")
            p.record("wide by hand", work, who if who == "cuBLAS" else "blk", "" if who == "cuBLAS" else who, ms, ratio=None if who == "cuBLAS" else ratio)

    def shape(number, m, n, k, kind, transposed, figures):
        dtype, _ = types[kind]
        # The tuner compares all that lies behind a pointer of torch's: that is to be the result, no hundreds of MB that torch has kept.
        if not p.DRY:
            torch.cuda.empty_cache()
        a = p.fresh(m, k, dtype=dtype)
        b = p.fresh(n, k, dtype=dtype) if transposed else p.fresh(k, n, dtype=dtype)
        right = b.t() if transposed else b
        c, result = p.poisoned(m, n, dtype=dtype), p.poisoned(m, n, dtype=dtype)
        want = torch.matmul(a.double(), right.double())
        if p.OPTIONS.get("configurations"):
            return shape_by_hand(m, n, k, kind, transposed, (c, result, a, b, right, want))
        (_, mine, what, tried), seconds, pairs = choose(m, n, k, kind, transposed, result, a, b, want)
        del want
        contenders = {"blk tuned": mine, "cuBLAS": lambda: torch.matmul(a, right, out=c)}
        if "copy" in p.OPTIONS:  # moves as many bytes as the product must
            words = (m * k + k * n + m * n) // 2
            source, target = p.fresh(words, dtype=dtype), p.poisoned(words, dtype=dtype)
            contenders["copy"] = lambda: target.copy_(source)
        median = take_turns(contenders)
        ratio = median["cuBLAS"] / median["blk tuned"]
        rank = spearman([x for x, _ in pairs], [y for _, y in pairs])
        figures.append((ratio, seconds, rank))
        work = f"{kind} {'NT' if transposed else 'NN'} {m} x {n} x {k}"
        said = "  -  " if rank is None else f"{rank:5.2f}"
        rate = lambda ms: 2e-9 * m * n * k / ms  # TFLOP/s
        p.say(f"{number:3d} {work:30s} {ratio:6.3f}  {rate(median['blk tuned']):6.0f} TFLOP/s  tuned {seconds:5.2f} s, {tried:3d} timed, order {said}  {what}")
        for who, ms in median.items():
            ours = who == "blk tuned"
            if who == "copy":
                p.say(f"    {ms / median['blk tuned']:6.3f} of a copy's speed (as many bytes): {median['blk tuned'] * 1e3:.2f} us, the copy {ms * 1e3:.2f} us")
            p.record("wide", work, who, what if ours else who if who == "copy" else "matmul", ms, rate(ms), ratio=ratio if ours else None, unit="TFLOP/s")
        p.record("wide tuner", work, "blk", f"{tried} timed, order {said.strip()}", ms=seconds * 1e3)

    def wide():
        count = int(p.OPTIONS.get("count") or (4 if p.DRY else 40))
        first, last = int(p.OPTIONS.get("first") or 0), int(p.OPTIONS.get("last") or count)
        figures, shapes = [], draw(int(p.OPTIONS.get("seed") or 1), count)
        if p.OPTIONS.get("shapes"):
            named = [s.split(":") for s in p.OPTIONS["shapes"].split(",")]
            shapes = [(*map(int, s[-1].split("x")), "bf16" if "bf16" in s else "f16", "NT" in s) for s in named]
        for number, (m, n, k, kind, transposed) in list(enumerate(shapes))[first:last]:
            if p.DRY:
                m, n, k = 8 * (m % 13 + 1), 8 * (n % 13 + 1), 8 * (k % 13 + 1)
            if time.time() - p.START > p.SECONDS:
                p.say(f"wide: left out from shape {number} on, out of time: go on with --first={number}")
                break
            try:
                shape(number, m, n, k, kind, transposed, figures)
            except Exception as e:
                p.say(f"wide: {m} x {n} x {k}: {p.error_text(e)}")
                p.record("wide", f"{kind} {m} x {n} x {k}", "", note=p.error_text(e))
            p.write()
        ratios, seconds, rank = [f[0] for f in figures], [f[1] for f in figures], [f[2] for f in figures if f[2] is not None]
        if not ratios:
            return
        order = sum(rank) / len(rank) if rank else float("nan")
        p.say(
            f"wide: {len(ratios)} shapes, geometric mean {geometric_mean(ratios):.3f} of cuBLAS, lowest {min(ratios):.3f}, {sum(r < 0.9 for r in ratios)} below 0.9; "
            f"tuning {sum(seconds) / len(seconds):.2f} s a shape, at most {max(seconds):.2f}; order {order:.2f}, lowest {min(rank, default=float('nan')):.2f}"
        )
        p.record("wide", "all", "blk tuned", f"lowest {min(ratios):.3f}, order {order:.2f}", ratio=geometric_mean(ratios))

    return {"wide": wide}


if __name__ == "__main__":
    options = dict((a[2:].split("=", 1) + [""])[:2] for a in sys.argv[1:] if a.startswith("--"))
    for s in draw(int(options.get("seed") or 1), int(options.get("count") or 40)):
        print("%5d %5d %5d %s %s" % (*s[:4], "NT" if s[4] else "NN"))
