/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cni/result.h"

#include <string.h>

static int parse_address(const char *text, struct address *out)
{
	return text == NULL ? -1 : address_parse(text, strlen(text), out);
}

/* "10.88.0.2/16": the address alone. */
static int parse_interface_address(const char *text, struct address *out)
{
	const char *slash = text == NULL ? NULL : strchr(text, '/');

	return slash == NULL ? -1 : address_parse(text, (size_t)(slash - text), out);
}

static int read_addresses(const json_t *list, struct result *result, struct failure *failure)
{
	if (!json_is_array(list) || json_array_size(list) == 0)
		return fail(failure, FAILURE_CONFIG, "\"prevResult\" has no address");
	if (json_array_size(list) > RESULT_ADDRESSES_MAX)
		return fail(failure, FAILURE_CONFIG, "\"prevResult\" has more than %d addresses",
			    RESULT_ADDRESSES_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const json_t *gateway = json_object_get(entry, "gateway");
		if (parse_interface_address(json_string_value(json_object_get(entry, "address")),
					    &result->addresses[result->address_count]) != 0)
			return fail(failure, FAILURE_CONFIG,
				    "\"prevResult\": address no. %zu is none", i + 1);
		result->address_count++;
		if (gateway == NULL || json_is_null(gateway))
			continue;
		if (parse_address(json_string_value(gateway),
				  &result->gateways[result->gateway_count]) != 0)
			return fail(failure, FAILURE_CONFIG,
				    "\"prevResult\": gateway no. %zu is none", i + 1);
		result->gateway_count++;
	}
	return 0;
}

static const char *host_interface(const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const char *sandbox = json_string_value(json_object_get(entry, "sandbox"));
		const char *name = json_string_value(json_object_get(entry, "name"));
		if (name != NULL && name[0] != '\0' && (sandbox == NULL || sandbox[0] == '\0'))
			return name;
	}
	return NULL;
}

int result_read(const struct network *network, struct result *out, struct failure *failure)
{
	struct result result = {.json = json_object_get(network->json, "prevResult")};

	if (!json_is_object(result.json))
		return fail(
			failure, FAILURE_CONFIG,
			"\"prevResult\" is missing: pinfold-cni comes after the plugin that gives "
			"the addresses");
	if (read_addresses(json_object_get(result.json, "ips"), &result, failure) != 0)
		return -1;
	result.interface = host_interface(json_object_get(result.json, "interfaces"));
	if (result.interface == NULL)
		return fail(failure, FAILURE_CONFIG,
			    "\"prevResult\" has no interface of the host: its packets do not pass "
			    "here");
	*out = result;
	return 0;
}

int result_nameservers(const struct network *network, const struct result *result,
		       json_t **nameservers, struct failure *failure)
{
	bool given = network->nameserver_count > 0;
	const struct address *addresses = given ? network->nameservers : result->gateways;
	size_t count = given ? network->nameserver_count : result->gateway_count;
	char text[ADDRESS_TEXT_SIZE];

	if (count == 0)
		return fail(failure, FAILURE_CONFIG,
			    "no \"nameservers\", and no gateway to take for one");
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, json_string(address_format(&addresses[i], text)));
	*nameservers = list;
	return 0;
}

json_t *result_with_dns(const struct network *network, const struct result *result,
			json_t *nameservers)
{
	json_t *copy = json_deep_copy(result->json);
	json_t *dns = json_object_get(copy, "dns");

	if (!json_is_object(dns)) {
		json_object_set_new(copy, "dns", json_object());
		dns = json_object_get(copy, "dns");
	}
	if (json_object_set_new(copy, "cniVersion", json_string(network->version)) != 0 ||
	    json_object_set_new(dns, "nameservers", nameservers) != 0) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}
