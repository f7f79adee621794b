/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The walk by a table of options, and the parsers of single values.
 */

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/entry.h"
#include "config/load.h"

/* Levenshtein distance of two keys, by one row; keys are short. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], length = strlen(b);

	if (length >= sizeof(row) / sizeof(row[0]) || strlen(a) >= sizeof(row) / sizeof(row[0]))
		return SIZE_MAX;
	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < length; j++) {
			size_t change = diagonal + (a[i] != b[j]);
			diagonal = row[j + 1];
			row[j + 1] = diagonal + 1 < row[j] + 1 ? diagonal + 1 : row[j] + 1;
			if (change < row[j + 1])
				row[j + 1] = change;
		}
	}
	return row[length];
}

const char *option_nearest(const char *text, const char *const *words, size_t count)
{
	const char *nearest = NULL;
	size_t least = strlen(text) / 3 + 1; /* a third of the letters may be wrong */

	for (size_t i = 0; i < count; i++) {
		size_t changes = distance(text, words[i]);
		if (changes <= least && changes < strlen(words[i])) {
			if (nearest != NULL && changes == least)
				continue;
			nearest = words[i];
			least = changes;
		}
	}
	return nearest;
}

static void unknown_key(struct load *load, const struct yaml_node *key, const char *where,
			const struct option *options, size_t count)
{
	const char *keys[64];
	const char *nearest;

	assert(count <= sizeof(keys) / sizeof(keys[0]));
	for (size_t i = 0; i < count; i++)
		keys[i] = options[i].key;
	nearest = option_nearest(key->text, keys, count);
	if (nearest != NULL)
		load_error(load, key, "unknown key '%.80s' in %s; did you mean '%s'?", key->text,
			   where, nearest);
	else
		load_error(load, key, "unknown key '%.80s' in %s", key->text, where);
}

void options_parse(struct load *load, const struct yaml_node *mapping, const char *where,
		   const struct option *options, size_t count, void *base)
{
	if (yaml_is_null(mapping))
		return;
	if (mapping->kind != YAML_MAPPING) {
		load_error(load, mapping, "%s must be a mapping, not %s", where,
			   yaml_kind_text(mapping));
		return;
	}
	for (size_t i = 0; i < mapping->count; i++) {
		const struct yaml_node *key = mapping->items[2 * i];
		const struct option *option = NULL;
		for (size_t j = 0; j < count && option == NULL; j++)
			if (strcmp(options[j].key, key->text) == 0)
				option = &options[j];
		if (option == NULL)
			unknown_key(load, key, where, options, count);
		else
			option->parse(load, mapping->items[2 * i + 1], option,
				      (char *)base + option->offset);
	}
}

const char *option_text(struct load *load, const struct yaml_node *value, const char *what)
{
	bool truth = value->kind == YAML_SCALAR && value->plain &&
		     (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0);

	if (value->kind == YAML_SCALAR && !truth && !yaml_is_null(value))
		return value->text;
	load_error(load, value, "%s must be text, not %s", what,
		   truth ? value->text : yaml_kind_text(value));
	return NULL;
}

const struct yaml_node *option_list(struct load *load, const struct yaml_node *value,
				    const char *what)
{
	if (value->kind == YAML_SEQUENCE)
		return value;
	load_error(load, value, "%s must be a list, not %s", what, yaml_kind_text(value));
	return NULL;
}

/* YAML 1.2 core schema: true and false, not quoted. */
static bool parse_truth(struct load *load, const struct yaml_node *value,
			const struct option *option, bool *out)
{
	if (value->kind == YAML_SCALAR && value->plain) {
		if (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0) {
			*out = value->text[0] == 't';
			return true;
		}
	}
	load_error(load, value, "%s must be true or false", option->key);
	return false;
}

void option_switch(struct load *load, const struct yaml_node *value, const struct option *option,
		   void *target)
{
	struct option_bool *out = target;

	if (parse_truth(load, value, option, &out->value))
		out->place = load_place(value);
}

void option_flag(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	bool truth;

	if (parse_truth(load, value, option, &truth))
		*(uint8_t *)target = truth;
}

void option_bool(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	parse_truth(load, value, option, target);
}

/* The index of the word, or -1 after an error. */
static int parse_word(struct load *load, const struct yaml_node *value, const struct option *option)
{
	char all[128] = "";
	int count = 0;

	for (; option->words[count] != NULL; count++) {
		size_t used = strlen(all);
		if (value->kind == YAML_SCALAR && strcmp(value->text, option->words[count]) == 0)
			return count;
		snprintf(all + used, sizeof(all) - used, "%s%s",
			 count == 0                         ? ""
			 : option->words[count + 1] == NULL ? " or "
							    : ", ",
			 option->words[count]);
	}
	if (value->kind == YAML_SCALAR && !yaml_is_null(value))
		load_error(load, value, "%s must be %s, not '%.80s'", option->key, all,
			   value->text);
	else
		load_error(load, value, "%s must be %s, not %s", option->key, all,
			   yaml_kind_text(value));
	return -1;
}

void option_choice(struct load *load, const struct yaml_node *value, const struct option *option,
		   void *target)
{
	struct option_bool *out = target;
	int word = parse_word(load, value, option);

	if (word < 0)
		return;
	out->value = word == 1;
	out->place = load_place(value);
}

void option_permit(struct load *load, const struct yaml_node *value, const struct option *option,
		   void *target)
{
	if (value->kind == YAML_SCALAR && value->plain &&
	    (strcmp(value->text, "true") == 0 || strcmp(value->text, "false") == 0))
		option_switch(load, value, option, target);
	else
		option_choice(load, value, option, target);
}

void option_word(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	int word = parse_word(load, value, option);

	if (word >= 0)
		*(uint8_t *)target = (uint8_t)word;
}

bool option_number(struct load *load, const struct yaml_node *value, const char *what,
		   uint64_t least, uint64_t most, uint64_t *out)
{
	bool number = value->kind == YAML_SCALAR && value->plain && isdigit(value->text[0]) &&
		      (value->text[0] != '0' || value->text[1] == '\0' || value->text[1] == 'x');
	unsigned long long parsed = 0;
	char *end = NULL;

	if (number) {
		errno = 0;
		parsed = strtoull(value->text, &end, value->text[1] == 'x' ? 16 : 10);
		number = errno == 0 && *end == '\0';
	}
	if (!number || parsed < least || parsed > most) {
		load_error(load, value, "%s must be a number from %llu to %llu", what,
			   (unsigned long long)least, (unsigned long long)most);
		return false;
	}
	*out = parsed;
	return true;
}

void option_u16(struct load *load, const struct yaml_node *value, const struct option *option,
		void *target)
{
	uint64_t number;

	if (option_number(load, value, option->key, option->least, option->most, &number))
		*(uint16_t *)target = (uint16_t)number;
}

void option_u32(struct load *load, const struct yaml_node *value, const struct option *option,
		void *target)
{
	uint64_t number;

	if (option_number(load, value, option->key, option->least, option->most, &number))
		*(uint32_t *)target = (uint32_t)number;
}

void option_size(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	static const char units[] = "KMG";
	unsigned long long number = 0;
	char *end = NULL;
	const char *unit = NULL;
	bool good = value->kind == YAML_SCALAR && isdigit(value->text[0]);

	if (good) {
		errno = 0;
		number = strtoull(value->text, &end, 10);
		unit = *end != '\0' ? strchr(units, *end) : NULL;
		good = errno == 0 && number <= UINT32_MAX &&
		       (*end == '\0' || (unit != NULL && end[1] == '\0'));
	}
	if (good && unit != NULL)
		number <<= 10 * (unit - units + 1);
	if (!good || number < option->least || number > option->most) {
		load_error(load, value, "%s must be a size like 16M, from %llu to %llu octets",
			   option->key, (unsigned long long)option->least,
			   (unsigned long long)option->most);
		return;
	}
	*(uint32_t *)target = (uint32_t)number;
}

static bool has_control_bytes(const char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

void option_path(struct load *load, const struct yaml_node *value, const struct option *option,
		 void *target)
{
	const char *text = option_text(load, value, option->key);

	if (text == NULL)
		return;
	if (text[0] != '/' || value->length >= option->most || has_control_bytes(text)) {
		load_error(load, value, "%s must be an absolute path of at most %u octets",
			   option->key, (unsigned)option->most - 1);
		return;
	}
	memcpy(target, text, value->length + 1);
}

bool option_name(struct load *load, const struct yaml_node *value, const char *what,
		 char out[CLIENT_NAME_MAX + 1])
{
	const char *text = option_text(load, value, what);

	if (text == NULL)
		return false;
	if (value->length == 0 || value->length > CLIENT_NAME_MAX ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
		    value->length) {
		load_error(load, value, "%s must be 1 to %u letters, digits, '.', '-' or '_'", what,
			   CLIENT_NAME_MAX);
		return false;
	}
	memcpy(out, text, value->length + 1);
	return true;
}

bool option_interface(struct load *load, const struct yaml_node *value, const char *what,
		      bool pattern, char out[16])
{
	const char *text = option_text(load, value, what);
	size_t length;

	if (text == NULL)
		return false;
	/* Without its '+' a pattern has to be a name, and all names begin with nothing. */
	length = value->length - (pattern && value->length > 1 && text[value->length - 1] == '+');
	if (length == 0 || value->length >= 16 ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@-") <
		    length ||
	    strcmp(text, ".") == 0 || strcmp(text, "..") == 0) {
		load_error(load, value, "%s: '%.40s' is no name of an interface", what, text);
		return false;
	}
	memcpy(out, text, value->length + 1);
	return true;
}

void option_entries(struct load *load, const struct yaml_node *value, const struct option *option,
		    void *target)
{
	const struct yaml_node *list = option_list(load, value, option->key);
	struct match_list *out = target;
	struct match_entry *entries;
	size_t count = 0;

	if (list == NULL)
		return;
	entries = load_alloc(load, list->count, sizeof(*entries));
	if (entries == NULL)
		return;
	for (size_t i = 0; i < list->count; i++) {
		const struct yaml_node *item = list->items[i];
		char problem[ENTRY_PROBLEM_SIZE];
		const char *text = option_text(load, item, "an entry");
		int status;
		if (text == NULL)
			continue;
		status = entry_parse(text, item->length, option->rules, &entries[count], problem);
		if (status < 0)
			load_error(load, item, "%s: %s", option->key, problem);
		else if (status > 0)
			load_warning(load, item, "%s: %s", option->key, problem);
		if (status < 0)
			continue;
		entries[count++].place = load_place(item);
	}
	*out = (struct match_list){.entries = entries, .count = count};
}

const struct yaml_node *option_mapping(struct load *load, const struct yaml_node *value,
				       const char *what)
{
	if (value->kind == YAML_MAPPING)
		return value;
	if (!yaml_is_null(value))
		load_error(load, value, "%s must be a mapping, not %s", what,
			   yaml_kind_text(value));
	return NULL;
}

bool option_host(struct load *load, const struct yaml_node *value, const char *what,
		 struct name *out)
{
	struct match_entry entry;
	char problem[ENTRY_PROBLEM_SIZE];
	const char *text = option_text(load, value, what);

	if (text == NULL)
		return false;
	if (entry_parse(text, value->length, ENTRY_NAMES, &entry, problem) < 0) {
		load_error(load, value, "%s: %s", what, problem);
		return false;
	}
	*out = entry.name;
	return true;
}

void option_print(const char *key, const char *text, FILE *out)
{
	fprintf(out, "  %s: \"", key);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		fputc(*text, out);
	}
	fputs("\"\n", out);
}
