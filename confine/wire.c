/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/wire.h"

#include <errno.h>
#include <sys/socket.h>

int wire_send(int fd, enum wire_word word, int32_t value)
{
	struct wire wire = {.word = word, .value = value};
	ssize_t sent;

	do
		sent = send(fd, &wire, sizeof(wire), MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int wire_receive(int fd, struct wire *out)
{
	struct wire wire;
	ssize_t count;

	do
		count = recv(fd, &wire, sizeof(wire), MSG_TRUNC);
	while (count < 0 && errno == EINTR);
	if (count < 0)
		return errno == ECONNRESET ? 0 : -errno;
	if (count == 0)
		return 0;
	if (count != sizeof(wire))
		return -EPROTO;
	*out = wire;
	return 1;
}

int wire_expect(int fd, enum wire_word word, struct wire *out)
{
	struct wire wire;
	int result = wire_receive(fd, &wire);

	if (result <= 0)
		return result == 0 ? -EPIPE : result;
	if (wire.word != (uint32_t)word)
		return -EPROTO;
	*out = wire;
	return 0;
}
