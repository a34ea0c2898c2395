/* SPDX-License-Identifier: GPL-2.0-only */
/* The CPUs of this machine with their APIC ids, by which the host joins a guest CPU to its vCPU. */
#ifndef AGENT_CPUS_H
#define AGENT_CPUS_H

#include <stddef.h>

#include "proto/message.h"

/* Takes (processor, apicid) pairs out of the text of /proc/cpuinfo. Returns how many were found,
 * at most `max`; a processor without an apicid line is left out. */
size_t cpus_parse(const char *cpuinfo, struct message_cpu *cpus, size_t max);
/* The same of the running kernel. Number of CPUs or -errno. */
long cpus_read(struct message_cpu *cpus, size_t max);

#endif
