/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "world.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *what, const char *word)
{
	fprintf(stderr, "%s: %s\n", what, word);
	abort();
}

struct address world_address(const char *text)
{
	struct address address;

	if (address_parse(text, strlen(text), &address) < 0)
		fail("no address", text);
	return address;
}

static struct address embed(const char *head, size_t at, const struct address *inner)
{
	struct address outer = world_address(head);

	memcpy(outer.bytes + at, inner->bytes, 4);
	return outer;
}

size_t world_forms(const struct address *a, struct address out[WORLD_FORMS_MAX])
{
	size_t count = 0;

	out[count++] = *a;
	if (a->family != ADDRESS_IPV4)
		return count;
	out[count++] = embed("::ffff:0:0", 12, a);
	out[count++] = embed("::", 12, a);
	out[count++] = embed("::ffff:0:0:0", 12, a);
	out[count++] = embed("64:ff9b::", 12, a);
	out[count++] = embed("64:ff9b:1::", 12, a);
	out[count++] = embed("64:ff9b:1:2:3:4:0:0", 12, a);
	out[count++] = embed("2002::1", 2, a);
	out[count++] = embed("2002::", 2, a);
	out[count++] = embed("fe80::5efe:0:0", 12, a);
	out[count++] = embed("2001:470:1:2:0:5efe:0:0", 12, a);
	out[count++] = embed("2001:470:1:2:200:5efe:0:0", 12, a);
	out[count++] = embed("2001:0:0:0:8000:63bf:f7f7:f7f7", 4, a);
	out[count] = embed("2001:0:4136:e378:8000:63bf::", 12, a);
	for (size_t i = 12; i < 16; i++)
		out[count].bytes[i] ^= 0xff;
	count++;
	/* RFC 6052 section 2.2, /48 and /64 */
	out[count] = embed("64:ff9b:1::", 6, a);
	memmove(out[count].bytes + 9, out[count].bytes + 8, 2);
	out[count++].bytes[8] = 0;
	out[count++] = embed("64:ff9b:1:7::", 9, a);
	return count;
}

struct name world_name(const char *text)
{
	struct name name;

	if (name_from_text(text, strlen(text), &name) != NAME_OK)
		fail("no name", text);
	return name;
}

/* Takes ":PORT" off the end of TEXT. */
static uint16_t take_port(char *text)
{
	char *colon = strrchr(text, ':');

	if (colon == NULL || (text[0] == '[' && colon < strchr(text, ']')) ||
	    (text[0] != '[' && strchr(text, ':') != colon))
		return 0;
	*colon = '\0';
	return (uint16_t)atoi(colon + 1);
}

struct match_entry world_entry(const char *text)
{
	struct match_entry entry = {.kind = MATCH_NAME};
	char buffer[300];
	char *rest = buffer;

	snprintf(buffer, sizeof(buffer), "%s", text);
	if (strncmp(rest, "http://", 7) == 0 || strncmp(rest, "https://", 8) == 0) {
		entry.scheme = rest[4] == 's' ? SCHEME_HTTPS : SCHEME_HTTP;
		entry.kind = MATCH_EXACT;
		rest = strstr(rest, "//") + 2;
	}
	entry.port = take_port(rest);
	if (entry.scheme != SCHEME_ANY && entry.port == 0)
		entry.port = entry.scheme == SCHEME_HTTPS ? 443 : 80;
	if (rest[0] == '[') {
		rest++;
		rest[strcspn(rest, "]")] = '\0';
	}
	if (prefix_parse(rest, strlen(rest), &entry.prefix) == 0) {
		entry.kind = MATCH_PREFIX;
		return entry;
	}
	if (rest[0] == '=') {
		entry.kind = MATCH_EXACT;
		rest++;
	} else if (rest[0] == '*' && rest[1] == '.') {
		entry.kind = MATCH_SUBDOMAINS;
		rest += 2;
	}
	entry.name = world_name(rest);
	return entry;
}

static void add_entry(struct match_list *list, struct match_entry *storage, const char *text,
		      uint32_t line)
{
	if (list->count == WORLD_ENTRIES)
		fail("too many entries", text);
	list->entries = storage;
	storage[list->count] = world_entry(text);
	storage[list->count++].place = (struct place){SOURCE_CONFIG, line};
}

static bool set_option(struct world *world, const char *key, const char *value, uint32_t line)
{
	struct policy_source *p = &world->policy;
	const struct {
		const char *key, *value;
		struct option_bool *option;
		bool set;
	} options[] = {
		{"default", "deny", &p->default_deny, true},
		{"mode", "audit", &p->audit, true},
		{"literals", "deny", &p->literals_deny, true},
		{"literals", "allow", &p->literals_deny, false},
		{"private", "no", &p->allow_private_network, false},
		{"private", "yes", &p->allow_private_network, true},
		{"loopback", "no", &p->allow_loopback, false},
		{"loopback", "yes", &p->allow_loopback, true},
		{"infrastructure", "allow", &p->infrastructure_allow, true},
		{"udp", "allow", &p->udp_allow, true},
		{"icmp", "allow", &p->icmp_allow, true},
		{"other", "allow", &p->other_allow, true},
		{"http2", "allow", &p->http2_allow, true},
		{"dns", "allow", &p->block_encrypted_dns, false},
		{"secrets", "no", &p->block_secret_bearing_urls, false},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strcmp(options[i].key, key) != 0 || strcmp(options[i].value, value) != 0)
			continue;
		*options[i].option = (struct option_bool){options[i].set, {SOURCE_CONFIG, line}};
		return true;
	}
	return false;
}

static bool set_list(struct world *world, const char *key, const char *value, uint32_t line)
{
	const struct {
		const char *key;
		struct match_list *list;
	} lists[] = {
		{"allow", &world->policy.allow_hosts},
		{"origin", &world->policy.allowed_origins},
		{"block", &world->policy.block_hosts},
		{"raw", &world->policy.allow_raw},
		{"proxy", &world->policy.proxies},
		{"answers", &world->policy.allow_private_answers},
		{"cidr", &world->policy.allow_private_cidrs},
		{"floor", &world->source.floor},
		{"listen", &world->source.listen},
		{"own", &world->source.own},
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (strcmp(lists[i].key, key) != 0)
			continue;
		add_entry(lists[i].list, world->entries[i], value, line);
		return true;
	}
	return false;
}

static bool set_other(struct world *world, const char *key, char *value, uint32_t line)
{
	struct config_source *s = &world->source;

	if (strcmp(key, "hook") == 0) {
		struct hook_source *hook = &world->policy.hook;
		strcpy(hook->path, "/run/hook.sock");
		hook->timeout_ms = 1000;
		hook->place = (struct place){SOURCE_CONFIG, line};
		for (int stage = 0; stage < STAGE_COUNT; stage++)
			if (strcmp(value, "all") == 0 ||
			    strcmp(value, stage_text((enum stage)stage)) == 0)
				hook->stages |= 1u << stage;
	} else if (strcmp(key, "search") == 0) {
		world->search[s->search_count++] = world_name(value);
	} else if (strcmp(key, "forward") == 0) {
		world->forward[s->forward_count++] = world_name(value);
	} else if (strcmp(key, "host") == 0) {
		char *mark = strchr(value, '=');
		*mark = '\0';
		world->host_addresses[s->host_count] = world_address(mark + 1);
		world->hosts[s->host_count] =
			(struct static_host){.name = world_name(value),
					     .addresses = &world->host_addresses[s->host_count],
					     .address_count = 1,
					     .place = {SOURCE_CONFIG, line}};
		s->host_count++;
	} else {
		return false;
	}
	return true;
}

void world_init(struct world *world, const char *words)
{
	static const char *const sources[] = {"test.yaml"};
	char buffer[2048], *save = NULL;
	uint32_t line = 0;

	memset(world, 0, sizeof(*world));
	policy_source_init(&world->policy, "default");
	world->source = (struct config_source){.generation = 7,
					       .source_names = sources,
					       .source_count = 1,
					       .policies = &world->policy,
					       .policy_count = 1,
					       .hosts = world->hosts,
					       .search = world->search,
					       .forward_zones = world->forward};
	snprintf(buffer, sizeof(buffer), "%s", words);
	for (char *word = strtok_r(buffer, " ", &save); word != NULL;
	     word = strtok_r(NULL, " ", &save)) {
		char *mark = strchr(word, '=');
		line++;
		if (strcmp(word, "root") == 0) {
			world->subject.root = true;
			continue;
		}
		if (strcmp(word, "quic") == 0) {
			world->source.quic_inspect = true;
			continue;
		}
		if (mark == NULL)
			fail("no word of a policy", word);
		*mark = '\0';
		if (!set_option(world, word, mark + 1, line) &&
		    !set_list(world, word, mark + 1, line) &&
		    !set_other(world, word, mark + 1, line))
			fail("no word of a policy", word);
	}
	if (policy_image_build(&world->source, &world->bytes, &world->size) < 0 ||
	    policy_image_open(world->bytes, world->size, &world->image) < 0)
		fail("no image", words);
}

void world_free(struct world *world)
{
	free(world->bytes);
}

/* A question being put together from words. */
struct question_words {
	struct pin pins[WORLD_ENTRIES];
	size_t pin_count;
	struct address addresses[WORLD_ENTRIES], hints[WORLD_ENTRIES];
	struct name targets[WORLD_ENTRIES];
	struct answer answer;
	struct request request;
	char target[1024];
};

#define NOW 1000000u

static void add_pin(struct question_words *q, const char *text, bool expired)
{
	struct pin *pin = &q->pins[q->pin_count++];
	char buffer[300];

	snprintf(buffer, sizeof(buffer), "%s", text);
	char *mark = strchr(buffer, '=');
	if (mark != NULL)
		*mark = '\0';
	pin->address = mark != NULL ? world_address(mark + 1) : q->request.connection.destination;
	pin->name = world_name(buffer);
	pin->expiry = expired ? NOW : NOW + 1;
}

static uint16_t type_of(const char *text)
{
	static const struct {
		const char *text;
		uint16_t type;
	} types[] = {{"A", 1},      {"NS", 2},   {"SOA", 6},     {"NULL", 10}, {"PTR", 12},
		     {"MX", 15},    {"TXT", 16}, {"SIG", 24},    {"KEY", 25},  {"AAAA", 28},
		     {"SRV", 33},   {"DS", 43},  {"DNSKEY", 48}, {"TLSA", 52}, {"HTTPS", 65},
		     {"AXFR", 252}, {"ANY", 255}};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].text, text) == 0)
			return types[i].type;
	if (strncmp(text, "TYPE", 4) != 0)
		fail("no type", text);
	return (uint16_t)atoi(text + 4);
}

static const char *result(struct verdict v)
{
	static char text[64];

	snprintf(text, sizeof(text), "%s%s%s",
		 v.outcome == OUTCOME_ALLOW ? "allow" : reason_text(v.reason),
		 v.enforced ? "" : "(audit)", v.asks_hook ? "?" : "");
	return text;
}

static const char *ask_resolve(struct world *world, char **save)
{
	const char *text = strtok_r(NULL, " ", save), *type = strtok_r(NULL, " ", save);
	struct name name;
	struct question question = {.name = &name};

	question.name_error = name_from_text(text, strlen(text), &name);
	question.type = type_of(type != NULL ? type : "A");
	return result(policy_resolve(world->image, &world->subject, &question));
}

static const char *ask_answer(struct world *world, struct question_words *q, char **save)
{
	struct name name = world_name(strtok_r(NULL, " ", save));
	const char *word;

	q->answer.name = &name;
	q->answer.addresses = q->addresses;
	q->answer.hints = q->hints;
	q->answer.targets = q->targets;
	while ((word = strtok_r(NULL, " ", save)) != NULL) {
		if (strncmp(word, "cname=", 6) == 0)
			q->targets[q->answer.target_count++] = world_name(word + 6);
		else if (strncmp(word, "hint=", 5) == 0)
			q->hints[q->answer.hint_count++] = world_address(word + 5);
		else if (strcmp(word, "static") == 0)
			q->answer.from_static = true;
		else if (strcmp(word, "malformed") == 0)
			q->answer.malformed = true;
		else
			q->addresses[q->answer.address_count++] = world_address(word);
	}
	return result(policy_answer(world->image, &world->subject, &q->answer));
}

/* pinned= and expired= of a flow. */
static bool flow_word(struct question_words *q, const char *word)
{
	if (strncmp(word, "pinned=", 7) == 0)
		add_pin(q, word + 7, false);
	else if (strncmp(word, "expired=", 8) == 0)
		add_pin(q, word + 8, true);
	else
		return false;
	q->request.connection.pins = q->pins;
	q->request.connection.pin_count = q->pin_count;
	return true;
}

static const char *ask_connect(struct world *world, struct question_words *q, char **save)
{
	struct connection *c = &q->request.connection;
	const char *word;

	c->destination = world_address(strtok_r(NULL, " ", save));
	char *port = strtok_r(NULL, " ", save);
	char *slash = strchr(port, '/');
	c->port = (uint16_t)atoi(port);
	c->protocol = IPPROTO_TCP;
	if (slash != NULL && strcmp(slash, "/tcp") != 0)
		c->protocol = strcmp(slash, "/udp") == 0    ? IPPROTO_UDP
			      : strcmp(slash, "/icmp") == 0 ? IPPROTO_ICMP
							    : (uint8_t)atoi(slash + 1);
	while ((word = strtok_r(NULL, " ", save)) != NULL)
		if (!flow_word(q, word))
			fail("no word of connect", word);
	return result(policy_connect(world->image, &world->subject, c, NOW));
}

static void read_host(const char *text, struct host *out)
{
	char buffer[400];

	snprintf(buffer, sizeof(buffer), "%s", text);
	uint16_t port = take_port(buffer);
	host_parse(buffer, strlen(buffer), out);
	out->port = port;
}

/* "http://host[:port][/target]" as the gate would see it. */
static void read_url(struct question_words *q, const char *url)
{
	struct request *r = &q->request;
	bool secure = strncmp(url, "https", 5) == 0 || strncmp(url, "wss", 3) == 0;
	const char *host = strstr(url, "//") + 2;
	char buffer[400];

	snprintf(buffer, sizeof(buffer), "%.*s", (int)strcspn(host, "/?#"), host);
	read_host(buffer, &r->host);
	r->kind = secure ? REQUEST_TLS : REQUEST_HTTP1;
	r->form = TARGET_ORIGIN;
	r->scheme = "";
	r->connection.protocol = IPPROTO_TCP;
	r->connection.port = r->host.port != 0 ? r->host.port : secure ? 443 : 80;
	if (r->host.kind == HOST_LITERAL)
		r->connection.destination = r->host.literal;
	if (secure)
		r->host.port = 0;
}

static bool request_word(struct question_words *q, char *word)
{
	struct request *r = &q->request;

	if (strncmp(word, "to=", 3) == 0) {
		char *at = strchr(word, '@');
		if (at != NULL) {
			*at = '\0';
			r->connection.port = (uint16_t)atoi(at + 1);
		}
		r->connection.destination = world_address(word + 3);
	} else if (strcmp(word, "udp") == 0) {
		r->connection.protocol = IPPROTO_UDP;
	} else if (strcmp(word, "secret") == 0) {
		r->secret = true;
	} else if (strcmp(word, "malformed") == 0) {
		r->malformed = true;
	} else if (strcmp(word, "other") == 0) {
		r->kind = REQUEST_OTHER;
	} else if (strcmp(word, "http2") == 0) {
		r->kind = REQUEST_HTTP2;
	} else if (strcmp(word, "nohost") == 0) {
		r->host = (struct host){.kind = HOST_NONE};
	} else if (strncmp(word, "host=", 5) == 0) {
		read_host(word + 5, &r->host);
	} else if (strncmp(word, "connect=", 8) == 0) {
		r->form = TARGET_AUTHORITY;
		read_host(word + 8, &r->target_host);
	} else if (strncmp(word, "absolute=", 9) == 0) {
		char *mark = strstr(word, "://");
		snprintf(q->target, sizeof(q->target), "%.*s", (int)(mark - word - 9), word + 9);
		r->form = TARGET_ABSOLUTE;
		r->scheme = q->target;
		read_host(mark + 3, &r->target_host);
	} else {
		return false;
	}
	return true;
}

static const char *ask_request(struct world *world, struct question_words *q, char **save)
{
	char *word;

	read_url(q, strtok_r(NULL, " ", save));
	while ((word = strtok_r(NULL, " ", save)) != NULL)
		if (!request_word(q, word) && !flow_word(q, word))
			fail("no word of request", word);
	return result(policy_request(world->image, &world->subject, &q->request, NOW));
}

const char *world_ask(struct world *world, const char *words)
{
	struct question_words *q = calloc(1, sizeof(*q));
	char buffer[2048], *save = NULL;
	const char *answer = "?";

	snprintf(buffer, sizeof(buffer), "%s", words);
	const char *stage = strtok_r(buffer, " ", &save);
	if (strcmp(stage, "resolve") == 0)
		answer = ask_resolve(world, &save);
	else if (strcmp(stage, "answer") == 0)
		answer = ask_answer(world, q, &save);
	else if (strcmp(stage, "connect") == 0)
		answer = ask_connect(world, q, &save);
	else if (strcmp(stage, "request") == 0)
		answer = ask_request(world, q, &save);
	else
		fail("no stage", stage);
	free(q);
	return answer;
}
