/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/local.h"

#include <stdio.h>
#include <string.h>

#include "resolver/query.h"

/* Zones with nothing in them: RFC 6303 section 4, RFC 7793 (100.64/10), RFC 9462 section 6.4. */
static const char *const empty_zones[] = {
	"10.in-addr.arpa",
	"168.192.in-addr.arpa",
	"0.in-addr.arpa",
	"127.in-addr.arpa",
	"254.169.in-addr.arpa",
	"2.0.192.in-addr.arpa",
	"100.51.198.in-addr.arpa",
	"113.0.203.in-addr.arpa",
	"255.255.255.255.in-addr.arpa",
	"0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
	"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa",
	"c.f.ip6.arpa",
	"d.f.ip6.arpa",
	"8.e.f.ip6.arpa",
	"9.e.f.ip6.arpa",
	"a.e.f.ip6.arpa",
	"b.e.f.ip6.arpa",
	"8.b.d.0.1.0.0.2.ip6.arpa",
};

/* Zones that are ranges of a second label: 16..31.172 (RFC 1918) and 64..127.100 (RFC 7793). */
static const struct {
	const char *parent;
	unsigned first, last;
} empty_ranges[] = {
	{"172.in-addr.arpa", 16, 31},
	{"100.in-addr.arpa", 64, 127},
};

/* NAME is ZONE (*APEX then) or below it. */
static bool is_within(const struct name *name, const char *zone, bool *apex)
{
	size_t length = strlen(zone);

	*apex = name->length == length;
	if (name->length < length || memcmp(name->text + name->length - length, zone, length) != 0)
		return false;
	return *apex || name->text[name->length - length - 1] == '.';
}

static enum local_kind empty_range(const struct name *name, size_t index)
{
	char zone[32];
	bool apex;

	for (unsigned i = empty_ranges[index].first; i <= empty_ranges[index].last; i++) {
		snprintf(zone, sizeof(zone), "%u.%s", i, empty_ranges[index].parent);
		if (is_within(name, zone, &apex))
			return apex ? LOCAL_NODATA : LOCAL_NXDOMAIN;
	}
	return LOCAL_NONE;
}

static bool is_forwarded(const struct name *name, const struct resolver_settings *settings)
{
	for (uint32_t i = 0; settings != NULL && i < settings->zone_count; i++)
		if (settings->zones[i].zone.length > 0 &&
		    name_is_within(name, &settings->zones[i].zone))
			return true;
	return false;
}

enum local_kind local_empty_zone(const struct name *name, const struct resolver_settings *settings)
{
	bool apex;

	if (!is_within(name, "arpa", &apex))
		return LOCAL_NONE;
	/* _dns.resolver.arpa exists in principle: NODATA, so that nobody looks for it elsewhere. */
	if (is_within(name, "resolver.arpa", &apex))
		return LOCAL_NODATA;
	if (is_forwarded(name, settings))
		return LOCAL_NONE;
	for (size_t i = 0; i < sizeof(empty_zones) / sizeof(empty_zones[0]); i++)
		if (is_within(name, empty_zones[i], &apex))
			return apex ? LOCAL_NODATA : LOCAL_NXDOMAIN;
	for (size_t i = 0; i < sizeof(empty_ranges) / sizeof(empty_ranges[0]); i++)
		if (is_within(name, empty_ranges[i].parent, &apex))
			return empty_range(name, i);
	return LOCAL_NONE;
}

static void add(struct local_answer *out, uint16_t type, const struct address *address)
{
	bool wanted = (type == QUERY_TYPE_A && address->family == ADDRESS_IPV4) ||
		      (type == QUERY_TYPE_AAAA && address->family == ADDRESS_IPV6);

	if (wanted && out->count < LOCAL_ADDRESSES_MAX)
		out->addresses[out->count++] = *address;
}

void local_addresses(const struct name *name, uint16_t type, const struct policy_image *image,
		     struct local_answer *out)
{
	struct address all[LOCAL_ADDRESSES_MAX];
	size_t count = policy_static_addresses(image, name, all, LOCAL_ADDRESSES_MAX);
	bool apex;

	out->kind = LOCAL_NONE;
	out->count = 0;
	out->from_static = count > 0;
	if (count == 0 && is_within(name, "localhost", &apex)) {
		static const uint8_t loopback6[16] = {[15] = 1};
		all[count++] = address_ipv4(127, 0, 0, 1);
		all[count++] = address_from_bytes(loopback6, sizeof(loopback6));
	} else if (count == 0 && is_within(name, "ipv4only.arpa", &apex) && apex) {
		/* RFC 8880 section 7: there is no NAT64 of ours to tell of. */
		all[count++] = address_ipv4(192, 0, 0, 170);
		all[count++] = address_ipv4(192, 0, 0, 171);
	}
	if (count == 0)
		return;
	for (size_t i = 0; i < count; i++)
		add(out, type, &all[i]);
	out->kind = out->count > 0 ? LOCAL_ADDRESSES : LOCAL_NODATA;
}
