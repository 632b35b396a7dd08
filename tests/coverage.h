/* In front of every file of `make coverage`: a process that ends in _exit, as blk-trial and the children of tests do,
 * keeps its counts.  No header of the system is included, since files have names of their own that it would take. */
#ifndef BLK_TESTS_COVERAGE_H
#define BLK_TESTS_COVERAGE_H
void __gcov_dump(void);
void _Exit(int status) __attribute__((noreturn));

__attribute__((weak, noreturn)) void blk_coverage_exit(int status);
__attribute__((weak, noreturn)) void blk_coverage_exit(int status)
{
	__gcov_dump();
	_Exit(status);
}
#define _exit blk_coverage_exit
#endif
