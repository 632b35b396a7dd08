"""The Python package with torch and CuPy, on the processor and, where there is one, on a GPU; what a call costs.

usage: PYTHONPATH=BUILD/python torch_check.py [ROOT]     Prints a line a check and a line for each part that this machine
cannot run; the last line is "N passed, M failed, K skipped".
`BUILD/bin/blkrun`'s and tests/bench's launches are what the costs compare with: blk_launch() takes about 2 us with the driver's part.
"""
import os
import sys
import threading
import time

import numpy as np
import torch

import blk

root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
gpu = torch.cuda.is_available()
passed = failed = skipped = 0


def check(what, fine):
    global passed, failed
    passed, failed = passed + bool(fine), failed + (not fine)
    print("ok    " if fine else "FAILED", what, flush=True)


def attempt(what, call):
    """A check whose failure must not keep the others from running."""
    try:
        check(what, call() is not False)
    except Exception as e:  # noqa: BLE001
        check(f"{what}: {type(e).__name__}: {e}", False)


def refused(what, kinds, words, call):
    try:
        call()
    except kinds as e:
        check(f"{what}: {str(e).splitlines()[0]}", words in str(e))
    except Exception as e:  # noqa: BLE001
        check(f"{what}: {type(e).__name__}: {e}", False)
    else:
        check(f"{what}: no error", False)


def same(call, wanted):
    """Of a call that returns what it filled."""
    torch.testing.assert_close(call(), wanted)


k = blk.load(os.path.join(root, "examples/softmax/softmax.blk"))
m = blk.compile("""
kernel scale(y: *T, x: *const T, n: i32, a: f32, const T: type = f32, const BLOCK: i32 = 1024) grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + i, (load(x + i, mask = i < n).to(T == f64 ? f64 : f32) * a).to(T), mask = i < n);
}
kernel softmax_backward(dx: *f32, dy: *const f32, y: *const f32, rows: i32, n: i32, const BLOCK: i32 = 1024)
    grid(rows) requires n <= BLOCK
{
    let c = arange(0, BLOCK);
    let at = program_id(0) * n + c;
    let g = load(dy + at, mask = c < n, other = 0.0);
    let p = load(y + at, mask = c < n, other = 0.0);
    store(dx + at, p * (g - sum(g * p, axis = 0)), mask = c < n);
}""")


def softmax_into(y, x, **how):
    k.softmax_rows(y, x, x.stride(0), *x.shape, **how)
    return y


def tensors():
    for device in ["cpu"] + (["cuda"] if gpu else []):
        x = torch.randn(37, 1000, device=device)
        wanted = torch.softmax(x, 1)
        poisoned = lambda: torch.full_like(x, float("nan"))
        attempt(f"softmax on {device}", lambda: same(lambda: softmax_into(poisoned(), x), wanted))
        for T, dtype in ("f16", torch.float16), ("bf16", torch.bfloat16), ("f64", torch.float64):
            a = torch.randn(301, device=device, dtype=dtype)
            b = torch.full_like(a, float("nan"))
            attempt(f"{dtype} on {device}", lambda: (m.scale(b, a, 301, 2.0, T=T), torch.testing.assert_close(b, a * 2)))
        for T, dtype in ("f8e4m3", torch.float8_e4m3fn), ("f8e5m2", torch.float8_e5m2):
            a = torch.randn(301, device=device).to(dtype)
            b = torch.zeros_like(a)
            attempt(f"{dtype} on {device}", lambda: (m.scale(b, a, 301, 2.0, T=T), torch.testing.assert_close(b.float(), (a.float() * 2).to(dtype).float())))
        wide, into = torch.randn(37, 1024, device=device)[:, :1000], torch.zeros(37, 1024, device=device)[:, :1000]
        attempt(f"strided on {device}", lambda: (k.softmax_rows(blk.strided(into), blk.strided(wide), 1024, 37, 1000),
                                                 torch.testing.assert_close(into, torch.softmax(wide, 1))))
        refused(f"not contiguous on {device}", ValueError, "not contiguous", lambda: softmax_into(poisoned(), x.T))
        refused(f"another type on {device}", TypeError, "takes no tensor of f64", lambda: softmax_into(poisoned(), x.double()))
        negated = torch.zeros(37, 1000, dtype=torch.complex64, device=device).conj().imag
        refused(f"a negated view on {device}", ValueError, "resolve_neg", lambda: k.softmax_rows(poisoned(), blk.strided(negated), 2000, 37, 1000))
        try:
            softmax_into(poisoned(), torch.nn.Parameter(x))
        except BufferError as e:
            check(f"a tensor that requires gradients on {device}: {e}", True)
        else:
            check(f"a tensor that requires gradients on {device} is taken (by the exchange table)", True)
    refused("tensors without memory", (RuntimeError, BufferError), "meta", lambda: softmax_into(poisoned(), torch.empty(37, 1000, device="meta")))
    print("      torch", torch.__version__, "exchange table:", hasattr(torch.Tensor, "__dlpack_c_exchange_api__"))


def capsules():
    """DLPack as a stranger speaks it, and memory that torch shares with others."""
    class Producer:
        def __init__(self, of, versioned):
            self.of, self.versioned = of, versioned

        def __dlpack__(self, **how):
            how.pop("stream", None)
            return self.of.__dlpack__(max_version=(1, 0)) if self.versioned else torch.utils.dlpack.to_dlpack(self.of)

        def __dlpack_device__(self):
            return self.of.__dlpack_device__()

    x, y = torch.randn(5, 300), torch.empty(5, 300)
    for versioned in False, True:
        y.fill_(float("nan"))
        attempt(f"capsules, versioned: {versioned}", lambda: (
            k.softmax_rows(Producer(y, versioned), Producer(x, versioned), 300, 5, 300), torch.testing.assert_close(y, torch.softmax(x, 1))))
    a = np.full((5, 300), np.nan, np.float32)
    attempt("NumPy's memory as a tensor", lambda: (softmax_into(torch.from_dlpack(a), x), np.testing.assert_allclose(a, torch.softmax(x, 1).numpy(), rtol=1e-6)))
    y.fill_(float("nan"))
    attempt("a tensor's memory as NumPy's", lambda: (k.softmax_rows(y.numpy(), x.numpy(), 300, 5, 300), torch.testing.assert_close(y, torch.softmax(x, 1))))
    ys = [torch.full_like(x, float("nan")) for _ in range(8)]
    threads = [threading.Thread(target=softmax_into, args=(each, x), kwargs={"BLOCK": 512 << i % 2}) for i, each in enumerate(ys)]
    for t in threads: t.start()
    for t in threads: t.join()
    attempt("eight threads", lambda: [torch.testing.assert_close(each, torch.softmax(x, 1)) for each in ys])


def operators():
    device = "cuda" if gpu else "cpu"
    backward = blk.torch.op("blk_check::softmax_backward", m.softmax_backward, "(Tensor dy, Tensor x, Tensor y) -> Tensor",
                            outputs=lambda dy, x, y: torch.empty_like(dy),
                            arguments=lambda dx, dy, x, y: (dx, dy, y, *y.shape))
    softmax = blk.torch.op("blk_check::softmax", k.softmax_rows, "(Tensor x) -> Tensor", outputs=lambda x: torch.empty_like(x),
                           arguments=lambda y, x: (y, x, x.stride(0), *x.shape), backward=backward)
    x = torch.randn(33, 257, device=device, requires_grad=True)
    w = torch.randn(33, 257, device=device)
    (torch.softmax(x, 1) * w).sum().backward()
    wanted, x.grad = x.grad, None
    (softmax(x) * w).sum().backward()
    attempt("autograd", lambda: torch.testing.assert_close(x.grad, wanted))
    attempt("opcheck", lambda: torch.library.opcheck(softmax, (x,)) and None)
    whole = torch.compile(lambda t: softmax(t * 2) + 1, fullgraph=True)
    attempt("torch.compile", lambda: torch.testing.assert_close(whole(x), torch.softmax(x * 2, 1) + 1))
    x.grad = None
    (torch.compile(lambda t: softmax(t), fullgraph=True)(x) * w).sum().backward()
    attempt("torch.compile, backward", lambda: torch.testing.assert_close(x.grad, wanted))
    any_shape = torch.compile(lambda t: softmax(t * 2) + 1, fullgraph=True, dynamic=True)
    for shape in (3, 5), (33, 257), (7, 1000):
        t = torch.randn(shape, device=device)
        attempt(f"torch.compile, any shape: {shape}", lambda: same(lambda: any_shape(t), torch.softmax(t * 2, 1) + 1))
    # A backward operator that is the operator itself, and an input that is no tensor.
    scale = {}
    scale["back"] = blk.torch.op("blk_check::scale_backward", m.scale, "(Tensor dy, Tensor x, float a, Tensor y) -> Tensor",
                                 outputs=lambda dy, x, a, y: torch.empty_like(dy), arguments=lambda dx, dy, x, a, y: (dx, dy, dy.numel(), a), T="f64")
    scale["op"] = blk.torch.op("blk_check::scale", m.scale, "(Tensor x, float a) -> Tensor", outputs=lambda x, a: torch.empty_like(x),
                               arguments=lambda y, x, a: {"y": y, "x": x, "n": x.numel(), "a": a}, backward=scale["back"], T="f64")
    t = torch.randn(3, 11, device=device, dtype=torch.float64, requires_grad=True)
    attempt("gradcheck", lambda: torch.autograd.gradcheck(lambda v: scale["op"](v, 1.5), (t,)))
    attempt("gradients of nothing that is asked for", lambda: not scale["op"](t.detach(), 1.5).requires_grad)

    class Model(torch.nn.Module):
        def forward(self, t):
            return softmax(t) * 2

    attempt("torch.export", lambda: torch.testing.assert_close(torch.export.export(Model(), (w,)).module()(w), torch.softmax(w, 1) * 2))


def graphs():
    x, y = torch.randn(64, 1000, device="cuda"), torch.empty(64, 1000, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        softmax_into(y, x)  # what a graph holds has been launched before
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        softmax_into(y, x)
    x.normal_()
    y.fill_(float("nan"))
    graph.replay()
    attempt("a CUDA graph", lambda: torch.testing.assert_close(y, torch.softmax(x, 1)))
    y.fill_(float("nan"))
    torch.cuda.synchronize()
    k.softmax_rows(y, x, 1000, 64, 1000, stream=side)
    side.synchronize()
    attempt("a stream of torch's", lambda: torch.testing.assert_close(y, torch.softmax(x, 1)))
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        x.normal_()
        softmax_into(y, x)
    side.synchronize()
    attempt("the current stream", lambda: torch.testing.assert_close(y, torch.softmax(x, 1)))


def cupy_arrays():
    import cupy
    x = cupy.random.standard_normal((37, 1000), dtype=cupy.float32)
    y = cupy.full_like(x, cupy.nan)
    k.softmax_rows(y, x, 1000, 37, 1000, stream=cupy.cuda.get_current_stream().ptr)
    e = cupy.exp(x - x.max(1, keepdims=True))
    check("CuPy", float(abs(y - e / e.sum(1, keepdims=True)).max()) < 1e-6)


def wait():
    if gpu:
        torch.cuda.synchronize()


def cost(what, call, rounds=20000):
    for _ in range(1000):
        call()
    wait()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for i in range(rounds // 5):
            call()
            if i % 500 == 499:  # the queue must not be full: then it is the GPU that is timed
                wait()
        best = min(best, (time.perf_counter() - start) / (rounds // 5))
    print(f"      {best * 1e6:6.2f} us a call: {what}")


def costs():
    device = "cuda" if gpu else "cpu"
    x, y = torch.randn(1, 64, device=device), torch.empty(1, 64, device=device)
    launch = k.softmax_rows
    cost("two tensors, three ints", lambda: launch(y, x, 64, 1, 64))
    cost("the same with BLOCK=2048", lambda: launch(y, x, 64, 1, 64, BLOCK=2048))
    cost("no work: the arguments alone", lambda: launch(y, x, 64, 0, 64))
    cost("no work, with BLOCK=2048", lambda: launch(y, x, 64, 0, 64, BLOCK=2048))
    cost("torch.add(out=)", lambda: torch.add(x, x, out=y))
    cost("x.__dlpack__()", lambda: x.__dlpack__(stream=-1) if gpu else x.__dlpack__())


def costs_on_gpu():
    x, y = torch.randn(1, 64, device="cuda"), torch.empty(1, 64, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream
    cost("two tensors, three ints, stream=int", lambda: k.softmax_rows(y, x, 64, 1, 64, stream=stream))
    null = blk.compile("kernel nothing(n: i32) grid(1) { }", device="cuda:0").nothing
    cost("no tensors: the call and C's launch", lambda: null(1, stream=0))


def costs_of_triton():
    import triton

    @triton.jit
    def nothing(y, x, stride, rows, n):
        pass

    x, y = torch.randn(1, 64, device="cuda"), torch.empty(1, 64, device="cuda")
    cost("Triton: two tensors, three ints", lambda: nothing[(1,)](y, x, 64, 1, 64))


def costs_of_cute():
    """CuTe DSL, compiled ahead: with tensors that were converted before, and through its own TVM FFI from torch's."""
    import cutlass
    import cutlass.cute as cute
    from cutlass.cute.runtime import from_dlpack

    @cute.kernel
    def nothing(y: cute.Tensor, x: cute.Tensor, n: cutlass.Int32):
        pass

    @cute.jit
    def launch(y: cute.Tensor, x: cute.Tensor, n: cutlass.Int32):
        nothing(y, x, n).launch(grid=(1, 1, 1), block=(32, 1, 1))

    x, y = torch.randn(1, 64, device="cuda"), torch.empty(1, 64, device="cuda")
    a, b = from_dlpack(y), from_dlpack(x)
    ready = cute.compile(launch, a, b, 64)
    cost("CuTe DSL: two tensors of its own, an int", lambda: ready(a, b, 64))
    cost("CuTe DSL: two of torch's tensors, an int", lambda: ready(from_dlpack(y), from_dlpack(x), 64))
    by_ffi = cute.compile(launch, a, b, 64, options="--enable-tvm-ffi")
    cost("CuTe DSL by TVM FFI: two of torch's tensors, an int", lambda: by_ffi(y, x, 64))


def has(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


for part, why in (tensors, None), (capsules, None), (operators, None), (graphs, not gpu and "no GPU"), (
        cupy_arrays, (not gpu and "no GPU") or (not has("cupy") and "no CuPy")), (costs, None), (costs_on_gpu, not gpu and "no GPU"), (
        costs_of_triton, (not gpu and "no GPU") or (not has("triton") and "no Triton")), (
        costs_of_cute, (not gpu and "no GPU") or (not has("cutlass") and "no CuTe DSL")):
    if why:
        skipped += 1
        print(f"skipped {part.__name__}: {why}")
    else:
        attempt(part.__name__, part)
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed != 0)
