/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/util/wrap.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/escape.h"
#include "proto/buffer.h"
#include "proto/program/columns.h"

/* Text may begin so far to the right (in hundredths), after its labels, and still be continued
 * below. */
enum { INDENT_MOST_PERCENT = 45, INDENT_MORE = 3 };

struct wrap {
	FILE *to;
	unsigned columns;
	struct byte_buffer line;
};

unsigned wrap_columns(FILE *out)
{
	return text_columns(out);
}

/* The length of the colour sequence (ESC [ ... m) that begins here, 0: none does. */
static size_t colour_len(const char *text)
{
	size_t len = 2;

	if (text[0] != '\x1b' || text[1] != '[')
		return 0;
	while (text[len] && strchr("0123456789;", text[len]))
		len++;
	return text[len] == 'm' ? len + 1 : 0;
}

unsigned wrap_width(const char *text)
{
	unsigned n = 0;
	size_t len;

	while (*text) {
		len = colour_len(text);
		n += !len;
		text += len ? len : character_at(text).bytes;
	}
	return n;
}

/* Where the text behind a line's labels begins: behind the last gap that is wide and not too far to
 * the right. */
static unsigned text_column(const char *line, unsigned most)
{
	unsigned at = 0, blanks = 0, first = 0, column = 0;
	bool any = false;
	size_t len;

	for (; *line && at <= most; line += len) {
		len = colour_len(line);
		if (len)
			continue;
		len = character_at(line).bytes;
		if (*line == ' ') {
			blanks++;
		} else {
			if (!any)
				first = at;
			else if (blanks >= 2)
				column = at;
			any = true;
			blanks = 0;
		}
		at++;
	}
	return column ? column : first + INDENT_MORE;
}

/* Does a unit follow the number that ends before this blank? They stay on one line. */
static bool joins_number(const char *text, size_t blank)
{
	static const char *const units[] = {"ns", "us", "ms", "s", "%"};

	if (!blank || text[blank - 1] < '0' || text[blank - 1] > '9')
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const char *after = text + blank + 1 + strlen(units[i]);

		if (!strncmp(text + blank + 1, units[i], strlen(units[i])) &&
		    !(*after >= 'a' && *after <= 'z'))
			return true;
	}
	return false;
}

/* How many bytes of `text` go into `columns`: up to a blank, if there is one. */
static size_t piece_len(const char *text, unsigned columns)
{
	size_t at = 0, blank = 0, len;
	unsigned n = 0;
	bool any = false;

	while (text[at]) {
		len = colour_len(text + at);
		if (!len) {
			if (n == columns)
				return blank ? blank : at;
			if (text[at] == ' ' && any && !joins_number(text, at))
				blank = at;
			any |= text[at] != ' ';
			len = character_at(text + at).bytes;
			n++;
		}
		at += len;
	}
	return at;
}

static void line_write(const struct wrap *w, const char *line)
{
	unsigned indent = 0;

	if (wrap_width(line) > w->columns)
		indent = text_column(line, w->columns * INDENT_MOST_PERCENT / 100);
	for (bool first = true; *line || first; first = false) {
		size_t len = piece_len(line, first ? w->columns : w->columns - indent);

		fprintf(w->to, "%*s%.*s\n", first ? 0 : (int)indent, "", (int)len, line);
		line += len;
		while (*line == ' ')
			line++;
	}
}

static ssize_t on_write(void *cookie, const char *data, size_t len)
{
	struct wrap *w = cookie;
	char *end;

	if (byte_buffer_reserve(&w->line, len + 1)) { /* too wide is better than not at all */
		fwrite(w->line.data, 1, w->line.len, w->to);
		fwrite(data, 1, len, w->to);
		w->line.len = 0;
		return (ssize_t)len;
	}
	byte_buffer_append(&w->line, data, len);
	w->line.data[w->line.len] = '\0';
	while ((end = memchr(w->line.data, '\n', w->line.len))) {
		*end = '\0';
		line_write(w, (const char *)w->line.data);
		byte_buffer_consume(&w->line, (size_t)(end + 1 - (char *)w->line.data));
		w->line.data[w->line.len] = '\0';
	}
	return (ssize_t)len;
}

static int on_close(void *cookie)
{
	struct wrap *w = cookie;

	if (w->line.len)
		fwrite(w->line.data, 1, w->line.len, w->to);
	byte_buffer_fini(&w->line);
	free(w);
	return 0;
}

FILE *wrap_open(FILE *to)
{
	struct wrap *w = calloc(1, sizeof(*w));
	FILE *f = w ? fopencookie(w, "w",
				  (cookie_io_functions_t){.write = on_write, .close = on_close})
		    : NULL;

	if (!f) {
		free(w);
		return NULL;
	}
	w->to = to;
	w->columns = wrap_columns(to);
	return f;
}

void wrap_print(FILE *to, const char *format, ...)
{
	FILE *page = wrap_open(to);
	va_list args;

	va_start(args, format);
	vfprintf(page ? page : to, format, args);
	va_end(args);
	if (page)
		fclose(page);
}
