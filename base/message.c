/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct message_header {
	uint32_t type;
	uint32_t body_size;
};

/* What a type's body and descriptors may be; a type that is not here is junk. */
static const struct {
	size_t body_size;
	size_t fds_min, fds_max;
} shapes[MESSAGE_TYPE_COUNT] = {
	[MESSAGE_START] = {sizeof(struct message_start), 3, MESSAGE_FDS_MAX},
	[MESSAGE_READY] = {0, 0, 0},
	[MESSAGE_FAILED] = {sizeof(struct message_text), 0, 0},
	[MESSAGE_RELOAD] = {sizeof(struct message_reload), 2, 2},
	[MESSAGE_RELOADED] = {sizeof(struct message_reload), 0, 0},
	[MESSAGE_STATUS] = {sizeof(struct message_status), 0, 0},
	[MESSAGE_AUDIT] = {sizeof(struct audit_record), 0, 0},
	[MESSAGE_DROP_CLIENT] = {sizeof(struct message_drop_client), 0, 0},
	[MESSAGE_NOTICE] = {sizeof(struct message_text), 0, 0},
	[MESSAGE_HOOK_WANTED] = {sizeof(struct message_hook), 0, 0},
	[MESSAGE_HOOK] = {sizeof(struct message_hook), 0, 1},
};

static const char *const counter_texts[COUNTER_COUNT] = {
	[COUNTER_QUERIES] = "queries",
	[COUNTER_ANSWERS] = "answers",
	[COUNTER_CACHE_HITS] = "cache_hits",
	[COUNTER_REFUSED_ANSWERS] = "refused_answers",
	[COUNTER_SERVFAIL] = "servfail",
	[COUNTER_DROPPED_QUERIES] = "dropped_queries",
	[COUNTER_PINS_FAILED] = "pins_failed",
	[COUNTER_PACKETS] = "packets",
	[COUNTER_FLOWS] = "flows",
	[COUNTER_ALLOWED] = "allowed",
	[COUNTER_REFUSED] = "refused",
	[COUNTER_HELD] = "held",
	[COUNTER_OVERFLOW] = "overflow",
	[COUNTER_AUDIT_LOST] = "audit_lost",
};
static_assert(sizeof(counter_texts) / sizeof(counter_texts[0]) == COUNTER_COUNT, "one text each");

const char *counter_text(enum counter counter)
{
	return (unsigned)counter < COUNTER_COUNT ? counter_texts[counter] : "?";
}

static bool shape_fits(uint32_t type, size_t body_size, size_t fd_count)
{
	return type > 0 && type < MESSAGE_TYPE_COUNT && body_size == shapes[type].body_size &&
	       fd_count >= shapes[type].fds_min && fd_count <= shapes[type].fds_max;
}

int message_send(int fd, enum message_type type, const union message_body *body, const int *fds,
		 size_t fd_count, int flags)
{
	if ((unsigned)type >= MESSAGE_TYPE_COUNT ||
	    !shape_fits((uint32_t)type, shapes[type].body_size, fd_count))
		return -EINVAL;

	struct message_header header = {.type = (uint32_t)type,
					.body_size = (uint32_t)shapes[type].body_size};
	struct iovec parts[2] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = (void *)(uintptr_t)body, .iov_len = header.body_size},
	};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct msghdr datagram = {.msg_iov = parts, .msg_iovlen = header.body_size > 0 ? 2 : 1};

	if (fd_count > 0) {
		memset(&control, 0, sizeof(control));
		datagram.msg_control = control.bytes;
		datagram.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		struct cmsghdr *rights = CMSG_FIRSTHDR(&datagram);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(rights), fds, sizeof(int) * fd_count);
	}

	ssize_t sent;
	do
		sent = sendmsg(fd, &datagram, flags | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

static void take_descriptors(struct msghdr *datagram, struct message *out)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(datagram); c != NULL; c = CMSG_NXTHDR(datagram, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < count; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (out->fd_count < MESSAGE_FDS_MAX)
				out->fds[out->fd_count++] = fd;
			else
				close(fd);
		}
	}
}

int message_receive(int fd, struct message *out, int flags)
{
	struct message_header header;
	struct iovec parts[2] = {
		{.iov_base = &header, .iov_len = sizeof(header)},
		{.iov_base = &out->body, .iov_len = sizeof(out->body)},
	};
	union {
		char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct msghdr datagram = {.msg_iov = parts,
				  .msg_iovlen = 2,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes)};

	memset(out, 0, sizeof(*out));
	ssize_t received;
	do
		received = recvmsg(fd, &datagram, flags | MSG_CMSG_CLOEXEC);
	while (received < 0 && errno == EINTR);
	if (received < 0)
		return -errno;
	take_descriptors(&datagram, out);
	if (received == 0 && out->fd_count == 0)
		return 0;

	if ((size_t)received >= sizeof(header) &&
	    (datagram.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
	    header.body_size == (size_t)received - sizeof(header) &&
	    shape_fits(header.type, header.body_size, out->fd_count)) {
		out->type = header.type;
		return 1;
	}
	for (uint32_t i = 0; i < out->fd_count; i++)
		close(out->fds[i]);
	out->fd_count = 0;
	return -EPROTO;
}
