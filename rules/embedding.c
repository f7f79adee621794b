/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/embedding.h"

#include <string.h>

static struct address ipv4_at(const struct address *address, size_t at)
{
	return address_from_bytes(address->bytes + at, 4);
}

static bool zero(const struct address *address, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (address->bytes[i] != 0)
			return false;
	return true;
}

static bool starts_with(const struct address *address, const uint8_t *bytes, size_t length)
{
	return memcmp(address->bytes, bytes, length) == 0;
}

static size_t add(struct embedded *out, size_t count, enum embedding_kind kind,
		  struct address address)
{
	out[count] = (struct embedded){.kind = kind, .address = address};
	return count + 1;
}

/* RFC 6052 section 2.2 under 64:ff9b:1::/48: octet 8 is zero, and what follows the address too. */
static size_t decode_nat64_local(const struct address *a, struct embedded *out)
{
	const uint8_t *b = a->bytes;
	size_t count = 0;

	if (zero(a, 6, 12))
		return add(out, count, EMBEDDING_NAT64_LOCAL, ipv4_at(a, 12));
	if (b[8] == 0 && zero(a, 11, 16))
		count = add(out, count, EMBEDDING_NAT64_LOCAL,
			    address_ipv4(b[6], b[7], b[9], b[10]));
	if (b[8] == 0 && zero(a, 12, 16))
		count = add(out, count, EMBEDDING_NAT64_LOCAL,
			    address_ipv4(b[7], b[9], b[10], b[11]));
	if (b[8] == 0 && zero(a, 13, 16))
		count = add(out, count, EMBEDDING_NAT64_LOCAL, ipv4_at(a, 9));
	/* nothing in the last four octets: a shorter prefix it is */
	if (count > 0 && zero(a, 12, 16))
		return count;
	return add(out, count, EMBEDDING_NAT64_LOCAL, ipv4_at(a, 12));
}

static size_t decode_low(const struct address *a, struct embedded *out)
{
	const uint8_t *b = a->bytes;
	bool words = zero(a, 0, 8);

	if (words && b[8] == 0 && b[9] == 0 && b[10] == 0xff && b[11] == 0xff)
		return add(out, 0, EMBEDDING_MAPPED, ipv4_at(a, 12));
	if (words && b[8] == 0xff && b[9] == 0xff && b[10] == 0 && b[11] == 0)
		return add(out, 0, EMBEDDING_TRANSLATED, ipv4_at(a, 12));
	if (words && zero(a, 8, 12) && !(zero(a, 12, 15) && b[15] <= 1))
		return add(out, 0, EMBEDDING_COMPATIBLE, ipv4_at(a, 12));
	return 0;
}

size_t embedding_decode(const struct address *address, struct embedded out[EMBEDDED_MAX])
{
	static const uint8_t nat64[12] = {0, 0x64, 0xff, 0x9b};
	static const uint8_t nat64_local[6] = {0, 0x64, 0xff, 0x9b, 0, 1};
	const uint8_t *b = address->bytes;
	size_t count = 0;

	if (address->family != ADDRESS_IPV6)
		return 0;
	if (b[0] == 0) {
		if (starts_with(address, nat64, sizeof(nat64)))
			count = add(out, count, EMBEDDING_NAT64, ipv4_at(address, 12));
		else if (starts_with(address, nat64_local, sizeof(nat64_local)))
			count = decode_nat64_local(address, out);
		else
			count = decode_low(address, out);
	} else if (b[0] == 0x20 && b[1] == 0x02) {
		count = add(out, count, EMBEDDING_6TO4, ipv4_at(address, 2));
	} else if (b[0] == 0x20 && b[1] == 0x01 && b[2] == 0 && b[3] == 0) {
		count = add(out, count, EMBEDDING_TEREDO,
			    address_ipv4(b[12] ^ 0xff, b[13] ^ 0xff, b[14] ^ 0xff, b[15] ^ 0xff));
		count = add(out, count, EMBEDDING_TEREDO_SERVER, ipv4_at(address, 4));
	}
	if ((b[8] & ~0x02) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe)
		count = add(out, count, EMBEDDING_ISATAP, ipv4_at(address, 12));
	return count;
}

struct address embedding_unmap(const struct address *address)
{
	struct embedded embedded[EMBEDDED_MAX];

	if (address->family == ADDRESS_IPV6 && address->bytes[0] == 0 &&
	    embedding_decode(address, embedded) == 1 && embedded[0].kind == EMBEDDING_MAPPED)
		return embedded[0].address;
	return *address;
}

struct address embedding_single(const struct address *address)
{
	struct embedded embedded[EMBEDDED_MAX];

	if (embedding_decode(address, embedded) == 1 && embedded[0].kind != EMBEDDING_ISATAP)
		return embedded[0].address;
	return *address;
}

bool embedding_same(const struct address *a, const struct address *b)
{
	if (address_equal(a, b))
		return true;

	struct address x = embedding_single(a), y = embedding_single(b);
	return address_equal(&x, &y);
}

static bool overlaps(const struct prefix *a, const struct prefix *b)
{
	return a->length <= b->length ? prefix_contains(a, &b->address)
				      : prefix_contains(b, &a->address);
}

bool embedding_prefix_may_hold(const struct prefix *prefix, const struct prefix *inner)
{
	/* Where the forms with one fixed place put the address; the rest is judged by the whole
	 * block. */
	static const struct {
		uint8_t head[12];
		uint8_t at;
	} forms[] = {
		{{[10] = 0xff, [11] = 0xff}, 12},
		{{[8] = 0xff, [9] = 0xff}, 12},
		{{0}, 12},
		{{0, 0x64, 0xff, 0x9b}, 12},
		{{0, 0x64, 0xff, 0x9b, 0, 1}, 12},
		{{0x20, 0x02}, 2},
	};
	static const struct prefix blocks[] = {
		{{ADDRESS_IPV6, {0, 0x64, 0xff, 0x9b, 0, 1}}, 48},
		{{ADDRESS_IPV6, {0x20, 0x01, 0, 0}}, 32},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct prefix form = {.address = {.family = ADDRESS_IPV6}};
		memcpy(form.address.bytes, forms[i].head, sizeof(forms[i].head));
		memcpy(form.address.bytes + forms[i].at, inner->address.bytes, 4);
		form.length = (uint8_t)(forms[i].at * 8 + inner->length);
		if (overlaps(prefix, &form))
			return true;
	}
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		if (prefix->length <= blocks[i].length && overlaps(prefix, &blocks[i]))
			return true;
	return false;
}
