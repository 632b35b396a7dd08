"""blk.h's structs for ctypes: what peers.py hands to libblk and gets from it.  tests/run/bench.sh holds their sizes against the header."""
import ctypes


class Arg(ctypes.Structure):  # blk_arg; the numbers are blk_type's
    _fields_ = [("bits", ctypes.c_uint64), ("type", ctypes.c_uint32)]


class Grid(ctypes.Structure):  # blk_grid
    _fields_ = [("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32)]


class Define(ctypes.Structure):  # blk_define
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p)]


class Info(ctypes.Structure):  # blk_info
    _fields_ = [(n, ctypes.c_uint32) for n in ("num_warps", "threads", "registers", "spill_bytes", "shared_bytes", "programs_per_sm", "num_sms")]
    _fields_ += [("occupancy", ctypes.c_float)] + [(n, ctypes.c_char_p) for n in ("target", "ptx", "signature")] + [("from_cache", ctypes.c_int), ("tensor_maps", ctypes.c_uint32)]
    _fields_ += [(n, ctypes.c_char * 256) for n in ("promises", "fallback")] + [("cluster", ctypes.c_uint32), ("configuration", ctypes.c_char_p)]


class Trial(ctypes.Structure):  # blk_tune_trial
    _fields_ = [("configuration", ctypes.c_char_p), ("verdict", ctypes.c_int), ("ms", ctypes.c_double), ("reason", ctypes.c_char_p), ("chosen", ctypes.c_int), ("predicted", ctypes.c_double)]


VISIT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Trial))


class TuneOptions(ctypes.Structure):  # blk_tune_options
    _fields_ = [("progress", ctypes.c_void_p), ("visit", VISIT), ("context", ctypes.c_void_p), ("again", ctypes.c_int), ("isolated", ctypes.c_int)]


STRUCTS = {"blk_arg": Arg, "blk_grid": Grid, "blk_define": Define, "blk_info": Info, "blk_tune_trial": Trial, "blk_tune_options": TuneOptions}
if __name__ == "__main__":  # a C program that does not compile where a size differs
    print("#include <blk.h>")
    for name, struct in STRUCTS.items():
        print(f'_Static_assert(sizeof({name}) == {ctypes.sizeof(struct)}, "{name}");')
