/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/registry.h"

static char folder[] = "/tmp/pinfold-registry-XXXXXX";
static char problem[512];

/* A configuration whose state file is in the folder, with EXTRA in it. */
static struct config *config_with(const char *extra)
{
	struct config_findings findings;
	char text[512];

	snprintf(text, sizeof(text), "control: {socket: %s/sock}\n%s\n", folder, extra);
	struct config *config = config_read_text("f", text, strlen(text), &findings);
	assert_non_null(config);
	config_findings_free(&findings);
	return config;
}

static enum registry_result add(struct registry *registry, const struct config *config,
				const char *line)
{
	static uint64_t serial;

	problem[0] = '\0';
	return registry_add(registry, config, line, ++serial, problem, sizeof(problem));
}

static void test_add(void **state)
{
	static const struct {
		const char *line;
		enum registry_result result;
		const char *problem;
	} rows[] = {
		{"{name: a, addresses: [10.1.2.3, \"fd00::3\"], policy: ci}", REGISTRY_CHANGED, ""},
		{"{name: a, addresses: [\"fd00::3\", 10.1.2.3], policy: ci}", REGISTRY_SAME, ""},
		{"{name: a, addresses: [10.1.2.3, 10.1.2.3/32, \"fd00::3\"], policy: ci}",
		 REGISTRY_SAME, ""},
		{"{name: a, addresses: [10.1.2.3, \"fd00::3\"]}", REGISTRY_TAKEN,
		 "there is another client 'a'"},
		{"{name: a, addresses: [10.1.2.3], policy: ci}", REGISTRY_TAKEN,
		 "there is another client 'a'"},
		{"{name: b, address: 10.1.2.3}", REGISTRY_TAKEN, "10.1.2.3 is the client 'a'"},
		{"{name: b, address: \"fd00::3\"}", REGISTRY_TAKEN, "fd00::3 is the client 'a'"},
		/* the longest prefix wins */
		{"{name: b, address: 10.1.2.0/24}", REGISTRY_CHANGED, ""},
		{"{name: c, uid: 7}", REGISTRY_CHANGED, ""},
		{"{name: d, uid: 7}", REGISTRY_TAKEN, "uid 7 is the client 'c'"},
		{"{name: d, uid: 8}", REGISTRY_TAKEN, "uid 8 is the client 'user'"},
		{"{name: user, uid: 9}", REGISTRY_TAKEN, "there is another client 'user'"},
		{"{name: d, policy: x, uid: 9}", REGISTRY_INVALID, "there is no policy 'x'"},
		{"{name: d, uid: 9", REGISTRY_INVALID, NULL},
	};
	struct registry registry = {.count = 0};
	struct config *config = config_with("clients: [{name: user, uid: 8}]\npolicies: {ci: {}}");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(add(&registry, config, rows[i].line), rows[i].result);
		if (rows[i].problem != NULL)
			assert_string_equal(problem, rows[i].problem);
		else
			assert_true(problem[0] != '\0');
	}
	assert_int_equal(registry.count, 3);
	registry_release(&registry);
	config_free(config);
}

static void test_bound(void **state)
{
	struct registry registry = {.count = 0};
	struct config *config = config_with("");
	char line[64];

	(void)state;
	for (unsigned i = 0; i < REGISTRY_MAX; i++) {
		snprintf(line, sizeof(line), "{name: c%u, address: 10.1.%u.%u}", i, i / 256,
			 i % 256);
		assert_int_equal(add(&registry, config, line), REGISTRY_CHANGED);
	}
	assert_int_equal(add(&registry, config, "{name: d, address: 10.2.0.0}"), REGISTRY_INVALID);
	assert_string_equal(problem, "more than 1024 registered clients");
	registry_release(&registry);
	config_free(config);
}

static void test_remove(void **state)
{
	struct registry registry = {.count = 0}, copy;
	struct config *config = config_with("clients: [{name: user, uid: 8}]");

	(void)state;
	assert_int_equal(add(&registry, config, "{name: a, address: 10.0.0.1}"), REGISTRY_CHANGED);
	assert_int_equal(add(&registry, config, "{name: b, address: 10.0.0.2}"), REGISTRY_CHANGED);
	assert_int_equal(registry_copy(&registry, &copy), 0);
	assert_int_equal(registry_remove(&copy, config, "x", problem, sizeof(problem)),
			 REGISTRY_SAME);
	assert_int_equal(registry_remove(&copy, config, "user", problem, sizeof(problem)),
			 REGISTRY_INVALID);
	assert_string_equal(problem, "the client 'user' is one of the configuration");
	assert_int_equal(registry_remove(&copy, config, "a", problem, sizeof(problem)),
			 REGISTRY_CHANGED);
	assert_int_equal(copy.count, 1);
	assert_true(registry_holds(&copy, registry.items[1]));
	assert_false(registry_holds(&copy, registry.items[0]));
	assert_int_equal(registry.count, 2); /* the other set is as it was */
	/* the address is free again, and whoever gets it has another key */
	uint64_t old = registry.items[0]->client->source.serial;
	assert_int_equal(add(&copy, config, "{name: a, address: 10.0.0.1}"), REGISTRY_CHANGED);
	assert_int_not_equal(copy.items[1]->client->source.serial, old);
	registry_release(&registry);
	registry_release(&copy);
	config_free(config);
}

/* The keys and policies that come out are those of the image. */
static void test_clients(void **state)
{
	struct registry registry = {.count = 0};
	struct config *config =
		config_with("clients: [{name: user, uid: 8}]\npolicies: {ci: {}, other: {}}");
	struct client_source *clients;
	size_t count;

	(void)state;
	assert_int_equal(add(&registry, config, "{name: a, address: 10.0.0.1, policy: other}"),
			 REGISTRY_CHANGED);
	assert_int_equal(registry_clients(&registry, config, &clients, &count), 0);
	assert_int_equal(count, 2);
	assert_string_equal(clients[0].name, "user");
	assert_int_equal(clients[0].serial, 0);
	assert_string_equal(clients[1].name, "a");
	assert_int_equal(clients[1].policy, 2);
	assert_int_not_equal(clients[1].serial, 0);
	free(clients);
	registry_release(&registry);
	config_free(config);
}

static void test_reread(void **state)
{
	static const struct {
		const char *extra, *problem;
	} rows[] = {
		{"policies: {}", "the registered client 'a': there is no policy 'ci'"},
		{"policies: {ci: {}}\nclients: [{name: a, uid: 8}]",
		 "the registered client 'a': there is another client 'a'"},
		{"policies: {ci: {}}\nclients: [{name: b, address: 10.0.0.1}]",
		 "the registered client 'a': 10.0.0.1 is the client 'b'"},
	};
	struct registry registry = {.count = 0}, again;
	struct config *config = config_with("policies: {ci: {}}");

	(void)state;
	assert_int_equal(add(&registry, config, "{name: a, address: 10.0.0.1, policy: ci}"),
			 REGISTRY_CHANGED);
	config_free(config);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config = config_with(rows[i].extra);
		assert_int_equal(
			registry_reread(&registry, config, &again, problem, sizeof(problem)),
			-EINVAL);
		assert_string_equal(problem, rows[i].problem);
		config_free(config);
	}
	config = config_with("policies: {before: {}, ci: {}}");
	assert_int_equal(registry_reread(&registry, config, &again, problem, sizeof(problem)), 0);
	assert_int_equal(again.items[0]->client->source.policy, 2);
	assert_int_equal(again.items[0]->client->source.serial,
			 registry.items[0]->client->source.serial);
	registry_release(&registry);
	registry_release(&again);
	config_free(config);
}

static void put_file(const char *text, size_t length)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/sock.clients", folder);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(write(fd, text, length), (ssize_t)length);
	close(fd);
}

static void test_file(void **state)
{
	static const struct {
		const char *text, *problem; /* the problem without its folder */
	} rows[] = {
		{"{name: a, address: 10.0.0.1}\n{name: b, policy: x, address: 10.0.0.2}\n",
		 ":2: error: there is no policy 'x'"},
		{"{name: a, address: 10.0.0.1}\n{name: a, address: 10.0.0.2}\n",
		 ":2: error: there is another client 'a'"},
		{"{name: a, address: 10.0.0.1}\n{name: a, address: 10.0.0.1}\n",
		 ":2: error: the client is there twice"},
		{"{name: a, addr", ":1: error: "},
		{"\n{name: a, address: 10.0.0.1}\n", ":1: error: "},
	};
	struct registry registry = {.count = 0}, again;
	struct config *config = config_with("");
	uint64_t serial = 0;
	struct stat status;
	char path[REGISTRY_PATH_MAX], expected[REGISTRY_PATH_MAX + 128];

	(void)state;
	registry_path(config, path);
	assert_int_equal(registry_load(&again, config, &serial, problem, sizeof(problem)), 0);
	assert_int_equal(again.count, 0); /* there is none yet */
	add(&registry, config, "{\"name\":\"a\",\"addresses\":[\"10.0.0.1\",\"fd00::1\"]}");
	add(&registry, config, "{\"name\":\"b\",\"uid\":7}");
	assert_int_equal(registry_save(&registry, config, problem, sizeof(problem)), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 0777, 0600);
	assert_int_equal(registry_load(&again, config, &serial, problem, sizeof(problem)), 0);
	assert_int_equal(serial, 2);
	assert_int_equal(again.count, 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(config_client_same(again.items[i]->client, registry.items[i]->client));
	registry_release(&again);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_file(rows[i].text, strlen(rows[i].text));
		assert_true(registry_load(&again, config, &serial, problem, sizeof(problem)) < 0);
		snprintf(expected, sizeof(expected), "%s%s", path, rows[i].problem);
		assert_memory_equal(problem, expected, strlen(expected));
	}
	put_file("{name: a, address: 10.0.0.1}\0{}\n", 32);
	assert_int_equal(registry_load(&again, config, &serial, problem, sizeof(problem)), -EINVAL);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_true(registry_save(&registry, config, problem, sizeof(problem)) < 0);
	assert_true(registry_load(&again, config, &serial, problem, sizeof(problem)) < 0);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(serial, 2);
	registry_release(&registry);
	config_free(config);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_add),    cmocka_unit_test(test_bound),
		cmocka_unit_test(test_remove), cmocka_unit_test(test_clients),
		cmocka_unit_test(test_reread), cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
