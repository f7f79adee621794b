/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Treaps: binary search trees by (order, number) that are heaps by a pseudo-random priority of the
 * number (Seidel and Aragon, 1996). Priorities are computed, not stored; there are no parent links:
 * a removal finds its node by its order, which is why the order is fixed while a node is queued.
 */

#include "pins/queue.h"

#include <assert.h>
#include <stdbool.h>

/* A bijection of 32 bits (the finaliser of MurmurHash3), so that no two nodes have one priority. */
static uint32_t priority(const struct queue *queue, uint32_t node)
{
	uint32_t x = node ^ queue->salt;

	x = (x ^ x >> 16) * 0x85ebca6bu;
	x = (x ^ x >> 13) * 0xc2b2ae35u;
	return x ^ x >> 16;
}

static bool precedes(const struct queue *queue, uint32_t a, uint32_t b)
{
	uint32_t first = queue->nodes[a].order, second = queue->nodes[b].order;

	return first != second ? first < second : a < b;
}

void queue_insert(const struct queue *queue, enum queue_lane lane, uint32_t *root, uint32_t node)
{
	uint32_t own = priority(queue, node), *link = root;

	while (*link != 0 && priority(queue, *link) > own) {
		struct queue_links *links = &queue->nodes[*link].links[lane];
		link = precedes(queue, node, *link) ? &links->left : &links->right;
	}

	/* The subtree that was here is split around the node. */
	uint32_t rest = *link;
	uint32_t *left = &queue->nodes[node].links[lane].left;
	uint32_t *right = &queue->nodes[node].links[lane].right;

	*link = node;
	while (rest != 0) {
		uint32_t **side = precedes(queue, rest, node) ? &left : &right;
		struct queue_links *links = &queue->nodes[rest].links[lane];
		**side = rest;
		*side = side == &left ? &links->right : &links->left;
		rest = **side;
	}
	*left = 0;
	*right = 0;
}

void queue_remove(const struct queue *queue, enum queue_lane lane, uint32_t *root, uint32_t node)
{
	uint32_t *link = root;

	while (*link != node) {
		assert(*link != 0);
		struct queue_links *links = &queue->nodes[*link].links[lane];
		link = precedes(queue, node, *link) ? &links->left : &links->right;
	}

	uint32_t left = queue->nodes[node].links[lane].left;
	uint32_t right = queue->nodes[node].links[lane].right;

	while (left != 0 && right != 0) {
		if (priority(queue, left) > priority(queue, right)) {
			*link = left;
			link = &queue->nodes[left].links[lane].right;
			left = *link;
		} else {
			*link = right;
			link = &queue->nodes[right].links[lane].left;
			right = *link;
		}
	}
	*link = left != 0 ? left : right;
}

uint32_t queue_first(const struct queue *queue, enum queue_lane lane, uint32_t root)
{
	while (root != 0 && queue->nodes[root].links[lane].left != 0)
		root = queue->nodes[root].links[lane].left;
	return root;
}
