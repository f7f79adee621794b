/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/masquerade.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void masquerade_text(const struct plan *plan, bool ipv6, bool add, char *text, size_t size)
{
	const char *in = add ? "-I" : "-D", *end = add ? "-A" : "-D";
	const char *name = plan->interface, *id = plan->id;
	char run[ADDRESS_TEXT_SIZE];

	prefix_format(ipv6 ? &plan->v6.run : &plan->v4.run, run);
	snprintf(text, size,
		 "*nat\n"
		 "%s POSTROUTING -s %s ! -o %s -m comment --comment " MASQUERADE_TAG
		 "%s -j MASQUERADE\n"
		 "COMMIT\n"
		 "*filter\n"
		 "%s FORWARD -o %s -m conntrack --ctstate RELATED,ESTABLISHED"
		 " -m comment --comment " MASQUERADE_TAG "%s -j ACCEPT\n"
		 "%s FORWARD -i %s -m comment --comment " MASQUERADE_TAG "%s -j ACCEPT\n"
		 "%s FORWARD ! -s %s -i %s -m comment --comment " MASQUERADE_TAG "%s -j DROP\n"
		 "COMMIT\n",
		 end, run, name, id, in, name, id, in, name, id, in, run, name, id);
}

char *masquerade_deletions(const char *saved, const char *tag)
{
	char *text = malloc(strlen(saved) * 2 + 1), *out = text;

	if (text == NULL)
		return NULL;
	*out = '\0';
	bool some = false;
	for (const char *line = saved; *line != '\0';) {
		size_t length = strcspn(line, "\n");
		const char *found = memmem(line, length, tag, strlen(tag));
		if (*line == '*' || strncmp(line, "COMMIT", 6) == 0)
			out += sprintf(out, "%.*s\n", (int)length, line);
		else if (length > 3 && strncmp(line, "-A ", 3) == 0 && found != NULL) {
			out += sprintf(out, "-D %.*s\n", (int)length - 3, line + 3);
			some = true;
		}
		line += length + (line[length] == '\n');
	}
	if (!some)
		*text = '\0';
	return text;
}
