/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/front.h"

#include <stdlib.h>

static const struct front {
	const char *restore4, *restore6, *save4, *save6;
} fronts[FRONT_COUNT] = {
	{"iptables-restore", "ip6tables-restore", "iptables-save", "ip6tables-save"},
	{"iptables-nft-restore", "ip6tables-nft-restore", "iptables-nft-save",
	 "ip6tables-nft-save"},
	{"iptables-legacy-restore", "ip6tables-legacy-restore", "iptables-legacy-save",
	 "ip6tables-legacy-save"},
};

void front_begin(struct front_change *change, int front, bool ipv6, const char *text)
{
	const struct front *programs = &fronts[front];
	const char *arguments[] = {ipv6 ? programs->restore6 : programs->restore4, "-w",
				   "--noflush", NULL};

	change->problems[ipv6][0] = '\0';
	change->errors[ipv6] = tool_begin(&change->tools[ipv6], arguments, text,
					  change->problems[ipv6], sizeof(change->problems[ipv6]));
}

void front_end(struct front_change *change, bool ipv6)
{
	char *output = NULL;

	if (change->errors[ipv6] == 0)
		change->errors[ipv6] =
			tool_end(&change->tools[ipv6], &output, change->problems[ipv6],
				 sizeof(change->problems[ipv6]));
	free(output);
}

int front_save(int front, bool ipv6, char **saved)
{
	const char *arguments[] = {ipv6 ? fronts[front].save6 : fronts[front].save4, NULL};
	char problem[256];

	return tool_run(arguments, NULL, saved, problem, sizeof(problem));
}
