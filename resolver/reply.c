/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/reply.h"

#include <string.h>

#include "resolver/stored.h"

enum { HEADER_QR = 0x8000, HEADER_TC = 0x0200, HEADER_RD = 0x0100, HEADER_RA = 0x0080 };
enum { HEADER_AD = 0x0020, HEADER_CD = 0x0010 };
enum { OPTION_EDE = 15, OPT_FIXED_SIZE = 11 };

/* A compression pointer to the question's name, RFC 1035 section 4.1.4. */
#define POINTER_TO_QUESTION (0xc000u | QUERY_HEADER_SIZE)

/* Every write goes through here: what does not fit leaves a mark and nothing else. */
static uint8_t *room(struct reply *reply, size_t size)
{
	if (reply->truncated || REPLY_SIZE_MAX - reply->length < size) {
		reply->truncated = true;
		return NULL;
	}
	uint8_t *at = reply->bytes + reply->length;
	reply->length += size;
	return at;
}

static void put_bytes(struct reply *reply, const void *bytes, size_t size)
{
	uint8_t *at = room(reply, size);
	if (at != NULL && size > 0)
		memcpy(at, bytes, size);
}

static void put_u16(struct reply *reply, uint16_t value)
{
	uint8_t bytes[2] = {(uint8_t)(value >> 8), (uint8_t)value};
	put_bytes(reply, bytes, sizeof(bytes));
}

static void put_u32(struct reply *reply, uint32_t value)
{
	put_u16(reply, (uint16_t)(value >> 16));
	put_u16(reply, (uint16_t)value);
}

static uint32_t get_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void set_u32(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 24);
	at[1] = (uint8_t)(value >> 16);
	at[2] = (uint8_t)(value >> 8);
	at[3] = (uint8_t)value;
}

void reply_begin(struct reply *reply, const struct query_message *query, uint8_t *bytes,
		 enum reply_rcode rcode)
{
	*reply = (struct reply){.query = query,
				.bytes = bytes,
				.length = QUERY_HEADER_SIZE,
				.rcode = rcode,
				.ede = REPLY_EDE_NONE,
				.ede_text = ""};
	put_bytes(reply, query->question, query->question_length);
}

static void put_record_head(struct reply *reply, uint16_t owner, uint16_t type, uint32_t ttl,
			    uint16_t data_size)
{
	put_u16(reply, owner);
	put_u16(reply, type);
	put_u16(reply, QUERY_CLASS_IN);
	put_u32(reply, ttl);
	put_u16(reply, data_size);
}

void reply_address(struct reply *reply, const struct address *address, uint32_t ttl)
{
	uint16_t size = (uint16_t)address_length(address);

	put_record_head(reply, POINTER_TO_QUESTION, size == 4 ? QUERY_TYPE_A : QUERY_TYPE_AAAA, ttl,
			size);
	put_bytes(reply, address->bytes, size);
	reply->answers++;
}

void reply_soa(struct reply *reply, uint32_t ttl)
{
	/* "localhost. nobody.invalid. 1 3600 1200 604800 TTL", as resolvers' own zones have it. */
	static const uint8_t names[] = "\011localhost\0\006nobody\007invalid";
	static const uint32_t timers[] = {1, 3600, 1200, 604800};
	const uint16_t size = sizeof(names) + sizeof(timers) + sizeof(ttl);
	uint8_t label = reply->query->question[0];
	uint16_t owner = POINTER_TO_QUESTION;

	if (reply->rcode == RCODE_NXDOMAIN && label != 0)
		owner = (uint16_t)(owner + label + 1);
	put_record_head(reply, owner, QUERY_TYPE_SOA, ttl, size);
	put_bytes(reply, names, sizeof(names));
	for (size_t i = 0; i < sizeof(timers) / sizeof(timers[0]); i++)
		put_u32(reply, timers[i]);
	put_u32(reply, ttl);
	reply->authorities++;
}

/* Copies the records; where they are now, or NULL when there is no room. */
static uint8_t *copy_records(struct reply *reply, const struct stored *stored)
{
	uint8_t *at = room(reply, stored->records_size);

	if (at == NULL)
		return NULL;
	memcpy(at, stored->records, stored->records_size);
	reply->answers = stored->answers;
	reply->authorities = stored->authorities;
	return at;
}

void reply_stored(struct reply *reply, const struct stored *stored, uint32_t age)
{
	uint8_t *at = copy_records(reply, stored);

	for (size_t i = 0; at != NULL && i < stored->ttl_count; i++) {
		uint8_t *ttl = at + stored->ttls[i];
		uint32_t left = get_u32(ttl);
		set_u32(ttl, left > age ? left - age : 0);
	}
}

void reply_stale(struct reply *reply, const struct stored *stored)
{
	uint8_t *at = copy_records(reply, stored);

	for (size_t i = 0; at != NULL && i < stored->ttl_count; i++)
		set_u32(at + stored->ttls[i], REPLY_STALE_TTL);
}

/* Keeps header and question alone. */
static void drop_records(struct reply *reply)
{
	reply->length = QUERY_HEADER_SIZE + reply->query->question_length;
	reply->answers = reply->authorities = 0;
	reply->truncated = false;
}

static size_t option_size(const struct reply *reply)
{
	if (!reply->query->edns)
		return 0;
	return OPT_FIXED_SIZE + (reply->ede == REPLY_EDE_NONE
					 ? 0
					 : 6 + strnlen(reply->ede_text, REPLY_EDE_TEXT_MAX));
}

static void put_option(struct reply *reply)
{
	size_t text = strnlen(reply->ede_text, REPLY_EDE_TEXT_MAX);
	uint16_t size = (uint16_t)(option_size(reply) - OPT_FIXED_SIZE);

	put_bytes(reply, "", 1);
	put_u16(reply, QUERY_TYPE_OPT);
	put_u16(reply, QUERY_UDP_SIZE_MAX);
	put_u32(reply, (uint32_t)reply->rcode >> 4 << 24 | (reply->query->dnssec_ok ? 0x8000u : 0));
	put_u16(reply, size);
	if (size == 0)
		return;
	put_u16(reply, OPTION_EDE);
	put_u16(reply, (uint16_t)(size - 4));
	put_u16(reply, (uint16_t)reply->ede);
	put_bytes(reply, reply->ede_text, text);
}

size_t reply_finish(struct reply *reply, size_t limit)
{
	const struct query_message *query = reply->query;
	bool cut = reply->truncated || reply->length + option_size(reply) > limit;

	if (cut)
		drop_records(reply);
	if (query->edns)
		put_option(reply);

	unsigned flags = HEADER_QR | HEADER_RA | (unsigned)query->opcode << 11 |
			 ((unsigned)reply->rcode & 15) | (cut ? HEADER_TC : 0) |
			 (query->recursion_desired ? HEADER_RD : 0) |
			 (query->checking_disabled ? HEADER_CD : 0) |
			 (reply->authentic && !cut ? HEADER_AD : 0);
	uint16_t fields[6] = {query->id,      (uint16_t)flags,    query->question_length > 0,
			      reply->answers, reply->authorities, query->edns};
	for (size_t i = 0; i < 6; i++) {
		reply->bytes[2 * i] = (uint8_t)(fields[i] >> 8);
		reply->bytes[2 * i + 1] = (uint8_t)fields[i];
	}
	return reply->length;
}
