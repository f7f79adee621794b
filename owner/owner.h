/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who holds a socket of this network namespace: the kernel's socket diagnosis (sock_diag(7)), asked by the
 * two ends of a connection. Resolver and gate both tell this host's own clients apart by it, so that they
 * mean the same one. One question is one system call to and one from the kernel; nothing waits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

struct owner_asker {
	int fd;
	uint32_t sequence;
};

/* 0 or negative errno. The descriptor works on after all privileges are gone. */
int owner_open(struct owner_asker *asker);
void owner_close(struct owner_asker *asker);

struct owner {
	uint32_t uid;
	uint64_t cgroup; /* cgroup v2 id; 0: the kernel has none */
};

/*
 * PROTOCOL is IPPROTO_TCP or IPPROTO_UDP, LOCAL the socket's own end. False when nobody holds such a
 * socket open: one that was closed has lost its owner, and the kernel would show uid 0.
 */
bool owner_ask(struct owner_asker *asker, uint8_t protocol, const struct endpoint *local,
	       const struct endpoint *remote, struct owner *out);
