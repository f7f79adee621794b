/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/hook.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int hook_connect(const char *path, char *problem, size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	int fd = length < sizeof(address.sun_path)
			 ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)
			 : -1;
	int error = fd >= 0 ? 0 : length < sizeof(address.sun_path) ? -errno : -ENAMETOOLONG;

	if (error == 0) {
		memcpy(address.sun_path, path, length + 1);
		if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
			error = -errno;
	}
	if (error == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	snprintf(problem, size, "%s: %s", path, strerror(-error));
	return error;
}

/* What a child may wish for; more is no accident. False: this was one too many. */
static bool take_token(struct child *child, uint64_t now)
{
	uint64_t earned = (now - child->hooks_filled) * CHILD_HOOKS_PER_SECOND / 1000;

	if (earned > 0) {
		child->hooks_filled = now;
		child->hooks_left = earned + child->hooks_left > CHILD_HOOKS_BURST
					    ? CHILD_HOOKS_BURST
					    : child->hooks_left + (uint32_t)earned;
	}
	if (child->hooks_left == 0)
		return false;
	child->hooks_left--;
	return true;
}

void hook_grant(struct child *child, const struct message_hook *wish,
		const struct policy_image *image, uint64_t now)
{
	union message_body body = {
		.hook = {.policy = wish->policy, .generation = wish->generation}};
	char *problem = body.hook.problem;
	size_t size = sizeof(body.hook.problem);
	struct policy_hook hook;
	int fd = -ENOENT;

	if (!take_token(child, now)) {
		child_break(child, "asks for hooks without end");
		return;
	}
	if (image != NULL && policy_hook(image, wish->policy, &hook))
		fd = hook_connect(hook.path, problem, size);
	else
		snprintf(problem, size, "there is no such hook");
	int error =
		message_send(child->process.fd, MESSAGE_HOOK, &body, &fd, fd >= 0, MSG_DONTWAIT);
	if (fd >= 0)
		close(fd);
	if (error != 0)
		child_break(child, "does not take messages");
}
