/* SPDX-License-Identifier: MIT */
#include "gate/control_files.h"

#include <glib.h>
#include <stdint.h>
#include <string.h>

/* clang-format off */
struct row {
	enum control_kind kind;
	const char *names; /* separated by blanks */
};

static const struct row file_rows[] = {
	{ CONTROL_GIT, ".gitmodules .gitattributes" },
	{ CONTROL_AGENT, "agents.md agent.md claude.md claude.local.md gemini.md copilot-instructions.md .mcp.json mcp.json .cursorrules "
			 ".windsurfrules .clinerules .roorules .aider.conf.yml .aiderignore .cursorignore .codeiumignore opencode.json "
			 ".devcontainer.json agents.override.md qwen.md crush.md warp.md .goosehints .rules .exrc .nvimrc .nvim.lua .lvimrc .vimrc .dir-locals.el *.code-workspace *.sublime-project" },
	{ CONTROL_CI, ".gitlab-ci.yml .travis.yml jenkinsfile azure-pipelines.yml bitbucket-pipelines.yml appveyor.yml .appveyor.yml "
		      ".drone.yml .woodpecker.yml .cirrus.yml wercker.yml buildspec.yml buildspec.yaml cloudbuild.yaml cloudbuild.yml "
		      "codemagic.yaml .semaphore.yml .pre-commit-config.yaml .pre-commit-hooks.yaml lefthook.yml lefthook.yaml "
		      ".lefthook.yml renovate.json renovate.json5 .renovaterc .renovaterc.json dependabot.yml .goreleaser.yml "
		      ".goreleaser.yaml .releaserc .releaserc.json tox.ini noxfile.py .packit.yaml .gitpod.yml .gitlab-ci.yaml" },
	{ CONTROL_DEPLOY, "dockerfile dockerfile.* *.dockerfile containerfile containerfile.* .dockerignore compose.yml compose.yaml "
			  "compose.*.yml compose.*.yaml docker-compose* docker-bake.hcl docker-bake.json *.tf *.tf.json *.tfvars *.tfvars.json "
			  ".terraform.lock.hcl terragrunt.hcl *.nomad *.pkr.hcl *.bicep pulumi.yaml pulumi.*.yaml serverless.yml "
			  "serverless.yaml serverless.ts procfile fly.toml vercel.json netlify.toml wrangler.toml wrangler.jsonc app.yaml "
			  "app.yml render.yaml railway.json railway.toml heroku.yml chart.yaml chart.lock values.yaml values-*.yaml "
			  "kustomization.yaml kustomization.yml helmfile.yaml skaffold.yaml tiltfile devspace.yaml appspec.yml appspec.yaml "
			  "ansible.cfg playbook.yml playbook.yaml site.yml vagrantfile capfile deploy.sh deploy.yml deploy.yaml deploy.rb "
			  "cdk.json samconfig.toml template.yaml *.cfn.yaml *.cfn.json cloud-init.yaml *.service *.timer *.socket crontab "
			  "ecosystem.config.js dockerrun.aws.json firebase.json amplify.yml earthfile flake.nix" },
	{ CONTROL_PERMISSION, "codeowners owners sudoers authorized_keys .htaccess .htpasswd *.rego *.cedar *.sentinel "
			      "rbac.yaml rbac.yml *-rbac.yaml iam.json iam.yaml *iam-policy*.json *iam_policy*.json trust-policy.json "
			      "policy.csv firestore.rules storage.rules database.rules.json firestore.indexes.json *.pem *.crt *.cer *.csr "
			      "apparmor.d *.te *.pp pam.conf access.conf" },
	{ CONTROL_NETWORK, "nginx.conf *.nginx *.nginx.conf httpd.conf apache2.conf haproxy.cfg caddyfile traefik.yml traefik.yaml traefik.toml "
			   "envoy.yaml squid.conf *.ovpn wg0.conf hosts hosts.allow hosts.deny resolv.conf iptables.rules nftables.conf "
			   "*.nft ufw.rules networkpolicy.yaml networkpolicy.yml network-policy.yaml ingress.yaml ingress.yml "
			   "security-group*.yaml security_groups.* openapi-gateway.yaml cors.json *.zone named.conf cname" },
	{ CONTROL_SHELL, ".envrc .npmrc .yarnrc .yarnrc.yml .pnpmfile.cjs .pypirc pip.conf .netrc .bashrc .bash_profile .profile .zshrc "
			 ".zshenv .inputrc .wgetrc .curlrc .ssh .tool-versions .mise.toml mise.toml .direnvrc .bundle .gemrc .condarc "
			 ".cargo sitecustomize.py usercustomize.py *.pth .babelrc.js .pnp.cjs .pnp.loader.mjs "
			 ".gdbinit .lldbinit .pdbrc .pryrc .irbrc .gitconfig .hgrc" },
	{ CONTROL_POLICY, ".sbxfs.ini" },
	{ CONTROL_NONE, NULL },
};

static const struct row dir_rows[] = {
	{ CONTROL_AGENT, ".claude .codex .cursor .vscode .idea .devcontainer .windsurf .continue .roo .cline .clinerules .aider .gemini .zed "
			 ".kiro .fleet .opencode .augment .junie .amazonq .trae .copilot .goose .crush .qwen" },
	{ CONTROL_CI, ".github .gitlab .circleci .buildkite .woodpecker .husky .semaphore .teamcity .azuredevops .azure-pipelines .tekton "
		      ".forgejo .gitea .drone .cirrus .ci" },
	{ CONTROL_DEPLOY, ".ebextensions .platform .kube .helm helm k8s kubernetes terraform .terraform ansible deploy deployment deployments "
			  "kustomize argocd flux-system .do .aws .azure .gcloud .vercel .netlify .openshift pulumi cloudformation infra "
			  "infrastructure" },
	{ CONTROL_PERMISSION, ".ssh .gnupg sudoers.d pam.d iam rbac" },
	{ CONTROL_NETWORK, "nginx firewall sites-available sites-enabled" },
	{ CONTROL_SHELL, ".cargo .bundle .direnv .hg .jj" },
	{ CONTROL_BILLING, "billing payment payments invoicing invoices" },
	{ CONTROL_NONE, NULL },
};

/* Words of a file's name. */
static const char *const billing_words[] = { "billing", "payment", "payments", "invoice", "invoices", "invoicing", "pricing", "prices", "stripe",
					     "paypal", "checkout", "refund", "refunds", "payout", "payouts", NULL };
/* clang-format on */

static const struct {
	const char *rule;
	const char *text;
} kinds[] = {
	[CONTROL_NONE] = { "", "" },
	[CONTROL_GIT_CODE] = { "git-code", "git runs this, or takes from it what to run" },
	[CONTROL_GIT] = { "git", "steers git" },
	[CONTROL_AGENT] = { "agent", "steers coding agents or editors" },
	[CONTROL_CI] = { "ci", "steers continuous integration" },
	[CONTROL_DEPLOY] = { "deploy", "steers how the program is built into images or deployed" },
	[CONTROL_PERMISSION] = { "permission", "steers who may do what" },
	[CONTROL_NETWORK] = { "network", "steers what can be reached over the network" },
	[CONTROL_BILLING] = { "billing", "is about payments" },
	[CONTROL_SHELL] = { "environment", "is run or read by shells and package tools" },
	[CONTROL_POLICY] = { "policy", "is the policy for this very sandbox" },
};

const char *control_kind_rule(enum control_kind kind)
{
	return kinds[kind].rule;
}

const char *control_kind_text(enum control_kind kind)
{
	return kinds[kind].text;
}

/* Tables: names without a star are looked up, the others tried one by one. */

struct star {
	GPatternSpec *spec;
	enum control_kind kind;
};

static struct {
	GHashTable *files, *dirs; /* name -> kind */
	GArray *stars;
} tables;

static void add_names(GHashTable *table, const struct row *rows, GArray *stars)
{
	for (; rows->names; rows++) {
		g_auto(GStrv) names = g_strsplit(rows->names, " ", -1);

		for (char **n = names; *n; n++) {
			struct star s = { NULL, rows->kind };

			if (!strchr(*n, '*')) {
				g_hash_table_insert(table, g_strdup(*n), GINT_TO_POINTER(rows->kind));
				continue;
			}
			s.spec = g_pattern_spec_new(*n);
			g_array_append_val(stars, s);
		}
	}
}

static void tables_init(void)
{
	static gsize once;

	if (!g_once_init_enter(&once))
		return;
	tables.files = g_hash_table_new(g_str_hash, g_str_equal);
	tables.dirs = g_hash_table_new(g_str_hash, g_str_equal);
	tables.stars = g_array_new(FALSE, FALSE, sizeof(struct star));
	add_names(tables.files, file_rows, tables.stars);
	add_names(tables.dirs, dir_rows, tables.stars);
	g_once_init_leave(&once, 1);
}

static enum control_kind kind_of_file(const char *name)
{
	enum control_kind kind = GPOINTER_TO_INT(g_hash_table_lookup(tables.files, name));
	size_t len = strlen(name);

	for (guint i = 0; kind == CONTROL_NONE && i < tables.stars->len; i++) {
		const struct star *s = &g_array_index(tables.stars, struct star, i);

		if (g_pattern_spec_match(s->spec, len, name, NULL))
			kind = s->kind;
	}
	return kind;
}

static bool is_billing(const char *name)
{
	g_auto(GStrv) words = g_strsplit_set(name, "-_. ", -1);

	for (char **w = words; *w; w++)
		if (g_strv_contains(billing_words, *w))
			return true;
	return false;
}

/*
 * ".git" as file systems without case, HFS+ (which ignores some characters) and NTFS (which ignores dots and blanks at the end, and
 * has short names and streams) see it.
 */
static bool is_dot_git(const char *name)
{
	g_autofree char *plain = g_strdup(name);
	size_t n = 0, len;

	for (const char *p = name; *p; p++) {
		uint8_t a = (uint8_t)p[0], b = a ? (uint8_t)p[1] : 0, c = b ? (uint8_t)p[2] : 0;
		bool ignored = (a == 0xe2 && b == 0x80 && ((c >= 0x8c && c <= 0x8f) || (c >= 0xaa && c <= 0xae))) ||
			       (a == 0xe2 && b == 0x81 && c >= 0xaa && c <= 0xaf) || (a == 0xef && b == 0xbb && c == 0xbf);

		if (ignored)
			p += 2;
		else
			plain[n++] = *p;
	}
	plain[n] = '\0';
	plain[strcspn(plain, ":")] = '\0';
	for (len = strlen(plain); len > 0 && (plain[len - 1] == '.' || plain[len - 1] == ' '); len--)
		plain[len - 1] = '\0';
	return g_str_equal(plain, ".git") || g_str_equal(plain, "git~1");
}

/* Below .git: what makes git run programs. */
static enum control_kind kind_in_git(const char *rest)
{
	static const char *const code[] = { "hooks", "config", "config.worktree", "info", "modules", "worktrees", "objects/info", "commondir",
					    "gitdir", NULL };

	for (const char *const *c = code; *c; c++) {
		size_t n = strlen(*c);

		if (strncmp(rest, *c, n) == 0 && (!rest[n] || rest[n] == '/'))
			return CONTROL_GIT_CODE;
	}
	return CONTROL_GIT;
}

enum control_kind control_kind_of(const char *path)
{
	g_autofree char *lower = g_ascii_strdown(path, -1);
	enum control_kind kind = CONTROL_NONE;
	char *name = lower;

	tables_init();
	for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
		*slash = '\0';
		if (is_dot_git(name))
			return kind_in_git(slash + 1);
		if (kind == CONTROL_NONE)
			kind = GPOINTER_TO_INT(g_hash_table_lookup(tables.dirs, name));
	}
	/* A file called .git says where the repository is. */
	if (is_dot_git(name))
		return CONTROL_GIT_CODE;
	if (kind == CONTROL_NONE)
		kind = kind_of_file(name);
	if (kind == CONTROL_NONE)
		kind = GPOINTER_TO_INT(g_hash_table_lookup(tables.dirs, name));
	return kind == CONTROL_NONE && is_billing(name) ? CONTROL_BILLING : kind;
}
