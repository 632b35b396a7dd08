"""The Triton side of peers.py: the memory-bound kernels in the form a Triton user writes them."""
import triton
import triton.language as tl


@triton.jit
def empty(x, n):
    if n < 0:
        tl.store(x, 0.0)


@triton.jit
def add(z, x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    tl.store(z + o, tl.load(x + o, mask=m) + tl.load(y + o, mask=m), mask=m)


@triton.jit
def gelu(y, x, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m)
    u = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    tl.store(y + o, v * tl.sigmoid(2.0 * u), mask=m)


@triton.jit
def softmax_row(y, x, row, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    m = c < n
    start = tl.cast(row, tl.int64) * n
    v = tl.load(x + start + c, mask=m, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + start + c, e / tl.sum(e, axis=0), mask=m)


@triton.jit
def softmax_rows(y, x, rows, n, BLOCK: tl.constexpr):
    softmax_row(y, x, tl.program_id(0), n, BLOCK)


@triton.jit
def softmax_persistent(y, x, rows, n, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        softmax_row(y, x, row, n, BLOCK)


@triton.jit
def softmax_online(y, x, rows, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    start = tl.cast(tl.program_id(0), tl.int64) * n
    largest = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for first in range(0, n, BLOCK):
        v = tl.load(x + start + first + c, mask=first + c < n, other=-float("inf"), eviction_policy="evict_last")
        m = tl.maximum(largest, v)
        total = total * tl.exp(largest - m) + tl.exp(v - m)
        largest = m
    m = tl.max(largest, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(largest - m), axis=0)
    for first in range(0, n, BLOCK):
        v = tl.load(x + start + first + c, mask=first + c < n, eviction_policy="evict_first")
        tl.store(y + start + first + c, tl.exp(v - m) * scale, mask=first + c < n)


@triton.jit
def dropout(y, x, p, seed, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = o < n
    v = tl.load(x + o, mask=m)
    tl.store(y + o, tl.where(tl.rand(seed, o) > p, v / (1 - p), 0.0), mask=m)


@triton.jit
def dropout4x(y, x, p, seed, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    o = tl.program_id(0) * (4 * BLOCK) + lane
    v0 = tl.load(x + o, mask=o < n)
    v1 = tl.load(x + o + BLOCK, mask=o + BLOCK < n)
    v2 = tl.load(x + o + 2 * BLOCK, mask=o + 2 * BLOCK < n)
    v3 = tl.load(x + o + 3 * BLOCK, mask=o + 3 * BLOCK < n)
    a, b, c, d = tl.rand4x(seed, tl.program_id(0) * BLOCK + lane)
    tl.store(y + o, tl.where(a > p, v0 / (1 - p), 0.0), mask=o < n)
    tl.store(y + o + BLOCK, tl.where(b > p, v1 / (1 - p), 0.0), mask=o + BLOCK < n)
    tl.store(y + o + 2 * BLOCK, tl.where(c > p, v2 / (1 - p), 0.0), mask=o + 2 * BLOCK < n)
    tl.store(y + o + 3 * BLOCK, tl.where(d > p, v3 / (1 - p), 0.0), mask=o + 3 * BLOCK < n)


@triton.jit
def norm_forward(y, x, w, b, mean, rstd, rows, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = c < n
    start = tl.cast(row, tl.int64) * n
    v = tl.load(x + start + c, mask=k, other=0.0).to(tl.float32)
    scale = tl.load(w + c, mask=k, other=0.0).to(tl.float32)
    shift = tl.load(b + c, mask=k, other=0.0).to(tl.float32)
    m = tl.sum(v, axis=0) / n
    d = tl.where(k, v - m, 0.0)
    r = tl.rsqrt(tl.sum(d * d, axis=0) / n + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    tl.store(y + start + c, d * r * scale + shift, mask=k)


@triton.jit
def norm_backward_row(dx, dy, x, w, mean, rstd, row, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    k = c < n
    start = tl.cast(row, tl.int64) * n
    v = tl.load(x + start + c, mask=k, other=0.0).to(tl.float32)
    g = tl.load(dy + start + c, mask=k, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    xhat = tl.where(k, (v - tl.load(mean + row)) * r, 0.0)
    wg = w * g
    c1 = tl.sum(xhat * wg, axis=0) / n
    c2 = tl.sum(wg, axis=0) / n
    tl.store(dx + start + c, (wg - xhat * c1 - c2) * r, mask=k)
    return g * xhat, g


@triton.jit
def norm_backward(dx, part_w, part_b, dy, x, w, mean, rstd, rows, n, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    k = c < n
    scale = tl.load(w + c, mask=k, other=0.0).to(tl.float32)
    sw = tl.zeros([BLOCK], tl.float32)
    sb = tl.zeros([BLOCK], tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        pw, pb = norm_backward_row(dx, dy, x, scale, mean, rstd, row, n, BLOCK)
        sw += pw
        sb += pb
    place = tl.cast(tl.program_id(0), tl.int64) * n + c
    tl.store(part_w + place, sw, mask=k)
    tl.store(part_b + place, sb, mask=k)


@triton.jit
def norm_backward_locks(dx, part_w, part_b, locks, dy, x, w, mean, rstd, rows, n, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    k = c < n
    scale = tl.load(w + c, mask=k, other=0.0).to(tl.float32)
    pw, pb = norm_backward_row(dx, dy, x, scale, mean, rstd, row, n, BLOCK)
    group = row % GROUPS
    place = group.to(tl.int64) * n + c
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    if tl.load(locks + GROUPS + group) == 0:
        tl.atomic_xchg(locks + GROUPS + group, 1)
    else:
        pw += tl.load(part_w + place, mask=k)
        pb += tl.load(part_b + place, mask=k)
    tl.store(part_w + place, pw, mask=k)
    tl.store(part_b + place, pb, mask=k)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@triton.jit
def norm_weights(dw, db, part_w, part_b, parts, n, BM: tl.constexpr, BN: tl.constexpr):
    j = tl.program_id(0) * BN + tl.arange(0, BN)
    sw = tl.zeros([BM, BN], tl.float32)
    sb = tl.zeros([BM, BN], tl.float32)
    for first in range(0, parts, BM):
        i = first + tl.arange(0, BM)
        k = (i < parts)[:, None] & (j < n)[None, :]
        place = i[:, None].to(tl.int64) * n + j[None, :]
        sw += tl.load(part_w + place, mask=k, other=0.0)
        sb += tl.load(part_b + place, mask=k, other=0.0)
    tl.store(dw + j, tl.sum(sw, axis=0), mask=j < n)
    tl.store(db + j, tl.sum(sb, axis=0), mask=j < n)


@triton.jit
def norm_tile(y, x, w, b, rows, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, FIRST: tl.constexpr):
    """The kernel of the tuning row: ROWS rows a program (as tests/bench/tune.blk)."""
    i = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    j = tl.arange(0, BLOCK)
    k = (i < rows)[:, None] & (j < n)[None, :]
    place = i[:, None].to(tl.int64) * n + j[None, :]
    v = tl.load(x + place, mask=k, other=0.0, eviction_policy="evict_first" if FIRST else "").to(tl.float32)
    m = tl.sum(v, axis=1) / n
    d = tl.where(k, v - m[:, None], 0.0)
    r = tl.rsqrt(tl.sum(d * d, axis=1) / n + eps)
    scale = tl.load(w + j, mask=j < n, other=0.0).to(tl.float32)
    shift = tl.load(b + j, mask=j < n, other=0.0).to(tl.float32)
    tl.store(y + place, d * r[:, None] * scale[None, :] + shift[None, :], mask=k)


@triton.jit
def matmul(c, a, b, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    """One program a tile, plain pointers, tiles in groups of rows."""
    t = tl.program_id(0)
    columns, rows = tl.cdiv(N, BN), tl.cdiv(M, BM)
    row, column = tl.swizzle2d(t // columns, t % columns, rows, columns, GROUP)
    i, j, l = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    pa, pb = a + i[:, None] % M * K + l[None, :], b + l[:, None] * N + j[None, :] % N
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        left = K - k * BK
        x = tl.load(pa, mask=l[None, :] < left, other=0.0)
        y = tl.load(pb, mask=l[:, None] < left, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * N
    tl.store(c + i[:, None] * N + j[None, :], acc.to(tl.float16), mask=(i[:, None] < M) & (j[None, :] < N))


@triton.jit
def attention(o, q, k, v, scale, n, D: tl.constexpr, CAUSAL: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    """[heads, n, D]: whole blocks of keys first, then those that rows or the end cut."""
    start, head = tl.program_id(0) * BM, tl.program_id(1).to(tl.int64) * n
    rows, columns, keys = start + tl.arange(0, BM), tl.arange(0, D), tl.arange(0, BN)
    there = rows[:, None] < n
    a = tl.load(q + (head + rows)[:, None] * D + columns[None, :], mask=there, other=0.0)
    c = scale * 1.44269504
    m = tl.full([BM], -1.0e30, tl.float32)
    l = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    end = tl.minimum(n, start + BM) if CAUSAL else n
    whole = (start if CAUSAL else n) // BN * BN
    for j in range(0, whole, BN):
        at = (head + j + keys)[:, None] * D + columns[None, :]
        s = tl.dot(a, tl.trans(tl.load(k + at))) * c
        next = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - next[:, None])
        f = tl.exp2(m - next)
        l = l * f + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype.element_ty), tl.load(v + at), acc * f[:, None])
        m = next
    for j in range(whole, end, BN):
        at, seen = (head + j + keys)[:, None] * D + columns[None, :], (j + keys < n)[:, None]
        s = tl.dot(a, tl.trans(tl.load(k + at, mask=seen, other=0.0))) * c
        s = tl.where((j + keys < n)[None, :], s, -float("inf"))
        if CAUSAL:
            s = tl.where(rows[:, None] >= (j + keys)[None, :], s, -float("inf"))
        next = tl.maximum(m, tl.max(s, 1))
        p = tl.exp2(s - next[:, None])
        f = tl.exp2(m - next)
        l = l * f + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype.element_ty), tl.load(v + at, mask=seen, other=0.0), acc * f[:, None])
        m = next
    tl.store(o + (head + rows)[:, None] * D + columns[None, :], (acc / l[:, None]).to(o.dtype.element_ty), mask=there)
