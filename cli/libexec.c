/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/libexec.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if !defined(PINFOLD_BINDIR) || !defined(PINFOLD_LIBEXECDIR)
#error "the build defines PINFOLD_BINDIR and PINFOLD_LIBEXECDIR"
#endif

const char *libexec_folders(void)
{
	static char folders[2 * PATH_MAX + 32];
	char self[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length <= 0)
		return PINFOLD_LIBEXECDIR;
	self[length] = '\0';
	for (int up = 0; up < 2; up++) {
		char *slash = strrchr(self, '/');
		if (slash == NULL)
			return PINFOLD_LIBEXECDIR;
		*slash = '\0';
		if (up == 0 && strcmp(self, PINFOLD_BINDIR) == 0)
			return PINFOLD_LIBEXECDIR;
	}
	/* A ':' would end the folder: no build tree has one. */
	if (strchr(self, ':') != NULL)
		return PINFOLD_LIBEXECDIR;
	snprintf(folders, sizeof(folders), "%s/resolver:%s/nfq", self, self);
	return folders;
}
