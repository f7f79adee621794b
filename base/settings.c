/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The whole of a regular file as text, at most SIZE - 1 octets and none of them NUL. */
static int read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;

	struct stat status;
	size_t length = 0;
	int error = 0;

	if (fstat(fd, &status) != 0)
		error = -errno;
	else if (!S_ISREG(status.st_mode))
		error = -EINVAL;
	while (error == 0 && length < size) {
		ssize_t got = read(fd, out + length, size - length);
		if (got == 0)
			break;
		if (got > 0)
			length += (size_t)got;
		else if (errno != EINTR)
			error = -errno;
	}
	close(fd);
	if (error == 0 && length == size)
		error = -EFBIG;
	if (error == 0 && memchr(out, '\0', length) != NULL)
		error = -EINVAL;
	if (error == 0)
		out[length] = '\0';
	return error;
}

/* Reads PATH into a fresh block of SIZE octets; an empty path gives an empty text. */
static int read_named(const char *what, const char *path, size_t size, char **out, char *problem,
		      size_t problem_size)
{
	char *text = calloc(1, size);
	int error = text == NULL ? -ENOMEM : 0;

	if (error == 0 && path[0] != '\0')
		error = read_text(path, text, size);
	if (error != 0) {
		snprintf(problem, problem_size, "cannot read %s %s: %s", what, path,
			 error == -EINVAL ? "not a text file" : strerror(-error));
		free(text);
		return error;
	}
	*out = text;
	return 0;
}

int settings_read_files(struct resolver_settings *resolver, char *problem, size_t size)
{
	char *anchor, *hints;
	int error = read_named("trust anchor", resolver->trust_anchor, SETTINGS_ANCHOR_TEXT_MAX,
			       &anchor, problem, size);
	if (error != 0)
		return error;
	error = read_named("root hints", resolver->root_hints, SETTINGS_HINTS_TEXT_MAX, &hints,
			   problem, size);
	if (error == 0) {
		memcpy(resolver->trust_anchor_text, anchor, SETTINGS_ANCHOR_TEXT_MAX);
		memcpy(resolver->root_hints_text, hints, SETTINGS_HINTS_TEXT_MAX);
		free(hints);
	}
	free(anchor);
	return error;
}

/* Text fields end inside themselves, counts are within their arrays. */
static bool settings_fit(const struct settings *settings)
{
	const struct resolver_settings *resolver = &settings->resolver;
	bool fit = settings->version == SETTINGS_VERSION && settings->size == sizeof(*settings) &&
		   resolver->listen_count <= SETTINGS_LISTEN_MAX &&
		   resolver->network_count <= SETTINGS_NETWORKS_MAX &&
		   resolver->zone_count <= SETTINGS_ZONES_MAX &&
		   resolver->negative_anchor_count <= SETTINGS_ANCHORS_MAX;

	for (uint32_t i = 0; fit && i < resolver->zone_count; i++)
		fit = resolver->zones[i].count <= SETTINGS_FORWARDERS_MAX;
#define ENDS(field) (memchr(resolver->field, '\0', sizeof(resolver->field)) != NULL)
	return fit && ENDS(trust_anchor) && ENDS(root_hints) && ENDS(trust_anchor_text) &&
	       ENDS(root_hints_text) && ENDS(validation_date);
#undef ENDS
}

int settings_receive(int fd, struct settings *out)
{
	struct stat status;
	struct settings *copy = malloc(sizeof(*copy));

	if (copy == NULL)
		return -ENOMEM;
	bool good = fstat(fd, &status) == 0 && status.st_size == (off_t)sizeof(*copy) &&
		    pread(fd, copy, sizeof(*copy), 0) == (ssize_t)sizeof(*copy) &&
		    settings_fit(copy);
	if (good)
		*out = *copy;
	free(copy);
	return good ? 0 : -EPROTO;
}
