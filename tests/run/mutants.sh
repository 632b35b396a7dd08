#!/bin/sh
# usage: tests/run/mutants.sh BUILD     The mutants that tools/mutate makes of a file are those that are expected, each changes what
# the program prints as its text says, and tracing names those that a run could notice.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
prepare() { (cd "$root" && python3 tools/mutate/prepare.py "$@"); }
if ! command -v clang >/dev/null || ! command -v python3 >/dev/null; then
	skip 1
	finish
fi

cat >small.c <<'C'
#include <stdio.h>
#include <stdlib.h>
struct bits {
	unsigned low : 3;
};
#define TWICE(x) ((x) + (x))
static int lower(int a, int b)
{
	return a < b;
}
static int both(const int *p, int limit)
{
	return p && *p > limit;
}
static int choose(struct bits s)
{
	if (s.low == 3) return 1;
	return TWICE(2);
}
static int sum(int n)
{
	static const int start = 4 + 3;
	int t = start;
	for (int i = 0; i < n; i++) t += i;
	return t;
}
int main(void)
{
	int five = 5;
	printf("%d %d %d %d %d %d %d %d\n", lower(1, 2), lower(2, 2), both(NULL, 4), both(&five, 4), both(&five, 5),
		choose((struct bits){3}), choose((struct bits){2}), sum(4));
	return 0;
}
C
cat >expected <<'LIST'
9: a < b -> a <= b: 1 1 0 1 0 1 4 13
9: a < b -> a >= b: 0 1 0 1 0 1 4 13
13: *p > limit -> *p <= limit: 1 0 0 0 1 1 4 13
13: *p > limit -> *p >= limit: 1 0 0 1 1 1 4 13
13: p && *p > limit -> *p > limit: died
13: p && *p > limit -> p || *p > limit: died
13: p && *p > limit -> p: 1 0 0 1 1 1 4 13
17: 3 -> (3 + 1): 1 0 0 1 0 4 4 13
17: 3 -> (3 - 1): 1 0 0 1 0 4 1 13
17: s.low == 3 -> false: 1 0 0 1 0 4 4 13
17: s.low == 3 -> s.low != 3: 1 0 0 1 0 4 1 13
17: s.low == 3 -> true: 1 0 0 1 0 1 1 13
24: 0 -> (0 + 1): 1 0 0 1 0 1 4 13
24: i < n -> false: 1 0 0 1 0 1 4 7
24: i < n -> i <= n: 1 0 0 1 0 1 4 17
24: i < n -> i >= n: 1 0 0 1 0 1 4 7
24: t += i -> t -= i: 1 0 0 1 0 1 4 1
LIST
name="the mutants of a file"
prepare --list "$dir/small.c" -- -I. >listed 2>"$dir/err"
prepare --print "$dir/small.c" -- -I. >changed.c 2>>"$dir/err"
cc -w -o changed changed.c 2>>"$dir/err"
result $? "the changed file compiles"
: >made
n=0
while IFS= read -r mutant; do
	n=$((n + 1))
	printed=$( (BLK_MUTANT=$n ./changed) 2>/dev/null) || printed=died
	echo "${mutant#*small.c:}: $printed" >>made
done <listed
LC_ALL=C sort -t: -k1,1n -k2 made >sorted
why=$dir/difference
diff expected sorted >"$why"
result $? "the mutants of a file, and what each prints"
[ "$(./changed)" = "1 0 0 1 0 1 4 13" ]
result $? "none is chosen: nothing is changed"

# Of the mutants that change nothing the runs speak: only `0 -> (0 + 1)` prints the same, because it adds 0 later.
BLK_MUTANT=trace BLK_MUTANT_TRACE=$dir/trace ./changed >/dev/null
[ "$(sort -n trace | tr '\n' ' ')" = "$(seq 17 | tr '\n' ' ')" ]
result $? "tracing finds what could be noticed"
cat >quiet.c <<'C'
static int lower(int a, int b)
{
	return a < b && b > 0;
}
int main(void)
{
	return lower(1, 2) + lower(3, 2);
}
C
prepare --list "$dir/quiet.c" -- -I. >listed
prepare --print "$dir/quiet.c" -- -I. >quiet_changed.c
cc -w -o quiet quiet_changed.c
BLK_MUTANT=trace BLK_MUTANT_TRACE=$dir/trace_quiet ./quiet
while read -r n; do sed -n "${n}s/.*: //p" listed; done <trace_quiet | sort >noticed
cat >wanted <<'LIST'
0 -> (0 + 1)
a < b && b > 0 -> a < b || b > 0
a < b && b > 0 -> b > 0
a < b -> a >= b
b > 0 -> b <= 0
LIST
diff wanted noticed >"$why"
result $? "a value that no run changes is not traced: <= for < where nothing is equal, a right operand that always holds"

# A rule leaves mutants out by file, function and change.
grep -v '^#' "$root/tools/mutate/equivalent.txt" | awk -F '\t' 'NF && NF != 3 { bad = 1 } END { exit bad }'
result $? "each rule of equivalent.txt has three patterns"
finish
