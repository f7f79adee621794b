/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/protocol.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *text;
	uint8_t protocol;
} known[] = {{"tcp", IPPROTO_TCP},
	     {"udp", IPPROTO_UDP},
	     {"icmp", IPPROTO_ICMP},
	     {"icmpv6", IPPROTO_ICMPV6}};

const char *protocol_text(uint8_t protocol, char buffer[PROTOCOL_TEXT_SIZE])
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].protocol == protocol)
			return known[i].text;
	snprintf(buffer, PROTOCOL_TEXT_SIZE, "%u", protocol);
	return buffer;
}

int protocol_parse(const char *text, uint8_t *out)
{
	char *end;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].text, text) == 0) {
			*out = known[i].protocol;
			return 0;
		}
	}
	unsigned long number = strtoul(text, &end, 10);
	if (text[0] == '\0' || *end != '\0' || number > UINT8_MAX)
		return -EINVAL;
	*out = (uint8_t)number;
	return 0;
}
