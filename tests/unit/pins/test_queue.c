/* SPDX-License-Identifier: GPL-2.0-or-later */

/* The treaps against an array that is searched from end to end. */

#include "pins_world.h"

#include <stdlib.h>

#include "pins/queue.h"

#define NODES 300u

struct plain {
	bool queued[QUEUE_LANES][NODES + 1];
};

static uint32_t plain_first(const struct plain *plain, const struct queue_node *nodes,
			    enum queue_lane lane)
{
	uint32_t first = 0;

	for (uint32_t i = 1; i <= NODES; i++)
		if (plain->queued[lane][i] && (first == 0 || nodes[i].order < nodes[first].order))
			first = i;
	return first;
}

/* Every node once, in order, and each below a link of its own. */
static unsigned count_in_order(const struct queue_node *nodes, enum queue_lane lane, uint32_t node,
			       uint32_t *before)
{
	unsigned count;

	if (node == 0)
		return 0;
	count = count_in_order(nodes, lane, nodes[node].links[lane].left, before);
	if (*before != 0)
		assert_true(nodes[*before].order < nodes[node].order ||
			    (nodes[*before].order == nodes[node].order && *before < node));
	*before = node;
	return count + 1 + count_in_order(nodes, lane, nodes[node].links[lane].right, before);
}

static void walk_randomly(uint64_t seed, uint32_t orders)
{
	static struct queue_node nodes[NODES + 1];
	struct queue queue = {.nodes = nodes, .salt = (uint32_t)seed * 77};
	struct plain plain = {0};
	uint32_t roots[QUEUE_LANES] = {0};

	for (int step = 0; step < 20000; step++) {
		uint32_t node = 1 + (uint32_t)(world_random(&seed) % NODES);
		enum queue_lane lane = (enum queue_lane)(world_random(&seed) % QUEUE_LANES);
		enum queue_lane other = lane == QUEUE_ALL ? QUEUE_CLIENT : QUEUE_ALL;
		if (plain.queued[lane][node]) {
			queue_remove(&queue, lane, &roots[lane], node);
		} else {
			if (!plain.queued[other][node])
				nodes[node].order = (uint32_t)(world_random(&seed) % orders);
			queue_insert(&queue, lane, &roots[lane], node);
		}
		plain.queued[lane][node] = !plain.queued[lane][node];
		assert_int_equal(queue_first(&queue, lane, roots[lane]),
				 plain_first(&plain, nodes, lane));
		if (step % 100 != 0)
			continue;
		uint32_t before = 0;
		unsigned queued = 0;
		for (uint32_t i = 1; i <= NODES; i++)
			queued += plain.queued[lane][i];
		assert_int_equal(count_in_order(nodes, lane, roots[lane], &before), queued);
	}
}

static void agrees_with_a_search(void **state)
{
	(void)state;
	walk_randomly(1, UINT32_MAX);
	walk_randomly(2, 1000);
	walk_randomly(3, 3); /* nearly all equal: the number decides */
	walk_randomly(4, 1);
}

static void an_empty_queue_has_no_first(void **state)
{
	struct queue_node nodes[2] = {0};
	struct queue queue = {.nodes = nodes};
	uint32_t root = 0;
	(void)state;

	assert_int_equal(queue_first(&queue, QUEUE_ALL, 0), 0);
	queue_insert(&queue, QUEUE_ALL, &root, 1);
	assert_int_equal(queue_first(&queue, QUEUE_ALL, root), 1);
	queue_remove(&queue, QUEUE_ALL, &root, 1);
	assert_int_equal(root, 0);
}

static unsigned depth(const struct queue_node *nodes, uint32_t node)
{
	unsigned left, right;

	if (node == 0)
		return 0;
	left = depth(nodes, nodes[node].links[QUEUE_ALL].left);
	right = depth(nodes, nodes[node].links[QUEUE_ALL].right);
	return 1 + (left > right ? left : right);
}

/* The orders that come in practice, rising, and their reverse, do not make a list of the tree. */
static void stays_shallow(void **state)
{
	const uint32_t count = 1u << 16;
	struct queue_node *nodes = calloc(count + 1, sizeof(*nodes));
	struct queue queue = {.nodes = nodes, .salt = 12345};
	(void)state;

	assert_non_null(nodes);
	for (int falling = 0; falling < 2; falling++) {
		uint32_t root = 0;
		for (uint32_t i = 1; i <= count; i++) {
			nodes[i].order = falling ? count - i : i;
			queue_insert(&queue, QUEUE_ALL, &root, i);
		}
		assert_in_range(depth(nodes, root), 16, 80);
	}
	free(nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_search),
		cmocka_unit_test(an_empty_queue_has_no_first),
		cmocka_unit_test(stays_shallow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
