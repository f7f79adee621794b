/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Inside config/: what the parsers of the sections share. A section is a table of options, each a
 * key, the parser of its value, and where the value goes; options_parse() walks a mapping by such a
 * table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "config/arena.h"
#include "config/config.h"
#include "config/yaml.h"

/* Findings of one run: past it one line says that there are more. */
#define LOAD_FINDINGS_MAX 100u
#define LOAD_NO_LINE      (~0u) /* the line of that one: it sorts last */

/* What lies behind a struct config: config_free() and config_print() need more than the public
 * part. */
struct config_private {
	struct config config; /* first: a struct config * is a struct config_private * */
	struct arena arena;
	struct option_bool strip_ech; /* resolver: {strip_ech}: the default of every policy */
	struct match_list floor_names, floor_addresses;
	const char *sources[CONFIG_SOURCES]; /* enum config_place */
};

#define CGROUP_PATH_MAX 256

const struct config_private *config_private_of(const struct config *config);

struct load {
	struct config_findings *findings;
	struct config_private *private;
	struct arena *arena;             /* of the configuration; the YAML tree has its own */
	const struct yaml_node *clients; /* read when everything else was */
};

/* A yaml_report; CONTEXT is the struct load. */
void load_report(void *context, unsigned line, unsigned column, const char *text);

void load_error(struct load *load, const struct yaml_node *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void load_warning(struct load *load, const struct yaml_node *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The place of NODE in the configuration file. */
struct place load_place(const struct yaml_node *node);

/* COUNT zeroed values; on failure NULL, and the whole load fails at its end. */
void *load_alloc(struct load *load, size_t count, size_t size);

struct option;
typedef void option_parser(struct load *load, const struct yaml_node *value,
			   const struct option *option, void *target);

struct option {
	const char *key;
	option_parser *parse;
	size_t offset;            /* of the target in the structure of the section */
	uint64_t least, most;     /* numbers; `most` is the room of a text */
	const char *const *words; /* of a choice, NULL-terminated: the index is the value */
	unsigned rules;           /* enum entry_rule, of lists of entries */
};

/*
 * Every key of MAPPING by the COUNT rows of OPTIONS, targets inside BASE. WHERE names the section
 * in messages
 * ("gate", "policy 'ci'"). A value that is not written at all leaves the defaults.
 */
void options_parse(struct load *load, const struct yaml_node *mapping, const char *where,
		   const struct option *options, size_t count, void *base);

/* Scalars. Each reports what is wrong and then leaves the target alone. */
option_parser option_switch; /* true, false -> struct option_bool */
option_parser option_choice; /* one of two words -> struct option_bool: false, true */
option_parser option_permit; /* deny, allow, or false, true -> struct option_bool */
option_parser option_flag;   /* true, false -> uint8_t */
option_parser option_bool;   /* true, false -> bool */
option_parser option_word;   /* one of `words` -> uint8_t */
option_parser option_u16;
option_parser option_u32;
option_parser option_size;    /* octets with K, M or G -> uint32_t */
option_parser option_path;    /* absolute path -> char[most] */
option_parser option_entries; /* a list of entries by `rules` -> struct match_list */

/* The text of a scalar that is written, else NULL and an error. */
const char *option_text(struct load *load, const struct yaml_node *value, const char *what);

/* A list, else NULL and an error. */
const struct yaml_node *option_list(struct load *load, const struct yaml_node *value,
				    const char *what);

/* A mapping, NULL after an error or when nothing is written. */
const struct yaml_node *option_mapping(struct load *load, const struct yaml_node *value,
				       const char *what);

/* A host name without wildcard, canonical; false after an error. */
bool option_host(struct load *load, const struct yaml_node *value, const char *what,
		 struct name *out);

/* A decimal or 0x-hexadecimal number within bounds; false after an error. */
bool option_number(struct load *load, const struct yaml_node *value, const char *what,
		   uint64_t least, uint64_t most, uint64_t *out);

/* Short names: letters, digits, '.', '-', '_', at most CLIENT_NAME_MAX; false after an error. */
bool option_name(struct load *load, const struct yaml_node *value, const char *what,
		 char out[CLIENT_NAME_MAX + 1]);

/* The name of an interface into OUT (16 octets); with PATTERN "veth+" as well, every name that begins so. */
bool option_interface(struct load *load, const struct yaml_node *value, const char *what,
		      bool pattern, char out[16]);

/* The word of WORDS nearest to TEXT, NULL when none is near; for "did you mean". */
const char *option_nearest(const char *text, const char *const *words, size_t count);

/* custom.c: the hook of a policy, all three into its struct hook_source. */
option_parser custom_option;
option_parser custom_stages_option;
option_parser custom_timeout_option;
/* After POLICY was read: what was not written gets its default. */
void custom_check(struct load *load, const struct yaml_node *policy, struct hook_source *hook);
/* After all were. */
void custom_count(struct load *load);
void custom_print(const struct hook_source *hook, FILE *out);

/* The sections. VALUE is the section's mapping, TARGET a struct config_private. */
option_parser resolver_section;
option_parser gate_section;
option_parser log_section;
option_parser control_section;
option_parser pins_section;
option_parser floor_section;
option_parser user_option;
option_parser policies_section;
option_parser clients_section;

/*
 * One entry of `clients`; false after an error. VIA, where it is not NULL, says that a `via` may be
 * there and gets it, NULL for none.
 */
bool clients_parse(struct load *load, const struct yaml_node *value, struct client_source *client,
		   const struct yaml_node **via);
bool clients_same_selector(const struct client_selector *a, const struct client_selector *b);

/* What can be checked only when all sections are read. */
void policies_finish(struct load *load);
void clients_finish(struct load *load);

/* What a section holds when nothing is written. */
void resolver_defaults(struct config_private *private);
void gate_defaults(struct config_private *private);

/* The sections as YAML. */
void resolver_print(const struct config_private *private, FILE *out);
void gate_print(const struct config_private *private, FILE *out);
void clients_print(const struct config_private *private, FILE *out);
void policies_print(const struct config_private *private, FILE *out);

/* "  KEY: "TEXT"" with what YAML wants escaped; TEXT holds no control bytes. */
void option_print(const char *key, const char *text, FILE *out);
