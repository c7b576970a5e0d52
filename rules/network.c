/* SPDX-License-Identifier: MIT */
#include "rules/network.h"

#include <string.h>

#include "rules/net_pattern.h"
#include "rules/policy.h"

struct rule {
	enum network_action action;
	struct net_pattern pattern;
	char *text;
};

struct layer {
	GArray *rules;			  /* struct rule, in order */
	struct network_verdict otherwise; /* where none matches */
};

struct network {
	struct layer layers[POLICY_LAYERS];
	GStringChunk *texts;
	char *profile;
};

static const struct {
	unsigned port;
	const char *kind;
} port_kinds[] = {
	{ 25, "SMTP" },
	{ 465, "SMTP" },
	{ 587, "SMTP" },
	{ 111, "portmapper" },
	{ 135, "RPC" },
	{ 137, "NetBIOS" },
	{ 139, "NetBIOS" },
	{ 389, "LDAP" },
	{ 445, "SMB" },
	{ 636, "LDAP" },
	{ 873, "rsync" },
	{ 1433, "SQL Server" },
	{ 1521, "Oracle" },
	{ 2049, "NFS" },
	{ 2181, "ZooKeeper" },
	{ 2375, "Docker" },
	{ 2376, "Docker" },
	{ 2379, "etcd" },
	{ 2380, "etcd" },
	{ 3306, "MySQL" },
	{ 3389, "remote desktop" },
	{ 4001, "etcd" },
	{ 4194, "cAdvisor" },
	{ 5432, "PostgreSQL" },
	{ 5433, "PostgreSQL" },
	{ 5672, "AMQP" },
	{ 5984, "CouchDB" },
	{ 6379, "Redis" },
	{ 6380, "Redis" },
	{ 6443, "Kubernetes" },
	{ 6666, "Kubernetes" },
	{ 8086, "InfluxDB" },
	{ 8200, "Vault" },
	{ 8500, "Consul" },
	{ 9042, "Cassandra" },
	{ 9092, "Kafka" },
	{ 9160, "Cassandra" },
	{ 9200, "Elasticsearch" },
	{ 9300, "Elasticsearch" },
	{ 10250, "kubelet" },
	{ 10255, "kubelet" },
	{ 10256, "kube-proxy" },
	{ 11211, "memcached" },
	{ 27017, "MongoDB" },
	{ 27018, "MongoDB" },
	{ 27019, "MongoDB" },
	{ 50000, "DB2" },
};

static const char *const action_names[] = { "allow", "ask", "deny" };

const char *network_action_name(enum network_action a)
{
	return action_names[a];
}

const char *network_port_kind(unsigned port)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(port_kinds); i++)
		if (port_kinds[i].port == port)
			return port_kinds[i].kind;
	return NULL;
}

static bool action_from_key(const char *key, enum network_action *ret)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(action_names); i++) {
		if (!g_str_equal(action_names[i], key))
			continue;
		*ret = (enum network_action)i;
		return true;
	}
	return false;
}

/* Making */

bool network_check_entries(const char *value, GError **error)
{
	g_auto(GStrv) entries = g_strsplit(value, ",", -1);

	for (char **entry = entries; *entry; entry++) {
		struct net_pattern pattern;
		bool ok = net_pattern_init(&pattern, g_strstrip(*entry), error);

		net_pattern_clear(&pattern);
		if (!ok)
			return false;
	}
	return true;
}

static const char *rule_text(struct network *n, const struct policy_setting *s, const char *value)
{
	g_autofree char *text = g_strdup_printf("%s:%u: %s = %s", s->file, s->line, s->key, value);

	return g_string_chunk_insert(n->texts, text);
}

/* A value that is wrong was refused when the profile was read; should one come by another way, it lets nothing through. */
static void add_rules(struct network *n, struct layer *l, enum network_action action, const struct policy_setting *s)
{
	g_auto(GStrv) entries = g_strsplit(s->value, ",", -1);

	for (char **entry = entries; *entry; entry++) {
		struct rule r = { .action = action };

		if (!net_pattern_init(&r.pattern, g_strstrip(*entry), NULL))
			continue;
		r.text = (char *)rule_text(n, s, *entry);
		g_array_append_val(l->rules, r);
	}
}

static void rule_clear(void *data)
{
	net_pattern_clear(&((struct rule *)data)->pattern);
}

static void layer_init(struct network *n, enum policy_layer which)
{
	g_autofree char *text = g_strdup_printf("no rule of profile %s", n->profile);
	struct layer *l = &n->layers[which];

	l->rules = g_array_new(FALSE, FALSE, sizeof(struct rule));
	g_array_set_clear_func(l->rules, rule_clear);
	l->otherwise.action = which == POLICY_USER ? NETWORK_DENY : NETWORK_ALLOW;
	l->otherwise.rule = which == POLICY_USER ? g_string_chunk_insert(n->texts, text) : NULL;
}

static void add_setting(struct network *n, const struct policy_setting *s)
{
	struct layer *l = &n->layers[s->layer];
	enum network_action action;

	if (g_str_equal(s->key, "default")) {
		if (action_from_key(s->value, &action))
			l->otherwise = (struct network_verdict){ action, rule_text(n, s, s->value) };
	} else if (action_from_key(s->key, &action)) {
		add_rules(n, l, action, s);
	}
}

struct network *network_new(const struct policy *policy)
{
	struct network *n = g_new0(struct network, 1);
	unsigned count;
	const struct policy_setting *all = policy_settings(policy, &count);

	n->texts = g_string_chunk_new(1024);
	n->profile = g_strdup(policy_name(policy));
	for (int i = 0; i < POLICY_LAYERS; i++)
		layer_init(n, (enum policy_layer)i);
	for (unsigned i = 0; i < count; i++)
		if (g_str_equal(all[i].section, "network"))
			add_setting(n, &all[i]);
	return n;
}

void network_free(struct network *n)
{
	if (!n)
		return;
	for (int i = 0; i < POLICY_LAYERS; i++)
		g_array_unref(n->layers[i].rules);
	g_string_chunk_free(n->texts);
	g_free(n->profile);
	g_free(n);
}

bool network_lets_through(const struct network *n)
{
	const struct layer *l = &n->layers[POLICY_USER];
	bool result = l->otherwise.action != NETWORK_DENY;

	for (unsigned i = 0; i < l->rules->len; i++)
		result = result || g_array_index(l->rules, struct rule, i).action != NETWORK_DENY;
	return result;
}

const char *network_profile(const struct network *n)
{
	return n->profile;
}

/* Deciding */

static bool is_web_port(unsigned port)
{
	return port == 80 || port == 443;
}

static bool has_port(const struct rule *r, unsigned port)
{
	if (r->pattern.port)
		return r->pattern.port == port;
	if (r->action != NETWORK_ALLOW)
		return true;
	return r->pattern.any_port ? !network_port_kind(port) : is_web_port(port);
}

/* Does what the rule opens lie in the range of that kind as a whole? */
static bool names_kind(const struct rule *r, const struct address_kind *kind)
{
	return !kind->never && r->pattern.range.bits >= kind->range.bits &&
	       address_range_has(&kind->range, &r->pattern.range.first);
}

/* @kind: of the address, NULL for a public one. */
static const struct rule *last_match(const struct layer *l, const char *name, const struct address *a,
				     const struct address_kind *kind, unsigned port)
{
	for (unsigned i = l->rules->len; i-- > 0;) {
		const struct rule *r = &g_array_index(l->rules, struct rule, i);

		if (!has_port(r, port) ||
		    !(name ? net_pattern_has_name(&r->pattern, name) : net_pattern_has_address(&r->pattern, a)))
			continue;
		if (kind && r->action != NETWORK_DENY && !names_kind(r, kind))
			continue;
		return r;
	}
	return NULL;
}

static struct network_verdict otherwise(const struct network *n, int layer, unsigned port)
{
	struct network_verdict v = n->layers[layer].otherwise;

	if (layer == POLICY_USER && v.action == NETWORK_ALLOW && !is_web_port(port))
		v.action = NETWORK_DENY;
	return v;
}

static struct network_verdict refused_kind(const struct address_kind *kind)
{
	g_autofree char *text = g_strdup_printf("built in: %s addresses are refused unless they are listed%s", kind->name,
						kind->never ? ", and these cannot be" : "");

	return (struct network_verdict){ NETWORK_DENY, g_intern_string(text) };
}

/* The most closed of all layers; the first of several that say the same, but one with a rule before one without. */
static struct network_verdict closer(struct network_verdict a, struct network_verdict b)
{
	return b.action > a.action || (b.action == a.action && !a.rule) ? b : a;
}

struct network_verdict network_name(const struct network *n, const char *name, unsigned port)
{
	struct network_verdict v = { NETWORK_ALLOW, NULL };

	for (int i = 0; i < POLICY_LAYERS; i++) {
		const struct rule *r = last_match(&n->layers[i], name, NULL, NULL, port);

		v = closer(v, r ? (struct network_verdict){ r->action, r->text } : otherwise(n, i, port));
	}
	return v;
}

static struct network_verdict decide_address(const struct network *n, const struct address *a, unsigned port, bool literal)
{
	const struct address_kind *kind = address_special(a);
	struct network_verdict v = { NETWORK_ALLOW, NULL };

	for (int i = 0; i < POLICY_LAYERS; i++) {
		const struct rule *r = last_match(&n->layers[i], NULL, a, kind, port);

		if (r)
			v = closer(v, (struct network_verdict){ r->action, r->text });
		else if (kind && i == POLICY_USER)
			v = closer(v, refused_kind(kind));
		else if (literal)
			v = closer(v, otherwise(n, i, port));
	}
	return v;
}

struct network_verdict network_address(const struct network *n, const struct address *a, unsigned port)
{
	return decide_address(n, a, port, false);
}

struct network_verdict network_literal(const struct network *n, const struct address *a, unsigned port)
{
	return decide_address(n, a, port, true);
}
