/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "rules/classify.h"

#include <assert.h>
#include <string.h>

#include <endian.h>

#include "rules/builtin.h"
#include "rules/embedding.h"

static enum address_class class_of_ipv4(const struct address *address, struct place *place)
{
	uint32_t value;
	size_t low = 0, high = builtin_range4_count;

	memcpy(&value, address->bytes, sizeof(value));
	value = be32toh(value);
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (builtin_ranges4[middle].first <= value)
			low = middle;
		else
			high = middle;
	}
	*place = builtin_ranges4[low].place;
	return (enum address_class)builtin_ranges4[low].class;
}

static enum address_class class_of_ipv6(const struct address *address, struct place *place)
{
	uint64_t words[2];
	size_t low = 0, high = builtin_range6_count;

	memcpy(words, address->bytes, sizeof(words));
	words[0] = be64toh(words[0]);
	words[1] = be64toh(words[1]);
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		const struct builtin_range6 *range = &builtin_ranges6[middle];
		if (range->first_high < words[0] ||
		    (range->first_high == words[0] && range->first_low <= words[1]))
			low = middle;
		else
			high = middle;
	}
	*place = builtin_ranges6[low].place;
	return (enum address_class)builtin_ranges6[low].class;
}

/* The class that an embedded address gives to the outer one; CLASS_PUBLIC: none of its own. */
static enum address_class class_of_embedded(const struct embedded *embedded, struct place *place)
{
	enum address_class class = class_of_ipv4(&embedded->address, place);

	if (class != CLASS_PUBLIC)
		return class;
	switch (embedded->kind) {
	case EMBEDDING_COMPATIBLE:
	case EMBEDDING_TRANSLATED:
	case EMBEDDING_NAT64_LOCAL:
	case EMBEDDING_6TO4:
	case EMBEDDING_TEREDO:
		return CLASS_SPECIAL;
	case EMBEDDING_MAPPED:
	case EMBEDDING_NAT64:
	case EMBEDDING_TEREDO_SERVER:
	case EMBEDDING_ISATAP:
		break;
	}
	return CLASS_PUBLIC;
}

static unsigned note(unsigned classes, enum address_class class, struct place place,
		     struct place *places)
{
	if (places != NULL && (classes & CLASS_BIT(class)) == 0)
		places[class] = place;
	return classes | CLASS_BIT(class);
}

unsigned class_of_address(const struct address *address, struct place places[CLASS_NEVER + 1])
{
	struct embedded embedded[EMBEDDED_MAX];
	unsigned classes = 0;
	struct place place;

	if (address->family == ADDRESS_IPV4) {
		enum address_class class = class_of_ipv4(address, &place);
		return note(0, class, place, places);
	}
	if (address->family != ADDRESS_IPV6)
		return note(0, CLASS_NEVER, (struct place){0}, places);

	size_t count = embedding_decode(address, embedded);
	/* ISATAP lives under a prefix of its own; in every other form the embedded address decides.
	 */
	if (count == 0 || embedded[0].kind == EMBEDDING_ISATAP) {
		enum address_class class = class_of_ipv6(address, &place);
		classes = note(classes, class, place, places);
	}
	for (size_t i = 0; i < count; i++) {
		enum address_class class = class_of_embedded(&embedded[i], &place);
		classes = note(classes, class, place, places);
	}
	if ((classes & ~CLASS_BIT(CLASS_PUBLIC)) != 0)
		classes &= ~CLASS_BIT(CLASS_PUBLIC);
	return classes;
}

bool class_is_public(const struct address *address)
{
	return class_of_address(address, NULL) == CLASS_BIT(CLASS_PUBLIC);
}

const struct prefix *class_nonpublic_prefixes(size_t *count)
{
	*count = builtin_nonpublic_count;
	return builtin_nonpublic;
}
