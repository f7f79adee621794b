/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>

#include "nfq/audit.h"
#include "tests/unit/nfq/fixture.h"

static struct client_match client_number(uint8_t number)
{
	struct client_match client = {.name = "", .governed = true};

	client.key.bytes[15] = number;
	return client;
}

static void report(const struct client_match *client, enum reason reason)
{
	struct audit_event event = {
		.stage = STAGE_CONNECT,
		.verdict = {.outcome = OUTCOME_DENY, .reason = reason, .enforced = true},
		.client = client,
		.source = address_ipv4(10, 0, 0, 2),
		.destination = address_ipv4(192, 0, 2, 1),
		.port = 80,
		.protocol = 6,
	};
	audit_report(&gate, &event, now);
}

static void test_record(void **state)
{
	struct client_match client = {.name = "vm1"};
	struct name name;
	struct audit_event event = {
		.stage = STAGE_REQUEST,
		.verdict = {.outcome = OUTCOME_DENY,
			    .reason = REASON_NAME_MISMATCH,
			    .enforced = true,
			    .rule = {3, 14}},
		.client = &client,
		.destination = address_ipv4(192, 0, 2, 1),
		.port = 443,
		.protocol = 6,
		.name = &name,
		.detail = "why",
	};

	(void)state;
	name_from_text("www.example", 11, &name);
	gate.wall_offset = 5;
	audit_report(&gate, &event, now);
	assert_int_equal(audit_count, 1);
	assert_int_equal(audits[0].time_ms, now + 5);
	assert_int_equal(audits[0].stage, STAGE_REQUEST);
	assert_int_equal(audits[0].outcome, OUTCOME_DENY);
	assert_int_equal(audits[0].reason, REASON_NAME_MISMATCH);
	assert_int_equal(audits[0].rule.source, 3);
	assert_int_equal(audits[0].rule.line, 14);
	assert_int_equal(audits[0].port, 443);
	assert_int_equal(audits[0].protocol, 6);
	assert_int_equal(audits[0].enforced, 1);
	assert_int_equal(audits[0].address_count, 1);
	assert_true(address_equal(&audits[0].addresses[0], &event.destination));
	assert_string_equal(audits[0].client, "vm1");
	assert_string_equal(audits[0].name.text, "www.example");
	assert_string_equal(audits[0].detail, "why");
	assert_int_equal(gate.by_reason[REASON_NAME_MISMATCH], 1);

	client.name = "";
	event.source = address_ipv4(10, 0, 0, 2);
	event.name = NULL;
	event.detail = NULL;
	audit_report(&gate, &event, now);
	assert_string_equal(audits[1].client, "10.0.0.2");
	assert_int_equal(audits[1].name_present, 0);
	assert_string_equal(audits[1].detail, "");
}

static void test_rate(void **state)
{
	struct client_match one = client_number(1), two = client_number(2);

	(void)state;
	for (unsigned i = 0; i < AUDIT_BURST + 10; i++)
		report(&one, REASON_UNPINNED);
	assert_int_equal(audit_count, AUDIT_BURST);
	assert_int_equal(gate.by_reason[REASON_UNPINNED], AUDIT_BURST + 10);
	/* Others are not silenced by it. */
	report(&one, REASON_METADATA);
	report(&two, REASON_UNPINNED);
	assert_int_equal(audit_count, AUDIT_BURST + 2);
	/* Tokens come back one by one; the first line says what was left out. */
	now += (1000 + AUDIT_PER_SECOND - 1) / AUDIT_PER_SECOND - 1;
	report(&one, REASON_UNPINNED);
	assert_int_equal(audit_count, AUDIT_BURST + 2);
	now += 1;
	report(&one, REASON_UNPINNED);
	assert_int_equal(audit_count, AUDIT_BURST + 3);
	assert_int_equal(audits[AUDIT_BURST + 2].suppressed, 11);
	report(&one, REASON_UNPINNED);
	assert_int_equal(audit_count, AUDIT_BURST + 3);
	/* After a while the whole burst, and no more. */
	now += 3600000;
	for (unsigned i = 0; i < AUDIT_BURST + 10; i++)
		report(&one, REASON_UNPINNED);
	assert_int_equal(audit_count, 2 * AUDIT_BURST + 3);
	assert_int_equal(audits[AUDIT_BURST + 3].suppressed, 1);
	assert_int_equal(audits[AUDIT_BURST + 4].suppressed, 0);
}

static void test_slow_parent(void **state)
{
	struct client_match one = client_number(1);

	(void)state;
	audit_blocks = true;
	report(&one, REASON_UNPINNED);
	report(&one, REASON_UNPINNED);
	assert_int_equal(gate.counters[COUNTER_AUDIT_LOST], 2);
	audit_blocks = false;
	report(&one, REASON_UNPINNED);
	assert_int_equal(audits[0].suppressed, 2);
	assert_int_equal(gate.by_reason[REASON_UNPINNED], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_record, fixture_reset),
		cmocka_unit_test_setup(test_rate, fixture_reset),
		cmocka_unit_test_setup(test_slow_parent, fixture_reset),
	};
	return cmocka_run_group_tests_name("audit", tests, NULL, NULL);
}
