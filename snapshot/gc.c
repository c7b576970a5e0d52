/* SPDX-License-Identifier: MIT */
#include "snapshot/gc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/content.h"
#include "snapshot/journal.h"
#include "snapshot/object.h"
#include "snapshot/store_private.h"

#define COMMITS "commit"

struct gc {
	struct store *store;
	struct gc_options options;
	unsigned phase;
	bool found; /* what this phase has to drop */
	bool open;  /* the one transaction of a dry run */
	GArray *files; /* contents whose files are left when the transaction is over */
	struct gc_result result;
};

/* What is to go is found once and dropped by and by; these tables are the connection's own. */
static const char tables[] =
	"CREATE TEMP TABLE IF NOT EXISTS gc_now (epoch INTEGER PRIMARY KEY);"
	"CREATE TEMP TABLE IF NOT EXISTS gc_keep (epoch INTEGER PRIMARY KEY);"
	"CREATE TEMP TABLE IF NOT EXISTS gc_name (parent INTEGER, name BLOB, died INTEGER);"
	"CREATE TEMP TABLE IF NOT EXISTS gc_node (ino INTEGER, died INTEGER);"
	"CREATE TEMP TABLE IF NOT EXISTS gc_content (id INTEGER, kind INTEGER, size INTEGER);"
	"DELETE FROM gc_now; INSERT INTO gc_now SELECT CAST(value AS INTEGER) FROM setting WHERE key = 'epoch';"
	"DELETE FROM gc_keep; DELETE FROM gc_name; DELETE FROM gc_node; DELETE FROM gc_content;";

/* Whoever takes a snapshot or reads from now on gets this epoch or a later one, so does not see what died in it or before. */
#define PAST "died <= (SELECT epoch FROM gc_now)"
#define SEEN "EXISTS (SELECT 1 FROM gc_keep WHERE epoch >= born AND epoch < died)"
#define STEP "ORDER BY rowid LIMIT 1000"

static const struct phase {
	const char *find;
	const char *drop; /* statements for as many as STEP says */
	const char *done; /* those were dealt with */
} phases[] = {
	{ "INSERT INTO gc_name SELECT parent, name, died FROM name WHERE " PAST " AND NOT " SEEN,
	  "DELETE FROM name WHERE (parent, name, died) IN (SELECT parent, name, died FROM gc_name " STEP ")",
	  "DELETE FROM gc_name WHERE rowid IN (SELECT rowid FROM gc_name " STEP ")" },
	{ "INSERT INTO gc_node SELECT ino, died FROM node WHERE " PAST " AND NOT " SEEN,
	  "DELETE FROM node WHERE (ino, died) IN (SELECT ino, died FROM gc_node " STEP ")",
	  "DELETE FROM gc_node WHERE rowid IN (SELECT rowid FROM gc_node " STEP ")" },
	{ "INSERT INTO gc_content "
	  "WITH RECURSIVE used (id) AS (SELECT content FROM node WHERE content != 0 "
	  "UNION SELECT base FROM content JOIN used USING (id) WHERE base != 0) "
	  "SELECT id, kind, coalesce(length(data), 0) FROM content WHERE id NOT IN (SELECT id FROM used)",
	  "DELETE FROM content WHERE id IN (SELECT id FROM gc_content " STEP ");"
	  "DELETE FROM page WHERE content IN (SELECT id FROM gc_content " STEP ")",
	  "DELETE FROM gc_content WHERE rowid IN (SELECT rowid FROM gc_content " STEP ")" },
};
#define PHASE_CONTENTS 2

static const char unused_origins[] =
	"DELETE FROM origin WHERE id NOT IN (SELECT origin FROM node UNION SELECT covers FROM name "
	"UNION SELECT base_origin FROM content);"
	"DELETE FROM base WHERE origin NOT IN (SELECT id FROM origin);";

/* The epochs to keep */

static int keep(struct gc *g, int64_t epoch)
{
	struct db_query *q = db_query(store_db(g->store), "INSERT OR IGNORE INTO gc_keep VALUES (?)");

	db_bind_int(q, 0, epoch);
	return db_run(q);
}

static int keep_commit(struct gc *g, int commits, uint64_t number)
{
	g_autofree char *id = g_strdup_printf("%" PRIu64, number);
	g_autoptr(journal_t) j = NULL;
	int fd, r = commit_open(commits, id, &fd);

	if (r < 0)
		return r;
	r = journal_read(fd, &j);
	close(fd);
	/* Without a journal it has done nothing. */
	return r < 0 ? r == -ENOENT ? 0 : r : keep(g, j->epoch);
}

static int keep_commits(struct gc *g)
{
	g_autofree char *path = g_build_filename(store_dir(g->store), COMMITS, NULL);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	g_autoptr(GArray) numbers = NULL;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	r = commits_list(fd, &numbers);
	for (unsigned i = 0; r == 0 && i < numbers->len; i++)
		r = keep_commit(g, fd, g_array_index(numbers, uint64_t, i));
	close(fd);
	return r;
}

static int keep_all(struct gc *g)
{
	int r = db_exec(store_db(g->store), "INSERT OR IGNORE INTO gc_keep SELECT epoch FROM snapshot");

	for (unsigned i = 0; r == 0 && i < g->options.pin_count; i++)
		r = keep(g, g->options.pins[i]);
	return r < 0 ? r : keep_commits(g);
}

static int drop_automatic(struct gc *g)
{
	g_autoptr(GPtrArray) all = NULL;
	int r = store_snapshot_list(g->store, &all);

	for (unsigned i = 0; r == 0 && i < all->len; i++) {
		const struct snapshot *s = all->pdata[i];

		if (*s->name != '@')
			continue;
		r = store_snapshot_delete(g->store, s->name);
		g_ptr_array_add(g->result.snapshots, g_strdup(s->name));
	}
	return r;
}

/* Steps */

static int gc_begin(struct gc *g)
{
	int r = g->open ? 0 : store_begin(g->store);

	g->open = g->options.dry_run && r == 0;
	return r;
}

static int gc_commit(struct gc *g, int r)
{
	if (r == 0 && g->open)
		return 0;
	g->open = false;
	if (r == 0)
		return store_commit(g->store);
	store_abort(g->store);
	return r;
}

/* What the contents of this step hold. */
static int count_contents(struct gc *g)
{
	struct db_query *q = db_query(store_db(g->store), "SELECT id, kind, size FROM gc_content " STEP);
	int r;

	while ((r = db_step(q)) > 0) {
		int64_t id = db_int(q, 0);

		g->result.contents++;
		if (db_int(q, 1) == 0)
			g->result.bytes += (uint64_t)db_int(q, 2);
		else
			g_array_append_val(g->files, id);
	}
	return r;
}

/* Once no row speaks of them. */
static int drop_files(struct gc *g)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < g->files->len; i++) {
		int64_t id = g_array_index(g->files, int64_t, i);

		g->result.bytes += object_disk_size(store_objects_fd(g->store), id);
		if (!g->options.dry_run)
			r = content_purge(g->store, id);
	}
	g_array_set_size(g->files, 0);
	return r;
}

static int run_phase(struct gc *g, const struct phase *p, int *ret_done)
{
	struct db *db = store_db(g->store);
	int r = g->found ? 0 : db_exec(db, p->find);

	g->found = r == 0;
	if (r == 0 && p == &phases[PHASE_CONTENTS])
		r = count_contents(g);
	if (r == 0)
		r = db_exec(db, p->drop);
	if (r == 0)
		r = db_run(db_query(db, p->done));
	*ret_done = r < 0 ? 0 : db_changes(db);
	return r;
}

static int step_phase(struct gc *g)
{
	int done = 0, r = gc_begin(g);

	if (r == 0 && g->phase == 0 && !g->found) {
		r = db_exec(store_db(g->store), tables);
		if (r == 0 && g->options.automatic)
			r = drop_automatic(g);
		if (r == 0)
			r = keep_all(g);
	}
	if (r == 0)
		r = run_phase(g, &phases[g->phase], &done);
	r = gc_commit(g, r);
	if (r == 0)
		r = drop_files(g);
	if (r < 0)
		return r;
	if (g->phase < PHASE_CONTENTS)
		g->result.versions += done;
	if (done == 0) {
		g->phase++;
		g->found = false;
	}
	return 1;
}

static int step_origins(struct gc *g)
{
	int r = gc_begin(g);

	if (r == 0)
		r = db_exec(store_db(g->store), unused_origins);
	r = gc_commit(g, r);
	g->phase++;
	if (r == 0 && g->options.dry_run)
		store_abort(g->store);
	return r;
}

int gc_step(struct gc *g)
{
	return g->phase < G_N_ELEMENTS(phases) ? step_phase(g) : step_origins(g);
}

/* Life */

struct gc *gc_new(struct store *s, const struct gc_options *options)
{
	struct gc *g = g_new0(struct gc, 1);

	g->store = s;
	g->options = *options;
	g->files = g_array_new(FALSE, FALSE, sizeof(int64_t));
	g->result.snapshots = g_ptr_array_new_with_free_func(g_free);
	return g;
}

const struct gc_result *gc_result(const struct gc *g)
{
	return &g->result;
}

void gc_free(struct gc *g)
{
	if (!g)
		return;
	g_array_unref(g->files);
	g_ptr_array_unref(g->result.snapshots);
	g_free(g);
}
