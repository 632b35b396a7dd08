/* Memory of one compile: a bump allocator that is dropped whole.
 *
 * In: sizes.  Out: zeroed memory aligned to 16 bytes that lives until arena_free().
 * The one idea: nothing inside the compiler is freed piece by piece, and nobody below the library's entry point
 * checks for a null result: when memory runs out (or the limit is reached) the arena longjmps to `*recover`,
 * which the entry point has set, and the entry point returns an error.  Code that holds a resource which the arena
 * does not own (an LLVM context, a FILE) must keep it where the entry point can dispose of it. */
#ifndef BLK_ARENA_H
#define BLK_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>

typedef struct arena_block arena_block;
typedef struct arena {
	arena_block *head; /* newest block */
	size_t used;       /* bytes handed out so far, for reports and the limit */
	size_t limit;      /* 0: none; tests lower it to fail the k-th allocation */
	jmp_buf *recover;  /* where to go when memory is out; must be set before the first allocation */
} arena;

void *arena_alloc(arena *, size_t bytes);                                 /* zeroed; never null */
void *arena_grow(arena *, void *old, size_t old_bytes, size_t new_bytes); /* copies; the old block stays valid */
char *arena_strndup(arena *, const char *s, size_t n);                    /* adds a NUL */
char *arena_printf(arena *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(arena *, const char *fmt, va_list);
void arena_free(arena *);                    /* everything; the arena may be used again */
_Noreturn void arena_out_of_memory(arena *); /* for code that gets a null from elsewhere (LLVM, libc) */

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

/* A growing array in an arena: `VEC(int) v = {0}; vec_push(a, &v, 3); v.at[i]; v.n`. */
#define VEC(T)                                                                                                         \
	struct {                                                                                                       \
		T *at;                                                                                                 \
		uint32_t n, room;                                                                                      \
	}
#define vec_push(a, v, x) (vec_reserve((a), (v)), (void)((v)->at[(v)->n++] = (x)))
#define vec_reserve(a, v)                                                                                              \
	((v)->n < (v)->room ? (void)0 : (void)((v)->at = arena_grow_array((a), (v)->at, &(v)->room, sizeof *(v)->at)))
/* Room for more of the elements, at least for one. */
void *arena_grow_array(arena *, void *old, uint32_t *room, size_t element);

/* Text that grows in an arena; always NUL-terminated once something was added. */
typedef struct text {
	arena *arena;
	char *at;
	size_t n, room;
} text;
void text_add(text *, const char *s, size_t n);
void text_puts(text *, const char *s);
void text_printf(text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
