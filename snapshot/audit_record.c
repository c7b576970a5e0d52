/* SPDX-License-Identifier: MIT */
#include "snapshot/audit_record.h"

#include <string.h>

#define FIXED_SIZE 24

const char *audit_kind_name(enum audit_kind kind)
{
	switch (kind) {
	case AUDIT_CHANGE:
		return "change";
	case AUDIT_DENIAL:
		return "denial";
	case AUDIT_READ:
		return "read";
	case AUDIT_MOUNT:
		return "mount";
	case AUDIT_SNAPSHOT:
		return "snapshot";
	case AUDIT_ROLLBACK:
		return "rollback";
	case AUDIT_COMMIT:
		return "commit";
	case AUDIT_LOG:
		return "log";
	case AUDIT_QUESTION:
		return "question";
	case AUDIT_ANSWER:
		return "answer";
	case AUDIT_RUN:
		return "run";
	case AUDIT_COMMAND:
		return "command";
	case AUDIT_NETWORK:
		return "network";
	case AUDIT_REVIEW:
		return "review";
	}
	return "?";
}

void audit_record_strings(struct audit_record *r, const char **ret[AUDIT_STRINGS])
{
	const char **all[AUDIT_STRINGS] = { &r->operation, &r->program, &r->path,  &r->new_path,
					    &r->verdict,   &r->rule,	&r->detail };

	memcpy(ret, all, sizeof(all));
}

static void put32(GByteArray *out, uint32_t value)
{
	uint32_t le = GUINT32_TO_LE(value);

	g_byte_array_append(out, (const guint8 *)&le, sizeof(le));
}

void audit_record_encode(const struct audit_record *r, GByteArray *out)
{
	struct audit_record copy = *r;
	const char **strings[AUDIT_STRINGS];
	uint64_t time = GUINT64_TO_LE((uint64_t)r->time);

	g_byte_array_append(out, (const guint8 *)&time, sizeof(time));
	put32(out, r->kind);
	put32(out, (uint32_t)r->pid);
	put32(out, r->uid);
	put32(out, (uint32_t)r->result);
	audit_record_strings(&copy, strings);
	for (int i = 0; i < AUDIT_STRINGS; i++) {
		const char *s = *strings[i];
		uint32_t size = s ? strlen(s) + 1 : 0;

		put32(out, size);
		if (s)
			g_byte_array_append(out, (const guint8 *)s, size);
	}
}

static uint32_t get32(const char *p)
{
	uint32_t le;

	memcpy(&le, p, sizeof(le));
	return GUINT32_FROM_LE(le);
}

bool audit_record_decode(const void *data, size_t size, struct audit_record *ret)
{
	const char *p = data, *end = p + size;
	const char **strings[AUDIT_STRINGS];
	uint64_t time;

	if (size < FIXED_SIZE)
		return false;
	memcpy(&time, p, sizeof(time));
	*ret = (struct audit_record){ .time = (int64_t)GUINT64_FROM_LE(time),
				      .kind = get32(p + 8),
				      .pid = (int32_t)get32(p + 12),
				      .uid = get32(p + 16),
				      .result = (int32_t)get32(p + 20) };
	p += FIXED_SIZE;
	audit_record_strings(ret, strings);
	for (int i = 0; i < AUDIT_STRINGS; i++) {
		uint32_t n;

		if (end - p < 4)
			return false;
		n = get32(p);
		p += 4;
		if ((size_t)(end - p) < n || (n > 0 && (p[n - 1] != '\0' || strlen(p) != n - 1)))
			return false;
		*strings[i] = n > 0 ? p : NULL;
		p += n;
	}
	return p == end && ret->operation;
}
