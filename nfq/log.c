/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/log.h"

/*
 * Theory. The kernel sends each notice at once (a threshold of one) and never waits: what finds no
 * room in the socket's small buffer is gone. Notices have a sequence number, so a gap says exactly
 * how many are lost, once the next one comes.
 */

/* Before the kernel's headers, which then leave out what it defines. */
#include <netinet/in.h>

#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <stdio.h>
#include <string.h>

#include "nfq/limits.h"
#include "nfq/nfnetlink.h"
#include "notice.h"

/* The copy and its attributes: headers, prefix, uid, mark, interfaces, time, hardware header. */
#define MESSAGE_SIZE (NOTICE_SIZE + 1024u)

static struct mnl_socket *netlink;
static uint8_t messages[NFNETLINK_BATCH][MESSAGE_SIZE];
static uint32_t sequence; /* of the next notice */

static struct nlmsghdr *message_begin(char *buffer, uint16_t group)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct nfgenmsg *general;

	header->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	header->nlmsg_flags = NLM_F_REQUEST;
	general = mnl_nlmsg_put_extra_header(header, sizeof(*general));
	general->nfgen_family = AF_UNSPEC;
	general->version = NFNETLINK_V0;
	general->res_id = htons(group);
	return header;
}

static int configure_group(uint16_t group)
{
	const struct nfulnl_msg_config_cmd bind = {.command = NFULNL_CFG_CMD_BIND};
	const struct nfulnl_msg_config_mode mode = {.copy_range = htonl(NOTICE_SIZE),
						    .copy_mode = NFULNL_COPY_PACKET};
	char buffer[512];
	struct nlmsghdr *header = message_begin(buffer, group);
	int error;

	mnl_attr_put(header, NFULA_CFG_CMD, sizeof(bind), &bind);
	error = nfnetlink_configure(netlink, header);
	if (error < 0) /* -EPERM: the group is another socket's; we have a queue, so we may */
		return error == -EPERM ? -EBUSY : error;
	header = message_begin(buffer, group);
	mnl_attr_put(header, NFULA_CFG_MODE, sizeof(mode), &mode);
	/* No more room for each message than it needs. */
	mnl_attr_put_u32(header, NFULA_CFG_NLBUFSIZ, htonl(MESSAGE_SIZE));
	mnl_attr_put_u32(header, NFULA_CFG_QTHRESH, htonl(1));
	mnl_attr_put_u16(header, NFULA_CFG_FLAGS, htons(NFULNL_CFG_F_SEQ));
	return nfnetlink_configure(netlink, header);
}

static const char *text_of(int error)
{
	switch (error) {
	case -EBUSY:
		return "another program has it";
	case -EPROTONOSUPPORT:
	case -EINVAL:
	case -EOPNOTSUPP:
		return "the kernel has no NFLOG (nfnetlink_log)";
	default:
		return strerror(-error);
	}
}

int log_open(uint16_t number, char *problem, size_t size)
{
	int error;

	netlink = nfnetlink_open(LOG_RECEIVE_BUFFER);
	error = netlink == NULL ? -errno : configure_group(number);
	if (error < 0)
		snprintf(problem, size, "log group %u: %s", number, text_of(error));
	return error;
}

int log_fd(void)
{
	return mnl_socket_get_fd(netlink);
}

struct receiver {
	void (*take)(void *context, const struct arrival *notice);
	void *context;
	uint64_t lost;
};

/* What this version of the header does not know is passed over. */
static int attribute_callback(const struct nlattr *attribute, void *data)
{
	const struct nlattr **attributes = data;
	uint16_t type = mnl_attr_get_type(attribute);

	if (type <= NFULA_MAX)
		attributes[type] = attribute;
	return MNL_CB_OK;
}

static bool get_u32(const struct nlattr *attribute, uint32_t *out)
{
	if (attribute == NULL || mnl_attr_get_payload_len(attribute) < sizeof(*out))
		return false;
	*out = ntohl(mnl_attr_get_u32(attribute));
	return true;
}

static bool is_ours(const struct nlattr *prefix)
{
	return prefix != NULL && mnl_attr_get_payload_len(prefix) >= sizeof(NOTICE_PREFIX) &&
	       memcmp(mnl_attr_get_payload(prefix), NOTICE_PREFIX, sizeof(NOTICE_PREFIX)) == 0;
}

static int notice_callback(const struct nlmsghdr *header, void *data)
{
	struct receiver *receiver = data;
	const struct nlattr *attributes[NFULA_MAX + 1] = {NULL};
	struct arrival notice = {.whole = false};
	uint32_t number;

	if (header->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
	    mnl_attr_parse(header, sizeof(struct nfgenmsg), attribute_callback, attributes) < 0)
		return MNL_CB_OK;
	if (get_u32(attributes[NFULA_SEQ], &number)) {
		receiver->lost += number - sequence;
		sequence = number + 1;
	}
	if (!is_ours(attributes[NFULA_PREFIX]) || attributes[NFULA_PAYLOAD] == NULL)
		return MNL_CB_OK;
	notice.bytes = mnl_attr_get_payload(attributes[NFULA_PAYLOAD]);
	notice.length = mnl_attr_get_payload_len(attributes[NFULA_PAYLOAD]);
	get_u32(attributes[NFULA_IFINDEX_INDEV], &notice.interface);
	notice.uid_known = get_u32(attributes[NFULA_UID], &notice.uid);
	receiver->take(receiver->context, &notice);
	return MNL_CB_OK;
}

uint64_t log_receive(void (*take)(void *context, const struct arrival *notice), void *context)
{
	struct receiver receiver = {.take = take, .context = context};
	struct iovec parts[NFNETLINK_BATCH];

	for (int i = 0; i < NFNETLINK_BATCH; i++)
		parts[i] = (struct iovec){.iov_base = messages[i], .iov_len = MESSAGE_SIZE};
	/* -ENOBUFS says what the next sequence number tells exactly. */
	nfnetlink_receive(netlink, parts, notice_callback, &receiver);
	return receiver.lost;
}
