/* SPDX-License-Identifier: MIT */
#include "tools/run/http_request.h"

#include <string.h>

#define FIELDS_MAX 200
#define WEB_PORT 80
#define TOKEN "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct field {
	const char *name, *value;
};

struct parser {
	struct http_request *request;
	const struct net_target *tunnel;
	const char *method, *path, *version;
	struct field fields[FIELDS_MAX];
	unsigned count;
	char *built_path;
};

/* For one hop only; and what is written anew. */
static const char *const dropped[] = {
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Authenticate", "TE",
	"Trailer",    "Upgrade",	  "Host",	"Content-Length",      "Transfer-Encoding"
};

size_t http_head_size(const uint8_t *data, size_t size)
{
	const uint8_t *end = memmem(data, size, "\r\n\r\n", 4);

	return end ? (size_t)(end - data) + 4 : 0;
}

/* Lines */

static bool is_token(const char *s)
{
	return *s && strspn(s, TOKEN) == strlen(s);
}

/* A line without its CRLF; NULL when it holds what no line may. */
static char *next_line(char **at)
{
	char *line = *at, *end = strstr(line, "\r\n");

	*end = '\0';
	*at = end + 2;
	for (const char *c = line; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return NULL;
	return line;
}

static const char *read_request_line(struct parser *p, char *line)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;

	if (!version)
		return "the request line is not METHOD TARGET VERSION";
	*target++ = *version++ = '\0';
	if (!is_token(line) || !*target)
		return "the request line is not METHOD TARGET VERSION";
	for (const char *c = target; *c; c++)
		if (*c <= ' ' || *c > '~')
			return "the target has characters that need to be percent-encoded";
	if (!g_str_equal(version, "HTTP/1.1") && !g_str_equal(version, "HTTP/1.0"))
		return "only HTTP/1.0 and HTTP/1.1 are known here";
	p->method = line;
	p->path = target;
	p->version = version;
	return NULL;
}

static const char *read_field(struct parser *p, char *line)
{
	char *colon = strchr(line, ':');

	if (!colon)
		return "a line of the head is no field";
	*colon = '\0';
	if (!is_token(line))
		return "a field has a name that is none, or is folded";
	if (p->count == FIELDS_MAX)
		return "too many fields";
	p->fields[p->count++] = (struct field){ line, g_strstrip(colon + 1) };
	return NULL;
}

static const char *read_lines(struct parser *p, char *text)
{
	const char *fault = NULL;
	char *line = next_line(&text);

	fault = line ? read_request_line(p, line) : "the request line has control characters";
	while (!fault && !g_str_has_prefix(text, "\r\n")) {
		line = next_line(&text);
		fault = line ? read_field(p, line) : "a field has control characters";
	}
	return fault;
}

/* Fields */

/* False when there is more than one. @ret: NULL for none. */
static bool find_one(const struct parser *p, const char *name, const char **ret)
{
	*ret = NULL;
	for (unsigned i = 0; i < p->count; i++) {
		if (g_ascii_strcasecmp(p->fields[i].name, name) != 0)
			continue;
		if (*ret)
			return false;
		*ret = p->fields[i].value;
	}
	return true;
}

/* Does a field that is a list have that word? */
static bool has_word(const struct parser *p, const char *name, const char *word)
{
	for (unsigned i = 0; i < p->count; i++) {
		g_auto(GStrv) words = NULL;

		if (g_ascii_strcasecmp(p->fields[i].name, name) != 0)
			continue;
		words = g_strsplit(p->fields[i].value, ",", -1);
		for (char **w = words; *w; w++)
			if (g_ascii_strcasecmp(g_strstrip(*w), word) == 0)
				return true;
	}
	return false;
}

static const char *read_body(struct parser *p)
{
	struct http_body *body = &p->request->body;
	const char *length, *coding;

	if (!find_one(p, "Content-Length", &length) || !find_one(p, "Transfer-Encoding", &coding) || (length && coding))
		return "the length of the body is said twice";
	if (coding) {
		if (g_ascii_strcasecmp(coding, "chunked") != 0 || !g_str_equal(p->version, "HTTP/1.1"))
			return "the only transfer encoding known here is chunked, of HTTP/1.1";
		body->kind = HTTP_BODY_CHUNKED;
	} else if (length) {
		if (!g_ascii_string_to_unsigned(length, 10, 0, G_MAXINT64, &body->left, NULL))
			return "Content-Length is no number";
		body->kind = HTTP_BODY_LENGTH;
	}
	return NULL;
}

/* The target */

static const char *read_absolute(struct parser *p)
{
	const char *host = p->path + strlen("http://");
	size_t len = strcspn(host, "/?#");
	g_autofree char *authority = g_strndup(host, len);

	if (memchr(host, '@', len)) {
		net_target_note(&p->request->target, host, len);
		return "the URL has a user in front of its host; nothing may stand there";
	}
	if (strchr(host, '#'))
		return "the URL has a fragment";
	if (!net_target_parse(&p->request->target, authority, WEB_PORT)) {
		net_target_note(&p->request->target, host, len);
		return "the URL has no host that could be decided on (addresses are written in full: 192.0.2.7)";
	}
	p->built_path = host[len] == '/' ? g_strdup(host + len) : g_strconcat("/", host + len, NULL);
	p->path = p->built_path;
	return NULL;
}

static const char *read_target(struct parser *p)
{
	if (p->tunnel)
		return *p->path == '/' || g_str_equal(p->path, "*") ? NULL : "a request in a tunnel begins with its path";
	if (g_str_equal(p->method, "CONNECT")) {
		p->request->connect = true;
		if (net_target_parse(&p->request->target, p->path, 0))
			return NULL;
		net_target_note(&p->request->target, p->path, strlen(p->path));
		return "CONNECT needs host:port (addresses are written in full: 192.0.2.7:443)";
	}
	if (g_ascii_strncasecmp(p->path, "http://", strlen("http://")) == 0)
		return read_absolute(p);
	return "this is a proxy: it takes http:// URLs and CONNECT";
}

static const char *check_host(const struct parser *p)
{
	const struct net_target *target = p->tunnel ? p->tunnel : &p->request->target;
	g_auto(net_target_t) named = { 0 };
	const char *host;

	if (p->request->connect)
		return NULL;
	if (!find_one(p, "Host", &host))
		return "there is more than one Host field";
	if (!host)
		return p->tunnel || g_str_equal(p->version, "HTTP/1.1") ? "there is no Host field" : NULL;
	return net_target_parse(&named, host, WEB_PORT) && net_target_equal(&named, target)
		       ? NULL
		       : "the Host field is another host than that of the request";
}

/* For the server */

static bool is_dropped(const struct parser *p, const char *name)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(dropped); i++)
		if (g_ascii_strcasecmp(dropped[i], name) == 0)
			return true;
	return has_word(p, "Connection", name);
}

static void build_head(struct parser *p)
{
	struct http_request *r = p->request;
	const struct net_target *target = p->tunnel ? p->tunnel : &r->target;
	GString *head = g_string_new(NULL);

	g_string_append_printf(head, "%s %s %s\r\nHost: ", p->method, p->path, p->version);
	g_string_append_len(head, target->text, strrchr(target->text, ':') - target->text);
	if (target->port != WEB_PORT)
		g_string_append_printf(head, ":%u", target->port);
	g_string_append(head, "\r\n");
	for (unsigned i = 0; i < p->count; i++)
		if (!is_dropped(p, p->fields[i].name))
			g_string_append_printf(head, "%s: %s\r\n", p->fields[i].name, p->fields[i].value);
	if (r->body.kind == HTTP_BODY_LENGTH)
		g_string_append_printf(head, "Content-Length: %" G_GUINT64_FORMAT "\r\n", r->body.left);
	else if (r->body.kind == HTTP_BODY_CHUNKED)
		g_string_append(head, "Transfer-Encoding: chunked\r\n");
	g_string_append(head, r->upgrade ? "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n" : "Connection: close\r\n\r\n");
	r->head = g_string_free(head, FALSE);
}

static const char *read_all(struct parser *p, char *text)
{
	const char *fault = read_lines(p, text), *agent;

	if (!fault)
		fault = read_target(p);
	if (fault)
		return fault;
	if (find_one(p, "User-Agent", &agent))
		p->request->agent = g_strdup(agent);
	fault = check_host(p);
	if (fault || p->request->connect)
		return fault;
	fault = read_body(p);
	p->request->upgrade = has_word(p, "Upgrade", "websocket") && has_word(p, "Connection", "Upgrade") &&
			      g_str_equal(p->method, "GET") && p->request->body.kind == HTTP_BODY_NONE;
	if (!fault)
		build_head(p);
	return fault;
}

const char *http_request_init(struct http_request *r, const uint8_t *head, size_t size, const struct net_target *tunnel)
{
	struct parser p = { .request = r, .tunnel = tunnel };
	g_autofree char *text = g_strndup((const char *)head, size);
	const char *fault;

	*r = (struct http_request){ 0 };
	if (memchr(head, '\0', size) || !g_str_has_suffix(text, "\r\n\r\n"))
		return "the head has a NUL or no end";
	fault = read_all(&p, text);
	g_free(p.built_path);
	return fault;
}

void http_request_clear(struct http_request *r)
{
	net_target_clear(&r->target);
	g_clear_pointer(&r->agent, g_free);
	g_clear_pointer(&r->head, g_free);
}
