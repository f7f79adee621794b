/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Names that are answered here and never asked upstream (RFC 6303, 6761, 7793, 8880, 9462). Pure.
 * Names that policy refuses, canaries and special names among them, are not here: policy_resolve()
 * has them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "name.h"
#include "policy.h"
#include "settings.h"

#define LOCAL_ADDRESSES_MAX 64u
#define LOCAL_TTL           60u /* of static names and localhost: a reload is felt soon */

enum local_kind {
	LOCAL_NONE, /* not ours: ask upstream */
	LOCAL_NXDOMAIN,
	LOCAL_NODATA,
	LOCAL_ADDRESSES
};

struct local_answer {
	enum local_kind kind;
	bool from_static; /* `hosts:` */
	size_t count;     /* of the family asked for */
	struct address addresses[LOCAL_ADDRESSES_MAX];
};

/* An empty zone, which no policy needs to judge: reverse zones of special addresses, resolver.arpa.
 * A forwarder of the settings for the name's zone takes reverse names out. */
enum local_kind local_empty_zone(const struct name *name, const struct resolver_settings *settings);

/* localhost, ipv4only.arpa and static names: to be judged like any other answer. */
void local_addresses(const struct name *name, uint16_t type, const struct policy_image *image,
		     struct local_answer *out);
