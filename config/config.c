/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The whole of it: file to text, text to tree, tree to sections, sections to a struct config.
 */

#include "config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/entry.h"
#include "config/load.h"

static const struct option sections[] = {
	{"resolver", resolver_section}, {"gate", gate_section},
	{"log", log_section},           {"control", control_section},
	{"pins", pins_section},         {"floor", floor_section},
	{"user", user_option},          {"clients", clients_section},
	{"policies", policies_section},
};

const struct config_private *config_private_of(const struct config *config)
{
	return (const struct config_private *)config;
}

/* What a file without a word in it means. */
static struct config_private *private_new(const char *path)
{
	struct config_private *private = calloc(1, sizeof(*private));

	if (private == NULL)
		return NULL;
	struct config *config = &private->config;
	struct policy_source *policy = arena_alloc(&private->arena, 1, sizeof(*policy));
	private->sources[CONFIG_SOURCE_FILE] = arena_text(&private->arena, path, strlen(path));
	private->sources[CONFIG_SOURCE_COMMAND] = "command line";
	private->sources[CONFIG_SOURCE_REGISTERED] = "registered client";
	if (policy == NULL || private->sources[CONFIG_SOURCE_FILE] == NULL) {
		arena_free(&private->arena);
		free(private);
		return NULL;
	}
	policy_source_init(policy, "default");
	config->source.policies = policy;
	config->source.policy_count = 1;
	config->source.source_names = private->sources;
	config->source.source_count = CONFIG_SOURCES;
	config->settings.version = SETTINGS_VERSION;
	config->settings.size = sizeof(config->settings);
	resolver_defaults(private);
	gate_defaults(private);
	return private;
}

/* The listening sockets as the policy engine wants them. */
static int list_listen(struct config_private *private)
{
	const struct resolver_settings *resolver = &private->config.settings.resolver;
	struct match_entry *entries =
		arena_alloc(&private->arena, resolver->listen_count, sizeof(*entries));

	if (entries == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < resolver->listen_count; i++) {
		const struct endpoint *endpoint = &resolver->listen[i];
		entries[i].kind = MATCH_PREFIX;
		entries[i].prefix.address = endpoint->address;
		entries[i].prefix.length = (uint8_t)address_bits(&endpoint->address);
		entries[i].port = endpoint->port;
		entries[i].place = (struct place){.source = SOURCE_CONFIG};
	}
	private->config.source.listen =
		(struct match_list){.entries = entries, .count = resolver->listen_count};
	return 0;
}

int config_set_listen(struct config *config, const struct endpoint *endpoints, size_t count)
{
	struct resolver_settings *resolver = &config->settings.resolver;

	if (count == 0 || count > SETTINGS_LISTEN_MAX)
		return -EINVAL;
	memset(resolver->listen, 0, sizeof(resolver->listen));
	memcpy(resolver->listen, endpoints, count * sizeof(*endpoints));
	resolver->listen_count = (uint32_t)count;
	return list_listen((struct config_private *)config);
}

static void finish(struct load *load)
{
	struct config_private *private = load->private;
	struct pins_limits *pins = &private->config.pins;

	if (pins->per_client == 0)
		pins->per_client = pins->capacity < PINS_PER_CLIENT_DEFAULT
					   ? pins->capacity
					   : PINS_PER_CLIENT_DEFAULT;
	policies_finish(load);
	clients_finish(load);
	if (list_listen(private) < 0)
		load->arena->failed = true;
}

static int compare_findings(const void *a, const void *b)
{
	const struct config_finding *left = a, *right = b;

	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	if (left->column != right->column)
		return left->column < right->column ? -1 : 1;
	return strcmp(left->text, right->text);
}

static void read_tree(struct load *load, const char *text, size_t length)
{
	struct arena tree_arena = {.blocks = NULL};
	const struct yaml_node *root = NULL;

	if (yaml_read(text, length, &tree_arena, load_report, load, &root)) {
		if (root != NULL)
			options_parse(load, root, "the configuration", sections,
				      sizeof(sections) / sizeof(sections[0]), load->private);
		finish(load);
	}
	load->clients = NULL;
	arena_free(&tree_arena);
}

struct config *config_read_text(const char *path, const char *text, size_t length,
				struct config_findings *findings)
{
	struct config_private *private = private_new(path);
	struct load load = {.findings = findings, .private = private};

	*findings = (struct config_findings){.count = 0};
	if (private == NULL) {
		load_error(&load, NULL, "out of memory");
		findings->errors = 1;
		return NULL;
	}
	load.arena = &private->arena;
	read_tree(&load, text, length);
	if (load.arena->failed)
		load_error(&load, NULL, "out of memory");
	if (findings->count > 1)
		qsort(findings->items, findings->count, sizeof(struct config_finding),
		      compare_findings);
	if (findings->errors > 0) {
		config_free(&private->config);
		return NULL;
	}
	return &private->config;
}

/* Everything from FD into *TEXT, which the caller frees. 0 or negative errno. */
static int read_all(int fd, char **text, size_t *length)
{
	size_t size = 0, room = 0;
	char *buffer = NULL;

	for (;;) {
		if (size == room) {
			char *larger = realloc(buffer, room = room == 0 ? 65536 : room * 2);
			if (larger == NULL) {
				free(buffer);
				return -ENOMEM;
			}
			buffer = larger;
		}
		ssize_t got = read(fd, buffer + size, room - size);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int error = -errno;
			free(buffer);
			return error;
		}
		size += (size_t)got;
		/* one octet over the limit is enough for yaml_read() to say so */
		if (got == 0 || size > YAML_SIZE_MAX)
			break;
	}
	*text = buffer;
	*length = size;
	return 0;
}

/* A file, a pipe, /dev/null; opening never blocks, reading may. */
static int open_file(const char *path)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	int error = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) != 0 || fcntl(fd, F_SETFL, 0) != 0)
		error = -errno;
	else if (S_ISDIR(status.st_mode))
		error = -EISDIR;
	else if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode))
		error = -EINVAL;
	if (error == 0)
		return fd;
	close(fd);
	return error;
}

struct config *config_read(const char *path, struct config_findings *findings)
{
	struct load load = {.findings = findings};
	bool standard = strcmp(path, "-") == 0;
	int fd = standard ? STDIN_FILENO : open_file(path);
	char *text = NULL;
	size_t length = 0;
	int error = fd < 0 ? fd : read_all(fd, &text, &length);
	struct config *config;

	if (fd >= 0 && !standard)
		close(fd);
	if (error < 0) {
		*findings = (struct config_findings){.count = 0};
		load_error(&load, NULL, "cannot read: %s",
			   error == -EINVAL ? "not a file" : strerror(-error));
		findings->errors = 1;
		return NULL;
	}
	config = config_read_text(path, text, length, findings);
	free(text);
	return config;
}

int config_allow(struct config *config, const char *entry, char *problem, size_t size)
{
	struct config_private *private = (struct config_private *)config;
	struct match_list *list = &config->source.policies[0].allow_hosts;
	char text[ENTRY_PROBLEM_SIZE];
	struct match_entry parsed;
	struct match_entry *entries;

	if (entry_parse(entry, strlen(entry), ENTRY_HOSTS, &parsed, text) < 0) {
		snprintf(problem, size, "%s", text);
		return -EINVAL;
	}
	parsed.place = (struct place){.source = SOURCE_CONFIG + CONFIG_SOURCE_COMMAND};
	entries = arena_alloc(&private->arena, list->count + 1, sizeof(*entries));
	if (entries == NULL) {
		snprintf(problem, size, "out of memory");
		return -EINVAL;
	}
	if (list->count > 0)
		memcpy(entries, list->entries, list->count * sizeof(*entries));
	entries[list->count] = parsed;
	list->entries = entries;
	list->count++;
	return 0;
}

void config_print(const struct config *config, FILE *out)
{
	const struct config_private *private = config_private_of(config);

	resolver_print(private, out);
	gate_print(private, out);
	clients_print(private, out);
	policies_print(private, out);
}

void config_findings_print(const struct config_findings *findings, const char *path, FILE *out)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct config_finding *finding = &findings->items[i];
		const char *kind = finding->warning ? "warning" : "error";
		if (finding->line == 0 || finding->line == LOAD_NO_LINE)
			fprintf(out, "%s: %s: %s\n", path, kind, finding->text);
		else
			fprintf(out, "%s:%u:%u: %s: %s\n", path, finding->line, finding->column,
				kind, finding->text);
	}
}

void config_findings_free(struct config_findings *findings)
{
	free(findings->items);
	*findings = (struct config_findings){.count = 0};
}

void config_free(struct config *config)
{
	struct config_private *private = (struct config_private *)config;

	if (private == NULL)
		return;
	arena_free(&private->arena);
	free(private);
}
