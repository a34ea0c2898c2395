/* SPDX-License-Identifier: GPL-2.0-only */
/* What incident.json says. */
#ifndef DAEMON_INCIDENT_SUMMARY_H
#define DAEMON_INCIDENT_SUMMARY_H

#include <stdint.h>

#include "host-collector/analyze/stall/report.h"
#include "host-collector/daemon/triggers.h"

struct json_object;

struct incident_summary {
	const char *vm;
	const struct incident *incident;     /* of a stall, else NULL */
	const struct trigger_firing *firing; /* of a trigger, else NULL; both: by hand */
	uint64_t stalls_without_folder;      /* since the last folder */
};

/* For the folder's name: a stall's verdict, else the trigger's name or "snapshot"; static. */
const char *incident_summary_what(const struct incident_summary *s);
/* The caller's. NULL: out of memory. */
struct json_object *incident_summary_json(const struct incident_summary *s);

#endif
