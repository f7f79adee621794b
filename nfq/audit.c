/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/audit.h"

/*
 * Theory: a token bucket for each of AUDIT_BUCKETS values of a keyed hash of (client, stage,
 * reason). A record that finds no token, or no room in the socket to the parent, is counted in its
 * bucket; the next record that passes carries the count. Clients that share a bucket share its
 * rate.
 */

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "nfq/limits.h"

static struct bucket {
	uint64_t filled; /* when `tokens` was brought up to date */
	uint32_t tokens;
	uint32_t suppressed;
	bool used;
} buckets[AUDIT_BUCKETS];

static uint8_t hash_key[16];

void audit_init(const uint8_t seed[16])
{
	memcpy(hash_key, seed, sizeof(hash_key));
	memset(buckets, 0, sizeof(buckets));
}

static struct bucket *bucket_of(const struct audit_event *event)
{
	uint8_t bytes[18];

	memcpy(bytes, event->client->key.bytes, 16);
	bytes[16] = (uint8_t)event->stage;
	bytes[17] = (uint8_t)event->verdict.reason;
	return &buckets[hash_sip(hash_key, bytes, sizeof(bytes)) % AUDIT_BUCKETS];
}

static bool bucket_take(struct bucket *bucket, uint64_t now)
{
	uint64_t earned = (now - bucket->filled) * AUDIT_PER_SECOND / 1000;

	if (!bucket->used || earned >= AUDIT_BURST) {
		*bucket = (struct bucket){.filled = now,
					  .tokens = AUDIT_BURST,
					  .suppressed = bucket->suppressed,
					  .used = true};
	} else if (earned > 0) {
		bucket->tokens += (uint32_t)earned;
		if (bucket->tokens > AUDIT_BURST)
			bucket->tokens = AUDIT_BURST;
		bucket->filled += earned * 1000 / AUDIT_PER_SECOND;
	}
	if (bucket->tokens == 0)
		return false;
	bucket->tokens--;
	return true;
}

static void record_fill(struct audit_record *record, const struct audit_event *event, uint64_t wall)
{
	*record = (struct audit_record){
		.time_ms = wall,
		.stage = event->stage,
		.outcome = event->verdict.outcome,
		.reason = event->verdict.reason,
		.rule = event->verdict.rule,
		.port = event->port,
		.protocol = event->protocol,
		.enforced = event->verdict.enforced,
	};
	if (event->client->name[0] != '\0')
		snprintf(record->client, sizeof(record->client), "%s", event->client->name);
	else
		address_format(&event->source, record->client);
	if (event->destination.family != ADDRESS_NONE) {
		record->addresses[0] = event->destination;
		record->address_count = 1;
	}
	if (event->name != NULL) {
		record->name_present = 1;
		record->name.length = event->name->length;
		memcpy(record->name.text, event->name->text, event->name->length);
	}
	if (event->detail != NULL)
		snprintf(record->detail, sizeof(record->detail), "%s", event->detail);
}
static_assert(CLIENT_NAME_MAX + 1 >= ADDRESS_TEXT_SIZE, "an address fits where a name does");

void audit_report(struct gate *gate, const struct audit_event *event, uint64_t now)
{
	struct bucket *bucket = bucket_of(event);
	struct audit_record record;

	if (event->verdict.outcome == OUTCOME_DENY)
		gate->by_reason[event->verdict.reason]++;
	if (!bucket_take(bucket, now)) {
		bucket->suppressed++;
		return;
	}
	record_fill(&record, event, now + (uint64_t)gate->wall_offset);
	record.suppressed = bucket->suppressed;
	if (gate->sink->audit(gate->sink, &record) < 0) {
		gate->counters[COUNTER_AUDIT_LOST]++;
		bucket->suppressed++;
		return;
	}
	bucket->suppressed = 0;
}
