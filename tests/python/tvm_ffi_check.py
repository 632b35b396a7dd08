"""What `blkc --emit=tvm-ffi` makes, loaded by TVM's FFI and compared with NumPy.

usage: tvm_ffi_check.py MODULE.so     The last line is "N passed, M failed".
"""
import sys

import numpy as np
import tvm_ffi

module = tvm_ffi.load_module(sys.argv[1])
passed = failed = 0


def check(what, fine):
    global passed, failed
    if fine:
        passed += 1
    else:
        failed += 1
        print("FAILED:", what)


def refused(what, kind, words, call, *args):
    try:
        call(*args)
    except kind as e:
        check(f"{what}: {e}", words in str(e))
    else:
        check(f"{what}: no error", False)


def tensor(a):
    return tvm_ffi.from_dlpack(a)


x = np.random.default_rng(1).standard_normal((5, 257)).astype(np.float32)
e = np.exp(x - x.max(1, keepdims=True))
wanted = e / e.sum(1, keepdims=True)
for view in tensor, lambda a: a:
    y = np.full_like(x, np.nan)
    module.softmax_rows(view(y), view(x), 257, 5, 257)
    check("softmax_rows", np.isfinite(y).all() and abs(y - wanted).max() < 1e-6)
y[:] = np.nan
module.softmax_persistent(tensor(y), tensor(x), 257, 5, 257, 3, 1, 1)
check("softmax_persistent, with a grid", np.isfinite(y).all() and abs(y - wanted).max() < 1e-6)
f, a, b = module.softmax_rows, tensor(y), tensor(x)
refused("too few", TypeError, "takes 5 arguments, not 4", f, a, b, 257, 5)
refused("no tensor", TypeError, "argument y of kernel softmax_rows, *f32, takes a tensor", f, 5, b, 257, 5, 257)
refused("another element", TypeError, "another element type", f, tensor(y.astype(np.float64)), b, 257, 5, 257)
refused("not contiguous", ValueError, "contiguous", f, tensor(y.T), b, 257, 5, 257)
refused("a float", TypeError, "takes an int", f, a, b, 257, 5, 1.5)
refused("too large", ValueError, "does not hold", f, a, b, 257, 5, 1 << 40)
refused("a tile out of bounds", ValueError, "not in 16..16384", f, a, b, 257, 5, 20000)
refused("no grid", TypeError, "takes 8 arguments", module.softmax_persistent, a, b, 257, 5, 257)
refused("a grid of 0", ValueError, "last three arguments", module.softmax_persistent, a, b, 257, 5, 257, 0, 1, 1)
refused("a grid of text", TypeError, "last three arguments", module.softmax_persistent, a, b, 257, 5, 257, "x", 1, 1)
print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
