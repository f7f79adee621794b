/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict.h"

#include <assert.h>
#include <stddef.h>

static const char *const stage_texts[STAGE_COUNT] = {
	[STAGE_RESOLVE] = "resolve",
	[STAGE_ANSWER] = "answer",
	[STAGE_CONNECT] = "connect",
	[STAGE_REQUEST] = "request",
};

static const char *const outcome_texts[OUTCOME_COUNT] = {
	[OUTCOME_ALLOW] = "allow",
	[OUTCOME_DENY] = "deny",
	[OUTCOME_WAIT] = "wait",
};

static const char *const reason_texts[REASON_COUNT] = {
	[REASON_NONE] = "allowed",
	[REASON_MALFORMED] = "malformed",
	[REASON_QTYPE] = "qtype",
	[REASON_METADATA] = "metadata",
	[REASON_INFRASTRUCTURE] = "infrastructure",
	[REASON_SCHEME] = "scheme",
	[REASON_HTTP2] = "http2",
	[REASON_PROTOCOL] = "protocol",
	[REASON_SECRET_URL] = "secret_url",
	[REASON_BLOCKED_HOST] = "blocked_host",
	[REASON_ENCRYPTED_DNS] = "encrypted_dns",
	[REASON_SPECIAL_NAME] = "special_name",
	[REASON_NOT_ALLOWLISTED] = "not_allowlisted",
	[REASON_REBINDING] = "rebinding",
	[REASON_SELF] = "self",
	[REASON_LOOPBACK] = "loopback",
	[REASON_PRIVATE_ADDRESS] = "private_address",
	[REASON_PRIVATE_HOST] = "private_host",
	[REASON_SPECIAL_ADDRESS] = "special_address",
	[REASON_EXPIRED] = "expired",
	[REASON_UNPINNED] = "unpinned",
	[REASON_NAME_MISMATCH] = "name_mismatch",
	[REASON_NO_NAME] = "no_name",
	[REASON_CUSTOM] = "custom",
	[REASON_POLICY_ERROR] = "policy_error",
};
static_assert(sizeof(reason_texts) / sizeof(reason_texts[0]) == REASON_COUNT, "one text each");

static const char *text_at(const char *const *texts, size_t count, size_t index)
{
	return index < count && texts[index] != NULL ? texts[index] : "?";
}

const char *stage_text(enum stage stage)
{
	return text_at(stage_texts, STAGE_COUNT, (size_t)stage);
}

const char *outcome_text(enum outcome outcome)
{
	return text_at(outcome_texts, OUTCOME_COUNT, (size_t)outcome);
}

const char *reason_text(enum reason reason)
{
	return text_at(reason_texts, REASON_COUNT, (size_t)reason);
}

bool verdict_refuses(const struct verdict *verdict)
{
	return verdict->outcome == OUTCOME_DENY && verdict->enforced;
}
