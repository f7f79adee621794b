/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "config/config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Findings as `check` prints them, one a line; the caller frees it. */
static char *findings_of(const char *text, size_t length)
{
	struct config_findings findings;
	struct config *config = config_read_text("f", text, length, &findings);
	char *printed = NULL;
	size_t size;
	FILE *out = open_memstream(&printed, &size);

	assert_non_null(out);
	config_findings_print(&findings, "f", out);
	fclose(out);
	assert_int_equal(config == NULL, findings.errors > 0);
	config_findings_free(&findings);
	config_free(config);
	return printed;
}

static struct config *good(const char *text)
{
	struct config_findings findings;
	struct config *config = config_read_text("f", text, strlen(text), &findings);

	if (config == NULL)
		config_findings_print(&findings, "f", stderr);
	assert_non_null(config);
	config_findings_free(&findings);
	return config;
}

static void findings_have_exact_places(void **state)
{
	(void)state;
	static const struct {
		const char *text, *findings;
	} rows[] = {
		/* the whole */
		{"[]", "f:1:1: error: the configuration must be a mapping, not a list\n"},
		{"text", "f:1:1: error: the configuration must be a mapping, not text\n"},
		{"polices: {}", "f:1:1: error: unknown key 'polices' in the configuration; did you "
				"mean 'policies'?\n"},
		{"xyzzy: {}", "f:1:1: error: unknown key 'xyzzy' in the configuration\n"},
		{"gate: {}\ngate: {}\n",
		 "f:2:1: error: key 'gate' is there twice, first in line 1\n"},
		{"gate: 1\n", "f:1:7: error: gate must be a mapping, not text\n"},
		{"gate: {interfaces: [\"a/b\"]}\n",
		 "f:1:21: error: interfaces: 'a/b' is no name of an interface\n"},
		{"gate: {hook: forward, interfaces: [\"+\"]}\n",
		 "f:1:36: error: interfaces: '+' is no name of an interface\n"},
		{"gate: {interfaces: [a]}\n",
		 "f:1:7: warning: gate: the gate sees no interfaces with `hook: output`\n"},
		{"clients: [{name: a, uid: 7, via: x}]\n",
		 "f:1:29: error: unknown key 'via' in client; did you mean 'uid'?\n"},
		{"gate: []\n", "f:1:7: error: gate must be a mapping, not a list\n"},
		/* several of a run, in the order of their places */
		{"gate: {hook: x, queue: y}\nlog: {allowed: 1}\nresolver: {threads: 0}\n",
		 "f:1:14: error: hook must be output or forward, not 'x'\n"
		 "f:1:24: error: queue must be a number from 0 to 65535\n"
		 "f:2:16: error: allowed must be true or false\n"
		 "f:3:21: error: threads must be 1: the resolver answers in one thread\n"},
		/* scalars */
		{"gate: {enabled: yes}", "f:1:17: error: enabled must be true or false\n"},
		{"gate: {enabled: \"true\"}", "f:1:17: error: enabled must be true or false\n"},
		{"gate: {enabled: }", "f:1:8: error: enabled must be true or false\n"},
		{"gate: {queue: 65536}", "f:1:15: error: queue must be a number from 0 to 65535\n"},
		{"gate: {queue: 1.5}", "f:1:15: error: queue must be a number from 0 to 65535\n"},
		{"gate: {queue: -1}", "f:1:15: error: queue must be a number from 0 to 65535\n"},
		{"gate: {queue: 007}", "f:1:15: error: queue must be a number from 0 to 65535\n"},
		{"gate: {queue: [1]}", "f:1:15: error: queue must be a number from 0 to 65535\n"},
		{"gate: {queue: 99999999999999999999}",
		 "f:1:15: error: queue must be a number from 0 to 65535\n"},
		{"gate: {mark_mask: 0}",
		 "f:1:19: error: mark_mask must be a number from 1 to 4294967295\n"},
		{"gate: {mark_mask: 0x7f}",
		 "f:1:19: error: mark_mask must be at least 8 adjacent bits\n"},
		{"gate: {mark_mask: 0x1fe01}",
		 "f:1:19: error: mark_mask must be at least 8 adjacent bits\n"},
		{"gate: {quic: allow}",
		 "f:1:14: error: quic must be refuse or inspect, not 'allow'\n"},
		{"log: {file: relative.log}",
		 "f:1:13: error: file must be an absolute path of at most 255 octets\n"},
		{"log: {file: \"/a\\nb\"}",
		 "f:1:13: error: file must be an absolute path of at most 255 octets\n"},
		{"control: {socket: x}",
		 "f:1:19: error: socket must be an absolute path of at most 107 octets\n"},
		{"user: root",
		 "f:1:7: error: user must not be root: the children give up privilege\n"},
		{"user: a b",
		 "f:1:7: error: user must be 1 to 63 letters, digits, '.', '-' or '_'\n"},
		{"user: [a]", "f:1:7: error: user must be text, not a list\n"},
		{"pins: {capacity: 1}",
		 "f:1:18: error: capacity must be a number from 64 to 4194304\n"},
		{"pins: {capacity: 100, per_client: 200}",
		 "f:1:7: error: pins: per_client is larger than capacity\n"},
		{"floor: {names: [\"*.x.example\"]}",
		 "f:1:17: error: names: '*.x.example': no wildcard here, a name covers its "
		 "children\n"},
		{"floor: {addresses: [\"10.0.0.1:80\"]}",
		 "f:1:21: error: addresses: '10.0.0.1:80': no port here\n"},
		/* the hook */
		{"policies: {a: {custom: /run/x}}",
		 "f:1:24: error: custom must be none or unix:PATH with an absolute path of at most "
		 "107 octets\n"},
		{"policies: {a: {custom: \"unix:run/x\"}}",
		 "f:1:24: error: custom must be none or unix:PATH with an absolute path of at most "
		 "107 octets\n"},
		{"policies: {a: {custom: \"unix:/\"}}",
		 "f:1:24: error: custom must be none or unix:PATH with an absolute path of at most "
		 "107 octets\n"},
		{"policies: {a: {custom: \"unix:/a\\nb\"}}",
		 "f:1:24: error: custom must be none or unix:PATH with an absolute path of at most "
		 "107 octets\n"},
		{"policies: {a: {custom: "
		 "unix:/1234567890123456789012345678901234567890123456789012345678901234567890"
		 "1234567890123456789012345678901234567}}",
		 "f:1:24: error: custom must be none or unix:PATH with an absolute path of at most "
		 "107 octets\n"},
		{"policies: {a: {custom: unix:/x, custom_stages: [dns, connect, connect]}}",
		 "f:1:49: error: custom_stages: a stage is resolve, answer, connect or request, "
		 "not "
		 "'dns'\n"
		 "f:1:63: error: custom_stages: 'connect' is there twice\n"},
		{"policies: {a: {custom: unix:/x, custom_stages: []}}",
		 "f:1:48: error: custom_stages must be at least one stage\n"},
		{"policies: {a: {custom: unix:/x, custom_timeout: 0.001}}",
		 "f:1:49: error: custom_timeout must be seconds from 0.01 to 10, with at most "
		 "three "
		 "digits behind the point\n"},
		{"policies: {a: {custom: unix:/x, custom_timeout: 10.001}}",
		 "f:1:49: error: custom_timeout must be seconds from 0.01 to 10, with at most "
		 "three "
		 "digits behind the point\n"},
		{"policies: {a: {custom: unix:/x, custom_timeout: 1s}}",
		 "f:1:49: error: custom_timeout must be seconds from 0.01 to 10, with at most "
		 "three "
		 "digits behind the point\n"},
		{"policies: {a: {custom: unix:/x, custom_timeout: 1.0001}}",
		 "f:1:49: error: custom_timeout must be seconds from 0.01 to 10, with at most "
		 "three "
		 "digits behind the point\n"},
		{"policies: {a: {custom_timeout: 1}}",
		 "f:1:15: error: custom_stages and custom_timeout without custom\n"},
		/* resolver */
		{"resolver: {listen: []}", "f:1:20: error: listen must be 1 to 16 addresses\n"},
		{"resolver: {listen: \"127.0.0.1@53\"}",
		 "f:1:20: error: listen must be a list, not text\n"},
		{"resolver: {listen: [\"0.0.0.0@53\"]}",
		 "f:1:21: error: listen: '0.0.0.0@53' is every address and none: name one\n"},
		{"resolver: {listen: [\"::@53\"]}",
		 "f:1:21: error: listen: '::@53' is every address and none: name one\n"},
		{"resolver: {listen: [127.0.0.1, \"127.0.0.1@53\"]}",
		 "f:1:32: error: listen: '127.0.0.1@53' is there twice\n"},
		{"resolver: {listen: [\"127.0.0.1:53\"]}",
		 "f:1:21: error: listen: '127.0.0.1:53' is no ADDRESS or ADDRESS@PORT\n"},
		{"resolver: {clients: [10.0.0.1/8]}",
		 "f:1:22: error: clients: '10.0.0.1/8' has bits set behind its length\n"},
		{"resolver: {upstream: fast}",
		 "f:1:22: error: upstream must be recursive or a list of ADDRESS[@PORT]\n"},
		{"resolver: {upstream: []}", "f:1:22: error: upstream must be 1 to 8 addresses\n"},
		{"resolver: {upstream: [169.254.169.254@80]}",
		 "f:1:23: error: upstream: names the floor\n"},
		{"resolver: {forward: {internal: 10.0.0.1}}",
		 "f:1:32: error: forward must be a list, not text\n"},
		{"resolver: {forward: {.: [10.0.0.1]}}",
		 "f:1:22: error: forward: the root's forwarders are `upstream`\n"},
		{"resolver: {forward: {metadata.google.internal: [10.0.0.1]}}",
		 "f:1:22: error: forward: names the floor\n"},
		{"resolver: {forward: {a.example: [10.0.0.1], A.example.: [10.0.0.2]}}",
		 "f:1:45: error: forward: zone 'a.example' is there twice\n"},
		{"resolver: {hosts: []}", "f:1:19: error: hosts must be a mapping, not a list\n"},
		{"resolver: {hosts: {a.example: 10.0.0.1}}",
		 "f:1:31: error: addresses of a host must be a list, not text\n"},
		{"resolver: {hosts: {a.example: []}}",
		 "f:1:31: error: hosts: a host without an address\n"},
		{"resolver: {hosts: {a.example: [10.0.0.0/8]}}",
		 "f:1:32: error: hosts: '10.0.0.0/8' is no address\n"},
		{"resolver: {hosts: {a.example: [1.1.1.1], A.EXAMPLE: [1.1.1.2]}}",
		 "f:1:42: error: hosts: 'a.example' is there twice\n"},
		{"resolver: {hosts: {x.metadata.goog: [1.1.1.1]}}",
		 "f:1:20: error: hosts: names the floor: metadata services cannot be opened\n"},
		{"resolver: {hosts: {a.example: [\"::ffff:169.254.169.254\"]}}",
		 "f:1:32: error: hosts: names the floor: metadata services cannot be opened\n"},
		{"resolver: {hosts: {app.localhost: [1.1.1.1]}}",
		 "f:1:20: error: hosts: localhost is loopback by nature\n"},
		{"resolver: {hosts: {\"*.a.example\": [1.1.1.1]}}",
		 "f:1:20: error: hosts: '*.a.example': no wildcard here, a name covers its "
		 "children\n"},
		{"resolver: {search: [10.0.0.1]}",
		 "f:1:21: error: search: '10.0.0.1': names alone stand here, no addresses\n"},
		{"resolver: {trust_anchor: root.key}",
		 "f:1:26: error: trust_anchor must be an absolute path of at most 255 octets\n"},
		{"resolver: {validation_date: 2020}",
		 "f:1:29: error: validation_date must be YYYYMMDDHHMMSS or \"\"\n"},
		{"resolver: {refusal: drop}",
		 "f:1:21: error: refusal must be nxdomain, nodata or refused, not 'drop'\n"},
		{"resolver: {cache: {messages: 1}}", "f:1:30: error: messages must be a size like "
						     "16M, from 65536 to 1073741824 octets\n"},
		{"resolver: {cache: {rrsets: 99G}}", "f:1:28: error: rrsets must be a size like "
						     "16M, from 65536 to 1073741824 octets\n"},
		{"resolver: {ipv4: false, ipv6: false}",
		 "f:1:11: error: resolver: ipv4 and ipv6 cannot both be false\n"},
		/* policies */
		{"policies: []", "f:1:11: error: policies must be a mapping, not a list\n"},
		{"policies: {default: 1}",
		 "f:1:21: error: policy 'default' must be a mapping, not text\n"},
		{"policies: {\"a b\": {}}",
		 "f:1:12: error: a policy's name must be 1 to 63 letters, "
		 "digits, '.', '-' or '_'\n"},
		{"policies:\n  default:\n    defualt: deny\n",
		 "f:3:5: error: unknown key 'defualt' in policy 'default'; did you mean "
		 "'default'?\n"},
		{"policies:\n  default:\n    allow_host: []\n",
		 "f:3:5: error: unknown key 'allow_host' in policy 'default'; did you mean "
		 "'allow_hosts'?\n"},
		{"policies: {default: {default: perhaps}}",
		 "f:1:31: error: default must be allow or deny, not 'perhaps'\n"},
		{"policies: {default: {mode: loud}}",
		 "f:1:28: error: mode must be enforce or audit, not 'loud'\n"},
		{"policies: {default: {allow_hosts: example.com}}",
		 "f:1:35: error: allow_hosts must be a list, not text\n"},
		{"policies: {default: {allow_hosts: }}",
		 "f:1:22: error: allow_hosts must be a list, not nothing\n"},
		{"policies: {default: {allow_hosts: [[a]]}}",
		 "f:1:36: error: an entry must be text, not a list\n"},
		{"policies:\n  default:\n    allow_hosts:\n      - example.com\n      - org\n",
		 "f:5:9: error: allow_hosts: 'org' is a public suffix: it would open a whole "
		 "registry\n"},
		{"policies: {default: {allow_hosts: [true, \"true\"]}}",
		 "f:1:36: error: an entry must be text, not true\n"},
		{"policies: {default: {http2: allow}}",
		 "f:1:29: error: http2 must be deny: nothing else is built yet\n"},
		{"policies: {default: {udp: maybe}}",
		 "f:1:27: error: udp must be deny or allow, not 'maybe'\n"},
		/* clients */
		{"clients: {}", "f:1:10: error: clients must be a list, not a mapping\n"},
		{"clients: [a]", "f:1:11: error: a client must be a mapping, not text\n"},
		{"clients: [{uid: 1}]", "f:1:11: error: a client needs a name\n"},
		{"clients: [{name: a}]",
		 "f:1:11: error: client 'a' needs an address, interface, uid or cgroup\n"},
		{"clients: [{name: host, uid: 1}]",
		 "f:1:18: error: the client 'host' is this machine itself\n"},
		{"clients: [{name: a, uid: 1, policy: ci}]\npolicies: {cii: {}}",
		 "f:1:37: error: there is no policy 'ci'; did you mean 'cii'?\n"},
		{"clients: [{name: a, uid: 1}, {name: a, uid: 2}]",
		 "f:1:30: error: client 'a' is there twice, first in line 1\n"},
		{"clients: [{name: a, uid: 1}, {name: b, uid: 1}]",
		 "f:1:30: error: client 'b' has a selector of 'a' in line 1\n"},
		{"clients: [{name: a, address: 10.0.0.0/8}, {name: b, addresses: [10.1.0.1, "
		 "10.0.0.0/8]}]",
		 "f:1:43: error: client 'b' has a selector of 'a' in line 1\n"},
		{"clients: [{name: a, uid: root}]",
		 "f:1:26: error: uid must be a number from 0 to 4294967294\n"},
		{"gate: {hook: forward}\nclients: [{name: a, interface: averyveryverylongname}]",
		 "f:2:32: error: interface: 'averyveryverylongname' is no name of an interface\n"},
		{"clients: [{name: a, cgroup: ../x}]",
		 "f:1:29: error: cgroup: must be an absolute path under /sys/fs/cgroup\n"},
		{"clients: [{name: a, cgroup: /a/..}]",
		 "f:1:29: error: cgroup: must be an absolute path under /sys/fs/cgroup\n"},
		{"clients: [{name: a, cgroup: /nonexistent}]",
		 "f:1:29: error: cgroup: /sys/fs/cgroup/nonexistent: No such file or directory\n"},
		{"clients: [{name: a, address: x}]",
		 "f:1:30: error: address: 'x' is no address and no CIDR\n"},
		/* warnings alone do not stop it */
		{"clients: [{name: a, interface: tap0}]",
		 "f:1:32: warning: interface: the gate sees none with `hook: output`; use uid or "
		 "cgroup\n"},
		{"gate: {hook: forward}\nclients: [{name: a, uid: 1}]",
		 "f:2:26: warning: uid: the gate sees none with `hook: forward`; use interface\n"},
		{"policies: {default: {allow_private_cidrs: [100.64.0.0/10]}}",
		 "f:1:44: warning: allow_private_cidrs: the range holds metadata addresses, which "
		 "stay shut\n"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *findings = findings_of(rows[i].text, strlen(rows[i].text));
		if (strcmp(findings, rows[i].findings) != 0)
			print_message("%s\n", rows[i].text);
		assert_string_equal(findings, rows[i].findings);
		free(findings);
	}
}

static char *printed(const struct config *config)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	config_print(config, out);
	fclose(out);
	return text;
}

static const char *const good_texts[] = {
	"",
	"# nothing\n",
	"---\n",
	"resolver:\ngate:\nlog:\ncontrol:\npins:\nfloor:\nclients:\npolicies:\n",
	"policies: {default: }",
	"policies: {default: {}, ci: {default: deny}}",
	"policies: {ci: {default: deny, allow_hosts: [example.com, \"*.example.net:443\", "
	"\"10.0.0.0/8:80\", \"[fd00::/8]:80\", \"[::1]\", fd12::/16]}}",
	"policies: {a: {allowed_origins: [\"https://github.com\", \"http://x.example:8080\", "
	"\"https://[2001:db8::1]:8443\", \"https://*.example.org\", \"http://10.0.0.1\"]}}",
	"policies: {a: {block_hosts: [zip, \"ads.example.com:8443\", 10.20.0.0/16], mode: audit, "
	"literals: deny, infrastructure: allow, udp: allow, icmp: true, other: deny, http2: "
	"false}}",
	"policies: {a: {allow_raw: [\"git.example.com:22\"], proxies: "
	"[\"proxy.example.com:3128\"], "
	"allow_private_answers: [home.example.com, \"*.corp.example.net\"], "
	"allow_private_cidrs: [172.20.0.0/16, \"fd00:1::/32\", 10.1.2.3]}}",
	"policies: {a: {strip_ech: false, block_secret_bearing_urls: false, "
	"block_encrypted_dns: false, allow_private_network: false, allow_loopback: false}}",
	"policies: {a: {custom: \"unix:/run/agent/guard.sock\"}, b: {custom: none}, c: {custom: "
	"unix:/x, custom_stages: [request, connect], custom_timeout: 0.25}, d: {custom: "
	"'unix:/a \"\\ b', custom_timeout: 10}}",
	"resolver: {strip_ech: false}\npolicies: {a: {strip_ech: true}, b: {}}",
	"resolver: {listen: [\"10.0.0.1@5353\", \"fd00::1\"], clients: [10.0.0.0/8, \"fd00::/8\"], "
	"upstream: [9.9.9.9, \"2620:fe::fe@53\"], forward: {internal: [10.0.0.53], "
	"corp.example.: [\"10.0.0.54@5353\", 10.0.0.55]}, search: [corp.example.com]}",
	"resolver: {hosts: {db.example.com: [10.1.2.3, \"fd00::3\"], b\xc3\xbc"
	"cher.example: "
	"[1.1.1.1]}, trust_anchor: none, root_hints: /etc/hints, threads: 1, pin_min: 0, "
	"pin_grace: 5, negative_anchors: [lab.example], refusal: refused}",
	"resolver: {cache: {messages: 64K, rrsets: 100000, answers: 1M}, client_rate: 50, serve_stale: 86400, qname_minimisation: false, ipv6: "
	"false, "
	"upstream_nonpublic: true, validation_date: 20200101000000, trust_anchor: \"/a \\\\ \\\" "
	"b\"}",
	"resolver: {upstream: [169.254.169.254]}",
	"gate: {enabled: false, hook: forward, govern: all, queue: 0, mark_mask: 0xff, quic: "
	"refuse}",
	"gate: {mark_mask: 4278190080, quic: inspect}",
	"log: {file: /var/log/pinfold.json, allowed: true}\ncontrol: {socket: /run/x.sock}\n"
	"pins: {capacity: 1000}\nuser: nobody\n",
	"floor: {names: [secrets.example.com], addresses: [10.9.9.9, \"fd00:9::/64\"]}",
	"gate: {hook: forward}\nclients: [{name: vm1, interface: tap0, policy: browser, addresses: "
	"[10.0.0.2, \"fd00::2\"]}, {name: vm2, address: 10.0.0.0/24}]\npolicies: {browser: {}}",
	"clients: [{name: runner, uid: 1001, policy: ci}, {name: root, uid: 0}]\npolicies: {ci: "
	"{}}",
	"policies: {a: {allow_hosts: &hosts [example.com]}, b: {allow_hosts: *hosts}}",
};

/* What is printed loads, and prints the same. */
static void printing_is_a_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
		struct config *first = good(good_texts[i]);
		char *first_text = printed(first);
		struct config *second = good(first_text);
		char *second_text = printed(second);
		assert_string_equal(first_text, second_text);
		/* and nothing that the children get is lost on the way */
		assert_memory_equal(&first->settings, &second->settings, sizeof(first->settings));
		assert_memory_equal(&first->pins, &second->pins, sizeof(first->pins));
		free(first_text);
		free(second_text);
		config_free(first);
		config_free(second);
	}
}

/* Every good configuration makes a policy image that opens. */
static void every_good_text_builds_an_image(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
		struct config *config = good(good_texts[i]);
		const struct policy_image *opened;
		void *image;
		size_t size;
		assert_int_equal(policy_image_build(&config->source, &image, &size), 0);
		assert_int_equal(policy_image_open(image, size, &opened), 0);
		assert_string_equal(policy_source_name(opened, SOURCE_CONFIG), "f");
		free(image);
		config_free(config);
	}
}

static void values_arrive(void **state)
{
	(void)state;
	struct config *config =
		good("resolver: {listen: [\"10.0.0.1@5353\"], upstream: [9.9.9.9@54], forward: "
		     "{internal: "
		     "[10.0.0.53]}, strip_ech: false, pin_min: 7}\n"
		     "gate: {hook: forward, govern: all, queue: 9, mark_mask: 0xff00}\n"
		     "pins: {capacity: 1000}\n"
		     "floor: {addresses: [10.9.9.9], names: [x.example]}\n"
		     "clients:\n  - {name: vm, interface: tap0, address: 10.0.0.2, policy: p}\n"
		     "policies:\n  p:\n    default: deny\n    strip_ech: true\n    allow_hosts:\n"
		     "      - example.com:443\n");
	const struct resolver_settings *resolver = &config->settings.resolver;
	const struct policy_source *policy = &config->source.policies[1];

	assert_int_equal(config->settings.version, SETTINGS_VERSION);
	assert_int_equal(config->settings.size, sizeof(struct settings));
	assert_int_equal(resolver->listen_count, 1);
	assert_int_equal(resolver->listen[0].port, 5353);
	assert_int_equal(config->source.listen.count, 1);
	assert_int_equal(config->source.listen.entries[0].port, 5353);
	assert_int_equal(resolver->pin_min_seconds, 7);
	assert_int_equal(resolver->zone_count, 2);
	assert_int_equal(resolver->zones[0].zone.length, 0);
	assert_int_equal(resolver->zones[0].forwarders[0].port, 54);
	assert_string_equal(resolver->zones[1].zone.text, "internal");
	/* forwarders of the root open no private zone */
	assert_int_equal(config->source.forward_count, 1);
	assert_string_equal(config->source.forward_zones[0].text, "internal");
	assert_int_equal(config->settings.gate.hook, HOOK_FORWARD);
	assert_true(config->source.govern_all);
	assert_int_equal(config->pins.per_client, 1000);
	assert_int_equal(config->source.floor.count, 2);
	assert_int_equal(config->source.policy_count, 2);
	assert_string_equal(config->source.policies[0].name, "default");
	assert_false(config->source.policies[0].strip_ech.value);
	assert_true(policy->strip_ech.value);
	assert_true(policy->default_deny.value);
	assert_int_equal(policy->default_deny.place.source, SOURCE_CONFIG);
	assert_int_equal(policy->default_deny.place.line, 9);
	assert_int_equal(policy->allow_hosts.entries[0].place.line, 12);
	assert_int_equal(config->source.client_count, 1);
	assert_int_equal(config->source.clients[0].policy, 1);
	assert_int_equal(config->source.clients[0].selector_count, 2);
	assert_int_equal(config->source.clients[0].place.line, 6);
	config_free(config);
}

static int ruleset_of(const struct config *config, struct ruleset *out, char *problem, size_t size)
{
	return config_ruleset(config, config->source.clients, config->source.client_count, out,
			      problem, size);
}

static void interfaces_are_governed(void **state)
{
	struct ruleset ruleset;
	char problem[128], *printed;
	size_t size;
	struct config *config = good("gate: {hook: forward, interfaces: [cni0, \"veth+\"]}\n"
				     "clients: [{name: a, interface: tap0}, {name: b, interface: "
				     "cni0}]");

	(void)state;
	assert_int_equal(ruleset_of(config, &ruleset, problem, sizeof(problem)), 0);
	assert_int_equal(ruleset.selector_count, 3); /* cni0 is there twice */
	assert_string_equal(ruleset.selectors[0].interface, "cni0");
	assert_string_equal(ruleset.selectors[1].interface, "veth+");
	assert_string_equal(ruleset.selectors[2].interface, "tap0");
	FILE *out = open_memstream(&printed, &size);
	config_print(config, out);
	fclose(out);
	assert_non_null(strstr(printed, "  interfaces: [\"cni0\", \"veth+\"]\n"));
	free(printed);
	config_free(config);

	/* nobody is named yet */
	config = good("gate: {hook: forward, interfaces: [cni0]}");
	assert_int_equal(ruleset_of(config, &ruleset, problem, sizeof(problem)), 0);
	assert_int_equal(ruleset.selector_count, 1);
	config_free(config);
}

/* "" or what is wrong with a registration of TEXT under CONFIG. */
static const char *registration(const struct config *config, const char *text)
{
	static char problem[256];
	struct config_client *client =
		config_client_read(config, text, strlen(text), problem, sizeof(problem));

	if (client != NULL)
		problem[0] = '\0';
	config_client_free(client);
	return problem;
}

static void registrations_are_checked(void **state)
{
	static const struct {
		const char *text, *problem;
	} rows[] = {
		{"{\"name\":\"a\",\"addresses\":[\"10.1.2.3\",\"fd00::3\"],\"policy\":\"ci\"}", ""},
		{"{\"name\":\"a\",\"address\":\"10.1.0.0/16\"}", ""},
		{"{\"name\":\"a\",\"interface\":\"veth0\"}", ""},
		{"{\"name\":\"a\",\"address\":\"10.1.2.3\",\"via\":\"cni0\"}", ""},
		{"{\"name\":\"a\",\"address\":\"10.1.2.3\",\"via\":\"veth77\"}", ""},
		{"{\"name\":\"a\",\"address\":\"10.1.2.3\",\"via\":\"cni1\"}",
		 "via: 'cni1' is not in `gate: {interfaces}`"},
		{"{\"name\":\"a\",\"address\":\"10.1.2.3\",\"via\":\"tap0\"}",
		 "via: all of 'tap0' is the client 'vm'"},
		{"{\"name\":\"a\",\"address\":\"10.1.2.3\",\"via\":\"veth+\"}",
		 "via: 'veth+' is no name of an interface"},
		/* a file gets a warning; nobody reads this one */
		{"{\"name\":\"a\",\"uid\":7}",
		 "uid: the gate sees none with `hook: forward`; use interface"},
		{"{\"name\":\"a\",\"policy\":\"cj\",\"address\":\"10.1.2.3\"}",
		 "there is no policy 'cj'; did you mean 'ci'?"},
		{"{\"name\":\"a\"}", "client 'a' needs an address, interface, uid or cgroup"},
		{"{\"name\":\"a\",\"addresses\":[]}", "addresses: an empty list"},
		{"{\"address\":\"10.1.2.3\"}", "a client needs a name"},
		{"{\"name\":\"host\",\"address\":\"10.1.2.3\"}",
		 "the client 'host' is this machine itself"},
		{"{\"name\":\"a b\",\"address\":\"10.1.2.3\"}",
		 "a client's name must be 1 to 63 letters, digits, '.', '-' or '_'"},
		{"{\"name\":7,\"address\":\"10.1.2.300\"}",
		 "address: '10.1.2.300' is no address and no CIDR"},
		{"{\"name\":\"a\",\"address\":\"10.1.2.3/16\"}",
		 "address: '10.1.2.3/16' has bits set behind its length"},
		{"{\"name\":\"a\",\"adresses\":[\"10.1.2.3\"]}",
		 "unknown key 'adresses' in client; did you mean 'addresses'?"},
		{"[]", "a client must be a mapping, not a list"},
		{"", "nothing is written"},
	};
	struct config *config = good("gate: {hook: forward, interfaces: [cni0, \"veth+\"]}\n"
				     "clients: [{name: vm, interface: tap0}]\n"
				     "policies: {ci: {}}");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(registration(config, rows[i].text), rows[i].problem);
	config_free(config);

	config = good("");
	assert_string_equal(registration(config, "{name: a, uid: 7}"), "");
	assert_string_equal(registration(config, "{name: a, interface: x}"),
			    "interface: the gate sees none with `hook: output`; use uid or cgroup");
	assert_string_equal(registration(config, "{name: a, address: 10.0.0.1, via: x}"),
			    "via: the gate has `hook: output`");
	config_free(config);
}

static void rulesets_follow_the_clients(void **state)
{
	(void)state;
	struct ruleset ruleset;
	char problem[128];
	struct config *config = good("clients: [{name: a, uid: 7}, {name: b, address: 10.0.0.1}]");

	assert_int_equal(ruleset_of(config, &ruleset, problem, sizeof(problem)), 0);
	assert_string_equal(ruleset.instance, "pinfold");
	assert_int_equal(ruleset.hook, HOOK_OUTPUT);
	assert_int_equal(ruleset.selector_count, 1);
	assert_true(ruleset.selectors[0].by_uid);
	assert_int_equal(ruleset.selectors[0].uid_first, 7);
	assert_int_equal(ruleset.selectors[0].uid_last, 7);
	assert_int_equal(ruleset.resolver_count, 2);
	assert_int_equal(ruleset.resolvers[0].port, 53);
	config_free(config);

	config = good("gate: {hook: forward}\nclients: [{name: a, interface: tap0, uid: 7}]");
	assert_int_equal(ruleset_of(config, &ruleset, problem, sizeof(problem)), 0);
	assert_int_equal(ruleset.selector_count, 1);
	assert_string_equal(ruleset.selectors[0].interface, "tap0");
	config_free(config);

	config = good("gate: {hook: forward}\nclients: [{name: a, address: 10.0.0.1}]");
	assert_int_equal(ruleset_of(config, &ruleset, problem, sizeof(problem)), -EINVAL);
	config_free(config);
}

static void listen_can_be_replaced(void **state)
{
	(void)state;
	struct config *config = good("");
	struct endpoint endpoints[SETTINGS_LISTEN_MAX + 1] = {
		{.address = address_ipv4(10, 0, 0, 1), .port = 53}};

	assert_int_equal(config_set_listen(config, endpoints, 0), -EINVAL);
	assert_int_equal(config_set_listen(config, endpoints, SETTINGS_LISTEN_MAX + 1), -EINVAL);
	assert_int_equal(config->settings.resolver.listen_count, 2);
	assert_int_equal(config_set_listen(config, endpoints, 1), 0);
	assert_int_equal(config->settings.resolver.listen_count, 1);
	assert_int_equal(config->source.listen.count, 1);
	assert_memory_equal(&config->source.listen.entries[0].prefix.address, &endpoints[0].address,
			    sizeof(endpoints[0].address));
	config_free(config);
}

static void clients_can_be_replaced(void **state)
{
	(void)state;
	struct config *config = good(
		"policies: {p: {}}\nclients: [{name: a, uid: 7, policy: p}, {name: b, uid: 8}]");
	struct ruleset ruleset;
	char problem[256];

	assert_int_equal(config_set_client(config, "run", "sixteen-letters-"), -EINVAL);
	assert_int_equal(config->source.client_count, 2);
	assert_int_equal(config_set_client(config, "run", "in0"), 0);
	assert_int_equal(config->source.client_count, 1);
	assert_int_equal(config->source.clients[0].policy, 0);
	config->settings.gate.hook = HOOK_FORWARD;
	assert_int_equal(ruleset_of(config, &ruleset, problem, sizeof(problem)), 0);
	assert_int_equal(ruleset.selector_count, 1);
	assert_string_equal(ruleset.selectors[0].interface, "in0");
	config_free(config);
}

static void allow_adds_to_the_default_policy(void **state)
{
	(void)state;
	struct config *config =
		good("policies: {default: {default: deny, allow_hosts: [a.example]}}");
	const struct match_list *list = &config->source.policies[0].allow_hosts;
	char problem[256];

	assert_int_equal(config_allow(config, "b.example:443", problem, sizeof(problem)), 0);
	assert_int_equal(config_allow(config, "c.example", problem, sizeof(problem)), 0);
	assert_int_equal(list->count, 3);
	assert_string_equal(list->entries[0].name.text, "a.example");
	assert_int_equal(list->entries[1].port, 443);
	assert_int_equal(list->entries[2].place.source, SOURCE_CONFIG + 1);
	assert_int_equal(config_allow(config, "metadata.goog", problem, sizeof(problem)), -EINVAL);
	assert_non_null(strstr(problem, "floor"));
	assert_int_equal(config_allow(config, "", problem, sizeof(problem)), -EINVAL);
	assert_int_equal(list->count, 3);
	config_free(config);
}

static void findings_are_bounded(void **state)
{
	(void)state;
	char *text = malloc(200000);
	size_t used = (size_t)sprintf(text, "policies:\n  default:\n    allow_hosts:\n");
	struct config_findings findings;

	for (int i = 0; i < 5000; i++)
		used += (size_t)sprintf(text + used, "    - a b\n");
	assert_null(config_read_text("f", text, used, &findings));
	assert_int_equal(findings.errors, 5000);
	assert_int_equal(findings.count, 101);
	assert_string_equal(findings.items[100].text, "there are more findings");
	config_findings_free(&findings);
	free(text);
}

static void large_lists_load(void **state)
{
	(void)state;
	enum { ENTRIES = 20000 };
	char *text = malloc(ENTRIES * 40);
	size_t used = (size_t)sprintf(text, "policies:\n  default:\n    block_hosts:\n");

	for (int i = 0; i < ENTRIES; i++)
		used += (size_t)sprintf(text + used, "    - host-%d.example.com\n", i);
	struct config *config = good(text);
	assert_int_equal(config->source.policies[0].block_hosts.count, ENTRIES);
	config_free(config);
	free(text);
}

static void only_files_are_read(void **state)
{
	(void)state;
	static const char *const paths[] = {"/", "/nonexistent/pinfold.yaml", "/dev/zero", ""};
	struct config_findings findings;
	char folder[] = "/tmp/pinfold-config-XXXXXX", path[64];

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_null(config_read(paths[i], &findings));
		assert_int_equal(findings.count, 1);
		assert_int_equal(findings.errors, 1);
		config_findings_free(&findings);
	}
	struct config *config = config_read("/dev/null", &findings);
	assert_non_null(config);
	assert_int_equal(findings.count, 0);
	config_free(config);

	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/f.yaml", folder);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs("gate: {queue: 9}\n", file);
	fclose(file);
	config = config_read(path, &findings);
	assert_non_null(config);
	assert_int_equal(config->settings.gate.queue, 9);
	assert_string_equal(config->source.source_names[0], path);
	config_free(config);
	unlink(path);
	rmdir(folder);
}

/* Cut and flipped configurations: no crash, and a configuration or a finding, never neither. */
static void damaged_text_is_harmless(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(good_texts) / sizeof(good_texts[0]); i++) {
		size_t length = strlen(good_texts[i]);
		char *text = strdup(good_texts[i]);
		for (size_t cut = 0; cut < length; cut += 3)
			free(findings_of(good_texts[i], cut));
		for (size_t at = 0; at < length; at += 5) {
			text[at] = "\0 :{\"[*&"[at % 8];
			free(findings_of(text, length));
			text[at] = good_texts[i][at];
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(findings_have_exact_places),
		cmocka_unit_test(printing_is_a_round_trip),
		cmocka_unit_test(every_good_text_builds_an_image),
		cmocka_unit_test(values_arrive),
		cmocka_unit_test(rulesets_follow_the_clients),
		cmocka_unit_test(interfaces_are_governed),
		cmocka_unit_test(registrations_are_checked),
		cmocka_unit_test(listen_can_be_replaced),
		cmocka_unit_test(clients_can_be_replaced),
		cmocka_unit_test(allow_adds_to_the_default_policy),
		cmocka_unit_test(findings_are_bounded),
		cmocka_unit_test(large_lists_load),
		cmocka_unit_test(only_files_are_read),
		cmocka_unit_test(damaged_text_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
