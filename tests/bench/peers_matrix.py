"""The rows of peers.py for matrix products: ours with tensors and with plain pointers, cuBLAS through torch, and Triton.

Large products are limited by power: what ran before decides the clock.  Each round of each contender therefore starts after
the same rest (`matrix`), or after the same quarter of a second of its own work (`matrix_hot`).
"""
import torch, triton

import peers_triton as T

SHAPES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024), (4096, 4096, 16384),
          (16, 4096, 4096), (128, 8192, 8192), (3072, 1024, 8192), (4096, 14336, 4096), (14336, 4096, 2048), (1000, 1032, 1056), (64, 4096, 4096)]
# BM, BN, BK, num_warps, num_stages: ours, by pointers and with tensors, and Triton's
TILES = [(128, 256, 64, 8, 4), (128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 4, 4), (128, 128, 64, 4, 6), (64, 256, 64, 4, 4), (64, 128, 64, 4, 4),
         (64, 128, 64, 4, 8), (64, 64, 64, 4, 8), (64, 32, 64, 4, 8), (128, 64, 64, 4, 6), (64, 64, 128, 4, 6), (64, 32, 128, 4, 8)]
# BM, BN, BK, num_warps, num_stages, GROUP: ours only, both ways, tiles between powers of two
BETWEEN = [(192, 128, 64, 8, 5, 4), (192, 128, 64, 8, 5, 8), (192, 128, 64, 8, 4, 8)]
# BM, BN, BK, num_warps, num_stages, GROUP, num_ctas: ours only, programs of a cluster that bring each other blocks
CLUSTERS = [(64, 160, 64, 4, 7, 16, 4), (64, 160, 64, 4, 6, 16, 4), (64, 128, 64, 4, 8, 16, 2)]
# What decides a tile's form: named for each row, as the tuner would choose what is left open.
FORM = {"GROUP": 8, "PERSISTENT": "false"}
# BM, BN, BK, num_warps, num_stages, GROUP, PERSISTENT: ours only, both ways, in another order
ORDERED = [(128, 128, 64, 4, 6, 1, "false"), (128, 256, 64, 8, 3, 16, "true"), (128, 256, 64, 8, 3, 4, "true"), (128, 256, 64, 8, 4, 16, "true")]
# As TILES and SPLIT, for shapes with few tiles.
SPLIT = [(64, 64, 64, 4, 6, 2), (64, 64, 64, 4, 6, 4), (64, 128, 64, 4, 4, 4), (64, 128, 64, 4, 6, 8), (128, 128, 64, 8, 4, 2), (128, 128, 64, 4, 4, 4), (16, 64, 128, 4, 4, 4),
         (16, 128, 64, 4, 4, 8), (64, 64, 128, 4, 4, 2), (64, 64, 128, 4, 6, 2), (64, 32, 128, 4, 8, 2), (128, 256, 64, 8, 4, 2),
         (128, 256, 64, 8, 4, 4), (128, 128, 64, 4, 6, 2), (16, 64, 128, 4, 8, 2), (16, 32, 128, 4, 8, 2), (16, 128, 128, 4, 5, 4)]
STREAM = [(128, 256, 64, 8, 4), (128, 128, 64, 8, 5), (128, 128, 64, 4, 5), (64, 128, 64, 4, 6)]
BATCHED = [(128, 256, 64, 8, 4), (128, 128, 64, 8, 4), (128, 128, 64, 4, 3), (128, 128, 64, 4, 4), (64, 128, 64, 4, 4), (128, 64, 64, 4, 4), (64, 64, 64, 4, 6)]
# BM, BN, BK, num_warps, num_stages, GROUP, PERSISTENT
FP8 = [(128, 256, 128, 8, 4, 8, "false"), (128, 256, 128, 8, 3, 8, "false"), (128, 256, 128, 8, 3, 8, "true"), (128, 256, 128, 8, 3, 16, "true"),
       (128, 128, 128, 8, 4, 8, "false"), (128, 128, 128, 4, 4, 8, "false")]
HALF = torch.float16
BATCHED_KERNELS = ["matmul_batched", "matmul_batched_persistent"]


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""

    def heat(run):
        p.heat(run, 20)

    def fits(m, n, k, tile):
        """Tiles worth a trial: neither far larger than the matrix nor so small that a large product takes for ever."""
        bm, bn = tile[:2]
        if bm >= 2 * max(m, 64) or bn >= 2 * n:
            return False
        programs = -(-m // bm) * -(-n // bn)
        return bm * bn >= 128 * 128 or programs <= 132 * 8

    def tiles_for(m, n, k):
        return [t for t in TILES if fits(m, n, k, t)] or [TILES[-1]]

    def options(bm, bn, bk, w, s):
        return {"BM": bm, "BN": bn, "BK": bk, "num_warps": w, "num_stages": s}

    FILE = "matmul/matmul.blk"
    PARTS = (1 << 20) if p.DRY else 1 << 25  # f32
    workspace = {}

    def sharing(m, n, k, c, a, b, check):
        """Programs that share tiles, where tiles are few: ours alone and as the tuner has them."""
        tiles = triton.cdiv(m, 128) * triton.cdiv(n, 256)
        padded = triton.cdiv(m, 128) * 128 * triton.cdiv(n, 256) * 256
        if not (p.DRY or tiles < 3 * p.SMS and k >= 1024):
            return []
        if not workspace:
            workspace["parts"] = torch.empty(PARTS, device=p.DEVICE)
            workspace["arrived"] = torch.zeros(1 << 16, dtype=torch.int32, device=p.DEVICE)
        parts, arrived = workspace["parts"], workspace["arrived"]
        args = [c, a, b, parts, arrived, m, n, k]
        rows, names = [], []
        if 8 * padded <= PARTS:  # the tuner's most
            names.append("matmul_split_k")
            rows += [p.ours(FILE, names[-1], args, {**options(*t[:5]), "SPLIT": t[5]}, check) for t in (SPLIT[:1] if p.DRY else SPLIT) if t[0] < 2 * max(m, 64) and (t[0] >= 64 or m <= 64)]
        if m >= 64:
            names.append("matmul_stream_k")
            rows += [p.ours(FILE, names[-1], args, options(*t), check) for t in (STREAM[-1:] if p.DRY else STREAM) if t[0] < 2 * m]
        return rows + [p.tuned(FILE, name, args, {}, check, "blk tuned") for name in names]

    def shown(d):
        return " ".join(f"{k}={v}" for k, v in d.items() if v != FORM.get(k))

    def by_tensors(args, d, outputs):
        return p.ours(FILE, "matmul_tuned", args, d, outputs, label=shown(d))

    def both_ways(args, d, outputs):
        """With tensors and by pointers."""
        return [by_tensors(args, d, outputs), p.ours(FILE, "matmul_tuned_pointers", args, d, outputs, who="blk pointers", label=shown(d))]

    def product(m, n, k, before, section):
        a, b = p.fresh(m, k, dtype=HALF), p.fresh(k, n, dtype=HALF)
        c = [p.poisoned(m, n, dtype=HALF) for _ in range(3)]
        want = a.float() @ b.float() if p.DRY else torch.matmul(a.double(), b.double())
        check = lambda out: [(out, want, 1e-3)]
        args = [c[0], a, b, m, n, k]
        rows = [p.theirs("matmul", lambda: torch.matmul(a, b, out=c[1]), check(c[1]), "cuBLAS")]
        rows += sharing(m, n, k, c[0], a, b, check(c[0]))
        for tile in tiles_for(m, n, k):
            bm, bn, bk, w, s = tile
            d = {**FORM, **options(*tile)}
            rows += both_ways(args, d, check(c[0]))
            if p.DRY or not QUICK:
                rows += both_ways(args, {**d, "PERSISTENT": "true"}, check(c[0]))
            grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
            tl = lambda grid=grid, bm=bm, bn=bn, bk=bk, w=w, s=s: T.matmul[grid](c[2], a, b, m, n, k, BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=w, num_stages=s)
            if (bm * bn <= 128 * 128 or w == 8) and (not QUICK or p.DRY):
                rows.append(p.theirs(f"{bm} x {bn} x {bk}, {w} warps, {s} stages", tl, check(c[2])))
        for bm, bn, bk, w, s, group in BETWEEN:
            if p.DRY or m >= bm and n >= bn:
                d = {**FORM, "GROUP": group, **options(bm, bn, bk, w, s)}
                rows += both_ways(args, d, check(c[0]))
        for tile in ORDERED:
            if p.DRY or fits(m, n, k, tile):
                rows += both_ways(args, {**FORM, "GROUP": tile[5], "PERSISTENT": tile[6], **options(*tile[:5])}, check(c[0]))
        for bm, bn, bk, w, s, group, ctas in CLUSTERS:
            if p.DRY or fits(m, n, k, (bm, bn)):
                d = {**FORM, "GROUP": group, "num_ctas": ctas, **options(bm, bn, bk, w, s)}
                rows.append(by_tensors(args, d, check(c[0])))
        rows.append(p.tuned(FILE, "matmul_tuned", args, {}, check(c[0]), "blk tuned"))
        p.compare(section, f"matmul f16 {m} x {n} x {k}", 2 * m * n * k / 1000, kept(rows), unit="TFLOP/s", rounds=4, before=before)

    def batched(count, m, n, k, before, section):
        a, b = p.fresh(count, m, k, dtype=HALF), p.fresh(count, k, n, dtype=HALF)
        c = [p.poisoned(count, m, n, dtype=HALF) for _ in range(2)]
        want = torch.bmm(a.float(), b.float()) if p.DRY else torch.bmm(a.double(), b.double())
        check = lambda out: [(out, want, 1e-3)]
        args = [c[0], a, b, count, m, n, k]
        rows = [p.theirs("bmm", lambda: torch.bmm(a, b, out=c[1]), check(c[1]), "cuBLAS")]
        for name in BATCHED_KERNELS:
            rows += [p.ours(FILE, name, args, options(*t), check(c[0])) for t in (BATCHED[-1:] if p.DRY else BATCHED)]
            rows.append(p.tuned(FILE, name, args, {}, check(c[0]), "blk tuned"))
        p.compare(section, f"matmul f16 {count} x ({m} x {n} x {k})", 2 * count * m * n * k / 1000, rows, unit="TFLOP/s", rounds=4, before=before)

    def fp8(n, before, section):
        """e4m3 by e4m3, the second operand [N, K] as cuBLASLt and layers have it; scales of one."""
        e4m3 = torch.float8_e4m3fn
        a, b = p.fresh(n, n).to(e4m3), p.fresh(n, n).to(e4m3)
        c = [p.poisoned(n, n, dtype=HALF) for _ in range(2)]
        want = (a.float() @ b.float().t()) if p.DRY else torch.matmul(a.to(HALF), b.to(HALF).t()).double()
        one, ones = torch.ones((), device=p.DEVICE), torch.ones(n, device=p.DEVICE)
        args = [c[0], a, b, ones, ones, n, n, n]
        check = lambda out: [(out, want, 2e-2)]  # wgmma sums e4m3 with fewer bits than f32 has
        rows = [] if p.DRY else [p.theirs("_scaled_mm", lambda: c[1].copy_(torch._scaled_mm(a, b.t(), one, one, out_dtype=HALF)), check(c[1]), "cuBLASLt checked"),
                                 *(p.theirs(f"_scaled_mm, fast sums: {fast}", lambda fast=fast: torch._scaled_mm(a, b.t(), one, one, out_dtype=HALF, use_fast_accum=fast), [], "cuBLASLt")
                                   for fast in (False, True))]
        for tile in FP8[-1:] if p.DRY else FP8:
            d = {"GROUP": tile[5], "PERSISTENT": tile[6], **options(*tile[:5])}
            rows.append(p.ours("matmul_quantised/matmul_quantised.blk", "matmul_fp8_tensor", args, d, check(c[0])))
        rows.append(p.tuned("matmul_quantised/matmul_quantised.blk", "matmul_fp8_tensor", args, {}, check(c[0]), "blk tuned"))
        p.compare(section, f"matmul e4m3 {n} x {n} x {n}", 2 * n * n * n / 1000, rows, unit="TFLOP/s", rounds=4, before=before)

    QUICK = "quick" in p.OPTIONS
    # --kernels=matmul,matmul_split_k: of ours only these, and beside them cuBLAS only
    kernels = [k for k in p.OPTIONS.get("kernels", "").split(",") if k]
    kept = lambda rows: [r for r in rows if not kernels or r.who == "cuBLAS" or r.variant.split(" ")[0] in kernels]
    # --shapes=512x512x512,batched,e4m3: only these
    chosen = [s for s in p.OPTIONS.get("shapes", "").split(",") if s]
    shapes = [tuple(int(x) for x in s.split("x")) for s in chosen if s[0].isdigit()] if chosen else [(96, 64, 80)] if p.DRY else SHAPES

    def over(before, section):
        def run():
            work = [("%d x %d x %d" % s, lambda s=s: product(*s, before, section)) for s in shapes]
            if not chosen or "batched" in chosen:
                work.append(("batched", lambda: batched(*((3, 96, 64, 80) if p.DRY else (32, 512, 512, 512)), before, section)))
            if not chosen or "e4m3" in chosen:
                work.append(("e4m3", lambda: fp8(128 if p.DRY else 8192, before, section)))
            p.each(section, work)

        return run

    return {"matrix": over(p.rest, "matrix"), "matrix_hot": over(heat, "matrix_hot")}
