"""The rows of peers.py for attention: ours, cuDNN through torch, and FlashAttention-4 where its packages are given.

usage: python3 tests/bench/peers.py BUILD --only=attention,attention_backward [--fa4=FOLDER] [--rows=bf16.128,f16.64] [--draw=N]
           [--seed=1] [--triton]
  Sections: attention, attention_hot, attention_backward, attention_backward_hot, attention_window, attention_decode,
  attention_packed.  They run where they are named only.  --fa4: a folder of packages with flash_attn.cute; without it cuDNN is
  the only peer, and attention_packed has none.  --rows: of the rows those whose name has this text, or one of several with
  commas between.  --draw: N rows drawn by --seed instead of the table's: lengths 512 .. 32768, batch by heads 8 .. 256, both
  types, all head dims.  --seed draws the lengths of attention_packed too.  --triton: forward by Triton's attention too.

Where causal, "blk" is the better of programs of a tile each and of such as take tiles from a counter.
Each peer has the layout that it prefers: cuDNN and ours [batch, heads, length, dim], FlashAttention-4 [batch, length, heads,
dim].  A head of each output is compared with double precision, as a whole.  Backward is the whole pass: row statistics, the
products, the conversion of dq.  "blk atomics" sums dq by atomics, "blk deterministic" has none, and "blk" is the faster of the
two in a few runs in front of the rotation.  A spin in front of each run lets the host get ahead, so no host is in a figure.
FLOPs are those of the products, halved where causal.
"""
import random, site, sys, time

import torch

TABLE = [(128, 8192, 32), (128, 2048, 128), (64, 8192, 32), (64, 2048, 128), (256, 8192, 32), (256, 2048, 128)]
LENGTHS = [(512, 256), (1024, 128), (4096, 64), (16384, 16), (32768, 8)]
TYPES = {"f16": (torch.float16, 4e-3), "bf16": (torch.bfloat16, 2.5e-2)}
FORWARD, BACKWARD = "attention/attention.blk", "attention_backward/attention_backward.blk"


def draw(seed, count):
    """(type, dim, keys, batch by heads, causal): the same for a seed on every machine, at most 2^20 rows and one of them long."""
    r, out = random.Random(seed), []
    while len(out) < count:
        n, heads = round(512 * 64 ** r.random() / 8) * 8, round(8 * 32 ** r.random())
        if n * heads <= 1 << 19:
            out.append((r.choice(["f16", "bf16"]), r.choice([64, 128, 256]), n, heads, r.random() < 0.5))
    return out


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""
    flash = None
    if p.OPTIONS.get("fa4"):
        site.addsitedir(p.OPTIONS["fa4"])
        sys.path.insert(0, p.OPTIONS["fa4"])
        try:
            import flash_attn.cute.interface as flash
        except Exception as e:
            p.say(f"no FlashAttention-4: {p.error_text(e)}")
    aten = torch.ops.aten
    AHEAD = 1_500_000  # clocks that the device waits in front of a run: the host is ahead then

    def rows(kinds=("bf16",), more=()):
        if "draw" in p.OPTIONS:
            chosen = draw(int(p.OPTIONS.get("seed") or 1), int(p.OPTIONS["draw"]))
        else:
            chosen = [(t, d, n, h, c) for t in kinds for d, n, h in TABLE for c in (False, True)]
            chosen += [("f16", d, n, h, c) for d in (128, 64) for n, h in more for c in (False, True)]
        if p.DRY:
            chosen = [(t, d, n % 97 + 16, 2, c) for t, d, n, h, c in chosen[:4]]
        name = lambda t, d, n, h, c: f"{t}.{d} {n} x {h} {'causal' if c else 'full'}"
        yield from wanted((name(*r), *r) for r in chosen)

    def wanted(rows):
        """Of rows, each of which begins with its name, those that --rows names and that there is time for."""
        for r in rows:
            if not p.wanted(r[0]):
                continue
            if time.time() - p.START > p.SECONDS:
                return p.say(f"left out, out of time: {r[0]} and what follows")
            p.write()
            yield r

    def heat(run):
        p.heat(run, 5)

    def arrays(kind, d, n, heads, count):
        """[1, heads, n, d], and the same numbers as [1, n, heads, d]."""
        mine = [p.fresh(1, heads, n, d, dtype=TYPES[kind][0]) for _ in range(count)]
        return mine, [x.transpose(1, 2).contiguous() for x in mine]

    def want_of(q, k, v, g, head, causal, scale):
        """o, dq, dk and dv of one head in double precision, in parts of rows."""
        q, k, v, g = (x[0, head].double() for x in (q, k, v, g))
        o, dq, dk, dv = torch.zeros_like(q), torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
        for i in range(0, len(q), 2048):
            part = slice(i, min(i + 2048, len(q)))
            s = q[part] @ k.t() * scale
            if causal:
                s.masked_fill_(torch.arange(i, i + len(s), device=s.device)[:, None] < torch.arange(len(k), device=s.device)[None], float("-inf"))
            pr = torch.softmax(s, -1)
            o[part] = pr @ v
            ds = pr * (g[part] @ v.t() - (g[part] * o[part]).sum(-1, keepdim=True))
            dq[part] = ds @ k * scale
            dk += ds.t() @ q[part] * scale
            dv += pr.t() @ g[part]
        return o, dq, dk, dv

    class Checked(p.Contender):
        """`make` returns what launches; the first run's results are looked at by `results`: (tensor of one head, wanted, tolerance)."""

        def __init__(self, who, variant, make, results):
            super().__init__(who, variant, make)
            self.results = results

        def ready(self):
            self.run = self.make()
            self.run()
            p.synchronize()
            for got, want, tolerance in self.results():
                error = (got.double() - want).abs().max().item() / want.abs().max().item()
                if not error <= tolerance:
                    raise RuntimeError(f"WRONG result, error {error:.2e}, allowed {tolerance:.0e}")

    def tuned(path, name, args, defines):
        k = p.Kernel(p.BLK, path, name, args, defines)
        trials, seconds = ([], 0.0) if p.DRY else k.tune()
        best = next((t[0] for t in trials if t[4]), "")
        p.say(f"    {name}: {len(trials)} configurations, {sum(t[1] == 1 for t in trials)} good, {seconds:.2f} s: {best}")
        if "verbose" in p.OPTIONS:
            for t in sorted(trials, key=lambda t: t[2] or 1e9):
                p.say(f"      {t[2] * 1e3:9.2f} us  {t[0]} {t[3][:80]}")
        return k, best

    def forward(section, before, more):
        for work, kind, d, n, heads, causal in rows(more=more):
            dtype, tolerance = TYPES[kind]
            (q, k, v), theirs = arrays(kind, d, n, heads, 3)
            scale, head = d**-0.5, heads - 1
            want = want_of(q, k, v, v, head, causal, scale)[0]
            o, lse = p.poisoned(*q.shape, dtype=dtype), p.poisoned(heads, n)

            def ours():
                run, c.variant = tuned(FORWARD, "attention", [o, lse, q, k, v, scale, heads, 1, n, n, 0], {"T": kind, "DK": d, "CAUSAL": str(causal).lower()})
                o.fill_(float("nan"))
                return run

            kept = {}

            def keep(who, f):
                def run():
                    kept[who] = f()

                return lambda: run

            def from_counter():
                counter = torch.zeros(1, dtype=torch.int32, device=p.DEVICE)
                run, drawn.variant = tuned(FORWARD, "attention_dynamic", [o, lse, q, k, v, scale, heads, 1, n, n, 0, counter], {"T": kind, "DK": d})
                o.fill_(float("nan"))
                return run

            c = Checked("blk", "attention", ours, lambda: [(o[0, head], want, tolerance)])
            contenders = [c]
            if causal:
                drawn = Checked("blk", "attention_dynamic", from_counter, lambda: [(o[0, head], want, tolerance)])
                contenders.append(drawn)
            if p.DRY:
                sdpa = lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                contenders.append(Checked("torch", "sdpa", keep("t", sdpa), lambda: [(kept["t"][0, head], want, tolerance)]))
            else:
                f = lambda: aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False, scale=scale)
                contenders.append(Checked("cuDNN", "aten", keep("c", f), lambda: [(kept["c"][0][0, head], want, tolerance)]))
            if flash:
                f = lambda: flash._flash_attn_fwd(*theirs, softmax_scale=scale, causal=causal, return_lse=True)
                contenders.append(Checked("FlashAttention-4", "fwd", keep("f", f), lambda: [(kept["f"][0][0, :, head], want, tolerance)]))
            if "triton" in p.OPTIONS:
                to = p.poisoned(*q.shape, dtype=dtype)
                for bm, bn, warps, stages in [(128, 64, 4, 3), (128, 128, 8, 2), (128, 64, 8, 3), (128, 32, 4, 4)]:
                    grid, given = (-(-n // bm), heads), dict(D=d, CAUSAL=causal, BM=bm, BN=bn, num_warps=warps, num_stages=stages)
                    f = lambda grid=grid, given=given: p.T.attention[grid](to, q, k, v, scale, n, **given)
                    contenders.append(Checked("triton", str(given), lambda f=f: f, lambda: [(to[0, head], want, tolerance)]))
            flops = (2 if causal else 4) * heads * n * n * d
            p.compare(section, f"forward {work}", flops * 1e-3, contenders, unit="TFLOP/s", rounds=5, before=before)

    def backward(section, before, more):
        for work, kind, d, n, heads, causal in rows(more=more):
            dtype, tolerance = TYPES[kind]
            (q, k, v, g), theirs = arrays(kind, d, n, heads, 4)
            scale, head, padded = d**-0.5, heads - 1, -(-n // 128) * 128
            _, *want = want_of(q, k, v, g, head, causal, scale)
            o, lse = p.poisoned(*q.shape, dtype=dtype), p.poisoned(heads, n)
            given = {"T": kind, "DK": d, "CAUSAL": str(causal).lower()}
            p.Kernel(p.BLK, FORWARD, "attention", [o, lse, q, k, v, scale, heads, 1, n, n, 0], given)()
            lse2, delta, sums = p.poisoned(heads, padded), p.poisoned(heads, padded), p.poisoned(heads, padded, d)
            dq, dk, dv = (p.poisoned(*q.shape, dtype=dtype) for _ in range(3))
            checks = lambda got: [(x, w, tolerance) for x, w in zip(got, want)]

            def ours(deterministic):
                less = {"SUM_DQ": "false"} if deterministic else {}
                statistics = p.Kernel(p.BLK, BACKWARD, "attention_backward_rows", [lse2, delta, sums, o, g, lse, heads, n, padded], {"T": kind, "DK": d, **less})
                statistics()
                main, what = tuned(BACKWARD, "attention_backward", [dk, dv, sums, q, k, v, g, lse2, delta, scale, heads, n, n, padded], {**given, **less})
                if deterministic:
                    last, more = tuned(BACKWARD, "attention_backward_dq", [dq, q, k, v, g, lse2, delta, scale, heads, n, n, padded], given)
                    what = f"{what} + {more}"
                else:
                    last = p.Kernel(p.BLK, BACKWARD, "attention_backward_convert", [dq, sums, scale, heads, n, padded], {"T": kind, "DK": d})
                # dk, dv and dq need nothing of each other: one fills what the other's last programs leave idle.
                beside = (p.BLK.side_stream(), p.BLK.side_stream()) if deterministic else (None, None)

                def run():
                    statistics()
                    main(beside[0])
                    last(beside[1])

                return run, what

            made = {}

            def contender(who, deterministic):
                def make():
                    if deterministic not in made:
                        made[deterministic] = ours(deterministic)
                    run, c.variant = made[deterministic]
                    for x in (dq, dk, dv):
                        x.fill_(float("nan"))
                    return run

                c = Checked(who, who, make, lambda: checks([x[0, head] for x in (dq, dk, dv)]))
                return c

            kept = {}
            contenders = [contender(who, deterministic) for who, deterministic in [("blk", False), ("blk", True), ("blk atomics", False), ("blk deterministic", True)]]

            def cudnn():
                out = aten._scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, causal, False, scale=scale)

                def run():
                    kept["c"] = aten._scaled_dot_product_cudnn_attention_backward(g, q, k, v, out[0], out[1], out[6], out[7], None, out[2], out[3], out[4], out[5], 0.0, causal, scale=scale)

                return run

            def fa4():
                tq, tk, tv, tg = theirs
                out, l = flash._flash_attn_fwd(tq, tk, tv, softmax_scale=scale, causal=causal, return_lse=True)[:2]

                def run():
                    kept["f"] = flash._flash_attn_bwd(tq, tk, tv, out, tg, l, softmax_scale=scale, causal=causal)

                return run

            if not p.DRY:
                contenders.append(Checked("cuDNN", "aten", cudnn, lambda: checks([x[0, head] for x in kept["c"][:3]])))
            if flash:
                contenders.append(Checked("FlashAttention-4", "bwd", fa4, lambda: checks([x[0, :, head] for x in kept["f"][:3]])))
            flops = (5 if causal else 10) * heads * n * n * d
            p.compare(section, f"backward {work}", flops * 1e-3, contenders, unit="TFLOP/s", rounds=5, before=before)

    def window():
        """A query sees the last 128 keys: cuDNN has no such mask by torch, FlashAttention-4 has."""
        for kind, d, n, heads in [("bf16", 64, 8192, 32), ("bf16", 128, 8192, 32), ("f16", 64, 2048, 128)]:
            dtype, tolerance = TYPES[kind]
            n, heads = (96, 2) if p.DRY else (n, heads)
            (q, k, v), theirs = arrays(kind, d, n, heads, 3)
            scale, head, wide = d**-0.5, heads - 1, 128
            o, lse = p.poisoned(*q.shape, dtype=dtype), p.poisoned(heads, n)
            s = q[0, head].double() @ k[0, head].double().t() * scale
            i, j = torch.arange(n, device=s.device)[:, None], torch.arange(n, device=s.device)[None]
            want = torch.softmax(s.masked_fill_((j > i) | (j <= i - wide), float("-inf")), -1) @ v[0, head].double()
            kept = {}

            def ours():
                run, c.variant = tuned(FORWARD, "attention", [o, lse, q, k, v, scale, heads, 1, n, n, wide], {"T": kind, "DK": d, "CAUSAL": "true", "WINDOW": "true"})
                return run

            def fa4():
                def run():
                    kept["f"] = flash._flash_attn_fwd(*theirs, softmax_scale=scale, causal=True, window_size_left=wide - 1, window_size_right=0, return_lse=True)

                return run

            c = Checked("blk", "attention", ours, lambda: [(o[0, head], want, tolerance)])
            contenders = [c]
            if flash:
                contenders.append(Checked("FlashAttention-4", "fwd", fa4, lambda: [(kept["f"][0][0, :, head], want, tolerance)]))
            p.compare("attention window", f"window 128 {kind}.{d} {n} x {heads}", 4e-3 * heads * n * wide * d, contenders, unit="TFLOP/s", rounds=5, before=p.rest)

    def decode():
        """GB/s of keys and values.  8 key heads, a group of 4: 4 heads by 1 query, by 4 queries, 16 rows at most."""
        for kind, d, n, batch, nq in [("bf16", 128, 8192, 1, 1), ("bf16", 128, 131072, 1, 1), ("bf16", 128, 8192, 16, 1), ("bf16", 128, 8192, 16, 4), ("bf16", 128, 4096, 64, 1), ("bf16", 64, 16384, 16, 1)]:
            dtype, tolerance = TYPES[kind]
            n, batch = (96, 2) if p.DRY else (n, batch)
            hk, group = 8, 4
            q = p.fresh(batch, hk * group, nq, d, dtype=dtype)
            k, v = (p.fresh(batch, hk, n, d, dtype=dtype) for _ in range(2))
            scale, z = d**-0.5, batch - 1
            lengths = torch.full((batch,), n, dtype=torch.int32, device=p.DEVICE)
            s = q[z, :group].double() @ k[z, 0].double().t() * scale
            last = torch.arange(n, device=s.device)[None] > torch.arange(nq, device=s.device)[:, None] + n - nq
            want = torch.softmax(s.masked_fill_(last, float("-inf")), -1) @ v[z, 0].double()
            o, lse = p.poisoned(*q.shape, dtype=dtype), p.poisoned(batch * hk * group * nq)
            contenders, kept = [], {}

            def mine(split):
                def make():
                    whole = split == 1  # then nothing is left to combine
                    parts, logs = (o, lse) if whole else (p.poisoned(split, batch * hk * group * nq, d), p.poisoned(split, batch * hk * group * nq))
                    given = {"T": kind, "DK": d, "SPLIT": split, "WHOLE": str(whole).lower()}
                    run, what = tuned("attention_decode/attention_decode.blk", "attention_decode", [parts, logs, q, k, v, lengths, scale, batch, hk, group, nq, n], given)
                    c.variant = f"SPLIT={split},{what}"
                    o.fill_(float("nan"))
                    if whole:
                        return run
                    both = p.Kernel(p.BLK, "attention_decode/attention_decode.blk", "attention_combine", [o, lse, parts, logs, batch * hk * group * nq], {"T": kind, "DV": d, "SPLIT": split})

                    def launch():
                        run()
                        both()

                    return launch

                c = Checked("blk", f"SPLIT={split}", make, lambda: [(o[z, :group], want, tolerance)])
                return c

            programs = batch * hk
            splits = sorted({max(1, min(64, round(p.SMS * waves / programs))) for waves in (1, 2, 4)})
            contenders = [mine(s) for s in splits]

            def torch_sdpa():
                def run():
                    kept["t"] = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

                return run

            if nq == 1:
                contenders.append(Checked("torch", "sdpa", torch_sdpa, lambda: [(kept["t"][z, :group], want, tolerance)]))
            if flash:
                tq, tk, tv = (x.transpose(1, 2).contiguous() for x in (q, k, v))
                for splits_of in sorted({1, *splits}):

                    def fa4(splits_of=splits_of):
                        def run():
                            kept["f"] = flash._flash_attn_fwd(tq, tk, tv, softmax_scale=scale, causal=True, num_splits=splits_of, return_lse=True)

                        return run

                    contenders.append(Checked("FlashAttention-4", f"num_splits={splits_of}", fa4, lambda: [(kept["f"][0][z, :, :group].transpose(0, 1), want, tolerance)]))
            x = torch.empty(2 * k.numel() // 2, dtype=dtype, device=p.DEVICE)  # as many bytes read and written as keys and values have
            y = torch.empty_like(x)
            contenders.append(Checked("copy", "torch", lambda: lambda: y.copy_(x), lambda: []))
            p.compare("attention decode", f"decode {kind}.{d} {batch} x {n}, {nq} queries", 4 * k.numel(), contenders, rounds=5, before=p.rest)

    def packed():
        """Sequences of 512 .. 8192 rows one behind the other, [total, heads, dim] for both."""
        r = random.Random(int(p.OPTIONS.get("seed") or 1))
        lengths = [r.randint(512, 8192) for _ in range(8)]
        heads = 16
        if p.DRY:
            lengths, heads = [n % 97 + 16 for n in lengths], 2
        starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        total, longest, last, head = starts[-1], max(lengths), starts[-2], heads - 1
        first = torch.tensor(starts, dtype=torch.int32, device=p.DEVICE)
        name = lambda t, d, c: f"{t}.{d} {total} rows x {heads} {'causal' if c else 'full'}"
        for work, kind, d, causal in wanted((name("bf16", d, c), "bf16", d, c) for d in (128, 64) for c in (False, True)):
            dtype, tolerance = TYPES[kind]
            q, k, v = (p.fresh(total, heads, d, dtype=dtype) for _ in range(3))
            scale = d**-0.5
            a, b, c = (x[None, last:].transpose(1, 2) for x in (q, k, v))
            want = want_of(a, b, c, c, head, causal, scale)[0]
            o, lse, kept = p.poisoned(*q.shape, dtype=dtype), p.poisoned(heads, total), {}

            def ours():
                args = [o, lse, q, k, v, first, first, scale, len(lengths), heads, 1, longest, total, total, 0]
                run, mine.variant = tuned(FORWARD, "attention_packed", args, {"T": kind, "DK": d, "CAUSAL": str(causal).lower()})
                o.fill_(float("nan"))
                return run

            def fa4():
                more = dict(cu_seqlens_q=first, cu_seqlens_k=first, max_seqlen_q=longest, max_seqlen_k=longest)

                def run():
                    kept["f"] = flash._flash_attn_fwd(q, k, v, **more, softmax_scale=scale, causal=causal, return_lse=True)

                return run

            mine = Checked("blk", "attention_packed", ours, lambda: [(o[last:, head], want, tolerance)])
            contenders = [mine]
            if flash:
                contenders.append(Checked("FlashAttention-4", "varlen fwd", fa4, lambda: [(kept["f"][0][last:, head], want, tolerance)]))
            flops = (2 if causal else 4) * heads * sum(n * n for n in lengths) * d
            p.compare("attention packed", f"packed {work}", flops * 1e-3, contenders, unit="TFLOP/s", rounds=5, before=p.rest)

    def ahead(section):
        def run():
            p.AHEAD = 0 if p.DRY else AHEAD
            try:
                section()
            finally:
                p.AHEAD = 0

        return run

    return {
        "attention": ahead(lambda: forward("attention", p.rest, LENGTHS)),
        "attention_hot": ahead(lambda: forward("attention hot", heat, ())),
        "attention_backward": ahead(lambda: backward("attention backward", p.rest, LENGTHS)),
        "attention_backward_hot": ahead(lambda: backward("attention backward hot", heat, ())),
        "attention_window": ahead(window),
        "attention_decode": ahead(decode),
        "attention_packed": ahead(packed),
    }
