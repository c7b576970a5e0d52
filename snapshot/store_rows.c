/* SPDX-License-Identifier: MIT */
/*
 * store_rows - the rows of the index: origins, nodes, names, and those of the past
 */
#include <errno.h>
#include <string.h>

#include "snapshot/store.h"
#include "snapshot/store_private.h"

void node_row_attr(const struct node_row *n, const struct attr *lower, struct attr *ret)
{
	*ret = n->attr;
	if (!lower)
		return;
	if (!(n->flags & NODE_OWN_ATTR)) {
		ret->mode = lower->mode;
		ret->uid = lower->uid;
		ret->gid = lower->gid;
	}
	if (n->content == 0) {
		ret->size = lower->size;
		ret->blocks = lower->blocks;
		ret->rdev = lower->rdev;
		ret->ctime = MAX(n->attr.ctime, lower->ctime);
		if (!(n->flags & NODE_OWN_TIMES)) {
			ret->atime = lower->atime;
			ret->mtime = lower->mtime;
		}
	}
}

void origin_clear(struct origin *o)
{
	g_free(o->path);
	*o = (struct origin){ 0 };
}

void node_row_clear(struct node_row *n)
{
	g_free(n->target);
	g_clear_pointer(&n->xattrs, g_bytes_unref);
	*n = (struct node_row){ 0 };
}

void name_row_clear(struct name_row *n)
{
	g_free(n->name);
	*n = (struct name_row){ 0 };
}

/* Origins */

int store_origin_add(struct store *s, struct origin *o)
{
	struct db_query *q = db_query(store_db(s), "INSERT INTO origin (path, dev, ino, btime, mode, uid, gid, nlink, rdev, size, mtime, "
					     "ctime, seen, sha256) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	const struct fingerprint *p = &o->print;
	int i = 0, r;

	db_bind_blob(q, i++, o->path, strlen(o->path));
	db_bind_int(q, i++, p->dev);
	db_bind_int(q, i++, p->ino);
	db_bind_int(q, i++, p->btime);
	db_bind_int(q, i++, p->attr.mode);
	db_bind_int(q, i++, p->attr.uid);
	db_bind_int(q, i++, p->attr.gid);
	db_bind_int(q, i++, p->attr.nlink);
	db_bind_int(q, i++, p->attr.rdev);
	db_bind_int(q, i++, p->attr.size);
	db_bind_int(q, i++, p->attr.mtime);
	db_bind_int(q, i++, p->attr.ctime);
	db_bind_int(q, i++, o->seen);
	if (o->has_sha256)
		db_bind_blob(q, i++, o->sha256, sizeof(o->sha256));
	r = db_run(q);
	if (r == 0)
		o->id = db_last_id(store_db(s));
	return r;
}

static char *db_path(struct db_query *q, int i)
{
	size_t size;
	const char *data = db_blob(q, i, &size);

	return g_strndup(data ? data : "", size);
}

int store_origin_get(struct store *s, int64_t id, struct origin *ret)
{
	struct db_query *q = db_query(store_db(s), "SELECT path, dev, ino, btime, mode, uid, gid, nlink, rdev, size, mtime, ctime, seen, "
					     "sha256 FROM origin WHERE id = ?");
	const void *sha256;
	size_t size;
	int r;

	db_bind_int(q, 0, id);
	r = db_step(q);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	*ret = (struct origin){
		.id = id,
		.path = db_path(q, 0),
		.print = { .dev = db_int(q, 1), .ino = db_int(q, 2), .btime = db_int(q, 3),
			   .attr = { .mode = db_int(q, 4), .uid = db_int(q, 5), .gid = db_int(q, 6), .nlink = db_int(q, 7),
				     .rdev = db_int(q, 8), .size = db_int(q, 9), .mtime = db_int(q, 10),
				     .ctime = db_int(q, 11) } },
		.seen = db_int(q, 12),
	};
	sha256 = db_blob(q, 13, &size);
	ret->has_sha256 = size == sizeof(ret->sha256);
	if (ret->has_sha256)
		memcpy(ret->sha256, sha256, size);
	db_done(q);
	return 0;
}

int store_origin_set_sha256(struct store *s, int64_t id, const uint8_t sha256[32])
{
	struct db_query *q = db_query(store_db(s), "UPDATE origin SET sha256 = ? WHERE id = ?");

	db_bind_blob(q, 0, sha256, 32);
	db_bind_int(q, 1, id);
	return db_run(q);
}

/* Nodes */

#define NODE_COLUMNS "ino, born, flags, mode, uid, gid, nlink, rdev, size, atime, mtime, ctime, content, origin, target, xattrs"

/* Reads NODE_COLUMNS from column @i on. */
static void node_from_query(struct db_query *q, int i, struct node_row *ret)
{
	const void *xattrs;
	size_t size;

	*ret = (struct node_row){
		.ino = db_int(q, i), .born = db_int(q, i + 1), .flags = db_int(q, i + 2),
		.attr = { .mode = db_int(q, i + 3), .uid = db_int(q, i + 4), .gid = db_int(q, i + 5), .nlink = db_int(q, i + 6),
			  .rdev = db_int(q, i + 7), .size = db_int(q, i + 8), .atime = db_int(q, i + 9),
			  .mtime = db_int(q, i + 10), .ctime = db_int(q, i + 11) },
		.content = db_int(q, i + 12), .origin = db_int(q, i + 13),
	};
	if (!db_is_null(q, i + 14))
		ret->target = db_path(q, i + 14);
	xattrs = db_blob(q, i + 15, &size);
	if (size > 0)
		ret->xattrs = g_bytes_new(xattrs, size);
}

int store_node_get(struct store *s, int64_t epoch, uint64_t ino, struct node_row *ret)
{
	struct db_query *q = epoch == EPOCH_LIVE ?
		db_query(store_db(s), "SELECT " NODE_COLUMNS " FROM node WHERE ino = ?1 AND died = ?2") :
		db_query(store_db(s), "SELECT " NODE_COLUMNS " FROM node WHERE ino = ?1 AND born <= ?2 AND died > ?2");
	int r;

	db_bind_int(q, 0, ino);
	db_bind_int(q, 1, epoch);
	r = db_step(q);
	if (r < 0)
		return r;
	*ret = (struct node_row){ 0 };
	if (r > 0) {
		node_from_query(q, 0, ret);
		db_done(q);
	}
	return 0;
}

bool store_has_workspace_rows(struct store *s)
{
	struct db_query *q = db_query(store_db(s), "SELECT 1 FROM node WHERE ino > ? AND ino < ? LIMIT 1");
	int r;

	db_bind_int(q, 0, ROOT_INO);
	db_bind_int(q, 1, FIRST_OWN_INO);
	r = db_step(q);
	if (r > 0)
		db_done(q);
	return r != 0;
}

static int node_bind(struct db_query *q, const struct node_row *n)
{
	int i = 0;

	db_bind_int(q, i++, n->flags);
	db_bind_int(q, i++, n->attr.mode);
	db_bind_int(q, i++, n->attr.uid);
	db_bind_int(q, i++, n->attr.gid);
	db_bind_int(q, i++, n->attr.nlink);
	db_bind_int(q, i++, n->attr.rdev);
	db_bind_int(q, i++, n->attr.size);
	db_bind_int(q, i++, n->attr.atime);
	db_bind_int(q, i++, n->attr.mtime);
	db_bind_int(q, i++, n->attr.ctime);
	db_bind_int(q, i++, n->content);
	db_bind_int(q, i++, n->origin);
	if (n->target)
		db_bind_blob(q, i, n->target, strlen(n->target));
	i++;
	if (n->xattrs)
		db_bind_blob(q, i, g_bytes_get_data(n->xattrs, NULL), g_bytes_get_size(n->xattrs));
	i++;
	return i;
}

static int node_close(struct store *s, uint64_t ino)
{
	struct db_query *q = db_query(store_db(s), "UPDATE node SET died = ?1 WHERE ino = ?2 AND died = ?3");

	db_bind_int(q, 0, store_epoch(s));
	db_bind_int(q, 1, ino);
	db_bind_int(q, 2, EPOCH_LIVE);
	return db_run(q);
}

int store_node_put(struct store *s, struct node_row *n)
{
	struct db_query *q;
	int i, r;

	if (n->born == store_epoch(s)) {
		q = db_query(store_db(s), "UPDATE node SET flags = ?, mode = ?, uid = ?, gid = ?, nlink = ?, rdev = ?, size = ?, atime = ?, "
				    "mtime = ?, ctime = ?, content = ?, origin = ?, target = ?, xattrs = ? WHERE ino = ? AND died = ?");
		i = node_bind(q, n);
		db_bind_int(q, i++, n->ino);
		db_bind_int(q, i++, EPOCH_LIVE);
		return db_run(q);
	}
	r = n->born > 0 ? node_close(s, n->ino) : 0;
	if (r < 0)
		return r;
	q = db_query(store_db(s), "INSERT INTO node (flags, mode, uid, gid, nlink, rdev, size, atime, mtime, ctime, content, origin, target, "
			    "xattrs, ino, died, born) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	i = node_bind(q, n);
	db_bind_int(q, i++, n->ino);
	db_bind_int(q, i++, EPOCH_LIVE);
	db_bind_int(q, i++, store_epoch(s));
	r = db_run(q);
	if (r == 0)
		n->born = store_epoch(s);
	return r;
}

int store_node_drop(struct store *s, uint64_t ino)
{
	struct db_query *q = db_query(store_db(s), "DELETE FROM node WHERE ino = ? AND died = ? AND born = ?");
	int r;

	db_bind_int(q, 0, ino);
	db_bind_int(q, 1, EPOCH_LIVE);
	db_bind_int(q, 2, store_epoch(s));
	r = db_run(q);
	return r < 0 ? r : node_close(s, ino);
}

/* Names */

int store_name_get(struct store *s, int64_t epoch, uint64_t parent, const char *name, struct name_row *ret)
{
	struct db_query *q = epoch == EPOCH_LIVE ?
		db_query(store_db(s), "SELECT born, ino, covers FROM name WHERE parent = ?1 AND name = ?2 AND died = ?3") :
		db_query(store_db(s), "SELECT born, ino, covers FROM name WHERE parent = ?1 AND name = ?2 AND born <= ?3 AND died > ?3");
	int r;

	db_bind_int(q, 0, parent);
	db_bind_blob(q, 1, name, strlen(name));
	db_bind_int(q, 2, epoch);
	r = db_step(q);
	if (r < 0)
		return r;
	*ret = (struct name_row){ 0 };
	if (r > 0) {
		*ret = (struct name_row){ .parent = parent, .name = g_strdup(name), .born = db_int(q, 0), .ino = db_int(q, 1),
					  .covers = db_int(q, 2) };
		db_done(q);
	}
	return 0;
}

static int name_close(struct store *s, uint64_t parent, const char *name)
{
	struct db_query *q = db_query(store_db(s), "UPDATE name SET died = ?1 WHERE parent = ?2 AND name = ?3 AND died = ?4");

	db_bind_int(q, 0, store_epoch(s));
	db_bind_int(q, 1, parent);
	db_bind_blob(q, 2, name, strlen(name));
	db_bind_int(q, 3, EPOCH_LIVE);
	return db_run(q);
}

int store_name_put(struct store *s, struct name_row *n)
{
	struct db_query *q;
	int r = n->born > 0 && n->born != store_epoch(s) ? name_close(s, n->parent, n->name) : 0;

	if (r < 0)
		return r;
	q = db_query(store_db(s), "INSERT INTO name (parent, name, died, born, ino, covers) VALUES (?, ?, ?, ?, ?, ?) "
			    "ON CONFLICT (parent, name, died) DO UPDATE SET ino = excluded.ino, covers = excluded.covers");
	db_bind_int(q, 0, n->parent);
	db_bind_blob(q, 1, n->name, strlen(n->name));
	db_bind_int(q, 2, EPOCH_LIVE);
	db_bind_int(q, 3, store_epoch(s));
	db_bind_int(q, 4, n->ino);
	db_bind_int(q, 5, n->covers);
	r = db_run(q);
	if (r == 0)
		n->born = store_epoch(s);
	return r;
}

int store_name_drop(struct store *s, uint64_t parent, const char *name)
{
	struct db_query *q = db_query(store_db(s), "DELETE FROM name WHERE parent = ? AND name = ? AND died = ? AND born = ?");
	int r;

	db_bind_int(q, 0, parent);
	db_bind_blob(q, 1, name, strlen(name));
	db_bind_int(q, 2, EPOCH_LIVE);
	db_bind_int(q, 3, store_epoch(s));
	r = db_run(q);
	return r < 0 ? r : name_close(s, parent, name);
}

int store_names_drop(struct store *s, uint64_t parent)
{
	struct db_query *q = db_query(store_db(s), "DELETE FROM name WHERE parent = ? AND died = ? AND born = ?");
	int r;

	db_bind_int(q, 0, parent);
	db_bind_int(q, 1, EPOCH_LIVE);
	db_bind_int(q, 2, store_epoch(s));
	r = db_run(q);
	if (r < 0)
		return r;
	q = db_query(store_db(s), "UPDATE name SET died = ?1 WHERE parent = ?2 AND died = ?3");
	db_bind_int(q, 0, store_epoch(s));
	db_bind_int(q, 1, parent);
	db_bind_int(q, 2, EPOCH_LIVE);
	return db_run(q);
}

#define JOINED_COLUMNS                                                                                                    \
	"n.name, n.born, n.ino, n.covers, n.parent, m.ino, m.born, m.flags, m.mode, m.uid, m.gid, m.nlink, m.rdev, m.size, m.atime, " \
	"m.mtime, m.ctime, m.content, m.origin, m.target, m.xattrs"

static int names_each(struct db_query *q, store_names_fn fn, void *user)
{
	int r, stop = 0;

	while ((r = db_step(q)) > 0 && stop == 0) {
		struct name_row name = { .name = db_path(q, 0), .born = db_int(q, 1), .ino = db_int(q, 2), .covers = db_int(q, 3),
					 .parent = db_int(q, 4) };
		struct node_row node;

		node_from_query(q, 5, &node);
		/* A name whose node is missing can only come from a damaged index; show it as absent rather than as garbage. */
		stop = fn(&name, &node, user);
		node_row_clear(&node);
		name_row_clear(&name);
	}
	if (r > 0)
		db_done(q);
	return r < 0 ? r : stop;
}

int store_names(struct store *s, int64_t epoch, uint64_t parent, store_names_fn fn, void *user)
{
	struct db_query *q = epoch == EPOCH_LIVE ?
		db_query(store_db(s), "SELECT " JOINED_COLUMNS " FROM name n LEFT JOIN node m ON m.ino = n.ino AND m.died = ?2 "
				"WHERE n.parent = ?1 AND n.died = ?2 ORDER BY n.name") :
		db_query(store_db(s), "SELECT " JOINED_COLUMNS " FROM name n LEFT JOIN node m ON m.ino = n.ino AND m.born <= ?2 AND m.died > ?2 "
				"WHERE n.parent = ?1 AND n.born <= ?2 AND n.died > ?2 ORDER BY n.name");

	db_bind_int(q, 0, parent);
	db_bind_int(q, 1, epoch);
	return names_each(q, fn, user);
}

int store_all_names(struct store *s, int64_t epoch, store_names_fn fn, void *user)
{
	struct db_query *q = db_query(store_db(s), "SELECT " JOINED_COLUMNS " FROM name n LEFT JOIN node m ON m.ino = n.ino AND m.born <= ?1 "
					     "AND m.died > ?1 WHERE n.born <= ?1 AND n.died > ?1");

	db_bind_int(q, 0, epoch == EPOCH_LIVE ? EPOCH_LIVE - 1 : epoch);
	return names_each(q, fn, user);
}

int store_bare_whiteouts(struct store *s, store_names_fn fn, void *user)
{
	struct db_query *q = db_query(store_db(s), "SELECT " JOINED_COLUMNS " FROM name n LEFT JOIN node m ON m.ino = n.ino AND m.died = n.died "
					     "WHERE n.died = ? AND n.ino = 0 AND n.covers = 0");

	db_bind_int(q, 0, EPOCH_LIVE);
	return names_each(q, fn, user);
}

int store_has_moved(struct store *s, int64_t epoch, bool *ret)
{
	/* If none lies elsewhere than its directory's origin says, none does at all. */
	struct db_query *q = db_query(
		store_db(s), "SELECT 1 FROM name n JOIN node m ON m.ino = n.ino AND m.born <= ?1 AND m.died > ?1 JOIN origin o ON o.id = m.origin "
		       "LEFT JOIN node d ON d.ino = n.parent AND d.born <= ?1 AND d.died > ?1 LEFT JOIN origin p ON p.id = d.origin "
		       "WHERE n.born <= ?1 AND n.died > ?1 AND o.path IS NOT CASE WHEN n.parent = ?2 THEN n.name "
		       "ELSE CAST(p.path || '/' || n.name AS BLOB) END LIMIT 1");
	int r;

	db_bind_int(q, 0, epoch == EPOCH_LIVE ? EPOCH_LIVE - 1 : epoch);
	db_bind_int(q, 1, ROOT_INO);
	r = db_step(q);
	if (r > 0)
		db_done(q);
	*ret = r > 0;
	return MIN(r, 0);
}

int store_count_names(struct store *s, int64_t epoch, uint64_t *ret)
{
	struct db_query *q = db_query(store_db(s), "SELECT count(*) FROM name WHERE born <= ?1 AND died > ?1");
	int r;

	db_bind_int(q, 0, epoch == EPOCH_LIVE ? EPOCH_LIVE - 1 : epoch);
	r = db_step(q);
	if (r <= 0)
		return r < 0 ? r : -EIO;
	*ret = db_int(q, 0);
	db_done(q);
	return 0;
}

/* Rollback: see store.h */

int store_rows_since(struct store *s, int64_t epoch, store_changed_name_fn name_fn, store_changed_node_fn node_fn, void *user)
{
	struct db_query *q = db_query(store_db(s), "SELECT parent, name FROM name WHERE born > ?1 UNION "
					     "SELECT parent, name FROM name WHERE died > ?1 AND died < 9223372036854775807 AND born <= ?1");
	int r;

	db_bind_int(q, 0, epoch);
	while ((r = db_step(q)) > 0) {
		g_autofree char *name = db_path(q, 1);

		name_fn(db_int(q, 0), name, user);
	}
	if (r < 0)
		return r;
	q = db_query(store_db(s), "SELECT ino FROM node WHERE born > ?1 UNION "
			    "SELECT ino FROM node WHERE died > ?1 AND died < 9223372036854775807 AND born <= ?1");
	db_bind_int(q, 0, epoch);
	while ((r = db_step(q)) > 0)
		node_fn(db_int(q, 0), user);
	return r;
}

int store_name_restore(struct store *s, int64_t epoch, uint64_t parent, const char *name)
{
	struct name_row past;
	int r = store_name_get(s, epoch, parent, name, &past);

	if (r == 0)
		r = store_name_drop(s, parent, name);
	if (r == 0 && past.born > 0) {
		past.born = 0;
		r = store_name_put(s, &past);
	}
	name_row_clear(&past);
	return r;
}

int store_node_restore(struct store *s, int64_t epoch, uint64_t ino)
{
	struct node_row past;
	int r = store_node_get(s, epoch, ino, &past);

	if (r == 0)
		r = store_node_drop(s, ino);
	/* What only an open descriptor held then has no name to come back to. */
	if (r == 0 && past.ino && (past.attr.nlink > 0 || past.ino == ROOT_INO)) {
		past.born = 0;
		r = store_node_put(s, &past);
	}
	node_row_clear(&past);
	return r;
}
