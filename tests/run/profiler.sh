#!/bin/sh
# usage: profiler.sh BUILD      Ranges around launches, as a profiler that follows NVTX's protocol sees them.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
export BLK_CACHE_DIR="$dir/cache"
cat >tool.c <<'E'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef void function(void);
typedef struct { size_t bytes; int (*table)(int, function ****, unsigned *); } callbacks;
typedef struct { size_t bytes; uint32_t version, unused; void (*set)(uint32_t); } versions;
static void say(const char *a, const char *b)
{
	FILE *f = fopen(getenv("SEEN"), "a");
	if (!f) abort();
	fprintf(f, "%s %s\n", a, b);
	fclose(f);
}
static int push(const char *text) { say("begin", text); return 0; }
static int pop(void) { say("end", ""); return 0; }
int InitializeInjectionNvtx2(const void *(*get)(uint32_t))
{
	const callbacks *c = get(1);
	const versions *v = get(3);
	function ***table;
	unsigned size;
	if (get(2) || get(77) || !c || c->bytes < sizeof *c || !v || v->bytes < sizeof *v || v->version != 3) abort();
	v->set(3);
	if (c->table(2, &table, &size) || !c->table(1, NULL, NULL) || !c->table(1, &table, &size)) abort();
	if (size < 16 || table[0] || table[size]) abort();
	if (getenv("REFUSES")) return 0;
	*table[9] = (function *)push;
	if (!getenv("HALF")) *table[11] = (function *)pop;
	return 1;
}
E
if ! ${CC:-cc} -w -shared -fPIC -o tool.so tool.c; then
	skip 1
	finish
fi
cat >k.blk <<'E'
kernel add(y: *f32, n: i32, const BLOCK: i32 = 64, const T: type = f16) grid(cdiv(n, BLOCK)) options(num_warps = 2) {
	let i = program_id(0) * BLOCK + arange(0, BLOCK);
	store(y + i, (load(y + i, mask = i < n) + 1.0).to(T).to(f32), mask = i < n);
}
E
run() { # what is seen goes to ./seen
	: >seen
	status 0 "$*" env SEEN="$dir/seen" "$@" "$build/bin/blkrun" --device=cpu k.blk n=100 'y=f32[100]:ones'
	says '2, 2\|  2  2\|2  2' # the kernel ran, whoever watches
}
seen() { # lines
	printf '%s\n' "$@" >wanted
	cmp -s wanted seen && ok || { bad "$name: seen:"; cat seen; }
}
run NVTX_INJECTION64_PATH="$dir/tool.so"
seen 'begin add BLOCK=64 T=f16 num_warps=2 num_stages=3 grid=2,1,1' 'end '
# none, one that is not there, is no library, refuses, takes half: the program goes on, and nothing is pushed
run A=1
[ -s seen ] && bad "seen without a tool" || ok
echo text >text.so
for tool in "$dir/nothing.so" "$dir/text.so" tool.so ''; do
	run NVTX_INJECTION64_PATH="$tool"
	[ -s seen ] && bad "seen with '$tool'" || ok
done
run NVTX_INJECTION64_PATH="$dir/tool.so" REFUSES=1
[ -s seen ] && bad "seen by a tool that refuses" || ok
run NVTX_INJECTION64_PATH="$dir/tool.so" HALF=1
[ -s seen ] && bad "seen by half a tool" || ok
# a name that is longer than the room for it
long=$(printf 'B%0600d' 0)
sed "s/BLOCK/$long/g" k.blk >l.blk
mv l.blk k.blk
run NVTX_INJECTION64_PATH="$dir/tool.so"
grep -q "^begin add B0*$" seen && [ "$(wc -l <seen)" = 2 ] && ok || { bad "a long name"; cat seen; }
finish
