/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The host's rules for one run as text for iptables-restore and ip6tables-restore with --noflush.
 * Pure. What they do is told in veth.c.
 */

#include <stdbool.h>
#include <stddef.h>

#include "confine/plan.h"

/* Every rule's comment is this and the run's id. */
#define MASQUERADE_TAG "pinfold-run:"

/* The rules of one family into TEXT, 2048 octets are enough; ADD puts them in, otherwise they come
 * out. */
void masquerade_text(const struct plan *plan, bool ipv6, bool add, char *text, size_t size);

/*
 * Text that deletes every rule of SAVED (from iptables-save) whose comment is TAG; malloc()ed, the
 * caller's; "" when there is none, NULL when memory is short.
 */
char *masquerade_deletions(const char *saved, const char *tag);
