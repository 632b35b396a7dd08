#!/bin/sh
# usage: cli.sh BUILD      blkc from the shell: exit statuses, whole files or none, the same bytes everywhere.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc
cp -r "$root/examples" examples
add=examples/vector_add/vector_add.blk

status 0 "default output" "$blkc" $add
[ -s vector_add.ptx ] && ok || bad "vector_add.ptx is missing"
grep -q 'ld.global.*v4' vector_add.ptx && bad "16-byte loads without a promise" || ok
status 0 "promises" "$blkc" $add --specialize=x%16,y%16,z%16,n%16 -o wide.ptx
grep -q 'ld.global.*v4' wide.ptx && ok || bad "no 16-byte load in wide.ptx"
grep -q '\.loc' wide.ptx && ok || bad "no .loc line"
grep -q "debug" wide.ptx && bad "debug sections are left" || ok
status 0 "no line info" "$blkc" $add -g0 -o plain.ptx
grep -q '\.loc' plain.ptx && bad ".loc with -g0" || ok
for t in sm_80 sm_86 sm_89 sm_90 sm_90a sm_100a sm_120a; do
	for e in examples/*/*.blk; do
		status 0 "$e for $t" "$blkc" "$e" --target=$t -o "$t.ptx"
		if [ -z "${ONLY_COMPILE:-}" ] && command -v ptxas >/dev/null 2>&1; then
			ptxas -v -arch=$t "$t.ptx" -o "$t.cubin" >"$dir/ptxas" 2>&1 && ok || { bad "ptxas refuses $e for $t"; cat "$dir/ptxas"; }
			grep -qE '[1-9][0-9]* bytes spill|warning' "$dir/ptxas" && { bad "$e for $t: $(cat "$dir/ptxas")"; } || ok
		else skip 2; fi
	done
done
for kind in tokens ast tile layout llvm ptx explain json; do status 0 "--emit=$kind" "$blkc" $add --emit=$kind -o out.$kind; [ -s out.$kind ] && ok || bad "$kind is empty"; done
cp $add größe.blk
status 0 "a name beyond ASCII" "$blkc" größe.blk -o name.ptx
grep -q '// gr??e.blk:[0-9]* ' name.ptx && ! LC_ALL=C grep -q '[^ -~[:space:]]' name.ptx && ok || bad "name.ptx: $(grep -a '//' name.ptx)"
echo 'kernel k(y: *f32) { let i = arange(0, 65536); store(y + i, sort(load(y + i))); }' >sort.blk
status 0 "a large sort in seconds, not minutes" timeout 60 "$blkc" sort.blk -o sort.ptx
# 512 keys a thread: the network is loops over local memory; as straight code it was four times as long, and took ptxas minutes.
[ "$(wc -l <sort.ptx)" -lt 15000 ] && ok || bad "sort.ptx has $(wc -l <sort.ptx) lines"
if command -v ptxas >/dev/null 2>&1; then
	status 0 "a cubin of several kernels" "$blkc" examples/softmax/softmax.blk --emit=cubin -o all.cubin
	grep -q softmax_rows all.cubin && grep -q softmax_persistent all.cubin && ok || bad "all.cubin lacks a kernel"
	[ -e softmax.ptx ] && bad "PTX that nobody asked for" || ok
	status 0 "cubin and PTX of several kernels" "$blkc" examples/softmax/softmax.blk --emit=cubin,ptx
	[ -s softmax.ptx ] && [ -s softmax.cubin ] && ok || bad "softmax.ptx or softmax.cubin is missing"
	status 0 "one cubin" "$blkc" $add --emit=cubin -o one.cubin
else skip 6; fi
status 0 "several kinds" "$blkc" $add --emit=tile,ptx
[ -s vector_add.tile ] && ok || bad "vector_add.tile is missing"
status 0 "cpu object" "$blkc" $add --target=cpu -o add.o
status 0 "a cpu object of several kernels" "$blkc" examples/softmax/softmax.blk --target=cpu --emit=object,asm,llvm
cat >one.c <<'END'
void softmax_rows(const void *, long, long, void *), softmax_persistent(const void *, long, long, void *);
int main(int n, char **v) { return n > 9 ? softmax_rows(v, 0, 0, v), 1 : (softmax_persistent(v, 0, 0, v), 0); }
END
status 0 "links" ${CC:-cc} one.c softmax.o -lm -o one
status 0 "runs" ./one
status 0 "assembles" ${CC:-cc} -c softmax.s -o again.o
[ "$(grep -c '^source_filename' softmax.ll)" = 1 ] && ok || bad "softmax.ll is not one module"
status 0 "-D" "$blkc" $add -D BLOCK=2048 -D num_warps=8 -o d.ptx
echo 'kernel rows(o: *f32, const BM: i32 = 64) grid(1) options(num_warps = BM / 16) { store(o + arange(0, BM), 1.0); }' >option.blk
status 1 "an option that a const makes wrong" "$blkc" option.blk -D BM=96 -o d96.ptx
says 'num_warps must be 1, 2, 4, 8, 12 or 16, found 6'
status 0 "and is given" "$blkc" option.blk -D BM=96 -D num_warps=4 -o d96.ptx
status 1 "-D of an unknown name" "$blkc" $add -D BLOK=2048 -o e.ptx
[ -e e.ptx ] && bad "an output after an error" || ok
"$blkc" - <$add >piped.ptx 2>"$dir/err" && [ -s piped.ptx ] && ok || bad "standard input: $(cat "$dir/err")"
"$blkc" $add -o - | sed 's|//.*||' >named.ptx
sed 's|//.*||; s|<stdin>|vector_add.blk|' piped.ptx | grep -v '\.file' >piped && grep -v '\.file' named.ptx >named
cmp -s piped named && [ -s piped ] && ok || bad "standard input compiles to something else"
echo 'kernel k(x: *f32) grid(1) { store(x, yy); }' | "$blkc" - 2>"$dir/err"
[ $? = 1 ] && grep -q '^<stdin>:1:' "$dir/err" && ok || bad "an error in standard input: $(cat "$dir/err")"
"$blkc" - --emit=ptx,tile <$add && [ -s stdin.ptx ] && [ -s stdin.tile ] && ok || bad "stdin.ptx or stdin.tile is missing"
cp $add ./-odd.blk
status 0 "a name after --" "$blkc" -o odd.ptx -- -odd.blk
status 2 "an unknown pass" "$blkc" $add --print-after=nothing; says "no pass 'nothing'"
status 2 "no file" "$blkc"
status 2 "unknown option" "$blkc" --frobnicate $add
status 2 "unknown target" "$blkc" --target=sm_1 $add
status 2 "unknown kernel" "$blkc" --kernel=nothing $add
status 1 "missing file" "$blkc" nowhere.blk; says nowhere.blk
status 1 "a folder" "$blkc" examples; says examples
status 0 "--version" "$blkc" --version; says LLVM
status 0 "--help" "$blkc" --help; says usage
status 0 "--list-targets" "$blkc" --list-targets; says sm_90a
status 0 "--time-passes" "$blkc" $add --time-passes -o t.ptx; says assign_layouts
status 0 "--print-after" "$blkc" $add --print-after=cse -o t.ptx; says program_id
echo 'kernel k(x: *f32) grid(1) { store(x, yy); }' >wrong.blk
status 1 "diagnosed" "$blkc" wrong.blk; says 'wrong.blk:1:'; says 'error\[E'
status 1 "as JSON" "$blkc" wrong.blk --diagnostics=json
python3 -c "import json,sys; d=json.load(open('$dir/err')); assert d[0]['line']==1 and d[0]['severity']=='error'" && ok || bad "JSON diagnostics do not parse"
for report in --explain --time-passes --print-after=cse; do
	rm -f t.ptx
	status 2 "$report beside JSON" "$blkc" $add $report --diagnostics=json -o t.ptx; says "${report%=*} prints text"
	[ -e t.ptx ] && bad "an output after an error" || ok
done
status 0 "a report in a file beside JSON" "$blkc" $add --emit=ptx,explain --diagnostics=json
python3 -c "import json; assert json.load(open('$dir/err')) == []" && ok || bad "standard error is not JSON alone"

# What is no file: refused at once, without waiting for a pipe's other end; a shell's pipes and standard input are read to their end.
mkfifo pipe
echo 'import "pipe"; kernel k(x: *f32) grid(1) { store(x, 1.0); }' >imports_pipe.blk
echo 'import "/dev/zero"; kernel k(x: *f32) grid(1) { store(x, 1.0); }' >imports_device.blk
for what in pipe imports_pipe.blk; do status 1 "$what" timeout 5 "$blkc" $what -o t.ptx; says "it is a pipe and no regular file"; says 'hint: blkc reads a pipe as its standard input'; done
for what in /dev/zero /dev/tty imports_device.blk; do status 1 "$what" timeout 5 "$blkc" $what -o t.ptx; says "it is a device and no regular file"; done
status 1 "a package of a pipe" timeout 5 "$blkc" pipe --emit=package -o t.blkpkg; says "it is a pipe and no regular file"
"$blkc" $add -o whole.ptx
for how in - /dev/stdin /dev/fd/0; do
	cat $add | "$blkc" $how -o t.ptx; grep -q '^// add, ' t.ptx && ok || bad "a pipe as $how"
	"$blkc" $how -o t.ptx <$add && grep -q '^// add, ' t.ptx && ok || bad "a file as $how"
done
cat $add | "$blkc" /dev/stdin --emit=package --target=sm_80 -o t.blkpkg && [ -s t.blkpkg ] && ok || bad "a package of standard input"
status 1 "endless input" sh -c "timeout 20 '$blkc' /dev/stdin -o t.ptx </dev/zero"; says 'larger than 16 MiB'
status 1 "no such descriptor" "$blkc" /dev/fd/77 -o t.ptx; says 'Bad file descriptor'

# Whole files or none.
status 1 "unwritable folder" "$blkc" $add -o nowhere/x.ptx; says nowhere/x.ptx
status 1 "full disk" "$blkc" $add -o /dev/full; says /dev/full
status 1 "output is a folder" "$blkc" $add -o examples; says examples
if [ "$(id -u)" != 0 ]; then
	mkdir readonly && chmod 555 readonly
	status 1 "read-only folder" "$blkc" $add -o readonly/x.ptx; says readonly/x.ptx
else skip 1; fi
# Standard output by name is written on from where it stands, and a link is replaced.
"$blkc" $add -o whole.ptx
{ echo first; "$blkc" $add -o /dev/stdout; echo last; } >sum.txt
{ echo first; cat whole.ptx; echo last; } | cmp -s - sum.txt && [ -L /dev/stdout ] && ok || bad "-o /dev/stdout into a file"
"$blkc" $add -o /dev/fd/3 3>third.ptx && cmp -s whole.ptx third.ptx && ok || bad "-o /dev/fd/3"
echo precious >victim && ln -s victim linked.ptx
status 0 "a link" "$blkc" $add -o linked.ptx
[ "$(cat victim)" = precious ] && [ ! -L linked.ptx ] && cmp -s whole.ptx linked.ptx && ok || bad "-o follows a link"
{ echo 'kernel k(x: *f32) grid(1) { var a = 0.0;'; i=0; while [ $i -lt 3000 ]; do echo 'a = a + load(x);'; i=$((i + 1)); done; echo 'store(x, a); }'; } >long.blk
"$blkc" long.blk -o whole.ptx
for delay in 0.02 0.05 0.1 0.2; do
	"$blkc" long.blk -o interrupted.ptx & pid=$!
	sleep $delay
	kill -TERM $pid 2>/dev/null
	wait $pid 2>/dev/null
	ls interrupted.ptx.tmp* >/dev/null 2>&1 && bad "a temporary file is left after SIGTERM" || ok
	if [ -e interrupted.ptx ]; then cmp -s interrupted.ptx whole.ptx && ok || bad "half a file after SIGTERM"; fi
	rm -f interrupted.ptx
done
# What a parent has ignored (nohup) stays ignored.
for signal in HUP INT TERM; do
	(trap '' $signal; exec "$blkc" long.blk -o kept.ptx) & pid=$!
	sleep 0.1
	kill -$signal $pid 2>/dev/null
	wait $pid && cmp -s whole.ptx kept.ptx && ok || bad "an ignored SIG$signal ends the compile"
	rm -f kept.ptx
done

# A producer that walks over tiles carries more scalars than the 24 registers hold that one of a single tile keeps.
for walks in false=240 true=232; do
	status 0 "registers of partitions" "$blkc" examples/attention/attention.blk --kernel=attention --target=sm_90a -o split.ptx -D DK=128 -D BM=128 \
		-D BN=128 -D num_warps=8 -D PERSISTENT=${walks%=*} --specialize=o%16,lse%16,q%16,k%16,v%16,nq%16,nk%16
	grep -q "setmaxnreg.inc.sync.aligned.u32 ${walks#*=};" split.ptx && ok || bad "PERSISTENT=$walks: $(grep setmaxnreg split.ptx)"
done

# The same bytes from any folder, at any time, in any environment.
for target in sm_80 sm_90a; do for e in examples/*/*.blk; do
	"$blkc" "$e" --target=$target -o one.ptx
	mkdir -p elsewhere && cp -r examples elsewhere/
	(cd elsewhere && env -i TZ=Asia/Tokyo LANG=C HOME=/nowhere "$blkc" "$e" --target=$target -o two.ptx)
	cmp -s one.ptx elsewhere/two.ptx && ok || bad "$e: other bytes from another folder"
done; done

# LLVM 22 lowers the scalar form wrongly where AVX-512 DQ is at hand, which not every machine that tests has.
status 0 "host code" "$blkc" --target=cpu --emit=llvm -o - "$root/examples/softmax/softmax.blk"
says '@llvm.maximum.f32'; silent 'maximumnum'
finish
