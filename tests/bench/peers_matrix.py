"""The rows of peers.py for matrix products: ours with tensors and with plain pointers, cuBLAS through torch, and Triton.

Large products are limited by power: what ran before decides the clock.  Each round of each contender therefore starts after
the same rest (`matrix`), or after the same quarter of a second of its own work (`matrix_hot`).
"""
import statistics, time

import torch, triton

import peers_triton as T

SHAPES = [(512, 512, 512), (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 8192, 1024), (4096, 4096, 16384),
          (16, 4096, 4096), (128, 8192, 8192), (3072, 1024, 8192), (4096, 14336, 4096), (14336, 4096, 2048), (1000, 1032, 1056), (64, 4096, 4096)]
TILES = [(128, 256, 64, 8, 4), (128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (128, 128, 64, 4, 4), (128, 128, 64, 4, 6), (64, 256, 64, 4, 4), (64, 128, 64, 4, 4),
         (64, 128, 64, 4, 8), (64, 64, 64, 4, 8), (64, 32, 64, 4, 8)]
HALF = torch.float16


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""

    def rest(run):
        p.synchronize()
        time.sleep(0 if p.DRY else 0.15)

    def heat(run):
        end = time.time() + (0 if p.DRY else 0.25)
        while time.time() < end:
            for _ in range(20):
                run()
            p.synchronize()

    def fits(m, n, k, tile):
        """Tiles worth a trial: neither far larger than the matrix nor so small that a large product takes for ever."""
        bm, bn = tile[:2]
        if bm >= 2 * max(m, 64) or bn >= 2 * n:
            return False
        programs = -(-m // bm) * -(-n // bn)
        return bm * bn >= 128 * 128 or programs <= 132 * 8

    def tiles_for(m, n, k):
        return [t for t in TILES if fits(m, n, k, t)] or [TILES[-1]]

    def product(m, n, k, before, section):
        a, b = p.fresh(m, k, dtype=HALF), p.fresh(k, n, dtype=HALF)
        c = [p.poisoned(m, n, dtype=HALF) for _ in range(3)]
        want = a.float() @ b.float() if p.DRY else torch.matmul(a.double(), b.double())
        check = lambda out: [(out, want, 1e-3)]
        rows = [p.theirs("matmul", lambda: torch.matmul(a, b, out=c[1]), check(c[1]), "cuBLAS")]
        for bm, bn, bk, w, s in tiles_for(m, n, k):
            d = {"BM": bm, "BN": bn, "BK": bk, "num_warps": w, "num_stages": s}
            file, args = "matmul/matmul.blk", [c[0], a, b, m, n, k]
            rows.append(p.ours(file, "matmul_tensor", args, d, check(c[0])))
            if p.DRY or not QUICK:
                rows.append(p.ours(file, "matmul_persistent", args, d, check(c[0])))
            rows.append(p.ours(file, "matmul", args, d, check(c[0]), who="blk pointers"))
            grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
            tl = lambda grid=grid, bm=bm, bn=bn, bk=bk, w=w, s=s: T.matmul[grid](c[2], a, b, m, n, k, BM=bm, BN=bn, BK=bk, GROUP=8, num_warps=w, num_stages=s)
            if bm * bn <= 128 * 128 or w == 8:
                rows.append(p.theirs(f"{bm} x {bn} x {bk}, {w} warps, {s} stages", tl, check(c[2])))
        p.compare(section, f"matmul f16 {m} x {n} x {k}", 2 * m * n * k / 1000, rows, unit="TFLOP/s", rounds=4, before=before)

    QUICK = "quick" in p.OPTIONS
    shapes = [(96, 64, 80)] if p.DRY else SHAPES
    if p.OPTIONS.get("shapes"):
        shapes = [tuple(int(x) for x in s.split("x")) for s in p.OPTIONS["shapes"].split(",")]

    def over(before, section):
        def run():
            for m, n, k in shapes:
                if time.time() - p.START > p.SECONDS:
                    p.say(f"{section}: {m} x {n} x {k} left out, out of time")
                    continue
                product(m, n, k, before, section)
                p.write()

        return run

    return {"matrix": over(rest, "matrix"), "matrix_hot": over(heat, "matrix_hot")}
