/* See image.h.
 *
 * The dynamic linker names a library as it was asked for: "./libblk.so", or no folder at all.  Such a name means
 * another file after chdir(), so it is never opened: the kernel's list of mappings has the path of what was mapped.  It
 * is right at any time, so nothing has to be kept from the library's start. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "image.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Where ---- */

static bool copy_path(const char *from, char *path, size_t room)
{
	size_t n = strlen(from);
	if (from[0] != '/' || n >= room) return false;
	memcpy(path, from, n + 1);
	return true;
}

/* "7f00-7f10 r-xp 00000000 08:01 17 /usr/lib/libblk.so"; a file that was replaced since has " (deleted)" behind. */
static bool line_holds(const char *line, uintptr_t address, const char **file)
{
	uintptr_t from, to;
	int at = 0;
	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &from, &to, &at) < 2 || !at) return false;
	*file = line + at;
	return from <= address && address < to;
}

static bool mapped_path(uintptr_t address, char *path, size_t room)
{
	static const char gone[] = " (deleted)";
	char *line = NULL;
	const char *file;
	size_t size = 0;
	bool found = false;
	FILE *f = fopen("/proc/self/maps", "re");
	while (f && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		if (!line_holds(line, address, &file)) continue;
		found = copy_path(file, path, room);
		break;
	}
	size_t n = found ? strlen(path) : 0;
	if (n >= sizeof gone && strcmp(path + n - (sizeof gone - 1), gone) == 0) path[n - (sizeof gone - 1)] = 0;
	free(line);
	if (f) fclose(f);
	return found;
}

bool image_path(const void *address, char *path, size_t room)
{
	Dl_info info;
	struct link_map *image = NULL;
	/* The program itself has no name there; dladdr would give argv[0], which its caller is free to choose. */
	if (dladdr1(address, &info, (void **)&image, RTLD_DL_LINKMAP) && copy_path(image->l_name, path, room))
		return true;
	return mapped_path((uintptr_t)address, path, room);
}

bool image_beside(const char *name, char *path, size_t room)
{
	if (!image_path((const void *)(uintptr_t)image_beside, path, room)) return false;
	size_t folder = (size_t)(strrchr(path, '/') - path) + 1;
	int n = snprintf(path + folder, room - folder, "%s", name);
	return (size_t)n < room - folder;
}

char *image_relative_search(void)
{
	Dl_serinfo size, *all = NULL;
	char *found = NULL;
	void *self = dlopen(NULL, RTLD_NOW);
	if (self && dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) all = calloc(1, size.dls_size);
	if (all && dlinfo(self, RTLD_DI_SERINFOSIZE, all) == 0 && dlinfo(self, RTLD_DI_SERINFO, all) == 0)
		for (unsigned i = 0; !found && i < all->dls_cnt; i++)
			if (all->dls_serpath[i].dls_name[0] != '/') found = strdup(all->dls_serpath[i].dls_name);
	free(all);
	if (self) dlclose(self);
	return found;
}

/* ---- Which ---- */

static bool read_at(int fd, void *to, size_t n, uint64_t at)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(at + done));
		if (got < 0 && errno == EINTR) continue;
		if (got <= 0) return false;
		done += (size_t)got;
	}
	return true;
}

static bool find_note(const char *notes, size_t n, cache_key *out)
{
	for (size_t at = 0; n - at >= sizeof(ElfW(Nhdr));) {
		ElfW(Nhdr) note;
		memcpy(&note, notes + at, sizeof note);
		at += sizeof note;
		size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3,
		       bytes = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > n - at || bytes > n - at - name) return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
			note.n_descsz >= 8) {
			*out = cache_digest(notes + at + name, note.n_descsz);
			return true;
		}
		at += name + bytes;
	}
	return false;
}

static bool read_build_id(int fd, cache_key *out)
{
	enum { MOST = 4096 };
	char notes[MOST];
	ElfW(Ehdr) h;
	ElfW(Phdr) p;
	if (!read_at(fd, &h, sizeof h, 0) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 ||
		h.e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) || h.e_phentsize != sizeof p)
		return false;
	for (unsigned i = 0; i < h.e_phnum; i++) {
		if (!read_at(fd, &p, sizeof p, h.e_phoff + i * sizeof p)) return false;
		if (p.p_type != PT_NOTE || p.p_filesz > MOST) continue;
		if (read_at(fd, notes, p.p_filesz, p.p_offset) && find_note(notes, p.p_filesz, out)) return true;
	}
	return false;
}

/* 100 MB take some 30 ms: a library that is meant to be used has a build id. */
static bool digest_all(int fd, cache_key *out)
{
	enum { PART = 1 << 16 };
	bool good = false;
	XXH3_state_t *state = XXH3_createState();
	char *part = malloc(PART);
	if (state && part) {
		XXH3_128bits_reset(state);
		for (uint64_t at = 0;;) {
			ssize_t got = pread(fd, part, PART, (off_t)at);
			if (got < 0 && errno == EINTR) continue;
			good = got == 0;
			if (got <= 0) break;
			XXH3_128bits_update(state, part, (size_t)got);
			at += (uint64_t)got;
		}
	}
	if (good) {
		XXH128_canonical_t c;
		XXH128_canonicalFromHash(&c, XXH3_128bits_digest(state));
		memcpy(out->bytes, c.digest, sizeof out->bytes);
	}
	XXH3_freeState(state);
	free(part);
	return good;
}

bool image_identity(const char *path, cache_key *out)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) return false;
	bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (read_build_id(fd, out) || digest_all(fd, out));
	close(fd);
	return good;
}
