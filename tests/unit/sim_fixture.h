/* Kernels in hand-made PTX, run on the simulator.
 *
 * Each is k(out: *u32, in: *const u32, n: i32) with %out, %in, %n, %tid and %cta loaded and registers %r, %rd, %p, %h
 * declared; a test gives the instructions behind that. */
#ifndef BLK_SIM_FIXTURE_H
#define BLK_SIM_FIXTURE_H

#include <blk.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sim_case {
	const char *declarations; /* before the entry; may be null */
	const char *body;
	unsigned threads, programs, shared; /* 0: 32, 1, 256 */
	int n;
	uint32_t out[256], in[64];
	size_t out_bytes, in_bytes; /* 0: all of them */
	bool blank;                 /* `out` is not filled before the launch */
	bool same;                  /* `in` is passed as `out` too */
	blk_sim_options options;
	blk_sim_counters counters;
} sim_case;

static inline char *sim_text(const sim_case *c)
{
	size_t room = strlen(c->body) + (c->declarations ? strlen(c->declarations) : 0) + 4096;
	char *t = malloc(room);
	if (!t) return NULL;
	unsigned threads = c->threads ? c->threads : 32;
	snprintf(t, room,
		"// blk: kernel k\n// blk: symbol k\n// blk: param out *u32\n// blk: param in *const u32\n// blk: "
		"param n i32\n"
		"// blk: num_warps %u\n// blk: target sm_80\n// blk: written 0\n// blk: threads %u\n// blk: shared %u\n"
		".version 7.0\n.target sm_80\n.address_size 64\n.extern .shared .align 128 .b8 blk_shared[];\n%s\n"
		".visible .entry k(.param .u64 .ptr .global .align 4 k_param_0, .param .u64 k_param_1, .param .u32 "
		"k_param_2)\n"
		".reqntid %u, 1, 1\n{\n.reg .pred %%p<16>;\n.reg .b16 %%h<32>;\n.reg .b32 %%r<64>, %%tid, %%cta, %%n;\n"
		".reg .b64 %%rd<32>, %%out, %%in;\n"
		"ld.param.b64 %%out, [k_param_0];\nld.param.b64 %%in, [k_param_1];\nld.param.b32 %%n, [k_param_2];\n"
		"mov.u32 %%tid, %%tid.x;\nmov.u32 %%cta, %%ctaid.x;\n%s\nret;\n}\n.file 1 \"made.blk\"\n",
		(threads + 31) / 32, threads, c->shared ? c->shared : 256, c->declarations ? c->declarations : "",
		threads, c->body);
	return t;
}

/* The launch's status, or the one of what failed before it; `out` has the buffer afterwards. */
static inline blk_status sim_try(sim_case *c)
{
	blk_device *d = NULL;
	blk_module *m = NULL;
	blk_kernel *k = NULL;
	blk_buffer *out = NULL, *in = NULL;
	char *text = sim_text(c);
	size_t out_bytes = c->out_bytes ? c->out_bytes : sizeof c->out,
	       in_bytes = c->in_bytes ? c->in_bytes : sizeof c->in;
	blk_grid grid = {c->programs ? c->programs : 1, 1, 1};
	setenv("BLK_CACHE", "off", 1);
	blk_status status = text ? blk_device_open("sim", &d) : BLK_ERROR_MEMORY;
	if (!status) status = blk_sim_configure(d, &c->options);
	if (!status) status = blk_module_source(d, "made.ptx", text, NULL, 0, &m);
	if (!status) status = blk_kernel_find(m, "k", &k);
	if (!status) status = blk_buffer_create(d, out_bytes, &out);
	if (!status) status = blk_buffer_create(d, in_bytes, &in);
	if (!status && !c->blank) status = blk_buffer_write(out, 0, c->out, out_bytes);
	if (!status) status = blk_buffer_write(in, 0, c->in, in_bytes);
	if (!status)
		status = blk_launch(k, NULL, &grid, BLK_ARGS(blk_buf(c->same ? in : out), blk_buf(in), blk_i32(c->n)));
	if (!status) status = blk_device_sync(d);
	if (!status) status = blk_sim_count(d, &c->counters);
	if (!status) status = blk_buffer_read(out, 0, c->out, out_bytes);
	free(text);
	blk_device_close(d);
	return status;
}

#endif
