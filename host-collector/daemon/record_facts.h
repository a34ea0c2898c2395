/* SPDX-License-Identifier: GPL-2.0-only */
/* Collects what the daemon's records contain about a VM besides its incidents and figures. */
#ifndef DAEMON_RECORD_FACTS_H
#define DAEMON_RECORD_FACTS_H

#include <stdbool.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/watched_vm.h"
#include "host-collector/engine/live.h"
#include "host-collector/fleet/incident_record.h"
#include "host-collector/fleet/storage.h"
#include "host-collector/fleet/vm_facts.h"

/* The text of the labels that were parsed last. All zero: none were. */
struct record_labels {
	bool parsed;
	char text[DAEMON_PATH_MAX];
};

/* The NUMA nodes of pCPUs, + 1; 0: not known yet. */
struct record_numa {
	uint16_t nodes[VS_CPUS_MAX];
};

/* Sets the host's labels. Parses them only if the text has changed since the last call. */
void record_labels(struct record_labels *before, const char *text, struct host_facts *host);
/* Returns the NUMA node of an incident's pCPU, or -1 if it is not known. root: "" for this machine.
 */
int record_numa_node(struct record_numa *known, const char *root, const struct incident *incident);
/* Updates the facts, because the guest side may have changed since the last record. live: NULL if
 * the VM does not run. program_version: version of the VMM's program, for a VMM whose monitor is
 * not used. */
void record_vm_facts(const struct watched_vm *vm, const struct live *live,
		     const char *program_version, struct vm_facts *facts);
/* Fills in the numbers of events of both sides. */
void record_counts(const struct live *live, struct incident_record *to);
/* Finds the storage behind an incident. The kernel names a block device, but does not see what QEMU
 * reaches over the network: if all such disks of the VM are on one storage, it is that storage.
 * root: "" for this machine. Returns false if it is not known. */
bool record_storage(const char *root, const struct watched_vm *vm, const struct incident *incident,
		    struct storage *out);

#endif
