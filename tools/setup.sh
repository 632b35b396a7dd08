#!/bin/sh
# usage: setup.sh build|test     Installs what is missing from the distribution (as root), or says what to install.
# Looks for what the build calls, not for package names, so any machine that has the tools passes at once.
set -eu
stamp=${BUILD:-build}/.setup-$1
[ -n "$(find "$stamp" -newer "$0" 2>/dev/null)" ] && exit 0
config=${LLVM_CONFIG:-llvm-config-22}
missing=
wished=
need() { missing="$missing $1"; }
wish() { wished="$wished $1"; }
have() { command -v "$1" >/dev/null 2>&1; }
header() { echo "#include <$1>" | ${CC:-cc} -E -xc - >/dev/null 2>&1; }

# The package of libFuzzer: with the version of the clang that is there, or that would come.
fuzzer() {
	version=$({ clang --version 2>/dev/null || apt-cache depends clang 2>/dev/null; } | sed -n 's/.*clang[ a-z-]*\([0-9][0-9]*\).*/\1/p' | head -1)
	echo "libclang-rt-${version:-14}-dev"
}

have "${CC:-cc}" || need gcc
have "${CXX:-c++}" || need g++
have make || need make
header stdio.h || need libc6-dev
have re2c || need re2c
have lemon || need lemon
have pkg-config || need pkg-config
header xxhash.h || need libxxhash-dev
header zlib.h || need zlib1g-dev
header zstd.h || need libzstd-dev
header jansson.h || need libjansson-dev
have "$config" || { [ -n "${LLVM_CONFIG:-}" ] && { echo "LLVM_CONFIG=$config is not there" >&2; exit 1; }; need llvm-22-dev; }
if [ "$1" = test ]; then
	header cmocka.h || need libcmocka-dev
	header mpfr.h || need libmpfr-dev
	have python3 || need python3
	[ -n "$(sh "$(dirname "$0")/python.sh" --tests)" ] || { need python3-dev && need python3-numpy; }
	have gdb || need gdb
	have clang || need clang
	echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n < 0; }' |
		clang -xc - -fsanitize=fuzzer,address,undefined -o /dev/null 2>/dev/null || need "$(fuzzer)"
	have clang-format || need clang-format
	# What some tests are skipped without: `make deb`, find_package(blk), blk-lsp in an editor, pages that are looked at (a
	# plain package in Debian only).
	have dpkg-shlibdeps || wish dpkg-dev
	have cmake || wish cmake
	have nvim || wish neovim
	have chromium || ! grep -q '^ID=debian' /etc/os-release || wish chromium
fi
may_install() { [ "$(id -u)" = 0 ] && have apt-get; }
install() { # packages
	echo "installing: $*"
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}
if [ -n "$missing$wished" ] && may_install; then apt-get update -qq || true; fi
if [ -n "$missing" ]; then
	if may_install; then
		# shellcheck disable=SC2086
		install $missing || {
			echo "could not install:$missing" >&2
			exit 1
		}
	else
		echo "Please install (Debian's names):$missing" >&2
		echo "  sudo apt-get install --no-install-recommends$missing" >&2
		exit 1
	fi
fi
if [ -n "$wished" ] && may_install; then
	# shellcheck disable=SC2086
	install $wished || echo "could not install$wished: tests that use them are skipped" >&2
fi
version=$("$config" --version)
case ${version%%.*} in
	2[2-9] | [3-9][0-9]) ;;
	*) echo "LLVM $version is too old: blk needs 22 or newer (older ones ignore kernel attributes). LLVM_CONFIG=/path/to/llvm-config names another." >&2; exit 1 ;;
esac
mkdir -p "$(dirname "$stamp")"
: >"$stamp"
