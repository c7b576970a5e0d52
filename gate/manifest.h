/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * manifest - what a package's manifest would fetch and run
 *
 * JSON, TOML and XML are read as what they are, since whoever writes them chooses where lines end and what stands in strings; the others
 * line by line. A manifest that is a program (Gemfile, build.gradle) is taken line by line too: what is no dependency is code. Text is
 * hostile: no recursion, time and memory in proportion to its length, at most MANIFEST_ITEMS_MAX items.
 */

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define MANIFEST_ITEMS_MAX 100000

enum manifest_kind {
	MANIFEST_NONE,
	MANIFEST_NPM,      /* package.json */
	MANIFEST_COMPOSER, /* composer.json */
	MANIFEST_PIP,      /* requirements.txt, one requirement a line */
	MANIFEST_TOML,     /* pyproject.toml, Cargo.toml, Pipfile */
	MANIFEST_GO,       /* go.mod */
	MANIFEST_RUBY,     /* Gemfile, *.gemspec */
	MANIFEST_XML,      /* pom.xml, *.csproj */
	MANIFEST_GRADLE,
	MANIFEST_CODE,     /* setup.py, build.rs: run when the package is built or installed */
	MANIFEST_OTHER,    /* setup.cfg, pubspec.yaml: has dependencies or where they come from, and is not read */
	MANIFEST_LOCK,     /* what exactly is fetched: for machines, so only that it changed is of interest */
};

enum manifest_part {
	MANIFEST_DEPENDENCY,
	MANIFEST_SOURCE,  /* where dependencies come from: an index, a registry, a replacement */
	MANIFEST_INSTALL, /* a command that runs on installation */
	MANIFEST_SCRIPT,  /* a command that runs when asked for */
	MANIFEST_BUILD,   /* code that runs when the package is built */
};

struct manifest_item {
	enum manifest_part part;
	char *name;
	char *spec;    /* version, URL, command */
	uint64_t line; /* from 1 */
};

enum manifest_kind manifest_kind_of(const char *path);

/*
 * manifest_items() - from a key to struct manifest_item; frees itself. NULL when the text is not understood: not JSON, nested too deep,
 * too many items, names that nobody can read.
 */
GHashTable *manifest_items(enum manifest_kind kind, const char *text, size_t size);
