/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * What changes, and why:
 *
 *   /proc                              of the new PID namespace: host processes are out of reach
 *   /proc/sys, sysrq-trigger, …, /sys  read-only: their files obey uid 0 of the host without asking
 *                                      for a capability; core_pattern runs programs outside
 *   /run/pinfold                       empty: the control sockets are not COMMAND's
 *   /run/systemd/resolve, /run/nscd,   empty: NSS modules would ask the host's resolver through
 *   /run/avahi-daemon                  them
 *   /run/user/UID/bus, …/systemd       closed: the caller's session starts programs outside
 *   /etc/resolv.conf                   names our resolver
 *   /etc/hosts                         localhost and this machine alone; names from the host's file
 *                                      would be name_mismatch, since nobody pins them
 */

#include "confine/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where our files lie until they are bound to their places: a folder that every system has, and whose
 * content changes anyway. */
#define STAGE "/proc"

static const char *const hidden[] = {"/run/pinfold", "/run/systemd/resolve", "/run/nscd",
				     "/run/avahi-daemon"};

/* Below the caller's folder in /run/user: who starts programs for him, outside of the run. */
static const char *const session[] = {"bus", "systemd"};

static const char *const read_only[] = {
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",  "/proc/bus",
	"/proc/fs",  "/proc/acpi",          "/proc/scsi",
};

static int fail(char *problem, size_t size, const char *what, const char *path)
{
	int error = -errno;

	snprintf(problem, size, "cannot %s %s: %s", what, path, strerror(-error));
	return error;
}

static int set_read_only(const char *path, char *problem, size_t size)
{
	struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY};

	if (mount_setattr(AT_FDCWD, path, AT_RECURSIVE, &attributes, sizeof(attributes)) < 0)
		return fail(problem, size, "write-protect", path);
	return 0;
}

static int make_proc(char *problem, size_t size)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return fail(problem, size, "mount", "/proc");
	for (size_t i = 0; i < sizeof(read_only) / sizeof(read_only[0]); i++) {
		if (access(read_only[i], F_OK) < 0)
			continue; /* this kernel was built without */
		if (mount(read_only[i], read_only[i], NULL, MS_BIND, NULL) < 0)
			return fail(problem, size, "bind", read_only[i]);
		int error = set_read_only(read_only[i], problem, size);
		if (error != 0)
			return error;
	}
	return 0;
}

/* Only where /sys is a mount: a container may have none. */
static int protect_sys(char *problem, size_t size)
{
	struct stat sys, root;

	if (stat("/sys", &sys) < 0 || stat("/", &root) < 0 || sys.st_dev == root.st_dev)
		return 0;
	return set_read_only("/sys", problem, size);
}

static int empty_folder(const char *path, char *problem, size_t size)
{
	struct stat folder;

	if (stat(path, &folder) < 0)
		return 0;
	if (mount("pinfold", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=1m") <
	    0)
		return fail(problem, size, "mount over", path);
	return 0;
}

static int write_file(const char *path, const char *text, char *problem, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return fail(problem, size, "create", path);
	size_t length = strlen(text);
	ssize_t written = write(fd, text, length);
	close(fd);
	if (written < 0 || (size_t)written != length)
		return fail(problem, size, "write", path);
	return chmod(path, 0644) < 0 ? fail(problem, size, "chmod", path) : 0;
}

static bool is_hidden(const char *path)
{
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++) {
		size_t length = strlen(hidden[i]);
		if (strncmp(path, hidden[i], length) == 0 && path[length] == '/')
			return true;
	}
	return false;
}

/*
 * Where PATH leads in the end, as an absolute path, also when the last file is missing.
 * systemd-resolved's stub file, to which /etc/resolv.conf points, has just been hidden.
 */
static int final_target(const char *path, char *out, size_t size)
{
	char here[PATH_MAX], link[PATH_MAX], folder[PATH_MAX], real[PATH_MAX];

	snprintf(here, sizeof(here), "%s", path);
	for (int hops = 0; hops < 40; hops++) {
		char *slash = strrchr(here, '/');
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - here), here);
		if (realpath(folder[0] == '\0' ? "/" : folder, real) == NULL)
			return -errno;
		if ((size_t)snprintf(out, size, "%s/%s", strcmp(real, "/") == 0 ? "" : real,
				     slash + 1) >= size)
			return -ENAMETOOLONG;
		ssize_t length = readlink(out, link, sizeof(link) - 1);
		if (length < 0)
			return 0; /* no link any more */
		link[length] = '\0';
		int count = link[0] == '/' ? snprintf(here, sizeof(here), "%s", link)
					   : snprintf(here, sizeof(here), "%s/%s",
						      strcmp(real, "/") == 0 ? "" : real, link);
		if (count < 0 || (size_t)count >= sizeof(here))
			return -ENAMETOOLONG;
	}
	return -ELOOP;
}

/* Puts STAGE/NAME over PATH; nothing to do when an OPTIONAL file is not there. */
static int replace_file(const char *name, const char *path, const char *text, bool optional,
			char *problem, size_t size)
{
	char source[64], target[PATH_MAX];
	int error;

	snprintf(source, sizeof(source), STAGE "/%s", name);
	error = write_file(source, text, problem, size);
	if (error != 0)
		return error;
	error = final_target(path, target, sizeof(target));
	if (error == 0 && access(target, F_OK) < 0) {
		if (optional)
			return 0;
		if (!is_hidden(target)) {
			snprintf(problem, size, "cannot replace %s: there is no %s", path, target);
			return -ENOENT;
		}
		error = write_file(target, text, problem, size);
		if (error != 0)
			return error;
	}
	if (error != 0) {
		snprintf(problem, size, "cannot find where %s leads: %s", path, strerror(-error));
		return error;
	}
	if (mount(source, target, NULL, MS_BIND, NULL) < 0)
		return fail(problem, size, "mount over", target);
	return set_read_only(target, problem, size);
}

static int hide_folders(uid_t uid, char *problem, size_t size)
{
	int error = 0;
	char path[64];

	for (size_t i = 0; error == 0 && i < sizeof(hidden) / sizeof(hidden[0]); i++)
		error = empty_folder(hidden[i], problem, size);
	for (size_t i = 0; error == 0 && i < sizeof(session) / sizeof(session[0]); i++) {
		struct stat found;
		snprintf(path, sizeof(path), "/run/user/%u/%s", uid, session[i]);
		if (stat(path, &found) < 0)
			continue;
		if (S_ISDIR(found.st_mode))
			error = empty_folder(path, problem, size);
		else if (mount("/dev/null", path, NULL, MS_BIND, NULL) < 0)
			error = fail(problem, size, "mount over", path);
	}
	return error;
}

static int replace_files(const char *resolv_conf, const char *hosts, char *problem, size_t size)
{
	if (mount("pinfold", STAGE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0755,size=1m") < 0)
		return fail(problem, size, "mount over", STAGE);
	int error =
		replace_file("resolv.conf", "/etc/resolv.conf", resolv_conf, false, problem, size);
	if (error == 0)
		error = replace_file("hosts", "/etc/hosts", hosts, true, problem, size);
	if (error == 0 && umount2(STAGE, MNT_DETACH) < 0)
		error = fail(problem, size, "unmount", STAGE);
	return error;
}

int mounts_make(uid_t uid, const char *resolv_conf, const char *hosts, char *problem, size_t size)
{
	/* The host's later mounts still arrive; ours never leave. */
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return fail(problem, size, "separate the mounts below", "/");
	int error = hide_folders(uid, problem, size);
	if (error == 0)
		error = replace_files(resolv_conf, hosts, problem, size);
	if (error == 0)
		error = make_proc(problem, size);
	if (error == 0)
		error = protect_sys(problem, size);
	return error;
}
