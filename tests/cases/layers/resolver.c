/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The resolver's judging half with the real engine: a row becomes a query off the wire, and for the
 * stage `answer` a message as the recursion would deliver it. The audit record is the verdict.
 */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "cli/explain.h"
#include "resolver/query.h"
#include "resolver/respond.h"
#include "tests/cases/layers/row.h"

/* NAME as a query's question, whatever its octets are; 0 when it is none. */
static size_t put_question(const char *name, uint16_t type, uint8_t *out)
{
	static const uint8_t head[12] = {0, 1, 1, 0, 0, 1};
	size_t used = sizeof(head), length = strlen(name);

	memcpy(out, head, sizeof(head));
	for (size_t at = 0; at < length;) {
		size_t label = strcspn(name + at, ".");
		if (label == 0 && strcmp(name, ".") == 0)
			break;
		if (label == 0 || label > 63 || used + label + 6 > 12 + 255 + 4)
			return 0;
		out[used++] = (uint8_t)label;
		memcpy(out + used, name + at, label);
		used += label;
		at += label + 1;
	}
	memcpy(out + used, (uint8_t[]){0, (uint8_t)(type >> 8), (uint8_t)type, 0, 1}, 5);
	return used + 5;
}

static void read_query(const char *name, uint16_t type, struct query *out)
{
	uint8_t bytes[512];
	size_t size;

	for (const char *c = name; *c != '\0'; c++)
		if ((unsigned char)*c > 0x7e) /* a client asks for the A-label */
			exit(ROW_UNSEEN);
	size = put_question(name, type, bytes);
	/* a message that cannot be read is no question: FORMERR */
	if (size == 0 || query_read(bytes, size, &out->message) != QUERY_OK)
		exit(ROW_UNSEEN);
	out->path = (struct path){.protocol = 0};
	out->match = (struct client_match){.policy = POLICY_DEFAULT, .governed = true, .name = ""};
}

static void push(ldns_pkt *packet, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void push(ldns_pkt *packet, const char *format, ...)
{
	char text[2048];
	va_list arguments;
	ldns_rr *rr;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (ldns_rr_new_frm_str(&rr, text, 60, NULL, NULL) != LDNS_STATUS_OK)
		exit(ROW_UNSEEN); /* no record can say that */
	ldns_pkt_push_rr(packet, LDNS_SECTION_ANSWER, rr);
}

/* The aliases in a row, addresses at the last of them, and hints. */
static void make_answer(const struct row *row, uint16_t type, struct judge_answer *out)
{
	ldns_pkt *packet = ldns_pkt_new();
	const char *owner = row->words[0];
	char text[ADDRESS_TEXT_SIZE];
	struct address address;
	uint8_t *wire;
	size_t size;

	ldns_pkt_set_qr(packet, true);
	for (size_t i = 0; i < row->cname_count; i++) {
		push(packet, "%s. 60 IN CNAME %s.", owner, row->cnames[i]);
		owner = row->cnames[i];
	}
	for (size_t i = 1; i < row->word_count; i++) {
		if (address_parse(row->words[i], strlen(row->words[i]), &address) < 0)
			exit(2);
		push(packet, "%s. 60 IN %s %s", owner,
		     address.family == ADDRESS_IPV4 ? "A" : "AAAA", row->words[i]);
	}
	for (size_t i = 0; i < row->hint_count; i++)
		push(packet, "%s. 60 IN HTTPS %zu . ipv%dhint=%s", owner, i + 1,
		     row->hints[i].family == ADDRESS_IPV4 ? 4 : 6,
		     address_format(&row->hints[i], text));
	if (ldns_pkt2wire(&wire, packet, &size) != LDNS_STATUS_OK ||
	    judge_read(wire, size, type, out) < 0)
		abort();
	LDNS_FREE(wire);
	ldns_pkt_free(packet);
}

int main(int argc, char **argv)
{
	static const uint8_t seed[16] = "a fixed seed";
	static const struct pins_limits limits = {.capacity = 1024, .per_client = 1024};
	static struct respond respond;
	struct serve_policy policy = {.mapping = NULL};
	static struct judge_answer answer;
	struct stored_key key;
	static struct stored *stored;
	struct local_answer local;
	struct message message;
	struct query query = {.next = NULL};
	uint16_t type = 1;
	int sockets[2], writable, readable;
	static struct row row;

	row_read(argc, argv, &row);
	bool answers = strcmp(row.stage, "answer") == 0;
	if ((!answers && strcmp(row.stage, "resolve") != 0) || row.word_count == 0)
		return ROW_UNSEEN;
	if (!answers && row.word_count == 2 && !rrtype_parse(row.words[1], &type))
		return 2;
	if (answers && row.hint_count > 0)
		type = QUERY_TYPE_HTTPS;
	read_query(row.words[0], type, &query);

	policy.image = row.image;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0 ||
	    pins_create(&limits, seed, &writable, &readable) < 0 ||
	    pins_writer_open(writable, &respond.pins) < 0)
		abort();
	respond.policy = &policy;
	respond.audit = audit_new(sockets[0], seed);
	respond.aliases = aliases_new(seed);
	respond.cache = cache_new(seed, 65536);
	if (respond.aliases == NULL || respond.cache == NULL)
		abort();
	if (!answers) {
		respond_permits(&respond, &query);
	} else {
		/* what is answered here never comes from outside; a bad name is not asked for */
		local.kind = LOCAL_NONE;
		if (query.message.name_error == NAME_OK)
			local_addresses(&query.message.name, type, row.image, &local);
		if (query.message.name_error != NAME_OK || local.kind != LOCAL_NONE)
			return ROW_UNSEEN;
		make_answer(&row, type, &answer);
		stored_key(&query.message, 0, &key);
		if (stored_new(&key, &answer, false, 0, &stored) < 0)
			abort();
		respond_stored(&respond, &query, stored, 0);
	}
	if (message_receive(sockets[1], &message, MSG_DONTWAIT) < 0)
		row_end(answers ? STAGE_ANSWER : STAGE_RESOLVE, OUTCOME_ALLOW, REASON_NONE);
	if (message.type != MESSAGE_AUDIT)
		abort();
	row_end((enum stage)message.body.audit.stage, (enum outcome)message.body.audit.outcome,
		(enum reason)message.body.audit.reason);
}
