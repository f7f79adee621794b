/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit hash for tables whose keys an attacker
 * chooses. KEY is 16 bytes; SIZE bytes at DATA may have any alignment.
 */

#include <stddef.h>
#include <stdint.h>

uint64_t hash_sip(const uint8_t key[16], const void *data, size_t size);
