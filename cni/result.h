/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The result of the plugins before us in the chain, and ours: the same with our nameservers. Pure but
 * for the JSON library.
 */

#include <jansson.h>
#include <stddef.h>

#include "address.h"
#include "cni/failure.h"
#include "cni/network.h"

#define RESULT_ADDRESSES_MAX 16

struct result {
	const json_t *json;   /* borrowed */
	size_t address_count; /* of the container, at least one */
	struct address addresses[RESULT_ADDRESSES_MAX];
	size_t gateway_count;
	struct address gateways[RESULT_ADDRESSES_MAX];
	const char *interface; /* borrowed; by which its packets reach this host */
};

/*
 * Reads "prevResult". The interface is the first that is in no sandbox: what bridge and ptp list first
 * is where the host gets the container's packets. 0, or -1 with FAILURE (code 7).
 */
int result_read(const struct network *network, struct result *out, struct failure *failure);

/* The nameservers of NETWORK, else the gateways, into OUT. 0, or -1 with FAILURE when there are none. */
int result_nameservers(const struct network *network, const struct result *result,
		       json_t **nameservers, struct failure *failure);

/* A copy of the result with NAMESERVERS, which it takes, in its "dns"; NULL when memory is short. */
json_t *result_with_dns(const struct network *network, const struct result *result,
			json_t *nameservers);
