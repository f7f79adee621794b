/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "inspect/tls.h"

#include <string.h>

#include "inspect/stream.h"

/*
 * Theory
 *
 * The first hello is read strictly: records of type handshake, version 3.x, 1..16384 octets,
 * nothing between them, nothing behind the hello in its last record.
 *
 * A second one is possible only where the first offers TLS 1.3 (only there is a HelloRetryRequest),
 * and then it is the next handshake record in the clear. What may stand before it: ChangeCipherSpec
 * (RFC 8446 appendix D.4), alerts, and early data where the first hello announced some
 * (section 4.2.10: the server skips it). Everything else ends the search: TLS 1.2 goes on with
 * another handshake message; TLS 1.3 with application data.
 *
 * After a resumed TLS 1.2 handshake the client's next record is of type handshake too, and
 * encrypted. Its octets pass for a hello if the first is 1 and the fifth is 3: one of 65536 such
 * connections is refused at most, and then only once. Shorter tests would let a hello through that
 * a server accepts.
 */

#define RECORD_CHANGE_CIPHER_SPEC 20u
#define RECORD_ALERT              21u
#define RECORD_HANDSHAKE          22u
#define RECORD_APPLICATION_DATA   23u
#define RECORD_PLAIN_MAX          16384u /* RFC 8446 section 5.1 */
#define RECORD_CIPHER_MAX         18432u /* RFC 5246 section 6.2.3 */
#define HANDSHAKE_HEADER          4u
#define HANDSHAKE_CLIENT_HELLO    1u
#define TLS_MAJOR                 3u

/* Sixteen times what OpenSSL and BoringSSL skip by default; a server that skips more and asks for a
 * second hello behind it does not exist. */
#define EARLY_DATA_MAX 262144u

void tls_init(struct tls *tls)
{
	*tls = (struct tls){.state = TLS_HEADER};
}

static enum tls_step malformed(struct tls *tls, const char *problem)
{
	tls->problem = problem;
	return TLS_MALFORMED;
}

/* The type octet of a record where the first hello is expected or goes on. */
static enum tls_step first_type(struct tls *tls, uint8_t type)
{
	if (type == RECORD_HANDSHAKE)
		return TLS_MORE;
	if (tls->inside)
		return malformed(tls, "another record inside the ClientHello");
	return type >= RECORD_CHANGE_CIPHER_SPEC && type <= RECORD_APPLICATION_DATA ? TLS_MORE
										    : TLS_FOREIGN;
}

static enum tls_step second_type(struct tls *tls, uint8_t type)
{
	if (type == RECORD_HANDSHAKE)
		return TLS_MORE;
	if (tls->inside)
		return malformed(tls, "another record inside the ClientHello");
	if (type == RECORD_CHANGE_CIPHER_SPEC || type == RECORD_ALERT)
		return TLS_MORE;
	return type == RECORD_APPLICATION_DATA && tls->hello.early_data ? TLS_MORE : TLS_DONE;
}

/* The major version: with it, the two octets say whether this is TLS at all. */
static enum tls_step record_version(struct tls *tls, uint8_t major)
{
	if (major != TLS_MAJOR) {
		if (tls->inside)
			return malformed(tls, "record of another version inside the ClientHello");
		return tls->second ? TLS_DONE : TLS_FOREIGN;
	}
	if (!tls->second && tls->header[0] != RECORD_HANDSHAKE)
		return malformed(tls, "TLS that does not begin with a ClientHello");
	return TLS_MORE;
}

static enum tls_step record_length(struct tls *tls)
{
	uint16_t length = (uint16_t)(tls->header[3] << 8 | tls->header[4]);

	tls->header_length = 0;
	tls->record_left = length;
	if (tls->header[0] == RECORD_HANDSHAKE) {
		if (length == 0)
			return malformed(tls, "empty handshake record");
		if (length > (tls->second && !tls->inside ? RECORD_CIPHER_MAX : RECORD_PLAIN_MAX))
			return malformed(tls, "handshake record over 16 KiB");
		tls->state = TLS_MESSAGE;
		return TLS_MORE;
	}
	if (length > RECORD_CIPHER_MAX)
		return TLS_DONE;
	if (tls->header[0] == RECORD_APPLICATION_DATA)
		tls->skipped += length + (uint32_t)sizeof(tls->header);
	if (tls->skipped > EARLY_DATA_MAX)
		return TLS_DONE;
	tls->state = length > 0 ? TLS_SKIP : TLS_HEADER;
	return TLS_MORE;
}

static enum tls_step header_byte(struct tls *tls, uint8_t byte)
{
	tls->header[tls->header_length++] = byte;
	switch (tls->header_length) {
	case 1:
		return tls->second ? second_type(tls, byte) : first_type(tls, byte);
	case 2:
		return record_version(tls, byte);
	case sizeof(tls->header):
		return record_length(tls);
	default:
		return TLS_MORE;
	}
}

/*
 * One of the first octets of a message: is it a ClientHello, and how long is it? The fifth is
 * looked at in a second one alone, to tell it from an encrypted record; hello_parse() looks again.
 */
static enum tls_step message_byte(struct tls *tls, const struct head_buffer *buffer)
{
	const uint8_t *message = buffer->bytes;

	if (buffer->used == 1 && message[0] != HANDSHAKE_CLIENT_HELLO) {
		if (tls->second)
			return TLS_DONE;
		return malformed(tls, "TLS that does not begin with a ClientHello");
	}
	tls->inside = true;
	if (buffer->used < (tls->second ? HANDSHAKE_HEADER + 1 : HANDSHAKE_HEADER))
		return TLS_MORE;
	if (tls->second && message[HANDSHAKE_HEADER] != TLS_MAJOR)
		return TLS_DONE;
	tls->message_length = HANDSHAKE_HEADER +
			      ((uint32_t)message[1] << 16 | (uint32_t)message[2] << 8 | message[3]);
	if (tls->message_length > STREAM_HELLO_MAX)
		return malformed(tls, "ClientHello over 16 KiB");
	if (tls->message_length <= HANDSHAKE_HEADER + 1)
		return malformed(tls, "broken ClientHello");
	return TLS_MORE;
}

static enum tls_step message_end(struct tls *tls, const struct head_buffer *buffer)
{
	if (tls->record_left > 0)
		return malformed(tls, "more behind the ClientHello in its record");
	const char *problem = hello_parse(buffer->bytes, tls->message_length, &tls->hello);
	if (problem != NULL)
		return malformed(tls, problem);
	if (tls->second && !hello_same_host(&tls->hello.host, &tls->first_host))
		return malformed(tls, "the second ClientHello names another host");
	return TLS_HELLO;
}

/* Takes payload of a handshake record into the buffer; *TAKEN octets. */
static enum tls_step message_feed(struct tls *tls, struct head_buffer *buffer, const uint8_t *bytes,
				  size_t length, size_t *taken)
{
	size_t want = 1;

	if (tls->message_length != 0)
		want = tls->message_length - buffer->used;
	if (want > tls->record_left)
		want = tls->record_left;
	if (want > length)
		want = length;
	if (want > buffer->capacity - buffer->used)
		want = buffer->capacity - buffer->used;
	*taken = want;
	if (want == 0)
		return TLS_FULL;
	memcpy(buffer->bytes + buffer->used, bytes, want);
	buffer->used += want;
	tls->record_left = (uint16_t)(tls->record_left - want);
	if (tls->record_left == 0)
		tls->state = TLS_HEADER;
	if (tls->message_length == 0) {
		enum tls_step step = message_byte(tls, buffer);
		if (step != TLS_MORE)
			return step;
	}
	return buffer->used == tls->message_length ? message_end(tls, buffer) : TLS_MORE;
}

static enum tls_step skip_feed(struct tls *tls, size_t length, size_t *taken)
{
	size_t skip = tls->record_left < length ? tls->record_left : length;

	*taken = skip;
	tls->record_left = (uint16_t)(tls->record_left - skip);
	if (tls->record_left == 0)
		tls->state = TLS_HEADER;
	return TLS_MORE;
}

enum tls_step tls_feed(struct tls *tls, struct head_buffer *buffer, const uint8_t *bytes,
		       size_t length, size_t *taken)
{
	enum tls_step step = TLS_MORE;
	size_t at = 0;

	while (at < length && step == TLS_MORE) {
		size_t used = 1;
		switch (tls->state) {
		case TLS_HEADER:
			step = header_byte(tls, bytes[at]);
			break;
		case TLS_MESSAGE:
			step = message_feed(tls, buffer, bytes + at, length - at, &used);
			break;
		case TLS_SKIP:
			step = skip_feed(tls, length - at, &used);
			break;
		}
		at += used;
	}
	*taken = at;
	return step;
}

enum tls_step tls_resume(struct tls *tls)
{
	if (tls->second || !tls->hello.offers_version)
		return TLS_DONE;
	tls->first_host = tls->hello.host;
	tls->second = true;
	tls->inside = false;
	tls->message_length = 0;
	return TLS_MORE;
}
