/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration: one YAML file read whole by libfyaml, every error reported with its place,
 * then turned into the policy image, the settings and what the parent itself needs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "config/arena.h"
#include "filter/ruleset.h"
#include "policy.h"
#include "rules/source.h"
#include "settings.h"

#define CONFIG_PATH_DEFAULT "/etc/pinfold/pinfold.yaml"
#define CONFIG_INTERFACES_MAX                                                                      \
	32u /* of gate: {interfaces}; each is a rule that every packet passes */

/* Where a rule can stand: source_names[] of a configuration, from SOURCE_CONFIG on. */
enum config_place {
	CONFIG_SOURCE_FILE,
	CONFIG_SOURCE_COMMAND,    /* --allow of `run` */
	CONFIG_SOURCE_REGISTERED, /* client-add of the control socket */
	CONFIG_SOURCES
};

struct config {
	struct config_source source; /* for policy_image_build(); owns everything it points to */
	struct settings settings;    /* for both children */
	struct pins_limits pins;     /* pins: {capacity, per_client} */
	bool gate_enabled;
	/* gate: {interfaces}: governed with `hook: forward` beside those of clients; "veth+" for all that
	 * begin so. Who comes in by one is told apart by address. */
	char interfaces[CONFIG_INTERFACES_MAX][16];
	size_t interface_count;
	char log_file[SETTINGS_PATH_MAX]; /* "stderr" or a path */
	char control_socket[SETTINGS_PATH_MAX];
	char user[32]; /* who the children become: user: pinfold */
};

/* One finding. `check` prints PATH:LINE:COLUMN: error|warning: TEXT. */
struct config_finding {
	bool warning;
	unsigned line, column; /* from 1 */
	char text[256];
};

struct config_findings {
	struct config_finding *items;
	size_t count, errors;
};

/*
 * Reads PATH ("-" is standard input). A missing file is an error, an empty one the default posture.
 * Returns the configuration, or NULL when there is any error; FINDINGS gets all of both kinds, in
 * the order of their places, and is freed with config_findings_free() in either case.
 */
struct config *config_read(const char *path, struct config_findings *findings);

/* The same for text in memory, named PATH in places. */
struct config *config_read_text(const char *path, const char *text, size_t length,
				struct config_findings *findings);

/* Adds "HOST[:PORT]" to allow_hosts of policy `default`, as `run --allow` does. 0 or -EINVAL +
 * PROBLEM. */
int config_allow(struct config *config, const char *entry, char *problem, size_t size);

/*
 * Replaces the addresses that the resolver listens on, as `run` does. 0, -EINVAL for none or more
 * than SETTINGS_LISTEN_MAX, -ENOMEM.
 */
int config_set_listen(struct config *config, const struct endpoint *endpoints, size_t count);

/*
 * Replaces all clients and interfaces by one, NAME, which is the input interface INTERFACE and governed by the policy
 * `default`, as `run` does. 0, -EINVAL for a name that is too long, -ENOMEM.
 */
int config_set_client(struct config *config, const char *name, const char *interface);

/* A client that is registered while the service runs: an entry of `clients` outside of the file. */
struct config_client {
	struct client_source source; /* `serial` is the owner's to set */
	char via[16];                /* the input interface that must be governed; "" for any */
	struct arena arena;          /* of what `source` points to */
};

/*
 * Reads TEXT, one entry of `clients` that may have a `via` too, as it would be under CONFIG. It is not held against other
 * clients. The caller frees it; NULL with one line in PROBLEM.
 */
struct config_client *config_client_read(const struct config *config, const char *text,
					 size_t length, char *problem, size_t size);
void config_client_free(struct config_client *client);

/* One is what the other is, but for the order of selectors. */
bool config_client_same(const struct config_client *a, const struct config_client *b);

/* Why two clients cannot be there at the same time; *SHARED is set with CLASH_SELECTOR. */
enum config_clash { CLASH_NONE, CLASH_NAME, CLASH_KEY, CLASH_SELECTOR };
enum config_clash config_clients_clash(const struct client_source *a, const struct client_source *b,
				       const struct client_selector **shared);

/*
 * The packet-filter rules of the service (instance "pinfold"): hook, queue, marks, the resolver's
 * sockets, the interfaces of the gate and the uids, cgroups or interfaces of CLIENTS (those of the
 * configuration, and whoever is registered). 0, or negative errno and one line in PROBLEM.
 */
int config_ruleset(const struct config *config, const struct client_source *clients,
		   size_t client_count, struct ruleset *out, char *problem, size_t size);

/* Prints the normalised configuration as YAML: every option with its value. */
void config_print(const struct config *config, FILE *out);

void config_findings_print(const struct config_findings *findings, const char *path, FILE *out);
void config_findings_free(struct config_findings *findings);
void config_free(struct config *config);
