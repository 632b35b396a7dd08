/* Finds and loads libblkc.  It is looked for beside libblk's own file, then in ../lib from there, then as the dynamic
 * linker finds it, but never in the process's current folder; one of another version is refused, as the two share
 * structs.
 *
 * The identity that cache keys hold is the file's build id, not blkc_version(): a warm start must not load LLVM only to
 * learn what it is.  An LLVM that is a library of its own is identified alike, once it is loaded: what it made names
 * it, and holds as long as that file is the same build. */
#include "cache/image.h"
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The version of the binary interface is in the name: an installed libblkc.so is for those who link. */
#define LIBRARY "libblkc.so." BLK_ABI_MAJOR

static bool identify(compiler *c, const char *path)
{
	cache_key k;
	if (!image_identity(path, &k)) return false;
	memcpy(&c->identity, k.bytes, sizeof c->identity);
	free(c->path);
	c->path = strdup(path);
	return true;
}

void compiler_locate(compiler *c, const compiler_api *given)
{
	memset(c, 0, sizeof *c);
	if (given) {
		c->api = *given;
		c->identity = 1;
		return;
	}
	char path[4096];
	static const char *const places[] = {LIBRARY, "../lib/" LIBRARY};
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
		if (image_beside(places[i], path, sizeof path) && identify(c, path)) return;
}

static blk_status refuse(compiler *c, blk_status status)
{
	dlclose(c->library);
	c->library = NULL;
	memset(&c->api, 0, sizeof c->api);
	return status;
}

/* Keys name the build that was there when the device was opened. */
static bool replaced(const compiler *c)
{
	cache_key now;
	return c->path && (!image_identity(c->path, &now) || memcmp(&now, &c->identity, sizeof c->identity) != 0);
}

/* As the dynamic linker finds it, unless that would look where the process happens to stand. */
static blk_status check_search(const compiler *c)
{
	char *relative = c->path ? NULL : image_relative_search();
	if (!relative) return BLK_OK;
	error_record("the compiler library " LIBRARY " is not beside libblk, and the dynamic linker's search has the "
		     "relative folder \"%s\", which is another one wherever this process stands: make LD_LIBRARY_PATH "
		     "absolute (an empty entry is the current folder)",
		relative);
	free(relative);
	return BLK_ERROR_COMPILER;
}

static bool can_map(size_t bytes, int protection)
{
	void *p = mmap(NULL, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p != MAP_FAILED && munmap(p, bytes) == 0;
}

/* LLVM's constructors abort the process where they find no memory; what they and the library's own pages need, and a
 * small compile after it, is asked for before. */
static blk_status check_memory(void)
{
	enum { ADDRESSES = 320 << 20, MEMORY = 32 << 20 };
	if (can_map(ADDRESSES, PROT_NONE) && can_map(MEMORY, PROT_READ | PROT_WRITE)) return BLK_OK;
	return error_set(BLK_ERROR_MEMORY,
		"out of memory: to load the compiler library this process needs %d MiB of addresses (RLIMIT_AS)",
		ADDRESSES >> 20);
}

blk_status compiler_load(compiler *c)
{
	if (c->api.compile) return BLK_OK;
	blk_status status = check_search(c);
	if (!status) status = check_memory();
	if (status) return status;
	/* NODELETE: LLVM does not survive being unloaded and loaded again. */
	const char *name = c->path ? c->path : LIBRARY;
	c->library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!c->library) return error_set(BLK_ERROR_COMPILER, "the compiler library cannot be loaded: %s", dlerror());
	if (replaced(c))
		return refuse(c, error_set(BLK_ERROR_COMPILER,
					 "%s was replaced after the device was opened; open the device again", name));
	*(void **)&c->api.compile = dlsym(c->library, "blkc_compile");
	*(void **)&c->api.result_free = dlsym(c->library, "blkc_result_free");
	*(void **)&c->api.version = dlsym(c->library, "blkc_version");
	if (!c->api.compile || !c->api.result_free || !c->api.version)
		return refuse(c, error_set(BLK_ERROR_COMPILER, "%s is no blk compiler library", name));
	const char *version = c->api.version();
	size_t n = strlen("blk " BLK_VERSION);
	if (strncmp(version, "blk " BLK_VERSION, n) != 0 || (version[n] && version[n] != ','))
		return refuse(c, error_set(BLK_ERROR_COMPILER, "%s is \"%s\", but libblk is version %s", name, version,
					 BLK_VERSION));
	char where[4096];
	void *llvm = dlsym(c->library, "LLVMGetVersion"); /* not to be seen where LLVM is inside libblkc */
	if (llvm && image_path(llvm, where, sizeof where)) c->llvm = strdup(where);
	if (!c->path && image_path(*(void **)&c->api.compile, where, sizeof where)) identify(c, where);
	return BLK_OK;
}

void compiler_unload(compiler *c)
{
	if (c->library) dlclose(c->library);
	free(c->path);
	free(c->llvm);
	memset(c, 0, sizeof *c);
}
