// SPDX-License-Identifier: GPL-2.0-only
/*
 * The values of all hits lie one after the other in one array of words: for each hit the number of
 * its values, and for each value a word that says what it is, and the words of it. Fields are
 * selected when the hits become events, because only then it is known which ones every hit has.
 */
#include "host-collector/import/other_events.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOTS = 2 * OTHER_EVENTS_MAX, /* of the table of names */
	/* In the word before a value. */
	WORD_FIELD = 0xff,   /* number of the field */
	WORD_TYPE_SHIFT = 8, /* enum user_field_type */
	WORD_WORDS_SHIFT = 16,
};

struct other_field {
	char name[OTHER_FIELD_BYTES];
	uint64_t seen;    /* in so many hits */
	uint8_t types;    /* bit for each enum user_field_type that occurred */
	uint8_t text_len; /* of the longest text */
};

struct other_event {
	char system[OTHER_SYSTEM_BYTES], name[IMPORT_NAME_BYTES];
	uint64_t hits;
	size_t n_fields;
	struct other_field fields[VS_USER_FIELDS_MAX];
};

struct other_events {
	size_t n;
	struct other_event events[OTHER_EVENTS_MAX];
	uint16_t slots[SLOTS]; /* number of the event, counted from 1; 0: empty */
	uint64_t *words;
	size_t n_words, capacity;
};

/* ---- a hit ---- */

static bool is_identifier(const char *name, size_t len)
{
	if (!len || isdigit((unsigned char)*name))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	}
	return true;
}

/* Returns the value to fill for a field of this name. Returns NULL if the hit is full, if it has
 * this field already, or if the name is not an identifier. */
static struct other_value *value_add(struct other_hit *h, const char *name, size_t len)
{
	struct other_value *v = &h->values[h->n];

	if (h->n == VS_USER_FIELDS_MAX || len >= sizeof(v->name) || !is_identifier(name, len))
		return NULL;
	for (size_t i = 0; i < h->n; i++) {
		if (!strncmp(h->values[i].name, name, len) && !h->values[i].name[len])
			return NULL;
	}
	h->n++;
	memset(v, 0, sizeof(*v));
	memcpy(v->name, name, len);
	return v;
}

void other_hit_number(struct other_hit *h, const char *name, enum user_field_type type,
		      uint64_t number)
{
	struct other_value *v = value_add(h, name, strlen(name));

	if (!v)
		return;
	v->type = type;
	v->number = number;
}

static void text_set(struct other_value *v, const char *text, size_t len, size_t max)
{
	len = strnlen(text, len);
	v->type = USER_TEXT;
	memcpy(v->text, text, len < max ? len : max);
}

void other_hit_text(struct other_hit *h, const char *name, const char *text, size_t len)
{
	struct other_value *v = value_add(h, name, strlen(name));

	if (v)
		text_set(v, text, len, OTHER_TEXT_BYTES);
}

/* "12", "-5", "0x1f": all of text[0..len). */
static bool number_parse(const char *text, size_t len, struct other_value *v)
{
	const bool hex = len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = text + (hex ? 2 : *text == '-');
	char *end;

	if (!len || !isxdigit((unsigned char)*digits))
		return false;
	errno = 0;
	v->number = hex            ? strtoull(digits, &end, 16)
		    : *text == '-' ? (uint64_t)strtoll(text, &end, 10)
				   : strtoull(text, &end, 10);
	if (errno || end != text + len)
		return false;
	v->type = hex ? USER_HEX : *text == '-' ? USER_SIGNED : USER_UNSIGNED;
	return true;
}

/* Finds the next "name=" that begins a word, at or behind `at`. Returns the name and sets *len to
 * its length, or returns NULL. */
static const char *name_next(const char *at, size_t *len)
{
	for (const char *equal = strchr(at, '='); equal; equal = strchr(equal + 1, '=')) {
		const char *name = equal;

		while (name > at && (isalnum((unsigned char)name[-1]) || name[-1] == '_'))
			name--;
		*len = (size_t)(equal - name);
		if (is_identifier(name, *len) && equal[1] != '=' &&
		    (name == at || name[-1] == ' ' || name[-1] == ',' || name[-1] == '('))
			return name;
	}
	return NULL;
}

static void text_value(struct other_hit *h, const char *name, size_t name_len, const char *from,
		       const char *end)
{
	struct other_value *v = value_add(h, name, name_len);
	const size_t word = strcspn(from, " ,)");

	if (!v)
		return;
	while (end > from && (end[-1] == ' ' || end[-1] == ','))
		end--;
	if ((size_t)(end - from) >= word && number_parse(from, word, v))
		return;
	text_set(v, from, (size_t)(end - from), OTHER_TEXT_BYTES);
}

void other_hit_parse(struct other_hit *h, const char *system, const char *name, const char *text)
{
	const char *at, *next;
	size_t len = 0, next_len = 0;

	h->n = 0;
	snprintf(h->system, sizeof(h->system), "%s", *system ? system : OTHER_SYSTEM_UNKNOWN);
	snprintf(h->name, sizeof(h->name), "%s", name);
	for (at = name_next(text, &len); at; at = next, len = next_len) {
		const char *from = at + len + 1;

		next = name_next(from, &next_len);
		text_value(h, at, len, from, next ? next : from + strlen(from));
	}
	if (!h->n && *text) {
		struct other_value *v = value_add(h, "text", strlen("text"));

		text_set(v, text, strlen(text), OTHER_WHOLE_BYTES);
	}
}

/* ---- all of them ---- */

struct other_events *other_events_new(void)
{
	return calloc(1, sizeof(struct other_events));
}

void other_events_free(struct other_events *o)
{
	if (!o)
		return;
	free(o->words);
	free(o);
}

/* Kernels name events and systems so; other bytes are from a damaged file. */
static bool name_ok(const char *name, size_t bytes)
{
	const size_t len = strnlen(name, bytes);

	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.", name[i]))
			return false;
	}
	return len && len < bytes;
}

static uint32_t names_hash(const char *system, const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *system; system++)
		hash = (hash ^ (unsigned char)*system) * 16777619u;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return hash;
}

/* Returns the number of the event, counted from 1; 0 if there is no room for it. */
static uint32_t event_find(struct other_events *o, const struct other_hit *h)
{
	uint32_t at = names_hash(h->system, h->name) % SLOTS;
	struct other_event *e;

	for (; o->slots[at]; at = (at + 1) % SLOTS) {
		e = &o->events[o->slots[at] - 1];
		if (!strcmp(e->system, h->system) && !strcmp(e->name, h->name))
			return o->slots[at];
	}
	if (o->n == OTHER_EVENTS_MAX)
		return 0;
	e = &o->events[o->n++];
	memcpy(e->system, h->system, sizeof(e->system));
	memcpy(e->name, h->name, sizeof(e->name));
	o->slots[at] = (uint16_t)o->n;
	return (uint32_t)o->n;
}

/* Returns the field's number; VS_USER_FIELDS_MAX if there is no room for it. */
static size_t field_find(struct other_event *e, const char *name)
{
	size_t i = 0;

	while (i < e->n_fields && strcmp(e->fields[i].name, name))
		i++;
	if (i == e->n_fields && i < VS_USER_FIELDS_MAX) {
		memcpy(e->fields[i].name, name, sizeof(e->fields[i].name));
		e->n_fields++;
	}
	return i;
}

static int words_reserve(struct other_events *o, size_t more)
{
	size_t capacity = o->capacity ? o->capacity : 4096;
	uint64_t *grown;

	while (capacity < o->n_words + more)
		capacity *= 2;
	if (capacity == o->capacity)
		return 0;
	grown = realloc(o->words, capacity * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	o->words = grown;
	o->capacity = capacity;
	return 0;
}

static void value_keep(struct other_events *o, struct other_event *e, const struct other_value *v)
{
	const size_t at = field_find(e, v->name);
	const size_t len = v->type == USER_TEXT ? strnlen(v->text, sizeof(v->text)) : 0;
	const size_t words = v->type == USER_TEXT ? (len + 7) / 8 : 1;
	struct other_field *f;

	if (at == VS_USER_FIELDS_MAX)
		return;
	f = &e->fields[at];
	f->seen++;
	f->types |= (uint8_t)(1u << v->type);
	if (len > f->text_len)
		f->text_len = (uint8_t)len;
	o->words[o->n_words++] =
		at | (uint64_t)v->type << WORD_TYPE_SHIFT | (uint64_t)words << WORD_WORDS_SHIFT;
	memset(&o->words[o->n_words], 0, words * sizeof(*o->words));
	if (v->type == USER_TEXT)
		memcpy(&o->words[o->n_words], v->text, len);
	else
		o->words[o->n_words] = v->number;
	o->n_words += words;
}

int other_events_take(struct other_events *o, const struct other_hit *h, uint32_t *id, uint64_t *at)
{
	const size_t most = 1 + VS_USER_FIELDS_MAX * (1 + OTHER_WHOLE_BYTES / 8);
	struct other_event *e;

	if (!name_ok(h->system, sizeof(h->system)) || !name_ok(h->name, sizeof(h->name)) ||
	    h->n > VS_USER_FIELDS_MAX)
		return -ENOSPC;
	*id = event_find(o, h);
	if (!*id)
		return -ENOSPC;
	if (words_reserve(o, most))
		return -ENOMEM;
	e = &o->events[*id - 1];
	e->hits++;
	*at = o->n_words++;
	for (size_t i = 0; i < h->n; i++)
		value_keep(o, e, &h->values[i]);
	o->words[*at] = o->n_words - *at - 1;
	return 0;
}

size_t other_events_count(const struct other_events *o)
{
	return o->n;
}

uint64_t other_events_hits(const struct other_events *o, uint32_t id)
{
	return o->events[id - 1].hits;
}

static enum user_field_type field_type(const struct other_field *f)
{
	if (f->types & 1u << USER_TEXT)
		return USER_TEXT;
	if (f->types & 1u << USER_SIGNED)
		return USER_SIGNED;
	return f->types & 1u << USER_HEX ? USER_HEX : USER_UNSIGNED;
}

/* The longest text of a number that became a text: "-9223372036854775808". */
enum { NUMBER_TEXT_BYTES = 24 };

static uint32_t field_bytes(const struct other_field *f)
{
	uint32_t bytes = f->text_len;

	if (field_type(f) != USER_TEXT)
		return 8;
	if (f->types != 1u << USER_TEXT && bytes < NUMBER_TEXT_BYTES)
		bytes = NUMBER_TEXT_BYTES;
	return bytes ? (bytes + 7) / 8 * 8 : 8;
}

/* Sets first[i] to the index of the first value of field i, or to -1 if the field is left out.
 * Returns the number of values. */
static size_t layout(const struct other_event *e, int first[VS_USER_FIELDS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_fields; i++) {
		const size_t words = field_bytes(&e->fields[i]) / 8;

		first[i] = -1;
		if (e->fields[i].seen != e->hits || n + words > VS_USER_VALUES_MAX)
			continue;
		first[i] = (int)n;
		n += words;
	}
	return n;
}

void other_events_describe(const struct other_events *o, uint32_t id,
			   struct message_user_event *out)
{
	const struct other_event *e = &o->events[id - 1];
	int first[VS_USER_FIELDS_MAX] = {0};

	memset(out, 0, sizeof(*out));
	out->id = id;
	out->kind = USER_TRACEPOINT;
	out->flags = USER_UNTRACED;
	snprintf(out->system, sizeof(out->system), "%s", e->system);
	snprintf(out->name, sizeof(out->name), "%s", e->name);
	snprintf(out->spec, sizeof(out->spec), "%s:%s", e->system, e->name);
	layout(e, first);
	for (size_t i = 0; i < e->n_fields; i++) {
		struct message_user_field *f = &out->fields[out->n_fields];

		if (first[i] < 0)
			continue;
		out->n_fields++;
		snprintf(f->name, sizeof(f->name), "%s", e->fields[i].name);
		f->type = field_type(&e->fields[i]);
		f->bytes = field_bytes(&e->fields[i]);
	}
}

/* A number of a field that is a text, because another hit has a text there. */
static void number_as_text(uint64_t number, enum user_field_type type, uint64_t *out)
{
	char text[NUMBER_TEXT_BYTES] = "";

	if (type == USER_HEX)
		snprintf(text, sizeof(text), "0x%" PRIx64, number);
	else if (type == USER_SIGNED)
		snprintf(text, sizeof(text), "%" PRId64, (int64_t)number);
	else
		snprintf(text, sizeof(text), "%" PRIu64, number);
	memcpy(out, text, sizeof(text));
}

size_t other_events_values(const struct other_events *o, uint32_t id, uint64_t at,
			   uint64_t values[VS_USER_VALUES_MAX])
{
	const struct other_event *e = &o->events[id - 1];
	const uint64_t *word = &o->words[at + 1], *end = word + o->words[at];
	int first[VS_USER_FIELDS_MAX] = {0};
	const size_t n = layout(e, first);

	memset(values, 0, VS_USER_VALUES_MAX * sizeof(*values));
	while (word < end) {
		const size_t field = *word & WORD_FIELD;
		const size_t words = *word >> WORD_WORDS_SHIFT;
		const enum user_field_type type = (*word >> WORD_TYPE_SHIFT) & 0xff;

		word++;
		if (first[field] >= 0 && type != USER_TEXT &&
		    field_type(&e->fields[field]) == USER_TEXT)
			number_as_text(*word, type, &values[first[field]]);
		else if (first[field] >= 0)
			memcpy(&values[first[field]], word, words * sizeof(*word));
		word += words;
	}
	return n;
}
