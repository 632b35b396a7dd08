/* Work that all cores share.
 *
 * In: a function that takes one piece after the other until there is none.  Out: it has run on this thread and on
 * others, as many as there are cores; where no thread is to be had, this one does it all. */
#include "tune.h"

#include <pthread.h>
#include <sched.h>

void tune_on_cores(uint32_t most, void *(*work)(void *), void *argument)
{
	enum { MOST = 64 };
	pthread_t threads[MOST];
	cpu_set_t allowed;
	int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
	uint32_t helpers = cores < 1 ? 0 : cores > MOST ? MOST : (uint32_t)cores - 1, started = 0;
	if (helpers + 1 > most) helpers = most ? most - 1 : 0;
	while (started < helpers && pthread_create(&threads[started], NULL, work, argument) == 0) started++;
	work(argument);
	for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
}
