/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * No configuration opens the floor: a hundred thousand random policies, read by the loader from YAML,
 * many in a file. What the loader refuses to read opens nothing; under what it reads, each question
 * that leads to the floor is refused as such, and no answer of a hook changes that.
 *
 * PINFOLD_SEED takes the place of the seed, which is printed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "tests/unit/rules/world.h"

#define FILES    1000
#define POLICIES 100 /* in a file */

static uint64_t seed = 20261201;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 32) % below;
}

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof((array)[0]))

/* Options of a policy, of which any may be there. */
static const char *const switches[] = {
	"default: deny",
	"mode: audit",
	"literals: deny",
	"allow_private_network: false",
	"allow_loopback: false",
	"block_encrypted_dns: false",
	"block_secret_bearing_urls: false",
	"infrastructure: allow",
	"udp: allow",
	"icmp: allow",
	"other: allow",
	"custom: \"unix:/run/hook\"",
};

struct list {
	const char *key;
	const char *entries[12];
};

/* Lists that open something, with entries as near to the floor as they get. */
static const struct list lists[] = {
	{"allow_hosts",
	 {"169.254.0.0/16", "0.0.0.0/0", "\"::/0\"", "google.internal", "\"*.google.internal\"",
	  "\"fd00::/8\"", "\"169.254.169.254:53\"", "www.example.com", "168.63.0.0/16",
	  "compute.internal", "\"64:ff9b::/96\"", "\"2002::/16\""}},
	{"allowed_origins",
	 {"\"http://www.example.com\"", "\"https://*.example.com\"", "\"http://169.254.7.7\"",
	  "\"http://example.com:8080\""}},
	{"allow_private_cidrs",
	 {"0.0.0.0/0", "169.254.0.0/16", "\"fc00::/7\"", "\"::/0\"", "100.64.0.0/10",
	  "\"fe80::/10\"", "192.0.0.0/24", "\"64:ff9b:1::/48\"", "\"::ffff:0:0/96\""}},
	{"allow_private_answers",
	 {"internal", "example.com", "google.internal", "compute.internal"}},
	{"allow_raw",
	 {"\"www.example.com:80\"", "\"0.0.0.0/0:80\"", "\"169.254.0.0/16:80\"",
	  "\"93.184.216.34:80\""}},
	{"proxies", {"\"www.example.com:80\"", "\"169.254.0.0/16:80\"", "\"93.184.216.34:80\""}},
	{"block_hosts", {"example.org", "10.0.0.0/8"}},
};

/* Sections beside the policies, one of each line at most. */
static const char *const sections[][6] = {
	{"", "resolver: {search: [google.internal, example.com]}\n",
	 "resolver: {hosts: {www.example.com: [10.0.0.1], m.lan: [127.0.0.1]}}\n",
	 "resolver: {forward: {internal: [10.0.0.53], goog: [10.0.0.53]}}\n",
	 "resolver: {listen: [\"127.0.0.1@80\"], upstream_nonpublic: true}\n",
	 "resolver: {clients: [0.0.0.0/0]}\n"},
	{"", "gate: {govern: all}\n", "gate: {hook: forward}\n", "gate: {enabled: false}\n",
	 "gate: {mark_mask: 0xff000000}\n", ""},
	{"", "log: {allowed: true}\n", "floor: {names: [example.net]}\n",
	 "floor: {addresses: [10.9.0.0/16]}\n", "", ""},
};

static const char *const names[] = {
	"metadata.goog", "x.metadata.google.internal", "metadata",
	"data-server",   "metadata.tencentyun.com",    "instance-data.us-west-2.compute.internal"};

static const char *const addresses[] = {
	"169.254.169.254", "169.254.170.2",   "169.254.170.23",    "fd00:ec2::254",
	"fd00:ec2::23",    "169.254.169.252", "fd20:ce::254",      "168.63.129.16",
	"100.100.100.200", "100.96.0.96",     "169.254.0.23",      "192.0.0.192",
	"169.254.42.42",   "fd00:42::42",     "fd00:a9fe:a9fe::1", "fe80::a9fe:a9fe"};

static void write_list(FILE *out, const struct list *list)
{
	size_t count = 0;

	while (count < COUNT(list->entries) && list->entries[count] != NULL)
		count++;
	fprintf(out, ", %s: [", list->key);
	for (size_t i = 0, next = draw((uint32_t)count); i < 1 + draw(3); i++, next++)
		fprintf(out, "%s%s", i == 0 ? "" : ", ", list->entries[next % count]);
	fputc(']', out);
}

static void write_policy(FILE *out, const char *name)
{
	fprintf(out, "  %s: {strip_ech: %s", name, draw(2) ? "true" : "false");
	for (size_t i = 0; i < COUNT(switches); i++)
		if (draw(3) == 0)
			fprintf(out, ", %s", switches[i]);
	for (size_t i = 0; i < COUNT(lists); i++)
		if (draw(2) == 0)
			write_list(out, &lists[i]);
	fputs("}\n", out);
}

static struct config *random_configuration(void)
{
	struct config_findings findings;
	char *text = NULL, name[16];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; i < COUNT(sections); i++)
		fputs(sections[i][draw(COUNT(sections[i]))], out);
	fputs("policies:\n", out);
	for (unsigned i = 0; i < POLICIES; i++) {
		snprintf(name, sizeof(name), i == 0 ? "default" : "p%u", i);
		write_policy(out, name);
	}
	fclose(out);
	struct config *config = config_read_text("random", text, size, &findings);
	if (config == NULL) {
		fputs(text, stderr);
		config_findings_print(&findings, "random", stderr);
	}
	config_findings_free(&findings);
	free(text);
	assert_non_null(config);
	return config;
}

/* One policy, and the floor as one question after the other puts it. */
struct asking {
	const struct policy_image *image;
	struct subject subject;
	struct address address; /* of the floor, in some form */
	struct name name;       /* of the floor */
	struct pin pin;
};

static void expect_shut(const struct asking *asking, const char *what, struct verdict v)
{
	static const enum hook_answer answers[] = {HOOK_ALLOW, HOOK_DENY, HOOK_KEEP, HOOK_ERROR};
	char text[ADDRESS_TEXT_SIZE];

	if (!verdict_refuses(&v) || (v.reason != REASON_METADATA && v.reason != REASON_MALFORMED) ||
	    v.asks_hook)
		fail_msg("policy %u, %s of %s, %s: %s %s%s", asking->subject.policy, what,
			 address_format(&asking->address, text), asking->name.text,
			 outcome_text(v.outcome), reason_text(v.reason),
			 v.asks_hook ? ", asks the hook" : "");
	for (size_t i = 0; i < COUNT(answers); i++) {
		struct verdict after =
			policy_hooked(asking->image, asking->subject.policy, &v, answers[i]);
		assert_true(verdict_refuses(&after));
	}
}

static void ask_dns(const struct asking *asking)
{
	const struct name www = world_name("www.example.com");
	const struct address open = world_address("93.184.216.34");
	const struct address two[] = {open, asking->address}, other[] = {asking->address, open};
	const struct question question = {.name = &asking->name, .type = draw(2) ? 1 : 65};
	struct answer answer = {.name = &www,
				.addresses = draw(2) ? two : other,
				.address_count = 2,
				.from_static = draw(2)};

	expect_shut(asking, "question", policy_resolve(asking->image, &asking->subject, &question));
	expect_shut(asking, "answer", policy_answer(asking->image, &asking->subject, &answer));
	answer = (struct answer){.name = &www, .hints = two, .hint_count = 2};
	expect_shut(asking, "hint", policy_answer(asking->image, &asking->subject, &answer));
	answer = (struct answer){.name = &www,
				 .addresses = &open,
				 .address_count = 1,
				 .targets = &asking->name,
				 .target_count = 1};
	expect_shut(asking, "target", policy_answer(asking->image, &asking->subject, &answer));
}

static void ask_flow(const struct asking *asking)
{
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_ICMP};
	static const uint16_t ports[] = {80, 443, 8080, 22, 4318};
	const struct connection connection = {.destination = asking->address,
					      .port = ports[draw(COUNT(ports))],
					      .protocol = protocols[draw(4)],
					      .pins = &asking->pin,
					      .pin_count = draw(2)};
	struct request request = {
		.connection = connection,
		.kind = (enum request_kind)draw(4),
		.malformed = draw(4) == 0,
		.host = {.kind = HOST_NAME, .name = asking->pin.name},
		.scheme = "",
	};

	expect_shut(asking, "connection",
		    policy_connect(asking->image, &asking->subject, &connection, 1));
	request.connection.protocol = IPPROTO_TCP;
	expect_shut(asking, "request",
		    policy_request(asking->image, &asking->subject, &request, 1));
}

/* Host or target names the floor, on a flow to somewhere else. */
static void ask_host(const struct asking *asking)
{
	struct pin pin = asking->pin;
	struct host floor = {.kind = HOST_NAME, .name = asking->name};
	struct request request = {
		.connection = {.destination = world_address("93.184.216.34"),
			       .port = 80,
			       .protocol = IPPROTO_TCP,
			       .pins = &pin,
			       .pin_count = draw(2)},
		.kind = draw(2) ? REQUEST_HTTP1 : REQUEST_TLS,
		.host = {.kind = HOST_NAME, .name = pin.name},
		.scheme = "http",
	};

	pin.address = request.connection.destination;
	if (draw(2))
		floor = (struct host){.kind = HOST_LITERAL, .literal = asking->address};
	switch (draw(3)) {
	case 0:
		request.host = floor;
		break;
	case 1:
		request.form = TARGET_ABSOLUTE;
		request.target_host = floor;
		break;
	default:
		request.form = TARGET_AUTHORITY;
		request.target_host = floor;
		request.target_host.port = 80;
		break;
	}
	/* where allow_raw holds nobody reads what the host is */
	if (policy_reads_first_bytes(asking->image, &asking->subject, &request.connection, 1))
		expect_shut(asking, "host",
			    policy_request(asking->image, &asking->subject, &request, 1));
}

static void ask_all(const struct policy_image *image, policy_index policy)
{
	struct asking asking = {.image = image,
				.subject = {.policy = policy, .root = draw(3) == 0},
				.name = world_name(names[draw(COUNT(names))])};
	const struct address address = world_address(addresses[draw(COUNT(addresses))]);
	struct address forms[WORLD_FORMS_MAX];
	size_t count = world_forms(&address, forms);

	asking.address = forms[draw((uint32_t)count)];
	asking.pin = (struct pin){.address = asking.address,
				  .name = world_name(draw(2) ? "www.example.com" : "nas.lan"),
				  .expiry = draw(2) ? 2 : 1};
	ask_dns(&asking);
	ask_flow(&asking);
	ask_host(&asking);
}

static void test_no_configuration_opens_it(void **state)
{
	const char *given = getenv("PINFOLD_SEED");

	(void)state;
	if (given != NULL)
		seed = strtoull(given, NULL, 10) | 1;
	print_message("seed %llu\n", (unsigned long long)seed);
	for (unsigned file = 0; file < FILES; file++) {
		struct config *config = random_configuration();
		const struct policy_image *image;
		void *bytes;
		size_t size;
		assert_int_equal(policy_image_build(&config->source, &bytes, &size), 0);
		assert_int_equal(policy_image_open(bytes, size, &image), 0);
		assert_int_equal(policy_count(image), POLICIES);
		for (policy_index policy = 0; policy < POLICIES; policy++)
			ask_all(image, policy);
		free(bytes);
		config_free(config);
	}
}

/* The same lists do open what is not the floor: the test above would notice an open door. */
static void test_it_could_fail(void **state)
{
	static const char text[] = "policies: {default: {allow_private_network: false, "
				   "allow_private_cidrs: [169.254.0.0/16]}}";
	const struct connection connection = {
		.destination = world_address("169.254.7.7"), .port = 80, .protocol = IPPROTO_TCP};
	const struct subject subject = {.policy = POLICY_DEFAULT};
	struct config_findings findings;
	struct config *config = config_read_text("f", text, sizeof(text) - 1, &findings);
	const struct policy_image *image;
	void *bytes;
	size_t size;

	(void)state;
	config_findings_free(&findings);
	assert_non_null(config);
	assert_int_equal(policy_image_build(&config->source, &bytes, &size), 0);
	assert_int_equal(policy_image_open(bytes, size, &image), 0);
	assert_int_equal(policy_connect(image, &subject, &connection, 1).outcome, OUTCOME_ALLOW);
	free(bytes);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_configuration_opens_it),
		cmocka_unit_test(test_it_could_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
