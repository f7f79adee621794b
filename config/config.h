/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration: one YAML file read whole by libfyaml, every error reported with its place,
 * then turned into the policy image, the settings and what the parent itself needs.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "filter/ruleset.h"
#include "policy.h"
#include "rules/source.h"
#include "settings.h"

#define CONFIG_PATH_DEFAULT "/etc/pinfold/pinfold.yaml"

struct config {
	struct config_source source; /* for policy_image_build(); owns everything it points to */
	struct settings settings;    /* for both children */
	struct pins_limits pins;     /* pins: {capacity, per_client} */
	bool gate_enabled;
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
 * Replaces all clients by one, NAME, which is the input interface INTERFACE and governed by the policy
 * `default`, as `run` does. 0, -EINVAL for a name that is too long, -ENOMEM.
 */
int config_set_client(struct config *config, const char *name, const char *interface);

/*
 * The packet-filter rules of the service (instance "pinfold"): hook, queue, marks, the resolver's
 * sockets and the uids, cgroups or interfaces of `clients`. 0, or negative errno and one line in
 * PROBLEM.
 */
int config_ruleset(const struct config *config, struct ruleset *out, char *problem, size_t size);

/* Prints the normalised configuration as YAML: every option with its value. */
void config_print(const struct config *config, FILE *out);

void config_findings_print(const struct config_findings *findings, const char *path, FILE *out);
void config_findings_free(struct config_findings *findings);
void config_free(struct config *config);
