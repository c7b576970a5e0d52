/* SPDX-License-Identifier: MIT */
#include "tools/run/net_ask.h"

#include "fs/control.h"

/* A question that waits, and those who wait for it. */
struct entry {
	unsigned users;
	bool answered, yes;
	char *by;
};

struct net_asker {
	char *socket;
	GMutex lock; /* protects @entries and what is in them */
	GCond answered;
	GHashTable *entries; /* subject -> struct entry, while it waits */
};

struct net_asker *net_asker_new(const char *socket)
{
	struct net_asker *a = g_new0(struct net_asker, 1);

	a->socket = g_strdup(socket);
	g_mutex_init(&a->lock);
	g_cond_init(&a->answered);
	a->entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	return a;
}

void net_asker_free(struct net_asker *a)
{
	if (!a)
		return;
	g_hash_table_unref(a->entries);
	g_mutex_clear(&a->lock);
	g_cond_clear(&a->answered);
	g_free(a->socket);
	g_free(a);
}

/*
 * The answer of the view's process: verdict "allow", "deny" or "timeout", and by whom. A connection of its own, since it waits,
 * as long as the policy says.
 */
static GVariant *call(const struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer,
		      GError **error)
{
	struct control *control = control_reach(a->socket, error);
	GVariant *answer;
	GVariantDict d;

	if (!control)
		return NULL;
	g_variant_dict_init(&d, NULL);
	g_variant_dict_insert(&d, "kind", "s", "network");
	g_variant_dict_insert(&d, "subject", "s", subject);
	g_variant_dict_insert(&d, "operation", "s", operation);
	g_variant_dict_insert(&d, "program", "s", peer->program);
	g_variant_dict_insert(&d, "pid", "i", (gint32)peer->pid);
	answer = control_call(control, "question", g_variant_dict_end(&d), error);
	control_close(control);
	return answer;
}

static bool put_question(const struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer,
			 char **ret_by)
{
	g_autoptr(GError) failure = NULL;
	g_autoptr(GVariant) answer = call(a, subject, operation, peer, &failure);
	const char *verdict = "", *by = "";
	bool yes;

	if (!answer) {
		*ret_by = g_strdup_printf("nobody can be asked: %s", failure->message);
		return false;
	}
	g_variant_lookup(answer, "verdict", "&s", &verdict);
	g_variant_lookup(answer, "by", "&s", &by);
	yes = g_str_equal(verdict, "allow");
	*ret_by = yes || g_str_equal(verdict, "deny") ? g_strdup_printf("%s by %s", yes ? "allowed" : "denied", by)
						      : g_strdup("asked, and nobody answered in time");
	return yes;
}

/* The lock is held before and after, not in between. */
static void fetch(struct net_asker *a, struct entry *e, const char *subject, const char *operation, const struct net_peer *peer)
{
	char *by = NULL;
	bool yes;

	g_hash_table_insert(a->entries, g_strdup(subject), e);
	g_mutex_unlock(&a->lock);
	yes = put_question(a, subject, operation, peer, &by);
	g_mutex_lock(&a->lock);
	e->yes = yes;
	e->by = by;
	e->answered = true;
	g_hash_table_remove(a->entries, subject);
	g_cond_broadcast(&a->answered);
}

/* With the lock held. */
static void leave(struct entry *e)
{
	if (--e->users)
		return;
	g_free(e->by);
	g_free(e);
}

bool net_asker_ask(struct net_asker *a, const char *subject, const char *operation, const struct net_peer *peer, char **ret_by)
{
	struct entry *e;
	bool yes;

	g_mutex_lock(&a->lock);
	e = g_hash_table_lookup(a->entries, subject);
	if (e) {
		e->users++;
		while (!e->answered)
			g_cond_wait(&a->answered, &a->lock);
	} else {
		e = g_new0(struct entry, 1);
		e->users = 1;
		fetch(a, e, subject, operation, peer);
	}
	yes = e->yes;
	*ret_by = g_strdup(e->by);
	leave(e);
	g_mutex_unlock(&a->lock);
	return yes;
}
