/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * pinfold-gate: the program that the kernel asks about every new flow and its first request.
 *
 * Theory. The parent starts it with one socket (MESSAGE_FD) and sends START; the gate maps the
 * policy image and the pin table, binds its queue and its log group, gives up its privileges and answers READY. Then
 * one loop in one thread: packets from the queue, notices of the static floor, messages from the
 * parent, and what is due by time. Notices are only reported, so they come after the queue and one
 * batch a turn: a flood of them costs itself its audit lines and nobody a verdict. All state is in static tables (nfq/limits.h); a packet never allocates, opens or waits for
 * anything. When the parent ends the conversation the gate reports what was refused so far and ends;
 * when the gate ends in any way the kernel drops what it held and what would be queued.
 *
 * A reload maps the new image, opens it, and swaps; packets are judged by one image from start to
 * end since nothing else runs meanwhile.
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hook/hooks.h"
#include "inspect/initial.h"
#include "message.h"
#include "nfq/audit.h"
#include "nfq/flow.h"
#include "nfq/gate.h"
#include "nfq/hold.h"
#include "nfq/judge.h"
#include "nfq/log.h"
#include "nfq/privilege.h"
#include "nfq/queue.h"
#include "nfq/tracking.h"
#include "owner/owner.h"
#include "secrets/secrets.h"
#include "settings.h"

/* Exit codes: an orderly end, a broken environment, a start that failed. */
enum { EXIT_ENDED = 0, EXIT_BROKEN = 1, EXIT_START = 2 };

/* Batches between two looks at the parent's messages: some 500 packets. */
#define BATCHES_PER_TURN 32u

struct image {
	void *bytes;
	size_t size;
	const struct policy_image *policy;
};

static struct gate gate;
static struct hooks hooks;
static struct image image;
static struct settings settings;

/* After a reload: see sweep(). */
#define SWEEPS            2u
#define SWEEP_INTERVAL_MS 200u
static unsigned sweeps_left;
static uint64_t sweep_due;

static uint64_t milliseconds(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

/* Reads the clocks; the offset follows CLOCK_REALTIME when somebody sets it. */
static uint64_t tick(void)
{
	uint64_t now = milliseconds(CLOCK_BOOTTIME);

	gate.wall_offset = (int64_t)(milliseconds(CLOCK_REALTIME) - now);
	return now;
}

static void sink_verdict(struct sink *sink, uint32_t id, enum sink_action action,
			 uint32_t mark_before, enum mark_state state)
{
	(void)sink;
	queue_verdict(id, action, mark_before, state);
}

static int sink_audit(struct sink *sink, const struct audit_record *record)
{
	static union message_body body;

	(void)sink;
	body.audit = *record;
	return message_send(MESSAGE_FD, MESSAGE_AUDIT, &body, NULL, 0, MSG_DONTWAIT);
}

static struct sink sink = {.verdict = sink_verdict, .audit = sink_audit};

static int ask_hook(policy_index policy, const struct hook_question *question,
		    const struct client_key *client, struct flow *flow, uint64_t now, uint64_t *id)
{
	return hooks_ask(&hooks, gate.image, policy, question, client, flow, now, id);
}

static void hook_answered(void *context, uint64_t id, const struct hook_reply *reply)
{
	judge_hooked(&gate, context, id, reply, tick());
}

/* One clear line, to the parent and, should it not listen, to standard error. */
__attribute__((format(printf, 1, 2))) static void failed(const char *format, ...)
{
	static union message_body body;
	va_list arguments;

	memset(&body, 0, sizeof(body));
	va_start(arguments, format);
	vsnprintf(body.failed.text, sizeof(body.failed.text), format, arguments);
	va_end(arguments);
	if (message_send(MESSAGE_FD, MESSAGE_FAILED, &body, NULL, 0, MSG_DONTWAIT) < 0)
		dprintf(STDERR_FILENO, "pinfold-gate: %s\n", body.failed.text);
}

/* Maps a sealed memfd of the parent. 0, -EPROTO when it could still change, or an errno of mmap().
 */
static int image_map(int fd, struct image *out)
{
	const int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	off_t size = lseek(fd, 0, SEEK_END);
	struct image mapped;
	int error;

	if (seals < 0 || (seals & needed) != needed || size <= 0)
		return -EPROTO;
	mapped.size = (size_t)size;
	mapped.bytes = mmap(NULL, mapped.size, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped.bytes == MAP_FAILED)
		return -errno;
	error = policy_image_open(mapped.bytes, mapped.size, &mapped.policy);
	if (error < 0) {
		munmap(mapped.bytes, mapped.size);
		return error;
	}
	*out = mapped;
	return 0;
}

static void image_unmap(struct image *old)
{
	if (old->bytes != NULL)
		munmap(old->bytes, old->size);
	old->bytes = NULL;
}

static void close_descriptors(const struct message *message)
{
	for (uint32_t i = 0; i < message->fd_count; i++)
		close(message->fds[i]);
}

static struct owner_asker owner_asker;

static uint64_t cgroup_of(const struct flow_key *key)
{
	size_t size = key->family == ADDRESS_IPV4 ? 4 : 16;
	struct endpoint local = {.address = address_from_bytes(key->source, size),
				 .port = key->source_port};
	struct endpoint remote = {.address = address_from_bytes(key->destination, size),
				  .port = key->destination_port};
	struct owner owner;

	if (key->protocol != IPPROTO_TCP && key->protocol != IPPROTO_UDP)
		return 0;
	return owner_ask(&owner_asker, key->protocol, &local, &remote, &owner) ? owner.cgroup : 0;
}

static int take_start(const struct message *message)
{
	struct pins_table *pins;
	int error;

	error = settings_receive(message->fds[0], &settings);
	if (error < 0) {
		failed("settings of another version");
		return error;
	}
	error = image_map(message->fds[1], &image);
	if (error < 0) {
		failed("policy image: %s", strerror(-error));
		return error;
	}
	error = pins_map(message->fds[2], &pins);
	if (error < 0) {
		failed("pin table: %s", strerror(-error));
		return error;
	}
	gate.image = image.policy;
	gate.pins = pins;
	gate.generation = message->body.start.generation;
	gate.log_allowed = settings.log_allowed != 0;
	sweeps_left = message->body.start.judge_again != 0 ? SWEEPS : 0;
	gate.sink = &sink;
	gate.interface_name = queue_interface_name;
	gate.cgroup_of = cgroup_of;
	gate.ask = ask_hook;
	return 0;
}

static int start_secrets(void)
{
	const char *problem;
	int error = secrets_new(&gate.secrets, &problem);

	if (error < 0) {
		failed("cannot look for secrets: %s", problem);
		return error;
	}
	error = secrets_settle(gate.secrets);
	if (error < 0)
		failed("cannot look for secrets: %s", strerror(-error));
	return error;
}

static int start_quic(void)
{
	gate.initial = initial_new();
	if (gate.initial == NULL)
		failed("cannot read QUIC: libcrypto has no AES-128, or memory is short");
	return gate.initial == NULL ? -ENOMEM : 0;
}

static int start(void)
{
	static struct message message;
	char problem[256] = "";
	uint8_t seed[16];
	int got = message_receive(MESSAGE_FD, &message, 0);

	if (got <= 0 || message.type != MESSAGE_START) {
		dprintf(STDERR_FILENO, "pinfold-gate: is started by `pinfold daemon` or `run`\n");
		return -EPROTO;
	}
	if (getrandom(seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
		failed("no random bytes");
		return -EIO;
	}
	flow_init(seed);
	audit_init(seed);
	hook_protocol_seed(seed);
	hook_protocol_use_arena();
	if (hooks_init(&hooks, hooks_wish_parent, hook_answered) != 0) {
		failed("cannot wait for hooks");
		return -EIO;
	}
	int error = take_start(&message);

	close_descriptors(&message);
	if (error == 0)
		error = start_secrets();
	if (error == 0)
		error = start_quic();
	if (error < 0)
		return error;
	error = privilege_begin(problem, sizeof(problem));
	if (error == 0)
		error = queue_open(settings.gate.queue, settings.gate.mark_mask, problem,
				   sizeof(problem));
	if (error == 0)
		error = log_open(settings.gate.queue, problem, sizeof(problem));
	if (error == 0) {
		error = owner_open(&owner_asker);
		if (error < 0)
			snprintf(problem, sizeof(problem), "socket diagnosis: %s",
				 strerror(-error));
	}
	if (error == 0)
		error = tracking_open(problem, sizeof(problem));
	if (error == 0)
		error = privilege_drop(message.body.start.uid, message.body.start.gid, problem,
				       sizeof(problem));
	if (error == 0)
		error = privilege_confine(problem, sizeof(problem));
	if (error < 0)
		failed("%s", problem);
	return error;
}

/*
 * Asks for the next packet of every connection. Twice, since a packet on its way through the tables
 * may have written the mark back that its connection had before; and until it succeeds.
 */
static void sweep(uint64_t now)
{
	static union message_body body;

	if (sweeps_left == 0 || now < sweep_due)
		return;
	int error = tracking_ask_again(settings.gate.mark_mask);

	sweep_due = now + SWEEP_INTERVAL_MS;
	if (error == 0) {
		sweeps_left--;
		return;
	}
	memset(&body, 0, sizeof(body));
	snprintf(body.notice.text, sizeof(body.notice.text),
		 "not all connections could be judged again, and will be: %s", strerror(-error));
	message_send(MESSAGE_FD, MESSAGE_NOTICE, &body, NULL, 0, MSG_DONTWAIT);
}

static void reload(const struct message *message)
{
	static struct settings fresh;
	static union message_body answer;
	struct image new;
	int error = settings_receive(message->fds[0], &fresh);

	if (error < 0) {
		failed("settings of another version");
		return;
	}
	if (fresh.gate.queue != settings.gate.queue ||
	    fresh.gate.mark_mask != settings.gate.mark_mask) {
		failed("gate: queue and mark_mask cannot change without a restart");
		return;
	}
	error = tracking_check();
	if (error < 0) {
		failed("connections cannot be judged again: %s", strerror(-error));
		return;
	}
	error = image_map(message->fds[1], &new);
	if (error < 0) {
		failed("policy image: %s", strerror(-error));
		return;
	}
	image_unmap(&image);
	image = new;
	settings = fresh;
	gate.image = image.policy;
	gate.generation = message->body.reload.generation;
	gate.log_allowed = settings.log_allowed != 0;
	memset(&answer, 0, sizeof(answer));
	/* Flows that wait for a hook that is gone are judged anew. */
	hooks_use(&hooks, gate.image, tick());
	sweeps_left = SWEEPS;
	sweep_due = 0;
	answer.reload.generation = gate.generation;
	if (message_send(MESSAGE_FD, MESSAGE_RELOADED, &answer, NULL, 0, 0) < 0)
		exit(EXIT_ENDED);
}

static void status(void)
{
	static union message_body answer;

	memset(&answer, 0, sizeof(answer));
	answer.status.generation = gate.generation;
	memcpy(answer.status.counters, gate.counters, sizeof(gate.counters));
	memcpy(answer.status.by_reason, gate.by_reason, sizeof(gate.by_reason));
	if (message_send(MESSAGE_FD, MESSAGE_STATUS, &answer, NULL, 0, 0) < 0)
		exit(EXIT_ENDED);
}

static void take_packet(void *context, const struct arrival *arrival)
{
	judge_packet(&gate, arrival, *(const uint64_t *)context);
}

static void flush(void)
{
	int error = queue_flush();

	/* A socket that cannot send verdicts any more holds every packet for ever. */
	if (error < 0 && error != -ENOBUFS && error != -EAGAIN)
		exit(EXIT_BROKEN);
	if (error < 0)
		gate.counters[COUNTER_OVERFLOW]++;
}

static void drain_queue(void)
{
	for (unsigned i = 0; i < BATCHES_PER_TURN; i++) {
		uint64_t now = tick();
		int got = queue_receive(take_packet, &now);

		flush();
		if (got == -ENOBUFS)
			gate.counters[COUNTER_OVERFLOW]++;
		else if (got < 0)
			exit(EXIT_BROKEN);
		if (got >= 0 && got < QUEUE_BATCH)
			break;
	}
}

static void take_notice(void *context, const struct arrival *notice)
{
	judge_notice(&gate, notice, *(const uint64_t *)context);
}

/* One batch; a log that fails refuses nothing and opens nothing. */
static void read_notices(void)
{
	uint64_t now = tick();

	gate.counters[COUNTER_AUDIT_LOST] += log_receive(take_notice, &now);
}

/* Milliseconds until something is due, -1: nothing. */
static int patience(void)
{
	uint64_t now = tick();
	int expiry = judge_next_expiry(now), answer = hooks_wait(&hooks, now);
	int wait = expiry < 0 || (answer >= 0 && answer < expiry) ? answer : expiry;

	if (sweeps_left == 0)
		return wait;
	int due = sweep_due <= now ? 0 : (int)(sweep_due - now);
	return wait < 0 || due < wait ? due : wait;
}

/*
 * Whose connection was refused may have ended at once, and all of us with it; the kernel's copies were
 * here before the refusal. Bounded, since others may go on.
 */
static _Noreturn void end(void)
{
	struct pollfd log = {.fd = log_fd(), .events = POLLIN};

	drain_queue();
	for (unsigned i = 0; i < BATCHES_PER_TURN && poll(&log, 1, 0) > 0; i++)
		read_notices();
	exit(EXIT_ENDED);
}

/* One message of the parent; exits at its end of file and on junk. */
static void converse(void)
{
	static struct message message;
	int got = message_receive(MESSAGE_FD, &message, MSG_DONTWAIT);

	if (got == -EAGAIN)
		return;
	if (got == 0)
		end();
	if (got < 0)
		exit(EXIT_BROKEN);
	switch (message.type) {
	case MESSAGE_RELOAD:
		reload(&message);
		break;
	case MESSAGE_STATUS:
		status();
		break;
	case MESSAGE_HOOK:
		hooks_arrived(&hooks, &message.body.hook,
			      message.fd_count > 0 ? message.fds[0] : -1, tick());
		return;
	default:
		exit(EXIT_BROKEN);
	}
	close_descriptors(&message);
}

static _Noreturn void run(void)
{
	struct pollfd fds[] = {
		{.fd = queue_fd(), .events = POLLIN},
		{.fd = MESSAGE_FD, .events = POLLIN},
		{.fd = log_fd(), .events = POLLIN},
		{.fd = hooks_fd(&hooks), .events = POLLIN},
	};

	for (;;) {
		int ready = poll(fds, 4, patience());

		if (ready < 0 && errno != EINTR)
			exit(EXIT_BROKEN);
		if (ready > 0 && fds[0].revents != 0)
			drain_queue();
		if (ready > 0 && fds[1].revents != 0)
			converse();
		if (ready > 0 && fds[2].revents != 0)
			read_notices();
		if (hooks_wait(&hooks, tick()) == 0 || (ready > 0 && fds[3].revents != 0))
			hooks_run(&hooks, tick());
		judge_expire(&gate, tick());
		sweep(tick());
		flush();
	}
}

int main(void)
{
	struct stat status_of_fd;

	if (fstat(MESSAGE_FD, &status_of_fd) < 0 || !S_ISSOCK(status_of_fd.st_mode)) {
		dprintf(STDERR_FILENO, "pinfold-gate: is started by `pinfold daemon` or `run`\n");
		return EXIT_START;
	}
	if (start() < 0)
		return EXIT_START;
	if (message_send(MESSAGE_FD, MESSAGE_READY, NULL, NULL, 0, 0) < 0)
		return EXIT_ENDED;
	hooks_use(&hooks, gate.image, tick());
	run();
}
