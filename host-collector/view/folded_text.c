// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/view/folded_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1 << 20 };

static bool is_kernel(enum folded_kind kind)
{
	return kind == FOLDED_GUEST_KERNEL || kind == FOLDED_HOST_KERNEL;
}

static bool is_code(enum folded_kind kind)
{
	return is_kernel(kind) || kind == FOLDED_GUEST_USER || kind == FOLDED_HOST_USER;
}

static const char *frame_suffix(const struct folded_frame *frame)
{
	if (frame->waker && (is_code(frame->kind) || frame->kind == FOLDED_TASK))
		return "_[w]";
	return is_kernel(frame->kind) ? "_[k]" : "";
}

int folded_text_write(struct folded *f, FILE *to)
{
	uint64_t seen_ns = 0, reported_us = 0;

	for (size_t i = 0; i < folded_count(f); i++) {
		const struct folded_stack *s = folded_at(f, i);
		uint64_t us;

		if (!s)
			return -ENOMEM;
		seen_ns += s->weight_ns;
		us = seen_ns / 1000 - reported_us;
		reported_us += us;
		if (!us)
			continue;
		for (size_t j = 0; j < s->n_frames; j++)
			fprintf(to, "%s%s%s", j ? ";" : "", s->frames[j]->name,
				frame_suffix(s->frames[j]));
		fprintf(to, " %llu\n", (unsigned long long)us);
	}
	return ferror(to) ? -EIO : 0;
}

/* ---- reading ---- */

/* Cuts the number off the end of `text`; false if there is none. */
static bool weight_cut(char *text, uint64_t *ns)
{
	char *blank = strrchr(text, ' '), *end;
	double us;

	if (!blank || blank == text || blank[1] < '0' || blank[1] > '9' ||
	    strspn(blank + 1, "0123456789.") != strlen(blank + 1))
		return false;
	us = strtod(blank + 1, &end);
	if (*end || us > (double)(UINT64_MAX / 4096))
		return false;
	*ns = (uint64_t)llround(us * 1000);
	while (blank > text && blank[-1] == ' ')
		blank--;
	*blank = 0;
	return *text != 0;
}

/* Cuts `suffix` off; false if it is not there. */
static bool suffix_cut(char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	if (len <= n || strcmp(name + len - n, suffix) != 0)
		return false;
	name[len - n] = 0;
	return true;
}

/* From here on, rootwards excluded, the host acts. */
static bool crosses(const char *name)
{
	return !strncmp(name, "[vCPU ", 6) || !strcmp(name, "running");
}

static bool is_annotation(const char *name)
{
	return (name[0] == '[' && name[strlen(name) - 1] == ']') || crosses(name);
}

static void frames_judge(struct folded_frame *frames, char **names, size_t n)
{
	bool host = true; /* the frame at hand is the host's */

	for (size_t i = 1; i < n && host; i++)
		host = !crosses(names[i]);
	for (size_t i = 0; i < n; i++) {
		bool kernel = suffix_cut(names[i], "_[k]");
		bool waker = suffix_cut(names[i], "_[w]");

		frames[i] = (struct folded_frame){.name = names[i], .waker = waker};
		if (!strcmp(names[i], "-") || !strcmp(names[i], "--"))
			frames[i].kind = FOLDED_SEPARATOR;
		else if (i && is_annotation(names[i]))
			frames[i].kind = FOLDED_ANNOTATION;
		else if (!i)
			frames[i].kind = FOLDED_TASK;
		else if (host)
			frames[i].kind = kernel ? FOLDED_HOST_KERNEL : FOLDED_HOST_USER;
		else
			frames[i].kind = kernel ? FOLDED_GUEST_KERNEL : FOLDED_GUEST_USER;
		if (i && crosses(names[i]))
			host = true;
	}
}

/* 0, -EBADMSG, -ENOMEM. */
static int line_add(char *text, struct folded *out, struct folded *before)
{
	struct folded_frame frames[FOLDED_DEPTH_MAX + 1];
	char *names[FOLDED_DEPTH_MAX + 1], *rest = text, *name;
	uint64_t weight_ns, before_ns;
	bool two;
	size_t n = 0;
	int err;

	if (!weight_cut(text, &weight_ns))
		return -EBADMSG;
	two = weight_cut(text, &before_ns);
	while (n <= FOLDED_DEPTH_MAX && (name = strsep(&rest, ";")))
		names[n++] = name;
	for (size_t i = 0; i < n; i++) {
		if (!*names[i])
			return -EBADMSG;
	}
	frames_judge(frames, names, n);
	err = folded_add(out, frames, n, weight_ns);
	if (!err && two && before)
		err = folded_add(before, frames, n, before_ns);
	return err;
}

int folded_text_read(FILE *from, struct folded *out, struct folded *before, size_t *line)
{
	char *text = malloc(LINE_MAX_BYTES);
	int err = text ? 0 : -ENOMEM;

	*line = 0;
	while (!err && fgets(text, LINE_MAX_BYTES, from)) {
		size_t len = strlen(text);

		++*line;
		if (len == LINE_MAX_BYTES - 1 && text[len - 1] != '\n') {
			err = -E2BIG;
			break;
		}
		while (len && (text[len - 1] == '\n' || text[len - 1] == '\r'))
			text[--len] = 0;
		if (len)
			err = line_add(text, out, before);
	}
	if (!err && ferror(from))
		err = -EIO;
	free(text);
	return err;
}
