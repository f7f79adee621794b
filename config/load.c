/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void add_finding(struct load *load, bool warning, unsigned line, unsigned column,
			const char *text)
{
	struct config_findings *findings = load->findings;
	struct config_finding *items;

	findings->errors += !warning;
	if (findings->count > LOAD_FINDINGS_MAX)
		return;
	items = realloc(findings->items, (findings->count + 1) * sizeof(*items));
	if (items == NULL)
		return;
	findings->items = items;
	items += findings->count++;
	*items = (struct config_finding){.warning = warning, .line = line, .column = column};
	/* the last one stands for all that are left out; it sorts behind them */
	if (findings->count > LOAD_FINDINGS_MAX) {
		items->line = items->column = LOAD_NO_LINE;
		text = "there are more findings";
	}
	snprintf(items->text, sizeof(items->text), "%s", text);
	for (char *byte = items->text; *byte != '\0'; byte++)
		if ((unsigned char)*byte < 0x20 || *byte == 0x7f)
			*byte = '?';
}

void load_report(void *context, unsigned line, unsigned column, const char *text)
{
	add_finding(context, false, line, column, text);
}

void load_error(struct load *load, const struct yaml_node *at, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	add_finding(load, false, at != NULL ? at->line : 0, at != NULL ? at->column : 0, text);
}

void load_warning(struct load *load, const struct yaml_node *at, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	add_finding(load, true, at != NULL ? at->line : 0, at != NULL ? at->column : 0, text);
}

struct place load_place(const struct yaml_node *node)
{
	return (struct place){.source = SOURCE_CONFIG, .line = node->line};
}

void *load_alloc(struct load *load, size_t count, size_t size)
{
	return arena_alloc(load->arena, count, size);
}
