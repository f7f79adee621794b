/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * resolver: {…}
 */

#include <stdio.h>
#include <string.h>

#include "config/load.h"
#include "config/resolver.h"

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
		if (option_host(load, list->items[i], what, &out[*count]))
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

/* A number that would be ignored is refused: the pin table has one writer, and it answers alone. */
static void parse_threads(struct load *load, const struct yaml_node *value,
			  const struct option *option, void *target)
{
	if (value->kind == YAML_SCALAR && strcmp(value->text, "1") == 0)
		*(uint32_t *)target = 1;
	else
		load_error(load, value, "%s must be 1: the resolver answers in one thread",
			   option->key);
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
	{"answers", option_size, SETTING(answer_cache_bytes), .least = 65536, .most = 1u << 30},
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
	{"listen", servers_listen, PRIVATE},
	{"clients", servers_clients, PRIVATE},
	{"upstream", servers_upstream, PRIVATE},
	{"forward", servers_forward, PRIVATE},
	{"hosts", hosts_option, PRIVATE},
	{"search", parse_search, PRIVATE},
	{"threads", parse_threads, SETTING(threads)},
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
	{"client_rate", option_u32, SETTING(client_rate), .least = 0, .most = 1000000},
	{"serve_stale", option_u32, SETTING(serve_stale_seconds), .least = 0, .most = 7 * DAY},
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
	settings->listen[0] =
		(struct endpoint){.address = address_ipv4(127, 0, 0, 1), .port = DNS_PORT};
	settings->listen[1] =
		(struct endpoint){.address = address_from_bytes(six, 16), .port = DNS_PORT};
	settings->network_count = 2;
	settings->networks[0] = (struct prefix){address_ipv4(127, 0, 0, 0), 8};
	settings->networks[1] = (struct prefix){address_from_bytes(six, 16), 128};
	snprintf(settings->trust_anchor, sizeof(settings->trust_anchor), "/usr/share/dns/root.key");
	settings->threads = 1;
	settings->pin_min_seconds = 60;
	settings->pin_grace_seconds = 30;
	settings->message_cache_bytes = 16u << 20;
	settings->rrset_cache_bytes = 32u << 20;
	settings->answer_cache_bytes = 16u << 20;
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
		option_print(key, path, out);
}

void resolver_print(const struct config_private *private, FILE *out)
{
	const struct resolver_settings *settings = &private->config.settings.resolver;
	const struct config_source *source = &private->config.source;

	fputs("resolver:\n", out);
	servers_print_listen(settings, out);
	servers_print_upstream(settings, out);
	hosts_print(source, out);
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
	print_size("answers", settings->answer_cache_bytes, out);
	fprintf(out, "  client_rate: %u\n", settings->client_rate);
	fprintf(out, "  serve_stale: %u\n", settings->serve_stale_seconds);
	fprintf(out, "  qname_minimisation: %s\n", truth(settings->qname_minimisation));
	fprintf(out, "  ipv4: %s\n", truth(settings->ipv4));
	fprintf(out, "  ipv6: %s\n", truth(settings->ipv6));
	fprintf(out, "  upstream_nonpublic: %s\n", truth(settings->upstream_nonpublic));
}
