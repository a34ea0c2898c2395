/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the steal of each guest CPU from /proc/stat. */
#ifndef AGENT_STEAL_H
#define AGENT_STEAL_H

#include "proto/message.h"

/* Parses the text of /proc/stat into m->cpus and m->n_cpus. unit_ns: length of one unit of the
 * text. Skips CPUs without the field and CPUs from VS_CPUS_MAX on. */
void steal_parse(const char *stat, uint64_t unit_ns, struct message_steal *m);
/* Returns true if the hypervisor reports steal to this guest. Detects KVM only, by CPUID. */
bool steal_clock_present(void);
/* Reads the steal of all CPUs between two TSC reads; known = false on an error. clock: result of
 * steal_clock_present(). */
void steal_read(bool clock, struct message_steal *m);

#endif
