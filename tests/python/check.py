"""The Python package against NumPy, on the processor and on the simulator, and against wrong input.

usage: check.py ROOT BLKC     The last line is "N passed, M failed".
"""
import ctypes
import gc
import os
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings

import numpy as np

import blk

os.environ.pop("LD_PRELOAD", None)  # a sanitizer's runtime is for this process, not for ptxas

root, blkc = sys.argv[1:]
passed = failed = 0


def check(what, fine):
    global passed, failed
    if fine:
        passed += 1
    else:
        failed += 1
        print("FAILED:", what, flush=True)


def refused(what, kind, words, call, *args, **keywords):
    """The call raises that class, with those words in its text."""
    try:
        call(*args, **keywords)
    except kind as e:
        check(f"{what}: {type(e).__name__}: {e}", words in str(e))
    except BaseException as e:  # noqa: BLE001
        check(f"{what}: {type(e).__name__}: {e}", False)
    else:
        check(f"{what}: no error", False)


def example(name, **how):
    return blk.load(os.path.join(root, "examples", name, name + ".blk"), **how)


random = np.random.default_rng(1)


def normal(*shape, dtype=np.float32):
    return random.standard_normal(shape).astype(dtype)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def close(got, wanted, tolerance):
    return np.isfinite(got.astype(np.float64)).all() and abs(got.astype(np.float64) - wanted).max() <= tolerance


# ---- The same answers as NumPy, on sizes that no tile divides; outputs are poisoned ----

MIXED = """
kernel scale(y: *T, x: *const T, n: i32, a: A, const T: type = f32, const A: type = f32, const BLOCK: i32 = 128)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let m = i < n;
    store(y + i, (load(x + i, mask = m).to(A) * a).to(T), mask = m);
}
kernel shifted(y: *i64, x: *const i32, n: i32, up: bool, by: u8, const BLOCK: i32 = 128)
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let m = i < n;
    let v = load(x + i, mask = m).to(i64);
    store(y + i, where(up, v + by.to(i64), v - by.to(i64)), mask = m);
}
kernel columns(y: *f32, x: *const f32, stride: i32, n: i32, const BLOCK: i32 = 64) grid(1)
{
    let i = arange(0, BLOCK);
    store(y + i, load(x + i * stride, mask = i < n), mask = i < n);
}
kernel nothing() grid(1) { }
kernel eight(a: f8e4m3) grid(1) { }
"""

for device in None, "cpu", "cpu:checked", "sim", "sim:sm_90a":
    how = {"device": device} if device else {}
    k = example("softmax", **how)
    for rows, n in (3, 1000), (5, 257), (1, 1):
        x, y = normal(rows, n), np.full((rows, n), np.nan, np.float32)
        k.softmax_rows(y, x, n, rows, n)
        check(f"softmax_rows {device} {rows} {n}", close(y, softmax(x), 1e-6))
    y[:] = np.nan
    k.softmax_rows(y, x, rows=rows, n=n, stride=n, BLOCK=2048, num_warps=8, launch_pdl=False)
    check(f"softmax_rows {device}, by name, with defines", close(y, softmax(x), 1e-6))
    m = blk.compile(MIXED, name="mixed.blk", **how)
    for dtype, T in (np.float32, "f32"), (np.float16, "f16"), (np.float64, "f64"):
        x, y = normal(301, dtype=dtype), np.full(301, np.nan, dtype)
        m.scale(y, x, 301, 1.5, T=T)
        check(f"scale {device} {T}", close(y, x.astype(np.float64) * 1.5, 4e-3 if T == "f16" else 1e-6))
    x, y = random.integers(-99, 99, 131).astype(np.int32), np.full(131, -(1 << 40), np.int64)
    m.shifted(y, x, 131, True, 200, grid=2)
    check(f"shifted {device}", (y == x.astype(np.int64) + 200).all())
    m.shifted(y, x, 131, np.bool_(False), np.uint8(200), grid=(2, 1, 1))
    check(f"shifted {device}, down", (y == x.astype(np.int64) - 200).all())
    matrix, y = normal(37, 9), np.full(37, np.nan, np.float32)
    m.columns(y, blk.strided(matrix[:, 4]), 9, 37)
    check(f"columns {device}", (y == matrix[:, 4]).all())
    back = np.ascontiguousarray(matrix[:, 4])
    m.columns(y, blk.strided(back[::-1]), -1, 37)
    check(f"columns {device}, backwards", (y == back[::-1]).all())
    both = normal(64)
    wanted = both.copy()
    wanted[1:38] *= 2
    m.scale(both[1:38], both[1:38], 37, 2.0)  # in place, one tensor inside of another's memory
    check(f"scale {device}, in place", (both == wanted).all())
    raw = np.frombuffer(normal(77).tobytes(), np.uint32) & 0xFFFF0000
    bits, out = (raw >> 16).astype(np.uint16), np.zeros(77, np.uint16)
    m.scale(out, bits, 77, 2.0, T="bf16")
    check(f"scale {device} bf16 as bits", ((out.astype(np.uint32) << 16).view(np.float32) == raw.view(np.float32) * 2).all())
    if device:
        m.nothing()

m = blk.compile(MIXED)
f = example("softmax").softmax_rows

# ---- What there is to see ----

check("dir", dir(m) == ["columns", "eight", "nothing", "scale", "shifted"] and len(m) == 5 and list(m)[0] == "scale")
check("an item", m["scale"] is m.scale and m.scale.name == "scale")
refused("an item that is none", KeyError, "nope", lambda: m["nope"])
refused("an attribute that is none", AttributeError, "nope", lambda: m.nope)
check("signature", f.signature == "softmax_rows(y: *f32, x: *const f32, stride: i32, rows: i32, n: i32, BLOCK: i32 = next_extent(n) in 16..16384)")
x, y = normal(3, 300), np.zeros((3, 300), np.float32)
check("constants", f.constants(y, x, 300, 3, 300) == {"BLOCK": 320} and f.constants(y, x, 300, 3, 300, BLOCK=1024) == {"BLOCK": 1024})
refused("a constant out of bounds", blk.ArgumentError, "is 20480, which is not in 16..16384: n = 20000", f.constants, y, x, 1, 1, 20000)
check("repr", f.signature in repr(f) and "softmax_rows" in repr(example("softmax")))
check("ptx before a launch", ".target sm_80" in f.ptx)
s = example("softmax", device="sim:sm_90a")
x, y = normal(4, 64), np.zeros((4, 64), np.float32)
s.softmax_rows(y, x, 64, 4, 64)
check("ptx of a launch", ".target sm_90a" in s.softmax_rows.ptx and "const BLOCK i32 64" in s.softmax_rows.ptx)
check("explain", "softmax_rows" in s.softmax_rows.explain() and "sm_90a" in s.softmax_rows.explain())
check("explain for another", "sm_89" in f.explain("sm_89") and "sm_89" in f.explain(target="sm_89", BLOCK=2048))
check("explain in a notebook", f.explain()._repr_html_().startswith("<pre>") and isinstance(f.explain(), str))
info = s.softmax_rows.info(y, x, 64, 4, 64)
check("info", info["target"] == "sm_90a" and "x%16" in info["promises"] and info["num_warps"] == 4)
check("version", blk.__version__.count(".") == 2)

# ---- Wrong input ----

x, y = normal(4, 64), np.zeros((4, 64), np.float32)
refused("too few", TypeError, "misses the argument n", f, y, x, 64, 4)
refused("too many", TypeError, "takes fewer arguments than 6", f, y, x, 64, 4, 64, 1)
refused("twice", TypeError, "got twice the argument n", f, y, x, 64, 4, 64, n=1)
refused("another name", TypeError, "has no parameter BLOK", f, y, x, 64, 4, 64, BLOK=1)
# ---- The same keywords again: found by comparing, and never taken for others ----

kept = blk.compile("""
kernel which(y: *f64, const N: i32 = 1, const A: f64 = 1.0, const T: bool = false, const S: i32 = 0, const P: i32 = 0,
    const Q: i32 = 0) grid(1)
{
    store(y, 1.0 / A); store(y + 1, (N + (T ? 1000 : 0)).to(f64)); store(y + 2, (S + 10 * P + 100 * Q).to(f64));
}""")


def which(**defines):
    out = np.full(3, np.nan)
    kept.which(out, **defines)
    return tuple(out)


for again in range(3):
    check("floats that compare equal", which(A=0.0)[0] == np.inf and which(A=-0.0)[0] == -np.inf)
    check("True is not 1", which(T=True)[1] == 1001 and which(T=False, N=5)[1] == 5)
    check("a text and a number", which(N="7")[1] == which(N=7)[1] == 7)
    for big in 70000, 70001:
        check("numbers that are other objects", which(N=int(str(big)))[1] == big)
    check("another order", which(N=3, S=4, P=5, Q=6) == which(Q=6, P=5, S=4, N=3) == (1, 3, 654))
    check("more than are compared", which(N=3, A=2.0, T=True, S=4, P=5, Q=6, num_warps=2, num_stages=2, num_ctas=1) == (0.5, 1003, 654))
    check("NumPy's numbers", which(N=np.int64(9))[1] == 9 and which(N=np.int32(10 + again))[1] == 10 + again)
    refused("a keyword that is none", TypeError, "has no parameter B", kept.which, np.zeros(3), N=7, B=2)
    refused("an argument beside known keywords", TypeError, "misses the argument y", kept.which, N=7)


refused("an option's value", blk.Error, "num_warps must be", f, y, x, 64, 4, 64, num_warps=3)
refused("a define that is none", TypeError, "takes an int", f, y, x, 64, 4, 64, BLOCK=[1])
refused("a define of two lines", ValueError, "one line", f, y, x, 64, 4, 64, BLOCK="1\n2")
refused("another type", TypeError, "takes no tensor of f64", f, y, x.astype(np.float64), 64, 4, 64)
refused("a type that is none", TypeError, "takes no tensor of another type", f, y, x.astype(np.complex64), 64, 4, 64)
refused("other bytes", TypeError, "takes no tensor of another type", f, y, x.astype(">f4"), 64, 4, 64)
refused("dates", TypeError, "takes no tensor of another type", f, y, x.astype("M8[s]"), 64, 4, 64)
refused("a number for a pointer", TypeError, "takes a tensor", f, y, 1 << 20, 64, 4, 64)
refused("a text for a pointer", TypeError, "takes a tensor", f, y, "x", 64, 4, 64)
refused("not contiguous", ValueError, "blk.strided(x)", f, y, x.T, 64, 4, 64)
refused("strided twice", TypeError, "takes a tensor", f, y, blk.strided(blk.strided(x)), 64, 4, 64)
refused("too large", OverflowError, "does not fit i32", f, y, x, 1 << 31, 4, 64)
refused("much too large", OverflowError, "does not fit i32", f, y, x, -(1 << 99), 4, 64)
refused("a float for an integer", TypeError, "takes no <class 'float'>", f, y, x, 1.0, 4, 64)
refused("None for an integer", TypeError, "takes no", f, y, x, None, 4, 64)
refused("a requires clause", blk.ArgumentError, "a row fits one tile", f, y, x, 64, 4, 4096, BLOCK=1024)
refused("a requires clause", ValueError, "n = 4096", f, y, x, 64, 4, 4096, BLOCK=1024)
refused("no grid", blk.ArgumentError, "grid", m.shifted, np.zeros(1, np.int64), np.zeros(1, np.int32), 1, True, 0)
refused("a grid of 0", blk.ArgumentError, "grid of 0", f, y, x, 64, 4, 64, grid=(0, 1))
refused("a grid of 4 axes", ValueError, "one to three", f, y, x, 64, 4, 64, grid=(1, 1, 1, 1))
refused("a grid below 0", ValueError, "programs along an axis", f, y, x, 64, 4, 64, grid=-1)
refused("a grid of text", TypeError, "", f, y, x, 64, 4, 64, grid="x")
refused("a stream on cpu", ValueError, "only a GPU has streams", f, y, x, 64, 4, 64, stream=7)
refused("a stream that is none", TypeError, "cuda_stream", f, y, x, 64, 4, 64, stream="x")
refused("no device", ValueError, "no tensor says", m.nothing)
refused("f16's range", OverflowError, "does not fit f16", m.scale, y, x, 1, 1e6, A="f16")
on_cpu = blk.compile(MIXED, device="cpu")
refused("fp8's range", OverflowError, "does not fit f8e4m3", on_cpu.eight, 449)
on_cpu.eight(448)
on_cpu.eight(float("inf"))
refused("f32's range", OverflowError, "does not fit f32", m.scale, y, x, 1, 1e300)
refused("a text for a float", TypeError, "takes no <class 'str'>", m.scale, y, x, 1, "2")
refused("u8's range", OverflowError, "does not fit u8", m.shifted, np.zeros(1, np.int64), np.zeros(1, np.int32), 1, True, 256, grid=1)
refused("bool's range", OverflowError, "does not fit bool", m.shifted, np.zeros(1, np.int64), np.zeros(1, np.int32), 1, 2, 0, grid=1)
refused("a text for a bool", TypeError, "takes no", m.shifted, np.zeros(1, np.int64), np.zeros(1, np.int32), 1, "x", 0, grid=1)
sealed = y.copy()
sealed.flags.writeable = False
refused("a read-only output", ValueError, "read-only", f, sealed, x, 64, 4, 64)
refused("bytes as an output", ValueError, "read-only", blk.compile(MIXED).scale, b"1234", b"1234", 4, 1.0, T="u8")
f(y, sealed + x, 64, 4, 64)
sealed2 = x.copy()
sealed2.flags.writeable = False
f(y, sealed2, 64, 4, 64)
check("a read-only input", close(y, softmax(x), 1e-6))
refused("no file", FileNotFoundError, "nowhere.blk", blk.load, "nowhere.blk")
refused("no path", TypeError, "", blk.load, 5)
refused("no text", TypeError, "", blk.compile, b"kernel a() {}")
refused("a text with nulls", ValueError, "null character", blk.compile, "kernel a() {}\0")
refused("a mistake", blk.Error, "error[E", blk.compile, "kernel a( {")
refused("a device that is none", blk.Error, "", blk.load, os.path.join(root, "examples/softmax/softmax.blk"), device="gpu")
refused("a device that is no name", TypeError, "device=", blk.compile, MIXED, device=0)
refused("a name that is none", TypeError, "name=", blk.compile, MIXED, name=0)
refused("a define of load()", blk.Error, "BLOK", blk.compile, MIXED, BLOK=1)
refused("Kernel()", TypeError, "blk.load()", blk.Kernel)
refused("Module()", TypeError, "blk.load()", blk.Module)
refused("strided()", TypeError, "", blk.strided)
try:
    blk.compile("kernel a( {")
except blk.Error as e:
    check("a status", e.status == "BLK_ERROR_COMPILE")
refused("a program outside", blk.Error, "", example("softmax", device="sim").softmax_rows, y, x[:1, :8], 64, 4, 64)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    blk.compile("kernel a(x: *f32) grid(1) { static_print(\"said\"); let unused = 1; store(x, 0.0); }").a(np.zeros(1, np.float32))
    check("a note is a warning", any(issubclass(w.category, blk.Note) for w in said))

# ---- DLPack, by producers that are made here ----


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("tensor", Tensor)]


def fill(t, array, device, code, bits):
    t.data, t.device[:], t.ndim, t.code, t.bits, t.lanes = array.ctypes.data, device, array.ndim, code, bits, 1
    t.shape = (ctypes.c_int64 * array.ndim)(*array.shape)


class Producer:
    """An array by DLPack alone; `deleted` counts."""

    def __init__(self, array, device=(1, 0), code=2, bits=32, versioned=True, flags=0, major=1):
        self.array, self.device, self.deleted = array, device, 0
        self.one = Versioned() if versioned else Managed()
        fill(self.one.tensor, array, device, code, bits)
        if versioned:
            self.one.version[:], self.one.flags = (major, 0), flags
        self.one.deleter = DELETER(self.delete)
        self.versioned = versioned
        self.capsule = None

    def delete(self, _):
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **keywords):
        if not self.versioned and "max_version" in keywords:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = b"dltensor_versioned" if self.versioned else b"dltensor"
        self.capsule = new(ctypes.addressof(self.one), self.name, None)
        return self.capsule


for versioned in True, False:
    px, py = Producer(x, versioned=versioned), Producer(np.zeros_like(x), versioned=versioned)
    f(py, px, 64, 4, 64)
    check(f"DLPack, versioned {versioned}", close(py.array, softmax(x), 1e-6))
    check("its deleter ran once", (px.deleted, py.deleted) == (1, 1))
    check("its capsule is used", "used_dltensor" in repr(px.capsule))
p = Producer(np.zeros_like(x), flags=1)
refused("DLPack, read-only", ValueError, "read-only", f, p, x, 64, 4, 64)
check("its deleter ran after an error", p.deleted == 1)
refused("DLPack 2", BufferError, "version 2", f, Producer(y, major=2), x, 64, 4, 64)
refused("DLPack, a device that is neither", ValueError, "number 8", f, Producer(y, device=(8, 0)), x, 64, 4, 64)
refused("devices mixed", ValueError, "several devices, cuda:0 and cpu", f, Producer(y, device=(2, 0)), x, 64, 4, 64)
refused("another device", ValueError, "loaded for the device sim", example("softmax", device="sim").softmax_rows,
        Producer(y, device=(2, 1)), Producer(x, device=(2, 1)), 64, 4, 64)
refused("DLPack, a type that is none", TypeError, "another type", f, Producer(y, code=5, bits=64), x, 64, 4, 64)
half = blk.compile(MIXED, T="bf16").scale
out, bits = np.zeros(77, np.uint16), (np.frombuffer(normal(77).tobytes(), np.uint32) >> 16).astype(np.uint16)
half(Producer(out, code=4, bits=16), Producer(bits, code=4, bits=16), 77, 1.0)
check("DLPack, bf16", (out == bits).all())


class Broken(Producer):
    def __init__(self, what):
        super().__init__(y)
        self.what = what

    def __dlpack__(self, **keywords):
        if isinstance(self.what, Exception):
            raise self.what
        return self.what


if sys.version_info >= (3, 12):  # a class can have the buffer protocol

    class Refusing(Producer):
        """As JAX's arrays of bf16: the buffer protocol refuses them."""

        def __buffer__(self, flags):
            raise BufferError("no such type")

    px, py = Refusing(x), Refusing(np.zeros_like(x))
    f(py, px, 64, 4, 64)
    check("DLPack where the buffer protocol refuses", close(py.array, softmax(x), 1e-6) and py.deleted == 1)

refused("DLPack that raises", ZeroDivisionError, "no", f, Broken(ZeroDivisionError("no")), x, 64, 4, 64)
refused("DLPack that is none", TypeError, "no DLPack capsule", f, Broken(5), x, 64, 4, 64)
p = Producer(y)
used = p.__dlpack__()
f(Broken(used), x, 64, 4, 64)
refused("DLPack that was used", TypeError, "that was used", f, Broken(used), x, 64, 4, 64)
p.__dlpack_device__ = None
p.device = 5
refused("DLPack without a device", TypeError, "", f, p, x, 64, 4, 64)


class Exchange(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("previous", ctypes.c_void_p), ("unused", ctypes.c_void_p * 3),
                ("tensor", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))), ("stream", ctypes.c_void_p)]


class Fast:
    asked = 0

    def __init__(self, array):
        self.array = array


def exchange(o, out):
    Fast.asked += 1
    fill(out.contents, o.array, (1, 0), 2, 32)
    return 0


table = Exchange()
table.version[:] = 1, 3
table.tensor = Exchange._fields_[3][1](exchange)
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
Fast.__dlpack_c_exchange_api__ = new(ctypes.addressof(table), b"dlpack_exchange_api", None)
y[:] = np.nan
f(Fast(y), Fast(x), 64, 4, 64)
check("the exchange table", close(y, softmax(x), 1e-6) and Fast.asked == 2)


class Interface:
    def __init__(self, **keys):
        self.__array_interface__ = keys
        self.dtype = type("dtype", (), {"name": "bfloat16"})


def interface(a, **more):
    return Interface(**{"data": (a.ctypes.data, False), "shape": a.shape, "typestr": "<V2", "strides": None, **more})


out[:] = 0
half(interface(out), interface(bits), 77, 1.0)
check("__array_interface__, bf16", (out == bits).all())
refused("__array_interface__ without data", TypeError, "without address", half, Interface(shape=(1,), typestr="<V2"), bits, 77, 1.0)
refused("__array_interface__ of another rank", ValueError, "another rank", half, interface(out, strides=(2, 2)), bits, 77, 1.0)
refused("__array_interface__ with holes", ValueError, "not contiguous", half, interface(out, strides=(4,)), bits, 77, 1.0)
to = bytearray(9)
m.scale(to, memoryview(b"123456789"), 9, 1, T="u8", A="u8")
check("bytes", to == b"123456789")
check("null pointers, no work", blk.compile(MIXED, device="cpu").scale(None, None, 0, 1.0) is None)

# ---- Packages, PTX ----

here = os.getcwd()
subprocess.run([blkc, os.path.join(root, "examples/softmax/softmax.blk"), "--kernel=softmax_rows", "--emit=package", "-o", "s.blkpkg"], check=True)
subprocess.run([blkc, os.path.join(root, "examples/softmax/softmax.blk"), "--target=sm_90a", "-D", "BLOCK=1024", "-D", "PARTS=1", "-o", "s.ptx"], check=True)
y[:] = np.nan
blk.load(os.path.join(here, "s.blkpkg")).softmax_rows(y, x, 64, 4, 64)
check("a package", close(y, softmax(x), 1e-6))
y[:] = np.nan
blk.load("s.ptx", device="sim:sm_90a").softmax_rows(y, x, 64, 4, 64)
check("PTX", close(y, softmax(x), 1e-6))
p = blk.load("s.ptx")
check("PTX without a device", "softmax_rows" in dir(p) and ".target sm_90a" not in p.softmax_rows.signature)
refused("PTX on cpu", blk.Error, "is PTX", p.softmax_rows, y, x, 64, 4, 64)
refused("PTX explained", blk.Error, "only source", p.softmax_rows.explain)
refused("PTX with a define", blk.Error, "takes no defines", blk.load, "s.ptx", BLOCK=2)

# ---- Tuning ----

tuned = blk.compile("""
kernel twice(y: *f32, n: i32, const BLOCK: i32 = 64) grid(cdiv(n, BLOCK))
{ let i = program_id(0) * BLOCK + arange(0, BLOCK); store(y + i, load(y + i, mask = i < n) * 2.0, mask = i < n); }
autotune twice key(n) { BLOCK: [64, 128]; }""")
y1 = normal(300)
keep = y1.copy()
trials = tuned.twice.tune(y1, 300)
check(f"tune: {trials}", len(trials) == 2 and sum(t["chosen"] for t in trials) == 1 and (y1 == keep).all())
tuned.twice(y1, 300)
check("after tuning", (y1 == keep * 2).all())
refused("tune with wrong arguments", TypeError, "misses", tuned.twice.tune, y1)

# ---- Threads: the same new combinations at once, and the GIL is free while a launch runs ----

wrong = []


def work(device, seed):
    try:
        own = np.random.default_rng(seed)
        for block in 1024, 2048:
            a, b = own.standard_normal((5, 700)).astype(np.float32), np.full((5, 700), np.nan, np.float32)
            shared.softmax_rows(b, a, 700, 5, 700, BLOCK=block)
            if not close(b, softmax(a), 1e-6):
                wrong.append(block)
    except BaseException as e:  # noqa: BLE001
        wrong.append(e)


shared = example("softmax")
threads = [threading.Thread(target=work, args=(None, i)) for i in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
check(f"threads: {wrong}", not wrong)
slow = blk.compile("""
kernel slow(y: *f32, n: i32) grid(1)
{ var v = load(y); for i in range(0, n) { v = v * 0.9999999 + 1.0e-9; } store(y, v); }""")
one = np.ones(1, np.float32)
slow.slow(one, 1)
worker = threading.Thread(target=slow.slow, args=(one, 200_000_000))
worker.start()
steps = 0
while worker.is_alive() and steps < 3:
    time.sleep(0.001)
    steps += 1
check("the GIL is free during a launch", steps == 3)
worker.join()

# ---- Leaks ----


def rounds(n):
    for _ in range(n):
        f(y, x, 64, 4, 64)
        f(y, x, 64, 4, n=64, BLOCK=2048)
        f(y, x, 64, 4, 64, BLOCK="2048")
        f(Producer(y), Producer(x, versioned=False), 64, 4, 64)
        for bad in ((y, x, 64, 4), (y, x, 1 << 40, 4, 64), (y, x.T, 64, 4, 64), (y, 5, 64, 4, 64), (y, x, 64, 4, 20000)):
            try:
                f(*bad)
            except (TypeError, ValueError, OverflowError):
                pass
        blk.strided(x)
        f.info(y, x, 64, 4, 64)


def opened(n):
    for _ in range(n):
        c = blk.compile(MIXED)
        c.scale(y, x, 256, 1.0)
        repr(c.scale)
        c.scale.info(y, x, 256, 1.0)
        s.softmax_rows(y, x, 64, 4, 64)


def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


rounds(20)
opened(3)
gc.collect()
before = [sys.getrefcount(o) for o in (x, y, f, None, blk.Kernel)]
gc.collect()
tracemalloc.start()
start = tracemalloc.take_snapshot()
rounds(200)
opened(20)
gc.collect()
grown = sum(d.size_diff for d in tracemalloc.take_snapshot().compare_to(start, "filename") if "tracemalloc" not in str(d.traceback))
tracemalloc.stop()
after = [sys.getrefcount(o) for o in (x, y, f, None, blk.Kernel)]
check(f"references: {before} {after}", all(abs(a - b) < 100 for a, b in zip(after, before)))
check(f"traced memory: {grown}", grown < 20000)
base = resident()
rounds(3000)
check(f"memory of the process: {resident() - base}", resident() - base < 4 << 20 or os.environ.get("SANITIZED"))  # it keeps what is freed
check("torch is not imported", "torch" not in sys.modules)

# ---- blk.torch, with as much of torch as it uses, played by NumPy ----


class Array(np.ndarray):
    def detach(self):
        return self

    def contiguous(self):
        return np.ascontiguousarray(self)


class Operator:
    def __init__(self, name, run, mutates_args, schema):
        self.name, self.run, self.schema = name, run, schema

    def __call__(self, *inputs):
        return self.run(*inputs)

    def register_fake(self, fake):
        self.fake = fake

    def register_autograd(self, backward, setup_context):
        self.backward, self.save = backward, setup_context


class Context:
    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors


torch = type(sys)("torch")
torch.Tensor, torch.library = Array, type(sys)("torch.library")
torch.library.custom_op = Operator
sys.modules["torch"] = torch
a, g = normal(301).view(Array), normal(301).view(Array)
back = blk.torch.op("check::scale_backward", m.scale, "(Tensor g, Tensor x, float a, Tensor y) -> Tensor",
                    outputs=lambda g, x, a, y: np.full_like(g, np.nan), arguments=lambda dx, g, x, a, y: (dx, g, g.size, a))
op = blk.torch.op("check::scale", m.scale, "(Tensor x, float a) -> Tensor", outputs=lambda x, a: np.full_like(x, np.nan),
                  arguments=lambda y, x, a: {"y": y, "x": x, "n": x.size, "a": a}, backward=back, BLOCK=256)
result, context = op(a, 3.0), Context()
check("an operator", (result == a * np.float32(3)).all() and op.fake(a, 3.0).shape == a.shape)
op.save(context, (a, 3.0), result)
got = op.backward(context, g)
check("its gradients", len(got) == 2 and got[1] is None and (got[0] == g * np.float32(3)).all())
refused("another attribute of blk", AttributeError, "nope", lambda: blk.nope)

print(f"{passed} passed, {failed} failed")
sys.exit(failed != 0)
