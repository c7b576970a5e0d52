/* SPDX-License-Identifier: MIT */

/*
 * manifest_xml - pom.xml, *.csproj, packages.config, nuget.config
 *
 * A walk over the tags, wherever the lines end: several dependencies may stand on one line, and a tag on several. What an element
 * depends on is put together when it ends, so the order in it means nothing. Not recursive; elements deeper than DEPTH_MAX, and an end
 * that belongs to no beginning, make the text one that is not understood.
 */

#include <string.h>

#include "gate/manifest_private.h"

#define DEPTH_MAX 256

struct element {
	char *tag;
	uint64_t line;
	char *group, *artifact, *version; /* of the elements in it */
	bool has_children;
	bool builds; /* it, or one around it, says what is run by a build */
	GString *text;
};

struct xml {
	struct manifest_reader *reader;
	const char *p, *end;
	uint64_t line;
	struct element stack[DEPTH_MAX];
	unsigned depth;
};

static bool is_one_of(const char *tag, const char *const *list)
{
	return g_strv_contains(list, tag);
}

/* Of MSBuild and NuGet: what they say stands in attributes. */
static const char *const reference_tags[] = { "PackageReference", "PackageVersion", "PackageDownload", "GlobalPackageReference", "package",
					      "Reference", "ProjectReference", "DotNetCliToolReference", "Sdk", NULL };
static const char *const source_tags[] = { "add", "packageSource", "clear", "Import", NULL };
static const char *const build_tags[] = { "Target", "Exec", "UsingTask", "Analyzer", NULL };
/* Elements in which everything is about what is run. */
static const char *const building_tags[] = { "build", "plugin", "pluginManagement", "reporting", "Target", "UsingTask", NULL };
static const char *const event_tags[] = { "PreBuildEvent", "PostBuildEvent", "RestoreSources", "RestoreAdditionalProjectSources", NULL };
static const char *const address_tags[] = { "url", "module", "systemPath", NULL };

/* Elements */

static void element_clear(struct element *e)
{
	g_free(e->tag);
	g_free(e->group);
	g_free(e->artifact);
	g_free(e->version);
	if (e->text)
		g_string_free(e->text, TRUE);
	*e = (struct element){ 0 };
}

/* Each text is an item of its own: of many equal tags, none hides another. */
static bool add_text(struct xml *x, enum manifest_part part, const char *tag, const char *text, uint64_t line)
{
	g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);

	g_checksum_update(sum, (const guchar *)text, (gssize)strlen(text));
	return manifest_add(x->reader, part, g_checksum_get_string(sum), g_strdup(tag), text, line);
}

/* Hands what a leaf says to the element around it. */
static void give(char **field, const struct element *leaf)
{
	g_free(*field);
	*field = g_strdup(leaf->text->str);
}

static bool end_leaf(struct xml *x, const struct element *e, struct element *around)
{
	if (around && g_str_equal(e->tag, "groupId"))
		give(&around->group, e);
	else if (around && g_str_equal(e->tag, "artifactId"))
		give(&around->artifact, e);
	else if (around && g_str_equal(e->tag, "version"))
		give(&around->version, e);
	else if (!*e->text->str)
		return true;
	else if (is_one_of(e->tag, address_tags))
		return add_text(x, MANIFEST_SOURCE, e->tag, e->text->str, e->line);
	else if (e->builds || is_one_of(e->tag, event_tags))
		return add_text(x, MANIFEST_BUILD, e->tag, e->text->str, e->line);
	return true;
}

/* A project's own name and version are no dependency. */
static bool end_artifact(struct xml *x, const struct element *e)
{
	g_autofree char *name = NULL;

	if (!e->artifact || g_str_equal(e->tag, "project"))
		return true;
	name = g_strdup_printf("%s:%s", e->group ? e->group : "", e->artifact);
	return manifest_add(x->reader, MANIFEST_DEPENDENCY, e->tag, g_steal_pointer(&name), e->version ? e->version : "", e->line);
}

static bool end_element(struct xml *x)
{
	struct element *e = &x->stack[--x->depth];
	bool ok;

	g_strstrip(e->text->str);
	ok = (e->has_children || end_leaf(x, e, x->depth > 0 ? e - 1 : NULL)) && end_artifact(x, e);
	element_clear(e);
	return ok;
}

/* Tags */

/* The value of the attribute that names a package; without one all that the tag says. Caller frees. */
static char *package_of(const char *text)
{
	static const char *const names[] = { " Include=", " Update=", " id=", " Name=", " Sdk=", NULL };

	for (const char *const *n = names; *n; n++) {
		const char *found = strstr(text, *n);

		if (found)
			return manifest_first_string(found);
	}
	return g_strdup(text);
}

/* What a tag with attributes says by itself. @text: the tag without its brackets. */
static bool look_at_tag(struct xml *x, const char *tag, const char *text, bool builds, uint64_t line)
{
	bool has_attributes = strpbrk(text, "\"'") != NULL;

	if (is_one_of(tag, reference_tags) || (g_str_equal(tag, "Project") && strstr(text, "Sdk")))
		return !has_attributes || manifest_add(x->reader, MANIFEST_DEPENDENCY, tag, package_of(text), text, line);
	if (is_one_of(tag, source_tags))
		return add_text(x, MANIFEST_SOURCE, tag, text, line);
	if (is_one_of(tag, build_tags) || (builds && has_attributes))
		return add_text(x, MANIFEST_BUILD, tag, text, line);
	return true;
}

static bool begin_element(struct xml *x, const char *tag, const char *text, bool empty, uint64_t line)
{
	struct element *around = x->depth > 0 ? &x->stack[x->depth - 1] : NULL;
	bool builds = (around && around->builds) || is_one_of(tag, building_tags);

	if (around)
		around->has_children = true;
	if (!look_at_tag(x, tag, text, builds, line))
		return false;
	if (empty)
		return true;
	if (x->depth == DEPTH_MAX)
		return false;
	x->stack[x->depth++] = (struct element){ .tag = g_strdup(tag), .line = line, .builds = builds, .text = g_string_new(NULL) };
	return true;
}

/* Up to behind @close, with the lines in it; the text in front of that, on one line. NULL: it does not come. Caller frees. */
static char *take_until(struct xml *x, const char *close)
{
	const char *found = memmem(x->p, x->end - x->p, close, strlen(close)), *start = x->p;
	char *text;

	if (!found)
		return NULL;
	text = g_strndup(start, found - start);
	for (; x->p < found; x->p++)
		x->line += *x->p == '\n';
	x->p += strlen(close);
	return text;
}

/* To behind the '>' that stands in no quotes. */
static char *take_tag(struct xml *x)
{
	const char *start = x->p;
	char quote = '\0', *text;

	for (; x->p < x->end && (quote || *x->p != '>'); x->p++) {
		x->line += *x->p == '\n';
		if (quote ? *x->p == quote : *x->p == '"' || *x->p == '\'')
			quote = quote ? '\0' : *x->p;
	}
	if (x->p == x->end)
		return NULL;
	text = g_strndup(start, x->p++ - start);
	g_strdelimit(text, "\t\r\n", ' ');
	return g_strstrip(text);
}

/* The name without the prefix of its space. */
static char *name_of(const char *text)
{
	g_autofree char *name = manifest_first_word(text, " /");
	const char *colon = strchr(name, ':');

	return strlen(name) > MANIFEST_NAME_MAX ? NULL : g_strdup(colon ? colon + 1 : name);
}

static bool take_end(struct xml *x, const char *text)
{
	g_autofree char *tag = name_of(text + 1);

	return tag && x->depth > 0 && g_str_equal(x->stack[x->depth - 1].tag, tag) && end_element(x);
}

static bool take_markup(struct xml *x)
{
	const uint64_t line = x->line;
	g_autofree char *text = NULL, *tag = NULL;
	bool empty;

	if (g_str_has_prefix(x->p, "!--"))
		return (text = take_until(x, "-->")) != NULL;
	if (*x->p == '?')
		return (text = take_until(x, "?>")) != NULL;
	if (g_str_has_prefix(x->p, "![CDATA[")) {
		text = take_until(x, "]]>");
		if (text && x->depth > 0)
			g_string_append(x->stack[x->depth - 1].text, text + strlen("![CDATA["));
		return text != NULL;
	}
	text = take_tag(x);
	/* A document type defines what names stand for, and in it '>' ends nothing. */
	if (!text || *text == '!')
		return false;
	if (*text == '/')
		return take_end(x, text);
	empty = g_str_has_suffix(text, "/");
	if (empty)
		text[strlen(text) - 1] = '\0';
	tag = name_of(text);
	return tag && begin_element(x, tag, text, empty, line);
}

bool manifest_xml(struct manifest_reader *r, const char *text, size_t size)
{
	/* Ends with a NUL, so that a word can be compared at its end. */
	g_autofree char *copy = g_strndup(text, size);
	g_autofree struct xml *x = g_new0(struct xml, 1);
	bool ok = true;

	x->reader = r;
	x->p = copy;
	x->end = copy + strlen(copy);
	x->line = 1;
	while (ok && x->p < x->end) {
		if (*x->p == '<') {
			x->p++;
			ok = take_markup(x);
			continue;
		}
		if (x->depth > 0)
			g_string_append_c(x->stack[x->depth - 1].text, *x->p);
		x->line += *x->p++ == '\n';
	}
	ok = ok && x->depth == 0 && x->end == copy + size;
	while (x->depth > 0)
		element_clear(&x->stack[--x->depth]);
	return ok;
}
