/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the runtime tells the plugin: the CNI_ variables, and the network's configuration on standard
 * input (CNI specification 1.1, sections 2 and 3). Pure but for the JSON library.
 *
 *   {"cniVersion": "1.0.0", "name": "pods", "type": "pinfold-cni",
 *    "policy": "ci",                        # "default" when left out
 *    "nameservers": ["10.88.0.1"],          # the gateways of the addresses when left out
 *    "socket": "/run/pinfold/control.sock",
 *    "capabilities": {"pinfoldPolicy": true},
 *    "runtimeConfig": {"pinfoldPolicy": "browser"},   # of this container, by the runtime
 *    "prevResult": {…}}
 */

#include <jansson.h>
#include <stdbool.h>

#include "address.h"
#include "client.h"
#include "cni/failure.h"

enum verb { VERB_ADD, VERB_DEL, VERB_CHECK, VERB_GC, VERB_STATUS, VERB_VERSION };

/* The variables, as getenv() gives them: NULL when they are not set. */
struct variables {
	const char *command, *container, *netns, *interface, *path;
};

/* Sets *VERB; what VERB needs is there and well formed. 0, or -1 with FAILURE (code 4). */
int network_verb(const struct variables *variables, enum verb *verb, struct failure *failure);

/* The versions of the specification that are spoken, oldest first, ended by NULL. */
extern const char *const network_versions[];

#define NETWORK_NAMESERVERS_MAX 8

struct network {
	const json_t *json;  /* borrowed, the whole configuration */
	const char *version; /* one of network_versions */
	const char *name;
	const char *policy, *socket; /* borrowed from JSON, or the default */
	size_t nameserver_count;     /* 0: the gateways */
	struct address nameservers[NETWORK_NAMESERVERS_MAX];
};

/*
 * Reads the configuration JSON for VERB (not VERSION). A field that nobody knows is refused (code 2),
 * since it may be a misspelt "policy". 0, or -1 with FAILURE (codes 1, 2, 7).
 */
int network_read(const json_t *json, enum verb verb, struct network *out, struct failure *failure);

/*
 * The name by which the service knows an attachment: "cni-NETWORK-CONTAINER-HASH", the first a hash of
 * the network's name, the second the beginning of the container's id for people, the third a hash of
 * all three. Two attachments have the same name with a probability of 2^-64.
 */
void network_client(const char *network, const char *container, const char *interface,
		    char name[CLIENT_NAME_MAX + 1]);

/* Whether a client with this NAME is an attachment of NETWORK. */
bool network_owns(const char *network, const char *name);
