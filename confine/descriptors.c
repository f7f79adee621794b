/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void descriptors_keep(const int *keep, size_t count)
{
	unsigned first = 3;

	for (;;) {
		/* The smallest kept one from `first` on. */
		unsigned next = ~0u;
		for (size_t i = 0; i < count; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= first && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > first)
			close_range(first, next == ~0u ? ~0u : next - 1, 0);
		if (next == ~0u)
			return;
		first = next + 1;
	}
}

void descriptors_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}

static bool is_network(int fd)
{
	int family;
	socklen_t length = sizeof(family);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && family != AF_UNIX;
}

int descriptors_close_network(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (is_network(fd))
			return -ENOTSOCK;
	DIR *folder = opendir("/proc/self/fd");
	if (folder == NULL)
		return -errno;
	for (;;) {
		errno = 0;
		const struct dirent *entry = readdir(folder);
		if (entry == NULL)
			break;
		int fd = atoi(entry->d_name); /* 0 for "." and ".." */
		if (fd > 2 && is_network(fd))
			close(fd);
	}
	int error = -errno;
	closedir(folder);
	return error;
}
