/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The published vectors of SipHash-2-4: key 00..0f, input 00, 01, … of length 0, 1, 7, 8, 15. */
static void published_vectors(void **state)
{
	(void)state;
	uint8_t key[16], input[16];
	static const struct {
		size_t length;
		uint64_t hash;
	} rows[] = {
		{0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
		{7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
		{15, UINT64_C(0xa129ca6149be45e5)},
	};

	for (uint8_t i = 0; i < 16; i++)
		key[i] = input[i] = i;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_true(hash_sip(key, input, rows[i].length) == rows[i].hash);
}

static void every_key_bit_matters(void **state)
{
	(void)state;
	uint8_t key[16] = {0};
	uint64_t plain = hash_sip(key, "pinfold", 7);

	for (int bit = 0; bit < 128; bit++) {
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(hash_sip(key, "pinfold", 7) != plain);
		key[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_vectors),
		cmocka_unit_test(every_key_bit_matters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
