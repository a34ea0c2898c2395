/* SPDX-License-Identifier: GPL-2.0-only */
/* A guest's configuration as people say and read it: the words of --guest-events and its like, and
 * lines on what an agent has in force. */
#ifndef DECODE_CONFIG_TEXT_H
#define DECODE_CONFIG_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/message_config.h"

/* "irqs,softirqs" (all names: the message's classes). 0 or -EINVAL with one line in `why`. */
int config_events_parse(const char *list, struct message_config *out, char *why, size_t why_bytes);
/* "fio,kworker*": at most VS_CONFIG_TASKS_MAX names of at most 15 bytes. The same. */
int config_tasks_parse(const char *list, struct message_config *out, char *why, size_t why_bytes);
/* "detail" or "summary", and the threshold of the latter in ns, 0: the agent's. The same. */
int config_level_parse(const char *level, uint64_t handler_over_ns, struct message_config *out,
		       char *why, size_t why_bytes);
/* "the guest tells switches,irqs of fio, handlers from 100 us on; stacks 99 times a second". A
 * guest wrote the names in it: escape it where it is shown. */
void config_describe(const struct message_config *config, char *out, size_t out_bytes);
/* "sample-hz: at most 100 here (--max-sample-hz)". The same. */
void config_limit_describe(const struct message_config_limit *limit, char *out, size_t out_bytes);

#endif
