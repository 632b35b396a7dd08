#!/bin/sh
# usage: python.sh [--tests]              Prints a Python 3.9 or newer with its headers; of several one that has NumPy, which --tests
#                                         demands.  Exit status 1 where there is none.
#        python.sh --include PYTHON       Prints the folder of its headers.
include() { "$1" -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null; }
if [ "${1:-}" = --include ]; then
	include "$2"
	exit
fi
best=
for p in ${PYTHON:-} python3 /usr/bin/python3; do
	p=$(command -v "$p") && [ -f "$(include "$p")/Python.h" ] && "$p" -c 'import sys; sys.exit(sys.version_info < (3, 9))' || continue
	[ -n "$best" ] || [ "${1:-}" = --tests ] || best=$p
	"$p" -c 'import numpy' 2>/dev/null || continue
	best=$p
	break
done
[ -n "$best" ] && echo "$best"
