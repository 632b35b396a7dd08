"""Ours beside torch and Triton on one GPU, in one process: same buffers, same stream, same clock.

usage: python3 tests/bench/peers.py BUILD [--out=peers.csv] [--only=softmax,dropout] [--seconds=240] [--clean] [--dry] [--verbose]
  BUILD is the folder that `make device` makes; --only takes the names of sections (--only=list prints them); a section
  that would start after --seconds is left out; --dry runs everything small on the CPU, Triton in its interpreter;
  --verbose prints what each variant took when the best was looked for.  The sections "wide", "quantised" and "attention" run
  where they are named only: peers_wide.py, peers_quantised.py, peers_gemm.py and peers_attention.py say what their options are.

Every output is poisoned and compared with double precision before it is timed.  Of the variants of one contender (tile,
warps) a few runs choose the best, which then meets the others in alternating rounds; each run lies between two events,
behind a write that flushes L2; the median counts.  A variant or a row that fails says so and the rest goes on.

What that write leaves in L2, 50 MB of dirty lines on an H200, goes to memory while a run reads: one that reads 134 MB moves
184.  --clean reads another buffer behind the write, so that L2 holds nothing that has to go to memory.
"""
import concurrent.futures, csv, ctypes, itertools, os, statistics, struct, sys, tempfile, time

ARGS = [a for a in sys.argv[1:] if not a.startswith("--")]
OPTIONS = dict((a[2:].split("=", 1) + [""])[:2] for a in sys.argv[1:] if a.startswith("--"))
DRY = "dry" in OPTIONS
if DRY:
    os.environ["TRITON_INTERPRET"] = "1"
SCRATCH = tempfile.TemporaryDirectory()
# Every compile of this run is a real one: no cache of an earlier run is read.
os.environ["TRITON_CACHE_DIR"] = os.path.join(SCRATCH.name, "triton")
os.environ["BLK_CACHE_DIR"] = os.path.join(SCRATCH.name, "blk")
os.environ["CUDA_CACHE_DISABLE"] = "1"

import torch, triton  # noqa: E402

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers_triton as T  # noqa: E402
from blk_abi import VISIT, Arg, Define, Grid, Info, TuneOptions  # noqa: E402

START = time.time()
BUILD = ARGS[0] if ARGS else "build-device/blk"
SECONDS = float(OPTIONS.get("seconds") or 240)
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
EXAMPLES = os.path.join(ROOT, "examples")
DEVICE = "cpu" if DRY else "cuda"
ROWS = []  # what the CSV gets


def say(text):
    print(f"[{time.time() - START:5.1f}] {text}", flush=True)


def wanted(row):
    """Whether --rows, texts with commas between, is for a row of this name."""
    texts = [t for t in OPTIONS.get("rows", "").split(",") if t]
    return not texts or any(t in row for t in texts)


def error_text(e):
    return f"{type(e).__name__}: {e}".strip().replace("\n", " ").replace(ROOT + os.sep, "")[:300]


def record(section, work, who, variant="", ms=None, rate=None, spread=None, ratio=None, note="", unit="GB/s"):
    r = lambda v, d: "" if v is None else round(v, d)
    ROWS.append(dict(section=section, work=work, who=who, variant=variant, ms=r(ms, 5), rate=r(rate, 1), unit=unit if rate else "", spread=r(spread, 4), ratio=r(ratio, 3), note=note))


# ---- Ours ----


def arg(v):
    if isinstance(v, torch.Tensor):
        return Arg(v.data_ptr(), 15)
    if isinstance(v, float):
        return Arg(struct.unpack("<I", struct.pack("<f", v))[0], 13)
    return Arg(v & 0xFFFFFFFF, 3)


class Kernel:
    """A kernel with its arguments; called, it launches.  mark: a comment that makes the source new; edit: what changes it."""

    def __init__(self, blk, path, name, args, defines, grid=None, mark=None, edit=None):
        self.blk, self.args = blk, (Arg * len(args))(*map(arg, args))
        self.keep = args
        module, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        array = (Define * max(len(defines), 1))(*[Define(k.encode(), str(v).encode()) for k, v in defines.items()])
        full, n = os.path.join(EXAMPLES, path), ctypes.c_size_t(len(defines))
        if mark is None and edit is None:
            blk.check(blk.lib.blk_module_open(blk.device, full.encode(), array, n, ctypes.byref(module)))
        else:  # a source that no cache has seen
            with open(full) as f:
                text = (edit or (lambda t: t))(f.read()) + f"\n// {mark}\n"
            blk.check(blk.lib.blk_module_source(blk.device, full.encode(), text.encode(), array, n, ctypes.byref(module)))
        blk.check(blk.lib.blk_kernel_find(module, name.encode(), ctypes.byref(self.handle)))
        self.grid = None
        if grid is not None:
            x = grid(self.info()) if callable(grid) else grid
            self.grid = ctypes.byref(Grid(x, 1, 1))

    def tune(self):
        """Tunes for these arguments; (configuration, verdict, ms, reason, chosen, predicted) of each, and the seconds that it took."""
        trials, start = [], time.perf_counter()

        def visit(_, trial):
            t = trial.contents
            trials.append((t.configuration.decode(), t.verdict, t.ms, (t.reason or b"").decode(), bool(t.chosen), t.predicted))
            return 0

        options = TuneOptions(visit=VISIT(visit))
        self.blk.check(self.blk.lib.blk_kernel_tune(self.handle, None, self.args, ctypes.c_size_t(len(self.args)), ctypes.byref(options), None))
        return trials, time.perf_counter() - start

    def info(self):
        out = Info()
        self.blk.check(self.blk.lib.blk_kernel_info(self.handle, self.args, ctypes.c_size_t(len(self.args)), ctypes.byref(out)))
        return out

    def __call__(self, stream=None):
        self.blk.check(self.blk.lib.blk_launch(self.handle, stream or self.blk.stream, self.grid, self.args, len(self.args)))


class Blk:
    """The few calls of libblk that a benchmark needs, on torch's context and stream."""

    def __init__(self):
        self.lib = ctypes.CDLL(os.path.join(BUILD, "lib", "libblk.so.1"))
        self.lib.blk_error.restype = ctypes.c_char_p
        self.lib.blk_launch.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_size_t]
        self.device, self.stream = ctypes.c_void_p(), ctypes.c_void_p()
        if DRY:
            self.check(self.lib.blk_device_open(b"cpu", ctypes.byref(self.device)))
            return
        torch.zeros(1, device="cuda")
        context = ctypes.c_void_p()
        assert ctypes.CDLL("libcuda.so.1").cuCtxGetCurrent(ctypes.byref(context)) == 0
        self.check(self.lib.blk_device_wrap(context, ctypes.byref(self.device)))
        raw = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self.check(self.lib.blk_stream_wrap(self.device, raw, ctypes.byref(self.stream)))

    def side_stream(self):
        """Waits for torch's stream, which waits for it, as streams and the legacy default stream do."""
        s = ctypes.c_void_p()
        self.check(self.lib.blk_stream_create(self.device, ctypes.byref(s)))
        return s

    def check(self, status):
        if status != 0:
            raise RuntimeError(self.lib.blk_error().decode())


BLK = Blk()
SMS = 4 if DRY else torch.cuda.get_device_properties(0).multi_processor_count
FLUSH = torch.empty((1 << 12) if DRY else (64 << 20), dtype=torch.int32, device=DEVICE)
CLEAN = torch.zeros_like(FLUSH) if "clean" in OPTIONS else None  # is read behind each flush


def synchronize():
    if not DRY:
        torch.cuda.synchronize()


def rest(run):
    """In front of a round: the same pause for all, so that what ran before does not decide the clock."""
    synchronize()
    time.sleep(0 if DRY else 0.15)


def heat(run, times):
    """In front of a round: a quarter of a second of its own work, `times` runs ahead of the device."""
    end = time.time() + (0 if DRY else 0.25)
    while time.time() < end:
        for _ in range(times):
            run()
        synchronize()


def fresh(*shape, dtype=torch.float32, scale=1.0, shift=0.0):
    return (torch.randn(*shape, device=DEVICE) * scale + shift).to(dtype)


def poisoned(*shape, dtype=torch.float32):
    return torch.full(shape, float("nan"), dtype=dtype, device=DEVICE)


# ---- Contenders ----


class Contender:
    """One variant: `make` returns what launches it, and may raise.  outputs: (tensor, wanted double, tolerance)."""

    def __init__(self, who, variant, make, outputs=()):
        self.who, self.variant, self.make, self.outputs, self.run = who, variant, make, outputs, None
        self.prepare = lambda: None  # what may be done for several at a time, on other threads

    def ready(self):
        self.run = self.make()
        for out, _, _ in self.outputs:
            out.fill_(float("nan"))
        self.run()
        synchronize()
        worst = 0.0
        for out, want, tolerance in self.outputs:
            want = want() if callable(want) else want
            largest = want.abs().max().item()
            error = (out.double() - want).abs().max().item() / (largest if largest > 0 else 1)
            if not error <= tolerance:
                raise RuntimeError(f"WRONG result, error {error:.2e}, allowed {tolerance:.0e}")
            worst = max(worst, error)
        return worst


def ours(path, name, args, defines, outputs, grid=None, after=None, label=None, who="blk"):
    """after: a second kernel (path, name, args, defines) that belongs to the work; args may be a function of the first's grid."""

    def make():
        k = Kernel(BLK, path, name, args, defines, grid)
        if after is None:
            return k
        second = Kernel(BLK, *after(k.grid._obj.x if k.grid is not None else 0))

        def both():
            k()
            second()

        return both

    text = label or " ".join(f"{k}={v}" for k, v in defines.items())
    c = Contender(who, f"{name} {text}".strip(), make, outputs)
    c.prepare = lambda: Kernel(BLK, path, name, args, defines).info()
    return c


def tuned(path, name, args, defines, outputs, who):
    """The configuration that libblk's tuner chooses."""

    def make():
        k = Kernel(BLK, path, name, args, defines)
        trials, seconds = k.tune()
        best = next((t[0] for t in trials if t[4]), "")
        c.variant = f"{name} {best.replace(',', ' ')}"
        say(f"  tuner: {name}, {len(trials)} configurations, {sum(t[1] == 1 for t in trials)} good, {seconds:.2f} s: {best}")
        record("tuner", f"{name} {' '.join(str(a) for a in args if isinstance(a, int))}", "blk", f"{len(trials)} configurations, {best}", ms=seconds * 1e3)
        return k

    c = Contender(who, name, make, outputs)
    return c


def choice(path, name, args, defines, outputs, who="blk tuned"):
    """What the tuner chooses; dry the defaults, as only CUDA's driver knows what lies behind torch's pointers."""
    return ours(path, name, args, defines, outputs, who=who) if DRY else tuned(path, name, args, defines, outputs, who)


def theirs(variant, launch, outputs, who="triton"):
    return Contender(who, variant, lambda: launch, outputs)


TUTORIAL = "triton tutorial"  # the shape of Triton's own tutorials, which the aims are stated against


AHEAD = 0  # clocks that the device waits in front of a run, for functions whose host code takes longer than the flush


def one_run(f, times):
    if AHEAD:
        torch.cuda._sleep(AHEAD)
    FLUSH.zero_()
    if CLEAN is not None:
        torch.max(CLEAN)
    if DRY:
        t = time.perf_counter()
        f()
        times.append((time.perf_counter() - t) * 1e3)
        return
    a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    a.record()
    f()
    b.record()
    times.append((a, b))


def timed(f, repeats):
    times = []
    for _ in range(repeats):
        one_run(f, times)
    synchronize()
    return [t if DRY else t[0].elapsed_time(t[1]) for t in times]


def prepared(c):
    try:
        c.prepare()
    except Exception:  # ready() says so
        pass


def fastest(variants, before):
    """Of one contender's: a few runs of each, in turns, so that heat meets all alike."""
    times = [[] for _ in variants]
    for _ in range(1 if DRY else 3):
        if len(variants) > 1:
            before(variants[0].run)
        for c, t in zip(variants, times):
            t += timed(c.run, 1 if DRY else 4)
    medians = [statistics.median(t) for t in times]
    if "verbose" in OPTIONS:
        for c, t in zip(variants, medians):
            say(f"    {t * 1e3:8.2f} us  {c.who}: {c.variant}")
    return variants[medians.index(min(medians))]


def compare(section, work, moved, contenders, unit="GB/s", rounds=8, before=lambda run: None):
    """Checks all, keeps the best variant of each contender, measures those in rotation, records and prints the row.
    moved: what one run moves in bytes, or, for TFLOP/s, a thousandth of its operations; before: called with a contender's run
    ahead of each of its rounds."""
    ready = {}
    with concurrent.futures.ThreadPoolExecutor(1 if DRY else os.cpu_count()) as pool:
        list(pool.map(lambda c: prepared(c), contenders))
    for c in contenders:
        try:
            c.ready()
            timed(c.run, 1 if DRY else 3)
            ready.setdefault(c.who, []).append(c)
        except Exception as e:  # a peer's failure is a figure too
            say(f"  {work}: {c.who} ({c.variant}): {error_text(e)}")
            record(section, work, c.who, c.variant, note=error_text(e))
    best = {}
    for who, variants in ready.items():
        try:
            best[who] = fastest(variants, before)
        except Exception as e:
            say(f"  {work}: {who}: {error_text(e)}")
            record(section, work, who, variants[0].variant, note=error_text(e))
    times = {who: [] for who in best}
    for _ in range(2 if DRY else rounds):
        for who, c in best.items():
            before(c.run)
            times[who] += timed(c.run, 2 if DRY else 12)
    median = {who: statistics.median(t) for who, t in times.items()}
    peers = [t for who, t in median.items() if not who.startswith("blk")]
    aimed = [t for who, t in median.items() if not who.startswith("blk") and who != "triton"] if TUTORIAL in median else peers
    line = f"{work:30s}"
    for who, t in median.items():
        ordered = sorted(times[who])
        spread = (ordered[len(ordered) * 4 // 5] - ordered[len(ordered) // 5]) / t
        ratio = (min(peers) / t if peers else None) if who.startswith("blk") else t / median["blk"] if "blk" in median else None
        record(section, work, who, best[who].variant, t, moved / t * 1e-6, spread, ratio, unit=unit)
        line += f" {who} {moved / t * 1e-6:.0f}" if moved else f" {who} {t * 1e3:.2f} us"
    if "blk" in median and peers:
        line += f"  blk / best peer {min(peers) / median['blk']:.3f}, / torch and tutorial {min(aimed) / median['blk']:.3f}  ({best['blk'].variant})"
    say(line)


def warps_for(block, least=4, most=64):
    """Numbers of warps that leave a thread between `least` and `most` elements of the block."""
    return [w for w in (1, 2, 4, 8, 16) if least <= block // (32 * w) <= most] or [4]


def each(section, work):
    """Runs all (name, function) of `work` that there is time for; what fails is a line of the record."""
    for name, f in work:
        if time.time() - START > SECONDS:
            say(f"{section}: {name} left out, out of time")
            continue
        try:
            f()
        except Exception as e:
            say(f"{section}: {name}: {error_text(e)}")
            record(section, name, "", note=error_text(e))
        write()


# ---- Sections ----


def section_empty():
    """What a launch takes between the two events when there is nothing to do: no row can be faster."""
    x = fresh(1)
    rows = [ours(os.path.join(HERE, "empty.blk"), "empty", [x, 1], {}, [], grid=g, label=f"{g} programs", who="blk") for g in (1, 4096)]
    rows += [theirs(f"{g} programs", lambda g=g: T.empty[(g,)](x, 1), []) for g in (1, 4096)]
    for r in rows:
        compare("empty", f"empty kernel, {r.variant.split(' ', 1)[-1] if r.who == 'blk' else r.variant}", 0, [r])


def section_copy():
    for p in (12,) if DRY else (20, 22, 29):
        x = fresh(2**p * (1 if p == 29 else 3) // (1 if p == 29 else 2))
        y = poisoned(*x.shape)
        compare("copy", "copy 4 GiB" if p == 29 else f"copy, bytes of add 2^{p}", 8 * x.numel(), [theirs("copy_", lambda: y.copy_(x), [(y, x.double(), 0)], "torch")])


def section_add():
    for p in (12,) if DRY else (20, 22, 24, 27):
        n = 2**p
        x, y = fresh(n), fresh(n)
        out = [poisoned(n) for _ in range(3)]
        check = lambda z: [(z, x.double() + y.double(), 1e-6)]
        rows = [ours("vector_add/vector_add.blk", "add", [out[0], x, y, n], d, check(out[0])) for d in ({}, {"BLOCK": 512}, {"BLOCK": 2048, "num_warps": 8})]
        rows.append(theirs("add", lambda: torch.add(x, y, out=out[1]), check(out[1]), "torch"))
        for b, w in ((512, 4), (1024, 4), (2048, 8)):
            who = TUTORIAL if b == 1024 else "triton"
            rows.append(theirs(f"BLOCK={b} num_warps={w}", lambda b=b, w=w: T.add[(triton.cdiv(n, b),)](out[2], x, y, n, BLOCK=b, num_warps=w), check(out[2]), who))
        compare("add", f"add f32 2^{p}", 12 * n, rows)


def section_gelu():
    n = 2**12 if DRY else 2**28
    x = fresh(n)
    y0, y1 = poisoned(n), poisoned(n)
    want = torch.nn.functional.gelu(x.double(), approximate="tanh")
    rows = [ours("gelu/gelu.blk", "gelu_forward", [y0, x, n], d, [(y0, want, 1e-6)]) for d in ({}, {"BLOCK": 2048, "num_warps": 8})]
    rows.append(Contender("torch", "gelu", lambda: lambda: torch.nn.functional.gelu(x, approximate="tanh")))
    for b, w in ((1024, 4), (2048, 8)):
        who = TUTORIAL if b == 1024 else "triton"
        rows.append(theirs(f"BLOCK={b} num_warps={w}", lambda b=b, w=w: T.gelu[(triton.cdiv(n, b),)](y1, x, n, BLOCK=b, num_warps=w), [(y1, want, 1e-6)], who))
    compare("gelu", "gelu f32 16384^2", 8 * n, rows)


def resident(rows):
    return lambda info: max(1, min(rows, info.programs_per_sm * info.num_sms))


def tutorial_softmax(y, x, rows, n, block):
    """Persistent, 8 warps, as many programs as registers and shared memory allow, the loop in stages."""
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    stages = 4 if properties["max_shared_mem"] > 200000 else 2
    kernel = T.softmax_persistent.warmup(y, x, rows, n, BLOCK=block, STAGES=stages, num_warps=8, grid=(1,))
    kernel._init_handles()
    occupancy = properties["max_num_regs"] // (kernel.n_regs * 32 * 8)
    if kernel.metadata.shared:
        occupancy = min(occupancy, properties["max_shared_mem"] // kernel.metadata.shared)
    programs = min(SMS * max(occupancy, 1), rows)
    return lambda: T.softmax_persistent[(programs,)](y, x, rows, n, BLOCK=block, STAGES=stages, num_warps=8)


def extents(n):
    """Of a tile that holds a row, and whose it is: next_extent(n), and where that differs next_pow2(n) beside it."""
    power = triton.next_power_of_2(n)
    step = max(16, power // 8)
    extent = -(-n // step) * step
    return [(extent, "blk")] + ([(power, "blk, power of two")] if power != extent else [])


def section_softmax():
    shapes = [(4096, c) for c in (256, 781, 1024, 2048, 4096, 5000, 8192, 12672)] + [(16384, 16384), (1024, 65536), (256, 262144)]
    for m, n in [(5, 100), (3, 1000), (2, 70000)] if DRY else shapes:
        x = fresh(m, n, scale=3.0)
        y0, y1 = poisoned(m, n), poisoned(m, n)
        want = torch.softmax(x.double(), -1)
        block = triton.next_power_of_2(n)
        file, args = "softmax/softmax.blk", [y0, x, n, m, n]
        rows = [Contender("torch", "softmax", lambda: lambda: torch.softmax(x, -1))]
        check0, check1 = [(y0, want, 2e-6)], [(y1, want, 2e-6)]
        if block <= 16384:
            for w, (extent, who) in itertools.product(warps_for(block, 2), extents(n)):
                d = {"BLOCK": extent, "num_warps": w}
                rows.append(ours(file, "softmax_rows", args, d, check0, who=who))
                rows.append(ours(file, "softmax_persistent", args, d, check0, grid=resident(m), who=who))
            for tile in (4, 8, 16) if block <= 1024 else ():
                rows.append(ours(file, "softmax_tiles", args, {"BLOCK": block, "ROWS": tile, "num_warps": 4}, check0))
            if not DRY:
                rows.append(Contender(TUTORIAL, "persistent num_warps=8", lambda: tutorial_softmax(y1, x, m, n, block), check1))
            for w in warps_for(block, 4, 32)[-3:]:
                rows.append(theirs(f"rows num_warps={w}", lambda w=w: T.softmax_rows[(m,)](y1, x, m, n, BLOCK=block, num_warps=w), check1))
            for w in warps_for(block, 4, 32)[-2:]:
                g = min(m, SMS * max(1, min(8, 64 // w // 2)))
                rows.append(theirs(f"persistent num_warps={w}", lambda w=w, g=g: T.softmax_persistent[(g,)](y1, x, m, n, BLOCK=block, STAGES=2, num_warps=w), check1))
        else:
            for repeat, lanes, w in ((2, 256, 8), (4, 256, 8), (4, 512, 16), (8, 512, 16)):
                rows.append(ours(file, "softmax_online", args, {"REPEAT": repeat, "LANES": lanes, "num_warps": w}, check0))
            meeting = torch.zeros(m * 34, dtype=torch.int64, device=DEVICE)
            for b, w in ((8192, 4), (8192, 8), (16384, 4), (16384, 8), (16384, 16)):
                if block // b <= 32:
                    d = {"BLOCK": b, "PARTS": block // b, "num_warps": w}
                    rows.append(ours(file, "softmax_split", [y0, x, meeting, n, m, n], d, check0))
            for b, w in ((4096, 8), (8192, 16), (16384, 16)):
                rows.append(theirs(f"online BLOCK={b} num_warps={w}", lambda b=b, w=w: T.softmax_online[(m,)](y1, x, m, n, BLOCK=b, num_warps=w), check1))
            if block <= 65536 and not DRY:
                rows.append(theirs("rows num_warps=32", lambda: T.softmax_rows[(m,)](y1, x, m, n, BLOCK=block, num_warps=32), check1))
        compare("softmax", f"softmax f32 {m} x {n}", 8 * m * n, rows)
        del x, y0, y1, want, rows, check0, check1, args


def philox(seed, counters):
    """The four numbers in [0, 1) of Philox 4x32-10 with counter (c, 0, 0, 0) and key (seed, 0), one at a time."""
    low = 0xFFFFFFFF
    c, k = [counters.to(torch.int64), 0, 0, 0], [seed, 0]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32 & low) ^ c[1] ^ k[0], b & low, (a >> 32 & low) ^ c[3] ^ k[1], a & low]
        k = [k[0] + 0x9E3779B9 & low, k[1] + 0xBB67AE85 & low]
    for v in c:
        v = v.to(torch.int32)
        yield torch.where(v < 0, -v - 1, v).to(torch.float32) * 4.6566127342e-10


def section_dropout():
    n, p, seed = 2**14 if DRY else 2**27, 0.25, 123
    x = fresh(n)
    y0, y1 = poisoned(n), poisoned(n)
    keep = lambda u: torch.where(u > p, x.double() / (1 - p), 0.0)
    want = keep(next(philox(seed, torch.arange(n, device=DEVICE))))
    file, args = "dropout/dropout.blk", [y0, x, p, seed, n]
    torch_row = lambda: Contender("torch", "dropout", lambda: lambda: torch.nn.functional.dropout(x, p))
    rows = [torch_row()]
    for b, w in ((512, 4), (1024, 4), (1024, 8), (2048, 16)):
        rows.append(ours(file, "dropout_seeded", args, {"BLOCK": b, "num_warps": w}, [(y0, want, 1e-6)]))
        rows.append(theirs(f"BLOCK={b} num_warps={w}", lambda b=b, w=w: T.dropout[(triton.cdiv(n, b),)](y1, x, p, seed, n, BLOCK=b, num_warps=w), [(y1, want, 1e-6)], TUTORIAL if (b, w) == (1024, 4) else "triton"))
    compare("dropout", f"dropout rand f32 2^{n.bit_length() - 1}", 8 * n, rows)
    four = torch.stack(list(philox(seed, torch.arange(n // 4, device=DEVICE))))
    # Ours: element i has number i % 4 of counter i / 4.  Triton's: element q * b + i of tile t has number q of t * b + i.
    neighbours = lambda: keep(four.t().reshape(n))
    mapped = lambda b: lambda: keep(four.view(4, n // 4 // b, b).permute(1, 0, 2).reshape(n))
    rows = [torch_row()]
    for b, w in ((1024, 4), (1024, 8), (2048, 8), (2048, 4)):
        rows.append(ours(file, "dropout_seeded4x", args, {"BLOCK": b, "num_warps": w}, [(y0, neighbours, 1e-6)]))
    for b, w in ((512, 4), (1024, 4), (1024, 8)):
        rows.append(theirs(f"BLOCK={b} num_warps={w}", lambda b=b, w=w: T.dropout4x[(triton.cdiv(n, 4 * b),)](y1, x, p, seed, n, BLOCK=b, num_warps=w), [(y1, mapped(b), 1e-6)]))
    compare("dropout", f"dropout rand4x f32 2^{n.bit_length() - 1}", 8 * n, rows)


def norm_inputs(m, n):
    half = torch.float16
    x, dy = fresh(m, n, dtype=half, scale=0.5, shift=1.0), fresh(m, n, dtype=half, scale=0.1)
    w, b = fresh(n, dtype=half), fresh(n, dtype=half)
    v = x.double()
    mean = v.mean(-1, keepdim=True)
    rstd = 1 / torch.sqrt(((v - mean) ** 2).mean(-1, keepdim=True) + 1e-5)
    return x, dy, w, b, mean, rstd, (v - mean) * rstd


def norm_shapes():
    return [(7, 100)] if DRY else [(4096, c) for c in (1024, 2048, 4096, 8192, 16384)]


def section_layernorm():
    for m, n in norm_shapes() + ([] if DRY else [(4096, c) for c in (2560, 5120, 7168)]):
        x, _, w, b, mean, rstd, xhat = norm_inputs(m, n)
        y0, y1 = poisoned(m, n, dtype=torch.float16), poisoned(m, n, dtype=torch.float16)
        m0, r0, m1, r1 = (poisoned(m) for _ in range(4))
        block = triton.next_power_of_2(n)
        want = xhat * w.double() + b.double()
        del xhat
        check = lambda y, mu, rs: [(y, want, 1e-3), (mu, mean.flatten(), 1e-5), (rs, rstd.flatten(), 1e-5)]
        rows = [Contender("torch", "layer_norm", lambda: lambda: torch.nn.functional.layer_norm(x, (n,), w, b, 1e-5))]
        for k, (extent, who) in itertools.product(warps_for(block), extents(n)):
            d = {"T": "f16", "BLOCK": extent, "num_warps": k}
            rows.append(ours("layer_norm/layer_norm.blk", "layer_norm_forward", [y0, x, w, b, m0, r0, n, m, n, 1e-5], d, check(y0, m0, r0), who=who))
        for tile, k in itertools.product((2, 4, 8), (1, 2, 4, 8)) if block <= 2048 else ():
            if not 32 <= tile * block // (32 * k) <= 128:
                continue
            d = {"T": "f16", "BLOCK": block, "ROWS": tile, "num_warps": k}
            rows.append(ours("layer_norm/layer_norm.blk", "layer_norm_forward_tiles", [y0, x, w, b, m0, r0, n, m, n, 1e-5], d, check(y0, m0, r0)))
        usual = min(max(block // 256, 1), 8)
        for k in sorted({usual, *warps_for(block, 4, 32)[-3:]}):
            rows.append(theirs(f"num_warps={k}", lambda k=k: T.norm_forward[(m,)](y1, x, w, b, m1, r1, m, n, 1e-5, BLOCK=block, num_warps=k), check(y1, m1, r1), TUTORIAL if k == usual else "triton"))
        compare("layernorm", f"layer norm fwd f16 {m} x {n}", 4 * m * n, rows)


def section_backward():
    half = torch.float16
    for m, n in norm_shapes():
        x, dy, w, b, mean, rstd, xhat = norm_inputs(m, n)
        g = dy.double() * w.double()
        want_dx = rstd * (g - g.mean(-1, keepdim=True) - xhat * (g * xhat).mean(-1, keepdim=True))
        want_dw, want_db = (dy.double() * xhat).sum(0), dy.double().sum(0)
        del g, xhat
        mu, rs = mean.float().flatten(), rstd.float().flatten()
        block = triton.next_power_of_2(n)
        most = min(m, SMS * 16)
        dx, dw, db = poisoned(m, n, dtype=half), poisoned(n, dtype=half), poisoned(n, dtype=half)
        pw, pb, locks = poisoned(most, n), poisoned(most, n), torch.zeros(2 * 256, dtype=torch.int32, device=DEVICE)
        check = [(dx, want_dx, 1e-3), (dw, want_dw, 2e-3), (db, want_db, 2e-3)]
        file = "layer_norm/layer_norm.blk"
        native = torch.ops.aten.native_layer_norm_backward
        m2, r2 = torch.ops.aten.native_layer_norm(x, [n], w, b, 1e-5)[1:]
        rows = [Contender("torch", "native_layer_norm_backward", lambda: lambda: native(dy, x, [n], m2, r2, w, b, [True, True, True]))]
        leaves = [t.clone().requires_grad_() for t in (x, w, b)]
        y = torch.nn.functional.layer_norm(leaves[0], (n,), leaves[1], leaves[2], 1e-5)

        def autograd():
            for t in leaves:
                t.grad = None
            y.backward(dy, retain_graph=True)

        rows.append(Contender("torch autograd", "backward()", lambda: autograd))
        sums = lambda parts: (file, "layer_norm_weights", [dw, db, pw, pb, parts, n], {"T": "f16"})
        for k in warps_for(block, 4, 64):
            for share in (1, 2):
                grid = lambda info, share=share: max(1, min(most, info.programs_per_sm * info.num_sms // share))
                args = [dx, pw, pb, dy, x, w, mu, rs, m, n]
                d = {"T": "f16", "BLOCK": block, "num_warps": k}
                rows.append(ours(file, "layer_norm_backward", args, d, check, grid=grid, after=sums, label=f"num_warps={k} grid=resident/{share}"))
        def lock_free(k, programs):
            T.norm_backward[(programs,)](dx, pw, pb, dy, x, w, mu, rs, m, n, BLOCK=block, num_warps=k)
            T.norm_weights[(triton.cdiv(n, 32),)](dw, db, pw, pb, programs, n, BM=32, BN=32)

        def locked(k, groups):
            locks.zero_()
            T.norm_backward_locks[(m,)](dx, pw, pb, locks, dy, x, w, mu, rs, m, n, GROUPS=groups, BLOCK=block, num_warps=k)
            T.norm_weights[(triton.cdiv(n, 32),)](dw, db, pw, pb, min(groups, m), n, BM=32, BN=32)

        for k in warps_for(block, 4, 32)[-2:]:
            for programs in (min(most, SMS), min(most, SMS * 4)):
                rows.append(theirs(f"lock-free num_warps={k} programs={programs}", lambda k=k, g=programs: lock_free(k, g), check))
        groups = min(256 if n <= 1024 else 128 if n <= 4096 else 96 if n <= 8192 else 64, most)
        k = min(max(block // 256, 1), 8)
        rows.append(theirs(f"locks num_warps={k} groups={groups}", lambda: locked(k, groups), check, TUTORIAL))
        compare("backward", f"layer norm bwd f16 {m} x {n}", 6 * m * n, rows)
        del rows, check, want_dx, want_dw, want_db, x, dy, y, leaves


def main():
    import peers_attention, peers_gemm, peers_host, peers_matrix, peers_quantised, peers_wide

    sections = {k[8:]: v for k, v in globals().items() if k.startswith("section_")}
    for more in (peers_matrix, peers_host, peers_wide, peers_quantised, peers_gemm, peers_attention):
        sections.update(more.sections(sys.modules["__main__"]))
    chosen = [s for s in OPTIONS.get("only", "").split(",") if s] or [s for s in sections if s not in ("wide", "quantised", "gemm") and not s.startswith("attention")]
    if chosen == ["list"]:
        return print(" ".join(sections))
    name = "cpu, dry" if DRY else torch.cuda.get_device_name()
    say(f"{name}, torch {torch.__version__}, Triton {triton.__version__}")
    record("machine", name, f"torch {torch.__version__}", f"Triton {triton.__version__}")
    for s in chosen:
        if s not in sections:
            say(f"no section {s}; there are: {' '.join(sections)}")
        elif time.time() - START > SECONDS:
            say(f"{s}: left out, {SECONDS:.0f} s are over")
            record(s, s, "", note="left out: out of time")
        else:
            try:
                sections[s]()
            except Exception as e:
                say(f"{s}: {error_text(e)}")
                record(s, s, "", note=error_text(e))
        write()
    failures = [r for r in ROWS if r["note"]]
    print(f"\n{len(ROWS)} figures, {len(failures)} failures, {time.time() - START:.0f} s")
    for r in ROWS:
        if r["who"].startswith("blk") and not r["note"] and r["ratio"] != "":
            print(f"{r['work']:34s} {r['rate'] or r['ms']:>9} {r['unit'] or 'ms':7s} ratio {r['ratio']:<6} {r['variant']}")


def write():
    path = OPTIONS.get("out")
    if not path:
        return
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, ["section", "work", "who", "variant", "ms", "rate", "unit", "spread", "ratio", "note"])
        w.writeheader()
        w.writerows(ROWS)


if __name__ == "__main__":
    main()
