/* What a call prints: from capture_begin() to capture_end() the process's standard output and standard error go into
 * memory, and stand then in captured.out and captured.err.  Assert behind capture_end() only. */
#ifndef TESTS_UNIT_CAPTURED_H
#define TESTS_UNIT_CAPTURED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

static struct {
	int shown[2], kept[2]; /* the descriptors that were there, and the memory */
	char out[1 << 16], err[1 << 16];
} captured;

static inline void capture_begin(void)
{
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		captured.shown[i] = dup(i + 1);
		captured.kept[i] = memfd_create("captured", MFD_CLOEXEC);
		dup2(captured.kept[i], i + 1);
	}
}

static inline void capture_end(void)
{
	char *const text[] = {captured.out, captured.err};
	fflush(stdout);
	fflush(stderr);
	for (int i = 0; i < 2; i++) {
		ssize_t n = pread(captured.kept[i], text[i], sizeof captured.out - 1, 0);
		text[i][n > 0 ? n : 0] = 0;
		dup2(captured.shown[i], i + 1);
		close(captured.shown[i]);
		close(captured.kept[i]);
	}
}

#define CAPTURED(call) (capture_begin(), (call), capture_end())

static inline void captured_has(const char *text, const char *words)
{
	if (!strstr(text, words)) fail_msg("no `%s` in:\n%s", words, text);
}

#endif
