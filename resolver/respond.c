/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/respond.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "resolver/clock.h"
#include "resolver/pinning.h"

static void send_reply(struct respond *respond, const struct query *query, struct reply *reply)
{
	size_t limit = path_limit(&query->path);

	if (query->path.protocol == IPPROTO_UDP && query->message.udp_size < limit)
		limit = query->message.udp_size;
	if (reply->rcode == RCODE_SERVFAIL)
		respond_count(respond, COUNTER_SERVFAIL);
	respond_count(respond, COUNTER_ANSWERS);
	path_send(&query->path, respond->reply, reply_finish(reply, limit));
}

void respond_error(struct respond *respond, const struct query *query, enum reply_rcode rcode,
		   enum reply_ede ede, const char *text)
{
	struct reply reply;

	reply_begin(&reply, &query->message, respond->reply, rcode);
	reply.ede = ede;
	reply.ede_text = text;
	send_reply(respond, query, &reply);
}

void respond_empty(struct respond *respond, const struct query *query, enum local_kind kind)
{
	struct reply reply;

	reply_begin(&reply, &query->message, respond->reply,
		    kind == LOCAL_NXDOMAIN ? RCODE_NXDOMAIN : RCODE_NOERROR);
	reply_soa(&reply, LOCAL_TTL);
	send_reply(respond, query, &reply);
}

/* A refusal looks the same for every type, and never has an address in it. */
static void refuse(struct respond *respond, const struct query *query, enum reason reason)
{
	uint8_t form = respond->policy->settings.resolver.refusal;
	struct reply reply;

	respond_count(respond, COUNTER_REFUSED_ANSWERS);
	reply_begin(&reply, &query->message, respond->reply,
		    form == REFUSAL_REFUSED  ? RCODE_REFUSED
		    : form == REFUSAL_NODATA ? RCODE_NOERROR
					     : RCODE_NXDOMAIN);
	if (form != REFUSAL_REFUSED)
		reply_soa(&reply, REPLY_REFUSAL_TTL);
	reply.ede = EDE_BLOCKED;
	reply.ede_text = reason_text(reason);
	send_reply(respond, query, &reply);
}

/* A name that no struct name can hold, as escaped text. */
static void describe_name(const struct query *query, struct audit_record *record)
{
	char text[QUERY_TEXT_SIZE];

	query_text(&query->message, text);
	snprintf(record->detail, sizeof(record->detail), "name %.*s",
		 (int)(sizeof(record->detail) - sizeof("name ")), text);
}

static void add_addresses(struct audit_record *record, const struct address *addresses,
			  size_t count)
{
	for (size_t i = 0; i < count && record->address_count < AUDIT_ADDRESSES_MAX; i++)
		record->addresses[record->address_count++] = addresses[i];
}

/* A registered name, or the address in TEXT (ADDRESS_TEXT_SIZE). */
static const char *client_of(const struct query *query, char *text)
{
	const char *name = query->match.name;

	return name != NULL && name[0] != '\0' ? name : address_format(&query->origin.source, text);
}

/* What a verdict is about. */
struct matter {
	enum stage stage;
	const struct answer *answer; /* STAGE_ANSWER */
	struct stored *stored;       /* what it is of; NULL for a local answer */
	const char *words;           /* of or about the hook, for the log; "" for none */
};

static void audit(struct respond *respond, const struct query *query, const struct matter *matter,
		  const struct verdict *verdict)
{
	const struct answer *answer = matter->answer;
	char text[ADDRESS_TEXT_SIZE];
	struct audit_record record = {
		.time_ms = clock_ms(CLOCK_REALTIME),
		.stage = matter->stage,
		.outcome = verdict->outcome,
		.reason = verdict->reason,
		.rule = verdict->rule,
		.qtype = query->message.type,
		.protocol = query->path.protocol,
		.enforced = verdict->enforced,
		.name_present = query->message.name_error == NAME_OK,
	};

	snprintf(record.client, sizeof(record.client), "%s", client_of(query, text));
	if (record.name_present)
		record.name = query->message.name;
	else
		describe_name(query, &record);
	if (matter->words[0] != '\0')
		snprintf(record.detail, sizeof(record.detail), "%s", matter->words);
	if (answer != NULL) {
		add_addresses(&record, answer->addresses, answer->address_count);
		add_addresses(&record, answer->hints, answer->hint_count);
	}
	int error =
		audit_send(respond->audit, &query->match.key, &record, clock_ms(CLOCK_BOOTTIME));
	if (error != 0 && error != -EDQUOT)
		respond_count(respond, COUNTER_AUDIT_LOST);
}

/* Reports a verdict; true when the query goes on. */
static bool settle(struct respond *respond, const struct query *query, const struct matter *matter,
		   const struct verdict *verdict)
{
	if (verdict->outcome == OUTCOME_ALLOW) {
		if (matter->stage == STAGE_ANSWER && respond->policy->settings.log_allowed)
			audit(respond, query, matter, verdict);
		return true;
	}
	respond->status.by_reason[verdict->reason]++;
	audit(respond, query, matter, verdict);
	if (!verdict_refuses(verdict))
		return true;
	refuse(respond, query, verdict->reason);
	return false;
}

/* NULL when QUERY waits for the hook now, else why it cannot. */
static const char *ask_hook(struct respond *respond, const struct query *query,
			    const struct matter *matter, const struct verdict *verdict)
{
	const struct answer *answer = matter->answer;
	const struct name *name = answer != NULL ? answer->name : &query->message.name;
	char text[ADDRESS_TEXT_SIZE];
	struct hook_question question = {
		.stage = matter->stage,
		.client = client_of(query, text),
		.name = name->length == 0 ? "." : name->text,
		.qtype = query->message.type,
		.scheme = "",
		.verdict = verdict,
	};
	const struct waiting_matter waits = {
		.stage = matter->stage, .verdict = *verdict, .stored = matter->stored};

	if (answer != NULL) {
		question.addresses = answer->addresses;
		question.address_count = answer->address_count;
		question.hints = answer->hints;
		question.hint_count = answer->hint_count;
	}
	return waiting_ask(respond->waiting, respond->policy->image, query, &waits, &question,
			   clock_ms(CLOCK_BOOTTIME));
}

/* Puts VERDICT to the hook where it is to be asked; true when the query goes on at once. */
static bool conclude(struct respond *respond, const struct query *query, struct matter *matter,
		     struct verdict *verdict)
{
	if (verdict->asks_hook) {
		matter->words = ask_hook(respond, query, matter, verdict);
		if (matter->words == NULL)
			return false;
		*verdict = policy_hooked(respond->policy->image, query->match.policy, verdict,
					 HOOK_ERROR);
	}
	return settle(respond, query, matter, verdict);
}

/* The hook has had its word on this stage of QUERY: *VERDICT and what it said. */
static bool was_hooked(const struct query *query, struct matter *matter, struct verdict *verdict)
{
	if (!query->hooked || query->hooked_at != matter->stage)
		return false;
	*verdict = query->hooked_verdict;
	matter->words = query->hooked_words;
	return true;
}

static struct subject subject_of(const struct query *query)
{
	return (struct subject){.policy = query->match.policy, .root = query->match.root};
}

bool respond_permits(struct respond *respond, struct query *query)
{
	const struct subject subject = subject_of(query);
	const struct question question = {.name = &query->message.name,
					  .name_error = query->message.name_error,
					  .type = query->message.type};
	struct matter matter = {.stage = STAGE_RESOLVE, .words = ""};
	struct verdict verdict;

	query->permitted = false;
	if (!query->match.governed)
		return true;
	if (!was_hooked(query, &matter, &verdict)) {
		verdict = policy_resolve(respond->policy->image, &subject, &question);
		query->permitted = verdict.outcome == OUTCOME_ALLOW && !verdict.asks_hook;
	}
	return conclude(respond, query, &matter, &verdict);
}

static bool judge_local(struct respond *respond, const struct query *query,
			const struct answer *answer)
{
	const struct subject subject = subject_of(query);
	struct matter matter = {.stage = STAGE_ANSWER, .answer = answer, .words = ""};
	struct verdict verdict;

	if (!query->match.governed)
		return true;
	if (!was_hooked(query, &matter, &verdict))
		verdict = policy_answer(respond->policy->image, &subject, answer);
	return conclude(respond, query, &matter, &verdict);
}

/*
 * An answer without its pins must not leave: the client would run into refusals. A client that nobody
 * governs needs none, and pins of its unjudged answers would serve others who share its key.
 */
static bool pin(struct respond *respond, const struct query *query, const struct judge_pin *pins,
		size_t count, uint32_t age, uint64_t now)
{
	if (!query->match.governed || query->message.name_error != NAME_OK ||
	    pinning_put(respond, query, pins, count, age, now) == 0)
		return true;
	respond_error(respond, query, RCODE_SERVFAIL, EDE_OTHER, "the pin table is full");
	return false;
}

void respond_local(struct respond *respond, const struct query *query,
		   const struct local_answer *local)
{
	const struct answer answer = {.name = &query->message.name,
				      .addresses = local->addresses,
				      .address_count = local->count,
				      .from_static = local->from_static};
	struct judge_pin pins[LOCAL_ADDRESSES_MAX];
	struct reply reply;

	for (size_t i = 0; i < local->count; i++)
		pins[i] = (struct judge_pin){.address = local->addresses[i], .ttl = LOCAL_TTL};
	if (!judge_local(respond, query, &answer) ||
	    !pin(respond, query, pins, local->count, 0, clock_ms(CLOCK_BOOTTIME)))
		return;
	reply_begin(&reply, &query->message, respond->reply, RCODE_NOERROR);
	for (size_t i = 0; i < local->count; i++)
		reply_address(&reply, &local->addresses[i], LOCAL_TTL);
	if (local->count == 0)
		reply_soa(&reply, LOCAL_TTL);
	send_reply(respond, query, &reply);
}

/* The client's own error says no more than that there is no such host. */
void respond_tell_failure(struct respond *respond, const struct query *query,
			  const struct recursion_result *result)
{
	char name[QUERY_TEXT_SIZE];
	const char *why = "its name servers gave no usable answer";

	if (result == NULL)
		why = "no name server answered in time";
	else if (result->bogus)
		why = result->why_bogus == NULL ? "bogus" : result->why_bogus;
	query_text(&query->message, name);
	audit_notice(respond->audit, clock_ms(CLOCK_BOOTTIME), "cannot resolve %.250s: %.200s",
		     name, why);
}

bool respond_knows(const struct query *query, const struct stored *stored)
{
	const struct client_match *match = &query->match;
	const struct stored_verdict *known =
		stored_verdict(stored, query->generation, match->policy, match->root);

	return match->governed && known != NULL && known->permitted;
}

/* The verdict on STORED for QUERY: as remembered, or found and remembered. */
static struct verdict verdict_of(struct respond *respond, const struct query *query,
				 struct stored *stored, const struct answer *answer)
{
	const struct subject subject = subject_of(query);
	const struct stored_verdict *known =
		stored_verdict(stored, query->generation, subject.policy, subject.root);

	/* What was found on the way to a question that had something to report is not permitted. */
	if (known != NULL && (known->permitted || !query->permitted))
		return known->answer;
	const struct stored_verdict found = {
		.generation = query->generation,
		.policy = subject.policy,
		.root = subject.root,
		.permitted = query->permitted,
		.answer = policy_answer(respond->policy->image, &subject, answer)};
	stored_remember(stored, &found);
	return found.answer;
}

static bool judge_stored(struct respond *respond, const struct query *query, struct stored *stored)
{
	/* A name that is not canonical gets this far in audit mode: it is judged as its parent. */
	struct name end;
	const struct name *name = &query->message.name;

	if (!query->match.governed)
		return true;
	if (query->message.name_error != NAME_OK) {
		end = query_canonical_end(&query->message);
		name = &end;
	}
	const struct answer answer = {.name = name,
				      .addresses = stored->addresses,
				      .address_count = stored->address_count,
				      .hints = stored->hints,
				      .hint_count = stored->hint_count,
				      .targets = stored->targets,
				      .target_count = stored->target_count,
				      .malformed = stored->malformed};
	struct matter matter = {
		.stage = STAGE_ANSWER, .answer = &answer, .stored = stored, .words = ""};
	struct verdict verdict;

	if (!was_hooked(query, &matter, &verdict))
		verdict = verdict_of(respond, query, stored, &answer);
	return conclude(respond, query, &matter, &verdict);
}

void respond_stored(struct respond *respond, const struct query *query, struct stored *stored,
		    uint64_t now)
{
	const struct query_message *message = &query->message;
	uint32_t age = stored_age(stored, now);
	struct reply reply;

	if (stored->failure) {
		respond_error(respond, query, RCODE_SERVFAIL, stored->ede, stored->ede_text);
		return;
	}
	if (!judge_stored(respond, query, stored))
		return;
	if (!stored->readable) {
		respond_error(respond, query, RCODE_SERVFAIL, REPLY_EDE_NONE, "");
		return;
	}
	if (!pin(respond, query, stored->pins, stored->pin_count, age, now))
		return;
	pinning_follow(respond, query, stored, now);
	reply_begin(&reply, message, respond->reply, (enum reply_rcode)stored->rcode);
	reply.authentic = stored->secure && (message->dnssec_ok || message->authentic_data);
	if (query->stale) {
		reply_stale(&reply, stored);
		reply.ede = EDE_STALE_ANSWER;
	} else {
		reply_stored(&reply, stored, age);
	}
	send_reply(respond, query, &reply);
}
