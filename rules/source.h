/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a policy image is built from: the configuration as plain values with the place of each.
 * Filled by config/ (and by tests), read once by policy_image_build(), which copies everything it
 * keeps.
 *
 * Names are canonical already (IDN to A-labels by the caller); text that cannot be written in these
 * types was refused by the caller. Lists may be empty with a NULL pointer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "client.h"
#include "name.h"
#include "policy.h"
#include "verdict.h"

enum match_kind {
	MATCH_NAME,       /* the name and every child */
	MATCH_SUBDOMAINS, /* "*.x": every child, not the name */
	MATCH_EXACT,      /* the name alone: allowed_origins */
	MATCH_PREFIX      /* an address or CIDR */
};

enum match_scheme { SCHEME_ANY, SCHEME_HTTP, SCHEME_HTTPS };

struct match_entry {
	enum match_kind kind;
	struct name name;         /* not MATCH_PREFIX */
	struct prefix prefix;     /* MATCH_PREFIX */
	uint16_t port;            /* 0: any */
	enum match_scheme scheme; /* allowed_origins alone; http also covers ws, https wss */
	struct place place;
};

struct match_list {
	struct match_entry *entries;
	size_t count;
};

/* A switch and where it was written; line 0: the default. */
struct option_bool {
	bool value;
	struct place place;
};

/* Rule 12: the hook that has the last word. */
struct hook_source {
	char path[POLICY_HOOK_PATH_MAX]; /* of a UNIX socket, absolute; "" for none */
	unsigned stages;                 /* 1 << enum stage, of those it is asked at */
	uint32_t timeout_ms;
	struct place place;
};

struct policy_source {
	char name[CLIENT_NAME_MAX + 1];
	struct option_bool default_deny; /* default: deny */
	struct option_bool audit;        /* mode: audit */
	struct option_bool literals_deny;
	struct option_bool allow_private_network, allow_loopback;
	struct option_bool block_secret_bearing_urls, block_encrypted_dns;
	struct option_bool strip_ech;
	struct option_bool infrastructure_allow;
	struct option_bool udp_allow, icmp_allow, other_allow;
	struct option_bool http2_allow;
	struct match_list allow_hosts, allowed_origins, block_hosts;
	struct match_list allow_raw, proxies;
	struct match_list allow_private_answers; /* names */
	struct match_list allow_private_cidrs;   /* prefixes */
	struct hook_source hook;
};

/* Sets every option to the default posture of design: open but for floor, rebinding, pins' names.
 */
void policy_source_init(struct policy_source *policy, const char *name);

enum selector_kind { SELECT_PREFIX, SELECT_INTERFACE, SELECT_UID, SELECT_CGROUP };

struct client_selector {
	enum selector_kind kind;
	struct prefix prefix;
	char interface[16];
	uint32_t uid;
	uint64_t cgroup;         /* cgroup v2 id */
	const char *cgroup_path; /* as written, with its '/'; not part of the image */
};

struct client_source {
	char name[CLIENT_NAME_MAX + 1];
	struct client_selector *selectors;
	size_t selector_count;
	size_t policy;   /* index into policies */
	uint64_t serial; /* of a client that was registered at run time; 0: of the configuration */
	struct place place;
};

struct static_host {
	struct name name;
	struct address *addresses;
	size_t address_count;
	struct place place;
};

struct config_source {
	uint64_t generation;
	const char *const
		*source_names; /* [i] is the file of places with source SOURCE_CONFIG + i */
	size_t source_count;
	struct policy_source *policies; /* [0] is `default` */
	size_t policy_count;
	const struct client_source *clients;
	size_t client_count;
	struct static_host *hosts;
	size_t host_count;
	struct name *search; /* resolver: {search: […]} */
	size_t search_count;
	struct name *forward_zones; /* resolver: {forward: {zone: …}} */
	size_t forward_count;
	struct match_list floor; /* additions, names (with children) and prefixes */
	struct match_list
		listen;        /* host prefixes with port: the resolver's sockets, open for DNS */
	struct match_list own; /* host prefixes with port: control, metrics: `self` */
	bool govern_all;
	bool quic_inspect; /* gate: {quic: inspect} */
};

/*
 * Builds an image in memory from malloc(), which the caller frees. 0, -ENOMEM, or -EINVAL when
 * SOURCE breaks a rule above (a caller's fault, not a user's).
 */
int policy_image_build(const struct config_source *source, void **image, size_t *size);

/* Would an entry open the floor by naming it: an exact floor name or child, or an address inside?
 */
bool floor_names_entry(const struct match_entry *entry);

/* Does a range merely contain floor addresses (loads with a warning)? */
bool floor_overlaps_prefix(const struct prefix *prefix);
