/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/tcp.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "settings.h"

#define IPV6_NETWORK_OCTETS 8 /* RFC 4291 section 2.5.1: interfaces are told apart below /64 */

/*
 * A slot of the table is a connection while `stream` is set. A path holds slot and serial number; a
 * connection that is gone has another serial or none, and the reply goes nowhere.
 *
 * A connection is closed in one place, settle(), which every handler calls last: what wants it
 * closed sets `doomed` or `ended`. So a reply that is sent from inside the reading of a query
 * cannot free what is being read.
 */
struct connection {
	struct tcp *tcp;
	struct bufferevent *stream; /* NULL: a free slot */
	struct event *idle;
	struct path path; /* what every query of it has */
	uint64_t serial;
	uint32_t outstanding; /* queries without a reply */
	bool reading;         /* inside on_read() */
	bool paused;          /* too many queries: the rest of the input waits */
	bool ended;           /* the client sends no more: close after the last reply */
	bool doomed;          /* close at once */
};

struct tcp {
	struct event_base *base;
	tcp_query *query;
	void *context;
	uint64_t serial;
	size_t listener_count;
	struct evconnlistener *listeners[SETTINGS_LISTEN_MAX];
	struct connection connections[TCP_CONNECTIONS_MAX];
};

static void close_connection(struct connection *connection)
{
	event_free(connection->idle);
	bufferevent_free(connection->stream);
	*connection = (struct connection){.tcp = connection->tcp};
}

/* Closes the connection when its time has come; the last act of every handler. */
static void settle(struct connection *connection)
{
	if (connection->reading)
		return;
	bool drained = evbuffer_get_length(bufferevent_get_output(connection->stream)) == 0;
	bool finished = connection->ended && connection->outstanding == 0 && !connection->paused;
	if (connection->doomed || (finished && drained))
		close_connection(connection);
}

static void restart_idle(struct connection *connection)
{
	const struct timeval wait = {.tv_sec = TCP_IDLE_SECONDS};
	event_add(connection->idle, &wait);
}

/* Takes one whole query off INPUT; false when there is none yet, or when the stream makes no sense.
 */
static bool take_query(struct connection *connection, struct evbuffer *input)
{
	uint8_t prefix[2], bytes[TCP_QUERY_MAX];

	if (evbuffer_copyout(input, prefix, sizeof(prefix)) != (ev_ssize_t)sizeof(prefix))
		return false;
	size_t size = (size_t)prefix[0] << 8 | prefix[1];
	if (size == 0 || size > TCP_QUERY_MAX) {
		connection->doomed = true;
		return false;
	}
	if (evbuffer_get_length(input) < sizeof(prefix) + size)
		return false;
	evbuffer_drain(input, sizeof(prefix));
	evbuffer_remove(input, bytes, size);
	connection->outstanding++;
	restart_idle(connection);
	connection->tcp->query(connection->tcp->context, &connection->path, bytes, size);
	return true;
}

static void on_read(struct bufferevent *stream, void *context)
{
	struct connection *connection = context;
	struct evbuffer *input = bufferevent_get_input(stream);

	if (connection->reading)
		return;
	connection->reading = true;
	while (!connection->doomed && connection->outstanding < TCP_PIPELINE_MAX &&
	       take_query(connection, input))
		continue;
	connection->reading = false;
	connection->paused = connection->outstanding >= TCP_PIPELINE_MAX;
	if (connection->paused)
		bufferevent_disable(stream, EV_READ);
	settle(connection);
}

static void on_written(struct bufferevent *stream, void *context)
{
	(void)stream;
	settle(context);
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	struct connection *connection = context;

	(void)stream;
	if ((what & BEV_EVENT_EOF) != 0)
		connection->ended = true;
	else
		connection->doomed = true;
	settle(connection);
}

static void on_idle(evutil_socket_t fd, short events, void *context)
{
	struct connection *connection = context;

	(void)fd;
	(void)events;
	connection->doomed = true;
	settle(connection);
}

/* A link of IPv6 gives each of its hosts as many addresses as it wants: its network is one client. */
static bool is_same_client(const struct address *a, const struct address *b)
{
	if (a->family == ADDRESS_IPV6 && b->family == ADDRESS_IPV6)
		return memcmp(a->bytes, b->bytes, IPV6_NETWORK_OCTETS) == 0;
	return address_equal(a, b);
}

static struct connection *find_slot(struct tcp *tcp, const struct address *client)
{
	struct connection *free_slot = NULL;
	size_t same = 0;

	for (size_t i = 0; i < TCP_CONNECTIONS_MAX; i++) {
		struct connection *connection = &tcp->connections[i];
		if (connection->stream == NULL)
			free_slot = free_slot == NULL ? connection : free_slot;
		else
			same += is_same_client(&connection->path.client.address, client);
	}
	return same < TCP_CONNECTIONS_PER_CLIENT_MAX ? free_slot : NULL;
}

/* The interface the connection came in by: the kernel keeps it as packet information of the socket.
 */
static uint32_t interface_of(int fd, int family)
{
	const int on = 1;
	union {
		char bytes[256];
		struct cmsghdr align;
	} control = {{0}};
	socklen_t length = sizeof(control);
	bool ipv4 = family == AF_INET;
	struct msghdr header = {.msg_control = &control};

	if (setsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6, ipv4 ? IP_PKTINFO : IPV6_RECVPKTINFO,
		       &on, sizeof(on)) != 0 ||
	    getsockopt(fd, ipv4 ? IPPROTO_IP : IPPROTO_IPV6,
		       ipv4 ? IP_PKTOPTIONS : IPV6_2292PKTOPTIONS, &control, &length) != 0)
		return 0;
	header.msg_controllen = length;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&header); c != NULL; c = CMSG_NXTHDR(&header, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return (uint32_t)info.ipi_ifindex;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;
			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return info.ipi6_ifindex;
		}
	}
	return 0;
}

static int open_connection(struct connection *connection, int fd)
{
	struct tcp *tcp = connection->tcp;

	connection->idle = evtimer_new(tcp->base, on_idle, connection);
	if (connection->idle == NULL)
		return -ENOMEM;
	connection->stream = bufferevent_socket_new(tcp->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (connection->stream == NULL) {
		event_free(connection->idle);
		connection->idle = NULL;
		return -ENOMEM;
	}
	connection->serial = connection->path.serial = ++tcp->serial;
	bufferevent_setcb(connection->stream, on_read, on_written, on_event, connection);
	bufferevent_setwatermark(connection->stream, EV_READ, 0, 2 + TCP_QUERY_MAX);
	restart_idle(connection);
	if (bufferevent_enable(connection->stream, EV_READ | EV_WRITE) != 0) {
		connection->doomed = true;
		settle(connection);
	}
	return 0;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_length, void *context)
{
	struct tcp *tcp = context;
	struct sockaddr_storage local;
	socklen_t length = sizeof(local);
	struct path path = {.protocol = IPPROTO_TCP, .tcp = tcp};

	(void)listener;
	(void)peer_length;
	if (endpoint_from_sockaddr(peer, &path.client) == 0 &&
	    getsockname(fd, (struct sockaddr *)&local, &length) == 0 &&
	    endpoint_from_sockaddr((struct sockaddr *)&local, &path.server) == 0) {
		struct connection *connection = find_slot(tcp, &path.client.address);
		if (connection != NULL) {
			path.interface = interface_of(fd, peer->sa_family);
			path.slot = (uint32_t)(connection - tcp->connections);
			connection->path = path;
			if (open_connection(connection, fd) == 0)
				return;
		}
	}
	close(fd);
}

struct tcp *tcp_new(struct event_base *base, tcp_query *query, void *context)
{
	struct tcp *tcp = calloc(1, sizeof(*tcp));

	if (tcp == NULL)
		return NULL;
	tcp->base = base;
	tcp->query = query;
	tcp->context = context;
	for (size_t i = 0; i < TCP_CONNECTIONS_MAX; i++)
		tcp->connections[i].tcp = tcp;
	return tcp;
}

void tcp_free(struct tcp *tcp)
{
	for (size_t i = 0; i < tcp->listener_count; i++)
		evconnlistener_free(tcp->listeners[i]);
	for (size_t i = 0; i < TCP_CONNECTIONS_MAX; i++)
		if (tcp->connections[i].stream != NULL)
			close_connection(&tcp->connections[i]);
	free(tcp);
}

int tcp_listen(struct tcp *tcp, int fd)
{
	if (tcp->listener_count == SETTINGS_LISTEN_MAX)
		return -ENOSPC;
	struct evconnlistener *listener =
		evconnlistener_new(tcp->base, on_accept, tcp,
				   LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, SOMAXCONN, fd);
	if (listener == NULL)
		return errno != 0 ? -errno : -ENOMEM;
	tcp->listeners[tcp->listener_count++] = listener;
	return 0;
}

static struct connection *connection_of(const struct path *path)
{
	struct connection *connection = &path->tcp->connections[path->slot];

	return connection->stream != NULL && connection->serial == path->serial ? connection : NULL;
}

/* One query less; reading goes on when it had stopped. */
static void answered(struct connection *connection)
{
	connection->outstanding--;
	if (connection->paused) {
		if (!connection->ended)
			bufferevent_enable(connection->stream, EV_READ);
		/* What is in the buffer already makes no event by itself. */
		bufferevent_trigger(connection->stream, EV_READ, BEV_TRIG_DEFER_CALLBACKS);
	}
	settle(connection);
}

void tcp_send(const struct path *path, const uint8_t *bytes, size_t size)
{
	struct connection *connection = connection_of(path);
	const uint8_t prefix[2] = {(uint8_t)(size >> 8), (uint8_t)size};

	if (connection == NULL)
		return;
	struct evbuffer *output = bufferevent_get_output(connection->stream);
	if (evbuffer_get_length(output) + size > TCP_OUTPUT_MAX ||
	    evbuffer_expand(output, sizeof(prefix) + size) != 0) {
		connection->doomed = true;
	} else {
		evbuffer_add(output, prefix, sizeof(prefix));
		evbuffer_add(output, bytes, size);
		restart_idle(connection);
	}
	answered(connection);
}

void tcp_drop(const struct path *path)
{
	struct connection *connection = connection_of(path);

	if (connection != NULL)
		answered(connection);
}
