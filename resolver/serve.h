/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The query path: query -> client -> policy_resolve -> cache, or recursion -> judge -> pin -> reply.
 */

#include <stddef.h>
#include <stdint.h>

#include "message.h"
#include "pins.h"
#include "policy.h"
#include "resolver/path.h"
#include "settings.h"

struct event_base;
struct serve;

/* One generation of what the parent sends. */
struct serve_policy {
	struct settings settings;
	const struct policy_image *image;
	void *mapping; /* what the image lies in, made by mmap() */
	size_t mapping_size;
};

/* Reads and maps the two descriptors of START and RELOAD (they stay the caller's). 0, or negative
 * errno with one line in PROBLEM. */
int serve_policy_new(int settings_fd, int image_fd, struct serve_policy **out, char *problem,
		     size_t size);
void serve_policy_free(struct serve_policy *policy);

/*
 * AUDIT_FD is borrowed; PINS and POLICY are taken over on success. 0, or negative errno with one
 * line in PROBLEM.
 */
int serve_new(struct event_base *base, int audit_fd, struct pins_writer *pins,
	      struct serve_policy *policy, struct serve **out, char *problem, size_t size);
void serve_free(struct serve *serve);

/* Takes over another policy, for waiting queries too: each is judged by the policy at the time of
 * its answer. On failure the old one goes on, and POLICY stays the caller's. */
int serve_reload(struct serve *serve, struct serve_policy *policy, char *problem, size_t size);

/* A query has arrived; SERVE is a struct serve. For udp.h and tcp.h. */
void serve_query(void *serve, const struct path *path, const uint8_t *bytes, size_t size);

/* MESSAGE_HOOK; FD is taken over, -1 for none. */
void serve_hook(struct serve *serve, const struct message_hook *message, int fd);

void serve_status(const struct serve *serve, struct message_status *out);
size_t serve_drop_client(struct serve *serve, const struct client_key *key);
