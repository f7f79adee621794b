/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * resolver: {listen, clients, upstream, forward}: addresses and ports.
 */

#include <stdio.h>
#include <string.h>

#include "config/entry.h"
#include "config/load.h"
#include "config/resolver.h"

static bool address_on_floor(const struct address *address, uint16_t port)
{
	struct match_entry entry = {
		.kind = MATCH_PREFIX,
		.prefix = {.address = *address, .length = (uint8_t)address_bits(address)},
		.port = port,
	};

	return floor_names_entry(&entry);
}

static bool is_unspecified(const struct address *address)
{
	static const uint8_t zero[16];

	return memcmp(address->bytes, zero, sizeof(zero)) == 0;
}

/* "ADDRESS[@PORT]"; false after an error. */
static bool parse_endpoint(struct load *load, const struct yaml_node *value, const char *what,
			   struct endpoint *out)
{
	struct endpoint endpoint;
	const char *text = option_text(load, value, what);

	if (text == NULL)
		return false;
	if (endpoint_parse(text, value->length, '@', DNS_PORT, &endpoint) < 0) {
		load_error(load, value, "%s: '%.80s' is no ADDRESS or ADDRESS@PORT", what, text);
		return false;
	}
	if (is_unspecified(&endpoint.address)) {
		load_error(load, value, "%s: '%.80s' is every address and none: name one", what,
			   text);
		return false;
	}
	*out = endpoint;
	return true;
}

void servers_listen(struct load *load, const struct yaml_node *value, const struct option *option,
		    void *target)
{
	struct resolver_settings *settings =
		&((struct config_private *)target)->config.settings.resolver;
	const struct yaml_node *list = option_list(load, value, option->key);
	uint32_t count = 0;

	if (list == NULL)
		return;
	if (list->count == 0 || list->count > SETTINGS_LISTEN_MAX) {
		load_error(load, list, "listen must be 1 to %u addresses", SETTINGS_LISTEN_MAX);
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		struct endpoint *endpoint = &settings->listen[count];
		if (!parse_endpoint(load, list->items[i], option->key, endpoint))
			continue;
		for (uint32_t j = 0; j < count; j++)
			if (address_equal(&settings->listen[j].address, &endpoint->address) &&
			    settings->listen[j].port == endpoint->port)
				load_error(load, list->items[i], "listen: '%s' is there twice",
					   list->items[i]->text);
		count++;
	}
	settings->listen_count = count;
}

void servers_clients(struct load *load, const struct yaml_node *value, const struct option *option,
		     void *target)
{
	struct resolver_settings *settings =
		&((struct config_private *)target)->config.settings.resolver;
	const struct yaml_node *list = option_list(load, value, option->key);
	uint32_t count = 0;

	if (list == NULL)
		return;
	if (list->count > SETTINGS_NETWORKS_MAX) {
		load_error(load, list, "clients must be at most %u networks",
			   SETTINGS_NETWORKS_MAX);
		return;
	}
	for (size_t i = 0; i < list->count; i++) {
		struct match_entry entry;
		char problem[ENTRY_PROBLEM_SIZE];
		const char *text = option_text(load, list->items[i], "a network");
		if (text == NULL)
			continue;
		if (entry_parse(text, list->items[i]->length, ENTRY_PREFIXES, &entry, problem) < 0)
			load_error(load, list->items[i], "clients: %s", problem);
		else
			settings->networks[count++] = entry.prefix;
	}
	settings->network_count = count;
}

/* A list of forwarders into ZONE; false after an error. */
static bool parse_forwarders(struct load *load, const struct yaml_node *value, const char *what,
			     struct settings_zone *zone)
{
	const struct yaml_node *list = option_list(load, value, what);
	bool good = true;

	if (list == NULL)
		return false;
	if (list->count == 0 || list->count > SETTINGS_FORWARDERS_MAX) {
		load_error(load, list, "%s must be 1 to %u addresses", what,
			   SETTINGS_FORWARDERS_MAX);
		return false;
	}
	zone->count = 0;
	for (size_t i = 0; i < list->count; i++) {
		struct endpoint *endpoint = &zone->forwarders[zone->count];
		if (!parse_endpoint(load, list->items[i], what, endpoint)) {
			good = false;
			continue;
		}
		/* port 53 of a metadata address is a provider's DNS, and no floor */
		if (endpoint->port != DNS_PORT &&
		    address_on_floor(&endpoint->address, endpoint->port)) {
			load_error(load, list->items[i], "%s: names the floor", what);
			good = false;
		}
		zone->count++;
	}
	return good;
}

static struct settings_zone *zone_new(struct load *load, const struct yaml_node *at,
				      struct resolver_settings *settings)
{
	if (settings->zone_count < SETTINGS_ZONES_MAX)
		return &settings->zones[settings->zone_count];
	load_error(load, at, "more than %u zones with forwarders", SETTINGS_ZONES_MAX);
	return NULL;
}

void servers_upstream(struct load *load, const struct yaml_node *value, const struct option *option,
		      void *target)
{
	struct resolver_settings *settings =
		&((struct config_private *)target)->config.settings.resolver;
	struct settings_zone *zone;

	if (value->kind == YAML_SCALAR && strcmp(value->text, "recursive") == 0)
		return;
	if (value->kind != YAML_SEQUENCE) {
		load_error(load, value, "upstream must be recursive or a list of ADDRESS[@PORT]");
		return;
	}
	zone = zone_new(load, value, settings);
	if (zone == NULL || !parse_forwarders(load, value, option->key, zone))
		return;
	memset(&zone->zone, 0, sizeof(zone->zone));
	settings->zone_count++;
}

void servers_forward(struct load *load, const struct yaml_node *value, const struct option *option,
		     void *target)
{
	struct config_private *private = target;
	struct resolver_settings *settings = &private->config.settings.resolver;
	const struct yaml_node *map = option_mapping(load, value, option->key);
	struct config_source *source = &private->config.source;

	if (map == NULL)
		return;
	source->forward_zones = load_alloc(load, map->count, sizeof(struct name));
	if (source->forward_zones == NULL)
		return;
	for (size_t i = 0; i < map->count; i++) {
		const struct yaml_node *key = map->items[2 * i];
		struct settings_zone *zone = zone_new(load, key, settings);
		struct name name;
		if (zone == NULL)
			return;
		if (strcmp(key->text, ".") == 0) {
			load_error(load, key, "forward: the root's forwarders are `upstream`");
			continue;
		}
		if (!option_host(load, key, "forward", &name))
			continue;
		if (entry_on_floor(&name)) {
			load_error(load, key, "forward: names the floor");
			continue;
		}
		for (size_t j = 0; j < source->forward_count; j++)
			if (name_equal(&source->forward_zones[j], &name))
				load_error(load, key, "forward: zone '%s' is there twice",
					   name.text);
		if (!parse_forwarders(load, map->items[2 * i + 1], "forward", zone))
			continue;
		zone->zone = name;
		settings->zone_count++;
		source->forward_zones[source->forward_count++] = name;
	}
}

/* ADDRESS@PORT, which endpoint_parse() reads with '@'. */
static void print_endpoint(const struct endpoint *endpoint, FILE *out)
{
	char text[ADDRESS_TEXT_SIZE];

	fprintf(out, "\"%s@%u\"", address_format(&endpoint->address, text), endpoint->port);
}

static void print_forwarders(const struct settings_zone *zone, FILE *out)
{
	fputc('[', out);
	for (uint32_t i = 0; i < zone->count; i++) {
		fputs(i == 0 ? "" : ", ", out);
		print_endpoint(&zone->forwarders[i], out);
	}
	fputs("]\n", out);
}

void servers_print_upstream(const struct resolver_settings *settings, FILE *out)
{
	bool forwards = false;
	size_t zones = 0;

	fputs("  upstream: ", out);
	for (uint32_t i = 0; i < settings->zone_count; i++) {
		if (settings->zones[i].zone.length > 0) {
			zones++;
			continue;
		}
		print_forwarders(&settings->zones[i], out);
		forwards = true;
	}
	fprintf(out, "%s  forward:%s\n", forwards ? "" : "recursive\n", zones == 0 ? " {}" : "");
	for (uint32_t i = 0; i < settings->zone_count; i++) {
		if (settings->zones[i].zone.length == 0)
			continue;
		fprintf(out, "    \"%s\": ", settings->zones[i].zone.text);
		print_forwarders(&settings->zones[i], out);
	}
}

void servers_print_listen(const struct resolver_settings *settings, FILE *out)
{
	char text[ADDRESS_TEXT_SIZE];

	fputs("  listen: [", out);
	for (uint32_t i = 0; i < settings->listen_count; i++) {
		fputs(i == 0 ? "" : ", ", out);
		print_endpoint(&settings->listen[i], out);
	}
	fputs("]\n  clients: [", out);
	for (uint32_t i = 0; i < settings->network_count; i++)
		fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ",
			prefix_format(&settings->networks[i], text));
	fputs("]\n", out);
}
