/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/sysctl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int open_key(const char *key, int flags)
{
	char path[512];

	if ((size_t)snprintf(path, sizeof(path), "/proc/sys/%s", key) >= sizeof(path))
		return -ENAMETOOLONG;
	int fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int sysctl_read(const char *key, char *value, size_t size)
{
	int fd = open_key(key, O_RDONLY);

	if (fd < 0)
		return fd;
	ssize_t count = read(fd, value, size - 1);
	int error = count < 0 ? -errno : 0;
	close(fd);
	if (error != 0)
		return error;
	value[count] = '\0';
	value[strcspn(value, "\n")] = '\0';
	return 0;
}

int sysctl_write(const char *key, const char *value)
{
	int fd = open_key(key, O_WRONLY);

	if (fd < 0)
		return fd;
	int error = write(fd, value, strlen(value)) < 0 ? -errno : 0;
	close(fd);
	return error;
}
