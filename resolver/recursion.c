/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "resolver/recursion.h"

#include <errno.h>
#include <ldns/ldns.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unbound-event.h>
#include <unbound.h>
#include <unistd.h>

#include "resolver/local.h"
#include "rules/names.h"

struct recursion {
	struct ub_ctx *context;
};

/* Zones that libunbound answers by itself; ours to decide. */
static const char *const builtin_zones[] = {
	"localhost.",
	"127.in-addr.arpa.",
	"home.arpa.",
	"onion.",
	"test.",
	"invalid.",
	"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa.",
};

/*
 * Options that do not depend on the settings. Ports and TCP slots bound what is open upstream at
 * once and stay, with our clients' connections, below the usual 1024 descriptors.
 */
static const char fixed_options[] = "server:\n"
				    "  unblock-lan-zones: yes\n"
				    "  do-not-query-localhost: no\n" /* is in our own list */
				    "  outgoing-range: 256\n"
				    "  outgoing-num-tcp: 32\n"
				    "  num-queries-per-thread: 1024\n"
				    "  edns-buffer-size: 1232\n"
				    "  minimal-responses: yes\n"
				    "  harden-glue: yes\n"
				    "  harden-dnssec-stripped: yes\n"
				    "  harden-below-nxdomain: yes\n";

static void print_blocked(const struct prefix *prefix, void *context)
{
	char text[ADDRESS_TEXT_SIZE];
	fprintf(context, "  do-not-query-address: %s\n", prefix_format(prefix, text));
}

static void print_endpoint(FILE *out, const char *key, const struct endpoint *endpoint)
{
	char text[ADDRESS_TEXT_SIZE];
	fprintf(out, "  %s: %s@%u\n", key, address_format(&endpoint->address, text),
		endpoint->port);
}

/*
 * Calls TAKE for every record of TEXT, one a line with ';' comments. Stops at the first line that
 * is no record, or that TAKE refuses.
 */
static int each_record(const char *what, const char *text, bool (*take)(ldns_rr *rr, FILE *out),
		       FILE *out, char *problem, size_t size)
{
	unsigned number = 0;

	for (const char *at = text; *at != '\0'; number++) {
		size_t length = strcspn(at, "\n");
		size_t used = strcspn(at, ";\n");
		char *line = strndup(at, used);
		ldns_rr *rr = NULL;

		at += length + (at[length] == '\n');
		if (line == NULL)
			return -ENOMEM;
		bool blank = line[strspn(line, " \t\r")] == '\0';
		bool good =
			blank || (ldns_rr_new_frm_str(&rr, line, 0, NULL, NULL) == LDNS_STATUS_OK &&
				  take(rr, out));
		ldns_rr_free(rr);
		free(line);
		if (!good) {
			snprintf(problem, size, "%s, line %u: no usable record", what, number + 1);
			return -EINVAL;
		}
	}
	return 0;
}

static bool take_anchor(ldns_rr *rr, FILE *out)
{
	ldns_rr_type type = ldns_rr_get_type(rr);
	if (type != LDNS_RR_TYPE_DS && type != LDNS_RR_TYPE_DNSKEY)
		return false;

	/* Printed by ldns in one line; what could end the quotes of the configuration is no anchor.
	 */
	char *text = ldns_rr2str(rr);
	if (text == NULL)
		return false;
	text[strcspn(text, ";\n")] = '\0';
	bool good = strpbrk(text, "\"\\") == NULL;
	if (good)
		fprintf(out, "  trust-anchor: \"%s\"\n", text);
	free(text);
	return good;
}

static bool take_hint(ldns_rr *rr, FILE *out)
{
	ldns_rr_type type = ldns_rr_get_type(rr);
	if (type == LDNS_RR_TYPE_NS)
		return true;
	if (type != LDNS_RR_TYPE_A && type != LDNS_RR_TYPE_AAAA)
		return false;

	const ldns_rdf *data = ldns_rr_rdf(rr, 0);
	struct endpoint root = {
		.address = address_from_bytes(ldns_rdf_data(data), ldns_rdf_size(data)),
		.port = 53};
	print_endpoint(out, "stub-addr", &root);
	return true;
}

/*
 * A forwarded zone that does not exist in the public tree (`internal`, `lan`, 10.in-addr.arpa) can
 * have no chain of trust: the root's proof that it does not exist would make every answer bogus.
 */
static bool is_unanchored(const struct name *zone)
{
	struct name_facts facts;

	if (zone->length == 0)
		return false;
	names_facts(zone, NULL, &facts);
	return (facts.special.line != 0 &&
		(facts.kind == NAMES_PRIVATE || facts.kind == NAMES_RESERVED)) ||
	       local_empty_zone(zone, NULL) != LOCAL_NONE;
}

static int print_validation(FILE *out, const struct resolver_settings *settings, char *problem,
			    size_t size)
{
	if (settings->trust_anchor[0] == '\0') {
		fprintf(out, "  module-config: \"iterator\"\n");
		return 0;
	}
	fprintf(out, "  module-config: \"validator iterator\"\n");
	if (settings->validation_date[0] != '\0') {
		size_t digits = strspn(settings->validation_date, "0123456789");
		if (digits != 14 || settings->validation_date[digits] != '\0') {
			snprintf(problem, size, "validation date: not YYYYMMDDHHMMSS");
			return -EINVAL;
		}
		fprintf(out, "  val-override-date: \"%s\"\n", settings->validation_date);
	}
	for (uint32_t i = 0; i < settings->negative_anchor_count; i++)
		fprintf(out, "  domain-insecure: \"%s.\"\n", settings->negative_anchors[i].text);
	for (uint32_t i = 0; i < settings->zone_count; i++)
		if (is_unanchored(&settings->zones[i].zone))
			fprintf(out, "  domain-insecure: \"%s.\"\n", settings->zones[i].zone.text);
	if (settings->trust_anchor_text[strspn(settings->trust_anchor_text, " \t\r\n")] == '\0') {
		snprintf(problem, size, "trust anchor %s is empty", settings->trust_anchor);
		return -EINVAL;
	}
	return each_record("trust anchor", settings->trust_anchor_text, take_anchor, out, problem,
			   size);
}

static void print_forwarders(FILE *out, const struct resolver_settings *settings, bool *root)
{
	for (uint32_t z = 0; z < settings->zone_count; z++) {
		const struct settings_zone *zone = &settings->zones[z];
		*root = *root || zone->zone.length == 0;
		fprintf(out, "forward-zone:\n  name: \"%s.\"\n", zone->zone.text);
		for (uint32_t i = 0; i < zone->count; i++)
			print_endpoint(out, "forward-addr", &zone->forwarders[i]);
	}
}

static int print_all(FILE *out, const struct resolver_settings *settings,
		     const struct upstream *upstream, char *problem, size_t size)
{
	bool root = false;

	fputs(fixed_options, out);
	for (size_t i = 0; i < sizeof(builtin_zones) / sizeof(builtin_zones[0]); i++)
		fprintf(out, "  local-zone: \"%s\" nodefault\n", builtin_zones[i]);
	fprintf(out, "  do-ip4: %s\n  do-ip6: %s\n  qname-minimisation: %s\n",
		settings->ipv4 ? "yes" : "no", settings->ipv6 ? "yes" : "no",
		settings->qname_minimisation ? "yes" : "no");
	if (settings->message_cache_bytes > 0)
		fprintf(out, "  msg-cache-size: %u\n", settings->message_cache_bytes);
	if (settings->rrset_cache_bytes > 0)
		fprintf(out, "  rrset-cache-size: %u\n", settings->rrset_cache_bytes);
	upstream_each_blocked(upstream, print_blocked, out);

	int error = print_validation(out, settings, problem, size);
	if (error != 0)
		return error;
	print_forwarders(out, settings, &root);
	if (root || settings->root_hints_text[0] == '\0')
		return 0;
	/* A primed stub for the root is what root hints are, without a file. */
	fprintf(out, "stub-zone:\n  name: \".\"\n  stub-prime: yes\n");
	return each_record("root hints", settings->root_hints_text, take_hint, out, problem, size);
}

char *recursion_config(const struct resolver_settings *settings, const struct upstream *upstream,
		       char *problem, size_t size)
{
	char *text = NULL;
	size_t length;
	FILE *out = open_memstream(&text, &length);
	int error = out == NULL ? -ENOMEM : 0;

	if (error == 0) {
		error = print_all(out, settings, upstream, problem, size);
		if (fclose(out) != 0 && error == 0)
			error = -ENOMEM;
	}
	if (error == -ENOMEM)
		snprintf(problem, size, "out of memory");
	if (error != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* libunbound reads its configuration from a file: a memfd, through the one path that needs none. */
static int load_config(struct ub_ctx *context, const char *text)
{
	int fd = memfd_create("pinfold-recursion", MFD_CLOEXEC);
	size_t length = strlen(text);
	char path[32];

	if (fd < 0)
		return UB_READFILE;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int result = write(fd, text, length) == (ssize_t)length ? ub_ctx_config(context, path)
								: UB_READFILE;
	close(fd);
	return result;
}

/* The first line that libunbound logged, without its time and process. */
static void describe(const char *logged, int result, char *problem, size_t size)
{
	const char *line = logged == NULL ? NULL : strstr(logged, "error: ");

	if (line == NULL)
		snprintf(problem, size, "recursion: %s", ub_strerror(result));
	else
		snprintf(problem, size, "recursion: %.*s", (int)strcspn(line + 7, "\n"), line + 7);
}

static int build(struct ub_ctx *context, const char *text, char *problem, size_t size)
{
	char *logged = NULL;
	size_t length;
	FILE *log = open_memstream(&logged, &length);

	if (log == NULL)
		return -ENOMEM;
	ub_ctx_debugout(context, log);
	int result = load_config(context, text);
	/* Any call about local zones freezes the context and thereby loads modules and anchors. */
	if (result == UB_NOERROR)
		result = ub_ctx_zone_remove(context, "invalid.");
	fflush(log);
	if (result != UB_NOERROR)
		describe(logged, result, problem, size);
	/* From here on it is silent: what it would log, packets can cause. */
	ub_ctx_debugout(context, NULL);
	fclose(log);
	free(logged);
	return result == UB_NOERROR ? 0 : result == UB_NOMEM ? -ENOMEM : -EINVAL;
}

int recursion_new(struct event_base *base, const struct resolver_settings *settings,
		  const struct upstream *upstream, struct recursion **out, char *problem,
		  size_t size)
{
	char *text = recursion_config(settings, upstream, problem, size);
	if (text == NULL)
		return -EINVAL;

	struct recursion *recursion = calloc(1, sizeof(*recursion));
	int error = -ENOMEM;

	snprintf(problem, size, "out of memory");
	if (recursion != NULL)
		recursion->context = ub_ctx_create_event(base);
	if (recursion != NULL && recursion->context != NULL)
		error = build(recursion->context, text, problem, size);
	free(text);
	if (error != 0) {
		if (recursion != NULL && recursion->context != NULL)
			ub_ctx_delete(recursion->context);
		free(recursion);
		return error;
	}
	*out = recursion;
	return 0;
}

void recursion_free(struct recursion *recursion)
{
	ub_ctx_delete(recursion->context);
	free(recursion);
}

static void on_result(void *data, int rcode, void *packet, int length, int security,
		      char *why_bogus, int was_ratelimited)
{
	struct recursion_call *call = data;
	struct recursion_result result = {
		.failed = rcode != 0 || packet == NULL || length <= 0,
		.bogus = security == 1,
		.secure = security == 2,
		.why_bogus = why_bogus,
		.wire = packet,
		.size = length > 0 ? (size_t)length : 0,
	};

	(void)was_ratelimited;
	call->done(call, &result);
}

int recursion_start(struct recursion *recursion, const char *text, uint16_t type,
		    struct recursion_call *call)
{
	int result = ub_resolve_event(recursion->context, text, type, LDNS_RR_CLASS_IN, call,
				      on_result, &call->ticket);
	return result == UB_NOERROR ? 0 : -EIO;
}

void recursion_cancel(struct recursion *recursion, struct recursion_call *call)
{
	ub_cancel(recursion->context, call->ticket);
}
