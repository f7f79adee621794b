/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdbool.h>

/* By its name: .html and .htm. Everything else is Markdown. */
bool report_is_html(const char *path);

/* Writes what the audit log behind the descriptor LOG tells into PATH. STATUS_OK, or another status
 * with the reason printed. */
int report_write_file(int log, const char *path);
