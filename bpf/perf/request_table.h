/* SPDX-License-Identifier: GPL-2.0-only */
/* Block requests under way and who issued them; the oldest of a full bucket are forgotten. */
#ifndef PERF_REQUEST_TABLE_H
#define PERF_REQUEST_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/prog/tracepoint.h"

struct request_table;

struct request_table *request_table_new(void); /* NULL on ENOMEM */
void request_table_free(struct request_table *t);
void request_begin(struct request_table *t, const struct vs_request *request, int32_t beginner);
/* Forgets the request. False: nobody began it, as far as we remember. */
bool request_end(struct request_table *t, const struct vs_request *request, int32_t *beginner);

#endif
