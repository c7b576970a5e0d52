/* SPDX-License-Identifier: MIT */
#include "fs/audit_note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fs/overlay_private.h"
#include "snapshot/audit_writer.h"

/*
 * Processes whose name is at hand: an open /proc/PID/comm tells the name of now, or that the process is gone, in a
 * tenth of an open(2)'s time.
 */
#define PROGRAMS 16

struct program {
	int32_t pid;
	int fd;
	uint64_t used;
	char name[32];
};

struct audit_note {
	struct audit_writer *writer;
	struct audit_about about;
	bool announced;
	GHashTable *rules; /* struct policy_match -> text */
	struct program programs[PROGRAMS];
	uint64_t uses;
};

static _Thread_local struct {
	bool set;
	int32_t pid;
	uint32_t uid;
} caller;

static guint match_hash(gconstpointer m)
{
	const struct policy_match *match = m;
	guint hash = 0;

	for (int i = 0; i < POLICY_LAYERS; i++)
		hash = hash * 31 + (guint)(match->rule[i] + 1);
	return hash;
}

static gboolean match_equal(gconstpointer a, gconstpointer b)
{
	return memcmp(a, b, sizeof(struct policy_match)) == 0;
}

/* Life */

struct audit_note *audit_note_new(struct audit_writer *w)
{
	struct audit_note *n = g_new0(struct audit_note, 1);

	n->writer = w;
	n->rules = g_hash_table_new_full(match_hash, match_equal, g_free, g_free);
	for (int i = 0; i < PROGRAMS; i++)
		n->programs[i].fd = -1;
	return n;
}

void audit_note_free(struct audit_note *n)
{
	if (!n)
		return;
	audit_writer_close(n->writer);
	g_hash_table_unref(n->rules);
	for (int i = 0; i < PROGRAMS; i++)
		if (n->programs[i].fd >= 0)
			close(n->programs[i].fd);
	g_free(n);
}

/* Who */

void audit_caller(int32_t pid, uint32_t uid)
{
	caller.set = true;
	caller.pid = pid;
	caller.uid = uid;
}

static bool program_read(struct program *p)
{
	ssize_t n = p->fd < 0 ? -1 : pread(p->fd, p->name, sizeof(p->name) - 1, 0);

	if (n <= 0)
		return false;
	p->name[n] = '\0';
	g_strchomp(p->name);
	return true;
}

static bool program_open(struct program *p, int32_t pid)
{
	char path[32];

	if (p->fd >= 0)
		close(p->fd);
	p->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	p->fd = open(path, O_RDONLY | O_CLOEXEC);
	return program_read(p);
}

/* Borrowed until the next call; NULL when it can't be told. */
static const char *program_name(struct audit_note *n, int32_t pid)
{
	struct program *oldest = &n->programs[0];

	if (pid <= 0)
		return NULL;
	n->uses++;
	for (int i = 0; i < PROGRAMS; i++) {
		struct program *p = &n->programs[i];

		if (p->used < oldest->used)
			oldest = p;
		if (p->pid != pid)
			continue;
		p->used = n->uses;
		/* Failing, the number may have another process now. */
		return program_read(p) || program_open(p, pid) ? p->name : NULL;
	}
	oldest->used = n->uses;
	return program_open(oldest, pid) ? oldest->name : NULL;
}

static void record_caller(struct audit_note *n, struct audit_record *r)
{
	r->pid = caller.set ? caller.pid : (int32_t)getpid();
	r->uid = caller.set ? caller.uid : getuid();
	r->program = program_name(n, r->pid);
}

void audit_who(struct overlay *o, struct audit_record *r)
{
	record_caller(o->audit, r);
}

void audit_asker(struct question_asker *ret)
{
	question_asker_read(caller.set ? caller.pid : (int32_t)getpid(), caller.set ? caller.uid : getuid(), ret);
}

/* What the rules say */

static const char *rule_text(struct overlay *o, struct policy_match m)
{
	char *text = g_hash_table_lookup(o->audit->rules, &m);
	struct policy_reason reason;

	if (text)
		return text;
	if (policy_explain(o->policy, m, &reason))
		text = g_strdup_printf("%s:%u: %s = %s (profile %s, %s)", reason.file, reason.line,
				       action_name(reason.action), reason.pattern, reason.profile,
				       policy_layer_name(reason.layer));
	else
		text = g_strdup("no rule matches: the default");
	g_hash_table_insert(o->audit->rules, g_memdup2(&m, sizeof(m)), text);
	return text;
}

/* The verdict of the rules themselves: what is recorded is what they say, not what an operation makes of it. */
static void record_match(struct overlay *o, struct audit_record *r, struct policy_match view, struct policy_match lower)
{
	enum action a = policy_action(o->policy, view), b = policy_action(o->policy, lower);

	r->verdict = action_name(MAX(a, b));
	r->rule = rule_text(o, b > a ? lower : view);
}

/* Operations */

void audit_begin(struct overlay *o, const struct audit_about *about)
{
	if (!o->audit)
		return;
	o->audit->about = *about;
	o->audit->announced = false;
}

void audit_verdict(struct overlay *o, const struct verdict *v)
{
	if (o->audit)
		o->audit->about.verdict = v;
}

void audit_limit(struct overlay *o, const char *text)
{
	if (o->audit)
		o->audit->about.limit = text;
}

const struct audit_about *audit_about(struct overlay *o)
{
	return &o->audit->about;
}

/* Caller frees; NULL for what has no name any more. */
static char *about_path(struct overlay *o, uint64_t ino, const char *name)
{
	const struct node *n = ino ? node_find(o->nodes, ino) : NULL;
	char *path;

	if (!n)
		return g_strdup(name);
	path = name ? dentry_path(n, name) : node_path(n);
	return path || !name ? path : g_strdup(name);
}

static const struct node *child_of(struct overlay *o, uint64_t ino, const char *name)
{
	const struct node *n = node_find(o->nodes, ino);
	const struct dentry *d = n && name ? dentry_find(n, name) : NULL;

	return name ? d ? d->node : NULL : n;
}

uint64_t audit_child(struct overlay *o, uint64_t ino, const char *name)
{
	const struct node *n = ino ? child_of(o, ino, name) : NULL;

	return n ? n->ino : 0;
}

int audit_announce(struct overlay *o)
{
	struct audit_note *a = o->audit;
	const struct audit_about *about = a ? &a->about : NULL;
	g_autofree char *path = NULL, *new_path = NULL;
	const struct verdict *v;
	const struct node *n;
	struct audit_record r;
	int e;

	if (!a || !about->operation || a->announced)
		return 0;
	path = about->path ? g_strdup(about->path) : about_path(o, about->ino, about->name);
	new_path = about->new_name ? about_path(o, about->new_ino, about->new_name) : NULL;
	r = (struct audit_record){ .kind = about->kind ? about->kind : AUDIT_CHANGE,
				   .operation = about->operation,
				   .path = path,
				   .new_path = new_path,
				   .detail = about->detail	   ? about->detail
					     : about->ino && !path ? "unlinked"
								   : NULL };
	record_caller(a, &r);
	n = about->ino ? child_of(o, about->ino, about->name) : NULL;
	v = about->verdict ? about->verdict : n ? &n->verdict : NULL;
	if (v)
		record_match(o, &r, v->view, v->lower);
	e = audit_writer_prepare(a->writer, &r, about->frees);
	a->announced = e == 0;
	return e;
}

void audit_settle(struct overlay *o, int r)
{
	struct audit_note *a = o->audit;

	if (!a || !a->announced)
		return;
	audit_writer_settle(a->writer, r < 0 ? -r : 0);
	/* A second try is announced anew; what follows a success is no part of it. */
	a->announced = false;
	if (r == 0)
		a->about.operation = NULL;
}

/* Denials */

struct denial {
	struct overlay *overlay;
	struct policy_match view, lower;
	enum action action;
};

static void denial_consider(struct denial *d, struct policy_match view, struct policy_match lower)
{
	const struct policy *p = d->overlay->policy;
	enum action action = MAX(policy_action(p, view), policy_action(p, lower));

	if (action <= d->action)
		return;
	d->action = action;
	d->view = view;
	d->lower = lower;
}

/* The object or name itself before the directory that it is in: its rule says more. */
static void denial_consider_name(struct denial *d, uint64_t ino, const char *name, const char *path)
{
	const struct node *dir = name ? node_find(d->overlay->nodes, ino) : NULL;
	const struct node *n = child_of(d->overlay, ino, name);

	if (n)
		denial_consider(d, n->verdict.view, n->verdict.lower);
	if (path) {
		struct policy_match m = policy_match_path(d->overlay->policy, path, n ? node_is_dir(n) : false);

		denial_consider(d, m, m);
	}
	if (dir)
		denial_consider(d, dir->verdict.view, dir->verdict.lower);
}

bool audit_explain(struct overlay *o, struct audit_record *ret, char **ret_path, char **ret_new_path)
{
	const struct audit_about *about = &o->audit->about;
	struct denial d = { .overlay = o, .action = ACTION_SCRATCH };

	*ret_path = about_path(o, about->ino, about->name);
	*ret_new_path = about->new_name ? about_path(o, about->new_ino, about->new_name) : NULL;
	*ret = (struct audit_record){ .operation = about->operation, .path = *ret_path, .new_path = *ret_new_path };
	denial_consider_name(&d, about->ino, about->name, *ret_path);
	if (about->verdict)
		denial_consider(&d, about->verdict->view, about->verdict->lower);
	if (about->new_name)
		denial_consider_name(&d, about->new_ino, about->new_name, *ret_new_path);
	record_caller(o->audit, ret);
	if (d.action > ACTION_SCRATCH) {
		record_match(o, ret, d.view, d.lower);
	} else if (about->limit) {
		ret->verdict = action_name(ACTION_ASK);
		ret->rule = about->limit;
	}
	return ret->rule;
}

static void record_denial(struct overlay *o, int r)
{
	g_autofree char *path = NULL, *new_path = NULL;
	struct audit_record record;

	if (!audit_explain(o, &record, &path, &new_path))
		return;
	record.kind = AUDIT_DENIAL;
	record.result = -r;
	record.detail = r == 0 ? "seen by its name; its mode refuses an open" : NULL;
	audit_writer_append(o->audit->writer, &record);
}

static bool is_refusal(struct overlay *o, const struct audit_about *about, int r)
{
	const struct node *n;

	if (r == -EACCES || r == -EROFS)
		return true;
	n = r == -ENOENT ? child_of(o, about->ino, about->name) : NULL;
	return n && guard_is_hidden(&n->verdict);
}

int audit_end(struct overlay *o, int r)
{
	if (!o->audit)
		return r;
	if (r < 0 && o->audit->about.operation && is_refusal(o, &o->audit->about, r))
		record_denial(o, r);
	o->audit->about = (struct audit_about){ 0 };
	return r;
}

void audit_closed(struct overlay *o, const struct node *n)
{
	if (o->audit && !n->verdict.walkable)
		record_denial(o, 0);
}

void audit_hidden(struct overlay *o)
{
	if (o->audit)
		record_denial(o, -ENOENT);
}

/* Reads */

/* What tells one version of a file's bytes from the next; never 0. */
static uint64_t version_of(const struct node *n)
{
	uint64_t v = node_follows(n) ? (uint64_t)n->seen_ctime * 31 + (uint64_t)n->seen_mtime
				     : (uint64_t)n->row.born * 31 + (uint64_t)n->row.content;

	return v * 2 + 1;
}

void audit_read(struct overlay *o, struct node *n)
{
	g_autofree char *path = NULL;
	struct audit_record r;

	if (!o->audit || n->read_version == version_of(n))
		return;
	n->read_version = version_of(n);
	path = node_path(n);
	r = (struct audit_record){
		.kind = AUDIT_READ, .operation = "read", .path = path, .detail = path ? NULL : "unlinked"
	};
	record_caller(o->audit, &r);
	record_match(o, &r, n->verdict.view, n->verdict.lower);
	audit_writer_note(o->audit->writer, &r);
}

/* Events */

int audit_event(struct overlay *o, const struct audit_about *about)
{
	struct audit_record r = {
		.kind = about->kind, .operation = about->operation, .path = about->path, .detail = about->detail
	};

	if (!o->audit)
		return 0;
	record_caller(o->audit, &r);
	return audit_add(o, &r);
}

int audit_add(struct overlay *o, struct audit_record *r)
{
	return o->audit ? audit_writer_append(o->audit->writer, r) : 0;
}

void audit_paths(struct overlay *o, enum audit_kind kind, const char *operation, const char *const *paths)
{
	for (; paths && *paths; paths++)
		audit_event(o, &(struct audit_about){ .kind = kind, .operation = operation, .path = *paths });
}
