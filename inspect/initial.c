/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/initial.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* SHA256_Init() and its kin are deprecated since OpenSSL 3.0 and the only ones that do not allocate. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

/*
 * Theory
 *
 *   connection ID --HKDF-Extract(salt)--> initial secret --"client in"--> client secret
 *   client secret --"quic key", "quic iv", "quic hp"--> key, iv, header protection key
 *
 * All of it is SHA-256 and every output is one block of it at most, so HKDF-Expand is one HMAC.
 * HMAC is put together here from the digest: libcrypto's own HKDF and HMAC allocate with every key,
 * and a packet must not. Ciphers get their algorithm once, when they are made; new keys allocate
 * nothing.
 *
 * Packet numbers are sent without their high octets, and the receiver guesses these from the
 * largest number it has seen (RFC 9000 appendix A.3), which we cannot know of the server. So only a
 * number is taken that no receiver could read in another way: one whose high octets are zero
 * although a receiver has seen everything that we have. A client needs some ten Initial packets and
 * begins near zero.
 */

#define HASH_SIZE   SHA256_DIGEST_LENGTH
#define HASH_BLOCK  SHA256_CBLOCK
#define KEY_SIZE    16 /* AES-128 */
#define IV_SIZE     12
#define TAG_SIZE    16
#define SAMPLE_SIZE 16
#define NUMBER_MAX  4 /* octets of a packet number */
#define PACKET_MAX  65535
#define LABEL_MAX   32

struct initial {
	EVP_CIPHER *aead, *block;
	EVP_CIPHER_CTX *open, *mask;
	uint8_t plain[PACKET_MAX];
};

static const struct version {
	uint32_t version;
	uint8_t salt[20];
	const char *key, *iv, *hp;
} versions[] = {
	{INITIAL_VERSION_1,
	 {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34, 0xb3, 0x4d, 0x17,
	  0x9a, 0xe6, 0xa4, 0xc8, 0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a},
	 "tls13 quic key",
	 "tls13 quic iv",
	 "tls13 quic hp"},
	{INITIAL_VERSION_2,
	 {0x0d, 0xed, 0xe3, 0xde, 0xf7, 0x00, 0xa6, 0xdb, 0x81, 0x93,
	  0x81, 0xbe, 0x6e, 0x26, 0x9d, 0xcb, 0xf9, 0xbd, 0x2e, 0xd9},
	 "tls13 quicv2 key",
	 "tls13 quicv2 iv",
	 "tls13 quicv2 hp"},
};

struct keys {
	uint8_t key[KEY_SIZE], iv[IV_SIZE], hp[KEY_SIZE];
};

static bool prepare(struct initial *initial)
{
	static const uint8_t zeros[KEY_SIZE];

	initial->aead = EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL);
	initial->block = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
	initial->open = EVP_CIPHER_CTX_new();
	initial->mask = EVP_CIPHER_CTX_new();
	return initial->aead != NULL && initial->block != NULL && initial->open != NULL &&
	       initial->mask != NULL &&
	       EVP_DecryptInit_ex2(initial->open, initial->aead, zeros, zeros, NULL) == 1 &&
	       EVP_EncryptInit_ex2(initial->mask, initial->block, zeros, NULL, NULL) == 1;
}

struct initial *initial_new(void)
{
	struct initial *initial = calloc(1, sizeof(*initial));

	if (initial == NULL)
		return NULL;
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
	if (!prepare(initial)) {
		initial_free(initial);
		return NULL;
	}
	return initial;
}

void initial_free(struct initial *initial)
{
	if (initial == NULL)
		return;
	EVP_CIPHER_CTX_free(initial->mask);
	EVP_CIPHER_CTX_free(initial->open);
	EVP_CIPHER_free(initial->block);
	EVP_CIPHER_free(initial->aead);
	free(initial);
}

/* The digest of one key block and DATA. */
static void hash_padded(const uint8_t pad[HASH_BLOCK], const void *data, size_t length,
			uint8_t out[HASH_SIZE])
{
	SHA256_CTX hash;

	SHA256_Init(&hash);
	SHA256_Update(&hash, pad, HASH_BLOCK);
	SHA256_Update(&hash, data, length);
	SHA256_Final(out, &hash);
}

/* HMAC-SHA256 (RFC 2104) with a key of at most one block. */
static void hmac(const uint8_t *key, size_t key_length, const void *data, size_t length,
		 uint8_t out[HASH_SIZE])
{
	uint8_t inner[HASH_BLOCK], outer[HASH_BLOCK], digest[HASH_SIZE];

	for (size_t i = 0; i < HASH_BLOCK; i++) {
		uint8_t octet = i < key_length ? key[i] : 0;
		inner[i] = octet ^ 0x36;
		outer[i] = octet ^ 0x5c;
	}
	hash_padded(inner, data, length, digest);
	hash_padded(outer, digest, sizeof(digest), out);
}

/* HKDF-Expand-Label (RFC 8446 section 7.1) without context, LENGTH at most HASH_SIZE. */
static void expand(const uint8_t secret[HASH_SIZE], const char *label, uint8_t *out, size_t length)
{
	uint8_t info[2 + 1 + LABEL_MAX + 1 + 1] = {0}, block[HASH_SIZE];
	size_t label_length = strlen(label);

	info[1] = (uint8_t)length;
	info[2] = (uint8_t)label_length;
	memcpy(info + 3, label, label_length);
	info[3 + label_length + 1] = 1; /* behind an empty context, the first block */
	hmac(secret, HASH_SIZE, info, 3 + label_length + 2, block);
	memcpy(out, block, length);
}

static void derive(uint32_t number, const struct initial_id *id, struct keys *keys)
{
	const struct version *version = &versions[number == INITIAL_VERSION_2];
	uint8_t secret[HASH_SIZE], client[HASH_SIZE];

	hmac(version->salt, sizeof(version->salt), id->bytes, id->length, secret);
	expand(secret, "tls13 client in", client, sizeof(client));
	expand(client, version->key, keys->key, sizeof(keys->key));
	expand(client, version->iv, keys->iv, sizeof(keys->iv));
	expand(client, version->hp, keys->hp, sizeof(keys->hp));
}

/* RFC 9001 section 5.4.3: what hides the first octet and the packet number. */
static bool header_mask(struct initial *initial, const struct keys *keys,
			const uint8_t sample[SAMPLE_SIZE], uint8_t mask[SAMPLE_SIZE])
{
	int length;

	return EVP_EncryptInit_ex2(initial->mask, NULL, keys->hp, NULL, NULL) == 1 &&
	       EVP_CIPHER_CTX_set_padding(initial->mask, 0) == 1 &&
	       EVP_EncryptUpdate(initial->mask, mask, &length, sample, SAMPLE_SIZE) == 1 &&
	       length == SAMPLE_SIZE;
}

/* No receiver that expects EXPECTED or less could take NUMBER for one that wrapped around. */
static bool is_plain_number(uint32_t number, size_t octets, uint64_t expected)
{
	uint64_t half = (uint64_t)1 << (8 * octets - 1);

	return number + half > expected;
}

struct opened {
	uint8_t first;              /* first octet and */
	uint8_t number[NUMBER_MAX]; /* packet number without protection */
	size_t number_length;
};

/* Authenticates and decrypts what is behind the packet number into the room. */
static bool decrypt(struct initial *initial, const struct keys *keys,
		    const struct initial_packet *packet, const struct opened *header,
		    uint32_t number, int *plain_length)
{
	size_t at = packet->number_at + header->number_length;
	int cipher_length = (int)(packet->length - at) - TAG_SIZE, length, last;
	const uint8_t *cipher = packet->bytes + at;
	uint8_t nonce[IV_SIZE], tag[TAG_SIZE];

	if (cipher_length < 0)
		return false;
	memcpy(tag, cipher + cipher_length, sizeof(tag));
	memcpy(nonce, keys->iv, sizeof(nonce));
	for (unsigned i = 0; i < 4; i++)
		nonce[IV_SIZE - 1 - i] ^= (uint8_t)(number >> 8 * i);
	if (EVP_DecryptInit_ex2(initial->open, NULL, keys->key, nonce, NULL) != 1 ||
	    EVP_DecryptUpdate(initial->open, NULL, &length, &header->first, 1) != 1 ||
	    EVP_DecryptUpdate(initial->open, NULL, &length, packet->bytes + 1,
			      (int)packet->number_at - 1) != 1 ||
	    EVP_DecryptUpdate(initial->open, NULL, &length, header->number,
			      (int)header->number_length) != 1 ||
	    EVP_DecryptUpdate(initial->open, initial->plain, plain_length, cipher, cipher_length) !=
		    1 ||
	    EVP_CIPHER_CTX_ctrl(initial->open, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) != 1)
		return false;
	return EVP_DecryptFinal_ex(initial->open, initial->plain + *plain_length, &last) == 1;
}

int initial_open(struct initial *initial, const struct initial_packet *packet,
		 const struct initial_id *id, uint64_t expected, struct initial_plain *out)
{
	struct opened header = {.number_length = 0};
	uint8_t mask[SAMPLE_SIZE];
	uint32_t number = 0;
	struct keys keys;
	int length;

	if (packet->length > PACKET_MAX)
		return -EMSGSIZE;
	if (packet->length < packet->number_at + NUMBER_MAX + SAMPLE_SIZE)
		return -EBADMSG;
	const uint8_t *at = packet->bytes + packet->number_at;
	derive(packet->version, id, &keys);
	if (!header_mask(initial, &keys, at + NUMBER_MAX, mask))
		return -EBADMSG;
	header.first = packet->bytes[0] ^ (mask[0] & 0x0f);
	header.number_length = (header.first & 3u) + 1u;
	for (size_t i = 0; i < header.number_length; i++) {
		header.number[i] = at[i] ^ mask[1 + i];
		number = number << 8 | header.number[i];
	}
	if (!is_plain_number(number, header.number_length, expected) ||
	    !decrypt(initial, &keys, packet, &header, number, &length))
		return -EBADMSG;
	if ((header.first & 0x0c) != 0)
		return -EPROTO;
	*out = (struct initial_plain){
		.frames = initial->plain, .length = (size_t)length, .number = number};
	return 0;
}
