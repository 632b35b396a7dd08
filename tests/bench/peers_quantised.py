"""The rows of peers.py for quantised products and for SwiGLU: what our tuner chooses, beside cuBLAS and torch.

usage: python3 tests/bench/peers.py BUILD --only=quantised [--rows=weights,swiglu] [--out=quantised.csv] [--seconds=540]
  The section runs where it is named only.  --rows: of the rows those whose name has one of these texts.

Not every peer does the same work.  "cuBLAS f16" has weights of 16 bits, scaled ahead.  "blk plain fp8" and "cuBLASLt" have
scales of one, "cuBLASLt blocks" has those of blocks.  "copy" reads and writes as many bytes as the weights have: its figure
is the rate of a product that took as long.  A ratio is to the fastest peer of the row, whatever that is; the CSV has all times.
"""
import torch

WEIGHTS = [(16, 4096, 14336), (16, 14336, 4096), (64, 4096, 14336), (256, 4096, 4096), (4096, 4096, 4096), (8192, 8192, 8192)]
BLOCKS = [(4096, 4096, 7168), (4096, 7168, 2048), (64, 7168, 2048), (8192, 8192, 8192)]
SWIGLU = [(4096, 11008, 4096)]
FILE = "matmul_quantised/matmul_quantised.blk"
HALF, BF16, E4M3 = torch.float16, torch.bfloat16, torch.float8_e4m3fn
BLOCK = 128  # of k, and of columns, that share a scale


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""

    def scales(*shape):
        return torch.rand(*shape, device=p.DEVICE) + 0.5

    def compare(work, operations, rows):
        p.compare("quantised", work, operations / 1000, rows, unit="TFLOP/s", rounds=4, before=p.rest)

    def weights(work, m, n, k):
        """f16 by i8, [N, K], with a scale for each column."""
        a, w = p.fresh(m, k, dtype=HALF), torch.randint(-127, 128, (n, k), dtype=torch.int8, device=p.DEVICE)
        scale = scales(n) / 64  # f16 holds the results
        half = (w * scale[:, None]).to(HALF)
        c = [p.poisoned(m, n, dtype=HALF) for _ in range(2)]
        want = a.double() @ w.double().t() * scale.double()
        rows = [p.choice(FILE, "matmul_weights", [c[0], a, w, scale, m, n, k], {}, [(c[0], want, 1e-3)]),
                p.theirs("matmul a @ w.t()", lambda: torch.matmul(a, half.t(), out=c[1]), [(c[1], want, 2e-3)], "cuBLAS f16")]
        if m <= 64:
            x = p.fresh(n * k // 4, dtype=HALF)
            y = p.poisoned(*x.shape, dtype=HALF)
            rows.append(p.theirs("copy_", lambda: y.copy_(x), [(y, x.double(), 0)], "copy"))
        compare(work, 2 * m * n * k, rows)

    def blocks(work, m, n, k):
        """e4m3 by e4m3, [N, K], with a scale for each row and 128 of k of A and one for each 128 x 128 of B."""
        a, b = p.fresh(m, k).to(E4M3), p.fresh(n, k).to(E4M3)
        row_scale, block_scale = scales(m, -(-k // BLOCK)), scales(-(-n // BLOCK), -(-k // BLOCK))
        c = [p.poisoned(m, n, dtype=BF16) for _ in range(3)]
        along = lambda s: s.double().repeat_interleave(BLOCK, 1)[:, :k]
        plain = a.double() @ b.double().t()
        want = (a.double() * along(row_scale)) @ (b.double() * along(block_scale).repeat_interleave(BLOCK, 0)[:n]).t()
        check = lambda out, want: [(out, want, 2e-2)]  # wgmma sums e4m3 with fewer bits than f32 has
        one, ones = torch.ones((), device=p.DEVICE), torch.ones(max(m, n), device=p.DEVICE)
        rows = [p.choice(FILE, "matmul_fp8_blocks", [c[0], a, b, row_scale, block_scale, m, n, k], {}, check(c[0], want)),
                p.choice(FILE, "matmul_fp8_tensor", [c[1], a, b, ones, ones, m, n, k], {"OUT": "bf16"}, check(c[1], plain), "blk plain fp8")]
        scaled = lambda sa, sb, fast: lambda: torch._scaled_mm(a, b.t(), sa, sb, out_dtype=BF16, use_fast_accum=fast, out=c[2])
        for fast in (False, True):
            rows.append(p.theirs(f"_scaled_mm, fast sums: {fast}", scaled(one, one, fast), check(c[2], plain), "cuBLASLt"))
        if not p.DRY:  # A's scales column by column, as cuBLASLt reads them
            rows.append(p.theirs("_scaled_mm, blocks", scaled(row_scale.t().contiguous().t(), block_scale.t(), False), check(c[2], want), "cuBLASLt blocks"))
        compare(work, 2 * m * n * k, rows)

    def swiglu(work, m, n, k):
        """silu(x w1) (x w3), both weights [N, K]."""
        x = p.fresh(m, k, dtype=HALF)
        w1, w3 = (p.fresh(n, k, dtype=HALF, scale=k**-0.5) for _ in range(2))
        g, u, *y = [p.poisoned(m, n, dtype=HALF) for _ in range(4)]
        silu = torch.nn.functional.silu
        want = silu(x.double() @ w1.double().t()) * (x.double() @ w3.double().t())

        def separate():
            torch.matmul(x, w1.t(), out=g)
            torch.matmul(x, w3.t(), out=u)
            torch.mul(silu(g), u, out=y[1])

        rows = [p.choice("swiglu/swiglu.blk", "swiglu", [y[0], x, w1, w3, m, n, k], {}, [(y[0], want, 1e-3)]),
                p.theirs("two matmul, silu(g) * u", separate, [(y[1], want, 3e-3)], "torch")]
        compare(work, 4 * m * n * k, rows)

    def quantised():
        work = []
        for f, name, shapes in ((weights, "weights", WEIGHTS), (blocks, "fp8 blocks", BLOCKS), (swiglu, "swiglu", SWIGLU)):
            for s in [(20, 144, 272)] if p.DRY else shapes:
                row = "%s %d x %d x %d" % (name, *s)
                if p.wanted(row):
                    work.append((row, lambda f=f, row=row, s=s: f(row, *s)))
        p.each("quantised", work)

    return {"quantised": quantised}
