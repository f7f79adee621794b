/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The control socket: a UNIX stream socket for root (mode 0600) that takes JSON requests, one a
 * line, and gives JSON answers, one a line, in their order. docs/control.md tells each of them.
 *
 * Everything is bounded: connections (one too many waits to be accepted), the length of a request,
 * what waits to be sent; an idle connection is closed, a slow follower too.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/loop.h"

#define CONTROL_CONNECTIONS_MAX 256u     /* containers start by the hundred */
#define CONTROL_REQUEST_MAX     4096u    /* octets of one line */
#define CONTROL_OUTPUT_MAX      1048576u /* octets that wait for a reader; the kept log lines fit */
#define CONTROL_IDLE_MS         30000u   /* without a request or a line to follow */

struct control;

struct control_connection {
	struct loop_source source;
	struct control *control;
	uint64_t last;     /* when it last asked, ms */
	bool following;    /* gets every audit line */
	bool waiting;      /* an answer is owed: no further request is read */
	bool wants_status; /* that of a status */
	bool closing;      /* closed when all is sent */
	char request[CONTROL_REQUEST_MAX];
	size_t request_length;
	char *output;
	size_t output_length, output_capacity;
	int attached; /* a descriptor that goes with the next octets; -1: none */
};

/*
 * Called for each request that names a command. It answers at once or sets `waiting` and does so
 * later; a connection that is gone is reported through gone().
 */
struct control_handler {
	void (*request)(void *context, struct control_connection *connection, const char *command,
			const json_t *body);
	void (*gone)(void *context, struct control_connection *connection);
	void *context;
};

struct control {
	struct loop *loop;
	struct loop_source listener;
	struct control_handler handler;
	struct control_connection *connections[CONTROL_CONNECTIONS_MAX];
	char path[256]; /* to be removed at the end; "" without a socket */
};

/*
 * Listens on PATH, whose folder is made (mode 0755) when it is missing. A socket that nobody
 * answers any more is replaced. 0, or negative errno with one line in PROBLEM: -EADDRINUSE when
 * another one answers.
 */
int control_open(struct control *control, struct loop *loop, const char *path,
		 const struct control_handler *handler, char *problem, size_t size);
void control_close(struct control *control);

/* Sends ANSWER, which it takes, as one line; FD, unless -1, goes along and is taken as well. */
void control_answer(struct control_connection *connection, json_t *answer, int fd);
void control_fail(struct control_connection *connection, const char *error);
/* The same with a CODE that programs may tell apart. */
void control_refuse(struct control_connection *connection, const char *code, const char *error);

/* Sends a line with its line end as it is. */
void control_line(struct control_connection *connection, const char *line, size_t length);

/* A new audit line, for everyone who follows. */
void control_follow(struct control *control, const char *line, size_t length, uint64_t now);

/* Closes what has been idle for too long. */
void control_tick(struct control *control, uint64_t now);
