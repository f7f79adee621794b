/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tests/cases/layers/row.h"

#include <stdlib.h>
#include <string.h>

static void read_image(const char *path, struct row *row)
{
	struct config_findings findings;
	struct policy_hook hook;
	void *bytes;
	size_t size;

	row->config = config_read(path, &findings);
	config_findings_free(&findings);
	if (row->config == NULL)
		exit(2);
	if (policy_image_build(&row->config->source, &bytes, &size) < 0 ||
	    policy_image_open(bytes, size, &row->image) < 0)
		abort();
	/* without --ask-hook a row says what the verdict is before the hook */
	if (policy_hook(row->image, POLICY_DEFAULT, &hook))
		exit(ROW_UNSEEN);
}

static void take_pin(struct row *row, const char *text, bool expired)
{
	struct row_pin *pin = &row->pins[row->pin_count++];
	const char *mark = strchr(text, '=');
	size_t length = mark != NULL ? (size_t)(mark - text) : strlen(text);

	pin->expired = expired;
	if (name_from_text(text, length, &pin->name) != NAME_OK ||
	    (mark != NULL && address_parse(mark + 1, strlen(mark + 1), &pin->address) < 0))
		exit(ROW_UNSEEN);
}

static void take_option(struct row *row, const char *option, const char *value)
{
	if (strcmp(option, "-c") == 0)
		read_image(value, row);
	else if (strcmp(option, "--pinned") == 0 || strcmp(option, "--expired") == 0)
		take_pin(row, value, option[2] == 'e');
	else if (strcmp(option, "--cname") == 0)
		row->cnames[row->cname_count++] = value;
	else if (strcmp(option, "--hint") == 0 &&
		 address_parse(value, strlen(value), &row->hints[row->hint_count]) == 0)
		row->hint_count++;
	else if (strcmp(option, "--to") != 0 ||
		 (address_parse(value, strlen(value), &row->to.address) < 0 &&
		  endpoint_parse(value, strlen(value), ':', 0, &row->to) < 0))
		exit(ROW_UNSEEN); /* --client: the policy of somebody else */
}

void row_read(int argc, char **argv, struct row *out)
{
	*out = (struct row){.image = NULL};
	if (argc < 3 || argc > ROW_WORDS || strcmp(argv[1], "explain") != 0)
		exit(2);
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			continue;
		if (argv[i][0] == '-' && argv[i][1] != '\0' && i + 1 < argc) {
			take_option(out, argv[i], argv[i + 1]);
			i++;
		} else if (out->stage == NULL) {
			out->stage = argv[i];
		} else {
			out->words[out->word_count++] = argv[i];
		}
	}
	if (out->image == NULL || out->stage == NULL)
		exit(2);
}

void row_end(enum stage stage, enum outcome outcome, enum reason reason)
{
	static const int statuses[OUTCOME_COUNT] = {
		[OUTCOME_ALLOW] = 0, [OUTCOME_DENY] = 3, [OUTCOME_WAIT] = 4};

	printf("{\"verdict\":\"%s\",\"reason\":\"%s\",\"rule\":\"\",\"stage\":\"%s\"}\n",
	       outcome_text(outcome), reason_text(reason), stage_text(stage));
	exit(statuses[outcome]);
}
