/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/report.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int report_write(int fd, const char *line, size_t length)
{
	/*
	 * O_NONBLOCK on standard error would change it for every process that shares it. A pipe is
	 * writable for poll() when it has room for PIPE_BUF octets: then a line fits without
	 * waiting.
	 */
	struct pollfd room = {.fd = fd, .events = POLLOUT};

	if (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)
		return (room.revents & (POLLERR | POLLNVAL)) != 0 ? -EPIPE : -EAGAIN;
	ssize_t written = write(fd, line, length);
	if (written < 0)
		return -errno;
	return (size_t)written == length ? 0 : -ENOSPC;
}

void report(const char *format, ...)
{
	char line[1024];
	va_list arguments;
	int lead = snprintf(line, sizeof(line), "pinfold: ");

	va_start(arguments, format);
	int length = vsnprintf(line + lead, sizeof(line) - (size_t)lead - 1, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	size_t end = (size_t)(lead + length);
	if (end > sizeof(line) - 2)
		end = sizeof(line) - 2;
	line[end++] = '\n';
	report_write(STDERR_FILENO, line, end);
}
