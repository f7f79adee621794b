/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The verbs, as requests to the service. A container's interface in a network is one client of the
 * service: all its addresses of both families, so that what it learns over one it may use over the
 * other. Who comes later under the same addresses is another client and inherits nothing.
 */

#include <jansson.h>

#include "cni/failure.h"
#include "cni/network.h"

struct attachment {
	const char *container, *interface;
};

/*
 * Registers the attachment; when it returns, the container is governed, so the runtime may start it. What
 * another attachment of the same network still holds of its addresses is left over from a DEL that never
 * came, and is removed first. *RESULT is the result to print, the caller's. 0, or -1 with FAILURE.
 */
int attachment_add(const struct network *network, const struct attachment *attachment,
		   json_t **result, struct failure *failure);

/* Removes it; one that is not there is removed already. 0, or -1 with FAILURE. */
int attachment_del(const struct network *network, const struct attachment *attachment,
		   struct failure *failure);

/* 0 when the service governs it as ADD left it and its rules stand, or -1 with FAILURE. */
int attachment_check(const struct network *network, const struct attachment *attachment,
		     struct failure *failure);

/* Removes the attachments of the network that are not among "cni.dev/valid-attachments". */
int attachment_gc(const struct network *network, struct failure *failure);

/* 0 when the service is ready for an ADD, or -1 with FAILURE (code 50). */
int attachment_status(const struct network *network, struct failure *failure);
