/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/record_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/fleet/vm_disks.h"

void record_labels(struct record_labels *before, const char *text, struct host_facts *host)
{
	char why[256];

	if (before->parsed && !strcmp(before->text, text))
		return;
	if (host_labels_parse(text, host, why, sizeof(why)))
		host->n_labels = 0; /* the configuration was checked */
	snprintf(before->text, sizeof(before->text), "%s", text);
	before->parsed = true;
}

int record_numa_node(struct record_numa *known, const char *root, const struct incident *incident)
{
	const bool is = incident->pcpu_known && incident->pcpu < VS_CPUS_MAX;
	uint16_t *node = is ? &known->nodes[incident->pcpu] : NULL;

	if (node && !*node)
		*node = (uint16_t)(host_numa_node(root, incident->pcpu) + 1);
	return node ? *node - 1 : -1;
}

void record_vm_facts(const struct watched_vm *vm, const struct live *live,
		     const char *program_version, struct vm_facts *facts)
{
	const char *version = watched_vm_version(vm);
	struct pipeline_source guest;

	snprintf(facts->name, sizeof(facts->name), "%s", watched_vm_config(vm)->name);
	if (!facts->vmm[0] && watched_vm_pid(vm))
		vm_facts_process("/proc", watched_vm_pid(vm), facts);
	snprintf(facts->vmm_version, sizeof(facts->vmm_version), "%s",
		 *version ? version : program_version);
	facts->clock_error_ns = UINT64_MAX;
	if (!live || !live_source(live, COLLECTOR_VM, &guest) || !guest.hello)
		return;
	snprintf(facts->guest_kernel, sizeof(facts->guest_kernel), "%.64s", guest.kernel_release);
	snprintf(facts->agent_version, sizeof(facts->agent_version), "%.31s",
		 guest.program_version);
	snprintf(facts->clock_method, sizeof(facts->clock_method), "%s",
		 guest.clock_untrusted ? "untrusted" : guest.clock_method);
	if (!guest.clock_untrusted)
		facts->clock_error_ns = guest.clock_error_median_ns;
}

void record_counts(const struct live *live, struct incident_record *to)
{
	struct pipeline_source s;

	to->counts_known = live_source(live, VS_SOURCE_HOST, &s);
	if (to->counts_known) {
		to->host_events = s.delivered + s.missing;
		to->host_events_lost = s.missing;
	}
	to->guest_counts_known = live_source(live, COLLECTOR_VM, &s) && s.hello;
	if (to->guest_counts_known) {
		to->guest_events = s.delivered + s.missing;
		to->guest_events_lost = s.missing;
	}
}

bool record_storage(const char *root, const struct watched_vm *vm, const struct incident *incident,
		    struct storage *out)
{
	struct storage *disks;
	bool is;

	if (incident->device_known) {
		storage_find(root, incident->device, out);
		return true;
	}
	if (incident->verdict != VERDICT_STORAGE_BACKEND)
		return false;
	disks = calloc(VM_DISKS_MAX, sizeof(*disks));
	is = disks && vm_disks_common(disks, vm_disks_read(root, watched_vm_pid(vm), disks), out);
	free(disks);
	return is;
}
