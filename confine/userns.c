/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The value of a setting below /proc/sys; -1: there is none. */
static long setting(const char *key)
{
	char path[128];
	long value = -1;

	snprintf(path, sizeof(path), "/proc/sys/%s", key);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return -1;
	if (fscanf(file, "%ld", &value) != 1)
		value = -1;
	fclose(file);
	return value;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int error = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return error;
}

/*
 * Debian's switch, the kernel's limit, Ubuntu's AppArmor, a container's filter: each refuses in its own
 * way, and only root can open them.
 */
static void explain(int error, char *problem, size_t size)
{
	static const struct {
		const char *key;
		long closed;
		const char *file, *open;
	} switches[] = {
		{"kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone", "1"},
		{"user/max_user_namespaces", 0, "user.max_user_namespaces", "10000"},
		{"kernel/apparmor_restrict_unprivileged_userns", 1,
		 "kernel.apparmor_restrict_unprivileged_userns", "0"},
	};

	for (size_t i = 0; i < sizeof(switches) / sizeof(switches[0]); i++) {
		if (setting(switches[i].key) != switches[i].closed)
			continue;
		snprintf(problem, size,
			 "run without root needs a user namespace, which %s=%ld forbids here; root "
			 "can allow it: sysctl -w %s=%s%s",
			 switches[i].file, switches[i].closed, switches[i].file, switches[i].open,
			 i == 2 ? ", or an AppArmor profile for pinfold with `userns,`" : "");
		return;
	}
	if (error == -ENOSPC)
		snprintf(problem, size,
			 "run without root needs a user namespace, and there are already "
			 "user.max_user_namespaces=%ld of them, or too many one inside another",
			 setting("user/max_user_namespaces"));
	else
		snprintf(problem, size,
			 "run without root needs a user namespace, which the kernel, a container "
			 "or a "
			 "security module refuses here: %s",
			 strerror(-error));
}

static int map_itself(uid_t uid, gid_t gid)
{
	char line[64];
	int error = write_file("/proc/self/setgroups", "deny");

	snprintf(line, sizeof(line), "0 %u 1\n", uid);
	if (error == 0)
		error = write_file("/proc/self/uid_map", line);
	snprintf(line, sizeof(line), "0 %u 1\n", gid);
	if (error == 0)
		error = write_file("/proc/self/gid_map", line);
	return error;
}

int userns_enter(char *problem, size_t size)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int error = unshare(CLONE_NEWUSER) < 0 ? -errno : 0;

	/* AppArmor lets it be made and takes the capabilities in it away. */
	if (error == 0)
		error = map_itself(uid, gid);
	if (error != 0)
		explain(error, problem, size);
	return error;
}

static int map_lines(pid_t pid, const char *which, const char *map)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, which);
	return write_file(path, map);
}

static int map_same(pid_t pid, const char *which)
{
	char path[64], line[128], map[4096] = "";
	uint32_t inside, outside, count;
	size_t length = 0;

	snprintf(path, sizeof(path), "/proc/self/%s", which);
	FILE *file = fopen(path, "re");
	if (file == NULL)
		return -errno;
	while (fgets(line, sizeof(line), file) != NULL && length < sizeof(map) - sizeof(line))
		if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3)
			length += (size_t)snprintf(map + length, sizeof(map) - length, "%u %u %u\n",
						   inside, inside, count);
	fclose(file);
	return map_lines(pid, which, map);
}

int userns_map_all(pid_t pid)
{
	int error = map_same(pid, "uid_map");

	return error != 0 ? error : map_same(pid, "gid_map");
}

int userns_map_one(pid_t pid, uid_t uid, gid_t gid)
{
	char line[64];

	snprintf(line, sizeof(line), "%u 0 1\n", uid);
	int error = map_lines(pid, "uid_map", line);
	snprintf(line, sizeof(line), "%u 0 1\n", gid);
	return error != 0 ? error : map_lines(pid, "gid_map", line);
}
