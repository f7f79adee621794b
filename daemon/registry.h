/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The clients that are registered over the control socket, and the file that keeps them over a restart
 * of the service (docs/control.md).
 *
 * A registry is a set of them that is replaced whole: a change makes a copy, works on that, and the copy
 * takes the place of the old one when both children judge by it. A client is shared by the sets it is
 * in and does not change; its serial makes the key of its pins and is given out once in the life of a
 * pin table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/config.h"

/* More than one machine runs; the pairwise checks stay quick. */
#define REGISTRY_MAX 1024u

struct registered {
	unsigned holders;             /* registries that it is in */
	char *line;                   /* the entry as it was written, one line without its end */
	struct config_client *client; /* the same, read under the configuration in force */
};

struct registry {
	struct registered **items;
	size_t count;
};

/* A second registry of the same clients. 0 or -ENOMEM. */
int registry_copy(const struct registry *from, struct registry *out);
void registry_release(struct registry *registry);

/* Puts REGISTERED, of another registry, at the end. 0 or -ENOMEM. */
int registry_put(struct registry *registry, struct registered *registered);

enum registry_result { REGISTRY_CHANGED, REGISTRY_SAME, REGISTRY_INVALID, REGISTRY_TAKEN };

/*
 * Reads LINE under CONFIG and adds it with SERIAL, unless the same client is there. PROBLEM gets one
 * line for people with INVALID (the entry itself) and TAKEN (the name or a selector is another's).
 */
enum registry_result registry_add(struct registry *registry, const struct config *config,
				  const char *line, uint64_t serial, char *problem, size_t size);

/* INVALID for a client of the configuration. */
enum registry_result registry_remove(struct registry *registry, const struct config *config,
				     const char *name, char *problem, size_t size);

bool registry_holds(const struct registry *registry, const struct registered *registered);

/* The clients of FROM as they are under CONFIG. 0, or negative errno with one line in PROBLEM. */
int registry_reread(const struct registry *from, const struct config *config, struct registry *out,
		    char *problem, size_t size);

/*
 * The clients of CONFIG and after them those of REGISTRY, in an array that the caller frees; what they
 * point to is theirs. 0 or -ENOMEM.
 */
int registry_clients(const struct registry *registry, const struct config *config,
		     struct client_source **out, size_t *count);

/* "10.1.2.3", "interface 'tap0'": for people, into TEXT; returns it. */
const char *registry_selector_text(const struct client_selector *selector, char *text, size_t size);

/* The file of CONFIG, beside its control socket; "" without one. */
#define REGISTRY_PATH_MAX (SETTINGS_PATH_MAX + 16)
void registry_path(const struct config *config, char path[REGISTRY_PATH_MAX]);

/*
 * Replaces the file in one step. Reading an absent file gives no clients; serials begin with
 * *SERIAL + 1 and *SERIAL is the last one then. 0, or negative errno with one line in PROBLEM.
 */
int registry_save(const struct registry *registry, const struct config *config, char *problem,
		  size_t size);
int registry_load(struct registry *out, const struct config *config, uint64_t *serial,
		  char *problem, size_t size);
