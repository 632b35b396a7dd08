/* A way out of LLVM when memory is out, or when it gives up: to where the compile began, instead of abort(). */
#ifndef BLK_LLVM_MEMORY_H
#define BLK_LLVM_MEMORY_H

#include "arena.h"

enum { LLVM_OUT_OF_MEMORY = 1, LLVM_GAVE_UP = 2 };
enum {
	LLVM_ROOM = 32 << 20,
	LLVM_RESERVE = 4 << 20
}; /* bytes: asked for before each phase, and kept for the first lack */

/* Of one compile, on its thread. */
typedef struct llvm_guard {
	jmp_buf *out;        /* gets one of the values above */
	void *reserve;       /* mapped; null: used up */
	char complaint[256]; /* of LLVM when it gave up */
} llvm_guard;

/* False: there is not even room to begin with; llvm_guard_end() is due all the same.  What LLVM held when it was left
 * is lost: a leak, which only a process whose memory is out has. */
bool llvm_guard_begin(llvm_guard *, jmp_buf *out);
void llvm_guard_end(llvm_guard *);

/* Before each of LLVM's long phases: that its first steps, which fill tables for the whole process under locks, will
 * find memory.  Leaves by the arena where they would not. */
void llvm_room(arena *);

#endif
