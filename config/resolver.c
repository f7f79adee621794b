/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * resolver: {…}
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/idna.h"
#include "config/load.h"

#define DNS_PORT 53

/* A host name without wildcard; false after an error. */
static bool parse_name(struct load *load, const struct yaml_node *value, const char *what,
		       struct name *out)
{
	struct match_entry entry;
	char problem[ENTRY_PROBLEM_SIZE];
	const char *text = option_text(load, value, what);

	if (text == NULL)
		return false;
	if (entry_parse(text, value->length, ENTRY_NAMES, &entry, problem) < 0) {
		load_error(load, value, "%s: %s", what, problem);
		return false;
	}
	*out = entry.name;
	return true;
}

static bool names_floor(const struct name *name)
{
	struct match_entry entry = {.kind = MATCH_NAME, .name = *name};

	return floor_names_entry(&entry);
}

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

static void parse_listen(struct load *load, const struct yaml_node *value,
			 const struct option *option, void *target)
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

static void parse_networks(struct load *load, const struct yaml_node *value,
			   const struct option *option, void *target)
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

static void parse_upstream(struct load *load, const struct yaml_node *value,
			   const struct option *option, void *target)
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

/* A mapping whose keys are names; NULL after an error or without anything in it. */
static const struct yaml_node *name_mapping(struct load *load, const struct yaml_node *value,
					    const char *what)
{
	if (value->kind == YAML_MAPPING)
		return value;
	if (!yaml_is_null(value))
		load_error(load, value, "%s must be a mapping, not %s", what,
			   yaml_kind_text(value));
	return NULL;
}

static void parse_forward(struct load *load, const struct yaml_node *value,
			  const struct option *option, void *target)
{
	struct config_private *private = target;
	struct resolver_settings *settings = &private->config.settings.resolver;
	const struct yaml_node *map = name_mapping(load, value, option->key);
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
		if (!parse_name(load, key, "forward", &name))
			continue;
		if (names_floor(&name)) {
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

static void parse_names(struct load *load, const struct yaml_node *value, const char *what,
			size_t most, struct name *out, size_t *count)
{
	const struct yaml_node *list = option_list(load, value, what);

	if (list == NULL || out == NULL)
		return;
	if (list->count > most) {
		load_error(load, list, "%s must be at most %zu names", what, most);
		return;
	}
	for (size_t i = 0; i < list->count; i++)
		if (parse_name(load, list->items[i], what, &out[*count]))
			++*count;
}

static void parse_search(struct load *load, const struct yaml_node *value,
			 const struct option *option, void *target)
{
	struct config_source *source = &((struct config_private *)target)->config.source;

	source->search = load_alloc(load, SETTINGS_ANCHORS_MAX, sizeof(struct name));
	source->search_count = 0;
	parse_names(load, value, option->key, SETTINGS_ANCHORS_MAX, source->search,
		    &source->search_count);
}

static void parse_negative_anchors(struct load *load, const struct yaml_node *value,
				   const struct option *option, void *target)
{
	struct resolver_settings *settings =
		&((struct config_private *)target)->config.settings.resolver;
	size_t count = 0;

	parse_names(load, value, option->key, SETTINGS_ANCHORS_MAX, settings->negative_anchors,
		    &count);
	settings->negative_anchor_count = (uint32_t)count;
}

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

	if (!parse_name(load, key, "hosts", &host->name))
		return false;
	if (names_floor(&host->name)) {
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

static void parse_hosts(struct load *load, const struct yaml_node *value,
			const struct option *option, void *target)
{
	struct config_source *source = &((struct config_private *)target)->config.source;
	const struct yaml_node *map = name_mapping(load, value, option->key);
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

/* A path, or the word that stands for "". */
static void parse_path_or(struct load *load, const struct yaml_node *value,
			  const struct option *option, void *target)
{
	if (value->kind == YAML_SCALAR && strcmp(value->text, option->words[0]) == 0)
		*(char *)target = '\0';
	else
		option_path(load, value, option, target);
}

static void parse_date(struct load *load, const struct yaml_node *value,
		       const struct option *option, void *target)
{
	bool good = value->kind == YAML_SCALAR && (value->length == 14 || value->length == 0) &&
		    strspn(value->text, "0123456789") == value->length && !yaml_is_null(value);

	if (value->kind == YAML_SCALAR && value->length == 0 && !value->plain)
		good = true; /* "" is what stands for the clock */
	if (good)
		memcpy(target, value->text, value->length + 1);
	else
		load_error(load, value, "%s must be YYYYMMDDHHMMSS or \"\"", option->key);
}

#define SETTING(field) offsetof(struct config_private, config.settings.resolver.field)
#define PRIVATE        0
#define DAY            86400

static const struct option cache_options[] = {
	{"messages", option_size, SETTING(message_cache_bytes), .least = 65536, .most = 1u << 30},
	{"rrsets", option_size, SETTING(rrset_cache_bytes), .least = 65536, .most = 1u << 30},
};

static void parse_cache(struct load *load, const struct yaml_node *value,
			const struct option *option, void *target)
{
	options_parse(load, value, option->key, cache_options,
		      sizeof(cache_options) / sizeof(cache_options[0]), target);
}

static const char *const refusals[] = {[REFUSAL_NXDOMAIN] = "nxdomain",
				       [REFUSAL_NODATA] = "nodata",
				       [REFUSAL_REFUSED] = "refused",
				       NULL};
static const char *const none[] = {"none", NULL};
static const char *const builtin[] = {"builtin", NULL};

static const struct option options[] = {
	{"listen", parse_listen, PRIVATE},
	{"clients", parse_networks, PRIVATE},
	{"upstream", parse_upstream, PRIVATE},
	{"forward", parse_forward, PRIVATE},
	{"hosts", parse_hosts, PRIVATE},
	{"search", parse_search, PRIVATE},
	{"threads", option_u32, SETTING(threads), .least = 1, .most = 16},
	{"trust_anchor", parse_path_or, SETTING(trust_anchor), .most = SETTINGS_PATH_MAX,
	 .words = none},
	{"root_hints", parse_path_or, SETTING(root_hints), .most = SETTINGS_PATH_MAX,
	 .words = builtin},
	{"negative_anchors", parse_negative_anchors, PRIVATE},
	{"validation_date", parse_date, SETTING(validation_date)},
	{"pin_min", option_u32, SETTING(pin_min_seconds), .least = 0, .most = DAY},
	{"pin_grace", option_u32, SETTING(pin_grace_seconds), .least = 0, .most = DAY},
	{"strip_ech", option_switch, offsetof(struct config_private, strip_ech)},
	{"refusal", option_word, SETTING(refusal), .words = refusals},
	{"cache", parse_cache, PRIVATE},
	{"qname_minimisation", option_flag, SETTING(qname_minimisation)},
	{"ipv4", option_flag, SETTING(ipv4)},
	{"ipv6", option_flag, SETTING(ipv6)},
	{"upstream_nonpublic", option_flag, SETTING(upstream_nonpublic)},
};

void resolver_defaults(struct config_private *private)
{
	struct resolver_settings *settings = &private->config.settings.resolver;
	const uint8_t six[16] = {[15] = 1};

	settings->listen_count = 2;
	settings->listen[0] = (struct endpoint){address_ipv4(127, 0, 0, 1), DNS_PORT};
	settings->listen[1] = (struct endpoint){address_from_bytes(six, 16), DNS_PORT};
	settings->network_count = 2;
	settings->networks[0] = (struct prefix){address_ipv4(127, 0, 0, 0), 8};
	settings->networks[1] = (struct prefix){address_from_bytes(six, 16), 128};
	snprintf(settings->trust_anchor, sizeof(settings->trust_anchor), "/usr/share/dns/root.key");
	settings->threads = 1;
	settings->pin_min_seconds = 60;
	settings->pin_grace_seconds = 30;
	settings->message_cache_bytes = 16u << 20;
	settings->rrset_cache_bytes = 32u << 20;
	settings->qname_minimisation = 1;
	settings->ipv4 = settings->ipv6 = 1;
	private->strip_ech.value = true;
}

void resolver_section(struct load *load, const struct yaml_node *value, const struct option *option,
		      void *target)
{
	struct config_private *private = target;
	const struct resolver_settings *settings = &private->config.settings.resolver;

	options_parse(load, value, option->key, options, sizeof(options) / sizeof(options[0]),
		      private);
	if (!settings->ipv4 && !settings->ipv6)
		load_error(load, value, "resolver: ipv4 and ipv6 cannot both be false");
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

static void print_upstream(const struct resolver_settings *settings, FILE *out)
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

static void print_hosts(const struct config_source *source, FILE *out)
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

static void print_names(const char *key, const struct name *names, size_t count, FILE *out)
{
	fprintf(out, "  %s: [", key);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ", names[i].text);
	fputs("]\n", out);
}

/* The least unit that is exact. */
static void print_size(const char *key, uint32_t octets, FILE *out)
{
	if (octets % (1u << 20) == 0)
		fprintf(out, "    %s: %uM\n", key, octets >> 20);
	else if (octets % 1024 == 0)
		fprintf(out, "    %s: %uK\n", key, octets >> 10);
	else
		fprintf(out, "    %s: %u\n", key, octets);
}

static const char *truth(bool value)
{
	return value ? "true" : "false";
}

static void print_path(const char *key, const char *path, const char *word, FILE *out)
{
	if (path[0] == '\0')
		fprintf(out, "  %s: %s\n", key, word);
	else
		print_quoted(key, path, out);
}

void resolver_print(const struct config_private *private, FILE *out)
{
	const struct resolver_settings *settings = &private->config.settings.resolver;
	const struct config_source *source = &private->config.source;
	char text[ADDRESS_TEXT_SIZE];

	fputs("resolver:\n  listen: [", out);
	for (uint32_t i = 0; i < settings->listen_count; i++) {
		fputs(i == 0 ? "" : ", ", out);
		print_endpoint(&settings->listen[i], out);
	}
	fputs("]\n  clients: [", out);
	for (uint32_t i = 0; i < settings->network_count; i++)
		fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ",
			prefix_format(&settings->networks[i], text));
	fputs("]\n", out);
	print_upstream(settings, out);
	print_hosts(source, out);
	print_names("search", source->search, source->search_count, out);
	fprintf(out, "  threads: %u\n", settings->threads);
	print_path("trust_anchor", settings->trust_anchor, "none", out);
	print_path("root_hints", settings->root_hints, "builtin", out);
	print_names("negative_anchors", settings->negative_anchors, settings->negative_anchor_count,
		    out);
	fprintf(out, "  validation_date: \"%s\"\n", settings->validation_date);
	fprintf(out, "  pin_min: %u\n", settings->pin_min_seconds);
	fprintf(out, "  pin_grace: %u\n", settings->pin_grace_seconds);
	fprintf(out, "  strip_ech: %s\n", truth(private->strip_ech.value));
	fprintf(out, "  refusal: %s\n", refusals[settings->refusal]);
	fputs("  cache:\n", out);
	print_size("messages", settings->message_cache_bytes, out);
	print_size("rrsets", settings->rrset_cache_bytes, out);
	fprintf(out, "  qname_minimisation: %s\n", truth(settings->qname_minimisation));
	fprintf(out, "  ipv4: %s\n", truth(settings->ipv4));
	fprintf(out, "  ipv6: %s\n", truth(settings->ipv6));
	fprintf(out, "  upstream_nonpublic: %s\n", truth(settings->upstream_nonpublic));
}
