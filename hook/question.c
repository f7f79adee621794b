/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * What the stages put into a question.
 */

#include "hook/protocol.h"

void hook_question_connection(struct hook_question *question, const struct connection *connection,
			      uint64_t now)
{
	bool known = connection->destination.family != ADDRESS_NONE;

	question->addresses = &connection->destination;
	question->address_count = known ? 1 : 0;
	question->port = connection->port;
	question->protocol = connection->protocol;
	question->pins = connection->pins;
	question->pin_count = connection->pin_count;
	question->now = now;
}

static const char *host_text(const struct request *request, char *buffer)
{
	switch (request->host.kind) {
	case HOST_NAME:
		return request->host.name.text;
	case HOST_LITERAL:
		return address_format(&request->host.literal, buffer);
	case HOST_NONE:
	case HOST_MALFORMED:
		break;
	}
	return NULL;
}

static const char *scheme_text(const struct request *request)
{
	switch (request->kind) {
	case REQUEST_HTTP1:
		return request->scheme[0] != '\0' ? request->scheme : "http";
	case REQUEST_HTTP2:
		return "http";
	case REQUEST_TLS:
		return "https";
	case REQUEST_OTHER:
		break;
	}
	return "";
}

void hook_question_request(struct hook_question *question, const struct request *request,
			   char buffer[ADDRESS_TEXT_SIZE])
{
	question->name = host_text(request, buffer);
	question->scheme = scheme_text(request);
	question->method = request->method;
	question->method_length = request->method_length;
	/* a hook may write down what it is asked; a key stays here */
	if (request->secret)
		return;
	question->target = request->target;
	question->target_length = request->target_length;
}
