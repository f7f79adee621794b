/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/client.h"
#include "cli/command.h"
#include "pins.h"

struct listing {
	const json_t *clients; /* what keys are made of */
	uint64_t now;          /* ms of CLOCK_BOOTTIME */
	bool json, expired;
};

/* Who a key belongs to: a name, "host", or the source address that it is. */
static const char *client_text(const struct listing *listing, const struct client_key *key,
			       char buffer[ADDRESS_TEXT_SIZE])
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct client_key host = client_key_of_host();
	struct address address;

	if (client_key_equal(key, &host))
		return "host";
	for (size_t i = 0; i < json_array_size(listing->clients); i++) {
		const json_t *client = json_array_get(listing->clients, i);
		const char *name = json_string_value(json_object_get(client, "name"));
		json_int_t serial = json_integer_value(json_object_get(client, "serial"));
		if (name == NULL)
			continue;
		struct client_key named = serial != 0 ? client_key_of_serial((uint64_t)serial)
						      : client_key_of_name(name);
		if (client_key_equal(key, &named))
			return name;
	}
	if (memcmp(key->bytes, mapped, sizeof(mapped)) == 0)
		address = address_from_bytes(key->bytes + 12, 4);
	else
		address = address_from_bytes(key->bytes, 16);
	return address_format(&address, buffer);
}

static bool print_pin(const struct pin *pin, void *context)
{
	const struct listing *listing = context;
	char client_buffer[ADDRESS_TEXT_SIZE], address_buffer[ADDRESS_TEXT_SIZE];
	const char *client = client_text(listing, &pin->client, client_buffer);
	const char *address = address_format(&pin->address, address_buffer);
	bool live = pin->expiry > listing->now;

	if (!live && !listing->expired)
		return true;
	uint64_t left = live ? (pin->expiry - listing->now) / 1000 : 0;
	if (listing->json) {
		json_t *object =
			json_pack("{s:s,s:s*,s:s,s:I}", "client", client, "name", pin->name.text,
				  "address", address, "seconds", (json_int_t)left);
		json_dumpf(object, stdout, JSON_COMPACT);
		json_decref(object);
		putchar('\n');
	} else {
		printf("%-16s %-40s %s %" PRIu64 "\n", client, pin->name.text, address, left);
	}
	return ferror(stdout) == 0;
}

static int print_table(const struct client *client, const json_t *answer,
		       const struct client_options *options)
{
	struct pins_table *table;
	struct timespec now;

	if (client->attached < 0 || pins_map(client->attached, &table) != 0)
		return command_error(STATUS_FAILED,
				     "the service gave no pin table of this version");
	clock_gettime(CLOCK_BOOTTIME, &now);
	struct listing listing = {
		.clients = json_object_get(answer, "clients"),
		.now = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
		.json = options->json,
		.expired = options->flag,
	};
	pins_each(table, print_pin, &listing);
	pins_unmap(table);
	return STATUS_OK;
}

static int pins_run(int argc, char **argv)
{
	struct client_options options;
	struct client client;
	int status = client_options(&command_pins, argc, argv, "--expired", &options);

	if (status != STATUS_OK)
		return status;
	if (client_open(&client, options.config) != 0)
		return STATUS_FAILED;
	status = STATUS_FAILED;
	if (client_ask(&client, json_pack("{s:s}", "command", "pins")) == 0) {
		json_t *answer = client_answer(&client);
		if (answer != NULL)
			status = print_table(&client, answer, &options);
		json_decref(answer);
	}
	client_close(&client);
	return status;
}

const struct command command_pins = {
	.name = "pins",
	.summary = "print the live pins: client, name, address, seconds left",
	.usage = "pinfold pins [--expired] [--json] [-c FILE]",
	.options = "  --expired   also those that have expired and are still remembered\n"
		   "  --json      one object a line\n"
		   "  -c FILE     the configuration that names the control socket\n",
	.run = pins_run,
};
