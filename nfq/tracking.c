/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/tracking.h"

/*
 * Theory. One socket lists connections, the kernel picking those of a state; the other changes
 * them, many in one message. Changes are not acknowledged: an error comes without being asked for,
 * and that of a connection which has ended meanwhile is none. The new mark goes with a mask, so that
 * the kernel changes one bit and nobody else's mark is lost.
 */

/* Before the kernel's headers, which then leave out what it defines. */
#include <netinet/in.h>

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "marks.h"
#include "nfq/nfnetlink.h"

/* Answers are small and few: a list comes as fast as it is read. */
#define TRACKING_RECEIVE_BUFFER (1 << 20)
/* A list that changed while it was read is read again, so often. */
#define LIST_ATTEMPTS 4

/* One change: headers, a tuple of two addresses, zone and marks. */
#define CHANGE_ROOM  256u
#define CHANGES_SIZE 32768u

static struct mnl_socket *lists, *changes;
static char pending[CHANGES_SIZE];
static size_t pending_used;
static int change_error;

struct wish {
	uint32_t mark, mask; /* which connections */
	uint32_t again;      /* the bit to set; 0: none */
};

int tracking_open(char *problem, size_t size)
{
	lists = nfnetlink_open(TRACKING_RECEIVE_BUFFER);
	changes = lists == NULL ? NULL : nfnetlink_open(TRACKING_RECEIVE_BUFFER);
	if (changes != NULL)
		return 0;
	int error = -errno;
	snprintf(problem, size, "connection tracking: %s", strerror(-error));
	return error;
}

static struct nlmsghdr *put_header(char *at, uint16_t type, uint16_t flags, uint8_t family)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(at);
	struct nfgenmsg *general = mnl_nlmsg_put_extra_header(header, sizeof(*general));

	header->nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type);
	header->nlmsg_flags = NLM_F_REQUEST | flags;
	general->nfgen_family = family;
	general->version = NFNETLINK_V0;
	general->res_id = 0;
	return header;
}

/* Sends the changes that wait, and hears what went wrong with them. */
static void flush_changes(void)
{
	static uint8_t answers[16384];
	int fd = mnl_socket_get_fd(changes);

	if (pending_used > 0 && mnl_socket_sendto(changes, pending, pending_used) < 0)
		change_error = -errno;
	pending_used = 0;
	for (;;) {
		ssize_t got = recv(fd, answers, sizeof(answers), MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			if (got < 0 && errno != EAGAIN)
				change_error = -errno;
			return;
		}
		if (mnl_cb_run(answers, (size_t)got, 0, mnl_socket_get_portid(changes), NULL,
			       NULL) < 0 &&
		    errno != ENOENT)
			change_error = -errno;
	}
}

static void put_change(const struct wish *wish, uint8_t family, const struct nlattr *tuple,
		       const struct nlattr *zone)
{
	if (mnl_attr_get_payload_len(tuple) > CHANGE_ROOM / 2 ||
	    (zone != NULL && mnl_attr_get_payload_len(zone) > sizeof(uint32_t))) {
		change_error = -EMSGSIZE;
		return;
	}
	if (pending_used + CHANGE_ROOM > sizeof(pending))
		flush_changes();
	struct nlmsghdr *header = put_header(pending + pending_used, IPCTNL_MSG_CT_NEW, 0, family);

	mnl_attr_put(header, CTA_TUPLE_ORIG | NLA_F_NESTED, mnl_attr_get_payload_len(tuple),
		     mnl_attr_get_payload(tuple));
	if (zone != NULL)
		mnl_attr_put(header, CTA_ZONE, mnl_attr_get_payload_len(zone),
			     mnl_attr_get_payload(zone));
	mnl_attr_put_u32(header, CTA_MARK, htonl(wish->again));
	mnl_attr_put_u32(header, CTA_MARK_MASK, htonl(wish->again));
	pending_used += MNL_ALIGN(header->nlmsg_len);
}

struct found {
	const struct nlattr *tuple, *zone;
	uint32_t mark;
};

static int attribute_callback(const struct nlattr *attribute, void *data)
{
	struct found *found = data;

	switch (mnl_attr_get_type(attribute)) {
	case CTA_TUPLE_ORIG:
		found->tuple = attribute;
		break;
	case CTA_ZONE:
		found->zone = attribute;
		break;
	case CTA_MARK:
		if (mnl_attr_validate(attribute, MNL_TYPE_U32) >= 0)
			found->mark = ntohl(mnl_attr_get_u32(attribute));
		break;
	default:
		break;
	}
	return MNL_CB_OK;
}

static int connection_callback(const struct nlmsghdr *header, void *data)
{
	const struct wish *wish = data;
	const struct nfgenmsg *general = mnl_nlmsg_get_payload(header);
	struct found found = {.mark = 0};

	if (header->nlmsg_len < mnl_nlmsg_size(sizeof(*general)) ||
	    mnl_attr_parse(header, sizeof(*general), attribute_callback, &found) < 0)
		return MNL_CB_OK;
	if (wish->again != 0 && found.tuple != NULL && (found.mark & wish->mask) == wish->mark)
		put_change(wish, general->nfgen_family, found.tuple, found.zone);
	return MNL_CB_OK;
}

/* Calls for each connection of WISH. 0 or negative errno. */
static int list(struct wish *wish)
{
	static uint8_t answer[65536];
	struct nlmsghdr *header =
		put_header((char *)answer, IPCTNL_MSG_CT_GET, NLM_F_DUMP, AF_UNSPEC);
	int run;

	mnl_attr_put_u32(header, CTA_MARK, htonl(wish->mark));
	mnl_attr_put_u32(header, CTA_MARK_MASK, htonl(wish->mask));
	if (mnl_socket_sendto(lists, header, header->nlmsg_len) < 0)
		return -errno;
	do {
		ssize_t got = mnl_socket_recvfrom(lists, answer, sizeof(answer));
		if (got < 0)
			return -errno;
		run = mnl_cb_run(answer, (size_t)got, 0, mnl_socket_get_portid(lists),
				 connection_callback, wish);
	} while (run > MNL_CB_STOP);
	return run < 0 ? -errno : 0;
}

int tracking_check(void)
{
	/* every bit that can be set: hardly a connection */
	struct wish wish = {.mark = UINT32_MAX, .mask = UINT32_MAX};
	int error = list(&wish);

	return error == -EINTR ? 0 : error;
}

int tracking_ask_again(uint32_t mark_mask)
{
	static const enum mark_state states[] = {MARK_ALLOWED, MARK_WATCHED};
	int error = 0;

	change_error = 0;
	for (size_t i = 0; error == 0 && i < sizeof(states) / sizeof(states[0]); i++) {
		struct wish wish = {
			.mark = mark_value(mark_mask, states[i]),
			.mask = mark_value(mark_mask, (enum mark_state)MARK_STATES),
			.again = mark_value(mark_mask, (enum mark_state)MARK_AGAIN),
		};
		error = -EINTR;
		for (int attempt = 0; error == -EINTR && attempt < LIST_ATTEMPTS; attempt++)
			error = list(&wish);
	}
	flush_changes();
	return error != 0 ? error : change_error;
}
