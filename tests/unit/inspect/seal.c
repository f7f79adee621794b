/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "seal.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

static void must(int result)
{
	if (result != 1)
		abort();
}

static void hkdf(int mode, const uint8_t *salt, size_t salt_length, const uint8_t *key,
		 size_t key_length, const char *label, uint8_t *out, size_t length)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
	EVP_KDF_CTX *context = EVP_KDF_CTX_new(kdf);
	uint8_t info[64] = {0};
	size_t info_length = 0;
	OSSL_PARAM parameters[6], *p = parameters;
	char digest[] = "SHA256";

	*p++ = OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode);
	*p++ = OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0);
	*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key,
						 key_length);
	if (salt != NULL)
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT,
							 (void *)(uintptr_t)salt, salt_length);
	if (label != NULL) {
		info[1] = (uint8_t)length;
		info[2] = (uint8_t)(6 + strlen(label));
		memcpy(info + 3, "tls13 ", 6);
		memcpy(info + 9, label, strlen(label));
		info_length = 9 + strlen(label) + 1;
		*p++ = OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info, info_length);
	}
	*p = OSSL_PARAM_construct_end();
	must(EVP_KDF_derive(context, out, length, parameters));
	EVP_KDF_CTX_free(context);
	EVP_KDF_free(kdf);
}

struct keys {
	uint8_t key[16], iv[12], hp[16];
};

static void derive(const struct seal *seal, struct keys *keys)
{
	static const uint8_t salt_1[20] = "\x38\x76\x2c\xf7\xf5\x59\x34\xb3\x4d\x17"
					  "\x9a\xe6\xa4\xc8\x0c\xad\xcc\xbb\x7f\x0a";
	static const uint8_t salt_2[20] = "\x0d\xed\xe3\xde\xf7\x00\xa6\xdb\x81\x93"
					  "\x81\xbe\x6e\x26\x9d\xcb\xf9\xbd\x2e\xd9";
	int two = seal->version == INITIAL_VERSION_2;
	uint8_t secret[32], client[32];

	hkdf(EVP_KDF_HKDF_MODE_EXTRACT_ONLY, two ? salt_2 : salt_1, 20, seal->keys.bytes,
	     seal->keys.length, NULL, secret, sizeof(secret));
	hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, NULL, 0, secret, sizeof(secret), "client in", client,
	     sizeof(client));
	hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, NULL, 0, client, sizeof(client),
	     two ? "quicv2 key" : "quic key", keys->key, sizeof(keys->key));
	hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, NULL, 0, client, sizeof(client),
	     two ? "quicv2 iv" : "quic iv", keys->iv, sizeof(keys->iv));
	hkdf(EVP_KDF_HKDF_MODE_EXPAND_ONLY, NULL, 0, client, sizeof(client),
	     two ? "quicv2 hp" : "quic hp", keys->hp, sizeof(keys->hp));
}

struct seal seal_first(const char *text)
{
	struct seal seal = {
		.version = INITIAL_VERSION_1, .to.length = 8, .datagram = 1200, .number_length = 4};

	memcpy(seal.to.bytes, text, 8);
	seal.keys = seal.to;
	return seal;
}

static size_t put_number(uint8_t *out, size_t octets, uint64_t value)
{
	for (size_t i = 0; i < octets; i++)
		out[i] = (uint8_t)(value >> 8 * (octets - 1 - i));
	return octets;
}

/* A variable-length integer of two octets, or of four. */
static size_t put_varint(uint8_t *out, size_t value)
{
	if (value < 0x4000)
		return put_number(out, 2, 0x4000 | value);
	return put_number(out, 4, 0x80000000 | value);
}

static size_t put_id(uint8_t *out, const struct initial_id *id)
{
	out[0] = id->length;
	memcpy(out + 1, id->bytes, id->length);
	return 1 + (size_t)id->length;
}

static void protect(const struct keys *keys, uint8_t *packet, size_t number_at,
		    size_t number_length)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	uint8_t mask[16];
	int length;

	must(EVP_EncryptInit_ex(context, EVP_aes_128_ecb(), NULL, keys->hp, NULL));
	must(EVP_EncryptUpdate(context, mask, &length, packet + number_at + 4, 16));
	EVP_CIPHER_CTX_free(context);
	packet[0] ^= mask[0] & 0x0f;
	for (size_t i = 0; i < number_length; i++)
		packet[number_at + i] ^= mask[1 + i];
}

static size_t encrypt(const struct keys *keys, uint32_t number, uint8_t *packet, size_t at,
		      size_t length)
{
	EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
	uint8_t nonce[12];
	int ignored;

	memcpy(nonce, keys->iv, sizeof(nonce));
	for (unsigned i = 0; i < 4; i++)
		nonce[11 - i] ^= (uint8_t)(number >> 8 * i);
	must(EVP_EncryptInit_ex(context, EVP_aes_128_gcm(), NULL, keys->key, nonce));
	must(EVP_EncryptUpdate(context, NULL, &ignored, packet, (int)at));
	must(EVP_EncryptUpdate(context, packet + at, &ignored, packet + at, (int)length));
	must(EVP_EncryptFinal_ex(context, packet + at + length, &ignored));
	must(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, packet + at + length));
	EVP_CIPHER_CTX_free(context);
	return length + 16;
}

size_t seal_initial(const struct seal *seal, const uint8_t *frames, size_t length, uint8_t *out)
{
	static const struct initial_id nobody = {.length = 0};
	size_t number_length = seal->number_length == 0 ? 4 : seal->number_length;
	uint8_t type = seal->version == INITIAL_VERSION_2 ? 0x10 : 0;
	struct keys keys;
	size_t at = 0;

	derive(seal, &keys);
	out[at++] = (uint8_t)(0xc0 | type | seal->bits | (number_length - 1));
	at += put_number(out + at, 4, seal->version);
	at += put_id(out + at, &seal->to);
	at += put_id(out + at, &nobody);
	if (seal->token_length == 0)
		out[at++] = 0;
	else
		at += put_varint(out + at, seal->token_length);
	memset(out + at, 0, seal->token_length);
	at += seal->token_length;
	size_t length_at = at, padded = length;
	at += put_varint(out + at, seal->datagram > 0x4000 || length > 0x3000 ? 0x4000 : 0);
	size_t around = at + number_length + 16;
	if (seal->datagram > around + length)
		padded = seal->datagram - around;
	if (number_length + padded < 4 + 1) /* the sample needs that much */
		padded = 5 - number_length;
	put_number(out + length_at, at - length_at,
		   (at - length_at == 2 ? 0x4000u : 0x80000000u) | (number_length + padded + 16));
	size_t number_at = at;
	at += put_number(out + at, number_length, seal->number);
	memcpy(out + at, frames, length);
	memset(out + at + length, 0, padded - length);
	at += encrypt(&keys, seal->number, out, at, padded);
	protect(&keys, out, number_at, number_length);
	return at;
}

size_t seal_crypto(size_t offset, const uint8_t *bytes, size_t length, uint8_t *out)
{
	size_t at = 0;

	out[at++] = 6;
	at += put_varint(out + at, offset);
	at += put_varint(out + at, length);
	memcpy(out + at, bytes, length);
	return at + length;
}

size_t seal_hello(const char *name, size_t padding, uint8_t *out)
{
	size_t length = name == NULL ? 0 : strlen(name), at = 4;

	at += put_number(out + at, 2, 0x0303);
	memset(out + at, 0x5a, 32);
	at += 32;
	at += put_number(out + at, 1, 0); /* session */
	at += put_number(out + at, 2, 2);
	at += put_number(out + at, 2, 0x1301);
	at += put_number(out + at, 2, 0x0100); /* compression: one, none */
	size_t extensions = at;
	at += 2;
	if (name != NULL) {
		at += put_number(out + at, 4, length + 5);
		at += put_number(out + at, 2, length + 3);
		at += put_number(out + at, 1, 0);
		at += put_number(out + at, 2, length);
		memcpy(out + at, name, length);
		at += length;
	}
	at += put_number(out + at, 4, 43u << 16 | 3);
	at += put_number(out + at, 3, 0x020304);
	at += put_number(out + at, 2, 21);
	at += put_number(out + at, 2, padding);
	memset(out + at, 0, padding);
	at += padding;
	put_number(out + extensions, 2, at - extensions - 2);
	put_number(out, 4, 1u << 24 | (uint32_t)(at - 4));
	return at;
}
