/* SPDX-License-Identifier: MIT */
/*
 * test-network - addresses, host names, and what the [network] sections of a policy say about them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glib/gstdio.h>
#include <string.h>

#include "rules/address.h"
#include "rules/host_name.h"
#include "rules/net_pattern.h"
#include "rules/network.h"
#include "rules/policy.h"

/* Addresses */

static void test_address_spellings(void **state)
{
	static const struct {
		const char *text, *same; /* NULL: no address */
	} cases[] = {
		{ "127.0.0.1", "127.0.0.1" },
		{ "::1", "::1" },
		{ "::ffff:127.0.0.1", "127.0.0.1" },
		{ "::ffff:7f00:1", "127.0.0.1" },
		{ "0:0:0:0:0:ffff:10.0.0.1", "10.0.0.1" },
		{ "FD00:EC2::254", "fd00:ec2::254" },
		{ "2130706433", NULL },
		{ "0x7f000001", NULL },
		{ "0x7f.0.0.1", NULL },
		{ "0177.0.0.1", NULL },
		{ "127.1", NULL },
		{ "127.0.0.01", NULL },
		{ "127.0.0.1.", NULL },
		{ "127.0.0.256", NULL },
		{ " 127.0.0.1", NULL },
		{ "fe80::1%eth0", NULL },
		{ "[::1]", NULL },
		{ "", NULL },
		{ "example.com", NULL },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		char text[ADDRESS_TEXT_SIZE];
		struct address a;
		bool ok = address_parse(cases[i].text, &a);

		if (ok != (cases[i].same != NULL) || (ok && strcmp(address_text(&a, text), cases[i].same) != 0))
			fail_msg("%s: %s", cases[i].text, ok ? text : "no address");
	}
}

static void test_address_kinds(void **state)
{
	static const struct {
		const char *text, *kind; /* NULL: public */
	} cases[] = {
		{ "93.184.216.34", NULL },
		{ "1.1.1.1", NULL },
		{ "172.15.255.255", NULL },
		{ "172.32.0.0", NULL },
		{ "100.63.255.255", NULL },
		{ "100.128.0.0", NULL },
		{ "223.255.255.255", NULL },
		{ "2606:4700::1111", NULL },
		{ "2001:4860:4860::8888", NULL },
		{ "127.0.0.1", "loopback" },
		{ "127.255.255.255", "loopback" },
		{ "::1", "loopback" },
		{ "::ffff:127.0.0.1", "loopback" },
		{ "::127.0.0.1", "loopback" },
		{ "64:ff9b::7f00:1", "loopback" },
		{ "64:ff9b::169.254.169.254", "cloud metadata" },
		{ "2002:7f00:1::1", "loopback" },
		{ "2002:a00:1::", "private" },
		{ "64:ff9b::1.1.1.1", NULL },
		{ "2002:101:101::", NULL },
		{ "64:ff9b:1::1", "private" },
		{ "0.0.0.0", "unspecified" },
		{ "0.1.2.3", "unspecified" },
		{ "::", "unspecified" },
		{ "10.0.0.0", "private" },
		{ "172.16.0.1", "private" },
		{ "172.31.255.255", "private" },
		{ "192.168.1.1", "private" },
		{ "100.64.0.1", "shared (carrier-grade NAT)" },
		{ "100.127.255.255", "shared (carrier-grade NAT)" },
		{ "169.254.1.1", "link-local" },
		{ "169.254.169.254", "cloud metadata" },
		{ "100.100.100.200", "cloud metadata" },
		{ "168.63.129.16", "cloud metadata" },
		{ "fd00:ec2::254", "cloud metadata" },
		{ "fd00:ec2::253", "unique-local" },
		{ "fc00::1", "unique-local" },
		{ "fe80::1", "link-local" },
		{ "febf::1", "link-local" },
		{ "fec0::1", "private" },
		{ "ff02::1", "multicast" },
		{ "224.0.0.1", "multicast" },
		{ "239.255.255.255", "multicast" },
		{ "240.0.0.1", "reserved" },
		{ "255.255.255.255", "reserved" },
		{ "198.18.0.1", "benchmarking" },
		{ "203.0.113.5", "documentation" },
		{ "2001:db8::1", "documentation" },
		{ "2001::1", "reserved" },
		{ "4000::1", "reserved" },
		{ "100::1", "reserved" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		const struct address_kind *kind;
		struct address a;

		assert_true(address_parse(cases[i].text, &a));
		kind = address_special(&a);
		if (g_strcmp0(kind ? kind->name : NULL, cases[i].kind) != 0)
			fail_msg("%s is %s", cases[i].text, kind ? kind->name : "public");
	}
}

static void test_host_names(void **state)
{
	static const struct {
		const char *text, *name; /* NULL: none */
	} cases[] = {
		{ "example.com", "example.com" },
		{ "EXAMPLE.Com.", "example.com" },
		{ "b\xc3\xbc"
		  "cher.example",
		  "xn--bcher-kva.example" },
		{ "B\xc3\x9c"
		  "CHER.example",
		  "xn--bcher-kva.example" },
		{ "example\xe3\x80\x82"
		  "com",
		  "example.com" },
		{ "\xe2\x93\x94xample.com", "example.com" },
		{ "_acme.example.com", "_acme.example.com" },
		{ "localhost", "localhost" },
		{ "1password.com", "1password.com" },
		{ "", NULL },
		{ ".", NULL },
		{ "a..b", NULL },
		{ ".a", NULL },
		{ "a.com..", NULL },
		{ "-a.com", NULL },
		{ "a-.com", NULL },
		{ "a b.com", NULL },
		{ "a%2ecom", NULL },
		{ "user@a.com", NULL },
		{ "a.com/x", NULL },
		{ "a.com:80", NULL },
		{ "a\ncom", NULL },
		{ "\xff.com", NULL },
		{ "2130706433", NULL },
		{ "0x7f000001", NULL },
		{ "0x7f.1", NULL },
		{ "127.1", NULL },
		{ "0177.0.0.01", NULL },
		{ "1.2.3.4", NULL },
		{ "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1", NULL },
		{ "example.0x", NULL },
	};
	g_autofree char *label = g_strnfill(64, 'a'), *long_name = NULL;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *name = host_name_new(cases[i].text);

		if (g_strcmp0(name, cases[i].name) != 0)
			fail_msg("\"%s\" is \"%s\"", cases[i].text, name ? name : "no name");
	}
	assert_null(host_name_new(label));
	label[63] = '\0';
	long_name = g_strdup_printf("%s.%s.%s.%s", label, label, label, label);
	assert_null(host_name_new(long_name));
}

/* Policies */

static struct network *load(const char *lines)
{
	g_autofree char *text = g_strdup_printf("[profile t]\n[network t]\n%s\n", lines);
	g_autoptr(GError) error = NULL;
	struct policy *p = policy_load_text(text, "t.ini", &error);
	struct network *n;

	if (!p)
		fail_msg("%s", error->message);
	n = network_new(p);
	policy_free(p);
	return n;
}

static struct network_verdict ask(const struct network *n, const char *host, unsigned port)
{
	g_autofree char *name = NULL;
	struct address a;

	if (address_parse(host, &a))
		return network_literal(n, &a, port);
	name = host_name_new(host);
	assert_non_null(name);
	return network_name(n, name, port);
}

static void test_verdicts(void **state)
{
	static const struct {
		const char *policy, *host;
		unsigned port;
		enum network_action action;
		const char *rule; /* a part of it */
	} cases[] = {
		{ "", "a.com", 443, NETWORK_DENY, "no rule of profile t" },
		{ "default = deny", "a.com", 443, NETWORK_DENY, "t.ini:3: default = deny" },
		{ "allow = a.com", "a.com", 443, NETWORK_ALLOW, "t.ini:3: allow = a.com" },
		{ "allow = A.com.", "a.COM.", 80, NETWORK_ALLOW, "allow = A.com." },
		{ "allow = a.com", "a.com", 22, NETWORK_DENY, "no rule" },
		{ "allow = a.com", "x.a.com", 443, NETWORK_DENY, "no rule" },
		{ "allow = a.com", "a.com.evil.org", 443, NETWORK_DENY, "no rule" },
		{ "allow = a.com", "xa.com", 443, NETWORK_DENY, "no rule" },
		{ "allow = *.a.com", "x.a.com", 443, NETWORK_ALLOW, "*.a.com" },
		{ "allow = *.a.com", "y.x.a.com", 443, NETWORK_ALLOW, "*.a.com" },
		{ "allow = *.a.com", "a.com", 443, NETWORK_DENY, "no rule" },
		{ "allow = *.a.com", "xa.com", 443, NETWORK_DENY, "no rule" },
		{ "allow = a.com:8443", "a.com", 8443, NETWORK_ALLOW, "a.com:8443" },
		{ "allow = a.com:8443", "a.com", 443, NETWORK_DENY, "no rule" },
		{ "allow = a.com:*", "a.com", 8443, NETWORK_ALLOW, "a.com:*" },
		{ "allow = a.com:*", "a.com", 22, NETWORK_ALLOW, "a.com:*" },
		{ "allow = a.com:*", "a.com", 5432, NETWORK_DENY, "no rule" },
		{ "allow = a.com:*", "a.com", 6443, NETWORK_DENY, "no rule" },
		{ "allow = a.com:5432", "a.com", 5432, NETWORK_ALLOW, "a.com:5432" },
		{ "allow = b\xc3\xbc"
		  "cher.example",
		  "xn--bcher-kva.example", 443, NETWORK_ALLOW, "allow" },
		/* the last that matches */
		{ "allow = *.a.com\ndeny = x.a.com", "x.a.com", 443, NETWORK_DENY, "t.ini:4: deny = x.a.com" },
		{ "deny = *.a.com\nallow = x.a.com", "x.a.com", 443, NETWORK_ALLOW, "allow = x.a.com" },
		{ "deny = *.a.com\nallow = x.a.com", "x.a.com", 22, NETWORK_DENY, "deny = *.a.com" },
		{ "allow = a.com, b.com", "b.com", 443, NETWORK_ALLOW, "allow = b.com" },
		/* defaults */
		{ "default = allow", "a.com", 443, NETWORK_ALLOW, "default = allow" },
		{ "default = allow", "a.com", 22, NETWORK_DENY, "default = allow" },
		{ "default = ask", "a.com", 22, NETWORK_ASK, "default = ask" },
		{ "ask = a.com", "a.com", 2222, NETWORK_ASK, "ask = a.com" },
		{ "default = allow\ndeny = a.com", "a.com", 443, NETWORK_DENY, "deny = a.com" },
		{ "default = allow\nask = *", "a.com", 443, NETWORK_ASK, "ask = *" },
		/* addresses */
		{ "allow = *", "1.1.1.1", 443, NETWORK_DENY, "no rule" },
		{ "allow = 1.1.1.1", "1.1.1.1", 443, NETWORK_ALLOW, "1.1.1.1" },
		{ "allow = 1.1.1.1", "1.1.1.1", 53, NETWORK_DENY, "no rule" },
		{ "allow = 1.1.1.0/24", "1.1.1.9", 443, NETWORK_ALLOW, "1.1.1.0/24" },
		{ "allow = 1.1.1.1", "::ffff:1.1.1.1", 443, NETWORK_ALLOW, "1.1.1.1" },
		{ "deny = 1.1.1.1\ndefault = allow", "64:ff9b::101:101", 443, NETWORK_DENY, "deny = 1.1.1.1" },
		{ "deny = 1.1.1.1\ndefault = allow", "2002:101:101::5", 443, NETWORK_DENY, "deny = 1.1.1.1" },
		{ "default = allow", "1.1.1.1", 443, NETWORK_ALLOW, "default" },
		{ "default = allow", "127.0.0.1", 443, NETWORK_DENY, "built in: loopback" },
		{ "default = ask", "169.254.169.254", 80, NETWORK_DENY, "built in: cloud metadata" },
		{ "allow = 0.0.0.0/0", "10.1.1.1", 443, NETWORK_DENY, "built in: private" },
		{ "allow = 0.0.0.0/0", "1.1.1.1", 443, NETWORK_ALLOW, "0.0.0.0/0" },
		{ "allow = 10.0.0.0/8", "10.1.1.1", 443, NETWORK_ALLOW, "10.0.0.0/8" },
		{ "ask = 10.0.0.0/8", "10.1.1.1", 5432, NETWORK_ASK, "10.0.0.0/8" },
		{ "allow = 10.0.0.0/7", "10.1.1.1", 443, NETWORK_DENY, "built in: private" },
		{ "allow = 169.254.0.0/16", "169.254.169.254", 80, NETWORK_DENY, "built in: cloud metadata" },
		{ "allow = 169.254.169.254", "169.254.169.254", 80, NETWORK_ALLOW, "169.254.169.254" },
		{ "allow = [fd00:ec2::254]:80", "fd00:ec2::254", 80, NETWORK_ALLOW, "[fd00:ec2::254]:80" },
		{ "allow = fd00::/8", "fd12::1", 443, NETWORK_ALLOW, "fd00::/8" },
		{ "allow = 0.0.0.0", "0.0.0.0", 80, NETWORK_DENY, "these cannot be" },
		{ "allow = 224.0.0.0/4", "224.0.0.1", 80, NETWORK_DENY, "these cannot be" },
		{ "allow = ::1", "::1", 443, NETWORK_ALLOW, "::1" },
		{ "allow = 127.0.0.1:8080", "127.0.0.1", 8080, NETWORK_ALLOW, "127.0.0.1:8080" },
		{ "allow = 127.0.0.1:8080", "127.0.0.1", 8081, NETWORK_DENY, "built in: loopback" },
		{ "allow = 127.0.0.1:8080", "127.0.0.2", 8080, NETWORK_DENY, "built in: loopback" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct network *n = load(cases[i].policy);
		struct network_verdict v = ask(n, cases[i].host, cases[i].port);

		if (v.action != cases[i].action || !strstr(v.rule, cases[i].rule))
			fail_msg("\"%s\", %s:%u: %s by %s", cases[i].policy, cases[i].host, cases[i].port,
				 network_action_name(v.action), v.rule);
		network_free(n);
	}
}

/* A name that is allowed does not open the place that it leads to. */
static void test_resolved_addresses(void **state)
{
	static const struct {
		const char *policy, *address;
		enum network_action action;
	} cases[] = {
		{ "allow = a.com", "1.1.1.1", NETWORK_ALLOW },
		{ "allow = a.com", "10.0.0.1", NETWORK_DENY },
		{ "allow = a.com", "::ffff:10.0.0.1", NETWORK_DENY },
		{ "allow = a.com", "64:ff9b::a00:1", NETWORK_DENY },
		{ "allow = a.com", "2002:a00:1::1", NETWORK_DENY },
		{ "allow = a.com", "fe80::1", NETWORK_DENY },
		{ "allow = a.com, *", "127.0.0.1", NETWORK_DENY },
		{ "default = allow", "169.254.169.254", NETWORK_DENY },
		{ "allow = a.com\ndeny = 1.1.1.0/24", "1.1.1.1", NETWORK_DENY },
		{ "allow = a.com\nask = 1.1.1.0/24", "1.1.1.1", NETWORK_ASK },
		{ "allow = a.com\nallow = 10.0.0.1", "10.0.0.1", NETWORK_ALLOW },
		{ "allow = a.com\nallow = 10.0.0.1:8080", "10.0.0.1", NETWORK_DENY },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct network *n = load(cases[i].policy);
		struct network_verdict v;
		struct address a;

		assert_true(address_parse(cases[i].address, &a));
		v = network_address(n, &a, 443);
		if (v.action != cases[i].action)
			fail_msg("\"%s\", %s: %s by %s", cases[i].policy, cases[i].address, network_action_name(v.action), v.rule);
		network_free(n);
	}
}

static void test_mistakes(void **state)
{
	static const char *const bad[] = {
		"allow = https://a.com", "allow = a.com/path", "allow = a.com:0",     "allow = a.com:65536", "allow = a.com:http",
		"allow = a..com",	 "allow = a.*.com",    "allow = *a.com",      "allow = 10.0.0.1/8",  "allow = 10.0.0.0/33",
		"allow = 127.1",	 "allow = 2130706433", "deny = [::1",	      "deny = [::1]x",	     "ask = a.com,,b.com",
		"ask = a.com,",		 "deny = a b",	       "deny = 64:ff9b::/96", "deny = 2002::/16",    "allow = user@a.com",
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		g_autofree char *text = g_strdup_printf("[profile t]\n[network t]\n%s\n", bad[i]);
		g_autoptr(GError) error = NULL;
		struct policy *p = policy_load_text(text, "t.ini", &error);

		if (p)
			fail_msg("taken: %s", bad[i]);
		assert_true(g_str_has_prefix(error->message, "t.ini:3: "));
	}
}

/* Layers: each can only close. */

static void put(const char *dir, const char *name, const char *text)
{
	g_autofree char *path = g_build_filename(dir, name, NULL), *parent = g_path_get_dirname(path);

	g_mkdir_with_parents(parent, 0700);
	assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void test_layers(void **state)
{
	g_autofree char *dir = g_dir_make_tmp("network.XXXXXX", NULL);
	g_autofree char *managed = g_build_filename(dir, "managed", NULL), *workspace = g_build_filename(dir, "w", NULL);
	g_autofree char *profile = g_build_filename(dir, "user.ini", NULL);
	struct policy_sources sources = { .profile = profile, .workspace = workspace, .managed_dir = managed };
	g_autoptr(GError) error = NULL;
	struct policy *p;
	struct network *n;
	static const struct {
		const char *host;
		enum network_action action;
		const char *rule;
	} cases[] = {
		{ "both.com", NETWORK_ALLOW, "m.ini" },
		{ "managed-only.com", NETWORK_DENY, "no rule of profile u" },
		{ "user-only.com", NETWORK_DENY, "m.ini:3: default" },
		{ "closed.both.com", NETWORK_DENY, ".sbxfs.ini:3: deny" },
		{ "asked.both.com", NETWORK_ASK, ".sbxfs.ini:4: ask" },
		{ "workspace-only.com", NETWORK_DENY, "" },
		{ "10.0.0.1", NETWORK_DENY, "built in" },
		{ "10.0.0.2", NETWORK_DENY, "m.ini" },
	};

	(void)state;
	put(dir, "managed/m.ini",
	    "[profile m]\n[network m]\ndefault = deny\nallow = both.com, *.both.com, managed-only.com, 10.0.0.1\n");
	put(dir, "user.ini", "[profile u]\n[network u]\nallow = both.com, *.both.com, user-only.com, 10.0.0.2\n");
	put(dir, "w/.sbxfs.ini",
	    "[profile w]\n[network w]\ndeny = closed.both.com\nask = asked.both.com\nallow = workspace-only.com\nallow = "
	    "10.0.0.1\n");
	p = policy_load(&sources, &error);
	if (!p)
		fail_msg("%s", error->message);
	n = network_new(p);
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct network_verdict v = ask(n, cases[i].host, 443);

		if (v.action != cases[i].action || !strstr(v.rule, cases[i].rule))
			fail_msg("%s: %s by %s", cases[i].host, network_action_name(v.action), v.rule);
	}
	assert_true(network_lets_through(n));
	network_free(n);
	policy_free(p);
}

static void test_lets_through(void **state)
{
	static const struct {
		const char *policy;
		bool open;
	} cases[] = { { "", false },	       { "default = deny", false }, { "deny = a.com", false }, { "allow = a.com", true },
		      { "ask = a.com", true }, { "default = ask", true } };

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct network *n = load(cases[i].policy);

		if (network_lets_through(n) != cases[i].open)
			fail_msg("\"%s\"", cases[i].policy);
		network_free(n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_address_spellings),
		cmocka_unit_test(test_address_kinds),
		cmocka_unit_test(test_host_names),
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_resolved_addresses),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_layers),
		cmocka_unit_test(test_lets_through),
	};

	return cmocka_run_group_tests_name("network", tests, NULL, NULL);
}
