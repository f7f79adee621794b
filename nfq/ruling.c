/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "nfq/ruling.h"

#include <netinet/in.h>
#include <string.h>

#include "hook/asker.h"
#include "nfq/audit.h"
#include "secrets/secrets.h"

/* One more than the table gives: the name a flow has used. One packet is judged at a time. */
static struct pin pins[PINS_PER_ADDRESS_MAX + 1];

static struct address address_of(const struct flow_key *key, const uint8_t bytes[16])
{
	return address_from_bytes(bytes, key->family == ADDRESS_IPV4 ? 4 : 16);
}

void ruling_client(struct gate *gate, const struct flow_key *key, bool uid_known, uint32_t uid,
		   uint64_t now, struct client_match *out)
{
	const char *interface =
		key->interface == 0 ? NULL : gate->interface_name(key->interface, now);
	/* The loopback interface carries this host's own traffic alone. */
	bool own = key->interface == 0 || (interface != NULL && strcmp(interface, "lo") == 0);
	struct client_origin origin = {
		.source = address_of(key, key->source),
		/* An interface that is gone is no known one, and still not this host. */
		.interface = own                 ? NULL
			     : interface == NULL ? "?"
						 : interface,
		.own = own,
		.uid_known = own && uid_known,
		.uid = uid,
	};

	bool by_cgroup = own && policy_tells_cgroups(gate->image);

	if (by_cgroup)
		origin.cgroup = gate->cgroup_of(key);
	policy_client(gate->image, &origin, out);
	/*
	 * The packet-filter rules govern whoever is in or below a cgroup of `clients`, and nobody else. So
	 * what is no client's here is below one, and has not the policy of the client `host`.
	 */
	if (by_cgroup && strcmp(out->name, "host") == 0)
		out->governed = out->unknown = true;
}

static struct connection connection_of(struct gate *gate, const struct flow_key *key,
				       const struct client_key *client, const struct name *name,
				       uint64_t now)
{
	struct connection connection = {
		.destination = address_of(key, key->destination),
		.port = key->destination_port,
		.protocol = key->protocol,
		.pins = pins,
	};

	connection.pin_count =
		pins_find(gate->pins, client, &connection.destination, pins, PINS_PER_ADDRESS_MAX);
	if (name != NULL) {
		struct pin *pin = &pins[connection.pin_count++];
		pin->client = *client;
		pin->address = connection.destination;
		pin->name = *name;
		pin->expiry = now + 1;
	}
	return connection;
}

struct ruling ruling_connect(struct gate *gate, const struct flow_key *key,
			     const struct client_match *client, const struct name *name,
			     uint64_t now)
{
	struct subject subject = {.policy = client->policy, .root = client->root};
	struct connection connection = connection_of(gate, key, &client->key, name, now);
	struct ruling ruling = {
		.verdict = policy_connect(gate->image, &subject, &connection, now),
		.name = connection.pin_count == 1 ? &pins[0].name : NULL,
	};

	if (client->unknown && (!verdict_refuses(&ruling.verdict) || ruling.verdict.asks_hook))
		ruling.verdict = ruling_own();
	if (!verdict_refuses(&ruling.verdict) || ruling.verdict.asks_hook)
		ruling.reads = policy_reads_first_bytes(gate->image, &subject, &connection, now);
	return ruling;
}

struct verdict ruling_unreadable(struct gate *gate, const struct flow_key *key,
				 const struct client_key *client, const struct subject *subject,
				 uint64_t now)
{
	struct request request = {
		.connection = connection_of(gate, key, client, NULL, now),
		.kind = REQUEST_HTTP1,
		.malformed = true,
		.scheme = "",
	};

	struct verdict verdict = policy_request(gate->image, subject, &request, now);

	/* a destination that is not read; what cannot be read cannot be put to the hook either */
	return policy_hooked(gate->image, subject->policy, &verdict, HOOK_ERROR);
}

static bool name_is_pinned(const struct request *request, uint64_t now)
{
	const struct connection *connection = &request->connection;

	if (request->malformed || request->host.kind != HOST_NAME)
		return false;
	for (size_t i = 0; i < connection->pin_count; i++)
		if (now < connection->pins[i].expiry &&
		    name_equal(&connection->pins[i].name, &request->host.name))
			return true;
	return false;
}

/* The name of a secret in REQUEST's target, which is noted there, or NULL. */
static const char *find_secret(struct gate *gate, const struct flow *flow, struct request *request)
{
	struct secret secret;

	request->secret =
		!request->malformed && request->target != NULL &&
		policy_searches_secrets(gate->image, flow->policy) &&
		secrets_find(gate->secrets, request->target, request->target_length, &secret) > 0;
	if (!request->secret)
		return NULL;
	request->secret_line = secret.line;
	return secret.name;
}

struct verdict ruling_request(struct gate *gate, const struct flow *flow,
			      struct stream_event *event, bool *pinned)
{
	struct request *request = &event->request;
	struct subject subject = {.policy = flow->policy, .root = flow->root};
	const struct flow_use *use = flow_use(flow);
	const struct name *used = flow->used && use->pinned ? &use->host.name : NULL;

	request->connection = connection_of(gate, &flow->key, &flow->client, used, flow->opened);
	*pinned = name_is_pinned(request, flow->opened);
	const char *secret = find_secret(gate, flow, request);
	struct verdict verdict = policy_request(gate->image, &subject, request, flow->opened);

	if (verdict.reason == REASON_SECRET_URL)
		event->problem = secret;
	return verdict;
}

struct verdict ruling_again(struct gate *gate, const struct flow *flow,
			    const struct client_match *client)
{
	struct subject subject = {.policy = client->policy, .root = client->root};
	const struct flow_use *use = flow_use(flow);
	struct request request = {.scheme = ""};

	if (!flow->used)
		return ruling_connect(gate, &flow->key, client, NULL, flow->opened).verdict;
	request.connection = connection_of(gate, &flow->key, &client->key,
					   use->pinned ? &use->host.name : NULL, flow->opened);
	request.kind = (enum request_kind)use->kind;
	request.form = (enum target_form)use->form;
	request.malformed = use->malformed;
	request.host = use->host;
	if (request.form == TARGET_ABSOLUTE || request.form == TARGET_AUTHORITY)
		request.target_host = use->host;
	if (request.form == TARGET_ABSOLUTE)
		request.scheme = "http";
	return policy_request(gate->image, &subject, &request, flow->opened);
}

struct verdict ruling_forgotten(struct gate *gate, const struct flow_key *key,
				const struct client_match *client, uint64_t now)
{
	struct subject subject = {.policy = client->policy, .root = client->root};
	struct connection connection = {
		.destination = address_of(key, key->destination),
		.port = key->destination_port,
		.protocol = key->protocol,
		.pins = pins,
	};

	return policy_connect(gate->image, &subject, &connection, now);
}

const char *ruling_ask(struct gate *gate, struct flow *flow, const struct verdict *verdict,
		       const struct request *request, uint64_t now)
{
	char client_buffer[ADDRESS_TEXT_SIZE], host_buffer[ADDRESS_TEXT_SIZE];
	struct address source = address_of(&flow->key, flow->key.source);
	struct connection connection =
		connection_of(gate, &flow->key, &flow->client, NULL, flow->opened);
	struct client_match client;

	ruling_client(gate, &flow->key, flow->uid_known, flow->uid, now, &client);
	struct hook_question question = {
		.stage = request == NULL ? STAGE_CONNECT : STAGE_REQUEST,
		.client = client.name[0] != '\0' ? client.name
						 : address_format(&source, client_buffer),
		.scheme = "",
		.verdict = verdict,
	};
	hook_question_connection(&question, &connection, flow->opened);
	if (request != NULL)
		hook_question_request(&question, request, host_buffer);
	int error = gate->ask(flow->policy, &question, &flow->client, flow, now, &flow->question);
	if (error != 0)
		return asker_problem(error);
	flow_enter(flow, FLOW_ASKING, now);
	return NULL;
}

void ruling_report(struct gate *gate, const struct flow_key *key, const struct client_match *client,
		   enum stage stage, const struct verdict *verdict, const struct name *name,
		   const char *detail, uint64_t now)
{
	struct audit_event event = {
		.stage = stage,
		.verdict = *verdict,
		.client = client,
		.source = address_of(key, key->source),
		.destination = address_of(key, key->destination),
		.port = key->destination_port,
		.protocol = key->protocol,
		.name = name,
		.detail = detail,
	};

	audit_report(gate, &event, now);
}

void ruling_report_flow(struct gate *gate, const struct flow *flow, enum stage stage,
			const struct verdict *verdict, const struct name *name, const char *detail,
			uint64_t now)
{
	struct client_match client;

	ruling_client(gate, &flow->key, flow->uid_known, flow->uid, now, &client);
	ruling_report(gate, &flow->key, &client, stage, verdict, name, detail, now);
}

struct verdict ruling_own(void)
{
	return (struct verdict){
		.outcome = OUTCOME_DENY, .reason = REASON_POLICY_ERROR, .enforced = true};
}
