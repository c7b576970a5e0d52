/* SPDX-License-Identifier: MIT */

/* What can be hidden in a manifest: nothing. Each pair differs in one thing that a package manager would fetch or run. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gate/manifest.h"

/* Items of @new that @old does not have so; -1 when it is not understood. */
static int differences(enum manifest_kind kind, const char *old, const char *new)
{
	g_autoptr(GHashTable) before = manifest_items(kind, old, strlen(old)), after = manifest_items(kind, new, strlen(new));
	GHashTableIter iter;
	void *key, *value;
	int n = 0;

	assert_non_null(before);
	if (!after)
		return -1;
	g_hash_table_iter_init(&iter, after);
	while (g_hash_table_iter_next(&iter, &key, &value)) {
		const struct manifest_item *was = g_hash_table_lookup(before, key);

		n += !was || !g_str_equal(was->spec, ((struct manifest_item *)value)->spec);
	}
	return n;
}

struct pair {
	enum manifest_kind kind;
	const char *old, *new;
};

#define POM(inner) "<project>\n<build><plugins>\n<plugin><artifactId>p</artifactId></plugin>\n</plugins></build>\n<dependencies>\n" inner "</dependencies></project>\n"
#define DEPENDENCY(inner) "<dependency>" inner "</dependency>"
#define CSPROJ(inner) "<Project>\n<ItemGroup>\n<PackageReference\n Include=\"a\" Version=\"1\" />\n" inner "</ItemGroup></Project>\n"

static void test_nothing_hides(void **state)
{
	static const struct pair pairs[] = {
		/* Lists: a bracket in a string, a comment, a comment right behind the bracket */
		{ MANIFEST_TOML, "[project]\ndependencies = [\"u[x]\",\n]\n", "[project]\ndependencies = [\"u[x]\",\n\"evil\"]\n" },
		{ MANIFEST_TOML, "[project]\ndependencies = [#]\n]\n", "[project]\ndependencies = [#]\n\"evil\"]\n" },
		{ MANIFEST_TOML, "[project]\ndependencies = [ # ]\n]\n", "[project]\ndependencies = [ # ]\n'evil'\n]\n" },
		{ MANIFEST_TOML, "[project]\ndependencies = [\"a\\\"]\",\n]\n", "[project]\ndependencies = [\"a\\\"]\",\n\"evil\"]\n" },
		{ MANIFEST_TOML, "[project]\ndependencies = [\"\"\"a\"]\"\"\"\",\n]\n", "[project]\ndependencies = [\"\"\"a\"]\"\"\"\",\n\"evil\"]\n" },
		/* A section in a string is none */
		{ MANIFEST_TOML, "[tool.poetry.dependencies]\na = {version=\"1\", markers=\"\"\"\n[x]\n\"\"\"}\n",
		  "[tool.poetry.dependencies]\na = {version=\"1\", markers=\"\"\"\n[x]\n\"\"\"}\nevil = \"1\"\n" },
		{ MANIFEST_TOML, "[dependencies]\na = ''' \\\n[x]\n'''\n", "[dependencies]\na = ''' \\\n[x]\n'''\nevil = '1'\n" },
		{ MANIFEST_TOML, "[dependencies]\na = \"\\\"\"\n", "[dependencies]\na = \"\\\"\"\nevil = '1'\n" },
		/* Keys in other spellings */
		{ MANIFEST_TOML, "[package]\nname = \"x\"\n", "package.build = \"e.rs\"\n[package]\nname = \"x\"\n" },
		{ MANIFEST_TOML, "[package]\nname = \"x\"\n", "[ \"package\" ]\n'build' = \"e.rs\"\nname = \"x\"\n" },
		{ MANIFEST_TOML, "", "[\"dependencies\"]\nevil = \"1\"\n" },
		{ MANIFEST_TOML, "", "\"depend\\u0065ncies\" = {evil = \"1\"}\n" },
		{ MANIFEST_TOML, "", "dependencies.evil = \"1\"\n" },
		{ MANIFEST_TOML, "", "[project]\nscripts.evil = \"x:y\"\n" },
		{ MANIFEST_TOML, "", "[[tool.uv.index]]\nurl = \"https://evil\"\n" },
		{ MANIFEST_TOML, "", "[tool.hatch.build.hooks.custom]\npath = \"evil.py\"\n" },
		{ MANIFEST_TOML, "", "[build-system]\nbuild-backend = \"evil\"\n" },
		/* Two of one name: the reader may take either */
		{ MANIFEST_GO, "module x\nrequire a v1\n", "module x\nrequire a v9\nrequire a v1\n" },
		{ MANIFEST_PIP, "a==1\n", "a==2\na==1\n" },
		/* XML: several on a line, blanks in tags, tags over lines, any order, CDATA */
		{ MANIFEST_XML, POM(DEPENDENCY("<artifactId>a</artifactId>")),
		  POM(DEPENDENCY("<artifactId>a</artifactId>") DEPENDENCY("<artifactId>evil</artifactId>")) },
		{ MANIFEST_XML, POM(""), POM(DEPENDENCY("<artifactId >evil</artifactId>")) },
		{ MANIFEST_XML, POM(""), POM(DEPENDENCY("<artifactId\n>\nevil\n</artifactId\n>")) },
		{ MANIFEST_XML, POM(""), POM(DEPENDENCY("<artifactId><![CDATA[evil]]></artifactId>")) },
		{ MANIFEST_XML, POM(""), POM(DEPENDENCY("<m:artifactId>evil</m:artifactId>")) },
		{ MANIFEST_XML, POM(DEPENDENCY("<groupId>g</groupId><artifactId>a</artifactId>") DEPENDENCY("<artifactId>b</artifactId><groupId>g</groupId>")),
		  POM(DEPENDENCY("<groupId>g</groupId><artifactId>a</artifactId>") DEPENDENCY("<artifactId>b</artifactId><groupId>evil</groupId>")) },
		{ MANIFEST_XML, POM(DEPENDENCY("<artifactId>a</artifactId><version>1</version>")),
		  POM(DEPENDENCY("<version>2</version><artifactId>a</artifactId>") DEPENDENCY("<artifactId>a</artifactId><version>1</version>")) },
		{ MANIFEST_XML, POM(""), "<project><build><plugin><artifactId>p</artifactId><executable>sh</executable></plugin></build></project>" },
		{ MANIFEST_XML, POM(""), "<project><build><plugin><artifactId>p</artifactId><exec executable='sh'/></plugin></build></project>" },
		{ MANIFEST_XML, POM(""), "<!DOCTYPE project [<!ENTITY x \"evil\">]>" POM("") },
		{ MANIFEST_XML, CSPROJ(""), CSPROJ("<PackageReference\n Include=\"evil\" Version=\"1\" />\n") },
		{ MANIFEST_XML, CSPROJ("<PackageReference Condition=\"c\" Include=\"a\"/>"),
		  CSPROJ("<PackageReference Condition=\"c\" Include=\"evil\"/><PackageReference Condition=\"c\" Include=\"a\"/>") },
		{ MANIFEST_XML, CSPROJ(""), CSPROJ("<a b='>'/><PackageReference Include=\"evil\"/>") },
		{ MANIFEST_XML, "<Project Sdk=\"a\"></Project>", "<Project Sdk=\"evil\"></Project>" },
		{ MANIFEST_XML, "<Project></Project>", "<Project><PreBuildEvent>evil</PreBuildEvent></Project>" },
		{ MANIFEST_XML, "<Project><Target></Target></Project>", "<Project><Target><Task a='b'/></Target></Project>" },
		{ MANIFEST_XML, POM(""), POM("<url>https://evil</url>") },
		{ MANIFEST_XML, POM(""), POM("<module>evil</module>") },
		{ MANIFEST_XML, "<c><add key=\"a\" value=\"b\"/></c>", "<c><add key=\"a\" value=\"evil\"/></c>" },
		{ MANIFEST_XML, "<p><package id=\"a\" version=\"1\"/></p>", "<p><package id=\"a\" version=\"2\"/></p>" },
		/* Programs */
		{ MANIFEST_RUBY, "group :t do\nend\n", "group :t do\nend; system('evil')\n" },
		{ MANIFEST_RUBY, "group :t do\nend\n", "group(:t) { system 'evil' }\nend\n" },
		{ MANIFEST_RUBY, "group :t do\nend\n", "group :t, *evil do\nend\n" },
		{ MANIFEST_GRADLE, "/*\n * x\n */\n", "/*\n * x\n */ 'evil'.execute()\n" },
		{ MANIFEST_GRADLE, "/*\n * x\n */\n", "/*\n * x */ evil()\n" },
		/* JSON */
		{ MANIFEST_NPM, "{\"trustedDependencies\":[]}", "{\"trustedDependencies\":[\"evil\"]}" },
		{ MANIFEST_NPM, "{\"dependencies\":{\"a\":\"1\"}}", "{\"dependencies\":{\"a\":\"1\",\"a\":\"2\"}}" },
		{ MANIFEST_NPM, "{}", "{\"workspaces\":[\"evil\"]}" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++)
		if (differences(pairs[i].kind, pairs[i].old, pairs[i].new) == 0)
			fail_msg("nothing seen in: %s", pairs[i].new);
}

static void test_harmless(void **state)
{
	static const struct pair pairs[] = {
		{ MANIFEST_TOML, "[package]\nname = \"x\"\n[dependencies]\na = \"1\"\n", "[package]\nname = \"y\" # z\nversion = \"2\"\n\n[dependencies]\n  a = \"1\"\n" },
		{ MANIFEST_TOML, "[project]\ndependencies = [\"a\", \"b[x]\"]\n", "[project]\ndescription = '''\n[dependencies]\nc = 1'''\ndependencies = [\n  'a', # a\n  'b[x]',\n]\n" },
		{ MANIFEST_XML, POM(DEPENDENCY("<groupId>g</groupId><artifactId>a</artifactId>")),
		  POM("<!-- <dependency><artifactId>no</artifactId></dependency> -->" DEPENDENCY("\n <artifactId>a</artifactId>\n <groupId>\n g </groupId>\n")) },
		{ MANIFEST_XML, "<project><version>1</version><artifactId>x</artifactId><name>n</name></project>",
		  "<project><version>2</version><artifactId>x</artifactId><name>m</name></project>" },
		{ MANIFEST_XML, CSPROJ(""), "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n" CSPROJ("<a b=\"x>y\" c='/'/><p>\n<q>z</q></p><Reference></Reference>") },
		{ MANIFEST_XML, POM(DEPENDENCY("<artifactId>a</artifactId>")), POM(DEPENDENCY("<artifactId><![CDATA[a]]></artifactId>")) },
		{ MANIFEST_TOML, "[dependencies]\na = \"1\"\n", "# [x]\n[dependencies]\n# evil = \"1\"\na = \"1\" # \"2\"\n" },
		{ MANIFEST_PIP, "a==1\n", "a==1 # \n  --hash=sha256:abc\n# evil\n" },
		{ MANIFEST_GO, "module x\nrequire a v1\n", "module y\ngo 1.22\nretract v1\nrequire (\n\ta v1 // indirect\n)\n" },
		{ MANIFEST_RUBY, "gem 'a'\n", "group :a, :b do\n  gem 'a'\nend\n" },
		{ MANIFEST_GRADLE, "plugins {\n}\n", "/*\n * a\n */\nplugins {\n}\n" },
		{ MANIFEST_NPM, "{\"dependencies\":{\"a\":\"1\"}}", "{\"dependencies\":{\"a\":\"0\",\"a\":\"1\"},\"name\":\"x\"}" },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(pairs); i++) {
		int n = differences(pairs[i].kind, pairs[i].old, pairs[i].new);

		/* The comment of a gradle file is taken for code, as it may be. */
		if (n != (pairs[i].kind == MANIFEST_GRADLE ? 1 : 0))
			fail_msg("%d seen in: %s", n, pairs[i].new);
	}
}

static void test_lines_and_names(void **state)
{
	static const char toml[] = "[x]\na = '''\n\n'''\n[dependencies] # c\n\nb = [\n 'c>=1',\n]\n", xml[] = "<a>\n<!--\n-->\n<dependency\n>\n<artifactId>x</artifactId>\n"
																 "<version>3</version></dependency></a>";
	g_autoptr(GHashTable) a = manifest_items(MANIFEST_TOML, toml, strlen(toml)), b = manifest_items(MANIFEST_XML, xml, strlen(xml));
	const struct manifest_item *c = g_hash_table_lookup(a, "0 dependencies.b c"), *d = g_hash_table_lookup(b, "0 dependency :x");

	(void)state;
	assert_int_equal(g_hash_table_size(a), 1);
	assert_non_null(c);
	assert_int_equal(c->line, 8);
	assert_string_equal(c->spec, "c>=1");
	assert_int_equal(g_hash_table_size(b), 1);
	assert_non_null(d);
	assert_int_equal(d->line, 4);
	assert_string_equal(d->spec, "3");
}

static enum manifest_part part_of(enum manifest_kind kind, const char *text)
{
	g_autoptr(GHashTable) items = manifest_items(kind, text, strlen(text));
	GHashTableIter iter;
	void *value = NULL;

	assert_non_null(items);
	assert_int_equal(g_hash_table_size(items), 1);
	g_hash_table_iter_init(&iter, items);
	g_hash_table_iter_next(&iter, NULL, &value);
	return ((struct manifest_item *)value)->part;
}

static void test_parts(void **state)
{
	(void)state;
	assert_int_equal(part_of(MANIFEST_TOML, "[[tool.uv.index]]\nurl = 'x'\n"), MANIFEST_SOURCE);
	assert_int_equal(part_of(MANIFEST_TOML, "[patch.crates-io]\na = 'x'\n"), MANIFEST_SOURCE);
	assert_int_equal(part_of(MANIFEST_TOML, "[project.scripts]\na = 'x'\n"), MANIFEST_SCRIPT);
	assert_int_equal(part_of(MANIFEST_TOML, "[package]\nbuild = 'x'\n"), MANIFEST_BUILD);
	assert_int_equal(part_of(MANIFEST_TOML, "[dependencies]\nsource-map = 'x'\n"), MANIFEST_DEPENDENCY);
	assert_int_equal(part_of(MANIFEST_TOML, "\xef\xbb\xbf[package]\nbuild = 'x'\n"), MANIFEST_BUILD);
	assert_int_equal(part_of(MANIFEST_COMPOSER, "{\"scripts\":{\"post-install-cmd\":\"x\"}}"), MANIFEST_INSTALL);
	assert_int_equal(part_of(MANIFEST_COMPOSER, "{\"scripts\":{\"post-package-install\":\"x\"}}"), MANIFEST_INSTALL);
	assert_int_equal(part_of(MANIFEST_COMPOSER, "{\"scripts\":{\"pre-package-update\":\"x\"}}"), MANIFEST_INSTALL);
	assert_int_equal(part_of(MANIFEST_COMPOSER, "{\"scripts\":{\"test\":\"x\"}}"), MANIFEST_SCRIPT);
	assert_int_equal(part_of(MANIFEST_GRADLE, "maven { url 'x' }"), MANIFEST_SOURCE);
	assert_int_equal(part_of(MANIFEST_GRADLE, "implementation 'g:a:1'"), MANIFEST_DEPENDENCY);
	assert_int_equal(part_of(MANIFEST_GRADLE, "exec()"), MANIFEST_BUILD);
	assert_int_equal(part_of(MANIFEST_GO, "replace a => b v1"), MANIFEST_SOURCE);
	assert_int_equal(part_of(MANIFEST_PIP, "--index-url x"), MANIFEST_SOURCE);
	assert_int_equal(part_of(MANIFEST_XML, "<c><add value='x'/></c>"), MANIFEST_SOURCE);
	assert_int_equal(part_of(MANIFEST_XML, "<c><Exec Command='x'/></c>"), MANIFEST_BUILD);
	assert_int_equal(part_of(MANIFEST_XML, "<plugin><executable>x</executable></plugin>"), MANIFEST_BUILD);
	assert_int_equal(part_of(MANIFEST_XML, "<package id='x'/>"), MANIFEST_DEPENDENCY);
}

/* A long name that each item repeats would cost its length times their number. */
static void test_long_names(void **state)
{
	g_autofree char *name = g_strnfill(2 * 1024 * 1024, 'x');
	GString *json = g_string_new(NULL), *toml = g_string_new(NULL), *xml = g_string_new(NULL);
	GHashTable *items;

	(void)state;
	g_string_printf(json, "{\"dependencies\":{\"%s\":{\"a\":\"\"", name);
	g_string_printf(toml, "[dependencies.%s]\n", name);
	g_string_printf(xml, "<a><groupId>%s</groupId>", name);
	for (int i = 0; i < 90000; i++) {
		g_string_append_printf(json, ",\"%d\":\"1\"", i);
		g_string_append_printf(toml, "a%d=1\n", i);
	}
	g_string_append(json, "}}}");
	g_string_append(xml, "<artifactId>a</artifactId></a>");
	items = manifest_items(MANIFEST_NPM, json->str, json->len);
	assert_null(items);
	assert_null(manifest_items(MANIFEST_TOML, toml->str, toml->len));
	assert_null(manifest_items(MANIFEST_XML, xml->str, xml->len));
	g_string_free(json, TRUE);
	g_string_free(toml, TRUE);
	g_string_free(xml, TRUE);
}

static void test_not_understood(void **state)
{
	static const struct pair texts[] = {
		{ MANIFEST_TOML, "a = [", NULL }, { MANIFEST_XML, "<a>", NULL }, { MANIFEST_XML, "<a></b>", NULL }, { MANIFEST_XML, "</a>", NULL },
		{ MANIFEST_XML, "<a", NULL }, { MANIFEST_XML, "<!-- ", NULL }, { MANIFEST_XML, "<a><![CDATA[</a>", NULL }, { MANIFEST_XML, "<!DOCTYPE x>", NULL },
		{ MANIFEST_XML, "<?xml", NULL },
	};
	GString *deep = g_string_new(NULL);

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++)
		if (manifest_items(texts[i].kind, texts[i].old, strlen(texts[i].old)))
			fail_msg("taken: %s", texts[i].old);
	assert_null(manifest_items(MANIFEST_XML, "<a>\0</a>", 8));
	for (int i = 0; i < 100000; i++)
		g_string_append(deep, "<a>");
	for (int i = 0; i < 100000; i++)
		g_string_append(deep, "</a>");
	assert_null(manifest_items(MANIFEST_XML, deep->str, deep->len));
	g_string_free(deep, TRUE);
}

static void test_kinds(void **state)
{
	static const struct {
		const char *path;
		enum manifest_kind kind;
	} rows[] = {
		{ "requirements/base.txt", MANIFEST_PIP }, { "a/requirements/dev/x.in", MANIFEST_PIP }, { "requirements/README.md", MANIFEST_NONE },
		{ "requirements", MANIFEST_NONE }, { "docs/base.txt", MANIFEST_NONE }, { "a/.mvn/extensions.xml", MANIFEST_OTHER },
		{ "gradle/wrapper/gradle-wrapper.jar", MANIFEST_CODE }, { "setup.cfg", MANIFEST_OTHER }, { "pnpm-workspace.yaml", MANIFEST_OTHER },
		{ "x.podspec", MANIFEST_OTHER }, { "Package.json", MANIFEST_NPM }, { "dev-requirements.txt", MANIFEST_PIP },
	};

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (manifest_kind_of(rows[i].path) != rows[i].kind)
			fail_msg("%s is %d, not %d", rows[i].path, manifest_kind_of(rows[i].path), rows[i].kind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_hides), cmocka_unit_test(test_harmless),	  cmocka_unit_test(test_lines_and_names),
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_long_names),    cmocka_unit_test(test_not_understood), cmocka_unit_test(test_kinds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
