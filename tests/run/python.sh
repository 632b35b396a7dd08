#!/bin/sh
# usage: python.sh BUILD     The Python package in place, against NumPy; a wheel's files, bytes and programs, installed into a new
# environment; TVM's FFI, torch and JAX where they are installed.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
python=$(cd "$root" && sh tools/python.sh --tests)
if [ -z "$python" ] || [ ! -e "$build/python/blk/_blk.abi3.so" ]; then
	echo "skipped: there is no Python 3.9 with its headers and NumPy, or the package was not built"
	skip 1
	finish
fi
# A sanitizer's runtime must come before Python, which has leaks of its own.
sanitizer=$(ldd "$build/lib/libblk.so" | sed -n 's/.*lib\(asan\|tsan\)\.so.* => \([^ ]*\) .*/\2/p')
in_place() {
	LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS:-} PYTHONPATH=$build/python PYTHONDONTWRITEBYTECODE=1 \
		timeout 300 "$python" -X faulthandler "$@"
}
SANITIZED=$sanitizer suite in_place "$root/tests/python/check.py" "$root" "$build/bin/blkc"
[ -z "$sanitizer" ] || finish

# Kernels for TVM's FFI: what is written compiles without a warning; where that package is, it loads and computes.
blkc=$build/bin/blkc
status 0 "--emit=tvm-ffi" "$blkc" "$root/examples/softmax/softmax.blk" --emit=tvm-ffi -o s.c
status 0 "what it writes, compiled" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$root/runtime" s.c -L"$build/lib" -lblk -Wl,-rpath,"$build/lib" -o s.so
[ "$(nm -D --defined-only s.so | grep -c ' T __tvm_ffi_softmax_')" = 5 ] && ok || bad "its functions: $(nm -D --defined-only s.so)"
printf 'import "i.blk";\nkernel imports(y: *bf16, a: f32, const B: i32 = 8) grid(1) { store(y + arange(0, B), (a * two()).to(bf16)); } // "quoted" \\ ??=\n' >k.blk
echo 'fn two() { return 2.0; }' >i.blk
status 0 "defines, imports and a package beside" "$blkc" k.blk -D B=16 --emit=tvm-ffi,package,header --target=cpu
status 0 "what it writes, compiled" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$root/runtime" k.tvm_ffi.c -L"$build/lib" -lblk -Wl,-rpath,"$build/lib" -o k.so
grep -q '{"B", "16"}' k.tvm_ffi.c && grep -q "source_name\[\] = \"$dir/k.blk\"" k.tvm_ffi.c
result $? "its defines and the place of its imports"
status 0 "of standard input" sh -c '"$1" - --emit=tvm-ffi -o - <i.blk' sh "$blkc"
if "$python" -c "import tvm_ffi" 2>/dev/null; then
	suite in_place "$root/tests/python/tvm_ffi_check.py" "$dir/s.so"
else
	echo "skipped: there is no apache-tvm-ffi"
	skip 1
fi

# The frameworks that are installed: PYTHON=.../bin/python names an environment that has them.
status 0 "--emit=tvm-ffi for JAX" "$blkc" "$root/tests/python/jax_check.blk" --emit=tvm-ffi -o j.c
status 0 "what it writes, compiled" "${CC:-cc}" -std=c11 -Wall -Wextra -Werror -shared -fPIC -I"$root/runtime" j.c -L"$build/lib" -lblk -Wl,-rpath,"$build/lib" -o j.so
for framework in torch jax; do
	if "$python" -c "import $framework" 2>/dev/null; then
		suite in_place "$root/tests/python/${framework}_check.py" "$root" $([ "$framework" = torch ] || echo "$dir/j.so")
	else
		echo "skipped: there is no $framework"
		skip 1
	fi
done

# The wheel: the same bytes twice, every file in it in its record, and a stranger's environment runs it.
version=$(sed -n 's/^VERSION := //p' "$root/Makefile")
wheel=$(cd "$root" && "$python" tools/wheel.py "$build" "$version" "$dir/dist")
result $? "tools/wheel.py"
again=$(cd "$root" && "$python" tools/wheel.py "$build" "$version" "$dir/again")
cmp -s "$wheel" "$again"
result $? "the wheel's bytes differ"
case ${wheel##*/} in blk-"$version"-cp39-abi3-manylinux_2_*_x86_64.whl) ok ;; *) bad "the wheel's name: $wheel" ;; esac
"$python" - "$wheel" "$(sed -n 's/^ABI := \([0-9]*\).*/\1/p' "$root/Makefile")" <<'P' >record 2>&1
import base64, csv, hashlib, io, sys, zipfile
z, abi = zipfile.ZipFile(sys.argv[1]), sys.argv[2]
names = z.namelist()
rows = {r[0]: r[1] for r in csv.reader(io.StringIO(z.read([n for n in names if n.endswith("/RECORD")][0]).decode()))}
assert sorted(rows) == sorted(names), set(rows) ^ set(names)
for n, d in rows.items():
    assert not d or d == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(z.read(n)).digest()).rstrip(b"=").decode(), n
for n in ("_blk.abi3.so", "__init__.py", "__init__.pyi", "py.typed", "torch.py", "lib/libblk.so.%s" % abi, "lib/libblkc.so.%s" % abi, "lib/blk-trial", "bin/blkc", "bin/blkrun", "bin/blk-lsp"):
    assert "blk/" + n in names, n
P
why=record result $? "the wheel's record"
cat >use.py <<'P'
import array, blk
m = blk.compile("kernel twice(y: *f32, n: i32, const B: i32 = 64) grid(cdiv(n, B)) { let i = program_id(0) * B + arange(0, B); store(y + i, load(y + i, mask = i < n) * 2.0, mask = i < n); }")
y = array.array("f", range(77))
m.twice(y, 77)
assert list(y) == [2.0 * i for i in range(77)] and "twice" in m.twice.explain()
P
if "$python" -m venv --without-pip env >/dev/null 2>&1 && "$python" -m pip --version >/dev/null 2>&1; then
	status 0 "pip install" "$python" -m pip --disable-pip-version-check --python env/bin/python install --no-index --no-deps -q "$wheel"
	status 0 "the installed package" env/bin/python use.py
	echo 'kernel one(y: *f32) grid(1) { store(y, 1.0); }' >one.blk
	status 0 "the installed blkc" env/bin/blkc one.blk -o one.ptx
	status 0 "the installed blkrun" env/bin/blkrun one.blk 'y=f32[1]' --device=cpu
	status 2 "the installed blk-trial" env/bin/blk-trial
else
	echo "skipped: this Python has no pip or no venv, so the wheel is unpacked"
	skip 4
	"$python" -m zipfile -e "$wheel" unpacked
	status 0 "the unpacked package" env PYTHONPATH="$dir/unpacked" "$python" use.py
fi
finish
