/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/suggestion.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config/config.h"

#define LOGS   400
#define EVENTS 24

static uint32_t state = 20261201;

static uint32_t draw(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

static struct name name_of(const char *text)
{
	struct name name;
	assert_int_equal(name_from_text(text, strlen(text), &name), NAME_OK);
	return name;
}

static struct address address_of(const char *text)
{
	struct address address;
	assert_int_equal(address_parse(text, strlen(text), &address), 0);
	return address;
}

/* Those before the bar may be listed. */
static const char *const names[] = {
	"example.com", "www.example.com", "a.b.example.com", "c.b.example.com", "d.b.example.com",
	"example.org", "www.example.co.uk", "x.example.co.uk", "one.github.io", "two.github.io",
	/* */
	"metadata.google.internal", "metadata", "nas.lan", "intranet", "localhost", "co.uk",
	"github.io", "x.onion"};
#define NAMES_GOOD 10u
#define NAMES_ALL  (sizeof(names) / sizeof(names[0]))

static const char *const addresses[] = {"93.184.216.34", "2606:4700::1111", "198.41.0.4",
					/* */
					"10.0.0.1", "127.0.0.1", "169.254.169.254", "fd00:ec2::254",
					"64:ff9b::a9fe:a9fe", "::1", "224.0.0.1"};
#define ADDRESSES_GOOD 3u
#define ADDRESSES_ALL  (sizeof(addresses) / sizeof(addresses[0]))

/* True: an event that an allow list can let through. */
static bool draw_event(struct suggestion_event *event)
{
	static const uint16_t ports[] = {80, 443, 8443};
	static const enum reason reasons[] = {REASON_NONE, REASON_NOT_ALLOWLISTED, REASON_METADATA,
					      REASON_BLOCKED_HOST, REASON_NAME_MISMATCH};
	size_t name = draw(NAMES_ALL), address = draw(ADDRESSES_ALL);
	size_t reason = draw(4) > 0 ? draw(2) : draw(5);

	if (draw(2) == 0)
		name = draw(NAMES_GOOD);
	if (draw(2) == 0)
		address = draw(ADDRESSES_GOOD);
	*event = (struct suggestion_event){.stage = (enum stage)draw(STAGE_COUNT),
					   .reason = reasons[reason],
					   .has_name = draw(4) > 0,
					   .count = 1 + draw(3)};
	bool question = event->stage == STAGE_RESOLVE || event->stage == STAGE_ANSWER;
	if (question) {
		event->has_name = true;
		event->qtype = draw(2) == 0 ? 1 : 28;
	} else {
		event->port = ports[draw(3)];
		event->protocol = IPPROTO_TCP;
	}
	if (event->has_name)
		event->name = name_of(names[name]);
	if (event->stage != STAGE_RESOLVE)
		event->address = address_of(addresses[address]);
	return reason < 2 && (!event->has_name || name < NAMES_GOOD) &&
	       (event->stage == STAGE_RESOLVE || address < ADDRESSES_GOOD);
}

/* The event again, as the programs would ask. */
static bool passes(const struct policy_image *image, const struct suggestion_event *event)
{
	const struct subject subject = {.policy = POLICY_DEFAULT};
	const struct pin pin = {.address = event->address, .name = event->name, .expiry = 2};
	struct request request = {
		.connection = {.destination = event->address,
			       .port = event->port,
			       .protocol = event->protocol,
			       .pins = &pin,
			       .pin_count = event->has_name},
		.kind = event->port == 443 ? REQUEST_TLS : REQUEST_HTTP1,
		.host = {.kind = event->has_name ? HOST_NAME : HOST_NONE, .name = event->name},
		.scheme = "",
	};
	const struct question question = {.name = &event->name, .type = event->qtype};
	const struct answer answer = {
		.name = &event->name, .addresses = &event->address, .address_count = 1};

	switch (event->stage) {
	case STAGE_RESOLVE:
		return policy_resolve(image, &subject, &question).outcome == OUTCOME_ALLOW;
	case STAGE_ANSWER:
		return policy_answer(image, &subject, &answer).outcome == OUTCOME_ALLOW;
	case STAGE_CONNECT:
		return policy_connect(image, &subject, &request.connection, 1).outcome ==
		       OUTCOME_ALLOW;
	case STAGE_REQUEST:
	case STAGE_COUNT:
		break;
	}
	return policy_request(image, &subject, &request, 1).outcome == OUTCOME_ALLOW;
}

static size_t passing(const struct config *config, const struct suggestion_event *events,
		      const bool *good, size_t count)
{
	const struct policy_image *image;
	size_t size, passed = 0;
	void *bytes;

	assert_int_equal(policy_image_build(&config->source, &bytes, &size), 0);
	assert_int_equal(policy_image_open(bytes, size, &image), 0);
	for (size_t i = 0; i < count; i++)
		passed += good[i] && passes(image, &events[i]);
	for (size_t i = NAMES_GOOD; i < NAMES_ALL; i++) {
		const struct suggestion_event bad = {
			.stage = STAGE_RESOLVE, .name = name_of(names[i]), .qtype = 1};
		assert_false(passes(image, &bad));
	}
	for (size_t i = ADDRESSES_GOOD; i < ADDRESSES_ALL; i++) {
		const struct suggestion_event bad = {.stage = STAGE_CONNECT,
						     .address = address_of(addresses[i]),
						     .port = 443,
						     .protocol = IPPROTO_TCP};
		assert_false(passes(image, &bad));
	}
	free(bytes);
	return passed;
}

static struct config *suggested(const struct suggestion_event *events, size_t count, bool wildcards)
{
	struct suggestion *suggestion = suggestion_new(wildcards);
	struct config_findings findings;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(suggestion);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(suggestion_add(suggestion, &events[i]), 0);
	assert_int_equal(suggestion_print(suggestion, out), 0);
	fclose(out);
	struct config *config = config_read_text("suggested", text, size, &findings);
	if (config == NULL)
		fputs(text, stderr);
	assert_non_null(config);
	/* nothing in it that deserves a word: no suffix of whatever kind */
	assert_int_equal(findings.count, 0);
	config_findings_free(&findings);
	suggestion_free(suggestion);
	free(text);
	return config;
}

/* Under what is suggested all that was seen passes, if a list can let it pass at all. */
static void test_nothing_seen_is_denied(void **unused)
{
	struct suggestion_event events[EVENTS];
	bool good[EVENTS];

	(void)unused;
	for (unsigned log = 0; log < LOGS; log++) {
		size_t count = 1 + draw(EVENTS), all = 0;
		for (size_t i = 0; i < count; i++) {
			good[i] = draw_event(&events[i]);
			all += good[i];
		}
		struct config *config = suggested(events, count, log % 2 == 1);
		assert_int_equal(passing(config, events, good, count), all);
		config_free(config);
	}
}

/* Without any one of its entries something that was seen does not pass. */
static void test_no_entry_is_idle(void **unused)
{
	struct suggestion_event events[EVENTS];
	bool good[EVENTS];

	(void)unused;
	for (unsigned log = 0; log < LOGS / 4; log++) {
		size_t count = 1 + draw(EVENTS), all = 0;
		for (size_t i = 0; i < count; i++) {
			/* a listed address lets a connection pass without its name */
			do
				good[i] = draw_event(&events[i]);
			while (!events[i].has_name);
			all += good[i];
		}
		struct config *config = suggested(events, count, log % 2 == 1);
		struct match_list *list = &config->source.policies[0].allow_hosts;
		for (size_t i = 0; i < list->count; i++) {
			struct match_entry left_out = list->entries[i];
			list->count--;
			list->entries[i] = list->entries[list->count];
			assert_true(passing(config, events, good, count) < all);
			list->entries[list->count++] = list->entries[i];
			list->entries[i] = left_out;
		}
		config_free(config);
	}
}

static void test_words(void **unused)
{
	(void)unused;
	struct suggestion *suggestion = suggestion_new(true);
	static const char *const seen[] = {"a.b.example.com", "c.b.example.com", "b.example.org",
					   "metadata"};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++) {
		struct suggestion_event event = {.stage = STAGE_REQUEST,
						 .reason = REASON_NOT_ALLOWLISTED,
						 .has_name = true,
						 .name = name_of(seen[i]),
						 .address = address_of("93.184.216.34"),
						 .port = 443,
						 .protocol = IPPROTO_TCP,
						 .count = 1};
		assert_int_equal(suggestion_add(suggestion, &event), 0);
	}
	assert_int_equal(suggestion_print(suggestion, out), 0);
	fclose(out);
	assert_string_equal(text, "policies:\n  default:\n    default: deny\n    allow_hosts:\n"
				  "      - \"*.b.example.com:443\"  # 2 times\n"
				  "      - \"b.example.org:443\"  # once\n"
				  "# Not in the list:\n"
				  "#   metadata:443: metadata, once\n");
	free(text);
	suggestion_free(suggestion);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_seen_is_denied),
		cmocka_unit_test(test_no_entry_is_idle),
		cmocka_unit_test(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
