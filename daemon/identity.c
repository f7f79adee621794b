/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Whether ID means anything in this user namespace: MAP is /proc/self/uid_map or gid_map. */
static bool is_mapped(const char *map, uint32_t id)
{
	FILE *file = fopen(map, "re");
	bool mapped = false;
	uint32_t first, outside, count;

	if (file == NULL)
		return true; /* no /proc: setuid itself will say */
	while (!mapped &&
	       fscanf(file, "%" SCNu32 " %" SCNu32 " %" SCNu32, &first, &outside, &count) == 3)
		mapped = id >= first && id - first < count;
	fclose(file);
	return mapped;
}

int identity_find(const char *user, uint32_t *uid, uint32_t *gid, char *problem, size_t size)
{
	*uid = *gid = 0;
	if (geteuid() != 0)
		return 0;
	const struct passwd *entry = getpwnam(user);
	if (entry == NULL && strcmp(user, IDENTITY_DEFAULT) == 0)
		entry = getpwnam(IDENTITY_FALLBACK);
	if (entry == NULL) {
		snprintf(problem, size, "there is no user %s for the resolver and the gate", user);
		return -ENOENT;
	}
	if (!is_mapped("/proc/self/uid_map", entry->pw_uid) ||
	    !is_mapped("/proc/self/gid_map", entry->pw_gid))
		return 0;
	*uid = entry->pw_uid;
	*gid = entry->pw_gid;
	return 0;
}
