/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A YAML text as a tree of values with places. The one file that includes libfyaml is yaml.c.
 *
 * What a configuration does not need is refused: tags, several documents, keys that are no plain
 * text. Aliases are shared, not copied; what a tree would be when written out is bounded all the
 * same.
 */

#include <stdbool.h>
#include <stddef.h>

#include "config/arena.h"

#define YAML_SIZE_MAX   (16u << 20) /* octets of text: some 500,000 list entries */
#define YAML_DEPTH_MAX  16u         /* nested values; a configuration needs six */
#define YAML_WEIGHT_MAX 1000000u    /* values after writing out every alias */

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
	enum yaml_kind kind;
	bool plain;       /* a scalar without quotes */
	const char *text; /* of a scalar, NUL-terminated, holds no other NUL */
	size_t length;
	unsigned line, column;    /* from 1 */
	size_t weight;            /* this and everything below */
	struct yaml_node **items; /* of a mapping: key, value, key, value, … */
	size_t count;             /* items of a sequence, pairs of a mapping */
};

/* Called for each thing that is wrong; LINE 0: no place in the text. */
typedef void yaml_report(void *context, unsigned line, unsigned column, const char *text);

/*
 * Reads TEXT, LENGTH octets. The tree lives in ARENA. Returns true and *OUT (NULL for a text
 * without a value) when nothing was reported, else false.
 */
bool yaml_read(const char *text, size_t length, struct arena *arena, yaml_report *report,
	       void *context, const struct yaml_node **out);

/* "a list", "a mapping", "text"…: what NODE is, for messages. */
const char *yaml_kind_text(const struct yaml_node *node);

/* Nothing was written: an empty plain scalar, ~ or null. */
bool yaml_is_null(const struct yaml_node *node);
