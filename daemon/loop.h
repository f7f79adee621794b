/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The parent's event loop: descriptors with a function each, over epoll. One event is taken at a
 * time, so a function may close any source, its own included, and no stale event can follow.
 */

#include <stdint.h>
#include <time.h>

struct loop_source {
	int fd;                                                     /* -1: not in the loop */
	void (*ready)(struct loop_source *source, uint32_t events); /* EPOLL* */
};

struct loop {
	int epoll;
};

/* 0, or negative errno. */
int loop_init(struct loop *loop);
void loop_deinit(struct loop *loop);

/* SOURCE has its fd and function; it stays the caller's and must not move while it is in the loop.
 */
int loop_add(struct loop *loop, struct loop_source *source, uint32_t events);
int loop_change(struct loop *loop, struct loop_source *source, uint32_t events);

/* Takes SOURCE out and closes its descriptor; nothing when it is not in the loop. */
void loop_close(struct loop *loop, struct loop_source *source);

/* Waits at most TIMEOUT_MS (-1: for good) and runs the function of one source. 0 or negative errno.
 */
int loop_once(struct loop *loop, int timeout_ms);

/* The container of a source that is embedded as MEMBER. */
#define loop_container(source, type, member)                                                       \
	((type *)(void *)((char *)(source) - __builtin_offsetof(type, member)))

/* Milliseconds of CLOCK_BOOTTIME, the clock of pins and of every deadline here. */
static inline uint64_t loop_now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}
