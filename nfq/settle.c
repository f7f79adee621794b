/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/settle.h"

#include "nfq/hold.h"
#include "nfq/ruling.h"

void settle_pass(struct gate *gate, const struct arrival *arrival, enum mark_state state)
{
	gate->sink->verdict(gate->sink, arrival->id, SINK_ACCEPT, arrival->mark, state);
}

void settle_drop(struct gate *gate, const struct arrival *arrival)
{
	gate->sink->verdict(gate->sink, arrival->id, SINK_DROP, arrival->mark, MARK_NONE);
}

void settle_hold(struct gate *gate, struct flow *flow, const struct arrival *arrival, uint32_t end)
{
	if (hold_add(flow, arrival->id, arrival->mark, end) == 0) {
		gate->counters[COUNTER_HELD]++;
		return;
	}
	gate->counters[COUNTER_OVERFLOW]++;
	settle_drop(gate, arrival);
}

void settle_refuse(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		   const struct verdict *verdict, uint64_t now)
{
	unsigned refused = hold_refuse(flow, true, gate->sink);

	if (arrival != NULL && refused == 0)
		settle_pass(gate, arrival, MARK_REFUSED);
	else if (arrival != NULL)
		settle_drop(gate, arrival);
	flow->reason = verdict->reason;
	flow_enter(flow, FLOW_REFUSED, now);
	gate->counters[COUNTER_REFUSED]++;
}

void settle_allow(struct gate *gate, struct flow *flow, const struct arrival *arrival, uint64_t now)
{
	hold_release_all(flow, MARK_ALLOWED, gate->sink);
	if (arrival != NULL)
		settle_pass(gate, arrival, MARK_ALLOWED);
	flow_enter(flow, FLOW_ALLOWED, now);
}

void settle_give_up(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		    const char *detail, uint64_t now)
{
	struct verdict verdict = ruling_own();

	gate->counters[COUNTER_OVERFLOW]++;
	ruling_report_flow(gate, flow, STAGE_REQUEST, &verdict, NULL, detail, now);
	settle_refuse(gate, flow, arrival, &verdict, now);
}

void settle_unreadable(struct gate *gate, struct flow *flow, const struct arrival *arrival,
		       const char *problem, uint64_t now)
{
	struct subject subject = {.policy = flow->policy, .root = flow->root};
	struct verdict verdict =
		ruling_unreadable(gate, &flow->key, &flow->client, &subject, flow->opened);

	if (verdict.outcome != OUTCOME_ALLOW)
		ruling_report_flow(gate, flow, STAGE_REQUEST, &verdict, NULL, problem, now);
	if (verdict_refuses(&verdict)) {
		settle_refuse(gate, flow, arrival, &verdict, now);
		return;
	}
	*flow_use(flow) = (struct flow_use){.kind = REQUEST_HTTP1, .malformed = true};
	flow->used = true;
	settle_allow(gate, flow, arrival, now);
}

static const struct name *name_of(const struct request *request)
{
	return !request->malformed && request->host.kind == HOST_NAME ? &request->host.name : NULL;
}

static void remember_use(struct flow *flow, const struct request *request, bool pinned)
{
	bool direct = request->form == TARGET_ORIGIN || request->form == TARGET_ASTERISK;

	*flow_use(flow) = (struct flow_use){.host = direct ? request->host : request->target_host,
					    .kind = (uint8_t)request->kind,
					    .form = (uint8_t)request->form,
					    .malformed = request->malformed,
					    .pinned = pinned};
	flow->used = true;
}

/* Reports VERDICT on EVENT and remembers its name. WORDS are of or about the hook. EARLY: its own
 * event will follow. */
static enum settled conclude(struct gate *gate, struct flow *flow, const struct stream_event *event,
			     bool early, const struct verdict *verdict, bool pinned,
			     const char *words, uint64_t now)
{
	const struct name *name = name_of(&event->request);
	bool refused = verdict_refuses(verdict) || verdict->outcome == OUTCOME_WAIT;
	bool allowed_first = verdict->outcome == OUTCOME_ALLOW && !flow->logged && !early;

	if (refused || (verdict->outcome == OUTCOME_DENY && !early) ||
	    (allowed_first && gate->log_allowed))
		ruling_report_flow(gate, flow, STAGE_REQUEST, verdict, name,
				   words[0] != '\0' ? words : event->problem, now);
	if (refused)
		return SETTLED_REFUSED;
	if (allowed_first) {
		flow->logged = true;
		gate->counters[COUNTER_ALLOWED]++;
	}
	remember_use(flow, &event->request, pinned);
	return SETTLED_ALLOWED;
}

enum settled settle_event(struct gate *gate, struct flow *flow, struct stream_event *event,
			  bool early, struct verdict *verdict, uint64_t now)
{
	struct reader_slot *reader = flow->reader;
	const char *words = "";
	bool pinned;

	*verdict = ruling_request(gate, flow, event, &pinned);
	if (verdict->asks_hook) {
		enum hook_answer answer = HOOK_ERROR;
		if (reader->hooked_early) {
			answer = reader->hooked;
		} else {
			words = ruling_ask(gate, flow, verdict, &event->request, now);
			reader->asking_early = early;
			if (words == NULL)
				return SETTLED_ASKING;
		}
		*verdict = policy_hooked(gate->image, flow->policy, verdict, answer);
		flow->lifted = !verdict_refuses(verdict);
	}
	return conclude(gate, flow, event, early, verdict, pinned, words, now);
}

enum settled settle_hooked_event(struct gate *gate, struct flow *flow, struct stream_event *event,
				 enum hook_answer answer, const char *words,
				 struct verdict *verdict, uint64_t now)
{
	bool early = flow->reader->asking_early, pinned;

	if (words == NULL)
		return settle_event(gate, flow, event, early, verdict, now);
	*verdict = ruling_request(gate, flow, event, &pinned);
	*verdict = policy_hooked(gate->image, flow->policy, verdict, answer);
	flow->lifted = !verdict_refuses(verdict);
	return conclude(gate, flow, event, early, verdict, pinned, words, now);
}
