/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The stages of `explain` that need no bytes: resolve, answer, connect, request.
 */

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "cli/explain.h"
#include "cli/url.h"
#include "config/idna.h"
#include "rules/embedding.h"
#include "secrets/secrets.h"

#define TYPE_A 1

/* The name of a question; "." is the root. */
static enum name_error question_name(const char *text, struct name *out)
{
	if (strcmp(text, ".") == 0) {
		*out = (struct name){.length = 0};
		return NAME_OK;
	}
	return idna_name(text, strlen(text), out);
}

int explain_resolve(const struct explain *explain, struct explanation *out)
{
	struct name name;
	struct question question = {.name = &name, .type = TYPE_A};

	if (explain->word_count == 2 && !rrtype_parse(explain->words[1], &question.type))
		return command_usage_error(&command_explain, "'%s' is no record type",
					   explain->words[1]);
	question.name_error = question_name(explain->words[0], &name);
	struct hook_question asked = {
		.name = name.length == 0 ? "." : name.text, .qtype = question.type, .scheme = ""};
	out->stage = STAGE_RESOLVE;
	out->verdict = policy_resolve(explain->image, &explain->subject, &question);
	if (question.name_error != NAME_OK)
		out->note = name_error_text(question.name_error);
	else
		explain_ask(explain, &asked, out);
	return 0;
}

/* Is every one of the addresses what `hosts:` says of NAME? */
static bool is_static(const struct explain *explain, const struct name *name,
		      const struct address *addresses, size_t count)
{
	struct address listed[64];
	size_t known = policy_static_addresses(explain->image, name, listed,
					       sizeof(listed) / sizeof(listed[0]));

	for (size_t i = 0; i < count; i++) {
		bool found = false;
		for (size_t j = 0; j < known && !found; j++)
			found = embedding_same(&addresses[i], &listed[j]);
		if (!found)
			return false;
	}
	return known > 0 && count > 0;
}

static int judge_answer(const struct explain *explain, struct answer *answer,
			struct address *addresses, struct name *targets, struct explanation *out)
{
	for (size_t i = 1; i < explain->word_count; i++) {
		const char *text = explain->words[i];
		if (address_parse(text, strlen(text), &addresses[i - 1]) < 0)
			return command_usage_error(&command_explain, "'%s' is no address", text);
	}
	for (size_t i = 0; i < explain->cname_count; i++) {
		const char *text = explain->cnames[i];
		struct name *target = &targets[answer->target_count];
		if (question_name(text, target) == NAME_OK)
			answer->target_count++;
		else
			answer->malformed = true;
	}
	answer->addresses = addresses;
	answer->address_count = explain->word_count - 1;
	answer->hints = explain->hints;
	answer->hint_count = explain->hint_count;
	answer->targets = targets;
	answer->from_static = is_static(explain, answer->name, addresses, answer->address_count);
	struct hook_question asked = {.name = answer->name->length == 0 ? "." : answer->name->text,
				      .qtype = TYPE_A,
				      .addresses = answer->addresses,
				      .address_count = answer->address_count,
				      .hints = answer->hints,
				      .hint_count = answer->hint_count,
				      .scheme = ""};
	out->verdict = policy_answer(explain->image, &explain->subject, answer);
	explain_ask(explain, &asked, out);
	return 0;
}

int explain_answer(const struct explain *explain, struct explanation *out)
{
	struct name name;
	struct answer answer = {.name = &name};
	struct question question = {.name = &name, .type = TYPE_A};
	struct address *addresses;
	struct name *targets;
	int status;

	out->stage = STAGE_ANSWER;
	question.name_error = question_name(explain->words[0], &name);
	if (question.name_error != NAME_OK) {
		/* such a question is never asked, so nothing can come back for it */
		out->verdict = policy_resolve(explain->image, &explain->subject, &question);
		out->note = name_error_text(question.name_error);
		return 0;
	}
	addresses = calloc(explain->word_count, sizeof(*addresses));
	targets = calloc(explain->cname_count + 1, sizeof(*targets));
	if (addresses == NULL || targets == NULL)
		status = command_error(STATUS_USAGE, "out of memory");
	else
		status = judge_answer(explain, &answer, addresses, targets, out);
	free(addresses);
	free(targets);
	return status;
}

/* "80", "80/tcp", "53/udp". */
static bool parse_port(const char *text, uint16_t *port, uint8_t *protocol)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long number = strtoul(text, NULL, 10);

	if (digits == 0 || digits > 5 || number == 0 || number > UINT16_MAX)
		return false;
	if (text[digits] == '\0' || strcmp(text + digits, "/tcp") == 0)
		*protocol = IPPROTO_TCP;
	else if (strcmp(text + digits, "/udp") == 0)
		*protocol = IPPROTO_UDP;
	else
		return false;
	*port = (uint16_t)number;
	return true;
}

/* "1.2.3.4", "::1" or "[::1]". */
static bool parse_destination(const char *text, struct address *out)
{
	size_t length = strlen(text);

	if (length > 2 && text[0] == '[' && text[length - 1] == ']' &&
	    memchr(text, ':', length) != NULL) {
		text++;
		length -= 2;
	}
	return address_parse(text, length, out) == 0;
}

int explain_connect(const struct explain *explain, struct explanation *out)
{
	struct endpoint destination;
	struct connection connection;
	struct pin *pins;
	uint8_t protocol;
	int status;

	if (!parse_destination(explain->words[0], &destination.address))
		return command_usage_error(&command_explain,
					   "'%s' is no address; `explain resolve` and "
					   "`explain request` take names",
					   explain->words[0]);
	if (!parse_port(explain->words[1], &destination.port, &protocol))
		return command_usage_error(&command_explain,
					   "'%s' is no PORT, PORT/tcp or PORT/udp",
					   explain->words[1]);
	status = explain_connection(explain, &destination, protocol, &connection, &pins);
	if (status != 0)
		return status;
	out->stage = STAGE_CONNECT;
	out->verdict = policy_connect(explain->image, &explain->subject, &connection, EXPLAIN_NOW);
	explain_ask_connection(explain, &connection, out);
	free(pins);
	return 0;
}

/*
 * What the gate would see of URL: over TLS the host and nothing else, and a literal not even that,
 * since RFC 6066 section 3 allows no address as SNI. A literal that is not where the flow goes is
 * kept, so that the difference is judged.
 */
static void request_of_url(const struct url *url, const struct connection *connection,
			   struct request *request)
{
	bool literal = url->host.kind == HOST_LITERAL;

	*request = (struct request){
		.connection = *connection,
		.malformed = url->malformed,
		.host = url->host,
		.form = TARGET_ORIGIN,
		.scheme = "",
	};
	request->host.port = url->port_given ? url->port : 0;
	if (url->scheme == URL_OTHER) {
		request->kind = REQUEST_OTHER;
		return;
	}
	request->kind = url_is_cleartext(url) ? REQUEST_HTTP1 : REQUEST_TLS;
	if (url_is_cleartext(url)) {
		request->target = url->target;
		request->target_length = url->target_length;
	} else if (literal && !url->malformed &&
		   embedding_same(&url->host.literal, &connection->destination)) {
		request->host = (struct host){.kind = HOST_NONE};
	} else {
		request->host.port = 0; /* SNI has none */
	}
}

int explain_judge(const struct explain *explain, struct request *request, struct explanation *out)
{
	struct secrets *secrets;
	struct secret secret;
	const char *problem = "out of memory";
	char buffer[ADDRESS_TEXT_SIZE];

	if (request->target != NULL &&
	    policy_searches_secrets(explain->image, explain->subject.policy)) {
		if (secrets_new(&secrets, &problem) < 0)
			return command_error(STATUS_USAGE, "cannot look for secrets: %s", problem);
		if (secrets_find(secrets, request->target, request->target_length, &secret) > 0) {
			request->secret = true;
			request->secret_line = secret.line;
		}
		secrets_free(secrets);
	}
	out->verdict = policy_request(explain->image, &explain->subject, request, EXPLAIN_NOW);
	if (out->verdict.reason == REASON_SECRET_URL)
		out->note = secret.name;
	struct hook_question asked = {.scheme = ""};
	hook_question_connection(&asked, &request->connection, EXPLAIN_NOW);
	hook_question_request(&asked, request, buffer);
	explain_ask(explain, &asked, out);
	return 0;
}

int explain_request(const struct explain *explain, struct explanation *out)
{
	struct endpoint destination = explain->to;
	struct connection connection;
	struct request request;
	struct url url;
	struct pin *pins = NULL;
	int status = url_parse(explain->words[0], &url);

	if (status < 0)
		return command_usage_error(&command_explain, "'%.80s' is no URL: %s",
					   explain->words[0],
					   status == -EINVAL ? "it needs a scheme, as in https://…"
							     : strerror(-status));
	if (destination.address.family == ADDRESS_NONE && url.host.kind == HOST_LITERAL)
		destination.address = url.host.literal;
	if (destination.port == 0)
		destination.port = url.port;
	status = explain_connection(explain, &destination, IPPROTO_TCP, &connection, &pins);
	if (status == 0) {
		request_of_url(&url, &connection, &request);
		out->stage = STAGE_REQUEST;
		status = explain_judge(explain, &request, out);
	}
	free(pins);
	url_deinit(&url);
	return status;
}
