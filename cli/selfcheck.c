/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold selfcheck`: tries from inside of a governed client what must be refused.
 *
 * A refusal proves nothing alone: a host without a network refuses everything. So each probe needs two
 * signs. The first is how it ends: a reset, an ICMP error or NXDOMAIN, at once. The second is a witness
 * from the other side: the audit line of just this attempt, told by its drawn name, address or port.
 * Where there is no witness nothing is proved, and that is an answer too.
 *
 *   in `pinfold run --selfcheck`   the lines of the run come in a descriptor (--witness), and COMMAND
 *                                  starts in place of this process when every probe was refused
 *   beside `pinfold daemon`        root asks the control socket for them; with --uid the probes are a
 *                                  governed user's
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/probe.h"
#include "confine/confine.h"

/* For the audit lines: they go from the gate through the parent, and those of floor rules are late. */
#define WITNESS_ROUNDS  30
#define WITNESS_WAIT_MS 100
/* In a run nobody else has done anything yet: a few lines for each probe. */
#define WITNESS_SIZE (256 << 10)

struct check {
	const char *config;
	char *const *command; /* NULL: none */
	long uid, witness;    /* -1: none */
	bool strict;
	char start[64]; /* as in an audit line; older lines are of others */
	struct probe_outcome *outcomes;
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

static bool matches(const struct probe *probe, const struct probe_outcome *outcome,
		    const json_t *line)
{
	const json_t *addresses = json_object_get(line, "addresses");
	const char *address = json_string_value(json_array_get(addresses, 0));

	if (strcmp(text_of(line, "verdict"), "deny") != 0 ||
	    json_is_false(json_object_get(line, "enforced")) ||
	    (probe->reason != NULL && strcmp(text_of(line, "reason"), probe->reason) != 0))
		return false;
	if (probe->kind == PROBE_QUESTION)
		return strcmp(text_of(line, "name"), outcome->what) == 0;
	return address != NULL && strcmp(address, outcome->what) == 0 &&
	       json_integer_value(json_object_get(line, "port")) == outcome->port;
}

static void take_line(struct check *check, const char *text, size_t length)
{
	json_t *line = json_loadb(text, length, 0, NULL);

	if (line != NULL && strcmp(text_of(line, "time"), check->start) >= 0)
		for (size_t i = 0; i < probe_count; i++)
			if (check->outcomes[i].result == PROBE_REFUSED &&
			    matches(&probes[i], &check->outcomes[i], line))
				check->outcomes[i].result = PROBE_SEEN;
	json_decref(line);
}

/* All lines of the descriptor so far; its place in the file is the writer's and stays. */
static int read_witness(struct check *check)
{
	static char text[WITNESS_SIZE];
	ssize_t got = pread((int)check->witness, text, sizeof(text), 0);

	if (got < 0)
		return -errno;
	for (const char *at = text, *end = text + got, *next; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		if (next == NULL)
			break;
		take_line(check, at, (size_t)(next - at));
	}
	return 0;
}

/* The lines that the service keeps. */
static int ask_witness(struct check *check)
{
	struct client client;
	const char *line;

	if (client_open(&client, check->config) != 0)
		return -ENOTCONN;
	if (client_ask(&client, json_pack("{s:s,s:b}", "command", "log", "follow", false)) == 0)
		while ((line = client_line(&client)) != NULL && strstr(line, "\"ok\"") == NULL)
			take_line(check, line, strlen(line));
	client_close(&client);
	return 0;
}

static bool all_seen(const struct check *check)
{
	for (size_t i = 0; i < probe_count; i++)
		if (check->outcomes[i].result == PROBE_REFUSED)
			return false;
	return true;
}

static int hear_witness(struct check *check)
{
	const struct timespec pause = {.tv_nsec = WITNESS_WAIT_MS * 1000000L};
	int error = 0;

	for (int i = 0; i < WITNESS_ROUNDS && error == 0; i++) {
		if (i > 0)
			nanosleep(&pause, NULL);
		error = check->witness >= 0 ? read_witness(check) : ask_witness(check);
		if (error == 0 && all_seen(check))
			break;
	}
	return error;
}

static void try_all(const struct check *check)
{
	for (size_t i = 0; i < probe_count; i++) {
		if (probes[i].strict && !check->strict)
			check->outcomes[i].result = PROBE_NOWHERE;
		else
			probe_try(&probes[i], &check->outcomes[i]);
	}
}

/* As another user, in a child. 0 or negative errno. */
static int try_as_user(const struct check *check)
{
	uid_t uid = (uid_t)check->uid;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(uid) < 0 || setuid(uid) < 0)
			_exit(1);
		try_all(check);
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static void note_start(struct check *check)
{
	struct timespec now;
	struct tm utc;
	char date[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(check->start, sizeof(check->start), "%s.%03ldZ", date, now.tv_nsec / 1000000);
}

static int tell(const struct check *check)
{
	size_t proved = 0;
	int status = STATUS_OK;

	for (size_t i = 0; i < probe_count; i++) {
		const struct probe_outcome *outcome = &check->outcomes[i];
		proved += outcome->result == PROBE_SEEN;
		if (outcome->result == PROBE_SEEN || outcome->result == PROBE_NOWHERE)
			continue;
		const char *how = "no refusal in time";
		if (outcome->result == PROBE_REFUSED)
			how = "refused, but Pinfold does not know of it";
		else if (outcome->error != 0)
			how = strerror(-outcome->error);
		fprintf(stderr, "not_enforced: %s (%s: %s)\n  %s\n", probes[i].name, outcome->what,
			how, probes[i].mend);
		status = STATUS_FAILED;
	}
	if (status == STATUS_OK && check->command == NULL)
		printf("enforced: %zu probes were refused by Pinfold\n", proved);
	return status;
}

static int check_all(struct check *check)
{
	note_start(check);
	int error = 0;
	if (check->uid >= 0)
		error = try_as_user(check);
	else
		try_all(check);
	if (error != 0)
		return command_error(STATUS_USAGE, "cannot become uid %ld: %s", check->uid,
				     strerror(-error));
	if (hear_witness(check) != 0) {
		fputs("not_enforced: witness\n  nobody can say who refused: run it as root of the "
		      "host that Pinfold runs on, with --uid for a governed user; or use "
		      "pinfold run --selfcheck\n",
		      stderr);
		return STATUS_FAILED;
	}
	return tell(check);
}

static int read_number(const char *text, long most, long *out)
{
	char *end;

	errno = 0;
	*out = strtol(text, &end, 10);
	return errno != 0 || *end != '\0' || end == text || *out < 0 || *out > most ? -EINVAL : 0;
}

static int take_options(int argc, char **argv, struct check *check)
{
	for (int i = 1; i < argc; i++) {
		bool more = i + 1 < argc;
		if (strcmp(argv[i], "--strict") == 0)
			check->strict = true;
		else if (strcmp(argv[i], "-c") == 0 && more)
			check->config = argv[++i];
		else if (strcmp(argv[i], "--uid") == 0 && more &&
			 read_number(argv[i + 1], UINT32_MAX - 1L, &check->uid) == 0)
			i++;
		else if (strcmp(argv[i], "--witness") == 0 && more &&
			 read_number(argv[i + 1], 1 << 20, &check->witness) == 0)
			i++;
		else if (strcmp(argv[i], "--") == 0 && more) {
			check->command = argv + i + 1;
			return STATUS_OK;
		} else
			return command_usage_error(&command_selfcheck,
						   "unknown option '%s', or its value is not right",
						   argv[i]);
	}
	return STATUS_OK;
}

static int selfcheck_run(int argc, char **argv)
{
	struct check check = {.uid = -1, .witness = -1};
	int status = take_options(argc, argv, &check);

	if (status != STATUS_OK)
		return status;
	/* Not COMMAND's. */
	if (check.witness >= 0)
		fcntl((int)check.witness, F_SETFD, FD_CLOEXEC);
	/* Shared, so that a child can fill it. */
	check.outcomes = mmap(NULL, sizeof(*check.outcomes) * probe_count, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (check.outcomes == MAP_FAILED)
		return command_error(STATUS_USAGE, "%s", strerror(errno));
	status = check_all(&check);
	if (check.command == NULL)
		return status;
	if (status != STATUS_OK)
		return command_error(STATUS_USAGE, "the command was not started");
	confine_exec(check.command);
}

const struct command command_selfcheck = {
	.name = "selfcheck",
	.summary = "prove that a client is governed, by what is refused to it",
	.usage = "pinfold selfcheck [--uid UID] [--strict] [-c FILE]",
	.options = "Tries what must be refused: metadata services by name, address and embedding,\n"
		   "other resolvers, encrypted DNS, QUIC. Each has to be refused at once and to\n"
		   "have its line in the audit log; otherwise `not_enforced: PROBE`.\n"
		   "  --uid UID   as this governed user\n"
		   "  --strict    what no list allows as well: the policy says default: deny\n"
		   "  -c FILE     the configuration that names the control socket\n"
		   "Inside a run: `pinfold run --selfcheck -- COMMAND`.\n"
		   "Exit status: 0 enforced, 1 not, 2 no start.\n",
	.run = selfcheck_run,
};
