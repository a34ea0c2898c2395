// SPDX-License-Identifier: GPL-2.0-only
#include "proto/log_limit.h"

static void time_begin(struct log_limit *l, uint64_t now_ms)
{
	if (l->lines && now_ms - l->begin_ms < LOG_LIMIT_MS)
		return;
	l->begin_ms = now_ms;
	l->lines = 0;
}

uint64_t log_limit_hidden(struct log_limit *l, uint64_t now_ms)
{
	uint64_t hidden;

	if (!l->hidden || now_ms - l->begin_ms < LOG_LIMIT_MS)
		return 0;
	hidden = l->hidden;
	l->hidden = 0;
	return hidden;
}

bool log_limit_is_reached(const struct log_limit *l, uint64_t now_ms)
{
	return l->lines >= LOG_LIMIT_LINES && now_ms - l->begin_ms < LOG_LIMIT_MS;
}

bool log_limit_admit(struct log_limit *l, uint64_t now_ms)
{
	time_begin(l, now_ms);
	if (l->lines < LOG_LIMIT_LINES) {
		l->lines++;
		return true;
	}
	l->hidden++;
	return false;
}
