/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What kind of network an address belongs to, from the dated IANA registries and
 * address-classes.txt.
 */

#include <stdbool.h>
#include <stddef.h>

#include "address.h"
#include "verdict.h"

enum address_class {
	CLASS_PUBLIC,
	CLASS_LOOPBACK,
	CLASS_PRIVATE,
	CLASS_SPECIAL,
	CLASS_NEVER /* special, and no switch opens it */
};
#define CLASS_BIT(class) (1u << (class))

/*
 * All classes of ADDRESS as bits. An address that embeds others has theirs: of one that is not
 * public its own class, of a public one nothing more in the mapped and well-known NAT64 forms,
 * CLASS_SPECIAL in 6to4, Teredo, compatible, translated and 64:ff9b:1::/48. PLACES, when not NULL,
 * gets the row that gave each class, by enum address_class.
 */
unsigned class_of_address(const struct address *address, struct place places[CLASS_NEVER + 1]);

/* CLASS_PUBLIC and nothing else. */
bool class_is_public(const struct address *address);

/* The ranges that are not public, as prefixes; embedded forms are not unfolded. */
const struct prefix *class_nonpublic_prefixes(size_t *count);
