/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/entry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <libpsl.h>

#include "config/idna.h"
#include "policy.h"
#include "rules/classify.h"

/* A piece of the entry's text. */
struct piece {
	const char *text;
	size_t length;
};

static int refuse(char *problem, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int refuse(char *problem, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(problem, ENTRY_PROBLEM_SIZE, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* "%.*s" of a piece, cut to what a line can take. */
#define PIECE(piece) (int)((piece).length < 80 ? (piece).length : 80), (piece).text

static int parse_port(struct piece port, uint16_t *out, char *problem)
{
	unsigned value = 0;

	for (size_t i = 0; i < port.length; i++) {
		if (port.text[i] < '0' || port.text[i] > '9' || value > 65535)
			return refuse(problem, "'%.*s' is no port: a number from 1 to 65535",
				      PIECE(port));
		value = value * 10 + (unsigned)(port.text[i] - '0');
	}
	if (port.length == 0 || value == 0 || value > 65535 || port.text[0] == '0')
		return refuse(problem, "'%.*s' is no port: a number from 1 to 65535", PIECE(port));
	*out = (uint16_t)value;
	return 0;
}

struct prefix entry_plain_prefix(const struct prefix *prefix)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct prefix plain = *prefix;

	if (prefix->address.family != ADDRESS_IPV6 || prefix->length < 96 ||
	    memcmp(prefix->address.bytes, mapped, sizeof(mapped)) != 0)
		return plain;
	plain.address = address_from_bytes(prefix->address.bytes + 12, 4);
	plain.length = (uint8_t)(prefix->length - 96);
	return plain;
}

/* An IPv4 CIDR, right or wrong: a mistake in it is a mistake in an address, not in a name. */
static bool looks_like_cidr(struct piece host)
{
	size_t digits = 0;

	while (digits < host.length && strchr("0123456789./", host.text[digits]) != NULL)
		digits++;
	return digits == host.length && memchr(host.text, '/', host.length) != NULL;
}

static int parse_prefix(struct piece host, struct match_entry *out, char *problem)
{
	struct prefix prefix;
	int status = prefix_parse(host.text, host.length, &prefix);

	if (status == -ERANGE)
		return refuse(problem, "'%.*s' has bits set behind its length", PIECE(host));
	if (status < 0)
		return refuse(problem, "'%.*s' is no address and no CIDR", PIECE(host));
	out->kind = MATCH_PREFIX;
	out->prefix = entry_plain_prefix(&prefix);
	return 0;
}

static int parse_name(struct piece host, unsigned rules, struct match_entry *out, char *problem)
{
	char ascii[IDNA_TEXT_SIZE];
	enum name_error error;
	struct host parsed;
	struct piece rest = host;
	bool wildcard = host.length >= 2 && memcmp(host.text, "*.", 2) == 0;

	if (host.length == 1 && host.text[0] == '*')
		return refuse(problem, "'*' alone is no entry; `default` says what is not listed");
	if (wildcard) {
		if (!(rules & ENTRY_WILDCARDS))
			return refuse(problem,
				      "'%.*s': no wildcard here, a name covers its children",
				      PIECE(host));
		rest.text += 2;
		rest.length -= 2;
	}
	if (memchr(rest.text, '/', rest.length) != NULL)
		return refuse(problem, "'%.*s' can never match: a host has no path", PIECE(host));
	if (memchr(rest.text, '*', rest.length) != NULL)
		return refuse(problem,
			      "'%.*s' can never match: '*' stands alone before the first dot",
			      PIECE(host));
	if (idna_ascii(rest.text, rest.length, ascii) < 0)
		return refuse(problem, "'%.*s' can never match: no host name", PIECE(host));
	error = name_from_text(ascii, strlen(ascii), &out->name);
	if (error != NAME_OK)
		return refuse(problem, "'%.*s' can never match: %s", PIECE(host),
			      name_error_text(error));
	/* settings go to the children byte by byte: nothing unspecified in them */
	memset(out->name.text + out->name.length, 0, sizeof(out->name.text) - out->name.length);
	host_parse(out->name.text, out->name.length, &parsed);
	if (parsed.kind == HOST_LITERAL)
		return refuse(problem, "'%.*s' can never match: write the address as a.b.c.d",
			      PIECE(host));
	if (parsed.kind != HOST_NAME)
		return refuse(problem,
			      "'%.*s' can never match: it ends in a number and is no address",
			      PIECE(host));
	out->kind = wildcard ? MATCH_SUBDOMAINS : rules & ENTRY_ORIGIN ? MATCH_EXACT : MATCH_NAME;
	return 0;
}

/* Splits "host:port"; the host keeps no brackets. BRACKETS tells whether it had some. */
static int split(struct piece entry, struct piece *host, struct piece *port, bool *brackets,
		 char *problem)
{
	const char *end = entry.text + entry.length;
	const char *colon = memchr(entry.text, ':', entry.length);

	*host = entry;
	*port = (struct piece){NULL, 0};
	*brackets = entry.text[0] == '[';
	if (*brackets) {
		const char *close = memchr(entry.text, ']', entry.length);
		if (close == NULL)
			return refuse(problem, "'%.*s' has no closing bracket", PIECE(entry));
		*host = (struct piece){entry.text + 1, (size_t)(close - entry.text - 1)};
		if (close + 1 == end)
			return 0;
		if (close[1] != ':')
			return refuse(problem, "'%.*s': only a port may follow the bracket",
				      PIECE(entry));
		*port = (struct piece){close + 2, (size_t)(end - close - 2)};
		return 0;
	}
	/* several colons and no brackets: an IPv6 address or CIDR without a port */
	if (colon == NULL || memchr(colon + 1, ':', (size_t)(end - colon - 1)) != NULL)
		return 0;
	*host = (struct piece){entry.text, (size_t)(colon - entry.text)};
	*port = (struct piece){colon + 1, (size_t)(end - colon - 1)};
	return 0;
}

static int parse_host(struct piece host, bool brackets, unsigned rules, struct match_entry *out,
		      char *problem)
{
	struct address address;
	bool prefix = brackets || memchr(host.text, ':', host.length) != NULL ||
		      address_parse(host.text, host.length, &address) == 0 || looks_like_cidr(host);
	int status;

	if (host.length == 0)
		return refuse(problem, "an entry without a host can never match");
	if (prefix && !(rules & ENTRY_PREFIXES))
		return refuse(problem, "'%.*s': names alone stand here, no addresses", PIECE(host));
	if (!prefix && !(rules & ENTRY_NAMES))
		return refuse(problem, "'%.*s' is no address and no CIDR", PIECE(host));
	if (!prefix)
		return parse_name(host, rules, out, problem);
	status = parse_prefix(host, out, problem);
	if (status == 0 && brackets && memchr(host.text, ':', host.length) == NULL)
		return refuse(problem, "'%.*s': brackets are for IPv6", PIECE(host));
	if (status == 0 && (rules & ENTRY_ORIGIN) &&
	    out->prefix.length != address_bits(&out->prefix.address))
		return refuse(problem, "'%.*s': an origin is one host, no range", PIECE(host));
	return status;
}

/* Takes "scheme://" off ENTRY; the port that goes with it into OUT. */
static int parse_scheme(struct piece *entry, struct match_entry *out, char *problem)
{
	static const struct {
		const char *text;
		enum match_scheme scheme;
		uint16_t port;
	} schemes[] = {
		{"http://", SCHEME_HTTP, 80},
		{"https://", SCHEME_HTTPS, 443},
		{"ws://", SCHEME_HTTP, 80},
		{"wss://", SCHEME_HTTPS, 443},
	};

	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t length = strlen(schemes[i].text);
		if (entry->length < length ||
		    strncasecmp(entry->text, schemes[i].text, length) != 0)
			continue;
		out->scheme = schemes[i].scheme;
		out->port = schemes[i].port;
		entry->text += length;
		entry->length -= length;
		if (memchr(entry->text, '/', entry->length) != NULL ||
		    memchr(entry->text, '?', entry->length) != NULL ||
		    memchr(entry->text, '#', entry->length) != NULL)
			return refuse(problem, "an origin ends after host and port: no path");
		return 0;
	}
	return refuse(problem, "'%.*s' is no origin: http://host[:port] or https://host[:port]",
		      PIECE(*entry));
}

static const psl_ctx_t *public_suffixes(void)
{
	static const psl_ctx_t *list;

	if (list == NULL)
		list = psl_builtin();
	if (list == NULL)
		list = psl_latest(NULL);
	return list;
}

/* Multicast, broadcast and 240/4 from end to end: no switch opens them. */
static bool is_never_open(const struct prefix *prefix)
{
	struct address last = prefix->address;

	for (unsigned bit = prefix->length; bit < address_bits(&last); bit++)
		last.bytes[bit / 8] = (uint8_t)(last.bytes[bit / 8] | 0x80u >> bit % 8);
	/* these classes are whole ranges, so the ends tell */
	return (class_of_address(&prefix->address, NULL) & CLASS_BIT(CLASS_NEVER)) != 0 &&
	       (class_of_address(&last, NULL) & CLASS_BIT(CLASS_NEVER)) != 0;
}

static int guard_prefix(const struct prefix *prefix, char *problem)
{
	bool single = prefix->length == address_bits(&prefix->address);

	if (is_never_open(prefix))
		return refuse(problem,
			      "can never match: multicast, broadcast and reserved addresses "
			      "are never open");
	if (!floor_overlaps_prefix(prefix))
		return 0;
	refuse(problem, single ? "an address of a provider: `infrastructure` decides on its ports"
			       : "the range holds metadata addresses, which stay shut");
	return 1;
}

/* An entry that opens something: not the floor, not everybody's domain. 0, 1 or -EINVAL. */
static int guard(const struct match_entry *entry, char *problem)
{
	const psl_ctx_t *list = public_suffixes();

	if (floor_names_entry(entry))
		return refuse(problem, "names the floor: metadata services cannot be opened");
	if (entry->kind == MATCH_PREFIX)
		return guard_prefix(&entry->prefix, problem);
	if (list == NULL)
		return refuse(problem, "no public suffix list: cannot tell whether this is one");
	if (psl_is_public_suffix2(list, entry->name.text, PSL_TYPE_ICANN | PSL_TYPE_NO_STAR_RULE))
		return refuse(problem, "'%.80s' is a public suffix: it would open a whole registry",
			      entry->name.text);
	if (psl_is_public_suffix2(list, entry->name.text,
				  PSL_TYPE_PRIVATE | PSL_TYPE_NO_STAR_RULE)) {
		refuse(problem, "'%.80s' is a private suffix: anybody can get a name under it",
		       entry->name.text);
		return 1;
	}
	return 0;
}

int entry_parse(const char *text, size_t length, unsigned rules, struct match_entry *out,
		char *problem)
{
	struct match_entry entry = {.port = 0};
	struct piece rest = {text, length}, host, port;
	bool brackets;
	int status = 0;

	if (length == 0)
		return refuse(problem, "an empty entry can never match");
	if (rules & ENTRY_ORIGIN)
		status = parse_scheme(&rest, &entry, problem);
	else if (memmem(text, length, "://", 3) != NULL)
		return refuse(problem, "'%.*s' can never match: a host has no scheme", PIECE(rest));
	if (status < 0)
		return status;
	if (rest.length == 0)
		return refuse(problem, "an entry without a host can never match");
	if (split(rest, &host, &port, &brackets, problem) < 0 ||
	    parse_host(host, brackets, rules, &entry, problem) < 0)
		return -EINVAL;
	if (port.text != NULL && !(rules & ENTRY_PORT))
		return refuse(problem, "'%.*s': no port here", PIECE(rest));
	if (port.text == NULL && (rules & ENTRY_PORT_REQUIRED))
		return refuse(problem, "'%.*s' needs a port: host:port", PIECE(rest));
	if (port.text != NULL && parse_port(port, &entry.port, problem) < 0)
		return -EINVAL;
	if (rules & ENTRY_GUARDED)
		status = guard(&entry, problem);
	if (status >= 0)
		*out = entry;
	return status;
}

const char *entry_format(const struct match_entry *entry, char *buffer)
{
	static const char *const schemes[] = {
		[SCHEME_ANY] = "", [SCHEME_HTTP] = "http://", [SCHEME_HTTPS] = "https://"};
	char host[NAME_TEXT_MAX + 8], port[8] = "";
	bool whole_port = (entry->scheme == SCHEME_HTTP && entry->port == 80) ||
			  (entry->scheme == SCHEME_HTTPS && entry->port == 443);

	if (entry->port != 0 && !whole_port)
		snprintf(port, sizeof(port), ":%u", entry->port);
	if (entry->kind == MATCH_PREFIX) {
		const struct address *address = &entry->prefix.address;
		bool single = entry->prefix.length == address_bits(address);
		bool six = address->family == ADDRESS_IPV6;
		char number[ADDRESS_TEXT_SIZE];
		if (single)
			address_format(address, number);
		else
			prefix_format(&entry->prefix, number);
		snprintf(host, sizeof(host), six && (single || port[0] != '\0') ? "[%s]" : "%s",
			 number);
	} else {
		snprintf(host, sizeof(host), "%s%.253s",
			 entry->kind == MATCH_SUBDOMAINS ? "*." : "", entry->name.text);
	}
	snprintf(buffer, ENTRY_TEXT_SIZE, "%s%s%s", schemes[entry->scheme], host, port);
	return buffer;
}

size_t entry_registered_labels(const struct name *name)
{
	const psl_ctx_t *list = public_suffixes();
	const char *domain = list != NULL ? psl_registrable_domain(list, name->text) : NULL;
	size_t labels = 1;

	if (domain == NULL)
		return 0;
	for (; *domain != '\0'; domain++)
		labels += *domain == '.';
	return labels;
}

bool entry_on_floor(const struct name *name)
{
	struct match_entry entry = {.kind = MATCH_NAME, .name = *name};

	return floor_names_entry(&entry);
}
