/* In front of every file of `make mean`: a realloc that always moves, so that who keeps a pointer to what has grown
 * meets poison.  malloc and free poison too there, by glibc's MALLOC_PERTURB_.  No header of the system is included,
 * since files have names of their own that it would take. */
#ifndef BLK_TESTS_MEAN_H
#define BLK_TESTS_MEAN_H
void *blk_mean_realloc(void *old, __SIZE_TYPE__ bytes);
void *malloc(__SIZE_TYPE__);
void free(void *);
__SIZE_TYPE__ malloc_usable_size(void *);

__attribute__((weak)) void *blk_mean_realloc(void *old, __SIZE_TYPE__ bytes)
{
	void *moved = malloc(bytes);
	if (!moved || !old) return moved;
	__SIZE_TYPE__ room = malloc_usable_size(old);
	__builtin_memcpy(moved, old, room < bytes ? room : bytes);
	free(old);
	return moved;
}
#define realloc blk_mean_realloc
#endif
