"""The rows of peers.py for the library's products, blk/gemm.blk: what our tuner chooses, beside what torch calls.

usage: python3 tests/bench/peers.py BUILD --only=gemm [--out=gemm.csv] [--seconds=540]
  The section runs where it is named only.  tests/bench/gemm.blk has the kernels.
"""
import os

import torch

SHAPES = [(4096, 4096, 4096), (3000, 2000, 1000)]
BATCHED = [(16, 1024, 1024, 512), (48, 200, 320, 1000)]
HALF = torch.float16


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""
    source = os.path.join(p.HERE, "gemm.blk")

    def compare(form, shape, operations, kernel, args, defines, theirs, out, want):
        """theirs: a function of the buffer that it writes.  out: what ours writes, theirs a copy of it."""
        other = out.clone()
        rows = [p.choice(source, kernel, args, {"T": "f16", **defines}, [(out, want, 2e-3)]),
                p.theirs(form, lambda: theirs(other), [(other, want, 4e-3)], "torch")]
        p.compare("gemm", f"{form} {' x '.join(map(str, shape))}", operations / 1000, rows, unit="TFLOP/s", rounds=4, before=p.rest)

    def product(form, m, n, k):
        ta, tb = form[0] == "T", form[1] == "T"
        a, b = p.fresh(*((k, m) if ta else (m, k)), dtype=HALF), p.fresh(*((n, k) if tb else (k, n)), dtype=HALF, scale=k**-0.5)
        x, y = a.t() if ta else a, b.t() if tb else b
        wide = form.endswith("f32")
        c = p.poisoned(m, n, dtype=torch.float32 if wide else HALF)
        d, want, epilogue = c, x.double() @ y.double(), 0
        theirs = lambda out: torch.matmul(x, y, out=out)
        if wide:
            theirs = lambda out: torch.mm(x, y, out_dtype=torch.float32, out=out)
        elif "gelu" in form:
            d, epilogue = p.fresh(n, dtype=HALF), 1
            want = torch.nn.functional.gelu(want + d.double())
            theirs = lambda out: torch.ops.aten.gelu.out(torch.addmm(d, x, y), out=out)
        elif "residual" in form:
            d, epilogue = p.fresh(m, n, dtype=HALF), 2
            want = want + d.double()
            theirs = lambda out: torch.addmm(d, x, y, out=out)
        defines = {"TA": str(ta).lower(), "TB": str(tb).lower(), "EPILOGUE": epilogue, **({"OUT": "f32"} if wide else {})}
        compare(form, (m, n, k), 2 * m * n * k, "product", [c, a, b, d, m, n, k], defines, theirs, c, want)

    def batched(form, z, m, n, k):
        a, b = p.fresh(z, m, k, dtype=HALF), p.fresh(z, k, n, dtype=HALF, scale=k**-0.5)
        c = p.poisoned(z, m, n, dtype=HALF)
        compare(form, (z, m, n, k), 2 * z * m * n * k, "batched", [c, a, b, z, m, n, k], {},
                lambda out: torch.bmm(a, b, out=out), c, a.double() @ b.double())

    def gemm():
        forms = ["NN", "NT", "TN", "TT", "NN, C f32", "NT, bias and gelu", "NN, residual"]
        work = [(product, f, s) for s in SHAPES for f in forms] + [(batched, "batch", s) for s in BATCHED]
        if p.DRY:
            work = [(f, name, tuple(20 for _ in shape)) for f, name, shape in work]
        p.each("gemm", [(f"{n} {' x '.join(map(str, s))}", lambda f=f, n=n, s=s: f(n, *s)) for f, n, s in work])

    return {"gemm": gemm}
