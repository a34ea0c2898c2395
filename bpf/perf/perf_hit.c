/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/perf/perf_hit.h"

#include <string.h>

static bool has_test_of(const struct capture_event *e, enum vs_user_from from)
{
	for (size_t i = 0; i < e->n_tests; i++) {
		if (e->tests[i].value.from == from)
			return true;
	}
	return false;
}

bool perf_hit_can(const struct capture_event *e)
{
	for (size_t i = 0; i < e->n_values; i++) {
		if (e->values[i].from == VS_FROM_USER || e->values[i].from == VS_FROM_STACK)
			return false;
	}
	return !has_test_of(e, VS_FROM_USER) &&
	       (e->kernel_filter_exact || !has_test_of(e, VS_FROM_COMM));
}

/* Reads at most 8 bytes of the record. Returns 0 if it has fewer than `bytes`. */
static uint64_t bytes_read(const struct perf_record *record, size_t offset, size_t bytes)
{
	uint64_t value = 0;

	if (bytes > sizeof(value) || offset > record->raw_bytes ||
	    bytes > record->raw_bytes - offset)
		return 0;
	memcpy(&value, record->raw + offset, bytes);
	return value;
}

static uint64_t data_read(const struct perf_record *record, const struct vs_user_value *v)
{
	const uint64_t place = bytes_read(record, v->offset, 4);
	const size_t from = (size_t)v->number & 0xff, bytes = place >> 16;

	if (bytes <= from)
		return 0;
	return bytes_read(record, (place & 0xffff) + from, bytes - from < 8 ? bytes - from : 8);
}

uint64_t perf_hit_value(const struct perf_record *record, uint16_t cpu,
			const struct vs_user_value *v)
{
	unsigned int unused;
	uint64_t value;

	switch (v->from) {
	case VS_FROM_CONTEXT:
		break;
	case VS_FROM_DATA:
		return data_read(record, v);
	case VS_FROM_NUMBER:
		return (uint64_t)v->number;
	case VS_FROM_CPU:
		return cpu;
	case VS_FROM_TID:
		return (uint32_t)record->tid;
	case VS_FROM_PID:
		return (uint32_t)record->tgid;
	default:
		return 0;
	}
	if (!v->bytes || v->bytes > 8)
		return 0;
	value = bytes_read(record, v->offset, v->bytes);
	unused = 64 - 8u * v->bytes;
	if (v->is_signed)
		value = (uint64_t)((int64_t)(value << unused) >> unused);
	return value;
}

static bool test_holds(const struct vs_user_test *t, uint64_t value)
{
	value &= t->mask;
	if (t->compare == VS_COMPARE_LESS)
		return value < t->number;
	if (t->compare == VS_COMPARE_LESS_SIGNED)
		return (int64_t)value < (int64_t)t->number;
	return value == t->number;
}

bool perf_hit_is_wanted(const struct perf_record *record, uint16_t cpu,
			const struct capture_event *e)
{
	uint32_t at = e->n_tests ? e->first_test : VS_USER_KEEP;

	if (e->kernel_filter_exact)
		return true;
	/* All jumps go forward. */
	while (at < e->n_tests) {
		const struct vs_user_test *t = &e->tests[at];

		at = test_holds(t, perf_hit_value(record, cpu, &t->value)) ? t->on_true
									   : t->on_false;
	}
	return at == VS_USER_KEEP;
}
