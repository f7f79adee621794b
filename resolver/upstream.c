/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/upstream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules/classify.h"
#include "rules/floor.h"

#define EXEMPT_MAX (SETTINGS_ZONES_MAX * SETTINGS_FORWARDERS_MAX)

/* IPv6 forms of IPv4 addresses (rules/embedding.h); no name server has a reason to be in one. */
static const struct prefix embeddings[] = {
	{{ADDRESS_IPV6, {0}}, 96},                               /* compatible, RFC 4291 */
	{{ADDRESS_IPV6, {[10] = 0xff, 0xff}}, 96},               /* mapped, RFC 4291 */
	{{ADDRESS_IPV6, {[8] = 0xff, 0xff}}, 96},                /* translated, RFC 2765 */
	{{ADDRESS_IPV6, {0x00, 0x64, 0xff, 0x9b}}, 96},          /* NAT64, RFC 6052 */
	{{ADDRESS_IPV6, {0x00, 0x64, 0xff, 0x9b, 0x00, 1}}, 48}, /* NAT64, RFC 8215 */
	{{ADDRESS_IPV6, {0x20, 0x01, 0x00, 0x00}}, 32},          /* Teredo, RFC 4380 */
	{{ADDRESS_IPV6, {0x20, 0x02}}, 16},                      /* 6to4, RFC 3056 */
};
#define EMBEDDING_COUNT (sizeof(embeddings) / sizeof(embeddings[0]))

struct upstream {
	bool nonpublic;
	size_t exempt_count;
	struct endpoint exempt[EXEMPT_MAX];
	size_t blocked_count;
	struct prefix blocked[];
};

/* A floor row that covers DNS ports as well: one for a single other port says nothing about
 * servers. */
static bool covers_dns(const struct floor_address *row)
{
	return row->tcp_port == 0;
}

static bool is_floor(const struct address *address)
{
	uint32_t line;
	return floor_of_address(address, 0, 0, &line) != FLOOR_NONE;
}

static int exempt_forwarders(const struct resolver_settings *settings, struct upstream *upstream,
			     char *problem, size_t size)
{
	char text[ADDRESS_TEXT_SIZE];

	for (uint32_t z = 0; z < settings->zone_count; z++)
		for (uint32_t i = 0; i < settings->zones[z].count; i++) {
			const struct endpoint *forwarder = &settings->zones[z].forwarders[i];
			if (is_floor(&forwarder->address) && forwarder->port != 53) {
				snprintf(problem, size,
					 "forwarder %s: a metadata address serves DNS at port 53 "
					 "alone",
					 endpoint_format(forwarder, text));
				return -EACCES;
			}
			upstream->exempt[upstream->exempt_count++] = *forwarder;
		}
	return 0;
}

int upstream_new(const struct resolver_settings *settings, struct upstream **out, char *problem,
		 size_t size)
{
	size_t floor_count, nonpublic_count;
	const struct floor_address *floor = floor_addresses(&floor_count);
	const struct prefix *nonpublic = class_nonpublic_prefixes(&nonpublic_count);
	size_t room = EMBEDDING_COUNT + floor_count + nonpublic_count;
	struct upstream *upstream = malloc(sizeof(*upstream) + room * sizeof(struct prefix));

	if (upstream == NULL) {
		snprintf(problem, size, "out of memory");
		return -ENOMEM;
	}
	upstream->exempt_count = upstream->blocked_count = 0;
	upstream->nonpublic = settings->upstream_nonpublic;
	for (size_t i = 0; i < EMBEDDING_COUNT; i++)
		upstream->blocked[upstream->blocked_count++] = embeddings[i];
	for (size_t i = 0; i < floor_count; i++)
		if (covers_dns(&floor[i]))
			upstream->blocked[upstream->blocked_count++] = floor[i].prefix;
	for (size_t i = 0; i < nonpublic_count && !upstream->nonpublic; i++)
		upstream->blocked[upstream->blocked_count++] = nonpublic[i];

	int error = exempt_forwarders(settings, upstream, problem, size);
	if (error != 0) {
		free(upstream);
		return error;
	}
	*out = upstream;
	return 0;
}

void upstream_free(struct upstream *upstream)
{
	free(upstream);
}

static bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
	return a->port == b->port && address_equal(&a->address, &b->address);
}

bool upstream_permits(const struct upstream *upstream, const struct endpoint *server)
{
	for (size_t i = 0; i < upstream->exempt_count; i++)
		if (endpoint_equal(&upstream->exempt[i], server))
			return true;
	for (size_t i = 0; i < upstream->blocked_count; i++)
		if (prefix_contains(&upstream->blocked[i], &server->address))
			return false;
	return upstream->nonpublic || class_is_public(&server->address);
}

struct printer {
	const struct upstream *upstream;
	void (*print)(const struct prefix *prefix, void *context);
	void *context;
};

/*
 * Prints PREFIX without the exempt addresses: a prefix that holds one is halved, and halved again.
 * The depth is at most 128; each exempt address costs at most that many prefixes.
 */
static void print_rest(const struct printer *printer, struct prefix prefix)
{
	const struct upstream *upstream = printer->upstream;
	bool holds = false;

	for (size_t i = 0; i < upstream->exempt_count && !holds; i++)
		holds = prefix_contains(&prefix, &upstream->exempt[i].address);
	if (!holds) {
		printer->print(&prefix, printer->context);
		return;
	}
	if (prefix.length == address_bits(&prefix.address))
		return;
	unsigned bit = prefix.length++;
	print_rest(printer, prefix);
	prefix.address.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	print_rest(printer, prefix);
}

void upstream_each_blocked(const struct upstream *upstream,
			   void (*print)(const struct prefix *prefix, void *context), void *context)
{
	const struct printer printer = {upstream, print, context};

	for (size_t i = 0; i < upstream->blocked_count; i++)
		print_rest(&printer, upstream->blocked[i]);
}
