/* SPDX-License-Identifier: GPL-2.0-or-later */
#define PCRE2_CODE_UNIT_WIDTH 8

/*
 * All shapes are one alternation, each branch ending in a mark with its index, behind one
 * look-behind for the boundary. So a target is walked once a view, and the mark says which shape it
 * was.
 *
 * A program that serves compiles the shapes to machine code, which is some ten times faster
 * (secrets_settle()). The library leaves that code writable; so all memory of the process that can
 * be written and executed loses the first. Where no machine code is to be had (a kernel or a unit
 * that forbids it, no /proc) the interpreter serves, within the same limits. Nothing is allocated
 * then: the library's allocator is ours and says no, and a search that wanted more gives up, which
 * is a finding.
 */

#include "secrets/secrets.h"

#include <errno.h>
#include <inttypes.h>
#include <pcre2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/percent.h"
#include "secrets/table.h"

/* Steps one search may take: an ordinary target needs hundreds, a 64 KiB one some hundred thousand.
 */
#define MATCH_LIMIT 10000000u
/* Whole from the beginning: a stack that grows and shrinks needs system calls. */
#define JIT_STACK (256u * 1024u)

struct secrets {
	bool settled; /* no more memory */
	pcre2_general_context *memory;
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *context;
	pcre2_jit_stack *jit_stack;
	char view[SECRETS_TARGET_MAX];
};

static void *take(size_t size, void *data)
{
	const struct secrets *secrets = data;

	return secrets->settled ? NULL : malloc(size);
}

static void give(void *bytes, void *data)
{
	(void)data;
	free(bytes);
}

static char *join_shapes(void)
{
	static const char head[] = "(?<![A-Za-z0-9])(?:", tail[] = ")";
	size_t size = sizeof(head) + sizeof(tail);

	for (size_t i = 0; i < secret_shape_count; i++)
		size += strlen(secret_shapes[i].pattern) + sizeof("|(*MARK:4294967295)");
	char *joined = malloc(size);
	if (joined == NULL)
		return NULL;
	size_t used = (size_t)snprintf(joined, size, "%s", head);
	for (size_t i = 0; i < secret_shape_count; i++)
		used += (size_t)snprintf(joined + used, size - used, "%s%s(*MARK:%zu)",
					 i == 0 ? "" : "|", secret_shapes[i].pattern, i);
	snprintf(joined + used, size - used, "%s", tail);
	return joined;
}

static int compile(struct secrets *secrets, const char **problem)
{
	char *joined = join_shapes();
	int error;
	PCRE2_SIZE place;
	pcre2_compile_context *context = pcre2_compile_context_create(secrets->memory);

	if (joined == NULL || context == NULL) {
		free(joined);
		pcre2_compile_context_free(context);
		return -ENOMEM;
	}
	secrets->code =
		pcre2_compile((PCRE2_SPTR)joined, PCRE2_ZERO_TERMINATED,
			      PCRE2_NEVER_UTF | PCRE2_NO_AUTO_CAPTURE, &error, &place, context);
	pcre2_compile_context_free(context);
	free(joined);
	if (secrets->code == NULL) {
		*problem = "a secret shape does not compile";
		return -EINVAL;
	}
	return 0;
}

int secrets_new(struct secrets **out, const char **problem)
{
	struct secrets *secrets = calloc(1, sizeof(*secrets));
	int rc;

	*problem = "out of memory";
	if (secrets == NULL)
		return -ENOMEM;
	rc = -ENOMEM;
	secrets->memory = pcre2_general_context_create(take, give, secrets);
	if (secrets->memory == NULL)
		goto fail;
	rc = compile(secrets, problem);
	if (rc < 0)
		goto fail;
	rc = -ENOMEM;
	secrets->match = pcre2_match_data_create_from_pattern(secrets->code, secrets->memory);
	secrets->context = pcre2_match_context_create(secrets->memory);
	if (secrets->match == NULL || secrets->context == NULL)
		goto fail;
	pcre2_set_match_limit(secrets->context, MATCH_LIMIT);
	*out = secrets;
	return 0;
fail:
	secrets_free(secrets);
	return rc;
}

void secrets_free(struct secrets *secrets)
{
	if (secrets == NULL)
		return;
	pcre2_match_context_free(secrets->context);
	pcre2_match_data_free(secrets->match);
	pcre2_code_free(secrets->code);
	pcre2_general_context_free(secrets->memory);
	free(secrets);
}

/* Takes writing away from all memory of MAPS, the process's own, that can be written and executed. */
static int forbid_writing(FILE *maps)
{
	char line[512];
	uintptr_t from, to;
	char writes, executes;
	int error = 0;

	while (fgets(line, sizeof(line), maps) != NULL) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*c%c%c", &from, &to, &writes,
			   &executes) == 4 &&
		    writes == 'w' && executes == 'x' &&
		    mprotect((void *)from, to - from, PROT_READ | PROT_EXEC) < 0)
			error = -errno;
	}
	return error;
}

static int make_machine_code(struct secrets *secrets)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	int error = 0;

	if (maps == NULL)
		return 0;
	secrets->jit_stack = pcre2_jit_stack_create(JIT_STACK, JIT_STACK, secrets->memory);
	if (secrets->jit_stack != NULL) {
		pcre2_jit_stack_assign(secrets->context, NULL, secrets->jit_stack);
		pcre2_jit_compile(secrets->code, PCRE2_JIT_COMPLETE);
		error = forbid_writing(maps);
	}
	fclose(maps);
	return error;
}

int secrets_settle(struct secrets *secrets)
{
	struct secret secret;
	int error = make_machine_code(secrets);

	if (error < 0)
		return error;
	/* the interpreter takes its memory at its first search */
	for (size_t i = 0; i < secret_shape_count; i++)
		for (const char *const *text = secret_shapes[i].yes; *text != NULL; text++)
			if (secrets_find(secrets, *text, strlen(*text), &secret) != 1 ||
			    secret.line != secret_shapes[i].line)
				return -EPROTO;
	secrets->settled = true;
	return 0;
}

/* 1 found, 0 not, in one view. */
static int find_in(struct secrets *secrets, const char *text, size_t length, struct secret *out)
{
	int rc = pcre2_match(secrets->code, (PCRE2_SPTR)text, length, 0, 0, secrets->match,
			     secrets->context);

	if (rc == PCRE2_ERROR_NOMATCH)
		return 0;
	*out = (struct secret){.name = "match-limit"};
	if (rc >= 0) {
		PCRE2_SPTR mark = pcre2_get_mark(secrets->match);
		size_t index = mark == NULL ? SIZE_MAX : strtoul((const char *)mark, NULL, 10);
		if (index < secret_shape_count)
			*out = (struct secret){.name = secret_shapes[index].name,
					       .line = secret_shapes[index].line};
	}
	return 1;
}

int secrets_find(struct secrets *secrets, const char *target, size_t length, struct secret *out)
{
	if (length > SECRETS_TARGET_MAX) {
		*out = (struct secret){.name = "match-limit"};
		return 1;
	}
	if (find_in(secrets, target, length, out))
		return 1;
	/* a view that decoding did not change was searched already */
	const char *text = target;
	for (int view = 1; view <= 2; view++) {
		if (memchr(text, '%', length) == NULL)
			return 0;
		length = percent_decode(text, length, secrets->view);
		text = secrets->view;
		if (find_in(secrets, text, length, out))
			return 1;
	}
	return 0;
}
