/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Every pair of rules that can disagree about one question: the one that is asked first wins,
 * whichever was written down first. For each rule there is what makes it refuse a question that is
 * allowed otherwise; two of them make a pair unless they want the same part of it to be different.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

/* Parts of a question; NULL: as it is when all is allowed. */
struct parts {
	const char *host, *to, *port, *type, *target;
	const char *pin;   /* "" for none */
	const char *words; /* more of the question */
};

/* In the policy %H is the host, %T the address, %P the port. */
struct trigger {
	const char *reason;
	const char *policy;
	struct parts parts;
};

/* In the order of the written design: rule 1 to rule 11. */
static const struct trigger resolve[] = {
	{"malformed", "", {.host = "1.2.3.4"}},
	{"qtype", "", {.type = "NULL"}},
	{"metadata", "floor=%H", {.words = ""}},
	{"blocked_host", "block=%H", {.words = ""}},
	{"encrypted_dns", "", {.host = "dns.google"}},
	{"special_name", "", {.host = "x.onion"}},
	{"not_allowlisted", "default=deny", {.words = ""}},
	{"loopback", "private=no loopback=no", {.host = "localhost"}},
	{"private_host", "private=no", {.host = "nas.lan"}},
};

static const struct trigger answer[] = {
	{"malformed", "", {.words = "malformed"}},
	{"metadata", "floor=%H", {.words = ""}},
	{"metadata", "", {.words = "169.254.169.254"}},
	{"metadata", "", {.words = "cname=metadata.goog"}},
	{"blocked_host", "block=%H", {.words = ""}},
	{"blocked_host", "block=198.41.0.4", {.words = "198.41.0.4"}},
	{"encrypted_dns", "", {.host = "dns.google"}},
	{"encrypted_dns", "", {.words = "cname=dns.google"}},
	{"not_allowlisted", "default=deny", {.words = ""}},
	{"rebinding", "", {.host = "www.example.com", .words = "10.0.0.1"}},
	{"rebinding", "", {.host = "www.example.com", .words = "cname=localhost"}},
	{"loopback", "private=no loopback=no", {.host = "nas.lan", .words = "127.0.0.1"}},
	{"private_address", "private=no", {.host = "nas.lan", .words = "10.0.0.1"}},
	{"private_host", "private=no", {.host = "nas.lan"}},
	{"special_address",
	 "private=no answers=example.org",
	 {.host = "example.org", .words = "192.0.2.1"}},
};

static const struct trigger connection[] = {
	{"metadata", "floor=%T", {.words = ""}},
	{"infrastructure", "udp=allow", {.to = "169.254.169.253", .port = "53/udp"}},
	{"protocol", "", {.port = "80/udp"}},
	{"protocol", "udp=allow", {.port = "443/udp"}},
	{"blocked_host", "block=%T", {.words = ""}},
	{"blocked_host", "block=www.example.com", {.pin = "www.example.com"}},
	{"encrypted_dns", "", {.port = "853"}},
	{"not_allowlisted", "default=deny", {.words = ""}},
	{"rebinding", "", {.to = "10.0.0.1", .pin = "www.example.com"}},
	{"self", "own=%T:%P", {.words = ""}},
	{"loopback", "private=no loopback=no", {.to = "127.0.0.1", .pin = ""}},
	{"private_address", "private=no", {.to = "10.0.0.2", .pin = ""}},
	{"private_host", "private=no", {.pin = "nas.lan"}},
	{"special_address", "private=no", {.to = "192.0.2.1", .pin = ""}},
	{"unpinned", "literals=deny", {.pin = ""}},
};

static const struct trigger request[] = {
	{"malformed", "", {.words = "malformed"}},
	{"malformed", "", {.host = "1.2.3.4.5"}},
	{"metadata", "floor=%H", {.words = ""}},
	{"metadata", "floor=%T", {.words = ""}},
	{"metadata", "", {.target = "absolute=http://metadata.goog"}},
	{"infrastructure", "", {.to = "169.254.169.253@53"}},
	{"scheme", "", {.type = "other"}},
	{"http2", "", {.type = "http2"}},
	{"secret_url", "", {.words = "secret"}},
	{"blocked_host", "block=%H", {.words = ""}},
	{"blocked_host", "block=%T", {.words = ""}},
	{"blocked_host", "block=ads.example.net", {.target = "absolute=http://ads.example.net"}},
	{"encrypted_dns", "", {.host = "dns.google"}},
	{"encrypted_dns", "", {.target = "absolute=http://dns.google"}},
	{"not_allowlisted", "default=deny", {.words = ""}},
	{"rebinding", "", {.host = "www.example.com", .to = "10.0.0.1", .pin = "www.example.com"}},
	{"self", "own=%T:80", {.words = ""}},
	{"private_address", "private=no", {.host = "nas.lan", .to = "10.0.0.2"}},
	{"private_host", "private=no", {.host = "nas.lan"}},
	{"special_address",
	 "private=no answers=example.org",
	 {.host = "example.org", .to = "192.0.2.1"}},
	{"unpinned", "literals=deny", {.pin = ""}},
	{"name_mismatch", "", {.pin = "other.example.com"}},
	{"name_mismatch", "", {.target = "connect=www.example.com:80"}},
};

/* Puts SOURCE into OUT where OUT has nothing; false when they differ. */
static bool join(const char **out, const char *source)
{
	if (source == NULL)
		return true;
	if (*out != NULL && strcmp(*out, source) != 0)
		return false;
	*out = source;
	return true;
}

static void expand(char *out, size_t size, const char *text, const struct parts *parts)
{
	size_t used = strlen(out);

	for (; *text != '\0' && used + 1 < size; text++) {
		const char *value = text[0] != '%'   ? NULL
				    : text[1] == 'H' ? parts->host
				    : text[1] == 'T' ? parts->to
						     : parts->port;
		if (value == NULL) {
			out[used++] = *text;
			out[used] = '\0';
			continue;
		}
		/* neither "@PORT" nor "/PROTOCOL" belongs into an entry */
		used += (size_t)snprintf(out + used, size - used, "%.*s", (int)strcspn(value, "@/"),
					 value);
		text++;
	}
	snprintf(out + used, size - used, " ");
}

static void fill(struct parts *parts)
{
	static const struct parts allowed = {.host = "www.example.com",
					     .to = "93.184.216.34",
					     .port = "80",
					     .type = "",
					     .target = ""};

	join(&parts->host, parts->host != NULL ? NULL : allowed.host);
	join(&parts->to, parts->to != NULL ? NULL : allowed.to);
	join(&parts->port, parts->port != NULL ? NULL : allowed.port);
	join(&parts->type, parts->type != NULL ? NULL : allowed.type);
	join(&parts->target, parts->target != NULL ? NULL : allowed.target);
	if (parts->pin == NULL)
		parts->pin = parts->host;
}

/* FIRST and SECOND together (SECOND may be FIRST); NULL when they are about the same part. */
static const char *ask(const char *stage, const struct trigger *first, const struct trigger *second)
{
	struct parts parts = first->parts;
	char policy[512] = "", question[512];
	const char *more =
		second != first && second->parts.words != NULL ? second->parts.words : "";
	struct world *world = calloc(1, sizeof(*world));

	if (!join(&parts.host, second->parts.host) || !join(&parts.to, second->parts.to) ||
	    !join(&parts.port, second->parts.port) || !join(&parts.type, second->parts.type) ||
	    !join(&parts.pin, second->parts.pin) || !join(&parts.target, second->parts.target)) {
		free(world);
		return NULL;
	}
	fill(&parts);
	expand(policy, sizeof(policy), first->policy, &parts);
	if (second != first)
		expand(policy, sizeof(policy), second->policy, &parts);
	const char *words = parts.words != NULL ? parts.words : "";
	const char *pin = parts.pin[0] != '\0' ? " pinned=" : "";
	if (strcmp(stage, "resolve") == 0)
		snprintf(question, sizeof(question), "resolve %s %s", parts.host,
			 parts.type[0] != '\0' ? parts.type : "A");
	else if (strcmp(stage, "answer") == 0)
		snprintf(question, sizeof(question), "answer %s %s %s", parts.host, words, more);
	else if (strcmp(stage, "connect") == 0)
		snprintf(question, sizeof(question), "connect %s %s%s%s", parts.to, parts.port, pin,
			 parts.pin);
	else
		snprintf(question, sizeof(question), "request http://%s/ to=%s%s%s %s %s %s %s",
			 parts.host, parts.to, pin, parts.pin, words, more, parts.target,
			 parts.type);
	world_init(world, policy);
	const char *got = world_ask(world, question);
	world_free(world);
	free(world);
	return got;
}

static unsigned all_pairs(const char *stage, const struct trigger *triggers, size_t count)
{
	unsigned pairs = 0;

	for (size_t i = 0; i < count; i++) {
		assert_string_equal(ask(stage, &triggers[i], &triggers[i]), triggers[i].reason);
		for (size_t j = i + 1; j < count; j++) {
			for (unsigned order = 0; order < 2; order++) {
				const struct trigger *a = &triggers[order == 0 ? i : j];
				const struct trigger *b = &triggers[order == 0 ? j : i];
				const char *got = ask(stage, a, b);
				if (got == NULL)
					continue;
				pairs++;
				if (strcmp(got, triggers[i].reason) != 0)
					fail_msg("%s: %s (%s) and %s (%s) give %s", stage,
						 a->reason, a->policy, b->reason, b->policy, got);
			}
		}
	}
	return pairs;
}

#define ALL(stage, triggers) all_pairs(stage, triggers, sizeof(triggers) / sizeof((triggers)[0]))

static void test_resolve(void **state)
{
	(void)state;
	assert_true(ALL("resolve", resolve) >= 2 * 20);
}

static void test_answer(void **state)
{
	(void)state;
	assert_true(ALL("answer", answer) >= 2 * 60);
}

static void test_connect(void **state)
{
	(void)state;
	assert_true(ALL("connect", connection) >= 2 * 40);
}

static void test_request(void **state)
{
	(void)state;
	assert_true(ALL("request", request) >= 2 * 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_resolve),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_connect),
		cmocka_unit_test(test_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
