/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The way out through the host's kernel: a veth pair, forwarding and masquerading, which takes root.
 *
 * Everything on the host carries the run's id: the interface by its name, the rules by a comment,
 * so that a later run can sweep what a killed one left.
 *
 * Goal: while runs live, their traffic is forwarded and masqueraded, and the host is otherwise as
 * it was. The rules of the host's own table stay in force for what is not ours; ours stand before
 * them:
 *
 *   filter FORWARD   from our interface with another source address: dropped
 *                    from our interface: accepted; the run's own gate has judged it
 *                    to our interface, established or related: accepted
 *   nat POSTROUTING  from our addresses to any other interface: masqueraded
 *
 * Forwarding is switched on for all interfaces, since the kernel asks the incoming interface and
 * answers come in by any; the last run out restores it. With IPv6, accept_ra=2 keeps the default
 * route that a router advertised.
 */

#include "confine/uplink.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "confine/front.h"
#include "confine/masquerade.h"
#include "confine/netlink.h"
#include "confine/sysctl.h"
#include "daemon/report.h"

/* What uplink.descriptors holds: a flock that says that the run lives, the folder of the runs, and
 * the host's network namespace. */
enum { LIVE, FOLDER, HOST };

#define NO_FRONT (-1) /* no rules were installed */

/* Puts our rules in or takes them out, in both families of the run. */
static void begin_rules(struct front_change *change, const struct uplink *uplink, bool add)
{
	char text[2048];

	*change = (struct front_change){.errors = {0, 0}};
	for (int ipv6 = 0; ipv6 <= uplink->plan.ipv6; ipv6++) {
		masquerade_text(&uplink->plan, ipv6, add, text, sizeof(text));
		front_begin(change, uplink->backend, ipv6, text);
	}
}

static void end_rules(struct front_change *change, const struct uplink *uplink)
{
	for (int ipv6 = 0; ipv6 <= uplink->plan.ipv6; ipv6++)
		front_end(change, ipv6);
}

/*
 * Takes out what carries the tag of ID, whatever else happened to the rules meanwhile. 0; -EAGAIN when
 * there is something and it stays; another negative errno when this front end cannot say.
 */
static int sweep_rules(int backend, bool ipv6, const char *id)
{
	struct front_change change = {.errors = {0, 0}};
	char tag[32];
	char *saved;

	snprintf(tag, sizeof(tag), MASQUERADE_TAG "%s", id);
	int error = front_save(backend, ipv6, &saved);
	char *text =
		error != 0 || strstr(saved, tag) == NULL ? NULL : masquerade_deletions(saved, tag);
	free(saved);
	if (text != NULL && text[0] != '\0') {
		front_begin(&change, backend, ipv6, text);
		front_end(&change, ipv6);
		if (change.errors[ipv6] != 0) {
			report("cannot take the packet-filter rules of run %s away: %s", id,
			       change.problems[ipv6]);
			error = -EAGAIN;
		}
	}
	free(text);
	return error;
}

static void remove_interface(const char *id)
{
	struct netlink netlink;
	char name[16];

	plan_interface(id, name);
	if (netlink_open(&netlink) != 0)
		return;
	netlink_delete(&netlink, name);
	netlink_close(&netlink);
}

/* Under the lock. True when a run still lives. */
static bool sweep(struct state *state, bool *taken)
{
	static struct state_run runs[STATE_RUNS_MAX];
	size_t count = state_runs(state, runs, STATE_RUNS_MAX);
	bool lives = false;

	for (size_t i = 0; i < count; i++) {
		if (runs[i].live) {
			lives = true;
			if (taken != NULL && runs[i].block < PLAN_BLOCK_COUNT)
				taken[runs[i].block] = true;
			continue;
		}
		/* By every front end: it was killed, perhaps before it knew which one it used. */
		bool left = false;
		for (int backend = 0; backend < FRONT_COUNT; backend++)
			for (int ipv6 = 0; ipv6 < 2; ipv6++)
				if (sweep_rules(backend, ipv6, runs[i].id) == -EAGAIN)
					left = true;
		remove_interface(runs[i].id);
		if (!left)
			state_remove(state, runs[i].id);
	}
	if (!lives)
		state_restore(state);
	return lives;
}

/* Under the lock. */
static int forward_ipv6(struct state *state)
{
	char value[64], key[320];
	int error = sysctl_read("net/ipv6/conf/all/forwarding", value, sizeof(value));

	if (error != 0 || strcmp(value, "1") == 0)
		return error;
	DIR *folder = opendir("/proc/sys/net/ipv6/conf");
	if (folder == NULL)
		return -errno;
	for (struct dirent *entry; error == 0 && (entry = readdir(folder)) != NULL;) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "all") == 0)
			continue;
		snprintf(key, sizeof(key), "net/ipv6/conf/%s/accept_ra", entry->d_name);
		if (sysctl_read(key, value, sizeof(value)) == 0 && strcmp(value, "1") == 0)
			error = state_set(state, key, "2");
	}
	closedir(folder);
	return error != 0 ? error : state_set(state, "net/ipv6/conf/all/forwarding", "1");
}

static int set_forwarding(struct uplink *uplink, char *problem, size_t size)
{
	int error = state_lock(&uplink->state);

	if (error == 0)
		error = state_set(&uplink->state, "net/ipv4/ip_forward", "1");
	if (error == 0 && uplink->plan.ipv6)
		error = forward_ipv6(&uplink->state);
	state_unlock(&uplink->state);
	if (error != 0)
		snprintf(problem, size, "cannot switch forwarding on: %s", strerror(-error));
	return error;
}

static int connect_side(struct netlink *netlink, const struct plan *plan,
			const struct plan_side *side)
{
	int error = netlink_address(netlink, plan->interface, &side->host, side->length);

	return error != 0 ? error
			  : netlink_route(netlink, plan->interface, &side->governed, &side->up);
}

static void close_descriptors(struct uplink *uplink)
{
	for (size_t i = 0; i < UPLINK_DESCRIPTORS; i++) {
		if (uplink->descriptors[i] >= 0)
			close(uplink->descriptors[i]);
		uplink->descriptors[i] = -1;
	}
	state_unlock(&uplink->state);
	uplink->state.folder = -1;
}

/* Under the lock. */
static int record(struct uplink *uplink, bool *taken)
{
	struct state_run run = {.block = 0};

	sweep(&uplink->state, taken);
	int error = uplink_choose(uplink, taken);
	if (error != 0)
		return error;
	uplink->descriptors[HOST] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (uplink->descriptors[HOST] < 0)
		return -errno;
	run.block = uplink->plan.block;
	memcpy(run.id, uplink->plan.id, sizeof(run.id));
	int live = state_add(&uplink->state, &run);
	if (live < 0)
		return live;
	uplink->descriptors[LIVE] = live;
	return 0;
}

static int veth_open(struct uplink *uplink, char *problem, size_t size)
{
	bool *taken = calloc(PLAN_BLOCK_COUNT, sizeof(*taken));
	int error = taken == NULL ? -ENOMEM : state_open(&uplink->state);

	uplink->backend = NO_FRONT;
	if (error == 0) {
		uplink->descriptors[FOLDER] = uplink->state.folder;
		error = record(uplink, taken);
	}
	free(taken);
	state_unlock(&uplink->state);
	if (error != 0) {
		snprintf(problem, size, "cannot record a run below /run/pinfold: %s",
			 strerror(-error));
		close_descriptors(uplink);
	}
	return error;
}

static int veth_allow(struct uplink *uplink, char *problem, size_t size)
{
	struct front_change change;
	int error = set_forwarding(uplink, problem, size);

	if (error != 0)
		return error;
	/* A front end that is missing, or that this kernel does not take, gives way to the next. */
	for (uplink->backend = 0; uplink->backend < FRONT_COUNT; uplink->backend++) {
		begin_rules(&change, uplink, true);
		end_rules(&change, uplink);
		if (change.errors[0] == 0)
			break;
		if (uplink->backend == 0)
			snprintf(problem, size, "cannot install masquerading: %s",
				 change.problems[0]);
		sweep_rules(uplink->backend, false, uplink->plan.id);
		sweep_rules(uplink->backend, true, uplink->plan.id);
	}
	if (change.errors[0] != 0) {
		uplink->backend = NO_FRONT;
		return change.errors[0];
	}
	if (uplink->plan.ipv6 && change.errors[1] != 0) {
		report("no IPv6 for the command, cannot install its masquerading: %s",
		       change.problems[1]);
		sweep_rules(uplink->backend, true, uplink->plan.id);
		uplink->plan.ipv6 = false;
	}
	return 0;
}

static int connect_namespace(const struct plan *plan, int middle)
{
	struct netlink netlink;
	int error = netlink_open(&netlink);

	if (error != 0)
		return error;
	error = netlink_veth(&netlink, plan->interface, PLAN_UP, middle);
	if (error == 0)
		error = netlink_up(&netlink, plan->interface);
	if (error == 0)
		error = connect_side(&netlink, plan, &plan->v4);
	if (error == 0 && plan->ipv6)
		error = connect_side(&netlink, plan, &plan->v6);
	netlink_close(&netlink);
	return error;
}

static int veth_connect(struct uplink *uplink, pid_t middle, char *problem, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", middle);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error = fd < 0 ? -errno : connect_namespace(&uplink->plan, fd);
	if (fd >= 0)
		close(fd);
	if (error != 0)
		snprintf(problem, size, "cannot make the interface %s: %s", uplink->plan.interface,
			 strerror(-error));
	return error;
}

static int veth_configure(const struct uplink *uplink, int abandon, char *problem, size_t size)
{
	int error = uplink_address(&uplink->plan, true);

	(void)abandon; /* the interface is there already */

	if (error != 0)
		snprintf(problem, size, "cannot configure the way out: %s", strerror(-error));
	return error;
}

/* False when rules may have stayed. */
static bool remove_rules(const struct uplink *uplink, struct front_change *change)
{
	bool gone = true;

	end_rules(change, uplink);
	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		if (change->errors[ipv6] != 0 &&
		    sweep_rules(uplink->backend, ipv6, uplink->plan.id) != 0)
			gone = false;
	return gone;
}

/* Under the lock. */
static void remove_all(struct uplink *uplink)
{
	const char *id = uplink->plan.id;
	struct front_change change;
	bool ruled = uplink->backend != NO_FRONT;

	/* The short way; when another tool has taken some of them away already, it takes none. */
	if (ruled)
		begin_rules(&change, uplink, false);
	remove_interface(id);
	/* What stays is stale once we are dead: the next run tries again. */
	if (!ruled || remove_rules(uplink, &change))
		state_remove(&uplink->state, id);
	if (!sweep(&uplink->state, NULL))
		state_vanish(&uplink->state);
}

static void veth_close(struct uplink *uplink)
{
	if (uplink->state.folder < 0)
		return;
	if (setns(uplink->descriptors[HOST], CLONE_NEWNET) == 0 &&
	    state_lock(&uplink->state) == 0 &&
	    faccessat(uplink->state.folder, uplink->plan.id, F_OK, 0) == 0)
		remove_all(uplink);
	close_descriptors(uplink);
}

const struct uplink_kind uplink_veth = {
	.open = veth_open,
	.allow = veth_allow,
	.connect = veth_connect,
	.configure = veth_configure,
	.close = veth_close,
};
