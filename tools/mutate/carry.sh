#!/bin/sh
# usage: carry.sh FOLDER     FOLDER.tar.xz: what run.py needs of a built FOLDER on another x86-64 Linux with python3 and glibc 2.36
# or newer: unpack it there, run `python3 FOLDER/tree/tools/mutate/run.py FOLDER --jobs=16 --seconds=500`, and bring
# FOLDER/verdicts.jsonl back.
set -eu
folder=$1
mkdir -p "$folder/lib"
for test in "$folder"/tree/build/tests/test_*; do
	case $test in *.o | *.d) continue ;; esac
	ldd "$test" | sed -n 's/.*=> \([^ ]*libcmocka[^ ]*\).*/\1/p' | head -1 | xargs -r -I{} cp -L {} "$folder/lib/"
	break
done
find "$folder/tree/build/tests" "$folder/tree/build/lib" "$folder/tree/build/bin" "$folder/tree/build/device" -type f ! -name '*.[do]' -exec strip {} + 2>/dev/null || true
tar -cJf "$folder.tar.xz" --exclude='*.o' --exclude='*.d' --exclude=build/gen --exclude=build/bench --exclude=build/fuzz-programs "$folder"
echo "$folder.tar.xz: $(du -m "$folder.tar.xz" | cut -f1) MB"
