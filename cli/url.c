/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/percent.h"
#include "config/idna.h"

static const struct {
	const char *text;
	uint16_t port;
} schemes[] = {
	[URL_HTTP] = {"http", 80},
	[URL_HTTPS] = {"https", 443},
	[URL_WS] = {"ws", 80},
	[URL_WSS] = {"wss", 443},
};

/* The scheme of TEXT; its length into *LENGTH. False when there is none (RFC 3986 section 3.1). */
static bool read_scheme(const char *text, enum url_scheme *scheme, size_t *length)
{
	size_t i = 0;

	if (!isalpha((unsigned char)text[0]))
		return false;
	while (isalnum((unsigned char)text[i]) || strchr("+-.", text[i]) != NULL) {
		if (text[i] == '\0')
			return false;
		i++;
	}
	if (text[i] != ':')
		return false;
	*length = i;
	*scheme = URL_OTHER;
	for (size_t j = 0; j < URL_OTHER; j++)
		if (strlen(schemes[j].text) == i && strncasecmp(schemes[j].text, text, i) == 0)
			*scheme = (enum url_scheme)j;
	return true;
}

static void read_host(const char *text, size_t length, struct host *out)
{
	char decoded[IDNA_TEXT_SIZE], ascii[IDNA_TEXT_SIZE];
	size_t size;

	*out = (struct host){.kind = HOST_MALFORMED};
	if (length == 0 || length >= sizeof(decoded))
		return;
	if (text[0] == '[') {
		host_parse(text, length, out);
		return;
	}
	/* WHATWG URL section 3.5; host_parse() refuses a malformed escape. */
	size = percent_decode(text, length, decoded);
	if (idna_ascii(decoded, size, ascii) == 0)
		host_parse(ascii, strlen(ascii), out);
}

/* "host[:port]" between user information and path; false when it is none. */
static bool read_host_and_port(const char *text, size_t length, struct url *url)
{
	const char *end = text + length, *search = text, *colon;
	unsigned port = 0;

	if (length > 0 && text[0] == '[') {
		search = memchr(text, ']', length);
		if (search == NULL)
			return false;
	}
	colon = memchr(search, ':', (size_t)(end - search));
	read_host(text, (size_t)((colon != NULL ? colon : end) - text), &url->host);
	if (url->host.kind == HOST_MALFORMED)
		return false;
	/* an empty port is the scheme's: RFC 3986 section 3.2.3 */
	if (colon == NULL || colon + 1 == end)
		return true;
	for (const char *digit = colon + 1; digit < end; digit++) {
		if (*digit < '0' || *digit > '9' || port > 65535)
			return false;
		port = port * 10 + (unsigned)(*digit - '0');
	}
	if (port == 0 || port > 65535)
		return false;
	url->port_given = port != url->port;
	url->port = (uint16_t)port;
	return true;
}

/* User information is not the host; the last '@' ends it, and more than one is read differently. */
static bool read_authority(const char *text, size_t length, struct url *url)
{
	const char *at = memrchr(text, '@', length);
	const char *host = at != NULL ? at + 1 : text;
	bool two = at != NULL && memchr(text, '@', (size_t)(at - text)) != NULL;

	/* the host is read all the same: a floor literal behind two '@' is still the floor */
	return read_host_and_port(host, (size_t)(text + length - host), url) && !two;
}

static int copy_target(const char *text, struct url *url)
{
	size_t length = strcspn(text, "#");
	bool slash = text[0] != '/'; /* "http://a?x" asks for "/?x" */

	url->target = malloc(length + 2);
	if (url->target == NULL)
		return -ENOMEM;
	url->target[0] = '/';
	memcpy(url->target + slash, text, length);
	url->target_length = length + slash;
	url->target[url->target_length] = '\0';
	return 0;
}

/* Bytes that one client strips, another escapes and a third sends. */
static bool has_odd_bytes(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text <= 0x20 || *text == 0x7f || *text == '\\')
			return true;
	return false;
}

int url_parse(const char *text, struct url *out)
{
	struct url url = {.scheme = URL_OTHER};
	size_t scheme_length, authority_length;
	int error;

	if (strlen(text) > URL_TEXT_MAX)
		return -E2BIG;
	if (!read_scheme(text, &url.scheme, &scheme_length))
		return -EINVAL;
	url.malformed = has_odd_bytes(text);
	text += scheme_length + 1;
	if (url.scheme != URL_OTHER)
		url.port = schemes[url.scheme].port;
	if (strncmp(text, "//", 2) != 0) {
		url.malformed = url.malformed || url.scheme != URL_OTHER;
		*out = url;
		return 0;
	}
	text += 2;
	authority_length = strcspn(text, "/?#");
	if (!read_authority(text, authority_length, &url))
		url.malformed = url.malformed || url.scheme != URL_OTHER;
	error = copy_target(text + authority_length, &url);
	if (error < 0)
		return error;
	*out = url;
	return 0;
}

void url_deinit(struct url *url)
{
	free(url->target);
	*url = (struct url){.scheme = URL_OTHER};
}

bool url_is_cleartext(const struct url *url)
{
	return url->scheme == URL_HTTP || url->scheme == URL_WS;
}
