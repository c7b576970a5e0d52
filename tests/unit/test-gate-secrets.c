/* SPDX-License-Identifier: MIT */

/*
 * How many fake secrets the scanner finds, and how many harmless things it takes for secrets
 *
 * No secret lies in this file: each is put together at run time from a format and chance. Every sample is tried in many rounds with other
 * bytes; the figures are printed, and what was wrong by name.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "gate/scan.h"
#include "gate/secret_scan.h"

#define ROUNDS 40
#define WRONG_MAX (ROUNDS / 4) /* of one sample: chance makes passwords that look like words, or hashes that look like keys */

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"
#define HEX DIGIT "abcdef"
#define ALNUM UPPER LOWER DIGIT
#define URL64 ALNUM "-_"
#define B64 ALNUM "+/"
#define PRINT ALNUM "!#%*_-+.?"

/*
 * Texts are templates: {h32} are 32 hex digits, {a} alphanumeric, {A} upper case and digits, {l} lower case and digits, {u} base64url,
 * {b} base64, {d} digits, {p} a password's characters with one of each kind, {B} base64 of user:password, {U} a UUID, {k} lines of a
 * key; and {} is nothing at all, which keeps this file free of what it generates. All else stands for itself.
 */
static char pick(GRand *r, const char *set)
{
	return set[g_rand_int_range(r, 0, (gint)strlen(set))];
}

static void put_many(GString *s, GRand *r, const char *set, int n)
{
	for (int i = 0; i < n; i++)
		g_string_append_c(s, pick(r, set));
}

/* A password has of everything, or it would be no password; chance alone leaves a kind out at times. */
static void put_password(GString *s, GRand *r, int n)
{
	g_string_append_c(s, pick(r, UPPER));
	g_string_append_c(s, pick(r, DIGIT));
	g_string_append_c(s, pick(r, LOWER));
	put_many(s, r, PRINT, n - 4);
	g_string_append_c(s, pick(r, LOWER));
}

static void put_login(GString *s, GRand *r, int n)
{
	GString *login = g_string_new("deployer:");
	g_autofree char *text = NULL;

	put_password(login, r, n);
	text = g_base64_encode((const guchar *)login->str, login->len);
	g_string_append(s, text);
	g_string_free(login, TRUE);
}

static void put_uuid(GString *s, GRand *r)
{
	static const int groups[] = { 8, 4, 4, 4, 12 };

	for (unsigned i = 0; i < G_N_ELEMENTS(groups); i++) {
		if (i)
			g_string_append_c(s, '-');
		put_many(s, r, HEX, groups[i]);
	}
}

static void put_key_body(GString *s, GRand *r, int lines)
{
	for (int i = 0; i < lines; i++) {
		put_many(s, r, B64, 64);
		g_string_append_c(s, '\n');
	}
}

static void put(GString *s, GRand *r, char what, int n)
{
	switch (what) {
	case 'h':
		put_many(s, r, HEX, n);
		break;
	case 'a':
		put_many(s, r, ALNUM, n);
		break;
	case 'A':
		put_many(s, r, UPPER "234567", n);
		break;
	case 'l':
		put_many(s, r, LOWER DIGIT, n);
		break;
	case 'u':
		put_many(s, r, URL64, n);
		break;
	case 'b':
		put_many(s, r, B64, n);
		break;
	case 'd':
		put_many(s, r, DIGIT, n);
		break;
	case 'p':
		put_password(s, r, n);
		break;
	case 'B':
		put_login(s, r, n);
		break;
	case 'U':
		put_uuid(s, r);
		break;
	case 'k':
		put_key_body(s, r, n);
		break;
	default:
		break;
	}
}

static GString *expand(const char *template, GRand *r)
{
	GString *s = g_string_new(NULL);

	for (const char *p = template; *p; p++) {
		const char *end = *p == '{' ? strchr(p, '}') : NULL;

		if (!end || (end > p + 1 && !(strchr("haAlubdpBUk", p[1]) && strspn(p + 2, DIGIT) == (size_t)(end - p - 2)))) {
			g_string_append_c(s, *p);
			continue;
		}
		if (end > p + 1)
			put(s, r, p[1], (int)g_ascii_strtoll(p + 2, NULL, 10));
		p = end;
	}
	return s;
}

/* Scanning one text */

struct result {
	unsigned found;
	char *rule;
	char *excerpt;
	uint64_t line, start, end;
};

static bool on_found(const struct scan_match *m, void *user)
{
	struct result *r = user;

	if (!r->found++) {
		r->rule = g_strdup(m->rule);
		r->excerpt = g_strdup(m->excerpt);
		r->line = m->line;
		r->start = m->start;
		r->end = m->end;
	}
	return true;
}

static struct result scan_bytes(const void *data, size_t size, size_t step)
{
	struct result r = { 0 };
	g_autoptr(scan_t) s = scan_new(secret_scan_look, on_found, &r);

	for (size_t at = 0; at < size; at += step)
		scan_feed(s, (const char *)data + at, MIN(step, size - at));
	scan_finish(s);
	return r;
}

static void result_clear(struct result *r)
{
	g_free(r->rule);
	g_free(r->excerpt);
}

/* The samples */

struct sample {
	const char *name;
	const char *text;
};

static const struct sample secrets[] = {
	/* Provider formats, in the places where they turn up */
	{ "aws id, python", "client = boto3.client('s3', aws_access_key_id='AK{}IA{A16}')\n" },
	{ "aws id, comment", "# old key was AK{}IA{A16}, rotate it\n" },
	{ "aws temporary id", "{\"AccessKeyId\": \"AS{}IA{A16}\"}\n" },
	{ "aws secret, ini", "[default]\naws_secret_access_key = {b40}\n" },
	{ "aws secret, shell", "export AWS_SECRET_ACCESS_KEY={b40}\n" },
	{ "aws session token", "aws_session_token={b180}\n" },
	{ "github, url", "git clone https://gh{}p_{a36}@github.com/a/b\n" },
	{ "github, yaml", "      token: gh{}s_{a36}\n" },
	{ "github, escaped", "{\"env\":\"A=1\\ngh{}o_{a36}\\nB=2\"}\n" },
	{ "github, fine-grained", "GITHUB_TOKEN=github_{}pat_{a22}_{a59}\n" },
	{ "gitlab", "curl --header \"PRIVATE-TOKEN: gl{}pat-{u20}\" https://gitlab.com/api\n" },
	{ "gitlab runner", "register(\"gl{}rt-{u20}\")\n" },
	{ "slack bot", "const slack = new Slack('xo{}xb-{d12}-{d12}-{a24}')\n" },
	{ "slack user", "xo{}xp-{d12}-{d12}-{d12}-{h32}\n" },
	{ "slack webhook", "url: https://hooks.slack{}.com/services/T{A8}/B{A8}/{a24}\n" },
	{ "stripe", "Stripe.api_key = \"sk_{}live_{a24}\"\n" },
	{ "stripe restricted", "key=rk_{}live_{a99}\n" },
	{ "stripe webhook", "endpoint_secret = 'wh{}sec_{a32}'\n" },
	{ "google api", "<script src=\"https://maps.googleapis.com/maps/api/js?key=AI{}za{u35}\"></script>\n" },
	{ "google oauth secret", "{\"client_id\":\"x.apps.googleusercontent.com\",\"client_secret\":\"GOC{}SPX-{u28}\"}\n" },
	{ "anthropic", "ANTHROPIC_API_KEY=sk-{}ant-api03-{u93}AA\n" },
	{ "openai project", "openai.api_key = \"sk-{}proj-{u120}\"\n" },
	{ "openai", "OPENAI_KEY: sk-{}{a20}T3Blbk{}FJ{a20}\n" },
	{ "hugging face", "login(token=\"hf{}_{a34}\")\n" },
	{ "npm", "//registry.npmjs.org/:_authToken=np{}m_{a36}\n" },
	{ "pypi", "password = py{}pi-AgEIcHlwaS5vcmc{u120}\n" },
	{ "docker", "docker login -u me -p dck{}r_pat_{u27}\n" },
	{ "digitalocean", "do_token = \"do{}p_v1_{h64}\"\n" },
	{ "sendgrid", "SG{}.{u22}.{u43}\n" },
	{ "twilio", "TWILIO_KEY=SK{}{h32}\n" },
	{ "mailgun", "api: key{}-{h32}\n" },
	{ "mailchimp", "mc = Client('{h32}{}-us12')\n" },
	{ "telegram", "bot = TeleBot('{d10}{}:AA{u33}')\n" },
	{ "discord webhook", "https://discord{}.com/api/webhooks/{d18}/{u68}\n" },
	{ "shopify", "X-Shopify-Access-Token: shp{}at_{h32}\n" },
	{ "square", "square: sq0{}atp-{u22}\n" },
	{ "azure storage", "DefaultEndpointsProtocol=https;AccountName=x;Account{}Key={b86}==;EndpointSuffix=core.windows.net\n" },
	{ "azure client secret", "AZURE_SECRET: \"{a3}8{}Q~{u34}\"\n" },
	{ "databricks", "host token da{}pi{h32}\n" },
	{ "grafana", "Authorization: Bearer gl{}sa_{a32}_{h8}\n" },
	{ "vault", "VAULT_TOKEN=hv{}s.{u90}\n" },
	{ "terraform cloud", "credentials \"app.terraform.io\" { token = \"{a14}{}.atlasv1.{u67}\" }\n" },
	{ "linear", "lin_{}api_{a40}\n" },
	{ "postman", "PM{}AK-{h24}-{h34}\n" },
	{ "new relic", "license: NR{}AK-{A27}\n" },
	{ "age", "AGE-SECRET{}-KEY-1{A58}\n" },
	/* Keys and tokens with a form */
	{ "pem, rsa", "-----BEGIN RSA PRI{}VATE KEY-----\n{k8}-----END RSA PRIVATE KEY-----\n" },
	{ "pem, pkcs8 in go", "var key = `-----BEGIN PRI{}VATE KEY-----\n{k8}-----END PRIVATE KEY-----`\n" },
	{ "pem, openssh", "-----BEGIN OPENSSH PRI{}VATE KEY-----\n{k6}-----END OPENSSH PRIVATE KEY-----\n" },
	{ "pem, encrypted", "-----BEGIN RSA PRI{}VATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{h32}\n\n{k6}-----END\n" },
	{ "pem, one line of json", "{\"private_key\":\"-----BEGIN PRI{}VATE KEY-----\\n{b64}\\n{b64}\\n{b64}\\n-----END PRIVATE KEY-----\\n\"}\n" },
	{ "pem, commented out", "# -----BEGIN EC PRI{}VATE KEY-----\n# {b64}\n# {b64}\n# {b30}==\n# -----END EC PRIVATE KEY-----\n" },
	{ "pgp", "-----BEGIN PGP PRI{}VATE KEY BLOCK-----\nVersion: 1\n\n{k8}=abcd\n-----END PGP PRIVATE KEY BLOCK-----\n" },
	{ "jwt", "const t = \"ey{}JhbGciOiJIUzI1NiJ9.ey{}J{u60}.{u43}\";\n" },
	{ "jwt in a header", "-H 'Authorization: Bearer ey{}JhbGciOiJSUzI1NiJ9.ey{}J{u90}.{u86}'\n" },
	{ "bearer", "headers = {'Authorization': 'Bearer {a40}'}\n" },
	/* Passwords in places */
	{ "postgres url", "DATABASE_URL=postgres://app:{p16}@{}db.prod.internal:5432/main\n" },
	{ "mongodb url", "mongodb+srv://svc:{a20}@{}cluster0.mongodb.net/test\n" },
	{ "redis url", "redis://:{a24}@{}cache:6379/0\n" },
	{ "amqp url", "broker = 'amqp://worker:{a14}@{}mq:5672/'\n" },
	{ "https url", "pip install --index-url https://ci:{a16}@{}pypi.corp/simple pkg\n" },
	{ "ado connection string", "Server=db;Database=x;User Id=sa;Password={p14};Encrypt=yes\n" },
	{ "jdbc properties", "spring.datasource.password={p12}\n" },
	{ "netrc", "machine api.heroku.com login me@corp.io password {a24}\n" },
	{ "curl -u", "curl -u admin:{p14} https://nexus.corp/upload\n" },
	{ "command line", "./deploy --host x --password={p14}\n" },
	{ "sql", "CREATE USER app IDENTIFIED BY '{p14}';\n" },
	{ "sql, alter", "ALTER USER app WITH ENCRYPTED PASSWORD '{p14}';\nALTER ROLE app WITH PASSWORD '{p14}';\n" },
	{ "powershell", "$p = ConvertTo-SecureString -String \"{p14}\" -AsPlainText -Force\n" },
	{ "sshpass", "sshpass -p '{p14}' ssh root@host\n" },
	{ "mysql", "mysqldump -u root -p{p14} db > dump\n" },
	{ "php, password", "define( 'DB_PASSWORD', '{p14}' );\n" },
	{ "dockerfile, blank", "FROM x\nENV  NPM_TOKEN {a36}\n" },
	{ "putty", "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 2\n{b64}\n{b64}\n" },
	{ "xml element", "<server><password>{p14}</password></server>\n" },
	{ "xml attributes", "<add key=\"ApiSecret\" value=\"{a32}\" />\n" },
	{ "docker auth", "{\"auths\":{\"ghcr.io\":{\"auth\":\"{B16}\"}}}\n" },
	/* Assignments */
	{ "env", "APP_SECRET={a32}\n" },
	{ "env, quoted", "JWT_SECRET=\"{b44}\"\n" },
	{ "yaml", "  client_secret: {a40}\n" },
	{ "yaml pair", "  - name: STRIPE_SECRET\n    value: \"{a32}\"\n" },
	{ "json", "{\"apiKey\":\"{a32}\"}\n" },
	{ "json pair", "{\"name\": \"DB_PASSWORD\", \"value\": \"{p16}\"}\n" },
	{ "json in a string", "\"{\\\"api_key\\\": \\\"{a32}\\\"}\"\n" },
	{ "toml", "secret_key = \"{h64}\"\n" },
	{ "python", "SECRET_KEY = 'django-insecure-{a50}'\n" },
	{ "python, typed", "api_token: str = \"{h40}\"\n" },
	{ "javascript", "const accessToken = '{a40}';\n" },
	{ "typescript object", "  authToken: '{u43}',\n" },
	{ "go", "apiKey := \"{h32}\"\n" },
	{ "rust", "const API_SECRET: &str = \"{a40}\";\n" },
	{ "java", "private static final String PASSWORD = \"{p14}\";\n" },
	{ "c", "#define WIFI_PASSWORD \"x\"\nstatic char api_secret[] = \"{a32}\";\n" },
	{ "c#", "var clientSecret = @\"{a40}\";\n" },
	{ "ruby", "config.secret_key_base = '{h128}'\n" },
	{ "php", "define('AUTH_TOKEN', '{a40}');\n" },
	{ "php, array", "'password' => '{p14}',\n" },
	{ "terraform", "  admin_password = \"{p16}\"\n" },
	{ "subscript", "os.environ[\"API_TOKEN\"] = \"{a40}\"\n" },
	{ "setenv", "setenv(\"SERVICE_TOKEN\", \"{a40}\", 1);\n" },
	{ "call", "client.setPassword(\"{a24}\");\n" },
	{ "query", "https://api.corp.io/v1/items?access_token={a40}&page=2\n" },
	{ "header", "X-Api-Key: {h40}\n" },
	{ "numbered", "DB_PASSWORD_2={p14}\n" },
	{ "for a purpose", "DB_PASSWORD_PAYMENTS={a32}\n" },
	{ "dockerfile", "ENV NPM_TOKEN={a36}\n" },
	{ "k8s secret in stringData", "stringData:\n  password: {p16}\n" },
};

static const struct sample harmless[] = {
	/* Hashes, ids, checksums */
	{ "sri", "\"integrity\": \"sha512-{b86}==\",\n" },
	{ "sri, html", "<script src=\"a.js\" integrity=\"sha384-{b64}\" crossorigin=\"anonymous\"></script>\n" },
	{ "go.sum", "golang.org/x/crypto v0.17.0 h1:{b43}=\n" },
	{ "go.sum, auth", "github.com/Azure/go-autorest/autorest/azure/auth v0.5.11 h1:{b43}=\n" },
	{ "cargo.lock", "checksum = \"{h64}\"\n" },
	{ "yarn.lock", "  resolved \"https://registry.yarnpkg.com/js-tokens/-/js-tokens-4.0.0.tgz#{h40}\"\n" },
	{ "yarn.lock berry", "  checksum: 10c0/{h128}\n" },
	{ "poetry.lock", "    {file = \"tokenizers-0.15.0.tar.gz\", hash = \"sha256:{h64}\"},\n" },
	{ "pip hash", "cryptography==41.0.7 --hash=sha256:{h64}\n" },
	{ "gemfile.lock", "  bcrypt_pbkdf (1.1.0)\nCHECKSUMS\n  secrets (1.0) sha256={h64}\n" },
	{ "composer.lock", "\"reference\": \"{h40}\",\n" },
	{ "docker digest", "FROM alpine@sha256:{h64}\n" },
	{ "action pin", "uses: actions/checkout@{h40} # v4\n" },
	{ "commit id", "commit {h40}\n" },
	{ "index line", "index {h7}..{h7} 100644\n" },
	{ "git tree", "100644 blob {h40}\tsecret_manager.c\n" },
	{ "md5sum", "{h32}  password-store.tar.gz\n" },
	{ "uuid", "key: {U}\n" },
	{ "uuid token", "token: \"{U}\"\n" },
	{ "uuid list", "tenantId = \"{U}\", clientId = \"{U}\"\n" },
	{ "etag", "ETag: \"{h32}\"\n" },
	{ "cache key", "cacheKey: \"{h40}\"\n" },
	{ "build id", "tokenizationId: '{h32}'\n" },
	{ "nix", "sha256 = \"{l52}\";\n" },
	{ "bazel", "integrity = \"sha256-{b43}=\",\n" },
	{ "ipfs", "cid: Qm{a44}\n" },
	{ "bcrypt", "password: \"$2b$12${a53}\"\n" },
	{ "django hash", "password = 'pbkdf2_sha256$260000${a22}${b43}='\n" },
	{ "public ssh key", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} me@host\n" },
	{ "certificate", "-----BEGIN CERTIFICATE-----\n{k10}-----END CERTIFICATE-----\n" },
	{ "public key", "-----BEGIN PUBLIC KEY-----\n{k4}-----END PUBLIC KEY-----\n" },
	{ "key header in code", "if strings.HasPrefix(s, \"-----BEGIN PRI{}VATE KEY-----\") {\n\treturn true\n}\n" },
	/* References and placeholders */
	{ "github expression", "token: ${{ secrets.GITHUB_TOKEN }}\n" },
	{ "shell variable", "export API_KEY=$MY_API_KEY\n" },
	{ "shell default", "PASSWORD=${DB_PASSWORD:-}\n" },
	{ "environment, js", "const apiKey = process.env.STRIPE_SECRET_KEY_V2;\n" },
	{ "environment, python", "SECRET_KEY = os.environ[\"SECRET_KEY_2024\"]\n" },
	{ "environment, getenv", "api_token = os.getenv(\"API_TOKEN\", \"\")\n" },
	{ "aws example id", "aws_access_key_id = AK{}IAIOSFODNN7EXAMPLE\n" },
	{ "aws example secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY{}EXAMPLEKEY\n" },
	{ "your key here", "OPENAI_API_KEY=sk-{}proj-your-key-goes-here-please-replace-it-now\n" },
	{ "xxx", "GITHUB_TOKEN=gh{}p_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n" },
	{ "stars", "password: ****************\n" },
	{ "angle", "api_key = \"<YOUR_API_KEY_1>\"\n" },
	{ "changeme", "DB_PASSWORD=changeme123\n" },
	{ "fixture password", "password = \"Test1234!\"\n" },
	{ "fixture token", "token = 'fake-token-for-tests-1'\n" },
	{ "fixture user", "login('alice', password='password123')\n" },
	{ "fixture url", "postgres://postgres:postgres@localhost:5432/test\n" },
	{ "fixture url, user", "mysql://user:password@localhost/db\n" },
	{ "url template", "redis://:${REDIS_PASSWORD}@cache:6379\n" },
	{ "url template, python", "f\"postgres://{user}:{password}@{host}/{db}\"\n" },
	{ "jinja", "password: \"{{ vault_db_password_2 }}\"\n" },
	{ "printf", "\"https://%s:%s@example.com/path\"\n" },
	{ "secret manager", "secret = \"projects/my-proj-123/secrets/db-pass/versions/3\"\n" },
	{ "arn", "secret_arn = \"arn:aws:secretsmanager:us-east-1:{d12}:secret:prod/db-{a6}\"\n" },
	{ "1password", "password: op://Private/database-42/password\n" },
	{ "sops", "password: ENC[AES256_GCM,data:{b24}=,iv:{b43}=,tag:{b22}==,type:str]\n" },
	{ "sealed secret", "  encryptedData:\n    password: Ag{b700}=\n" },
	{ "jwt.io", "ey{}JhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.{u43}\n" },
	/* Patterns and code */
	{ "regex", "re.compile(r'gh[pousr]_[A-Za-z0-9]{36}')\n" },
	{ "regex, aws", "AWS_KEY = \"(AKIA|ASIA)[0-9A-Z]{16}\"\n" },
	{ "regex, table", "{ \"fly-token\", \"a Fly.io token\", \"fm1r_[A-Za-z0-9+/]{100,}={0,3}\" },\n" },
	{ "regex, classes", "token_re = r'^v1\\.[0-9]{3}-\\w{20,40}$'\n" },
	{ "regex, password", "password_pattern = \"^(?=.*[A-Z])(?=.*[0-9]).{8,}$\"\n" },
	{ "identifier", "def reset_password_token_generator(): pass\n" },
	{ "enum", "TokenKind::OpenParenthesisWithoutWhitespace2,\n" },
	{ "algorithm", "password_hash_algorithm = \"pbkdf2_sha256\"\n" },
	{ "header name", "API_KEY_HEADER_NAME = \"X-Internal-Api-Key-V2\"\n" },
	{ "key binding", "{ \"key\": \"ctrl+shift+alt+f12\", \"command\": \"x\" }\n" },
	{ "primary key", "primaryKey: \"customer_account_identifier_2\"\n" },
	{ "i18n", "\"password.reset.confirmation\": \"resetPasswordConfirmation2\"\n" },
	{ "css", ".token.keyword2 { color: #{h6}; background: #{h6} }\n" },
	{ "function call", "token = generate_token(user.id, 3600)\n" },
	{ "next token", "nextToken: \"page-{h24}\"\n" },
	{ "token ids", "eos_token = \"<|endoftext|>\"\nbos_token_id = 50256\n" },
	{ "secret name", "secretName: my-app-tls-certificate-2024\n" },
	{ "k8s ref", "  secretKeyRef:\n    name: db-credentials\n    key: postgres-password-v2\n" },
	{ "vault path", "vaultKey: 'inf-vsqt-01-secret-id'\n" },
	{ "file", "private_key = \"/etc/ssl/private/server-2024.key\"\n" },
	{ "file, yaml", "password_file: /run/secrets/db_password_1\n" },
	{ "version", "token_version = \"v2024.01.15-beta3\"\n" },
	{ "url", "token_url = \"https://login.microsoftonline.com/{U}/oauth2/v2.0/token\"\n" },
	{ "putty, code", "'PuTTY-User-Key-File-2: ' + a; ppk += 'Private-Lines: ' + lines + '\\r\\n'; "
			 "thisIsQuiteLongAsANameOfAFunction(anotherNameOfSomethingLong, withArgumentsThatAreLongAsWell)\n" },
	{ "timestamp of use", "\"PasswordLastUsed\": \"2013-09-24T16:18:07Z\"\n" },
	{ "comparison of members", "return a.ownPass === b.ownPass && c.userToken == that.userToken\n" },
	{ "translation", "t(\"password\", \"Enter1Password!\"); __('new password', 'Neues-Kennwort-1')\n" },
	{ "prose with a quote", "ENV is set. With password 'xyz' you get in; mysql -p asks; sshpass -p FILE\n" },
	{ "timestamp", "secret_created = \"2024-01-15T10:30:00.123456Z\"\n" },
	{ "prose", "The password must have 8 characters; the token: see section 3.2.1a.\n" },
	{ "markdown", "| `API_KEY` | string | required, e.g. from https://example.com/keys-2024 |\n" },
	{ "type name", "PRpcHttpTransportCredentials2 = ^TRpcHttpTransportCredentials2W;\nkey_type: Ed25519PrivateKey2\n" },
	{ "public key token", "PublicKeyToken={h16}\n" },
	{ "comparison", "if (token === 'Bearer') { next(); }\n" },
	{ "type", "password: Optional[str] = None\n" },
	{ "struct tag", "Password string `json:\"password,omitempty\" validate:\"min=8,max=64\"`\n" },
	{ "email", "contact: someone@example.com, git@github.com:owner/repo.git\n" },
	/* Blobs */
	{ "data uri", "<img src=\"data:image/png;base64,iVBORw0KGgo{b900}==\">\n" },
	{ "font", "src: url(data:font/woff2;base64,d09GMgABAAAA{b3000}) format('woff2')\n" },
	{ "zip in base64", "mJeJ0b3bVQZu6P8AUEsHCFDBu3Q+EAAAWRAAAFBLAwQUAAgICAAYZxlbAAAAAAAAAAAAAAAAEwAA\n" },
	{ "key in base64", "{b80}+AK{}IA{A16}/{b80}\n" },
	{ "base64 lines", "{b76}\n{b76}\n{b76}\n{b76}\n{b76}\n{b76}\n{b76}\n" },
	{ "hex dump", "{h64}{h64}{h64}{h64}\n" },
	{ "source map", "//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJ{b600}\n" },
	{ "minified", "!function(e,t){var n={token:t,key:e},r=n.key||\"a1\";n.password=function(){return r+e.token(t,r)};self.auth=n}(window,{});\n" },
	{ "minified, words", "const e={passwordInput:\"MuiInputBase3\",tokenList:t=>t.map(k=>k.key1),secretAttr:`data-v-{h8}`};\n" },
	{ "binary", "{}\x01\x02\x03\xff\xfeZZZZ\x7f\x45\x4c\x46{b300}\x01\x02\x03\n" },
	{ "svg path", "<path d=\"M12.3 4.5l-6.7 8.9h2.1v-3.4z{d20} {d20}\"/>\n" },
	{ "test vector", "plaintext = \"{h64}\", digest = \"{h64}\"\n" },
	{ "snapshot", "exports[`token 1`] = `\"{h12}\"`;\n" },
};

/* Prints what was wrong and how often; the share of wrong ones. */
static double wrong_share(const struct sample *samples, size_t n, bool want, const char *what)
{
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned here = 0;
		g_autofree char *shown = NULL;

		for (guint32 round = 0; round < ROUNDS; round++) {
			GRand *rand = g_rand_new_with_seed(round * 1000 + (guint32)i);
			GString *text = expand(samples[i].text, rand);
			struct result r = scan_bytes(text->str, text->len, text->len);

			if ((r.found > 0) != want) {
				here++;
				g_free(shown);
				shown = g_strdup_printf("%s %s", r.rule ? r.rule : "", r.excerpt ? r.excerpt : text->str);
			}
			result_clear(&r);
			g_string_free(text, TRUE);
			g_rand_free(rand);
		}
		if (here)
			print_message("  %s: %s, %u of %d: %.100s\n", what, samples[i].name, here, ROUNDS, shown);
		if (here > WRONG_MAX)
			fail_msg("%s: %s, %u of %d", what, samples[i].name, here, ROUNDS);
		wrong += here;
	}
	return 100.0 * wrong / (n * ROUNDS);
}

static void test_recall(void **state)
{
	double missed = wrong_share(secrets, G_N_ELEMENTS(secrets), true, "missed");

	(void)state;
	print_message("recall: %.2f %% of %zu kinds of secrets in %d rounds\n", 100 - missed, G_N_ELEMENTS(secrets), ROUNDS);
	assert_true(G_N_ELEMENTS(secrets) >= 60);
	assert_true(missed <= 5);
}

static void test_false_alarms(void **state)
{
	double alarms = wrong_share(harmless, G_N_ELEMENTS(harmless), false, "false alarm");

	(void)state;
	print_message("false alarms: %.2f %% of %zu kinds of harmless texts in %d rounds\n", alarms, G_N_ELEMENTS(harmless), ROUNDS);
	assert_true(G_N_ELEMENTS(harmless) >= 60);
	assert_true(alarms <= 5);
}

/*
 * One rule each: what makes the difference. \001 and \002 stand around what is to be found, if anything is; ->rule and ->excerpt say as what, where
 * that matters.
 */
static const struct {
	const char *text, *rule, *excerpt;
} fine[] = {
	/* Keys: a body of some length, soon, of lines and not of words */
	{ "-----BEGIN PRI{}VATE KEY-----\n{b40}\n", NULL, NULL },
	{ "\001-----BEGIN PRI{}VATE KEY-----\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\n"
	  "A: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\nA: b\n{b64}\002\n{b64}\n", "private-key", NULL },
	{ "-----BEGIN PRI{}VATE KEY----- is what the first line of such a file looks like, and it is not what follows here, for these are words of a text\n", NULL, NULL },
	{ "-----BEGIN PRI{}VATE KEY-----\n-----END PRI{}VATE KEY-----\n{b64}\n{b64}\n", NULL, NULL },
	{ "x: \001LS0tLS1CRUdJ{}TiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b200}\002\n", "private-key", NULL },
	{ "x: aLS0tLS1CRUdJ{}TiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b200}\n", NULL, NULL },
	{ "x: LS0tLS1CRUdJ{}TiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b40}\n", NULL, NULL },
	{ "x: LS0tLS1CRUdJ{}TiBDRVJUSUZJQ0FURS0tLS0tCg{b200}\n", NULL, NULL },
	/* Signed tokens have three parts of some length */
	{ "\"a\\n\001ey{}J{u20}.ey{}J{u40}.{u43}\002\"\n", "jwt", "eyJ**** (111 characters)" },
	{ "ey{}J{u20}.ey{}J{u5}.{u43}\n", NULL, NULL },
	{ "ey{}J{u20}.ey{}J{u40}.{u10}\n", NULL, NULL },
	/* URLs */
	{ "https://host/path:{a14}@{}x\n", NULL, NULL },
	{ "redis://u:\001{a10}@{a10}\002@{}host\n", "url-password", "redis://**** (21 characters)" },
	{ "c://u:{a16}@{}host\n", NULL, NULL },
	{ "https://\001{h40}\002@{}git.corp/x\n", "url-password", NULL },
	{ "https://Xk9vQz7Lm:Xk9vQz7Lm@{}h/\n", NULL, NULL },
	{ "redis://u:\001aZ3{}#kV9!\002@{}h/\n", "url-password", NULL },
	{ "ftp://u:zqxwvk@{}h/\n", NULL, NULL },
	/* HTTP and commands */
	{ "(\"Basic \001{B16}\002\")\n", "basic-auth", NULL },
	{ "(\"xbasic {B16}\")\n", NULL, NULL },
	{ "(\"Basic {b60}\")\n", NULL, NULL },
	{ "(\"Basic dQE6YVoz{}I2tWOSF4UXc=\")\n", NULL, NULL }, /* a character that nobody types */
	{ "(\"Basic OmFaMyNr{}VjkheFE=\")\n", NULL, NULL },
	{ "X BEARER \001{a40}\002\n", "bearer-token", NULL },
	{ "curl --user admin:\001{p14}\002 x\n", "command-password", NULL },
	{ "curl x-u admin:{p14} x\n", NULL, NULL },
	{ "sshpass -p\001{p14}\002 ssh h\n", "command-password", NULL },
	{ "mysql -p {p14}\n", NULL, NULL },
	{ "mysql -p -h x -p\001{p14}\002 d\n", "command-password", NULL },
	/* Formats: where a word begins and ends, in base64, by chance */
	{ "a\\n\001sk_{}live_{a24}\002\n", "stripe-key", "sk_live_**** (32 characters)" },
	{ "a%3D\001sk_{}live_{a24}\002\n", "stripe-key", NULL },
	{ "xsk_{}live_{a24}\n", NULL, NULL },
	{ "x\001gh{}p_{a36}\002\n", "github-token", NULL },
	{ "{b60}/\001gh{}p_{a36}\002\n", "github-token", NULL },
	{ "{b18}+AK{}IA{A16}+{b18}\n", NULL, NULL },
	{ "AK{}IA{A16}x\n", NULL, NULL },
	{ "AI{}za{u35}-\n", NULL, NULL },
	{ "\001pscale_{}tkn_{a64}\002=x\n", "planetscale-token", NULL },
	{ "Q~{u34}\n", NULL, NULL },
	{ "gh{}p_EXAMPLE{a29}\n", NULL, NULL },
	{ "gh{}p_abcdefgh{a28}\n", NULL, NULL },
	{ "gh{}p_87654321{a28}\n", NULL, NULL },
	{ "gh{}p_abababababababababababababababababab\n", NULL, NULL },
	{ "abababababababababababababababab{}-us12\n", NULL, NULL },
	{ "sk-{}adgjmpsvadgjmpsvadgjmpsvadgjmpsvadgjmpsvadgjmpsv\n", NULL, NULL },
	{ "token=\001gh{}p_{a36}\002\n", "github-token", NULL },
	/* Names */
	{ "OUR_LONG_APPLICATION_PASSWORD=\001{p14}\002\n", "password", "OUR_LONG_APPLICATION_PASSWORD=**** (14 characters)" },
	{ "\"a\\nPASSWORD=\001{p14}\002\"\n", "password", "PASSWORD=**** (14 characters)" },
	{ "see password. = \"{p14}\"\n", NULL, NULL },
	{ "APIKEYs = \"\001{a32}\002\"\n", "generic-secret", NULL },
	{ "hide_password = {p14}\n", NULL, NULL },
	{ "api_key_id = \"{a32}\"\n", NULL, NULL },
	{ "auth_backend: {B16}\n", NULL, NULL },
	{ "publicAuthToken = \"{a40}\"\n", NULL, NULL },
	{ "DB_PASSWORD_PAYMENTS={p14}\n", NULL, NULL },
	{ "psk = \"\001{a32}\002\"\n", "generic-secret", NULL },
	/* What stands between a name and its value */
	{ "\\\\\\\"api_key\\\\\\\": \\\\\\\"\001{a32}\002\\\\\\\"\n", "generic-secret", NULL },
	{ "x ENV NPM_TOKEN {a36}\n", NULL, NULL },
	{ "secret::{a40}\n", NULL, NULL },
	{ "login x \"password\" {p14}\n", NULL, NULL },
	{ "run --api-key \001{a40}\002 x\n", "generic-secret", NULL },
	{ "client.setPassword({a24})\n", NULL, NULL },
	{ "api_token = {a24}(x)\n", NULL, NULL },
	{ "client.auth(\"{a40}\")\n", NULL, NULL },
	{ "\"auth\": \"\001dTpacS{}NrVngh\002\"\n", "generic-secret", NULL }, /* name and password in base64, too short for anything else */
	{ "setenv(\"SERVICE_TOKEN\", \"{a16}\", 1);\n", NULL, NULL },
	/* Where a value ends */
	{ "\"{\\\"api_key\\\": \\\"\001{a32}\002\\\"}\"\n", "generic-secret", NULL },
	{ "JWT_SECRET=\001{a43}=\002\n", "generic-secret", NULL },
	{ "?token=\001{a40}\002=abc\n", "generic-secret", NULL },
	{ "SECRET_KEY = \"\"\"\001{a40}\002\"\"\"\n", "generic-secret", NULL },
	{ "authToken: \"Custom \001{a40}\002\"\n", "generic-secret", NULL },
	/* What a value has to be */
	{ "password=\"\001aZ3{}#kV9!\002\"\n", "password", NULL },
	{ "password=\"aZ3{}#kV9\"\n", NULL, NULL },
	{ "token=\"\001{a200}\002\"\n", "generic-secret", NULL },
	{ "token=\"{a300}\"\n", NULL, NULL },
	{ "password=\"87654321{}Ab!x\"\n", NULL, NULL },
	{ "password=\"abcdefgh{}9A!x\"\n", NULL, NULL },
	{ "api_key=\"\001{a12}test{a12}\002\"\n", "generic-secret", NULL },
	{ "api_key=\"{a8}test{a6}\"\n", NULL, NULL },
	{ "password=\"\001!Ab3{}#kV9xQ\002\"\n", "password", NULL },
	{ "password=\"Ab3x.get{}9Zq7!\"\n", NULL, NULL },
	{ "api_secret: \"customerAccountIdentifier{}2\"\n", NULL, NULL },
	{ "password=\"a1.-+_:!?B^=\"\n", NULL, NULL },
	{ "password=\"Ab3 {}#kV9 xQz\"\n", NULL, NULL },
	{ "password=\"xkqzvw{}17\"\n", NULL, NULL },
	{ "api_key=\"{a12}\"\n", NULL, NULL },
	{ "token=\"\001qWxZvKpLmNhG{}tRfDsBcYjTwQ\002\"\n", "generic-secret", NULL },
};

#define FINE_ROUNDS 8
#define FINE_WRONG_MAX 2

/* Takes the marks out. */
static void take_marks(GString *text, uint64_t *ret_start, uint64_t *ret_end)
{
	const char *start = strchr(text->str, 1), *end = strchr(text->str, 2);

	*ret_start = start ? (uint64_t)(start - text->str) : 0;
	*ret_end = end ? (uint64_t)(end - text->str) - 1 : 0;
	if (end)
		g_string_erase(text, end - text->str, 1);
	if (start)
		g_string_erase(text, start - text->str, 1);
}

static bool is_as_wanted(size_t i, const struct result *r, uint64_t start, uint64_t end)
{
	if (!fine[i].rule)
		return r->found == 0;
	return r->found == 1 && g_str_equal(r->rule, fine[i].rule) && r->start == start && r->end == end &&
	       (!fine[i].excerpt || g_str_equal(r->excerpt, fine[i].excerpt));
}

static void test_fine_differences(void **state)
{
	unsigned bad = 0;

	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(fine); i++) {
		unsigned wrong = 0;

		for (guint32 round = 0; round < FINE_ROUNDS; round++) {
			GRand *rand = g_rand_new_with_seed(round * 1000 + (guint32)i);
			GString *text = expand(fine[i].text, rand);
			uint64_t start, end;
			struct result r;

			take_marks(text, &start, &end);
			r = scan_bytes(text->str, text->len, text->len);
			if (!is_as_wanted(i, &r, start, end) && ++wrong == FINE_WRONG_MAX + 1) {
				print_message("  %s  %u found, %s %s at %d to %d, not %d to %d\n", text->str, r.found, r.rule ? r.rule : "", r.excerpt ? r.excerpt : "",
					      (int)r.start, (int)r.end, (int)start, (int)end);
				bad++;
			}
			result_clear(&r);
			g_string_free(text, TRUE);
			g_rand_free(rand);
		}
	}
	assert_int_equal(bad, 0);
}

/* Nothing of a value is in its excerpt: no six characters in a row. */
static void test_excerpts_hide(void **state)
{
	(void)state;
	for (size_t i = 0; i < G_N_ELEMENTS(secrets); i++) {
		GRand *rand = g_rand_new_with_seed((guint32)i);
		GString *text = expand(secrets[i].text, rand);
		struct result r = scan_bytes(text->str, text->len, text->len);

		const char *stars = r.excerpt ? strstr(r.excerpt, "****") : NULL;
		uint64_t at = r.start;

		if (!stars)
			fail_msg("%s: no stars", secrets[i].name);
		/* The format's own prefix may be seen. */
		if (strncmp(text->str + at, r.excerpt, stars - r.excerpt) == 0)
			at += stars - r.excerpt;
		for (; at + 6 <= r.end; at++) {
			g_autofree char *piece = g_strndup(text->str + at, 6);

			if (strstr(r.excerpt, piece))
				fail_msg("%s: excerpt %s shows %s", secrets[i].name, r.excerpt, piece);
		}
		result_clear(&r);
		g_string_free(text, TRUE);
		g_rand_free(rand);
	}
}

/* Places: borders of pieces and windows, lines, NULs, encodings */

static GString *token(void)
{
	GRand *rand = g_rand_new_with_seed(7);
	GString *t = expand("gh{}p_{a36}", rand);

	g_rand_free(rand);
	return t;
}

static void test_any_piece_and_border(void **state)
{
	static const size_t places[] = { 0, 1, 511, 4090, 65530, 262100, 262144 - 20, 262144 + 16384 - 20, 262144 + 16384 + 512 - 20, 700000 };
	static const size_t steps[] = { 1, 7, 4096, 262144, 10000000 };
	GString *t = token();

	(void)state;
	for (size_t p = 0; p < G_N_ELEMENTS(places); p++) {
		GString *text = g_string_new(NULL);

		while (text->len < places[p])
			g_string_append_c(text, text->len % 3 == 2 || text->len + 1 == places[p] ? '\n' : '.');
		g_string_append_printf(text, "%s\n", t->str);
		for (size_t s = 0; s < G_N_ELEMENTS(steps); s++) {
			struct result r = scan_bytes(text->str, text->len, steps[s]);
			uint64_t line = 1;

			for (size_t i = 0; i < places[p]; i++)
				line += text->str[i] == '\n';
			assert_int_equal(r.found, 1);
			assert_int_equal(r.start, places[p]);
			assert_int_equal(r.end, places[p] + t->len);
			assert_int_equal(r.line, line);
			result_clear(&r);
		}
		g_string_free(text, TRUE);
	}
	g_string_free(t, TRUE);
}

/* One after the other over several windows: a border that cut one would lose it. */
static void test_back_to_back(void **state)
{
	GString *t = token(), *text = g_string_new(NULL);
	struct result r;

	(void)state;
	for (unsigned i = 0; i < 20000; i++)
		g_string_append_printf(text, "%s\n", t->str);
	r = scan_bytes(text->str, text->len, 65536);
	assert_int_equal(r.found, 20000);
	result_clear(&r);
	g_string_free(text, TRUE);
	g_string_free(t, TRUE);
}

static void test_two_on_a_line(void **state)
{
	GRand *rand = g_rand_new_with_seed(3);
	GString *text = expand("a gh{}p_{a36} b gh{}p_{a36} gh{}p_{a36}\n", rand);
	struct result r = scan_bytes(text->str, text->len, text->len);

	(void)state;
	assert_int_equal(r.found, 3);
	result_clear(&r);
	g_string_free(text, TRUE);
	g_rand_free(rand);
}

/* Every byte as a character of 2 or 4 bytes, low or high byte first. */
/* A prefix of base64 digits turns up in base64 by chance, also behind a '+' or '/', which elsewhere begins a word. */
static void test_a_prefix_in_a_blob(void **state)
{
	static const char key[] = "AK" "IA" "Q3ZTW7XK2MPL9RVB"; /* apart, or this file would hold one */
	g_autofree char *around = g_strnfill(60, 'x');
	g_autofree char *blob = g_strconcat(around, "+", key, "+", around, "\n", NULL), *word = g_strconcat("(", key, ")\n", NULL);
	struct result in_blob = scan_bytes(blob, strlen(blob), strlen(blob)), alone = scan_bytes(word, strlen(word), strlen(word));

	(void)state;
	assert_int_equal(in_blob.found, 0);
	assert_int_equal(alone.found, 1);
	result_clear(&in_blob);
	result_clear(&alone);
}

static GByteArray *widen(const char *text, unsigned width, bool low_first, unsigned junk)
{
	GByteArray *wide = g_byte_array_new();
	static const guint8 zeros[4];

	for (unsigned i = 0; i < junk; i++)
		g_byte_array_append(wide, (const guint8 *)"\xff", 1);
	for (const char *p = text; *p; p++) {
		if (!low_first)
			g_byte_array_append(wide, zeros, width - 1);
		g_byte_array_append(wide, (const guint8 *)p, 1);
		if (low_first)
			g_byte_array_append(wide, zeros, width - 1);
	}
	return wide;
}

static void test_utf16_and_utf32(void **state)
{
	static const char *const texts[] = { "first line\nx = gh{}p_{a36}\n", "\npassword = \"{p16}\"\n", "\nurl = postgres://app:{p16}@{}db/x\n" };

	(void)state;
	for (unsigned k = 0; k < G_N_ELEMENTS(texts) * 2 * 2 * 3; k++) {
		unsigned width = k % 2 ? 4 : 2, junk = k / 4 % 3;
		bool low_first = k / 2 % 2;
		GRand *rand = g_rand_new_with_seed(k);
		GString *text = expand(texts[k / 12], rand);
		GByteArray *wide = widen(text->str, width, low_first, junk);
		struct result r = scan_bytes(wide->data, wide->len, 1000);

		assert_int_equal(r.found, 1);
		assert_int_equal(r.line, 2);
		result_clear(&r);
		g_byte_array_unref(wide);
		g_string_free(text, TRUE);
		g_rand_free(rand);
	}
}

/* Nothing before the first character and nothing behind the last. */
static void test_wide_to_the_ends(void **state)
{
	GString *t = token();

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		GByteArray *wide = widen(t->str, k % 2 ? 4 : 2, k / 2, 0);
		struct result r = scan_bytes(wide->data, wide->len, 1000);

		assert_int_equal(r.found, 1);
		assert_string_equal(r.rule, "github-token");
		assert_true(r.end - r.start >= (t->len - 1) * (k % 2 ? 4 : 2) + 1);
		result_clear(&r);
		g_byte_array_unref(wide);
	}
	g_string_free(t, TRUE);
}

static void test_among_nuls(void **state)
{
	GString *t = token();
	g_autofree char *data = g_malloc0(2000 + t->len);
	struct result r;

	(void)state;
	memcpy(data + 1000, t->str, t->len);
	r = scan_bytes(data, 2000 + t->len, 100);
	assert_int_equal(r.found, 1);
	assert_int_equal(r.start, 1000);
	result_clear(&r);
	g_string_free(t, TRUE);
}

/* Texts that make a careless matcher quadratic: all of them megabytes of the beginning of something. */
static void test_hostile_texts_take_no_time(void **state)
{
	static const char *const units[] = { "-----BEGIN PRI{}VATE KEY-----", "eyJ", "eyJaaaaaaaaa.", "token=", "token='", "password:", "://a:b",
					     "curl ", "gh{}p_", "key", "AKIA", "\\\"", "secret \"", "basic ", "PuTTY-User-Key-File-", "a=", "login ",
					     "LS0tLS1CRUdJTi", ":AA", "secret,value", "password\t", "x://:", "{", "pass-", "auth.",
					     "curl -u ab:x9.get_Aq7 ", "mysql -px9.get_Aq7 ", "mysql ", "sshpass -p ab1Test9 ", "ENV token x ", "define('secret', ",
					     "identified by ", "with password " };
	gint64 start = g_get_monotonic_time();
	const size_t size = 4 * 1024 * 1024;

	(void)state;
	for (size_t u = 0; u < G_N_ELEMENTS(units); u++) {
		GRand *rand = g_rand_new_with_seed(1);
		GString *unit = expand(units[u], rand), *text = g_string_sized_new(size + 64);
		gint64 begin = g_get_monotonic_time();
		struct result r;
		double seconds;

		while (text->len < size)
			g_string_append(text, unit->str);
		r = scan_bytes(text->str, text->len, 65536);
		seconds = (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
		if (seconds > 1)
			print_message("  4 MiB of \"%s\": %.2f s\n", unit->str, seconds);
		assert_true(seconds < 20);
		result_clear(&r);
		g_string_free(text, TRUE);
		g_string_free(unit, TRUE);
		g_rand_free(rand);
	}
	print_message("%zu hostile texts of 4 MiB: %.1f s\n", G_N_ELEMENTS(units), (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recall),
		cmocka_unit_test(test_false_alarms),
		cmocka_unit_test(test_fine_differences),
		cmocka_unit_test(test_excerpts_hide),
		cmocka_unit_test(test_any_piece_and_border),
		cmocka_unit_test(test_back_to_back),
		cmocka_unit_test(test_two_on_a_line),
		cmocka_unit_test(test_a_prefix_in_a_blob),
		cmocka_unit_test(test_utf16_and_utf32),
		cmocka_unit_test(test_wide_to_the_ends),
		cmocka_unit_test(test_among_nuls),
		cmocka_unit_test(test_hostile_texts_take_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
