/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

int loop_init(struct loop *loop)
{
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll < 0 ? -errno : 0;
}

void loop_deinit(struct loop *loop)
{
	if (loop->epoll >= 0)
		close(loop->epoll);
	loop->epoll = -1;
}

static int control(struct loop *loop, int operation, struct loop_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};

	return epoll_ctl(loop->epoll, operation, source->fd, &event) < 0 ? -errno : 0;
}

int loop_add(struct loop *loop, struct loop_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_ADD, source, events);
}

int loop_change(struct loop *loop, struct loop_source *source, uint32_t events)
{
	return control(loop, EPOLL_CTL_MOD, source, events);
}

void loop_close(struct loop *loop, struct loop_source *source)
{
	if (source->fd < 0)
		return;
	/* Explicitly: a copy of the descriptor in another process would keep the registration. */
	control(loop, EPOLL_CTL_DEL, source, 0);
	close(source->fd);
	source->fd = -1;
}

int loop_once(struct loop *loop, int timeout_ms)
{
	struct epoll_event event;
	int count = epoll_wait(loop->epoll, &event, 1, timeout_ms);

	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	if (count == 1) {
		struct loop_source *source = event.data.ptr;
		source->ready(source, event.events);
	}
	return 0;
}
