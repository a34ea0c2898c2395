/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/request_table.h"

#include <stddef.h>
#include <stdlib.h>

enum { BUCKETS = 1024, SLOTS = 8 };

struct entry {
	struct vs_request request;
	int32_t beginner; /* 0: free */
	uint32_t age;     /* the clock when it began */
};

struct request_table {
	uint32_t clock;
	struct entry buckets[BUCKETS][SLOTS];
};

struct request_table *request_table_new(void)
{
	return calloc(1, sizeof(struct request_table));
}

void request_table_free(struct request_table *t)
{
	free(t);
}

static struct entry *bucket_of(struct request_table *t, const struct vs_request *request)
{
	const uint64_t hash =
		(request->first ^ request->second << 32) * UINT64_C(0x9e3779b97f4a7c15);

	return t->buckets[hash >> 54];
}

static struct entry *entry_find(struct entry *bucket, const struct vs_request *request)
{
	for (size_t i = 0; i < SLOTS; i++) {
		if (bucket[i].beginner && bucket[i].request.first == request->first &&
		    bucket[i].request.second == request->second)
			return &bucket[i];
	}
	return NULL;
}

void request_begin(struct request_table *t, const struct vs_request *request, int32_t beginner)
{
	struct entry *bucket = bucket_of(t, request), *e = entry_find(bucket, request);

	if (!e) {
		e = bucket;
		for (size_t i = 0; i < SLOTS && e->beginner; i++) {
			if (!bucket[i].beginner || t->clock - bucket[i].age > t->clock - e->age)
				e = &bucket[i];
		}
	}
	*e = (struct entry){*request, beginner, t->clock++};
}

bool request_end(struct request_table *t, const struct vs_request *request, int32_t *beginner)
{
	struct entry *e = entry_find(bucket_of(t, request), request);

	if (!e)
		return false;
	*beginner = e->beginner;
	e->beginner = 0;
	return true;
}
