/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Our side of the control socket (daemon/control.h): connects, asks, reads lines.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct client {
	int fd;
	int attached; /* a descriptor that came with an answer; -1: none */
	char *buffer;
	size_t length, capacity, taken;
};

/*
 * Connects to the service that the configuration CONFIG names (NULL: the default one). 0, or -1
 * with the reason printed.
 */
int client_open(struct client *client, const char *config);
void client_close(struct client *client);

/* Sends REQUEST, which it takes. 0, or -1 with the reason printed. */
int client_ask(struct client *client, json_t *request);

/* The next line, NUL-terminated and without its line end, valid until the next call; NULL at the
 * end. */
const char *client_line(struct client *client);

/*
 * The next line as an answer: NULL, with the reason printed, when it is none or says "ok":false.
 * The caller's to release.
 */
json_t *client_answer(struct client *client);

/*
 * The options that all of these commands share: `-c FILE`, `--json`, and FLAG (NULL for none).
 * STATUS_OK, or STATUS_USAGE with the usage printed.
 */
struct command;
struct client_options {
	const char *config;
	bool json, flag;
};
int client_options(const struct command *command, int argc, char **argv, const char *flag,
		   struct client_options *out);
