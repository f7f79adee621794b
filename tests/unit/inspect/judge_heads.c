/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Says of byte streams whether the gate would let all of each leave for the only name that is pinned:
 * the other half of http_differ.py.
 *
 * Standard input is streams, each behind its length in four octets of network order; the answer to
 * each is a line, "allow", "deny" or "wait" (its end is held).
 */

#include <endian.h>
#include <netinet/in.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inspect/stream.h"
#include "rules/source.h"

#define STREAM_LENGTH_MAX (1u << 20)
#define NAME              "good.example"

static struct verdict judge(const struct policy_image *image, struct request *request)
{
	const struct subject subject = {.policy = POLICY_DEFAULT};
	static struct pin pin = {.expiry = 2};

	pin.address = address_ipv4(93, 184, 216, 34);
	name_from_text(NAME, strlen(NAME), &pin.name);
	request->connection = (struct connection){.destination = pin.address,
						  .port = 80,
						  .protocol = IPPROTO_TCP,
						  .pins = &pin,
						  .pin_count = 1};
	return policy_request(image, &subject, request, 1);
}

static const char *answer(const struct policy_image *image, const uint8_t *bytes, size_t length)
{
	static uint8_t buffer[STREAM_HTTP_HEAD_MAX + 4096];
	alignas(16) static uint8_t storage[STREAM_SIZE];
	struct stream *stream = stream_init(storage, buffer, sizeof(buffer));
	size_t at = 0;

	for (;;) {
		at += stream_feed(stream, bytes + at, length - at);
		switch (stream_state(stream)) {
		case STREAM_EVENT:
			if (judge(image, &stream_event(stream)->request).outcome != OUTCOME_ALLOW)
				return "deny";
			stream_resume(stream);
			break;
		case STREAM_FULL:
		case STREAM_BROKEN:
			return "deny";
		case STREAM_START:
		case STREAM_HEAD:
			if (at == length)
				return "wait";
			break;
		case STREAM_BODY:
		case STREAM_BETWEEN:
		case STREAM_OPAQUE:
			if (at == length)
				return "allow";
			break;
		}
	}
}

int main(void)
{
	static uint8_t bytes[STREAM_LENGTH_MAX];
	struct policy_source policy;
	const struct config_source source = {.policies = &policy, .policy_count = 1};
	const struct policy_image *image;
	uint32_t length;
	size_t size;
	void *built;

	policy_source_init(&policy, "default");
	policy.block_secret_bearing_urls.value = false;
	policy.literals_deny.value = true; /* a request without a name would be a use of the address */
	if (policy_image_build(&source, &built, &size) < 0 ||
	    policy_image_open(built, size, &image) < 0)
		return EXIT_FAILURE;
	while (fread(&length, sizeof(length), 1, stdin) == 1) {
		length = be32toh(length);
		if (length > sizeof(bytes) || fread(bytes, 1, length, stdin) != length)
			return EXIT_FAILURE;
		puts(answer(image, bytes, length));
		fflush(stdout);
	}
	free(built);
	return EXIT_SUCCESS;
}
