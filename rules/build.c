/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Writes a policy image. A buffer grows as records are appended; everything inside refers by
 * offset, so that it may move. The records of a list are collected first and hashed when their
 * number is known.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rules/embedding.h"
#include "rules/image.h"

struct buffer {
	uint8_t *bytes;
	size_t size, capacity;
};

struct builder {
	struct buffer image;
	struct buffer texts; /* goes to the end; key offsets are relative to it until then */
};

/* Room for COUNT records of SIZE octets, zeroed and aligned to 8; *OFFSET is where. */
static int append(struct buffer *buffer, size_t count, size_t size, uint32_t *offset)
{
	size_t start = (buffer->size + 7) & ~(size_t)7;
	size_t octets;

	if (__builtin_mul_overflow(count, size, &octets) || octets > IMAGE_SIZE_MAX - start)
		return -EINVAL;
	if (start + octets > buffer->capacity) {
		size_t capacity = buffer->capacity < 4096 ? 4096 : buffer->capacity;
		while (capacity < start + octets)
			capacity *= 2;
		uint8_t *bytes = realloc(buffer->bytes, capacity);
		if (bytes == NULL)
			return -ENOMEM;
		memset(bytes + buffer->size, 0, capacity - buffer->size);
		buffer->bytes = bytes;
		buffer->capacity = capacity;
	}
	buffer->size = start + octets;
	*offset = (uint32_t)start;
	return 0;
}

/* Texts lie side by side without alignment. */
static int append_text(struct builder *b, const void *text, size_t length, uint32_t *offset)
{
	struct buffer *texts = &b->texts;

	if (length > IMAGE_SIZE_MAX - texts->size)
		return -EINVAL;
	if (texts->size + length > texts->capacity) {
		size_t capacity = texts->capacity < 4096 ? 4096 : texts->capacity;
		while (capacity < texts->size + length)
			capacity *= 2;
		uint8_t *bytes = realloc(texts->bytes, capacity);
		if (bytes == NULL)
			return -ENOMEM;
		texts->bytes = bytes;
		texts->capacity = capacity;
	}
	if (length > 0)
		memcpy(texts->bytes + texts->size, text, length);
	*offset = (uint32_t)texts->size;
	texts->size += length;
	return 0;
}

static void *at(struct builder *b, uint32_t offset)
{
	return b->image.bytes + offset;
}

static struct policy_image *header(struct builder *b)
{
	return at(b, 0);
}

/* A list being filled; it lives in the image at OFFSET. */
struct filling {
	uint32_t offset; /* of its struct image_list */
	uint32_t used;   /* rules */
};

static struct image_list *list_of(struct builder *b, const struct filling *filling)
{
	return at(b, filling->offset);
}

static int add_filter(struct builder *b, const struct filling *filling, enum image_filter which,
		      size_t keys)
{
	uint32_t words = keys > 0, offset;

	while (words < keys * IMAGE_FILTER_BITS / 64)
		words *= 2;
	int error = append(&b->image, words, sizeof(uint64_t), &offset);
	if (error == 0)
		list_of(b, filling)->filters[which] = (struct image_span){offset, words};
	return error;
}

/* A list of COUNT rules, of which PREFIXES are such. */
static int list_begin(struct builder *b, uint32_t offset, size_t count, size_t prefixes,
		      struct filling *out)
{
	uint32_t rules, slots, size = 0;
	int error;

	if (count > IMAGE_SIZE_MAX / sizeof(struct image_rule))
		return -EINVAL;
	error = append(&b->image, count, sizeof(struct image_rule), &rules);
	if (error < 0)
		return error;
	if (count > 0)
		for (size = 2; size < count + count / 2 + 1; size *= 2)
			;
	error = append(&b->image, size, sizeof(struct image_slot), &slots);
	if (error < 0)
		return error;
	*out = (struct filling){.offset = offset};
	struct image_list *list = list_of(b, out);
	list->rules = (struct image_span){rules, (uint32_t)count};
	list->slots = (struct image_span){slots, size};
	error = add_filter(b, out, FILTER_NAMES, count - prefixes);
	return error < 0 ? error : add_filter(b, out, FILTER_PREFIXES, prefixes);
}

/* Puts the last rule into the table: a new key takes a slot, a known one goes to the end of its
 * chain. */
static void list_hash(struct builder *b, const struct filling *filling, enum image_filter which,
		      uint32_t hash)
{
	const struct image_list *list = list_of(b, filling);
	struct image_slot *slots = at(b, list->slots.offset);
	struct image_rule *rules = at(b, list->rules.offset);
	const struct image_rule *last = &rules[filling->used - 1];
	uint64_t *filter = at(b, list->filters[which].offset);
	uint32_t mask = list->slots.count - 1;

	filter[image_filter_word(hash, list->filters[which].count)] |= image_filter_bit(hash);
	for (uint32_t slot = hash & mask;; slot = (slot + 1) & mask) {
		if (slots[slot].rule == 0) {
			slots[slot] = (struct image_slot){hash, filling->used};
			return;
		}
		struct image_rule *rule = &rules[slots[slot].rule - 1];
		if (slots[slot].hash != hash || rule->key_length != last->key_length ||
		    memcmp(b->texts.bytes + rule->key, b->texts.bytes + last->key,
			   rule->key_length) != 0)
			continue;
		while (rule->next != 0)
			rule = &rules[rule->next - 1];
		rule->next = filling->used;
		return;
	}
}

static int list_put_key(struct builder *b, struct filling *filling, const void *key, size_t length,
			enum image_filter which, uint32_t hash, const struct image_rule *rule)
{
	uint32_t offset;
	int error = append_text(b, key, length, &offset);

	if (error < 0)
		return error;
	struct image_list *list = list_of(b, filling);
	struct image_rule *rules = at(b, list->rules.offset);
	rules[filling->used] = *rule;
	rules[filling->used].key = offset;
	rules[filling->used].key_length = (uint8_t)length;
	filling->used++;
	list_hash(b, filling, which, hash);
	return 0;
}

static int list_put_name(struct builder *b, struct filling *filling, const struct name *name,
			 const struct image_rule *rule)
{
	if (name->length == 0 || name->length > NAME_TEXT_MAX)
		return -EINVAL;
	list_of(b, filling)->depths |= names_depth_bit(name_label_count(name));
	return list_put_key(b, filling, name->text, name->length, FILTER_NAMES,
			    names_hash(name->text, name->length), rule);
}

/* A prefix of mapped addresses is the IPv4 prefix that it holds. */
static struct prefix normalised(const struct prefix *prefix)
{
	struct prefix result = *prefix;

	result.address = embedding_unmap(&prefix->address);
	if (result.address.family == prefix->address.family)
		return *prefix;
	if (prefix->length < 96)
		return *prefix;
	result.length = (uint8_t)(prefix->length - 96);
	return result;
}

static int list_put_prefix(struct builder *b, struct filling *filling, const struct prefix *given,
			   const struct image_rule *rule)
{
	struct prefix prefix = normalised(given);
	struct image_list *list = list_of(b, filling);
	uint8_t key[PREFIX_KEY_MAX];

	if (prefix.address.family == ADDRESS_IPV4 && prefix.length <= 32)
		list->ipv4_lengths |= UINT64_C(1) << prefix.length;
	else if (prefix.address.family == ADDRESS_IPV6 && prefix.length <= 128)
		list->ipv6_lengths[prefix.length / 64] |= UINT64_C(1) << prefix.length % 64;
	else
		return -EINVAL;
	size_t length = image_prefix_key(&prefix, key);
	return list_put_key(b, filling, key, length, FILTER_PREFIXES, image_prefix_hash(&prefix),
			    rule);
}

static uint32_t wide_offset(enum image_wide wide)
{
	return (uint32_t)(offsetof(struct policy_image, wide) + wide * sizeof(struct image_list));
}

static int build_list(struct builder *b, uint32_t offset, const struct match_list *source)
{
	struct filling filling;
	size_t prefixes = 0;

	for (size_t i = 0; i < source->count; i++)
		prefixes += source->entries[i].kind == MATCH_PREFIX;
	int error = list_begin(b, offset, source->count, prefixes, &filling);

	for (size_t i = 0; i < source->count && error == 0; i++) {
		const struct match_entry *entry = &source->entries[i];
		struct image_rule rule = {
			.source = entry->place.source,
			.line = entry->place.line,
			.port = entry->port,
			.kind_and_scheme = (uint8_t)(entry->kind | entry->scheme << 4),
		};
		if ((unsigned)entry->kind > MATCH_PREFIX || (unsigned)entry->scheme > SCHEME_HTTPS)
			error = -EINVAL;
		else if (entry->kind == MATCH_PREFIX)
			error = list_put_prefix(b, &filling, &entry->prefix, &rule);
		else
			error = list_put_name(b, &filling, &entry->name, &rule);
	}
	return error;
}

static int build_localhost(struct builder *b, uint32_t offset, const struct policy_source *source)
{
	static const struct name localhost = {.length = 9, .text = "localhost"};
	const struct match_list *const lists[] = {&source->allow_hosts, &source->allowed_origins};
	struct match_list found = {0};
	size_t most = lists[0]->count + lists[1]->count;

	if (most > 0) {
		found.entries = calloc(most, sizeof(*found.entries));
		if (found.entries == NULL)
			return -ENOMEM;
	}
	for (size_t l = 0; l < 2; l++) {
		for (size_t i = 0; i < lists[l]->count; i++) {
			const struct match_entry *entry = &lists[l]->entries[i];
			if (entry->kind == MATCH_PREFIX ||
			    !name_is_within(&entry->name, &localhost))
				continue;
			found.entries[found.count] = *entry;
			found.entries[found.count].kind = MATCH_NAME;
			found.entries[found.count++].name = localhost;
		}
	}
	int error = build_list(b, offset, &found);
	free(found.entries);
	return error;
}

static int build_name_list(struct builder *b, uint32_t offset, const struct name *names,
			   size_t count)
{
	struct filling filling;
	int error = list_begin(b, offset, count, 0, &filling);

	for (size_t i = 0; i < count && error == 0; i++)
		error = list_put_name(b, &filling, &names[i], &(struct image_rule){0});
	return error;
}

static int copy_text(char *out, size_t size, const char *text)
{
	size_t length = strnlen(text, size);

	if (length == size)
		return -EINVAL;
	memcpy(out, text, length + 1);
	return 0;
}

static int build_policy(struct builder *b, uint32_t offset, const struct policy_source *source)
{
	const struct option_bool *const options[OPTION_COUNT] = {
		[OPTION_DEFAULT_DENY] = &source->default_deny,
		[OPTION_AUDIT] = &source->audit,
		[OPTION_LITERALS_DENY] = &source->literals_deny,
		[OPTION_ALLOW_PRIVATE_NETWORK] = &source->allow_private_network,
		[OPTION_ALLOW_LOOPBACK] = &source->allow_loopback,
		[OPTION_BLOCK_SECRET_BEARING_URLS] = &source->block_secret_bearing_urls,
		[OPTION_BLOCK_ENCRYPTED_DNS] = &source->block_encrypted_dns,
		[OPTION_STRIP_ECH] = &source->strip_ech,
		[OPTION_INFRASTRUCTURE_ALLOW] = &source->infrastructure_allow,
		[OPTION_UDP_ALLOW] = &source->udp_allow,
		[OPTION_ICMP_ALLOW] = &source->icmp_allow,
		[OPTION_OTHER_ALLOW] = &source->other_allow,
		[OPTION_HTTP2_ALLOW] = &source->http2_allow,
	};
	const struct match_list *const lists[LIST_COUNT] = {
		[LIST_ALLOW_HOSTS] = &source->allow_hosts,
		[LIST_ALLOWED_ORIGINS] = &source->allowed_origins,
		[LIST_BLOCK_HOSTS] = &source->block_hosts,
		[LIST_ALLOW_RAW] = &source->allow_raw,
		[LIST_PROXIES] = &source->proxies,
		[LIST_ALLOW_PRIVATE_ANSWERS] = &source->allow_private_answers,
		[LIST_ALLOW_PRIVATE_CIDRS] = &source->allow_private_cidrs,
		[LIST_ALLOWED_LOCALHOST] = NULL, /* made of the first two */
	};
	struct image_policy *policy = at(b, offset);
	int error = copy_text(policy->name, sizeof(policy->name), source->name);

	if (error == 0)
		error = copy_text(policy->hook.path, sizeof(policy->hook.path), source->hook.path);
	policy->hook.stages = source->hook.stages;
	policy->hook.timeout_ms = source->hook.timeout_ms;
	policy->hook.source = source->hook.place.source;
	policy->hook.line = source->hook.place.line;
	for (size_t i = 0; i < OPTION_COUNT; i++)
		policy->options[i] = (struct image_option){.value = options[i]->value,
							   .source = options[i]->place.source,
							   .line = options[i]->place.line};
	for (size_t i = 0; i < LIST_COUNT && error == 0; i++) {
		size_t list = offset + offsetof(struct image_policy, lists) +
			      i * sizeof(struct image_list);
		error = lists[i] != NULL ? build_list(b, (uint32_t)list, lists[i])
					 : build_localhost(b, (uint32_t)list, source);
	}
	return error;
}

static int build_policies(struct builder *b, const struct config_source *source)
{
	uint32_t offset;
	int error;

	if (source->policy_count == 0 || source->policy_count > IMAGE_POLICIES_MAX)
		return -EINVAL;
	error = append(&b->image, source->policy_count, sizeof(struct image_policy), &offset);
	for (size_t i = 0; i < source->policy_count && error == 0; i++)
		error = build_policy(b, (uint32_t)(offset + i * sizeof(struct image_policy)),
				     &source->policies[i]);
	if (error == 0)
		header(b)->policies = (struct image_span){offset, (uint32_t)source->policy_count};
	return error;
}

static bool is_root(const struct client_source *client)
{
	for (size_t i = 0; i < client->selector_count; i++)
		if (client->selectors[i].kind != SELECT_UID || client->selectors[i].uid != 0)
			return false;
	return client->selector_count > 0;
}

static int build_selector(struct image_selector *out, const struct client_selector *selector,
			  uint32_t client)
{
	*out = (struct image_selector){.kind = selector->kind, .client = client};
	switch (selector->kind) {
	case SELECT_UID:
		out->uid = selector->uid;
		return 0;
	case SELECT_CGROUP:
		out->cgroup = selector->cgroup;
		return selector->cgroup != 0 ? 0 : -EINVAL;
	case SELECT_INTERFACE:
		return selector->interface[0] != '\0'
			       ? copy_text(out->interface, sizeof(out->interface),
					   selector->interface)
			       : -EINVAL;
	case SELECT_PREFIX:
		break;
	}
	return -EINVAL;
}

static int build_selectors(struct builder *b, const struct config_source *source)
{
	size_t prefixes = 0, others = 0, used = 0;
	struct filling filling;
	uint32_t offset;
	int error;

	for (size_t i = 0; i < source->client_count; i++)
		for (size_t s = 0; s < source->clients[i].selector_count; s++)
			*(source->clients[i].selectors[s].kind == SELECT_PREFIX ? &prefixes
										: &others) += 1;
	error = append(&b->image, others, sizeof(struct image_selector), &offset);
	if (error == 0)
		error = list_begin(b, wide_offset(WIDE_SELECTORS), prefixes, prefixes, &filling);
	for (size_t i = 0; i < source->client_count && error == 0; i++) {
		const struct client_source *client = &source->clients[i];
		struct image_rule rule = {.value = (uint32_t)i,
					  .source = client->place.source,
					  .line = client->place.line,
					  .kind_and_scheme = MATCH_PREFIX};
		for (size_t s = 0; s < client->selector_count && error == 0; s++) {
			struct image_selector *selectors = at(b, offset);
			if (client->selectors[s].kind == SELECT_PREFIX)
				error = list_put_prefix(b, &filling, &client->selectors[s].prefix,
							&rule);
			else
				error = build_selector(&selectors[used++], &client->selectors[s],
						       (uint32_t)i);
		}
	}
	if (error == 0)
		header(b)->selectors = (struct image_span){offset, (uint32_t)others};
	return error;
}

static int build_clients(struct builder *b, const struct config_source *source)
{
	uint32_t offset;
	int error = append(&b->image, source->client_count, sizeof(struct image_client), &offset);

	for (size_t i = 0; i < source->client_count && error == 0; i++) {
		const struct client_source *client = &source->clients[i];
		struct image_client *record = at(b, offset);
		record += i;
		if (client->policy >= source->policy_count || client->name[0] == '\0')
			error = -EINVAL;
		else
			error = copy_text(record->name, sizeof(record->name), client->name);
		if (error < 0)
			break;
		record->key = client->serial != 0 ? client_key_of_serial(client->serial)
						  : client_key_of_name(record->name);
		record->policy = (uint32_t)client->policy;
		record->root = is_root(client);
	}
	if (error < 0)
		return error;
	header(b)->clients = (struct image_span){offset, (uint32_t)source->client_count};
	return build_selectors(b, source);
}

static int build_host(struct builder *b, struct filling *names, struct filling *addresses,
		      const struct static_host *host, struct image_host *record)
{
	const struct image_rule rule = {.value = names->used,
					.source = host->place.source,
					.line = host->place.line,
					.kind_and_scheme = MATCH_EXACT};
	struct image_rule address_rule = rule;
	int error = list_put_name(b, names, &host->name, &rule);

	address_rule.kind_and_scheme = MATCH_PREFIX;
	for (size_t i = 0; i < host->address_count && error == 0; i++) {
		struct prefix prefix = {.address = host->addresses[i]};
		prefix.length = (uint8_t)address_bits(&prefix.address);
		error = list_put_prefix(b, addresses, &prefix, &address_rule);
	}
	if (error < 0)
		return error;
	const struct image_rule *rules = at(b, list_of(b, names)->rules.offset);
	record->key = rules[names->used - 1].key;
	record->key_length = host->name.length;
	record->count = (uint32_t)host->address_count;
	return 0;
}

static int build_hosts(struct builder *b, const struct config_source *source)
{
	size_t total = 0, used = 0;
	struct filling names, reverse;
	uint32_t hosts, addresses;
	int error;

	for (size_t i = 0; i < source->host_count; i++)
		total += source->hosts[i].address_count;
	error = append(&b->image, source->host_count, sizeof(struct image_host), &hosts);
	if (error == 0)
		error = append(&b->image, total, sizeof(struct address), &addresses);
	if (error == 0)
		error = list_begin(b, wide_offset(WIDE_HOSTS), source->host_count, 0, &names);
	if (error == 0)
		error = list_begin(b, wide_offset(WIDE_HOST_ADDRESSES), total, total, &reverse);
	for (size_t i = 0; i < source->host_count && error == 0; i++) {
		const struct static_host *host = &source->hosts[i];
		struct image_host *records = at(b, hosts);
		struct address *out = at(b, addresses);
		error = build_host(b, &names, &reverse, host, &records[i]);
		records[i].first = (uint32_t)used;
		for (size_t a = 0; a < host->address_count; a++)
			out[used++] = embedding_unmap(&host->addresses[a]);
	}
	if (error < 0)
		return error;
	header(b)->hosts = (struct image_span){hosts, (uint32_t)source->host_count};
	header(b)->addresses = (struct image_span){addresses, (uint32_t)total};
	return 0;
}

/* Sockets of our own: an address and a port each, nothing wider. */
static bool all_are_sockets(const struct match_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct match_entry *entry = &list->entries[i];
		if (entry->kind != MATCH_PREFIX || entry->port == 0 ||
		    entry->prefix.length != address_bits(&entry->prefix.address))
			return false;
	}
	return true;
}

static int build_wide(struct builder *b, const struct config_source *source)
{
	int error;

	if (!all_are_sockets(&source->listen) || !all_are_sockets(&source->own))
		return -EINVAL;
	error = build_list(b, wide_offset(WIDE_FLOOR), &source->floor);
	if (error == 0)
		error = build_list(b, wide_offset(WIDE_LISTEN), &source->listen);
	if (error == 0)
		error = build_list(b, wide_offset(WIDE_OWN), &source->own);
	if (error == 0)
		error = build_name_list(b, wide_offset(WIDE_SEARCH), source->search,
					source->search_count);
	if (error == 0)
		error = build_name_list(b, wide_offset(WIDE_FORWARD), source->forward_zones,
					source->forward_count);
	if (error == 0)
		error = build_hosts(b, source);
	return error;
}

static int build_sources(struct builder *b, const struct config_source *source)
{
	uint32_t offset, text;
	int error = append(&b->image, source->source_count, sizeof(uint32_t), &offset);

	for (size_t i = 0; i < source->source_count && error == 0; i++) {
		error = append_text(b, source->source_names[i], strlen(source->source_names[i]) + 1,
				    &text);
		if (error == 0)
			((uint32_t *)at(b, offset))[i] = text;
	}
	if (error == 0)
		header(b)->sources = (struct image_span){offset, (uint32_t)source->source_count};
	return error;
}

static void move_keys(struct builder *b, const struct image_list *list, uint32_t base)
{
	struct image_rule *rules = at(b, list->rules.offset);

	for (uint32_t i = 0; i < list->rules.count; i++)
		rules[i].key += base;
}

/* Texts go behind everything else, and what points at them learns where. */
static int finish(struct builder *b)
{
	uint32_t base;
	int error = append(&b->image, b->texts.size, 1, &base);

	if (error < 0)
		return error;
	struct policy_image *image = header(b);
	struct image_policy *policies = at(b, image->policies.offset);
	struct image_host *hosts = at(b, image->hosts.offset);
	uint32_t *sources = at(b, image->sources.offset);
	if (b->texts.size > 0)
		memcpy(at(b, base), b->texts.bytes, b->texts.size);
	image->texts = (struct image_span){base, (uint32_t)b->texts.size};
	for (size_t i = 0; i < WIDE_COUNT; i++)
		move_keys(b, &image->wide[i], base);
	for (uint32_t p = 0; p < image->policies.count; p++)
		for (size_t i = 0; i < LIST_COUNT; i++)
			move_keys(b, &policies[p].lists[i], base);
	for (uint32_t i = 0; i < image->sources.count; i++)
		sources[i] += base;
	for (uint32_t i = 0; i < image->hosts.count; i++)
		hosts[i].key += base;
	image->size = (uint32_t)b->image.size;
	return 0;
}

int policy_image_build(const struct config_source *source, void **image, size_t *size)
{
	struct builder b = {0};
	uint32_t offset;
	int error = append(&b.image, 1, sizeof(struct policy_image), &offset);

	if (error == 0) {
		header(&b)->magic = IMAGE_MAGIC;
		header(&b)->version = IMAGE_VERSION;
		header(&b)->generation = source->generation;
		header(&b)->govern_all = source->govern_all;
		header(&b)->quic_inspect = source->quic_inspect;
		error = build_policies(&b, source);
	}
	if (error == 0)
		error = build_clients(&b, source);
	if (error == 0)
		error = build_wide(&b, source);
	if (error == 0)
		error = build_sources(&b, source);
	if (error == 0)
		error = finish(&b);
	free(b.texts.bytes);
	if (error < 0) {
		free(b.image.bytes);
		return error;
	}
	*image = b.image.bytes;
	*size = b.image.size;
	return 0;
}

void policy_source_init(struct policy_source *policy, const char *name)
{
	size_t length = strnlen(name, sizeof(policy->name) - 1);

	*policy = (struct policy_source){0};
	memcpy(policy->name, name, length);
	policy->allow_private_network.value = true;
	policy->allow_loopback.value = true;
	policy->block_secret_bearing_urls.value = true;
	policy->block_encrypted_dns.value = true;
	policy->strip_ech.value = true;
}
