/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy engine: (policy, details, pins, now) -> verdict. Pure: no I/O, no clock, no allocation,
 * no global state. The resolver, the gate, `pinfold explain` and the tests call these same functions.
 *
 * A policy lives in a policy image: one flat, position-independent, read-only block of memory that the
 * command builds from the configuration (rules/source.h) and hands to both children as a sealed memfd.
 * The floor is not in it: floor data is compiled into every program, so no image can open it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "client.h"
#include "name.h"
#include "pins.h"
#include "trace.h"
#include "verdict.h"

struct policy_image;

/* Index of a policy in its image; POLICY_DEFAULT is the policy `default`, always there. */
typedef uint32_t policy_index;
#define POLICY_DEFAULT 0u

/*
 * Checks BYTES (aligned to 16, alive as long as the image is used) and gives the image inside. Every
 * offset and count is checked once, here. 0, or -EPROTO.
 */
int policy_image_open(const void *bytes, size_t size, const struct policy_image **out);

uint64_t policy_image_generation(const struct policy_image *image);

/* Policies are numbered from 0 to below this. */
policy_index policy_count(const struct policy_image *image);

/* 0 and *OUT, or -ENOENT. */
int policy_find(const struct policy_image *image, const char *policy_name, policy_index *out);

/*
 * The name of a source (enum source and beyond): "built-in" for SOURCE_BUILTIN, "floor.txt" and its like for
 * data that is compiled in, the name given at build for configuration files; "?" out of range, never NULL.
 */
const char *policy_source_name(const struct policy_image *image, uint32_t source);

/* Who a packet or a query belongs to, and which policy governs it. */
struct client_match {
	struct client_key key;
	policy_index policy;
	const char *name; /* a registered name, "host", or "" for an unregistered address */
	bool root;	  /* uid 0 of this host, on its own traffic: infrastructure is open */
	bool governed;	  /* false: nothing is judged (uid 0 under `govern: users`) */
	bool unknown;	  /* some client is chosen by cgroup and this one's is not known: to be refused */
};

/* What is known of a packet's or query's origin. */
struct client_origin {
	struct address source;
	const char *interface; /* input interface, NULL for this host's own traffic */
	bool own;	       /* the source is this host: loopback or one of its addresses */
	bool uid_known;
	uint32_t uid;
	uint64_t cgroup; /* cgroup v2 id, 0 unknown */
};
void policy_client(const struct policy_image *image, const struct client_origin *origin,
		   struct client_match *out);

/* Some client is chosen by uid or cgroup: own traffic of an unknown owner belongs to nobody then. */
bool policy_tells_users(const struct policy_image *image);

/* Some client is chosen by cgroup: the packet's uid alone does not say whose it is. */
bool policy_tells_cgroups(const struct policy_image *image);

/* Some client is chosen by its input interface: else client_origin.interface need not be known. */
bool policy_tells_interfaces(const struct policy_image *image);

/* 0 and *OUT for a registered client or "host", or -ENOENT. */
int policy_client_by_name(const struct policy_image *image, const char *name,
			  struct client_match *out);

/* Who asks: what the verdict needs of a client. */
struct subject {
	policy_index policy;
	bool root;           /* see struct client_match */
	struct trace *trace; /* gets the way to the verdict; NULL: nobody asks for it */
};

/* STAGE_RESOLVE. NAME_ERROR other than NAME_OK: the name is malformed and NAME is not read. */
struct question {
	const struct name *name;
	enum name_error name_error;
	uint16_t type; /* host order, RFC 1035 section 3.2.2 */
};
struct verdict policy_resolve(const struct policy_image *image, const struct subject *subject,
			      const struct question *question);

/* STAGE_ANSWER. Judges the whole; the order of addresses, hints and targets does not matter. */
struct answer {
	const struct name *name; /* as asked */
	const struct address *addresses; /* of every A and AAAA in every section */
	size_t address_count;
	const struct address *hints; /* ipv4hint, ipv6hint of SVCB and HTTPS */
	size_t hint_count;
	const struct name *targets; /* CNAME, DNAME results and SVCB targets, in any order */
	size_t target_count;
	bool malformed; /* a record of the answer breaks its grammar: A of 3 octets, … */
	bool from_static; /* from `hosts:`; the operator wrote it */
};
struct verdict policy_answer(const struct policy_image *image, const struct subject *subject,
			     const struct answer *answer);

/* STAGE_CONNECT. PINS are those of this client for DESTINATION, expired ones included. */
struct connection {
	struct address destination; /* as on the wire; the engine decodes embeddings */
	uint16_t port;		    /* host order; 0 for protocols without */
	uint8_t protocol;	    /* IPPROTO_TCP, … */
	const struct pin *pins;
	size_t pin_count;
};
struct verdict policy_connect(const struct policy_image *image, const struct subject *subject,
			      const struct connection *connection, uint64_t now);

/* A host as a request spells it. */
enum host_kind {
	HOST_NONE,	/* no Host, no SNI */
	HOST_NAME,	/* canonical name */
	HOST_LITERAL,	/* an address in any spelling of inet_aton or RFC 4291 */
	HOST_MALFORMED	/* neither: bytes outside a host name, ends in a number and is none, … */
};
struct host {
	enum host_kind kind;
	struct name name;
	struct address literal;
	uint16_t port; /* 0: none given */
};

/*
 * Reads a host without port the way the WHATWG URL standard's host parser does for ASCII input: an
 * IPv6 literal in brackets, then "ends in a number" decides between literal and name. Never fails; the
 * port of the result is 0.
 */
void host_parse(const char *text, size_t length, struct host *out);

enum request_kind {
	REQUEST_HTTP1, /* an HTTP/1.0 or 1.1 request head */
	REQUEST_HTTP2, /* the cleartext preface "PRI * HTTP/2.0" */
	REQUEST_TLS,   /* a ClientHello, over TCP or QUIC */
	REQUEST_OTHER  /* neither */
};

enum target_form { /* RFC 9112 section 3.2 */
	TARGET_ORIGIN,
	TARGET_ABSOLUTE,
	TARGET_AUTHORITY, /* CONNECT */
	TARGET_ASTERISK
};

/* STAGE_REQUEST: the connection, and what its first bytes say. */
struct request {
	struct connection connection; /* family ADDRESS_NONE: destination unknown, rules 1 to 9 only */
	enum request_kind kind;
	bool malformed; /* began as kind and breaks its grammar */
	struct host host; /* Host, :authority or SNI */
	enum target_form form;
	const char *scheme;	  /* of an absolute target, lower case, NUL; "" otherwise */
	struct host target_host; /* of an absolute or authority target; HOST_NONE otherwise */
	const char *target;	  /* cleartext request target as sent, no NUL; NULL when invisible */
	size_t target_length;
	const char *method; /* of a cleartext request, no NUL; NULL when invisible; for the hook alone */
	size_t method_length;
	bool secret;	      /* the caller found a key or token shape in the target */
	uint32_t secret_line; /* of the shape in secret-shapes.txt, 0: the search gave up */
};
struct verdict policy_request(const struct policy_image *image, const struct subject *subject,
			      const struct request *request, uint64_t now);

/*
 * Whether first bytes to this destination are read at all: of TCP, and of QUIC where it is inspected;
 * not where `allow_raw` names it.
 */
bool policy_reads_first_bytes(const struct policy_image *image, const struct subject *subject,
			      const struct connection *connection, uint64_t now);

/* Whether the caller should look for secrets in a target: block_secret_bearing_urls. */
bool policy_searches_secrets(const struct policy_image *image, policy_index policy);

/*
 * Rule 12, the hook (pinfold-hook(7)). Every verdict says by asks_hook whether the hook of its policy
 * is to be asked at its stage; then nothing is done about the verdict before policy_hooked() has
 * joined it with the answer. A denial that no answer could lift does not ask.
 */
#define POLICY_HOOKS_MAX 16u /* different sockets in one image: a connection of each child for each */
#define POLICY_HOOK_PATH_MAX 108 /* sun_path of unix(7), its NUL included */

enum hook_answer {
	HOOK_ALLOW,
	HOOK_DENY,
	HOOK_KEEP, /* the verdict so far */
	HOOK_ERROR /* no answer in time, no proper one, or nobody to ask */
};

struct policy_hook {
	const char *path; /* of its socket; lives as long as the image */
	uint32_t timeout_ms;
};

/* The hook of POLICY; false when it has none. */
bool policy_hook(const struct policy_image *image, policy_index policy, struct policy_hook *out);

/* What becomes of VERDICT, which asks_hook. */
struct verdict policy_hooked(const struct policy_image *image, policy_index policy,
			     const struct verdict *verdict, enum hook_answer answer);

/* Switches that the resolver asks for outside a verdict. */
bool policy_strips_ech(const struct policy_image *image, policy_index policy);

/* Addresses of a static name (`hosts:`), at most MAX; returns their number, 0 when there are none. */
size_t policy_static_addresses(const struct policy_image *image, const struct name *name,
			       struct address *out, size_t max);

/*
 * False for names that are answered here and never sent upstream unless a forwarder, `hosts` or an allow
 * list names them: special-use and private names, single labels (rules/special-names.txt).
 */
bool policy_name_is_public(const struct policy_image *image, const struct name *name);
