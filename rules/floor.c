/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/floor.h"

#include <netinet/in.h>
#include <string.h>

#include <endian.h>

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

/* A question put to one rule after the other; what refuses more stays. */
struct asking {
	uint16_t port;
	uint8_t protocol;
	enum floor_answer worst;
	uint32_t line;
};

static void ask_index(struct asking *asking, uint32_t index)
{
	enum floor_answer answer = ask_rule(&builtin_floor[index], asking->port, asking->protocol);

	if (answer > asking->worst) {
		asking->worst = answer;
		asking->line = builtin_floor[index].line;
	}
}

static void ask_ipv4(struct asking *asking, const struct address *address)
{
	uint8_t octet = address->bytes[0];
	uint32_t value;

	if ((builtin_floor4_octets[octet / 64] & UINT64_C(1) << octet % 64) == 0)
		return;
	memcpy(&value, address->bytes, sizeof(value));
	value = be32toh(value);
	for (size_t i = 0; i < builtin_floor4_count; i++)
		if ((value & builtin_floor4[i].mask) == builtin_floor4[i].base)
			ask_index(asking, builtin_floor4[i].index);
}

static void ask_ipv6(struct asking *asking, const struct address *address)
{
	uint64_t words[2];

	memcpy(words, address->bytes, sizeof(words));
	words[0] = be64toh(words[0]);
	words[1] = be64toh(words[1]);
	for (size_t i = 0; i < builtin_floor6_count; i++) {
		const struct builtin_floor6 *row = &builtin_floor6[i];
		if ((words[0] & row->mask_high) == row->base_high &&
		    (words[1] & row->mask_low) == row->base_low)
			ask_index(asking, row->index);
	}
}

enum floor_answer floor_of_address(const struct address *address, uint16_t port, uint8_t protocol,
				   uint32_t *line)
{
	struct embedded embedded[EMBEDDED_MAX];
	struct asking asking = {.port = port, .protocol = protocol, .worst = FLOOR_NONE};

	if (address->family == ADDRESS_IPV4) {
		ask_ipv4(&asking, address);
	} else if (address->family == ADDRESS_IPV6) {
		size_t count = embedding_decode(address, embedded);
		ask_ipv6(&asking, address);
		for (size_t i = 0; i < count; i++)
			ask_ipv4(&asking, &embedded[i].address);
	}
	if (asking.worst != FLOOR_NONE)
		*line = asking.line;
	return asking.worst;
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
