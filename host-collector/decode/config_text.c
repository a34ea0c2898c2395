/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/decode/config_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const field_names[CONFIG_FIELDS] = {
#define X(number, NAME, name) [CONFIG_##NAME] = (name),
	VS_CONFIG_FIELDS(X)
#undef X
};

/* The next word of a list separated by commas; 0 at its end. */
static size_t word_next(const char **list, const char **word)
{
	size_t len;

	*word = *list + strspn(*list, ",");
	len = strcspn(*word, ",");
	*list = *word + len;
	return len;
}

int config_events_parse(const char *list, struct message_config *out, char *why, size_t why_bytes)
{
	const char *word;
	size_t len;

	out->asks |= 1u << CONFIG_CLASSES;
	out->classes = 1u << EVENT_CLASS_SWITCHES;
	while ((len = word_next(&list, &word)) > 0) {
		unsigned i = 0;

		while (i < EVENT_CLASSES && (strlen(event_class_name(i)) != len ||
					     strncmp(event_class_name(i), word, len) != 0))
			i++;
		if (i == EVENT_CLASSES) {
			snprintf(why, why_bytes,
				 "--guest-events: there is no '%.*s'; there are switches, wakeups, "
				 "irqs, softirqs, vectors, kernel-log",
				 (int)(len < 40 ? len : 40), word);
			return -EINVAL;
		}
		out->classes |= 1ull << i;
	}
	return 0;
}

int config_tasks_parse(const char *list, struct message_config *out, char *why, size_t why_bytes)
{
	const char *word;
	size_t len;

	out->asks |= 1u << CONFIG_TASKS;
	out->n_tasks = 0;
	while ((len = word_next(&list, &word)) > 0) {
		if (out->n_tasks == VS_CONFIG_TASKS_MAX) {
			snprintf(why, why_bytes, "--guest-task-filter: at most %d names",
				 VS_CONFIG_TASKS_MAX);
			return -EINVAL;
		}
		if (len > 15 + (size_t)(word[len - 1] == '*')) {
			snprintf(why, why_bytes,
				 "--guest-task-filter: '%.*s' is longer than a task's name (15 "
				 "bytes); its beginning and a * will do",
				 (int)(len < 40 ? len : 40), word);
			return -EINVAL;
		}
		snprintf(out->tasks[out->n_tasks], sizeof(out->tasks[0]), "%.*s", (int)len, word);
		out->n_tasks++;
	}
	if (!out->n_tasks) {
		snprintf(why, why_bytes, "--guest-task-filter: no name given");
		return -EINVAL;
	}
	return 0;
}

int config_level_parse(const char *level, uint64_t handler_over_ns, struct message_config *out,
		       char *why, size_t why_bytes)
{
	const bool summary = level && strcmp(level, "summary") == 0;

	if (handler_over_ns && !summary) {
		snprintf(why, why_bytes,
			 "--guest-handlers-over needs --guest-level summary: at detail the guest "
			 "reports every handler");
		return -EINVAL;
	}
	if (handler_over_ns > CONFIG_HANDLER_OVER_MAX_NS) {
		snprintf(why, why_bytes, "--guest-handlers-over: at most 1s");
		return -EINVAL;
	}
	if (level) {
		out->asks |= 1u << CONFIG_LEVEL;
		out->level = summary ? GUEST_LEVEL_SUMMARY : GUEST_LEVEL_DETAIL;
	}
	if (handler_over_ns) {
		out->asks |= 1u << CONFIG_HANDLER_OVER;
		out->handler_over_ns = handler_over_ns;
	}
	return 0;
}

static void add(char *out, size_t out_bytes, const char *text)
{
	const size_t used = strlen(out);

	snprintf(out + used, out_bytes - used, "%s", text);
}

void config_look_describe(uint64_t period_ns, const char *when, char *out, size_t out_bytes)
{
	char period[64];

	snprintf(period, sizeof(period), "looks every %g ms, when ", (double)period_ns / 1e6);
	add(out, out_bytes, period);
	add(out, out_bytes, when);
}

void config_describe(const struct message_config *config, char *out, size_t out_bytes)
{
	const char *separator = "";
	char number[48];

	snprintf(out, out_bytes, "the guest sends ");
	if ((config->classes & EVENT_CLASSES_ALL) == EVENT_CLASSES_ALL)
		add(out, out_bytes, "all events");
	for (unsigned i = 0;
	     i < EVENT_CLASSES && (config->classes & EVENT_CLASSES_ALL) != EVENT_CLASSES_ALL; i++) {
		if (!(config->classes & 1ull << i))
			continue;
		add(out, out_bytes, separator);
		add(out, out_bytes, event_class_name(i));
		separator = ",";
	}
	separator = " of ";
	for (size_t i = 0; i < config->n_tasks && i < VS_CONFIG_TASKS_MAX; i++) {
		add(out, out_bytes, separator);
		add(out, out_bytes, config->tasks[i]);
		separator = ",";
	}
	if (config->level == GUEST_LEVEL_SUMMARY) {
		snprintf(number, sizeof(number), ", handlers of at least %g us",
			 (double)config->handler_over_ns / 1e3);
		add(out, out_bytes, number);
	}
	if (config->sample_hz) {
		snprintf(number, sizeof(number), "; %" PRIu32 " stacks per second",
			 config->sample_hz);
		add(out, out_bytes, number);
	}
	if (config->look_period_ns) {
		add(out, out_bytes, "; ");
		config_look_describe(config->look_period_ns, config->look_when, out, out_bytes);
	}
}

void config_limit_describe(const struct message_config_limit *limit, char *out, size_t out_bytes)
{
	snprintf(out, out_bytes, "%s: %s",
		 limit->field < CONFIG_FIELDS ? field_names[limit->field] : "a newer field",
		 limit->text[0] ? limit->text : "not in force");
}
