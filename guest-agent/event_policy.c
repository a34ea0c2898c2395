// SPDX-License-Identifier: GPL-2.0-only
#include "guest-agent/event_policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/query/expr.h"
#include "proto/user_event_kind.h"

enum {
	RATE = 20000,
	RATE_MAX = 1000000,
	FILE_BYTES_MAX = 65536,
	LINE_BYTES_MAX = 4096,
};

/* ---- the file ---- */

static bool patterns_parse(struct event_patterns *out, const char *value, bool of_tracepoints)
{
	static const char blanks[] = " \t,";

	out->n = 0;
	if (!strcmp(value, "no"))
		return true;
	for (const char *at = value + strspn(value, blanks); *at; at += strspn(at, blanks)) {
		const size_t len = strcspn(at, blanks);
		char *item;

		if (out->n == EVENT_POLICY_PATTERNS_MAX || len >= EVENT_POLICY_PATTERN_BYTES)
			return false;
		item = out->items[out->n];
		memcpy(item, at, len);
		item[len] = '\0';
		/* "sched" would allow nothing, and look as if it did. */
		if (of_tracepoints && !strchr(item, ':') && strcmp(item, "*") != 0)
			return false;
		out->n++;
		at += len;
	}
	return true;
}

static bool allow_set(struct event_policy *p, const char *value)
{
	return patterns_parse(&p->tracepoints, value, true);
}

static bool kprobes_set(struct event_policy *p, const char *value)
{
	return patterns_parse(&p->kprobes, value, false);
}

static bool strings_set(struct event_policy *p, const char *value)
{
	p->texts = !strcmp(value, "yes");
	return p->texts || !strcmp(value, "no");
}

static bool number_parse(const char *value, uint32_t least, uint32_t most, uint32_t *out)
{
	char *end;
	const unsigned long long n = strtoull(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || n < least || n > most)
		return false;
	*out = (uint32_t)n;
	return true;
}

static bool max_events_set(struct event_policy *p, const char *value)
{
	return number_parse(value, 0, VS_CONFIG_EVENTS_MAX, &p->max_events);
}

static bool rate_set(struct event_policy *p, const char *value)
{
	return number_parse(value, 1, RATE_MAX, &p->rate);
}

/* Accepts only "no": this version does not have the feature. */
static bool never_set(struct event_policy *p, const char *value)
{
	(void)p;
	return !strcmp(value, "no");
}

static const struct key {
	const char *name, *expected;
	bool (*set)(struct event_policy *p, const char *value);
} keys[] = {
	{"allow", "patterns SYSTEM:NAME, such as sched:*, or no", allow_set},
	{"kprobes", "names of functions or patterns of them, or no", kprobes_set},
	{"strings", "yes or no", strings_set},
	{"max_events", "a number up to 16", max_events_set},
	{"rate", "a number of hits per second and CPU, up to 1000000", rate_set},
	{"uprobes", "no: there are none in a guest", never_set},
	{"stacks", "no: events that a host asks for have none", never_set},
};

/* Cuts blanks off both ends. */
static char *trimmed(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* One line without its end. */
static int line_parse(struct event_policy *p, char *line, unsigned int number, char *why,
		      size_t why_bytes)
{
	char *equals, *name, *value;

	line[strcspn(line, "#")] = '\0';
	name = trimmed(line);
	if (!*name)
		return 0;
	equals = strchr(name, '=');
	if (!equals) {
		snprintf(why, why_bytes, "line %u: expected KEY = VALUE, found '%.40s'", number,
			 name);
		return -EINVAL;
	}
	*equals = '\0';
	name = trimmed(name);
	value = trimmed(equals + 1);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (keys[i].set(p, value))
			return 0;
		snprintf(why, why_bytes, "line %u: %s: expected %s, found '%.60s'", number, name,
			 keys[i].expected, value);
		return -EINVAL;
	}
	snprintf(why, why_bytes,
		 "line %u: there is no key '%.40s'; there are allow, kprobes, strings, max_events "
		 "and rate",
		 number, name);
	return -EINVAL;
}

int event_policy_parse(struct event_policy *out, const char *text, size_t len, char *why,
		       size_t why_bytes)
{
	char line[LINE_BYTES_MAX];
	unsigned int number = 0;
	int err = 0;

	for (size_t at = 0; at < len && !err;) {
		const char *end = memchr(text + at, '\n', len - at);
		const size_t n = end ? (size_t)(end - text) - at : len - at;

		number++;
		if (n >= sizeof(line)) {
			snprintf(why, why_bytes, "line %u is longer than %d bytes", number,
				 LINE_BYTES_MAX);
			return -EINVAL;
		}
		memcpy(line, text + at, n);
		line[n] = '\0';
		err = line_parse(out, line, number, why, why_bytes);
		at += n + 1;
	}
	return err;
}

int event_policy_read(struct event_policy *out, const char *path, char *why, size_t why_bytes)
{
	char *text = malloc(FILE_BYTES_MAX);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = -1;
	int err = 0;

	if (fd < 0)
		err = -errno;
	else if (!text)
		err = -ENOMEM;
	if (!err) {
		n = read(fd, text, FILE_BYTES_MAX);
		err = n < 0 ? -errno : n == FILE_BYTES_MAX ? -EFBIG : 0;
	}
	if (err)
		snprintf(why, why_bytes, "%s", strerror(-err));
	else
		err = event_policy_parse(out, text, (size_t)n, why, why_bytes);
	if (fd >= 0)
		close(fd);
	free(text);
	return err;
}

void event_policy_default(struct event_policy *out)
{
	memset(out, 0, sizeof(*out));
	patterns_parse(&out->tracepoints,
		       "sched:* irq:* irq_vectors:* timer:* workqueue:* block:* power:* rcu:*",
		       true);
	out->max_events = VS_CONFIG_EVENTS_MAX;
	out->rate = RATE;
}

/* ---- a request ---- */

/* The names become paths in tracefs. */
static bool name_is_plain(const char *name, const char *others)
{
	for (const char *at = name; *at; at++) {
		const bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');

		if (!letter && (*at < '0' || *at > '9') && *at != '_' && !strchr(others, *at))
			return false;
	}
	return *name;
}

static bool patterns_match(const struct event_patterns *p, const char *text)
{
	for (size_t i = 0; i < p->n; i++) {
		if (expr_glob(p->items[i], text))
			return true;
	}
	return false;
}

static bool refuse(char why[EVENT_POLICY_WHY], const char *text)
{
	snprintf(why, EVENT_POLICY_WHY, "%s", text);
	return false;
}

bool event_policy_allows(const struct event_policy *p, const struct message_config_event *e,
			 size_t number, char why[EVENT_POLICY_WHY])
{
	const bool is_function = e->kind == USER_KPROBE || e->kind == USER_KRETPROBE;
	char name[sizeof(e->system) + sizeof(e->name) + 1];

	if (!is_function && e->kind != USER_TRACEPOINT)
		return refuse(why, e->kind == USER_UPROBE || e->kind == USER_USDT ||
						   e->kind == USER_URETPROBE
					   ? "the agent probes no programs"
					   : "the agent does not know this kind of event");
	if (!name_is_plain(e->name, is_function ? "." : "") ||
	    (!is_function && !name_is_plain(e->system, "")))
		return refuse(why, "no event of the kernel has such a name");
	snprintf(name, sizeof(name), "%s:%s", e->system, e->name);
	if (is_function && !patterns_match(&p->kprobes, e->name))
		return refuse(why, p->kprobes.n ? "the guest's owner does not allow this function "
						  "(kprobes =)"
						: "the guest's owner allows no functions (kprobes "
						  "=)");
	if (!is_function && !patterns_match(&p->tracepoints, name))
		return refuse(why, "the guest's owner does not allow it (allow =)");
	if (number < p->max_events)
		return true;
	snprintf(why, EVENT_POLICY_WHY, "the guest's owner allows %u events (max_events =)",
		 p->max_events);
	return false;
}
