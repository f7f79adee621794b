/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A configuration for tests, made from one line of words, and questions put to its image.
 *
 *   default=deny mode=audit literals=deny private=no loopback=no infrastructure=allow udp=allow
 * icmp=allow other=allow http2=allow dns=allow secrets=no allow=ENTRY origin=SCHEME://ENTRY
 * block=ENTRY raw=ENTRY proxy=ENTRY answers=ENTRY cidr=PREFIX host=NAME=ADDRESS search=NAME
 * forward=NAME floor=ENTRY listen=ADDRESS@PORT own=ADDRESS@PORT root
 * hook=STAGE or hook=all, a stage each time
 *
 * ENTRY is a name, "*.name", "=name" (exactly), an IPv4 address, an IPv6 address in brackets or a
 * prefix, and a port after ':'. Lines of places are 1, 2, 3 … by word. A word that is not
 * understood ends the test.
 */

#include <stdbool.h>
#include <stddef.h>

#include "policy.h"
#include "rules/source.h"

#define WORLD_ENTRIES 64

struct world {
	struct policy_source policy;
	struct config_source source;
	struct match_entry entries[16][WORLD_ENTRIES];
	struct static_host hosts[WORLD_ENTRIES];
	struct address host_addresses[WORLD_ENTRIES];
	struct name search[WORLD_ENTRIES], forward[WORLD_ENTRIES];
	void *bytes;
	size_t size;
	const struct policy_image *image;
	struct subject subject;
};

void world_init(struct world *world, const char *words);
void world_free(struct world *world);

struct match_entry world_entry(const char *text);
struct address world_address(const char *text);
struct name world_name(const char *text);

/* ADDRESS in every form in which IPv6 can carry it; an IPv6 address has itself alone. Their number. */
#define WORLD_FORMS_MAX 16
size_t world_forms(const struct address *address, struct address out[WORLD_FORMS_MAX]);

/* One question in words, see cases.txt; the answer is "allow", or reason with "(audit)" behind; and
 * "?" when the hook is to be asked. */
const char *world_ask(struct world *world, const char *words);
