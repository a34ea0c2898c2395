/* SPDX-License-Identifier: GPL-2.0-only */
/* Block requests in progress, with the thread that issued each. The table has a fixed size: if a
 * bucket is full, a new request replaces the oldest. */
#ifndef PERF_REQUEST_TABLE_H
#define PERF_REQUEST_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/prog/tracepoint.h"

struct request_table;

struct request_table *request_table_new(void); /* NULL on ENOMEM */
void request_table_free(struct request_table *t);
/* Stores that thread `beginner` issued the request. */
void request_begin(struct request_table *t, const struct vs_request *request, int32_t beginner);
/* Removes the request and stores the thread that issued it in *beginner. Returns false if the table
 * does not contain the request. */
bool request_end(struct request_table *t, const struct vs_request *request, int32_t *beginner);

#endif
