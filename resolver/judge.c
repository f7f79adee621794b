/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "resolver/query.h"

/* SvcParamKeys, RFC 9460 section 14.3.2. */
enum { SVC_MANDATORY = 0, SVC_IPV4HINT = 4, SVC_ECH = 5, SVC_IPV6HINT = 6 };

/* A whole message, for compression pointers. */
struct message_bytes {
	const uint8_t *bytes;
	size_t size;
};

enum section { SECTION_ANSWER, SECTION_AUTHORITY, SECTION_ADDITIONAL, SECTION_COUNT };

/* One record, its RDATA in the message. */
struct record {
	uint16_t type;
	uint32_t ttl;
	bool in_answer;
	struct reader data;
};

/* Makes room for one more element of SIZE octets in *ARRAY. */
static bool grow(void **array, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return true;
	size_t more = *room == 0 ? 16 : *room * 2;
	void *larger = reallocarray(*array, more, size);
	if (larger == NULL)
		return false;
	*array = larger;
	*room = more;
	return true;
}

/* Appends VALUE to the array LIST of ANSWER, whose fields are ONE_count and ONE_room. */
#define APPEND(answer, list, one, value)                                                           \
	(grow((void **)&(answer)->list, (answer)->one##_count, &(answer)->one##_room,              \
	      sizeof(*(answer)->list))                                                             \
		 ? ((answer)->list[(answer)->one##_count++] = (value), 0)                          \
		 : -ENOMEM)

static int add_pin(struct judge_answer *answer, const struct address *address, uint32_t ttl)
{
	struct judge_pin pin = {.address = *address, .ttl = ttl};
	return APPEND(answer, pins, pin, pin);
}

/*
 * Reads the possibly compressed name at READER (RFC 1035 section 4.1.4) into WIRE, uncompressed,
 * and returns its length, 0 when it is broken. Pointers go strictly backwards, so the walk ends.
 */
static size_t expand_name(const struct message_bytes *message, struct reader *reader,
			  uint8_t wire[NAME_WIRE_MAX])
{
	struct reader at = *reader;
	size_t length = 0, limit = (size_t)(at.at - message->bytes);
	bool jumped = false;

	for (;;) {
		uint8_t label = reader_u8(&at);
		if (!at.failed && label >= 0xc0) {
			size_t target = (size_t)(label & 0x3f) << 8 | reader_u8(&at);
			if (!jumped)
				*reader = at;
			jumped = true;
			if (at.failed || target >= limit)
				return 0;
			limit = target;
			at = reader_init(message->bytes + target, message->size - target);
			continue;
		}
		const uint8_t *bytes = reader_bytes(&at, label);
		if (at.failed || label > NAME_LABEL_MAX || length + label + 2 > NAME_WIRE_MAX + 1)
			return 0;
		wire[length++] = label;
		memcpy(wire + length, bytes, label);
		length += label;
		if (label == 0)
			break;
	}
	if (!jumped)
		*reader = at;
	return length;
}

static int take_address(struct judge_answer *answer, struct record *record)
{
	size_t size = record->type == QUERY_TYPE_A ? 4 : 16;

	if (reader_left(&record->data) != size) {
		answer->malformed = true;
		return 0;
	}
	struct address address = address_from_bytes(record->data.at, size);
	int error = APPEND(answer, addresses, address, address);
	return error == 0 && record->in_answer ? add_pin(answer, &address, record->ttl) : error;
}

/*
 * A target that is the root means "the owner" or "no service" in SVCB and nothing elsewhere: it
 * names no host. Only MUST_BE_HOST makes odd octets in it a fault.
 */
static int take_target(struct judge_answer *answer, const struct message_bytes *message,
		       struct reader *data, bool must_be_host)
{
	uint8_t wire[NAME_WIRE_MAX + 1];
	struct name target;
	size_t length = expand_name(message, data, wire);
	enum name_error error =
		length == 0 ? NAME_TRUNCATED : name_from_wire(wire, length, &target, NULL);

	if (error == NAME_BAD_BYTE && !must_be_host)
		return 0;
	if (error != NAME_OK) {
		answer->malformed = true;
		data->failed = true;
		return 0;
	}
	return target.length == 0 ? 0 : APPEND(answer, targets, target, target);
}

static int take_hints(struct judge_answer *answer, struct reader *value, size_t size,
		      const struct record *record)
{
	int error = 0;

	if (reader_left(value) == 0 || reader_left(value) % size != 0)
		answer->malformed = true;
	while (error == 0 && reader_left(value) >= size) {
		struct address hint = address_from_bytes(reader_bytes(value, size), size);
		error = APPEND(answer, hints, hint, hint);
		if (error == 0 && record->in_answer)
			error = add_pin(answer, &hint, record->ttl);
	}
	return error;
}

/* SVCB and HTTPS, RFC 9460 section 2.2: priority, target, then parameters in strictly rising order.
 */
static int take_service(struct judge_answer *answer, const struct message_bytes *message,
			struct record *record, bool host)
{
	struct reader *data = &record->data;
	int last = -1;

	reader_u16(data);
	int error = take_target(answer, message, data, host);
	while (error == 0 && reader_left(data) > 0 && !data->failed) {
		uint16_t key = reader_u16(data);
		struct reader value = reader_sub(data, reader_u16(data));
		if (data->failed || key <= last) {
			data->failed = true;
			break;
		}
		last = key;
		if (key == SVC_IPV4HINT || key == SVC_IPV6HINT)
			error = take_hints(answer, &value, key == SVC_IPV4HINT ? 4 : 16, record);
		answer->has_ech = answer->has_ech || key == SVC_ECH;
	}
	if (data->failed)
		answer->malformed = true;
	return error;
}

static int take_record(struct judge_answer *answer, const struct message_bytes *message,
		       struct record *record, bool host)
{
	int error = 0;

	switch (record->type) {
	case QUERY_TYPE_A:
	case QUERY_TYPE_AAAA:
		return take_address(answer, record);
	case QUERY_TYPE_CNAME:
		error = take_target(answer, message, &record->data, host);
		if (reader_left(&record->data) > 0)
			answer->malformed = true;
		return error;
	case QUERY_TYPE_SVCB:
	case QUERY_TYPE_HTTPS:
		return take_service(answer, message, record, host);
	default:
		return 0;
	}
}

/* What tells how long the answer may be kept. A TTL with its highest bit set is 0 (RFC 2181 section 8). */
static void note_life(struct judge_answer *answer, const struct record *record, uint16_t type,
		      enum section section, bool *first)
{
	uint32_t ttl = record->ttl > INT32_MAX ? 0 : record->ttl;

	if (section == SECTION_ADDITIONAL)
		return;
	if (*first || ttl < answer->ttl)
		answer->ttl = ttl;
	*first = false;
	if (section == SECTION_ANSWER && record->type == type)
		answer->answered = true;
	if (section == SECTION_AUTHORITY && record->type == QUERY_TYPE_SOA)
		answer->has_soa = true;
}

/* Walks the records of all sections. A message whose structure breaks is malformed. */
static int walk(struct judge_answer *answer, const struct message_bytes *message, uint16_t type)
{
	bool host = type == QUERY_TYPE_A || type == QUERY_TYPE_AAAA || type == QUERY_TYPE_SVCB ||
		    type == QUERY_TYPE_HTTPS;
	bool first = true;
	struct reader reader = reader_init(message->bytes, message->size);
	uint8_t owner[NAME_WIRE_MAX + 1];
	uint32_t records[SECTION_COUNT];
	int error = 0;

	reader_u16(&reader);
	answer->rcode = (uint8_t)(reader_u16(&reader) & 15);
	uint16_t questions = reader_u16(&reader);
	for (size_t s = 0; s < SECTION_COUNT; s++)
		records[s] = reader_u16(&reader);
	for (; questions > 0 && !reader.failed; questions--) {
		if (expand_name(message, &reader, owner) == 0)
			reader.failed = true;
		reader_u32(&reader);
	}
	for (size_t s = 0; s < SECTION_COUNT; s++)
		for (uint32_t i = 0; error == 0 && i < records[s] && !reader.failed; i++) {
			struct record record = {.in_answer = s == SECTION_ANSWER};
			if (expand_name(message, &reader, owner) == 0)
				reader.failed = true;
			record.type = reader_u16(&reader);
			reader_u16(&reader);
			record.ttl = reader_u32(&reader);
			record.data = reader_sub(&reader, reader_u16(&reader));
			if (reader.failed)
				break;
			note_life(answer, &record, type, (enum section)s, &first);
			error = take_record(answer, message, &record, host);
		}
	if (reader.failed)
		answer->malformed = true;
	return error;
}

int judge_read(const uint8_t *wire, size_t size, uint16_t type, struct judge_answer *out)
{
	const struct message_bytes message = {.bytes = wire, .size = size};
	struct judge_answer answer = {.packet = NULL};
	int error = walk(&answer, &message, type);

	if (error == 0) {
		ldns_status status = ldns_wire2pkt(&answer.packet, wire, size);
		if (status != LDNS_STATUS_OK) {
			answer.packet = NULL;
			answer.malformed = true;
			error = status == LDNS_STATUS_MEM_ERR ? -ENOMEM : 0;
		}
	}
	if (error != 0) {
		judge_deinit(&answer);
		return error;
	}
	*out = answer;
	return 0;
}

void judge_deinit(struct judge_answer *answer)
{
	if (answer->packet != NULL)
		ldns_pkt_free(answer->packet);
	free(answer->addresses);
	free(answer->hints);
	free(answer->targets);
	free(answer->pins);
	*answer = (struct judge_answer){.packet = NULL};
}

static uint8_t *put_param(uint8_t *at, uint16_t key, const uint8_t *value, size_t length)
{
	const uint8_t head[4] = {(uint8_t)(key >> 8), (uint8_t)key, (uint8_t)(length >> 8),
				 (uint8_t)length};

	memcpy(at, head, sizeof(head));
	if (length > 0)
		memcpy(at + sizeof(head), value, length);
	return at + sizeof(head) + length;
}

/* Copies parameters without `ech`; returns the new length. OUT has room for all of them. */
static size_t params_without_ech(struct reader params, uint8_t *out)
{
	uint8_t *at = out;

	while (reader_left(&params) > 0) {
		uint16_t key = reader_u16(&params);
		struct reader value = reader_sub(&params, reader_u16(&params));
		if (params.failed)
			break;
		size_t length = reader_left(&value);
		if (key == SVC_ECH)
			continue;
		if (key != SVC_MANDATORY) {
			at = put_param(at, key, value.at, length);
			continue;
		}
		uint8_t *head = at;
		at += 4;
		while (reader_left(&value) >= 2) {
			uint16_t mandatory = reader_u16(&value);
			if (mandatory == SVC_ECH)
				continue;
			*at++ = (uint8_t)(mandatory >> 8);
			*at++ = (uint8_t)mandatory;
		}
		/* An empty list is not legal: then there is no `mandatory` any more. */
		at = at == head + 4 ? head
				    : put_param(head, key, head + 4, (size_t)(at - head - 4));
	}
	return (size_t)(at - out);
}

/* Rewrites one SVCB or HTTPS record; *CHANGED when it had `ech`. */
static int strip_record(ldns_rr *rr, bool *changed)
{
	if (ldns_rr_rd_count(rr) != 3)
		return 0;
	const ldns_rdf *old = ldns_rr_rdf(rr, 2);
	size_t size = ldns_rdf_size(old);
	uint8_t *bytes = malloc(size == 0 ? 1 : size);

	if (bytes == NULL)
		return -ENOMEM;
	size_t length = params_without_ech(reader_init(ldns_rdf_data(old), size), bytes);
	int error = 0;
	if (length == 0 && size > 0) {
		ldns_rdf_deep_free(ldns_rr_pop_rdf(rr));
		*changed = true;
	} else if (length != size) {
		ldns_rdf *new = ldns_rdf_new_frm_data(ldns_rdf_get_type(old), length, bytes);
		if (new == NULL) {
			error = -ENOMEM;
		} else {
			ldns_rdf_deep_free(ldns_rr_set_rdf(rr, new, 2));
			*changed = true;
		}
	}
	free(bytes);
	return error;
}

static bool is_service(ldns_rr_type type)
{
	return type == LDNS_RR_TYPE_SVCB || type == LDNS_RR_TYPE_HTTPS;
}

static bool signs_service(const ldns_rr *rr)
{
	return ldns_rr_get_type(rr) == LDNS_RR_TYPE_RRSIG && ldns_rr_rd_count(rr) > 0 &&
	       is_service(ldns_rdf2rr_type(ldns_rr_rrsig_typecovered(rr)));
}

int judge_strip_ech(struct judge_answer *answer)
{
	ldns_rr_list *list = ldns_pkt_answer(answer->packet);
	bool changed = false;
	int error = 0;

	for (size_t i = 0; error == 0 && i < ldns_rr_list_rr_count(list); i++)
		if (is_service(ldns_rr_get_type(ldns_rr_list_rr(list, i))))
			error = strip_record(ldns_rr_list_rr(list, i), &changed);
	if (error != 0 || !changed)
		return error;

	/* Signatures over a changed set would be bogus: out with them, in place. */
	size_t kept = 0, count = ldns_rr_list_rr_count(list);
	for (size_t i = 0; i < count; i++) {
		ldns_rr *rr = ldns_rr_list_rr(list, i);
		if (signs_service(rr))
			ldns_rr_free(rr);
		else
			ldns_rr_list_set_rr(list, rr, kept++);
	}
	ldns_rr_list_set_rr_count(list, kept);
	ldns_pkt_set_ancount(answer->packet, (uint16_t)kept);
	answer->has_ech = false;
	return 0;
}

static bool is_proof(ldns_rr_type type)
{
	return type == LDNS_RR_TYPE_RRSIG || type == LDNS_RR_TYPE_NSEC ||
	       type == LDNS_RR_TYPE_NSEC3;
}

ldns_rr_list *judge_answer_section(const struct judge_answer *answer, uint16_t type, bool dnssec_ok)
{
	const ldns_rr_list *all = ldns_pkt_answer(answer->packet);
	ldns_rr_list *out = ldns_rr_list_new();

	for (size_t i = 0; out != NULL && i < ldns_rr_list_rr_count(all); i++) {
		ldns_rr *rr = ldns_rr_list_rr(all, i);
		ldns_rr_type of = ldns_rr_get_type(rr);
		if ((dnssec_ok || !is_proof(of) || of == (ldns_rr_type)type) &&
		    !ldns_rr_list_push_rr(out, rr)) {
			ldns_rr_list_free(out);
			out = NULL;
		}
	}
	return out;
}

ldns_rr_list *judge_authority_section(const struct judge_answer *answer, bool dnssec_ok)
{
	const ldns_rr_list *all = ldns_pkt_authority(answer->packet);
	ldns_rr_list *out = ldns_rr_list_new();

	for (size_t i = 0; out != NULL && i < ldns_rr_list_rr_count(all); i++) {
		ldns_rr *rr = ldns_rr_list_rr(all, i);
		ldns_rr_type of = ldns_rr_get_type(rr);
		bool proof = is_proof(of);
		if (of == LDNS_RR_TYPE_RRSIG) {
			ldns_rr_type covered = ldns_rdf2rr_type(ldns_rr_rrsig_typecovered(rr));
			proof = covered == LDNS_RR_TYPE_SOA || is_proof(covered);
		}
		if ((of == LDNS_RR_TYPE_SOA || (dnssec_ok && proof)) &&
		    !ldns_rr_list_push_rr(out, rr)) {
			ldns_rr_list_free(out);
			out = NULL;
		}
	}
	return out;
}
