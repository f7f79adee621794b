/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One connection to one hook: questions go out as they come, answers come in any order. It knows no
 * event loop: whoever has it says when the descriptor may be ready and what time it is. Nothing is
 * allocated. Times are milliseconds of a clock that does not jump.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hook/protocol.h"

/* Questions without an answer, in all and of one client: one client cannot take the hook away. */
#define ASKER_QUESTIONS_MAX  1024u
#define ASKER_PER_CLIENT_MAX (ASKER_QUESTIONS_MAX / 4)
/* Clients are counted by a hash of their key; two that meet share one allowance. */
#define ASKER_CLIENT_SLOTS 256u
/* Lines that the hook has not read yet: past it the hook is too slow. Two of the longest fit. */
#define ASKER_OUTPUT_MAX (2u * HOOK_QUESTION_MAX + 65536u)
/* Octets read at one turn, so that a hook that floods does not keep the program to itself. */
#define ASKER_READ_MAX 65536u
/* From a connection that failed to the next try, and the longest wait for the one that is made. */
#define ASKER_RETRY_MS   250u
#define ASKER_CONNECT_MS 5000u

enum asker_state {
	ASKER_DOWN,       /* no connection; leaves by asker_connecting() */
	ASKER_CONNECTING, /* one is being made, questions wait for it; leaves by
			     asker_connected() or asker_failed() */
	ASKER_LIVE        /* leaves by end of file, an error, or a line that is not right */
};

/*
 * The answer to question ID, or HOOK_ERROR with a problem. Called once for each question that was
 * taken, from asker_ready(), asker_expire(), asker_failed() and asker_close(); it may ask again.
 */
typedef void asker_done(void *context, uint64_t id, const struct hook_reply *reply);

struct asker_question {
	uint64_t id; /* 0: free */
	uint64_t deadline;
	void *context;
	uint32_t client;
};

/* Private. */
struct asker {
	enum asker_state state;
	int fd; /* -1 unless LIVE */
	asker_done *done;
	uint64_t *serial;   /* the last one given out, by whichever asker shares it */
	uint64_t first;     /* the least id of this connection; 0: none asked yet */
	uint64_t last;      /* the greatest one ever asked */
	uint64_t asked;     /* questions of this connection */
	uint64_t lines;     /* answers of this connection: never more than questions */
	uint64_t earliest;  /* no question is due before */
	uint64_t try_again; /* when asker_may_connect() is true again */
	uint32_t free_at;   /* where the search for a free question begins */
	uint32_t count;     /* questions without an answer */
	uint16_t by_client[ASKER_CLIENT_SLOTS];
	struct asker_question questions[ASKER_QUESTIONS_MAX];
	size_t in_used, out_from, out_used;
	char in[HOOK_REPLY_MAX + 1];
	char out[ASKER_OUTPUT_MAX];
};

/* SERIAL is shared by all askers of a program, so that an id is never used twice in it. */
void asker_init(struct asker *asker, uint64_t *serial, asker_done *done);

/* There is no connection and it is time to make one; nobody waits for one that takes too long. */
bool asker_may_connect(const struct asker *asker, uint64_t now);
void asker_connecting(struct asker *asker, uint64_t now);

/* The connection FD, non-blocking; it is the asker's now. One too many is closed. */
void asker_connected(struct asker *asker, int fd, uint64_t now);

/* It could not be made: all that wait get HOOK_ERROR. */
void asker_failed(struct asker *asker, uint64_t now);

/*
 * Takes a question of CLIENT (any hash of it) with its own DEADLINE. 0 and *ID; -ENOTCONN when there
 * is no connection and none is being made; -ENOSPC at a bound; -EMSGSIZE, -ENOMEM. done() is not
 * called from here.
 */
int asker_ask(struct asker *asker, const struct hook_question *question, uint32_t client,
	      uint64_t deadline, void *context, uint64_t *id);

/* What an error of asker_ask() means, for the log. */
const char *asker_problem(int error);

/* Writes what waits and reads what is there. */
void asker_ready(struct asker *asker, uint64_t now);

/* Lines wait to be written. */
bool asker_wants_write(const struct asker *asker);

/* Ends questions whose time is over. */
void asker_expire(struct asker *asker, uint64_t now);

/* When asker_expire() may have something to do; UINT64_MAX: never. */
uint64_t asker_deadline(const struct asker *asker);

/* Closes the connection; all that wait get HOOK_ERROR. */
void asker_close(struct asker *asker, uint64_t now);
