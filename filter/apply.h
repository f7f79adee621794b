/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Installs, removes and verifies a ruleset in the network namespace of the calling process, by
 * running iptables-restore, ip6tables-restore, iptables-save and ip6tables-save (nft or legacy
 * front end). Everything is idempotent. Needs CAP_NET_ADMIN. No shell is involved.
 */

#include <stddef.h>

#include "filter/ruleset.h"

enum filter_backend {
	FILTER_AUTO, /* nft front end when the kernel takes it, else legacy */
	FILTER_IPTABLES_NFT,
	FILTER_IPTABLES_LEGACY
};

/*
 * 0, or negative errno with one line in PROBLEM (SIZE octets). On failure nothing of it is left
 * behind, but rules of this instance that stood before stay as they are: a repair that fails opens
 * nothing.
 */
int filter_install(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		   size_t size);

/*
 * The same for a network namespace that the caller has just made and nobody else knows: it does not
 * look first what stands there, and works on both families at once. Front end as FILTER_AUTO.
 */
int filter_install_fresh(const struct ruleset *ruleset, char *problem, size_t size);

/*
 * Which front end holds RULESET's instance: FILTER_AUTO when none does. With the answer
 * filter_verify() needs half the programs.
 */
enum filter_backend filter_backend_in_use(const struct ruleset *ruleset);

/* Takes every chain and jump of RULESET's instance away; 0 also when there was none. */
int filter_remove(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		  size_t size);

/* 0: all there, in order, in both families. -ENOENT or -EBADMSG otherwise, PROBLEM says what is
 * missing. */
int filter_verify(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		  size_t size);
