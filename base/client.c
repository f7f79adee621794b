/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "client.h"

#include <string.h>

#include "base/hash.h"

/* First byte of the keys that belong to no source address: see client.h. */
#define KEY_REGISTERED 0xff
enum { KEY_KIND_NAME = 1, KEY_KIND_HOST = 2, KEY_KIND_SERIAL = 3 };

struct client_key client_key_of_address(const struct address *source)
{
	struct client_key key = {{0}};

	if (source->family == ADDRESS_IPV4) {
		key.bytes[10] = 0xff;
		key.bytes[11] = 0xff;
		memcpy(key.bytes + 12, source->bytes, 4);
	} else {
		memcpy(key.bytes, source->bytes, 16);
	}
	return key;
}

struct client_key client_key_of_name(const char *name)
{
	/* The key is no secret: names come from the configuration and collisions are refused there.
	 */
	static const uint8_t hash_key[16] = "pinfold clients";
	struct client_key key = {{KEY_REGISTERED, KEY_KIND_NAME}};
	uint64_t hash = hash_sip(hash_key, name, strlen(name));

	memcpy(key.bytes + 8, &hash, sizeof(hash));
	return key;
}

struct client_key client_key_of_serial(uint64_t serial)
{
	struct client_key key = {{KEY_REGISTERED, KEY_KIND_SERIAL}};

	memcpy(key.bytes + 8, &serial, sizeof(serial));
	return key;
}

struct client_key client_key_of_host(void)
{
	return (struct client_key){{KEY_REGISTERED, KEY_KIND_HOST}};
}

bool client_key_equal(const struct client_key *a, const struct client_key *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}
