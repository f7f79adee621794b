/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one table; what comes after is counted and not shown. */
#define ROWS_MAX 1000

enum column { HOST, PORT, REASON, RULE, COLUMN_COUNT };

/* Lines that say the same of the same host. */
struct row {
	bool denied, enforced;
	char cells[COLUMN_COUNT][256];
	uint64_t count;
};

struct summary {
	struct row *rows;
	size_t count, room;
};

struct summary *summary_new(void)
{
	return calloc(1, sizeof(struct summary));
}

void summary_free(struct summary *summary)
{
	if (summary != NULL)
		free(summary->rows);
	free(summary);
}

static int compare(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int order = (int)b->denied - (int)a->denied;

	for (size_t i = 0; order == 0 && i < COLUMN_COUNT; i++)
		order = strcmp(a->cells[i], b->cells[i]);
	return order != 0 ? order : (int)b->enforced - (int)a->enforced;
}

static void merge(struct summary *summary)
{
	size_t kept = 0;

	if (summary->count == 0)
		return;
	qsort(summary->rows, summary->count, sizeof(*summary->rows), compare);
	for (size_t i = 1; i < summary->count; i++) {
		if (compare(&summary->rows[kept], &summary->rows[i]) == 0)
			summary->rows[kept].count += summary->rows[i].count;
		else
			summary->rows[++kept] = summary->rows[i];
	}
	summary->count = kept + 1;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text : "";
}

/* The name that was asked for or that the connection was for; a bare address as itself. */
static void fill(struct row *row, const json_t *object)
{
	const char *name = text_of(object, "name"), *protocol = text_of(object, "protocol");
	const json_t *port = json_object_get(object, "port");
	const char *address =
		json_string_value(json_array_get(json_object_get(object, "addresses"), 0));

	if (name[0] == '\0')
		name = address != NULL ? address : "?";
	snprintf(row->cells[HOST], sizeof(row->cells[HOST]), "%s", name);
	if (json_is_integer(port))
		snprintf(row->cells[PORT], sizeof(row->cells[PORT]), "%" JSON_INTEGER_FORMAT "%s%s",
			 json_integer_value(port), protocol[0] != '\0' ? "/" : "", protocol);
	else
		snprintf(row->cells[PORT], sizeof(row->cells[PORT]), "%s",
			 protocol[0] != '\0' ? protocol : "DNS");
	row->denied = strcmp(text_of(object, "verdict"), "deny") == 0;
	row->enforced = !json_is_false(json_object_get(object, "enforced"));
	if (row->denied) {
		snprintf(row->cells[REASON], sizeof(row->cells[REASON]), "%s",
			 text_of(object, "reason"));
		snprintf(row->cells[RULE], sizeof(row->cells[RULE]), "%s", text_of(object, "rule"));
	}
	row->count = 1 + (uint64_t)json_integer_value(json_object_get(object, "suppressed"));
}

static int make_room(struct summary *summary)
{
	if (summary->count < summary->room)
		return 0;
	merge(summary); /* a long log says the same again and again */
	if (summary->count < summary->room / 2)
		return 0;
	size_t room = summary->room == 0 ? 256 : summary->room * 2;
	struct row *rows = reallocarray(summary->rows, room, sizeof(*rows));
	if (rows == NULL)
		return -ENOMEM;
	summary->rows = rows;
	summary->room = room;
	return 0;
}

int summary_add(struct summary *summary, const char *line, size_t length)
{
	json_t *object = json_loadb(line, length, 0, NULL);
	int error = -EINVAL;

	if (text_of(object, "verdict")[0] != '\0' && text_of(object, "stage")[0] != '\0')
		error = make_room(summary);
	if (error == 0) {
		struct row *row = &summary->rows[summary->count++];
		memset(row, 0, sizeof(*row));
		fill(row, object);
	}
	json_decref(object);
	return error;
}

uint64_t summary_refused(const struct summary *summary)
{
	uint64_t count = 0;

	for (size_t i = 0; i < summary->count; i++)
		count += summary->rows[i].denied ? summary->rows[i].count : 0;
	return count;
}

/* Names come from strangers: nothing of them may be markup. */
static void print_escaped(const char *text, bool html, FILE *out)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if (c < ' ' || c > '~')
			fputc('?', out);
		else if (strchr("<>&\"'", c) != NULL || (!html && strchr("|`*_[]\\#!~", c) != NULL))
			fprintf(out, "&#%u;", c);
		else
			fputc(c, out);
	}
}

static void print_row(const struct row *row, bool html, FILE *out)
{
	size_t columns = row->denied ? COLUMN_COUNT : REASON;

	fputs(html ? "<tr>" : "|", out);
	for (size_t i = 0; i < columns; i++) {
		fputs(html ? "<td>" : " ", out);
		print_escaped(row->cells[i], html, out);
		if (i == REASON && !row->enforced)
			fputs(" (let through)", out);
		fputs(html ? "</td>" : " |", out);
	}
	fprintf(out, html ? "<td>%" PRIu64 "</td></tr>\n" : " %" PRIu64 " |\n", row->count);
}

static void print_table(const struct summary *summary, bool denied, bool html, FILE *out)
{
	static const char *const heads[] = {"Host", "Port", "Reason", "Rule"};
	size_t columns = denied ? COLUMN_COUNT : REASON, rows = 0;

	fprintf(out, html ? "<h2>%s</h2>\n" : "\n### %s\n\n", denied ? "Refused" : "Reached");
	for (size_t i = 0; i < summary->count; i++)
		rows += summary->rows[i].denied == denied;
	if (rows == 0) {
		fputs(html ? "<p>nothing</p>\n" : "nothing\n", out);
		return;
	}
	fputs(html ? "<table>\n<tr>" : "|", out);
	for (size_t i = 0; i < columns; i++)
		fprintf(out, html ? "<th>%s</th>" : " %s |", heads[i]);
	fputs(html ? "<th>Times</th></tr>\n" : " Times |\n|", out);
	for (size_t i = 0; !html && i <= columns; i++)
		fputs(i < columns ? "---|" : "---:|\n", out);
	size_t shown = 0;
	for (size_t i = 0; i < summary->count && shown < ROWS_MAX; i++)
		if (summary->rows[i].denied == denied) {
			print_row(&summary->rows[i], html, out);
			shown++;
		}
	if (html)
		fputs("</table>\n", out);
	if (shown < rows)
		fprintf(out, html ? "<p>and %zu more</p>\n" : "\nand %zu more\n", rows - shown);
}

void summary_print(struct summary *summary, bool html, FILE *out)
{
	merge(summary);
	if (html)
		fputs("<!doctype html>\n<html lang=\"en\"><head><meta "
		      "charset=\"utf-8\"><title>Pinfold: "
		      "what was reached</title>\n<style>body{font:16px sans-serif;max-width:60em;"
		      "margin:2em auto}table{border-collapse:collapse}td,th{border:1px solid #bbb;"
		      "padding:.2em .6em;text-align:left}</style></head><body>\n<h1>Pinfold</h1>\n",
		      out);
	else
		fputs("## Pinfold\n", out);
	print_table(summary, true, html, out);
	print_table(summary, false, html, out);
	if (html)
		fputs("</body></html>\n", out);
}
