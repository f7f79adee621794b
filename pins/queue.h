/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Priority queues over one array of nodes: a treap for each root. A node may be in one queue of
 * each lane at a time. Nodes are numbered from 1; 0 is none. The order is by `order`, then by
 * number. Every operation is O(log n), expected over SALT, which an attacker must not know.
 */

#include <stdint.h>

enum queue_lane { QUEUE_ALL, QUEUE_CLIENT, QUEUE_LANES };

struct queue_links {
	uint32_t left, right;
};

struct queue_node {
	uint32_t order; /* may change only while the node is in no queue */
	struct queue_links links[QUEUE_LANES];
};

struct queue {
	struct queue_node *nodes; /* [0] is unused */
	uint32_t salt;
};

void queue_insert(const struct queue *queue, enum queue_lane lane, uint32_t *root, uint32_t node);

/* NODE must be in the queue of ROOT. */
void queue_remove(const struct queue *queue, enum queue_lane lane, uint32_t *root, uint32_t node);

/* The first node, or 0. */
uint32_t queue_first(const struct queue *queue, enum queue_lane lane, uint32_t root);
