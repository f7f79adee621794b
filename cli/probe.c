/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "address.h"

#define ANSWER_MS    1000
#define DNS_PORT     53
#define DNS_NXDOMAIN 3
#define DNS_HEADER   12

/* In the order in which they are told. '?' is drawn: letters of a label, the last number of an
 * address. */
const struct probe probes[] = {
	{.name = "metadata_name",
	 .target = "????????.metadata.google.internal",
	 .kind = PROBE_QUESTION,
	 .reason = "metadata",
	 .mend = "resolv.conf has to name Pinfold's resolver and nobody else"},
	{.name = "metadata_address",
	 .target = "169.254.169.254",
	 .kind = PROBE_TCP,
	 .port = 80,
	 .reason = "metadata",
	 .mend = "install the rules: pinfold rules install, and see pinfold rules verify"},
	{.name = "metadata_ipv6",
	 .target = "fd00:ec2::254",
	 .kind = PROBE_TCP,
	 .port = 80,
	 .reason = "metadata",
	 .mend = "the rules are missing in IPv6: pinfold rules verify"},
	{.name = "metadata_embedded",
	 .target = "64:ff9b::a9fe:a9fe",
	 .kind = PROBE_TCP,
	 .port = 80,
	 .reason = "metadata",
	 .mend = "the rules are missing in IPv6: pinfold rules verify"},
	{.name = "other_resolver",
	 .target = "192.0.2.?",
	 .kind = PROBE_UDP,
	 .port = DNS_PORT,
	 .mend = "DNS to other servers is open: no gate is asked, or the policy says udp: allow"},
	{.name = "dns_over_tls",
	 .target = "192.0.2.?",
	 .kind = PROBE_TCP,
	 .port = 853,
	 .reason = "encrypted_dns",
	 .mend = "no gate is asked: pinfold rules verify, pinfold status; or the policy opens it"},
	{.name = "dns_over_https",
	 .target = "dns.google",
	 .kind = PROBE_QUESTION,
	 .reason = "encrypted_dns",
	 .mend = "set block_encrypted_dns: true in the policy"},
	{.name = "quic",
	 .target = "192.0.2.?",
	 .kind = PROBE_UDP,
	 .port = 443,
	 .mend = "QUIC is open: no gate is asked: pinfold rules verify, pinfold status"},
	{.name = "unlisted_name",
	 .target = "????????.example.com",
	 .kind = PROBE_QUESTION,
	 .reason = "not_allowlisted",
	 .strict = true,
	 .mend = "set default: deny in the policy of this client"},
	{.name = "unlisted_address",
	 .target = "192.0.2.?",
	 .kind = PROBE_TCP,
	 .reason = "not_allowlisted",
	 .strict = true,
	 .mend = "set default: deny in the policy of this client, and see pinfold rules verify"},
};
const size_t probe_count = sizeof(probes) / sizeof(probes[0]);

static void draw(const struct probe *probe, struct probe_outcome *outcome)
{
	uint8_t random[16 + 2] = {0};
	size_t at = 0, used = 0;

	if (getrandom(random, sizeof(random), 0) < 0)
		random[0] = (uint8_t)getpid();
	for (const char *c = probe->target; *c != '\0' && at + 4 < sizeof(outcome->what); c++) {
		uint8_t byte = random[used % 16];
		if (*c != '?')
			outcome->what[at++] = *c;
		else if (probe->kind == PROBE_QUESTION)
			outcome->what[at++] = (char)('a' + byte % 26);
		else
			at += (size_t)snprintf(outcome->what + at, 4, "%u", 1u + byte % 254);
		used += *c == '?';
	}
	outcome->what[at] = '\0';
	/* Above what has a meaning, below what the system hands out. */
	outcome->port = probe->port;
	if (probe->port == 0)
		outcome->port = (uint16_t)(20000 + (random[16] << 8 | random[17]) % 10000);
	if (probe->kind == PROBE_QUESTION)
		outcome->port = 0;
}

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int open_socket(const char *text, uint16_t port, int type)
{
	struct endpoint endpoint = {.port = port};
	struct sockaddr_storage to;

	if (address_parse(text, strlen(text), &endpoint.address) != 0)
		return -EINVAL;
	unsigned length = endpoint_to_sockaddr(&endpoint, &to);
	int fd = socket(to.ss_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&to, length) < 0 && errno != EINPROGRESS) {
		int error = -errno;
		close(fd);
		return error;
	}
	return fd;
}

/* The error that the socket has, or gets within MS; 0: none. */
static int await_error(int fd, short events, int ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};
	int error = 0;
	socklen_t length = sizeof(error);

	if (poll(&poll_fd, 1, ms) <= 0)
		return 0;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? 0 : -error;
}

static bool is_nowhere(int error)
{
	return error == -ENETUNREACH || error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL;
}

static enum probe_result judge(int error, bool udp, long took)
{
	bool ours = error == -ECONNREFUSED;

	if (udp) /* admin-prohibited, from a neighbour or from our own kernel */
		ours = ours || error == -EHOSTUNREACH || error == -EACCES || error == -EPERM;
	return ours && took <= PROBE_RESET_MS ? PROBE_REFUSED : PROBE_OPEN;
}

static enum probe_result try_connection(const struct probe *probe, struct probe_outcome *outcome)
{
	bool udp = probe->kind == PROBE_UDP, ipv6 = strchr(outcome->what, ':') != NULL;
	long start = milliseconds();
	int error = 0;
	int fd = open_socket(outcome->what, outcome->port, udp ? SOCK_DGRAM : SOCK_STREAM);

	if (fd < 0) {
		/* Without IPv4 there is no network, and nothing that a check could prove. */
		outcome->error = fd;
		if (ipv6 && is_nowhere(fd))
			return PROBE_NOWHERE;
		return judge(fd, udp, milliseconds() - start);
	}
	if (udp && send(fd, "pinfold selfcheck", 17, 0) < 0)
		error = -errno;
	if (error == 0)
		error = await_error(fd, udp ? POLLIN : POLLOUT, PROBE_RESET_MS + 50);
	close(fd);
	outcome->error = error;
	return judge(error, udp, milliseconds() - start);
}

static bool find_server(char *server, size_t size)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char line[256], text[128];
	bool found = false;

	while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, " nameserver %127s", text) == 1) {
			snprintf(server, size, "%s", text);
			found = true;
		}
	if (file != NULL)
		fclose(file);
	return found;
}

/* A question of type A for NAME; its length. NAME is one of ours, so it fits. */
static size_t write_question(const char *name, uint8_t question[256])
{
	static const uint8_t head[DNS_HEADER] = {0x50, 0x46, 1, 0, 0, 1};
	static const uint8_t tail[] = {0, 0, 1, 0, 1};
	size_t at = DNS_HEADER;

	memcpy(question, head, sizeof(head));
	while (*name != '\0') {
		size_t length = strcspn(name, ".");
		question[at++] = (uint8_t)length;
		memcpy(question + at, name, length);
		at += length;
		name += length + (name[length] == '.');
	}
	memcpy(question + at, tail, sizeof(tail));
	return at + sizeof(tail);
}

static enum probe_result try_question(const struct probe_outcome *outcome)
{
	uint8_t question[256], answer[512];
	char server[128];
	enum probe_result result = PROBE_OPEN;

	if (!find_server(server, sizeof(server)))
		return PROBE_OPEN;
	int fd = open_socket(server, DNS_PORT, SOCK_DGRAM);
	if (fd < 0)
		return PROBE_OPEN;
	size_t length = write_question(outcome->what, question);
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	/* A connected socket hears the server alone. Of the answer only the header is looked at. */
	if (send(fd, question, length, 0) == (ssize_t)length && poll(&poll_fd, 1, ANSWER_MS) > 0) {
		ssize_t got = recv(fd, answer, sizeof(answer), 0);
		if (got >= DNS_HEADER && memcmp(answer, question, 2) == 0 &&
		    (answer[3] & 0x0f) == DNS_NXDOMAIN)
			result = PROBE_REFUSED;
	}
	close(fd);
	return result;
}

void probe_try(const struct probe *probe, struct probe_outcome *outcome)
{
	for (int i = 0; i < PROBE_ATTEMPTS; i++) {
		draw(probe, outcome);
		outcome->result = probe->kind == PROBE_QUESTION ? try_question(outcome)
								: try_connection(probe, outcome);
		if (outcome->result != PROBE_OPEN)
			return;
	}
}
