/* Tells debuggers of code that was loaded: gdb's JIT interface, which lldb follows too.
 *
 * In: an ELF object whose sections' addresses are where they were loaded.  Out: an entry of a list that debuggers know
 * by its name, and the call at which they stop to read it. The interface wants one global list and one function of
 * these names in the process.  Both are protected: another library's of the same name (LLVM has them) is that library's
 * own. */
#include "cpu.h"

#include <pthread.h>

typedef struct cpu_symbols jit_code_entry;
enum { NOTHING, REGISTER, UNREGISTER };

struct jit_descriptor {
	uint32_t version;
	uint32_t action;
	jit_code_entry *relevant, *first;
};

#define SEEN_BY_DEBUGGERS __attribute__((visibility("protected"), used))
extern struct jit_descriptor __jit_debug_descriptor;
void __jit_debug_register_code(void);

SEEN_BY_DEBUGGERS struct jit_descriptor __jit_debug_descriptor = {1, NOTHING, NULL, NULL};
SEEN_BY_DEBUGGERS __attribute__((noinline)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory"); /* debuggers stop here */
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */

static void tell(uint32_t action, jit_code_entry *s)
{
	__jit_debug_descriptor.action = action;
	__jit_debug_descriptor.relevant = s;
	__jit_debug_register_code();
}

void cpu_symbols_register(cpu_symbols *s)
{
	pthread_mutex_lock(&lock);
	s->previous = NULL;
	s->next = __jit_debug_descriptor.first;
	if (s->next) s->next->previous = s;
	__jit_debug_descriptor.first = s;
	tell(REGISTER, s);
	pthread_mutex_unlock(&lock);
}

void cpu_symbols_unregister(cpu_symbols *s)
{
	pthread_mutex_lock(&lock);
	if (s->next) s->next->previous = s->previous;
	if (s->previous)
		s->previous->next = s->next;
	else
		__jit_debug_descriptor.first = s->next;
	tell(UNREGISTER, s);
	pthread_mutex_unlock(&lock);
}
