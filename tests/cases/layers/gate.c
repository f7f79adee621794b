/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The gate's judging half with the real engine and a real pin table: a row becomes packets, and what
 * became of them is the verdict.
 */

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "cli/url.h"
#include "inspect/packet.h"
#include "nfq/audit.h"
#include "nfq/flow.h"
#include "nfq/gate.h"
#include "nfq/judge.h"
#include "rules/source.h"
#include "secrets/secrets.h"
#include "tests/cases/layers/row.h"

#define NOW        1000000u
#define ISN        1000u
#define MASK       0x00ff0000u
#define WATCHED    0x00020000u
#define BYTES_MAX  (1u << 20)
#define PACKET_MAX 60000u

/* What the sink was told. */
static struct audit_record denial;
static bool denied, held, allowed;
static struct gate gate;

static void sink_verdict(struct sink *sink, uint32_t id, enum sink_action action,
			 uint32_t mark_before, enum mark_state state)
{
	(void)sink;
	(void)id;
	(void)action;
	(void)mark_before;
	held = false;
	allowed = state == MARK_ALLOWED;
}

static int sink_audit(struct sink *sink, const struct audit_record *record)
{
	(void)sink;
	if (record->outcome == OUTCOME_DENY && !denied) {
		denied = true;
		denial = *record;
	}
	return 0;
}

static const char *interface_name(uint32_t index, uint64_t now)
{
	(void)index;
	(void)now;
	return "row0";
}

static int ask(policy_index policy, const struct hook_question *question,
	       const struct client_key *client, struct flow *flow, uint64_t now, uint64_t *id)
{
	(void)policy;
	(void)question;
	(void)client;
	(void)flow;
	(void)now;
	(void)id;
	abort();
}

static struct address source_for(const struct address *destination)
{
	struct address source = address_ipv4(10, 77, 0, 2);
	static const uint8_t six[16] = {0xfd, 0x77, [15] = 2};

	return destination->family == ADDRESS_IPV4 ? source : address_from_bytes(six, 16);
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value & 0xffff);
}

static size_t put_ip(uint8_t *at, const struct address *destination, uint8_t protocol,
		     size_t payload)
{
	struct address source = source_for(destination);

	if (destination->family == ADDRESS_IPV4) {
		at[0] = 0x45;
		put16(at + 2, (unsigned)(20 + payload));
		at[8] = 64;
		at[9] = protocol;
		memcpy(at + 12, source.bytes, 4);
		memcpy(at + 16, destination->bytes, 4);
		return 20;
	}
	put32(at, 6u << 28);
	put16(at + 4, (unsigned)payload);
	at[6] = protocol;
	at[7] = 64;
	memcpy(at + 8, source.bytes, 16);
	memcpy(at + 24, destination->bytes, 16);
	return 40;
}

/* A packet of the flow; a TCP one without text is its SYN. */
static void send_packet(const struct endpoint *to, uint8_t protocol, uint32_t sequence,
			const uint8_t *text, size_t length)
{
	static uint8_t bytes[PACKET_MAX + 100];
	static uint32_t id;
	size_t header = protocol == IPPROTO_TCP ? 20 : 8, at;
	bool begins = protocol != IPPROTO_TCP || length == 0;

	memset(bytes, 0, 100);
	at = put_ip(bytes, &to->address, protocol, header + length);
	put16(bytes + at, 40000);
	put16(bytes + at + 2, to->port);
	if (protocol == IPPROTO_TCP) {
		put32(bytes + at + 4, sequence);
		bytes[at + 12] = 5 << 4;
		bytes[at + 13] = length == 0 ? PACKET_SYN : PACKET_ACK;
		put16(bytes + at + 14, 65535);
	} else {
		put16(bytes + at + 4, (unsigned)(8 + length));
	}
	if (length > 0)
		memcpy(bytes + at + header, text, length);
	uint32_t mark = begins ? 0 : WATCHED;
	struct arrival arrival = {.bytes = bytes,
				  .length = at + header + length,
				  .whole = true,
				  .id = ++id,
				  .mark = mark,
				  .interface = 7,
				  .mark_state = mark_state(MASK, mark)};
	held = true;
	judge_packet(&gate, &arrival, NOW);
}

static void fill_pins(const struct row *row, const struct endpoint *to)
{
	static const struct pins_limits limits = {.capacity = 1024, .per_client = 1024};
	static const uint8_t seed[16] = "a fixed seed";
	const struct client_origin origin = {.source = source_for(&to->address),
					     .interface = "row0"};
	static struct pins_writer *writer;
	struct client_match client;
	struct pins_table *table;
	int writable, readable;

	if (pins_create(&limits, seed, &writable, &readable) < 0 ||
	    pins_writer_open(writable, &writer) < 0 || pins_map(readable, &table) < 0)
		abort();
	policy_client(row->image, &origin, &client);
	/* the configuration has a client of its own for this source */
	if (client.policy != POLICY_DEFAULT || !client.governed)
		exit(ROW_UNSEEN);
	for (size_t i = 0; i < row->pin_count; i++) {
		const struct row_pin *pin = &row->pins[i];
		const struct address *address =
			pin->address.family != ADDRESS_NONE ? &pin->address : &to->address;
		uint64_t expiry = pin->expired ? NOW - 1 : NOW + 60000;
		if (pins_put(writer, &client.key, &pin->name, address, expiry, NOW - 1000) < 0)
			abort();
	}
	gate.pins = table;
}

static void begin(const struct row *row, const struct endpoint *to)
{
	static const uint8_t seed[16] = "a fixed seed";
	static struct sink sink = {.verdict = sink_verdict, .audit = sink_audit};
	struct secrets *secrets;
	const char *problem;

	if (secrets_new(&secrets, &problem) < 0 || secrets_settle(secrets) < 0)
		abort();
	gate = (struct gate){.image = row->image,
			     .sink = &sink,
			     .secrets = secrets,
			     .interface_name = interface_name,
			     .ask = ask,
			     .generation = 1};
	flow_init(seed);
	audit_init(seed);
	fill_pins(row, to);
}

/* The verdict so far, when it is the last. */
static void end_if_denied(void)
{
	if (denied)
		row_end((enum stage)denial.stage, OUTCOME_DENY, (enum reason)denial.reason);
}

static void ask_connect(const struct row *row)
{
	struct endpoint to = {.port = 0};
	const char *slash = strchr(row->words[1], '/');
	bool udp = slash != NULL && strcmp(slash, "/udp") == 0;
	size_t length = strlen(row->words[0]);
	bool brackets = row->words[0][0] == '[';

	if (address_parse(row->words[0] + brackets, length - 2u * brackets, &to.address) < 0)
		exit(ROW_UNSEEN);
	to.port = (uint16_t)atoi(row->words[1]);
	begin(row, &to);
	send_packet(&to, udp ? IPPROTO_UDP : IPPROTO_TCP, ISN, (const uint8_t *)"x", udp);
	end_if_denied();
	row_end(STAGE_CONNECT, OUTCOME_ALLOW, REASON_NONE);
}

/* A flow whose first packet begins it; then the segments, as long as nothing is refused. */
struct stream_out {
	struct endpoint to;
	uint32_t sequence;
	enum stage stage;
};

static void open_flow(const struct row *row, struct stream_out *out)
{
	out->sequence = ISN + 1;
	begin(row, &out->to);
	send_packet(&out->to, IPPROTO_TCP, ISN, NULL, 0);
	end_if_denied();
	out->stage = allowed ? STAGE_CONNECT : STAGE_REQUEST;
}

static void send_segment(struct stream_out *out, const uint8_t *bytes, size_t length)
{
	for (size_t at = 0; at < length && out->stage == STAGE_REQUEST; at += PACKET_MAX) {
		size_t part = length - at < PACKET_MAX ? length - at : PACKET_MAX;
		send_packet(&out->to, IPPROTO_TCP, out->sequence, bytes + at, part);
		out->sequence += (uint32_t)part;
		end_if_denied();
	}
}

static void end_flow(const struct stream_out *out)
{
	row_end(out->stage, held ? OUTCOME_WAIT : OUTCOME_ALLOW, REASON_NONE);
}

static void ask_bytes(const struct row *row)
{
	static uint8_t bytes[BYTES_MAX];
	struct stream_out out = {.to = row->to};

	open_flow(row, &out);
	for (size_t i = 0; i < row->word_count; i++) {
		FILE *file = fopen(row->words[i], "re");
		if (file == NULL)
			exit(2);
		size_t length = fread(bytes, 1, sizeof(bytes), file);
		fclose(file);
		send_segment(&out, bytes, length);
	}
	end_flow(&out);
}

/* RFC 8446 section 4.1.2, as short as it gets; NAME empty: without server_name. */
static size_t hello_of(const char *name, uint8_t *out)
{
	size_t length = strlen(name), extensions = length == 0 ? 0 : 9 + length;
	size_t body = 2 + 32 + 1 + 4 + 2 + 2 + extensions;
	uint8_t *at = out;

	memset(out, 0, 5 + 4 + body);
	at[0] = 22;
	put16(at + 1, 0x0301);
	put16(at + 3, (unsigned)(4 + body));
	at[5] = 1;
	put16(at + 7, (unsigned)body);
	put16(at + 9, 0x0303);
	at += 9 + 2 + 32 + 1;
	put16(at, 2);
	put16(at + 2, 0x1301);
	at[4] = 1;
	put16(at + 6, (unsigned)extensions);
	at += 8;
	if (length > 0) {
		put16(at + 2, (unsigned)(length + 5));
		put16(at + 4, (unsigned)(length + 3));
		put16(at + 7, (unsigned)length);
		memcpy(at + 9, name, length);
	}
	return 5 + 4 + body;
}

/* What a client that was given URL sends: the head of a GET, or a ClientHello. */
static size_t bytes_of(const char *text, const struct url *url, char *out, size_t size)
{
	const char *host = strstr(text, "//");
	size_t length = host == NULL ? 0 : strcspn(host + 2, "/?#");

	if (url->scheme == URL_OTHER || url->malformed || length == 0 ||
	    memchr(host + 2, '@', length) != NULL || url->target == NULL)
		exit(ROW_UNSEEN);
	if (!url_is_cleartext(url)) {
		if (url->host.kind == HOST_MALFORMED)
			exit(ROW_UNSEEN);
		return hello_of(url->host.kind == HOST_NAME ? url->host.name.text : "",
				(uint8_t *)out);
	}
	for (const char *c = host + 2; c < host + 2 + length; c++)
		if ((unsigned char)*c > 0x7e) /* a client sends the A-label */
			exit(ROW_UNSEEN);
	return (size_t)snprintf(out, size, "GET %.*s HTTP/1.1\r\nHost: %.*s\r\n\r\n",
				(int)url->target_length, url->target, (int)length, host + 2);
}

static void ask_request(const struct row *row)
{
	static char bytes[65536];
	struct stream_out out = {.to = row->to};
	struct url url;

	if (url_parse(row->words[0], &url) < 0)
		exit(2);
	if (out.to.address.family == ADDRESS_NONE && url.host.kind == HOST_LITERAL)
		out.to.address = url.host.literal;
	if (out.to.port == 0)
		out.to.port = url.port;
	size_t length = bytes_of(row->words[0], &url, bytes, sizeof(bytes));
	/* what has no destination is no packet */
	if (out.to.address.family == ADDRESS_NONE)
		exit(ROW_UNSEEN);
	open_flow(row, &out);
	send_segment(&out, (const uint8_t *)bytes, length);
	end_flow(&out);
}

int main(int argc, char **argv)
{
	static struct row row;

	row_read(argc, argv, &row);
	if (strcmp(row.stage, "connect") == 0 && row.word_count == 2)
		ask_connect(&row);
	if (strcmp(row.stage, "request") == 0 && row.word_count == 1)
		ask_request(&row);
	if (strcmp(row.stage, "bytes") == 0 && row.to.address.family != ADDRESS_NONE)
		ask_bytes(&row);
	return ROW_UNSEEN;
}
