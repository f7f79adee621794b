/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/query.h"

#include <stdio.h>
#include <string.h>

#include "base/reader.h"

/* Header bits, RFC 1035 section 4.1.1 and RFC 4035 section 3.2. */
enum { FLAG_QR = 0x8000, FLAG_RD = 0x0100, FLAG_AD = 0x0020, FLAG_CD = 0x0010 };
enum { OPT_DO = 0x8000 };

void query_skip_name(struct reader *reader)
{
	for (;;) {
		uint8_t length = reader_u8(reader);
		if (reader->failed || length == 0)
			return;
		if (length >= 0xc0) {
			reader_u8(reader);
			return;
		}
		if (length > NAME_LABEL_MAX) {
			reader->failed = true;
			return;
		}
		reader_bytes(reader, length);
	}
}

static bool read_question(struct reader *reader, struct query_message *out)
{
	const uint8_t *start = reader->at;
	size_t used;

	out->name_error = name_from_wire(start, reader_left(reader), &out->name, &used);
	if (out->name_error != NAME_OK && out->name_error != NAME_BAD_BYTE)
		return false;
	reader_bytes(reader, used);
	out->type = reader_u16(reader);
	out->class = reader_u16(reader);
	if (reader->failed)
		return false;
	out->question_length = (uint16_t)(used + 4);
	memcpy(out->question, start, out->question_length);
	return true;
}

/* One record of the additional section. An OPT fills the EDNS fields; false when it is broken. */
static bool read_additional(struct reader *reader, struct query_message *out, uint8_t *version)
{
	bool root = reader_left(reader) > 0 && *reader->at == 0;

	query_skip_name(reader);
	uint16_t type = reader_u16(reader);
	uint16_t class = reader_u16(reader);
	uint32_t ttl = reader_u32(reader);
	struct reader options = reader_sub(reader, reader_u16(reader));
	if (reader->failed)
		return false;
	if (type != QUERY_TYPE_OPT)
		return true;
	if (!root || out->edns)
		return false;
	while (reader_left(&options) > 0 && !options.failed) {
		reader_u16(&options);
		reader_bytes(&options, reader_u16(&options));
	}
	if (options.failed)
		return false;
	out->edns = true;
	out->dnssec_ok = (ttl & OPT_DO) != 0;
	*version = (uint8_t)(ttl >> 16);
	out->udp_size = class < QUERY_UDP_SIZE_MIN   ? QUERY_UDP_SIZE_MIN
			: class > QUERY_UDP_SIZE_MAX ? QUERY_UDP_SIZE_MAX
						     : class;
	return true;
}

enum query_result query_read(const uint8_t *bytes, size_t size, struct query_message *out)
{
	struct reader reader = reader_init(bytes, size);
	uint8_t version = 0;

	memset(out, 0, offsetof(struct query_message, question));
	out->udp_size = QUERY_UDP_SIZE_MIN;
	out->id = reader_u16(&reader);
	uint16_t flags = reader_u16(&reader);
	uint16_t questions = reader_u16(&reader);
	uint16_t answers = reader_u16(&reader);
	uint16_t authorities = reader_u16(&reader);
	uint16_t additionals = reader_u16(&reader);
	if (reader.failed || (flags & FLAG_QR) != 0)
		return QUERY_DROP;
	out->opcode = (uint8_t)(flags >> 11 & 15);
	out->recursion_desired = (flags & FLAG_RD) != 0;
	out->authentic_data = (flags & FLAG_AD) != 0;
	out->checking_disabled = (flags & FLAG_CD) != 0;
	if (out->opcode != 0)
		return QUERY_NOTIMP;
	if (questions != 1 || answers != 0 || authorities != 0 || additionals > QUERY_RECORDS_MAX ||
	    !read_question(&reader, out))
		return QUERY_FORMERR;
	for (uint16_t i = 0; i < additionals; i++)
		if (!read_additional(&reader, out, &version))
			return QUERY_FORMERR;
	if (reader_left(&reader) != 0)
		return QUERY_FORMERR;
	if (version != 0)
		return QUERY_BADVERS;
	if (out->class != QUERY_CLASS_IN || !out->recursion_desired)
		return QUERY_REFUSED;
	return QUERY_OK;
}

void query_of_name(const struct name *name, uint16_t type, struct query_message *out)
{
	size_t used = name_to_wire(name, out->question);

	memset(out, 0, offsetof(struct query_message, question));
	out->recursion_desired = true;
	out->udp_size = QUERY_UDP_SIZE_MIN;
	out->type = type;
	out->class = QUERY_CLASS_IN;
	out->name = *name;
	out->question[used] = (uint8_t)(type >> 8);
	out->question[used + 1] = (uint8_t)type;
	out->question[used + 2] = 0;
	out->question[used + 3] = QUERY_CLASS_IN;
	out->question_length = (uint16_t)(used + 4);
}

void query_text(const struct query_message *message, char text[QUERY_TEXT_SIZE])
{
	const uint8_t *at = message->question;
	size_t length = 0;

	while (*at != 0) {
		for (uint8_t left = *at++; left > 0; left--, at++) {
			uint8_t byte = *at >= 'A' && *at <= 'Z' ? (uint8_t)(*at - 'A' + 'a') : *at;
			bool plain = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
				     byte == '-' || byte == '_';
			if (plain)
				text[length++] = (char)byte;
			else
				length += (size_t)snprintf(text + length, 5, "\\%03u", byte);
		}
		text[length++] = '.';
	}
	if (length == 0)
		text[length++] = '.';
	text[length] = '\0';
}

struct name query_canonical_end(const struct query_message *message)
{
	size_t left = message->question_length - 4u;
	struct name end = {.length = 0};

	for (const uint8_t *at = message->question; left > 0; left -= *at + 1u, at += *at + 1u)
		if (name_from_wire(at, left, &end, NULL) == NAME_OK)
			break;
	return end;
}
