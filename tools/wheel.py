#!/usr/bin/env python3
"""Writes blk-VERSION-cp39-abi3-manylinux_2_NN_x86_64.whl from a build: the package with libblk, the compiler and its programs.

usage: wheel.py BUILD VERSION [FOLDER]     FOLDER, by default BUILD/dist, gets the wheel; its path is printed.

NN is the newest glibc that a file asks for.  Same files, same bytes: names are sorted, times are 1980's.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

MOST = 60 << 20  # bytes
EXECUTABLE, PLAIN = 0o100755, 0o100644
SUMMARY = "Block-level GPU kernels: a small language, its compiler and its runtime"


def built(build):
    """{name in the wheel: path}"""
    package = os.path.join(build, "python", "blk")
    files = {f"blk/{n}": os.path.join(package, n) for n in sorted(os.listdir(package)) if n.endswith((".py", ".pyi", ".so", ".typed"))}
    libraries = sorted(n for n in os.listdir(os.path.join(build, "lib")) if re.fullmatch(r"libblkc?\.so\.\d+", n))
    for folder, names in ("lib", [*libraries, "blk-trial"]), ("bin", ["blkc", "blkrun", "blk-lsp"]):
        files.update({f"blk/{folder}/{n}": os.path.join(build, folder, n) for n in names})
    for path in "runtime/blk.h", "runtime/blk.hpp", "compiler/blkc.h":
        files["blk/include/" + os.path.basename(path)] = path
    return files


def read(path, scratch):
    """A file's bytes, without symbols where it is ELF, and whether it is."""
    data = open(path, "rb").read()
    if data[:4] != b"\x7fELF":
        return data, False
    copy = os.path.join(scratch, os.path.basename(path))
    shutil.copyfile(path, copy)
    subprocess.run(["strip", "--strip-unneeded", copy], check=True)
    return open(copy, "rb").read(), True


def metadata(version, tag):
    readme = open("docs/python.md", encoding="utf-8").read()
    meta = (f"Metadata-Version: 2.1\nName: blk\nVersion: {version}\nSummary: {SUMMARY}\nLicense: Apache-2.0 WITH LLVM-exception\n"
            f"Requires-Python: >=3.9\nDescription-Content-Type: text/markdown\n\n{readme}")
    return {
        "METADATA": meta.encode(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: blk\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        "entry_points.txt": b"[console_scripts]\nblkc = blk._tools:blkc\nblkrun = blk._tools:blkrun\nblk-lsp = blk._tools:blk_lsp\nblk-trial = blk._tools:blk_trial\n",
        "LICENSE": open("LICENSE", "rb").read(),
    }


def main():
    build, version = sys.argv[1:3]
    folder = sys.argv[3] if len(sys.argv) > 3 else os.path.join(build, "dist")
    contents, glibc = {}, 17
    with tempfile.TemporaryDirectory() as scratch:
        for name, path in built(build).items():
            data, is_elf = read(path, scratch)
            contents[name] = data, EXECUTABLE if is_elf and ".so" not in name else PLAIN
            if is_elf:
                glibc = max([glibc, *(int(m) for m in re.findall(rb"\0GLIBC_2\.(\d+)", data))])
    tag = f"cp39-abi3-manylinux_2_{glibc}_x86_64"
    info = f"blk-{version}.dist-info"
    contents.update({f"{info}/{n}": (data, PLAIN) for n, data in metadata(version, tag).items()})
    record = [f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(d).digest()).rstrip(b'=').decode()},{len(d)}\n"
              for n, (d, _) in sorted(contents.items())]
    contents[f"{info}/RECORD"] = "".join([*record, f"{info}/RECORD,,\n"]).encode(), PLAIN

    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"blk-{version}-{tag}.whl")
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, (data, mode) in sorted(contents.items(), key=lambda c: (c[0].startswith(info), c[0])):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr, entry.compress_type, entry.create_system = mode << 16, zipfile.ZIP_DEFLATED, 3
            out.writestr(entry, data)
    os.replace(path + ".new", path)
    print(path)
    size = os.path.getsize(path)
    if size > MOST:
        sys.exit(f"{path}: {size >> 20} MB, more than {MOST >> 20}")


main()
