"""Kernels of the blk language on tensors of any framework.

    import blk, numpy
    k = blk.load("softmax.blk")
    k.softmax_rows(y, x, stride, rows, n)

Tensors come by DLPack or the buffer protocol, without copies; the device is where they are.  docs/python.md has the rules.
"""
from ._blk import ArgumentError, Error, Kernel, Module, Note, __version__, compile, load, strided

__all__ = ["ArgumentError", "Error", "Kernel", "Module", "Note", "compile", "load", "strided"]


def __getattr__(name):
    # torch is imported when blk.torch is asked for, and not before.
    if name == "torch":
        import importlib

        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'blk' has no attribute {name!r}")
