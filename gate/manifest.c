/* SPDX-License-Identifier: MIT */
#include "gate/manifest.h"

#include <string.h>

#include "gate/json_strings.h"
#include "gate/manifest_private.h"

/* Kinds */

static const struct {
	enum manifest_kind kind;
	const char *names; /* separated by blanks; "*" at one end */
} kind_rows[] = {
	{ MANIFEST_LOCK, "package-lock.json npm-shrinkwrap.json yarn.lock pnpm-lock.yaml bun.lock bun.lockb deno.lock cargo.lock poetry.lock "
			 "pipfile.lock pdm.lock uv.lock pylock.toml conda-lock.yml go.sum go.work.sum gemfile.lock gems.locked composer.lock "
			 "mix.lock pubspec.lock gradle.lockfile buildscript-gradle.lockfile verification-metadata.xml packages.lock.json "
			 "paket.lock podfile.lock cartfile.resolved package.resolved flake.lock .terraform.lock.hcl stack.yaml.lock "
			 "cabal.project.freeze rebar.lock conan.lock renv.lock shard.lock vcpkg-lock.json" },
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
			 "project.clj rakefile build.zig gradlew gradlew.bat gradle-wrapper.jar mvnw mvnw.cmd maven-wrapper.jar" },
	{ MANIFEST_OTHER, "setup.cfg pnpm-workspace.yaml lerna.json bunfig.toml deno.json deno.jsonc jsr.json import_map.json environment.yml "
			  "environment.yaml pixi.toml uv.toml hatch.toml rust-toolchain rust-toolchain.toml maven-wrapper.properties pubspec.yaml "
			  "podfile *.podspec cartfile conanfile.txt vcpkg.json deps.edn build.zig.zon *.cabal cabal.project stack.yaml *.opam "
			  "shard.yml paket.dependencies cpanfile gradle.properties" },
};

/* Directories whose files are what only a name says elsewhere: "requirements/base.txt". */
static const struct {
	enum manifest_kind kind;
	const char *dir, *ending;
} dir_rows[] = {
	{ MANIFEST_PIP, "requirements", ".txt" },
	{ MANIFEST_PIP, "requirements", ".in" },
	{ MANIFEST_OTHER, ".mvn", "" },
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

static enum manifest_kind kind_of_dir(const char *path)
{
	g_auto(GStrv) parts = g_strsplit(path, "/", -1);
	guint n = g_strv_length(parts);

	for (guint i = 0; i + 1 < n; i++)
		for (size_t k = 0; k < G_N_ELEMENTS(dir_rows); k++)
			if (g_ascii_strcasecmp(parts[i], dir_rows[k].dir) == 0 && g_str_has_suffix(parts[n - 1], dir_rows[k].ending))
				return dir_rows[k].kind;
	return MANIFEST_NONE;
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
	return kind == MANIFEST_NONE ? kind_of_dir(path) : kind;
}

/* Items */

static void item_free(void *data)
{
	struct manifest_item *i = data;

	g_free(i->name);
	g_free(i->spec);
	g_free(i);
}

bool manifest_add(struct manifest_reader *r, enum manifest_part part, const char *scope, char *name, const char *spec, uint64_t line)
{
	struct manifest_item *item, *other;
	char *key;

	if (g_hash_table_size(r->items) >= MANIFEST_ITEMS_MAX || strlen(scope) > MANIFEST_NAME_MAX || strlen(name) > MANIFEST_NAME_MAX) {
		r->refused = true;
		g_free(name);
		return false;
	}
	item = g_new0(struct manifest_item, 1);
	item->part = part;
	item->name = name;
	item->spec = g_strdup(spec);
	item->line = line;
	key = g_strdup_printf("%d %s %s", part, scope, name);
	other = r->last_holds ? NULL : g_hash_table_lookup(r->items, key);
	if (other) {
		char *both = g_strconcat(key, "\n", spec, NULL);

		g_free(key);
		key = both;
	}
	g_hash_table_replace(r->items, key, item);
	return true;
}

char *manifest_first_word(const char *text, const char *ends)
{
	return g_strndup(text, strcspn(text, ends));
}

char *manifest_first_string(const char *text)
{
	const char *start = strpbrk(text, "\"'"), *end = start ? strchr(start + 1, *start) : NULL;

	return end ? g_strndup(start + 1, end - start - 1) : g_strdup(text);
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
						    "bundleDependencies", "bundledDependencies", "trustedDependencies", "overrides", "resolutions", "pnpm", "require",
						    "require-dev", "conflict", "replace", "catalog", "catalogs", NULL };
	static const char *const sources[] = { "repositories", "publishConfig", "packageManager", "config", "workspaces", NULL };
	struct manifest_reader *r = user;
	const char *top = depth > 0 ? keys[0] : "";

	if (g_strv_contains(dependencies, top)) {
		/* A list of names has no keys below. */
		char *name = depth > 1 && *keys[1] ? join_keys(keys, 1, depth) : g_strdup(value);

		return manifest_add(r, MANIFEST_DEPENDENCY, top, name, value, line);
	}
	if (g_str_equal(top, "scripts") && depth > 1) {
		/* Composer has lists of commands. */
		g_autofree char *scope = g_strdup_printf("%s %s", keys[1], depth > 2 ? value : "");

		return manifest_add(r, is_install_script(keys[1]) ? MANIFEST_INSTALL : MANIFEST_SCRIPT, scope, g_strdup(keys[1]), value, line);
	}
	if (g_strv_contains(sources, top))
		return manifest_add(r, MANIFEST_SOURCE, top, join_keys(keys, 0, depth), value, line);
	return true;
}

/* Lines */

struct line {
	char *text; /* without comment and blanks around it */
	uint64_t number;
};

typedef bool (*take_line)(struct manifest_reader *r, struct line *l, void *state);

static void each_line(struct manifest_reader *r, const char *text, size_t size, const char *comment, take_line take, void *state)
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

static bool take_pip(struct manifest_reader *r, struct line *l, void *state)
{
	char *name;

	(void)state;
	if (g_str_has_prefix(l->text, "--hash="))
		return true;
	if (*l->text == '-')
		return manifest_add(r, MANIFEST_SOURCE, "", g_strdup(l->text), l->text, l->number);
	name = manifest_first_word(l->text, " \t=<>!~;[@(\\");
	if (!*name) {
		g_free(name);
		name = g_strdup(l->text);
	}
	return manifest_add(r, MANIFEST_DEPENDENCY, "", name, l->text, l->number);
}

static bool take_go(struct manifest_reader *r, struct line *l, void *state)
{
	char *block = state; /* "require" inside of require ( ... ) */
	const char *text = l->text;
	enum manifest_part part = MANIFEST_DEPENDENCY;
	g_autofree char *verb = NULL;

	if (*block && *text == ')') {
		*block = '\0';
		return true;
	}
	verb = *block ? g_strdup(block) : manifest_first_word(text, " \t(");
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
	return manifest_add(r, part, verb, manifest_first_word(text, " \t"), text, l->number);
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

/* "end", "group :test, :development do": words that hold nothing. */
static bool is_ruby_frame(const char *text)
{
	g_auto(GStrv) words = g_strsplit_set(text, " \t,", -1);

	if (!g_str_equal(words[0], "end") && !g_str_equal(words[0], "group") && !g_str_equal(words[0], "platforms"))
		return false;
	for (char **w = words + 1; *w; w++)
		if (**w && !g_str_equal(*w, "do") && (**w != ':' || (*w)[strspn(*w, ":abcdefghijklmnopqrstuvwxyz_0123456789")]))
			return false;
	return true;
}

static bool take_ruby(struct manifest_reader *r, struct line *l, void *state)
{
	(void)state;
	if (begins_with_word(l->text, "gem") || strstr(l->text, "_dependency"))
		return manifest_add(r, MANIFEST_DEPENDENCY, "", manifest_first_string(l->text), l->text, l->number);
	if (begins_with_word(l->text, "source git git_source path github"))
		return manifest_add(r, MANIFEST_SOURCE, "", g_strdup(l->text), l->text, l->number);
	if (is_ruby_frame(l->text))
		return true;
	return manifest_add(r, MANIFEST_BUILD, "", g_strdup(l->text), l->text, l->number);
}

static bool take_gradle(struct manifest_reader *r, struct line *l, void *state)
{
	static const char configurations[] = "implementation api compile compileOnly compileOnlyApi runtimeOnly runtime testImplementation "
					     "testCompile testRuntimeOnly annotationProcessor kapt ksp classpath androidTestImplementation "
					     "debugImplementation releaseImplementation provided developmentOnly id kotlin module";
	static const char sources[] = "maven url repositories mavenCentral google jcenter mavenLocal distributionUrl distributionSha256Sum";
	g_autofree char *name = NULL;
	char *colon;

	(void)state;
	/* A line inside of a comment, but not what comes behind its end. */
	if (strspn(l->text, "{}() \t") == strlen(l->text) || (*l->text == '*' && (!strchr(l->text, '/') || g_str_equal(l->text, "*/"))))
		return true;
	if (begins_with_word(l->text, sources))
		return manifest_add(r, MANIFEST_SOURCE, "", g_strdup(l->text), l->text, l->number);
	if (!begins_with_word(l->text, configurations))
		return manifest_add(r, MANIFEST_BUILD, "", g_strdup(l->text), l->text, l->number);
	/* group:name without the version */
	name = manifest_first_string(l->text);
	colon = strchr(name, ':');
	colon = colon ? strchr(colon + 1, ':') : NULL;
	if (colon)
		*colon = '\0';
	return manifest_add(r, MANIFEST_DEPENDENCY, "", g_steal_pointer(&name), l->text, l->number);
}

GHashTable *manifest_items(enum manifest_kind kind, const char *text, size_t size)
{
	struct manifest_reader r = { .items = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, item_free) };
	char block[32] = "";
	bool ok = true;

	switch (kind) {
	case MANIFEST_NPM:
	case MANIFEST_COMPOSER:
		r.last_holds = true;
		ok = json_strings(text, size, take_json, &r);
		break;
	case MANIFEST_PIP:
		each_line(&r, text, size, "#", take_pip, NULL);
		break;
	case MANIFEST_TOML:
		ok = manifest_toml(&r, text, size);
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
		ok = manifest_xml(&r, text, size);
		break;
	default:
		break;
	}
	if (ok && !r.refused)
		return r.items;
	g_hash_table_unref(r.items);
	return NULL;
}
