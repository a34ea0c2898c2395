/* SPDX-License-Identifier: GPL-2.0-only */
/* Checks that the times in a report add up. All tests that make reports use it. */
#ifndef TESTS_BALANCE_H
#define TESTS_BALANCE_H

#include "host-collector/analyze/stall/state_times.h"
#include "host-collector/view/finding_text.h"

static inline void assert_balances(const struct report *r)
{
	struct finding wrong[STATE_TIMES_FINDINGS];

	if (report_imbalances(r, wrong))
		fail_msg("%s", finding_text(wrong, STATE_TIMES_FINDINGS).text);
}

static inline void assert_incident_balances(struct incident *i)
{
	assert_balances(&(struct report){
		.begin = i->begin, .end = i->end, .n_incidents = 1, .incidents = i});
}

#endif
