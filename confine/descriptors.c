/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/descriptors.h"

#include <fcntl.h>
#include <unistd.h>

void descriptors_keep(const int *keep, size_t count)
{
	unsigned first = 3;

	for (;;) {
		/* The smallest kept one from `first` on. */
		unsigned next = ~0u;
		for (size_t i = 0; i < count; i++)
			if (keep[i] >= 0 && (unsigned)keep[i] >= first && (unsigned)keep[i] < next)
				next = (unsigned)keep[i];
		if (next > first)
			close_range(first, next == ~0u ? ~0u : next - 1, 0);
		if (next == ~0u)
			return;
		first = next + 1;
	}
}

void descriptors_fill(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= 2);
	if (fd > 2)
		close(fd);
}
