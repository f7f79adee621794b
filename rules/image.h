/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy image: layout and look-ups. Private to rules/.
 *
 * An image is a header, then arrays at offsets from its start, all of fixed-size records without
 * pointers. build.c writes it, policy_image_open() checks it whole, and every look-up relies on
 * that check: each span lies inside, each index is below its count, each chain only goes forward,
 * each text ends in a NUL. An image that fails the check is not used; one that passes can still say
 * anything, but the floor is not in it.
 *
 * Every list, of names or of prefixes, is one hash table. A key is the text of a name, or family,
 * length and masked octets of a prefix; rules of one key are a chain in the order of the
 * configuration. A name is looked up with each of its parents, an address with each prefix length
 * that the list has; sets of label counts and of lengths spare the probes that cannot hit. A filter,
 * one bit a hash, spares most of the others: it stays in the nearest cache, where the table of a long
 * list does not.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"
#include "rules/names.h"
#include "rules/source.h"

#define IMAGE_MAGIC   0x464e4950u /* "PINF" */
#define IMAGE_VERSION 3u
/* Offsets are 32 bits; a list of a million names with its table stays far below. */
#define IMAGE_SIZE_MAX (1u << 30)
/* More than any host has; bounds the check and keeps products of counts inside 64 bits. */
#define IMAGE_POLICIES_MAX 4096u

struct image_span {
	uint32_t offset; /* octets from the start of the image, a multiple of 8 */
	uint32_t count;  /* records */
};

struct image_rule {
	uint32_t key;   /* offset of the key in the image */
	uint32_t next;  /* index plus one of the next rule with this key, 0: none */
	uint32_t value; /* what the list maps to: an index, see enum image_wide; else 0 */
	uint32_t source, line;
	uint16_t port; /* 0: any */
	uint8_t key_length;
	uint8_t kind_and_scheme; /* enum match_kind | enum match_scheme << 4 */
};
static_assert(sizeof(struct image_rule) == 24, "part of the layout");

struct image_slot {
	uint32_t hash;
	uint32_t rule; /* index plus one, 0: empty */
};

/* Names and prefixes have a filter each, so that those of a list with many names stay small. */
enum image_filter { FILTER_NAMES, FILTER_PREFIXES, IMAGE_FILTERS };

struct image_list {
	struct image_span slots;                  /* a power of two of them, or none */
	struct image_span filters[IMAGE_FILTERS]; /* uint64_t, a power of two of them, or none */
	struct image_span rules;
	uint64_t depths;          /* names_depth_bit() of each name */
	uint64_t ipv4_lengths;    /* bit N: an IPv4 prefix of N bits */
	uint64_t ipv6_lengths[3]; /* likewise, N / 64 and N % 64 */
};
static_assert(sizeof(struct image_list) == 72, "part of the layout");

enum policy_option {
	OPTION_DEFAULT_DENY,
	OPTION_AUDIT,
	OPTION_LITERALS_DENY,
	OPTION_ALLOW_PRIVATE_NETWORK,
	OPTION_ALLOW_LOOPBACK,
	OPTION_BLOCK_SECRET_BEARING_URLS,
	OPTION_BLOCK_ENCRYPTED_DNS,
	OPTION_STRIP_ECH,
	OPTION_INFRASTRUCTURE_ALLOW,
	OPTION_UDP_ALLOW,
	OPTION_ICMP_ALLOW,
	OPTION_OTHER_ALLOW,
	OPTION_HTTP2_ALLOW,
	OPTION_COUNT
};

struct image_option {
	uint32_t value; /* 0 or 1 */
	uint32_t source, line;
};

enum policy_list {
	LIST_ALLOW_HOSTS,
	LIST_ALLOWED_ORIGINS,
	LIST_BLOCK_HOSTS,
	LIST_ALLOW_RAW,
	LIST_PROXIES,
	LIST_ALLOW_PRIVATE_ANSWERS,
	LIST_ALLOW_PRIVATE_CIDRS,
	/* Allowed names within localhost, all under the key "localhost": what is pinned by nature.
	 */
	LIST_ALLOWED_LOCALHOST,
	LIST_COUNT
};

struct image_hook {
	char path[POLICY_HOOK_PATH_MAX]; /* "" for none */
	uint32_t stages;                 /* 1 << enum stage */
	uint32_t timeout_ms;
	uint32_t source, line;
};

struct image_policy {
	char name[CLIENT_NAME_MAX + 1];
	struct image_option options[OPTION_COUNT];
	struct image_hook hook;
	struct image_list lists[LIST_COUNT];
};
static_assert(sizeof(struct image_policy) % 8 == 0, "records stay aligned");

/* Lists of the whole image. */
enum image_wide {
	WIDE_FLOOR,
	WIDE_LISTEN,
	WIDE_OWN,
	WIDE_SEARCH,
	WIDE_FORWARD,
	WIDE_HOSTS,          /* value: index into `hosts` */
	WIDE_HOST_ADDRESSES, /* the addresses of `hosts`, one rule for each; value likewise */
	WIDE_SELECTORS,      /* prefixes of clients; value: index into `clients` */
	WIDE_COUNT
};

struct image_client {
	struct client_key key;
	char name[CLIENT_NAME_MAX + 1];
	uint32_t policy;
	uint32_t root; /* 1: it is uid 0 of this host */
};

/* The selectors that are no prefix. */
struct image_selector {
	uint32_t kind; /* enum selector_kind */
	uint32_t client;
	uint64_t cgroup;
	uint32_t uid;
	uint32_t reserved;
	char interface[16];
};

struct image_host {
	uint32_t first, count; /* in `addresses` */
	uint32_t key;          /* offset of the name's text */
	uint32_t key_length;
};

struct policy_image {
	uint32_t magic, version;
	uint32_t size; /* of the whole image */
	uint32_t govern_all;
	uint64_t generation;
	uint32_t quic_inspect;
	uint32_t reserved;
	struct image_span policies;
	struct image_span clients;
	struct image_span selectors;
	struct image_span hosts;
	struct image_span addresses; /* struct address */
	struct image_span sources;   /* uint32_t: offset of a text */
	struct image_span texts;     /* octets: keys and source names */
	struct image_list wide[WIDE_COUNT];
};
static_assert(sizeof(struct policy_image) % 8 == 0, "records stay aligned");

static inline const void *image_at(const struct policy_image *image, uint32_t offset)
{
	return (const uint8_t *)image + offset;
}

/* NULL out of range: the caller refuses. */
static inline const struct image_policy *image_policy(const struct policy_image *image,
						      policy_index policy)
{
	const struct image_policy *policies = image_at(image, image->policies.offset);

	return policy < image->policies.count ? &policies[policy] : NULL;
}

static inline bool policy_is(const struct image_policy *policy, enum policy_option option)
{
	return policy->options[option].value != 0;
}

static inline struct place policy_place(const struct image_policy *policy,
					enum policy_option option)
{
	return (struct place){policy->options[option].source, policy->options[option].line};
}

/* Which rules of a list count. */
enum port_rule {
	PORT_ANY, /* every rule: the question has no port, and an entry with one may still come true
		   */
	PORT_NONE, /* rules without a port */
	PORT_THIS  /* rules without a port or with this one */
};
struct list_query {
	enum port_rule port_rule;
	uint16_t port;            /* PORT_THIS */
	enum match_scheme scheme; /* SCHEME_ANY: rules of every scheme */
};

/* The first rule of LIST for the name of WALK, the most specific name first; NULL: none. */
const struct image_rule *list_find_name(const struct policy_image *image,
					const struct image_list *list, const struct name_walk *walk,
					const struct list_query *query);

/* The same for one suffix of WALK as a name of its own, whatever the rule's kind. */
const struct image_rule *list_find_suffix(const struct policy_image *image,
					  const struct image_list *list,
					  const struct name_walk *walk, size_t at);

/* The first rule of LIST whose prefix holds ADDRESS as it stands, the longest prefix first. */
const struct image_rule *list_find_address(const struct policy_image *image,
					   const struct image_list *list,
					   const struct address *address,
					   const struct list_query *query);

/* ADDRESS in any form it may stand for: for lists that refuse. */
const struct image_rule *list_find_any_form(const struct policy_image *image,
					    const struct image_list *list,
					    const struct address *address,
					    const struct list_query *query);

/* ADDRESS or its embedding_single(): for lists that open. */
const struct image_rule *list_find_single_form(const struct policy_image *image,
					       const struct image_list *list,
					       const struct address *address,
					       const struct list_query *query);

/* The next rule with the same key, NULL at the end. */
const struct image_rule *list_next(const struct policy_image *image, const struct image_list *list,
				   const struct image_rule *rule);

static inline struct place rule_place(const struct image_rule *rule)
{
	return (struct place){rule->source, rule->line};
}

/* Bits of the filter for each rule: one in sixteen of the keys that are not there still gets through. */
#define IMAGE_FILTER_BITS 16u

static inline uint64_t image_filter_bit(uint32_t hash)
{
	return UINT64_C(1) << hash % 64;
}
static inline uint32_t image_filter_word(uint32_t hash, uint32_t words)
{
	return hash / 64 & (words - 1);
}

/* The hash of a prefix, as that of a name is names_hash(). */
uint32_t image_prefix_hash(const struct prefix *prefix);

/* The key of a prefix; returns its length. */
#define PREFIX_KEY_MAX 18
size_t image_prefix_key(const struct prefix *prefix, uint8_t key[PREFIX_KEY_MAX]);
