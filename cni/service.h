/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The running service, over its control socket (docs/control.md).
 */

#include <jansson.h>
#include <stdbool.h>

#include "cni/failure.h"
#include "cni/network.h"

/* A reload of a large policy, or two hundred containers that start at once, must fit. */
#define SERVICE_WAIT_SECONDS 60

/*
 * How often a request is made whose change "failed": a child died over it, which is over when the next
 * one runs. Not every runtime comes again when it is told to.
 */
#define SERVICE_ATTEMPTS 3u

struct service {
	int fd;
	char *buffer; /* of the line that is read */
};

/* 0, or -1 with FAILURE (code 11). */
int service_open(struct service *service, const char *path, struct failure *failure);
void service_close(struct service *service);

/*
 * Nothing is left to remove: no service answers on PATH, and none that comes back would remember a
 * client, since there is no file of registered clients, or it is empty.
 */
bool service_is_gone(const char *path);

/*
 * Sends REQUEST, which it takes, and gives the answer, the caller's. 0, or -1 with FAILURE: code 7 for what
 * the service calls invalid, 11 for all else. *TAKEN, unless NULL, says that a name or address is another's.
 */
int service_ask(struct service *service, json_t *request, json_t **answer, bool *taken,
		struct failure *failure);
