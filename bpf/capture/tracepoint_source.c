/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/capture/tracepoint_source.h"

#include <errno.h>

#define AS(event, ...)                                                                             \
	{                                                                                          \
		.type = VS_EVENT_##event, __VA_ARGS__                                              \
	}
#define HIGH                                                                                       \
	{                                                                                          \
		{0},                                                                               \
		{                                                                                  \
			.shift = 32                                                                \
		}                                                                                  \
	}

/* A name that this kernel's record does not have reads as zero: "vector" or "irq" are one field
 * that was renamed. The same goes for tracepoints. */
/* clang-format off */
static const struct tracepoint_source sources[] = {
	{"kvm", "kvm_entry", AS(KVM_ENTRY, .always = 1), .arg1 = {"rip"}},
	{"kvm", "kvm_exit", AS(KVM_EXIT, .always = 1, .arg0 = HIGH),
	 .arg0 = {"exit_reason", "isa"}, .arg1 = {"guest_rip"}},
	{"kvm", "kvm_userspace_exit", AS(KVM_USERSPACE_EXIT, .always = 1),
	 .arg0 = {"reason"}, .arg1 = {"errno"}},
	{"kvm", "kvm_page_fault", AS(KVM_PAGE_FAULT),
	 .arg0 = {"fault_address"}, .arg1 = {"error_code"}},
	{"kvm", "kvm_mmio", AS(KVM_MMIO, .arg1 = HIGH), .arg0 = {"gpa"}, .arg1 = {"type", "len"}},
	{"kvm", "kvm_pio", AS(KVM_PIO, .arg0 = HIGH, .arg1 = HIGH),
	 .arg0 = {"port", "size"}, .arg1 = {"rw", "count"}},
	{"kvm", "kvm_msr", AS(KVM_MSR, .arg0 = HIGH), .arg0 = {"ecx", "write"}, .arg1 = {"data"}},
	{"kvm", "kvm_hypercall", AS(KVM_HYPERCALL), .arg0 = {"nr"}, .arg1 = {"a0"}},
	{"kvm", "kvm_halt_poll_ns", AS(KVM_HALT_POLL), .arg0 = {"new"}, .arg1 = {"old"}},
	{"kvm", "kvm_vcpu_wakeup", AS(KVM_WAKEUP, .arg1 = HIGH),
	 .arg0 = {"ns"}, .arg1 = {"waited", "valid"}},
	{"kvm", "kvm_ple_window", AS(KVM_PLE_WINDOW), .arg0 = {"new"}, .arg1 = {"old"}},
	{"kvm", "kvm_ple_window_update", AS(KVM_PLE_WINDOW), .arg0 = {"new"}, .arg1 = {"old"}},
	{"kvm", "kvm_msi_set_irq", AS(KVM_MSI, .scope = VS_SCOPE_ANYONE),
	 .arg0 = {"address"}, .arg1 = {"data"}},
	{"kvm", "kvm_set_irq", AS(KVM_SET_IRQ, .scope = VS_SCOPE_ANYONE, .arg0 = HIGH),
	 .arg0 = {"gsi", "level"}, .arg1 = {"irq_source_id"}},
	{"kvm", "kvm_apic_ipi", AS(KVM_IPI), .arg0 = {"icr_low"}, .arg1 = {"dest_id"}},
	{"kvm", "kvm_apic_accept_irq",
	 AS(KVM_ACCEPT_IRQ, .scope = VS_SCOPE_ANYONE, .arg0 = HIGH, .arg1 = HIGH),
	 .arg0 = {"vec", "apicid"}, .arg1 = {"dm", "tm"}},
	{"kvm", "kvm_apicv_accept_irq",
	 AS(KVM_APICV_ACCEPT_IRQ, .scope = VS_SCOPE_ANYONE, .arg0 = HIGH, .arg1 = HIGH),
	 .arg0 = {"vec", "apicid"}, .arg1 = {"dm", "tm"}},
	{"kvm", "kvm_inj_virq",
	 AS(KVM_INJECT, .arg1 = HIGH), .arg0 = {"vector", "irq"}, .arg1 = {"soft", "reinjected"}},
	{"kvm", "kvm_eoi", AS(KVM_EOI), .arg0 = {"apicid"}, .arg1 = {"vector"}},
	{"kvm", "kvm_pv_eoi", AS(KVM_PV_EOI), .arg0 = {"apicid"}, .arg1 = {"vector"}},
	{"kvm", "kvm_ack_irq", AS(KVM_ACK_IRQ), .arg0 = {"irqchip"}, .arg1 = {"pin"}},
	{"kvm", "kvm_unmap_hva_range", AS(KVM_UNMAP, .scope = VS_SCOPE_ANYONE),
	 .arg0 = {"start"}, .arg1 = {"end"}},
	{"block", "block_rq_issue", AS(BLOCK_ISSUE, .scope = VS_SCOPE_BEGIN, .arg1 = HIGH),
	 .arg0 = {"sector"}, .arg1 = {"dev", "bytes"}},
	{"block", "block_rq_complete", AS(BLOCK_COMPLETE, .scope = VS_SCOPE_END, .arg1 = HIGH),
	 .arg0 = {"sector"}, .arg1 = {"dev", "nr_sector"}},
};
/* clang-format on */

_Static_assert(sizeof(sources) / sizeof(sources[0]) <= VS_TRACEPOINTS_MAX,
	       "more tracepoints than the programs' table holds");

const struct tracepoint_source *tracepoint_sources(size_t *n)
{
	*n = sizeof(sources) / sizeof(sources[0]);
	return sources;
}

static int field_place(const struct tracepoint_field *field, struct vs_tracepoint_field *out)
{
	/* The programs read at most 8 bytes of a record, which perf keeps below 8 KiB. */
	if (field->bytes > 8 || field->offset > 8192)
		return -EPROTO;
	out->offset = (vs_u16)field->offset;
	out->bytes = (vs_u16)field->bytes;
	out->is_signed = field->is_signed;
	return 0;
}

int tracepoint_resolve(const struct tracepoint_source *source, tracepoint_reader reader,
		       struct vs_tracepoint *out)
{
	struct tracepoint_field fields[2 * VS_TRACEPOINT_PARTS] = {0};
	int error;

	for (size_t i = 0; i < VS_TRACEPOINT_PARTS; i++) {
		fields[i].name = source->arg0[i];
		fields[VS_TRACEPOINT_PARTS + i].name = source->arg1[i];
	}
	*out = source->as;
	error = reader(source->system, source->name, fields, 2 * VS_TRACEPOINT_PARTS);
	for (size_t i = 0; i < VS_TRACEPOINT_PARTS && !error; i++) {
		error = field_place(&fields[i], &out->arg0[i]);
		if (!error)
			error = field_place(&fields[VS_TRACEPOINT_PARTS + i], &out->arg1[i]);
	}
	return error;
}
