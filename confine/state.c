/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine/sysctl.h"

#define ROOT "/run/pinfold"

/*
 * A name for the network namespace that no other one gets before the next boot. The cookie is never
 * used again (Linux 5.14); before that the inode number must do.
 */
static int namespace_name(char *name, size_t size)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint64_t cookie;
	socklen_t length = sizeof(cookie);
	struct stat inode;

	if (fd >= 0) {
		int error = getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &length);
		close(fd);
		if (error == 0) {
			snprintf(name, size, "net-%" PRIu64, cookie);
			return 0;
		}
	}
	if (stat("/proc/self/ns/net", &inode) < 0)
		return -errno;
	snprintf(name, size, "net-i%" PRIu64, (uint64_t)inode.st_ino);
	return 0;
}

static bool is_id(const char *name)
{
	return strlen(name) == PLAN_ID_SIZE - 1 &&
	       strspn(name, "0123456789abcdef") == PLAN_ID_SIZE - 1;
}

static int open_folder(const char *path)
{
	if ((mkdir(ROOT, 0755) < 0 && errno != EEXIST) ||
	    (mkdir(path, 0700) < 0 && errno != EEXIST))
		return -errno;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int state_open(struct state *state)
{
	char name[64], path[128];
	int error = namespace_name(name, sizeof(name));

	if (error != 0)
		return error;
	snprintf(path, sizeof(path), ROOT "/%s", name);
	do {
		state->lock = -1;
		state->folder = open_folder(path);
		error = state->folder < 0 ? state->folder : state_lock(state);
		if (error != 0)
			state_close(state);
	} while (error == -ENOENT); /* the last run out has just taken the folder away */
	return error;
}

int state_lock(struct state *state)
{
	struct stat file;

	for (;;) {
		int fd = openat(state->folder, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				0600);
		if (fd < 0)
			return -errno;
		int result;
		do
			result = flock(fd, LOCK_EX);
		while (result < 0 && errno == EINTR);
		int error = result < 0 || fstat(fd, &file) < 0 ? -errno : 0;
		if (error == 0 && file.st_nlink > 0) {
			state->lock = fd;
			return 0;
		}
		close(fd);
		if (error != 0)
			return error;
	}
}

void state_unlock(struct state *state)
{
	if (state->lock >= 0)
		close(state->lock);
	state->lock = -1;
}

void state_close(struct state *state)
{
	state_unlock(state);
	if (state->folder >= 0)
		close(state->folder);
	state->folder = -1;
}

static bool read_run(struct state *state, const char *id, struct state_run *run)
{
	int fd = openat(state->folder, id, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[64] = "";

	if (fd < 0)
		return false;
	memset(run, 0, sizeof(*run));
	snprintf(run->id, sizeof(run->id), "%s", id);
	/* A file that was cut short belongs to a run that was killed: stale, with block 0. */
	if (read(fd, text, sizeof(text) - 1) > 0)
		sscanf(text, "%" SCNu32, &run->block);
	run->live = flock(fd, LOCK_EX | LOCK_NB) < 0;
	close(fd);
	return true;
}

size_t state_runs(struct state *state, struct state_run *runs, size_t max)
{
	int fd = openat(state->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	size_t count = 0;

	if (folder == NULL) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (struct dirent *entry; count < max && (entry = readdir(folder)) != NULL;)
		if (is_id(entry->d_name) && read_run(state, entry->d_name, &runs[count]))
			count++;
	closedir(folder);
	return count;
}

int state_add(struct state *state, const struct state_run *run)
{
	int fd = openat(state->folder, run->id, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 || dprintf(fd, "%" PRIu32 "\n", run->block) < 0) {
		int error = -errno;
		close(fd);
		state_remove(state, run->id);
		return error;
	}
	return fd;
}

void state_remove(struct state *state, const char *id)
{
	unlinkat(state->folder, id, 0);
}

/* The line of KEY in the file "sysctl" exists. */
static bool is_recorded(struct state *state, const char *key)
{
	int fd = openat(state->folder, "sysctl", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[512];
	bool found = false;
	size_t length = strlen(key);

	if (file == NULL) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	while (!found && fgets(line, sizeof(line), file) != NULL)
		found = strncmp(line, key, length) == 0 && line[length] == '\t';
	fclose(file);
	return found;
}

int state_set(struct state *state, const char *key, const char *value)
{
	char old[64];
	int error = sysctl_read(key, old, sizeof(old));

	if (error != 0 || strcmp(old, value) == 0)
		return error;
	/* Written down first: a run that is killed in between leaves a record that changes nothing.
	 */
	if (!is_recorded(state, key)) {
		int fd = openat(state->folder, "sysctl",
				O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		error = dprintf(fd, "%s\t%s\t%s\n", key, old, value) < 0 ? -errno : 0;
		close(fd);
		if (error != 0)
			return error;
	}
	return sysctl_write(key, value);
}

void state_restore(struct state *state)
{
	int fd = openat(state->folder, "sysctl", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[512], key[256], old[64], ours[64], now[64];

	if (file == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	/*
	 * In the order in which they were set. Forwarding goes off before accept_ra is what it was;
	 * while it is on, accept_ra=1 would lose the default route that the router advertised.
	 * Writing the settings of forwarding resets others, so each is compared when its turn
	 * comes.
	 */
	struct {
		char key[256], old[64];
	} later[64];
	size_t count = 0;
	while (fgets(line, sizeof(line), file) != NULL) {
		if (sscanf(line, "%255[^\t]\t%63[^\t]\t%63[^\n]", key, old, ours) != 3)
			continue;
		if (sysctl_read(key, now, sizeof(now)) != 0 || strcmp(now, ours) != 0)
			continue;
		if (strstr(key, "accept_ra") != NULL && count < sizeof(later) / sizeof(later[0])) {
			memcpy(later[count].key, key, sizeof(key));
			memcpy(later[count++].old, old, sizeof(old));
			continue;
		}
		sysctl_write(key, old);
	}
	fclose(file);
	for (size_t i = 0; i < count; i++)
		sysctl_write(later[i].key, later[i].old);
	unlinkat(state->folder, "sysctl", 0);
}

void state_vanish(struct state *state)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", state->folder);
	unlinkat(state->folder, "lock", 0);
	char target[128];
	ssize_t length = readlink(path, target, sizeof(target) - 1);
	if (length > 0) {
		target[length] = '\0';
		rmdir(target);
	}
	rmdir(ROOT); /* unless something else is in it */
}
