"""The rows of peers.py that the host's clock times: compiling, a process's start, the cost of a launch, tuning."""
import ctypes, os, re, shutil, statistics, subprocess, sys, tempfile, time

import torch, triton

import peers_triton as T

TRITON_ADD = """
import time; t = time.perf_counter()
import torch, triton, peers_triton as T
torch.cuda.init(); x = torch.rand(1 << 20, device="cuda"); torch.cuda.synchronize()
imported = (time.perf_counter() - t) * 1e3; t = time.perf_counter()
T.add[(1024,)](x, x, x, 1 << 20, BLOCK=1024); torch.cuda.synchronize()
print("imports and context %.1f ms, then the first result %.1f ms" % (imported, (time.perf_counter() - t) * 1e3))
"""


def sections(p):
    """p: the module peers.py, for its clock, its record and libblk."""
    program = lambda name: os.path.join(p.BUILD, "bench", name)

    def output(command, env=None, **more):
        r = subprocess.run(command, env=dict(os.environ, **(env or {})), capture_output=True, text=True, timeout=120, **more)
        if r.returncode != 0:
            raise RuntimeError(f"{command[0]}: status {r.returncode}: {(r.stderr or r.stdout)[-300:]}")
        return r.stdout

    def note(section, work, who, ms, ratio=None, variant=""):
        p.say(f"{work:44s} {who:16s} {ms:10.3f} ms" + (f"  ratio {ratio:.3f}" if ratio else "") + f"  {variant}")
        p.record(section, work, who, variant, ms=ms, ratio=ratio)

    def guarded(work, f):
        try:
            return f()
        except Exception as e:
            p.say(f"  {work}: {p.error_text(e)}")
            p.record("host", work, "", note=p.error_text(e))

    def median_of(f, n):
        times = []
        for i in range(n):
            t = time.perf_counter()
            f(i)
            times.append((time.perf_counter() - t) * 1e3)
        return statistics.median(times)

    # What is compiled: (name, our file, kernel, defines, Triton's compile with the i-th variant of num_warps)
    def compiled():
        f = p.fresh(1 << 12)
        h = f.half()
        warm = lambda k, *a, **o: k.warmup(*a, grid=(1,), **o)
        yield ("add", "vector_add/vector_add.blk", "add", {"BLOCK": "1024"}, [f, f, f, 4096],
               lambda w: warm(T.add, f, f, f, 4096, BLOCK=4096, num_warps=w))
        yield ("softmax", "softmax/softmax.blk", "softmax_rows", {"BLOCK": "1024"}, [f, f, 1024, 4, 1024],
               lambda w: warm(T.softmax_rows, f, f, 4, 1024, BLOCK=2048, num_warps=w, num_stages=1))
        yield ("layer norm fwd", "layer_norm/layer_norm.blk", "layer_norm_forward", {"T": "f16", "BLOCK": "4096", "num_warps": "8"}, [h, h, h, h, f, f, 4096, 1, 4096, 1e-5],
               lambda w: warm(T.norm_forward, h, h, h, h, f, f, 1, 4096, 1e-5, BLOCK=4096, num_warps=w, num_stages=1))

        c = p.fresh(1 << 16).half()
        yield ("matmul", "matmul/matmul.blk", "matmul", {"BM": "128", "BN": "256", "BK": "64", "num_warps": "8", "num_stages": "3"}, [c, c, c, 256, 256, 256],
               lambda w: warm(T.matmul, c, c, c, 256, 256, 256, BM=128, BN=256, BK=64, GROUP=w, num_warps=8, num_stages=3))

    # libblkc in this process: source text to PTX, as a program does whose compiler is warm.
    def compiler():
        word, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p

        class Define(ctypes.Structure):
            _fields_ = [("name", text), ("value", text)]

        class Promise(ctypes.Structure):
            _fields_ = [("name", text), ("divisible", ctypes.c_uint32), ("is_one", ctypes.c_int)]

        class Request(ctypes.Structure):  # the head of blkc.h's blkc_request; `size` tells how much of it there is
            _fields_ = [("size", size), ("name", text), ("text", text), ("text_bytes", size), ("target", text), ("kernel", text),
                        ("defines", ctypes.POINTER(Define)), ("ndefines", size), ("promises", ctypes.POINTER(Promise)),
                        ("npromises", size), ("include_paths", word), ("ninclude_paths", size), ("emit", ctypes.c_uint)]

        library = ctypes.CDLL(os.path.join(p.BUILD, "lib", "libblkc.so.1"))
        library.blkc_compile.restype = ctypes.POINTER(ctypes.c_int)  # blkc_result begins with its status
        library.blkc_compile.argtypes = [ctypes.POINTER(Request)]
        library.blkc_result_free.argtypes = [ctypes.POINTER(ctypes.c_int)]

        def to_ptx(path, kernel, target, defines, promises):
            d = (Define * len(defines))(*[(k.encode(), v.encode()) for k, v in defines.items()])
            m = (Promise * len(promises))(*[(n.encode(), int(by), 0) for n, by in (x.split("%") for x in promises)])
            q = Request(ctypes.sizeof(Request), os.path.join(p.EXAMPLES, path).encode(), None, 0, target.encode(), kernel.encode(),
                        d, len(d), m, len(m), None, 0, 1 << (7 if p.DRY else 5))
            result = library.blkc_compile(ctypes.byref(q))
            status = result[0]
            library.blkc_result_free(result)
            if status:
                raise RuntimeError(f"{path}: status {status}")

        return to_ptx

    def section_compile():
        to_ptx = compiler()
        target = "cpu" if p.DRY else "sm_90a" if torch.cuda.get_device_capability() == (9, 0) else "native"
        blkc = os.path.join(p.BUILD, "bin", "blkc")
        out = os.path.join(p.SCRATCH.name, "out")
        for name, path, kernel, defines, args, peer in compiled():
            flags = [blkc, os.path.join(p.EXAMPLES, path), f"--kernel={kernel}", f"--target={target}", "-o", out]
            for k, v in defines.items():
                flags += ["-D", f"{k}={v}"]
            promises = {"add": "x%16,y%16,z%16,n%16", "softmax": "x%16,y%16,stride%16,n%16", "matmul": "c%16,a%16,b%16,M%16,N%16,K%16"}.get(name, "x%16,y%16,w%16,b%16,stride%16,n%16")
            extra = [] if p.DRY else ["--specialize=" + promises]
            cold = dict(BLK_CACHE="off")
            in_process = lambda i: p.Kernel(p.BLK, path, kernel, args, defines, mark=f"{os.getpid()} {i}").info()
            figures = {}
            if not p.DRY:
                peer(1)  # pays Triton's own start
                figures["triton"] = guarded(name, lambda: median_of(lambda i: peer((2, 8, 16)[i]), 3))
            figures["blkc to PTX, whole process"] = guarded(name, lambda: median_of(lambda i: output(flags + extra, cold), 7))
            if not p.DRY and shutil.which("ptxas"):
                figures["blkc and ptxas to cubin, whole process"] = guarded(name, lambda: median_of(lambda i: output(flags + extra + ["--emit=cubin"], cold), 5))
            warm = lambda i: to_ptx(path, kernel, target, defines, [] if p.DRY else promises.split(","))
            if guarded(name, lambda: warm(-1) or True):
                figures["libblkc to PTX, in process"] = guarded(name, lambda: median_of(warm, 7))
            in_process(-1)
            figures["libblk to loaded code, in process"] = guarded(name, lambda: median_of(in_process, 5))
            theirs = figures.get("triton")
            for who, ms in figures.items():
                if ms is not None:
                    note("compile", f"compile {name}", who, ms, theirs / ms if theirs and who != "triton" else None)

    def section_start():
        folder = tempfile.mkdtemp(dir=p.SCRATCH.name)
        env = dict(BLK_CACHE_DIR=os.path.join(folder, "blk"), CUDA_CACHE_PATH=os.path.join(folder, "cuda"), CUDA_CACHE_DISABLE="0",
                   TRITON_CACHE_DIR=os.path.join(folder, "triton"), PYTHONPATH=p.HERE, TRITON_INTERPRET="0")
        source = os.path.join(p.EXAMPLES, "vector_add", "vector_add.blk")
        for label in ("cold cache", "warm cache"):
            work = f"process start to first result, add, {label}"

            def ours():
                best = None
                for _ in range(1 if label[0] == "c" else 3):
                    t = time.perf_counter()
                    text = output([program("first"), "--device=" + ("cpu" if p.DRY else "cuda"), source], env).strip()
                    ms = (time.perf_counter() - t) * 1e3
                    best = (ms, text) if best is None or ms < best[0] else best
                note("start", work, "blk", best[0], variant=best[1])

            def theirs():
                t = time.perf_counter()
                text = output([sys.executable, "-c", TRITON_ADD], env).strip()
                note("start", work, "triton", (time.perf_counter() - t) * 1e3, variant=text)

            guarded(work, ours)
            if not p.DRY:
                guarded(work, theirs)

    def launches(f):
        for _ in range(50):
            f()
        p.synchronize()
        rounds = []
        for _ in range(3 if p.DRY else 15):
            t = time.perf_counter()
            for _ in range(20 if p.DRY else 300):
                f()
            rounds.append((time.perf_counter() - t) / (20 if p.DRY else 300) * 1e3)
            p.synchronize()
        return statistics.median(rounds)

    def section_launch():
        x = p.fresh(1024)
        out = p.poisoned(1024)
        work = "host cost of one launch, add"
        if not p.DRY:
            text = output([program("launch"), os.path.join(p.EXAMPLES, "vector_add", "vector_add.blk")])
            a, b = re.search(r"blk_launch ([0-9.]+) us, cuLaunchKernel ([0-9.]+) us", text).groups()
            note("launch", work, "blk", float(a) * 1e-3, float(b) / float(a), "in C; ratio to cuLaunchKernel")
            note("launch", work, "cuLaunchKernel", float(b) * 1e-3, variant="in C")
        note("launch", work, "torch", launches(lambda: torch.add(x, x, out=out)), variant="torch.add")
        note("launch", work, "triton", launches(lambda: T.add[(1,)](out, x, x, 1024, BLOCK=1024)), variant="add[grid](...)")

    def section_tune():
        work = "tuning 24 layer norm configurations"
        env = dict(BLK_CACHE_DIR=tempfile.mkdtemp(dir=p.SCRATCH.name))
        command = [program("tune"), "--device=cpu", "--quick"] if p.DRY else [program("tune"), "--device=cuda"]
        source = os.path.join(p.HERE, "tune.blk")
        for label in ("cold", "warm"):
            text = output(command + [source], env).strip()
            ms = float(re.search(r"cold in ([0-9.]+) ms", text).group(1))
            note("tune", f"{work}, {label}", "blk", ms, variant=text)
        if p.DRY:
            return
        m = n = 4096
        x, w, b = p.fresh(m, n, dtype=torch.float16), p.fresh(n, dtype=torch.float16), p.fresh(n, dtype=torch.float16)
        y = p.poisoned(m, n, dtype=torch.float16)
        configs = [triton.Config({"ROWS": r, "FIRST": f}, num_warps=k) for r in (1, 2, 4) for k in (2, 4, 8, 16) for f in (False, True)]
        tuned = triton.autotune(configs, key=["n"])(T.norm_tile)
        t = time.perf_counter()
        tuned[lambda meta: (triton.cdiv(m, meta["ROWS"]),)](y, x, w, b, m, n, 1e-5, BLOCK=4096)
        p.synchronize()
        note("tune", f"{work}, cold", "triton", (time.perf_counter() - t) * 1e3, variant=str(tuned.best_config))

    return dict(launch=section_launch, compile=section_compile, start=section_start, tune=section_tune)
