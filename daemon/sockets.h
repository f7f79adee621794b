/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The resolver's listening sockets. The parent binds them, since port 53 needs a privilege, and
 * never reads from them.
 */

#include <stddef.h>

#include "settings.h"

struct sockets {
	int fds[2 * SETTINGS_LISTEN_MAX]; /* for each listen address UDP, then TCP */
	size_t count;
};

/*
 * Binds all or none. An address that this host does not have yet is bound as well, and reported. 0, or negative errno with one line in PROBLEM.
 */
int sockets_open(const struct resolver_settings *settings, struct sockets *out, char *problem,
		 size_t size);
void sockets_close(struct sockets *sockets);
