/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Audit records to JSON lines, and the log file that takes them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "config/config.h"
#include "daemon/audit.h"
#include "daemon/image.h"

static struct audit_record sample(void)
{
	struct audit_record record = {
		.time_ms = 1764536400123,
		.stage = STAGE_CONNECT,
		.outcome = OUTCOME_DENY,
		.reason = REASON_METADATA,
		.rule = {.source = SOURCE_FLOOR, .line = 12},
		.port = 80,
		.protocol = IPPROTO_TCP,
		.enforced = 1,
		.address_count = 1,
		.addresses = {address_ipv4(169, 254, 169, 254)},
		.name_present = 1,
	};

	snprintf(record.client, sizeof(record.client), "runner");
	assert_int_equal(name_from_text("rebind.example", 14, &record.name), NAME_OK);
	return record;
}

static struct image make_image(const char *text)
{
	struct config_findings findings;
	struct config *config = config_read_text("p.yaml", text, strlen(text), &findings);
	struct image image = IMAGE_EMPTY;
	char problem[512];

	config_findings_print(&findings, "p.yaml", stderr);
	config_findings_free(&findings);
	assert_non_null(config);
	assert_int_equal(image_build(config, config->source.clients, config->source.client_count, 5,
				     &image, problem, sizeof(problem)),
			 0);
	config_free(config);
	return image;
}

static json_t *format(const struct audit_record *record, const struct policy_image *image)
{
	char line[AUDIT_LINE_MAX];
	size_t length = audit_format(record, image, line, sizeof(line));

	assert_true(length > 2 && line[length - 1] == '\n');
	assert_ptr_equal(memchr(line, '\n', length), line + length - 1);
	json_t *object = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(object);
	return object;
}

static void assert_text(const json_t *object, const char *key, const char *expected)
{
	assert_string_equal(json_string_value(json_object_get(object, key)), expected);
}

static void test_whole_line(void **state)
{
	struct image image = make_image("");
	struct audit_record record = sample();
	char line[AUDIT_LINE_MAX];

	(void)state;
	size_t length = audit_format(&record, image.opened, line, sizeof(line));
	line[length] = '\0';
	assert_string_equal(
		line, "{\"time\":\"2025-11-30T21:00:00.123Z\",\"stage\":\"connect\","
		      "\"verdict\":\"deny\",\"reason\":\"metadata\",\"rule\":\"floor.txt:12\","
		      "\"client\":\"runner\",\"name\":\"rebind.example\","
		      "\"addresses\":[\"169.254.169.254\"],\"port\":80,\"protocol\":\"tcp\","
		      "\"enforced\":true}\n");
	image_release(&image);
}

static void test_fields(void **state)
{
	struct image image = make_image("");
	struct audit_record record = sample();

	(void)state;
	record.rule = (struct place){.source = SOURCE_CONFIG, .line = 7};
	record.suppressed = 9;
	record.enforced = 0;
	record.qtype = 28;
	record.name = (struct name){.length = 0};
	record.protocol = 132;
	record.port = 0;
	record.address_count = 2;
	record.addresses[1] = address_from_bytes((uint8_t[16]){0xfd, [15] = 1}, 16);
	snprintf(record.detail, sizeof(record.detail), "quote \" and backslash \\");
	json_t *object = format(&record, image.opened);
	assert_text(object, "rule", "p.yaml:7");
	assert_text(object, "name", ".");
	assert_text(object, "protocol", "132");
	assert_text(object, "detail", "quote \" and backslash \\");
	assert_int_equal(json_integer_value(json_object_get(object, "suppressed")), 9);
	assert_int_equal(json_integer_value(json_object_get(object, "qtype")), 28);
	assert_true(json_is_false(json_object_get(object, "enforced")));
	assert_null(json_object_get(object, "port"));
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(object, "addresses"), 1)),
		"fd00::1");
	json_decref(object);

	record.rule = (struct place){.line = 0};
	record.outcome = OUTCOME_ALLOW;
	record.reason = REASON_NONE;
	record.name_present = 0;
	record.time_ms = UINT64_MAX;
	object = format(&record, image.opened);
	assert_text(object, "rule", "built-in");
	assert_text(object, "reason", "allowed");
	assert_null(json_object_get(object, "enforced"));
	assert_null(json_object_get(object, "name"));
	json_decref(object);
	image_release(&image);
}

/* The largest record fits a line. */
static void test_longest(void **state)
{
	struct image image = make_image("");
	struct audit_record record = sample();
	char text[NAME_TEXT_MAX + 1];

	(void)state;
	for (size_t i = 0; i < NAME_TEXT_MAX; i++)
		text[i] = i % 64 == 63 ? '.' : 'a';
	assert_int_equal(name_from_text(text, NAME_TEXT_MAX, &record.name), NAME_OK);
	memset(record.client, 'c', sizeof(record.client) - 1);
	memset(record.detail, '"', sizeof(record.detail) - 1);
	record.address_count = AUDIT_ADDRESSES_MAX;
	for (size_t i = 0; i < AUDIT_ADDRESSES_MAX; i++) {
		uint8_t bytes[16];
		memset(bytes, 0xee, sizeof(bytes));
		record.addresses[i] = address_from_bytes(bytes, 16);
	}
	assert_true(audit_record_is_sane(&record));
	json_t *object = format(&record, image.opened);
	assert_int_equal(json_array_size(json_object_get(object, "addresses")),
			 AUDIT_ADDRESSES_MAX);
	json_decref(object);
	image_release(&image);
}

static void test_junk(void **state)
{
	struct audit_record record;

	(void)state;
	record = sample();
	assert_true(audit_record_is_sane(&record));
	record.stage = STAGE_COUNT;
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.outcome = OUTCOME_COUNT;
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.reason = UINT32_MAX;
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.address_count = AUDIT_ADDRESSES_MAX + 1;
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.addresses[0].family = 5;
	assert_false(audit_record_is_sane(&record));
	record = sample();
	memset(record.client, 'x', sizeof(record.client));
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.client[0] = '\n';
	assert_false(audit_record_is_sane(&record));
	record = sample();
	memset(record.detail, 'x', sizeof(record.detail));
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.detail[0] = '\xff';
	record.detail[1] = '\0';
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.name.length = 255;
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.name.text[record.name.length] = 'x';
	assert_false(audit_record_is_sane(&record));
	record = sample();
	record.name.text[0] = '"';
	assert_false(audit_record_is_sane(&record));
}

static char folder[] = "/tmp/pinfold-audit-XXXXXX";

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

static size_t lines_in(const char *path)
{
	FILE *file = fopen(path, "r");
	size_t lines = 0;

	if (file == NULL)
		return 0;
	for (int c; (c = fgetc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

static void test_file(void **state)
{
	struct audit *audit = calloc(1, sizeof(*audit));
	char path[128], old[128], problem[512] = "";
	struct stat file;

	(void)state;
	snprintf(path, sizeof(path), "%s/log", folder);
	snprintf(old, sizeof(old), "%s/log.1", folder);
	assert_int_equal(audit_open(audit, path, problem, sizeof(problem)), 0);
	assert_int_equal(stat(path, &file), 0);
	assert_int_equal(file.st_mode & 07777, 0640);
	audit_write(audit, "{}\n", 3, 10000);
	assert_int_equal(lines_in(path), 1);

	/* Rotated: noticed by itself after a while, at once on request. */
	assert_int_equal(rename(path, old), 0);
	audit_write(audit, "{}\n", 3, 10001);
	assert_int_equal(lines_in(old), 2);
	audit_write(audit, "{}\n", 3, 10000 + AUDIT_LOOK_MS);
	assert_int_equal(lines_in(old), 2);
	assert_int_equal(lines_in(path), 1);
	assert_int_equal(rename(path, old), 0);
	assert_int_equal(audit_reopen(audit), 0);
	audit_write(audit, "{}\n", 3, 10002 + AUDIT_LOOK_MS);
	assert_int_equal(lines_in(path), 1);
	assert_int_equal(audit->written, 4);
	assert_int_equal(audit->failed, 0);

	/* A switch to what cannot be opened keeps the old one. */
	assert_int_equal(audit_switch(audit, "/nonexistent/log", problem, sizeof(problem)),
			 -ENOENT);
	assert_string_equal(problem,
			    "cannot open the log /nonexistent/log: No such file or directory");
	audit_write(audit, "{}\n", 3, 10003 + AUDIT_LOOK_MS);
	assert_int_equal(lines_in(path), 2);
	audit_close(audit);
	free(audit);
	unlink(path);
	unlink(old);
}

static void test_unwritable(void **state)
{
	struct audit *audit = calloc(1, sizeof(*audit));
	char problem[512] = "";

	(void)state;
	assert_int_equal(audit_open(audit, "/nonexistent/x", problem, sizeof(problem)), -ENOENT);
	assert_int_equal(audit_open(audit, "/tmp", problem, sizeof(problem)), -EISDIR);

	/* A full disk costs lines, counts them, and stops nothing. */
	assert_int_equal(audit_open(audit, "/dev/full", problem, sizeof(problem)), 0);
	for (unsigned i = 0; i < 5; i++)
		audit_write(audit, "{}\n", 3, 100 + i);
	assert_int_equal(audit->failed, 5);
	assert_int_equal(audit->error, ENOSPC);
	assert_int_equal(audit->written, 0);
	audit_close(audit);
	free(audit);
}

/* Nobody reads the pipe: no line may wait for it. */
static void test_never_blocks(void **state)
{
	struct audit *audit = calloc(1, sizeof(*audit));
	char path[128], problem[512];
	char line[1024];

	(void)state;
	snprintf(path, sizeof(path), "%s/fifo", folder);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(audit_open(audit, path, problem, sizeof(problem)), -ENXIO);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(audit_open(audit, path, problem, sizeof(problem)), 0);
	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (unsigned i = 0; i < 200; i++)
		audit_write(audit, line, sizeof(line), 5000);
	assert_true(audit->written >= 15);
	assert_true(audit->failed >= 100);
	assert_int_equal(audit->written + audit->failed, 200);
	close(reader);
	audit_close(audit);
	free(audit);
	unlink(path);
}

/* In the journal's place, in a mount namespace with a /run of its own; the last test, since it stays there. */
static void test_journal(void **state)
{
	struct audit *audit = calloc(1, sizeof(*audit));
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = AUDIT_JOURNAL};
	char problem[512] = "", entry[256];

	(void)state;
	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/run", "tmpfs", 0, NULL) != 0) {
		free(audit);
		skip(); /* no right to a /run of its own */
	}
	assert_int_equal(audit_open(audit, "journald", problem, sizeof(problem)), -ENOENT);
	assert_non_null(strstr(problem, AUDIT_JOURNAL));
	mkdir("/run/systemd", 0755);
	mkdir("/run/systemd/journal", 0755);
	int journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(journal, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(audit_open(audit, "journald", problem, sizeof(problem)), 0);
	audit_write(audit, "{\"a\":1}\n", 8, 10000);
	ssize_t length = recv(journal, entry, sizeof(entry) - 1, 0);
	assert_true(length > 0);
	entry[length] = '\0';
	assert_string_equal(entry, "PRIORITY=5\nSYSLOG_IDENTIFIER=pinfold\nMESSAGE={\"a\":1}\n");

	/* Nobody reads: nothing waits for it. */
	for (unsigned i = 0; i < 2000; i++)
		audit_write(audit, "{}\n", 3, 10001);
	assert_true(audit->failed > 0);
	assert_int_equal(audit->written + audit->failed, 2001);
	assert_int_equal(audit->error, EAGAIN);

	/* It is gone, and comes back as another. */
	close(journal);
	unlink(AUDIT_JOURNAL);
	audit_write(audit, "{}\n", 3, 20000);
	assert_int_equal(audit->error, ECONNREFUSED);
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(journal, (struct sockaddr *)&address, sizeof(address)), 0);
	audit_write(audit, "{}\n", 3, 20000 + AUDIT_LOOK_MS);
	assert_int_equal(audit->error, 0);
	assert_true(recv(journal, entry, sizeof(entry), 0) > 0);
	close(journal);
	audit_close(audit);
	free(audit);
}

static void test_kept(void **state)
{
	struct audit *audit = calloc(1, sizeof(*audit));
	char problem[64], line[32];

	(void)state;
	assert_int_equal(audit_open(audit, "/dev/null", problem, sizeof(problem)), 0);
	for (unsigned i = 0; i < AUDIT_KEPT + 3; i++) {
		int length = snprintf(line, sizeof(line), "%u\n", i);
		audit_write(audit, line, (size_t)length, i);
	}
	assert_string_equal(audit->kept[audit->next], "3\n");
	snprintf(line, sizeof(line), "%u\n", AUDIT_KEPT + 2);
	assert_string_equal(audit->kept[(audit->next + AUDIT_KEPT - 1) % AUDIT_KEPT], line);
	audit_close(audit);
	free(audit);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_line),   cmocka_unit_test(test_fields),
		cmocka_unit_test(test_longest),      cmocka_unit_test(test_junk),
		cmocka_unit_test(test_file),         cmocka_unit_test(test_unwritable),
		cmocka_unit_test(test_never_blocks), cmocka_unit_test(test_kept),
		cmocka_unit_test(test_journal),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
