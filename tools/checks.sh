#!/bin/sh
# usage: tools/checks.sh BUILD >docs/checks.md     Kernels with a fault each, and what the simulator says of them.
bin=$(cd "$1/bin" && pwd) || exit 2
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
cp -r "$(dirname "$0")/../examples/." "$dir" && cd "$dir" || exit 2
# one thread of the host, so that of two programs that clash the same one comes second
export BLK_CACHE=off BLK_CPU_THREADS=1

commands() { # SECTION      its commands: each as it is typed, then what all print
	printf '\n```sh\n%s\n```\n```text\n' "$1"
	PATH=$bin:$PATH sh -c "$1" 2>&1
	printf '```\n'
}
kernel() { # FILE TEXT
	printf '%s\n' "$2" >"$1"
	printf '\n```blk\n%s\n```\n' "$2"
}

cat <<'PAGE'
# What the simulator says

Kernels with one fault each, and what `blkrun --device=sim` prints. On a GPU such faults often show in nothing, or
in wrong results now and then. [The simulator](sim.md) lists what it checks; `tools/checks.sh build` makes this page, in the folder `examples`.

## A mask that is off by one
`<=` where `<` was meant: the last program reads one element behind the end of `x`.
PAGE
kernel twice.blk 'kernel twice(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 256)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let mask = i <= n;
    store(y + i, 2.0 * load(x + i, mask = mask), mask = mask);
}'
commands 'blkrun twice.blk --device=sim n=1000 y=f32[n]:poison x=f32[n]:randn'
cat <<'PAGE'

## Two programs that write one address
Each program stores its part of the sum where the others do.
PAGE
kernel total.blk 'kernel total(y: *f32, x: *const f32, n: i32, const BLOCK: i32 = 256)
    grid(cdiv(n, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + i, mask = i < n, other = 0.0);
    store(y, sum(v, axis = 0));
}'
commands 'blkrun total.blk --device=sim n=1000 y=f32[1]:poison x=f32[n]:randn'
cat <<'PAGE'

## A division by 0
`n` is 0 in the first row, and its quotient is stored. On a GPU that is some number, without a word.
PAGE
kernel mean.blk 'kernel mean(y: *i32, total: *const i32, n: *const i32, rows: i32, const BLOCK: i32 = 128)
    grid(cdiv(rows, BLOCK))
{
    let i = program_id(0) * BLOCK + arange(0, BLOCK);
    let here = i < rows;
    let q = load(total + i, mask = here) / load(n + i, mask = here);
    store(y + i, q, mask = here);
}'
commands 'blkrun mean.blk --device=sim rows=100 y=i32[rows]:poison total=i32[rows]:rand n=i32[rows]:arange'
cat <<'PAGE'

## A gather out of range
The index of the last lane is 64, and the table has 64 elements.
PAGE
kernel look.blk 'kernel look(y: *f32, x: *const f32, index: *const i32)
    grid(1)
{
    let i = arange(0, 64);
    store(y + i, gather(load(x + i), load(index + i) + 1));
}'
commands 'blkrun look.blk --device=sim y=f32[64]:poison x=f32[64]:randn index=i32[64]:arange'
cat <<'PAGE'

## A barrier that is missing
`blkc` puts barriers where a row's maximum crosses warps. Here one is taken out of the PTX.
PAGE
commands 'blkc softmax/softmax.blk --kernel=softmax_rows -D BLOCK=1024 -o rows.ptx
awk "/bar.sync/ && !gone { gone = 1; next } 1" rows.ptx >no_barrier.ptx
blkrun no_barrier.ptx --device=sim rows=2 n=1000 stride=1000 y=f32[rows,stride]:poison x=f32[rows,stride]:randn'
cat <<'PAGE'

## A copy that nobody waits for
The tiles of a matrix product arrive by asynchronous copies, some iterations ahead. Here the wait for them is taken out of the PTX.
PAGE
commands 'blkc matmul/matmul.blk --kernel=matmul -D BM=64 -D BN=32 -D BK=64 --specialize=c%16,a%16,b%16,M%16,N%16,K%16 -o product.ptx
sed "/cp.async.wait/d" product.ptx >no_wait.ptx
blkrun no_wait.ptx --device=sim M=64 N=32 K=256 c=f16[M,N]:poison a=f16[M,K]:randn b=f16[K,N]:randn'
