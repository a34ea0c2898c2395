/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads the guest CPUs and their APIC ids. The host finds the vCPU of a guest CPU by its APIC
 * id. */
#ifndef AGENT_CPUS_H
#define AGENT_CPUS_H

#include <stddef.h>

#include "proto/message.h"

/* Reads (processor, apicid) pairs from the text of /proc/cpuinfo. Returns their number, at most
 * `max`. Skips a processor without an apicid line. */
size_t cpus_parse(const char *cpuinfo, struct message_cpu *cpus, size_t max);
/* Does the same with /proc/cpuinfo of the running kernel. Returns the number of CPUs or -errno. */
long cpus_read(struct message_cpu *cpus, size_t max);

#endif
