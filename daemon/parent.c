/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The parent, told in order. It makes everything that outlives a child: the policy image, the pin
 * table, the bound sockets, the log. It starts both children with these and waits until both are
 * ready; then it installs the packet-filter rules and says that it is ready. From then on it only
 * reacts: to a child's message or death, to the control socket, to a signal, to the clock. At the
 * end the children go first and the rules last, so that what is governed is never open in between.
 */

#include "daemon/parent.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/hook.h"
#include "daemon/identity.h"
#include "daemon/notify.h"
#include "daemon/report.h"
#include "daemon/state.h"

/* How often idle control connections are looked for. */
#define CONTROL_TICK_MS 5000u

/* Of the copy of the audit log, which may lie in memory: some 200,000 lines. */
#define COPY_MAX (64u << 20)

static const char *const programs[CHILD_COUNT] = {
	[CHILD_RESOLVER] = "pinfold-resolver",
	[CHILD_GATE] = "pinfold-gate",
};

static void start_child(struct parent *parent, struct child *child)
{
	bool resolver = child->kind == CHILD_RESOLVER;
	int fds[MESSAGE_FDS_MAX] = {
		parent->image.settings,
		parent->image.policy,
		resolver ? parent->pins_writable : parent->pins_readable,
	};
	size_t count = 3;
	struct message_start start = {
		.generation = parent->image.generation,
		.uid = parent->uid,
		.gid = parent->gid,
		.listen_count = resolver ? parent->config->settings.resolver.listen_count : 0,
		.judge_again = !resolver && child->served != parent->image.generation,
	};

	if (resolver) {
		memcpy(fds + count, parent->sockets.fds, parent->sockets.count * sizeof(int));
		count += parent->sockets.count;
	}
	if (child_start(child, &start, fds, count, loop_now()) != 0) {
		report("%s", child->problem);
		if (!parent->ready)
			parent->failed = true;
	}
}

int parent_image(struct parent *parent, const struct config *config,
		 const struct registry *registry, struct image *out, char *problem, size_t size)
{
	struct client_source *clients;
	size_t count;
	int error = registry_clients(registry, config, &clients, &count);

	if (error != 0) {
		snprintf(problem, size, "out of memory");
		return error;
	}
	error = image_build(config, clients, count, ++parent->generation, out, problem, size);
	free(clients);
	return error;
}

int parent_ruleset(const struct parent *parent, const struct registry *registry,
		   struct ruleset *out, char *problem, size_t size)
{
	struct client_source *clients;
	size_t count;
	int error = registry_clients(registry, parent->config, &clients, &count);

	if (error != 0) {
		snprintf(problem, size, "out of memory");
		return error;
	}
	error = guard_ruleset(parent->config, clients, count, parent->uid, out, problem, size);
	free(clients);
	return error;
}

static bool all_ready(const struct parent *parent)
{
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (parent->children[i].state != CHILD_READY &&
		    parent->children[i].state != CHILD_UNUSED)
			return false;
	return true;
}

static int install_rules(struct parent *parent, char *problem, size_t size)
{
	struct ruleset ruleset;

	if (!parent->options->manage_rules || !parent->config->gate_enabled)
		return 0;
	parent->guard.alone = parent->options->own_namespace;
	int error = parent_ruleset(parent, &parent->registry, &ruleset, problem, size);
	return error != 0 ? error
			  : guard_install(&parent->guard, &ruleset, loop_now(), problem, size);
}

static void become_ready(struct parent *parent)
{
	char problem[512];

	if (!parent->guard.installed && install_rules(parent, problem, sizeof(problem)) != 0) {
		report("%s", problem);
		parent->failed = true;
		return;
	}
	parent->ready = true;
	if (parent->options->ready_fd >= 0 && write(parent->options->ready_fd, "", 1) < 0)
		report("cannot say that it is ready: %s", strerror(errno));
	notify("READY=1");
}

static void child_ready(struct child *child)
{
	struct parent *parent = child->owner;

	if (parent->ready) {
		report("%s runs again", child_kind_text(child->kind));
		reload_child_ready(parent, child);
	} else if (all_ready(parent)) {
		become_ready(parent);
	}
}

static void child_died(struct child *child)
{
	struct parent *parent = child->owner;

	status_arrived(parent);
	if (parent->ending)
		return;
	if (!parent->ready) {
		if (!parent->failed)
			report("%s: %s", child_kind_text(child->kind), child->problem);
		parent->failed = true;
		return;
	}
	report("%s died (%s), restart in %llu ms", child_kind_text(child->kind), child->problem,
	       (unsigned long long)(child->deadline - loop_now()));
	reload_child_died(parent, child);
}

static void child_reloaded(struct child *child, const char *problem)
{
	reload_answered(child->owner, child, problem);
}

static void child_status(struct child *child)
{
	status_arrived(child->owner);
}

/* What does not fit any more is missing there, never in the log. */
static void copy_line(struct parent *parent, const char *line, size_t length)
{
	if (parent->options->copy_fd <= 0 || parent->copied + length > COPY_MAX)
		return;
	if (report_write(parent->options->copy_fd, line, length) == 0)
		parent->copied += length;
}

static bool child_audit(struct child *child, const struct audit_record *record)
{
	struct parent *parent = child->owner;
	char line[AUDIT_LINE_MAX];
	uint64_t now = loop_now();

	if (!audit_record_is_sane(record))
		return false;
	size_t length = audit_format(record, parent->image.opened, line, sizeof(line));
	if (length == 0)
		return true;
	copy_line(parent, line, length);
	if (record->outcome == OUTCOME_DENY || !parent->options->copy_allowed_alone) {
		audit_write(&parent->audit, line, length, now);
		control_follow(&parent->control, line, length, now);
	}
	return true;
}

static void child_notice(struct child *child, const char *text)
{
	report("%s: %s", child_kind_text(child->kind), text);
}

/* A child may have taken the policy that is on its way, or not yet. */
static void child_hook(struct child *child, const struct message_hook *wish)
{
	const struct parent *parent = child->owner;
	const struct policy_image *image = NULL;

	if (wish->generation == parent->image.generation)
		image = parent->image.opened;
	else if (parent->reload.state != RELOAD_IDLE &&
		 wish->generation == parent->reload.image.generation)
		image = parent->reload.image.opened;
	hook_grant(child, wish, image, loop_now());
}

static const struct child_events child_events = {
	.ready = child_ready,
	.died = child_died,
	.reloaded = child_reloaded,
	.status = child_status,
	.audit = child_audit,
	.notice = child_notice,
	.hook = child_hook,
};

static void signals_ready(struct loop_source *source, uint32_t events)
{
	struct parent *parent = loop_container(source, struct parent, signals);
	struct signalfd_siginfo info;

	(void)events;
	if (read(source->fd, &info, sizeof(info)) != sizeof(info))
		return;
	switch (info.ssi_signo) {
	case SIGHUP:
		reload_request(parent, NULL);
		break;
	case SIGUSR1:
		audit_reopen(&parent->audit);
		break;
	default:
		parent->ending = true;
		break;
	}
}

static void lifetime_ready(struct loop_source *source, uint32_t events)
{
	struct parent *parent = loop_container(source, struct parent, lifetime);

	(void)events;
	parent->ending = true;
	loop_close(&parent->loop, source);
}

static int watch_signals(struct parent *parent)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log over the limit is a loss to count */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	parent->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	parent->signals.ready = signals_ready;
	if (parent->signals.fd < 0)
		return -errno;
	return loop_add(&parent->loop, &parent->signals, EPOLLIN);
}

static int watch(struct parent *parent)
{
	int error = loop_init(&parent->loop);

	if (error == 0)
		error = watch_signals(parent);
	if (error == 0 && parent->options->lifetime_fd >= 0) {
		parent->lifetime.fd = dup(parent->options->lifetime_fd);
		parent->lifetime.ready = lifetime_ready;
		error = parent->lifetime.fd < 0
				? -errno
				: loop_add(&parent->loop, &parent->lifetime, EPOLLIN);
	}
	return error;
}

static int make_pins(struct parent *parent)
{
	uint8_t seed[16];

	if (getrandom(seed, sizeof(seed), 0) != sizeof(seed))
		return -EIO;
	int error = pins_create(&parent->config->pins, seed, &parent->pins_writable,
				&parent->pins_readable);
	return error != 0 ? error : pins_map(parent->pins_readable, &parent->pins);
}

/* What stands before any child runs; one line in PROBLEM on failure. */
static int prepare(struct parent *parent, char *problem, size_t size)
{
	const struct config *config = parent->config;
	int error = identity_find(config->user, &parent->uid, &parent->gid, problem, size);

	if (error == 0)
		error = registry_load(&parent->registry, config, &parent->serial, problem, size);
	if (error == 0)
		error = parent_image(parent, config, &parent->registry, &parent->image, problem,
				     size);
	if (error == 0)
		error = audit_open(&parent->audit, config->log_file, problem, size);
	if (error == 0)
		error = sockets_open(&config->settings.resolver, &parent->sockets, problem, size);
	if (error == 0 && config->control_socket[0] != '\0')
		error = control_open(&parent->control, &parent->loop, config->control_socket,
				     &(struct control_handler){.request = status_handler.request,
							       .gone = status_handler.gone,
							       .context = parent},
				     problem, size);
	if (error != 0)
		return error;
	error = make_pins(parent);
	if (error != 0)
		snprintf(problem, size, "cannot make the pin table: %s", strerror(-error));
	return error;
}

static int start_children(struct parent *parent, char *problem, size_t size)
{
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		struct child *child = &parent->children[i];
		char path[sizeof(child->path)] = "";
		bool wanted = i != CHILD_GATE || parent->config->gate_enabled;

		if (wanted &&
		    spawn_find(parent->options->libexec, programs[i], path, sizeof(path)) != 0) {
			snprintf(problem, size, "there is no %s in %s", programs[i],
				 parent->options->libexec);
			return -ENOENT;
		}
		child_init(child, (enum child_kind)i, &parent->loop, path, &child_events, parent);
		if (!wanted)
			child->state = CHILD_UNUSED;
	}
	for (size_t i = 0; i < CHILD_COUNT && !parent->failed; i++)
		if (parent->children[i].state != CHILD_UNUSED)
			start_child(parent, &parent->children[i]);
	return 0;
}

static void tick(struct parent *parent, uint64_t now)
{
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		struct child *child = &parent->children[i];
		child_tick(child, now);
		if (child->state == CHILD_DOWN && now >= child->deadline && parent->ready &&
		    !parent->ending)
			start_child(parent, child);
	}
	if (!parent->ending)
		guard_tick(&parent->guard, now);
	status_tick(parent, now);
	if (parent->watchdog_ms != 0 && now >= parent->watchdog_next) {
		notify("WATCHDOG=1");
		parent->watchdog_next = now + parent->watchdog_ms;
	}
	if (now >= parent->control_tick) {
		control_tick(&parent->control, now);
		parent->control_tick = now + CONTROL_TICK_MS;
	}
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool has_connections(const struct control *control)
{
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		if (control->connections[i] != NULL)
			return true;
	return false;
}

/* Milliseconds until tick() has something to do; -1: never. */
static int patience(const struct parent *parent, uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < CHILD_COUNT; i++) {
		const struct child *child = &parent->children[i];
		if (child->state != CHILD_DOWN || (parent->ready && !parent->ending))
			next = earliest(next, child_deadline(child));
	}
	if (parent->guard.installed && !parent->ending)
		next = earliest(next, parent->guard.next);
	if (parent->status_deadline != 0)
		next = earliest(next, parent->status_deadline);
	if (has_connections(&parent->control))
		next = earliest(next, parent->control_tick);
	if (parent->watchdog_ms != 0)
		next = earliest(next, parent->watchdog_next);
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)earliest(next - now, 60000);
}

static int step(struct parent *parent)
{
	uint64_t now = loop_now();

	tick(parent, now);
	return loop_once(&parent->loop, patience(parent, loop_now()));
}

static bool some_child_lives(const struct parent *parent)
{
	for (size_t i = 0; i < CHILD_COUNT; i++)
		if (parent->children[i].death.fd >= 0)
			return true;
	return false;
}

static void end(struct parent *parent)
{
	parent->ending = true;
	notify("STOPPING=1");
	control_close(&parent->control);
	for (size_t i = 0; i < CHILD_COUNT; i++)
		child_end(&parent->children[i], loop_now());
	while (some_child_lives(parent))
		if (step(parent) != 0)
			break;
	if (parent->options->remove_rules || parent->failed)
		guard_remove(&parent->guard);
	reload_release(parent);
	changes_release(parent);
	sockets_close(&parent->sockets);
	if (parent->pins != NULL)
		pins_unmap(parent->pins);
	if (parent->pins_writable >= 0)
		close(parent->pins_writable);
	if (parent->pins_readable >= 0)
		close(parent->pins_readable);
	audit_close(&parent->audit);
	image_release(&parent->image);
	config_free(parent->owned);
	loop_close(&parent->loop, &parent->lifetime);
	loop_close(&parent->loop, &parent->signals);
	loop_deinit(&parent->loop);
}

static struct parent *parent_new(const struct parent_options *options)
{
	struct parent *parent = calloc(1, sizeof(*parent));

	if (parent == NULL)
		return NULL;
	parent->options = options;
	parent->config = options->config;
	parent->image = parent->reload.image = IMAGE_EMPTY;
	parent->started = loop_now();
	parent->watchdog_ms = notify_watchdog_ms();
	parent->loop.epoll = -1;
	parent->signals.fd = parent->lifetime.fd = -1;
	parent->pins_writable = parent->pins_readable = -1;
	parent->audit.fd = -1;
	for (size_t i = 0; i < CHILD_COUNT; i++) {
		parent->children[i].death.fd = parent->children[i].messages.fd = -1;
		parent->children[i].state = CHILD_UNUSED;
	}
	return parent;
}

int parent_run(const struct parent_options *options)
{
	struct parent *parent = parent_new(options);
	char problem[512] = "out of memory";
	int error = -ENOMEM;

	if (parent != NULL) {
		error = watch(parent);
		snprintf(problem, sizeof(problem), "cannot wait for events: %s", strerror(-error));
	}
	if (error == 0)
		error = prepare(parent, problem, sizeof(problem));
	if (error == 0)
		error = start_children(parent, problem, sizeof(problem));
	/* Where nobody is governed yet, the rules can be made while the children start. */
	if (error == 0 && options->own_namespace)
		error = install_rules(parent, problem, sizeof(problem));
	if (error != 0)
		report("%s", problem);
	while (error == 0 && !parent->failed && !parent->ending)
		error = step(parent);
	if (parent == NULL)
		return -1;
	if (error != 0)
		parent->failed = true;
	bool failed = parent->failed;
	end(parent);
	free(parent);
	return failed ? -1 : 0;
}
