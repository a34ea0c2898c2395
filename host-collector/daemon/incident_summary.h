/* SPDX-License-Identifier: GPL-2.0-only */
/* Builds the content of incident.json. */
#ifndef DAEMON_INCIDENT_SUMMARY_H
#define DAEMON_INCIDENT_SUMMARY_H

#include <stdint.h>

#include "host-collector/analyze/stall/report.h"
#include "host-collector/daemon/triggers.h"

struct json_object;

struct incident_summary {
	const char *vm;
	const struct incident *incident;     /* the stall, or NULL */
	const struct trigger_firing *firing; /* the trigger, or NULL; both NULL: a snapshot */
	uint64_t stalls_without_folder;      /* stalls and triggers since the last folder */
};

/* Returns the word for the folder's name: the stall's verdict, else the trigger's name, else
 * "snapshot". Static. */
const char *incident_summary_what(const struct incident_summary *s);
/* Returns an object that the caller owns, or NULL if there is no memory. */
struct json_object *incident_summary_json(const struct incident_summary *s);

#endif
