"""The console entry points: the package's own programs, in place of this process."""
import os
import sys


def _run(folder, name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), folder, name)
    os.execv(path, [path, *sys.argv[1:]])


def blkc():
    _run("bin", "blkc")


def blkrun():
    _run("bin", "blkrun")


def blk_lsp():
    _run("bin", "blk-lsp")


def blk_trial():
    _run("lib", "blk-trial")
