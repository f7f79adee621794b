/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * DNS resource record types by name, as in the IANA registry "Resource Record (RR) TYPEs".
 */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/explain.h"

static const struct {
	const char *text;
	uint16_t type;
} types[] = {
	{"A", 1},         {"NS", 2},          {"MD", 3},          {"MF", 4},         {"CNAME", 5},
	{"SOA", 6},       {"MB", 7},          {"MG", 8},          {"MR", 9},         {"NULL", 10},
	{"WKS", 11},      {"PTR", 12},        {"HINFO", 13},      {"MINFO", 14},     {"MX", 15},
	{"TXT", 16},      {"RP", 17},         {"AFSDB", 18},      {"X25", 19},       {"ISDN", 20},
	{"RT", 21},       {"NSAP", 22},       {"NSAP-PTR", 23},   {"SIG", 24},       {"KEY", 25},
	{"PX", 26},       {"GPOS", 27},       {"AAAA", 28},       {"LOC", 29},       {"NXT", 30},
	{"SRV", 33},      {"NAPTR", 35},      {"KX", 36},         {"CERT", 37},      {"A6", 38},
	{"DNAME", 39},    {"OPT", 41},        {"APL", 42},        {"DS", 43},        {"SSHFP", 44},
	{"IPSECKEY", 45}, {"RRSIG", 46},      {"NSEC", 47},       {"DNSKEY", 48},    {"DHCID", 49},
	{"NSEC3", 50},    {"NSEC3PARAM", 51}, {"TLSA", 52},       {"SMIMEA", 53},    {"HIP", 55},
	{"CDS", 59},      {"CDNSKEY", 60},    {"OPENPGPKEY", 61}, {"CSYNC", 62},     {"ZONEMD", 63},
	{"SVCB", 64},     {"HTTPS", 65},      {"SPF", 99},        {"NID", 104},      {"L32", 105},
	{"L64", 106},     {"LP", 107},        {"EUI48", 108},     {"EUI64", 109},    {"TKEY", 249},
	{"TSIG", 250},    {"IXFR", 251},      {"AXFR", 252},      {"MAILB", 253},    {"MAILA", 254},
	{"ANY", 255},     {"URI", 256},       {"CAA", 257},       {"AMTRELAY", 260}, {"TA", 32768},
	{"DLV", 32769},
};

/* RFC 3597 section 5: TYPE and a decimal number. */
static bool parse_unnamed(const char *text, uint16_t *out)
{
	unsigned long number;

	if (strncasecmp(text, "TYPE", 4) != 0 || strlen(text) < 5 || strlen(text) > 9 ||
	    strspn(text + 4, "0123456789") != strlen(text + 4))
		return false;
	number = strtoul(text + 4, NULL, 10);
	if (number > UINT16_MAX)
		return false;
	*out = (uint16_t)number;
	return true;
}

bool rrtype_parse(const char *text, uint16_t *out)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcasecmp(text, types[i].text) == 0) {
			*out = types[i].type;
			return true;
		}
	}
	return parse_unnamed(text, out);
}
