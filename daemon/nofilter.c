/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Stands in for filter/ in a build without it: no rules can be installed, so nothing that manages
 * rules starts.
 */

#include <errno.h>
#include <stdio.h>

#include "filter/apply.h"

static int refuse(char *problem, size_t size)
{
	snprintf(problem, size, "this build cannot install packet-filter rules");
	return -ENOSYS;
}

int filter_install(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		   size_t size)
{
	(void)ruleset;
	(void)backend;
	return refuse(problem, size);
}

int filter_remove(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		  size_t size)
{
	(void)ruleset;
	(void)backend;
	return refuse(problem, size);
}

int filter_verify(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		  size_t size)
{
	(void)ruleset;
	(void)backend;
	return refuse(problem, size);
}
