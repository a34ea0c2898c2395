/* SPDX-License-Identifier: GPL-2.0-only */
/* Builds the lines of vcpuscope.incident/2 (docs/fleet.md). */
#ifndef FLEET_INCIDENT_RECORD_H
#define FLEET_INCIDENT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host-collector/analyze/stall/report.h"
#include "host-collector/fleet/host_facts.h"
#include "host-collector/fleet/outbox.h"
#include "host-collector/fleet/storage.h"
#include "host-collector/fleet/vm_facts.h"

struct json_object;

enum { INCIDENT_LINE_MAX = 16 * 1024 };

/* What the model does not know about a culprit. */
struct record_culprit {
	char vm_uuid[IDENTITY_UUID_BYTES]; /* "": unknown */
	char unit[128];
};

struct incident_record {
	const struct host_facts *host;
	const struct vm_facts *vm;
	const struct incident *incident; /* the stall; NULL: a trigger fired */
	const char *trigger;             /* "stall" or the trigger's name */
	const char *text;                /* of the trigger, or NULL */
	int64_t begin_ns;                /* on the host's monotonic clock: part of the id */
	int64_t begin_realtime_ns, end_realtime_ns, duration_ns;
	uint64_t time_error_ns, host_clock_error_ns; /* UINT64_MAX: unbounded */
	bool counts_known, guest_counts_known;
	uint64_t host_events, host_events_lost, guest_events, guest_events_lost;
	const struct record_culprit *culprits; /* one for each culprit of the incident */
	const struct storage *storage;         /* NULL: not about storage */
	int numa_node;                         /* -1: unknown */
	bool guest_text; /* names of guest tasks and texts with them may leave the host */
};

/* Evidence of a record. */
struct record_evidence {
	const char *folder; /* its name */
	const char *key;    /* NULL: not shipped */
	uint64_t bytes;
	const char *sha256; /* NULL: unknown */
};

/* Writes the record's id: the same for the same host, boot, VM, vCPU, begin and trigger. */
void incident_record_id(const struct incident_record *r, char out[HOST_ID_BYTES]);
/* Returns the record as an object that the caller owns, or NULL if there is no memory. */
struct json_object *incident_record_json(const struct incident_record *r, const char *id);
/* Set members of a record, for a line that replaces an earlier line. */
void incident_record_seq(struct json_object *record, unsigned seq, bool ongoing);
void incident_record_evidence(struct json_object *record, const struct record_evidence *evidence);

/* The incidents above `outbox_rate`: one record stands for them. */
struct incident_sum {
	uint64_t count, vms;
	/* Number of stalls by verdict; number of other triggers. */
	uint64_t by_verdict[VERDICT_COUNT], triggers;
	int64_t begin_realtime_ns, end_realtime_ns;
};
/* Return an object that the caller owns, or NULL if there is no memory. */
struct json_object *incident_sum_json(const struct host_facts *host, const struct incident_sum *s);
struct json_object *incident_loss_json(const struct host_facts *host,
				       const struct outbox_loss *loss);

/* Writes the line, without '\n' and with a NUL. Leaves out culprits, the smallest first, and then
 * long texts and the labels, until it is shorter than `bytes`. Returns its length, or 0 if there is
 * no memory. INCIDENT_LINE_MAX has room for what is left. */
size_t incident_record_line(struct json_object *record, char *out, size_t bytes);

/* Adds the members that records of all kinds have, about the host and about the VM (NULL: null).
 */
void record_host_add(struct json_object *to, const struct host_facts *host);
void record_vm_add(struct json_object *to, const struct vm_facts *vm);

#endif
