/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Where the gate's judgements go: verdicts to the kernel, records to the parent. The judging half
 * of the gate knows nothing of netlink; nfq/queue.c and nfq/main.c fill this in, unit tests fill it
 * with a list.
 */

#include <stdbool.h>
#include <stdint.h>

#include "marks.h"

struct audit_record;

enum sink_action {
	SINK_DROP,  /* NF_DROP: nobody is told, the sender repeats */
	SINK_ACCEPT /* NF_ACCEPT with the mark, which filter carries out */
};

struct sink {
	/*
	 * Ends the packet ID. MARK_BEFORE is the mark it came with; STATE replaces its bits inside
	 * the mask with SINK_ACCEPT. Called exactly once for every packet.
	 */
	void (*verdict)(struct sink *sink, uint32_t id, enum sink_action action,
			uint32_t mark_before, enum mark_state state);
	/* 0, or -EAGAIN when the record is lost. */
	int (*audit)(struct sink *sink, const struct audit_record *record);
};
