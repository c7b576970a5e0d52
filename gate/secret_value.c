/* SPDX-License-Identifier: MIT */
#include "gate/secret_value.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define VALUE_MIN 8
#define VALUE_MAX 256 /* longer ones are sealed, encrypted or no secrets; keys in PEM have their own rule */
#define WORDS_MAX 16
#define WORD_SIZE 32

/* Names */

/* A name cut into lower-case words at separators and humps; digits go with the word in front of them. */
struct words {
	char word[WORDS_MAX][WORD_SIZE];
	unsigned n;
};

static bool starts_word(const char *name, size_t i, size_t size)
{
	if (i == 0 || !g_ascii_isalnum(name[i - 1]))
		return true;
	if (!g_ascii_isupper(name[i]))
		return false;
	return !g_ascii_isupper(name[i - 1]) || (i + 1 < size && g_ascii_islower(name[i + 1]) && !(name[i + 1] == 's' && i + 2 == size));
}

static void split_words(const char *name, size_t size, struct words *w)
{
	size_t len = 0;

	w->n = 0;
	for (size_t i = 0; i < size; i++) {
		if (!g_ascii_isalnum(name[i]))
			continue;
		if (starts_word(name, i, size)) {
			if (w->n == WORDS_MAX) {
				memmove(w->word[0], w->word[1], sizeof(w->word) - sizeof(w->word[0]));
				w->n--;
			}
			w->n++;
			len = 0;
		}
		if (len < WORD_SIZE - 1)
			w->word[w->n - 1][len++] = g_ascii_tolower(name[i]);
		w->word[w->n - 1][len] = '\0';
	}
}

static void strip_digits(char *word)
{
	size_t len = strlen(word);

	while (len > 0 && g_ascii_isdigit(word[len - 1]))
		word[--len] = '\0';
}

static bool is_one_of(const char *word, const char *const *list)
{
	return *word && g_strv_contains(list, word);
}

static const char *const password_words[] = { "password", "passwd", "passwort", "pwd", "pass", "passphrase", "passcode", "pw", NULL };
static const char *const token_words[] = { "token", "tokens", "secret", "secrets", "apikey", "apikeys", "secretkey", "accesskey",
					   "privatekey", "authkey", "authtoken", "accesstoken", "apisecret", "apitoken", "clientsecret",
					   "credential", "credentials", "creds", "cred", "psk", "bearer", "masterkey", "appsecret",
					   "signingkey", "encryptionkey", NULL };
/* In front of "key": the others are of maps, caches, tables and keyboards. */
static const char *const key_words[] = { "api", "secret", "access", "private", "auth", "encryption", "encrypt", "crypt", "signing", "sign",
					 "master", "service", "account", "storage", "admin", "hmac", "aes", "jwt", "session", "consumer",
					 "app", "application", "client", "deploy", "license", "crypto", "cipher", "webhook", "integration",
					 "shared", "subscription", "functions", "server", "root", "write", "ssh", "gpg", "rsa", NULL };
/* Behind a secret's name: then it is the name of something about the secret. */
static const char *const about_words[] = {
	"name", "names", "id", "ids", "type", "kind", "path", "file", "filename", "dir", "url", "uri", "endpoint", "host", "port", "header",
	"headers", "field", "fields", "param", "params", "column", "label", "title", "text", "hint", "message", "msg", "error", "errors",
	"prompt", "placeholder", "regex", "regexp", "pattern", "format", "policy", "rules", "rule", "algorithm", "algo", "hash", "hasher",
	"hashes", "digest", "checksum", "length", "len", "size", "count", "limit", "min", "max", "ttl", "expiry", "expires", "expiration",
	"timeout", "time", "date", "age", "version", "generator", "provider", "manager", "store", "service", "handler", "helper", "class",
	"ref", "refs", "reference", "arn", "env", "var", "variable", "option", "prefix", "suffix", "separator", "scope", "scopes", "strategy",
	"validator", "validation", "strength", "reset", "confirm", "confirmation", "encoder", "encoding", "usage", "enabled", "required",
	"status", "state", "index", "location", "region", "vault", "link", "template", "mode", "schema", "source", "selector", "issuer",
	"audience", "budget", "metadata", "description", "comment", "test", "icon", "button", "input", "form", "view", "page", "list",
	"map", "set", "group", "role", "user", "username", "owner", "rotation", "salt", "iv", "nonce", "method", "function", "callback",
	"factory", "builder", "parser", "lexer", "stream", "kinds", "types", "spec", "config", "alias", "cache", "store_path", "mount",
	"volume", "agent", "exchange", "request", "response", "verifier", "fingerprint", "thumbprint", "count_limit", NULL
};
/* In front of "token": counters and the like, or made to be public. */
static const char *const harmless_words[] = { "public", "publishable", "next", "page", "prev", "previous", "continuation", "pagination",
					      "cancel", "cancellation", "sync", "start", "end", "eos", "bos", "pad", "unk", "stop", "mask",
					      "sep", "cls", "csrf", "xsrf", "design", "color", "css", "js", "special", "num", "max", "min",
					      "change", "resume", "cursor", "no", "is", "has", "hide", "show", "enable", "disable", NULL };

static bool ends_with_stem(const char *word, const char *const *stems)
{
	for (; *stems; stems++)
		if (strlen(*stems) >= 5 && g_str_has_suffix(word, *stems))
			return true;
	return false;
}

static enum secret_kind word_kind(const struct words *w, unsigned i)
{
	static const char *const stems[] = { "token", "secret", "apikey", "secretkey", "accesskey", NULL };
	const char *word = w->word[i], *before = i > 0 ? w->word[i - 1] : "";

	if (is_one_of(word, password_words) || ends_with_stem(word, password_words))
		return is_one_of(before, harmless_words) ? SECRET_NONE : SECRET_PASSWORD;
	if (is_one_of(word, token_words) || ends_with_stem(word, stems))
		return is_one_of(before, harmless_words) ? SECRET_NONE : SECRET_TOKEN;
	if (g_str_equal(word, "key") || g_str_equal(word, "keys"))
		return is_one_of(before, key_words) ? SECRET_TOKEN : SECRET_NONE;
	if (i + 1 == w->n && (g_str_equal(word, "auth") || g_str_equal(word, "authorization")))
		return SECRET_AUTH;
	return SECRET_NONE;
}

/* "PublicKeyToken" */
static bool is_public(const struct words *w, unsigned before)
{
	for (unsigned i = 0; i < before; i++)
		if (g_str_equal(w->word[i], "public"))
			return true;
	return false;
}

enum secret_kind secret_name_kind(const char *name, size_t size)
{
	static const char *const neutral[] = { "value", "prod", "production", "dev", "development", "staging", "stage", "live", "base", "b",
					       "primary", "secondary", "old", "new", "default", "str", "string", "plain", "plaintext", "hex",
					       "data", "raw", "current", "main", "local", "v", "const", NULL };
	struct words w;
	bool unknown = false;

	split_words(name, size, &w);
	for (unsigned i = 0; i < w.n; i++)
		strip_digits(w.word[i]);
	for (unsigned i = w.n; i-- > 0;) {
		enum secret_kind kind = word_kind(&w, i);

		if (kind != SECRET_NONE)
			return is_public(&w, i) ? SECRET_NONE : unknown ? SECRET_STRICT : kind;
		if (is_one_of(w.word[i], about_words))
			return SECRET_NONE;
		unknown = unknown || (*w.word[i] && !is_one_of(w.word[i], neutral));
	}
	return SECRET_NONE;
}

/* Values */

double secret_entropy(const char *value, size_t size)
{
	unsigned counts[256] = { 0 };
	double bits = 0;

	for (size_t i = 0; i < size; i++)
		counts[(uint8_t)value[i]]++;
	for (unsigned i = 0; i < 256; i++)
		if (counts[i])
			bits += counts[i] * log2((double)size / counts[i]);
	return size ? bits / size : 0;
}

struct classes {
	unsigned lower, upper, digit, other, space, high;
};

static struct classes count_classes(const char *value, size_t size)
{
	struct classes c = { 0 };

	for (size_t i = 0; i < size; i++) {
		uint8_t b = (uint8_t)value[i];

		if (g_ascii_islower(b))
			c.lower++;
		else if (g_ascii_isupper(b))
			c.upper++;
		else if (g_ascii_isdigit(b))
			c.digit++;
		else if (b <= ' ' || b == 0x7f)
			c.space++;
		else if (b >= 0x80)
			c.high++;
		else
			c.other++;
	}
	return c;
}

static bool contains_word(const char *lower, const char *const *list)
{
	for (; *list; list++)
		if (strstr(lower, *list))
			return true;
	return false;
}

/* Eight characters in a row that are the same, or each the one after the last ("12345678", "abcdefgh"). */
static bool has_run(const char *value, size_t size)
{
	size_t same = 1, up = 1, down = 1;

	for (size_t i = 1; i < size; i++) {
		int step = (uint8_t)value[i] - (uint8_t)value[i - 1];

		same = step == 0 ? same + 1 : 1;
		up = step == 1 ? up + 1 : 1;
		down = step == -1 ? down + 1 : 1;
		if (same >= 8 || up >= 8 || down >= 8)
			return true;
	}
	return false;
}

/* Both are meant for values up to VALUE_MAX; of longer ones the beginning is looked at. */
static void lower_copy(const char *value, size_t size, char ret[VALUE_MAX + 1])
{
	size = MIN(size, VALUE_MAX);
	for (size_t i = 0; i < size; i++)
		ret[i] = value[i] ? g_ascii_tolower(value[i]) : ' ';
	ret[size] = '\0';
}

bool secret_value_is_placeholder(const char *value, size_t size)
{
	static const char *const words[] = { "example", "xxxxx", "changeme", "change_me", "change-me", "placeholder", "dummy", "redacted",
					     "replace", "insert", "sample", "your_", "your-", "yourtoken", "yourkey", "yoursecret", "****",
					     "....", "____", "----", "notareal", "not-a-real", "not_a_real", "notreal", "not-real", "todo_",
					     "fixme", NULL };
	char lower[VALUE_MAX + 1];

	lower_copy(value, size, lower);
	return contains_word(lower, words) || has_run(value, MIN(size, VALUE_MAX));
}

/* What people write where a secret will be, and in tests. Too short to be looked for in what a machine made. */
static bool is_weak(const char *value, size_t size)
{
	static const char *const words[] = { "password", "passwd", "passw0rd", "p4ssw0rd", "p@ssw0rd", "pa$$w", "secret", "s3cret", "s3cr3t",
					     "s0mesecret", "token", "apikey", "api-key", "api_key", "your", "test", "mock", "fake", "demo",
					     "foo", "bar", "baz", "lorem", "qwert", "asdf", "abc123", "123abc", "1234", "letmein", "hunter2",
					     "default", "none", "null", "undefined", "string", "value", "some", "admin", "root", "hello",
					     "postgres", "mysql", "redis", "mongo", "rabbit", "guest", "local", "develop", "correct-horse",
					     "correcthorse", "user", "swordfish", "opensesame", "open sesame", NULL };
	/* Long enough that chance does not make them: what says of itself that it is a secret is a name. */
	static const char *const names[] = { "password", "passwd", "secret", "token", "credential", "privatekey", "apikey", NULL };
	char lower[VALUE_MAX + 1];

	lower_copy(value, size, lower);
	return contains_word(lower, size > 24 ? names : words);
}

/* Where the secret is, or would be computed, or stands encrypted. */
static bool is_reference(const char *value, size_t size)
{
	static const char *const starts[] = { "/", "./", "../", "~/", "arn:", "vault:", "ref+", "ref:", "enc[", "enc(", "{", "<", "[", "$", "%",
					      "file:", "env:", "env.", "sha1", "sha2", "sha3", "sha5", "md5", "pbkdf2", "bcrypt", "scrypt",
					      "argon2", "$1$", "$2a$", "$2b$",
					      "$2y$", "$5$", "$6$", "$argon2", "$pbkdf2", "$scrypt", "$apr1$", "{ssha", "process.", "os.", "self.", "this.", "config.", "settings.", "secrets.", "var.",
					      "local.", "module.", "data.", "import.", "projects/", "op://", "ssm:", "kms:", "aws:", "gcp:",
					      "urn:", "did:", "rgba", "#", "@", "!", "*", "&", "base64:", "data:", "h1:", "h2:", "ssh-", NULL };
	static const char *const inside[] = { "${", "{{", "$(", "%(", "<%", "://", "#{", "{0}", "{}", "->", "::", "()", "=>", "&&", "||",
					      ".env", ".get", ".pem", ".json", ".yaml", ".yml", ".txt", ".key", ".crt",
					      "[a-z", "[0-9", "[a-f", "[^", "\\d{", "\\w{", NULL };
	char lower[VALUE_MAX + 1];

	lower_copy(value, size, lower);
	for (const char *const *s = starts; *s; s++)
		/* A password may begin with a sign; what comes behind one sign only is a name or a path. */
		if (g_str_has_prefix(lower, *s) && (strlen(*s) > 1 || strspn(lower + 1, "abcdefghijklmnopqrstuvwxyz_{}()<>%.-/\"'$[] ") == strlen(lower + 1)))
			return true;
	return contains_word(lower, inside);
}

/* "2024-01-15T10:30:00Z", also with blanks, fractions, an offset. */
static bool is_timestamp(const char *value, size_t size)
{
	static const char form[] = "dddd-dd-ddTdd:dd";

	if (size < strlen(form))
		return false;
	for (size_t i = 0; i < strlen(form); i++)
		if (form[i] == 'd' ? !g_ascii_isdigit(value[i]) : form[i] == 'T' ? !strchr("Tt _", value[i]) : value[i] != form[i])
			return false;
	for (size_t i = strlen(form); i < size; i++)
		if (!g_ascii_isdigit(value[i]) && !strchr(":.+-,Zz ", value[i]))
			return false;
	return true;
}

/* "b.ownPass": names with dots between them, which is code. */
static bool is_member(const char *value, size_t size)
{
	bool dot = false;

	for (size_t i = 0; i < size; i++) {
		if (value[i] == '.' && i > 0 && i + 1 < size && value[i - 1] != '.')
			dot = true;
		else if (!g_ascii_isalpha(value[i]) && value[i] != '_' && value[i] != '$')
			return false;
	}
	return dot;
}

static bool is_uuid(const char *value, size_t size)
{
	if (size != 36)
		return false;
	for (size_t i = 0; i < size; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? value[i] != '-' : !g_ascii_isxdigit(value[i]))
			return false;
	}
	return true;
}

/*
 * Made of words: runs of letters (a capital may begin one) are three long on average, have their share of vowels and no heaps of
 * consonants, and there are few digits. Chance changes between its kinds of characters about every second time.
 */
static bool is_wordlike(const char *value, size_t size)
{
	unsigned letters = 0, runs = 0, digits = 0, vowels = 0, consonants = 0, heap = 0;
	char last = 0;

	for (size_t i = 0; i < size; i++) {
		char c = value[i], l = g_ascii_tolower(c);

		if (g_ascii_isalpha(c)) {
			bool vowel = strchr("aeiouy", l) != NULL;

			letters++;
			runs += !g_ascii_isalpha(last) || (g_ascii_isupper(c) && g_ascii_islower(last));
			runs += i >= 2 && g_ascii_islower(c) && g_ascii_isupper(last) && g_ascii_isupper(value[i - 2]);
			vowels += vowel;
			consonants = vowel || !g_ascii_isalpha(last) ? !vowel : consonants + 1;
			heap = MAX(heap, consonants);
		}
		digits += g_ascii_isdigit(c);
		last = c;
	}
	if (runs == 0)
		return false;
	return letters >= runs * 3 && heap <= 5 && digits * 5 <= size && vowels * 5 >= letters && vowels * 3 <= letters * 2;
}

/* "ctrl+shift+down", "2024-01-01T00:00:00Z", "1.2.3-beta", "10.0.0.1:8080" */
static bool is_mostly_separators(const struct classes *c, size_t size)
{
	return c->lower + c->upper + c->digit < size / 2;
}

bool secret_value_is_plausible(const char *value, size_t size, enum secret_kind kind)
{
	struct classes c;
	double entropy;
	unsigned kinds;

	if (size < VALUE_MIN || size > VALUE_MAX || kind == SECRET_NONE)
		return false;
	c = count_classes(value, size);
	kinds = (c.lower > 0) + (c.upper > 0) + (c.digit > 0) + (c.other > 0);
	if (c.space || c.high || kinds < 2 || c.lower + c.upper == 0 || is_mostly_separators(&c, size))
		return false;
	if (is_uuid(value, size) || is_timestamp(value, size) || is_member(value, size) || secret_value_is_placeholder(value, size) || is_weak(value, size) || is_reference(value, size) ||
	    is_wordlike(value, size))
		return false;
	entropy = secret_entropy(value, size);
	switch (kind) {
	case SECRET_PASSWORD:
		return (kinds >= 3 && entropy >= 2.5) || (size >= 10 && c.digit > 0 && entropy >= 3);
	case SECRET_AUTH:
	case SECRET_TOKEN:
		return size >= 16 && ((c.digit > 0 && entropy >= 3) || (size >= 24 && entropy >= 3.7));
	default:
		return size >= 20 && c.digit > 1 && entropy >= 3.5;
	}
}

bool secret_password_is_plausible(const char *user, size_t user_size, const char *value, size_t size)
{
	struct classes c = count_classes(value, size);
	unsigned kinds = (c.lower > 0) + (c.upper > 0) + (c.digit > 0) + (c.other > 0);

	if (size < 6 || size > VALUE_MAX || c.space || c.high || (size == user_size && memcmp(user, value, size) == 0))
		return false;
	if (secret_value_is_placeholder(value, size) || is_weak(value, size) || is_reference(value, size) || is_wordlike(value, size))
		return false;
	return (kinds >= 2 || size >= 10) && secret_entropy(value, size) >= 2;
}

bool secret_basic_is_plausible(const char *value, size_t size)
{
	g_autofree char *copy = NULL;
	g_autofree guchar *plain = NULL;
	const char *text, *colon;
	gsize n;

	if (size < 12 || size > VALUE_MAX * 2)
		return false;
	copy = g_strndup(value, size);
	plain = g_base64_decode(copy, &n);
	text = (const char *)plain;
	for (gsize i = 0; i < n; i++)
		if (!g_ascii_isprint(text[i]))
			return false;
	colon = n ? memchr(text, ':', n) : NULL;
	return colon && colon > text && secret_password_is_plausible(text, colon - text, colon + 1, n - (colon + 1 - text));
}
