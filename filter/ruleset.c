/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory of operation of the rules; docs/theory-of-operation.md has the picture.
 *
 * The mangle table decides, the filter table carries out. In mangle a governed packet gets a mark:
 * from its connection, from a static rule, or from the gate. The filter table lets `allowed` and
 * `watched` pass, rejects `refused`, and drops what has no state or was queued and not read.
 *
 * Chains (PF-INSTANCE-…):
 *
 *   out     OUTPUT of both tables: who is governed. A connection of ours stays governed whoever
 *           holds its socket, also when nobody does any more: the kernel sends what a closed socket
 *           left behind, and such packets have no owner. For the same reason filter looks at the
 *           mark first: a packet may outlive its socket while it waits in the queue.
 *   gov     the way of a governed packet
 *   new     mangle: what has no state yet
 *   floor   one rule a row; v4 rows in IPv6 stand in e0, e1, … behind one jump for each form
 *   infra   returns for the ports that are infrastructure, refuses all else
 *   nd      IPv6 neighbour discovery, router solicitation and MLD; link: only to this link
 *   save    POSTROUTING and INPUT of mangle: the state goes to the connection
 *   ref     the refusal: in mangle a mark, in filter the REJECT, which the connection remembers
 *
 * Notices. In mangle only the floor leads to `ref`, in filter the floor and the mark `refused`. So
 * who gets there without that mark is refused by the static floor and by nobody before: a copy of
 * its headers goes to the gate by NFLOG, which has its audit line from there. A copy decides
 * nothing, and without a gate it is not made.
 *
 * Owners. `--uid-owner A-B` is true for packets of a socket that a process of that uid opened. It
 * is false for the kernel's own packets (resets, ICMP errors, tunnels, in-kernel clients): those
 * are not a client's, and a negated match would catch them. The one in-kernel socket that acts for
 * a client is an MPTCP subflow; the option is taken off a governed SYN, so that there are none.
 *
 * Directions. Replies are never judged: a client governs itself in what it accepts. A connection
 * has its direction from its first packet, so a SYN in reply direction (a simultaneous open, or a
 * connection that conntrack picked up from a stray packet) is dropped.
 *
 * Text is what iptables-save prints, so that filter/apply.c can compare: addresses with their
 * length, `-m tcp` and `-m udp` spelled out, marks in hexadecimal without leading zeros.
 */

#include "filter/ruleset.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"
#include "notice.h"
#include "rules/floor.h"

/*
 * "The TCP payload is empty" for xt_bpf, which sees the packet from its network header on. The
 * length is that of the packet (BPF_LEN), not of a header field, so a super-packet is never taken
 * for empty.
 *
 *   IPv4                                IPv6, TCP right behind the header
 *   ldxb 4*([0]&0xf)                    ldb [6]
 *   ldb  [x+12]      data offset        jeq  #6, 0, 7
 *   rsh  #4                             ldb  [52]
 *   lsh  #2          in octets          rsh  #4
 *   add  x                              lsh  #2
 *   tax              both headers       add  #40
 *   ld   len                            tax
 *   jeq  x, 0, 1                        ld   len
 *   ret  #65535                         jeq  x, 0, 1
 *   ret  #0                             ret  #65535
 *                                       ret  #0
 */
#define EMPTY_IPV4                                                                                 \
	"10,177 0 0 0,80 0 0 12,116 0 0 4,100 0 0 2,12 0 0 0,7 0 0 0,128 0 0 0,29 0 1 0,"          \
	"6 0 0 65535,6 0 0 0"
#define EMPTY_IPV6                                                                                 \
	"11,48 0 0 6,21 0 8 6,48 0 0 52,116 0 0 4,100 0 0 2,4 0 0 40,7 0 0 0,128 0 0 0,29 0 1 0,"  \
	"6 0 0 65535,6 0 0 0"

/*
 * "The UDP payload begins with a short header of QUIC" (RFC 9000 section 17.3): of a connection whose
 * ClientHello was judged there is nothing to read in it. A payload that is empty, or behind an
 * extension header of IPv6, is no match.
 *
 *   IPv4                                IPv6, UDP right behind the header
 *   ldxb 4*([0]&0xf)                    ldb  [6]
 *   ldb  [x+8]       first octet        jeq  #17, 0, 3
 *   jset #0x80, 1, 0                    ldb  [48]
 *   ret  #65535                         jset #0x80, 1, 0
 *   ret  #0                             ret  #65535
 *                                       ret  #0
 */
#define SHORT_IPV4 "5,177 0 0 0,80 0 0 8,69 1 0 128,6 0 0 65535,6 0 0 0"
#define SHORT_IPV6 "6,48 0 0 6,21 0 3 17,48 0 0 48,69 1 0 128,6 0 0 65535,6 0 0 0"

#define MPTCP_OPTION 30 /* RFC 8684 section 3 */

/* Where IPv6 carries an IPv4 address, as in rules/embedding.h. */
struct form {
	uint8_t head[16], mask[16]; /* what is not the address */
	uint8_t at[4];              /* the octets that are */
	uint8_t flip;               /* every octet of it is xored with this */
};

/* clang-format off */
static const struct form forms[] = {
	{{[10] = 0xff, [11] = 0xff},	/* mapped ::ffff:0:0/96 */
	 {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, {12, 13, 14, 15}, 0},
	{{[1] = 0x64, [2] = 0xff, [3] = 0x9b},	/* 64:ff9b::/96 */
	 {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, {12, 13, 14, 15}, 0},
	{{0},	/* compatible ::/96 */
	 {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, {12, 13, 14, 15}, 0},
	{{[8] = 0xff, [9] = 0xff},	/* translated ::ffff:0:0:0/96 */
	 {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, {12, 13, 14, 15}, 0},
	{{0, 0x64, 0xff, 0x9b, 0, 1},	/* 64:ff9b:1::/48, the four layouts of RFC 6052 section 2.2 */
	 {255, 255, 255, 255, 255, 255}, {12, 13, 14, 15}, 0},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, {255, 255, 255, 255, 255, 255, [8] = 255}, {6, 7, 9, 10}, 0},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, {255, 255, 255, 255, 255, 255, [8] = 255}, {7, 9, 10, 11}, 0},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, {255, 255, 255, 255, 255, 255, [8] = 255}, {9, 10, 11, 12}, 0},
	{{0x20, 0x02}, {255, 255}, {2, 3, 4, 5}, 0},	/* 6to4 */
	{{0x20, 0x01}, {255, 255, 255, 255}, {4, 5, 6, 7}, 0},	/* Teredo: server */
	{{0x20, 0x01}, {255, 255, 255, 255}, {12, 13, 14, 15}, 0xff},	/* Teredo: client */
	{{[10] = 0x5e, [11] = 0xfe}, {[8] = 0xfd, 255, 255, 255}, {12, 13, 14, 15}, 0},	/* ISATAP */
};
/* clang-format on */
#define FORMS (sizeof(forms) / sizeof(forms[0]))

struct writer {
	const struct ruleset *set;
	bool ipv6;
	char *data;
	size_t length, capacity;
	bool failed;
	/* of the mask: those of a state, those that connections have, and all that the rules use */
	uint32_t states, saved, bits;
};

#define PROBLEM(...) (snprintf(problem, size, __VA_ARGS__), -EINVAL)

static bool text_is(const char *text, const char *extra)
{
	for (; *text != '\0'; text++) {
		char c = *text;
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      strchr(extra, c) != NULL))
			return false;
	}
	return true;
}

static int check_selector(const struct ruleset *set, const struct ruleset_selector *selector,
			  char *problem, size_t size)
{
	if (set->hook == HOOK_FORWARD) {
		if (selector->interface[0] == '\0')
			return PROBLEM("a client without an input interface");
		if (memchr(selector->interface, '\0', sizeof(selector->interface)) == NULL ||
		    !text_is(selector->interface, "._:@+-"))
			return PROBLEM("a name of an interface has other characters than letters, "
				       "digits and ._:@+-");
		return 0;
	}
	if (!selector->by_uid && !selector->by_cgroup)
		return PROBLEM("a client without uid and cgroup");
	if (selector->by_uid &&
	    (selector->uid_first > selector->uid_last || selector->uid_last == UINT32_MAX))
		return PROBLEM("%u-%u is no range of uids", selector->uid_first,
			       selector->uid_last);
	if (selector->by_cgroup &&
	    (memchr(selector->cgroup_path, '\0', sizeof(selector->cgroup_path)) == NULL ||
	     selector->cgroup_path[0] == '\0' || !text_is(selector->cgroup_path, "._:@/+-")))
		return PROBLEM("a path of a cgroup has other characters than letters, digits and "
			       "._:@/+-");
	return 0;
}

int ruleset_check(const struct ruleset *set, char *problem, size_t size)
{
	uint32_t low = set->mark_mask == 0 ? 0 : set->mark_mask >> __builtin_ctz(set->mark_mask);

	if (memchr(set->instance, '\0', sizeof(set->instance)) == NULL ||
	    set->instance[0] == '\0' || !text_is(set->instance, "_-"))
		return PROBLEM("an instance is up to %d letters, digits, '-' and '_'",
			       RULESET_INSTANCE_MAX);
	if ((low & ((1u << MARK_BITS) - 1)) != (1u << MARK_BITS) - 1)
		return PROBLEM("mark_mask 0x%08x has no %d adjacent bits", set->mark_mask,
			       MARK_BITS);
	if (set->hook == HOOK_FORWARD && set->selector_count == 0)
		return PROBLEM("hook `forward` governs nothing without an interface");
	if (set->selector_count > RULESET_SELECTORS_MAX ||
	    set->resolver_count > SETTINGS_LISTEN_MAX || set->floor_count > RULESET_FLOOR_MAX)
		return PROBLEM("too many clients, resolver sockets or floor addresses");
	if (set->exempt && set->exempt_uid == UINT32_MAX)
		return PROBLEM("%u is no uid", set->exempt_uid);
	for (size_t i = 0; i < set->selector_count; i++)
		if (check_selector(set, &set->selectors[i], problem, size) != 0)
			return -EINVAL;
	return 0;
}

static void reserve(struct writer *writer, size_t more)
{
	size_t capacity = writer->capacity;
	char *data;

	if (writer->failed || writer->capacity - writer->length > more)
		return;
	while (capacity - writer->length <= more)
		capacity = capacity == 0 ? 16384 : capacity * 2;
	data = realloc(writer->data, capacity);
	if (data == NULL) {
		writer->failed = true;
		return;
	}
	writer->data = data;
	writer->capacity = capacity;
}

__attribute__((format(printf, 2, 0))) static void add_list(struct writer *writer,
							   const char *format, va_list arguments)
{
	va_list again;
	int length;

	va_copy(again, arguments);
	length = vsnprintf(NULL, 0, format, again);
	va_end(again);
	reserve(writer, (size_t)length + 1);
	if (writer->failed)
		return;
	vsnprintf(writer->data + writer->length, (size_t)length + 1, format, arguments);
	writer->length += (size_t)length;
}

__attribute__((format(printf, 2, 3))) static void add(struct writer *writer, const char *format,
						      ...)
{
	va_list arguments;

	va_start(arguments, format);
	add_list(writer, format, arguments);
	va_end(arguments);
}

/* One rule of our chain PART: matches, if any, and how it ends. */
__attribute__((format(printf, 3, 4))) static void rule(struct writer *writer, const char *part,
						       const char *format, ...)
{
	va_list arguments;

	add(writer, "-A PF-%s-%s ", writer->set->instance, part);
	va_start(arguments, format);
	add_list(writer, format, arguments);
	va_end(arguments);
	add(writer, "\n");
}

/* " -j" or " -g" to our chain PART. */
#define OWN          "PF-%s-%s"
#define OWN_OF(part) writer->set->instance, part

/* A match of a state that is still good, or of any at all. */
#define STATE           "-m mark --mark 0x%x/0x%x"
#define STATE_OF(state) mark_value(writer->set->mark_mask, state), writer->saved
#define ANY_STATE       "-m mark ! --mark 0x0/0x%x"

#define SET_STATE           "-j MARK --set-xmark 0x%x/0x%x"
#define SET_STATE_OF(state) mark_value(writer->set->mark_mask, state), writer->bits

#define SYN_OF_A_REPLY                                                                             \
	"-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -m conntrack --ctdir REPLY -j DROP"
#define A_REPLY "-m conntrack --ctdir REPLY -j RETURN"

static const char *empty_payload(const struct writer *writer)
{
	return writer->ipv6 ? EMPTY_IPV6 : EMPTY_IPV4;
}

static const char *icmp(const struct writer *writer)
{
	return writer->ipv6 ? "ipv6-icmp" : "icmp";
}

/* The length of MASK when its ones are at its front, else -1. */
static int mask_length(const uint8_t *mask, size_t size)
{
	int length = 0;
	bool ended = false;

	for (size_t bit = 0; bit < size * 8; bit++) {
		bool one = mask[bit / 8] >> (7 - bit % 8) & 1;
		if (one && ended)
			return -1;
		ended = !one;
		length += one;
	}
	return length;
}

/* "ADDRESS/LENGTH", or "ADDRESS/MASK" for a mask with gaps, into TEXT (2 * ADDRESS_TEXT_SIZE). */
static const char *masked_text(const uint8_t address[16], const uint8_t mask[16], char *text)
{
	char one[ADDRESS_TEXT_SIZE], two[ADDRESS_TEXT_SIZE];
	struct address a = address_from_bytes(address, 16), m = address_from_bytes(mask, 16);
	int length = mask_length(mask, 16);

	if (length >= 0)
		snprintf(text, 2 * ADDRESS_TEXT_SIZE, "%s/%d", address_format(&a, one), length);
	else
		snprintf(text, 2 * ADDRESS_TEXT_SIZE, "%s/%s", address_format(&a, one),
			 address_format(&m, two));
	return text;
}

/* "ADDRESS/LENGTH" also for a single address, as iptables-save writes it. */
static const char *prefix_text(const struct prefix *prefix, char *text)
{
	char address[ADDRESS_TEXT_SIZE];

	snprintf(text, 2 * ADDRESS_TEXT_SIZE, "%s/%u", address_format(&prefix->address, address),
		 prefix->length);
	return text;
}

/* A prefix of IPv4 in one form of IPv6; with length 0 the form itself. */
static const char *form_text(const struct form *form, const struct prefix *prefix, char *text)
{
	uint8_t address[16], mask[16];

	memcpy(address, form->head, sizeof(address));
	memcpy(mask, form->mask, sizeof(mask));
	for (unsigned i = 0; i < 4; i++) {
		unsigned bits = prefix->length <= i * 8       ? 0
				: prefix->length >= i * 8 + 8 ? 8
							      : prefix->length - i * 8;
		uint8_t part = (uint8_t)(0xff00u >> bits);
		mask[form->at[i]] = part;
		address[form->at[i]] = (prefix->address.bytes[i] ^ form->flip) & part;
	}
	return masked_text(address, mask, text);
}

/* The rows. Calls ROW with what the built-in floor and the operator's additions say. */
static void each_floor(struct writer *writer,
		       void (*row)(struct writer *, const struct prefix *, uint16_t, const void *),
		       const void *context)
{
	size_t count;
	const struct floor_address *floor = floor_addresses(&count);

	for (size_t i = 0; i < count; i++)
		if (floor[i].kind == FLOOR_FLOOR)
			row(writer, &floor[i].prefix, floor[i].tcp_port, context);
	for (size_t i = 0; i < writer->set->floor_count; i++)
		row(writer, &writer->set->floor[i].prefix, writer->set->floor[i].tcp_port, context);
}

static void floor_rule(struct writer *writer, const char *part, const char *destination,
		       uint16_t tcp_port)
{
	if (tcp_port == 0)
		rule(writer, part, "-d %s -j " OWN, destination, OWN_OF("infra"));
	else
		rule(writer, part, "-d %s -p tcp -m tcp --dport %u -j " OWN, destination, tcp_port,
		     OWN_OF("ref"));
}

static void row_plain(struct writer *writer, const struct prefix *prefix, uint16_t tcp_port,
		      const void *context)
{
	char text[2 * ADDRESS_TEXT_SIZE];
	enum address_family family = writer->ipv6 ? ADDRESS_IPV6 : ADDRESS_IPV4;
	(void)context;

	if (prefix->address.family == family)
		floor_rule(writer, "floor", prefix_text(prefix, text), tcp_port);
}

static void row_in_form(struct writer *writer, const struct prefix *prefix, uint16_t tcp_port,
			const void *context)
{
	const struct form *form = context;
	char text[2 * ADDRESS_TEXT_SIZE], part[8];

	if (prefix->address.family != ADDRESS_IPV4)
		return;
	snprintf(part, sizeof(part), "e%zu", (size_t)(form - forms));
	floor_rule(writer, part, form_text(form, prefix, text), tcp_port);
}

static void add_ports(struct writer *writer, const char *protocol, const uint16_t *ports,
		      size_t count)
{
	char text[128];
	size_t length = 0;

	for (size_t i = 0; i < count; i++)
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%u",
					   i == 0 ? "" : ",", ports[i]);
	rule(writer, "infra", "-p %s -m multiport --dports %s -j RETURN", protocol, text);
}

/* floor, infra, e0…: in both tables; `ref` is where they end. */
static void add_floor(struct writer *writer)
{
	static const uint16_t tcp[] = FLOOR_TCP_INFRASTRUCTURE, udp[] = FLOOR_UDP_INFRASTRUCTURE;
	static const struct prefix everything = {.length = 0};
	char text[2 * ADDRESS_TEXT_SIZE], part[8];

	each_floor(writer, row_plain, NULL);
	for (size_t i = 0; writer->ipv6 && i < FORMS; i++) {
		snprintf(part, sizeof(part), "e%zu", i);
		rule(writer, "floor", "-d %s -j " OWN, form_text(&forms[i], &everything, text),
		     OWN_OF(part));
		each_floor(writer, row_in_form, &forms[i]);
	}
	add_ports(writer, "tcp", tcp, sizeof(tcp) / sizeof(tcp[0]));
	add_ports(writer, "udp", udp, sizeof(udp) / sizeof(udp[0]));
	rule(writer, "infra", "-j " OWN, OWN_OF("ref"));
}

static bool address_is_unspecified(const struct address *address)
{
	static const uint8_t zeros[16];

	return memcmp(address->bytes, zeros, sizeof(zeros)) == 0;
}

/* DNS to the resolver's sockets is allowed. */
static void add_resolvers(struct writer *writer)
{
	static const char *const protocols[] = {"udp", "tcp"};
	enum address_family family = writer->ipv6 ? ADDRESS_IPV6 : ADDRESS_IPV4;

	for (size_t i = 0; i < writer->set->resolver_count; i++) {
		const struct endpoint *socket = &writer->set->resolvers[i];
		struct prefix prefix = {.address = socket->address,
					.length = (uint8_t)address_bits(&socket->address)};
		char text[2 * ADDRESS_TEXT_SIZE];
		if (socket->address.family != family)
			continue;
		prefix_text(&prefix, text);
		for (int j = 0; j < 2; j++) {
			const char *protocol = protocols[j];
			if (address_is_unspecified(&socket->address))
				rule(writer, "new",
				     "-p %s -m %s --dport %u -m addrtype --dst-type "
				     "LOCAL " SET_STATE,
				     protocol, protocol, socket->port, SET_STATE_OF(MARK_ALLOWED));
			else
				rule(writer, "new", "-d %s -p %s -m %s --dport %u " SET_STATE, text,
				     protocol, protocol, socket->port, SET_STATE_OF(MARK_ALLOWED));
		}
	}
}

/* What a network cannot do without, and only as far as this link goes. */
static void add_link(struct writer *writer)
{
	static const uint8_t types[] = {130, 131, 132, 133, 134, 135, 136, 143};
	static const char *const here[] = {"-d fe80::/10", "-d ff02::/16",
					   "-m addrtype --dst-type LOCAL"};

	if (writer->ipv6) {
		rule(writer, "new", "-p ipv6-icmp -j " OWN, OWN_OF("nd"));
		for (size_t i = 0; i < sizeof(types); i++)
			rule(writer, "nd", "-p ipv6-icmp -m icmp6 --icmpv6-type %u -j " OWN,
			     types[i], OWN_OF("link"));
		for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++)
			rule(writer, "link", "%s " SET_STATE, here[i], SET_STATE_OF(MARK_ALLOWED));
	}
	if (writer->set->hook != HOOK_FORWARD)
		return;
	/* The lease of a machine behind the interface, from a server on this host. */
	if (writer->ipv6) {
		rule(writer, "new",
		     "-d ff02::1:2/128 -p udp -m udp --sport 546 --dport 547 " SET_STATE,
		     SET_STATE_OF(MARK_ALLOWED));
		return;
	}
	rule(writer, "new",
	     "-p udp -m udp --sport 68 --dport 67 -m addrtype --dst-type LOCAL " SET_STATE,
	     SET_STATE_OF(MARK_ALLOWED));
	rule(writer, "new",
	     "-p udp -m udp --sport 68 --dport 67 -m addrtype --dst-type BROADCAST " SET_STATE,
	     SET_STATE_OF(MARK_ALLOWED));
}

/* One rule for each selector: who goes to `gov`. */
static void add_selectors(struct writer *writer)
{
	const struct ruleset *set = writer->set;

	if (set->exempt)
		rule(writer, "out", "-m owner --uid-owner %u -j RETURN", set->exempt_uid);
	if (set->selector_count == 0)
		rule(writer, "out", "-m owner --uid-owner %u-%u -g " OWN, set->govern_all ? 0 : 1,
		     UINT32_MAX - 1, OWN_OF("gov"));
	for (size_t i = 0; i < set->selector_count; i++) {
		const struct ruleset_selector *selector = &set->selectors[i];
		if (selector->by_uid && selector->uid_first == selector->uid_last)
			rule(writer, "out", "-m owner --uid-owner %u -g " OWN, selector->uid_first,
			     OWN_OF("gov"));
		else if (selector->by_uid)
			rule(writer, "out", "-m owner --uid-owner %u-%u -g " OWN,
			     selector->uid_first, selector->uid_last, OWN_OF("gov"));
		if (selector->by_cgroup) {
			const char *quote = text_is(selector->cgroup_path, "_-") ? "" : "\"";
			rule(writer, "out", "-m cgroup --path %s%s%s -g " OWN, quote,
			     selector->cgroup_path, quote, OWN_OF("gov"));
		}
	}
}

/* The jumps into PART from HOOK: one, or one for each interface. In reverse, each to the front. */
static void add_jumps(struct writer *writer, const char *hook, const char *part, bool by_interface)
{
	const struct ruleset *set = writer->set;

	if (!by_interface) {
		add(writer, "-I %s 1 -j " OWN "\n", hook, OWN_OF(part));
		return;
	}
	for (size_t i = set->selector_count; i-- > 0;)
		add(writer, "-I %s 1 -i %s -j " OWN "\n", hook, set->selectors[i].interface,
		    OWN_OF(part));
}

static void add_chains(struct writer *writer, const char *const *parts)
{
	for (; *parts != NULL; parts++)
		add(writer, ":" OWN " - [0:0]\n", OWN_OF(*parts));
}

static void add_floor_chains(struct writer *writer)
{
	for (size_t i = 0; writer->ipv6 && i < FORMS; i++)
		add(writer, ":PF-%s-e%zu - [0:0]\n", writer->set->instance, i);
}

/* The group is the queue's number; iptables-save leaves out that it is 0. */
static void add_notice(struct writer *writer)
{
	char group[32] = "";

	if (writer->set->queue != 0)
		snprintf(group, sizeof(group), " --nflog-group %u", writer->set->queue);
	rule(writer, "ref",
	     "-m mark ! --mark 0x%x/0x%x -j NFLOG --nflog-prefix " NOTICE_PREFIX
	     "%s --nflog-size %u",
	     STATE_OF(MARK_REFUSED), group, NOTICE_SIZE);
}

static void add_mangle_gov(struct writer *writer)
{
	uint32_t again = mark_value(writer->set->mark_mask, (enum mark_state)MARK_AGAIN);

	/* Who comes in from outside with an address of this host would be the client `host`. The
	 * kernel drops such packets by itself in IPv4 alone. */
	if (writer->set->hook == HOOK_FORWARD)
		rule(writer, "gov", "-m addrtype --src-type LOCAL -j DROP");
	rule(writer, "gov", SYN_OF_A_REPLY);
	rule(writer, "gov", A_REPLY);
	rule(writer, "gov", "-j MARK --set-xmark 0x0/0x%x", writer->bits);
	rule(writer, "gov", "-j CONNMARK --restore-mark --nfmask 0x%x --ctmask 0x%x", writer->saved,
	     writer->saved);
	/* The client uses a port again whose refused connection conntrack and the server still
	 * have. Its SYN goes to the gate; octets on it do not pass (nfq/judge.c). Before
	 * `new`, whose refusals are of the packet itself. */
	rule(writer, "gov",
	     "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN " STATE
	     " -j MARK --set-xmark 0x%x/0x%x",
	     STATE_OF(MARK_REFUSED), mark_value(writer->set->mark_mask, MARK_WATCHED),
	     writer->states);
	rule(writer, "gov", STATE " -j " OWN, STATE_OF(MARK_NONE), OWN_OF("new"));
	rule(writer, "gov", "-m mark --mark 0x%x/0x%x -j " OWN, again, again, OWN_OF("new"));
	rule(writer, "gov", STATE " -j RETURN", STATE_OF(MARK_ALLOWED));
	rule(writer, "gov", STATE " -j RETURN", STATE_OF(MARK_REFUSED));
	rule(writer, "gov",
	     "-p %s -m conntrack --ctstate RELATED -m mark ! --mark 0x0/0x%x -j RETURN",
	     icmp(writer), writer->states);
	rule(writer, "gov",
	     "-p tcp -m tcp --tcp-flags SYN,URG NONE " STATE " -m bpf --bytecode \"%s\" -j RETURN",
	     STATE_OF(MARK_WATCHED), empty_payload(writer));
	rule(writer, "gov", "-p udp " STATE " -m bpf --bytecode \"%s\" -j RETURN",
	     STATE_OF(MARK_WATCHED), writer->ipv6 ? SHORT_IPV6 : SHORT_IPV4);
	rule(writer, "gov",
	     "-p tcp -m tcp --tcp-option %d --tcp-flags SYN SYN -j TCPOPTSTRIP --strip-options %d",
	     MPTCP_OPTION, MPTCP_OPTION);
	rule(writer, "gov", "-j MARK --set-xmark 0x%x/0x%x",
	     mark_value(writer->set->mark_mask, (enum mark_state)MARK_QUEUED),
	     mark_value(writer->set->mark_mask, (enum mark_state)MARK_QUEUED));
	rule(writer, "gov", "-j NFQUEUE --queue-num %u", writer->set->queue);
}

/* Whose connection is one of ours is governed, and so is whom the selectors tell. */
static void add_out(struct writer *writer, bool by_mark)
{
	if (writer->set->hook != HOOK_OUTPUT)
		return;
	if (by_mark)
		rule(writer, "out", "-m mark ! --mark 0x0/0x%x -g " OWN, writer->bits,
		     OWN_OF("gov"));
	rule(writer, "out", "-m connmark ! --mark 0x0/0x%x -m conntrack --ctdir ORIGINAL -g " OWN,
	     writer->states, OWN_OF("gov"));
	add_selectors(writer);
}

static void add_mangle(struct writer *writer)
{
	static const char *const output[] = {"out",   "gov", "new",  "floor",
					     "infra", "ref", "save", NULL};
	static const char *const forward[] = {"gov", "new", "floor", "infra", "ref", "save", NULL};
	static const char *const link[] = {"nd", "link", NULL};
	bool is_output = writer->set->hook == HOOK_OUTPUT;

	add(writer, "*mangle\n");
	add_chains(writer, is_output ? output : forward);
	if (writer->ipv6)
		add_chains(writer, link);
	add_floor_chains(writer);
	add_out(writer, false);
	add_mangle_gov(writer);
	rule(writer, "new", "-j " OWN, OWN_OF("floor"));
	rule(writer, "new", STATE " -j RETURN", STATE_OF(MARK_REFUSED));
	add_resolvers(writer);
	add_link(writer);
	add_floor(writer);
	add_notice(writer);
	rule(writer, "ref", SET_STATE, SET_STATE_OF(MARK_REFUSED));
	rule(writer, "save",
	     ANY_STATE
	     " -m conntrack --ctdir ORIGINAL -j CONNMARK --save-mark --nfmask 0x%x --ctmask 0x%x",
	     writer->states, writer->saved, writer->saved);
	if (is_output)
		add_jumps(writer, "OUTPUT", "out", false);
	else
		add_jumps(writer, "PREROUTING", "gov", true);
	add_jumps(writer, "POSTROUTING", "save", false);
	if (!is_output)
		add_jumps(writer, "INPUT", "save", true);
	add(writer, "COMMIT\n");
}

static void add_filter_gov(struct writer *writer)
{
	uint32_t queued = mark_value(writer->set->mark_mask, (enum mark_state)MARK_QUEUED);

	rule(writer, "gov", SYN_OF_A_REPLY);
	rule(writer, "gov", A_REPLY);
	rule(writer, "gov", "-m conntrack ! --ctstate ESTABLISHED -j " OWN, OWN_OF("floor"));
	rule(writer, "gov", "-m mark --mark 0x%x/0x%x -j DROP", queued, queued);
	rule(writer, "gov",
	     "-p tcp -m conntrack --ctstate ESTABLISHED " STATE
	     " -m tcp --tcp-flags RST RST -m bpf --bytecode \"%s\" -j RETURN",
	     STATE_OF(MARK_REFUSED), empty_payload(writer));
	rule(writer, "gov", STATE " -j " OWN, STATE_OF(MARK_REFUSED), OWN_OF("ref"));
	rule(writer, "gov", STATE " -j DROP", STATE_OF(MARK_NONE));
}

static void add_filter(struct writer *writer)
{
	static const char *const output[] = {"out", "gov", "floor", "infra", "ref", NULL};
	static const char *const forward[] = {"gov", "floor", "infra", "ref", NULL};
	bool is_output = writer->set->hook == HOOK_OUTPUT;

	add(writer, "*filter\n");
	add_chains(writer, is_output ? output : forward);
	add_floor_chains(writer);
	add_out(writer, true);
	add_filter_gov(writer);
	add_floor(writer);
	add_notice(writer);
	rule(writer, "ref", SET_STATE, SET_STATE_OF(MARK_REFUSED));
	rule(writer, "ref", "-j CONNMARK --save-mark --nfmask 0x%x --ctmask 0x%x", writer->saved,
	     writer->saved);
	rule(writer, "ref", "-p tcp -j REJECT --reject-with tcp-reset");
	rule(writer, "ref", "-j REJECT --reject-with %s",
	     writer->ipv6 ? "icmp6-adm-prohibited" : "icmp-admin-prohibited");
	/* What REJECT does not answer: broadcasts, resets, fragments of errors. */
	rule(writer, "ref", "-j DROP");
	if (is_output) {
		add_jumps(writer, "OUTPUT", "out", false);
	} else {
		add_jumps(writer, "INPUT", "gov", true);
		add_jumps(writer, "FORWARD", "gov", true);
	}
	add(writer, "COMMIT\n");
}

char *ruleset_text(const struct ruleset *ruleset, enum address_family family)
{
	struct writer writer = {
		.set = ruleset,
		.ipv6 = family == ADDRESS_IPV6,
		.states = mark_value(ruleset->mark_mask, (enum mark_state)MARK_STATES),
		.saved =
			mark_value(ruleset->mark_mask, (enum mark_state)(MARK_STATES | MARK_AGAIN)),
		.bits = mark_value(ruleset->mark_mask,
				   (enum mark_state)(MARK_STATES | MARK_QUEUED | MARK_AGAIN)),
	};

	/* Tables are committed one by one: first the one that drops what nobody judged. */
	add_filter(&writer);
	add_mangle(&writer);
	if (writer.failed) {
		free(writer.data);
		return NULL;
	}
	return writer.data;
}
