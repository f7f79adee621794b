/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/target.h"

#include "inspect/text.h"

#define PORT_DIGITS_MAX 5

static const char *parse_port(const char *text, size_t length, uint16_t *out)
{
	unsigned port = 0;

	if (length == 0 || length > PORT_DIGITS_MAX || text[0] == '0')
		return "port is no number";
	for (size_t i = 0; i < length; i++) {
		if (!text_is_digit((uint8_t)text[i]))
			return "port is no number";
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	if (port > UINT16_MAX)
		return "port is no number";
	*out = (uint16_t)port;
	return NULL;
}

/* Bytes of a host name or an IPv4 address, or within brackets of an IPv6 address. host_parse()
 * follows the URL standard, which knows more spellings than a Host field may have. */
static bool is_host_byte(uint8_t byte, bool brackets)
{
	if (brackets)
		return text_hex_digit(byte) >= 0 || byte == ':' || byte == '.';
	return text_is_alpha(byte) || text_is_digit(byte) || byte == '-' || byte == '.' ||
	       byte == '_';
}

/* The octets of TEXT that are the host, 0 when it cannot be one. */
static size_t host_length(const char *text, size_t length)
{
	bool brackets = length > 0 && text[0] == '[';
	size_t at = brackets ? 1 : 0;

	while (at < length && is_host_byte((uint8_t)text[at], brackets))
		at++;
	if (!brackets)
		return at;
	return at < length && text[at] == ']' ? at + 1 : 0;
}

const char *target_parse_host(const char *text, size_t length, struct host *out)
{
	struct host host;
	size_t end = host_length(text, length);
	uint16_t port = 0;

	if (length == 0)
		return "empty host";
	if (end == 0 || (end < length && text[end] != ':'))
		return "bytes outside a host name";
	if (end < length) {
		const char *problem = parse_port(text + end + 1, length - end - 1, &port);
		if (problem != NULL)
			return problem;
	}
	host_parse(text, end, &host);
	if (host.kind != HOST_NAME && host.kind != HOST_LITERAL)
		return "neither a host name nor an address";
	host.port = port;
	*out = host;
	return NULL;
}

static const char *parse_scheme(const char *text, size_t length, char *scheme, size_t *used)
{
	size_t at = 0;

	for (; at < length && text[at] != ':'; at++) {
		uint8_t byte = (uint8_t)text[at];
		bool good = text_is_alpha(byte) || (at > 0 && (text_is_digit(byte) || byte == '+' ||
							       byte == '-' || byte == '.'));
		if (!good)
			return "request target has no known form";
		if (at + 1 >= TARGET_SCHEME_SIZE)
			return "URL scheme too long";
		scheme[at] = text_lower(byte);
	}
	if (at == 0 || !text_begins(text + at, length - at, "://"))
		return "request target has no known form";
	scheme[at] = '\0';
	*used = at + strlen("://");
	return NULL;
}

static const char *parse_absolute(const char *text, size_t length, struct target *target)
{
	size_t start, end;
	const char *problem = parse_scheme(text, length, target->scheme, &start);

	if (problem != NULL)
		return problem;
	for (end = start; end < length && text[end] != '/' && text[end] != '?'; end++) {
		if (text[end] == '@')
			return "user information in the request target";
	}
	target->form = TARGET_ABSOLUTE;
	return target_parse_host(text + start, end - start, &target->host);
}

const char *target_parse(const char *text, size_t length, bool connect, struct target *out)
{
	struct target target = {.form = TARGET_ORIGIN, .host = {.kind = HOST_NONE}};
	const char *problem = NULL;

	if (memchr(text, '#', length) != NULL)
		return "fragment in the request target";
	if (connect) {
		target.form = TARGET_AUTHORITY;
		problem = target_parse_host(text, length, &target.host);
		if (problem == NULL && target.host.port == 0)
			problem = "CONNECT without a port";
	} else if (length == 1 && text[0] == '*') {
		target.form = TARGET_ASTERISK;
	} else if (length == 0 || text[0] != '/') {
		problem = parse_absolute(text, length, &target);
	}
	if (problem == NULL)
		*out = target;
	return problem;
}
