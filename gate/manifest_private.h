/* SPDX-License-Identifier: MIT */
#pragma once

/* manifest_private - what the readers of one format each share; for gate/manifest*.c only */

#include "gate/manifest.h"

/* A key of an item, or the name of a section: what is longer is there to cost memory, and nobody reads it. */
#define MANIFEST_NAME_MAX 4096

struct manifest_reader {
	GHashTable *items;
	bool last_holds; /* of equal names, as for those who read JSON; else each stays, for who reads it may take either */
	bool refused;    /* too many items, or something that is too long: the whole is not understood then */
};

/*
 * manifest_add() - one item; takes @name, borrows the rest. @scope tells equal names of different sections apart. False: enough, the
 * walk ends.
 */
bool manifest_add(struct manifest_reader *r, enum manifest_part part, const char *scope, char *name, const char *spec, uint64_t line);

/* manifest_first_word() - what stands in front of the first of @ends. Caller frees. */
char *manifest_first_word(const char *text, const char *ends);

/* manifest_first_string() - the first string in quotes, else the whole text. Caller frees. */
char *manifest_first_string(const char *text);

/* manifest_toml(), manifest_xml() - read the whole text; false when a part of it can't be told from the rest. */
bool manifest_toml(struct manifest_reader *r, const char *text, size_t size);
bool manifest_xml(struct manifest_reader *r, const char *text, size_t size);
