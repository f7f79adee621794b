/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/queue.h"

/*
 * Theory. One netlink socket carries packets in and verdicts out. Packets are received in batches
 * by recvmmsg(), each message with one packet; a verdict is a message of its own (a batch verdict
 * would cover all lower ids, held ones too), and the messages of one batch go out in one send: the
 * kernel reads them one after the other. A verdict that the kernel has no packet for any more is
 * answered with an error message, which is read with the packets and counted by nobody: the packet
 * went with its interface.
 *
 * NFQA_CFG_F_FAIL_OPEN is never set: what does not fit is dropped.
 */

/* Before the kernel's headers, which then leave out what it defines. */
#include <netinet/in.h>

#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include <libmnl/libmnl.h>
/* Behind its own header of constants. */
#include <libnetfilter_queue/libnetfilter_queue.h>

#include "nfq/limits.h"
#include "nfq/nfnetlink.h"

/* A whole packet and its attributes: headers, uid, gid, marks, interfaces, time, hardware address.
 */
#define MESSAGE_SIZE (QUEUE_COPY + 1u + 1024u)

/* Verdicts that are collected before they are sent; 44 octets each. */
#define VERDICTS_SIZE 32768u
#define VERDICT_ROOM  128u

static struct mnl_socket *netlink;
static uint16_t queue_number;
static uint32_t mask;

static_assert(QUEUE_BATCH == NFNETLINK_BATCH, "a batch is a batch");
static uint8_t messages[QUEUE_BATCH][MESSAGE_SIZE];
static char verdicts[VERDICTS_SIZE];
static size_t verdicts_used;
static int verdict_error;

static struct interface {
	uint32_t index; /* 0: unused */
	uint64_t read;  /* when `name` was */
	char name[IF_NAMESIZE];
} interfaces[INTERFACES_MAX];

static int configure_queue(void)
{
	char buffer[512];
	struct nlmsghdr *header;
	uint32_t flags = NFQA_CFG_F_GSO | NFQA_CFG_F_UID_GID;
	int error;

	/* Long without effect, and so a question whether we may configure queues at all. */
	header = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, queue_number);
	nfq_nlmsg_cfg_put_cmd(header, AF_INET, NFQNL_CFG_CMD_PF_BIND);
	error = nfnetlink_configure(netlink, header);
	if (error < 0)
		return error;
	header = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, queue_number);
	nfq_nlmsg_cfg_put_cmd(header, AF_UNSPEC, NFQNL_CFG_CMD_BIND);
	error = nfnetlink_configure(netlink, header);
	if (error < 0) /* -EPERM: the queue is another socket's */
		return error == -EPERM ? -EBUSY : error;
	header = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, queue_number);
	nfq_nlmsg_cfg_put_params(header, NFQNL_COPY_PACKET, QUEUE_COPY);
	mnl_attr_put_u32(header, NFQA_CFG_FLAGS, htonl(flags));
	mnl_attr_put_u32(header, NFQA_CFG_MASK, htonl(flags | NFQA_CFG_F_FAIL_OPEN));
	nfq_nlmsg_cfg_put_qmaxlen(header, QUEUE_LENGTH);
	return nfnetlink_configure(netlink, header);
}

static const char *text_of(int error)
{
	switch (error) {
	case -EBUSY:
		return "another program has it";
	case -EPERM:
	case -EACCES:
		return "CAP_NET_ADMIN is missing";
	case -EPROTONOSUPPORT:
	case -EINVAL:
	case -EOPNOTSUPP:
		return "the kernel has no NFQUEUE (nfnetlink_queue)";
	default:
		return strerror(-error);
	}
}

int queue_open(uint16_t number, uint32_t mark_mask, char *problem, size_t size)
{
	int error;

	queue_number = number;
	mask = mark_mask;
	netlink = nfnetlink_open(QUEUE_RECEIVE_BUFFER);
	if (netlink == NULL) {
		error = -errno;
		snprintf(problem, size, "queue %u: %s", number, text_of(error));
		return error;
	}
	error = configure_queue();
	if (error < 0)
		snprintf(problem, size, "queue %u: %s", number, text_of(error));
	return error;
}

int queue_fd(void)
{
	return mnl_socket_get_fd(netlink);
}

struct receiver {
	void (*take)(void *context, const struct arrival *arrival);
	void *context;
};

static int packet_callback(const struct nlmsghdr *header, void *data)
{
	struct receiver *receiver = data;
	struct nlattr *attributes[NFQA_MAX + 1] = {NULL};
	struct arrival arrival = {.whole = true};

	if (nfq_nlmsg_parse(header, attributes) < 0 || attributes[NFQA_PACKET_HDR] == NULL)
		return MNL_CB_OK;
	const struct nfqnl_msg_packet_hdr *packet =
		mnl_attr_get_payload(attributes[NFQA_PACKET_HDR]);

	arrival.id = ntohl(packet->packet_id);
	if (attributes[NFQA_PAYLOAD] != NULL) {
		arrival.bytes = mnl_attr_get_payload(attributes[NFQA_PAYLOAD]);
		arrival.length = mnl_attr_get_payload_len(attributes[NFQA_PAYLOAD]);
	}
	if (attributes[NFQA_CAP_LEN] != NULL)
		arrival.whole = ntohl(mnl_attr_get_u32(attributes[NFQA_CAP_LEN])) <= arrival.length;
	if (attributes[NFQA_SKB_INFO] != NULL)
		arrival.merged =
			(ntohl(mnl_attr_get_u32(attributes[NFQA_SKB_INFO])) & NFQA_SKB_GSO) != 0;
	if (attributes[NFQA_MARK] != NULL)
		arrival.mark = ntohl(mnl_attr_get_u32(attributes[NFQA_MARK]));
	if (attributes[NFQA_IFINDEX_INDEV] != NULL)
		arrival.interface = ntohl(mnl_attr_get_u32(attributes[NFQA_IFINDEX_INDEV]));
	if (attributes[NFQA_UID] != NULL) {
		arrival.uid_known = true;
		arrival.uid = ntohl(mnl_attr_get_u32(attributes[NFQA_UID]));
	}
	arrival.mark_state = mark_state(mask, arrival.mark);
	arrival.again = mark_again(mask, arrival.mark);
	receiver->take(receiver->context, &arrival);
	return MNL_CB_OK;
}

int queue_receive(void (*take)(void *context, const struct arrival *arrival), void *context)
{
	struct iovec parts[QUEUE_BATCH];
	struct receiver receiver = {.take = take, .context = context};

	for (int i = 0; i < QUEUE_BATCH; i++)
		parts[i] = (struct iovec){.iov_base = messages[i], .iov_len = MESSAGE_SIZE};
	return nfnetlink_receive(netlink, parts, packet_callback, &receiver);
}

void queue_verdict(uint32_t id, enum sink_action action, uint32_t mark_before,
		   enum mark_state state)
{
	if (verdicts_used + VERDICT_ROOM > sizeof(verdicts)) {
		int error = queue_flush();
		if (error < 0)
			verdict_error = error;
	}
	struct nlmsghdr *header =
		nfq_nlmsg_put(verdicts + verdicts_used, NFQNL_MSG_VERDICT, queue_number);

	nfq_nlmsg_verdict_put(header, (int)id, action == SINK_ACCEPT ? NF_ACCEPT : NF_DROP);
	if (action == SINK_ACCEPT)
		nfq_nlmsg_verdict_put_mark(header, mark_with(mark_before, mask, state));
	verdicts_used += MNL_ALIGN(header->nlmsg_len);
}

int queue_flush(void)
{
	int error = verdict_error;

	if (verdicts_used > 0 && mnl_socket_sendto(netlink, verdicts, verdicts_used) < 0)
		error = -errno;
	verdicts_used = 0;
	verdict_error = 0;
	return error;
}

const char *queue_interface_name(uint32_t index, uint64_t now)
{
	struct interface *interface = &interfaces[index % INTERFACES_MAX];
	struct ifreq request = {.ifr_ifindex = (int)index};

	if (interface->index == index && now - interface->read < INTERFACE_REMEMBERED_MS)
		return interface->name;
	if (ioctl(queue_fd(), SIOCGIFNAME, &request) < 0)
		return NULL;
	interface->index = index;
	interface->read = now;
	memcpy(interface->name, request.ifr_name, sizeof(interface->name));
	interface->name[sizeof(interface->name) - 1] = '\0';
	return interface->name;
}
