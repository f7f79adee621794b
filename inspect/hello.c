/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/hello.h"

#include <string.h>

#include "base/reader.h"

#define HANDSHAKE_CLIENT_HELLO       1u
#define EXTENSION_SERVER_NAME        0u  /* RFC 6066 section 3 */
#define EXTENSION_EARLY_DATA         42u /* RFC 8446 section 4.2.10 */
#define EXTENSION_SUPPORTED_VERSIONS 43u /* RFC 8446 section 4.2.1 */
#define NAME_TYPE_HOST_NAME          0u
#define SESSION_ID_MAX               32u

/* RFC 6066 forbids addresses here; clients that send one mean the address they connect to. */
static bool parse_literal6(const char *text, size_t length, struct host *host)
{
	struct address address;

	if (memchr(text, ':', length) == NULL || address_parse(text, length, &address) != 0)
		return false;
	*host = (struct host){.kind = HOST_LITERAL, .literal = address};
	return true;
}

/* host_parse() follows the URL standard, which decodes percent escapes; there are none here. */
static bool is_plain(const char *text, size_t length)
{
	struct name name;

	return name_from_text(text, length, &name) == NAME_OK;
}

static const char *parse_server_name(struct reader extension, struct host *out)
{
	struct reader list = reader_sub(&extension, reader_u16(&extension));
	uint8_t type = reader_u8(&list);
	struct reader name = reader_sub(&list, reader_u16(&list));
	struct host host;

	if (extension.failed || list.failed || reader_left(&extension) > 0)
		return "broken server_name";
	if (type != NAME_TYPE_HOST_NAME)
		return "server_name is no host name";
	if (reader_left(&list) > 0)
		return "server_name lists several names";

	const char *text = (const char *)name.at;
	size_t length = reader_left(&name);
	if (length == 0)
		return "empty server_name";
	if (!parse_literal6(text, length, &host)) {
		if (!is_plain(text, length))
			return "server_name has bytes outside a host name";
		host_parse(text, length, &host);
	}
	if (host.kind != HOST_NAME && host.kind != HOST_LITERAL)
		return "server_name is neither a host name nor an address";
	host.port = 0;
	*out = host;
	return NULL;
}

static const char *parse_extensions(struct reader extensions, struct hello *hello)
{
	bool named = false;

	while (reader_left(&extensions) > 0) {
		uint16_t type = reader_u16(&extensions);
		struct reader extension = reader_sub(&extensions, reader_u16(&extensions));
		const char *problem = NULL;
		if (extensions.failed)
			return "broken extensions in the ClientHello";
		if (type == EXTENSION_SERVER_NAME) {
			if (named)
				return "two server_name extensions";
			named = true;
			problem = parse_server_name(extension, &hello->host);
		} else if (type == EXTENSION_EARLY_DATA) {
			hello->early_data = true;
		} else if (type == EXTENSION_SUPPORTED_VERSIONS) {
			hello->offers_version = true;
		}
		if (problem != NULL)
			return problem;
	}
	return NULL;
}

const char *hello_parse(const uint8_t *message, size_t length, struct hello *out)
{
	struct hello hello = {.host = {.kind = HOST_NONE}};
	struct reader reader = reader_init(message, length);

	uint8_t type = reader_u8(&reader);
	size_t body = reader_u24(&reader);
	uint8_t major = reader_u8(&reader);
	reader_u8(&reader);        /* legacy_version, the minor part */
	reader_bytes(&reader, 32); /* random */
	size_t session = reader_u8(&reader);
	reader_bytes(&reader, session);
	size_t suites = reader_u16(&reader);
	reader_bytes(&reader, suites);
	size_t compressions = reader_u8(&reader);
	reader_bytes(&reader, compressions);
	if (reader.failed || type != HANDSHAKE_CLIENT_HELLO || body + 4 != length || major != 3 ||
	    session > SESSION_ID_MAX || suites < 2 || suites % 2 != 0 || compressions == 0)
		return "broken ClientHello";
	if (reader_left(&reader) > 0) { /* none at all before TLS 1.2: RFC 5246 section 7.4.1.2 */
		struct reader extensions = reader_sub(&reader, reader_u16(&reader));
		if (reader.failed || reader_left(&reader) > 0)
			return "broken extensions in the ClientHello";
		const char *problem = parse_extensions(extensions, &hello);
		if (problem != NULL)
			return problem;
	}
	*out = hello;
	return NULL;
}

bool hello_same_host(const struct host *a, const struct host *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == HOST_NAME)
		return name_equal(&a->name, &b->name);
	return a->kind != HOST_LITERAL || address_equal(&a->literal, &b->literal);
}
