/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One generation of policy and settings, as the children get it: two memfds that nobody can change
 * or resize any more.
 */

#include <stddef.h>
#include <stdint.h>

#include "config/config.h"
#include "policy.h"

struct image {
	uint64_t generation;
	int settings, policy;              /* sealed memfds; -1 in an empty image */
	const struct policy_image *opened; /* the parent's own view of it, for the names of rules */
	void *mapping;
	size_t size;
};

#define IMAGE_EMPTY ((struct image){.settings = -1, .policy = -1})

/*
 * Turns CONFIG, with CLIENTS in the place of its own, into generation GENERATION. 0, or negative errno
 * with one line in PROBLEM.
 */
int image_build(const struct config *config, const struct client_source *clients,
		size_t client_count, uint64_t generation, struct image *out, char *problem,
		size_t size);

/* Also for an empty image; it is empty afterwards. */
void image_release(struct image *image);

/* A sealed memfd that holds SIZE octets of BYTES, or negative errno. */
int image_seal(const char *name, const void *bytes, size_t size);
