/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/http.h"

#include "inspect/stream.h"
#include "inspect/text.h"

/*
 * Theory
 *
 * Every byte goes through one state, so the same bytes give the same result however they were cut.
 * The reader refuses whatever two parsers could read differently, even where RFC 9112 lets a server
 * be generous: an empty line before the request line (section 2.2), obs-fold (5.2), space around
 * the name of a field (5.1), a bare LF as line end (2.2), any transfer coding but "chunked" (6.1).
 *
 * What is HTTP at all? The first line says: its last word is "HTTP/…", or its first word is a
 * method of RFC 9110 or 5789 and it is no request line of a sister protocol ("OPTIONS * RTSP/1.0").
 * Other lines of tokens (SSH, SMTP, Redis, …) are foreign. The decision falls at the end of the
 * line or at the first byte that no request line may hold.
 *
 * The buffer holds the request line, whose target the policy wants to see, and one field line at a
 * time.
 */

/* The longest registered method, UPDATEREDIRECTREF, has 17. */
#define METHOD_MAX 32u
/* Servers stop at 100 (Apache) or so; real requests have thirty. */
#define FIELDS_MAX 256u
/* Below 2^63 in any base-ten reading. */
#define LENGTH_DIGITS_MAX 18u

static const char preface_line[] = "PRI * HTTP/2.0";
static const char preface_rest[] = "\r\nSM\r\n\r\n"; /* RFC 9113 section 3.4 */

void http_init(struct http *http)
{
	*http = (struct http){.state = HTTP_METHOD};
}

static enum http_step malformed(struct http *http, const char *problem)
{
	http->problem = problem;
	return HTTP_MALFORMED;
}

static bool is_known_method(const char *word, size_t length)
{
	static const char *const methods[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
					      "CONNECT", "OPTIONS", "TRACE", "PATCH"};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (length == strlen(methods[i]) && memcmp(word, methods[i], length) == 0)
			return true;
	}
	return false;
}

/* "RTSP/1.0", "SIP/2.0", "ICE/1.0": the version of a protocol that looks like HTTP and is none. */
static bool is_sister_version(const char *word, size_t length)
{
	size_t at = 0;

	while (at < length && word[at] >= 'A' && word[at] <= 'Z')
		at++;
	return at > 0 && at + 1 < length && word[at] == '/' && text_is_digit((uint8_t)word[at + 1]);
}

/* Is a first line, or what was read of it, meant as HTTP? */
static bool is_http_line(const char *line, size_t length)
{
	const char *space = memchr(line, ' ', length), *last = memrchr(line, ' ', length);
	size_t method_length = space == NULL ? length : (size_t)(space - line);

	if (last != NULL && text_begins(last + 1, length - (size_t)(last + 1 - line), "HTTP/"))
		return true;
	if (!is_known_method(line, method_length))
		return false;
	return last == space || !is_sister_version(last + 1, length - (size_t)(last + 1 - line));
}

/* The first line has a byte that no request line may hold. */
static enum http_step broken_line(struct http *http, const struct head_buffer *buffer,
				  const char *problem)
{
	if (!is_http_line((const char *)buffer->bytes, buffer->used))
		return HTTP_FOREIGN;
	return malformed(http, problem);
}

static enum http_step append(struct head_buffer *buffer, uint8_t byte)
{
	if (buffer->used == buffer->capacity)
		return HTTP_FULL;
	buffer->bytes[buffer->used++] = byte;
	return HTTP_MORE;
}

static enum http_step method_byte(struct http *http, struct head_buffer *buffer, uint8_t byte)
{
	bool blank = byte == '\t' || byte == '\v' || byte == '\f';

	if (text_is_token(byte)) {
		if (buffer->used >= METHOD_MAX)
			return HTTP_FOREIGN;
		return append(buffer, byte);
	}
	if (buffer->used == 0) {
		if (byte == '\r' || byte == '\n')
			return malformed(http, "empty line before the request line");
		if (byte == ' ' || blank)
			return malformed(http, "white space before the method");
		return HTTP_FOREIGN;
	}
	if (blank)
		return malformed(http, "white space in the request line is no single space");
	if (byte != ' ')
		return broken_line(http, buffer, "request line of one word");
	enum http_step step = append(buffer, byte);
	if (step == HTTP_MORE)
		http->state = HTTP_LINE;
	return step;
}

static const char *parse_version(struct http *http, const char *text, size_t length)
{
	if (length == strlen("HTTP/1.1") && text_begins(text, length, "HTTP/1.1"))
		return NULL;
	http->version_10 = length == strlen("HTTP/1.0") && text_begins(text, length, "HTTP/1.0");
	return http->version_10 ? NULL : "unknown HTTP version";
}

/* METHOD SP TARGET SP VERSION, exactly: RFC 9112 section 3. */
static const char *parse_request_line(struct http *http, const char *line, size_t length)
{
	const char *first = memchr(line, ' ', length), *last = memrchr(line, ' ', length);

	if (first == NULL || first == last)
		return "request line without a version (HTTP/0.9)";

	const char *target = first + 1;
	size_t method_length = (size_t)(first - line), target_length = (size_t)(last - target);
	if (target_length == 0 || memchr(target, ' ', target_length) != NULL)
		return "request line of more than three words or with two spaces";
	const char *problem = parse_version(http, last + 1, length - (size_t)(last + 1 - line));
	if (problem != NULL)
		return problem;
	http->target_offset = (uint32_t)(target - line);
	http->target_length = (uint32_t)target_length;
	http->connect = method_length == 7 && memcmp(line, "CONNECT", 7) == 0;
	http->get = method_length == 3 && memcmp(line, "GET", 3) == 0;
	problem = target_parse(target, target_length, http->connect, &http->target);
	if (problem == NULL && http->target.form == TARGET_ASTERISK &&
	    !(method_length == 7 && memcmp(line, "OPTIONS", 7) == 0))
		problem = "request target \"*\" without OPTIONS";
	return problem;
}

static enum http_step request_line_end(struct http *http, struct head_buffer *buffer, uint8_t byte)
{
	const char *line = (const char *)buffer->bytes;

	if (byte != '\n')
		return broken_line(http, buffer, "bare CR in the request line");
	if (!is_http_line(line, buffer->used))
		return HTTP_FOREIGN;
	if (buffer->used == strlen(preface_line) && memcmp(line, preface_line, buffer->used) == 0) {
		http->http2 = true;
		http->state = HTTP_PREFACE_REST;
		return HTTP_MORE;
	}
	const char *problem = parse_request_line(http, line, buffer->used);
	if (problem != NULL)
		return malformed(http, problem);
	http->line_read = true;
	http->line_length = (uint32_t)buffer->used;
	http->state = HTTP_FIELD_START;
	return HTTP_MORE;
}

static enum http_step preface_byte(struct http *http, uint8_t byte)
{
	if (byte != (uint8_t)preface_rest[http->preface_at])
		return malformed(http, "broken preface of HTTP/2");
	http->preface_at++;
	return http->preface_at == strlen(preface_rest) ? HTTP_PREFACE : HTTP_MORE;
}

static const char *field_host(struct http *http, const char *value, size_t length)
{
	if (http->host_seen)
		return "several Host fields";
	http->host_seen = true;
	return target_parse_host(value, length, &http->host);
}

static const char *field_content_length(struct http *http, const char *value, size_t length)
{
	uint64_t octets = 0;

	if (length == 0 || length > LENGTH_DIGITS_MAX)
		return "Content-Length is no number";
	for (size_t i = 0; i < length; i++) {
		if (!text_is_digit((uint8_t)value[i]))
			return "Content-Length is no number";
		octets = octets * 10 + (unsigned)(value[i] - '0');
	}
	if (http->length_seen && octets != http->body_length)
		return "several Content-Length fields that differ";
	http->length_seen = true;
	http->body_length = octets;
	return NULL;
}

static const char *field_transfer_encoding(struct http *http, const char *value, size_t length)
{
	if (http->chunked || !text_is(value, length, "chunked"))
		return "transfer coding other than chunked";
	http->chunked = true;
	return NULL;
}

/* Is WORD an element of a comma-separated list? */
static bool list_has(const char *list, size_t length, const char *word)
{
	size_t start = 0;

	for (size_t at = 0; at <= length; at++) {
		if (at < length && list[at] != ',')
			continue;
		size_t from = start, to = at;
		while (from < to && (list[from] == ' ' || list[from] == '\t'))
			from++;
		while (to > from && (list[to - 1] == ' ' || list[to - 1] == '\t'))
			to--;
		if (text_is(list + from, to - from, word))
			return true;
		start = at + 1;
	}
	return false;
}

static const char *field_connection(struct http *http, const char *value, size_t length)
{
	http->upgrade = http->upgrade || list_has(value, length, "upgrade");
	return NULL;
}

static const char *field_upgrade(struct http *http, const char *value, size_t length)
{
	http->websocket = http->websocket || list_has(value, length, "websocket");
	return NULL;
}

static const struct {
	const char *name;
	const char *(*parse)(struct http *http, const char *value, size_t length);
} fields[] = {
	{"host", field_host},
	{"content-length", field_content_length},
	{"transfer-encoding", field_transfer_encoding},
	{"connection", field_connection},
	{"upgrade", field_upgrade},
};

static const char *parse_field(struct http *http, const char *line, size_t length)
{
	size_t name = 0, from, to = length;

	if (++http->field_count > FIELDS_MAX)
		return "too many header fields";
	while (name < length && text_is_token((uint8_t)line[name]))
		name++;
	if (name == 0 || name == length || line[name] != ':')
		return "bad header name";
	from = name + 1;
	while (from < to && (line[from] == ' ' || line[from] == '\t'))
		from++;
	while (to > from && (line[to - 1] == ' ' || line[to - 1] == '\t'))
		to--;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (text_is(line, name, fields[i].name))
			return fields[i].parse(http, line + from, to - from);
	}
	return NULL;
}

static enum http_step field_start(struct http *http, struct head_buffer *buffer, uint8_t byte)
{
	if (byte == '\r') {
		http->state = HTTP_END_LF;
		return HTTP_MORE;
	}
	if (byte == ' ' || byte == '\t')
		return malformed(http, "folded header line");
	if (!text_is_token(byte))
		return malformed(http, byte == '\n' ? "bare LF in the head" : "bad header name");
	enum http_step step = append(buffer, byte);
	if (step == HTTP_MORE)
		http->state = HTTP_FIELD;
	return step;
}

static enum http_step field_end(struct http *http, struct head_buffer *buffer, uint8_t byte)
{
	const char *line = (const char *)buffer->bytes + http->line_length;

	if (byte != '\n')
		return malformed(http, "bare CR in the head");
	const char *problem = parse_field(http, line, buffer->used - http->line_length);
	if (problem != NULL)
		return malformed(http, problem);
	buffer->used = http->line_length;
	http->state = HTTP_FIELD_START;
	return HTTP_MORE;
}

static enum http_step head_end(struct http *http, uint8_t byte)
{
	if (byte != '\n')
		return malformed(http, "bare CR in the head");
	if (!http->host_seen && !http->version_10)
		return malformed(http, "HTTP/1.1 without Host");
	if (http->chunked && http->version_10)
		return malformed(http, "Transfer-Encoding in HTTP/1.0");
	if (http->chunked && http->length_seen)
		return malformed(http, "Transfer-Encoding with Content-Length");
	if (http->connect && (http->chunked || http->body_length > 0))
		return malformed(http, "CONNECT with a body");
	return HTTP_COMPLETE;
}

/* A byte that ends the text of a line. */
static enum http_step text_end(struct http *http, const struct head_buffer *buffer, uint8_t byte)
{
	const char *problem = byte == '\n' ? "bare LF in the head" : "control byte in the head";

	if (http->state == HTTP_LINE && byte != '\r')
		return broken_line(http, buffer, problem);
	if (byte != '\r')
		return malformed(http, problem);
	http->state = http->state == HTTP_LINE ? HTTP_LINE_LF : HTTP_FIELD_LF;
	return HTTP_MORE;
}

static enum http_step http_byte(struct http *http, struct head_buffer *buffer, uint8_t byte)
{
	switch (http->state) {
	case HTTP_METHOD:
		return method_byte(http, buffer, byte);
	case HTTP_LINE:
		if (text_is_field(byte) && byte != '\t')
			return append(buffer, byte);
		return text_end(http, buffer, byte);
	case HTTP_LINE_LF:
		return request_line_end(http, buffer, byte);
	case HTTP_FIELD_START:
		return field_start(http, buffer, byte);
	case HTTP_FIELD:
		if (text_is_field(byte))
			return append(buffer, byte);
		return text_end(http, buffer, byte);
	case HTTP_FIELD_LF:
		return field_end(http, buffer, byte);
	case HTTP_END_LF:
		return head_end(http, byte);
	case HTTP_PREFACE_REST:
		return preface_byte(http, byte);
	}
	return malformed(http, "internal state"); /* not reached */
}

enum http_step http_feed(struct http *http, struct head_buffer *buffer, const uint8_t *bytes,
			 size_t length, size_t *taken)
{
	enum http_step step = HTTP_MORE;
	size_t at = 0;

	while (at < length && step == HTTP_MORE) {
		if (http->head_length == STREAM_HTTP_HEAD_MAX)
			step = malformed(http, "head over 64 KiB");
		else
			step = http_byte(http, buffer, bytes[at]);
		if (step == HTTP_FULL)
			break;
		http->head_length++;
		at++;
	}
	*taken = at;
	return step;
}

void http_body(const struct http *http, struct body *out)
{
	if (http->chunked)
		body_init_chunked(out);
	else
		body_init_counted(out, http->body_length);
}

bool http_asks_for_websocket(const struct http *http)
{
	return http->get && !http->version_10 && http->upgrade && http->websocket;
}
