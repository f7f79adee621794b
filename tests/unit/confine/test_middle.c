/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The configuration of a run, made from one that was written for something else.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "confine/middle.h"
#include "policy.h"

static const uint8_t random_bytes[9] = {0xde, 0xad, 0x00, 0x0f, 1, 2, 3, 4, 5};

static struct config *read_text(const char *text)
{
	struct config_findings findings;
	struct config *config = config_read_text("p.yaml", text, strlen(text), &findings);

	config_findings_print(&findings, "p.yaml", stderr);
	config_findings_free(&findings);
	assert_non_null(config);
	return config;
}

static void test_replaced(void **state)
{
	struct config *config = read_text(
		"resolver: {listen: [\"127.0.0.7@5353\", \"::1@5353\", \"127.0.0.8@53\"], clients: "
		"[10.0.0.0/8]}\n"
		"gate: {hook: output, enabled: false, queue: 77}\n"
		"control: {socket: /run/other.sock}\n"
		"clients: [{name: a, uid: 1000, policy: p}, {name: b, uid: 1001, policy: p}]\n"
		"policies: {default: {default: deny}, p: {}}\n");
	struct plan plan;
	struct ruleset ruleset;
	char problem[256];

	(void)state;
	plan_make(&plan, random_bytes, 0);
	plan.ipv6 = true;
	assert_int_equal(middle_configure(config, &plan), 0);
	const struct resolver_settings *resolver = &config->settings.resolver;
	assert_int_equal(resolver->listen_count, 2);
	assert_memory_equal(&resolver->listen[0].address, &plan.v4.in, sizeof(plan.v4.in));
	assert_memory_equal(&resolver->listen[1].address, &plan.v6.in, sizeof(plan.v6.in));
	assert_int_equal(resolver->listen[1].port, 53);
	assert_int_equal(resolver->network_count, 2);
	assert_true(prefix_contains(&resolver->networks[0], &plan.v4.command));
	assert_true(prefix_contains(&resolver->networks[1], &plan.v6.command));
	assert_true(config->gate_enabled);
	assert_string_equal(config->control_socket, "");
	assert_int_equal(config_ruleset(config, config->source.clients, config->source.client_count,
					&ruleset, problem, sizeof(problem)),
			 0);
	assert_int_equal(ruleset.hook, HOOK_FORWARD);
	assert_int_equal(ruleset.queue, 77);
	assert_int_equal(ruleset.selector_count, 1);
	assert_string_equal(ruleset.selectors[0].interface, PLAN_IN);
	config_free(config);
}

/* Both families of COMMAND are one client, governed by `default`. */
static void test_one_client(void **state)
{
	struct config *config = read_text("policies: {default: {}, other: {}}");
	struct plan plan;
	const struct policy_image *image;
	void *bytes;
	size_t size;
	struct client_match v4, v6;

	(void)state;
	plan_make(&plan, random_bytes, 9);
	assert_int_equal(middle_configure(config, &plan), 0);
	assert_int_equal(config->settings.resolver.listen_count, 1);
	assert_int_equal(config->settings.resolver.network_count, 1);
	assert_int_equal(config->settings.resolver.ipv6, 0);
	assert_int_equal(policy_image_build(&config->source, &bytes, &size), 0);
	assert_int_equal(policy_image_open(bytes, size, &image), 0);
	policy_client(image,
		      &(struct client_origin){.source = plan.v4.command, .interface = PLAN_IN},
		      &v4);
	policy_client(image,
		      &(struct client_origin){.source = plan.v6.command, .interface = PLAN_IN},
		      &v6);
	assert_true(client_key_equal(&v4.key, &v6.key));
	assert_string_equal(v4.name, "run");
	assert_int_equal(v4.policy, POLICY_DEFAULT);
	assert_true(v4.governed && v6.governed);
	assert_false(v4.root);
	free(bytes);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_one_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
