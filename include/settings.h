/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the children need of the configuration besides policy, as one plain structure that the parent
 * writes into a sealed memfd. Fixed bounds, no pointers, checked by size and version on arrival.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "name.h"

#define SETTINGS_VERSION 1u
#define SETTINGS_LISTEN_MAX 16
#define SETTINGS_NETWORKS_MAX 256
#define SETTINGS_FORWARDERS_MAX 8
#define SETTINGS_ZONES_MAX 64
#define SETTINGS_ANCHORS_MAX 64
#define SETTINGS_PATH_MAX 256
#define SETTINGS_ANCHOR_TEXT_MAX 8192 /* a root.key with two keys has under 1 KiB */
#define SETTINGS_HINTS_TEXT_MAX 16384 /* named.root has 3.3 KiB */

struct settings_zone {
	struct name zone; /* the root for `upstream: [addr…]` */
	uint32_t count;
	struct endpoint forwarders[SETTINGS_FORWARDERS_MAX];
};

struct resolver_settings {
	uint32_t listen_count; /* the sockets themselves come with MESSAGE_START, in this order */
	struct endpoint listen[SETTINGS_LISTEN_MAX];
	uint32_t network_count; /* client networks that are answered */
	struct prefix networks[SETTINGS_NETWORKS_MAX];
	uint32_t zone_count; /* forwarders; a zone that is the root turns recursion off */
	struct settings_zone zones[SETTINGS_ZONES_MAX];
	uint32_t negative_anchor_count;
	struct name negative_anchors[SETTINGS_ANCHORS_MAX];
	char trust_anchor[SETTINGS_PATH_MAX]; /* path; "" turns validation off (`trust_anchor: none`) */
	char root_hints[SETTINGS_PATH_MAX];   /* path; "" for the built-in ones */
	/* What stands in these two files: see settings_read_files(). NUL-terminated. */
	char trust_anchor_text[SETTINGS_ANCHOR_TEXT_MAX];
	char root_hints_text[SETTINGS_HINTS_TEXT_MAX];
	char validation_date[16]; /* YYYYMMDDHHMMSS, tests alone; "" for the clock */
	uint32_t threads;
	uint32_t pin_min_seconds;
	uint32_t pin_grace_seconds;
	uint32_t message_cache_bytes, rrset_cache_bytes; /* of the recursion */
	uint32_t answer_cache_bytes; /* of what is handed out, resolver/cache.h */
	uint32_t client_rate;	     /* lookups that one client may start a second; 0: any number */
	uint32_t serve_stale_seconds; /* how long after its end an answer still beats a failure; 0: never */
	uint8_t qname_minimisation, ipv4, ipv6, upstream_nonpublic;
	uint8_t refusal; /* enum refusal_form */
};

enum refusal_form { REFUSAL_NXDOMAIN, REFUSAL_NODATA, REFUSAL_REFUSED };

enum gate_hook { HOOK_OUTPUT, HOOK_FORWARD };

struct gate_settings {
	uint8_t hook;	    /* enum gate_hook */
	uint8_t govern_all; /* `govern: all` */
	uint8_t quic_inspect;
	uint16_t queue;	    /* number of the NFQUEUE, and of the NFLOG group */
	uint32_t mark_mask; /* eight adjacent bits at least, see marks.h */
};

struct settings {
	uint32_t version; /* SETTINGS_VERSION */
	uint32_t size;	  /* sizeof(struct settings) */
	uint64_t generation;
	struct resolver_settings resolver;
	struct gate_settings gate;
	uint8_t log_allowed;
};

/*
 * Reads the files that RESOLVER names into its two text fields. The parent calls it before it writes
 * settings for a child, at start and at every reload: the resolver has no file system to read them
 * from. 0, or negative errno with one line in PROBLEM (SIZE octets); the texts are untouched then.
 */
int settings_read_files(struct resolver_settings *resolver, char *problem, size_t size);

/*
 * Copies the settings of a descriptor that came with START or RELOAD. 0, or -EPROTO when they are not
 * of this version and size; *OUT is untouched then.
 */
int settings_receive(int fd, struct settings *out);
