#!/bin/sh
# usage: tests/run/accuracy.sh BUILD     Elementary functions against MPFR, some thousand arguments each: within what docs/language.md states.
. "$(dirname "$0")/../lib.sh"
build=$1
suite "$build/accuracy/functions" --device=cpu
suite "$build/accuracy/functions" --device=sim .f32 .f64
finish
