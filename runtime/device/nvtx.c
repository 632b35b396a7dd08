/* Ranges around launches for profilers, by NVTX.
 *
 * In: NVTX_INJECTION64_PATH, which Nsight and other tools set for the process that they watch.  Out: ranges with a
 * kernel's name, its configuration and its grid.
 * The one idea: NVTX is a table of functions that the tool fills in.  The library that the variable names has a
 * function InitializeInjectionNvtx2; it is given a function that hands out our tables by number, asks for those of the
 * modules that it wants to see, and writes addresses through the pointers in them.  What it leaves alone stays null.
 * So no part of a toolkit is needed, to build or to run.
 *
 * Numbers and structures: NVIDIA's NVTX 3, nvtxTypes.h.  The table is the process's, as the tool is. */
#include "nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

typedef void function(void);

enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3 }; /* what the tool may ask for */
enum { MODULE_CORE = 1 };
enum { CORE_RANGE_PUSH = 9, CORE_RANGE_POP = 11, CORE_SIZE = 16 };
enum { NVTX_VERSION_3 = 3 };

struct nvtx {
	int (*push)(const char *);
	int (*pop)(void);
};

static function *core[CORE_SIZE];
static function **core_slots[CORE_SIZE + 1];
static nvtx found;
static bool usable;

static int module_table(int module, function ****table, unsigned *size)
{
	if (module != MODULE_CORE) return 0;
	for (int i = 1; i < CORE_SIZE; i++) core_slots[i] = &core[i];
	if (table) *table = core_slots;
	if (size) *size = CORE_SIZE;
	return 1;
}

static void tool_version(uint32_t version)
{
	(void)version;
}

static const void *export_table(uint32_t id)
{
	static const struct {
		size_t bytes;
		int (*table)(int module, function ****, unsigned *size);
	} callbacks = {sizeof callbacks, module_table};
	static const struct {
		size_t bytes;
		uint32_t version, unused;
		void (*set)(uint32_t);
	} version = {sizeof version, NVTX_VERSION_3, 0, tool_version};
	return id == TABLE_CALLBACKS ? (const void *)&callbacks : id == TABLE_VERSION ? (const void *)&version : NULL;
}

/* A tool that cannot be used is none: a profiler must not stop a program. */
static void open_once(void)
{
	const char *path = getenv("NVTX_INJECTION64_PATH");
	void *library = path && path[0] == '/' ? dlopen(path, RTLD_LAZY) : NULL;
	if (!library) return;
	int (*initialise)(const void *(*)(uint32_t));
	*(void **)&initialise = dlsym(library, "InitializeInjectionNvtx2");
	if (!initialise || !initialise(export_table)) {
		dlclose(library);
		return;
	}
	found.push = (int (*)(const char *))core[CORE_RANGE_PUSH];
	found.pop = (int (*)(void))core[CORE_RANGE_POP];
	usable = found.push && found.pop;
}

const nvtx *nvtx_open(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, open_once);
	return usable ? &found : NULL;
}

void nvtx_begin(const nvtx *n, const signature *s, const uint32_t grid[3])
{
	char text[512];
	size_t at = 0;
	int more = snprintf(text, sizeof text, "%s", s->kernel);
	for (uint32_t i = 0; more >= 0 && i < s->nconstants; i++) {
		at += (size_t)more;
		if (at >= sizeof text) break;
		more = snprintf(text + at, sizeof text - at, " %s=%s", s->constants[i].name, s->constants[i].value);
	}
	if (more >= 0 && (at += (size_t)more) < sizeof text)
		snprintf(text + at, sizeof text - at, " num_warps=%u num_stages=%u grid=%u,%u,%u", s->num_warps,
			s->num_stages, grid[0], grid[1], grid[2]);
	n->push(text);
}

void nvtx_end(const nvtx *n)
{
	n->pop();
}
