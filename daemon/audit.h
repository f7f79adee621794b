/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The audit log: one JSON object a line, to standard error, to a file that is only ever appended to, or
 * to systemd's journal (its native protocol, one datagram a line: a line is always short enough for one).
 *
 * Nothing here blocks and nothing here can stop a verdict. A line that cannot be written is
 * counted, and the trouble is reported at most once in AUDIT_WARNING_MS.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"
#include "policy.h"
#include "settings.h"

#define AUDIT_WARNING_MS 10000u
/* How often a log file is looked at to see whether it was renamed or deleted. */
#define AUDIT_LOOK_MS 1000u
/* Where the journal listens. */
#define AUDIT_JOURNAL "/run/systemd/journal/socket"
/* A line has at most this many octets, its line end included: less than PIPE_BUF. */
#define AUDIT_LINE_MAX 4000u
/* Lines kept in memory for `pinfold log`. */
#define AUDIT_KEPT 256u

struct audit {
	int fd;
	char path[SETTINGS_PATH_MAX]; /* as in the configuration; "" for standard error */
	int error;                    /* why the last line could not be written, 0: it was */
	uint64_t written, failed;
	uint64_t looked, warned; /* when last, ms of CLOCK_BOOTTIME */
	char *kept[AUDIT_KEPT];  /* a ring; NULL: not used yet */
	size_t next;
};

/* FILE is "stderr", "journald" or a path. 0, or negative errno with one line in PROBLEM. */
int audit_open(struct audit *audit, const char *file, char *problem, size_t size);
void audit_close(struct audit *audit);

/* Whether FILE can be opened: what audit_switch() would say. */
int audit_probe(const char *file, char *problem, size_t size);

/* Another file, or the same one anew after it was renamed; on failure the old one stays. */
int audit_switch(struct audit *audit, const char *file, char *problem, size_t size);
int audit_reopen(struct audit *audit);

/* What a child sent can be rendered: texts end, numbers are in range. A false one is junk. */
bool audit_record_is_sane(const struct audit_record *record);

/*
 * One line with its line end, for a sane record; IMAGE names the files of rules. Returns its
 * length, or 0 when memory is short.
 */
size_t audit_format(const struct audit_record *record, const struct policy_image *image, char *line,
		    size_t size);

/* Writes and keeps a line. NOW in ms of CLOCK_BOOTTIME. */
void audit_write(struct audit *audit, const char *line, size_t length, uint64_t now);
