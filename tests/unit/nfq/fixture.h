/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the gate's unit tests share: a sink that writes down, packets made to order, and a policy
 * engine and pin table of our own whose answers the test chooses (linked in the place of rules/ and
 * pins/).
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these before it. */
#include <setjmp.h>

#include <cmocka.h>

#include "hook/protocol.h"
#include "nfq/flow.h"
#include "nfq/gate.h"
#include "nfq/hold.h"
#include "nfq/judge.h"
#include "nfq/limits.h"

/* How a packet ended. */
enum ending { HELD, DROPPED, ALLOWED, WATCHED, REFUSED };

/* The engine's answers; a test changes them as it goes. */
struct engine {
	bool tells_cgroups;     /* some client is chosen by cgroup */
	uint64_t cgroup;        /* of TCP sockets; 7 is the client "job" */
	struct verdict connect; /* OUTCOME_ALLOW at first */
	struct verdict request; /* OUTCOME_ALLOW at first: as below */
	bool ignores;           /* clients are not governed */
	bool reads;             /* first bytes of TCP are read; true at first */
	bool reads_quic;        /* and of UDP; false at first */
	bool audit_mode;        /* no denial is enforced */
	bool searches;          /* for secrets; true at first */
	/* requests: a host that begins with "bad" is a name_mismatch, "evil" secret_url, as is a
	 * secret; malformed ones are malformed, others allowed */
	/* requests: what is no QUIC is scheme; a host that begins with "bad" is a name_mismatch, "evil" secret_url; malformed
	 * ones are malformed, others allowed */
	unsigned connects, requests, early;
	struct pin pins[4];
	size_t pin_count;
	struct request last; /* as asked, pointers of its pins no more valid */
	char last_pins[256]; /* names of the last question's pins, each with a blank behind it */
	bool asks_connect, asks_request; /* the hook is to be asked */
	int ask_error;                   /* and cannot be */
	struct client_origin origin;     /* of the last client question */
	char origin_interface[16];
};
extern struct engine engine;

/* Questions put to the hook. */
#define ASKED_MAX 64
struct asked {
	uint64_t id;
	struct flow *flow;
	enum stage stage;
	enum outcome decision;
	char name[64], target[64], method[16], scheme[8], client[64], resolved_from[64];
};
extern struct asked hook_asked[ASKED_MAX];
extern unsigned asked_count;

/* The hook answers question NUMBER (from 0). */
void hook_says(unsigned number, enum hook_answer answer);

#define AUDITS_MAX 512
extern struct audit_record audits[AUDITS_MAX];
extern unsigned audit_count;
extern bool audit_blocks; /* the parent does not read */

extern struct gate gate;
extern uint64_t now;

/* Empties everything; usable as a cmocka set-up. */
int fixture_reset(void **state);

/* How packet ID ended, and in which place of all endings (from 1, 0 while it is held). */
enum ending ending_of(uint32_t id);
unsigned ending_order(uint32_t id);
/* Packets that are neither ended nor held by the pool: always 0 after a call. */
unsigned endings_missing(void);

/* A TCP packet from 10.0.0.2:40000 to 192.0.2.1:80, or what `spec` says otherwise. */
struct spec {
	uint32_t sequence;
	uint8_t flags; /* 0: ACK */
	const char *text;
	size_t length; /* of TEXT; 0: strlen */
	uint16_t port; /* source port, 0: 40000 */
	uint32_t mark; /* 0: watched, but for a SYN */
	bool unmarked; /* none at all */
	bool again;    /* beside the mark: decided under another policy */
	uint32_t interface;
	bool ipv6;
	uint8_t protocol; /* 0: TCP; UDP and ICMP for others */
	bool cut;         /* the kernel cut it off */
	bool merged;      /* several in one */
	bool uid_known;
	uint32_t uid;
	bool fragment;
};

/* Gives it to the gate and returns its id. */
uint32_t send_spec(const struct spec *spec);
#define SEND(...) send_spec(&(struct spec){__VA_ARGS__})

/* Gives its first octets to the gate as a notice of the static floor. */
void notice_spec(const struct spec *spec);
#define NOTICE(...) notice_spec(&(struct spec){__VA_ARGS__})
