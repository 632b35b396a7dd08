/* Random numbers of a generated program: one 64-bit state, the same choices from the same seed on every machine. */
#ifndef FUZZ_RANDOM_H
#define FUZZ_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rng {
	uint64_t state;
} rng;

static inline uint64_t rng_next(rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}
static inline int rng_below(rng *r, int n) /* 0 .. n - 1 */
{
	return (int)(rng_next(r) % (uint64_t)n);
}
static inline int rng_between(rng *r, int lo, int hi) /* both included */
{
	return lo + rng_below(r, hi - lo + 1);
}
static inline bool rng_percent(rng *r, int percent)
{
	return rng_below(r, 100) < percent;
}

#endif
