/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Names of transport protocols, as audit lines and hook questions carry them (RFC 8259 strings). */

#include <stdint.h>

#define PROTOCOL_TEXT_SIZE 4

/* "tcp", "udp", "icmp", "icmpv6", or the number of the IP protocol written into BUFFER. */
const char *protocol_text(uint8_t protocol, char buffer[PROTOCOL_TEXT_SIZE]);

/* What protocol_text() writes. 0, or -EINVAL: *OUT is untouched. */
int protocol_parse(const char *text, uint8_t *out);
