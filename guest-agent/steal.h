/* SPDX-License-Identifier: GPL-2.0-only */
/* What this kernel accounts as stolen from each CPU by its hypervisor: the "steal" of /proc/stat.
 */
#ifndef AGENT_STEAL_H
#define AGENT_STEAL_H

#include "proto/message.h"

/* Takes the CPUs' steal out of the text of /proc/stat into m->cpus and m->n_cpus; unit_ns: what one
 * unit there stands for. CPUs without the field, or beyond VS_CPUS_MAX, are left out. */
void steal_parse(const char *stat, uint64_t unit_ns, struct message_steal *m);
/* Does the hypervisor tell this guest its steal time? Only KVM's CPUID is understood. */
bool steal_clock_present(void);
/* A reading of the running kernel, between two TSC reads; known = false if there is none. `clock`:
 * what steal_clock_present() said. */
void steal_read(bool clock, struct message_steal *m);

#endif
