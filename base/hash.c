/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hash.h"

#include <string.h>

#include <endian.h>

struct sip {
	uint64_t v0, v1, v2, v3;
};

static uint64_t load64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return le64toh(value);
}

static uint64_t rotate(uint64_t value, unsigned bits)
{
	return value << bits | value >> (64 - bits);
}

static void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v1 = rotate(s->v1, 13) ^ s->v0;
	s->v0 = rotate(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = rotate(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = rotate(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = rotate(s->v1, 17) ^ s->v2;
	s->v2 = rotate(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	sip_round(s);
	s->v0 ^= word;
}

uint64_t hash_sip(const uint8_t key[16], const void *data, size_t size)
{
	const uint8_t *bytes = data;
	uint64_t k0 = load64(key), k1 = load64(key + 8);
	struct sip s = {
		.v0 = k0 ^ UINT64_C(0x736f6d6570736575),
		.v1 = k1 ^ UINT64_C(0x646f72616e646f6d),
		.v2 = k0 ^ UINT64_C(0x6c7967656e657261),
		.v3 = k1 ^ UINT64_C(0x7465646279746573),
	};
	uint8_t tail[8] = {0};

	for (; size - (size_t)(bytes - (const uint8_t *)data) >= 8; bytes += 8)
		sip_word(&s, load64(bytes));
	memcpy(tail, bytes, size % 8);
	tail[7] = (uint8_t)size;
	sip_word(&s, load64(tail));
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
