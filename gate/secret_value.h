/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * secret_value - is this text a secret, or one of the many things that look like one?
 *
 * For secrets without a provider's format. What speaks for one: the name it is assigned to, and that it looks like chance. What
 * speaks against: it is a placeholder, a reference to where the secret is, a hash or id, or made of words.
 */

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

enum secret_kind {
	SECRET_NONE,
	SECRET_STRICT,   /* perhaps a secret's name: only what can't be anything else */
	SECRET_TOKEN,    /* made by a machine */
	SECRET_PASSWORD, /* may be made by a human, so it may be short */
	SECRET_AUTH,     /* base64 of user:password, or a token */
};

/* secret_name_kind() - what "AWS_SECRET_ACCESS_KEY", "db.password", "apiKey" or "password_hash_algorithm" holds. */
enum secret_kind secret_name_kind(const char *name, size_t size);

bool secret_value_is_plausible(const char *value, size_t size, enum secret_kind kind);
/* secret_password_is_plausible() - of a URL or an Authorization header: right after its user's name. */
bool secret_password_is_plausible(const char *user, size_t user_size, const char *value, size_t size);
/* secret_value_is_placeholder() - "xxxx", "EXAMPLE", "<token>", "12345678": for provider formats too. */
bool secret_value_is_placeholder(const char *value, size_t size);
/* secret_basic_is_plausible() - base64 of "user:password". */
bool secret_basic_is_plausible(const char *value, size_t size);

/* secret_entropy() - Shannon's, in bits per character. */
double secret_entropy(const char *value, size_t size);
