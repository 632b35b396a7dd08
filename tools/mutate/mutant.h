/* What `make mutate-source` puts in front of each file that it changes: every place that it may change is one of the
 * macros below, and the environment variable BLK_MUTANT says which of them is changed, so that all mutants are compiled
 * once.
 *
 * BLK_MUTANT=17 changes mutant 17. BLK_MUTANT=trace changes nothing; the numbers of the mutants that would have given
 * another value somewhere are appended to the file BLK_MUTANT_TRACE: the others cannot be noticed. Number 0 is a mutant
 * that was not drawn. An operand is evaluated once, and only where the program or the chosen mutant evaluates it. */
#ifndef BLK_MUTANT_H
#define BLK_MUTANT_H
/* No header of the system: a file has names of its own that they would take. */
extern char *getenv(const char *);
extern char *strdup(const char *);
extern long syscall(long, ...);
extern int *__errno_location(void) __attribute__((const));
/* Linux, x86-64 */
enum { BLK_SYS_WRITE = 1, BLK_SYS_OPEN = 2, BLK_SYS_CLOSE = 3, BLK_APPEND_CREATE = 02001 | 0100 | 02000000 };

static int blk_mutant_now;
static const char *blk_mutant_trace;
static unsigned char blk_mutant_seen[BLK_MUTANT_COUNT];

__attribute__((constructor)) static void blk_mutant_start(void)
{
	const char *s = getenv("BLK_MUTANT"), *trace = getenv("BLK_MUTANT_TRACE");
	for (; s && *s >= '0' && *s <= '9'; s++) blk_mutant_now = 10 * blk_mutant_now + *s - '0';
	if (s && *s == 't' && trace && (blk_mutant_trace = strdup(trace))) blk_mutant_now = -1;
}

/* Bare system calls: tests replace those of the library, and count descriptors. */
static __attribute__((noinline)) void blk_mutant_note(int n)
{
	int was = *__errno_location(), at = 16;
	char line[16];
	line[--at] = '\n';
	for (; n; n /= 10) line[--at] = (char)('0' + n % 10);
	long fd = syscall(BLK_SYS_OPEN, blk_mutant_trace, BLK_APPEND_CREATE, 0600);
	if (fd >= 0) {
		syscall(BLK_SYS_WRITE, fd, line + at, 16L - at);
		syscall(BLK_SYS_CLOSE, fd);
	}
	*__errno_location() = was;
}

static inline int blk_is(int n)
{
	return __builtin_expect(blk_mutant_now == n, 0) && n;
}

/* While tracing: mutant n would have differed here. */
static inline void blk_differs(int n, int differs)
{
	if (__builtin_expect(blk_mutant_now == -1, 0) && n && differs && !blk_mutant_seen[n - BLK_MUTANT_FIRST]) {
		blk_mutant_seen[n - BLK_MUTANT_FIRST] = 1;
		blk_mutant_note(n);
	}
}

/* A condition: 'yes' makes it true, 'no' false, 'not' its opposite. */
static inline int blk_condition(int yes, int no, int not, int c)
{
	blk_differs(yes, !c);
	blk_differs(no, c);
	blk_differs(not, 1);
	return blk_is(yes) ? 1 : blk_is(no) ? 0 : blk_is(not) ? !c : c;
}
#define BLK_CONDITION(yes, no, not, c) blk_condition(yes, no, not, !!(c))

/* l && r; mutants: l || r, l alone, r alone.  Whether r is evaluated comes first. */
static inline int blk_and_right(int other, int left, int right, int l)
{
	blk_differs(other, l ? 0 : 1); /* where l holds, see below */
	blk_differs(right, !l);
	return blk_is(other) ? !l : blk_is(left) ? 0 : blk_is(right) ? 1 : l;
}
static inline int blk_and(int other, int left, int right, int l, int r)
{
	blk_differs(other, l != r);
	blk_differs(left, l && !r);
	return blk_is(other) ? l || r : blk_is(left) ? l : blk_is(right) ? r : l && r;
}
#define BLK_AND(other, left, right, L, R)                                                                              \
	({                                                                                                             \
		int blk_l = !!(L), blk_r = blk_and_right(other, left, right, blk_l) ? !!(R) : 0;                       \
		blk_and(other, left, right, blk_l, blk_r);                                                             \
	})

/* l || r likewise. */
static inline int blk_or_right(int other, int left, int right, int l)
{
	blk_differs(other, l);
	blk_differs(right, l);
	return blk_is(other) ? l : blk_is(left) ? 0 : blk_is(right) ? 1 : !l;
}
static inline int blk_or(int other, int left, int right, int l, int r)
{
	blk_differs(other, l != r);
	blk_differs(left, !l && r);
	return blk_is(other) ? l && r : blk_is(left) ? l : blk_is(right) ? r : l || r;
}
#define BLK_OR(other, left, right, L, R)                                                                               \
	({                                                                                                             \
		int blk_l = !!(L), blk_r = blk_or_right(other, left, right, blk_l) ? !!(R) : 0;                        \
		blk_or(other, left, right, blk_l, blk_r);                                                              \
	})

/* l OP r; mutants: l A r, l B r. TL, TR: how the operands are kept (a bit field has no type of its own). */
#define BLK_BINARY(a, A, b, B, OP, TL, L, TR, R)                                                                       \
	({                                                                                                             \
		TL(blk_l, L);                                                                                          \
		TR(blk_r, R);                                                                                          \
		if (__builtin_expect(blk_mutant_now == -1, 0)) {                                                       \
			blk_differs(a, (blk_l OP blk_r) != (blk_l A blk_r));                                           \
			blk_differs(b, (blk_l OP blk_r) != (blk_l B blk_r));                                           \
		}                                                                                                      \
		blk_is(a) ? (blk_l A blk_r) : blk_is(b) ? (blk_l B blk_r) : (blk_l OP blk_r);                          \
	})
#define BLK_PLAIN(name, value) __auto_type name = value
#define BLK_BITS(name, value) __typeof__((value) + 0) name = value

/* OLD, or NEW where n is chosen; they differ wherever they are evaluated. */
#define BLK_EITHER(n, OLD, NEW) (blk_is(n) ? (NEW) : (blk_differs(n, 1), (OLD)))
#endif
