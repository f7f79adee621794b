/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/audit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/protocol.h"
#include "daemon/report.h"

static_assert(AUDIT_LINE_MAX <= PIPE_BUF, "a line is written whole or not at all");

/* O_NONBLOCK: a FIFO without a reader is an error here, and a full one is later. */
#define OPEN_FLAGS (O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

static int open_file(const char *path, char *problem, size_t size)
{
	int fd = open(path, OPEN_FLAGS, 0640);

	if (fd < 0) {
		int error = -errno;
		snprintf(problem, size, "cannot open the log %s: %s", path, strerror(-error));
		return error;
	}
	return fd;
}

/* A socket that has the journal as its peer; connected, so that its absence is noticed. */
static int open_journal(char *problem, size_t size)
{
	const struct sockaddr_un journal = {.sun_family = AF_UNIX, .sun_path = AUDIT_JOURNAL};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = fd < 0 ? -errno : 0;

	if (error == 0 && connect(fd, (const struct sockaddr *)&journal, sizeof(journal)) < 0)
		error = -errno;
	if (error == 0)
		return fd;
	snprintf(problem, size, "cannot reach the journal at " AUDIT_JOURNAL ": %s",
		 strerror(-error));
	if (fd >= 0)
		close(fd);
	return error;
}

static bool is_journal(const char *file)
{
	return strcmp(file, "journald") == 0;
}

static bool is_stderr(const char *file)
{
	return strcmp(file, "stderr") == 0;
}

static int open_log(const char *file, char *problem, size_t size)
{
	if (is_stderr(file))
		return STDERR_FILENO;
	return is_journal(file) ? open_journal(problem, size) : open_file(file, problem, size);
}

int audit_open(struct audit *audit, const char *file, char *problem, size_t size)
{
	int fd = open_log(file, problem, size);

	if (fd < 0)
		return fd;
	memset(audit, 0, sizeof(*audit));
	audit->fd = fd;
	if (!is_stderr(file))
		snprintf(audit->path, sizeof(audit->path), "%s", file);
	return 0;
}

int audit_probe(const char *file, char *problem, size_t size)
{
	int fd = open_log(file, problem, size);

	if (fd >= 0 && fd != STDERR_FILENO)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void close_log(struct audit *audit)
{
	if (audit->path[0] != '\0' && audit->fd >= 0)
		close(audit->fd);
	audit->fd = -1;
}

void audit_close(struct audit *audit)
{
	close_log(audit);
	for (size_t i = 0; i < AUDIT_KEPT; i++) {
		free(audit->kept[i]);
		audit->kept[i] = NULL;
	}
}

int audit_switch(struct audit *audit, const char *file, char *problem, size_t size)
{
	int fd = open_log(file, problem, size);

	if (fd < 0)
		return fd;
	close_log(audit);
	audit->fd = fd;
	snprintf(audit->path, sizeof(audit->path), "%s", is_stderr(file) ? "" : file);
	return 0;
}

int audit_reopen(struct audit *audit)
{
	char problem[512], path[SETTINGS_PATH_MAX];

	if (audit->path[0] == '\0')
		return 0;
	memcpy(path, audit->path, sizeof(path));
	int error = audit_switch(audit, path, problem, sizeof(problem));
	if (error != 0)
		report("%s", problem);
	return error;
}

static bool ends(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

static bool is_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text > 0x7e)
			return false;
	return true;
}

bool audit_record_is_sane(const struct audit_record *record)
{
	if (record->stage >= STAGE_COUNT || record->outcome >= OUTCOME_COUNT ||
	    record->reason >= REASON_COUNT || record->address_count > AUDIT_ADDRESSES_MAX)
		return false;
	if (!ends(record->client, sizeof(record->client)) || !is_printable(record->client) ||
	    !ends(record->detail, sizeof(record->detail)) || !is_printable(record->detail))
		return false;
	if (record->name_present != 0) {
		const struct name *name = &record->name;
		struct name again;
		if (name->length > NAME_TEXT_MAX || name->text[name->length] != '\0' ||
		    (name->length > 0 &&
		     name_from_text(name->text, name->length, &again) != NAME_OK))
			return false;
	}
	for (size_t i = 0; i < record->address_count; i++)
		if (address_length(&record->addresses[i]) == 0)
			return false;
	return true;
}

static void format_time(uint64_t time_ms, char *text, size_t size)
{
	/* Within the years that four digits can say, whatever a child sends. */
	uint64_t seconds = time_ms / 1000;
	time_t when = (time_t)(seconds < 253402300800u ? seconds : 0);
	struct tm utc;
	char date[32];

	gmtime_r(&when, &utc);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, size, "%s.%03uZ", date, (unsigned)(time_ms % 1000));
}

static json_t *addresses_json(const struct audit_record *record)
{
	json_t *list = json_array();

	for (size_t i = 0; i < record->address_count; i++) {
		char text[ADDRESS_TEXT_SIZE];
		json_array_append_new(list,
				      json_string(address_format(&record->addresses[i], text)));
	}
	return list;
}

static void set_rule(json_t *object, const struct audit_record *record,
		     const struct policy_image *image)
{
	char text[SETTINGS_PATH_MAX + 16];

	if (record->rule.line == 0 || image == NULL) {
		json_object_set_new(object, "rule", json_string("built-in"));
		return;
	}
	snprintf(text, sizeof(text), "%s:%u", policy_source_name(image, record->rule.source),
		 record->rule.line);
	json_t *rule = json_string(text);
	/* A path that is not UTF-8 has no place in JSON. */
	json_object_set_new(object, "rule", rule != NULL ? rule : json_string("?"));
}

static void set_what(json_t *object, const struct audit_record *record)
{
	char buffer[PROTOCOL_TEXT_SIZE];

	json_object_set_new(object, "client", json_string(record->client));
	if (record->name_present != 0)
		json_object_set_new(
			object, "name",
			json_string(record->name.length == 0 ? "." : record->name.text));
	if (record->qtype != 0)
		json_object_set_new(object, "qtype", json_integer(record->qtype));
	if (record->address_count > 0)
		json_object_set_new(object, "addresses", addresses_json(record));
	if (record->port != 0)
		json_object_set_new(object, "port", json_integer(record->port));
	if (record->protocol != 0)
		json_object_set_new(object, "protocol",
				    json_string(protocol_text(record->protocol, buffer)));
}

size_t audit_format(const struct audit_record *record, const struct policy_image *image, char *line,
		    size_t size)
{
	char time_text[64];
	json_t *object = json_object();

	format_time(record->time_ms, time_text, sizeof(time_text));
	json_object_set_new(object, "time", json_string(time_text));
	json_object_set_new(object, "stage", json_string(stage_text(record->stage)));
	json_object_set_new(object, "verdict", json_string(outcome_text(record->outcome)));
	json_object_set_new(object, "reason", json_string(reason_text(record->reason)));
	set_rule(object, record, image);
	set_what(object, record);
	if (record->outcome == OUTCOME_DENY)
		json_object_set_new(object, "enforced", json_boolean(record->enforced != 0));
	if (record->suppressed != 0)
		json_object_set_new(object, "suppressed", json_integer(record->suppressed));
	if (record->detail[0] != '\0')
		json_object_set_new(object, "detail", json_string(record->detail));

	size_t length = json_dumpb(object, line, size, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(object);
	if (length == 0 || length >= size)
		return 0;
	line[length] = '\n';
	return length + 1;
}

/* A file that was renamed or deleted under us (log rotation) is opened anew under its name. */
static void look_at_file(struct audit *audit, uint64_t now)
{
	struct stat here, there;

	if (audit->path[0] == '\0' || is_journal(audit->path) ||
	    now - audit->looked < AUDIT_LOOK_MS)
		return;
	audit->looked = now;
	if (fstat(audit->fd, &here) < 0)
		return;
	if (stat(audit->path, &there) == 0 && there.st_dev == here.st_dev &&
	    there.st_ino == here.st_ino)
		return;
	audit_reopen(audit);
}

static void keep(struct audit *audit, const char *line, size_t length)
{
	char *copy = malloc(length + 1);

	if (copy == NULL)
		return;
	memcpy(copy, line, length);
	copy[length] = '\0';
	free(audit->kept[audit->next]);
	audit->kept[audit->next] = copy;
	audit->next = (audit->next + 1) % AUDIT_KEPT;
}

/* The fields of one entry; a value without a line end needs no length (systemd's native protocol). */
static int send_entry(struct audit *audit, const char *line, size_t length, uint64_t now)
{
	static const char head[] = "PRIORITY=5\nSYSLOG_IDENTIFIER=pinfold\nMESSAGE=";
	struct iovec parts[] = {
		{.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(head) - 1},
		{.iov_base = (void *)(uintptr_t)line, .iov_len = length},
	};
	const struct msghdr entry = {.msg_iov = parts, .msg_iovlen = 2};
	char problem[256];

	if (sendmsg(audit->fd, &entry, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
		return 0;
	int error = -errno;
	/* Another journal, after a restart, is another peer. */
	if (error == -EAGAIN || now - audit->looked < AUDIT_LOOK_MS)
		return error;
	audit->looked = now;
	if (audit_switch(audit, "journald", problem, sizeof(problem)) != 0)
		return error;
	return sendmsg(audit->fd, &entry, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ? 0 : -errno;
}

void audit_write(struct audit *audit, const char *line, size_t length, uint64_t now)
{
	look_at_file(audit, now);
	keep(audit, line, length);

	int error = is_journal(audit->path) ? send_entry(audit, line, length, now)
					    : report_write(audit->fd, line, length);
	audit->error = -error;
	if (error == 0) {
		audit->written++;
		return;
	}
	audit->failed++;
	if (audit->path[0] == '\0' ||
	    (audit->warned != 0 && now - audit->warned < AUDIT_WARNING_MS))
		return;
	audit->warned = now;
	report("cannot write the log %s: %s (%llu lines lost)", audit->path, strerror(-error),
	       (unsigned long long)audit->failed);
}
