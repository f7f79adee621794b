/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * IP addresses, prefixes and endpoints as values.
 *
 * An address is a family and bytes in network order; nothing here converts one embedding into
 * another (rules/embedding.h does). A value with family ADDRESS_NONE is "no address"; all unused
 * bytes are zero, so that two equal addresses are equal byte by byte.
 */

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sockaddr;
struct sockaddr_storage;

enum address_family {
	ADDRESS_NONE = 0,
	ADDRESS_IPV4 = 4,
	ADDRESS_IPV6 = 6,
};

struct address {
	uint8_t family; /* enum address_family */
	uint8_t bytes[16]; /* network order; IPv4 uses the first four, the rest is zero */
};

struct prefix {
	struct address address; /* bits below the length are zero */
	uint8_t length;		/* bits, 0..32 or 0..128 */
};

struct endpoint {
	struct address address;
	uint8_t reserved; /* 0, in the place of padding: settings are copied to the children whole */
	uint16_t port;	  /* host order */
};
static_assert(sizeof(struct endpoint) == 20 && offsetof(struct endpoint, port) == 18,
	      "no padding");

/* Room for any formatted address, prefix or endpoint with brackets and port, and the NUL. */
#define ADDRESS_TEXT_SIZE 64

struct address address_ipv4(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

/* Takes LENGTH bytes in network order, 4 or 16; any other length gives ADDRESS_NONE. */
struct address address_from_bytes(const uint8_t *bytes, size_t length);

size_t address_length(const struct address *address); /* 4, 16, or 0 for ADDRESS_NONE */
unsigned address_bits(const struct address *address); /* 32, 128, or 0 */

bool address_equal(const struct address *a, const struct address *b);

/*
 * Strict text form: dotted quad without leading zeros, or RFC 4291 section 2.2 (a zone "%eth0" is
 * refused). TEXT needs no NUL. Returns 0, or -EINVAL with *OUT untouched.
 */
int address_parse(const char *text, size_t length, struct address *out);

/* "10.0.0.0/8", or a bare address for a host prefix. -EINVAL, or -ERANGE for host bits set. */
int prefix_parse(const char *text, size_t length, struct prefix *out);

/*
 * "1.2.3.4:80", "[2001:db8::1]:80", and with SEPARATOR '@' "1.2.3.4@53", "2001:db8::1@53". Without a
 * port the result has DEFAULT_PORT; 0 there means that a port must be given. -EINVAL.
 */
int endpoint_parse(const char *text, size_t length, char separator, uint16_t default_port,
		   struct endpoint *out);

/* Canonical text of RFC 5952 into BUFFER (ADDRESS_TEXT_SIZE); returns BUFFER. */
const char *address_format(const struct address *address, char *buffer);
const char *prefix_format(const struct prefix *prefix, char *buffer);
const char *endpoint_format(const struct endpoint *endpoint, char *buffer);

bool prefix_contains(const struct prefix *prefix, const struct address *address);

/* AF_INET and AF_INET6 only: 0, or -EAFNOSUPPORT. An IPv4-mapped address becomes IPv4. */
int endpoint_from_sockaddr(const struct sockaddr *sockaddr, struct endpoint *out);

/* Returns the length of the filled sockaddr, 0 for ADDRESS_NONE. */
unsigned endpoint_to_sockaddr(const struct endpoint *endpoint, struct sockaddr_storage *out);
