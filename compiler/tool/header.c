/* C headers: one typed launcher for each kernel, so that a wrong argument is the C compiler's error and not a launch's.
 *
 *   static inline blk_status add_launch(blk_module *, struct CUstream_st *, float *z, const float *x, int32_t n)
 *   static inline blk_status add_launch_buffers(blk_module *, struct CUstream_st *, blk_buffer *z, blk_buffer *x, ..)
 *
 * The second one has another name, not an overload in C++: a null for a pointer would fit both.
 *
 * A launcher looks its kernel up by name in the module each time (a comparison of a few strings): nothing is remembered
 * outside the module, so that modules may come and go in any thread.  What is written is C11 and C++17. */
#include "tool.h"

#include "base/growing.h"
#include "package/signature.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ORDER blk_type: the C type of a number, of what a pointer points to, and the call that wraps a number. */
static const struct {
	const char *number, *element, *wrap;
} types[] = {
	{"bool", "uint8_t", "blk_bool"},
	{"int8_t", "int8_t", "blk_i8"},
	{"int16_t", "int16_t", "blk_i16"},
	{"int32_t", "int32_t", "blk_i32"},
	{"int64_t", "int64_t", "blk_i64"},
	{"uint8_t", "uint8_t", "blk_u8"},
	{"uint16_t", "uint16_t", "blk_u16"},
	{"uint32_t", "uint32_t", "blk_u32"},
	{"uint64_t", "uint64_t", "blk_u64"},
	{"uint8_t", "uint8_t", "blk_f8e4m3"},
	{"uint8_t", "uint8_t", "blk_f8e5m2"},
	{"uint16_t", "uint16_t", "blk_f16"},
	{"uint16_t", "uint16_t", "blk_bf16"},
	{"float", "float", "blk_f32"},
	{"double", "double", "blk_f64"},
};

/* Names that mean something in C or C++, or in the launcher itself. */
static const char reserved[] =
	" alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
	"char32_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit "
	"continue "
	"decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto "
	"if "
	"inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
	"register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast "
	"struct "
	"switch template this thread_local throw true try typedef typeid typename typeof union unsigned using virtual "
	"void volatile wchar_t while xor xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t NULL "
	"CUstream_st unix linux i386 errno stdin stdout stderr EOF ";

/* The name of a parameter in C.  One that is taken gets an underscore; one that is taken and has some already gets one
 * more, so that two names never become the same. */
static void put_name(growing *w, const char *name)
{
	size_t n = strlen(name);
	while (n && name[n - 1] == '_') n--;
	char word[256];
	int length = snprintf(word, sizeof word, " %.*s ", (int)n, name);
	bool taken = strncmp(name, "blk_", 4) == 0 ||
		     (length > 0 && (size_t)length < sizeof word && strstr(reserved, word) != NULL);
	grow_format(w, "%s%s", name, taken ? "_" : "");
}

static void put_launcher_name(growing *w, const char *kernel)
{
	grow_format(w, "%s_launch", strcmp(kernel, "blk") == 0 ? "blk_kernel" : kernel); /* blk_launch is libblk's */
}

static void put_parameters(growing *w, const signature *s, bool buffers)
{
	grow_format(w, "blk_module *blk_m, struct CUstream_st *blk_stream_");
	if (!s->ngrid) grow_format(w, ", blk_grid blk_programs");
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		grow_format(w, ",\n\t");
		if (p->code == BLK_TYPE_POINTER && buffers)
			grow_format(w, "blk_buffer *");
		else if (p->code == BLK_TYPE_POINTER)
			grow_format(w, "%s%s *", p->is_const ? "const " : "", types[p->element].element);
		else
			grow_format(w, "%s ", types[p->code].number);
		put_name(w, p->name);
	}
}

/* `pointer`: the call that wraps one; null: null pointers. */
static void put_arguments(growing *w, const signature *s, const char *pointer)
{
	grow_format(w, "\tconst blk_arg blk_args[] = {");
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		bool is_pointer = p->code == BLK_TYPE_POINTER;
		if (is_pointer && !pointer) {
			grow_format(w, "%sblk_ptr(NULL)", i ? ", " : "");
			continue;
		}
		grow_format(w, "%s%s(", i ? ", " : "", is_pointer ? pointer : types[p->code].wrap);
		put_name(w, p->name);
		grow_format(w, ")");
	}
	grow_format(w, "};\n");
}

/* In a comment, which it must not end. */
static void put_requirement(growing *w, const signature_requirement *q)
{
	char text[512];
	signature_requirement_text(q, text, sizeof text);
	for (char *end; (end = strstr(text, "*/"));) *end = '.';
	grow_format(w, "\n * It requires %s.", text);
}

static void put_launcher(growing *w, const signature *s, bool buffers)
{
	grow_format(w, "static inline blk_status ");
	put_launcher_name(w, s->kernel);
	grow_format(w, "%s(", buffers ? "_buffers" : "");
	put_parameters(w, s, buffers);
	grow_format(w, ")\n{\n");
	if (s->nparameters) put_arguments(w, s, buffers ? "blk_buf" : "blk_ptr");
	grow_format(w,
		"\tblk_kernel *blk_k;\n\tblk_status blk_s = blk_kernel_find(blk_m, \"%s\", &blk_k);\n"
		"\treturn blk_s ? blk_s : blk_launch_on(blk_k, blk_stream_, %s, %s, %u);\n}\n",
		s->kernel, s->ngrid ? "NULL" : "&blk_programs", s->nparameters ? "blk_args" : "NULL", s->nparameters);
}

/* A question that needs no buffers: what a launch computes of these numbers. */
static void put_question(growing *w, const signature *s, const signature_computed *c)
{
	grow_format(w, "static inline blk_status %s_computed_%s(blk_module *blk_m",
		strcmp(s->kernel, "blk") ? s->kernel : "blk_kernel", c->name);
	for (uint32_t i = 0; i < s->nparameters; i++) {
		const signature_parameter *p = &s->parameters[i];
		if (p->code == BLK_TYPE_POINTER) continue;
		grow_format(w, ", %s ", types[p->code].number);
		put_name(w, p->name);
	}
	grow_format(w, ", int64_t *blk_value)\n{\n");
	if (s->nparameters) put_arguments(w, s, NULL);
	grow_format(w,
		"\tblk_kernel *blk_k;\n\tblk_status blk_s = blk_kernel_find(blk_m, \"%s\", &blk_k);\n"
		"\treturn blk_s ? blk_s : blk_kernel_constant(blk_k, \"%s\", %s, %u, blk_value);\n}\n",
		s->kernel, c->name, s->nparameters ? "blk_args" : "NULL", s->nparameters);
}

static const signature_computed *computed(const signature *s, const char *name)
{
	for (uint32_t i = 0; i < s->ncomputed; i++)
		if (strcmp(s->computed[i].name, name) == 0) return &s->computed[i];
	return NULL;
}

static void put_computed(growing *w, const signature_computed *c)
{
	char text[512];
	snprintf(text, sizeof text, "%s", c->value.source);
	for (char *end; (end = strstr(text, "*/"));) *end = '.';
	grow_format(w, "\n * A launch computes %s = %s", c->name, text);
	if (c->bounded) grow_format(w, " in %lld..%lld", (long long)c->low, (long long)c->high);
	grow_format(w, ".");
}

static bool has_pointers(const signature *s)
{
	for (uint32_t i = 0; i < s->nparameters; i++)
		if (s->parameters[i].code == BLK_TYPE_POINTER) return true;
	return false;
}

static void put_kernel(growing *w, const signature *s)
{
	grow_format(w, "\n/* kernel %s(", s->kernel);
	for (uint32_t i = 0; i < s->nparameters; i++)
		grow_format(w, "%s%s: %s", i ? ", " : "", s->parameters[i].name, s->parameters[i].type);
	grow_format(w, ")");
	const char *before = "; by default ";
	for (uint32_t i = 0; i < s->nconstants; i++) {
		if (computed(s, s->constants[i].name)) continue;
		grow_format(w, "%s%s = %s", before, s->constants[i].name, s->constants[i].value);
		before = ", ";
	}
	for (uint32_t i = 0; i < s->ncomputed; i++) put_computed(w, &s->computed[i]);
	/* The last ones are about this code, not about the kernel. */
	for (uint32_t i = 0; i + s->ncomputed < s->nrequirements; i++) put_requirement(w, &s->requirements[i]);
	grow_format(w, "%s */\n",
		s->ngrid ? "" : "\n * It has no grid clause: the launch says how many programs there are.");
	put_launcher(w, s, false);
	if (has_pointers(s)) put_launcher(w, s, true);
	for (uint32_t i = 0; i < s->ncomputed; i++) put_question(w, s, &s->computed[i]);
}

char *tool_header(const char *input, const blkc_result *checked, size_t *bytes)
{
	growing w = {0};
	const char *slash = strrchr(input, '/'), *base = slash ? slash + 1 : input;
	char guard[128];
	size_t n = 0;
	for (const char *p = base; *p && n + 1 < sizeof guard; p++)
		guard[n++] = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
	guard[n] = 0;
	grow_format(&w,
		"/* Launchers for the kernels of %s, written by blkc.\n *\n"
		" * `blk_m` is a module opened from that source or its package.  Pointers are to device memory\n"
		" * (blk_buffer_pointer(), or a CUdeviceptr); NAME_launch_buffers takes buffers in their place.  "
		"16-bit "
		"and 8-bit\n"
		" * floats are passed as their bits.  The stream is a CUstream, NULL for the default one.  Returns as "
		"blk_launch()\n"
		" * does. */\n",
		base);
	grow_format(&w,
		"#ifndef BLK_HEADER_%s\n#define BLK_HEADER_%s\n\n#include <blk.h>\n#include <stdbool.h>\n#include "
		"<stddef.h>\n#include <stdint.h>\n\nstruct CUstream_st;\n",
		guard, guard);
	for (size_t i = 0; i < checked->nkernels && !w.failed; i++) {
		signature *s;
		const char *text = checked->kernels[i].signature;
		w.failed = signature_parse(text, strlen(text), &s) != BLK_OK;
		if (w.failed) break;
		put_kernel(&w, s);
		signature_free(s);
	}
	grow_format(&w, "\n#endif\n");
	if (w.failed) {
		free(w.at);
		return NULL;
	}
	*bytes = w.n;
	return w.at;
}
