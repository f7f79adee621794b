/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

void notify(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");

	if (path == NULL || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&address,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path)));
	close(fd);
}

/* A whole number in the environment; 0 when there is none. */
static uint64_t number_of(const char *variable)
{
	const char *text = getenv(variable);
	char *end;

	if (text == NULL || text[0] < '0' || text[0] > '9')
		return 0;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	return errno == 0 && *end == '\0' ? number : 0;
}

uint64_t notify_watchdog_ms(void)
{
	uint64_t microseconds = number_of("WATCHDOG_USEC");
	uint64_t pid = number_of("WATCHDOG_PID");

	if (microseconds == 0 || (pid != 0 && pid != (uint64_t)getpid()))
		return 0;
	return microseconds < 2000 ? 1 : microseconds / 2000;
}

void notify_reloading(void)
{
	char state[64];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu",
		 (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
	notify(state);
}
