/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parses the values of the options --guest-events, --guest-task-filter, --guest-level and
 * --guest-handlers-over, and describes the configuration that an agent reports.
 */
#ifndef DECODE_CONFIG_TEXT_H
#define DECODE_CONFIG_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/message_config.h"

/* Parses a list such as "irqs,softirqs"; event_class_name() gives the valid names. Always adds the
 * class "switches". Returns 0, or -EINVAL with one line in `why`. */
int config_events_parse(const char *list, struct message_config *out, char *why, size_t why_bytes);
/* Parses a list of task names such as "fio,kworker*": at most VS_CONFIG_TASKS_MAX names of at most
 * 15 bytes, each optionally followed by "*". Returns 0, or -EINVAL with one line in `why`. */
int config_tasks_parse(const char *list, struct message_config *out, char *why, size_t why_bytes);
/* Sets the level, "detail" or "summary", and the shortest handler that the agent reports at level
 * summary. level NULL and handler_over_ns 0 leave the agent's own settings. Returns 0, or -EINVAL
 * with one line in `why`. */
int config_level_parse(const char *level, uint64_t handler_over_ns, struct message_config *out,
		       char *why, size_t why_bytes);
/* Appends to `out` the text that stacks are taken at each tick of this period at which the
 * condition holds. The caller escapes the line before it shows it. */
void config_look_describe(uint64_t period_ns, const char *when, char *out, size_t out_bytes);
/* Writes one line that describes `config`. The task names in it come from the guest: the caller
 * escapes the line before it shows it. */
void config_describe(const struct message_config *config, char *out, size_t out_bytes);
/* Writes one line of the form "FIELD: REASON". REASON comes from the guest: the caller escapes the
 * line before it shows it. */
void config_limit_describe(const struct message_config_limit *limit, char *out, size_t out_bytes);

#endif
