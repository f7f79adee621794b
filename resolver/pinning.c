/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/pinning.h"

#include <string.h>

/* Targets of one answer that are followed; a client tries its services in turn, and no more than these. */
#define TARGETS_MAX 8u

/* Those that lead to the one asked, and the host of a service. */
#define NAMES_MAX (ALIASES_PER_TARGET + 1)

/*
 * The host of an HTTPS question about another port, `_8443._https.HOST`. Nothing else counts: other
 * underscored names are often somebody else's, by a CNAME.
 */
static bool host_of_service(const struct query_message *message, struct name *out)
{
	static const char scheme[] = "._https.";
	const struct name *name = &message->name;
	size_t digits = strspn(name->text + 1, "0123456789"),
	       skip = 1 + digits + sizeof(scheme) - 1;

	if (message->type != QUERY_TYPE_HTTPS || name->text[0] != '_' || digits == 0 ||
	    strncmp(name->text + 1 + digits, scheme, sizeof(scheme) - 1) != 0)
		return false;
	out->length = (uint8_t)(name->length - skip);
	memcpy(out->text, name->text + skip, (size_t)out->length + 1);
	return true;
}

/* The other names under which the client of QUERY may connect to what its answer holds. */
static size_t other_names(const struct respond *respond, const struct query *query, uint64_t now,
			  struct name out[NAMES_MAX])
{
	size_t count =
		aliases_find(respond->aliases, &query->match.key, &query->message.name, now, out);

	return count + host_of_service(&query->message, &out[count]);
}

/* Would policy hand out PINS as the answer for NAME? */
static bool permits(const struct respond *respond, const struct query *query,
		    const struct name *name, const struct judge_pin *pin)
{
	const struct subject subject = {.policy = query->match.policy, .root = query->match.root};
	const struct answer answer = {.name = name, .addresses = &pin->address, .address_count = 1};
	struct verdict verdict = policy_answer(respond->policy->image, &subject, &answer);

	return !verdict_refuses(&verdict);
}

static int put(struct respond *respond, const struct query *query, const struct name *name,
	       const struct judge_pin *pin, uint32_t age, uint64_t now)
{
	const struct resolver_settings *settings = &respond->policy->settings.resolver;
	uint64_t seconds = pin->ttl > age ? pin->ttl - age : 0;

	if (seconds < settings->pin_min_seconds)
		seconds = settings->pin_min_seconds;
	return pins_put(respond->pins, &query->match.key, name, &pin->address,
			now + (seconds + settings->pin_grace_seconds) * 1000, now);
}

static void put_for_others(struct respond *respond, const struct query *query,
			   const struct name *names, size_t name_count,
			   const struct judge_pin *pins, size_t count, uint32_t age, uint64_t now)
{
	for (size_t n = 0; n < name_count; n++)
		for (size_t i = 0; i < count; i++)
			if (permits(respond, query, &names[n], &pins[i]) &&
			    put(respond, query, &names[n], &pins[i], age, now) != 0)
				respond_count(respond, COUNTER_PINS_FAILED);
}

int pinning_put(struct respond *respond, const struct query *query, const struct judge_pin *pins,
		size_t count, uint32_t age, uint64_t now)
{
	struct name names[NAMES_MAX];

	if (count == 0)
		return 0;
	for (size_t i = 0; i < count; i++) {
		int error = put(respond, query, &query->message.name, &pins[i], age, now);
		if (error != 0) {
			respond_count(respond, COUNTER_PINS_FAILED);
			return error;
		}
	}
	put_for_others(respond, query, names, other_names(respond, query, now, names), pins, count,
		       age, now);
	return 0;
}

/* Whether the client of QUERY holds a live pin of NAME for the address: it was handed out to it. */
static bool holds(const struct respond *respond, const struct query *query, const struct name *name,
		  const struct address *address, uint64_t now)
{
	struct pin pins[PINS_PER_ADDRESS_MAX];
	size_t count = pins_find(pins_writer_table(respond->pins), &query->match.key, address, pins,
				 PINS_PER_ADDRESS_MAX);

	for (size_t i = 0; i < count; i++)
		if (now < pins[i].expiry && name_equal(&pins[i].name, name))
			return true;
	return false;
}

/* The addresses of TARGET that are kept, in any form, and that the client got already. */
static void pin_known(struct respond *respond, const struct query *query, const struct name *target,
		      const struct name *names, size_t name_count, uint64_t now)
{
	static const uint16_t types[] = {QUERY_TYPE_A, QUERY_TYPE_AAAA};
	struct query_message message;

	query_of_name(target, 0, &message);
	for (size_t t = 0; t < 2; t++) {
		message.type = types[t];
		for (unsigned form = 0; form < STORED_FORMS; form++) {
			struct stored_key key;
			stored_key(&message, form, &key);
			const struct stored *stored = cache_find(respond->cache, &key, now);
			for (size_t i = 0; stored != NULL && i < stored->pin_count; i++)
				if (holds(respond, query, target, &stored->pins[i].address, now))
					put_for_others(respond, query, names, name_count,
						       &stored->pins[i], 1, stored_age(stored, now),
						       now);
		}
	}
}

void pinning_follow(struct respond *respond, const struct query *query, const struct stored *stored,
		    uint64_t now)
{
	const struct resolver_settings *settings = &respond->policy->settings.resolver;
	uint16_t type = query->message.type;
	struct name names[NAMES_MAX + 1];

	if ((type != QUERY_TYPE_HTTPS && type != QUERY_TYPE_SVCB) || !query->match.governed ||
	    query->message.name_error != NAME_OK)
		return;
	size_t count = other_names(respond, query, now, names);
	names[count++] = query->message.name;
	uint64_t seconds = stored->seconds > settings->pin_min_seconds ? stored->seconds
								       : settings->pin_min_seconds;
	uint64_t expiry = now + (seconds + settings->pin_grace_seconds) * 1000;
	for (size_t t = 0; t < stored->target_count && t < TARGETS_MAX; t++) {
		for (size_t n = 0; n < count; n++)
			aliases_add(respond->aliases, &query->match.key, &stored->targets[t],
				    &names[n], expiry, now);
		pin_known(respond, query, &stored->targets[t], names, count, now);
	}
}
