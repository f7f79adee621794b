/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cni/service.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* A line of the service has at most this many octets: the list of all its clients. */
#define ANSWER_MAX (4u << 20)

int service_open(struct service *service, const char *path, struct failure *failure)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval wait = {.tv_sec = SERVICE_WAIT_SECONDS};

	*service = (struct service){.fd = -1};
	if (strlen(path) >= sizeof(address.sun_path))
		return fail(failure, FAILURE_CONFIG, "\"socket\" is too long");
	memcpy(address.sun_path, path, strlen(path));
	service->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (service->fd < 0 ||
	    setsockopt(service->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0 ||
	    setsockopt(service->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)) < 0 ||
	    connect(service->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		fail(failure, FAILURE_TRY_AGAIN, "no pinfold answers on %s: %s", path,
		     strerror(errno));
		service_close(service);
		return -1;
	}
	return 0;
}

void service_close(struct service *service)
{
	if (service->fd >= 0)
		close(service->fd);
	free(service->buffer);
	*service = (struct service){.fd = -1};
}

bool service_is_gone(const char *path)
{
	char file[PATH_MAX];
	struct service service;
	struct failure failure;

	if (service_open(&service, path, &failure) == 0) {
		service_close(&service);
		return false;
	}
	struct stat status;
	int length = snprintf(file, sizeof(file), "%s.clients", path);
	if (length < 0 || (size_t)length >= sizeof(file))
		return false;
	if (stat(file, &status) < 0)
		return errno == ENOENT;
	return status.st_size == 0;
}

static int send_line(struct service *service, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t length, sent = 0;

	if (text == NULL)
		return -1;
	length = strlen(text);
	text[length++] = '\n'; /* in place of the NUL */
	while (sent < length) {
		ssize_t count = send(service->fd, text + sent, length - sent, MSG_NOSIGNAL);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			break;
		sent += (size_t)count;
	}
	free(text);
	return sent == length ? 0 : -1;
}

/* The next line, which is the only one: nothing comes unasked. */
static json_t *read_line(struct service *service)
{
	size_t length = 0, capacity = 0;

	for (;;) {
		if (length == capacity) {
			capacity = capacity == 0 ? 4096 : capacity * 2;
			char *buffer =
				capacity > ANSWER_MAX ? NULL : realloc(service->buffer, capacity);
			if (buffer == NULL)
				return NULL;
			service->buffer = buffer;
		}
		ssize_t count = recv(service->fd, service->buffer + length, capacity - length, 0);
		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return NULL;
		length += (size_t)count;
		if (service->buffer[length - 1] == '\n')
			return json_loadb(service->buffer, length, JSON_REJECT_DUPLICATES, NULL);
	}
}

/* One exchange; *REPLY is an object, or NULL. */
static int exchange(struct service *service, const json_t *request, json_t **reply,
		    struct failure *failure)
{
	if (send_line(service, request) != 0)
		return fail(failure, FAILURE_TRY_AGAIN, "cannot ask pinfold: %s", strerror(errno));
	*reply = read_line(service);
	if (json_is_object(*reply))
		return 0;
	json_decref(*reply);
	return fail(failure, FAILURE_TRY_AGAIN, "pinfold gave no answer");
}

static bool has_code(const json_t *reply, const char *code)
{
	const char *value = json_string_value(json_object_get(reply, "code"));

	return value != NULL && strcmp(value, code) == 0;
}

int service_ask(struct service *service, json_t *request, json_t **answer, bool *taken,
		struct failure *failure)
{
	json_t *reply = NULL;
	int error;

	for (unsigned attempt = 1;; attempt++) {
		error = exchange(service, request, &reply, failure);
		if (error != 0 || !has_code(reply, "failed") || attempt == SERVICE_ATTEMPTS)
			break;
		json_decref(reply);
	}
	json_decref(request);
	if (taken != NULL)
		*taken = error == 0 && has_code(reply, "taken");
	if (error == 0 && !json_is_true(json_object_get(reply, "ok"))) {
		const char *text = json_string_value(json_object_get(reply, "error"));
		error = fail(failure,
			     has_code(reply, "invalid") ? FAILURE_CONFIG : FAILURE_TRY_AGAIN,
			     "pinfold refuses: %s", text != NULL ? text : "no reason given");
		json_decref(reply);
	} else if (error == 0) {
		*answer = reply;
	}
	return error;
}
