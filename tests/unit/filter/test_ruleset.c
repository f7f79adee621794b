/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The text of the rules: what may be asked for, that every part hangs together, and what the floor's
 * chains do with a packet, told by a small evaluator and compared with the engine's own answer.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filter/ruleset.h"
#include "rules/floor.h"

static struct prefix prefix_of(const char *text)
{
	struct prefix prefix;

	assert_int_equal(prefix_parse(text, strlen(text), &prefix), 0);
	return prefix;
}

static struct address address_of(const char *text)
{
	struct address address;

	assert_int_equal(address_parse(text, strlen(text), &address), 0);
	return address;
}

static struct ruleset output_ruleset(void)
{
	return (struct ruleset){
		.instance = "pinfold", .hook = HOOK_OUTPUT, .queue = 4400, .mark_mask = 0x00ff0000};
}

static struct ruleset forward_ruleset(void)
{
	struct ruleset set = output_ruleset();

	set.hook = HOOK_FORWARD;
	set.selector_count = 2;
	strcpy(set.selectors[0].interface, "tap0");
	strcpy(set.selectors[1].interface, "veth+");
	return set;
}

static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return true;
	return false;
}

static unsigned count(const char *text, const char *what)
{
	unsigned found = 0;

	for (; (text = strstr(text, what)) != NULL; text++)
		found++;
	return found;
}

/* --- what may be asked for ---------------------------------------------------------------- */

static int check_of(const struct ruleset *set)
{
	char problem[128] = "";
	int error = ruleset_check(set, problem, sizeof(problem));

	assert_int_equal(error == 0, problem[0] == '\0');
	assert_null(strchr(problem, '\n'));
	return error;
}

static void good_rulesets(void **state)
{
	struct ruleset set = output_ruleset();
	(void)state;

	assert_int_equal(check_of(&set), 0);
	set.mark_mask = 0xf;
	assert_int_equal(check_of(&set), 0);
	set.mark_mask = 0xf0000000;
	assert_int_equal(check_of(&set), 0);
	strcpy(set.instance, "abcdefghijkl-_9");
	assert_int_equal(check_of(&set), 0);
	set.selectors[set.selector_count++] =
		(struct ruleset_selector){.by_uid = true, .uid_first = 0, .uid_last = 4294967294};
	set.selectors[set.selector_count] = (struct ruleset_selector){.by_cgroup = true};
	strcpy(set.selectors[set.selector_count++].cgroup_path, "system.slice/a@b:c_d-1.service");
	assert_int_equal(check_of(&set), 0);
	set = forward_ruleset();
	assert_int_equal(check_of(&set), 0);
}

static void bad_instances(void **state)
{
	static const char *const bad[] = {"", "a b", "a/b", "a\n", "\"", "ä", "a;b", "-A INPUT"};
	struct ruleset set = output_ruleset();
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(set.instance, bad[i]);
		assert_int_equal(check_of(&set), -EINVAL);
	}
	memset(set.instance, 'a', sizeof(set.instance));
	assert_int_equal(check_of(&set), -EINVAL);
}

static void bad_masks(void **state)
{
	static const uint32_t bad[] = {0, 1, 3, 5, 6, 7, 0x80000000, 0xc0000000, 0x00fb0000};
	struct ruleset set = output_ruleset();
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set.mark_mask = bad[i];
		assert_int_equal(check_of(&set), -EINVAL);
	}
}

static void bad_interfaces(void **state)
{
	static const char *const bad[] = {"", "a b", "a\nb", "tap0 -j ACCEPT", "\"x\"", "a/b", "!"};
	struct ruleset set = forward_ruleset();
	(void)state;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		strcpy(set.selectors[1].interface, bad[i]);
		assert_int_equal(check_of(&set), -EINVAL);
	}
	memset(set.selectors[1].interface, 'a', sizeof(set.selectors[1].interface));
	assert_int_equal(check_of(&set), -EINVAL);
	set = forward_ruleset();
	set.selector_count = 0;
	assert_int_equal(check_of(&set), -EINVAL);
}

static void bad_users(void **state)
{
	struct ruleset set = output_ruleset();
	(void)state;

	set.selector_count = 1;
	assert_int_equal(check_of(&set), -EINVAL);
	set.selectors[0] = (struct ruleset_selector){.by_uid = true, .uid_first = 2, .uid_last = 1};
	assert_int_equal(check_of(&set), -EINVAL);
	set.selectors[0].uid_last = UINT32_MAX;
	assert_int_equal(check_of(&set), -EINVAL);
	set.selectors[0] = (struct ruleset_selector){.by_cgroup = true};
	assert_int_equal(check_of(&set), -EINVAL);
	strcpy(set.selectors[0].cgroup_path, "a b");
	assert_int_equal(check_of(&set), -EINVAL);
	strcpy(set.selectors[0].cgroup_path, "a\" -j ACCEPT");
	assert_int_equal(check_of(&set), -EINVAL);
	memset(set.selectors[0].cgroup_path, 'a', sizeof(set.selectors[0].cgroup_path));
	assert_int_equal(check_of(&set), -EINVAL);
	set = output_ruleset();
	set.exempt = true;
	set.exempt_uid = UINT32_MAX;
	assert_int_equal(check_of(&set), -EINVAL);
}

static void too_many(void **state)
{
	struct ruleset set = output_ruleset();
	(void)state;

	set.selector_count = RULESET_SELECTORS_MAX + 1;
	assert_int_equal(check_of(&set), -EINVAL);
	set = output_ruleset();
	set.resolver_count = SETTINGS_LISTEN_MAX + 1;
	assert_int_equal(check_of(&set), -EINVAL);
	set = output_ruleset();
	set.floor_count = RULESET_FLOOR_MAX + 1;
	assert_int_equal(check_of(&set), -EINVAL);
}

/* --- how it hangs together --------------------------------------------------------------- */

/* Is the chain name at TEXT, up to a space or the end of the line, declared in TABLE? */
static bool declared(const char *table, const char *text)
{
	size_t length = strcspn(text, " \n");
	char line[64];

	snprintf(line, sizeof(line), ":%.*s - [0:0]", (int)length, text);
	return has_line(table, line);
}

/* Every chain that is named is declared, has rules and is reached; nothing else is touched. */
static void assert_closed(const char *table)
{
	for (const char *line = table; *line != '\0'; line = strchr(line, '\n') + 1) {
		const char *target = strstr(line, " -j PF-");
		if (target == NULL || target > strchr(line, '\n'))
			target = strstr(line, " -g PF-");
		if (target != NULL && target < strchr(line, '\n'))
			assert_true(declared(table, target + 4));
		if (strncmp(line, "-A ", 3) == 0)
			assert_true(declared(table, line + 3));
		if (line[0] == ':') {
			char what[64];
			int length = (int)strcspn(line + 1, " ");
			assert_in_range(length, 1, 28);
			snprintf(what, sizeof(what), "-A %.*s ", length, line + 1);
			assert_true(count(table, what) > 0);
			snprintf(what, sizeof(what), "-j %.*s\n", length, line + 1);
			unsigned reached = count(table, what);
			what[1] = 'g';
			assert_true(reached + count(table, what) > 0);
		}
		assert_true(strchr("*:-C", line[0]) != NULL);
	}
}

/* Calls CHECK with the two tables of every combination. */
static void each_text(void (*check)(const char *table, const struct ruleset *set, bool mangle))
{
	struct ruleset sets[3] = {output_ruleset(), forward_ruleset(), output_ruleset()};

	strcpy(sets[2].instance, "abcdefghijklmno");
	sets[2].mark_mask = 0x7f000000;
	sets[2].selector_count = 1;
	sets[2].selectors[0].by_uid = true;
	for (size_t i = 0; i < 3; i++)
		for (int family = 4; family <= 6; family += 2) {
			char *text = ruleset_text(&sets[i], (enum address_family)family);
			assert_non_null(text);
			char *mangle = strstr(text, "*mangle\n");
			assert_non_null(mangle);
			assert_ptr_equal(strstr(text, "*filter\n"), text);
			assert_string_equal(mangle + strlen(mangle) - 7, "COMMIT\n");
			check(mangle, &sets[i], true);
			*mangle = '\0';
			check(text, &sets[i], false);
			free(text);
		}
}

static void check_closed(const char *table, const struct ruleset *set, bool mangle)
{
	(void)set;
	(void)mangle;
	assert_closed(table);
	assert_int_equal(count(table, "COMMIT\n"), 1);
}

static void every_chain_hangs_together(void **state)
{
	(void)state;
	each_text(check_closed);
}

/* Every mask in the text stays inside the mask of the configuration. */
static void check_marks(const char *table, const struct ruleset *set, bool mangle)
{
	static const char *const before[] = {"mark 0x", "xmark 0x", "nfmask 0x", "ctmask 0x"};
	unsigned found = 0;
	(void)mangle;

	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++)
		for (const char *at = table; (at = strstr(at, before[i])) != NULL; at++) {
			char *end;
			unsigned long value = strtoul(at + strlen(before[i]), &end, 16);
			unsigned long width = value;
			if (*end == '/')
				width = strtoul(end + 3, NULL, 16);
			assert_int_equal(width & ~(unsigned long)set->mark_mask, 0);
			assert_int_equal(value & ~width, 0);
			assert_int_not_equal(width, 0);
			found++;
		}
	assert_true(found > 4);
}

static void marks_stay_inside_the_mask(void **state)
{
	(void)state;
	each_text(check_marks);
}

static void check_queue(const char *table, const struct ruleset *set, bool mangle)
{
	char line[64];

	assert_null(strstr(table, "bypass"));
	assert_int_equal(count(table, "NFQUEUE"), mangle);
	if (!mangle)
		return;
	/* The very last rule of its chain: what gets there is queued. */
	snprintf(line, sizeof(line), "-A PF-%s-gov -j NFQUEUE --queue-num 4400", set->instance);
	assert_true(has_line(table, line));
	const char *queue = strstr(table, line);
	snprintf(line, sizeof(line), "-A PF-%s-gov ", set->instance);
	assert_null(strstr(queue + 1, line));
}

static void the_queue_has_no_bypass(void **state)
{
	(void)state;
	each_text(check_queue);
}

/* The notice is the first rule of the refusal, and not for who is refused already. */
static void check_notice(const char *table, const struct ruleset *set, bool mangle)
{
	unsigned lowest = __builtin_ctz(set->mark_mask);
	unsigned refused = 3u << lowest, saved = 11u << lowest;
	char lines[256];
	(void)mangle;

	assert_int_equal(count(table, "NFLOG"), 1);
	snprintf(lines, sizeof(lines),
		 "-A PF-%s-ref -m mark ! --mark 0x%x/0x%x -j NFLOG --nflog-prefix pinfold-floor "
		 "--nflog-group 4400 --nflog-size 256\n"
		 "-A PF-%s-ref -j MARK --set-xmark ",
		 set->instance, refused, saved, set->instance);
	const char *notice = strstr(table, lines);
	assert_non_null(notice);
	snprintf(lines, sizeof(lines), "-A PF-%s-ref ", set->instance);
	assert_ptr_equal(strstr(table, lines), notice);
}

static void the_floor_sends_notices(void **state)
{
	struct ruleset set = output_ruleset();
	char *text;
	(void)state;

	each_text(check_notice);
	/* As iptables-save writes it. */
	set.queue = 0;
	text = ruleset_text(&set, ADDRESS_IPV4);
	assert_int_equal(count(text, " -j NFLOG --nflog-prefix pinfold-floor --nflog-size 256\n"),
			 2);
	free(text);
}

static void jumps(void **state)
{
	struct ruleset set = output_ruleset();
	char *text = ruleset_text(&set, ADDRESS_IPV4);
	(void)state;

	assert_int_equal(count(text, "\n-I "), 3);
	assert_int_equal(count(text, "\n-I OUTPUT 1 -j PF-pinfold-out\n"), 2);
	assert_true(has_line(text, "-I POSTROUTING 1 -j PF-pinfold-save"));
	free(text);

	set = forward_ruleset();
	text = ruleset_text(&set, ADDRESS_IPV6);
	assert_int_equal(count(text, "\n-I "), 9);
	assert_int_equal(count(text, "\n-I PREROUTING 1 -i veth+ -j PF-pinfold-gov\n"
				     "-I PREROUTING 1 -i tap0 -j PF-pinfold-gov\n"),
			 1);
	assert_true(has_line(text, "-I FORWARD 1 -i tap0 -j PF-pinfold-gov"));
	assert_true(has_line(text, "-I INPUT 1 -i tap0 -j PF-pinfold-gov"));
	assert_true(has_line(text, "-I INPUT 1 -i tap0 -j PF-pinfold-save"));
	assert_null(strstr(text, "-m owner"));
	free(text);
}

static void who_is_governed(void **state)
{
	struct ruleset set = output_ruleset();
	char *text = ruleset_text(&set, ADDRESS_IPV4);
	(void)state;

	assert_int_equal(
		count(text,
		      "-A PF-pinfold-out -m owner --uid-owner 1-4294967294 -g PF-pinfold-gov\n"),
		2);
	free(text);

	set.govern_all = true;
	set.exempt = true;
	set.exempt_uid = 977;
	text = ruleset_text(&set, ADDRESS_IPV4);
	assert_int_equal(
		count(text,
		      "-A PF-pinfold-out -m owner --uid-owner 977 -j RETURN\n"
		      "-A PF-pinfold-out -m owner --uid-owner 0-4294967294 -g PF-pinfold-gov\n"),
		2);
	free(text);

	set.selectors[0] =
		(struct ruleset_selector){.by_uid = true, .uid_first = 1001, .uid_last = 1001};
	set.selectors[1] =
		(struct ruleset_selector){.by_uid = true, .uid_first = 2000, .uid_last = 2999};
	set.selectors[2] = (struct ruleset_selector){.by_cgroup = true, .cgroup_path = "a/b"};
	set.selector_count = 3;
	text = ruleset_text(&set, ADDRESS_IPV6);
	assert_int_equal(count(text, "-m owner --uid-owner 1001 -g PF-pinfold-gov\n"), 2);
	assert_int_equal(count(text, "-m owner --uid-owner 2000-2999 -g PF-pinfold-gov\n"), 2);
	assert_int_equal(count(text, "-m cgroup --path \"a/b\" -g PF-pinfold-gov\n"), 2);
	assert_null(strstr(text, "0-4294967294"));
	assert_null(strstr(text, "! --uid-owner"));
	free(text);

	/* As iptables-save writes it: without quotation marks where none are needed. */
	strcpy(set.selectors[2].cgroup_path, "a-b_9");
	text = ruleset_text(&set, ADDRESS_IPV4);
	assert_int_equal(count(text, "-m cgroup --path a-b_9 -g PF-pinfold-gov\n"), 2);
	free(text);
}

static void resolvers(void **state)
{
	static const char *const sockets[] = {"127.0.0.1@53", "0.0.0.0@5353", "::1@54", "::@55"};
	struct ruleset set = output_ruleset();
	char *four, *six;
	(void)state;

	for (; set.resolver_count < 4; set.resolver_count++)
		assert_int_equal(endpoint_parse(sockets[set.resolver_count],
						strlen(sockets[set.resolver_count]), '@', 0,
						&set.resolvers[set.resolver_count]),
				 0);
	four = ruleset_text(&set, ADDRESS_IPV4);
	six = ruleset_text(&set, ADDRESS_IPV6);
	assert_true(has_line(four, "-A PF-pinfold-new -d 127.0.0.1/32 -p udp -m udp --dport 53 "
				   "-j MARK --set-xmark 0x10000/0xf0000"));
	assert_true(has_line(four, "-A PF-pinfold-new -d 127.0.0.1/32 -p tcp -m tcp --dport 53 "
				   "-j MARK --set-xmark 0x10000/0xf0000"));
	assert_true(has_line(four, "-A PF-pinfold-new -p tcp -m tcp --dport 5353 -m addrtype "
				   "--dst-type LOCAL -j MARK --set-xmark 0x10000/0xf0000"));
	assert_null(strstr(four, "--dport 54"));
	assert_true(has_line(six, "-A PF-pinfold-new -d ::1/128 -p udp -m udp --dport 54 "
				  "-j MARK --set-xmark 0x10000/0xf0000"));
	assert_true(has_line(six, "-A PF-pinfold-new -p udp -m udp --dport 55 -m addrtype "
				  "--dst-type LOCAL -j MARK --set-xmark 0x10000/0xf0000"));
	assert_null(strstr(six, "--dport 53 "));
	free(four);
	free(six);
}

/* --- the floor, by a small evaluator ------------------------------------------------------- */

struct flight {
	struct address destination;
	uint8_t protocol;
	uint16_t port;
};

/* "ADDRESS/LENGTH" or "ADDRESS/MASK". */
static bool in_range(const char *range, const struct address *address)
{
	char text[2][64];
	uint8_t base[16] = {0}, mask[16] = {0};
	int family = address->family == ADDRESS_IPV6 ? AF_INET6 : AF_INET;

	assert_int_equal(sscanf(range, "%63[^/]/%63[^ ]", text[0], text[1]), 2);
	assert_int_equal(inet_pton(family, text[0], base), 1);
	if (strpbrk(text[1], ".:") != NULL) {
		assert_int_equal(inet_pton(family, text[1], mask), 1);
	} else {
		for (int bit = 0; bit < atoi(text[1]); bit++)
			mask[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
	}
	for (size_t i = 0; i < address_length(address); i++)
		if (((address->bytes[i] ^ base[i]) & mask[i]) != 0)
			return false;
	return true;
}

static bool port_listed(const char *list, uint16_t port)
{
	for (;;) {
		char *end;
		if (strtoul(list, &end, 10) == port)
			return true;
		if (*end != ',')
			return false;
		list = end + 1;
	}
}

/* Does the rule behind "-A CHAIN " match? Dies of a match that it does not know. */
static bool rule_matches(const char *rule, const struct flight *flight)
{
	char word[160], value[160];
	int used;

	while (sscanf(rule, " %159s %159s%n", word, value, &used) == 2 && strcmp(word, "-j") != 0) {
		if (strcmp(word, "-d") == 0) {
			if (!in_range(value, &flight->destination))
				return false;
		} else if (strcmp(word, "-p") == 0) {
			if (flight->protocol !=
			    (strcmp(value, "tcp") == 0 ? IPPROTO_TCP : IPPROTO_UDP))
				return false;
		} else if (strncmp(word, "--dport", 7) == 0) {
			if (!port_listed(value, flight->port))
				return false;
		} else {
			assert_string_equal(word, "-m");
		}
		rule += used;
	}
	return true;
}

/* Walks CHAIN of TABLE; true once the refusal is reached. */
static bool refuses(const char *table, const char *chain, const struct flight *flight)
{
	char head[64];
	size_t length = (size_t)snprintf(head, sizeof(head), "-A PF-pinfold-%s ", chain);

	for (const char *line = table; (line = strstr(line, head)) != NULL; line++) {
		char rule[256], target[64];
		snprintf(rule, sizeof(rule), " %.*s", (int)strcspn(line + length, "\n"),
			 line + length);
		if (!rule_matches(rule, flight))
			continue;
		assert_int_equal(sscanf(strstr(rule, " -j "), " -j %63s", target), 1);
		if (strcmp(target, "RETURN") == 0)
			return false;
		assert_int_equal(strncmp(target, "PF-pinfold-", 11), 0);
		if (strcmp(target + 11, "ref") == 0 || refuses(table, target + 11, flight))
			return true;
	}
	return false;
}

struct texts {
	char *text[2];
	const char *tables[2][2]; /* [IPv6][mangle] */
};

static void texts_open(struct texts *texts, const struct ruleset *set)
{
	for (int six = 0; six < 2; six++) {
		texts->text[six] = ruleset_text(set, six ? ADDRESS_IPV6 : ADDRESS_IPV4);
		char *mangle = strstr(texts->text[six], "*mangle");
		mangle[-1] = '\0';
		texts->tables[six][0] = texts->text[six];
		texts->tables[six][1] = mangle;
	}
}

static void texts_close(struct texts *texts)
{
	free(texts->text[0]);
	free(texts->text[1]);
}

static bool is_refused(const struct texts *texts, const struct flight *flight)
{
	int six = flight->destination.family == ADDRESS_IPV6;
	bool filter = refuses(texts->tables[six][0], "floor", flight);

	assert_int_equal(refuses(texts->tables[six][1], "floor", flight), filter);
	return filter;
}

/* For 64:ff9b:1::/48 the rules read all four layouts, also where the engine sees that one is meant. */
static bool is_nat64_local(const struct address *address)
{
	static const uint8_t head[6] = {0, 0x64, 0xff, 0x9b, 0, 1};

	return address->family == ADDRESS_IPV6 && memcmp(address->bytes, head, 6) == 0;
}

static const struct {
	uint8_t protocol;
	uint16_t port;
} doors[] = {{IPPROTO_TCP, 80},   {IPPROTO_TCP, 443},  {IPPROTO_TCP, 53},   {IPPROTO_TCP, 1688},
	     {IPPROTO_TCP, 3260}, {IPPROTO_TCP, 8081}, {IPPROTO_TCP, 988},  {IPPROTO_TCP, 0},
	     {IPPROTO_UDP, 53},   {IPPROTO_UDP, 67},   {IPPROTO_UDP, 68},   {IPPROTO_UDP, 123},
	     {IPPROTO_UDP, 80},   {IPPROTO_UDP, 443},  {IPPROTO_UDP, 1688}, {IPPROTO_ICMP, 0},
	     {IPPROTO_SCTP, 80},  {IPPROTO_TCP, 65535}};

static void assert_agrees(const struct texts *texts, const struct address *address)
{
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		struct flight flight = {*address, doors[i].protocol, doors[i].port};
		uint32_t line;
		bool floor = floor_of_address(address, flight.port, flight.protocol, &line) ==
			     FLOOR_IS_FLOOR;
		if (is_nat64_local(address) && !floor)
			continue;
		assert_int_equal(is_refused(texts, &flight), floor);
	}
}

/* ADDRESS of IPv4 in every form, and beside it. */
static void assert_agrees_embedded(const struct texts *texts, const struct address *address)
{
	static const struct {
		const char *head;
		uint8_t at[4], flip;
	} forms[] = {
		{"::ffff:0:0", {12, 13, 14, 15}, 0},
		{"64:ff9b::", {12, 13, 14, 15}, 0},
		{"::", {12, 13, 14, 15}, 0},
		{"::ffff:0:0:0", {12, 13, 14, 15}, 0},
		{"64:ff9b:1::", {12, 13, 14, 15}, 0},
		{"64:ff9b:1::", {6, 7, 9, 10}, 0},
		{"64:ff9b:1::", {7, 9, 10, 11}, 0},
		{"64:ff9b:1::", {9, 10, 11, 12}, 0},
		{"2002::1", {2, 3, 4, 5}, 0},
		{"2001::7f:1", {4, 5, 6, 7}, 0},
		{"2001:0:102:304::", {12, 13, 14, 15}, 255},
		{"2a00::5efe:0:0", {12, 13, 14, 15}, 0},
		{"2a00::200:5efe:0:0", {12, 13, 14, 15}, 0},
		{"2a00::100:5efe:0:0", {12, 13, 14, 15}, 0},
		{"2a00::", {12, 13, 14, 15}, 0},
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct address six = address_of(forms[i].head);
		for (size_t j = 0; j < 4; j++)
			six.bytes[forms[i].at[j]] = address->bytes[j] ^ forms[i].flip;
		assert_agrees(texts, &six);
	}
}

/* The address itself, its neighbours at both ends of the range, and some inside. */
static void assert_agrees_around(const struct texts *texts, const struct prefix *prefix)
{
	size_t length = address_length(&prefix->address);

	for (int which = 0; which < 6; which++) {
		struct address address = prefix->address;
		for (size_t bit = prefix->length; bit < length * 8; bit++)
			if (which == 1 || which == 3 || (which >= 4 && (bit * 7 + which) % 3 == 0))
				address.bytes[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
		for (size_t i = length; (which == 2 || which == 3) && i-- > 0;) {
			address.bytes[i] = (uint8_t)(address.bytes[i] + (which == 2 ? -1 : 1));
			if (address.bytes[i] != (which == 2 ? 0xff : 0))
				break;
		}
		assert_agrees(texts, &address);
		if (length == 4)
			assert_agrees_embedded(texts, &address);
	}
}

static void the_static_floor_is_the_floor(void **state)
{
	struct ruleset set = output_ruleset();
	struct texts texts;
	size_t rows;
	const struct floor_address *floor = floor_addresses(&rows);
	static const char *const others[] = {"8.8.8.8",         "127.0.0.1", "10.0.0.1",
					     "2a00::1",         "::1",       "fe80::1",
					     "255.255.255.255", "ff02::1",   "::"};
	(void)state;

	texts_open(&texts, &set);
	assert_true(rows > 15);
	for (size_t i = 0; i < rows; i++)
		assert_agrees_around(&texts, &floor[i].prefix);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct address address = address_of(others[i]);
		assert_agrees(&texts, &address);
	}
	texts_close(&texts);
}

static void additions_to_the_floor(void **state)
{
	struct ruleset set = output_ruleset();
	struct texts texts;
	(void)state;

	set.floor[0] = (struct ruleset_floor){.prefix = prefix_of("10.9.0.0/20")};
	set.floor[1] = (struct ruleset_floor){.prefix = prefix_of("10.8.0.1"), .tcp_port = 99};
	set.floor[2] = (struct ruleset_floor){.prefix = prefix_of("2a01::/17")};
	set.floor_count = 3;
	texts_open(&texts, &set);
	struct {
		const char *address;
		uint8_t protocol;
		uint16_t port;
		bool refused;
	} rows[] = {
		{"10.9.15.255", IPPROTO_TCP, 80, true},
		{"10.9.15.255", IPPROTO_TCP, 53, false},
		{"10.9.16.0", IPPROTO_TCP, 80, false},
		{"10.8.0.1", IPPROTO_TCP, 99, true},
		{"10.8.0.1", IPPROTO_TCP, 98, false},
		{"10.8.0.1", IPPROTO_UDP, 99, false},
		{"2a01:7fff::1", IPPROTO_ICMPV6, 0, true},
		{"2a01:8000::1", IPPROTO_TCP, 80, false},
		{"64:ff9b::10.9.1.1", IPPROTO_TCP, 80, true},
		{"2002:a08:1::1", IPPROTO_TCP, 99, true},
		{"2002:a08:2::1", IPPROTO_TCP, 99, false},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct flight flight = {address_of(rows[i].address), rows[i].protocol,
					rows[i].port};
		assert_int_equal(is_refused(&texts, &flight), rows[i].refused);
	}
	texts_close(&texts);
}

/* --- allocation ----------------------------------------------------------------------------- */

static int reallocations_left = -1;
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_realloc(void *memory, size_t size)
{
	if (reallocations_left == 0)
		return NULL;
	if (reallocations_left > 0)
		reallocations_left--;
	return __real_realloc(memory, size);
}

static void no_memory_no_text(void **state)
{
	struct ruleset set = output_ruleset();
	char *text;
	int needed = 0;
	(void)state;

	for (;; needed++) {
		reallocations_left = needed;
		text = ruleset_text(&set, ADDRESS_IPV6);
		if (text != NULL)
			break;
		assert_in_range(needed, 0, 10);
	}
	reallocations_left = -1;
	assert_true(needed >= 2);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_rulesets),
		cmocka_unit_test(bad_instances),
		cmocka_unit_test(bad_masks),
		cmocka_unit_test(bad_interfaces),
		cmocka_unit_test(bad_users),
		cmocka_unit_test(too_many),
		cmocka_unit_test(every_chain_hangs_together),
		cmocka_unit_test(marks_stay_inside_the_mask),
		cmocka_unit_test(the_queue_has_no_bypass),
		cmocka_unit_test(the_floor_sends_notices),
		cmocka_unit_test(jumps),
		cmocka_unit_test(who_is_governed),
		cmocka_unit_test(resolvers),
		cmocka_unit_test(the_static_floor_is_the_floor),
		cmocka_unit_test(additions_to_the_floor),
		cmocka_unit_test(no_memory_no_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
