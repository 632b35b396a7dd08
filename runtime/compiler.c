/* Finds and loads libblkc.  It is looked for beside libblk, then in ../lib from there, then as the dynamic linker
 * finds it; one of another version is refused, as the two share structs.
 *
 * The identity that cache keys hold is the file's size and modification time, not blkc_version(): a warm start must not
 * load LLVM only to learn what it is.  An LLVM that is a library of its own is identified alike, once it is loaded:
 * what it made names it, and holds as long as that file is the same. */
#include "internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool compiler_file_identity(const char *path, cache_key *out)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) return false;
	struct {
		int64_t size, seconds, nanoseconds;
	} facts = {st.st_size, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
	*out = cache_digest(&facts, sizeof facts);
	return true;
}

static bool identify(compiler *c, const char *path)
{
	cache_key k;
	if (!compiler_file_identity(path, &k)) return false;
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
	Dl_info self;
	char path[4096];
	static const char *const places[] = {"libblkc.so", "../lib/libblkc.so"};
	if (!dladdr((void *)compiler_locate, &self) || !self.dli_fname) return;
	const char *slash = strrchr(self.dli_fname, '/');
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		int n = snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - self.dli_fname) + 1 : 0,
			self.dli_fname, places[i]);
		if (n > 0 && (size_t)n < sizeof path && identify(c, path)) return;
	}
}

static blk_status refuse(compiler *c, blk_status status)
{
	if (c->library) dlclose(c->library);
	c->library = NULL;
	memset(&c->api, 0, sizeof c->api);
	return status;
}

blk_status compiler_load(compiler *c)
{
	if (c->api.compile) return BLK_OK;
	/* NODELETE: LLVM does not survive being unloaded and loaded again. */
	const char *name = c->path ? c->path : "libblkc.so";
	c->library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!c->library) return error_set(BLK_ERROR_COMPILER, "the compiler library cannot be loaded: %s", dlerror());
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
	Dl_info where;
	void *llvm = dlsym(c->library, "LLVMGetVersion"); /* not to be seen where LLVM is inside libblkc */
	if (llvm && dladdr(llvm, &where) && where.dli_fname) c->llvm = strdup(where.dli_fname);
	if (!c->path && dladdr(*(void **)&c->api.compile, &where) && where.dli_fname) identify(c, where.dli_fname);
	return BLK_OK;
}

void compiler_unload(compiler *c)
{
	if (c->library) dlclose(c->library);
	free(c->path);
	free(c->llvm);
	memset(c, 0, sizeof *c);
}
