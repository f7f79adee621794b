/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A URL as `explain request` takes it, read the way a browser does (WHATWG URL standard) and
 * refused where clients differ: a URL that one program reads as one host and another as another is
 * malformed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"

#define URL_TEXT_MAX 65536u /* a request head's own limit */

enum url_scheme { URL_HTTP, URL_HTTPS, URL_WS, URL_WSS, URL_OTHER };

struct url {
	enum url_scheme scheme;
	bool malformed;   /* no client, or not every client, can ask for it */
	struct host host; /* HOST_NONE for a scheme without one; `port` is not used */
	uint16_t port;    /* the one written, or the scheme's; 0 for other schemes without one */
	bool port_given;
	char *target; /* path and query as sent, without the fragment */
	size_t target_length;
};

/*
 * Reads TEXT. 0 and *OUT (url_deinit() frees it), -EINVAL when it is no URL at all (no scheme),
 * -E2BIG over URL_TEXT_MAX, or -ENOMEM.
 */
int url_parse(const char *text, struct url *out);
void url_deinit(struct url *url);

/* TLS hides everything but the host. */
bool url_is_cleartext(const struct url *url);
