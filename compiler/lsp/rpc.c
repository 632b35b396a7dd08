/* Framing and dispatch.
 *
 * In: bytes: headers, then a JSON-RPC message each.  Out: handlers' results, framed; nothing else is ever written.
 * The one idea: what has arrived is read before the next message is handled.  So a request that was cancelled meanwhile
 * is answered at once, and diagnostics, which are due when no message waits, cost nothing while somebody types fast.
 * What is no message is answered with an error or skipped, and the next header is looked for. */
#include "lsp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	HEADER_MOST = 4096,
	BODY_MOST = 4 * SOURCE_LIMIT,
	AHEAD = 64, /* messages that are read before one is handled */
};
enum { /* JSON-RPC's and the protocol's errors */
	PARSE_ERROR = -32700,
	INVALID_REQUEST = -32600,
	METHOD_NOT_FOUND = -32601,
	INVALID_PARAMS = -32602,
	INTERNAL_ERROR = -32603,
	NOT_INITIALIZED = -32002,
	REQUEST_CANCELLED = -32800,
};

/* ---- writing ---- */

void send_message(server *s, json_t *m)
{
	char *body = must(json_dumps(m, JSON_COMPACT)), header[64];
	json_decref(m);
	size_t n = strlen(body);
	int h = snprintf(header, sizeof header, "Content-Length: %zu\r\n\r\n", n);
	char *whole = must(malloc((size_t)h + n));
	memcpy(whole, header, (size_t)h);
	memcpy(whole + h, body, n);
	free(body);
	for (size_t done = 0; done < (size_t)h + n && !s->ended;) {
		ssize_t put = write(s->out, whole + done, (size_t)h + n - done);
		if (put >= 0) done += (size_t)put;
		if (put < 0 && errno != EINTR) s->ended = true; /* nobody reads any more */
	}
	free(whole);
}

static void reply(server *s, const json_t *id, json_t *result)
{
	send_message(
		s, json_pack("{s:s,s:O,s:o}", "jsonrpc", "2.0", "id", id, "result", result ? result : json_null()));
}

static void refuse(server *s, const json_t *id, int code, const char *why)
{
	send_message(s, json_pack("{s:s,s:O,s:{s:i,s:s}}", "jsonrpc", "2.0", "id", id ? id : json_null(), "error",
				"code", code, "message", why));
}

/* ---- reading ---- */

/* Takes what has come; waits for it where `wait` says so.  False: nothing came. */
static bool fill(server *s, bool wait)
{
	struct pollfd p = {.fd = s->in, .events = POLLIN};
	if (s->closed || (!wait && poll(&p, 1, 0) <= 0)) return false;
	if (s->used == s->room) {
		s->room = s->room ? 2 * s->room : 65536;
		s->buffer = must(realloc(s->buffer, s->room));
	}
	ssize_t n;
	do n = read(s->in, s->buffer + s->used, s->room - s->used);
	while (n < 0 && errno == EINTR);
	s->closed = n <= 0;
	if (n > 0) s->used += (size_t)n;
	return n > 0;
}

static void drop(server *s, size_t n)
{
	memmove(s->buffer, s->buffer + n, s->used - n);
	s->used -= n;
	if (s->room > (1 << 20) && s->used < s->room / 4) { /* a large message is gone */
		s->room /= 2;
		s->buffer = must(realloc(s->buffer, s->room));
	}
}

/* The number behind "Content-Length:" in a header of n bytes; -1: there is none. */
static long content_length(const char *header, size_t n)
{
	static const char name[] = "content-length:";
	for (size_t i = 0; i + sizeof name - 1 <= n; i++) {
		if ((i && header[i - 1] != '\n') || strncasecmp(header + i, name, sizeof name - 1) != 0) continue;
		char digits[16], *end;
		size_t from = i + sizeof name - 1, to = from;
		while (to < n && header[to] != '\r' && header[to] != '\n') to++;
		if (to - from >= sizeof digits) return -1;
		memcpy(digits, header + from, to - from);
		digits[to - from] = 0;
		long length = strtol(digits, &end, 10);
		return end == digits || *end || length < 0 || length > BODY_MOST ? -1 : length;
	}
	return -1;
}

/* One message of the buffer; false: it holds no whole one.  *out null: what stood there was none. */
static bool take(server *s, json_t **out)
{
	*out = NULL;
	const char *end = s->used ? memmem(s->buffer, s->used, "\r\n\r\n", 4) : NULL;
	if (!end && s->used <= HEADER_MOST) return false;
	size_t header = end ? (size_t)(end - s->buffer) + 4 : s->used - 3;
	long length = end && header <= HEADER_MOST ? content_length(s->buffer, header) : -1;
	if (length < 0) {
		drop(s, header);
		return true;
	}
	if (s->used - header < (size_t)length) return false;
	*out = json_loadb(s->buffer + header, (size_t)length, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	drop(s, header + (size_t)length);
	return true;
}

static void read_messages(server *s)
{
	json_t *m;
	while (s->nqueue < AHEAD) {
		if (!take(s, &m)) {
			if (!fill(s, false)) return;
			continue;
		}
		if (!m) {
			refuse(s, NULL, PARSE_ERROR, "this is no JSON message with a Content-Length");
			continue;
		}
		if (s->nqueue == s->queue_room) {
			s->queue_room = AHEAD;
			s->queue = must(realloc(s->queue, AHEAD * sizeof *s->queue));
		}
		s->queue[s->nqueue++] = m;
	}
}

/* ---- the protocol's own requests ---- */

void server_include(server *s, const char *folder)
{
	s->include_paths = must(realloc(s->include_paths, (s->ninclude_paths + 1) * sizeof *s->include_paths));
	s->include_paths[s->ninclude_paths++] = must(strdup(folder));
}

void server_define(server *s, const char *name, const char *value)
{
	s->defines = must(realloc(s->defines, (s->ndefines + 1) * sizeof *s->defines));
	s->defines[s->ndefines++] = (blkc_define){must(strdup(name)), must(strdup(value))};
}

static json_t *initialize(server *s, const json_t *params, const char **why)
{
	(void)why;
	size_t i;
	json_t *v;
	const json_t *options = json_object_get(params, "initializationOptions");
	const json_t *folders = json_object_get(params, "workspaceFolders");
	const char *folder = json_string_value(json_object_get(params, "rootUri")), *name;
	const char *first = json_string_value(json_object_get(json_array_get(folders, 0), "uri"));
	s->initialized = true;
	if (first) folder = first;
	if (folder && !s->folder) s->folder = path_of_uri(folder);
	json_array_foreach (json_object_get(options, "include"), i, v)
		if (json_is_string(v)) server_include(s, json_string_value(v));
	json_object_foreach (json_object_get(options, "defines"), name, v)
		if (json_is_string(v)) server_define(s, name, json_string_value(v));
	return json_pack("{s:{s:s,s:{s:b,s:i,s:b},s:b,s:b,s:b,s:{s:b},s:b,s:{s:[s]},s:{s:[ss]},s:b,s:b},s:{s:s,s:s}}",
		"capabilities", "positionEncoding", "utf-16", "textDocumentSync", "openClose", 1, "change", 2, "save",
		1, "hoverProvider", 1, "definitionProvider", 1, "referencesProvider", 1, "renameProvider",
		"prepareProvider", 1, "documentSymbolProvider", 1, "completionProvider", "triggerCharacters", ".",
		"signatureHelpProvider", "triggerCharacters", "(", ",", "documentFormattingProvider", 1,
		"inlayHintProvider", 1, "serverInfo", "name", "blk-lsp", "version", BLK_VERSION);
}

static json_t *shut_down(server *s, const json_t *params, const char **why)
{
	(void)params, (void)why;
	s->shut_down = true;
	return NULL;
}

static const struct {
	const char *method;
	feature *answer;
} requests[] = {
	{"initialize", initialize},
	{"shutdown", shut_down},
	{"textDocument/hover", lsp_hover},
	{"textDocument/definition", lsp_definition},
	{"textDocument/references", lsp_references},
	{"textDocument/prepareRename", lsp_prepare_rename},
	{"textDocument/rename", lsp_rename},
	{"textDocument/documentSymbol", lsp_symbols},
	{"textDocument/completion", lsp_completion},
	{"textDocument/signatureHelp", lsp_signature},
	{"textDocument/formatting", lsp_format},
	{"textDocument/inlayHint", lsp_hints},
};
enum { REQUESTS = sizeof requests / sizeof *requests };

static void request(server *s, const json_t *id, const char *method, const json_t *params)
{
	const char *why = NULL;
	bool first = strcmp(method, "initialize") == 0;
	int k = 0;
	while (k < REQUESTS && strcmp(requests[k].method, method) != 0) k++;
	if (!json_is_integer(id) && !json_is_string(id))
		refuse(s, NULL, INVALID_REQUEST, "an id is a number or a string");
	else if (s->shut_down || (first && s->initialized))
		refuse(s, id, INVALID_REQUEST, s->shut_down ? "the server was shut down" : "the server is initialized");
	else if (!first && !s->initialized)
		refuse(s, id, NOT_INITIALIZED, "the server is not initialized");
	else if (k == REQUESTS)
		refuse(s, id, METHOD_NOT_FOUND, "there is no such method");
	else {
		json_t *result = requests[k].answer(s, params, &why);
		if (why)
			refuse(s, id, INVALID_PARAMS, why);
		else
			reply(s, id, result);
	}
}

static void open_document(server *s, const json_t *d)
{
	const json_t *uri = json_object_get(d, "uri"), *content = json_object_get(d, "text");
	if (json_is_string(uri) && json_is_string(content))
		document_open(s, json_string_value(uri), json_string_value(content), json_string_length(content),
			json_integer_value(json_object_get(d, "version")));
}

static void change_document(server *s, document *d, const json_t *params)
{
	size_t i;
	json_t *change;
	json_array_foreach (json_object_get(params, "contentChanges"), i, change) document_change(s, d, change);
	d->version = json_integer_value(json_object_get(json_object_get(params, "textDocument"), "version"));
	d->published = false; /* of this version */
}

static void close_document(server *s, document *d)
{
	send_message(s, json_pack("{s:s,s:s,s:{s:s,s:[]}}", "jsonrpc", "2.0", "method",
				"textDocument/publishDiagnostics", "params", "uri", d->uri, "diagnostics"));
	document_close(s, d);
}

static void notification(server *s, const char *method, const json_t *params)
{
	if (strcmp(method, "exit") == 0) s->ended = true;
	if (!s->initialized || s->shut_down) return;
	if (strcmp(method, "textDocument/didOpen") == 0) open_document(s, json_object_get(params, "textDocument"));
	if (strcmp(method, "workspace/didChangeWatchedFiles") == 0)
		for (document *d = s->documents; d; d = d->next) document_forget(d);
	document *d = feature_place(s, params, NULL);
	if (!d) return;
	if (strcmp(method, "textDocument/didChange") == 0) change_document(s, d, params);
	if (strcmp(method, "textDocument/didSave") == 0)
		document_forget(d); /* what it imports may be another on disk */
	if (strcmp(method, "textDocument/didClose") == 0) close_document(s, d);
}

/* ---- the loop ---- */

/* Was the request of this id cancelled by a message behind it? */
static bool cancelled(const server *s, const json_t *id)
{
	for (size_t i = 0; i < s->nqueue; i++) {
		const char *method = json_string_value(json_object_get(s->queue[i], "method"));
		const json_t *params = json_object_get(s->queue[i], "params");
		if (method && strcmp(method, "$/cancelRequest") == 0 && json_equal(json_object_get(params, "id"), id))
			return true;
	}
	return false;
}

static void handle(server *s, json_t *m)
{
	const json_t *id = json_object_get(m, "id");
	const char *method = json_string_value(json_object_get(m, "method"));
	const json_t *params = json_object_get(m, "params");
	if (!json_is_object(m) || (!method && !json_object_get(m, "result") && !json_object_get(m, "error")))
		refuse(s, NULL, INVALID_REQUEST, "this is no request");
	else if (method && id && cancelled(s, id))
		refuse(s, id, REQUEST_CANCELLED, "the request was cancelled");
	else if (method && id)
		request(s, id, method, params);
	else if (method)
		notification(s, method, params);
}

static json_t *next_message(server *s)
{
	json_t *m = s->queue[0];
	memmove(s->queue, s->queue + 1, --s->nqueue * sizeof *s->queue);
	return m;
}

static void publish_due(server *s)
{
	for (document *d = s->documents; d; d = d->next)
		if (!d->published) {
			publish_diagnostics(s, d);
			arena_free(&s->scratch);
			return; /* one at a time: a message may have come */
		}
}

static bool publishing_due(const server *s)
{
	for (const document *d = s->documents; d; d = d->next)
		if (!d->published) return true;
	return false;
}

/* Memory ran out somewhere below: what was computed goes, the texts stay. */
static void recover(server *s, const json_t *m)
{
	arena_free(&s->scratch);
	for (document *d = s->documents; d; d = d->next) {
		document_forget(d);
		d->published = true;
	}
	if (m && json_object_get(m, "id")) refuse(s, json_object_get(m, "id"), INTERNAL_ERROR, "out of memory");
}

int serve(server *s)
{
	json_t *volatile m = NULL;
	if (setjmp(s->out_of_memory)) {
		recover(s, m);
		json_decref(m);
		m = NULL;
	}
	while (!s->ended) {
		read_messages(s);
		if (s->nqueue) {
			m = next_message(s);
			handle(s, m);
			json_decref(m);
			m = NULL;
			arena_free(&s->scratch);
		} else if (s->closed) {
			s->ended = true;
		} else if (publishing_due(s)) {
			publish_due(s);
		} else {
			fill(s, true);
		}
	}
	while (s->nqueue) json_decref(next_message(s));
	return s->shut_down ? 0 : 1;
}
