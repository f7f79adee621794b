/* SPDX-License-Identifier: GPL-2.0-or-later */

/* STAGE_CONNECT, and the parts of it that STAGE_REQUEST uses. */

#include "rules/flow.h"

#include <netinet/in.h>
#include <string.h>

#include "rules/classify.h"
#include "rules/embedding.h"

/* RFC 7858 section 3.1, RFC 9250 section 4.1: DNS over TLS and over QUIC. */
#define PORT_DNS_OVER_TLS 853
/* RFC 9114 section 3.1: HTTP/3 at the port of https. */
#define PORT_QUIC 443

void flow_begin(const struct judge *judge, const struct connection *connection, uint64_t now,
		struct flow *out)
{
	*out = (struct flow){.judge = judge,
			     .connection = connection,
			     .destination = embedding_unmap(&connection->destination),
			     .now = now,
			     .scheme = SCHEME_ANY};
}

static bool has_ports(const struct flow *flow)
{
	return flow->connection->protocol == IPPROTO_TCP ||
	       flow->connection->protocol == IPPROTO_UDP;
}

bool flow_is_our_dns(const struct flow *flow, struct place *place)
{
	const struct policy_image *image = flow->judge->image;
	const struct list_query query = flow_query(flow);
	const struct image_rule *rule = NULL;

	if (has_ports(flow))
		rule = list_find_address(image, &image->wide[WIDE_LISTEN], &flow->destination,
					 &query);
	if (rule != NULL)
		*place = rule_place(rule);
	return rule != NULL;
}

bool rule_self(const struct flow *flow, struct verdict *out)
{
	const struct policy_image *image = flow->judge->image;
	const struct list_query query = flow_query(flow);
	const struct image_rule *rule = NULL;

	if (has_ports(flow))
		rule = list_find_any_form(image, &image->wide[WIDE_OWN], &flow->destination,
					  &query);
	return rule != NULL && judge_deny(REASON_SELF, rule_place(rule), out);
}

/* The table that pins come from is written by the resolver: nothing in it is taken on trust. */
static bool pin_holds(const struct flow *flow, const struct pin *pin)
{
	return pin->name.length > 0 && pin->name.length <= NAME_TEXT_MAX &&
	       embedding_same(&pin->address, &flow->destination);
}

static bool pin_lives(const struct flow *flow, const struct pin *pin)
{
	return flow->now < pin->expiry && pin_holds(flow, pin);
}

static bool is_loopback(const struct flow *flow)
{
	return class_of_address(&flow->destination, NULL) == CLASS_BIT(CLASS_LOOPBACK);
}

/* A static name of the destination; RULE goes through them, NULL begins. */
static const struct image_rule *next_static(const struct flow *flow, const struct image_rule *rule,
					    struct name *name)
{
	const struct policy_image *image = flow->judge->image;
	const struct image_list *list = &image->wide[WIDE_HOST_ADDRESSES];
	const struct image_host *hosts = image_at(image, image->hosts.offset);
	const struct list_query any = {.port_rule = PORT_ANY};

	rule = rule == NULL ? list_find_single_form(image, list, &flow->destination, &any)
			    : list_next(image, list, rule);
	if (rule == NULL)
		return NULL;
	const struct image_host *host = &hosts[rule->value];
	name->length = (uint8_t)host->key_length;
	memcpy(name->text, image_at(image, host->key), host->key_length);
	name->text[name->length] = '\0';
	return rule;
}

bool flow_is_static(const struct flow *flow, const struct named *named)
{
	const struct image_rule *rule = NULL;
	struct name name;

	while ((rule = next_static(flow, rule, &name)) != NULL)
		if (named == NULL || name_equal(&name, named->walk.name))
			return true;
	return false;
}

bool flow_is_pinned(const struct flow *flow, const struct named *named)
{
	const struct connection *connection = flow->connection;

	/* localhost is loopback by nature, and nothing else, whoever pinned it elsewhere */
	if (named != NULL && named->facts.kind == NAMES_LOCALHOST)
		return is_loopback(flow);
	for (size_t i = 0; i < connection->pin_count; i++)
		if (pin_lives(flow, &connection->pins[i]) &&
		    (named == NULL || name_equal(&connection->pins[i].name, named->walk.name)))
			return true;
	return flow_is_static(flow, named);
}

bool flow_has_expired(const struct flow *flow)
{
	for (size_t i = 0; i < flow->connection->pin_count; i++) {
		const struct pin *pin = &flow->connection->pins[i];
		if (pin_holds(flow, pin) && flow->now >= pin->expiry)
			return true;
	}
	return false;
}

static bool lists_destination(const struct flow *flow, struct place *place)
{
	const struct list_query query = flow_query(flow);

	return judge_lists_address(flow->judge, &flow->destination, &query, place);
}

bool flow_opens_literal(const struct flow *flow)
{
	const struct image_policy *policy = flow->judge->policy;

	return lists_destination(flow, NULL) || (!policy_is(policy, OPTION_DEFAULT_DENY) &&
						 !policy_is(policy, OPTION_LITERALS_DENY));
}

bool flow_deny_unpinned(const struct flow *flow, struct verdict *out)
{
	const struct image_policy *policy = flow->judge->policy;
	struct place place = policy_place(policy, OPTION_LITERALS_DENY);

	if (place.line == 0)
		place = policy_place(policy, OPTION_DEFAULT_DENY);
	return judge_deny(flow_has_expired(flow) ? REASON_EXPIRED : REASON_UNPINNED, place, out);
}

/* An entry that spells the port out is somebody's own encrypted DNS server. */
static bool lists_dot_port(const struct flow *flow, const struct named *named)
{
	const struct image_policy *policy = flow->judge->policy;
	const struct list_query query = flow_query(flow);
	const struct image_list *list = &policy->lists[LIST_ALLOW_HOSTS];
	const struct image_rule *rule =
		list_find_single_form(flow->judge->image, list, &flow->destination, &query);

	if (rule == NULL && named != NULL)
		rule = list_find_name(flow->judge->image, list, &named->walk, &query);
	return rule != NULL && rule->port == PORT_DNS_OVER_TLS;
}

/* Rule 5 for encrypted DNS by port, since its servers have more names than a list can know. */
static bool rule_encrypted_port(const struct flow *flow, const struct named *named,
				struct verdict *out)
{
	const struct image_policy *policy = flow->judge->policy;

	return has_ports(flow) && flow->connection->port == PORT_DNS_OVER_TLS &&
	       policy_is(policy, OPTION_BLOCK_ENCRYPTED_DNS) && !lists_dot_port(flow, named) &&
	       judge_deny(REASON_ENCRYPTED_DNS, policy_place(policy, OPTION_BLOCK_ENCRYPTED_DNS),
			  out);
}

/* Rule 5 under a name. */
static bool rule_blocked(const struct flow *flow, const struct named *named, struct verdict *out)
{
	const struct list_query query = flow_query(flow);

	return judge_asked(flow->judge, REASON_BIT(BLOCKED_HOST) | REASON_BIT(ENCRYPTED_DNS),
			   rule_blocked_name(flow->judge, named, &query, out) ||
				   rule_encrypted_port(flow, named, out),
			   out);
}

/* Rule 8 under a name. */
static bool rule_name_rebinding(const struct flow *flow, const struct named *named,
				struct verdict *out)
{
	const struct judge *judge = flow->judge;
	struct place by = {0};
	bool refuses = !judge_may_rebind(judge, named, &by) &&
		       rule_rebinding(judge, &flow->destination, out);

	if (judge->trace != NULL && by.line != 0 && rule_rebinding(judge, &flow->destination, out))
		judge_lifts(judge, REASON_REBINDING, by);
	return judge_asked(judge, REASON_BIT(REBINDING), refuses, out);
}

/* Rules 7 to 9 under a name, LISTED at PLACE or not. */
static bool rule_name_rest(const struct flow *flow, const struct named *named, bool listed,
			   struct place place, struct verdict *out)
{
	const struct judge *judge = flow->judge;
	bool listed_address = lists_destination(flow, NULL);

	judge_listed(judge, listed, place);
	return rule_not_allowlisted(judge, listed, place, out) ||
	       rule_name_rebinding(flow, named, out) ||
	       rule_nine(judge, &flow->destination,
			 listed_address || (listed && !judge_is_public(named)), named, listed, out);
}

/* The destination under one name that is pinned to it. */
static struct verdict judge_pinned(const struct flow *flow, const struct name *name, bool is_static)
{
	const struct judge *judge = flow->judge;
	const struct list_query query = flow_query(flow);
	struct place place = {0};
	struct named named;
	struct verdict v;

	flow_trace(flow, TRACE_NAME, name);
	judge_name(judge, name, &named);
	if (judge_asked(judge, REASON_BIT(METADATA), rule_floor_name(judge, &named, &v), &v) ||
	    rule_blocked(flow, &named, &v))
		return v;
	/* the operator wrote a static name's addresses: no rebinding */
	if (is_static && named.facts.kind == NAMES_PUBLIC)
		named.facts.kind = NAMES_EXEMPT;
	bool listed = judge_lists_name(judge, &named, &query, &place);
	if (rule_name_rest(flow, &named, listed, place, &v))
		return v;
	return judge_allow(place);
}

/* A loopback address under localhost or some child of it: which one only the first request tells.
 */
static struct verdict judge_localhost(const struct flow *flow)
{
	static const struct name localhost = {.length = 9, .text = "localhost"};
	const struct judge *judge = flow->judge;
	const struct list_query query = flow_query(flow);
	struct place place = {0};
	struct named named;
	struct verdict v;

	flow_trace(flow, TRACE_NAME, &localhost);
	judge_name(judge, &localhost, &named);
	if (rule_blocked(flow, &named, &v))
		return v;
	const struct image_rule *rule = list_find_name(
		judge->image, &judge->policy->lists[LIST_ALLOWED_LOCALHOST], &named.walk, &query);
	if (rule != NULL)
		place = rule_place(rule);
	if (rule_name_rest(flow, &named, rule != NULL, place, &v))
		return v;
	return judge_allow(place);
}

/* An expired name that the allow lists hold: then the pin is what is missing, not the entry. */
static bool lists_expired_name(const struct flow *flow)
{
	const struct list_query query = flow_query(flow);

	for (size_t i = 0; i < flow->connection->pin_count; i++) {
		const struct pin *pin = &flow->connection->pins[i];
		struct named named;
		if (!pin_holds(flow, pin) || flow->now < pin->expiry)
			continue;
		judge_name(flow->judge, &pin->name, &named);
		if (judge_lists_name(flow->judge, &named, &query, NULL))
			return true;
	}
	return false;
}

/* The bare address. */
static struct verdict judge_bare(const struct flow *flow)
{
	const struct judge *judge = flow->judge;
	struct place place = {0};
	bool listed = lists_destination(flow, &place);
	struct verdict v;

	flow_trace(flow, TRACE_ADDRESS, NULL);
	if (judge_asked(judge, REASON_BIT(ENCRYPTED_DNS), rule_encrypted_port(flow, NULL, &v), &v))
		return v;
	judge_listed(judge, listed, place);
	if (rule_not_allowlisted(judge, listed || lists_expired_name(flow), place, &v) ||
	    judge_asked(judge, REASONS_NINE & ~REASON_BIT(PRIVATE_HOST),
			rule_reachability(judge, &flow->destination, listed, &v), &v) ||
	    judge_asked(judge, REASON_BIT(EXPIRED) | REASON_BIT(UNPINNED),
			!flow_opens_literal(flow) && flow_deny_unpinned(flow, &v), &v))
		return v;
	return judge_allow(place);
}

/* Adds one candidate; true when it passes. */
static bool passes(struct verdict candidate, struct verdict *kept)
{
	if (candidate.outcome == OUTCOME_ALLOW)
		*kept = candidate;
	else
		judge_keep_first(kept, &candidate);
	return candidate.outcome == OUTCOME_ALLOW;
}

struct verdict flow_judge_names(const struct flow *flow)
{
	const struct connection *connection = flow->connection;
	const struct image_rule *rule = NULL;
	struct verdict kept = {0};
	bool named = false;
	struct name name;

	for (size_t i = 0; i < connection->pin_count; i++) {
		if (!pin_lives(flow, &connection->pins[i]))
			continue;
		named = true;
		if (passes(judge_pinned(flow, &connection->pins[i].name, false), &kept))
			return kept;
	}
	while ((rule = next_static(flow, rule, &name)) != NULL) {
		named = true;
		if (passes(judge_pinned(flow, &name, true), &kept))
			return kept;
	}
	if (is_loopback(flow) && passes(judge_localhost(flow), &kept))
		return kept;
	/* an address that is known under a name is not used without one, unless a list says so */
	if ((!named || lists_destination(flow, NULL)) && passes(judge_bare(flow), &kept))
		return kept;
	return kept;
}

/* A side question: no trace tells of it. */
static bool is_listed_in(const struct flow *flow, enum policy_list list)
{
	const struct judge *judge = flow->judge;
	const struct image_list *entries = &judge->policy->lists[list];
	const struct connection *connection = flow->connection;
	const struct list_query query = flow_query(flow);
	const struct image_rule *rule = NULL;
	struct name_walk walk;
	struct name name;

	if (entries->rules.count == 0)
		return false;
	if (list_find_single_form(judge->image, entries, &flow->destination, &query) != NULL)
		return true;
	for (size_t i = 0; i < connection->pin_count; i++) {
		const struct pin *pin = &connection->pins[i];
		if (!pin_lives(flow, pin))
			continue;
		names_walk(&pin->name, &walk);
		if (list_find_name(judge->image, entries, &walk, &query) != NULL &&
		    judge_pinned(flow, &pin->name, false).outcome == OUTCOME_ALLOW)
			return true;
	}
	while ((rule = next_static(flow, rule, &name)) != NULL) {
		names_walk(&name, &walk);
		if (list_find_name(judge->image, entries, &walk, &query) != NULL &&
		    judge_pinned(flow, &name, true).outcome == OUTCOME_ALLOW)
			return true;
	}
	return false;
}

bool flow_is_listed_in(const struct flow *flow, enum policy_list list)
{
	struct judge untold = *flow->judge;
	struct flow aside = *flow;

	untold.trace = NULL;
	aside.judge = &untold;
	return is_listed_in(&aside, list);
}

/* Ports that uid 0 of this host needs wherever its network has put the servers: DHCP, NTP, DHCPv6.
 */
static bool root_needs(const struct flow *flow)
{
	uint16_t port = flow->connection->port;

	return flow->judge->subject->root && flow->connection->protocol == IPPROTO_UDP &&
	       (port == 67 || port == 68 || port == 123 || port == 547);
}

/* What is read as QUIC, wherever it goes. */
static bool is_quic(const struct flow *flow)
{
	return flow->judge->image->quic_inspect != 0 && flow->connection->protocol == IPPROTO_UDP &&
	       flow->connection->port == PORT_QUIC;
}

/* A list of services lets datagrams go unread only where datagrams are allowed at all. */
static bool opens_raw(const struct flow *flow)
{
	return flow->connection->protocol == IPPROTO_TCP ||
	       policy_is(flow->judge->policy, OPTION_UDP_ALLOW);
}

static bool rule_protocol(const struct flow *flow, struct verdict *out)
{
	enum policy_option option;

	switch (flow->connection->protocol) {
	case IPPROTO_TCP:
		return false;
	case IPPROTO_UDP:
		option = OPTION_UDP_ALLOW;
		if (is_quic(flow)) /* its name is read */
			return false;
		/* browsers then fall back to TCP, where the name can be read */
		if (flow->connection->port == PORT_QUIC && !flow->judge->lifted)
			return judge_deny(REASON_PROTOCOL, (struct place){0}, out);
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		option = OPTION_ICMP_ALLOW;
		break;
	default:
		option = OPTION_OTHER_ALLOW;
		break;
	}
	return !policy_is(flow->judge->policy, option) &&
	       judge_deny(REASON_PROTOCOL, policy_place(flow->judge->policy, option), out);
}

static struct verdict judge_connection(const struct flow *flow)
{
	const struct judge *judge = flow->judge;
	const struct connection *c = flow->connection;
	const struct list_query query = flow_query(flow);
	struct place place = {0};
	struct verdict v, self;

	if (judge_asked(judge, 0,
			(c->protocol == 0 || flow->destination.family == ADDRESS_NONE) &&
				judge_deny(REASON_POLICY_ERROR, place, &v),
			&v))
		return v;
	if (judge_asked(judge, REASON_BIT(METADATA),
			rule_floor_address(judge, &c->destination, c->port, c->protocol, &v), &v))
		return v;
	if (flow_is_our_dns(flow, &place))
		return judge_allow(place);

	bool infrastructure =
		judge_is_infrastructure(&c->destination, c->port, c->protocol, &place);
	if (judge_asked(judge, REASON_BIT(INFRASTRUCTURE),
			infrastructure && !judge_opens_infrastructure(judge) &&
				judge_deny(REASON_INFRASTRUCTURE, place, &v),
			&v))
		return v;
	infrastructure = infrastructure || root_needs(flow);
	if ((!infrastructure &&
	     judge_asked(judge, REASON_BIT(PROTOCOL), rule_protocol(flow, &v), &v)) ||
	    judge_asked(judge, REASON_BIT(BLOCKED_HOST),
			rule_blocked_address(judge, &c->destination, &query, &v), &v))
		return v;
	if (infrastructure)
		return judge_allow(place);

	v = flow_judge_names(flow);
	flow_trace(flow, TRACE_FLOW, NULL);
	if (judge_asked(judge, REASON_BIT(SELF), rule_self(flow, &self), &self)) {
		if (v.outcome == OUTCOME_DENY)
			judge_keep_first(&self, &v);
		return self;
	}
	return v;
}

struct verdict policy_connect(const struct policy_image *image, const struct subject *subject,
			      const struct connection *connection, uint64_t now)
{
	struct hook_judge hook;
	struct judge judge;
	struct flow flow;
	struct verdict v, once_more;

	if (!judge_begin(&judge, image, subject, STAGE_CONNECT, &v))
		return v;
	flow_begin(&judge, connection, now, &flow);
	v = judge_connection(&flow);
	if (hook_begin(&judge, STAGE_CONNECT, &v, &hook)) {
		flow_begin(&hook.judge, connection, now, &flow);
		once_more = judge_connection(&flow);
		hook_end(&v, &once_more);
	}
	return judge_end(&judge, v);
}

bool policy_reads_first_bytes(const struct policy_image *image, const struct subject *subject,
			      const struct connection *connection, uint64_t now)
{
	const struct subject untold = {.policy = subject->policy, .root = subject->root};
	struct place place;
	struct judge judge;
	struct flow flow;
	struct verdict v;

	if (!judge_begin(&judge, image, &untold, STAGE_REQUEST, &v))
		return true;
	if (connection->destination.family == ADDRESS_NONE)
		return true;
	flow_begin(&judge, connection, now, &flow);
	if (connection->protocol != IPPROTO_TCP && !is_quic(&flow))
		return false;
	return !flow_is_our_dns(&flow, &place) &&
	       !(judge_is_infrastructure(&connection->destination, connection->port,
					 connection->protocol, &place) &&
		 judge_opens_infrastructure(&judge)) &&
	       !(opens_raw(&flow) && flow_is_listed_in(&flow, LIST_ALLOW_RAW));
}
