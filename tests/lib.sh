# What the test scripts share; each begins with `. "$(dirname "$0")/../lib.sh"` and ends with `finish`.
# In: nothing but functions and the counts.  Out: the last line, "N passed, M failed[, K skipped]", that tests/run.sh reads.
# The idea: a test is a command whose exit status and words are compared; every comparison counts as one test.
passed=0 failed=0 skipped=0 why=

# BUILD: from here on $root is the repository, $build an absolute path, and the script stands in a folder of its own, $dir, which goes away.
enter_scratch() {
	root=$PWD
	case $1 in /*) build=$1 ;; *) build=$root/$1 ;; esac
	dir=$(mktemp -d) || exit 2
	trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
	cd "$dir" || exit 2
}
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "FAILED: $*"; }
skip() { skipped=$((skipped + $1)); }
result() { # exit-status what: 0 passes; $why names a file that says more of a failure
	if [ "$1" = 0 ]; then ok; else
		bad "$2"
		[ -z "$why" ] || sed 's/^/    /' "$why" | head -20
	fi
}
status() { # wanted name command...: the exit status; what the command says is kept in $dir/out and $dir/err
	wanted=$1 name=$2
	shift 2
	timeout 120 "$@" >"$dir/out" 2>"$dir/err"
	got=$?
	[ "$got" = "$wanted" ] && ok || { bad "$name: exit status $got, not $wanted"; cat "$dir/err"; }
}
says() { grep -q -- "$1" "$dir/out" "$dir/err" && ok || { bad "$name: no '$1' in:"; cat "$dir/out" "$dir/err"; }; }
says_text() { grep -qF -- "$1" "$dir/out" "$dir/err" && ok || { bad "$name: no '$1' in:"; cat "$dir/out" "$dir/err"; }; }
silent() { grep -qF -- "$1" "$dir/out" "$dir/err" && { bad "$name: '$1' in:"; cat "$dir/out" "$dir/err"; } || ok; }
suite() { # command...: a program that counts its own tests; one that dies has failed one
	out=$("$@" 2>&1)
	got=$?
	echo "$out"
	p=$(echo "$out" | sed -n 's/^\([0-9]*\) passed, .*/\1/p' | tail -1)
	f=$(echo "$out" | sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' | tail -1)
	passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1}))
	[ "$got" = 0 ] || [ "${f:-1}" != 0 ] || failed=$((failed + 1))
}
npy() { # name bytes numbers...: a vector of little-endian integers
	npy=$1 bytes=$2
	shift 2
	{
		printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<i$bytes', 'fortran_order': False, 'shape': ($#,), }"
		for v in "$@"; do
			# shellcheck disable=SC2059
			for k in $(seq "$bytes"); do printf "\\$(printf %03o $((v & 255)))" && v=$((v >> 8)); done
		done
	} >"$npy"
}
have_gpu() { ls /dev/nvidia[0-9]* >/dev/null 2>&1; }
finish() {
	echo "$passed passed, $failed failed$([ $skipped = 0 ] || echo ", $skipped skipped")"
	[ "$failed" = 0 ]
	exit
}
