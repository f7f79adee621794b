/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

struct address address_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct address){.family = ADDRESS_IPV4, .bytes = {a, b, c, d}};
}

struct address address_from_bytes(const uint8_t *bytes, size_t length)
{
	struct address address = {.family = ADDRESS_NONE};

	if (length == 4 || length == 16) {
		address.family = length == 4 ? ADDRESS_IPV4 : ADDRESS_IPV6;
		memcpy(address.bytes, bytes, length);
	}
	return address;
}

size_t address_length(const struct address *address)
{
	switch (address->family) {
	case ADDRESS_IPV4:
		return 4;
	case ADDRESS_IPV6:
		return 16;
	default:
		return 0;
	}
}

unsigned address_bits(const struct address *address)
{
	return (unsigned)address_length(address) * 8;
}

bool address_equal(const struct address *a, const struct address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

/* Copies TEXT into a NUL-terminated BUFFER; false when it does not fit or holds a NUL itself. */
static bool terminated(const char *text, size_t length, char *buffer, size_t size)
{
	if (length >= size || memchr(text, '\0', length) != NULL)
		return false;
	memcpy(buffer, text, length);
	buffer[length] = '\0';
	return true;
}

int address_parse(const char *text, size_t length, struct address *out)
{
	char buffer[INET6_ADDRSTRLEN + 1];
	uint8_t bytes[16];

	if (!terminated(text, length, buffer, sizeof(buffer)))
		return -EINVAL;
	if (inet_pton(AF_INET, buffer, bytes) == 1)
		*out = address_from_bytes(bytes, 4);
	else if (inet_pton(AF_INET6, buffer, bytes) == 1)
		*out = address_from_bytes(bytes, 16);
	else
		return -EINVAL;
	return 0;
}

/* Decimal without sign, blanks or leading zeros, at most MAX. */
static int parse_number(const char *text, size_t length, unsigned max, unsigned *out)
{
	unsigned value = 0;

	if (length == 0 || length > 5 || (length > 1 && text[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (value > max)
		return -EINVAL;
	*out = value;
	return 0;
}

static bool host_bits_are_zero(const struct address *address, unsigned length)
{
	for (unsigned bit = length; bit < address_bits(address); bit++)
		if (address->bytes[bit / 8] & (0x80u >> (bit % 8)))
			return false;
	return true;
}

int prefix_parse(const char *text, size_t length, struct prefix *out)
{
	const char *slash = memchr(text, '/', length);
	size_t address_size = slash != NULL ? (size_t)(slash - text) : length;
	struct address address;
	unsigned bits;

	if (address_parse(text, address_size, &address) < 0)
		return -EINVAL;
	bits = address_bits(&address);
	if (slash != NULL && parse_number(slash + 1, length - address_size - 1, bits, &bits) < 0)
		return -EINVAL;
	if (!host_bits_are_zero(&address, bits))
		return -ERANGE;
	*out = (struct prefix){.address = address, .length = (uint8_t)bits};
	return 0;
}

int endpoint_parse(const char *text, size_t length, char separator, uint16_t default_port,
		   struct endpoint *out)
{
	struct endpoint endpoint = {.port = default_port};
	const char *end = text + length;
	const char *port_text = NULL;
	const char *address_text = text;
	size_t address_size = length;
	unsigned port;

	if (length > 0 && text[0] == '[') {
		const char *bracket = memchr(text, ']', length);
		if (bracket == NULL)
			return -EINVAL;
		address_text = text + 1;
		address_size = (size_t)(bracket - address_text);
		if (bracket + 1 < end) {
			if (bracket[1] != separator)
				return -EINVAL;
			port_text = bracket + 2;
		}
	} else {
		const char *mark = memchr(text, separator, length);
		/* with ':' a bare IPv6 address has several and no port */
		if (mark != NULL &&
		    (separator != ':' || memchr(mark + 1, ':', (size_t)(end - mark - 1)) == NULL)) {
			address_size = (size_t)(mark - text);
			port_text = mark + 1;
		}
	}
	if (address_parse(address_text, address_size, &endpoint.address) < 0)
		return -EINVAL;
	if (text != address_text && endpoint.address.family != ADDRESS_IPV6)
		return -EINVAL;
	if (port_text != NULL) {
		if (parse_number(port_text, (size_t)(end - port_text), 65535, &port) < 0)
			return -EINVAL;
		endpoint.port = (uint16_t)port;
	}
	if (endpoint.port == 0)
		return -EINVAL;
	*out = endpoint;
	return 0;
}

const char *address_format(const struct address *address, char *buffer)
{
	int family = address->family == ADDRESS_IPV4 ? AF_INET : AF_INET6;

	if (address->family == ADDRESS_NONE ||
	    inet_ntop(family, address->bytes, buffer, ADDRESS_TEXT_SIZE) == NULL)
		memcpy(buffer, "-", 2);
	return buffer;
}

const char *prefix_format(const struct prefix *prefix, char *buffer)
{
	size_t used = strlen(address_format(&prefix->address, buffer));

	snprintf(buffer + used, ADDRESS_TEXT_SIZE - used, "/%u", prefix->length);
	return buffer;
}

const char *endpoint_format(const struct endpoint *endpoint, char *buffer)
{
	char text[ADDRESS_TEXT_SIZE];

	address_format(&endpoint->address, text);
	snprintf(buffer, ADDRESS_TEXT_SIZE,
		 endpoint->address.family == ADDRESS_IPV6 ? "[%.45s]:%u" : "%.45s:%u", text,
		 endpoint->port);
	return buffer;
}

bool prefix_contains(const struct prefix *prefix, const struct address *address)
{
	if (prefix->address.family != address->family || prefix->length > address_bits(address))
		return false;

	size_t whole = prefix->length / 8;
	unsigned rest = prefix->length % 8;
	if (memcmp(prefix->address.bytes, address->bytes, whole) != 0)
		return false;
	if (rest == 0)
		return true;
	uint8_t mask = (uint8_t)(0xff00u >> rest);
	return ((prefix->address.bytes[whole] ^ address->bytes[whole]) & mask) == 0;
}

int endpoint_from_sockaddr(const struct sockaddr *sockaddr, struct endpoint *out)
{
	if (sockaddr->sa_family == AF_INET) {
		struct sockaddr_in in;
		memcpy(&in, sockaddr, sizeof(in));
		out->address = address_from_bytes((const uint8_t *)&in.sin_addr, 4);
		out->port = ntohs(in.sin_port);
		return 0;
	}
	if (sockaddr->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;
		memcpy(&in6, sockaddr, sizeof(in6));
		out->address = IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr)
				       ? address_from_bytes(in6.sin6_addr.s6_addr + 12, 4)
				       : address_from_bytes(in6.sin6_addr.s6_addr, 16);
		out->port = ntohs(in6.sin6_port);
		return 0;
	}
	return -EAFNOSUPPORT;
}

unsigned endpoint_to_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (endpoint->address.family == ADDRESS_IPV4) {
		struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(endpoint->port)};
		memcpy(&in.sin_addr, endpoint->address.bytes, 4);
		memcpy(out, &in, sizeof(in));
		return sizeof(in);
	}
	if (endpoint->address.family == ADDRESS_IPV6) {
		struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
					   .sin6_port = htons(endpoint->port)};
		memcpy(&in6.sin6_addr, endpoint->address.bytes, 16);
		memcpy(out, &in6, sizeof(in6));
		return sizeof(in6);
	}
	return 0;
}
