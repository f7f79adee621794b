/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Why a call of the plugin failed, in the words of the CNI specification 1.1, section "Error".
 */

enum failure_code {
	FAILURE_NONE = 0,
	FAILURE_VERSION = 1,        /* incompatible CNI version */
	FAILURE_FIELD = 2,          /* a field of the configuration that is not known */
	FAILURE_ENVIRONMENT = 4,    /* a CNI_ variable is missing or wrong */
	FAILURE_IO = 5,             /* the input cannot be read */
	FAILURE_DECODE = 6,         /* the input is no JSON object */
	FAILURE_CONFIG = 7,         /* the configuration is wrong */
	FAILURE_TRY_AGAIN = 11,     /* the service is away, or could not make the change */
	FAILURE_UNAVAILABLE = 50,   /* STATUS: the service is not there or not ready */
	FAILURE_UNREGISTERED = 100, /* CHECK: the service does not know the container */
	FAILURE_DIFFERENT = 101,    /* CHECK: it knows it by another policy or other addresses */
	FAILURE_RULES = 102         /* CHECK: the packet-filter rules are not in order */
};

#define FAILURE_TEXT_MAX 512

struct failure {
	enum failure_code code;
	char message[FAILURE_TEXT_MAX]; /* one line for people */
};

/* Sets the code and the message; returns -1, so that callers can return what it returns. */
int fail(struct failure *failure, enum failure_code code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
