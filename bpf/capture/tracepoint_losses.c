/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/tracepoint_losses.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = 64 };

/* names: tracepoints whose absence has the same effect, separated by blanks. */
struct loss {
	const char *names, *lost;
};

static const struct loss of_guest[] = {
	{"sched_wakeup sched_wakeup_new",
	 "which tasks waited for a CPU: stalls show only by ticks that stop and by what the host "
	 "did"},
	{"sched_migrate_task", "waits of tasks that moved to another CPU count on the old one"},
	{"task_newtask task_rename sched_process_exec",
	 "names of tasks that start during the recording"},
	{"sched_process_exit", "ends of tasks: one that waited and ended seems to wait"},
	{"irq_handler_entry irq_handler_exit",
	 "handlers of devices: their time counts as the interrupted task's (verdict "
	 "guest_irq_storm, tables irq, chains, delays)"},
	{"softirq_entry softirq_exit",
	 "softirqs: their time counts as the interrupted task's (verdict guest_irq_storm, tables irq, "
	 "chains)"},
	{"local_timer_entry local_timer_exit",
	 "the guest's ticks: nothing shows that they stop (verdict timer_late, tables ticks, irq)"},
	{"reschedule_entry reschedule_exit call_function_entry call_function_exit "
	 "call_function_single_entry call_function_single_exit",
	 "handlers of IPIs (tables irq, chains, delays)"},
};

static const struct loss of_host[] = {
	{"sched_waking", "stacks of those who woke a thread after a long sleep"},
	{"sched_wakeup",
	 "when threads were woken: a wait for a pCPU after a sleep counts as the sleep (verdict "
	 "vcpu_not_scheduled, tables vcpu, threads, chains)"},
	{"sched_wakeup_new", "the first wait of new threads for a pCPU"},
	{"sched_migrate_task",
	 "moves of waiting threads: culprits may be those of the pCPU that the vCPU left"},
	{"signal_generate", "signals: verdict vm_paused does not name who stopped the VM"},
	{"task_newtask", "threads that the VMM starts are captured later"},
	{"task_rename", "new names of threads"},
	{"sched_process_exit", "ends of threads: one that ended seems to sleep"},
	{"kvm_entry kvm_exit kvm_userspace_exit",
	 "time in KVM and in the VMM counts as time in the guest (table exits; reports list "
	 "kvm_events as missing)"},
	{"kvm_page_fault", "the guest's page faults (table faults)"},
	{"kvm_mmio kvm_pio",
	 "which device a vCPU accessed (verdict device_no_completion, table faults)"},
	{"kvm_msr", "accesses to MSRs: `report events` only"},
	{"kvm_hypercall", "IPIs that the guest sends by hypercall (tables chains, delays)"},
	{"kvm_halt_poll_ns kvm_vcpu_wakeup", "how halts ended (table halts)"},
	{"kvm_ple_window_update", "the window of pause-loop exits: `report events` only"},
	{"kvm_msi_set_irq kvm_set_irq",
	 "when devices raise interrupts (tables chains, delays, slowest)"},
	{"kvm_apic_ipi", "when vCPUs send IPIs (tables chains, delays, slowest)"},
	{"kvm_apicv_accept_irq",
	 "which interrupts the processor delivers by itself (tables chains, delays)"},
	{"kvm_apic_accept_irq",
	 "when interrupts become pending (verdicts interrupt_lost, timer_late; tables chains, "
	 "overdue)"},
	{"kvm_inj_virq", "when KVM injects interrupts (stages wait and enter of table chains)"},
	{"kvm_eoi kvm_pv_eoi", "when the guest ends interrupts (stage service of table chains)"},
	{"kvm_ack_irq", "level-triggered interrupts that come again (table chains)"},
	{"kvm_unmap_hva_range", "when the host takes memory from the guest: `report events` only"},
	{"kvm:*",
	 "time in KVM and in the VMM counts as time in the guest, and the host shows no interrupts "
	 "(tables exits, halts, faults, chains, delays, slowest, overdue; reports list kvm_events as "
	 "missing)"},
	{"block:*", "requests to block devices: verdict storage_backend does not name the device"},
	{"block_rq_issue block_rq_complete",
	 "requests to block devices: verdict storage_backend does not name the device"},
};

static bool has_word(const char *words, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = words; len && (at = strstr(at, word)); at += len) {
		if ((at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	}
	return false;
}

/* For events that are only shown, which need no row above. */
static const struct loss of_evidence = {"", "evidence of stalls and `report events` only"};

static bool is_evidence(const char *name)
{
	size_t n;
	const struct event_tracepoint *all = event_tracepoints(&n);

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(all[i].name, name) && event_type_is(all[i].type, EVENT_EVIDENCE))
			return true;
	}
	return false;
}

/* Returns NULL if the side does not use the tracepoint. */
static const struct loss *loss_find(enum capture_kind side, const char *name)
{
	const struct loss *all = side == CAPTURE_HOST ? of_host : of_guest;
	const size_t n = side == CAPTURE_HOST ? sizeof(of_host) / sizeof(of_host[0])
					      : sizeof(of_guest) / sizeof(of_guest[0]);

	for (size_t i = 0; i < n; i++) {
		if (has_word(all[i].names, name))
			return &all[i];
	}
	return side == CAPTURE_HOST && is_evidence(name) ? &of_evidence : NULL;
}

/* Copies the next name of a list. Returns where the list goes on, or NULL at its end. */
static const char *name_next(const char *names, char name[NAME_BYTES])
{
	const size_t len = strcspn(names, ", ");

	if (!len)
		return NULL;
	snprintf(name, NAME_BYTES, "%.*s", (int)len, names);
	return names + len + strspn(names + len, ", ");
}

static void append(char *out, size_t out_bytes, const char *text)
{
	const size_t used = strlen(out);

	snprintf(out + used, out_bytes - used, "%s", text);
}

/* Returns true if an earlier name of the list has the same loss. */
static bool is_covered(enum capture_kind side, const char *names, const char *name)
{
	const struct loss *loss = loss_find(side, name);
	char earlier[NAME_BYTES];

	while (loss && (names = name_next(names, earlier)) && strcmp(earlier, name)) {
		if (loss_find(side, earlier) == loss)
			return true;
	}
	return false;
}

void tracepoint_losses(enum capture_kind side, const char *names, char *out, size_t out_bytes)
{
	const char *at = names;
	char name[NAME_BYTES];

	out[0] = '\0';
	while ((at = name_next(at, name))) {
		const struct loss *loss = loss_find(side, name);
		const char *rest = at;
		char other[NAME_BYTES];

		if (is_covered(side, names, name))
			continue;
		append(out, out_bytes, out[0] ? "; " : "");
		append(out, out_bytes, name);
		while (loss && (rest = name_next(rest, other))) {
			if (loss_find(side, other) != loss)
				continue;
			append(out, out_bytes, ", ");
			append(out, out_bytes, other);
		}
		append(out, out_bytes, loss ? ": " : "");
		append(out, out_bytes, loss ? loss->lost : "");
	}
}

/* ---- classic tracepoints ---- */

static bool exists(tracepoint_reader reader, const struct event_tracepoint *row)
{
	struct vs_tracepoint resolved;

	return !tracepoint_resolve(row, reader, &resolved);
}

static bool any_exists(tracepoint_reader reader, const char *system)
{
	const struct event_tracepoint *row;

	for (size_t i = 0; (row = tracepoint_row(i)); i++) {
		if (!strcmp(row->system, system) && exists(reader, row))
			return true;
	}
	return false;
}

/* Returns true if a later row is the same tracepoint with its newer name. */
static bool has_successor(size_t index)
{
	const struct event_tracepoint *row = tracepoint_row(index), *other;

	for (size_t i = index + 1; (other = tracepoint_row(i)); i++) {
		if (other->type == row->type)
			return true;
	}
	return false;
}

static bool predecessor_exists(tracepoint_reader reader, size_t index)
{
	const struct event_tracepoint *row = tracepoint_row(index);

	for (size_t i = 0; i < index; i++) {
		if (tracepoint_row(i)->type == row->type && exists(reader, tracepoint_row(i)))
			return true;
	}
	return false;
}

static void system_missing(tracepoint_reader reader, const char *system, char *names,
			   size_t names_bytes)
{
	const bool any = any_exists(reader, system);
	const struct event_tracepoint *row;
	char name[NAME_BYTES];

	for (size_t i = 0; (row = tracepoint_row(i)); i++) {
		if (strcmp(row->system, system) || exists(reader, row) || has_successor(i) ||
		    predecessor_exists(reader, i))
			continue;
		snprintf(name, sizeof(name), any ? "%s" : "%s:*", any ? row->name : system);
		append(names, names_bytes, names[0] ? ", " : "");
		append(names, names_bytes, name);
		if (!any)
			break;
	}
}

static bool is_first_of_system(size_t index)
{
	for (size_t i = 0; i < index; i++) {
		if (!strcmp(tracepoint_row(i)->system, tracepoint_row(index)->system))
			return false;
	}
	return true;
}

void tracepoint_rows_missing(tracepoint_reader reader, bool kvm, char *names, size_t names_bytes)
{
	const struct event_tracepoint *row;

	for (size_t i = 0; (row = tracepoint_row(i)); i++) {
		if (is_first_of_system(i) && (kvm || strcmp(row->system, "kvm") != 0))
			system_missing(reader, row->system, names, names_bytes);
	}
}
