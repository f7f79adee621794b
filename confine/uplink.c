/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "confine/masquerade.h"
#include "confine/netlink.h"
#include "confine/sysctl.h"
#include "daemon/report.h"
#include "filter/tool.h"

/* In the order in which they are tried: what the host uses by default, then each by name. */
static const struct front {
	const char *restore4, *restore6, *save4, *save6;
} fronts[] = {
	{"iptables-restore", "ip6tables-restore", "iptables-save", "ip6tables-save"},
	{"iptables-nft-restore", "ip6tables-nft-restore", "iptables-nft-save",
	 "ip6tables-nft-save"},
	{"iptables-legacy-restore", "ip6tables-legacy-restore", "iptables-legacy-save",
	 "ip6tables-legacy-save"},
};
#define FRONT_COUNT ((int)(sizeof(fronts) / sizeof(fronts[0])))

static const struct front *front_of(int backend)
{
	return &fronts[backend >= 0 && backend < FRONT_COUNT ? backend : 0];
}

/* One text for each family, given to both restore programs at once. */
struct change {
	struct tool tools[2];
	int errors[2];
	char problems[2][256];
};

static void begin_change(struct change *change, int backend, bool ipv6, const char *text)
{
	const struct front *front = front_of(backend);
	const char *arguments[] = {ipv6 ? front->restore6 : front->restore4, "-w", "--noflush",
				   NULL};

	change->problems[ipv6][0] = '\0';
	change->errors[ipv6] = tool_begin(&change->tools[ipv6], arguments, text,
					  change->problems[ipv6], sizeof(change->problems[ipv6]));
}

static void end_change(struct change *change, bool ipv6)
{
	char *output = NULL;

	if (change->errors[ipv6] == 0)
		change->errors[ipv6] =
			tool_end(&change->tools[ipv6], &output, change->problems[ipv6],
				 sizeof(change->problems[ipv6]));
	free(output);
}

/* Puts our rules in or takes them out, in both families of the run. */
static void begin_rules(struct change *change, const struct uplink *uplink, bool add)
{
	char text[2048];

	*change = (struct change){.errors = {0, 0}};
	for (int ipv6 = 0; ipv6 <= uplink->plan.ipv6; ipv6++) {
		masquerade_text(&uplink->plan, ipv6, add, text, sizeof(text));
		begin_change(change, uplink->backend, ipv6, text);
	}
}

static void end_rules(struct change *change, const struct uplink *uplink)
{
	for (int ipv6 = 0; ipv6 <= uplink->plan.ipv6; ipv6++)
		end_change(change, ipv6);
}

/* Takes out what carries the tag of ID, whatever else happened to the rules meanwhile. */
static void sweep_rules(int backend, bool ipv6, const char *id)
{
	const struct front *front = front_of(backend);
	const char *arguments[] = {ipv6 ? front->save6 : front->save4, NULL};
	struct change change = {.errors = {0, 0}};
	char problem[256], tag[32];
	char *saved = NULL;

	snprintf(tag, sizeof(tag), MASQUERADE_TAG "%s", id);
	int error = tool_run(arguments, NULL, &saved, problem, sizeof(problem));
	char *text =
		error != 0 || strstr(saved, tag) == NULL ? NULL : masquerade_deletions(saved, tag);
	free(saved);
	if (text != NULL && text[0] != '\0') {
		begin_change(&change, backend, ipv6, text);
		end_change(&change, ipv6);
		if (change.errors[ipv6] != 0)
			report("cannot take the packet-filter rules of run %s away: %s", id,
			       change.problems[ipv6]);
	}
	free(text);
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
		for (int backend = 0; backend < FRONT_COUNT; backend++) {
			sweep_rules(backend, false, runs[i].id);
			sweep_rules(backend, true, runs[i].id);
		}
		remove_interface(runs[i].id);
		state_remove(state, runs[i].id);
	}
	if (!lives)
		state_restore(state);
	return lives;
}

/* A route of the host inside the /15 or over part of it takes the blocks that it covers. */
static void take_route(const struct netlink_route *route, void *context)
{
	bool *taken = context;
	const struct prefix *to = &route->destination;
	const uint8_t *b = to->address.bytes;

	if (to->address.family != ADDRESS_IPV4 || to->length < 16 || b[0] != 198 ||
	    (b[1] & 0xfe) != 18)
		return;
	uint32_t first = ((uint32_t)(b[1] & 1) << 16 | (uint32_t)b[2] << 8 | b[3]) / 8;
	uint32_t count = to->length >= 29 ? 1 : 1u << (29 - to->length);
	for (uint32_t i = first; i < first + count && i < PLAN_BLOCK_COUNT; i++)
		taken[i] = true;
}

static void note_way_out(const struct netlink_route *route, void *context)
{
	const struct prefix *to = &route->destination;
	bool local = to->length > 0 &&
		     (to->address.bytes[0] >= 0xfe || (to->address.bytes[0] & 0xfe) == 0xfc);

	if (route->gateway && !local)
		*(bool *)context = true;
	else if (to->length == 0)
		*(bool *)context = true;
}

static int choose(struct uplink *uplink, bool *taken)
{
	uint8_t random[9 + 4];
	struct netlink netlink;
	uint32_t start;
	bool ipv6 = false;

	int error = netlink_open(&netlink);
	if (error != 0)
		return error;
	error = netlink_routes(&netlink, ADDRESS_IPV4, take_route, taken);
	if (error == 0 && access("/proc/sys/net/ipv6", F_OK) == 0)
		error = netlink_routes(&netlink, ADDRESS_IPV6, note_way_out, &ipv6);
	netlink_close(&netlink);
	if (error != 0)
		return error;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	memcpy(&start, random + 9, sizeof(start));
	for (uint32_t i = 0; i < PLAN_BLOCK_COUNT; i++) {
		uint32_t block = (start % PLAN_BLOCK_COUNT + i) % PLAN_BLOCK_COUNT;
		if (taken[block])
			continue;
		plan_make(&uplink->plan, random, block);
		uplink->plan.ipv6 = ipv6;
		return 0;
	}
	return -EADDRNOTAVAIL;
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

int uplink_open(struct uplink *uplink, char *problem, size_t size)
{
	bool *taken = calloc(PLAN_BLOCK_COUNT, sizeof(*taken));

	*uplink = (struct uplink){.state = {.folder = -1, .lock = -1}, .live = -1};
	int error = taken == NULL ? -ENOMEM : state_open(&uplink->state);

	if (error == 0) {
		sweep(&uplink->state, taken);
		error = choose(uplink, taken);
	}
	if (error == 0) {
		struct state_run run = {.block = uplink->plan.block};
		memcpy(run.id, uplink->plan.id, sizeof(run.id));
		uplink->live = state_add(&uplink->state, &run);
		error = uplink->live < 0 ? uplink->live : 0;
	}
	free(taken);
	state_unlock(&uplink->state);
	if (error != 0) {
		snprintf(problem, size, "cannot record a run below /run/pinfold: %s",
			 strerror(-error));
		state_close(&uplink->state);
	}
	return error;
}

int uplink_allow(struct uplink *uplink, char *problem, size_t size)
{
	struct change change;
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
		sweep_rules(uplink->backend, true, uplink->plan.id);
	}
	if (change.errors[0] != 0) {
		uplink->backend = 0;
		return change.errors[0];
	}
	if (uplink->plan.ipv6 && change.errors[1] != 0) {
		report("no IPv6 for the command, cannot install its masquerading: %s",
		       change.problems[1]);
		uplink->plan.ipv6 = false;
	}
	return 0;
}

int uplink_connect(const struct uplink *uplink, int middle, char *problem, size_t size)
{
	const struct plan *plan = &uplink->plan;
	struct netlink netlink;
	int error = netlink_open(&netlink);

	if (error == 0) {
		error = netlink_veth(&netlink, plan->interface, PLAN_UP, middle);
		if (error == 0)
			error = netlink_up(&netlink, plan->interface);
		if (error == 0)
			error = connect_side(&netlink, plan, &plan->v4);
		if (error == 0 && plan->ipv6)
			error = connect_side(&netlink, plan, &plan->v6);
		netlink_close(&netlink);
	}
	if (error != 0)
		snprintf(problem, size, "cannot make the interface %s: %s", plan->interface,
			 strerror(-error));
	return error;
}

static int configure_side(struct netlink *netlink, const struct plan_side *side)
{
	const struct prefix all = {.length = 0};
	int error = netlink_address(netlink, PLAN_UP, &side->up, side->length);

	return error != 0 ? error : netlink_route(netlink, PLAN_UP, &all, &side->host);
}

int uplink_configure(const struct uplink *uplink, char *problem, size_t size)
{
	struct netlink netlink;
	int error = netlink_open(&netlink);

	if (error == 0) {
		error = netlink_up(&netlink, PLAN_UP);
		if (error == 0)
			error = configure_side(&netlink, &uplink->plan.v4);
		if (error == 0 && uplink->plan.ipv6)
			error = configure_side(&netlink, &uplink->plan.v6);
		netlink_close(&netlink);
	}
	if (error != 0)
		snprintf(problem, size, "cannot configure the way out: %s", strerror(-error));
	return error;
}

/* Under the lock. */
static void remove_all(struct uplink *uplink)
{
	const char *id = uplink->plan.id;
	struct change change;

	/* The short way; when another tool has taken some of them away already, it takes none. */
	begin_rules(&change, uplink, false);
	remove_interface(id);
	end_rules(&change, uplink);
	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		if (change.errors[ipv6] != 0)
			sweep_rules(uplink->backend, ipv6, id);
	state_remove(&uplink->state, id);
	if (!sweep(&uplink->state, NULL))
		state_vanish(&uplink->state);
}

void uplink_close(struct uplink *uplink)
{
	if (uplink->state.folder < 0)
		return;
	if (state_lock(&uplink->state) == 0 &&
	    faccessat(uplink->state.folder, uplink->plan.id, F_OK, 0) == 0)
		remove_all(uplink);
	state_close(&uplink->state);
	if (uplink->live >= 0)
		close(uplink->live);
	uplink->live = -1;
}
