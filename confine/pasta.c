/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The way out of an ordinary user: pasta(1), a process that holds a tap device in the middle namespace
 * and opens a socket of the host for each flow that comes out of it. It needs no privilege on the host.
 *
 *   COMMAND ── in0  middle  up0 ══ tap ══ pasta ── sockets of the host's network
 *
 * pasta starts outside of the run's user namespace and enters it and the middle network namespace by
 * itself. So its process is forked before the first is made (open) and waits for the pid that names the
 * second (connect). It forwards no port in either direction, gives nothing away by DHCP or router
 * advertisements, and --no-map-gw keeps the gateway's address from meaning the host's loopback: nothing
 * of 127.0.0.1 and ::1 of the host can be reached.
 *
 * pasta knows one address at its other end, so what leaves by PLAN_UP is masqueraded, in the middle
 * namespace. Nothing of the host changes. It dies with the runner, and the runner ends when it dies.
 *
 * Without a default route there is nowhere to go, and no pasta: COMMAND runs, its connections do not.
 */

#include "confine/uplink.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "confine/front.h"
#include "confine/netlink.h"
#include "daemon/spawn.h"
#include "filter/tool.h"

/* The packet device that pasta opens as the user. */
#define TUN "/dev/net/tun"
/* From its start to its interface; it takes some 30 ms. */
#define INTERFACE_MS 5000

#define FOLDERS "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

/* What uplink.descriptors holds: our end of the pipe on which pasta's process waits, its pidfd, and what
 * it says on standard error. */
enum { START, DEATH, SAID };

/* More than the arguments below. */
#define ARGUMENTS_MAX 48

struct arguments {
	const char *items[ARGUMENTS_MAX];
	size_t count;
};

static void add(struct arguments *arguments, const char *const *items)
{
	for (; *items != NULL && arguments->count + 1 < ARGUMENTS_MAX; items++)
		arguments->items[arguments->count++] = *items;
}

static void add_side(struct arguments *arguments, const struct plan_side *side, char *texts)
{
	char *up = texts, *host = texts + ADDRESS_TEXT_SIZE;
	const char *const items[] = {"--address", address_format(&side->up, up), "--gateway",
				     address_format(&side->host, host), NULL};

	add(arguments, items);
}

/* In the child: the program, once the pipe says which process's namespaces it is for. */
static int become(const struct uplink *uplink, const char *program, int start, int said)
{
	static const char *const common[] = {
		"pasta", "--foreground", "--quiet", "--stderr", "--no-map-gw", "--ns-ifname",
		PLAN_UP, "--dns", "none", "--no-dhcp", "--no-dhcpv6", "--no-ra",
		/* no port in or out beside the device, TCP and UDP */
		"-t", "none", "-u", "none", "-T", "none", "-U", "none", NULL};
	static const char *const ipv4_only[] = {"--ipv4-only", NULL};
	static const char *const ipv6_only[] = {"--ipv6-only", NULL};
	char *const environment[] = {NULL};
	char texts4[2 * ADDRESS_TEXT_SIZE], texts6[2 * ADDRESS_TEXT_SIZE], target[16];
	struct arguments arguments = {.count = 0};
	pid_t middle;

	if (read(start, &middle, sizeof(middle)) != sizeof(middle))
		return 0; /* the run is over before it has begun */
	snprintf(target, sizeof(target), "%d", middle);
	add(&arguments, common);
	add_side(&arguments, &uplink->plan.v4, texts4);
	add(&arguments, (const char *const[]){"--netmask", "30", NULL});
	if (uplink->ipv6)
		add_side(&arguments, &uplink->plan.v6, texts6);
	if (!uplink->ipv6)
		add(&arguments, ipv4_only);
	else if (!uplink->ipv4)
		add(&arguments, ipv6_only);
	add(&arguments, (const char *const[]){target, NULL});

	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 ||
	    dup2(said, STDERR_FILENO) < 0 ||
	    close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return errno;
	execve(program, (char *const *)(uintptr_t)arguments.items, environment);
	return errno;
}

/* Signals and session of its own, and the runner's death is its own. */
static int separate(pid_t runner)
{
	sigset_t none;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return -errno;
	if (getppid() != runner)
		return -ESRCH;
	setsid();
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

static void close_all(struct uplink *uplink)
{
	for (size_t i = 0; i < UPLINK_DESCRIPTORS; i++) {
		if (uplink->descriptors[i] >= 0)
			close(uplink->descriptors[i]);
		uplink->descriptors[i] = -1;
	}
	uplink->death = -1;
}

static int start_process(struct uplink *uplink, const char *program)
{
	int start[2];
	pid_t runner = getpid();

	uplink->descriptors[SAID] = memfd_create("pasta", MFD_CLOEXEC);
	if (uplink->descriptors[SAID] < 0 || pipe2(start, O_CLOEXEC) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		close(start[1]);
		if (separate(runner) != 0)
			_exit(126);
		int error = become(uplink, program, start[0], uplink->descriptors[SAID]);
		if (error != 0)
			dprintf(uplink->descriptors[SAID], "%s", strerror(error));
		_exit(126);
	}
	int error = pid < 0 ? -errno : 0;
	close(start[0]);
	uplink->descriptors[START] = start[1];
	if (error == 0) {
		uplink->death = uplink->descriptors[DEATH] = pidfd_open(pid, 0);
		if (uplink->death < 0)
			error = -errno; /* it ends with the pipe */
	}
	return error;
}

static void note_default(const struct netlink_route *route, void *context)
{
	if (route->destination.length == 0)
		*(bool *)context = true;
}

static int find_ways(struct uplink *uplink)
{
	struct netlink netlink;
	int error = netlink_open(&netlink);

	if (error != 0)
		return error;
	error = netlink_routes(&netlink, ADDRESS_IPV4, note_default, &uplink->ipv4);
	if (error == 0 && access("/proc/sys/net/ipv6", F_OK) == 0)
		error = netlink_routes(&netlink, ADDRESS_IPV6, note_default, &uplink->ipv6);
	netlink_close(&netlink);
	return error;
}

static int plan(struct uplink *uplink)
{
	bool *taken = calloc(PLAN_BLOCK_COUNT, sizeof(*taken));
	int error = taken == NULL ? -ENOMEM : uplink_choose(uplink, taken);

	free(taken);
	if (error == 0)
		error = find_ways(uplink);
	uplink->plan.ipv6 = uplink->ipv6;
	return error;
}

/* What a system lacks, and how it is had. */
static int find_pasta(char *program, size_t program_size, char *problem, size_t size)
{
	if (spawn_find(FOLDERS, "pasta", program, program_size) != 0) {
		snprintf(problem, size,
			 "run without root needs the program pasta (Debian's package passt), which "
			 "is "
			 "not in " FOLDERS);
		return -ENOENT;
	}
	if (access(TUN, R_OK | W_OK) == 0)
		return 0;
	int error = -errno;
	snprintf(problem, size, "run without root needs " TUN ": %s; root can allow it: %s",
		 strerror(-error), error == -ENOENT ? "modprobe tun" : "chmod 0666 " TUN);
	return error;
}

static int pasta_open(struct uplink *uplink, char *problem, size_t size)
{
	char program[64];
	int error = plan(uplink);

	if (error == 0 && !uplink->ipv4 && !uplink->ipv6)
		return 0;
	if (error == 0) {
		error = find_pasta(program, sizeof(program), problem, size);
		if (error != 0)
			return error;
		error = start_process(uplink, program);
	}
	if (error != 0) {
		snprintf(problem, size, "cannot prepare the way out: %s", strerror(-error));
		close_all(uplink);
	}
	return error;
}

/* The host's kernel sees sockets of the user and asks nothing else. */
static int pasta_allow(struct uplink *uplink, char *problem, size_t size)
{
	(void)uplink;
	(void)problem;
	(void)size;
	return 0;
}

static int pasta_connect(struct uplink *uplink, pid_t middle, char *problem, size_t size)
{
	int start = uplink->descriptors[START];

	if (start < 0 || write(start, &middle, sizeof(middle)) == sizeof(middle))
		return 0;
	int error = -errno;
	snprintf(problem, size, "cannot start pasta: %s", strerror(-error));
	return error;
}

/* What one front end or another takes; both families at once. */
static int masquerade(const struct uplink *uplink, char *problem, size_t size)
{
	static const char text[] = "*nat\n-A POSTROUTING -o " PLAN_UP " -j MASQUERADE\nCOMMIT\n";

	for (int front = 0; front < FRONT_COUNT; front++) {
		struct front_change change = {.errors = {0, 0}};
		for (int ipv6 = 0; ipv6 <= uplink->ipv6; ipv6++)
			front_begin(&change, front, ipv6, text);
		for (int ipv6 = 0; ipv6 <= uplink->ipv6; ipv6++)
			front_end(&change, ipv6);
		int failed = change.errors[0] != 0 ? 0 : 1;
		if (change.errors[failed] == 0)
			return 0;
		if (front == 0)
			snprintf(problem, size, "cannot install masquerading: %s",
				 change.problems[failed]);
	}
	return -EIO;
}

static int pasta_configure(const struct uplink *uplink, int abandon, char *problem, size_t size)
{
	if (uplink->descriptors[START] < 0)
		return 0;
	tool_own_lock();
	/* The iptables programs need some of the time that pasta needs anyway. */
	if (masquerade(uplink, problem, size) != 0)
		return -EIO;
	int error = netlink_await(PLAN_UP, INTERFACE_MS, abandon);
	if (error == 0)
		error = uplink_address(&uplink->plan, uplink->ipv4);
	if (error != 0)
		snprintf(problem, size, "cannot configure the way out: %s", strerror(-error));
	return error;
}

static void pasta_explain(const struct uplink *uplink, char *problem, size_t size)
{
	char said[256];
	ssize_t length = pread(uplink->descriptors[SAID], said, sizeof(said) - 1, 0);

	said[length > 0 ? length : 0] = '\0';
	for (char *c = said; *c != '\0'; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = c[1] == '\0' ? '\0' : ' ';
	snprintf(problem, size, "pasta ended: %s", said[0] != '\0' ? said : "it does not say why");
}

static void pasta_close(struct uplink *uplink)
{
	siginfo_t info;

	if (uplink->descriptors[DEATH] >= 0) {
		pidfd_send_signal(uplink->descriptors[DEATH], SIGKILL, NULL, 0);
		/* Not ours to collect in the middle process. */
		while (waitid(P_PIDFD, (id_t)uplink->descriptors[DEATH], &info, WEXITED) < 0 &&
		       errno == EINTR)
			;
	}
	close_all(uplink);
}

const struct uplink_kind uplink_pasta = {
	.open = pasta_open,
	.allow = pasta_allow,
	.connect = pasta_connect,
	.configure = pasta_configure,
	.explain = pasta_explain,
	.close = pasta_close,
};
