/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/stored.h"

#include <errno.h>
#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"

/* Where records begin in a message that answers the question of KEY. */
static size_t question_end(const struct stored_key *key)
{
	return QUERY_HEADER_SIZE + (key->length - 1u) + 2u;
}

void stored_key(const struct query_message *message, unsigned form, struct stored_key *out)
{
	/* Name and type stand next to each other in the question; lengths of labels are below 'A'. */
	size_t size = message->question_length - 2u;

	for (size_t i = 0; i + 2 < size; i++) {
		uint8_t byte = message->question[i];
		out->bytes[i] = byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte - 'A' + 'a') : byte;
	}
	out->bytes[size - 2] = (uint8_t)(message->type >> 8);
	out->bytes[size - 1] = (uint8_t)message->type;
	out->bytes[size] = (uint8_t)form;
	out->length = (uint16_t)(size + 1);
}

static bool push_all(ldns_pkt *packet, ldns_pkt_section section, const ldns_rr_list *list)
{
	bool good = true;

	for (size_t i = 0; good && i < ldns_rr_list_rr_count(list); i++) {
		ldns_rr *copy = ldns_rr_clone(ldns_rr_list_rr(list, i));
		good = copy != NULL && ldns_pkt_push_rr(packet, section, copy);
		if (!good)
			ldns_rr_free(copy);
	}
	return good;
}

static bool push_question(ldns_pkt *packet, const struct stored_key *key)
{
	uint8_t question[QUERY_QUESTION_MAX] = {0};
	size_t size = key->length - 1u + 2u, position = 0;
	ldns_rr *rr = NULL;

	memcpy(question, key->bytes, key->length - 1u);
	question[size - 1] = QUERY_CLASS_IN;
	if (ldns_wire2rr(&rr, question, size, &position, LDNS_SECTION_QUESTION) == LDNS_STATUS_OK &&
	    ldns_pkt_push_rr(packet, LDNS_SECTION_QUESTION, rr))
		return true;
	ldns_rr_free(rr);
	return false;
}

/* The message with the question of KEY and these records, names compressed. LDNS_FREE() it. */
static int encode(const struct stored_key *key, const ldns_rr_list *answer,
		  const ldns_rr_list *authority, uint8_t **wire, size_t *size)
{
	ldns_pkt *packet = ldns_pkt_new();
	int error = -ENOMEM;

	if (packet == NULL)
		return error;
	if (push_question(packet, key) && push_all(packet, LDNS_SECTION_ANSWER, answer) &&
	    push_all(packet, LDNS_SECTION_AUTHORITY, authority)) {
		ldns_status status = ldns_pkt2wire(wire, packet, size);
		if (status != LDNS_STATUS_OK)
			error = status == LDNS_STATUS_MEM_ERR ? -ENOMEM : -EMSGSIZE;
		else
			error = 0;
	}
	ldns_pkt_free(packet);
	return error;
}

/* Notes where the TTL of each of COUNT records stands, counted from START. */
static int find_ttls(const uint8_t *start, size_t size, size_t count, uint16_t *ttls)
{
	struct reader reader = reader_init(start, size);

	for (size_t i = 0; i < count; i++) {
		query_skip_name(&reader);
		reader_u32(&reader);
		ttls[i] = (uint16_t)(reader.at - start);
		reader_u32(&reader);
		reader_bytes(&reader, reader_u16(&reader));
		if (reader.failed)
			return -EMSGSIZE;
	}
	return reader_left(&reader) == 0 ? 0 : -EMSGSIZE;
}

/*
 * For how long the answer is one: as its shortest-lived record, of a negative answer the SOA among them
 * (RFC 2308 section 5); without a SOA that one is not kept.
 */
static uint32_t seconds_of(const struct judge_answer *answer)
{
	bool positive = answer->rcode == RCODE_NOERROR && answer->answered;

	if (answer->packet == NULL || (!positive && !answer->has_soa))
		return 0;
	return answer->ttl > STORED_SECONDS_MAX ? STORED_SECONDS_MAX : answer->ttl;
}

/* Copies COUNT elements of SIZE octets to *AT, and moves it behind them. */
static void *place(uint8_t **at, const void *from, size_t count, size_t size)
{
	void *to = *at;

	if (count > 0)
		memcpy(to, from, count * size);
	*at += count * size;
	return to;
}

/* A block with room for what ANSWER (NULL: nothing), KEY, and OCTETS of records or text need. */
static struct stored *allocate(const struct stored_key *key, const struct judge_answer *answer,
			       size_t ttls, size_t octets, uint8_t **tail)
{
	static const struct judge_answer nothing;

	if (answer == NULL)
		answer = &nothing;
	size_t size = sizeof(struct stored) + answer->pin_count * sizeof(*answer->pins) +
		      ttls * sizeof(uint16_t) +
		      (answer->address_count + answer->hint_count) * sizeof(struct address) +
		      answer->target_count * sizeof(struct name) + key->length + octets;
	struct stored *stored = malloc(size);
	if (stored == NULL)
		return NULL;
	*stored = (struct stored){
		.references = 1, .size = (uint32_t)size, .ede = REPLY_EDE_NONE, .ede_text = ""};
	uint8_t *at = (uint8_t *)(stored + 1);
	/* In order of alignment: the rest are octets. */
	stored->pins = place(&at, answer->pins, answer->pin_count, sizeof(*answer->pins));
	stored->ttls = (const uint16_t *)(const void *)at;
	at += ttls * sizeof(uint16_t);
	stored->addresses =
		place(&at, answer->addresses, answer->address_count, sizeof(struct address));
	stored->hints = place(&at, answer->hints, answer->hint_count, sizeof(struct address));
	stored->targets = place(&at, answer->targets, answer->target_count, sizeof(struct name));
	stored->key = place(&at, key->bytes, key->length, 1);
	stored->key_length = key->length;
	*tail = at;
	return stored;
}

static void set_life(struct stored *stored, uint32_t seconds, uint64_t now)
{
	stored->seconds = seconds;
	stored->born = now;
	stored->expiry = now + (uint64_t)seconds * 1000;
}

static void fill(struct stored *stored, const struct judge_answer *answer, bool secure,
		 uint64_t now)
{
	stored->malformed = answer->malformed;
	stored->readable = answer->packet != NULL;
	stored->secure = secure;
	stored->rcode = answer->rcode;
	stored->address_count = (uint16_t)answer->address_count;
	stored->hint_count = (uint16_t)answer->hint_count;
	stored->target_count = (uint16_t)answer->target_count;
	stored->pin_count = (uint16_t)answer->pin_count;
	set_life(stored, seconds_of(answer), now);
}

/* WIRE: a whole message, or NULL when there are no records to hand out. */
static int build(const struct stored_key *key, const struct judge_answer *answer, bool secure,
		 uint64_t now, const uint8_t *wire, size_t size, uint16_t answers,
		 uint16_t authorities, struct stored **out)
{
	size_t start = question_end(key), count = (size_t)answers + authorities;
	size_t octets = wire == NULL ? 0 : size - start;
	uint8_t *tail;

	if (wire != NULL && (size < start || size > REPLY_SIZE_MAX))
		return -EMSGSIZE;
	struct stored *stored = allocate(key, answer, count, octets, &tail);
	if (stored == NULL)
		return -ENOMEM;
	fill(stored, answer, secure, now);
	if (octets > 0) {
		memcpy(tail, wire + start, octets);
		int error = find_ttls(tail, octets, count, (uint16_t *)(uintptr_t)stored->ttls);
		if (error != 0) {
			free(stored);
			return error;
		}
	}
	stored->records = tail;
	stored->records_size = (uint16_t)octets;
	stored->answers = answers;
	stored->authorities = authorities;
	stored->ttl_count = (uint16_t)count;
	*out = stored;
	return 0;
}

int stored_new(const struct stored_key *key, const struct judge_answer *answer, bool secure,
	       uint64_t now, struct stored **out)
{
	uint16_t type = (uint16_t)(key->bytes[key->length - 3] << 8 | key->bytes[key->length - 2]);
	bool dnssec = (key->bytes[key->length - 1] & STORED_DNSSEC) != 0;

	/* The most that a message can hold of each; more is no message of libunbound. */
	if (answer->address_count > UINT16_MAX || answer->hint_count > UINT16_MAX ||
	    answer->target_count > UINT16_MAX || answer->pin_count > UINT16_MAX)
		return -EMSGSIZE;
	if (answer->packet == NULL)
		return build(key, answer, secure, now, NULL, 0, 0, 0, out);

	ldns_rr_list *records = judge_answer_section(answer, type, dnssec);
	ldns_rr_list *authority = judge_authority_section(answer, dnssec);
	uint8_t *wire = NULL;
	size_t size = 0;
	int error = records == NULL || authority == NULL
			    ? -ENOMEM
			    : encode(key, records, authority, &wire, &size);

	if (error == 0)
		error = build(key, answer, secure, now, wire, size,
			      (uint16_t)ldns_rr_list_rr_count(records),
			      (uint16_t)ldns_rr_list_rr_count(authority), out);
	LDNS_FREE(wire);
	ldns_rr_list_free(records);
	ldns_rr_list_free(authority);
	return error;
}

struct stored *stored_new_failure(const struct stored_key *key, enum reply_ede ede,
				  const char *text, uint32_t seconds, uint64_t now)
{
	size_t length = strnlen(text, REPLY_EDE_TEXT_MAX);
	uint8_t *tail;
	struct stored *stored = allocate(key, NULL, 0, length + 1, &tail);

	if (stored == NULL)
		return NULL;
	memcpy(tail, text, length);
	tail[length] = '\0';
	stored->ede = ede;
	stored->ede_text = (const char *)tail;
	stored->failure = true;
	set_life(stored, seconds, now);
	return stored;
}

struct stored *stored_ref(struct stored *stored)
{
	stored->references++;
	return stored;
}

void stored_unref(struct stored *stored)
{
	if (stored != NULL && --stored->references == 0)
		free(stored);
}

const struct stored_verdict *stored_verdict(const struct stored *stored, uint64_t generation,
					    policy_index policy, bool root)
{
	const struct stored_verdict *verdict = &stored->verdicts[policy % STORED_VERDICTS];

	/* An empty place has generation 0 and would allow. */
	if (generation == 0 || verdict->generation != generation || verdict->policy != policy ||
	    verdict->root != root)
		return NULL;
	return verdict;
}

void stored_remember(struct stored *stored, const struct stored_verdict *verdict)
{
	stored->verdicts[verdict->policy % STORED_VERDICTS] = *verdict;
}
