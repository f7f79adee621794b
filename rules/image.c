/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Opens a policy image and looks things up in it. policy_image_open() is the only place that
 * distrusts the image; see image.h for what holds afterwards.
 */

#include "rules/image.h"

#include <errno.h>
#include <string.h>

#include <endian.h>

#include "rules/embedding.h"

static bool span_inside(const struct policy_image *image, const struct image_span *span,
			size_t record)
{
	return span->offset % 8 == 0 && span->offset <= image->size &&
	       (uint64_t)span->count * record <= image->size - span->offset;
}

static bool text_ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool text_inside(const struct policy_image *image, uint32_t offset, uint32_t length)
{
	return offset >= image->texts.offset &&
	       (uint64_t)offset + length <= (uint64_t)image->texts.offset + image->texts.count;
}

static bool rule_is_sound(const struct policy_image *image, const struct image_list *list,
			  uint32_t index, uint32_t value_count)
{
	const struct image_rule *rules = image_at(image, list->rules.offset);
	const struct image_rule *rule = &rules[index];

	return text_inside(image, rule->key, rule->key_length) &&
	       (rule->next == 0 || (rule->next > index + 1 && rule->next <= list->rules.count)) &&
	       (rule->kind_and_scheme & 0xf) <= MATCH_PREFIX &&
	       rule->kind_and_scheme >> 4 <= SCHEME_HTTPS && rule->value < value_count;
}

/* VALUE_COUNT: what a rule's value must stay below. */
static bool list_is_sound(const struct policy_image *image, const struct image_list *list,
			  uint32_t value_count)
{
	const struct image_slot *slots = image_at(image, list->slots.offset);

	if (!span_inside(image, &list->slots, sizeof(struct image_slot)) ||
	    !span_inside(image, &list->rules, sizeof(struct image_rule)) ||
	    (list->slots.count & (list->slots.count - 1)) != 0)
		return false;
	for (size_t i = 0; i < IMAGE_FILTERS; i++)
		if (!span_inside(image, &list->filters[i], sizeof(uint64_t)) ||
		    (list->filters[i].count & (list->filters[i].count - 1)) != 0)
			return false;
	for (uint32_t i = 0; i < list->rules.count; i++)
		if (!rule_is_sound(image, list, i, value_count))
			return false;
	for (uint32_t i = 0; i < list->slots.count; i++)
		if (slots[i].rule > list->rules.count)
			return false;
	return true;
}

static bool policies_are_sound(const struct policy_image *image)
{
	const struct image_policy *policies = image_at(image, image->policies.offset);

	if (image->policies.count == 0 || image->policies.count > IMAGE_POLICIES_MAX ||
	    !span_inside(image, &image->policies, sizeof(struct image_policy)))
		return false;
	for (uint32_t i = 0; i < image->policies.count; i++) {
		if (!text_ends(policies[i].name, sizeof(policies[i].name)) ||
		    !text_ends(policies[i].hook.path, sizeof(policies[i].hook.path)))
			return false;
		for (size_t l = 0; l < LIST_COUNT; l++)
			if (!list_is_sound(image, &policies[i].lists[l], 1))
				return false;
	}
	return true;
}

static bool clients_are_sound(const struct policy_image *image)
{
	const struct image_client *clients = image_at(image, image->clients.offset);
	const struct image_selector *selectors = image_at(image, image->selectors.offset);

	if (!span_inside(image, &image->clients, sizeof(struct image_client)) ||
	    !span_inside(image, &image->selectors, sizeof(struct image_selector)))
		return false;
	for (uint32_t i = 0; i < image->clients.count; i++)
		if (!text_ends(clients[i].name, sizeof(clients[i].name)) ||
		    clients[i].policy >= image->policies.count)
			return false;
	for (uint32_t i = 0; i < image->selectors.count; i++)
		if (selectors[i].client >= image->clients.count ||
		    selectors[i].kind > SELECT_CGROUP ||
		    !text_ends(selectors[i].interface, sizeof(selectors[i].interface)))
			return false;
	return true;
}

static bool hosts_are_sound(const struct policy_image *image)
{
	const struct image_host *hosts = image_at(image, image->hosts.offset);

	if (!span_inside(image, &image->hosts, sizeof(struct image_host)) ||
	    !span_inside(image, &image->addresses, sizeof(struct address)))
		return false;
	for (uint32_t i = 0; i < image->hosts.count; i++)
		if ((uint64_t)hosts[i].first + hosts[i].count > image->addresses.count ||
		    !text_inside(image, hosts[i].key, hosts[i].key_length) ||
		    hosts[i].key_length > NAME_TEXT_MAX)
			return false;
	return true;
}

static bool sources_are_sound(const struct policy_image *image)
{
	const uint32_t *sources = image_at(image, image->sources.offset);
	uint64_t end = (uint64_t)image->texts.offset + image->texts.count;

	if (!span_inside(image, &image->sources, sizeof(uint32_t)))
		return false;
	for (uint32_t i = 0; i < image->sources.count; i++)
		if (sources[i] < image->texts.offset || sources[i] >= end ||
		    !text_ends(image_at(image, sources[i]), (size_t)(end - sources[i])))
			return false;
	return true;
}

static bool wide_lists_are_sound(const struct policy_image *image)
{
	for (size_t i = 0; i < WIDE_COUNT; i++) {
		uint32_t values = 1;
		if (i == WIDE_HOSTS || i == WIDE_HOST_ADDRESSES)
			values = image->hosts.count;
		else if (i == WIDE_SELECTORS)
			values = image->clients.count;
		if (!list_is_sound(image, &image->wide[i], values))
			return false;
	}
	return true;
}

int policy_image_open(const void *bytes, size_t size, const struct policy_image **out)
{
	const struct policy_image *image = bytes;

	if (size < sizeof(*image) || size > IMAGE_SIZE_MAX || (uintptr_t)bytes % 16 != 0)
		return -EPROTO;
	if (image->magic != IMAGE_MAGIC || image->version != IMAGE_VERSION || image->size > size ||
	    image->size < sizeof(*image))
		return -EPROTO;
	if (!span_inside(image, &image->texts, 1) || !policies_are_sound(image) ||
	    !clients_are_sound(image) || !hosts_are_sound(image) || !sources_are_sound(image) ||
	    !wide_lists_are_sound(image))
		return -EPROTO;
	*out = image;
	return 0;
}

uint64_t policy_image_generation(const struct policy_image *image)
{
	return image->generation;
}

policy_index policy_count(const struct policy_image *image)
{
	return image->policies.count;
}

int policy_find(const struct policy_image *image, const char *policy_name, policy_index *out)
{
	for (policy_index i = 0; i < image->policies.count; i++) {
		if (strcmp(image_policy(image, i)->name, policy_name) != 0)
			continue;
		*out = i;
		return 0;
	}
	return -ENOENT;
}

const char *policy_source_name(const struct policy_image *image, uint32_t source)
{
	static const char *const builtin[SOURCE_CONFIG] = {
		[SOURCE_BUILTIN] = "built-in",
		[SOURCE_FLOOR] = "floor.txt",
		[SOURCE_CLASSES] = "address-classes.txt",
		[SOURCE_IANA_IPV4] = "iana-ipv4-special.csv",
		[SOURCE_IANA_IPV6] = "iana-ipv6-special.csv",
		[SOURCE_SPECIAL_NAMES] = "special-names.txt",
		[SOURCE_ENCRYPTED_DNS] = "encrypted-dns.txt",
		[SOURCE_SECRET_SHAPES] = "secret-shapes.txt",
	};
	const uint32_t *sources = image_at(image, image->sources.offset);

	if (source < SOURCE_CONFIG)
		return builtin[source];
	if (source - SOURCE_CONFIG < image->sources.count)
		return image_at(image, sources[source - SOURCE_CONFIG]);
	return "?";
}

static bool rule_counts(const struct image_rule *rule, const struct list_query *query)
{
	unsigned scheme = rule->kind_and_scheme >> 4;

	if (scheme != SCHEME_ANY && query->scheme != SCHEME_ANY && scheme != query->scheme)
		return false;
	switch (query->port_rule) {
	case PORT_ANY:
		return true;
	case PORT_NONE:
		return rule->port == 0;
	case PORT_THIS:
		return rule->port == 0 || rule->port == query->port;
	}
	return false;
}

/* False: no key of LIST has this hash. */
static inline bool filter_has(const struct policy_image *image, const struct image_list *list,
			      enum image_filter which, uint32_t hash)
{
	const uint64_t *filter = image_at(image, list->filters[which].offset);
	uint32_t words = list->filters[which].count;

	return words != 0 && (filter[image_filter_word(hash, words)] & image_filter_bit(hash)) != 0;
}

/* The first rule of the chain with KEY, NULL when the list has none. */
static const struct image_rule *find_key(const struct policy_image *image,
					 const struct image_list *list, const void *key,
					 size_t length, uint32_t hash)
{
	const struct image_slot *slots = image_at(image, list->slots.offset);
	const struct image_rule *rules = image_at(image, list->rules.offset);
	uint32_t mask = list->slots.count - 1;

	for (uint32_t i = 0, slot = hash & mask; i < list->slots.count && slots[slot].rule != 0;
	     i++, slot = (slot + 1) & mask) {
		if (slots[slot].hash != hash)
			continue;
		const struct image_rule *rule = &rules[slots[slot].rule - 1];
		if (rule->key_length == length &&
		    memcmp(image_at(image, rule->key), key, length) == 0)
			return rule;
	}
	return NULL;
}

const struct image_rule *list_next(const struct policy_image *image, const struct image_list *list,
				   const struct image_rule *rule)
{
	const struct image_rule *rules = image_at(image, list->rules.offset);

	return rule->next == 0 ? NULL : &rules[rule->next - 1];
}

static bool kind_holds(const struct image_rule *rule, bool whole)
{
	switch ((enum match_kind)(rule->kind_and_scheme & 0xf)) {
	case MATCH_NAME:
		return true;
	case MATCH_SUBDOMAINS:
		return !whole;
	case MATCH_EXACT:
		return whole;
	case MATCH_PREFIX:
		break;
	}
	return false;
}

const struct image_rule *list_find_suffix(const struct policy_image *image,
					  const struct image_list *list,
					  const struct name_walk *walk, size_t at)
{
	uint8_t length;
	const char *text = names_suffix(walk, at, &length);

	if ((list->depths & names_depth_bit((size_t)(walk->count - at))) == 0 ||
	    !filter_has(image, list, FILTER_NAMES, walk->hash[at]))
		return NULL;
	return find_key(image, list, text, length, walk->hash[at]);
}

const struct image_rule *list_find_name(const struct policy_image *image,
					const struct image_list *list, const struct name_walk *walk,
					const struct list_query *query)
{
	if (list->depths == 0)
		return NULL;
	for (size_t at = 0; at < walk->count; at++) {
		const struct image_rule *rule = list_find_suffix(image, list, walk, at);
		for (; rule != NULL; rule = list_next(image, list, rule))
			if (kind_holds(rule, at == 0) && rule_counts(rule, query))
				return rule;
	}
	return NULL;
}

size_t image_prefix_key(const struct prefix *prefix, uint8_t key[PREFIX_KEY_MAX])
{
	size_t octets = address_length(&prefix->address);

	key[0] = prefix->address.family;
	key[1] = prefix->length;
	memset(key + 2, 0, octets);
	memcpy(key + 2, prefix->address.bytes, prefix->length / 8);
	if (prefix->length % 8 != 0)
		key[2 + prefix->length / 8] = (uint8_t)(prefix->address.bytes[prefix->length / 8] &
							(0xff00u >> prefix->length % 8));
	return 2 + octets;
}

/* An address as two numbers, so that a prefix of it is a mask away. */
struct words {
	uint64_t high, low;
	uint8_t family;
};

static struct words words_of(const struct address *address)
{
	struct words words = {.family = address->family};
	uint64_t octets[2] = {0};

	memcpy(octets, address->bytes, address_length(address));
	words.high = be64toh(octets[0]);
	words.low = be64toh(octets[1]);
	return words;
}

/* Multiplies and folds: keys of prefixes that differ in a few bits are apart in all of them. */
static inline uint32_t hash_prefix(const struct words *words, unsigned length)
{
	static const uint64_t odd[2] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
	uint64_t high = words->high, low = words->low, value;

	if (length < 64) {
		high &= ~(UINT64_MAX >> length);
		low = 0;
	} else if (length < 128) {
		low &= ~(UINT64_MAX >> (length - 64));
	}
	value = (high ^ (uint64_t)words->family << 8 ^ length) * odd[0] ^ low * odd[1];
	value = (value ^ value >> 32) * odd[0];
	return (uint32_t)(value >> 32);
}

uint32_t image_prefix_hash(const struct prefix *prefix)
{
	struct words words = words_of(&prefix->address);

	return hash_prefix(&words, prefix->length);
}

static const struct image_rule *find_length(const struct policy_image *image,
					    const struct image_list *list,
					    const struct address *address, unsigned length,
					    uint32_t hash, const struct list_query *query)
{
	struct prefix prefix = {.address = *address, .length = (uint8_t)length};
	uint8_t key[PREFIX_KEY_MAX];
	size_t size = image_prefix_key(&prefix, key);
	const struct image_rule *rule = find_key(image, list, key, size, hash);

	for (; rule != NULL; rule = list_next(image, list, rule))
		if ((rule->kind_and_scheme & 0xf) == MATCH_PREFIX && rule_counts(rule, query))
			return rule;
	return NULL;
}

const struct image_rule *list_find_address(const struct policy_image *image,
					   const struct image_list *list,
					   const struct address *address,
					   const struct list_query *query)
{
	const uint64_t *lengths =
		address->family == ADDRESS_IPV4 ? &list->ipv4_lengths : list->ipv6_lengths;
	unsigned bits = address_bits(address);
	struct words words;

	if (bits == 0 || (lengths[0] | (bits > 32 ? lengths[1] | lengths[2] : 0)) == 0)
		return NULL;
	words = words_of(address);
	for (unsigned word = bits / 64 + 1; word-- > 0;) {
		uint64_t left = lengths[word];
		while (left != 0) {
			unsigned top = 63 - (unsigned)__builtin_clzll(left);
			left &= ~(UINT64_C(1) << top);
			if (word * 64 + top > bits)
				continue;
			uint32_t hash = hash_prefix(&words, word * 64 + top);
			if (!filter_has(image, list, FILTER_PREFIXES, hash))
				continue;
			const struct image_rule *rule =
				find_length(image, list, address, word * 64 + top, hash, query);
			if (rule != NULL)
				return rule;
		}
	}
	return NULL;
}

const struct image_rule *list_find_any_form(const struct policy_image *image,
					    const struct image_list *list,
					    const struct address *address,
					    const struct list_query *query)
{
	struct embedded embedded[EMBEDDED_MAX];
	const struct image_rule *rule = list_find_address(image, list, address, query);
	size_t count = rule == NULL ? embedding_decode(address, embedded) : 0;

	for (size_t i = 0; i < count && rule == NULL; i++)
		rule = list_find_address(image, list, &embedded[i].address, query);
	return rule;
}

const struct image_rule *list_find_single_form(const struct policy_image *image,
					       const struct image_list *list,
					       const struct address *address,
					       const struct list_query *query)
{
	const struct image_rule *rule = list_find_address(image, list, address, query);

	/* an IPv4 address stands for nothing but itself */
	if (rule != NULL || address->family != ADDRESS_IPV6)
		return rule;
	struct address single = embedding_single(address);
	return single.family == ADDRESS_IPV6 ? NULL
					     : list_find_address(image, list, &single, query);
}
