/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/client.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/command.h"
#include "config/config.h"

#define SOCKET_DEFAULT "/run/pinfold/control.sock"

/* The path of the socket; false with the findings printed. */
static bool find_socket(const char *path, char *out, size_t size)
{
	struct config_findings findings;

	if (path == NULL && access(CONFIG_PATH_DEFAULT, F_OK) < 0) {
		snprintf(out, size, "%s", SOCKET_DEFAULT);
		return true;
	}
	if (path == NULL)
		path = CONFIG_PATH_DEFAULT;
	struct config *config = config_read(path, &findings);
	if (config == NULL)
		config_findings_print(&findings, path, stderr);
	config_findings_free(&findings);
	if (config != NULL)
		snprintf(out, size, "%s", config->control_socket);
	config_free(config);
	return config != NULL;
}

int client_open(struct client *client, const char *config)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char path[SETTINGS_PATH_MAX];

	*client = (struct client){.fd = -1, .attached = -1};
	if (!find_socket(config, path, sizeof(path)))
		return -1;
	if (strlen(path) >= sizeof(address.sun_path)) {
		command_error(0, "the path %s is too long for a socket", path);
		return -1;
	}
	memcpy(address.sun_path, path, strlen(path));
	client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0 ||
	    connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		command_error(0, "no pinfold answers on %s: %s", path, strerror(errno));
		client_close(client);
		return -1;
	}
	return 0;
}

void client_close(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	if (client->attached >= 0)
		close(client->attached);
	free(client->buffer);
	*client = (struct client){.fd = -1, .attached = -1};
}

int client_ask(struct client *client, json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	int result = -1;

	json_decref(request);
	if (text != NULL) {
		size_t length = strlen(text);
		text[length] = '\n'; /* in place of the NUL */
		if (send(client->fd, text, length + 1, MSG_NOSIGNAL) == (ssize_t)(length + 1))
			result = 0;
		free(text);
	}
	if (result != 0)
		command_error(0, "cannot ask the service: %s", strerror(errno));
	return result;
}

/* Reads more; 0 at the end. */
static ssize_t fill(struct client *client)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;

	if (client->length + 4096 > client->capacity) {
		size_t capacity = client->capacity * 2 + 8192;
		char *buffer = realloc(client->buffer, capacity);
		if (buffer == NULL)
			return 0;
		client->buffer = buffer;
		client->capacity = capacity;
	}
	struct iovec part = {.iov_base = client->buffer + client->length, .iov_len = 4095};
	struct msghdr message = {.msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	ssize_t count;
	do
		count = recvmsg(client->fd, &message, MSG_CMSG_CLOEXEC);
	while (count < 0 && errno == EINTR);
	if (count <= 0)
		return 0;
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
	if (rights != NULL && rights->cmsg_type == SCM_RIGHTS && client->attached < 0)
		memcpy(&client->attached, CMSG_DATA(rights), sizeof(int));
	client->length += (size_t)count;
	return count;
}

const char *client_line(struct client *client)
{
	if (client->taken > 0) {
		client->length -= client->taken;
		memmove(client->buffer, client->buffer + client->taken, client->length);
		client->taken = 0;
	}
	for (;;) {
		char *end =
			client->length == 0 ? NULL : memchr(client->buffer, '\n', client->length);
		if (end != NULL) {
			*end = '\0';
			client->taken = (size_t)(end - client->buffer) + 1;
			return client->buffer;
		}
		if (fill(client) == 0)
			return NULL;
	}
}

json_t *client_answer(struct client *client)
{
	const char *line = client_line(client);
	json_t *answer = line == NULL ? NULL : json_loads(line, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(answer)) {
		command_error(0, "the service gave no answer");
		json_decref(answer);
		return NULL;
	}
	if (!json_is_true(json_object_get(answer, "ok"))) {
		const char *text = json_string_value(json_object_get(answer, "error"));
		const json_t *findings = json_object_get(answer, "findings");
		for (size_t i = 0; i < json_array_size(findings); i++) {
			const char *finding = json_string_value(json_array_get(findings, i));
			fprintf(stderr, "%s\n", finding != NULL ? finding : "?");
		}
		command_error(0, "%s", text != NULL ? text : "the service refused");
		json_decref(answer);
		return NULL;
	}
	return answer;
}

int client_options(const struct command *command, int argc, char **argv, const char *flag,
		   struct client_options *out)
{
	*out = (struct client_options){.config = NULL};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "-c") == 0 && i + 1 < argc)
			out->config = argv[++i];
		else if (strcmp(argv[i], "--json") == 0)
			out->json = true;
		else if (flag != NULL && strcmp(argv[i], flag) == 0)
			out->flag = true;
		else
			return command_usage_error(command, "unknown argument '%s'", argv[i]);
	}
	return STATUS_OK;
}
