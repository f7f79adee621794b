/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Who a packet or a query belongs to.
 *
 * This host's own traffic is told apart by cgroup, then by uid, then by the exact source address;
 * what nothing claims is the client `host`. Traffic of others is told apart by input interface,
 * since a client cannot choose that, then by the longest prefix of its source address; what nothing
 * claims is a client of its own.
 */

#include <errno.h>
#include <string.h>

#include "rules/embedding.h"
#include "rules/image.h"

#define NOBODY UINT32_MAX

static uint32_t find_selector(const struct policy_image *image, enum selector_kind kind,
			      const struct client_origin *origin)
{
	const struct image_selector *selectors = image_at(image, image->selectors.offset);

	for (uint32_t i = 0; i < image->selectors.count; i++) {
		const struct image_selector *s = &selectors[i];
		if (s->kind != (uint32_t)kind)
			continue;
		if ((kind == SELECT_CGROUP && s->cgroup == origin->cgroup) ||
		    (kind == SELECT_UID && s->uid == origin->uid) ||
		    (kind == SELECT_INTERFACE && strcmp(s->interface, origin->interface) == 0))
			return s->client;
	}
	return NOBODY;
}

static uint32_t find_source(const struct policy_image *image, const struct address *source,
			    bool exact)
{
	const struct list_query query = {.port_rule = PORT_ANY};
	const struct image_rule *rule =
		list_find_address(image, &image->wide[WIDE_SELECTORS], source, &query);

	if (rule == NULL)
		return NOBODY;
	/* the key of a prefix begins with family and length */
	const uint8_t *key = image_at(image, rule->key);
	return exact && key[1] != address_bits(source) ? NOBODY : rule->value;
}

static uint32_t find_client(const struct policy_image *image, const struct client_origin *origin,
			    const struct address *source)
{
	uint32_t client = NOBODY;

	if (!origin->own) {
		if (origin->interface != NULL)
			client = find_selector(image, SELECT_INTERFACE, origin);
		return client != NOBODY ? client : find_source(image, source, false);
	}
	if (origin->cgroup != 0)
		client = find_selector(image, SELECT_CGROUP, origin);
	if (client == NOBODY && origin->uid_known)
		client = find_selector(image, SELECT_UID, origin);
	return client != NOBODY ? client : find_source(image, source, true);
}

static void fill(const struct policy_image *image, uint32_t index, struct client_match *out)
{
	const struct image_client *clients = image_at(image, image->clients.offset);
	const struct image_client *client = &clients[index];

	*out = (struct client_match){.key = client->key,
				     .policy = client->policy,
				     .name = client->name,
				     .root = client->root != 0,
				     .governed = true};
}

static bool has_selector(const struct policy_image *image, enum selector_kind kind)
{
	const struct image_selector *selectors = image_at(image, image->selectors.offset);

	for (uint32_t i = 0; i < image->selectors.count; i++)
		if (selectors[i].kind == (uint32_t)kind)
			return true;
	return false;
}

void policy_client(const struct policy_image *image, const struct client_origin *origin,
		   struct client_match *out)
{
	struct address source = embedding_unmap(&origin->source);
	uint32_t client = find_client(image, origin, &source);
	bool root = origin->own && origin->uid_known && origin->uid == 0;

	if (client != NOBODY) {
		fill(image, client, out);
	} else if (origin->own) {
		*out = (struct client_match){.key = client_key_of_host(),
					     .policy = POLICY_DEFAULT,
					     .name = "host",
					     .governed = !root || image->govern_all != 0};
	} else {
		*out = (struct client_match){.key = client_key_of_address(&source),
					     .policy = POLICY_DEFAULT,
					     .name = "",
					     .governed = true};
	}
	out->root = root;
	if (origin->own && origin->cgroup == 0 && policy_tells_cgroups(image))
		out->governed = out->unknown = true;
}

bool policy_tells_cgroups(const struct policy_image *image)
{
	return has_selector(image, SELECT_CGROUP);
}

bool policy_tells_users(const struct policy_image *image)
{
	return has_selector(image, SELECT_UID) || has_selector(image, SELECT_CGROUP);
}

bool policy_tells_interfaces(const struct policy_image *image)
{
	return has_selector(image, SELECT_INTERFACE);
}

int policy_client_by_name(const struct policy_image *image, const char *name,
			  struct client_match *out)
{
	const struct image_client *clients = image_at(image, image->clients.offset);

	for (uint32_t i = 0; i < image->clients.count; i++) {
		if (strcmp(clients[i].name, name) != 0)
			continue;
		fill(image, i, out);
		return 0;
	}
	if (strcmp(name, "host") != 0)
		return -ENOENT;
	*out = (struct client_match){.key = client_key_of_host(),
				     .policy = POLICY_DEFAULT,
				     .name = "host",
				     .governed = true};
	return 0;
}
