/* SPDX-License-Identifier: GPL-2.0-only */
#include "clock/eval.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The host TSC at which kvmclock reads t lies within [*first, *first + *err_ticks]. */
static bool kvmclock_to_host(const struct clock_params *p, struct kvmclock_ns t,
			     struct host_tsc *first, uint64_t *err_ticks)
{
	struct guest_tsc guest, after;
	struct host_tsc end;
	uint64_t span, last, unused;

	if (!pvclock_to_tsc(&p->pvclock, t, &guest, &span))
		return false;
	/* No instant lies before the host's tick 0. */
	last = guest.ticks + span - p->scaling.offset;
	if (span > last)
		span = last;
	guest.ticks = last - span + p->scaling.offset;
	if (!tsc_scaling_to_host(&p->scaling, guest, first, err_ticks))
		return false;
	if (!p->scaling.frac_bits) {
		*err_ticks = span;
		return true;
	}
	/* Up to the host tick before the one that reads more. */
	after.ticks = guest.ticks + span + 1;
	if (!tsc_scaling_to_host(&p->scaling, after, &end, &unused))
		*err_ticks = UINT64_MAX - first->ticks;
	else if (end.ticks > first->ticks)
		*err_ticks = end.ticks - first->ticks - 1;
	return true;
}

int clock_eval(const struct clock_eval_request *request, struct clock_eval_result *out)
{
	const struct clock_params *p = &request->params;
	bool found = true;
	uint64_t reads = request->value;

	memset(out, 0, sizeof(*out));
	if (!tsc_scaling_valid(&p->scaling) || (p->has_pvclock && !pvclock_valid(&p->pvclock)))
		return -EINVAL;
	switch (request->from) {
	case CLOCK_EVAL_HOST_TSC:
		out->host.ticks = request->value;
		break;
	case CLOCK_EVAL_GUEST_TSC:
		found = tsc_scaling_to_host(&p->scaling, (struct guest_tsc){request->value},
					    &out->host, &out->span_ticks);
		break;
	case CLOCK_EVAL_KVMCLOCK:
		if (!p->has_pvclock)
			return -EINVAL;
		found = kvmclock_to_host(p, (struct kvmclock_ns){request->value}, &out->host,
					 &out->span_ticks);
		break;
	default:
		return -EINVAL;
	}
	if (!found)
		return -ERANGE;
	if (request->inverse == CLOCK_EVAL_LAST)
		out->host.ticks += out->span_ticks;
	out->guest = tsc_scaling_to_guest(&p->scaling, out->host);
	out->has_kvmclock = p->has_pvclock;
	if (p->has_pvclock)
		out->kvmclock = pvclock_from_tsc(&p->pvclock, out->guest);
	if (request->from == CLOCK_EVAL_GUEST_TSC)
		reads = out->guest.ticks;
	else if (request->from == CLOCK_EVAL_KVMCLOCK)
		reads = out->kvmclock.ns;
	out->stepped_over = reads != request->value;
	return 0;
}

/* Reads digits up to a character of `ends` (or the end), which *rest is left at. */
static int number_read(const char *text, const char *ends, uint64_t *out, const char **rest)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	*out = strtoull(text, &end, text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10);
	if (errno || (*end && !strchr(ends, *end)))
		return -EINVAL;
	*rest = end;
	return 0;
}

int clock_eval_parse_u64(const char *text, uint64_t *out)
{
	const char *rest;

	return number_read(text, "", out, &rest);
}

int clock_eval_parse_offset(const char *text, uint64_t *out)
{
	bool negative = *text == '-';
	int r = clock_eval_parse_u64(text + (negative || *text == '+'), out);

	if (r || (negative && *out > (uint64_t)INT64_MAX + 1))
		return -EINVAL;
	if (negative)
		*out = -*out;
	return 0;
}

int clock_eval_parse_scaling(const char *text, struct tsc_scaling *out)
{
	const char *rest;
	uint64_t frac;

	if (number_read(text, "/", &out->ratio, &rest) || *rest != '/' ||
	    clock_eval_parse_u64(rest + 1, &frac) || frac < 1 || frac > 63)
		return -EINVAL;
	out->frac_bits = (uint32_t)frac;
	return tsc_scaling_valid(out) ? 0 : -EINVAL;
}

/* The fields of --pvclock, in the order of the array that takes their values. */
enum pvclock_field { TSC_TIMESTAMP, SYSTEM_TIME, MUL, SHIFT, FLAGS, N_FIELDS };

static const struct {
	const char *name;
	int64_t min;
	uint64_t max;
	bool required;
} pvclock_fields[N_FIELDS] = {
	[TSC_TIMESTAMP] = {"tsc_timestamp", 0, UINT64_MAX, true},
	[SYSTEM_TIME] = {"system_time", 0, UINT64_MAX, true},
	[MUL] = {"mul", 0, UINT32_MAX, true},
	[SHIFT] = {"shift", INT8_MIN, INT8_MAX, true},
	[FLAGS] = {"flags", 0, UINT8_MAX, false},
};

static int field_find(const char *name, size_t length)
{
	for (int i = 0; i < N_FIELDS; i++) {
		if (strlen(pvclock_fields[i].name) == length &&
		    !strncmp(pvclock_fields[i].name, name, length))
			return i;
	}
	return -EINVAL;
}

int clock_eval_parse_pvclock(const char *text, struct pvclock *out)
{
	uint64_t value[N_FIELDS] = {0};
	bool seen[N_FIELDS] = {false};

	while (*text) {
		const char *equals = strchr(text, '=');
		bool negative;
		int field;

		if (!equals)
			return -EINVAL;
		field = field_find(text, (size_t)(equals - text));
		if (field < 0 || seen[field])
			return -EINVAL;
		seen[field] = true;
		text = equals + 1;
		negative = *text == '-';
		if (number_read(text + negative, ",", &value[field], &text))
			return -EINVAL;
		if (negative ? value[field] > (uint64_t)-pvclock_fields[field].min
			     : value[field] > pvclock_fields[field].max)
			return -EINVAL;
		if (negative)
			value[field] = -value[field];
		if (*text == ',' && !*++text)
			return -EINVAL;
	}
	for (int i = 0; i < N_FIELDS; i++) {
		if (pvclock_fields[i].required && !seen[i])
			return -EINVAL;
	}
	*out = (struct pvclock){
		.tsc_timestamp = value[TSC_TIMESTAMP],
		.system_time = value[SYSTEM_TIME],
		.mul = (uint32_t)value[MUL],
		.shift = (int8_t)value[SHIFT],
		.flags = (uint8_t)value[FLAGS],
	};
	return pvclock_valid(out) ? 0 : -EINVAL;
}
