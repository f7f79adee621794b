/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory of operation.
 *
 * What stands in the kernel is read with iptables-save, what is to be changed goes through
 * iptables-restore --noflush, which commits a table at once. There is no state besides the
 * kernel's: what is ours is told by its name, PF-INSTANCE-PART, and a part has no '-', so the
 * instances `a` and `a-b` are told apart.
 *
 *   install   jumps of ours away, chains filled anew (naming a chain flushes it), jumps in front;
 * parts that this ruleset does not have away. The same text whether there was nothing, all of it or
 * a damaged part, so installing is also repairing. filter is committed before mangle: what is not
 * yet queued is dropped meanwhile. remove    jumps, rules and chains away, mangle before filter,
 * for the same reason verify    our chains as we write them, rule by rule, and our jumps first in
 * their hooks, before them nothing but jumps of other instances
 */

#include "filter/apply.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "filter/tool.h"

/* Seconds to wait for another program that changes rules. */
#define LOCK_WAIT "10"

struct lines {
	char *text; /* owned; lines are NUL-terminated in it */
	char **items;
	size_t count;
};

/* Which program: one family of one front end, and whose rules. */
struct side {
	const struct ruleset *ruleset;
	enum address_family family;
	enum filter_backend backend; /* not FILTER_AUTO */
	char *problem;
	size_t size;
};

static const char *family_text(const struct side *side)
{
	return side->family == ADDRESS_IPV6 ? "IPv6" : "IPv4";
}

static const char *backend_text(const struct side *side)
{
	return side->backend == FILTER_IPTABLES_NFT ? "nft" : "legacy";
}

static int run_side(const struct side *side, const char *what, const char *input, char **output)
{
	char name[32];
	const char *restore[] = {name, "--noflush", "-w", LOCK_WAIT, NULL};
	const char *save[] = {name, NULL};

	snprintf(name, sizeof(name), "%s-%s-%s",
		 side->family == ADDRESS_IPV6 ? "ip6tables" : "iptables", backend_text(side), what);
	return tool_run(input != NULL ? restore : save, input, output, side->problem, side->size);
}

static void lines_free(struct lines *lines)
{
	free(lines->text);
	free(lines->items);
	*lines = (struct lines){0};
}

/* Takes TEXT. -ENOMEM frees it. */
static int lines_split(char *text, struct lines *out)
{
	struct lines lines = {.text = text};
	size_t newlines = 1;

	if (text == NULL)
		return -ENOMEM;
	for (const char *at = text; *at != '\0'; at++)
		newlines += *at == '\n';
	lines.items = calloc(newlines, sizeof(*lines.items));
	if (lines.items == NULL) {
		free(text);
		return -ENOMEM;
	}
	for (char *at = text; at != NULL;) {
		char *line = strsep(&at, "\n");
		if (line[0] != '\0' && line[0] != '#')
			lines.items[lines.count++] = line;
	}
	*out = lines;
	return 0;
}

/* nft's front end shows nothing of a table in which somebody uses what iptables does not have. */
static bool is_hidden(const char *text, const char *table)
{
	char note[64];

	snprintf(note, sizeof(note), "# Table `%s' is incompatible", table);
	return strstr(text, note) != NULL;
}

static int read_rules(const struct side *side, struct lines *out)
{
	char *text;
	int error = run_side(side, "save", NULL, &text);

	if (error != 0) {
		free(text);
		return error;
	}
	if (is_hidden(text, "filter") || is_hidden(text, "mangle")) {
		snprintf(side->problem, side->size,
			 "%s: the table filter or mangle holds rules that iptables cannot read",
			 family_text(side));
		free(text);
		return -EOPNOTSUPP;
	}
	return lines_split(text, out);
}

static int wanted_rules(const struct side *side, struct lines *out)
{
	return lines_split(ruleset_text(side->ruleset, side->family), out);
}

/* The length of the chain name at TEXT when it is one of INSTANCE, or of any with NULL; else 0. */
static size_t own_chain(const char *text, const char *instance)
{
	size_t length = strcspn(text, " ");
	const char *dash = memrchr(text, '-', length);

	if (dash == NULL || strncmp(text, "PF-", 3) != 0 || dash == text + 2)
		return 0;
	if (instance != NULL && ((size_t)(dash - text - 3) != strlen(instance) ||
				 strncmp(text + 3, instance, strlen(instance)) != 0))
		return 0;
	return length;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Is LINE a rule outside our chains that leads into one? INSTANCE as above. */
static bool is_jump(const char *line, const char *instance)
{
	const char *target = strstr(line, " -j PF-");

	if (!begins(line, "-A ") || own_chain(line + 3, NULL) != 0)
		return false;
	if (target == NULL)
		target = strstr(line, " -g PF-");
	return target != NULL && own_chain(target + 4, instance) != 0;
}

static bool is_own_chain(const char *line, const char *instance)
{
	return line[0] == ':' && own_chain(line + 1, instance) != 0;
}

/* The lines of TABLE, from behind "*TABLE" to before COMMIT; empty when it is not there. */
static struct lines table_of(const struct lines *lines, const char *table)
{
	struct lines part = {0};

	for (size_t i = 0; i < lines->count; i++) {
		if (lines->items[i][0] == '*') {
			if (part.items != NULL)
				break;
			if (strcmp(lines->items[i] + 1, table) == 0)
				part.items = lines->items + i + 1;
			continue;
		}
		if (part.items != NULL && strcmp(lines->items[i], "COMMIT") == 0)
			break;
		part.count += part.items != NULL;
	}
	return part;
}

static bool has_ours(const struct lines *present, const char *instance)
{
	for (size_t i = 0; i < present->count; i++)
		if (is_own_chain(present->items[i], instance) ||
		    is_jump(present->items[i], instance))
			return true;
	return false;
}

static bool chain_is_in(const char *chain, const struct lines *lines)
{
	size_t length = strcspn(chain, " ");

	for (size_t i = 0; i < lines->count; i++)
		if (lines->items[i][0] == ':' && strncmp(lines->items[i] + 1, chain, length) == 0 &&
		    lines->items[i][1 + length] == ' ')
			return true;
	return false;
}

static void print_deletions(FILE *out, const struct lines *present, const char *instance)
{
	for (size_t i = 0; i < present->count; i++)
		if (is_jump(present->items[i], instance))
			fprintf(out, "-D %s\n", present->items[i] + 3);
}

/* Our chains that WANTED does not have, away. */
static void print_stale(FILE *out, const struct lines *present, const struct lines *wanted,
			const char *instance)
{
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < present->count; i++) {
			const char *line = present->items[i];
			if (is_own_chain(line, instance) && !chain_is_in(line + 1, wanted))
				fprintf(out, "-%c %.*s\n", pass == 0 ? 'F' : 'X',
					(int)strcspn(line + 1, " "), line + 1);
		}
}

/* Adds to a failed restore what stood in the line that it names. */
static void explain_line(const struct side *side, const char *input)
{
	const char *at = strstr(side->problem, "line ");
	unsigned long line = at == NULL ? 0 : strtoul(at + 5, NULL, 10);
	size_t length = strlen(side->problem);

	if (line == 0)
		return;
	for (; --line > 0 && input != NULL; input = input == NULL ? NULL : input + 1)
		input = strchr(input, '\n');
	if (input != NULL && length < side->size)
		snprintf(side->problem + length, side->size - length, ": %.*s",
			 (int)strcspn(input, "\n"), input);
}

static int restore(const struct side *side, const char *input)
{
	char *output;
	int error = run_side(side, "restore", input, &output);

	if (error == -EIO)
		explain_line(side, input);
	free(output);
	return error;
}

/* A stream into *TEXT, which belongs to the caller once it is closed. */
static FILE *open_text(char **text, size_t *size)
{
	*text = NULL;
	return open_memstream(text, size);
}

static int restore_stream(const struct side *side, FILE *stream, char **text)
{
	int error = ferror(stream) ? -ENOMEM : 0;

	if (fclose(stream) != 0 && error == 0)
		error = -ENOMEM;
	if (error == 0 && (*text)[0] != '\0')
		error = restore(side, *text);
	free(*text);
	return error;
}

static int install_side(const struct side *side, const struct lines *present)
{
	static const char *const tables[] = {"filter", "mangle"};
	const char *instance = side->ruleset->instance;
	struct lines wanted;
	size_t size;
	char *text;
	FILE *out;
	int error = wanted_rules(side, &wanted);

	if (error != 0)
		return error;
	out = open_text(&text, &size);
	for (size_t i = 0; out != NULL && i < 2; i++) {
		struct lines mine = table_of(&wanted, tables[i]);
		struct lines there = table_of(present, tables[i]);
		fprintf(out, "*%s\n", tables[i]);
		print_deletions(out, &there, instance);
		for (size_t j = 0; j < mine.count; j++)
			fprintf(out, "%s\n", mine.items[j]);
		print_stale(out, &there, &mine, instance);
		fputs("COMMIT\n", out);
	}
	error = out == NULL ? -ENOMEM : restore_stream(side, out, &text);
	lines_free(&wanted);
	return error;
}

static int remove_side(const struct side *side, const struct lines *present)
{
	static const char *const tables[] = {"mangle", "filter"};
	static const struct lines nothing = {0};
	size_t size;
	char *text;
	FILE *out = open_text(&text, &size);

	if (out == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < 2; i++) {
		struct lines there = table_of(present, tables[i]);
		if (!has_ours(&there, side->ruleset->instance))
			continue;
		fprintf(out, "*%s\n", tables[i]);
		print_deletions(out, &there, side->ruleset->instance);
		print_stale(out, &there, &nothing, side->ruleset->instance);
		fputs("COMMIT\n", out);
	}
	return restore_stream(side, out, &text);
}

/* Our rules of one chain, one after the other. */
static const char *next_rule(const struct lines *table, size_t *at, const char *chain,
			     size_t length)
{
	while (*at < table->count) {
		const char *line = table->items[(*at)++];
		if (begins(line, "-A ") && strncmp(line + 3, chain, length) == 0 &&
		    line[3 + length] == ' ')
			return line;
	}
	return NULL;
}

static int verify_chain(const struct side *side, const char *table, const struct lines *mine,
			const struct lines *there, const char *chain)
{
	size_t length = strcspn(chain, " "), at = 0, found_at = 0;

	if (!chain_is_in(chain, there)) {
		snprintf(side->problem, side->size, "%s %s: chain %.*s is missing",
			 family_text(side), table, (int)length, chain);
		return -EBADMSG;
	}
	for (unsigned number = 1;; number++) {
		const char *wanted = next_rule(mine, &at, chain, length);
		const char *found = next_rule(there, &found_at, chain, length);
		if (wanted == NULL && found == NULL)
			return 0;
		if (wanted != NULL && found != NULL && strcmp(wanted, found) == 0)
			continue;
		snprintf(side->problem, side->size, "%s %s: chain %.*s, rule %u: is '%s', not '%s'",
			 family_text(side), table, (int)length, chain, number,
			 found == NULL ? "missing" : found + 4 + length,
			 wanted == NULL ? "none" : wanted + 4 + length);
		return -EBADMSG;
	}
}

/* The jumps that MINE has for HOOK, which stand there in reverse as "-I HOOK 1 REST". */
static int verify_hook(const struct side *side, const char *table, const struct lines *mine,
		       const struct lines *there, const char *hook, size_t length)
{
	const char *found;
	size_t found_at = 0;

	for (size_t i = mine->count; i-- > 0;) {
		const char *line = mine->items[i];
		if (!begins(line, "-I ") || strncmp(line + 3, hook, length + 1) != 0)
			continue;
		do
			found = next_rule(there, &found_at, hook, length);
		while (found != NULL && is_jump(found, NULL) &&
		       !is_jump(found, side->ruleset->instance));
		if (found != NULL && strcmp(found + 4 + length, line + 6 + length) == 0)
			continue;
		snprintf(side->problem, side->size, "%s %s: %.*s does not begin with '%s'",
			 family_text(side), table, (int)length, hook, line + 6 + length);
		return -EBADMSG;
	}
	while ((found = next_rule(there, &found_at, hook, length)) != NULL)
		if (is_jump(found, side->ruleset->instance)) {
			snprintf(side->problem, side->size, "%s %s: %.*s has '%s' once too often",
				 family_text(side), table, (int)length, hook, found + 4 + length);
			return -EBADMSG;
		}
	return 0;
}

static int verify_table(const struct side *side, const char *table, const struct lines *mine,
			const struct lines *there)
{
	int error = 0;

	for (size_t i = 0; i < mine->count && error == 0; i++) {
		const char *line = mine->items[i];
		if (line[0] == ':')
			error = verify_chain(side, table, mine, there, line + 1);
		else if (begins(line, "-I "))
			error = verify_hook(side, table, mine, there, line + 3,
					    strcspn(line + 3, " "));
	}
	for (size_t i = 0; i < there->count && error == 0; i++) {
		const char *line = there->items[i];
		if (!is_own_chain(line, side->ruleset->instance) || chain_is_in(line + 1, mine))
			continue;
		snprintf(side->problem, side->size,
			 "%s %s: chain %.*s is not of this configuration", family_text(side), table,
			 (int)strcspn(line + 1, " "), line + 1);
		error = -EBADMSG;
	}
	return error;
}

static int verify_side(const struct side *side, const struct lines *present)
{
	static const char *const tables[] = {"filter", "mangle"};
	struct lines wanted;
	int error = wanted_rules(side, &wanted);

	if (error != 0)
		return error;
	if (!has_ours(present, side->ruleset->instance)) {
		snprintf(side->problem, side->size, "%s: no rules of instance %s",
			 family_text(side), side->ruleset->instance);
		error = -ENOENT;
	}
	for (size_t i = 0; i < 2 && error == 0; i++) {
		struct lines mine = table_of(&wanted, tables[i]);
		struct lines there = table_of(present, tables[i]);
		error = verify_table(side, tables[i], &mine, &there);
	}
	lines_free(&wanted);
	return error;
}

/* Has this network namespace no IPv6 at all, or is it switched off for every interface? */
static bool ipv6_is_disabled(void)
{
	FILE *file;
	int value = '0';

	if (access("/proc/net/if_inet6", F_OK) != 0)
		return true;
	file = fopen("/proc/sys/net/ipv6/conf/all/disable_ipv6", "re");
	if (file == NULL)
		return false;
	value = fgetc(file);
	fclose(file);
	return value == '1';
}

/* Both families of one front end. */
struct sides {
	struct side side[2];
	struct lines present[2];
	bool skipped[2]; /* no IPv6 here */
	bool had_ours;
};

static void sides_close(struct sides *sides)
{
	for (int i = 0; i < 2; i++)
		lines_free(&sides->present[i]);
}

static int sides_open(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		      size_t size, struct sides *out)
{
	static const enum address_family families[] = {ADDRESS_IPV4, ADDRESS_IPV6};

	*out = (struct sides){.had_ours = false};
	for (int i = 0; i < 2; i++) {
		out->side[i] = (struct side){.ruleset = ruleset,
					     .family = families[i],
					     .backend = backend,
					     .problem = problem,
					     .size = size};
		int error = read_rules(&out->side[i], &out->present[i]);
		if (error != 0 && families[i] == ADDRESS_IPV6 && ipv6_is_disabled()) {
			out->skipped[i] = true;
			continue;
		}
		if (error != 0) {
			sides_close(out);
			return error;
		}
		if (has_ours(&out->present[i], ruleset->instance))
			out->had_ours = true;
	}
	return 0;
}

static void undo_install(const struct ruleset *ruleset, enum filter_backend backend)
{
	struct sides sides;
	char problem[256];

	if (sides_open(ruleset, backend, problem, sizeof(problem), &sides) != 0)
		return;
	for (int i = 0; i < 2; i++)
		if (!sides.skipped[i])
			remove_side(&sides.side[i], &sides.present[i]);
	sides_close(&sides);
}

static int install_with(const struct ruleset *ruleset, struct sides *sides)
{
	int error = 0;

	for (int i = 0; i < 2 && error == 0; i++) {
		if (sides->skipped[i])
			continue;
		error = install_side(&sides->side[i], &sides->present[i]);
		if (error != 0 && sides->side[i].family == ADDRESS_IPV6 && ipv6_is_disabled())
			error = 0;
	}
	if (error != 0 && !sides->had_ours)
		undo_install(ruleset, sides->side[0].backend);
	return error;
}

static int install(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		   size_t size)
{
	struct sides sides;
	int error = sides_open(ruleset, backend, problem, size, &sides);

	if (error != 0)
		return error;
	error = install_with(ruleset, &sides);
	sides_close(&sides);
	return error;
}

enum filter_backend filter_backend_in_use(const struct ruleset *ruleset)
{
	static const enum filter_backend backends[] = {FILTER_IPTABLES_NFT, FILTER_IPTABLES_LEGACY};
	char problem[256];

	for (int i = 0; i < 2; i++) {
		struct sides sides;
		if (sides_open(ruleset, backends[i], problem, sizeof(problem), &sides) != 0)
			continue;
		sides_close(&sides);
		if (sides.had_ours)
			return backends[i];
	}
	return FILTER_AUTO;
}

int filter_install(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		   size_t size)
{
	char second[512];
	int error = ruleset_check(ruleset, problem, size);

	if (error != 0)
		return error;
	if (backend == FILTER_AUTO)
		backend = filter_backend_in_use(ruleset);
	if (backend != FILTER_AUTO)
		return install(ruleset, backend, problem, size);
	error = install(ruleset, FILTER_IPTABLES_NFT, problem, size);
	if (error == 0)
		return 0;
	if (install(ruleset, FILTER_IPTABLES_LEGACY, second, sizeof(second)) == 0)
		return 0;
	size_t length = strlen(problem);
	snprintf(problem + length, size - length, "; %s", second);
	return error;
}

/* Both families at once by one front end. */
static int install_blindly(const struct ruleset *ruleset, enum filter_backend backend,
			   char *problem, size_t size)
{
	static const enum address_family families[] = {ADDRESS_IPV4, ADDRESS_IPV6};
	struct tool tools[2];
	int errors[2];

	for (int i = 0; i < 2; i++) {
		struct side side = {.family = families[i], .backend = backend};
		char name[32];
		const char *argv[] = {name, "--noflush", "-w", LOCK_WAIT, NULL};
		char *text = ruleset_text(ruleset, families[i]);
		snprintf(name, sizeof(name), "%s-%s-restore", i == 0 ? "iptables" : "ip6tables",
			 backend_text(&side));
		errors[i] =
			text == NULL ? -ENOMEM : tool_begin(&tools[i], argv, text, problem, size);
		tools[i].name = i == 0 ? "iptables-restore" : "ip6tables-restore";
		free(text);
	}
	for (int i = 0; i < 2; i++) {
		char *output = NULL;
		if (errors[i] == 0)
			errors[i] = tool_end(&tools[i], &output, problem, size);
		free(output);
	}
	if (errors[1] != 0 && ipv6_is_disabled())
		errors[1] = 0;
	return errors[0] != 0 ? errors[0] : errors[1];
}

int filter_install_fresh(const struct ruleset *ruleset, char *problem, size_t size)
{
	char second[512];
	int error = ruleset_check(ruleset, problem, size);

	if (error != 0)
		return error;
	error = install_blindly(ruleset, FILTER_IPTABLES_NFT, problem, size);
	if (error == 0)
		return 0;
	undo_install(ruleset, FILTER_IPTABLES_NFT);
	if (install_blindly(ruleset, FILTER_IPTABLES_LEGACY, second, sizeof(second)) == 0)
		return 0;
	undo_install(ruleset, FILTER_IPTABLES_LEGACY);
	size_t length = strlen(problem);
	snprintf(problem + length, size - length, "; %s", second);
	return error;
}

static int remove_with(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		       size_t size)
{
	struct sides sides;
	int error = sides_open(ruleset, backend, problem, size, &sides);

	if (error != 0)
		return error;
	for (int i = 0; i < 2; i++) {
		int failed = sides.skipped[i] ? 0 : remove_side(&sides.side[i], &sides.present[i]);
		if (failed != 0)
			error = failed;
	}
	sides_close(&sides);
	return error;
}

int filter_remove(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		  size_t size)
{
	int error = ruleset_check(ruleset, problem, size);

	if (error != 0)
		return error;
	if (backend != FILTER_AUTO)
		return remove_with(ruleset, backend, problem, size);
	/* Of two front ends one may not be installed, or not work here: then nothing of ours is in
	 * it. */
	int nft = remove_with(ruleset, FILTER_IPTABLES_NFT, problem, size);
	int legacy = remove_with(ruleset, FILTER_IPTABLES_LEGACY, problem, size);
	return nft == 0 || legacy == 0 ? 0 : nft;
}

int filter_verify(const struct ruleset *ruleset, enum filter_backend backend, char *problem,
		  size_t size)
{
	struct sides sides;
	int error = ruleset_check(ruleset, problem, size);

	if (error != 0)
		return error;
	if (backend == FILTER_AUTO)
		backend = filter_backend_in_use(ruleset);
	if (backend == FILTER_AUTO) {
		snprintf(problem, size, "no rules of instance %s", ruleset->instance);
		return -ENOENT;
	}
	error = sides_open(ruleset, backend, problem, size, &sides);
	if (error != 0)
		return error;
	for (int i = 0; i < 2 && error == 0; i++)
		if (!sides.skipped[i])
			error = verify_side(&sides.side[i], &sides.present[i]);
	sides_close(&sides);
	return error;
}
