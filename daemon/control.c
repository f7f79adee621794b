/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void forget(struct control_connection *connection)
{
	struct control *control = connection->control;

	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		if (control->connections[i] == connection)
			control->connections[i] = NULL;
	loop_change(control->loop, &control->listener, EPOLLIN); /* there is room again */
	if (connection->waiting)
		control->handler.gone(control->handler.context, connection);
	loop_close(control->loop, &connection->source);
	if (connection->attached >= 0)
		close(connection->attached);
	free(connection->output);
	free(connection);
}

static ssize_t send_with(int fd, const char *bytes, size_t length, int attached)
{
	struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = length};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (attached >= 0) {
		message.msg_control = control.bytes;
		message.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
		rights->cmsg_level = SOL_SOCKET;
		rights->cmsg_type = SCM_RIGHTS;
		rights->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(rights), &attached, sizeof(attached));
	}
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends what the peer takes now. False when the connection is done with. */
static bool flush(struct control_connection *connection)
{
	while (connection->output_length > 0) {
		ssize_t sent = send_with(connection->source.fd, connection->output,
					 connection->output_length, connection->attached);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN)
			break;
		if (sent < 0)
			return false;
		if (connection->attached >= 0)
			close(connection->attached);
		connection->attached = -1;
		connection->output_length -= (size_t)sent;
		memmove(connection->output, connection->output + sent, connection->output_length);
	}
	return !(connection->closing && connection->output_length == 0);
}

/*
 * Reads only when no answer is owed, writes only when something waits; a further request that was
 * read already is taken up at the next turn.
 */
static void settle(struct control_connection *connection)
{
	bool pending = connection->output_length > 0 || connection->closing;
	uint32_t events = pending ? EPOLLOUT : 0;

	if (!connection->waiting && !pending)
		events |= memchr(connection->request, '\n', connection->request_length) != NULL
				  ? EPOLLOUT
				  : EPOLLIN;
	loop_change(connection->control->loop, &connection->source, events);
}

void control_line(struct control_connection *connection, const char *line, size_t length)
{
	size_t needed = connection->output_length + length;

	if (connection->closing)
		return;
	if (needed > CONTROL_OUTPUT_MAX) {
		connection->closing = true; /* too slow; what it has so far ends in a whole line */
		return;
	}
	if (needed > connection->output_capacity) {
		size_t capacity = needed + 4096;
		char *output = realloc(connection->output, capacity);
		if (output == NULL) {
			connection->closing = true;
			return;
		}
		connection->output = output;
		connection->output_capacity = capacity;
	}
	memcpy(connection->output + connection->output_length, line, length);
	connection->output_length = needed;
	settle(connection);
}

void control_answer(struct control_connection *connection, json_t *answer, int fd)
{
	char *text = json_dumps(answer, JSON_COMPACT);

	json_decref(answer);
	connection->waiting = false;
	if (text == NULL || connection->attached >= 0) {
		if (fd >= 0)
			close(fd);
		connection->closing = true;
	} else {
		size_t length = strlen(text);
		text[length] = '\n'; /* in place of the NUL */
		connection->attached = fd;
		control_line(connection, text, length + 1);
	}
	free(text);
	settle(connection);
}

void control_fail(struct control_connection *connection, const char *error)
{
	control_refuse(connection, NULL, error);
}

void control_refuse(struct control_connection *connection, const char *code, const char *error)
{
	/* Texts may quote what people wrote; what is not UTF-8 cannot be in an answer. */
	json_t *text = json_string(error);

	control_answer(connection,
		       json_pack("{s:b,s:s*,s:o}", "ok", 0, "code", code, "error",
				 text != NULL ? text : json_string("unprintable error")),
		       -1);
}

static void take_request(struct control_connection *connection, const char *line, size_t length)
{
	struct control *control = connection->control;
	json_error_t error;
	json_t *body = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
	const char *command = json_string_value(json_object_get(body, "command"));

	if (body == NULL)
		control_fail(connection, "not a JSON object");
	else if (command == NULL)
		control_fail(connection, "no \"command\"");
	else
		control->handler.request(control->handler.context, connection, command, body);
	json_decref(body);
}

/* Takes the whole lines that were read, one after the other, as long as each was answered. */
static void take_lines(struct control_connection *connection)
{
	while (!connection->waiting && !connection->closing) {
		char *end = memchr(connection->request, '\n', connection->request_length);
		if (end == NULL)
			break;
		size_t length = (size_t)(end - connection->request);
		take_request(connection, connection->request, length);
		connection->request_length -= length + 1;
		memmove(connection->request, end + 1, connection->request_length);
	}
	if (connection->request_length == CONTROL_REQUEST_MAX && !connection->waiting &&
	    !connection->closing) {
		control_fail(connection, "the request is too long");
		connection->closing = true;
	}
}

static void connection_ready(struct loop_source *source, uint32_t events)
{
	struct control_connection *connection =
		loop_container(source, struct control_connection, source);
	bool alive = (events & EPOLLERR) == 0;

	/* EPOLLHUP comes unasked; as long as an answer is owed it would spin. */
	if ((events & EPOLLHUP) != 0 && (connection->waiting || connection->following))
		alive = false;
	if (alive && (events & (EPOLLIN | EPOLLHUP)) != 0) {
		size_t room = CONTROL_REQUEST_MAX - connection->request_length;
		ssize_t count = room == 0 ? 0
					  : recv(source->fd,
						 connection->request + connection->request_length,
						 room, MSG_DONTWAIT);
		if (count > 0) {
			connection->request_length += (size_t)count;
			connection->last = loop_now();
		} else if (count == 0) {
			/* No more requests; answers that wait are still sent. */
			connection->closing = true;
		} else if (errno != EAGAIN && errno != EINTR) {
			alive = false;
		}
	}
	if (alive)
		take_lines(connection);
	if (!alive || !flush(connection)) {
		forget(connection);
		return;
	}
	settle(connection);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct control *control = loop_container(source, struct control, listener);
	size_t slot = 0;

	(void)events;
	while (slot < CONTROL_CONNECTIONS_MAX && control->connections[slot] != NULL)
		slot++;
	if (slot == CONTROL_CONNECTIONS_MAX) {
		loop_change(control->loop, source, 0); /* until one is forgotten */
		return;
	}
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	struct control_connection *connection = calloc(1, sizeof(*connection));
	if (connection == NULL) {
		close(fd);
		return;
	}
	connection->source = (struct loop_source){.fd = fd, .ready = connection_ready};
	connection->control = control;
	connection->last = loop_now();
	connection->attached = -1;
	if (loop_add(control->loop, &connection->source, EPOLLIN) != 0) {
		close(fd);
		free(connection);
		return;
	}
	control->connections[slot] = connection;
}

/* Somebody accepts connections there. */
static bool answers(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	bool answered = connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 ||
			errno == EAGAIN;
	close(fd);
	return answered;
}

static void make_folder(const char *path)
{
	char folder[256];
	char *slash;

	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash == NULL || slash == folder)
		return;
	*slash = '\0';
	mkdir(folder, 0755); /* bind says when it is still missing */
}

static int open_listener(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path));
	make_folder(path);
	if (answers(&address))
		return -EADDRINUSE;
	struct stat old;
	if (lstat(path, &old) == 0 && S_ISSOCK(old.st_mode))
		unlink(path);

	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mode_t mask = umask(0177);
	int error = bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
	umask(mask);
	if (error == 0 && listen(fd, CONTROL_CONNECTIONS_MAX) < 0)
		error = -errno;
	if (error != 0) {
		close(fd);
		return error;
	}
	return fd;
}

int control_open(struct control *control, struct loop *loop, const char *path,
		 const struct control_handler *handler, char *problem, size_t size)
{
	int fd = open_listener(path);

	if (fd == -EADDRINUSE) {
		snprintf(problem, size, "another pinfold answers on %s", path);
		return fd;
	}
	if (fd < 0) {
		snprintf(problem, size, "cannot listen on %s: %s", path, strerror(-fd));
		return fd;
	}
	memset(control, 0, sizeof(*control));
	control->loop = loop;
	control->handler = *handler;
	control->listener = (struct loop_source){.fd = fd, .ready = listener_ready};
	snprintf(control->path, sizeof(control->path), "%s", path);
	int error = loop_add(loop, &control->listener, EPOLLIN);
	if (error != 0) {
		snprintf(problem, size, "cannot wait for %s: %s", path, strerror(-error));
		unlink(path);
		close(fd);
		control->path[0] = '\0';
	}
	return error;
}

void control_close(struct control *control)
{
	if (control->path[0] == '\0')
		return;
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++)
		if (control->connections[i] != NULL)
			forget(control->connections[i]);
	loop_close(control->loop, &control->listener);
	unlink(control->path);
	control->path[0] = '\0';
}

void control_follow(struct control *control, const char *line, size_t length, uint64_t now)
{
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		struct control_connection *connection = control->connections[i];
		if (connection == NULL || !connection->following)
			continue;
		connection->last = now;
		control_line(connection, line, length);
		if (!flush(connection))
			forget(connection);
		else
			settle(connection);
	}
}

void control_tick(struct control *control, uint64_t now)
{
	for (size_t i = 0; i < CONTROL_CONNECTIONS_MAX; i++) {
		struct control_connection *connection = control->connections[i];
		if (connection != NULL && !connection->following && !connection->waiting &&
		    now - connection->last >= CONTROL_IDLE_MS)
			forget(connection);
	}
}
