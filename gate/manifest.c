/* SPDX-License-Identifier: MIT */
#include "gate/manifest.h"

#include <string.h>

#include "gate/json_strings.h"

/* Kinds */

static const struct {
	enum manifest_kind kind;
	const char *names; /* separated by blanks; "*" at one end */
} kind_rows[] = {
	{ MANIFEST_LOCK, "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock poetry.lock "
			 "pipfile.lock pdm.lock uv.lock pylock.toml conda-lock.yml go.sum go.work.sum gemfile.lock gems.locked composer.lock "
			 "mix.lock pubspec.lock gradle.lockfile buildscript-gradle.lockfile verification-metadata.xml packages.lock.json "
			 "paket.lock podfile.lock cartfile.resolved package.resolved flake.lock .terraform.lock.hcl stack.yaml.lock "
			 "cabal.project.freeze rebar.lock conan.lock renv.lock" },
	{ MANIFEST_NPM, "package.json" },
	{ MANIFEST_COMPOSER, "composer.json" },
	{ MANIFEST_PIP, "requirements*.txt constraints*.txt *requirements.txt requirements*.in" },
	{ MANIFEST_TOML, "pyproject.toml cargo.toml pipfile" },
	{ MANIFEST_GO, "go.mod go.work" },
	{ MANIFEST_RUBY, "gemfile gems.rb *.gemspec" },
	{ MANIFEST_XML, "pom.xml *.csproj *.fsproj *.vbproj packages.config directory.packages.props directory.build.props "
			"directory.build.targets nuget.config" },
	{ MANIFEST_GRADLE, "*.gradle *.gradle.kts libs.versions.toml gradle-wrapper.properties" },
	{ MANIFEST_CODE, "setup.py build.rs binding.gyp extconf.rb makefile.pl build.pl mix.exs package.swift conanfile.py build.sbt "
			 "project.clj rakefile" },
};

/* Names without a star are looked up, the others tried one by one. */
static struct {
	GHashTable *names; /* -> kind */
	GArray *stars;     /* struct star */
} tables;

struct star {
	GPatternSpec *spec;
	enum manifest_kind kind;
};

static void tables_init(void)
{
	static gsize once;

	if (!g_once_init_enter(&once))
		return;
	tables.names = g_hash_table_new(g_str_hash, g_str_equal);
	tables.stars = g_array_new(FALSE, FALSE, sizeof(struct star));
	for (size_t i = 0; i < G_N_ELEMENTS(kind_rows); i++) {
		g_auto(GStrv) names = g_strsplit(kind_rows[i].names, " ", -1);

		for (char **n = names; *n; n++) {
			struct star s = { NULL, kind_rows[i].kind };

			if (!strchr(*n, '*')) {
				g_hash_table_insert(tables.names, g_strdup(*n), GINT_TO_POINTER(kind_rows[i].kind));
				continue;
			}
			s.spec = g_pattern_spec_new(*n);
			g_array_append_val(tables.stars, s);
		}
	}
	g_once_init_leave(&once, 1);
}

enum manifest_kind manifest_kind_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	g_autofree char *name = g_ascii_strdown(slash ? slash + 1 : path, -1);
	enum manifest_kind kind;

	tables_init();
	kind = GPOINTER_TO_INT(g_hash_table_lookup(tables.names, name));
	for (guint i = 0; kind == MANIFEST_NONE && i < tables.stars->len; i++) {
		const struct star *s = &g_array_index(tables.stars, struct star, i);

		if (g_pattern_spec_match(s->spec, strlen(name), name, NULL))
			kind = s->kind;
	}
	return kind;
}

/* Items */

struct reader {
	GHashTable *items;
	bool too_many;
};

static void item_free(void *data)
{
	struct manifest_item *i = data;

	g_free(i->name);
	g_free(i->spec);
	g_free(i);
}

/* Takes @name. The last of one name holds, as for those who read JSON; @scope tells equal names of different sections apart. */
static bool add(struct reader *r, enum manifest_part part, const char *scope, char *name, const char *spec, uint64_t line)
{
	struct manifest_item *item;

	if (g_hash_table_size(r->items) >= MANIFEST_ITEMS_MAX) {
		r->too_many = true;
		g_free(name);
		return false;
	}
	item = g_new0(struct manifest_item, 1);
	item->part = part;
	item->name = name;
	item->spec = g_strdup(spec);
	item->line = line;
	g_hash_table_replace(r->items, g_strdup_printf("%d %s %s", part, scope, name), item);
	return true;
}

/* JSON */

static bool is_install_script(const char *name)
{
	static const char *const names[] = { "preinstall", "install", "postinstall", "preuninstall", "uninstall", "postuninstall", "prepublish",
					     "preprepare", "prepare", "postprepare", "prepack", "postpack", "prepublishOnly", "dependencies",
					     NULL };
	static const char *const composer[] = { "pre-install-cmd", "post-install-cmd", "pre-update-cmd", "post-update-cmd", "pre-autoload-dump",
						"post-autoload-dump", "post-root-package-install", "post-create-project-cmd",
						"pre-operations-exec", "command", "init", NULL };

	return g_strv_contains(names, name) || g_strv_contains(composer, name) || g_str_has_prefix(name, "post-package-") ||
	       g_str_has_prefix(name, "pre-package-");
}

static char *join_keys(const char *const *keys, unsigned from, unsigned depth)
{
	GString *s = g_string_new(NULL);

	for (unsigned i = from; i < depth; i++)
		if (*keys[i])
			g_string_append_printf(s, "%s%s", s->len ? " > " : "", keys[i]);
	return g_string_free(s, FALSE);
}

static bool take_json(const char *const *keys, unsigned depth, const char *value, uint64_t line, void *user)
{
	static const char *const dependencies[] = { "dependencies", "devDependencies", "optionalDependencies", "peerDependencies",
						    "bundleDependencies", "bundledDependencies", "overrides", "resolutions", "pnpm", "require",
						    "require-dev", "conflict", "replace", "catalog", "catalogs", NULL };
	static const char *const sources[] = { "repositories", "publishConfig", "packageManager", "config", NULL };
	struct reader *r = user;
	const char *top = depth > 0 ? keys[0] : "";

	if (g_strv_contains(dependencies, top)) {
		/* A list of names has no keys below. */
		char *name = depth > 1 && *keys[1] ? join_keys(keys, 1, depth) : g_strdup(value);

		return add(r, MANIFEST_DEPENDENCY, top, name, value, line);
	}
	if (g_str_equal(top, "scripts") && depth > 1) {
		/* Composer has lists of commands. */
		g_autofree char *scope = g_strdup_printf("%s %s", keys[1], depth > 2 ? value : "");

		return add(r, is_install_script(keys[1]) ? MANIFEST_INSTALL : MANIFEST_SCRIPT, scope, g_strdup(keys[1]), value, line);
	}
	if (g_strv_contains(sources, top))
		return add(r, MANIFEST_SOURCE, top, join_keys(keys, 0, depth), value, line);
	return true;
}

/* Lines */

struct line {
	char *text; /* without comment and blanks around it */
	uint64_t number;
};

typedef bool (*take_line)(struct reader *r, struct line *l, void *state);

static void each_line(struct reader *r, const char *text, size_t size, const char *comment, take_line take, void *state)
{
	const char *end = text + size;
	struct line l = { 0 };
	bool go_on = true;

	for (const char *p = text, *next; go_on && p < end; p = next) {
		const char *nl = memchr(p, '\n', end - p);
		g_autofree char *copy = NULL;
		char *cut;

		next = nl ? nl + 1 : end;
		copy = g_strndup(p, (nl ? nl : end) - p);
		l.number++;
		cut = comment ? strstr(copy, comment) : NULL;
		if (cut && (cut == copy || g_ascii_isspace(cut[-1])))
			*cut = '\0';
		l.text = g_strstrip(copy);
		if (*l.text)
			go_on = take(r, &l, state);
	}
}

/* A name and what follows it. Caller frees. */
static char *first_word(const char *text, const char *ends)
{
	return g_strndup(text, strcspn(text, ends));
}

static bool take_pip(struct reader *r, struct line *l, void *state)
{
	char *name;

	(void)state;
	if (g_str_has_prefix(l->text, "--hash="))
		return true;
	if (*l->text == '-')
		return add(r, MANIFEST_SOURCE, "", g_strdup(l->text), l->text, l->number);
	name = first_word(l->text, " \t=<>!~;[@(\\");
	if (!*name) {
		g_free(name);
		name = g_strdup(l->text);
	}
	return add(r, MANIFEST_DEPENDENCY, "", name, l->text, l->number);
}

static bool take_go(struct reader *r, struct line *l, void *state)
{
	char *block = state; /* "require" inside of require ( ... ) */
	const char *text = l->text;
	enum manifest_part part = MANIFEST_DEPENDENCY;
	g_autofree char *verb = NULL;

	if (*block && *text == ')') {
		*block = '\0';
		return true;
	}
	verb = *block ? g_strdup(block) : first_word(text, " \t(");
	if (!*block) {
		text += strlen(verb);
		while (g_ascii_isspace(*text))
			text++;
		if (*text == '(') {
			g_strlcpy(block, verb, 32);
			return true;
		}
	}
	if (g_str_equal(verb, "replace") || g_str_equal(verb, "toolchain") || g_str_equal(verb, "tool"))
		part = MANIFEST_SOURCE;
	else if (!g_str_equal(verb, "require") && !g_str_equal(verb, "use"))
		return true;
	return add(r, part, verb, first_word(text, " \t"), text, l->number);
}

/* TOML */

struct toml {
	char *section;
	bool in_list; /* of strings, begun by a key that matters */
	char *list;   /* the key */
};

static bool matters(const char *name)
{
	/* A name with escapes is not read, so it matters. */
	static const char *const words[] = { "dependenc", "requires", "packages", "patch", "replace", "source", "extras", "\\", NULL };

	for (const char *const *w = words; *w; w++)
		if (strstr(name, *w))
			return true;
	return false;
}

static bool add_strings(struct reader *r, struct toml *t, const char *text, uint64_t line)
{
	for (const char *p = text; (p = strpbrk(p, "\"'"));) {
		const char *end = strchr(p + 1, *p);
		g_autofree char *spec = end ? g_strndup(p + 1, end - p - 1) : g_strdup(p + 1);
		char *name = first_word(spec, " \t=<>!~;[@(");

		if (!add(r, MANIFEST_DEPENDENCY, t->list, name, spec, line))
			return false;
		if (!end)
			break;
		p = end + 1;
	}
	return true;
}

static bool take_key(struct reader *r, struct toml *t, struct line *l)
{
	char *equals = strchr(l->text, '=');
	g_autofree char *key = equals ? g_strstrip(g_strndup(l->text, equals - l->text)) : g_strdup(l->text);
	const char *value = equals ? g_strchug(equals + 1) : "";
	bool here = matters(t->section);
	enum manifest_part part = MANIFEST_DEPENDENCY;

	if (g_str_equal(t->section, "package") && (g_str_equal(key, "build") || g_str_equal(key, "links")))
		return add(r, MANIFEST_BUILD, t->section, g_strdup(key), value, l->number);
	if (g_str_equal(key, "build-backend") || g_str_equal(key, "backend-path"))
		return add(r, MANIFEST_BUILD, t->section, g_strdup(key), value, l->number);
	if (strstr(t->section, "scripts") || strstr(t->section, "entry-points"))
		return add(r, MANIFEST_SCRIPT, t->section, g_strdup(key), value, l->number);
	if (!here && !matters(key))
		return true;
	if (*value == '[') {
		g_free(t->list);
		t->list = g_strdup_printf("%s.%s", t->section, key);
		t->in_list = !strchr(value, ']') || strchr(value, ']')[1] == ']';
		return add_strings(r, t, value, l->number);
	}
	if (strstr(t->section, "source") || strstr(t->section, "patch") || strstr(t->section, "replace"))
		part = MANIFEST_SOURCE;
	return add(r, part, t->section, g_strdup(key), value, l->number);
}

static bool take_toml(struct reader *r, struct line *l, void *state)
{
	struct toml *t = state;

	if (t->in_list) {
		t->in_list = *l->text != ']' && !g_str_has_suffix(l->text, "]");
		return add_strings(r, t, l->text, l->number);
	}
	if (*l->text == '[') {
		g_free(t->section);
		t->section = g_strdup(l->text + 1);
		t->section[strcspn(t->section, "]")] = '\0';
		g_strstrip(t->section);
		return true;
	}
	return take_key(r, t, l);
}

static void read_toml(struct reader *r, const char *text, size_t size)
{
	struct toml t = { .section = g_strdup("") };

	each_line(r, text, size, "#", take_toml, &t);
	g_free(t.section);
	g_free(t.list);
}

/* Programs */

static bool begins_with_word(const char *text, const char *words)
{
	g_auto(GStrv) all = g_strsplit(words, " ", -1);

	for (char **w = all; *w; w++) {
		size_t n = strlen(*w);

		if (strncmp(text, *w, n) == 0 && !g_ascii_isalnum(text[n]) && text[n] != '_')
			return true;
	}
	return false;
}

/* The first string in quotes, else the whole text. Caller frees. */
static char *first_string(const char *text)
{
	const char *start = strpbrk(text, "\"'"), *end = start ? strchr(start + 1, *start) : NULL;

	return end ? g_strndup(start + 1, end - start - 1) : g_strdup(text);
}

static bool take_ruby(struct reader *r, struct line *l, void *state)
{
	(void)state;
	if (begins_with_word(l->text, "gem") || strstr(l->text, "_dependency"))
		return add(r, MANIFEST_DEPENDENCY, "", first_string(l->text), l->text, l->number);
	if (begins_with_word(l->text, "source git git_source path github"))
		return add(r, MANIFEST_SOURCE, "", g_strdup(l->text), l->text, l->number);
	if (begins_with_word(l->text, "end group platforms"))
		return true;
	return add(r, MANIFEST_BUILD, "", g_strdup(l->text), l->text, l->number);
}

static bool take_gradle(struct reader *r, struct line *l, void *state)
{
	static const char configurations[] = "implementation api compile compileOnly compileOnlyApi runtimeOnly runtime testImplementation "
					     "testCompile testRuntimeOnly annotationProcessor kapt ksp classpath androidTestImplementation "
					     "debugImplementation releaseImplementation provided developmentOnly id kotlin module";
	static const char sources[] = "maven url repositories mavenCentral google jcenter mavenLocal distributionUrl distributionSha256Sum";
	g_autofree char *name = NULL;
	char *colon;

	(void)state;
	if (strspn(l->text, "{}() \t") == strlen(l->text) || g_str_has_prefix(l->text, "*"))
		return true;
	if (begins_with_word(l->text, sources))
		return add(r, MANIFEST_SOURCE, "", g_strdup(l->text), l->text, l->number);
	if (!begins_with_word(l->text, configurations))
		return add(r, MANIFEST_BUILD, "", g_strdup(l->text), l->text, l->number);
	/* group:name without the version */
	name = first_string(l->text);
	colon = strchr(name, ':');
	colon = colon ? strchr(colon + 1, ':') : NULL;
	if (colon)
		*colon = '\0';
	return add(r, MANIFEST_DEPENDENCY, "", g_steal_pointer(&name), l->text, l->number);
}

/* XML */

struct xml {
	char *group, *artifact;
	bool in_block;
};

/* The text between <tag> and </tag> on one line; NULL = not there. Caller frees. */
static char *element_text(const char *text, const char *tag)
{
	g_autofree char *open = g_strdup_printf("<%s>", tag);
	const char *start = strstr(text, open), *end;

	if (!start)
		return NULL;
	start += strlen(open);
	end = strchr(start, '<');
	return g_strstrip(end ? g_strndup(start, end - start) : g_strdup(start));
}

/* Attributes of NuGet: <PackageReference Include="x" Version="1" />. */
static bool is_reference(const char *text)
{
	static const char *const tags[] = { "<PackageReference", "<PackageVersion", "<package ", "<Reference", "<ProjectReference", "<Import",
					    "<Target", "<Exec", "<add ", "<packageSource", "<UsingTask", "<Sdk", NULL };

	for (const char *const *t = tags; *t; t++)
		if (strstr(text, *t))
			return true;
	return false;
}

static bool take_xml(struct reader *r, struct line *l, void *state)
{
	struct xml *x = state;
	char *group = element_text(l->text, "groupId"), *artifact = element_text(l->text, "artifactId");
	g_autofree char *version = element_text(l->text, "version"), *url = element_text(l->text, "url");

	if (group) {
		g_free(x->group);
		x->group = group;
	}
	if (artifact) {
		g_free(x->artifact);
		x->artifact = artifact;
		if (!add(r, MANIFEST_DEPENDENCY, "", g_strdup_printf("%s:%s", x->group ? x->group : "", artifact), "", l->number))
			return false;
	}
	if (version && x->artifact)
		return add(r, MANIFEST_DEPENDENCY, "version", g_strdup_printf("%s:%s", x->group ? x->group : "", x->artifact), version, l->number);
	if (url)
		return add(r, MANIFEST_SOURCE, "", g_strdup(l->text), url, l->number);
	if (is_reference(l->text))
		return add(r, strstr(l->text, "Exec") || strstr(l->text, "Task") || strstr(l->text, "Target") ? MANIFEST_BUILD :
			   strstr(l->text, "<add") || strstr(l->text, "Source") ? MANIFEST_SOURCE : MANIFEST_DEPENDENCY,
			   "", first_string(l->text), l->text, l->number);
	return true;
}

static void read_xml(struct reader *r, const char *text, size_t size)
{
	struct xml x = { 0 };

	each_line(r, text, size, NULL, take_xml, &x);
	g_free(x.group);
	g_free(x.artifact);
}

GHashTable *manifest_items(enum manifest_kind kind, const char *text, size_t size)
{
	struct reader r = { .items = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, item_free) };
	char block[32] = "";
	bool ok = true;

	switch (kind) {
	case MANIFEST_NPM:
	case MANIFEST_COMPOSER:
		ok = json_strings(text, size, take_json, &r);
		break;
	case MANIFEST_PIP:
		each_line(&r, text, size, "#", take_pip, NULL);
		break;
	case MANIFEST_TOML:
		read_toml(&r, text, size);
		break;
	case MANIFEST_GO:
		each_line(&r, text, size, "//", take_go, block);
		break;
	case MANIFEST_RUBY:
		each_line(&r, text, size, "#", take_ruby, NULL);
		break;
	case MANIFEST_GRADLE:
		each_line(&r, text, size, "//", take_gradle, NULL);
		break;
	case MANIFEST_XML:
		read_xml(&r, text, size);
		break;
	default:
		break;
	}
	if (ok && !r.too_many)
		return r.items;
	g_hash_table_unref(r.items);
	return NULL;
}
