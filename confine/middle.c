/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "confine/middle.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "confine/descriptors.h"
#include "confine/netlink.h"
#include "confine/sysctl.h"
#include "confine/wire.h"
#include "daemon/parent.h"
#include "daemon/report.h"

#define DNS_PORT 53

int middle_configure(struct config *config, const struct plan *plan)
{
	struct resolver_settings *resolver = &config->settings.resolver;
	const struct endpoint listen[2] = {{.address = plan->v4.in, .port = DNS_PORT},
					   {.address = plan->v6.in, .port = DNS_PORT}};
	size_t families = plan->ipv6 ? 2 : 1;

	int error = config_set_listen(config, listen, families);
	/* By its interface, so that its IPv4 and IPv6 addresses share their pins. */
	if (error == 0)
		error = config_set_client(config, "run", PLAN_IN);
	if (error != 0)
		return error;
	resolver->networks[0] = plan->v4.governed;
	resolver->networks[1] = plan->v6.governed;
	resolver->network_count = (uint32_t)families;
	if (!plan->ipv6)
		resolver->ipv6 = 0;
	config->settings.gate.hook = HOOK_FORWARD;
	config->gate_enabled = true;
	config->control_socket[0] = '\0'; /* nobody outside needs to talk to a run */
	return 0;
}

/* A router between two links, which believes nobody about routes and source addresses. */
static int become_router(bool ipv6)
{
	static const char *const settings[][2] = {
		{"net/ipv4/conf/all/rp_filter", "1"},
		{"net/ipv4/conf/default/rp_filter", "1"},
		{"net/ipv4/conf/all/accept_redirects", "0"},
		{"net/ipv4/conf/all/send_redirects", "0"},
		/* A source route changes the destination behind the rules that looked at it. */
		{"net/ipv4/conf/all/accept_source_route", "0"},
		{"net/ipv4/ip_forward", "1"},
		{"net/ipv6/conf/default/accept_ra", "0"},
		{"net/ipv6/conf/all/forwarding", "1"},
	};
	int error = 0;

	for (size_t i = 0; error == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		if (ipv6 || strncmp(settings[i][0], "net/ipv6", 8) != 0)
			error = sysctl_write(settings[i][0], settings[i][1]);
	return error;
}

static int configure_link(struct netlink *netlink, const struct plan *plan, int inner)
{
	int error = netlink_up(netlink, "lo");

	if (error == 0)
		error = netlink_veth(netlink, PLAN_IN, PLAN_COMMAND, inner);
	if (error == 0)
		error = netlink_up(netlink, PLAN_IN);
	if (error == 0)
		error = netlink_address(netlink, PLAN_IN, &plan->v4.in, plan->v4.length);
	if (error == 0 && plan->ipv6)
		error = netlink_address(netlink, PLAN_IN, &plan->v6.in, plan->v6.length);
	return error;
}

static int make_link(const struct plan *plan, int inner_pid)
{
	char path[64];
	struct netlink netlink;

	snprintf(path, sizeof(path), "/proc/%d/ns/net", inner_pid);
	int inner = open(path, O_RDONLY | O_CLOEXEC);
	if (inner < 0)
		return -errno;
	int error = netlink_open(&netlink);
	if (error == 0) {
		error = configure_link(&netlink, plan, inner);
		netlink_close(&netlink);
	}
	close(inner);
	return error;
}

/* Up to the moment when COMMAND's link stands; false with a line printed. */
static bool set_up(const struct middle_options *options)
{
	const struct plan *plan = &options->uplink->plan;
	struct wire wire;
	char problem[256];

	if (unshare(CLONE_NEWNET) < 0) {
		report("cannot make a network namespace: %s", strerror(errno));
		return false;
	}
	if (wire_send(options->socket, WIRE_SEPARATE, 0) != 0 ||
	    wire_expect(options->socket, WIRE_CONNECT, &wire) != 0)
		return false; /* the runner has said why, or is dead */
	int error = become_router(plan->ipv6);
	if (error == 0)
		error = make_link(plan, wire.value);
	if (error != 0) {
		report("cannot set up the network of the run: %s", strerror(-error));
		return false;
	}
	if (options->uplink->kind->configure(options->uplink, options->lifetime, problem,
					     sizeof(problem)) != 0) {
		report("%s", problem);
		return false;
	}
	error = middle_configure(options->config, plan);
	if (error != 0) {
		report("cannot configure the run: %s", strerror(-error));
		return false;
	}
	return wire_send(options->socket, WIRE_LINKED, 0) == 0;
}

/* The terminal, and what COMMAND reads and writes, are none of our business. */
static void detach(const struct middle_options *options)
{
	const int *its = options->uplink->descriptors;
	int keep[4 + UPLINK_DESCRIPTORS] = {options->socket, options->lifetime, options->ready,
					    options->audit};
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	memcpy(keep + 4, its, UPLINK_DESCRIPTORS * sizeof(*its));
	setsid();
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	descriptors_keep(keep, sizeof(keep) / sizeof(keep[0]));
}

int middle_run(const struct middle_options *options)
{
	struct settings *settings = &options->config->settings;
	bool denied_alone = options->audit > 0 && !settings->log_allowed;
	int status = 2;

	detach(options);
	if (denied_alone)
		settings->log_allowed = 1;
	if (set_up(options)) {
		const struct parent_options parent = {
			.config = options->config,
			.libexec = options->libexec,
			.ready_fd = options->ready,
			.lifetime_fd = options->lifetime,
			.manage_rules = true,
			.copy_fd = options->audit,
			.copy_allowed_alone = denied_alone,
			.own_namespace = true,
		};
		status = parent_run(&parent) == 0 ? 0 : 2;
	}
	options->uplink->kind->close(options->uplink);
	return status;
}
