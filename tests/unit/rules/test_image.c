/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The policy image: round trip, look-ups against a linear oracle, hostile bytes, failing
 * allocations; and who a packet belongs to.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/image.h"
#include "world.h"

static const char full_policy[] =
	"default=deny allow=example.com:443 allow=*.example.net allow=10.0.0.0/8 "
	"allow=[fd00::1]:80 "
	"origin=https://github.com block=ads.example.com block=93.184.216.0/24 "
	"raw=git.example.com:22 "
	"proxy=proxy.example.com:3128 answers=home.example.com cidr=172.20.0.0/16 "
	"host=db.example.com=10.1.2.3 host=db6.example.com=fd00::5 search=corp.example.com "
	"forward=internal floor=10.9.9.9 floor=vault.example.com listen=127.0.0.1:53 "
	"own=127.0.0.1:9153";

static void test_round_trip(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	policy_index index = 9;
	struct address out[4];

	(void)state;
	world_init(world, full_policy);
	assert_int_equal(policy_image_generation(world->image), 7);
	assert_int_equal(policy_find(world->image, "default", &index), 0);
	assert_int_equal(index, POLICY_DEFAULT);
	index = 9;
	assert_int_equal(policy_find(world->image, "nobody", &index), -ENOENT);
	assert_int_equal(index, 9);
	assert_string_equal(policy_source_name(world->image, SOURCE_BUILTIN), "built-in");
	assert_string_equal(policy_source_name(world->image, SOURCE_FLOOR), "floor.txt");
	assert_string_equal(policy_source_name(world->image, SOURCE_CONFIG), "test.yaml");
	assert_string_equal(policy_source_name(world->image, SOURCE_CONFIG + 1), "?");
	assert_string_equal(policy_source_name(world->image, UINT32_MAX), "?");
	struct name name = world_name("db.example.com");
	assert_int_equal(policy_static_addresses(world->image, &name, out, 4), 1);
	struct address want = world_address("10.1.2.3");
	assert_true(address_equal(&out[0], &want));
	assert_int_equal(policy_static_addresses(world->image, &name, out, 0), 0);
	name = world_name("x.db.example.com");
	assert_int_equal(policy_static_addresses(world->image, &name, out, 4), 0);
	assert_true(policy_strips_ech(world->image, POLICY_DEFAULT));
	assert_true(policy_strips_ech(world->image, 77));
	world_free(world);
	free(world);
}

/* The rule that decided is named with its place. */
static void test_places(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct name name = world_name("ads.example.com");
	struct question question = {.name = &name, .type = 1};

	(void)state;
	world_init(world, full_policy);
	struct verdict v = policy_resolve(world->image, &world->subject, &question);
	assert_int_equal(v.reason, REASON_BLOCKED_HOST);
	assert_int_equal(v.rule.source, SOURCE_CONFIG);
	assert_int_equal(v.rule.line, 7);
	name = world_name("metadata.goog");
	v = policy_resolve(world->image, &world->subject, &question);
	assert_int_equal(v.reason, REASON_METADATA);
	assert_int_equal(v.rule.source, SOURCE_FLOOR);
	assert_true(v.rule.line > 0);
	name = world_name("www.example.org");
	v = policy_resolve(world->image, &world->subject, &question);
	assert_int_equal(v.reason, REASON_NOT_ALLOWLISTED);
	assert_int_equal(v.rule.line, 1);
	name = world_name("www.example.com");
	v = policy_resolve(world->image, &world->subject, &question);
	assert_int_equal(v.outcome, OUTCOME_ALLOW);
	assert_int_equal(v.rule.line, 2);
	world_free(world);
	free(world);
}

static void test_unknown_policy(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct name name = world_name("www.example.com");

	(void)state;
	world_init(world, "mode=audit");
	world->subject.policy = 1;
	struct question question = {.name = &name, .type = 1};
	struct verdict v = policy_resolve(world->image, &world->subject, &question);
	assert_true(verdict_refuses(&v));
	assert_int_equal(v.reason, REASON_POLICY_ERROR);
	struct answer answer = {.name = &name};
	v = policy_answer(world->image, &world->subject, &answer);
	assert_true(verdict_refuses(&v));
	struct connection connection = {
		.destination = world_address("1.2.3.4"), .port = 80, .protocol = IPPROTO_TCP};
	v = policy_connect(world->image, &world->subject, &connection, 0);
	assert_true(verdict_refuses(&v));
	struct request request = {.connection = connection, .scheme = ""};
	v = policy_request(world->image, &world->subject, &request, 0);
	assert_true(verdict_refuses(&v));
	assert_true(policy_reads_first_bytes(world->image, &world->subject, &connection, 0));
	world_free(world);
	free(world);
}

/* ---- lists against the obvious way ---- */

static struct name random_name(void)
{
	static const char *const labels[] = {"a", "b", "c", "ab", "example", "com", "net"};
	char text[128] = "";

	for (int i = (int)(random() % 5) + 1; i > 0; i--) {
		strcat(text, labels[random() % 7]);
		if (i > 1)
			strcat(text, ".");
	}
	return world_name(text);
}

static struct match_entry random_entry(void)
{
	struct match_entry entry = {.kind = (enum match_kind)(random() % 4),
				    .port = (uint16_t)(random() % 3 ? 0 : random() % 3 + 1)};

	if (entry.kind != MATCH_PREFIX) {
		entry.name = random_name();
		return entry;
	}
	bool v4 = random() % 2;
	entry.prefix.address.family = v4 ? ADDRESS_IPV4 : ADDRESS_IPV6;
	entry.prefix.length = (uint8_t)((size_t)random() % (v4 ? 33 : 129));
	for (unsigned bit = 0; bit < entry.prefix.length; bit++)
		if (bit % 8 < 2 && random() % 2)
			entry.prefix.address.bytes[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
	return entry;
}

static bool entry_port_counts(const struct match_entry *entry, const struct list_query *query)
{
	return entry->port == 0 || query->port_rule == PORT_ANY ||
	       (query->port_rule == PORT_THIS && entry->port == query->port);
}

static bool oracle_name(const struct match_list *list, const struct name *name,
			const struct list_query *query)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct match_entry *e = &list->entries[i];
		bool whole = e->kind != MATCH_PREFIX && name_equal(name, &e->name);
		bool within = e->kind != MATCH_PREFIX && name_is_within(name, &e->name);
		if (entry_port_counts(e, query) &&
		    ((e->kind == MATCH_NAME && within) || (e->kind == MATCH_EXACT && whole) ||
		     (e->kind == MATCH_SUBDOMAINS && within && !whole)))
			return true;
	}
	return false;
}

static bool oracle_address(const struct match_list *list, const struct address *address,
			   const struct list_query *query)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->entries[i].kind == MATCH_PREFIX &&
		    prefix_contains(&list->entries[i].prefix, address) &&
		    entry_port_counts(&list->entries[i], query))
			return true;
	return false;
}

static void check_list(const struct policy_image *image, const struct match_list *source)
{
	const struct image_list *list = &image_policy(image, 0)->lists[LIST_BLOCK_HOSTS];

	for (int i = 0; i < 300; i++) {
		struct list_query query = {.port_rule = (enum port_rule)(random() % 3),
					   .port = (uint16_t)(random() % 4 + 1)};
		struct name name = random_name();
		struct name_walk walk;
		names_walk(&name, &walk);
		assert_int_equal(list_find_name(image, list, &walk, &query) != NULL,
				 oracle_name(source, &name, &query));
		struct address address = random_entry().prefix.address;
		if (address.family == ADDRESS_NONE)
			continue;
		address.bytes[random() % 4] |= (uint8_t)(0x80u >> random() % 8);
		assert_int_equal(list_find_address(image, list, &address, &query) != NULL,
				 oracle_address(source, &address, &query));
	}
}

static void test_lists(void **state)
{
	static struct match_entry entries[200];
	struct policy_source policy;
	const struct policy_image *image;
	void *bytes;
	size_t size;

	(void)state;
	srandom(5);
	for (int round = 0; round < 100; round++) {
		policy_source_init(&policy, "default");
		policy.block_hosts.entries = entries;
		policy.block_hosts.count = (size_t)random() % 200;
		for (size_t i = 0; i < policy.block_hosts.count; i++)
			entries[i] = random_entry();
		struct config_source source = {.policies = &policy, .policy_count = 1};
		assert_int_equal(policy_image_build(&source, &bytes, &size), 0);
		assert_int_equal(policy_image_open(bytes, size, &image), 0);
		check_list(image, &policy.block_hosts);
		free(bytes);
	}
}

/* A hundred thousand names: what an entry costs over its name. */
static void test_large_list(void **state)
{
	enum { COUNT = 100000 };
	struct match_entry *entries = calloc(COUNT, sizeof(*entries));
	struct policy_source policy;
	const struct policy_image *image;
	size_t size, empty, names = 0;
	void *bytes;

	(void)state;
	policy_source_init(&policy, "default");
	struct config_source source = {.policies = &policy, .policy_count = 1};
	assert_int_equal(policy_image_build(&source, &bytes, &empty), 0);
	free(bytes);
	for (size_t i = 0; i < COUNT; i++) {
		char text[64];
		snprintf(text, sizeof(text), "host-%zu.list.example", i);
		entries[i] = (struct match_entry){.kind = MATCH_NAME, .name = world_name(text)};
		names += strlen(text);
	}
	policy.block_hosts = (struct match_list){entries, COUNT};
	assert_int_equal(policy_image_build(&source, &bytes, &size), 0);
	assert_int_equal(policy_image_open(bytes, size, &image), 0);
	assert_true(size - empty - names <= (size_t)COUNT * 64);
	for (size_t i = 0; i < COUNT; i += 97) {
		struct subject subject = {0};
		struct question question = {.name = &entries[i].name, .type = 1};
		struct verdict v = policy_resolve(image, &subject, &question);
		assert_int_equal(v.reason, REASON_BLOCKED_HOST);
	}
	free(bytes);
	free(entries);
}

/* ---- hostile bytes ---- */

/* Everything that reads the image, so that a sanitizer sees every access. */
static void exercise(const struct policy_image *image)
{
	struct name names[] = {world_name("www.example.com"), world_name("db.example.com"),
			       world_name("vault.example.com"), world_name("x.internal"),
			       world_name("localhost")};
	struct pin pin = {.name = names[0], .address = world_address("10.1.2.3"), .expiry = 10};
	struct address out[8];
	struct client_match match;

	for (uint32_t policy = 0; policy < 3; policy++) {
		struct subject subject = {.policy = policy};
		for (size_t n = 0; n < 5; n++) {
			struct question question = {.name = &names[n], .type = 1};
			(void)policy_resolve(image, &subject, &question);
			struct answer answer = {.name = &names[n],
						.addresses = &pin.address,
						.address_count = 1,
						.targets = names,
						.target_count = 5};
			(void)policy_answer(image, &subject, &answer);
			struct request request = {.connection = {.destination = pin.address,
								 .port = 443,
								 .protocol = IPPROTO_TCP,
								 .pins = &pin,
								 .pin_count = 1},
						  .host = {.kind = HOST_NAME, .name = names[n]},
						  .scheme = ""};
			(void)policy_request(image, &subject, &request, 1);
			(void)policy_static_addresses(image, &names[n], out, 8);
		}
		(void)policy_strips_ech(image, policy);
	}
	struct client_origin origin = {.source = pin.address, .interface = "tap0"};
	policy_client(image, &origin, &match);
	assert_true(strlen(match.name) <= CLIENT_NAME_MAX);
	origin = (struct client_origin){.own = true, .uid_known = true, .uid = 1001, .cgroup = 7};
	policy_client(image, &origin, &match);
	(void)policy_client_by_name(image, "vm1", &match);
	for (uint32_t s = 0; s < 12; s++)
		assert_true(strlen(policy_source_name(image, s)) < 100000);
}

static void add_clients(struct world *world, struct client_source clients[3],
			struct client_selector selectors[5])
{
	selectors[0] = (struct client_selector){.kind = SELECT_UID, .uid = 1001};
	selectors[1] = (struct client_selector){.kind = SELECT_INTERFACE, .interface = "tap0"};
	selectors[2] = (struct client_selector){.kind = SELECT_PREFIX};
	assert_int_equal(prefix_parse("10.0.0.0/8", 10, &selectors[2].prefix), 0);
	selectors[3] = (struct client_selector){.kind = SELECT_CGROUP, .cgroup = 7};
	selectors[4] = (struct client_selector){.kind = SELECT_PREFIX};
	assert_int_equal(prefix_parse("10.1.0.0/16", 11, &selectors[4].prefix), 0);
	clients[0] = (struct client_source){
		.name = "runner", .selectors = selectors, .selector_count = 1};
	clients[1] = (struct client_source){
		.name = "vm1", .selectors = selectors + 1, .selector_count = 2};
	clients[2] = (struct client_source){
		.name = "job", .selectors = selectors + 3, .selector_count = 2};
	world->source.clients = clients;
	world->source.client_count = 3;
	world_free(world);
	assert_int_equal(policy_image_build(&world->source, &world->bytes, &world->size), 0);
	assert_int_equal(policy_image_open(world->bytes, world->size, &world->image), 0);
}

static void test_corruption(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct client_source clients[3];
	struct client_selector selectors[5];
	const struct policy_image *image;
	unsigned opened = 0, refused = 0;

	(void)state;
	world_init(world, full_policy);
	add_clients(world, clients, selectors);
	exercise(world->image);
	uint8_t *copy = aligned_alloc(16, (world->size + 15) & ~(size_t)15);
	srandom(6);
	for (int round = 0; round < 20000; round++) {
		memcpy(copy, world->bytes, world->size);
		for (int i = (int)(random() % 3); i >= 0; i--) {
			/* headers and tables more often than texts */
			size_t range = random() % 2 ? world->size : sizeof(struct policy_image);
			size_t at = (size_t)random() % range;
			copy[at] = (uint8_t)(random() % 4 ? random() : 0xff * (random() % 2));
		}
		image = NULL;
		if (policy_image_open(copy, world->size, &image) < 0) {
			assert_null(image);
			refused++;
			continue;
		}
		opened++;
		exercise(image);
	}
	/* both happen, or the test tests nothing */
	assert_true(opened > 100);
	assert_true(refused > 100);
	free(copy);
	world_free(world);
	free(world);
}

static void test_truncation(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	const struct policy_image *image;

	(void)state;
	world_init(world, full_policy);
	for (size_t size = 0; size < world->size; size += size < 1000 ? 1 : 37) {
		/* at the end of a block of exactly this size, for the sanitizer */
		uint8_t *copy = aligned_alloc(16, size + 16 - size % 16);
		memcpy(copy, world->bytes, size);
		assert_int_equal(policy_image_open(copy, size, &image), -EPROTO);
		free(copy);
	}
	uint8_t *copy = aligned_alloc(16, (world->size + 31) & ~(size_t)15);
	memcpy(copy + 8, world->bytes, world->size);
	assert_int_equal(policy_image_open(copy + 8, world->size, &image), -EPROTO);
	free(copy);
	world_free(world);
	free(world);
}

static void test_build_refuses(void **state)
{
	struct policy_source policy;
	struct client_source client = {.name = "x", .policy = 1};
	struct match_entry wide = world_entry("0.0.0.0/0");
	struct match_entry bad = world_entry("example.com");
	struct name root = {0};
	void *bytes = NULL;
	size_t size = 0;

	(void)state;
	policy_source_init(&policy, "default");
	struct config_source source = {.policies = &policy, .policy_count = 0};
	assert_int_equal(policy_image_build(&source, &bytes, &size), -EINVAL);
	source.policy_count = 1;
	source.clients = &client;
	source.client_count = 1;
	assert_int_equal(policy_image_build(&source, &bytes, &size), -EINVAL);
	source.client_count = 0;
	wide.port = 53;
	source.listen = (struct match_list){&wide, 1};
	assert_int_equal(policy_image_build(&source, &bytes, &size), -EINVAL);
	source.listen = (struct match_list){NULL, 0};
	source.search = &root;
	source.search_count = 1;
	assert_int_equal(policy_image_build(&source, &bytes, &size), -EINVAL);
	source.search_count = 0;
	bad.kind = (enum match_kind)9;
	policy.allow_hosts = (struct match_list){&bad, 1};
	assert_int_equal(policy_image_build(&source, &bytes, &size), -EINVAL);
	assert_null(bytes);
	assert_int_equal(size, 0);
}

/* Allocations until one fails; -Wl,--wrap sends the builder's here. */
static long allocations_left = -1;
void *__wrap_realloc(void *old, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_calloc(size_t count, size_t size);

static bool allocation_fails(void)
{
	if (allocations_left < 0)
		return false;
	return allocations_left-- == 0;
}

void *__wrap_realloc(void *old, size_t size)
{
	return allocation_fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __real_calloc(count, size);
}

static void test_failing_allocations(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	void *bytes = NULL;
	size_t size = 0;
	long failed = 0;

	(void)state;
	world_init(world, full_policy);
	for (;; failed++) {
		allocations_left = failed;
		int error = policy_image_build(&world->source, &bytes, &size);
		bool done = allocations_left >= 0;
		allocations_left = -1;
		if (done) {
			assert_int_equal(error, 0);
			break;
		}
		assert_int_equal(error, -ENOMEM);
		assert_null(bytes);
	}
	assert_true(failed >= 3);
	assert_int_equal(size, world->size);
	assert_memory_equal(bytes, world->bytes, size);
	free(bytes);
	world_free(world);
	free(world);
}

/* ---- clients ---- */

static const char *name_of(const struct policy_image *image, struct client_origin origin,
			   struct client_match *match)
{
	policy_client(image, &origin, match);
	return match->name;
}

static void test_clients(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct client_source clients[3];
	struct client_selector selectors[5];
	struct client_match m, n;
	struct address inside = world_address("10.2.0.1"), deeper = world_address("10.1.0.1"),
		       other = world_address("192.168.7.7"), lo = world_address("127.0.0.1"),
		       mapped = world_address("::ffff:10.1.0.1");

	(void)state;
	world_init(world, "");
	add_clients(world, clients, selectors);
	const struct policy_image *image = world->image;
#define ORIGIN(...) ((struct client_origin){__VA_ARGS__})
	assert_string_equal(name_of(image, ORIGIN(.source = inside), &m), "vm1");
	assert_string_equal(name_of(image, ORIGIN(.source = deeper), &m), "job");
	assert_string_equal(name_of(image, ORIGIN(.source = mapped), &n), "job");
	assert_true(client_key_equal(&m.key, &n.key));
	/* the interface before the address: a client cannot choose it */
	assert_string_equal(name_of(image, ORIGIN(.source = deeper, .interface = "tap0"), &m),
			    "vm1");
	assert_string_equal(name_of(image, ORIGIN(.source = other, .interface = "tap1"), &m), "");
	struct client_key key = client_key_of_address(&other);
	assert_true(client_key_equal(&m.key, &key));
	assert_true(m.governed);
	/* this host's own traffic: with a client by cgroup, one without a known cgroup is nobody's */
	assert_string_equal(name_of(image, ORIGIN(.source = lo, .own = true, .cgroup = 1), &m),
			    "host");
	assert_true(m.governed && !m.unknown);
	(void)name_of(image, ORIGIN(.source = lo, .own = true, .uid_known = true), &m);
	assert_true(m.governed && m.unknown);
	assert_string_equal(name_of(image,
				    ORIGIN(.source = lo, .own = true, .uid_known = true,
					   .uid = 1001, .cgroup = 1),
				    &m),
			    "runner");
	assert_false(m.unknown);
	assert_string_equal(name_of(image,
				    ORIGIN(.source = lo, .own = true, .uid_known = true,
					   .uid = 1001, .cgroup = 7),
				    &m),
			    "job");
	/* an own address is not taken by a range */
	assert_string_equal(name_of(image, ORIGIN(.source = deeper, .own = true, .cgroup = 1), &m),
			    "host");
	/* a uid of somebody else's packet says nothing */
	assert_string_equal(
		name_of(image, ORIGIN(.source = other, .uid_known = true, .uid = 1001), &m), "");
	assert_string_equal(
		name_of(image,
			ORIGIN(.source = lo, .own = true, .uid_known = true, .uid = 0, .cgroup = 1),
			&m),
		"host");
	assert_false(m.governed);
	assert_true(m.root);
	assert_int_equal(policy_client_by_name(image, "runner", &m), 0);
	assert_false(m.root);
	assert_int_equal(policy_client_by_name(image, "host", &m), 0);
	assert_int_equal(policy_client_by_name(image, "nobody", &m), -ENOENT);
	world_free(world);
	free(world);
}

static void test_root(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	struct client_selector selectors[2] = {{.kind = SELECT_UID, .uid = 0},
					       {.kind = SELECT_PREFIX}};
	struct client_source client = {.name = "root", .selectors = selectors, .selector_count = 1};
	struct client_origin origin = {
		.source = world_address("127.0.0.2"), .own = true, .uid_known = true, .uid = 0};
	struct client_match m;

	(void)state;
	world_init(world, "");
	world->source.clients = &client;
	world->source.client_count = 1;
	world_free(world);
	assert_int_equal(policy_image_build(&world->source, &world->bytes, &world->size), 0);
	assert_int_equal(policy_image_open(world->bytes, world->size, &world->image), 0);
	policy_client(world->image, &origin, &m);
	assert_string_equal(m.name, "root");
	assert_true(m.root && m.governed);
	assert_int_equal(policy_client_by_name(world->image, "root", &m), 0);
	assert_true(m.root);

	/* an exact own address may be registered; then the name alone is not uid 0 */
	client.selector_count = 2;
	assert_int_equal(prefix_parse("127.0.0.2", 9, &selectors[1].prefix), 0);
	world->source.govern_all = true;
	world_free(world);
	assert_int_equal(policy_image_build(&world->source, &world->bytes, &world->size), 0);
	assert_int_equal(policy_image_open(world->bytes, world->size, &world->image), 0);
	origin.uid_known = false;
	policy_client(world->image, &origin, &m);
	assert_string_equal(m.name, "root");
	assert_false(m.root);
	assert_int_equal(policy_client_by_name(world->image, "root", &m), 0);
	assert_false(m.root);
	origin = (struct client_origin){
		.source = world_address("127.0.0.1"), .own = true, .uid_known = true, .uid = 5};
	policy_client(world->image, &origin, &m);
	assert_string_equal(m.name, "host");
	assert_true(m.governed);
	world_free(world);
	free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_unknown_policy),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_large_list),
		cmocka_unit_test(test_corruption),
		cmocka_unit_test(test_truncation),
		cmocka_unit_test(test_build_refuses),
		cmocka_unit_test(test_failing_allocations),
		cmocka_unit_test(test_clients),
		cmocka_unit_test(test_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
