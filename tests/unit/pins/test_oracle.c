/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The pin table against an obvious one: an array, searched from end to end, under the same random
 * calls. Expiries are all in seconds of their own, so that there is one answer to who goes first.
 */

#include "pins_world.h"

#include <errno.h>

#define MODEL_MAX 256

struct model {
	uint32_t capacity, per_client;
	size_t count;
	struct pin pins[MODEL_MAX];
	uint64_t now;
	uint64_t seed;
};

static uint32_t cells_of(const struct pin *pin)
{
	return pin->name.length <= 72 ? 1 : pin->name.length <= 184 ? 2 : 3;
}

static bool same(const struct pin *a, const struct pin *b)
{
	return client_key_equal(&a->client, &b->client) &&
	       address_equal(&a->address, &b->address) && name_equal(&a->name, &b->name);
}

static uint32_t model_cells(const struct model *model, const struct client_key *client)
{
	uint32_t cells = 0;

	for (size_t i = 0; i < model->count; i++)
		if (client == NULL || client_key_equal(&model->pins[i].client, client))
			cells += cells_of(&model->pins[i]);
	return cells;
}

/* Removes the nearest expiry, of one client or of one (client, address). */
static void model_evict(struct model *model, const struct client_key *client,
			const struct address *address)
{
	size_t first = MODEL_MAX;

	for (size_t i = 0; i < model->count; i++) {
		const struct pin *pin = &model->pins[i];
		if (!client_key_equal(&pin->client, client) ||
		    (address != NULL && !address_equal(&pin->address, address)))
			continue;
		if (first == MODEL_MAX || pin->expiry < model->pins[first].expiry)
			first = i;
	}
	assert_true(first < model->count);
	model->pins[first] = model->pins[--model->count];
}

static bool is_there(const struct world *world, const struct pin *pin)
{
	struct pin found[PINS_PER_ADDRESS_MAX];
	size_t count =
		pins_find(world->table, &pin->client, &pin->address, found, PINS_PER_ADDRESS_MAX);

	for (size_t i = 0; i < count; i++)
		if (same(&found[i], pin))
			return true;
	return false;
}

static size_t nearest(const struct model *model, const struct client_key *client)
{
	size_t first = MODEL_MAX;

	for (size_t i = 0; i < model->count; i++)
		if ((client == NULL || client_key_equal(&model->pins[i].client, client)) &&
		    (first == MODEL_MAX || model->pins[i].expiry < model->pins[first].expiry))
			first = i;
	return first;
}

static int size_of(uint32_t cells)
{
	int size = -1;

	for (; cells > 0; cells /= 2)
		size++;
	return size;
}

/*
 * May a full table give VICTIM for one of CLIENT? What has expired goes first, then a pin of CLIENT, or of one with
 * the most when that is a higher power of two.
 */
static bool may_go(const struct model *model, const struct client_key *client, size_t victim)
{
	const struct client_key *owner = &model->pins[victim].client;
	size_t first = nearest(model, NULL);
	int own = size_of(model_cells(model, client)), most = own;

	if (model->pins[first].expiry <= model->now)
		return victim == first;
	if (victim != nearest(model, owner))
		return false;
	for (size_t i = 0; i < model->count; i++) {
		int size = size_of(model_cells(model, &model->pins[i].client));
		most = size > most ? size : most;
	}
	if (most == own)
		return client_key_equal(owner, client);
	if (size_of(model_cells(model, &model->pins[first].client)) == most)
		return victim == first;
	return size_of(model_cells(model, owner)) == most;
}

/* Makes room for PIN as WORLD did; false when no order of such pins leads there. */
static bool make_room(struct model *model, const struct world *world, const struct pin *pin)
{
	if (model_cells(model, NULL) + cells_of(pin) <= model->capacity) {
		if (model_cells(model, NULL) + cells_of(pin) != world_stats(world).live)
			return false;
		for (size_t i = 0; i < model->count; i++)
			if (!is_there(world, &model->pins[i]))
				return false;
		return true;
	}
	for (size_t i = 0; i < model->count; i++) {
		struct pin victim = model->pins[i];
		if (is_there(world, &victim) || !may_go(model, &pin->client, i))
			continue;
		model->pins[i] = model->pins[--model->count];
		if (make_room(model, world, pin))
			return true;
		model->pins[model->count++] = model->pins[i];
		model->pins[i] = victim;
	}
	return false;
}

/* After the put of WORLD. */
static int model_put(struct model *model, const struct world *world, const struct pin *pin)
{
	unsigned names = 0;

	if (pin->expiry <= model->now)
		return 0;
	for (size_t i = 0; i < model->count; i++) {
		struct pin *known = &model->pins[i];
		if (same(known, pin)) {
			if (pin->expiry > known->expiry)
				known->expiry = pin->expiry;
			return 0;
		}
		names += client_key_equal(&known->client, &pin->client) &&
			 address_equal(&known->address, &pin->address);
	}
	if (cells_of(pin) > model->per_client || cells_of(pin) > model->capacity)
		return -ENOSPC;
	if (names >= PINS_PER_ADDRESS_MAX)
		model_evict(model, &pin->client, &pin->address);
	while (model_cells(model, &pin->client) + cells_of(pin) > model->per_client)
		model_evict(model, &pin->client, NULL);
	assert_true(make_room(model, world, pin));
	model->pins[model->count++] = *pin;
	return 0;
}

static size_t model_drop(struct model *model, const struct client_key *client)
{
	size_t before = model->count;

	for (size_t i = 0; i < model->count;)
		if (client_key_equal(&model->pins[i].client, client))
			model->pins[i] = model->pins[--model->count];
		else
			i++;
	return before - model->count;
}

static size_t model_expire(struct model *model, size_t max)
{
	size_t freed = 0;

	for (; freed < max; freed++) {
		size_t first = 0;
		for (size_t i = 1; i < model->count; i++)
			if (model->pins[i].expiry < model->pins[first].expiry)
				first = i;
		if (model->count == 0 ||
		    model->pins[first].expiry + PINS_EXPIRED_KEPT_MS >= model->now)
			break;
		model->pins[first] = model->pins[--model->count];
	}
	return freed;
}

/* An expiry in a second that no pin has. */
static uint64_t fresh_expiry(struct model *model)
{
	for (;;) {
		uint64_t expiry = model->now + world_random(&model->seed) % 2000000;
		size_t i = 0;
		while (i < model->count && model->pins[i].expiry / 1000 != expiry / 1000)
			i++;
		if (i == model->count)
			return expiry;
	}
}

static struct pin random_pin(struct model *model, unsigned clients, unsigned addresses,
			     unsigned names)
{
	static const uint8_t lengths[] = {8, 20, 71, 72, 73, 184, 185, 253};
	unsigned number = (unsigned)(world_random(&model->seed) % names);
	struct pin pin = {
		.client = world_client((unsigned)(world_random(&model->seed) % clients)),
		.address = world_address((unsigned)(world_random(&model->seed) % addresses)),
		.name = world_name(number, number % 3 == 0 ? lengths[number / 3 % 8] : 20),
		.expiry = fresh_expiry(model),
	};

	return pin;
}

static bool count_pin(const struct pin *pin, void *context)
{
	const struct model *model = context;
	size_t found = 0;

	for (size_t i = 0; i < model->count; i++)
		found += same(&model->pins[i], pin) && model->pins[i].expiry == pin->expiry;
	assert_int_equal(found, 1);
	return true;
}

/* All that the model has, and no more, is in the table. */
static void assert_same(const struct world *world, const struct model *model)
{
	struct pin pins[PINS_PER_ADDRESS_MAX];

	assert_int_equal(world_stats(world).live, model_cells(model, NULL));
	for (size_t i = 0; i < model->count; i++) {
		const struct pin *want = &model->pins[i];
		size_t found = pins_find(world->table, &want->client, &want->address, pins,
					 PINS_PER_ADDRESS_MAX);
		size_t hits = 0;
		for (size_t j = 0; j < found; j++)
			hits += same(&pins[j], want) && pins[j].expiry == want->expiry;
		assert_int_equal(hits, 1);
	}
	pins_each(world->table, count_pin, (void *)(uintptr_t)model);
}

static void step(struct world *world, struct model *model, unsigned clients, unsigned addresses,
		 unsigned names)
{
	struct pin pin = random_pin(model, clients, addresses, names);
	uint64_t dice = world_random(&model->seed) % 100;

	if (dice < 85) {
		int result = pins_put(world->writer, &pin.client, &pin.name, &pin.address,
				      pin.expiry, model->now);
		assert_int_equal(result, model_put(model, world, &pin));
	} else if (dice < 90) {
		model->now += world_random(&model->seed) % 300000;
	} else if (dice < 95) {
		size_t max = world_random(&model->seed) % 5;
		/* Within a second of the end either may be: no such moment. */
		for (size_t i = 0; i < model->count; i++)
			if ((model->pins[i].expiry + PINS_EXPIRED_KEPT_MS) / 1000 ==
			    model->now / 1000)
				return;
		assert_int_equal(pins_expire(world->writer, model->now, max),
				 model_expire(model, max));
	} else if (dice < 97) {
		assert_int_equal(pins_drop_client(world->writer, &pin.client),
				 model_drop(model, &pin.client));
	} else if (dice == 97) {
		pins_writer_close(world->writer);
		assert_int_equal(pins_writer_open(world->writable, &world->writer), 0);
	}
}

static void play(uint64_t seed, uint32_t capacity, uint32_t per_client, unsigned clients,
		 unsigned addresses, unsigned names, int steps)
{
	static struct model model;
	struct world world;

	model = (struct model){
		.capacity = capacity, .per_client = per_client, .now = 5000000, .seed = seed};
	world_open(&world, capacity, per_client);
	for (int i = 0; i < steps; i++) {
		step(&world, &model, clients, addresses, names);
		if (i % 7 == 0)
			assert_same(&world, &model);
	}
	world_close(&world);
}

static void agrees_when_tiny(void **state)
{
	(void)state;
	play(1, 1, 1, 2, 2, 3, 2000);
	play(2, 3, 3, 2, 2, 9, 3000);
	play(3, 7, 4, 3, 3, 30, 5000);
}

static void agrees_when_the_table_is_full(void **state)
{
	(void)state;
	play(4, 50, 1000, 10, 20, 30, 8000);
}

static void agrees_when_clients_are_full(void **state)
{
	(void)state;
	play(5, 200, 20, 9, 20, 30, 8000);
}

static void agrees_when_addresses_are_full(void **state)
{
	(void)state;
	play(6, 250, 250, 1, 2, 300, 6000);
}

static void agrees_with_room(void **state)
{
	(void)state;
	play(7, 250, 100, 5, 5, 4, 6000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_when_tiny),
		cmocka_unit_test(agrees_when_the_table_is_full),
		cmocka_unit_test(agrees_when_clients_are_full),
		cmocka_unit_test(agrees_when_addresses_are_full),
		cmocka_unit_test(agrees_with_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
