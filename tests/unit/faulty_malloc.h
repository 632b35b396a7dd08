/* This program's own malloc in front of libc's, which counts and refuses: `faulty.fail_at`-th call since it was armed,
 * and where `forever` is set all after it.  Sanitizers bring their own: there FAULTY_MALLOC is 0 and nothing fails. */
#ifndef TESTS_UNIT_FAULTY_MALLOC_H
#define TESTS_UNIT_FAULTY_MALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define FAULTY_MALLOC 1
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#undef FAULTY_MALLOC
#define FAULTY_MALLOC 0
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef FAULTY_MALLOC
#define FAULTY_MALLOC 0
#endif
#endif

static struct {
	bool armed, forever;
	long calls, fail_at, live;
} faulty;

#if FAULTY_MALLOC
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

static bool faulty_refused(void)
{
	if (!faulty.armed) return false;
	faulty.calls++;
	if (faulty.fail_at && (faulty.calls == faulty.fail_at || (faulty.forever && faulty.calls > faulty.fail_at))) {
		errno = ENOMEM;
		return true;
	}
	return false;
}
static void *faulty_counted(void *p)
{
	if (p) faulty.live++;
	return p;
}
#pragma GCC visibility push(default)
void *malloc(size_t n)
{
	return faulty_refused() ? NULL : faulty_counted(__libc_malloc(n));
}
void *calloc(size_t a, size_t b)
{
	return faulty_refused() ? NULL : faulty_counted(__libc_calloc(a, b));
}
#undef realloc /* of tests/mean.h */
void *realloc(void *p, size_t n)
{
	if (faulty_refused()) return NULL;
	void *q = __libc_realloc(p, n);
	if (!p) faulty_counted(q);
	return q;
}
void *aligned_alloc(size_t alignment, size_t n)
{
	return faulty_refused() ? NULL : faulty_counted(__libc_memalign(alignment, n));
}
int posix_memalign(void **out, size_t alignment, size_t n)
{
	if (faulty_refused()) return ENOMEM;
	*out = faulty_counted(__libc_memalign(alignment, n));
	return *out ? 0 : ENOMEM;
}
void free(void *p)
{
	if (p) faulty.live--;
	__libc_free(p);
}
#pragma GCC visibility pop
#endif

#endif
