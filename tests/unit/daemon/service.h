/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The whole parent in a process of its own, with the fake children, asked over its control socket. One at a
 * time; all fail the test that calls them when something is wrong.
 */

#include <jansson.h>
#include <stdbool.h>
#include <sys/types.h>

extern char folder[], config_path[128], socket_path[128], log_path[128];
extern unsigned port; /* of its resolver */
extern pid_t parent;
extern int lifetime;

/* Group and test fixtures of cmocka. */
int service_make_folder(void **state);
int service_remove_folder(void **state);
int service_set_up(void **state);
int service_tear_down(void **state);

/* A configuration with EXTRA in it. */
void service_write_config(const char *extra);

/* Starts the parent; true when it became ready. */
bool service_start(void);
/* Its exit status; 128 + signal. */
int service_finish(void);

/* The answer to one request line. */
json_t *service_ask(const char *request);
json_int_t service_status_number(const char *section, const char *key);
pid_t service_child_pid(const char *kind);

/* Waits until SECTION's KEY is VALUE, until the child is ready. */
void service_until(const char *section, const char *key, json_int_t value);
void service_until_ready(const char *kind);

/* It wrote TEXT to its standard error. */
bool service_said(const char *text);
