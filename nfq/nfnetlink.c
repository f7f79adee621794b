/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/nfnetlink.h"

#include <errno.h>
#include <sys/socket.h>

struct mnl_socket *nfnetlink_open(int bytes)
{
	struct mnl_socket *netlink = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	int error;

	if (netlink == NULL)
		return NULL;
	if (mnl_socket_bind(netlink, 0, MNL_SOCKET_AUTOPID) < 0) {
		error = errno;
		mnl_socket_close(netlink);
		errno = error;
		return NULL;
	}
	/* Outside the first user namespace only the bounded form is granted. */
	int fd = mnl_socket_get_fd(netlink);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return netlink;
}

int nfnetlink_configure(struct mnl_socket *netlink, struct nlmsghdr *header)
{
	uint8_t answer[8192];
	unsigned portid = mnl_socket_get_portid(netlink);
	int run;

	header->nlmsg_flags |= NLM_F_ACK;
	if (mnl_socket_sendto(netlink, header, header->nlmsg_len) < 0)
		return -errno;
	do {
		/* A packet that came first is passed over; its sender repeats it. */
		ssize_t received = mnl_socket_recvfrom(netlink, answer, sizeof(answer));
		if (received < 0 && errno != ENOSPC)
			return -errno;
		run = received < 0 ? MNL_CB_OK
				   : mnl_cb_run(answer, (size_t)received, 0, portid, NULL, NULL);
	} while (run > MNL_CB_STOP);
	/* For an error message mnl_cb_run() gives -1 and the kernel's errno. */
	return run < 0 ? -errno : 0;
}

int nfnetlink_receive(struct mnl_socket *netlink, struct iovec parts[NFNETLINK_BATCH],
		      mnl_cb_t take, void *context)
{
	struct mmsghdr batch[NFNETLINK_BATCH];
	struct sockaddr_nl senders[NFNETLINK_BATCH];

	for (int i = 0; i < NFNETLINK_BATCH; i++)
		batch[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &senders[i],
							.msg_namelen = sizeof(senders[i]),
							.msg_iov = &parts[i],
							.msg_iovlen = 1}};
	int received =
		recvmmsg(mnl_socket_get_fd(netlink), batch, NFNETLINK_BATCH, MSG_DONTWAIT, NULL);
	if (received < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (int i = 0; i < received; i++) {
		/* Only the kernel, port 0, is listened to. */
		if (batch[i].msg_hdr.msg_namelen != sizeof(senders[i]) || senders[i].nl_pid != 0 ||
		    (batch[i].msg_hdr.msg_flags & MSG_TRUNC) != 0)
			continue;
		mnl_cb_run(parts[i].iov_base, batch[i].msg_len, 0, mnl_socket_get_portid(netlink),
			   take, context);
	}
	return received;
}
