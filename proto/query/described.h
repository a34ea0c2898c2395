/* SPDX-License-Identifier: GPL-2.0-only */
/* Finds the events of a recording that a user chose when recording. */
#ifndef QUERY_DESCRIBED_H
#define QUERY_DESCRIBED_H

#include "proto/query/event_schema.h"

/* Adds the events that the recording describes to `schemas`. Ignores parts that it cannot read: the
 * caller reads the recording again and reports them. Returns 0 or -ENOMEM. */
int described_read(const char *path, struct event_schemas *schemas);

#endif
