/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/suggestion.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "policy.h"
#include "rules/classify.h"
#include "rules/names.h"
#include "rules/source.h"

/* Everything is judged at one moment, at which what was resolved is pinned. */
#define NOW 1000u

#define TYPE_A 1

/* Events that are alike are one, when they are sorted. */
struct seen {
	struct suggestion_event event;
	struct match_entry entry;     /* what lists it */
	char why[ENTRY_PROBLEM_SIZE]; /* why it cannot be listed; "" when it can */
};

/* An entry of the list. */
struct wanted {
	struct match_entry entry;
	uint64_t count;
	bool gone; /* another entry covers it */
};

struct suggestion {
	bool wildcards;
	struct seen *seen;
	size_t count, room;
	struct wanted *wanted;
	size_t wanted_count;
};

struct suggestion *suggestion_new(bool wildcards)
{
	struct suggestion *suggestion = calloc(1, sizeof(*suggestion));

	if (suggestion != NULL)
		suggestion->wildcards = wildcards;
	return suggestion;
}

void suggestion_free(struct suggestion *suggestion)
{
	if (suggestion == NULL)
		return;
	free(suggestion->seen);
	free(suggestion->wanted);
	free(suggestion);
}

/*
 * A use of the bare address is listed by the address, whatever name is pinned to it; everything else
 * by its name.
 */
static bool uses_address(const struct suggestion_event *event)
{
	return !event->has_name || event->reason == REASON_UNPINNED ||
	       event->reason == REASON_NO_NAME;
}

static int compare_hosts(const struct suggestion_event *a, const struct suggestion_event *b)
{
	bool a_bare = uses_address(a), b_bare = uses_address(b);

	if (a_bare != b_bare)
		return a_bare ? 1 : -1;
	if (!a_bare)
		return strcmp(a->name.text, b->name.text);
	return memcmp(&a->address, &b->address, sizeof(a->address));
}

static int compare_events(const void *left, const void *right)
{
	const struct suggestion_event *a = &((const struct seen *)left)->event;
	const struct suggestion_event *b = &((const struct seen *)right)->event;
	int order = compare_hosts(a, b);

	if (order == 0)
		order = a->port - b->port;
	if (order == 0)
		order = (int)a->reason - (int)b->reason;
	if (order == 0)
		order = (int)a->stage - (int)b->stage;
	if (order == 0)
		order = a->qtype - b->qtype;
	if (order == 0)
		order = a->protocol - b->protocol;
	return order != 0 ? order : memcmp(&a->address, &b->address, sizeof(a->address));
}

/* The first of several alike stays, with the count of all. */
static void merge_events(struct suggestion *suggestion)
{
	size_t kept = 0;

	if (suggestion->count == 0)
		return;
	qsort(suggestion->seen, suggestion->count, sizeof(*suggestion->seen), compare_events);
	for (size_t i = 1; i < suggestion->count; i++) {
		struct seen *last = &suggestion->seen[kept], *next = &suggestion->seen[i];
		if (compare_events(last, next) == 0)
			last->event.count += next->event.count;
		else
			suggestion->seen[++kept] = *next;
	}
	suggestion->count = kept + 1;
}

int suggestion_add(struct suggestion *suggestion, const struct suggestion_event *event)
{
	if (suggestion->count == suggestion->room) {
		size_t room = suggestion->room == 0 ? 256 : suggestion->room * 2;
		/* a long log says the same again and again */
		merge_events(suggestion);
		if (suggestion->count > suggestion->room / 2 || suggestion->room == 0) {
			struct seen *seen = reallocarray(suggestion->seen, room, sizeof(*seen));
			if (seen == NULL)
				return -ENOMEM;
			suggestion->seen = seen;
			suggestion->room = room;
		}
	}
	suggestion->seen[suggestion->count++] = (struct seen){.event = *event};
	return 0;
}

/* The reasons that an entry for a public host lifts. */
static bool is_lifted(enum reason reason)
{
	return reason == REASON_NONE || reason == REASON_NOT_ALLOWLISTED ||
	       reason == REASON_UNPINNED || reason == REASON_NO_NAME;
}

/* Why no list should hold it, by what the event itself says; NULL when one may. */
static const char *unlistable(const struct suggestion_event *event)
{
	struct name_facts facts;

	if (!is_lifted(event->reason))
		return reason_text(event->reason);
	if (uses_address(event)) {
		if (event->address.family == ADDRESS_NONE)
			return "no host is named";
		return class_is_public(&event->address) ? NULL : "a private address";
	}
	if (entry_on_floor(&event->name))
		return reason_text(REASON_METADATA);
	names_facts(&event->name, NULL, &facts);
	return facts.kind == NAMES_PUBLIC || facts.kind == NAMES_EXEMPT ? NULL : "a private name";
}

/* A question has no port: an entry with any port holds it, one without stands for it meanwhile. */
static uint16_t port_of(const struct suggestion_event *event)
{
	return event->stage == STAGE_RESOLVE || event->stage == STAGE_ANSWER ? 0 : event->port;
}

static void make_entry(struct seen *seen)
{
	const struct suggestion_event *event = &seen->event;
	const char *why = unlistable(event);
	struct match_entry entry = {.kind = MATCH_NAME, .port = port_of(event)};
	char text[ENTRY_TEXT_SIZE];

	if (why != NULL) {
		snprintf(seen->why, sizeof(seen->why), "%s", why);
		return;
	}
	if (uses_address(event)) {
		entry.kind = MATCH_PREFIX;
		entry.prefix.address = event->address;
		entry.prefix.length = (uint8_t)address_bits(&event->address);
	} else {
		entry.name = event->name;
	}
	entry_format(&entry, text);
	if (entry_parse(text, strlen(text), ENTRY_HOSTS, &seen->entry, seen->why) == 0)
		seen->why[0] = '\0';
}

static struct verdict judge(const struct policy_image *image, const struct suggestion_event *event)
{
	const struct subject subject = {.policy = POLICY_DEFAULT};
	const struct pin pin = {.address = event->address, .name = event->name, .expiry = NOW + 1};
	const bool bare = uses_address(event);
	struct connection connection = {.destination = event->address,
					.port = event->port,
					.protocol = event->protocol,
					.pins = &pin,
					.pin_count = bare ? 0 : 1};
	struct request request = {.kind = event->port == 443 ? REQUEST_TLS : REQUEST_HTTP1,
				  .form = TARGET_ORIGIN,
				  .scheme = ""};

	switch (event->stage) {
	case STAGE_RESOLVE:
		return policy_resolve(
			image, &subject,
			&(struct question){.name = &event->name,
					   .type = event->qtype != 0 ? event->qtype : TYPE_A});
	case STAGE_ANSWER:
		return policy_answer(
			image, &subject,
			&(struct answer){.name = &event->name,
					 .addresses = &event->address,
					 .address_count = event->address.family != ADDRESS_NONE});
	case STAGE_CONNECT:
		return policy_connect(image, &subject, &connection, NOW);
	case STAGE_REQUEST:
	case STAGE_COUNT:
		break;
	}
	request.connection = connection;
	if (!bare)
		request.host = (struct host){.kind = HOST_NAME, .name = event->name};
	return policy_request(image, &subject, &request, NOW);
}

/* An image under which everything that can be listed is. 0 or -ENOMEM. */
static int build_image(const struct suggestion *suggestion, void **bytes,
		       const struct policy_image **image)
{
	struct policy_source policy;
	const struct config_source source = {.policies = &policy, .policy_count = 1};
	size_t size;
	int error;

	policy_source_init(&policy, "default");
	policy.default_deny.value = true;
	policy.allow_hosts.entries =
		calloc(suggestion->count + 1, sizeof(*policy.allow_hosts.entries));
	if (policy.allow_hosts.entries == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < suggestion->count; i++)
		if (suggestion->seen[i].why[0] == '\0')
			policy.allow_hosts.entries[policy.allow_hosts.count++] =
				suggestion->seen[i].entry;
	error = policy_image_build(&source, bytes, &size);
	free(policy.allow_hosts.entries);
	if (error < 0)
		return error;
	error = policy_image_open(*bytes, size, image);
	if (error < 0)
		free(*bytes);
	return error;
}

/* What the engine refuses though it is listed is no matter of a list. */
static int judge_all(struct suggestion *suggestion)
{
	const struct policy_image *image;
	void *bytes;
	int error = build_image(suggestion, &bytes, &image);

	if (error < 0)
		return error;
	for (size_t i = 0; i < suggestion->count; i++) {
		struct seen *seen = &suggestion->seen[i];
		if (seen->why[0] != '\0')
			continue;
		struct verdict verdict = judge(image, &seen->event);
		if (verdict.outcome != OUTCOME_ALLOW)
			snprintf(seen->why, sizeof(seen->why), "%s", reason_text(verdict.reason));
	}
	free(bytes);
	return 0;
}

static int compare_names(const struct match_entry *a, const struct match_entry *b)
{
	return strcmp(a->name.text, b->name.text);
}

/* Names before addresses, by name, then by port. */
static int compare_wanted(const void *left, const void *right)
{
	const struct match_entry *a = &((const struct wanted *)left)->entry;
	const struct match_entry *b = &((const struct wanted *)right)->entry;
	int order = (a->kind == MATCH_PREFIX) - (b->kind == MATCH_PREFIX);

	if (order == 0 && a->kind == MATCH_PREFIX)
		order = memcmp(&a->prefix, &b->prefix, sizeof(a->prefix));
	else if (order == 0)
		order = compare_names(a, b);
	if (order == 0)
		order = a->port - b->port;
	return order != 0 ? order : (int)a->kind - (int)b->kind;
}

static void sort_wanted(struct suggestion *suggestion)
{
	size_t kept = 0;

	for (size_t i = 0; i < suggestion->wanted_count; i++)
		if (!suggestion->wanted[i].gone)
			suggestion->wanted[kept++] = suggestion->wanted[i];
	suggestion->wanted_count = kept;
	if (kept == 0)
		return;
	qsort(suggestion->wanted, kept, sizeof(*suggestion->wanted), compare_wanted);
	kept = 0;
	for (size_t i = 1; i < suggestion->wanted_count; i++) {
		struct wanted *last = &suggestion->wanted[kept], *next = &suggestion->wanted[i];
		if (compare_wanted(last, next) == 0)
			last->count += next->count;
		else
			suggestion->wanted[++kept] = *next;
	}
	suggestion->wanted_count = kept + 1;
}

/* Twice the room: each group of wildcards adds one to two or more. */
static int make_wanted(struct suggestion *suggestion)
{
	suggestion->wanted = calloc(2 * suggestion->count + 1, sizeof(*suggestion->wanted));
	if (suggestion->wanted == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < suggestion->count; i++)
		if (suggestion->seen[i].why[0] == '\0')
			suggestion->wanted[suggestion->wanted_count++] =
				(struct wanted){.entry = suggestion->seen[i].entry,
						.count = suggestion->seen[i].event.count};
	sort_wanted(suggestion);
	return 0;
}

/* OTHER holds whatever ONE holds; both are names. */
static bool covers(const struct match_entry *other, const struct match_entry *one)
{
	bool same = name_equal(&other->name, &one->name);

	if (same && other->kind == MATCH_SUBDOMAINS && one->kind == MATCH_NAME)
		return false;
	if (!name_is_within(&one->name, &other->name))
		return false;
	/* without a port it was asked for and never connected to: any port holds the question */
	return one->port == 0 || other->port == 0 || other->port == one->port;
}

/* The first of the wanted with NAME, by a search in what is sorted. */
static size_t first_named(const struct suggestion *suggestion, const struct name *name)
{
	size_t low = 0, high = suggestion->wanted_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct match_entry *entry = &suggestion->wanted[middle].entry;
		if (entry->kind != MATCH_PREFIX && strcmp(entry->name.text, name->text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Without a port: of questions alone, that no connection followed. */
static bool is_asked_only(const struct match_entry *entry)
{
	return entry->port == 0;
}

/* Another one, not gone, that covers the wanted at INDEX; NULL when there is none. */
static struct wanted *covering(const struct suggestion *suggestion, size_t index, bool by_asked)
{
	const struct match_entry *one = &suggestion->wanted[index].entry;
	struct name name = one->name;

	for (; name.length > 0; name = name_parent(&name)) {
		for (size_t i = first_named(suggestion, &name); i < suggestion->wanted_count; i++) {
			struct wanted *other = &suggestion->wanted[i];
			if (other->entry.kind == MATCH_PREFIX ||
			    !name_equal(&other->entry.name, &name))
				break;
			if (i != index && !other->gone &&
			    is_asked_only(&other->entry) == by_asked && covers(&other->entry, one))
				return other;
		}
	}
	return NULL;
}

/* Drops those, asked only or not, that another of those BY_ASKED only or not covers. */
static void drop_covered(struct suggestion *suggestion, bool asked, bool by_asked)
{
	for (size_t i = 0; i < suggestion->wanted_count; i++) {
		struct wanted *one = &suggestion->wanted[i], *other = NULL;
		if (one->entry.kind != MATCH_PREFIX && is_asked_only(&one->entry) == asked)
			other = covering(suggestion, i, by_asked);
		if (other == NULL)
			continue;
		other->count += one->count;
		one->gone = true;
	}
	sort_wanted(suggestion);
}

/* The domain that somebody registered and that ENTRY is strictly below; empty when there is none. */
static struct name domain_of(const struct match_entry *entry)
{
	struct name name = {.length = 0};

	if (entry->kind != MATCH_NAME)
		return name;
	size_t labels = name_label_count(&entry->name);
	size_t registered = entry_registered_labels(&entry->name);
	if (registered == 0 || labels <= registered)
		return name;
	for (name = entry->name; labels > registered; labels--)
		name = name_parent(&name);
	return name;
}

/*
 * Puts one wildcard in the place of those after FIRST, and itself, that are below DOMAIN with the
 * same port, when there are several: at the nearest parent that they have in common.
 */
static void make_wildcard(struct suggestion *suggestion, size_t first, const struct name *domain)
{
	struct wanted *one = &suggestion->wanted[first];
	struct wanted wildcard = {.entry = one->entry, .count = one->count};
	struct name *common = &wildcard.entry.name;
	bool several = false;

	*common = name_parent(&one->entry.name);
	wildcard.entry.kind = MATCH_SUBDOMAINS;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = first + 1; i < suggestion->wanted_count; i++) {
			struct wanted *other = &suggestion->wanted[i];
			if (other->gone || other->entry.kind != MATCH_NAME ||
			    other->entry.port != one->entry.port ||
			    name_equal(&other->entry.name, domain) ||
			    !name_is_within(&other->entry.name, domain))
				continue;
			several = true;
			other->gone = pass == 1;
			wildcard.count += pass == 1 ? other->count : 0;
			while (!name_is_within(&other->entry.name, common) ||
			       name_equal(&other->entry.name, common))
				*common = name_parent(common);
		}
		if (!several)
			return;
	}
	one->gone = true;
	suggestion->wanted[suggestion->wanted_count++] = wildcard;
}

static void make_wildcards(struct suggestion *suggestion, bool asked)
{
	size_t count = suggestion->wanted_count;

	for (size_t i = 0; i < count; i++) {
		const struct wanted *one = &suggestion->wanted[i];
		struct name domain = domain_of(&one->entry);
		if (domain.length > 0 && !one->gone && is_asked_only(&one->entry) == asked)
			make_wildcard(suggestion, i, &domain);
	}
	sort_wanted(suggestion);
}

/*
 * What was asked only goes first where a port covers it, and covers others only when that is done:
 * an entry that goes must not have been the reason why another went.
 */
static void fold(struct suggestion *suggestion)
{
	drop_covered(suggestion, false, false);
	if (suggestion->wildcards)
		make_wildcards(suggestion, false);
	drop_covered(suggestion, true, false);
	drop_covered(suggestion, true, true);
	if (suggestion->wildcards)
		make_wildcards(suggestion, true);
	drop_covered(suggestion, false, true);
}

static const char *times(uint64_t count, char text[32])
{
	snprintf(text, 32, count == 1 ? "once" : "%" PRIu64 " times", count);
	return text;
}

static void print_list(const struct suggestion *suggestion, FILE *out)
{
	char text[ENTRY_TEXT_SIZE], number[32];

	fputs("policies:\n  default:\n    default: deny\n    allow_hosts:", out);
	if (suggestion->wanted_count == 0)
		fputs(" []", out);
	fputc('\n', out);
	for (size_t i = 0; i < suggestion->wanted_count; i++) {
		const struct wanted *wanted = &suggestion->wanted[i];
		fprintf(out, "      - \"%s\"  # %s%s\n", entry_format(&wanted->entry, text),
			times(wanted->count, number),
			wanted->entry.port == 0 ? ", never connected to" : "");
	}
}

/* The host of an event, with its port. */
static const char *host_text(const struct suggestion_event *event, char text[ENTRY_TEXT_SIZE])
{
	struct match_entry entry = {.kind = MATCH_NAME, .port = port_of(event)};

	if (uses_address(event) && event->address.family == ADDRESS_NONE)
		return "?";
	if (uses_address(event)) {
		entry.kind = MATCH_PREFIX;
		entry.prefix.address = event->address;
		entry.prefix.length = (uint8_t)address_bits(&event->address);
	} else if (event->name.length == 0) {
		return ".";
	} else {
		entry.name = event->name;
	}
	return entry_format(&entry, text);
}

/* Events of one host, port and reason stand side by side. */
static void print_rest(const struct suggestion *suggestion, FILE *out)
{
	char text[ENTRY_TEXT_SIZE], next[ENTRY_TEXT_SIZE], number[32];
	bool first = true;

	for (size_t i = 0; i < suggestion->count;) {
		const struct seen *seen = &suggestion->seen[i];
		const char *host = host_text(&seen->event, text);
		uint64_t count = 0;
		for (; i < suggestion->count; i++) {
			const struct seen *other = &suggestion->seen[i];
			if (strcmp(other->why, seen->why) != 0 ||
			    strcmp(host, host_text(&other->event, next)) != 0)
				break;
			count += other->event.count;
		}
		if (seen->why[0] == '\0')
			continue;
		if (first)
			fputs("# Not in the list:\n", out);
		first = false;
		fprintf(out, "#   %s: %s, %s\n", host, seen->why, times(count, number));
	}
}

int suggestion_print(struct suggestion *suggestion, FILE *out)
{
	int error;

	merge_events(suggestion);
	for (size_t i = 0; i < suggestion->count; i++)
		make_entry(&suggestion->seen[i]);
	error = judge_all(suggestion);
	if (error == 0)
		error = make_wanted(suggestion);
	if (error < 0)
		return error;
	fold(suggestion);
	print_list(suggestion, out);
	print_rest(suggestion, out);
	return 0;
}
