/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * `pinfold report`: an audit log for people. `pinfold run --report` writes the same of its own run.
 */

#include "cli/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/summary.h"

bool report_is_html(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot != NULL && (strcmp(dot, ".html") == 0 || strcmp(dot, ".htm") == 0);
}

/* How many lines were none of an audit log, or negative errno. */
static long read_log(FILE *log, const char *client, struct summary *summary)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	long bad = 0;
	int error = 0;

	while (error != -ENOMEM && (length = getline(&line, &room, log)) >= 0) {
		if (client != NULL) {
			char wanted[128];
			snprintf(wanted, sizeof(wanted), "\"client\":\"%s\"", client);
			if (strstr(line, wanted) == NULL)
				continue;
		}
		error = summary_add(summary, line, (size_t)length);
		bad += error == -EINVAL;
	}
	free(line);
	if (error == -ENOMEM)
		return -ENOMEM;
	return ferror(log) ? -EIO : bad;
}

int report_write_file(int log, const char *path)
{
	struct summary *summary = summary_new();
	int copy = dup(log);
	FILE *in = copy < 0 ? NULL : fdopen(copy, "r");
	FILE *out = fopen(path, "we");
	int status = STATUS_OK;

	if (summary == NULL || in == NULL || out == NULL)
		status = command_error(STATUS_USAGE, "--report %s: %s", path, strerror(errno));
	if (status == STATUS_OK) {
		rewind(in);
		if (read_log(in, NULL, summary) < 0)
			status = command_error(STATUS_USAGE, "--report %s: out of memory", path);
		else
			summary_print(summary, report_is_html(path), out);
	}
	if (out != NULL && (ferror(out) | fclose(out)) != 0 && status == STATUS_OK)
		status = command_error(STATUS_USAGE, "--report %s: cannot write", path);
	if (in != NULL)
		fclose(in);
	summary_free(summary);
	return status;
}

static int print_log(const char *path, const char *client, bool html, bool fail)
{
	bool from_stdin = strcmp(path, "-") == 0;
	FILE *log = from_stdin ? stdin : fopen(path, "re");
	struct summary *summary = summary_new();
	int status = STATUS_OK;

	if (log == NULL || summary == NULL) {
		status = command_error(STATUS_USAGE, "%s: %s", path, strerror(errno));
	} else {
		long bad = read_log(log, client, summary);
		if (bad < 0)
			status = command_error(STATUS_USAGE, "%s: %s", path, strerror((int)-bad));
		else if (bad > 0)
			status = command_error(STATUS_FAILED,
					       "%s: %ld lines are none of an audit log", path, bad);
		if (bad >= 0)
			summary_print(summary, html, stdout);
		if (status == STATUS_OK && fail && summary_refused(summary) > 0)
			status = STATUS_DENY;
	}
	if (log != NULL && !from_stdin)
		fclose(log);
	summary_free(summary);
	return status;
}

static int report_run(int argc, char **argv)
{
	const char *path = NULL, *client = NULL;
	bool html = false, fail = false;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--html") == 0)
			html = true;
		else if (strcmp(argv[i], "--fail-on-refusal") == 0)
			fail = true;
		else if (strcmp(argv[i], "--client") == 0 && i + 1 < argc)
			client = argv[++i];
		else if (argv[i][0] == '-' && argv[i][1] != '\0')
			return command_usage_error(&command_report,
						   "unknown option '%s', or it needs a value",
						   argv[i]);
		else if (path != NULL)
			return command_usage_error(&command_report, "one log at a time");
		else
			path = argv[i];
	}
	if (path == NULL)
		return command_usage_error(&command_report, "which log?");
	return print_log(path, client, html, fail);
}

const struct command command_report = {
	.name = "report",
	.summary = "print what an audit log tells, as Markdown or HTML",
	.usage = "pinfold report [--html] [--client NAME] [--fail-on-refusal] LOG",
	.options = "Prints which hosts were refused, with reasons and counts, and which were\n"
		   "reached (with `log: {allowed: true}`). `-` is standard input.\n"
		   "  --html             a page; Markdown otherwise\n"
		   "  --client NAME      lines of this client alone\n"
		   "  --fail-on-refusal  exit status 3 when something was refused\n"
		   "Exit status: 0, 1 some lines are none of an audit log, 2 no LOG.\n",
	.run = report_run,
};
