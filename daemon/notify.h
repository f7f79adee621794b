/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tells a service manager about our state: sd_notify(3) by hand, over the socket that NOTIFY_SOCKET
 * names. Without one, nothing happens.
 */

#include <stdint.h>

/* STATE as in sd_notify(3): "READY=1", "STOPPING=1", … */
void notify(const char *state);

/*
 * How often the service manager wants to hear "WATCHDOG=1" of this process, in ms: half of what it
 * waits; 0 when it does not watch.
 */
uint64_t notify_watchdog_ms(void);

/* "RELOADING=1" with the time stamp that Type=notify-reload asks for. */
void notify_reloading(void);
