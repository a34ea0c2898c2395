/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/query_source.h"

#include <signal.h>
#include <stdlib.h>

#include "host-collector/cli/stalls_read.h"

/* A signal handler has no other way to reach it. */
static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
	(void)number;
	interrupted = 1;
}

static bool stopped(void *context)
{
	(void)context;
	return interrupted;
}

static const struct report *report_get(void *context)
{
	struct query_source *q = context;

	if (!q->report && !q->failed) {
		q->report = stalls_read(q->command, q->sql.recording, 0, false);
		q->failed = !q->report;
	}
	return q->report;
}

void query_source_init(struct query_source *q, const char *command, const char *recording,
		       const struct narrow *narrow)
{
	/* The second signal ends the program at once. */
	const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	*q = (struct query_source){.command = command,
				   .sql = {.recording = recording,
					   .narrow = narrow,
					   .report = report_get,
					   .stopped = stopped,
					   .context = q}};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

void query_source_fini(struct query_source *q)
{
	report_free(q->report);
	q->report = NULL;
}
