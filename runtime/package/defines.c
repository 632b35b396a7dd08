/* See defines.h. */
#include "defines.h"

#include "base/growing.h"

#include <stdlib.h>
#include <string.h>

const signature_constant *kernel_constant(const signature *s, const char *name)
{
	for (uint32_t i = 0; i < s->nconstants; i++)
		if (strcmp(s->constants[i].name, name) == 0) return &s->constants[i];
	return NULL;
}

const uint32_t *kernel_option(const signature *s, const char *name)
{
	const struct {
		const char *name;
		const uint32_t *value;
	} all[] = {{"num_warps", &s->num_warps}, {"num_stages", &s->num_stages}, {"num_ctas", &s->num_ctas},
		{"maxnreg", &s->maxnreg}, {"max_registers", &s->max_registers}, {"max_spills", &s->max_spills},
		{"max_shared", &s->max_shared}, {"strict", &s->strict}, {"launch_pdl", &s->launch_pdl}};
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		if (strcmp(all[i].name, name) == 0) return all[i].value;
	return NULL;
}

/* Cuts "BM=64,shape=[1,2]" up in place; a comma inside brackets belongs to the value. */
static size_t cut_up(char *text, blkc_define *out)
{
	size_t n = 0;
	for (char *at = text; *at;) {
		char *name = at, *equals = strchr(at, '=');
		int depth = 0;
		if (!equals) break;
		*equals = 0;
		for (at = equals + 1; *at && (*at != ',' || depth > 0); at++) depth += (*at == '[') - (*at == ']');
		if (*at) *at++ = 0;
		out[n++] = (blkc_define){name, equals + 1};
	}
	return n;
}

bool kernel_defines_make(
	const signature *s, const blkc_define *given, size_t ngiven, const char *text, kernel_defines *out)
{
	size_t words = 0;
	*out = (kernel_defines){.text = strdup(text ? text : "")};
	for (const char *p = out->text; p && *p; p++) words += *p == '=';
	out->list = calloc(ngiven + words + 1, sizeof *out->list);
	if (!out->text || !out->list) {
		kernel_defines_free(out);
		return false;
	}
	for (size_t i = 0; i < ngiven; i++)
		if (kernel_constant(s, given[i].name) || kernel_option(s, given[i].name))
			out->list[out->n++] = given[i];
	out->n += cut_up(out->text, out->list + out->n);
	return true;
}

char *kernel_value_name(const char *kernel, const blkc_define *values, size_t n)
{
	growing w = {0};
	grow_text(&w, kernel);
	for (size_t i = 0; i < n; i++) grow_format(&w, "%s%s=%s", i ? "," : " ", values[i].name, values[i].value);
	if (!w.failed) return w.at;
	free(w.at);
	return NULL;
}

void kernel_defines_free(kernel_defines *c)
{
	free(c->list);
	free(c->text);
	*c = (kernel_defines){0};
}
