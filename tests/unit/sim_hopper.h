/* Hand-made kernels of sm_90a on the simulator, without the runtime around it: a test says what is in shared memory at
 * the start, what the threads do, and looks at what they store.
 *
 * Each is k(out, in, three tensor maps): %out, %in, %tid, %cta and %smem are loaded, %m0..2 are the maps; %r, %rd, %f,
 * %p are declared.  `in` is not written; with `image` its first bytes are copied to shared memory first, by all
 * threads. */
#ifndef BLK_SIM_HOPPER_H
#define BLK_SIM_HOPPER_H

#include "runtime/sim/sim.h"
#include "runtime/device/tensor_map.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOPPER_OUT = 1 << 17, HOPPER_IN = 1 << 17, HOPPER_TEXT = 1 << 18 };

typedef struct hopper {
	uint32_t threads, programs, cluster, shared; /* 0: 128, 1, 1, 1024 */
	uint32_t image;                              /* bytes */
	bool no_fence;                               /* behind the copying */
	uint64_t seed, steps;                        /* 0: many */
	bool json;                                   /* how a problem is written */
	uint32_t rows, layers;                       /* of programs; 0: 1 */
	uint32_t first;                              /* only so many clusters run; 0: all */
	bool filled;                                 /* `out` is defined from the start */
	tensor_map_request map[3];
	tensor_map maps[3];
	char body[HOPPER_TEXT];
	size_t used;
	_Alignas(16) uint8_t in[HOPPER_IN], out[HOPPER_OUT], in_shadow[HOPPER_IN], out_shadow[HOPPER_OUT];
	char problem[4096];
} hopper;

static inline void hopper_add(hopper *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void hopper_add(hopper *h, const char *fmt, ...)
{
	va_list list;
	va_start(list, fmt);
	h->used += (size_t)vsnprintf(h->body + h->used, sizeof h->body - h->used, fmt, list);
	va_end(list);
	if (h->used >= sizeof h->body) abort();
}

static inline hopper *hopper_new(void)
{
	hopper *h = aligned_alloc(64, (sizeof *h + 63) / 64 * 64);
	if (!h) abort();
	memset(h, 0, sizeof *h);
	return h;
}

static const char hopper_head[] = ".version 8.6\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 "
				  "smem[];\n.visible .entry k(.param .u64 "
				  "out_, .param .u64 in_, .param .align 64 .b8 m0_[128], .param .align 64 .b8 "
				  "m1_[128], .param .align 64 .b8 m2_[128])\n";

static inline char *hopper_text(const hopper *h)
{
	size_t room = sizeof h->body + 8192;
	char *t = malloc(room), cluster[64] = "";
	uint32_t threads = h->threads ? h->threads : 128;
	if (!t) return NULL;
	if (h->cluster > 1) snprintf(cluster, sizeof cluster, ".explicitcluster\n.reqnctapercluster %u\n", h->cluster);
	int n = snprintf(t, room,
		"%s.reqntid %u, 1, 1\n%s{\n.reg .pred %%p<16>;\n.reg .b32 %%r<64>, %%f<256>, %%tid, %%cta, %%smem;\n"
		".reg .b64 %%rd<64>, %%out, %%in, %%m0, %%m1, %%m2;\n"
		"ld.param.b64 %%out, [out_];\nld.param.b64 %%in, [in_];\nmov.b64 %%m0, m0_;\ncvta.param.u64 %%m0, "
		"%%m0;\n"
		"mov.b64 %%m1, m1_;\ncvta.param.u64 %%m1, %%m1;\nmov.b64 %%m2, m2_;\ncvta.param.u64 %%m2, %%m2;\n"
		"mov.u32 %%tid, %%tid.x;\nmov.u32 %%cta, %%ctaid.x;\nmov.b32 %%smem, smem;\n",
		hopper_head, threads, cluster);
	if (h->image)
		n += snprintf(t + n, room - (size_t)n,
			"shl.b32 %%r0, %%tid, 4;\nFILL:\nsetp.ge.u32 %%p0, %%r0, %u;\n@%%p0 bra FILLED;\n"
			"cvt.u64.u32 %%rd0, %%r0;\nadd.s64 %%rd0, %%rd0, %%in;\nadd.s32 %%r1, %%r0, %%smem;\n"
			"ld.global.v4.b32 {%%r2, %%r3, %%r4, %%r5}, [%%rd0];\nst.shared.v4.b32 [%%r1], {%%r2, %%r3, "
			"%%r4, "
			"%%r5};\n"
			"add.s32 %%r0, %%r0, %u;\nbra.uni FILL;\nFILLED:\n%sbar.sync 0;\n",
			h->image, 16 * threads, h->no_fence ? "" : "fence.proxy.async.shared::cta;\n");
	snprintf(t + n, room - (size_t)n, "%s\nret;\n}\n", h->body);
	return t;
}

/* True: it ran; else `problem` says what was found, or why it was not read. */
static inline bool hopper_run(hopper *h)
{
	static const char *const names[] = {"out", "in"};
	sim_code *code = NULL;
	char *text = hopper_text(h);
	h->problem[0] = 0;
	if (!text) return false;
	bool good = sim_code_parse(text, "k", &code, h->problem, sizeof h->problem);
	free(text);
	if (!good) return false;
	const uint64_t arguments[] = {(uint64_t)(uintptr_t)h->out, (uint64_t)(uintptr_t)h->in};
	for (int i = 0; i < 3; i++) memcpy(&h->maps[i], &h->map[i], sizeof h->maps[i]);
	if (!h->filled) memset(h->out_shadow, 0xff, sizeof h->out_shadow);
	sim_range ranges[] = {
		{.base = arguments[1], .bytes = HOPPER_IN, .shadow = h->in_shadow, .parameter = 1, .read_only = true},
		{.base = arguments[0], .bytes = HOPPER_OUT, .shadow = h->out_shadow, .parameter = 0}};
	uint32_t programs = h->programs ? h->programs : 1, cluster = h->cluster ? h->cluster : 1;
	uint32_t rows = h->rows ? h->rows : 1, layers = h->layers ? h->layers : 1;
	if (ranges[0].base > ranges[1].base) {
		sim_range r = ranges[0];
		ranges[0] = ranges[1];
		ranges[1] = r;
	}
	sim_launch l = {.code = code,
		.kernel = "k",
		.names = names,
		.arguments = arguments,
		.nparameters = 2,
		.maps = h->maps,
		.nmaps = 3,
		.grid = {programs, rows, layers},
		.ranges = ranges,
		.nranges = 2,
		.shared_bytes = code->shared_bytes + (h->shared ? h->shared : 1024),
		.step_limit = h->steps ? h->steps : 100000000,
		.json = h->json,
		.seed = h->seed};
	pthread_mutex_init(&l.lock, NULL);
	sim_cluster *c = sim_races_begin(&l) ? sim_cluster_new(&l, h->threads ? h->threads : 128) : NULL;
	if (!c) sim_out_of_memory(&l);
	uint32_t across = programs / cluster, clusters = h->first ? h->first : across * rows * layers;
	for (uint32_t i = 0; c && i < clusters && !atomic_load(&l.stopped); i++) {
		sim_cluster_start(c, (const uint32_t[3]){i % across, i / across % rows, i / across / rows});
		while (sim_cluster_run(c, l.step_limit) == SIM_WAITS) continue;
	}
	sim_cluster_free(c);
	sim_races_end(&l);
	snprintf(h->problem, sizeof h->problem, "%s", l.text ? l.text : "");
	free(l.text);
	pthread_mutex_destroy(&l.lock);
	sim_code_free(code);
	return l.problem == PROBLEM_NONE;
}

#endif
