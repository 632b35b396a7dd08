/* The thread's last error and its notes (blk_error, blk_note).
 *
 * Text of any length is kept, as a compiler's diagnostics are long; where memory for it is short, its beginning stands
 * in a fixed place.  A thread's text is freed when the thread ends. */
#include "internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct message {
	char *text; /* malloc'ed, or null: `brief` holds it */
	size_t used, room;
	char brief[256];
} message;

typedef struct thread_messages {
	message error, note;
	char *kept;
} thread_messages;

static _Thread_local thread_messages *mine;
static _Thread_local message spare; /* for when not even thread_messages could be had */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

static void release(void *p)
{
	thread_messages *m = p;
	free(m->error.text);
	free(m->note.text);
	free(m->kept);
	free(m);
	mine = NULL;
}

static void make_key(void)
{
	have_key = pthread_key_create(&key, release) == 0;
}

static thread_messages *messages(void)
{
	if (mine) return mine;
	pthread_once(&once, make_key);
	thread_messages *m = have_key ? calloc(1, sizeof *m) : NULL;
	if (m && pthread_setspecific(key, m) != 0) {
		free(m);
		m = NULL;
	}
	if (m) memcpy(m->error.brief, spare.brief, sizeof spare.brief); /* what was said while there was no memory */
	return mine = m;
}

/* Appends, growing; on lack of memory what fits into `brief` is kept. */
static void append(message *m, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (n < 0) return;
	size_t need = m->used + (size_t)n + 1;
	if (need > m->room) {
		char *bigger = realloc(m->text, need + need / 2);
		if (!bigger) {
			vsnprintf(m->brief, sizeof m->brief, fmt, ap);
			free(m->text);
			m->text = NULL;
			m->used = m->room = 0;
			return;
		}
		m->text = bigger;
		m->room = need + need / 2;
	}
	vsnprintf(m->text + m->used, (size_t)n + 1, fmt, ap);
	m->used += (size_t)n;
}

void error_record(const char *fmt, ...)
{
	thread_messages *all = messages();
	message *m = all ? &all->error : &spare, fresh = {0};
	va_list ap;
	va_start(ap, fmt);
	append(&fresh, fmt, ap); /* into new memory: an argument may be the old text */
	va_end(ap);
	while (fresh.used && fresh.text[fresh.used - 1] == '\n') fresh.text[--fresh.used] = 0;
	free(m->text);
	*m = fresh;
	if (!all && m->text) { /* no one would free it */
		snprintf(m->brief, sizeof m->brief, "%s", m->text);
		free(m->text);
		m->text = NULL;
	}
}

char *error_take(void)
{
	if (!mine) return NULL;
	char *text = mine->error.text;
	mine->error.text = NULL;
	return text;
}

void error_give(char *text)
{
	if (!mine) {
		free(text);
		spare.brief[0] = 0;
		return;
	}
	free(mine->error.text);
	mine->error = (message){.text = text};
}

const char *blk_error(void)
{
	const message *m = mine ? &mine->error : &spare;
	return m->text ? m->text : m->brief;
}

void note_clear(void)
{
	if (!mine) return;
	mine->note.used = 0;
	if (mine->note.text) mine->note.text[0] = 0;
	mine->note.brief[0] = 0;
}

void note_add(const char *fmt, ...)
{
	thread_messages *all = messages();
	if (!all) return;
	va_list ap;
	if (all->note.used) {
		char *end = all->note.text + all->note.used - 1;
		if (*end != '\n' && all->note.used + 1 < all->note.room) {
			*++end = '\n';
			end[1] = 0;
			all->note.used++;
		}
	}
	va_start(ap, fmt);
	append(&all->note, fmt, ap);
	va_end(ap);
}

const char *blk_note(void)
{
	if (!mine) return "";
	return mine->note.text ? mine->note.text : mine->note.brief;
}

const char *thread_keep(const char *text)
{
	thread_messages *all = messages();
	if (!all) return NULL;
	free(all->kept);
	return all->kept = strdup(text);
}

const char *blk_status_text(blk_status s)
{
	static const char *const texts[] = {
#define X(name, text) text,
		BLK_STATUSES(X)
#undef X
	};
	return (unsigned)s < BLK_STATUS_COUNT ? texts[s] : "an unknown status";
}

const char *blk_version(void)
{
	return BLK_VERSION;
}
