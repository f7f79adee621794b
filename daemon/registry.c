/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line is what a request of the control socket can hold. */
#define FILE_MAX (REGISTRY_MAX * 4096u)

static void let_go(struct registered *registered)
{
	if (--registered->holders > 0)
		return;
	config_client_free(registered->client);
	free(registered->line);
	free(registered);
}

int registry_put(struct registry *registry, struct registered *registered)
{
	size_t size = (registry->count + 1) * sizeof(struct registered *);
	struct registered **items = realloc(registry->items, size);

	if (items == NULL)
		return -ENOMEM;
	registry->items = items;
	items[registry->count++] = registered;
	registered->holders++;
	return 0;
}

int registry_copy(const struct registry *from, struct registry *out)
{
	struct registry copy = {.count = 0};

	for (size_t i = 0; i < from->count; i++) {
		if (registry_put(&copy, from->items[i]) == 0)
			continue;
		registry_release(&copy);
		return -ENOMEM;
	}
	*out = copy;
	return 0;
}

void registry_release(struct registry *registry)
{
	for (size_t i = 0; i < registry->count; i++)
		let_go(registry->items[i]);
	free(registry->items);
	*registry = (struct registry){.count = 0};
}

bool registry_holds(const struct registry *registry, const struct registered *registered)
{
	for (size_t i = 0; i < registry->count; i++)
		if (registry->items[i] == registered)
			return true;
	return false;
}

const char *registry_selector_text(const struct client_selector *selector, char *text, size_t size)
{
	const struct prefix *prefix = &selector->prefix;
	char buffer[ADDRESS_TEXT_SIZE];

	switch (selector->kind) {
	case SELECT_PREFIX:
		snprintf(text, size, "%s",
			 prefix->length == address_bits(&prefix->address)
				 ? address_format(&prefix->address, buffer)
				 : prefix_format(prefix, buffer));
		break;
	case SELECT_INTERFACE:
		snprintf(text, size, "interface '%s'", selector->interface);
		break;
	case SELECT_UID:
		snprintf(text, size, "uid %u", selector->uid);
		break;
	case SELECT_CGROUP:
		snprintf(text, size, "cgroup '%s'", selector->cgroup_path);
		break;
	}
	return text;
}

/* False, with one line in PROBLEM, when CLIENT cannot be there beside OTHER. */
static bool get_along(const struct client_source *client, const struct client_source *other,
		      char *problem, size_t size)
{
	const struct client_selector *shared = NULL;
	char text[320];

	switch (config_clients_clash(client, other, &shared)) {
	case CLASH_NONE:
		return true;
	case CLASH_NAME:
	case CLASH_KEY:
		snprintf(problem, size, "there is another client '%s'", other->name);
		break;
	case CLASH_SELECTOR:
		snprintf(problem, size, "%s is the client '%s'",
			 registry_selector_text(shared, text, sizeof(text)), other->name);
		break;
	}
	return false;
}

/* REGISTERED against all clients there are. */
static enum registry_result place(const struct registry *registry, const struct config *config,
				  const struct registered *registered, char *problem, size_t size)
{
	const struct config_client *client = registered->client;

	for (size_t i = 0; i < config->source.client_count; i++)
		if (!get_along(&client->source, &config->source.clients[i], problem, size))
			return REGISTRY_TAKEN;
	for (size_t i = 0; i < registry->count; i++)
		if (config_client_same(client, registry->items[i]->client))
			return REGISTRY_SAME;
	for (size_t i = 0; i < registry->count; i++)
		if (!get_along(&client->source, &registry->items[i]->client->source, problem, size))
			return REGISTRY_TAKEN;
	if (registry->count == REGISTRY_MAX) {
		snprintf(problem, size, "more than %u registered clients", REGISTRY_MAX);
		return REGISTRY_INVALID;
	}
	return REGISTRY_CHANGED;
}

enum registry_result registry_add(struct registry *registry, const struct config *config,
				  const char *line, uint64_t serial, char *problem, size_t size)
{
	struct registered *registered = calloc(1, sizeof(*registered));
	enum registry_result result;

	if (registered == NULL) {
		snprintf(problem, size, "out of memory");
		return REGISTRY_INVALID;
	}
	registered->holders = 1; /* this function */
	registered->line = strdup(line);
	registered->client = config_client_read(config, line, strlen(line), problem, size);
	if (registered->client == NULL || registered->line == NULL) {
		if (registered->client != NULL)
			snprintf(problem, size, "out of memory");
		result = REGISTRY_INVALID;
	} else {
		registered->client->source.serial = serial;
		result = place(registry, config, registered, problem, size);
	}
	if (result == REGISTRY_CHANGED && registry_put(registry, registered) != 0) {
		snprintf(problem, size, "out of memory");
		result = REGISTRY_INVALID;
	}
	let_go(registered);
	return result;
}

enum registry_result registry_remove(struct registry *registry, const struct config *config,
				     const char *name, char *problem, size_t size)
{
	for (size_t i = 0; i < config->source.client_count; i++) {
		if (strcmp(config->source.clients[i].name, name) != 0)
			continue;
		snprintf(problem, size, "the client '%s' is one of the configuration", name);
		return REGISTRY_INVALID;
	}
	for (size_t i = 0; i < registry->count; i++) {
		struct registered *item = registry->items[i];
		if (strcmp(item->client->source.name, name) != 0)
			continue;
		registry->count--;
		memmove(&registry->items[i], &registry->items[i + 1],
			(registry->count - i) * sizeof(struct registered *));
		let_go(item);
		return REGISTRY_CHANGED;
	}
	return REGISTRY_SAME;
}

/* Adds what was accepted before: anything but CHANGED is a failure now. */
static int add_again(struct registry *registry, const struct config *config, const char *line,
		     uint64_t serial, char *problem, size_t size)
{
	switch (registry_add(registry, config, line, serial, problem, size)) {
	case REGISTRY_CHANGED:
		return 0;
	case REGISTRY_SAME:
		snprintf(problem, size, "the client is there twice");
		return -EINVAL;
	case REGISTRY_INVALID:
	case REGISTRY_TAKEN:
		break;
	}
	return -EINVAL;
}

int registry_reread(const struct registry *from, const struct config *config, struct registry *out,
		    char *problem, size_t size)
{
	struct registry registry = {.count = 0};
	char why[320];

	for (size_t i = 0; i < from->count; i++) {
		const struct client_source *client = &from->items[i]->client->source;
		if (add_again(&registry, config, from->items[i]->line, client->serial, why,
			      sizeof(why)) == 0)
			continue;
		snprintf(problem, size, "the registered client '%s': %s", client->name, why);
		registry_release(&registry);
		return -EINVAL;
	}
	*out = registry;
	return 0;
}

int registry_clients(const struct registry *registry, const struct config *config,
		     struct client_source **out, size_t *count)
{
	size_t configured = config->source.client_count, all = configured + registry->count;
	struct client_source *clients = calloc(all + 1, sizeof(*clients));

	if (clients == NULL)
		return -ENOMEM;
	if (configured > 0)
		memcpy(clients, config->source.clients, configured * sizeof(*clients));
	for (size_t i = 0; i < registry->count; i++)
		clients[configured + i] = registry->items[i]->client->source;
	*out = clients;
	*count = all;
	return 0;
}

void registry_path(const struct config *config, char path[REGISTRY_PATH_MAX])
{
	path[0] = '\0';
	if (config->control_socket[0] != '\0')
		snprintf(path, REGISTRY_PATH_MAX, "%s.clients", config->control_socket);
}

static int write_lines(const struct registry *registry, int fd)
{
	FILE *file = fdopen(fd, "w");

	if (file == NULL) {
		int error = -errno;
		close(fd);
		return error;
	}
	for (size_t i = 0; i < registry->count; i++)
		fprintf(file, "%s\n", registry->items[i]->line);
	int error = fflush(file) != 0 || ferror(file) ? -EIO : 0;
	return fclose(file) != 0 ? -EIO : error;
}

int registry_save(const struct registry *registry, const struct config *config, char *problem,
		  size_t size)
{
	char path[REGISTRY_PATH_MAX], fresh[REGISTRY_PATH_MAX + 8];

	registry_path(config, path);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	unlink(fresh);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	int error = fd < 0 ? -errno : write_lines(registry, fd);
	if (error == 0 && rename(fresh, path) != 0)
		error = -errno;
	if (error != 0) {
		unlink(fresh);
		snprintf(problem, size, "cannot write %s: %s", path, strerror(-error));
	}
	return error;
}

/* The whole file into *TEXT, which the caller frees; -ENOENT when there is none. */
static int read_file(const char *path, char **text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat status;
	size_t length = 0;

	if (fd < 0)
		return -errno;
	int error = fstat(fd, &status) != 0 ? -errno : 0;
	if (error == 0 && (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX))
		error = -EINVAL;
	char *bytes = error == 0 ? malloc((size_t)status.st_size + 1) : NULL;
	if (error == 0 && bytes == NULL)
		error = -ENOMEM;
	while (error == 0 && length < (size_t)status.st_size) {
		ssize_t got = read(fd, bytes + length, (size_t)status.st_size - length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			error = got < 0 ? -errno : -EIO;
		else
			length += (size_t)got;
	}
	close(fd);
	/* A NUL would hide what comes after it. */
	if (error == 0 && memchr(bytes, '\0', length) != NULL)
		error = -EINVAL;
	if (error != 0) {
		free(bytes);
		return error;
	}
	bytes[length] = '\0';
	*text = bytes;
	return 0;
}

int registry_load(struct registry *out, const struct config *config, uint64_t *serial,
		  char *problem, size_t size)
{
	struct registry registry = {.count = 0};
	char path[REGISTRY_PATH_MAX], why[320], *text = NULL, *rest = NULL;
	uint64_t last = *serial;
	unsigned number = 0;

	registry_path(config, path);
	int error = path[0] == '\0' ? -ENOENT : read_file(path, &text);
	if (error != 0 && error != -ENOENT)
		snprintf(problem, size, "cannot read %s: %s", path, strerror(-error));
	rest = text;
	for (char *line = strsep(&rest, "\n"); error == 0 && line != NULL;
	     line = strsep(&rest, "\n")) {
		number++;
		if (line[0] == '\0' && rest == NULL)
			break; /* after the last line end */
		error = add_again(&registry, config, line, ++last, why, sizeof(why));
		if (error != 0)
			snprintf(problem, size, "%s:%u: error: %s", path, number, why);
	}
	free(text);
	if (error != 0 && error != -ENOENT) {
		registry_release(&registry);
		return error;
	}
	*out = registry;
	*serial = last;
	return 0;
}
