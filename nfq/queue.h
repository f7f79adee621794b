/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One NFQUEUE of the kernel, by libmnl and libnetfilter_queue.
 * Needs CAP_NET_ADMIN in the user namespace that owns the network namespace, for every verdict.
 */

#include <stddef.h>
#include <stdint.h>

#include "nfq/gate.h"

/*
 * Binds queue NUMBER in the network namespace of the process: whole packets, GSO packets as they
 * are, uids. MARK_MASK says where our marks are. 0, or negative errno with one line in PROBLEM
 * (SIZE octets): -EBUSY when another program has the queue, -EPERM, -EPROTONOSUPPORT for a kernel
 * without NFQUEUE.
 */
int queue_open(uint16_t number, uint32_t mark_mask, char *problem, size_t size);

/* To poll for reading. */
int queue_fd(void);

/* Messages of one batch. */
#define QUEUE_BATCH 16 /* NFNETLINK_BATCH */

/*
 * Takes what is there, at most one batch, and calls TAKE for each packet. Returns how many messages
 * there were: fewer than QUEUE_BATCH, the queue is empty. -ENOBUFS when the kernel could not
 * deliver all (those it dropped), or another negative errno: the queue is no more.
 */
int queue_receive(void (*take)(void *context, const struct arrival *arrival), void *context);

/* Ends packet ID; sent with the others of a batch by queue_flush(). As struct sink's verdict. */
void queue_verdict(uint32_t id, enum sink_action action, uint32_t mark_before,
		   enum mark_state state);

/* Sends the verdicts that wait. 0 or negative errno: some may not have reached the kernel. */
int queue_flush(void);

/* The name of interface INDEX, or NULL; INTERFACE_REMEMBERED_MS old at most. */
const char *queue_interface_name(uint32_t index, uint64_t now);
