/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cni/attachment.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cni/result.h"
#include "cni/service.h"

static int ask(struct service *service, json_t *request, struct failure *failure)
{
	json_t *answer;

	if (service_ask(service, request, &answer, NULL, failure) != 0)
		return -1;
	json_decref(answer);
	return 0;
}

/* The list of all clients, borrowed from *ANSWER, which the caller releases; NULL with FAILURE. */
static const json_t *list_clients(struct service *service, json_t **answer, struct failure *failure)
{
	if (service_ask(service, json_pack("{s:s}", "command", "client-list"), answer, NULL,
			failure) != 0)
		return NULL;
	return json_object_get(*answer, "clients");
}

static const char *client_name(const json_t *client)
{
	const char *name = json_string_value(json_object_get(client, "name"));

	return name != NULL ? name : "";
}

static json_t *address_list(const struct result *result)
{
	json_t *list = json_array();
	char text[ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < result->address_count; i++)
		json_array_append_new(list,
				      json_string(address_format(&result->addresses[i], text)));
	return list;
}

static bool holds(const json_t *addresses, const json_t *address)
{
	for (size_t i = 0; i < json_array_size(addresses); i++)
		if (json_equal(json_array_get(addresses, i), address))
			return true;
	return false;
}

static bool share_one(const json_t *a, const json_t *b)
{
	for (size_t i = 0; i < json_array_size(a); i++)
		if (holds(b, json_array_get(a, i)))
			return true;
	return false;
}

/*
 * Removes what attachments of this network hold of our NAME and ADDRESSES. The network gives an address
 * to one container at a time and has given these to us.
 */
static int remove_stale(struct service *service, const struct network *network, const char *name,
			const json_t *addresses, struct failure *failure)
{
	json_t *answer;
	const json_t *clients = list_clients(service, &answer, failure);
	int error = clients == NULL ? -1 : 0;

	for (size_t i = 0; i < json_array_size(clients) && error == 0; i++) {
		const json_t *client = json_array_get(clients, i);
		if (!network_owns(network->name, client_name(client)))
			continue;
		if (strcmp(client_name(client), name) == 0 ||
		    share_one(json_object_get(client, "addresses"), addresses))
			error = ask(service,
				    json_pack("{s:s,s:s}", "command", "client-remove", "name",
					      client_name(client)),
				    failure);
	}
	if (clients != NULL)
		json_decref(answer);
	return error;
}

/* KEY is "via" or "interface" (docs/control.md). */
static int add_by(struct service *service, const struct network *network, const char *name,
		  json_t *addresses, const char *key, const char *interface,
		  struct failure *failure)
{
	for (int attempt = 0;; attempt++) {
		json_t *answer;
		bool taken;
		json_t *request = json_pack("{s:s,s:s,s:s,s:O,s:s}", "command", "client-add",
					    "name", name, "policy", network->policy, "addresses",
					    addresses, key, interface);
		if (service_ask(service, request, &answer, &taken, failure) == 0) {
			json_decref(answer);
			return 0;
		}
		if (!taken || attempt > 0 ||
		    remove_stale(service, network, name, addresses, failure) != 0)
			return -1;
	}
}

static bool is_bridge(const char *interface)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/class/net/%.15s/bridge", interface);
	return access(path, F_OK) == 0;
}

/*
 * By an interface that `gate: {interfaces}` governs already; else, if the interface is the container's
 * alone, with rules for it. A bridge is many containers': rules that came with the first would leave
 * who is on it already without a policy.
 */
static int add(struct service *service, const struct network *network, const char *name,
	       const struct result *result, struct failure *failure)
{
	json_t *addresses = address_list(result);
	struct failure first;
	int error = add_by(service, network, name, addresses, "via", result->interface, failure);

	if (error != 0 && failure->code == FAILURE_CONFIG && !is_bridge(result->interface)) {
		first = *failure;
		error = add_by(service, network, name, addresses, "interface", result->interface,
			       failure);
		if (error != 0)
			*failure = first;
	}
	json_decref(addresses);
	return error;
}

int attachment_add(const struct network *network, const struct attachment *attachment, json_t **out,
		   struct failure *failure)
{
	struct result result;
	struct service service;
	json_t *nameservers;
	char name[CLIENT_NAME_MAX + 1];

	if (result_read(network, &result, failure) != 0 ||
	    result_nameservers(network, &result, &nameservers, failure) != 0)
		return -1;
	json_t *with_dns = result_with_dns(network, &result, nameservers);
	if (with_dns == NULL)
		return fail(failure, FAILURE_TRY_AGAIN, "out of memory");

	network_client(network->name, attachment->container, attachment->interface, name);
	int error = service_open(&service, network->socket, failure);
	if (error == 0)
		error = add(&service, network, name, &result, failure);
	service_close(&service);
	if (error != 0)
		json_decref(with_dns);
	else
		*out = with_dns;
	return error;
}

int attachment_del(const struct network *network, const struct attachment *attachment,
		   struct failure *failure)
{
	struct service service;
	char name[CLIENT_NAME_MAX + 1];

	if (service_is_gone(network->socket))
		return 0;
	network_client(network->name, attachment->container, attachment->interface, name);
	int error = service_open(&service, network->socket, failure);
	if (error == 0)
		error = ask(&service,
			    json_pack("{s:s,s:s}", "command", "client-remove", "name", name),
			    failure);
	service_close(&service);
	return error;
}

static const json_t *find(const json_t *clients, const char *name)
{
	for (size_t i = 0; i < json_array_size(clients); i++)
		if (strcmp(client_name(json_array_get(clients, i)), name) == 0)
			return json_array_get(clients, i);
	return NULL;
}

static int compare(const struct network *network, const struct result *result, const json_t *client,
		   struct failure *failure)
{
	const json_t *known = json_object_get(client, "addresses");
	const char *policy = json_string_value(json_object_get(client, "policy"));
	json_t *wanted = address_list(result);
	int error = 0;

	if (policy == NULL || strcmp(policy, network->policy) != 0)
		error = fail(failure, FAILURE_DIFFERENT, "it has the policy '%s' and not '%s'",
			     policy != NULL ? policy : "?", network->policy);
	for (size_t i = 0; i < json_array_size(wanted) && error == 0; i++)
		if (!holds(known, json_array_get(wanted, i)))
			error = fail(failure, FAILURE_DIFFERENT, "%s is not its address",
				     json_string_value(json_array_get(wanted, i)));
	if (error == 0 && json_array_size(known) != json_array_size(wanted))
		error = fail(failure, FAILURE_DIFFERENT, "it has other addresses as well");
	json_decref(wanted);
	return error;
}

/* Both children work and the rules stand. */
static int check_service(struct service *service, enum failure_code code, struct failure *failure)
{
	static const char *const children[] = {"resolver", "gate"};
	json_t *answer;

	if (service_ask(service, json_pack("{s:s}", "command", "status"), &answer, NULL, failure) !=
	    0)
		return -1;
	const json_t *rules = json_object_get(answer, "rules");
	const char *problem = json_string_value(json_object_get(rules, "problem"));
	int error = 0;
	if (problem != NULL)
		error = fail(failure, code, "the packet-filter rules: %s", problem);
	for (size_t i = 0; i < 2 && error == 0; i++) {
		const char *state = json_string_value(
			json_object_get(json_object_get(answer, children[i]), "state"));
		if (state == NULL || strcmp(state, "ready") != 0)
			error = fail(failure, code, "the %s is not ready: %s", children[i],
				     state != NULL ? state : "?");
	}
	json_decref(answer);
	return error;
}

int attachment_check(const struct network *network, const struct attachment *attachment,
		     struct failure *failure)
{
	struct result result;
	struct service service;
	json_t *answer = NULL;
	char name[CLIENT_NAME_MAX + 1];

	if (result_read(network, &result, failure) != 0 ||
	    service_open(&service, network->socket, failure) != 0)
		return -1;
	network_client(network->name, attachment->container, attachment->interface, name);
	const json_t *clients = list_clients(&service, &answer, failure);
	const json_t *client = find(clients, name);
	int error = -1;
	if (clients != NULL && client == NULL)
		fail(failure, FAILURE_UNREGISTERED, "pinfold does not know the container: %s",
		     name);
	else if (client != NULL)
		error = compare(network, &result, client, failure);
	if (error == 0)
		error = check_service(&service, FAILURE_RULES, failure);
	json_decref(answer);
	service_close(&service);
	return error;
}

/* The names of the attachments that are there, as an object's keys; NULL with FAILURE. */
static json_t *valid_names(const struct network *network, struct failure *failure)
{
	const json_t *list = json_object_get(network->json, "cni.dev/valid-attachments");
	json_t *names = json_object();
	char name[CLIENT_NAME_MAX + 1];

	/* Without a list nothing would be valid, and everybody would be removed. */
	for (size_t i = 0; json_is_array(list) && i < json_array_size(list); i++) {
		const json_t *entry = json_array_get(list, i);
		const char *container = json_string_value(json_object_get(entry, "containerID"));
		const char *interface = json_string_value(json_object_get(entry, "ifname"));
		if (container == NULL || interface == NULL)
			break;
		network_client(network->name, container, interface, name);
		json_object_set_new(names, name, json_true());
	}
	if (!json_is_array(list) || json_object_size(names) != json_array_size(list)) {
		json_decref(names);
		fail(failure, FAILURE_CONFIG,
		     "\"cni.dev/valid-attachments\" is no list of attachments");
		return NULL;
	}
	return names;
}

int attachment_gc(const struct network *network, struct failure *failure)
{
	json_t *valid = valid_names(network, failure), *answer = NULL;
	struct service service;

	if (valid == NULL)
		return -1;
	if (service_is_gone(network->socket)) {
		json_decref(valid);
		return 0;
	}
	int error = service_open(&service, network->socket, failure);
	const json_t *clients = error == 0 ? list_clients(&service, &answer, failure) : NULL;
	if (clients == NULL)
		error = -1;
	for (size_t i = 0; i < json_array_size(clients) && error == 0; i++) {
		const char *name = client_name(json_array_get(clients, i));
		if (network_owns(network->name, name) && json_object_get(valid, name) == NULL)
			error = ask(
				&service,
				json_pack("{s:s,s:s}", "command", "client-remove", "name", name),
				failure);
	}
	json_decref(answer);
	json_decref(valid);
	service_close(&service);
	return error;
}

int attachment_status(const struct network *network, struct failure *failure)
{
	struct service service;
	int error = service_open(&service, network->socket, failure);

	if (error == 0)
		error = check_service(&service, FAILURE_UNAVAILABLE, failure);
	service_close(&service);
	if (error != 0)
		failure->code = FAILURE_UNAVAILABLE;
	return error;
}
