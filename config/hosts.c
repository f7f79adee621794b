/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * resolver: {hosts}: static names.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/load.h"
#include "config/resolver.h"

static bool parse_static_addresses(struct load *load, const struct yaml_node *value,
				   struct static_host *host)
{
	const struct yaml_node *list = option_list(load, value, "addresses of a host");
	bool good = true;

	if (list == NULL)
		return false;
	host->addresses = load_alloc(load, list->count, sizeof(struct address));
	if (host->addresses == NULL)
		return false;
	if (list->count == 0)
		load_error(load, list, "hosts: a host without an address");
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml_node *item = list->items[i];
		struct match_entry entry;
		char problem[ENTRY_PROBLEM_SIZE];
		const char *text = option_text(load, item, "an address");
		good = good && text != NULL;
		if (text == NULL)
			continue;
		int status = entry_parse(text, item->length, ENTRY_PREFIXES, &entry, problem);
		if (status < 0 || entry.prefix.length != address_bits(&entry.prefix.address))
			load_error(load, item, "hosts: '%.80s' is no address", text);
		else if (floor_names_entry(&entry))
			load_error(load, item,
				   "hosts: names the floor: metadata services "
				   "cannot be opened");
		else
			host->addresses[host->address_count++] = entry.prefix.address;
	}
	return good && host->address_count == list->count && list->count > 0;
}

/* A host's key in the text, for qsort. */
struct host_key {
	const struct static_host *host;
	const struct yaml_node *key;
};

static int compare_hosts(const void *a, const void *b)
{
	const struct host_key *left = a, *right = b;
	int order = strcmp(left->host->name.text, right->host->name.text);

	if (order != 0)
		return order;
	return left->host < right->host ? -1 : left->host > right->host;
}

/* Two spellings of one name are two keys to YAML. */
static void refuse_twice(struct load *load, struct host_key *keys, size_t count)
{
	qsort(keys, count, sizeof(*keys), compare_hosts);
	for (size_t i = 1; i < count; i++)
		if (name_equal(&keys[i - 1].host->name, &keys[i].host->name))
			load_error(load, keys[i].key, "hosts: '%.100s' is there twice",
				   keys[i].host->name.text);
}

/* One of `hosts`, false after an error. */
static bool parse_static_host(struct load *load, const struct yaml_node *key,
			      const struct yaml_node *value, struct static_host *host)
{
	static const struct name localhost = {.length = 9, .text = "localhost"};

	if (!option_host(load, key, "hosts", &host->name))
		return false;
	if (entry_on_floor(&host->name)) {
		load_error(load, key, "hosts: names the floor: metadata services cannot be opened");
		return false;
	}
	if (name_is_within(&host->name, &localhost)) {
		load_error(load, key, "hosts: localhost is loopback by nature");
		return false;
	}
	host->place = load_place(key);
	return parse_static_addresses(load, value, host);
}

void hosts_option(struct load *load, const struct yaml_node *value, const struct option *option,
		  void *target)
{
	struct config_source *source = &((struct config_private *)target)->config.source;
	const struct yaml_node *map = option_mapping(load, value, option->key);
	struct host_key *keys;

	if (map == NULL)
		return;
	source->hosts = load_alloc(load, map->count, sizeof(struct static_host));
	keys = load_alloc(load, map->count, sizeof(*keys));
	if (source->hosts == NULL || keys == NULL)
		return;
	for (size_t i = 0; i < map->count; i++) {
		struct static_host *host = &source->hosts[source->host_count];
		const struct yaml_node *key = map->items[2 * i];
		*host = (struct static_host){.address_count = 0};
		if (!parse_static_host(load, key, map->items[2 * i + 1], host))
			continue;
		keys[source->host_count].host = host;
		keys[source->host_count++].key = key;
	}
	refuse_twice(load, keys, source->host_count);
}

void hosts_print(const struct config_source *source, FILE *out)
{
	char text[ADDRESS_TEXT_SIZE];

	fprintf(out, "  hosts:%s\n", source->host_count == 0 ? " {}" : "");
	for (size_t i = 0; i < source->host_count; i++) {
		const struct static_host *host = &source->hosts[i];
		fprintf(out, "    \"%s\": [", host->name.text);
		for (size_t j = 0; j < host->address_count; j++)
			fprintf(out, "%s\"%s\"", j == 0 ? "" : ", ",
				address_format(&host->addresses[j], text));
		fputs("]\n", out);
	}
}
