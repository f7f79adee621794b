/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Theory: libfyaml's parser gives events; a stack of open collections, one slot a level, turns them
 * into nodes. Only the bottom of a closed collection is final, so an alias can name finished values
 * alone and a tree can never hold itself. The text is checked for UTF-8 and control bytes before
 * libfyaml sees it.
 */

#include "config/yaml.h"

#include <libfyaml.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Anchors of one text; each alias looks through all of them. */
#define ANCHORS_MAX 256u

/* A collection that is open; ITEMS is malloc()ed until it is closed. */
struct level {
	struct yaml_node *node;
	struct yaml_node **items;
	size_t count, capacity;
	const char *anchor;
};

struct builder {
	struct arena *arena;
	yaml_report *report;
	void *context;
	bool failed;
	struct level levels[YAML_DEPTH_MAX];
	size_t depth;
	struct yaml_node *root;
	bool has_document;
	struct {
		const char *name;
		struct yaml_node *node;
	} anchors[ANCHORS_MAX];
	size_t anchor_count;
};

static void fail(struct builder *builder, unsigned line, unsigned column, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static void fail(struct builder *builder, unsigned line, unsigned column, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	builder->report(builder->context, line, column, text);
	builder->failed = true;
}

static void out_of_memory(struct builder *builder)
{
	if (!builder->arena->failed)
		fail(builder, 0, 0, "out of memory");
	builder->arena->failed = true;
	builder->failed = true;
}

static void place_of(struct fy_token *token, unsigned *line, unsigned *column)
{
	const struct fy_mark *mark = token != NULL ? fy_token_start_mark(token) : NULL;

	*line = mark != NULL ? (unsigned)mark->line + 1 : 1;
	*column = mark != NULL ? (unsigned)mark->column + 1 : 1;
}

static struct yaml_node *node_new(struct builder *builder, enum yaml_kind kind,
				  struct fy_token *token)
{
	struct yaml_node *node = arena_alloc(builder->arena, 1, sizeof(*node));

	if (node == NULL) {
		out_of_memory(builder);
		return NULL;
	}
	node->kind = kind;
	node->weight = 1;
	place_of(token, &node->line, &node->column);
	return node;
}

/* Puts a finished NODE where the text has it. */
static void add(struct builder *builder, struct yaml_node *node)
{
	if (builder->depth == 0) {
		builder->root = node;
		return;
	}
	struct level *level = &builder->levels[builder->depth - 1];
	if (level->count == level->capacity) {
		size_t capacity = level->capacity == 0 ? 16 : level->capacity * 2;
		struct yaml_node **items =
			realloc(level->items, capacity * sizeof(struct yaml_node *));
		if (items == NULL) {
			out_of_memory(builder);
			return;
		}
		level->items = items;
		level->capacity = capacity;
	}
	level->items[level->count++] = node;
	level->node->weight += node->weight;
	if (level->node->weight > YAML_WEIGHT_MAX)
		fail(builder, node->line, node->column, "more than %u values, aliases written out",
		     YAML_WEIGHT_MAX);
}

/* A copy of the anchor's name, NULL when there is none. */
static const char *anchor_name(struct builder *builder, struct fy_token *anchor)
{
	size_t length;
	const char *text;

	if (anchor == NULL)
		return NULL;
	text = fy_token_get_text(anchor, &length);
	return text != NULL ? arena_text(builder->arena, text, length) : NULL;
}

static void remember(struct builder *builder, const char *anchor, struct yaml_node *node)
{
	if (anchor == NULL)
		return;
	if (builder->anchor_count == ANCHORS_MAX) {
		fail(builder, node->line, node->column, "more than %u anchors", ANCHORS_MAX);
		return;
	}
	builder->anchors[builder->anchor_count].name = anchor;
	builder->anchors[builder->anchor_count++].node = node;
}

static void refuse_tag(struct builder *builder, struct fy_token *tag)
{
	unsigned line, column;

	if (tag == NULL)
		return;
	place_of(tag, &line, &column);
	fail(builder, line, column, "tags (!…) have no meaning here");
}

static void open_collection(struct builder *builder, enum yaml_kind kind, struct fy_token *start,
			    struct fy_token *anchor, struct fy_token *tag)
{
	struct yaml_node *node = node_new(builder, kind, start);

	if (node == NULL)
		return;
	refuse_tag(builder, tag);
	if (builder->depth == YAML_DEPTH_MAX) {
		fail(builder, node->line, node->column, "nested more than %u levels deep",
		     YAML_DEPTH_MAX);
		return;
	}
	builder->levels[builder->depth++] =
		(struct level){.node = node, .anchor = anchor_name(builder, anchor)};
}

static int compare_keys(const void *a, const void *b)
{
	const struct yaml_node *left = *(struct yaml_node *const *)a;
	const struct yaml_node *right = *(struct yaml_node *const *)b;
	int order = strcmp(left->text, right->text);

	if (order != 0)
		return order;
	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return left->column < right->column ? -1 : left->column > right->column;
}

/* Every key is text, and no two of a mapping are equal. */
static void check_keys(struct builder *builder, const struct yaml_node *mapping)
{
	struct yaml_node **keys =
		arena_alloc(builder->arena, mapping->count, sizeof(struct yaml_node *));

	if (keys == NULL) {
		out_of_memory(builder);
		return;
	}
	for (size_t i = 0; i < mapping->count; i++) {
		keys[i] = mapping->items[2 * i];
		if (keys[i]->kind != YAML_SCALAR) {
			fail(builder, keys[i]->line, keys[i]->column, "a key must be text, not %s",
			     yaml_kind_text(keys[i]));
			return;
		}
	}
	qsort(keys, mapping->count, sizeof(struct yaml_node *), compare_keys);
	for (size_t i = 1; i < mapping->count; i++)
		if (strcmp(keys[i - 1]->text, keys[i]->text) == 0)
			fail(builder, keys[i]->line, keys[i]->column,
			     "key '%.100s' is there twice, first in line %u", keys[i]->text,
			     keys[i - 1]->line);
}

static void close_collection(struct builder *builder)
{
	struct level level = builder->levels[--builder->depth];
	struct yaml_node *node = level.node;

	node->count = node->kind == YAML_MAPPING ? level.count / 2 : level.count;
	node->items = arena_alloc(builder->arena, level.count, sizeof(struct yaml_node *));
	if (node->items == NULL)
		out_of_memory(builder);
	else if (level.count > 0)
		memcpy(node->items, level.items, level.count * sizeof(struct yaml_node *));
	free(level.items);
	if (builder->failed)
		return;
	if (node->kind == YAML_MAPPING)
		check_keys(builder, node);
	remember(builder, level.anchor, node);
	add(builder, node);
}

static void add_scalar(struct builder *builder, struct fy_token *value, struct fy_token *anchor,
		       struct fy_token *tag)
{
	struct yaml_node *node = node_new(builder, YAML_SCALAR, value);
	size_t length = 0;
	const char *text = value != NULL ? fy_token_get_text(value, &length) : "";

	if (node == NULL)
		return;
	refuse_tag(builder, tag);
	if (value == NULL && builder->depth > 0 && builder->levels[builder->depth - 1].count > 0) {
		/* an empty value has no token: it stands where its key does */
		struct level *level = &builder->levels[builder->depth - 1];
		node->line = level->items[level->count - 1]->line;
		node->column = level->items[level->count - 1]->column;
	}
	node->plain = value == NULL || fy_token_scalar_style(value) == FYSS_PLAIN;
	if (!node->plain && node->column > 1 &&
	    (fy_token_scalar_style(value) == FYSS_SINGLE_QUOTED ||
	     fy_token_scalar_style(value) == FYSS_DOUBLE_QUOTED))
		node->column--; /* the mark is behind the quote */
	if (text == NULL || memchr(text, '\0', length) != NULL) {
		fail(builder, node->line, node->column, "a value holds a NUL byte");
		return;
	}
	node->text = arena_text(builder->arena, text, length);
	node->length = length;
	if (node->text == NULL) {
		out_of_memory(builder);
		return;
	}
	remember(builder, anchor_name(builder, anchor), node);
	add(builder, node);
}

static void add_alias(struct builder *builder, struct fy_token *alias)
{
	size_t length;
	const char *text = fy_token_get_text(alias, &length);
	unsigned line, column;

	/* the last anchor of a name wins: YAML 1.2 section 7.1 */
	for (size_t i = builder->anchor_count; text != NULL && i > 0; i--) {
		const char *name = builder->anchors[i - 1].name;
		if (strlen(name) == length && memcmp(name, text, length) == 0) {
			add(builder, builder->anchors[i - 1].node);
			return;
		}
	}
	place_of(alias, &line, &column);
	fail(builder, line, column, "alias '%.*s' names nothing that is finished before it",
	     (int)(length < 100 ? length : 100), text != NULL ? text : "");
}

static void take_event(struct builder *builder, const struct fy_event *event)
{
	unsigned line, column;

	switch (event->type) {
	case FYET_DOCUMENT_START:
		if (builder->has_document) {
			place_of(event->document_start.document_start, &line, &column);
			fail(builder, line, column, "more than one document");
		}
		builder->has_document = true;
		break;
	case FYET_MAPPING_START:
		open_collection(builder, YAML_MAPPING, event->mapping_start.mapping_start,
				event->mapping_start.anchor, event->mapping_start.tag);
		break;
	case FYET_SEQUENCE_START:
		open_collection(builder, YAML_SEQUENCE, event->sequence_start.sequence_start,
				event->sequence_start.anchor, event->sequence_start.tag);
		break;
	case FYET_MAPPING_END:
	case FYET_SEQUENCE_END:
		close_collection(builder);
		break;
	case FYET_SCALAR:
		add_scalar(builder, event->scalar.value, event->scalar.anchor, event->scalar.tag);
		break;
	case FYET_ALIAS:
		add_alias(builder, event->alias.anchor);
		break;
	case FYET_NONE:
	case FYET_STREAM_START:
	case FYET_STREAM_END:
	case FYET_DOCUMENT_END:
		break;
	}
}

static void report_diagnostics(struct builder *builder, struct fy_diag *diag)
{
	void *iterator = NULL;
	struct fy_diag_error *error;
	bool told = false;

	while ((error = fy_diag_errors_iterate(diag, &iterator)) != NULL) {
		/* what follows a syntax error is its echo */
		if (!told)
			fail(builder, error->line > 0 ? (unsigned)error->line : 1,
			     error->column > 0 ? (unsigned)error->column : 1, "YAML: %s",
			     error->msg != NULL ? error->msg : "syntax error");
		told = true;
	}
	if (!told && !builder->failed)
		fail(builder, 1, 1, "YAML: cannot be read");
}

static void parse(struct builder *builder, const char *text, size_t length, struct fy_diag *diag)
{
	const struct fy_parse_cfg settings = {
		.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG | FYPCF_DEFAULT_VERSION_1_2 |
			 FYPCF_JSON_NONE,
		.diag = diag,
	};
	struct fy_parser *parser = fy_parser_create(&settings);
	struct fy_event *event;

	if (parser == NULL || fy_parser_set_string(parser, text, length) != 0) {
		fy_parser_destroy(parser);
		out_of_memory(builder);
		return;
	}
	while (!builder->failed && (event = fy_parser_parse(parser)) != NULL) {
		take_event(builder, event);
		fy_parser_event_free(parser, event);
	}
	if (!builder->failed && fy_parser_get_stream_error(parser))
		report_diagnostics(builder, diag);
	fy_parser_destroy(parser);
}

/* Octets of the UTF-8 sequence at TEXT, 0 when it is none (RFC 3629). */
static size_t utf8_length(const unsigned char *text, size_t left)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t length;
	uint32_t point;

	if (text[0] < 0x80)
		return 1;
	length = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	if (text[0] < 0xc2 || text[0] > 0xf4 || length > left)
		return 0;
	point = text[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (text[i] & 0x3fu);
	}
	if (point < least[length] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	return length;
}

static bool check_bytes(struct builder *builder, const char *text, size_t length)
{
	unsigned line = 1, column = 1;

	for (size_t i = 0; i < length; column++) {
		unsigned char byte = (unsigned char)text[i];
		size_t step = utf8_length((const unsigned char *)text + i, length - i);
		if (step == 0) {
			fail(builder, line, column, "byte 0x%02x is no UTF-8", byte);
			return false;
		}
		if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7f) {
			fail(builder, line, column, byte == 0 ? "NUL byte" : "control byte 0x%02x",
			     byte);
			return false;
		}
		if (byte == '\n') {
			line++;
			column = 0;
		}
		i += step;
	}
	return true;
}

bool yaml_read(const char *text, size_t length, struct arena *arena, yaml_report *report,
	       void *context, const struct yaml_node **out)
{
	struct builder builder = {.arena = arena, .report = report, .context = context};
	struct fy_diag_cfg diag_settings;
	struct fy_diag *diag;

	if (length > YAML_SIZE_MAX) {
		fail(&builder, 0, 0, "more than %u octets", YAML_SIZE_MAX);
		return false;
	}
	if (!check_bytes(&builder, text, length))
		return false;
	fy_diag_cfg_default(&diag_settings);
	diag_settings.fp = NULL;
	diag = fy_diag_create(&diag_settings);
	if (diag == NULL) {
		out_of_memory(&builder);
		return false;
	}
	fy_diag_set_collect_errors(diag, true);
	parse(&builder, text, length, diag);
	fy_diag_destroy(diag);
	while (builder.depth > 0)
		free(builder.levels[--builder.depth].items);
	if (arena->failed)
		out_of_memory(&builder);
	if (!builder.failed)
		*out = builder.root;
	return !builder.failed;
}

bool yaml_is_null(const struct yaml_node *node)
{
	return node->kind == YAML_SCALAR && node->plain &&
	       (node->length == 0 || strcmp(node->text, "~") == 0 ||
		strcmp(node->text, "null") == 0);
}

const char *yaml_kind_text(const struct yaml_node *node)
{
	switch (node->kind) {
	case YAML_SEQUENCE:
		return "a list";
	case YAML_MAPPING:
		return "a mapping";
	case YAML_SCALAR:
		break;
	}
	return yaml_is_null(node) ? "nothing" : "text";
}
