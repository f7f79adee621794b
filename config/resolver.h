/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside config/: the parts of `resolver` that have files of their own. Their targets are the
 * struct config_private.
 */

#include <stdio.h>

#include "config/load.h"

#define DNS_PORT 53

/* servers.c */
option_parser servers_listen;
option_parser servers_clients;
option_parser servers_upstream;
option_parser servers_forward;
void servers_print_listen(const struct resolver_settings *settings, FILE *out);
void servers_print_upstream(const struct resolver_settings *settings, FILE *out);

/* hosts.c */
option_parser hosts_option;
void hosts_print(const struct config_source *source, FILE *out);
