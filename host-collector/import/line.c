// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread's name may contain nearly any text, so a line is parsed from its stamp: the first word
 * that looks like a stamp, is followed by an event's name, and is preceded by what can be a task
 * and a CPU.
 */
#include "host-collector/import/line.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/import/event_text.h"
#include "proto/event_fields.h"
#include "proto/message.h"

static const uint64_t ns_per_s = 1000000000, stamp_max = INT64_MAX;
enum { DECIMALS = 9 };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "123.456789:" or "123456789:"; *end is behind the colon. */
static bool stamp_parse(const char *at, struct import_record *r, const char **end)
{
	uint64_t whole = 0, part = 0;
	unsigned decimals = 0;

	if (!is_digit(*at))
		return false;
	for (; is_digit(*at); at++) {
		if (whole > (stamp_max - 9) / 10)
			return false;
		whole = whole * 10 + (uint64_t)(*at - '0');
	}
	r->ticks = *at != '.';
	if (!r->ticks) {
		for (at++; is_digit(*at); at++) {
			if (decimals < DECIMALS) {
				part = part * 10 + (uint64_t)(*at - '0');
				decimals++;
			}
		}
		if (!decimals || whole > stamp_max / ns_per_s - 1)
			return false;
	}
	if (*at != ':' || (at[1] != ' ' && at[1] != '\t'))
		return false;
	r->unit = 1;
	for (unsigned i = decimals; i < DECIMALS && !r->ticks; i++)
		r->unit *= 10;
	r->time = r->ticks ? whole : whole * ns_per_s + part * r->unit;
	*end = at + 1;
	return true;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* "event:" or "subsystem:event:"; *text is what follows. Kernel functions ("f <-g") count as one
 * event. */
static bool event_name_parse(const char *at, struct import_record *r, const char **text)
{
	const char *begin = at;
	size_t len;

	memset(r->system, 0, sizeof(r->system));
	if (!isalpha((unsigned char)*at) && *at != '_')
		return false;
	while (is_name(*at))
		at++;
	if (!strncmp(at, " <-", 3)) {
		strcpy(r->event, "function");
		*text = at;
		return true;
	}
	if (*at != ':')
		return false;
	if (is_name(at[1])) {
		const char *second = at + 1;

		while (is_name(*second))
			second++;
		if (*second == ':') {
			if ((size_t)(at - begin) < sizeof(r->system))
				memcpy(r->system, begin, (size_t)(at - begin));
			begin = at + 1;
			at = second;
		}
	}
	len = (size_t)(at - begin);
	if (len >= sizeof(r->event))
		return false;
	memcpy(r->event, begin, len);
	r->event[len] = 0;
	*text = at + 1 + strspn(at + 1, " \t");
	return true;
}

/* The number that ends text[0..*len), cut off; what stood before it stays. */
static bool number_cut(const char *text, size_t *len, int32_t *out)
{
	size_t at = *len;
	uint64_t value = 0;

	while (at > 0 && is_digit(text[at - 1]))
		at--;
	if (at == *len || *len - at > 10)
		return false;
	for (size_t i = at; i < *len; i++)
		value = value * 10 + (uint64_t)(text[i] - '0');
	if (value > INT32_MAX)
		return false;
	*out = (int32_t)value;
	*len = at;
	return true;
}

static void space_cut(const char *text, size_t *len)
{
	while (*len > 0 && (text[*len - 1] == ' ' || text[*len - 1] == '\t'))
		(*len)--;
}

/* "(4700)" or "(-----)" at the end, cut off. */
static void tgid_cut(const char *text, size_t *len, int32_t *tgid)
{
	size_t at = *len, inside;

	if (!at || text[at - 1] != ')')
		return;
	while (at > 0 && text[at - 1] != '(')
		at--;
	if (!at)
		return;
	inside = *len - 1 - at;
	if (number_cut(text + at, &inside, tgid) || strspn(text + at, " -") >= inside) {
		*len = at - 1;
		space_cut(text, len);
	}
}

/* "buffer:   comm": trace-cmd begins lines so if a file has several buffers. No comm is that long.
 * Returns how much it takes. */
static size_t buffer_name(const char *text, size_t len, const char **comm)
{
	size_t word = strcspn(text, " "), skip;

	if (len < IMPORT_COMM_BYTES || word >= len || !word || text[word - 1] != ':')
		return 0;
	skip = word + strspn(text + word, " ");
	*comm = text + skip;
	return skip;
}

/* "comm-1", "comm-1 (1)", "comm 1" or "comm 1/1" in text[0..len). */
static bool task_parse(const char *text, size_t len, struct import_task *task)
{
	int32_t tid, tgid = 0;
	size_t before;

	tgid_cut(text, &len, &tgid);
	if (!number_cut(text, &len, &tid) || !len)
		return false;
	before = len;
	if (text[len - 1] == '/') {
		len--;
		if (!number_cut(text, &len, &tgid) || !len || text[len - 1] != ' ')
			len = before;
	}
	if (text[len - 1] != '-' && text[len - 1] != ' ')
		return false;
	/* perf says -1 where it does not know the thread. */
	if (text[len - 1] == '-' && len > 1 && (text[len - 2] == ' ' || text[len - 2] == '/'))
		return true;
	len--;
	space_cut(text, &len);
	while (len && (*text == ' ' || *text == '\t')) {
		text++;
		len--;
	}
	len -= buffer_name(text, len, &text);
	if (!len)
		return false;
	task->known = true;
	task->tid = tid;
	task->tgid = tgid;
	event_text_comm(task, text, len);
	return true;
}

/* Parses the part before the stamp: a task, "[cpu]", flags. Each may be missing. */
static bool origin_parse(const char *text, size_t len, struct import_record *r)
{
	size_t open = len, close;
	int32_t cpu;

	r->cpu_known = false;
	r->task = (struct import_task){0};
	space_cut(text, &len);
	if (!len)
		return true;
	while (open > 0 && !(text[open - 1] == '[' && (open == 1 || text[open - 2] == ' ')))
		open--;
	if (!open)
		return task_parse(text, len, &r->task);
	for (close = open; close < len && is_digit(text[close]); close++)
		;
	if (close >= len || text[close] != ']' || close - open > 4)
		return false;
	/* Behind the CPU: one word of flags at most. */
	for (size_t i = close + 1, words = 0; i < len; i++) {
		words += text[i] != ' ' && text[i - 1] == ' ';
		if (words > 1)
			return false;
	}
	if (!number_cut(text, &close, &cpu) || cpu >= VS_CPU_COLLECTOR)
		return false;
	r->cpu_known = true;
	r->cpu = (uint16_t)cpu;
	len = open - 1;
	space_cut(text, &len);
	return !len || task_parse(text, len, &r->task);
}

/* "CPU:1 [LOST 12 EVENTS]" (ftrace), "CPU:1 [12 EVENTS DROPPED]", "CPU:1 [EVENTS DROPPED]". */
static bool lost_parse(const char *line, struct import_record *r)
{
	const char *bracket = strchr(line, '['), *digits;
	char *end;
	unsigned long cpu;
	uint64_t n;

	if (strncmp(line, "CPU:", 4) || !is_digit(line[4]) || !bracket ||
	    (!strstr(bracket, "LOST") && !strstr(bracket, "DROPPED")) || !strstr(bracket, "EVENTS"))
		return false;
	cpu = strtoul(line + 4, &end, 10);
	if (cpu >= VS_CPU_COLLECTOR)
		return false;
	digits = bracket + strcspn(bracket, "0123456789");
	errno = 0;
	n = *digits ? strtoull(digits, NULL, 10) : 0;
	ev_set_lost_count(&r->e, errno || n > INT32_MAX ? 0 : n);
	r->cpu_known = true;
	r->cpu = (uint16_t)cpu;
	return true;
}

/* Headings of the tools, and lines that belong to the event above. */
static bool is_nothing(const char *line)
{
	static const char *const headings[] = {"cpus=", "version = ", "=> ", "<stack trace>"};
	static const char idle_cpu[] = " is empty";
	const char *at = line + strspn(line, " \t");
	size_t hex;

	size_t len = strlen(at);

	if (!*at || *at == '#' ||
	    (!strncmp(at, "CPU ", 4) && len > strlen(idle_cpu) &&
	     !strcmp(at + len - strlen(idle_cpu), idle_cpu)))
		return true;
	for (size_t i = 0; i < sizeof(headings) / sizeof(headings[0]); i++) {
		if (!strncmp(at, headings[i], strlen(headings[i])))
			return true;
	}
	/* "ffffffff8108f0c5 function+0x25 ([kernel.kallsyms])" */
	hex = strspn(at, "0123456789abcdef");
	return at > line && hex >= 6 && at[hex] == ' ' && line[strlen(line) - 1] == ')';
}

enum line_kind line_parse(char *line, struct import_record *r)
{
	const char *text;
	size_t len = strlen(line);

	memset(r, 0, sizeof(*r));
	while (len && (line[len - 1] == '\n' || line[len - 1] == '\r' || line[len - 1] == ' '))
		line[--len] = 0;
	if (lost_parse(line, r))
		return LINE_LOST;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(line[i]) || (i && line[i - 1] != ' ' && line[i - 1] != '\t'))
			continue;
		if (!stamp_parse(line + i, r, &text) ||
		    !event_name_parse(text + strspn(text, " \t"), r, &text) ||
		    !origin_parse(line, i, r))
			continue;
		r->text = text;
		r->architecture = event_text_architecture(text);
		switch (event_text_parse(r, text)) {
		case IMPORT_USED:
			return LINE_EVENT;
		case IMPORT_UNUSED:
			return LINE_OTHER;
		case IMPORT_MALFORMED:
			return import_record_is_torn(r) ? LINE_TORN : LINE_MALFORMED;
		}
	}
	return is_nothing(line) ? LINE_NOTHING : LINE_MALFORMED;
}
