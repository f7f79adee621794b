/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The policy engine under lists of a hundred thousand entries: processor time of a verdict at each stage,
 * and memory of the image. Run by hand:
 *
 *     ninja -C build tests/bench/engine && build/tests/bench/engine
 *
 * Wanted: at most 300 ns a verdict, and at most 64 octets an entry over the names themselves. A miss goes
 * on to the rules behind the lists, a hit in a list that refuses ends there.
 */

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policy.h"
#include "rules/source.h"

#define ALLOWED  50000u /* names in allow_hosts */
#define BLOCKED  40000u /* names in block_hosts */
#define PREFIXES 10000u /* ranges in block_hosts */
#define ENTRIES  (ALLOWED + BLOCKED + PREFIXES)

#define ASKED    4096u /* different questions: more than caches of the first level hold of the lists */
#define VERDICTS 500000u
#define ROUNDS   5 /* the best counts: noise only adds */

#define GOAL_NS    300.0
#define GOAL_BYTES 64.0

static struct match_entry entries[2][ENTRIES];
struct text {
	uint8_t length;
	char text[47];
};
static struct text texts[ASKED];
static struct address addresses[ASKED];

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static uint32_t scatter(uint32_t number)
{
	return (uint32_t)((uint64_t)number * 2654435761u >> 4 & 0xfffffff);
}

static struct name name_of(const char *kind, uint32_t number, bool child)
{
	struct name name;
	char text[NAME_TEXT_MAX + 1];
	int length = snprintf(text, sizeof(text), "%s%s-%u.zone-%u.example.com",
			      child ? "www." : "", kind, number, number % 977);

	if (name_from_text(text, (size_t)length, &name) != NAME_OK)
		abort();
	return name;
}

/* Public ones, all different. */
static struct address address_of(uint32_t number)
{
	return address_ipv4((uint8_t)(20 + (number >> 16 & 31)), (uint8_t)(number >> 8),
			    (uint8_t)number, 7);
}

/* OCTETS of names go to *NAMES. */
static void fill(struct policy_source *policy, size_t *names)
{
	policy_source_init(policy, "default");
	policy->default_deny.value = true;
	policy->allow_hosts = (struct match_list){entries[0], ALLOWED};
	policy->block_hosts = (struct match_list){entries[1], BLOCKED + PREFIXES};
	for (uint32_t i = 0; i < ALLOWED; i++) {
		entries[0][i].name = name_of("allowed", i, false);
		*names += entries[0][i].name.length;
	}
	for (uint32_t i = 0; i < BLOCKED + PREFIXES; i++) {
		struct match_entry *entry = &entries[1][i];
		if (i < BLOCKED) {
			entry->name = name_of("blocked", i, false);
			*names += entry->name.length;
			continue;
		}
		entry->kind = MATCH_PREFIX;
		entry->prefix.length = (uint8_t)(16 + i % 9);
		entry->prefix.address =
			address_ipv4((uint8_t)(60 + i % 40), (uint8_t)(i >> 8), (uint8_t)i, 0);
		for (unsigned bit = entry->prefix.length; bit < 32; bit++)
			entry->prefix.address.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
	}
}

/* A question, its name and address in the nearest cache, as they are when they have just been read. */
struct asked {
	struct name name;
	struct pin pin;
	struct connection connection;
};

typedef struct verdict stage_function(const struct policy_image *image, struct asked *asked);

static const struct subject subject = {.policy = POLICY_DEFAULT};

static struct verdict resolve(const struct policy_image *image, struct asked *asked)
{
	const struct question question = {.name = &asked->name, .type = 1};

	return policy_resolve(image, &subject, &question);
}

static struct verdict answer(const struct policy_image *image, struct asked *asked)
{
	const struct answer answer = {
		.name = &asked->name, .addresses = &asked->pin.address, .address_count = 1};

	return policy_answer(image, &subject, &answer);
}

static struct verdict connect_to(const struct policy_image *image, struct asked *asked)
{
	return policy_connect(image, &subject, &asked->connection, 1);
}

static struct verdict request(const struct policy_image *image, struct asked *asked)
{
	struct request request = {
		.connection = asked->connection,
		.kind = REQUEST_TLS,
		.host = {.kind = HOST_NAME},
		.scheme = "",
	};

	memcpy(&request.host.name, &asked->name, 1 + asked->name.length + 1u);
	return policy_request(image, &subject, &request, 1);
}

/* Only what is used is copied: a name is short, a struct name is long. */
static void put(struct asked *asked, const struct text *text, const struct address *address)
{
	asked->name.length = text->length;
	memcpy(asked->name.text, text->text, sizeof(text->text));
	memcpy(&asked->pin.name, &asked->name, 1 + sizeof(text->text));
	asked->pin.address = *address;
	asked->connection.destination = *address;
}

static void measure(const struct policy_image *image, const char *what, stage_function *stage,
		    enum reason want)
{
	static struct asked asked = {
		.pin = {.expiry = 2},
		.connection = {
			.port = 443, .protocol = IPPROTO_TCP, .pins = &asked.pin, .pin_count = 1}};
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns();
		for (uint32_t i = 0; i < VERDICTS; i++) {
			put(&asked, &texts[i % ASKED], &addresses[i % ASKED]);
			if (stage(image, &asked).reason != want) {
				fprintf(stderr, "%s: not %s\n", what, reason_text(want));
				exit(EXIT_FAILURE);
			}
		}
		double each = (now_ns() - start) / VERDICTS;
		best = round == 0 || each < best ? each : best;
	}
	printf("%-34s %7.0f ns      wanted %.0f%s\n", what, best, GOAL_NS,
	       best > GOAL_NS ? "   MISSED" : "");
}

static void ask(const struct policy_image *image, const char *kind, uint32_t count, bool child,
		enum reason want)
{
	static const struct {
		const char *name;
		stage_function *stage;
	} stages[] = {{"resolve", resolve},
		      {"answer", answer},
		      {"connect", connect_to},
		      {"request", request}};
	char what[64];

	for (uint32_t i = 0; i < ASKED; i++) {
		struct name name = name_of(kind, scatter(i) % count, child);
		if (name.length >= sizeof(texts[i].text))
			abort();
		texts[i].length = name.length;
		memcpy(texts[i].text, name.text, name.length + 1u);
		addresses[i] = address_of(scatter(i));
	}
	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		snprintf(what, sizeof(what), "%s, %s", stages[i].name,
			 want == REASON_NONE && child ? "child of an allowed name" : kind);
		measure(image, what, stages[i].stage, want);
	}
}

int main(void)
{
	static const char *const sources[] = {"bench.yaml"};
	struct policy_source policy;
	const struct config_source source = {
		.source_names = sources, .source_count = 1, .policies = &policy, .policy_count = 1};
	const struct policy_image *image;
	size_t size, empty, names = 0;
	void *bytes, *none;
	double start, built;

	policy_source_init(&policy, "default");
	if (policy_image_build(&source, &none, &empty) < 0)
		return EXIT_FAILURE;
	fill(&policy, &names);
	start = now_ns();
	if (policy_image_build(&source, &bytes, &size) < 0)
		return EXIT_FAILURE;
	built = now_ns();
	printf("%-34s %7.1f ms\n", "build the image", (built - start) / 1e6);
	if (policy_image_open(bytes, size, &image) < 0)
		return EXIT_FAILURE;
	printf("%-34s %7.1f ms\n", "open it", (now_ns() - built) / 1e6);
	double each = (double)(size - empty - names) / ENTRIES;
	printf("%-34s %7.1f octets  wanted %.0f%s\n", "an entry over its name", each, GOAL_BYTES,
	       each > GOAL_BYTES ? "   MISSED" : "");
	ask(image, "allowed", ALLOWED, false, REASON_NONE);
	ask(image, "allowed", ALLOWED, true, REASON_NONE);
	ask(image, "blocked", BLOCKED, false, REASON_BLOCKED_HOST);
	ask(image, "unknown", ALLOWED, true, REASON_NOT_ALLOWLISTED);
	free(bytes);
	free(none);
	return EXIT_SUCCESS;
}
