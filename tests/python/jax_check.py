"""JAX's arrays through DLPack, and kernels as JAX's FFI calls: what `blkc --emit=tvm-ffi` makes, by jax-tvm-ffi.

usage: PYTHONPATH=BUILD/python jax_check.py ROOT [MODULE.so]     MODULE.so: of tests/python/jax_check.blk; without it, or without
jax-tvm-ffi, the FFI's part is skipped.  The last line is "N passed, M failed, K skipped".
"""
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np

import blk

root, module = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
gpu = jax.default_backend() == "gpu"
passed = failed = skipped = 0


def check(what, fine):
    global passed, failed
    passed, failed = passed + bool(fine), failed + (not fine)
    print("ok    " if fine else "FAILED", what, flush=True)


def refused(what, kinds, words, call):
    try:
        call()
    except kinds as e:
        check(f"{what}: {str(e).splitlines()[0]}", words in str(e))
    else:
        check(f"{what}: no error", False)


def close(a, b, tolerance=1e-6):
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return a.shape == b.shape and np.isfinite(a).all() and abs(a - b).max() <= tolerance


x = jax.block_until_ready(jax.random.normal(jax.random.key(0), (37, 1000)))
wanted = jax.nn.softmax(x, 1)


def arrays():
    """Inputs of kernels; an array of JAX's never changes, so results lie elsewhere."""
    k = blk.load(os.path.join(root, "tests/python/jax_check.blk"))
    if gpu:
        import cupy as memory
    else:
        memory = np
    got = lambda y: memory.asnumpy(y) if gpu else y
    y = memory.full(x.shape, np.nan, np.float32)
    k.softmax(y, x, *x.shape)
    check("a JAX array", close(got(y), wanted))
    for T, dtype in ("f16", jnp.float16), ("bf16", jnp.bfloat16), ("f8e4m3", jnp.float8_e4m3fn), ("i32", jnp.int32), ("bool", jnp.bool_):
        a = jax.block_until_ready((x[0] * 4).astype(dtype))
        y = memory.full(1000, np.nan, np.float32)
        k.widen(y, a, 1000, T=T)
        check(f"a JAX array of {T}", close(got(y), a.astype(jnp.float32)))
    refused("a JAX array as a result", ValueError, "read-only", lambda: k.softmax(x, x, *x.shape))
    refused("another type", TypeError, "takes no tensor of i32", lambda: k.softmax(y, x.astype(jnp.int32), *x.shape))
    refused("under jit", AttributeError, "__dlpack", lambda: jax.jit(lambda t: k.softmax(y, t, *t.shape))(x))


def calls():
    import jax_tvm_ffi
    import tvm_ffi
    functions = tvm_ffi.load_module(module)
    platform = "gpu" if gpu else "cpu"
    for name, spec in ("softmax", ["rets", "args", "attrs.rows", "attrs.n"]), ("softmax_backward", ["rets", "args", "attrs.rows", "attrs.n"]):
        jax_tvm_ffi.register_ffi_target("blk." + name, getattr(functions, name), spec, platform=platform, allow_cuda_graph=gpu)

    def kernel(name, *inputs):
        like = jax.ShapeDtypeStruct(inputs[0].shape, inputs[0].dtype)
        rows, n = like.shape
        return jax.ffi.ffi_call("blk." + name, like, vmap_method="sequential")(*inputs, rows=np.int64(rows), n=np.int64(n))

    @jax.custom_vjp
    def softmax(t):
        return kernel("softmax", t)

    softmax.defvjp(lambda t: (y := softmax(t), y), lambda y, dy: (kernel("softmax_backward", dy, y),))
    first = softmax(x)
    check(f"an FFI call, apart by {np.abs(np.asarray(first) - np.asarray(wanted)).max():.1e}", close(first, wanted, 1e-5))
    check("an FFI call under jit", close(jax.jit(lambda t: softmax(t * 2) + 1)(x), jax.nn.softmax(x * 2, 1) + 1))
    w = jax.random.normal(jax.random.key(1), x.shape)
    loss = lambda f: lambda t: (f(t) * w).sum()
    check("its gradient", close(jax.jit(jax.grad(loss(softmax)))(x), jax.grad(loss(lambda t: jax.nn.softmax(t, 1)))(x), 1e-5))
    many = jnp.stack([x[:5], x[5:10]])
    check("vmap", close(jax.vmap(softmax)(many), jax.nn.softmax(many, 2)))
    check("in a scan", close(jax.lax.scan(lambda c, t: (softmax(c + t), 0.0), x, jnp.zeros((3, *x.shape)))[0],
                             jax.nn.softmax(jax.nn.softmax(wanted, 1), 1)))
    refused("a requires clause", Exception, "requires n <= BLOCK", lambda: jax.block_until_ready(softmax(jnp.zeros((2, 20000)))))
    refused("another type", Exception, "another element type", lambda: jax.block_until_ready(kernel("softmax", x.astype(jnp.int32))))


def ffi_missing():
    if not module:
        return "no module was given"
    try:
        import jax_tvm_ffi  # noqa: F401
    except ImportError:
        return "no jax-tvm-ffi"
    return None


arrays()
if ffi_missing():
    skipped += 1
    print("skipped calls:", ffi_missing())
else:
    calls()
print("      jax", jax.__version__, "on", jax.default_backend())
print(f"{passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed != 0)
