/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The first half of the query path, and what a reload does to it. Everything runs in one thread,
 * from the event loop. A query remembers where it came from and not what that meant: when the
 * policy changed while it waited, client and verdict of the question are found anew before it is
 * answered.
 */
#include "resolver/serve.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "resolver/clock.h"
#include "resolver/lookups.h"
#include "resolver/origin.h"
#include "resolver/recursion.h"
#include "resolver/respond.h"
#include "resolver/upstream.h"

/* Slots of expired pins that are freed each second. */
#define EXPIRE_STEP 4096u

struct serve {
	struct event_base *base;
	struct event *tick;
	struct serve_policy *policy;
	struct upstream *upstream;
	struct recursion *recursion;
	struct origin *origin;
	struct lookups *lookups;
	uint64_t generation; /* counts policies; theirs is the parent's and may repeat */
	struct respond respond;
};

int serve_policy_new(int settings_fd, int image_fd, struct serve_policy **out, char *problem,
		     size_t size)
{
	struct serve_policy *policy = calloc(1, sizeof(*policy));
	struct stat status;
	int error = policy == NULL ? -ENOMEM : settings_receive(settings_fd, &policy->settings);

	if (error != 0) {
		snprintf(problem, size, "settings: %s", strerror(-error));
		free(policy);
		return error;
	}
	error = fstat(image_fd, &status) != 0 ? -errno : status.st_size <= 0 ? -EPROTO : 0;
	policy->mapping_size = (size_t)status.st_size;
	policy->mapping = MAP_FAILED;
	if (error == 0) {
		policy->mapping =
			mmap(NULL, policy->mapping_size, PROT_READ, MAP_SHARED, image_fd, 0);
		error = policy->mapping == MAP_FAILED ? -errno : 0;
	}
	if (error == 0)
		error = policy_image_open(policy->mapping, policy->mapping_size, &policy->image);
	if (error != 0) {
		snprintf(problem, size, "policy image: %s", strerror(-error));
		serve_policy_free(policy);
		return error;
	}
	*out = policy;
	return 0;
}

void serve_policy_free(struct serve_policy *policy)
{
	if (policy->mapping != MAP_FAILED)
		munmap(policy->mapping, policy->mapping_size);
	free(policy);
}

/* Finds out whose query it is, under the present policy. */
static void identify(struct serve *serve, struct query *query)
{
	query->hooked = false; /* the hook's word was on another policy */
	policy_client(serve->policy->image, &query->origin, &query->match);
	query->generation = serve->generation;
}

static bool is_client_network(const struct serve *serve, const struct address *source)
{
	const struct resolver_settings *settings = &serve->policy->settings.resolver;

	for (uint32_t i = 0; i < settings->network_count; i++)
		if (prefix_contains(&settings->networks[i], source))
			return true;
	return false;
}

/* Answers what was not a proper query; true when it was one. */
static bool check_form(struct serve *serve, const struct query *query, enum query_result result)
{
	static const enum reply_rcode rcodes[] = {
		[QUERY_FORMERR] = RCODE_FORMERR,
		[QUERY_NOTIMP] = RCODE_NOTIMP,
		[QUERY_BADVERS] = RCODE_BADVERS,
		[QUERY_REFUSED] = RCODE_REFUSED,
	};

	if (result == QUERY_OK)
		return true;
	if (result == QUERY_DROP) {
		respond_count(&serve->respond, COUNTER_DROPPED_QUERIES);
		path_drop(&query->path);
	} else {
		respond_error(&serve->respond, query, rcodes[result], REPLY_EDE_NONE, "");
	}
	return false;
}

/*
 * A program that closes its socket right after its query has no use for the answer, but the name would
 * go out under the policy of the client `host` and not under that of its user.
 */
static bool is_anonymous(const struct serve *serve, const struct query *query)
{
	return query->match.unknown || (query->origin.own && !query->origin.uid_known &&
					policy_tells_users(serve->policy->image));
}

static void ask_upstream(struct serve *serve, const struct query *query)
{
	int error = lookups_join(serve->lookups, serve->recursion, query, clock_ms(CLOCK_BOOTTIME));

	if (error == -ENOSPC) {
		respond_count(&serve->respond, COUNTER_OVERFLOW);
		respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
			      "too many outstanding queries");
	} else if (error != 0) {
		respond_error(&serve->respond, query, RCODE_SERVFAIL, REPLY_EDE_NONE, "");
	}
}

/* Everything after the query's form: local zones, the question's verdict, local names, recursion.
 */
static void answer_query(struct serve *serve, const struct query *query)
{
	const struct query_message *message = &query->message;
	struct local_answer local = {.kind = LOCAL_NONE};

	if (message->name_error == NAME_OK) {
		enum local_kind kind =
			local_empty_zone(&message->name, &serve->policy->settings.resolver);
		if (kind != LOCAL_NONE) {
			respond_empty(&serve->respond, query, kind);
			return;
		}
	}
	if (!respond_permits(&serve->respond, query))
		return;
	if (message->name_error == NAME_OK)
		local_addresses(&message->name, message->type, serve->policy->image, &local);
	if (local.kind != LOCAL_NONE)
		respond_local(&serve->respond, query, &local);
	else
		ask_upstream(serve, query);
}

void serve_query(void *context, const struct path *path, const uint8_t *bytes, size_t size)
{
	struct serve *serve = context;
	struct query query;

	respond_count(&serve->respond, COUNTER_QUERIES);
	query.path = *path;
	query.origin.interface = NULL;
	enum query_result result = query_read(bytes, size, &query.message);
	if (result != QUERY_DROP && !is_client_network(serve, &path->client.address))
		result = QUERY_REFUSED;
	if (!check_form(serve, &query, result))
		return;
	const struct origin_arrival arrival = {.client = path->client,
					       .server = path->server,
					       .protocol = path->protocol,
					       .interface = path->interface};
	origin_describe(serve->origin, &arrival, query.interface, &query.origin);
	identify(serve, &query);
	if (is_anonymous(serve, &query))
		respond_error(&serve->respond, &query, RCODE_SERVFAIL, EDE_OTHER,
			      "the asking user is not known");
	else
		answer_query(serve, &query);
}

/* The policy may have changed while they waited; whoever it refuses now has got the refusal. */
static void recheck(struct serve *serve, struct query *queries)
{
	for (struct query *query = queries; query != NULL; query = query->next) {
		query->answered = false;
		if (query->generation == serve->generation)
			continue;
		identify(serve, query);
		query->answered = !respond_permits(&serve->respond, query);
	}
}

static bool wants_strip(const struct serve *serve, const struct query *query)
{
	return query->match.governed &&
	       policy_strips_ech(serve->policy->image, query->match.policy);
}

/* First whoever gets the answer as it is, then, on what is left of it, whoever gets no `ech`. */
static void answer_all(struct serve *serve, struct query *queries, struct judge_answer *answer,
		       bool secure)
{
	bool ech = answer->has_ech && answer->packet != NULL;

	for (struct query *query = queries; query != NULL; query = query->next) {
		if (query->answered || (ech && wants_strip(serve, query)))
			continue;
		respond_answer(&serve->respond, query, answer, secure);
		query->answered = true;
	}
	int error = ech ? judge_strip_ech(answer) : 0;
	for (struct query *query = queries; query != NULL; query = query->next) {
		if (query->answered)
			continue;
		if (error == 0)
			respond_answer(&serve->respond, query, answer, false);
		else
			respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
				      "out of memory");
	}
}

static void on_lookup_done(void *context, struct query *queries,
			   const struct recursion_result *result)
{
	struct serve *serve = context;
	struct judge_answer answer;

	recheck(serve, queries);
	if (result != NULL && !result->failed && !result->bogus &&
	    judge_read(result->wire, result->size, queries->message.type, &answer) == 0) {
		answer_all(serve, queries, &answer, result->secure);
		judge_deinit(&answer);
		return;
	}
	for (struct query *query = queries; query != NULL; query = query->next)
		if (!query->answered)
			respond_failed(&serve->respond, query, result);
}

/* Answers with what `hosts` and nature say of the name; false: nothing any more. */
static bool answer_locally(struct serve *serve, struct query *query)
{
	struct local_answer local = {.kind = LOCAL_NONE};

	local_addresses(&query->message.name, query->message.type, serve->policy->image, &local);
	if (local.kind != LOCAL_NONE)
		respond_local(&serve->respond, query, &local);
	return local.kind != LOCAL_NONE;
}

/* QUERY has waited for the hook: it goes on where it was, or from the start under another policy. */
static void on_hook_answered(void *context, struct query *query,
			     const struct waiting_matter *matter, const struct hook_reply *reply)
{
	struct serve *serve = context;
	struct judge_answer answer;

	if (query->generation != serve->policy->settings.generation) {
		identify(serve, query);
		answer_query(serve, query);
		return;
	}
	query->hooked = true;
	query->hooked_at = matter->stage;
	query->hooked_verdict = policy_hooked(serve->policy->image, query->match.policy,
					      &matter->verdict, reply->answer);
	snprintf(query->hooked_words, sizeof(query->hooked_words), "%s",
		 reply->problem != NULL ? reply->problem : reply->reason);
	if (matter->stage == STAGE_RESOLVE) {
		answer_query(serve, query);
	} else if (matter->wire == NULL) {
		answer_locally(serve, query);
	} else if (judge_read(matter->wire, matter->size, query->message.type, &answer) == 0) {
		answer_all(serve, query, &answer, matter->secure);
		judge_deinit(&answer);
	} else {
		respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER, "out of memory");
	}
}

void serve_hook(struct serve *serve, const struct message_hook *message, int fd)
{
	waiting_arrived(serve->respond.waiting, message, fd, clock_ms(CLOCK_BOOTTIME));
}

static void on_tick(evutil_socket_t fd, short events, void *context)
{
	struct serve *serve = context;
	uint64_t now = clock_ms(CLOCK_BOOTTIME);

	(void)fd;
	(void)events;
	lookups_expire(serve->lookups, serve->recursion, now);
	pins_expire(serve->respond.pins, now, EXPIRE_STEP);
}

static int start_tick(struct serve *serve)
{
	const struct timeval second = {.tv_sec = 1};

	serve->tick = event_new(serve->base, -1, EV_PERSIST, on_tick, serve);
	return serve->tick == NULL || event_add(serve->tick, &second) != 0 ? -ENOMEM : 0;
}

/* Everything that fails for want of memory or a socket. */
static int build_parts(struct serve *serve, int audit_fd)
{
	uint8_t seeds[2][16];

	if (getrandom(seeds, sizeof(seeds), 0) != (ssize_t)sizeof(seeds))
		return -EIO;
	serve->respond.audit = audit_new(audit_fd, seeds[0]);
	serve->lookups = lookups_new(seeds[1], on_lookup_done, serve);
	if (serve->respond.audit == NULL || serve->lookups == NULL)
		return -ENOMEM;
	int error = origin_new(serve->base, &serve->origin);
	if (error == 0)
		error = waiting_new(serve->base, on_hook_answered, serve, &serve->respond.waiting);
	return error != 0 ? error : start_tick(serve);
}

/* The recursion of POLICY, behind its own rule for upstream sockets. */
static int build_recursion(struct serve *serve, const struct serve_policy *policy,
			   struct upstream **upstream, struct recursion **recursion, char *problem,
			   size_t size)
{
	int error = upstream_new(&policy->settings.resolver, upstream, problem, size);

	if (error != 0)
		return error;
	error = recursion_new(serve->base, &policy->settings.resolver, *upstream, recursion,
			      problem, size);
	if (error != 0)
		upstream_free(*upstream);
	return error;
}

static void use_policy(struct serve *serve, struct serve_policy *policy)
{
	serve->policy = policy;
	serve->generation++;
	serve->respond.policy = policy;
	serve->respond.status.generation = policy->settings.generation;
}

int serve_new(struct event_base *base, int audit_fd, struct pins_writer *pins,
	      struct serve_policy *policy, struct serve **out, char *problem, size_t size)
{
	struct serve *serve = calloc(1, sizeof(*serve));

	if (serve == NULL) {
		snprintf(problem, size, "out of memory");
		return -ENOMEM;
	}
	serve->base = base;
	int error = build_parts(serve, audit_fd);
	if (error != 0)
		snprintf(problem, size, "cannot start: %s", strerror(-error));
	else
		error = build_recursion(serve, policy, &serve->upstream, &serve->recursion, problem,
					size);
	if (error != 0) {
		serve->upstream = NULL;
		serve_free(serve);
		return error;
	}
	guard_set(serve->upstream);
	serve->respond.pins = pins;
	use_policy(serve, policy);
	waiting_use(serve->respond.waiting, policy->image, clock_ms(CLOCK_BOOTTIME));
	*out = serve;
	return 0;
}

void serve_free(struct serve *serve)
{
	if (serve->tick != NULL)
		event_free(serve->tick);
	if (serve->respond.waiting != NULL)
		waiting_free(serve->respond.waiting);
	if (serve->recursion != NULL) {
		lookups_abandon(serve->lookups, serve->recursion);
		recursion_free(serve->recursion);
	}
	guard_set(NULL);
	if (serve->upstream != NULL)
		upstream_free(serve->upstream);
	if (serve->origin != NULL)
		origin_free(serve->origin);
	if (serve->lookups != NULL)
		lookups_free(serve->lookups);
	if (serve->respond.audit != NULL)
		audit_free(serve->respond.audit);
	if (serve->respond.pins != NULL)
		pins_writer_close(serve->respond.pins);
	if (serve->policy != NULL)
		serve_policy_free(serve->policy);
	free(serve);
}

/* Does the recursion of A serve B as well? Only what recursion_config() and upstream_new() read
 * counts, but all of the structure is compared: a new context costs no more than its cache. */
static bool same_recursion(const struct resolver_settings *a, const struct resolver_settings *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

int serve_reload(struct serve *serve, struct serve_policy *policy, char *problem, size_t size)
{
	struct serve_policy *old = serve->policy;
	struct upstream *upstream;
	struct recursion *recursion;

	if (!same_recursion(&old->settings.resolver, &policy->settings.resolver)) {
		int error = build_recursion(serve, policy, &upstream, &recursion, problem, size);
		if (error != 0)
			return error;
		struct recursion *old_recursion = serve->recursion;
		struct upstream *old_upstream = serve->upstream;
		use_policy(serve, policy);
		serve->recursion = recursion;
		serve->upstream = upstream;
		guard_set(upstream);
		lookups_move(serve->lookups, old_recursion, recursion);
		recursion_free(old_recursion);
		upstream_free(old_upstream);
	}
	use_policy(serve, policy);
	/* Queries that waited for a hook that is gone begin anew. */
	waiting_use(serve->respond.waiting, policy->image, clock_ms(CLOCK_BOOTTIME));
	serve_policy_free(old);
	return 0;
}

void serve_status(const struct serve *serve, struct message_status *out)
{
	*out = serve->respond.status;
}

size_t serve_drop_client(struct serve *serve, const struct client_key *key)
{
	return pins_drop_client(serve->respond.pins, key);
}
