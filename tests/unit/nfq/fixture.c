/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/unit/nfq/fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "inspect/initial.h"
#include "inspect/packet.h"
#include "nfq/audit.h"
#include "notice.h"
#include "secrets/secrets.h"

#define PACKETS_MAX 200000

struct engine engine;
struct audit_record audits[AUDITS_MAX];
unsigned audit_count;
bool audit_blocks;
struct gate gate;
uint64_t now;

static uint8_t endings[PACKETS_MAX];
static uint32_t orders[PACKETS_MAX];
static uint32_t packets, ended;

static void sink_verdict(struct sink *sink, uint32_t id, enum sink_action action,
			 uint32_t mark_before, enum mark_state state)
{
	(void)sink;
	(void)mark_before;
	assert_in_range(id, 1, packets);
	/* Exactly one end for each packet. */
	assert_int_equal(endings[id], HELD);
	endings[id] = (uint8_t)(action == SINK_DROP     ? DROPPED
				: state == MARK_ALLOWED ? ALLOWED
				: state == MARK_WATCHED ? WATCHED
							: REFUSED);
	if (action == SINK_ACCEPT)
		assert_in_range(state, MARK_ALLOWED, MARK_REFUSED);
	orders[id] = ++ended;
}

static int sink_audit(struct sink *sink, const struct audit_record *record)
{
	(void)sink;
	if (audit_blocks)
		return -EAGAIN;
	if (audit_count < AUDITS_MAX)
		audits[audit_count] = *record;
	audit_count++;
	return 0;
}

static const char *interface_name(uint32_t index, uint64_t at)
{
	(void)at;
	return index == 1 ? "lo" : index == 7 ? "tap0" : NULL;
}

static uint64_t cgroup_of(const struct flow_key *key)
{
	return key->protocol == IPPROTO_TCP ? engine.cgroup : 0;
}

struct asked hook_asked[ASKED_MAX];
unsigned asked_count;

static void copy(char *out, size_t size, const char *text, size_t length)
{
	snprintf(out, size, "%.*s", text == NULL ? 0 : (int)length, text == NULL ? "" : text);
}

static int ask(policy_index policy, const struct hook_question *question,
	       const struct client_key *client, struct flow *flow, uint64_t at, uint64_t *id)
{
	struct asked *entry = &hook_asked[asked_count];

	(void)policy;
	(void)client;
	assert_int_equal(at, now);
	if (engine.ask_error != 0)
		return engine.ask_error;
	assert_true(asked_count < ASKED_MAX);
	*entry = (struct asked){.id = 1000 + asked_count,
				.flow = flow,
				.stage = question->stage,
				.decision = question->verdict->outcome};
	copy(entry->name, sizeof(entry->name), question->name, 63);
	copy(entry->target, sizeof(entry->target), question->target, question->target_length);
	copy(entry->method, sizeof(entry->method), question->method, question->method_length);
	copy(entry->scheme, sizeof(entry->scheme), question->scheme, 7);
	copy(entry->client, sizeof(entry->client), question->client, 63);
	if (question->pin_count > 0)
		copy(entry->resolved_from, sizeof(entry->resolved_from),
		     question->pins[0].name.text, 63);
	*id = entry->id;
	asked_count++;
	return 0;
}

void hook_says(unsigned number, enum hook_answer answer)
{
	struct hook_reply reply = {.id = hook_asked[number].id, .answer = answer};

	assert_true(number < asked_count);
	if (answer == HOOK_ERROR)
		reply.problem = "the hook did not answer in time";
	else
		strcpy(reply.reason, "because");
	judge_hooked(&gate, hook_asked[number].flow, hook_asked[number].id, &reply, now);
	assert_int_equal(endings_missing(), 0);
}

static struct initial *initial; /* for all tests of a program */
static struct sink sink = {.verdict = sink_verdict, .audit = sink_audit};

/* The real ones, as settled as in the gate. */
static struct secrets *shapes(void)
{
	static struct secrets *secrets;
	const char *problem;

	if (secrets == NULL) {
		assert_int_equal(secrets_new(&secrets, &problem), 0);
		assert_int_equal(secrets_settle(secrets), 0);
	}
	return secrets;
}

int fixture_reset(void **state)
{
	static const uint8_t seed[16] = "a fixed seed";

	(void)state;
	memset(endings, 0, sizeof(endings));
	memset(orders, 0, sizeof(orders));
	packets = ended = audit_count = asked_count = 0;
	audit_blocks = false;
	engine = (struct engine){.reads = true, .searches = true};
	now = 1000000;
	if (initial == NULL)
		initial = initial_new();
	assert_non_null(initial);
	gate = (struct gate){.initial = initial,
			     .sink = &sink,
			     .secrets = shapes(),
			     .interface_name = interface_name,
			     .cgroup_of = cgroup_of,
			     .ask = ask,
			     .generation = 1};
	flow_init(seed);
	audit_init(seed);
	return 0;
}

enum ending ending_of(uint32_t id)
{
	return (enum ending)endings[id];
}

unsigned ending_order(uint32_t id)
{
	return orders[id];
}

unsigned endings_missing(void)
{
	return packets - ended - hold_count();
}

/* Packets */

static size_t put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return 2;
}

static size_t put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
	return 4;
}

static size_t put_ip(uint8_t *at, const struct spec *spec, uint8_t protocol, size_t payload)
{
	if (spec->ipv6) {
		static const uint8_t from[16] = {0x20, 1, 0xd, 0xb8, [15] = 2};
		static const uint8_t to[16] = {0x20, 1, 0xd, 0xb8, [15] = 1};
		put32(at, 6u << 28);
		put16(at + 4, (unsigned)payload);
		at[6] = protocol;
		at[7] = 64;
		memcpy(at + 8, from, 16);
		memcpy(at + 24, to, 16);
		return 40;
	}
	at[0] = 0x45;
	put16(at + 2, (unsigned)(20 + payload));
	put16(at + 6, spec->fragment ? 0x2000 : 0);
	at[8] = 64;
	at[9] = protocol;
	put32(at + 12, 0x0a000002);
	put32(at + 16, 0xc0000201);
	return 20;
}

/* The packet of SPEC from its network header on, good until the next one; its length. */
static size_t build(const struct spec *spec, uint8_t **out)
{
	static uint8_t bytes[70000];
	uint8_t protocol = spec->protocol == 0 ? IPPROTO_TCP : spec->protocol;
	size_t header = protocol == IPPROTO_TCP ? 20 : 8;
	size_t text = spec->length != 0    ? spec->length
		      : spec->text == NULL ? 0
					   : strlen(spec->text);
	size_t at;

	assert_true(header + text < 65500);
	memset(bytes, 0, 100);
	at = put_ip(bytes, spec, protocol, header + text);
	if (protocol == IPPROTO_TCP) {
		put16(bytes + at, spec->port == 0 ? 40000 : spec->port);
		put16(bytes + at + 2, 80);
		put32(bytes + at + 4, spec->sequence);
		bytes[at + 12] = 5 << 4;
		bytes[at + 13] = spec->flags == 0 ? PACKET_ACK : spec->flags;
		put16(bytes + at + 14, 65535);
	} else if (protocol == IPPROTO_UDP) {
		put16(bytes + at, spec->port == 0 ? 40000 : spec->port);
		put16(bytes + at + 2, 443);
		put16(bytes + at + 4, (unsigned)(8 + text));
	} else {
		bytes[at] = 8;
	}
	at += header;
	if (text > 0)
		memcpy(bytes + at, spec->text, text);
	*out = bytes;
	return at + text;
}

uint32_t send_spec(const struct spec *spec)
{
	uint8_t *bytes;
	size_t length = build(spec, &bytes);
	uint32_t mark = spec->mark;

	assert_true(packets + 1 < PACKETS_MAX);
	if (mark == 0 && !spec->unmarked && (spec->flags & PACKET_SYN) == 0)
		mark = 0x00020000;
	if (spec->again)
		mark |= 0x00080000;
	struct arrival arrival = {.bytes = bytes,
				  .length = length,
				  .whole = !spec->cut,
				  .merged = spec->merged,
				  .id = ++packets,
				  .mark = mark,
				  .interface = spec->interface,
				  .mark_state = mark_state(0x00ff0000, mark),
				  .again = mark_again(0x00ff0000, mark)};
	judge_packet(&gate, &arrival, now);
	assert_int_equal(endings_missing(), 0);
	return packets;
}

void notice_spec(const struct spec *spec)
{
	uint8_t *bytes;
	size_t length = build(spec, &bytes);
	uint32_t before = ended;
	struct arrival notice = {.bytes = bytes,
				 .length = length < NOTICE_SIZE ? length : NOTICE_SIZE,
				 .interface = spec->interface,
				 .uid_known = spec->uid_known,
				 .uid = spec->uid};

	judge_notice(&gate, &notice, now);
	/* There is no packet to end. */
	assert_int_equal(ended, before);
	assert_int_equal(endings_missing(), 0);
}

/* The engine */

void policy_client(const struct policy_image *image, const struct client_origin *origin,
		   struct client_match *out)
{
	(void)image;
	engine.origin = *origin;
	snprintf(engine.origin_interface, sizeof(engine.origin_interface), "%s",
		 origin->interface == NULL ? "-" : origin->interface);
	*out = (struct client_match){.key = client_key_of_address(&origin->source),
				     .name = origin->own && origin->cgroup == 7 ? "job"
					     : origin->own                      ? "host"
										: "",
				     .governed = !engine.ignores,
				     .unknown = engine.tells_cgroups && origin->own &&
						origin->cgroup == 0};
}

bool policy_tells_cgroups(const struct policy_image *image)
{
	(void)image;
	return engine.tells_cgroups;
}

static void note_pins(const struct connection *connection)
{
	size_t used = 0;

	engine.last_pins[0] = '\0';
	for (size_t i = 0; i < connection->pin_count; i++)
		used += (size_t)snprintf(engine.last_pins + used, sizeof(engine.last_pins) - used,
					 "%s ", connection->pins[i].name.text);
}

struct verdict policy_connect(const struct policy_image *image, const struct subject *subject,
			      const struct connection *connection, uint64_t at)
{
	(void)image;
	(void)subject;
	(void)at;
	engine.connects++;
	note_pins(connection);
	struct verdict verdict = engine.connect;
	if (engine.audit_mode)
		verdict.enforced = false;
	verdict.asks_hook = engine.asks_connect;
	return verdict;
}

struct verdict policy_request(const struct policy_image *image, const struct subject *subject,
			      const struct request *request, uint64_t at)
{
	(void)image;
	(void)subject;
	(void)at;
	engine.requests++;
	engine.last = *request;
	note_pins(&request->connection);
	struct verdict verdict = {.outcome = OUTCOME_DENY, .enforced = !engine.audit_mode};

	if (engine.request.outcome == OUTCOME_DENY)
		return engine.request;
	if (request->malformed)
		verdict.reason = REASON_MALFORMED;
	else if (request->kind == REQUEST_OTHER && engine.reads_quic)
		verdict.reason = REASON_SCHEME;
	else if (strncmp(request->host.name.text, "bad", 3) == 0)
		verdict.reason = REASON_NAME_MISMATCH;
	else if (request->secret || strncmp(request->host.name.text, "evil", 4) == 0)
		verdict.reason = REASON_SECRET_URL;
	else
		verdict = (struct verdict){.outcome = OUTCOME_ALLOW};
	verdict.asks_hook = engine.asks_request && verdict.reason != REASON_MALFORMED &&
			    verdict.reason != REASON_NAME_MISMATCH;
	return verdict;
}

struct verdict policy_hooked(const struct policy_image *image, policy_index policy,
			     const struct verdict *verdict, enum hook_answer answer)
{
	struct verdict result = *verdict;

	(void)image;
	(void)policy;
	result.asks_hook = false;
	if (!verdict->asks_hook || answer == HOOK_KEEP)
		return result;
	if (answer == HOOK_ALLOW)
		return (struct verdict){.outcome = OUTCOME_ALLOW};
	return (struct verdict){.outcome = OUTCOME_DENY,
				.reason = answer == HOOK_DENY ? REASON_CUSTOM : REASON_POLICY_ERROR,
				.enforced = !engine.audit_mode};
}

bool policy_reads_first_bytes(const struct policy_image *image, const struct subject *subject,
			      const struct connection *connection, uint64_t at)
{
	(void)image;
	(void)subject;
	(void)at;
	return connection->protocol == IPPROTO_TCP
		       ? engine.reads
		       : connection->protocol == IPPROTO_UDP && engine.reads_quic;
}

bool policy_searches_secrets(const struct policy_image *image, policy_index policy)
{
	(void)image;
	(void)policy;
	return engine.searches;
}

/* Names alone; the real one is the engine's. */
void host_parse(const char *text, size_t length, struct host *out)
{
	*out = (struct host){.kind = HOST_NAME};
	if (name_from_text(text, length, &out->name) != NAME_OK)
		out->kind = HOST_MALFORMED;
}

size_t pins_find(const struct pins_table *table, const struct client_key *client,
		 const struct address *address, struct pin *out, size_t max)
{
	size_t count = engine.pin_count < max ? engine.pin_count : max;

	(void)table;
	for (size_t i = 0; i < count; i++) {
		out[i] = engine.pins[i];
		out[i].client = *client;
		out[i].address = *address;
	}
	return count;
}
