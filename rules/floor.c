/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/floor.h"

#include <netinet/in.h>

#include "rules/builtin.h"
#include "rules/embedding.h"
#include "rules/names.h"
#include "rules/source.h"

const struct floor_address *floor_addresses(size_t *count)
{
	*count = builtin_floor_count;
	return builtin_floor;
}

static bool listed(const uint16_t *ports, size_t count, uint16_t port)
{
	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

static bool port_is_infrastructure(uint16_t port, uint8_t protocol)
{
	static const uint16_t tcp[] = FLOOR_TCP_INFRASTRUCTURE;
	static const uint16_t udp[] = FLOOR_UDP_INFRASTRUCTURE;

	if (protocol == IPPROTO_TCP)
		return listed(tcp, sizeof(tcp) / sizeof(tcp[0]), port);
	if (protocol == IPPROTO_UDP)
		return listed(udp, sizeof(udp) / sizeof(udp[0]), port);
	return false;
}

/* A rule that holds ADDRESS, asked for one port or, with protocol 0, for the address as such. */
static enum floor_answer ask_rule(const struct floor_address *rule, uint16_t port, uint8_t protocol)
{
	if (rule->kind == FLOOR_INFRASTRUCTURE)
		return FLOOR_IS_INFRASTRUCTURE;
	if (rule->tcp_port != 0) {
		/* a range with one bad port is no bad address, a single address is */
		if (protocol == 0)
			return rule->prefix.length == address_bits(&rule->prefix.address)
				       ? FLOOR_IS_FLOOR
				       : FLOOR_NONE;
		return protocol == IPPROTO_TCP && port == rule->tcp_port ? FLOOR_IS_FLOOR
									 : FLOOR_NONE;
	}
	return port_is_infrastructure(port, protocol) ? FLOOR_IS_INFRASTRUCTURE : FLOOR_IS_FLOOR;
}

static enum floor_answer ask_form(const struct address *address, uint16_t port, uint8_t protocol,
				  uint32_t *line)
{
	enum floor_answer worst = FLOOR_NONE;

	for (size_t i = 0; i < builtin_floor_count && worst != FLOOR_IS_FLOOR; i++) {
		if (!prefix_contains(&builtin_floor[i].prefix, address))
			continue;
		enum floor_answer answer = ask_rule(&builtin_floor[i], port, protocol);
		if (answer > worst) {
			worst = answer;
			*line = builtin_floor[i].line;
		}
	}
	return worst;
}

enum floor_answer floor_of_address(const struct address *address, uint16_t port, uint8_t protocol,
				   uint32_t *line)
{
	struct embedded embedded[EMBEDDED_MAX];
	uint32_t here = 0, found = 0;
	enum floor_answer worst = ask_form(address, port, protocol, &found);
	size_t count = embedding_decode(address, embedded);

	for (size_t i = 0; i < count && worst != FLOOR_IS_FLOOR; i++) {
		enum floor_answer answer = ask_form(&embedded[i].address, port, protocol, &here);
		if (answer > worst) {
			worst = answer;
			found = here;
		}
	}
	if (worst != FLOOR_NONE)
		*line = found;
	return worst;
}

static bool within(const struct prefix *inner, const struct prefix *outer)
{
	return inner->length >= outer->length && prefix_contains(outer, &inner->address);
}

/* Nothing but floor inside: a range within a floor range, at a port that is not left out. */
static bool prefix_is_floor(const struct prefix *prefix, uint16_t port)
{
	uint32_t line;

	if (prefix->length == address_bits(&prefix->address))
		return floor_of_address(&prefix->address, port, port == 0 ? 0 : IPPROTO_TCP,
					&line) == FLOOR_IS_FLOOR;
	for (size_t i = 0; i < builtin_floor_count; i++) {
		const struct floor_address *rule = &builtin_floor[i];
		if (!within(prefix, &rule->prefix))
			continue;
		if (port == 0 ? rule->kind == FLOOR_FLOOR && rule->tcp_port == 0
			      : ask_rule(rule, port, IPPROTO_TCP) == FLOOR_IS_FLOOR)
			return true;
	}
	return false;
}

bool floor_names_entry(const struct match_entry *entry)
{
	struct name_facts facts;

	if (entry->kind == MATCH_PREFIX)
		return prefix_is_floor(&entry->prefix, entry->port);
	names_facts(&entry->name, NULL, &facts);
	return facts.floor.line != 0;
}

bool floor_overlaps_prefix(const struct prefix *prefix)
{
	for (size_t i = 0; i < builtin_floor_count; i++) {
		const struct prefix *rule = &builtin_floor[i].prefix;
		if (builtin_floor[i].kind != FLOOR_FLOOR)
			continue;
		if (within(prefix, rule) || within(rule, prefix))
			return true;
		if (prefix->address.family == ADDRESS_IPV6 &&
		    rule->address.family == ADDRESS_IPV4 && embedding_prefix_may_hold(prefix, rule))
			return true;
	}
	return false;
}
