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

#include "resolver/cache.h"
#include "resolver/clock.h"
#include "resolver/lookups.h"
#include "resolver/origin.h"
#include "resolver/recursion.h"
#include "resolver/respond.h"
#include "resolver/upstream.h"

/* Slots of expired pins that are freed each second. */
#define EXPIRE_STEP 4096u

/*
 * A name that could not be resolved is not asked again for so long, doubled with each failure (RFC
 * 9520 section 3.2). The most is short of the five minutes that the RFC allows: mostly it is the
 * network that comes back.
 */
#define FAILURE_SECONDS     5u
#define FAILURE_SECONDS_MAX 40u

/* Where answers come from: what one `struct resolver_settings` made, and goes with it. */
struct engine {
	struct upstream *upstream; /* the rule for sockets of `recursion` */
	struct recursion *recursion;
	struct cache *cache;
};

struct serve {
	struct event_base *base;
	struct event *tick;
	struct serve_policy *policy;
	struct engine engine;
	struct origin *origin;
	struct lookups *lookups;
	uint8_t seed[16];    /* of the cache */
	uint64_t generation; /* counts policies; theirs is the parent's and may repeat */
	bool tells_users, tells_interfaces; /* of the policy, see policy.h */
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
	query->origin.interface = NULL;
	if (serve->tells_interfaces && !query->origin.own)
		query->origin.interface =
			origin_interface(serve->origin, query->path.interface, query->interface);
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
 * go out under the policy of the client `host` and not under that of its user. True: it was refused.
 */
static bool refuse_anonymous(struct serve *serve, const struct query *query)
{
	if (!query->match.unknown &&
	    (!query->origin.own || query->origin.uid_known || !serve->tells_users))
		return false;
	respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
		      "the asking user is not known");
	return true;
}

/* What of an answer QUERY wants, in bits of enum stored_form. */
static unsigned form_of(const struct serve *serve, const struct query *query)
{
	bool strips = query->match.governed &&
		      policy_strips_ech(serve->policy->image, query->match.policy);

	return (query->message.dnssec_ok ? STORED_DNSSEC : 0u) | (strips ? 0u : STORED_ECH);
}

/* An answer to QUERY whose time is over, but not for too long (RFC 8767); NULL: there is none. */
static struct stored *find_stale(struct serve *serve, struct query *query, uint64_t now)
{
	uint64_t most = serve->policy->settings.resolver.serve_stale_seconds * UINT64_C(1000);
	struct stored_key key;

	stored_key(&query->message, form_of(serve, query), &key);
	struct stored *stored = cache_peek(serve->engine.cache, &key);
	query->stale = stored != NULL && stored->readable && now < stored->expiry + most;
	return query->stale ? stored : NULL;
}

/* The answer to QUERY that is there already, or the failure, or NULL. */
static struct stored *find_stored(struct serve *serve, struct query *query, uint64_t now)
{
	struct stored_key key;

	stored_key(&query->message, form_of(serve, query), &key);
	struct stored *stored = cache_find(serve->engine.cache, &key, now);
	if (stored != NULL)
		return stored;
	stored_key(&query->message, STORED_FAILURE, &key);
	struct stored *failure = cache_find(serve->engine.cache, &key, now);
	/* Bogus is an answer too: that nobody vouches for the name as it is now. */
	if (failure != NULL && failure->ede != EDE_DNSSEC_BOGUS)
		stored = find_stale(serve, query, now);
	return stored != NULL ? stored : failure;
}

static void ask_upstream(struct serve *serve, const struct query *query, uint64_t now)
{
	int error = lookups_join(serve->lookups, serve->engine.recursion, query, now);

	if (error == -ENOSPC) {
		respond_count(&serve->respond, COUNTER_OVERFLOW);
		respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
			      "too many outstanding queries");
	} else if (error == -EDQUOT) {
		respond_count(&serve->respond, COUNTER_OVERFLOW);
		respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
			      "too many questions a second");
	} else if (error != 0) {
		respond_error(&serve->respond, query, RCODE_SERVFAIL, REPLY_EDE_NONE, "");
	}
}

/* What comes before any answer: local zones, the question's verdict, local names. True: QUERY goes on. */
static bool pass_question(struct serve *serve, struct query *query)
{
	const struct query_message *message = &query->message;
	struct local_answer local = {.kind = LOCAL_NONE};

	if (message->name_error == NAME_OK) {
		enum local_kind kind =
			local_empty_zone(&message->name, &serve->policy->settings.resolver);
		if (kind != LOCAL_NONE) {
			respond_empty(&serve->respond, query, kind);
			return false;
		}
	}
	if (!respond_permits(&serve->respond, query))
		return false;
	if (message->name_error == NAME_OK)
		local_addresses(&message->name, message->type, serve->policy->image, &local);
	if (local.kind != LOCAL_NONE)
		respond_local(&serve->respond, query, &local);
	return local.kind == LOCAL_NONE;
}

/* Everything after the query's form. A kept answer that this policy has passed before is sent at once. */
static void answer_query(struct serve *serve, struct query *query)
{
	uint64_t now = clock_ms(CLOCK_BOOTTIME);
	struct stored *stored = find_stored(serve, query, now);

	if ((stored == NULL || !respond_knows(query, stored)) && !pass_question(serve, query))
		return;
	if (stored == NULL) {
		ask_upstream(serve, query, now);
		return;
	}
	respond_count(&serve->respond, COUNTER_CACHE_HITS);
	respond_stored(&serve->respond, query, stored, now);
}

void serve_query(void *context, const struct path *path, const uint8_t *bytes, size_t size)
{
	struct serve *serve = context;
	struct query query;

	respond_count(&serve->respond, COUNTER_QUERIES);
	query.path = *path;
	query.permitted = query.stale = false;
	enum query_result result = query_read(bytes, size, &query.message);
	if (result != QUERY_DROP && !is_client_network(serve, &path->client.address))
		result = QUERY_REFUSED;
	if (!check_form(serve, &query, result))
		return;
	const struct origin_arrival arrival = {
		.client = path->client, .server = path->server, .protocol = path->protocol};
	origin_describe(serve->origin, &arrival, &query.origin);
	identify(serve, &query);
	if (!refuse_anonymous(serve, &query))
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
		query->answered =
			refuse_anonymous(serve, query) || !respond_permits(&serve->respond, query);
		query->permitted = false; /* the new policy may have a local answer */
	}
}

/* One answer of the recursion on its way to its queries, and its forms as far as they were wanted. */
struct delivery {
	struct serve *serve;
	struct judge_answer *answer;
	bool secure;
	uint64_t now;
	struct stored *forms[STORED_FORMS];
};

static void deliver(struct delivery *delivery, struct query *query, unsigned form)
{
	struct respond *respond = &delivery->serve->respond;
	struct stored **stored = &delivery->forms[form];
	struct stored_key key;
	int error = 0;

	if (*stored == NULL) {
		stored_key(&query->message, form, &key);
		error = stored_new(&key, delivery->answer, delivery->secure, delivery->now, stored);
	}
	if (error == 0)
		respond_stored(respond, query, *stored, delivery->now);
	else
		respond_error(respond, query, RCODE_SERVFAIL, EDE_OTHER,
			      error == -ENOMEM ? "out of memory" : "the answer is too long");
	query->answered = true;
}

/*
 * First whoever gets the answer as it is, then, on what is left of it, whoever gets no `ech`. All
 * queries of the list have the same question.
 */
static void answer_all(struct serve *serve, struct query *queries, struct judge_answer *answer,
		       bool secure)
{
	struct delivery delivery = {.serve = serve,
				    .answer = answer,
				    .secure = secure,
				    .now = clock_ms(CLOCK_BOOTTIME)};
	bool ech = answer->has_ech && answer->packet != NULL;
	int stripped = 0;

	for (struct query *query = queries; query != NULL; query = query->next) {
		unsigned form = form_of(serve, query);
		if (!query->answered && (!ech || (form & STORED_ECH) != 0))
			deliver(&delivery, query, form);
	}
	if (ech) {
		delivery.secure = false;
		stripped = judge_strip_ech(answer);
	}
	for (struct query *query = queries; query != NULL; query = query->next) {
		if (query->answered)
			continue;
		if (stripped == 0)
			deliver(&delivery, query, form_of(serve, query));
		else
			respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
				      "out of memory");
	}
	for (unsigned form = 0; form < STORED_FORMS; form++)
		if (delivery.forms[form] != NULL)
			cache_put(serve->engine.cache, delivery.forms[form], delivery.now);
}

/* How long the failure of KEY is remembered: twice as long as last time, when that was just now. */
static uint32_t failure_seconds(struct serve *serve, const struct stored_key *key, uint64_t now)
{
	const struct stored *last = cache_peek(serve->engine.cache, key);

	if (last == NULL || now > last->expiry + FAILURE_SECONDS_MAX * 1000)
		return FAILURE_SECONDS;
	return last->seconds * 2 < FAILURE_SECONDS_MAX ? last->seconds * 2 : FAILURE_SECONDS_MAX;
}

static void fail_all(struct serve *serve, struct query *queries,
		     const struct recursion_result *result)
{
	uint64_t now = clock_ms(CLOCK_BOOTTIME);
	enum reply_ede ede = REPLY_EDE_NONE;
	const char *text = "";
	struct stored_key key;

	if (result == NULL) {
		ede = EDE_NO_REACHABLE_AUTHORITY;
		text = "no answer in time";
	} else if (result->bogus) {
		ede = EDE_DNSSEC_BOGUS;
		text = result->why_bogus == NULL ? "" : result->why_bogus;
	}
	respond_tell_failure(&serve->respond, queries, result);
	for (struct query *query = queries; query != NULL; query = query->next) {
		if (query->answered)
			continue;
		struct stored *stale =
			ede == EDE_DNSSEC_BOGUS ? NULL : find_stale(serve, query, now);
		if (stale != NULL)
			respond_stored(&serve->respond, query, stale, now);
		else
			respond_error(&serve->respond, query, RCODE_SERVFAIL, ede, text);
	}
	stored_key(&queries->message, STORED_FAILURE, &key);
	struct stored *failure =
		stored_new_failure(&key, ede, text, failure_seconds(serve, &key, now), now);
	if (failure != NULL)
		cache_put(serve->engine.cache, failure, now);
}

/* Whether a message says anything of the name (RFC 2136 section 2.2 for YXDOMAIN, of DNAME). */
static bool is_usable(const struct recursion_result *result)
{
	unsigned rcode = result->size < QUERY_HEADER_SIZE ? RCODE_SERVFAIL : result->wire[3] & 15u;

	return rcode == RCODE_NOERROR || rcode == RCODE_NXDOMAIN || rcode == RCODE_YXDOMAIN;
}

static void on_lookup_done(void *context, struct query *queries,
			   const struct recursion_result *result)
{
	struct serve *serve = context;
	struct judge_answer answer;

	recheck(serve, queries);
	if (result == NULL || result->failed || result->bogus || !is_usable(result)) {
		fail_all(serve, queries, result);
		return;
	}
	if (judge_read(result->wire, result->size, queries->message.type, &answer) == 0) {
		answer_all(serve, queries, &answer, result->secure);
		judge_deinit(&answer);
		return;
	}
	for (struct query *query = queries; query != NULL; query = query->next)
		if (!query->answered)
			respond_error(&serve->respond, query, RCODE_SERVFAIL, EDE_OTHER,
				      "out of memory");
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

	if (query->generation != serve->generation) {
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
	} else if (matter->stored == NULL) {
		answer_locally(serve, query);
	} else {
		respond_stored(&serve->respond, query, matter->stored, clock_ms(CLOCK_BOOTTIME));
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
	lookups_expire(serve->lookups, serve->engine.recursion, now);
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
	uint8_t seeds[4][16];

	if (getrandom(seeds, sizeof(seeds), 0) != (ssize_t)sizeof(seeds))
		return -EIO;
	memcpy(serve->seed, seeds[2], sizeof(serve->seed));
	serve->respond.audit = audit_new(audit_fd, seeds[0]);
	serve->lookups = lookups_new(seeds[1], on_lookup_done, serve);
	serve->respond.aliases = aliases_new(seeds[3]);
	if (serve->respond.audit == NULL || serve->lookups == NULL ||
	    serve->respond.aliases == NULL)
		return -ENOMEM;
	int error = origin_new(serve->base, &serve->origin);
	if (error == 0)
		error = waiting_new(serve->base, on_hook_answered, serve, &serve->respond.waiting);
	return error != 0 ? error : start_tick(serve);
}

static void free_engine(struct engine *engine)
{
	if (engine->recursion != NULL)
		recursion_free(engine->recursion);
	if (engine->upstream != NULL)
		upstream_free(engine->upstream);
	if (engine->cache != NULL)
		cache_free(engine->cache);
	*engine = (struct engine){.cache = NULL};
}

/* *OUT is all NULL on failure. */
static int build_engine(struct serve *serve, const struct serve_policy *policy, struct engine *out,
			char *problem, size_t size)
{
	const struct resolver_settings *settings = &policy->settings.resolver;
	struct engine engine = {.cache = cache_new(serve->seed, settings->answer_cache_bytes)};
	int error = -ENOMEM;

	snprintf(problem, size, "out of memory");
	if (engine.cache != NULL)
		error = upstream_new(settings, &engine.upstream, problem, size);
	if (error == 0)
		error = recursion_new(serve->base, settings, engine.upstream, &engine.recursion,
				      problem, size);
	if (error != 0)
		free_engine(&engine);
	*out = engine;
	return error;
}

static void use_policy(struct serve *serve, struct serve_policy *policy)
{
	serve->policy = policy;
	lookups_set_rate(serve->lookups, policy->settings.resolver.client_rate);
	serve->tells_users = policy_tells_users(policy->image);
	serve->tells_interfaces = policy_tells_interfaces(policy->image);
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
		error = build_engine(serve, policy, &serve->engine, problem, size);
	if (error != 0) {
		serve_free(serve);
		return error;
	}
	guard_set(serve->engine.upstream);
	serve->respond.cache = serve->engine.cache;
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
	if (serve->engine.recursion != NULL)
		lookups_abandon(serve->lookups, serve->engine.recursion);
	guard_set(NULL);
	free_engine(&serve->engine);
	if (serve->origin != NULL)
		origin_free(serve->origin);
	if (serve->lookups != NULL)
		lookups_free(serve->lookups);
	if (serve->respond.aliases != NULL)
		aliases_free(serve->respond.aliases);
	if (serve->respond.audit != NULL)
		audit_free(serve->respond.audit);
	if (serve->respond.pins != NULL)
		pins_writer_close(serve->respond.pins);
	if (serve->policy != NULL)
		serve_policy_free(serve->policy);
	free(serve);
}

/* Does the engine of A serve B as well? Only what recursion_config() and upstream_new() read
 * counts, but all of the structure is compared: a new context costs no more than its cache. */
static bool same_engine(const struct resolver_settings *a, const struct resolver_settings *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

int serve_reload(struct serve *serve, struct serve_policy *policy, char *problem, size_t size)
{
	struct serve_policy *old = serve->policy;
	struct engine engine;

	if (!same_engine(&old->settings.resolver, &policy->settings.resolver)) {
		int error = build_engine(serve, policy, &engine, problem, size);
		if (error != 0)
			return error;
		struct engine old_engine = serve->engine;
		use_policy(serve, policy);
		serve->engine = engine;
		serve->respond.cache = engine.cache;
		guard_set(engine.upstream);
		lookups_move(serve->lookups, old_engine.recursion, engine.recursion);
		free_engine(&old_engine);
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
