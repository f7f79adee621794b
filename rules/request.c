/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * STAGE_REQUEST: the first request of a flow, or a later one on the same connection.
 *
 * What a request speaks for is its authority: the Host or SNI, or for a request to a named proxy
 * the target. A target that is not for a proxy must say the same as Host.
 */

#include <netinet/in.h>
#include <string.h>

#include "rules/embedding.h"
#include "rules/flow.h"

/* A host of the request with what is known of it. */
struct party {
	const struct host *host;
	struct named named; /* HOST_NAME */
	uint16_t port;
	enum match_scheme scheme;
	bool listed;
	struct place place; /* of the entry that lists it */
};

struct asked {
	const struct judge *judge;
	const struct request *request;
	struct flow flow;
	bool reachable; /* the destination is known */
	bool proxied;
	struct party host;
	struct party target; /* host->kind HOST_NONE when the target has no authority */
};

static const struct host no_host = {.kind = HOST_NONE};

static struct list_query party_query(const struct party *party)
{
	return (struct list_query){
		.port_rule = PORT_THIS, .port = party->port, .scheme = party->scheme};
}

static void party_begin(const struct judge *judge, const struct host *host, uint16_t port,
			enum match_scheme scheme, struct party *out)
{
	out->host = host;
	out->port = port;
	out->scheme = scheme;
	out->listed = false;
	out->place = (struct place){0};

	struct list_query query = party_query(out);
	if (host->kind == HOST_NAME) {
		judge_name(judge, &host->name, &out->named);
		out->listed = judge_lists_name(judge, &out->named, &query, &out->place);
	} else if (host->kind == HOST_LITERAL) {
		out->listed = judge_lists_address(judge, &host->literal, &query, &out->place);
	}
}

static uint16_t default_port(const char *scheme)
{
	return strcmp(scheme, "https") == 0 || strcmp(scheme, "wss") == 0 ? 443 : 80;
}

static bool scheme_is_known(const char *scheme)
{
	static const char *const known[] = {"http", "https", "ws", "wss"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(scheme, known[i]) == 0)
			return true;
	return false;
}

static void begin(const struct judge *judge, const struct request *request, uint64_t now,
		  struct asked *out)
{
	bool tls = request->kind == REQUEST_TLS;
	enum match_scheme scheme = tls ? SCHEME_HTTPS : SCHEME_HTTP;
	const struct host *host = &request->host;
	const struct host *target = &no_host;
	uint16_t port = request->connection.port;

	out->judge = judge;
	out->request = request;
	out->reachable = request->connection.destination.family != ADDRESS_NONE;
	flow_begin(judge, &request->connection, now, &out->flow);
	if (request->form == TARGET_ABSOLUTE || request->form == TARGET_AUTHORITY)
		target = &request->target_host;
	out->proxied = target->kind != HOST_NONE && out->reachable &&
		       flow_is_listed_in(&out->flow, LIST_PROXIES);
	out->flow.scheme = scheme;
	if (port == 0)
		port = host->port != 0 ? host->port : tls ? 443 : 80;
	/* RFC 9112 section 3.2.2: without a Host the absolute target is the authority */
	if (host->kind == HOST_NONE && request->form == TARGET_ABSOLUTE && !out->proxied)
		host = target;
	party_begin(judge, host, port, scheme, &out->host);

	uint16_t target_port = target->port;
	if (target_port == 0)
		target_port =
			request->form == TARGET_ABSOLUTE ? default_port(request->scheme) : port;
	if (request->form == TARGET_AUTHORITY)
		scheme = SCHEME_ANY; /* what goes through the tunnel is not seen */
	else if (request->form == TARGET_ABSOLUTE)
		scheme = default_port(request->scheme) == 443 ? SCHEME_HTTPS : SCHEME_HTTP;
	party_begin(judge, target, target_port, scheme, &out->target);
}

static bool rule_malformed(const struct asked *asked, struct verdict *out)
{
	const struct request *request = asked->request;

	return judge_asked(asked->judge, REASON_BIT(MALFORMED),
			   (request->malformed || request->host.kind == HOST_MALFORMED ||
			    asked->target.host->kind == HOST_MALFORMED) &&
				   judge_deny(REASON_MALFORMED, (struct place){0}, out),
			   out);
}

static bool party_is_floor(const struct judge *judge, const struct party *party,
			   struct verdict *out)
{
	if (party->host->kind == HOST_NAME)
		return rule_floor_name(judge, &party->named, out);
	return party->host->kind == HOST_LITERAL &&
	       rule_floor_address(judge, &party->host->literal, party->port, IPPROTO_TCP, out);
}

static bool party_is_infrastructure(const struct judge *judge, const struct party *party,
				    struct verdict *out)
{
	struct place place;

	return party->host->kind == HOST_LITERAL && !judge_opens_infrastructure(judge) &&
	       judge_is_infrastructure(&party->host->literal, party->port, IPPROTO_TCP, &place) &&
	       judge_deny(REASON_INFRASTRUCTURE, place, out);
}

static bool rule_floor(const struct asked *asked, struct verdict *out)
{
	const struct connection *c = &asked->request->connection;

	return judge_asked(asked->judge, REASON_BIT(METADATA),
			   (asked->reachable && rule_floor_address(asked->judge, &c->destination,
								   c->port, c->protocol, out)) ||
				   party_is_floor(asked->judge, &asked->host, out) ||
				   party_is_floor(asked->judge, &asked->target, out),
			   out);
}

static bool rule_infrastructure(const struct asked *asked, struct verdict *out)
{
	const struct connection *c = &asked->request->connection;
	struct place place;

	return judge_asked(
		asked->judge, REASON_BIT(INFRASTRUCTURE),
		(asked->reachable && !judge_opens_infrastructure(asked->judge) &&
		 judge_is_infrastructure(&c->destination, c->port, c->protocol, &place) &&
		 judge_deny(REASON_INFRASTRUCTURE, place, out)) ||
			party_is_infrastructure(asked->judge, &asked->host, out) ||
			party_is_infrastructure(asked->judge, &asked->target, out),
		out);
}

static bool scheme_is_refused(const struct asked *asked, struct verdict *out)
{
	const struct request *request = asked->request;
	const struct image_policy *policy = asked->judge->policy;

	if (asked->judge->lifted)
		return false;
	switch (request->kind) {
	case REQUEST_OTHER:
		return judge_deny(REASON_SCHEME, (struct place){0}, out);
	case REQUEST_HTTP2:
		return !policy_is(policy, OPTION_HTTP2_ALLOW) &&
		       judge_deny(REASON_HTTP2, policy_place(policy, OPTION_HTTP2_ALLOW), out);
	case REQUEST_HTTP1:
	case REQUEST_TLS:
		break;
	}
	return request->form == TARGET_ABSOLUTE && !scheme_is_known(request->scheme) &&
	       judge_deny(REASON_SCHEME, (struct place){0}, out);
}

static bool rule_scheme(const struct asked *asked, struct verdict *out)
{
	return judge_asked(asked->judge, REASON_BIT(SCHEME) | REASON_BIT(HTTP2),
			   scheme_is_refused(asked, out), out);
}

/* Rule 4. The search itself needs a library, so the caller has done it. */
static bool rule_secret_url(const struct asked *asked, struct verdict *out)
{
	return judge_asked(
		asked->judge, REASON_BIT(SECRET_URL),
		asked->request->secret &&
			policy_is(asked->judge->policy, OPTION_BLOCK_SECRET_BEARING_URLS) &&
			judge_deny(
				REASON_SECRET_URL,
				(struct place){SOURCE_SECRET_SHAPES, asked->request->secret_line},
				out),
		out);
}

static bool party_is_blocked(const struct judge *judge, const struct party *party,
			     struct verdict *out)
{
	const struct list_query query = party_query(party);

	if (party->host->kind == HOST_NAME)
		return rule_blocked_name(judge, &party->named, &query, out);
	return party->host->kind == HOST_LITERAL &&
	       rule_blocked_address(judge, &party->host->literal, &query, out);
}

static bool rule_blocked(const struct asked *asked, struct verdict *out)
{
	const struct list_query query = flow_query(&asked->flow);
	struct verdict kept = {0}, v;

	/* two rules: the first of them, asked of every part, comes before the second */
	if (asked->reachable &&
	    rule_blocked_address(asked->judge, &asked->request->connection.destination, &query, &v))
		judge_keep_first(&kept, &v);
	if (party_is_blocked(asked->judge, &asked->host, &v))
		judge_keep_first(&kept, &v);
	if (party_is_blocked(asked->judge, &asked->target, &v))
		judge_keep_first(&kept, &v);
	if (kept.reason != REASON_NONE)
		*out = kept;
	return judge_asked(asked->judge, REASON_BIT(BLOCKED_HOST) | REASON_BIT(ENCRYPTED_DNS),
			   kept.reason != REASON_NONE, &kept);
}

static bool rule_party_listed(const struct judge *judge, const struct party *party,
			      struct verdict *out)
{
	if (party->host->kind == HOST_NONE)
		return false;
	judge_listed(judge, party->listed, party->place);
	return rule_not_allowlisted(judge, party->listed, party->place, out);
}

/* Rule 9 as far as the host itself tells. */
static bool rule_party_reachable(const struct judge *judge, const struct party *party,
				 struct verdict *out)
{
	switch (party->host->kind) {
	case HOST_NAME:
		return judge_asked(judge, REASON_BIT(LOOPBACK) | REASON_BIT(PRIVATE_HOST),
				   rule_private_host(judge, &party->named, party->listed, out),
				   out);
	case HOST_LITERAL:
		return judge_asked(
			judge, REASONS_NINE & ~REASON_BIT(PRIVATE_HOST),
			rule_reachability(judge, &party->host->literal, party->listed, out), out);
	case HOST_NONE:
	case HOST_MALFORMED:
		break;
	}
	return false;
}

/* A host that a proxy will resolve, or one without a destination: rules 7 and 9 by what it says. */
static struct verdict judge_party(const struct judge *judge, const struct party *party)
{
	struct verdict v;

	if (rule_party_listed(judge, party, &v) || rule_party_reachable(judge, party, &v))
		return v;
	return judge_allow(party->place);
}

static bool is_pinned_as(const struct asked *asked)
{
	const struct party *host = &asked->host;

	return host->host->kind == HOST_NAME && flow_is_pinned(&asked->flow, &host->named);
}

/* Rule 8 once more: a pin of a public name must not lead inside, whoever wrote it. */
static bool rule_pinned_rebinding(const struct asked *asked, struct verdict *out)
{
	const struct flow *flow = &asked->flow;

	const struct judge *judge = asked->judge;
	struct place by = {0};
	bool refuses = is_pinned_as(asked) && rule_rebinding(judge, &flow->destination, out);

	if (refuses && (judge_may_rebind(judge, &asked->host.named, &by) ||
			flow_is_static(flow, &asked->host.named)))
		refuses = judge_is_public(&asked->host.named) &&
			  judge_lifts(judge, REASON_REBINDING, by);
	return judge_asked(judge, REASON_BIT(REBINDING), refuses, out);
}

static bool rule_reachable(const struct asked *asked, struct verdict *out)
{
	const struct judge *judge = asked->judge;
	const struct party *host = &asked->host;
	const struct list_query query = flow_query(&asked->flow);
	bool lifted =
		judge_lists_address(judge, &asked->flow.destination, &query, NULL) ||
		(host->host->kind == HOST_NAME && host->listed && !judge_is_public(&host->named));

	if (judge_asked(judge, REASON_BIT(SELF), rule_self(&asked->flow, out), out))
		return true;
	if (host->host->kind != HOST_NAME)
		return judge_asked(judge, REASONS_NINE & ~REASON_BIT(PRIVATE_HOST),
				   rule_reachability(judge, &asked->flow.destination, lifted, out),
				   out);
	return rule_nine(judge, &asked->flow.destination, lifted, &host->named, host->listed, out);
}

/* Rule 10: an address that the client was never given. */
static bool rule_unpinned(const struct asked *asked, struct verdict *out)
{
	return judge_asked(asked->judge, REASON_BIT(EXPIRED) | REASON_BIT(UNPINNED),
			   !flow_opens_literal(&asked->flow) &&
				   !flow_is_pinned(&asked->flow, NULL) && !is_pinned_as(asked) &&
				   flow_deny_unpinned(&asked->flow, out),
			   out);
}

static bool deny_mismatch(struct verdict *out)
{
	return judge_deny(REASON_NAME_MISMATCH, (struct place){0}, out);
}

static bool same_host(const struct host *a, const struct host *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind == HOST_NAME ? name_equal(&a->name, &b->name)
				    : embedding_same(&a->literal, &b->literal);
}

/* A target that is not for a proxy: CONNECT has no business here, an absolute one repeats Host. */
static bool target_disagrees(const struct asked *asked)
{
	const struct party *target = &asked->target;

	if (asked->request->form == TARGET_AUTHORITY)
		return true;
	return target->host->kind != HOST_NONE &&
	       (!same_host(target->host, asked->host.host) ||
		(asked->reachable && target->port != asked->request->connection.port));
}

static bool name_is_refused(const struct asked *asked, struct verdict *out)
{
	const struct host *host = asked->host.host;
	const struct flow *flow = &asked->flow;

	if (target_disagrees(asked) || (host->port != 0 && host->port != flow->connection->port))
		return deny_mismatch(out);
	switch (host->kind) {
	case HOST_NAME:
		return !is_pinned_as(asked) && deny_mismatch(out);
	case HOST_LITERAL:
		if (!embedding_same(&host->literal, &flow->destination))
			return deny_mismatch(out);
		/* pinned or not, this uses the bare address */
		return !flow_opens_literal(flow) && flow_deny_unpinned(flow, out);
	case HOST_NONE:
		return !flow_opens_literal(flow) &&
		       judge_deny(REASON_NO_NAME,
				  policy_place(flow->judge->policy, OPTION_LITERALS_DENY), out);
	case HOST_MALFORMED:
		break;
	}
	return judge_deny(REASON_MALFORMED, (struct place){0}, out);
}

static bool rule_name(const struct asked *asked, struct verdict *out)
{
	return judge_asked(asked->judge, REASON_BIT(NAME_MISMATCH) | REASON_BIT(NO_NAME),
			   name_is_refused(asked, out), out);
}

/* Rules 7 to 11 for a request to the destination itself. */
static struct verdict judge_direct(const struct asked *asked)
{
	struct verdict v;

	if (asked->host.host->kind == HOST_NONE) {
		v = flow_judge_names(&asked->flow);
		if (v.outcome == OUTCOME_DENY)
			return v;
		flow_trace(&asked->flow, TRACE_FLOW, NULL);
	}
	if (rule_party_listed(asked->judge, &asked->host, &v) ||
	    rule_party_listed(asked->judge, &asked->target, &v) ||
	    rule_pinned_rebinding(asked, &v) || rule_reachable(asked, &v) ||
	    rule_unpinned(asked, &v) || rule_name(asked, &v))
		return v;
	return judge_allow(asked->host.place);
}

/* Rules 7 to 11 through a named proxy: the proxy under its own names, the target by what it says.
 */
static struct verdict judge_proxied(const struct asked *asked)
{
	const struct host *host = asked->host.host;
	struct verdict kept = {0};
	struct verdict target = judge_party(asked->judge, &asked->target);
	struct verdict proxy = flow_judge_names(&asked->flow);
	struct verdict v;

	flow_trace(&asked->flow, TRACE_FLOW, NULL);
	if (judge_asked(asked->judge, REASON_BIT(SELF), rule_self(&asked->flow, &v), &v))
		judge_keep_first(&kept, &v);
	if (proxy.outcome == OUTCOME_DENY)
		judge_keep_first(&kept, &proxy);
	if (target.outcome == OUTCOME_DENY)
		judge_keep_first(&kept, &target);
	if (judge_asked(asked->judge, REASON_BIT(UNPINNED),
			asked->target.host->kind == HOST_LITERAL && !asked->target.listed &&
				policy_is(asked->judge->policy, OPTION_LITERALS_DENY) &&
				judge_deny(REASON_UNPINNED,
					   policy_place(asked->judge->policy, OPTION_LITERALS_DENY),
					   &v),
			&v))
		judge_keep_first(&kept, &v);
	/* Host repeats the target, or two readers would see two requests */
	if (judge_asked(asked->judge, REASON_BIT(NAME_MISMATCH),
			host->kind != HOST_NONE &&
				(!same_host(host, asked->target.host) ||
				 (host->port != 0 && host->port != asked->target.port)) &&
				deny_mismatch(&v),
			&v))
		judge_keep_first(&kept, &v);
	return kept.reason != REASON_NONE ? kept : target;
}

/* Rules 7 to 9 without a destination. */
static struct verdict judge_unreached(const struct asked *asked)
{
	struct verdict v = judge_party(asked->judge, &asked->host), target;

	if (v.outcome == OUTCOME_DENY)
		return v;
	/* neither a destination nor a host: there is nothing that could be allowed */
	if (judge_asked(asked->judge, REASON_BIT(NO_NAME),
			asked->host.host->kind == HOST_NONE &&
				judge_deny(REASON_NO_NAME, (struct place){0}, &v),
			&v))
		return v;
	target = judge_party(asked->judge, &asked->target);
	return target.outcome == OUTCOME_DENY ? target : v;
}

static struct verdict judge_request(const struct asked *asked)
{
	bool audits = judge_audits(asked->judge);
	struct verdict v;

	if ((!audits && rule_malformed(asked, &v)) || rule_floor(asked, &v) ||
	    (audits && rule_malformed(asked, &v)) || rule_infrastructure(asked, &v) ||
	    rule_scheme(asked, &v) || rule_secret_url(asked, &v) || rule_blocked(asked, &v))
		return v;
	if (!asked->reachable)
		return judge_unreached(asked);
	return asked->proxied ? judge_proxied(asked) : judge_direct(asked);
}

struct verdict policy_request(const struct policy_image *image, const struct subject *subject,
			      const struct request *request, uint64_t now)
{
	struct hook_judge hook;
	struct asked asked;
	struct judge judge;
	struct verdict v, once_more;

	if (!judge_begin(&judge, image, subject, STAGE_REQUEST, &v))
		return v;
	if (!policy_reads_first_bytes(image, subject, &request->connection, now))
		return policy_connect(image, subject, &request->connection, now);
	begin(&judge, request, now, &asked);
	v = judge_request(&asked);
	if (hook_begin(&judge, STAGE_REQUEST, &v, &hook)) {
		begin(&hook.judge, request, now, &asked);
		once_more = judge_request(&asked);
		hook_end(&v, &once_more);
	}
	return judge_end(&judge, v);
}
