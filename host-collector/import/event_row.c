/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/import/event_row.h"

#include <stddef.h>
#include <string.h>

static const struct event_row rows[] = {
	{"sched_switch", VS_EVENT_SCHED_SWITCH, 0},
	{"sched_wakeup", VS_EVENT_SCHED_WAKEUP, 0},
	{"sched_waking", VS_EVENT_SCHED_WAKEUP, 0},
	{"sched_wakeup_new", VS_EVENT_SCHED_WAKEUP_NEW, 0},
	{"sched_migrate_task", VS_EVENT_SCHED_MIGRATE, 0},
	{"sched_process_exit", VS_EVENT_TASK_EXIT, 0},
	{"irq_handler_entry", VS_EVENT_IRQ_ENTRY, 0},
	{"irq_handler_exit", VS_EVENT_IRQ_EXIT, 0},
	{"softirq_entry", VS_EVENT_SOFTIRQ_ENTRY, 0},
	{"softirq_exit", VS_EVENT_SOFTIRQ_EXIT, 0},
	{"local_timer_entry", VS_EVENT_VECTOR_ENTRY, VS_VECTOR_LOCAL_TIMER},
	{"local_timer_exit", VS_EVENT_VECTOR_EXIT, VS_VECTOR_LOCAL_TIMER},
	{"reschedule_entry", VS_EVENT_VECTOR_ENTRY, VS_VECTOR_RESCHEDULE},
	{"reschedule_exit", VS_EVENT_VECTOR_EXIT, VS_VECTOR_RESCHEDULE},
	{"call_function_entry", VS_EVENT_VECTOR_ENTRY, VS_VECTOR_CALL_FUNCTION},
	{"call_function_exit", VS_EVENT_VECTOR_EXIT, VS_VECTOR_CALL_FUNCTION},
	{"call_function_single_entry", VS_EVENT_VECTOR_ENTRY, VS_VECTOR_CALL_FUNCTION_SINGLE},
	{"call_function_single_exit", VS_EVENT_VECTOR_EXIT, VS_VECTOR_CALL_FUNCTION_SINGLE},
	{"signal_generate", VS_EVENT_SIGNAL, 0},
	{"kvm_entry", VS_EVENT_KVM_ENTRY, 0},
	{"kvm_exit", VS_EVENT_KVM_EXIT, 0},
	{"kvm_userspace_exit", VS_EVENT_KVM_USERSPACE_EXIT, 0},
};

const struct event_row *event_row_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	}
	return NULL;
}
