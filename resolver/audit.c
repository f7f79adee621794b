/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/audit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/hash.h"

/*
 * A direct-mapped table: a pair that hashes to a slot in use by another takes it over. The seed is
 * secret, so a client cannot choose whom it collides with, and a collision only forgets a count.
 */
#define SLOTS 1024u

struct slot {
	uint64_t pair; /* hash of (client, reason); 0: unused */
	uint64_t refilled;
	uint32_t tokens, suppressed;
};

struct audit {
	int fd;
	uint8_t seed[16];
	uint64_t noticed; /* 0: never */
	struct slot slots[SLOTS];
};

struct audit *audit_new(int fd, const uint8_t seed[16])
{
	struct audit *audit = calloc(1, sizeof(*audit));

	if (audit != NULL) {
		audit->fd = fd;
		memcpy(audit->seed, seed, sizeof(audit->seed));
	}
	return audit;
}

void audit_free(struct audit *audit)
{
	free(audit);
}

static struct slot *slot_of(struct audit *audit, const struct client_key *key, uint32_t reason,
			    uint64_t now)
{
	struct {
		struct client_key key;
		uint32_t reason;
	} pair = {.key = *key, .reason = reason};
	uint64_t hash = hash_sip(audit->seed, &pair, sizeof(pair)) | 1;
	struct slot *slot = &audit->slots[(hash >> 1) % SLOTS];

	if (slot->pair != hash)
		*slot = (struct slot){.pair = hash, .refilled = now, .tokens = AUDIT_BURST};
	uint64_t earned = (now - slot->refilled) * AUDIT_PER_SECOND / 1000;
	if (earned > 0) {
		slot->tokens = earned + slot->tokens > AUDIT_BURST
				       ? AUDIT_BURST
				       : slot->tokens + (uint32_t)earned;
		slot->refilled = now;
	}
	return slot;
}

int audit_send(struct audit *audit, const struct client_key *key, struct audit_record *record,
	       uint64_t now)
{
	struct slot *slot = slot_of(audit, key, record->reason, now);

	if (slot->tokens == 0) {
		slot->suppressed++;
		return -EDQUOT;
	}
	slot->tokens--;
	record->suppressed = slot->suppressed;
	const union message_body body = {.audit = *record};
	int error = message_send(audit->fd, MESSAGE_AUDIT, &body, NULL, 0, MSG_DONTWAIT);
	if (error == 0)
		slot->suppressed = 0;
	else
		slot->suppressed++;
	return error;
}

int audit_notice(struct audit *audit, uint64_t now, const char *format, ...)
{
	union message_body body;
	va_list arguments;

	if (audit->noticed != 0 && now - audit->noticed < AUDIT_NOTICE_MS)
		return -EDQUOT;
	memset(&body, 0, sizeof(body));
	va_start(arguments, format);
	vsnprintf(body.notice.text, sizeof(body.notice.text), format, arguments);
	va_end(arguments);
	int error = message_send(audit->fd, MESSAGE_NOTICE, &body, NULL, 0, MSG_DONTWAIT);
	if (error == 0)
		audit->noticed = now;
	return error;
}
