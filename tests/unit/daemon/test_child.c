/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * One child over its deaths: what it is started with, what it may say, how often it is started
 * again.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "config/config.h"
#include "daemon/child.h"
#include "daemon/hook.h"

/* The record that the owner finds not right; beyond what the other tests see. */
#define FALSE_RECORD 81

static struct loop loop;
static struct child child;
static struct {
	unsigned ready, died, reloaded, refused, status, audit, notice, hooks;
	const struct policy_image *image;
	char problem[512];
} seen;

static void on_ready(struct child *c)
{
	assert_ptr_equal(c->owner, &seen);
	seen.ready++;
}

static void on_died(struct child *c)
{
	(void)c;
	seen.died++;
}

static void on_reloaded(struct child *c, const char *problem)
{
	(void)c;
	seen.reloaded++;
	if (problem != NULL) {
		seen.refused++;
		snprintf(seen.problem, sizeof(seen.problem), "%s", problem);
	}
}

static void on_status(struct child *c)
{
	(void)c;
	seen.status++;
}

static bool on_audit(struct child *c, const struct audit_record *record)
{
	(void)c;
	assert_int_equal(record->reason, REASON_METADATA);
	seen.audit++;
	return seen.audit != FALSE_RECORD;
}

static void on_notice(struct child *c, const char *text)
{
	(void)c;
	assert_string_equal(text, "a line?of the child");
	seen.notice++;
}

static void on_hook(struct child *c, const struct message_hook *wish)
{
	seen.hooks++;
	hook_grant(c, wish, seen.image, loop_now());
}

static const struct child_events events = {
	.ready = on_ready,
	.died = on_died,
	.reloaded = on_reloaded,
	.status = on_status,
	.audit = on_audit,
	.notice = on_notice,
	.hook = on_hook,
};

static struct image make_image(const char *text, uint64_t generation)
{
	struct config_findings findings;
	struct config *config = config_read_text("p.yaml", text, strlen(text), &findings);
	struct image image = IMAGE_EMPTY;
	char problem[512];

	config_findings_print(&findings, "p.yaml", stderr);
	config_findings_free(&findings);
	assert_non_null(config);
	assert_int_equal(image_build(config, config->source.clients, config->source.client_count,
				     generation, &image, problem, sizeof(problem)),
			 0);
	config_free(config);
	return image;
}

#define REFUSING "policies: {default: {}, refuse-gate: {}}"
#define DYING    "policies: {default: {}, die-gate: {}}"
#define HANGING  "policies: {default: {}, hang-gate: {}}"
#define TALKING  "policies: {default: {}, last-gate: {}}"

static int set_up(void **state)
{
	(void)state;
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(loop_init(&loop), 0);
	child_init(&child, CHILD_GATE, &loop, FAKE_LIBEXEC "/pinfold-gate", &events, &seen);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (child.state != CHILD_DOWN)
		kill(child.process.pid, SIGKILL);
	while (child.state != CHILD_DOWN)
		assert_int_equal(loop_once(&loop, 1000), 0);
	loop_deinit(&loop);
	/* Every child was collected. */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	return 0;
}

static int start(const char *text)
{
	struct image image = make_image(text, 3);
	struct message_start message = {.generation = image.generation};
	int fds[3] = {image.settings, image.policy, image.policy};
	int error = child_start(&child, &message, fds, 3, loop_now());

	image_release(&image);
	return error;
}

static void until(const unsigned *counter, unsigned value)
{
	uint64_t end = loop_now() + 5000;

	while (*counter < value && loop_now() < end)
		assert_int_equal(loop_once(&loop, 100), 0);
	assert_int_equal(*counter, value);
}

static void start_ready(void)
{
	assert_int_equal(start(""), 0);
	assert_int_equal(child.state, CHILD_STARTING);
	until(&seen.ready, seen.ready + 1);
	assert_int_equal(child.state, CHILD_READY);
}

static int reload(const char *text, uint64_t generation)
{
	struct image image = make_image(text, generation);
	int error = child_reload(&child, &image, loop_now());

	image_release(&image);
	return error;
}

static void test_life(void **state)
{
	(void)state;
	start_ready();
	assert_int_equal(child.generation, 3);
	assert_int_equal(child_ask_status(&child), 0);
	assert_int_equal(child_ask_status(&child), 0); /* one is enough */
	until(&seen.status, 1);
	assert_int_equal(child.status.counters[COUNTER_QUERIES], 42);
	assert_int_equal(child.status.by_reason[REASON_METADATA], 3);
	kill(child.process.pid, SIGUSR1);
	until(&seen.audit, 1);
	until(&seen.notice, 1);
	kill(child.process.pid, SIGUSR1);
	until(&seen.audit, 2);
	assert_int_equal(reload("", 4), 0);
	until(&seen.reloaded, 1);
	assert_int_equal(seen.notice, 1); /* the second came too soon */
	assert_int_equal(child.generation, 4);
	assert_int_equal(seen.refused, 0);
	child_end(&child, loop_now());
	assert_int_equal(child.state, CHILD_ENDING);
	until(&seen.died, 1);
	assert_int_equal(child.state, CHILD_DOWN);
}

/* What it says when it is asked to end is heard, whether or not it is dead by then. */
static void test_last_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		seen.audit = seen.died = 0;
		assert_int_equal(start(TALKING), 0);
		until(&seen.ready, i + 1);
		/* Asked and not yet answered: no reason to end it in another way. */
		assert_int_equal(child_ask_status(&child), 0);
		child_end(&child, loop_now());
		struct pollfd death = {.fd = child.process.pidfd, .events = POLLIN};
		if (i == 1)
			poll(&death, 1, 500);
		until(&seen.died, 1);
		assert_int_equal(seen.audit, 80);
		assert_int_equal(seen.status, 0);
		assert_string_equal(child.problem, "exit status 0");
	}
}

static void test_false_record(void **state)
{
	(void)state;
	start_ready();
	seen.audit = FALSE_RECORD - 1;
	kill(child.process.pid, SIGUSR1);
	until(&seen.died, 1);
	assert_string_equal(child.problem, "sent a message that is not right");
}

static void test_reload_refused(void **state)
{
	(void)state;
	start_ready();
	assert_int_equal(reload(REFUSING, 4), 0);
	until(&seen.refused, 1);
	assert_string_equal(seen.problem, "told to refuse");
	assert_int_equal(child.generation, 3);
	assert_int_equal(child.state, CHILD_READY);
	assert_int_equal(seen.died, 0);
}

static void test_reload_death(void **state)
{
	(void)state;
	start_ready();
	assert_int_equal(reload(DYING, 4), 0);
	until(&seen.died, 1);
	assert_int_equal(seen.reloaded, 0);
	assert_int_equal(child.reloading, 0);
	assert_non_null(strstr(child.problem, "exit status 7"));
}

static void test_reload_hangs(void **state)
{
	(void)state;
	start_ready();
	assert_int_equal(reload(HANGING, 4), 0);
	child_tick(&child, loop_now());
	assert_int_equal(child.state, CHILD_READY);
	child_tick(&child, child_deadline(&child));
	assert_int_equal(child.state, CHILD_ENDING);
	until(&seen.died, 1);
	assert_string_equal(child.problem, "did not answer a reload in time");
}

static void test_start_refused(void **state)
{
	(void)state;
	assert_int_equal(start(REFUSING), 0);
	until(&seen.died, 1);
	assert_string_equal(child.problem, "told to refuse");
	assert_int_equal(seen.ready, 0);
}

static void test_start_hangs(void **state)
{
	(void)state;
	assert_int_equal(start(HANGING), 0);
	child_tick(&child, child_deadline(&child));
	until(&seen.died, 1);
	assert_string_equal(child.problem, "was not ready in time");
}

/* Stopped, it dies of silence; one that answers late lives. */
static void test_silent(void **state)
{
	(void)state;
	start_ready();
	for (unsigned i = 0; i < 2 * CHILD_SILENT_MAX; i++) {
		child_tick(&child, child_deadline(&child) - 1);
		assert_false(child.owes_status);
		child_tick(&child, child_deadline(&child));
		assert_true(child.owes_status);
		until(&seen.status, i + 1);
	}
	kill(child.process.pid, SIGSTOP);
	for (unsigned i = 0; i < CHILD_SILENT_MAX; i++)
		child_tick(&child, child_deadline(&child));
	assert_int_equal(child.state, CHILD_READY);
	kill(child.process.pid, SIGCONT);
	until(&seen.status, 2 * CHILD_SILENT_MAX + 1);
	kill(child.process.pid, SIGSTOP);
	for (unsigned i = 0; i <= CHILD_SILENT_MAX; i++)
		child_tick(&child, child_deadline(&child));
	until(&seen.died, 1);
	assert_string_equal(child.problem, "did not answer");
}

static void test_junk(void **state)
{
	(void)state;
	start_ready();
	kill(child.process.pid, SIGUSR2);
	until(&seen.died, 1);
	assert_string_equal(child.problem, "sent a message that is not right");
	assert_int_equal(child.state, CHILD_DOWN);
}

/* A connected pair of message sockets in the place of a child's process. */
static int pose_as_child(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
	child.state = CHILD_DOWN;
	child.process.fd = pair[0];
	child.hooks_left = CHILD_HOOKS_BURST;
	child.hooks_filled = loop_now();
	return pair[1];
}

static void assert_hook(int fd, bool connected, const char *problem)
{
	static struct message message;

	assert_int_equal(message_receive(fd, &message, MSG_DONTWAIT), 1);
	assert_int_equal(message.type, MESSAGE_HOOK);
	assert_int_equal(message.body.hook.policy, 0);
	assert_int_equal(message.body.hook.generation, 9);
	assert_int_equal(message.fd_count, connected ? 1 : 0);
	assert_string_equal(message.body.hook.problem, problem);
	if (!connected)
		return;
	assert_true((fcntl(message.fds[0], F_GETFL) & O_NONBLOCK) != 0);
	close(message.fds[0]);
}

static void test_hook(void **state)
{
	char folder[] = "/tmp/pinfold-hook-XXXXXX", text[192], problem[160];
	struct message_hook wish = {.generation = 9};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = pose_as_child();

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", folder);
	snprintf(text, sizeof(text), "policies: {default: {custom: \"unix:%s\"}, b: {}}",
		 address.sun_path);
	struct image image = make_image(text, 9);

	snprintf(problem, sizeof(problem), "%s: No such file or directory", address.sun_path);
	hook_grant(&child, &wish, image.opened, loop_now());
	assert_hook(fd, false, problem);
	hook_grant(&child, &wish, NULL, loop_now());
	assert_hook(fd, false, "there is no such hook");

	int hook = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(hook, (struct sockaddr *)&address, sizeof(address)), 0);
	snprintf(problem, sizeof(problem), "%s: Connection refused", address.sun_path);
	hook_grant(&child, &wish, image.opened, loop_now());
	assert_hook(fd, false, problem);
	assert_int_equal(listen(hook, 0), 0);
	hook_grant(&child, &wish, image.opened, loop_now());
	assert_hook(fd, true, "");
	/* nobody accepts: the parent does not wait */
	hook_grant(&child, &wish, image.opened, loop_now());
	snprintf(problem, sizeof(problem), "%s: Resource temporarily unavailable",
		 address.sun_path);
	assert_hook(fd, false, problem);

	/* a policy without a hook, and one that is not there */
	for (wish.policy = 1; wish.policy < 4; wish.policy++) {
		static struct message message;
		hook_grant(&child, &wish, image.opened, loop_now());
		assert_int_equal(message_receive(fd, &message, MSG_DONTWAIT), 1);
		assert_int_equal(message.fd_count, 0);
		assert_string_equal(message.body.hook.problem, "there is no such hook");
	}
	unlink(address.sun_path);
	rmdir(folder);
	image_release(&image);
	close(hook);
	close(child.process.fd);
	close(fd);
}

static void test_hooks_without_end(void **state)
{
	uint64_t wish_at = loop_now();
	struct message_hook wish = {.generation = 1};
	static struct message message;

	(void)state;
	start_ready();
	/* it asks as often as it may, and once more */
	int taken = child.process.fd;
	int fd = pose_as_child();
	for (unsigned i = 0; i < CHILD_HOOKS_BURST; i++) {
		hook_grant(&child, &wish, NULL, wish_at);
		assert_int_equal(message_receive(fd, &message, MSG_DONTWAIT), 1);
	}
	close(child.process.fd);
	close(fd);
	child.process.fd = taken;
	child.state = CHILD_READY;
	child.hooks_filled = wish_at;
	hook_grant(&child, &wish, NULL, wish_at);
	until(&seen.died, 1);
	assert_string_equal(child.problem, "asks for hooks without end");
}

/* Messages that have their shape and do not belong where they come. */
static void test_out_of_place(void **state)
{
	static const enum message_type types[] = {MESSAGE_READY,       MESSAGE_RELOADED,
						  MESSAGE_STATUS,      MESSAGE_FAILED,
						  MESSAGE_DROP_CLIENT, MESSAGE_HOOK};
	union message_body body;

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		int pair[2];
		start_ready();
		/* In the child's place. */
		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
		assert_true(dup2(pair[0], child.messages.fd) >= 0);
		close(pair[0]);
		assert_int_equal(loop_add(&loop, &child.messages, 1), 0);
		memset(&body, 0, sizeof(body));
		assert_int_equal(message_send(pair[1], types[i], &body, NULL, 0, 0), 0);
		until(&seen.died, (unsigned)i + 1);
		close(pair[1]);
	}
}

static void test_backoff(void **state)
{
	uint64_t expected = CHILD_BACKOFF_MIN_MS;

	(void)state;
	for (unsigned i = 0; i < 9; i++) {
		start_ready();
		kill(child.process.pid, SIGKILL);
		until(&seen.died, i + 1);
		uint64_t delay = child.deadline - loop_now();
		assert_true(delay <= expected && delay + 30 >= expected);
		assert_string_equal(child.problem, "killed by signal 9");
		expected =
			expected * 2 > CHILD_BACKOFF_MAX_MS ? CHILD_BACKOFF_MAX_MS : expected * 2;
	}
	assert_int_equal(expected, CHILD_BACKOFF_MAX_MS);
	/* A steady while makes it forget. */
	start_ready();
	child.ready_since -= CHILD_STEADY_MS;
	kill(child.process.pid, SIGKILL);
	until(&seen.died, 10);
	assert_true(child.deadline - loop_now() <= CHILD_BACKOFF_MIN_MS);
	assert_int_equal(child.starts, 10);
}

static void test_no_program(void **state)
{
	(void)state;
	child_init(&child, CHILD_GATE, &loop, FAKE_LIBEXEC "/nothing", &events, &seen);
	assert_int_equal(start(""), -ENOENT);
	assert_int_equal(child.state, CHILD_DOWN);
	assert_string_equal(child.problem,
			    "cannot start " FAKE_LIBEXEC "/nothing: No such file or directory");
	child_init(&child, CHILD_GATE, &loop, "/etc", &events, &seen);
	assert_int_equal(start(""), -EACCES);
}

static void test_find(void **state)
{
	char path[256];

	(void)state;
	assert_int_equal(spawn_find("/nonexistent:/bin:/usr", "sh", path, sizeof(path)), 0);
	assert_string_equal(path, "/bin/sh");
	assert_int_equal(spawn_find("/nonexistent:/etc", "passwd", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find("", "sh", path, sizeof(path)), -ENOENT);
	assert_int_equal(spawn_find("/bin", "sh", path, 5), -ENAMETOOLONG);
}

/* Nobody can change an image that a child was given. */
static void test_seals(void **state)
{
	struct image image = make_image("", 9);

	(void)state;
	for (int i = 0; i < 2; i++) {
		int fd = i == 0 ? image.policy : image.settings;
		assert_int_equal(pwrite(fd, "x", 1, 0), -1);
		assert_int_equal(errno, EPERM);
		assert_int_equal(ftruncate(fd, 0), -1);
		assert_int_equal(ftruncate(fd, 1 << 24), -1);
		assert_ptr_equal(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
				 MAP_FAILED);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, 0), -1);
		assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	}
	assert_int_equal(policy_image_generation(image.opened), 9);
	image_release(&image);
	image_release(&image);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(test_life),         CASE(test_reload_refused), CASE(test_reload_death),
		CASE(test_reload_hangs), CASE(test_start_refused),  CASE(test_start_hangs),
		CASE(test_silent),       CASE(test_junk),           CASE(test_out_of_place),
		CASE(test_backoff),      CASE(test_no_program),     CASE(test_find),
		CASE(test_seals),        CASE(test_hook),           CASE(test_hooks_without_end),
		CASE(test_seals),        CASE(test_last_words),     CASE(test_false_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
