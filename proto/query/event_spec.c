// SPDX-License-Identifier: GPL-2.0-only
#include "proto/query/event_spec.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "proto/program/suggest.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A part of the text. */
struct piece {
	size_t at, len;
};

struct reader {
	const char *text;
	size_t next;
	struct expr_error *error;
};

static const char *const side_names[] = {
	[SIDE_ANY] = "", [SIDE_HOST] = "host", [SIDE_GUEST] = "guest", [SIDE_VMM] = "vmm"};

static const struct {
	const char *name;
	enum event_spec_kind kind;
} probes[] = {
	{"kprobe", EVENT_KPROBE},
	{"kretprobe", EVENT_KRETPROBE},
	{"uprobe", EVENT_UPROBE},
	{"usdt", EVENT_USDT},
};

#define TEXT(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct event_spec, name), true                                     \
	}
#define FLAG(name)                                                                                 \
	{                                                                                          \
#name, offsetof(struct event_spec, name), false                                    \
	}
static const struct attribute {
	const char *name;
	size_t offset;
	bool is_text;
} attributes[] = {
	TEXT(key),   TEXT(role),     TEXT(alias),   TEXT(fields),
	FLAG(stack), FLAG(untraced), FLAG(trigger),
};
#undef TEXT
#undef FLAG

/* Reads up to one of `ends` outside of quotes and parentheses, or up to the end of the text. */
static int piece_read(struct reader *r, const char *ends, struct piece *out)
{
	unsigned depth = 0;
	bool quoted = false;
	size_t open = 0;

	out->at = r->next;
	for (; r->text[r->next]; r->next++) {
		const char c = r->text[r->next];

		if (!quoted && !depth && strchr(ends, c))
			break;
		if (c == '"') {
			quoted = !quoted;
			open = quoted ? r->next : open;
		} else if (!quoted && c == '(') {
			depth++;
		} else if (!quoted && c == ')' && depth) {
			depth--;
		}
	}
	out->len = r->next - out->at;
	return quoted ? expr_fail(r->error, -EINVAL, open, "this text has no closing quote") : 0;
}

static void blanks_skip(struct reader *r)
{
	while (isspace((unsigned char)r->text[r->next]))
		r->next++;
}

static bool piece_is(const struct reader *r, struct piece p, const char *word)
{
	return p.len == strlen(word) && !memcmp(r->text + p.at, word, p.len);
}

static void piece_trim(const struct reader *r, struct piece *p)
{
	while (p->len && isspace((unsigned char)r->text[p->at])) {
		p->at++;
		p->len--;
	}
	while (p->len && isspace((unsigned char)r->text[p->at + p->len - 1]))
		p->len--;
}

/* Copies a name. Letters of names: those of C, and those of patterns if `pattern`. */
static int name_copy(struct reader *r, struct piece p, const char *what, bool pattern, char *out)
{
	if (!p.len)
		return expr_fail(r->error, -EINVAL, p.at, "the name of the %s is missing", what);
	if (p.len >= EVENT_SPEC_NAME_BYTES)
		return expr_fail(r->error, -EINVAL, p.at,
				 "the name of the %s is longer than %d bytes", what,
				 EVENT_SPEC_NAME_BYTES - 1);
	for (size_t i = 0; i < p.len; i++) {
		const char c = r->text[p.at + i];

		if (!isalnum((unsigned char)c) && !strchr("_.-", c) &&
		    !(pattern && strchr("*?[]!", c)))
			return expr_fail(r->error, -EINVAL, p.at + i,
					 "'%c' cannot be part of the name of the %s", c, what);
	}
	memcpy(out, r->text + p.at, p.len);
	out[p.len] = 0;
	return 0;
}

static int value_copy(struct reader *r, struct piece p, const char *what,
		      struct event_spec_text *out)
{
	piece_trim(r, &p);
	/* key="a+b" means key=a+b, unless the quotes are those of a text within it. */
	if (p.len >= 2 && r->text[p.at] == '"' &&
	    memchr(r->text + p.at + 1, '"', p.len - 1) == r->text + p.at + p.len - 1) {
		p.at++;
		p.len -= 2;
	}
	if (p.len >= sizeof(out->text))
		return expr_fail(r->error, -EINVAL, p.at, "%s is longer than %zu bytes", what,
				 sizeof(out->text) - 1);
	memcpy(out->text, r->text + p.at, p.len);
	out->text[p.len] = 0;
	out->at = p.at;
	return 0;
}

static int attribute_unknown(struct reader *r, struct piece name)
{
	struct suggest s;

	suggest_begin(&s, r->text + name.at, name.len);
	for (size_t i = 0; i < COUNT(attributes); i++)
		suggest_try(&s, attributes[i].name);
	if (s.best)
		return expr_fail(r->error, -EINVAL, name.at,
				 "there is no attribute '%.*s'; did you mean '%s'?",
				 (int)(name.len < 40 ? name.len : 40), r->text + name.at, s.best);
	return expr_fail(
		r->error, -EINVAL, name.at,
		"there is no attribute '%.*s'; there are key=, role=, alias=, fields=, stack, "
		"untraced and trigger",
		(int)(name.len < 40 ? name.len : 40), r->text + name.at);
}

/* One attribute: a word, or name=value. */
static int attribute_read(struct reader *r, struct piece p, struct event_spec *out)
{
	const char *equals = memchr(r->text + p.at, '=', p.len);
	struct piece name = {p.at, equals ? (size_t)(equals - r->text) - p.at : p.len};
	struct piece value = {name.at + name.len + 1, equals ? p.len - name.len - 1 : 0};
	size_t i = 0;

	piece_trim(r, &name);
	while (i < COUNT(attributes) && !piece_is(r, name, attributes[i].name))
		i++;
	if (i == COUNT(attributes))
		return attribute_unknown(r, name);
	if (attributes[i].is_text && (!equals || !value.len))
		return expr_fail(r->error, -EINVAL, p.at, "write a value: %s=...",
				 attributes[i].name);
	if (!attributes[i].is_text && equals)
		return expr_fail(r->error, -EINVAL, value.at, "'%s' takes no value",
				 attributes[i].name);
	if (attributes[i].is_text)
		return value_copy(r, value, attributes[i].name,
				  (struct event_spec_text *)((char *)out + attributes[i].offset));
	*(bool *)((char *)out + attributes[i].offset) = true;
	return 0;
}

/* Behind the name: "/FILTER/ATTRIBUTE/...". */
static int tail_read(struct reader *r, struct event_spec *out)
{
	struct piece p;
	size_t open = r->next++;
	int err = piece_read(r, "/", &p);

	if (!err)
		err = value_copy(r, p, "the filter", &out->filter);
	if (!err && !r->text[r->next])
		return expr_fail(r->error, -EINVAL, open,
				 "the filter that begins here has no '/' at its end");
	while (!err && r->text[r->next] == '/') {
		const size_t before = r->next++;

		blanks_skip(r);
		/* Behind the last '/', a comma or the end ends the event. */
		if (!r->text[r->next] || r->text[r->next] == ',')
			return 0;
		do {
			r->next += r->text[r->next] == ',';
			err = piece_read(r, "/,", &p);
			piece_trim(r, &p);
			if (!err && !p.len && r->text[r->next] == '/')
				return expr_fail(r->error, -EINVAL, before,
						 "an attribute is missing between '/' and '/'");
			if (!err && p.len)
				err = attribute_read(r, p, out);
		} while (!err && r->text[r->next] == ',');
		if (!err && !r->text[r->next])
			return expr_fail(r->error, -EINVAL, p.at,
					 "the last attribute has no '/' at its end");
	}
	return err;
}

/* The '@PATH' of a probe of a program. */
static int path_read(struct reader *r, struct event_spec *out)
{
	struct piece p;
	bool quoted;
	int err;

	if (r->text[r->next] != '@')
		return expr_fail(r->error, -EINVAL, r->next,
				 "expected '@' and the path of the program or library");
	r->next++;
	quoted = r->text[r->next] == '"';
	if (quoted) {
		p = (struct piece){++r->next, strcspn(r->text + r->next, "\"")};
		r->next += p.len;
		if (!r->text[r->next])
			return expr_fail(r->error, -EINVAL, p.at - 1,
					 "this path has no closing quote");
		r->next++;
	} else {
		err = piece_read(r, ",", &p);
		if (err)
			return err;
		piece_trim(r, &p);
	}
	if (!p.len || r->text[p.at] != '/')
		return expr_fail(r->error, -EINVAL, p.at, "the path of a program begins with '/'");
	if (p.len >= sizeof(out->path))
		return expr_fail(r->error, -EINVAL, p.at, "the path is longer than %zu bytes",
				 sizeof(out->path) - 1);
	memcpy(out->path, r->text + p.at, p.len);
	out->path[p.len] = 0;
	if (!quoted && (strstr(out->path, "//") || out->path[p.len - 1] == '/'))
		return expr_fail(r->error, -EINVAL, p.at,
				 "write the path in quotes if a filter or attributes follow it");
	return 0;
}

/* SYSTEM:NAME, or what stands in its place, up to the filter. */
static int names_read(struct reader *r, struct piece first, struct event_spec *out)
{
	struct piece p = first;
	int err;

	for (size_t i = 0; i < COUNT(probes); i++) {
		if (piece_is(r, first, probes[i].name))
			out->kind = probes[i].kind;
	}
	if (out->kind == EVENT_TRACEPOINT || out->kind == EVENT_USDT) {
		if (out->kind == EVENT_USDT) {
			r->next++;
			err = piece_read(r, ":@/,", &p);
			if (err)
				return err;
		}
		if (r->text[r->next] != ':')
			return expr_fail(r->error, -EINVAL, r->next, "expected '%s:NAME'",
					 out->kind == EVENT_USDT ? "PROVIDER" : "SYSTEM");
		err = name_copy(r, p, out->kind == EVENT_USDT ? "provider" : "system",
				out->kind == EVENT_TRACEPOINT, out->system);
		if (err)
			return err;
	}
	r->next++;
	err = piece_read(r, "@/,", &p);
	piece_trim(r, &p);
	if (!err)
		err = name_copy(r, p, out->kind == EVENT_TRACEPOINT ? "event" : "function",
				out->kind == EVENT_TRACEPOINT, out->name);
	if (!err && (out->kind == EVENT_UPROBE || out->kind == EVENT_USDT))
		err = path_read(r, out);
	return err;
}

static int spec_read(struct reader *r, struct event_spec *out)
{
	struct piece p;
	int err;

	*out = (struct event_spec){0};
	blanks_skip(r);
	out->at = r->next;
	err = piece_read(r, ":/,@", &p);
	if (err)
		return err;
	for (size_t i = SIDE_HOST; i < COUNT(side_names) && r->text[r->next] == ':'; i++) {
		if (!piece_is(r, p, side_names[i]))
			continue;
		out->side = (enum event_spec_side)i;
		r->next++;
		err = piece_read(r, ":/,@", &p);
		break;
	}
	piece_trim(r, &p);
	if (!err && !p.len)
		return expr_fail(r->error, -EINVAL, p.at, "expected an event: SYSTEM:NAME");
	if (!err && r->text[r->next] != ':')
		return expr_fail(r->error, -EINVAL, r->next,
				 "expected ':' and the name of an event of '%.*s'",
				 (int)(p.len < 40 ? p.len : 40), r->text + p.at);
	if (!err)
		err = names_read(r, p, out);
	blanks_skip(r);
	if (!err && r->text[r->next] == '/')
		err = tail_read(r, out);
	blanks_skip(r);
	if (!err && r->text[r->next] && r->text[r->next] != ',')
		return expr_fail(r->error, -EINVAL, r->next, "expected ',' or the end, found '%c'",
				 r->text[r->next]);
	return err;
}

int event_specs_parse(const char *text, struct event_spec *specs, size_t max, size_t *n,
		      struct expr_error *error)
{
	struct reader r = {.text = text, .error = error};
	int err;

	for (;;) {
		if (*n == max) {
			expr_fail(r.error, -EINVAL, r.next, "more than %zu events", max);
			return -E2BIG;
		}
		err = spec_read(&r, &specs[*n]);
		if (err)
			return err;
		(*n)++;
		if (!r.text[r.next])
			return 0;
		r.next++;
	}
}
