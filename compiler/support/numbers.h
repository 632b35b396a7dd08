/* Numbers as C writes them, whatever locale the host has set: between begin and end this thread's printf, strtod and
 * scanf use a decimal point.  Other threads do not notice. */
#ifndef BLK_NUMBERS_H
#define BLK_NUMBERS_H

#include <locale.h>
#include <stdlib.h>

typedef struct plain_numbers {
	locale_t plain, before;
} plain_numbers;

static inline void numbers_begin(plain_numbers *n)
{
	n->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	n->before = uselocale(n->plain); /* a null one, which takes a lack of memory, changes nothing */
}

static inline void numbers_end(const plain_numbers *n)
{
	uselocale(n->before);
	if (n->plain) freelocale(n->plain);
}

static inline double numbers_read(const char *s, char **end)
{
	plain_numbers n;
	numbers_begin(&n);
	double v = strtod(s, end);
	numbers_end(&n);
	return v;
}

#endif
