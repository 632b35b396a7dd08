#!/bin/sh
# usage: format.sh BUILD      blkc --format: one style, the same tokens and comments, once is enough; files that differ are written anew.
. "$(dirname "$0")/../lib.sh"
enter_scratch "$1"
blkc=$build/bin/blkc
format() { # status, arguments
	wanted_status=$1
	shift
	status "$wanted_status" "--format $*" "$blkc" "$@"
}
cat >messy.blk <<'E'


// a file   
import   "a.blk" ;
const  N : i32=-3+4 ;// three
const LONGER:i32 = 5;   // five
/* two
   lines */


fn f ( x,y ) ->(f32[8] ,i32){ return( x , y ) ; }
kernel k(const T:type=*f16, o : *mut_t ,x: * const f32,n:i32,
const FLAG : bool=n>0&&!false ,
  const SIZE:i32 = FLAG?8:1)
grid( cdiv(n,8),n ? 1 : 2 )
  options(num_warps=4) requires (n)>0,"some"  requires n<9
{

	let ( a,b )=f( x , - 1 ) [ 0 ] ;
    let c = where (n>1 , -a, ~ b)[ : , None ]; let d=x[None, :, 0].to( *const i8 );
  for i in range(0,n,2,num_stages = 3){a+=1; b<<=2 ;
        // a comment


        // and one

        }
      if n==1 { } else if(n>2){ return ; }
else{
 let y = load(x+i,
mask=i<n,   /* all
 of them */  other = -inf) *
        2;  // behind
 call( // first
   1 /* one */ ,
   (2
      + 3)
   );
}
while !true { continue; }

}
autotune k key(n,N){
BM:[1,2] ,num_warps : [4,
8];
where BM*(2)<8&&(n>1);
   where (BM) > 0; order -n*f(x); config( BM=1 ); try 3;
   reset o,p ; tolerance 1e-2;
   }
E
cat >wanted.blk <<'E'
// a file
import "a.blk";
const N: i32 = -3 + 4; // three
const LONGER: i32 = 5; // five
/* two
   lines */

fn f(x, y) -> (f32[8], i32) { return (x, y); }
kernel k(const T: type = *f16, o: *mut_t, x: *const f32, n: i32,
    const FLAG: bool = n > 0 && !false,
    const SIZE: i32 = FLAG ? 8 : 1)
    grid(cdiv(n, 8), n ? 1 : 2)
    options(num_warps = 4) requires (n) > 0, "some" requires n < 9
{
    let (a, b) = f(x, -1)[0];
    let c = where(n > 1, -a, ~b)[:, None]; let d = x[None, :, 0].to(*const i8);
    for i in range(0, n, 2, num_stages = 3) { a += 1; b <<= 2;
        // a comment

        // and one
    }
    if n == 1 { } else if (n > 2) { return; }
    else {
        let y = load(x + i,
            mask = i < n, /* all
 of them */ other = -inf) *
            2; // behind
        call(  // first
            1 /* one */,
            (2
                + 3)
        );
    }
    while !true { continue; }
}
autotune k key(n, N) {
    BM: [1, 2], num_warps: [4,
        8];
    where BM * (2) < 8 && (n > 1);
    where (BM) > 0; order -n * f(x); config(BM = 1); try 3;
    reset o, p; tolerance 1e-2;
}
E
format 0 --format messy.blk -o out.blk
cmp -s out.blk wanted.blk && ok || { bad "the style"; diff wanted.blk out.blk; }
# comments that would not fit beside their neighbours' column stand for themselves
{
	echo 'const A = 1; // a'
	printf 'const B = %090d; // %010d\n' 1 1
	printf 'const C = %050d; // %030d\n' 1 1
	echo 'const D = 2; // d'
	echo
	echo 'const E = 2;     // e'
} | sed 's/= 0*/= 1/' >columns.blk
format 0 --format columns.blk -o out.blk
awk 'length > 120' out.blk | grep -q . && bad "a line over 120" || ok
[ "$(sed -n 's/^\(const [AD] = [12]*; *\).*/\1/p' out.blk | awk '{print length}' | sort -u | wc -l)" -ge 1 ] && grep -q '^const E = 12; // e$' out.blk && ok || { bad "columns"; cat out.blk; }
# all that is in the repository and parses
n=0
tokens() { "$blkc" --emit=tokens -o - "$1" | cut -d' ' -f2-; }
comments() { grep -o '//.*' "$1" | sed 's/[ \t]*$//'; }
for f in "$root"/examples/*.blk "$root"/examples/*/*.blk "$root"/compiler/lib/*.blk "$root"/compiler/lib/blk/*.blk "$root"/tests/golden/good/*.blk; do
	"$blkc" --format -o once.blk "$f" 2>/dev/null || continue
	n=$((n + 1))
	tokens "$f" >before
	tokens once.blk >after
	cmp -s before after && ok || bad "$f: other tokens"
	comments "$f" >before
	comments once.blk >after
	cmp -s before after && ok || bad "$f: other comments"
	"$blkc" --format -o twice.blk once.blk
	cmp -s once.blk twice.blk && ok || bad "$f: twice is not once"
done
[ $n -ge 30 ] && ok || bad "only $n files"
# examples and library are in it
format 0 --format=check "$root"/examples/*.blk "$root"/examples/*/*.blk "$root"/compiler/lib/*.blk "$root"/compiler/lib/blk/*.blk
[ -s out ] && { bad "not in the style:"; cat out; } || ok
# in place, where it differs; a check writes nothing; standard input
cp messy.blk m.blk
format 1 --format=check m.blk wanted.blk
says_text 'm.blk is not as --format writes it'
cmp -s m.blk messy.blk && ok || bad "a check wrote"
touch -d '2001-01-01' wanted.blk
format 0 --format m.blk wanted.blk
cmp -s m.blk wanted.blk && ok || bad "in place"
[ -z "$(find wanted.blk -newermt 2002-01-01)" ] && ok || bad "an equal file was written"
"$blkc" --format - <messy.blk | cmp -s - wanted.blk && ok || bad "standard input"
"$blkc" --emit=formatted -o - messy.blk | cmp -s - wanted.blk && ok || bad "--emit=formatted"
: >empty.blk
format 0 --format empty.blk
[ -e empty.blk ] && [ ! -s empty.blk ] && ok || bad "an empty file"
# what does not parse stays as it is
printf 'kernel  k(\n' >broken.blk
cp broken.blk kept.blk
format 1 --format broken.blk
says_text 'broken.blk:'
cmp -s broken.blk kept.blk && ok || bad "a file that does not parse was written"
format 1 --format nothing.blk
says_text 'nothing.blk'
format 2 --format --emit=ptx m.blk
format 2 --format=check m.blk -o n.blk
format 2 --emit=formatted,ptx m.blk
format 2 --format=all m.blk
finish
