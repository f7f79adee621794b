/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Tells a service manager about our state: sd_notify(3) by hand, over the socket that NOTIFY_SOCKET
 * names. Without one, nothing happens.
 */

/* STATE as in sd_notify(3): "READY=1", "STOPPING=1", … */
void notify(const char *state);

/* "RELOADING=1" with the time stamp that Type=notify-reload asks for. */
void notify_reloading(void);
