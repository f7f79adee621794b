/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cni/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

#define SOCKET_DEFAULT      "/run/pinfold/control.sock"
#define POLICY_DEFAULT_NAME "default"
#define CAPABILITY          "pinfoldPolicy"
/* IFNAMSIZ without the NUL; net/if.h would bring much more. */
#define INTERFACE_MAX 15
/* Of the container's id: what `podman ps` and `docker ps` show. */
#define CONTAINER_SHOWN 12

const char *const network_versions[] = {"0.4.0", "1.0.0", "1.1.0", NULL};

static const char *const verbs[] = {
	[VERB_ADD] = "ADD", [VERB_DEL] = "DEL",       [VERB_CHECK] = "CHECK",
	[VERB_GC] = "GC",   [VERB_STATUS] = "STATUS", [VERB_VERSION] = "VERSION",
};

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* What the specification allows for a container's id and a network's name. */
static bool is_identifier(const char *text)
{
	if (!is_alphanumeric(text[0]))
		return false;
	for (; *text != '\0'; text++)
		if (!is_alphanumeric(*text) && strchr("_.-", *text) == NULL)
			return false;
	return true;
}

static bool is_interface(const char *text)
{
	size_t length = strlen(text);

	return length > 0 && length <= INTERFACE_MAX && strcmp(text, ".") != 0 &&
	       strcmp(text, "..") != 0 && strpbrk(text, "/: \t\n\v\f\r") == NULL;
}

static bool is_set(const char *text)
{
	return text != NULL && text[0] != '\0';
}

int network_verb(const struct variables *variables, enum verb *verb, struct failure *failure)
{
	size_t found = 0;

	if (!is_set(variables->command))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_COMMAND is not set");
	while (found < sizeof(verbs) / sizeof(verbs[0]) &&
	       strcmp(verbs[found], variables->command) != 0)
		found++;
	if (found == sizeof(verbs) / sizeof(verbs[0]))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_COMMAND is no verb: '%.32s'",
			    variables->command);

	bool attachment = found == VERB_ADD || found == VERB_DEL || found == VERB_CHECK;
	if (attachment && !is_set(variables->container))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_CONTAINERID is not set");
	if (attachment && !is_identifier(variables->container))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_CONTAINERID is no identifier");
	if (attachment && !is_set(variables->interface))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_IFNAME is not set");
	if (attachment && !is_interface(variables->interface))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_IFNAME is no name of an interface");
	if ((found == VERB_ADD || found == VERB_CHECK) && !is_set(variables->netns))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_NETNS is not set");
	if (found != VERB_VERSION && !is_set(variables->path))
		return fail(failure, FAILURE_ENVIRONMENT, "CNI_PATH is not set");
	*verb = (enum verb)found;
	return 0;
}

static bool is_known(const char *key)
{
	static const char *const keys[] = {
		"cniVersion",   "name",          "type",         "args",
		"capabilities", "runtimeConfig", "prevResult",   "dns",
		"ipam",         "ipMasq",        "policy",       "nameservers",
		"socket",       "cniVersions",   "disableCheck", "disableGC",
	};

	/* "cni.dev/valid-attachments": names with a domain are other people's. */
	if (strchr(key, '/') != NULL)
		return true;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

/* A string that may be left out. */
static int read_text(const json_t *json, const char *key, const char **out, struct failure *failure)
{
	const json_t *value = json_object_get(json, key);

	if (value == NULL)
		return 0;
	if (!json_is_string(value) || json_string_value(value)[0] == '\0')
		return fail(failure, FAILURE_CONFIG, "\"%s\" is no text", key);
	*out = json_string_value(value);
	return 0;
}

static int read_version(const json_t *json, enum verb verb, const char **out,
			struct failure *failure)
{
	const char *version = NULL;

	if (read_text(json, "cniVersion", &version, failure) != 0)
		return -1;
	if (version == NULL)
		return fail(failure, FAILURE_CONFIG, "\"cniVersion\" is missing");
	if ((verb == VERB_GC || verb == VERB_STATUS) && strcmp(version, "1.1.0") != 0)
		return fail(failure, FAILURE_VERSION, "version %.32s has no %s", version,
			    verbs[verb]);
	for (size_t i = 0; network_versions[i] != NULL; i++)
		if (strcmp(network_versions[i], version) == 0) {
			*out = network_versions[i];
			return 0;
		}
	return fail(failure, FAILURE_VERSION,
		    "version %.32s of the specification is none of 0.4.0, 1.0.0 and 1.1.0",
		    version);
}

static int read_nameservers(const json_t *json, struct network *out, struct failure *failure)
{
	const json_t *list = json_object_get(json, "nameservers");

	if (list == NULL)
		return 0;
	if (!json_is_array(list) || json_array_size(list) == 0 ||
	    json_array_size(list) > NETWORK_NAMESERVERS_MAX)
		return fail(failure, FAILURE_CONFIG, "\"nameservers\" is no list of 1 to %d",
			    NETWORK_NAMESERVERS_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *text = json_string_value(json_array_get(list, i));
		if (text == NULL || address_parse(text, strlen(text), &out->nameservers[i]) != 0)
			return fail(failure, FAILURE_CONFIG,
				    "\"nameservers\": no. %zu is no address", i + 1);
	}
	out->nameserver_count = json_array_size(list);
	return 0;
}

int network_read(const json_t *json, enum verb verb, struct network *out, struct failure *failure)
{
	struct network network = {
		.json = json, .policy = POLICY_DEFAULT_NAME, .socket = SOCKET_DEFAULT};
	const json_t *runtime = json_object_get(json, "runtimeConfig");
	const char *key;
	json_t *value;

	if (read_version(json, verb, &network.version, failure) != 0)
		return -1;
	json_object_foreach((json_t *)(uintptr_t)json, key, value) if (!is_known(key)) return fail(
		failure, FAILURE_FIELD, "there is no field \"%.64s\"", key);
	if (read_text(json, "name", &network.name, failure) != 0)
		return -1;
	if (network.name == NULL || !is_identifier(network.name))
		return fail(failure, FAILURE_CONFIG, "\"name\" is missing or no identifier");
	if (runtime != NULL && !json_is_object(runtime))
		return fail(failure, FAILURE_CONFIG, "\"runtimeConfig\" is no object");
	if (read_text(json, "policy", &network.policy, failure) != 0 ||
	    read_text(json, "socket", &network.socket, failure) != 0 ||
	    read_text(runtime, CAPABILITY, &network.policy, failure) != 0 ||
	    read_nameservers(json, &network, failure) != 0)
		return -1;
	*out = network;
	return 0;
}

static uint64_t hash(const char *text, size_t length)
{
	static const uint8_t key[16]; /* names come from the runtime, which is trusted */

	return hash_sip(key, text, length);
}

#define NETWORK_PREFIX_SIZE 16
static void network_prefix(const char *network, char prefix[NETWORK_PREFIX_SIZE])
{
	snprintf(prefix, NETWORK_PREFIX_SIZE, "cni-%08" PRIx32 "-",
		 (uint32_t)hash(network, strlen(network)));
}

void network_client(const char *network, const char *container, const char *interface,
		    char name[CLIENT_NAME_MAX + 1])
{
	/* '/' is in none of the three. */
	const char *const parts[] = {network, "/", container, "/", interface};
	char prefix[NETWORK_PREFIX_SIZE];
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct {
			uint64_t before, part;
		} chain = {all, hash(parts[i], strlen(parts[i]))};
		all = hash((const char *)&chain, sizeof(chain));
	}
	network_prefix(network, prefix);
	snprintf(name, CLIENT_NAME_MAX + 1, "%s%.*s-%016" PRIx64, prefix, CONTAINER_SHOWN,
		 container, all);
}

bool network_owns(const char *network, const char *name)
{
	char prefix[NETWORK_PREFIX_SIZE];

	network_prefix(network, prefix);
	return strncmp(name, prefix, strlen(prefix)) == 0;
}
