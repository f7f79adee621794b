/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The least that an NFQUEUE program can do: accept every packet of one queue, one verdict each.
 * What it costs is what the kernel path costs; tests/bench/connect.sh measures Pinfold against it.
 *
 *     accept-all QUEUE
 */

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As much of a packet as is copied: all of it, so that the comparison with a reader is fair. */
#define COPY_RANGE     0xffffu
#define QUEUE_LENGTH   8192u
#define RECEIVE_BUFFER (COPY_RANGE + 8192u)

struct queue {
	struct mnl_socket *socket;
	uint16_t number;
};

static int verdict(const struct nlmsghdr *header, void *context)
{
	const struct queue *queue = context;
	struct nlattr *attributes[NFQA_MAX + 1] = {NULL};
	char buffer[256];

	if (nfq_nlmsg_parse(header, attributes) < 0 || attributes[NFQA_PACKET_HDR] == NULL)
		return MNL_CB_ERROR;
	const struct nfqnl_msg_packet_hdr *packet =
		mnl_attr_get_payload(attributes[NFQA_PACKET_HDR]);
	struct nlmsghdr *reply = nfq_nlmsg_put(buffer, NFQNL_MSG_VERDICT, queue->number);
	nfq_nlmsg_verdict_put(reply, (int)ntohl(packet->packet_id), NF_ACCEPT);
	if (mnl_socket_sendto(queue->socket, reply, reply->nlmsg_len) < 0)
		return MNL_CB_ERROR;
	return MNL_CB_OK;
}

static int configure(const struct queue *queue)
{
	char buffer[256];
	struct nlmsghdr *message = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, queue->number);
	nfq_nlmsg_cfg_put_cmd(message, AF_INET, NFQNL_CFG_CMD_BIND);
	if (mnl_socket_sendto(queue->socket, message, message->nlmsg_len) < 0)
		return -errno;

	message = nfq_nlmsg_put(buffer, NFQNL_MSG_CONFIG, queue->number);
	nfq_nlmsg_cfg_put_params(message, NFQNL_COPY_PACKET, COPY_RANGE);
	nfq_nlmsg_cfg_put_qmaxlen(message, QUEUE_LENGTH);
	mnl_attr_put_u32(message, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO));
	mnl_attr_put_u32(message, NFQA_CFG_MASK, htonl(NFQA_CFG_F_GSO));
	return mnl_socket_sendto(queue->socket, message, message->nlmsg_len) < 0 ? -errno : 0;
}

static int run(struct queue *queue)
{
	static char buffer[RECEIVE_BUFFER];
	unsigned port = mnl_socket_get_portid(queue->socket);

	for (;;) {
		ssize_t length = mnl_socket_recvfrom(queue->socket, buffer, sizeof(buffer));
		if (length < 0 && errno == ENOBUFS)
			continue; /* overflow: the packets are dropped, the program goes on */
		if (length < 0)
			return -errno;
		if (mnl_cb_run(buffer, (size_t)length, 0, port, verdict, queue) < 0)
			return -errno;
	}
}

int main(int argc, char **argv)
{
	char *end = NULL;
	unsigned long number = argc == 2 ? strtoul(argv[1], &end, 10) : 65536;
	if (number > 65535 || *end != '\0') {
		fprintf(stderr, "usage: accept-all QUEUE\n");
		return 2;
	}
	struct queue queue = {.socket = mnl_socket_open(NETLINK_NETFILTER),
			      .number = (uint16_t)number};
	int status = -errno;
	if (queue.socket != NULL) {
		status = mnl_socket_bind(queue.socket, 0, MNL_SOCKET_AUTOPID) < 0 ? -errno : 0;
		if (status == 0)
			status = configure(&queue);
		if (status == 0)
			status = run(&queue);
		mnl_socket_close(queue.socket);
	}
	fprintf(stderr, "accept-all: %s\n", strerror(-status));
	return 1;
}
