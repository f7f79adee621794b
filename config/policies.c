/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * policies: {NAME: {…}}. The policy `default` is always there and always the first.
 */

#include <stdio.h>
#include <string.h>

#include "config/entry.h"
#include "config/load.h"

static const char *const allow_deny[] = {"allow", "deny", NULL};
static const char *const deny_allow[] = {"deny", "allow", NULL};
static const char *const enforce_audit[] = {"enforce", "audit", NULL};

#define AT(field) offsetof(struct policy_source, field)

/* Frames are not read yet, so :authority could not be checked and nothing may be opened. */
static void parse_http2(struct load *load, const struct yaml_node *value,
			const struct option *option, void *target)
{
	struct option_bool permit = {.value = false};

	option_permit(load, value, option, &permit);
	if (permit.value)
		load_error(load, value, "%s must be deny: nothing else is built yet", option->key);
	else
		*(struct option_bool *)target = permit;
}

/* In the order in which they are printed. */
static const struct option options[] = {
	{"default", option_choice, AT(default_deny), .words = allow_deny},
	{"mode", option_choice, AT(audit), .words = enforce_audit},
	{"allow_private_network", option_switch, AT(allow_private_network)},
	{"allow_loopback", option_switch, AT(allow_loopback)},
	{"literals", option_choice, AT(literals_deny), .words = allow_deny},
	{"infrastructure", option_choice, AT(infrastructure_allow), .words = deny_allow},
	{"block_secret_bearing_urls", option_switch, AT(block_secret_bearing_urls)},
	{"block_encrypted_dns", option_switch, AT(block_encrypted_dns)},
	{"strip_ech", option_switch, AT(strip_ech)},
	{"udp", option_permit, AT(udp_allow), .words = deny_allow},
	{"icmp", option_permit, AT(icmp_allow), .words = deny_allow},
	{"other", option_permit, AT(other_allow), .words = deny_allow},
	{"http2", parse_http2, AT(http2_allow), .words = deny_allow},
	{"allow_hosts", option_entries, AT(allow_hosts), .rules = ENTRY_HOSTS},
	{"allowed_origins", option_entries, AT(allowed_origins),
	 .rules = ENTRY_HOSTS | ENTRY_ORIGIN},
	{"block_hosts", option_entries, AT(block_hosts),
	 .rules = ENTRY_HOSTS & ~ENTRY_GUARDED},
	{"allow_raw", option_entries, AT(allow_raw),
	 .rules = ENTRY_HOSTS | ENTRY_PORT_REQUIRED},
	{"proxies", option_entries, AT(proxies),
	 .rules = ENTRY_NAMES | ENTRY_PREFIXES | ENTRY_PORT | ENTRY_PORT_REQUIRED | ENTRY_GUARDED},
	{"allow_private_answers", option_entries, AT(allow_private_answers),
	 .rules = ENTRY_NAMES | ENTRY_WILDCARDS | ENTRY_GUARDED},
	{"allow_private_cidrs", option_entries, AT(allow_private_cidrs),
	 .rules = ENTRY_PREFIXES | ENTRY_GUARDED},
	{"custom", custom_option, AT(hook)},
	{"custom_stages", custom_stages_option, AT(hook)},
	{"custom_timeout", custom_timeout_option, AT(hook)},
};
#define OPTION_COUNT (sizeof(options) / sizeof(options[0]))

static void parse_policy(struct load *load, const struct yaml_node *value,
			 struct policy_source *policy)
{
	char where[CLIENT_NAME_MAX + 16];

	snprintf(where, sizeof(where), "policy '%s'", policy->name);
	options_parse(load, value, where, options, OPTION_COUNT, policy);
	custom_check(load, value, &policy->hook);
}

void policies_section(struct load *load, const struct yaml_node *value, const struct option *option,
		      void *target)
{
	struct config_private *private = target;
	struct config_source *source = &private->config.source;
	size_t count = 1;

	if (yaml_is_null(value))
		return;
	if (value->kind != YAML_MAPPING) {
		load_error(load, value, "%s must be a mapping, not %s", option->key,
			   yaml_kind_text(value));
		return;
	}
	struct policy_source *policies = load_alloc(load, value->count + 1, sizeof(*policies));
	if (policies == NULL)
		return;
	policy_source_init(&policies[0], "default");
	for (size_t i = 0; i < value->count; i++) {
		char name[CLIENT_NAME_MAX + 1];
		struct policy_source *policy = &policies[0];
		if (!option_name(load, value->items[2 * i], "a policy's name", name))
			continue;
		if (strcmp(name, "default") != 0) {
			policy = &policies[count++];
			policy_source_init(policy, name);
		}
		parse_policy(load, value->items[2 * i + 1], policy);
	}
	source->policies = policies;
	source->policy_count = count;
}

void policies_finish(struct load *load)
{
	struct config_source *source = &load->private->config.source;

	/* strip_ech of a policy that does not say is the resolver's */
	for (size_t i = 0; i < source->policy_count; i++)
		if (source->policies[i].strip_ech.place.line == 0)
			source->policies[i].strip_ech = load->private->strip_ech;
	custom_count(load);
}

static void print_list(const struct match_list *list, const char *key, FILE *out)
{
	char text[ENTRY_TEXT_SIZE];

	fprintf(out, "    %s:%s\n", key, list->count == 0 ? " []" : "");
	for (size_t i = 0; i < list->count; i++)
		fprintf(out, "      - \"%s\"\n", entry_format(&list->entries[i], text));
}

void policies_print(const struct config_private *private, FILE *out)
{
	const struct config_source *source = &private->config.source;

	fputs("policies:\n", out);
	for (size_t i = 0; i < source->policy_count; i++) {
		const char *base = (const char *)&source->policies[i];
		fprintf(out, "  \"%s\":\n", source->policies[i].name);
		for (size_t j = 0; j < OPTION_COUNT; j++) {
			const void *at = base + options[j].offset;
			if (options[j].parse == custom_option)
				custom_print(at, out);
			if (options[j].offset == AT(hook))
				continue;
			if (options[j].parse == option_entries)
				print_list(at, options[j].key, out);
			else if (options[j].words != NULL)
				fprintf(out, "    %s: %s\n", options[j].key,
					options[j].words[((const struct option_bool *)at)->value]);
			else
				fprintf(out, "    %s: %s\n", options[j].key,
					((const struct option_bool *)at)->value ? "true" : "false");
		}
	}
}
