/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/exit_name.h"

#include <asm/kvm.h> /* the vectors that <asm/svm.h> names: PF_VECTOR and others */
#include <asm/svm.h>
#include <asm/vmx.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
	uint64_t number;
	const char *text;
};

enum { SVM_BUS_LOCK = 0xa5, SVM_IDLE_HLT = 0xa6 }; /* not in the header of Linux 6.1 */

/* The kernel's lists. */
static const struct name vmx_kernel[] = {VMX_EXIT_REASONS}, svm_kernel[] = {SVM_EXIT_REASONS};

/*
 * Reasons that the kernel's lists do not name, and those that the headers of older distributions
 * lack (Debian 12: Linux 6.1). With them, figures have the same name wherever the program was
 * built. Names are as in newer kernels, else as in the manuals: Intel SDM volume 3, appendix C; AMD
 * APM volume 2, appendix C.
 */
static const struct name vmx_others[] = {
	{5, "IO_SMI"}, {6, "OTHER_SMI"}, {11, "GETSEC"},       {17, "RSM"},           {60, "ENCLS"},
	{66, "SPP"},   {77, "TDCALL"},   {84, "MSR_READ_IMM"}, {85, "MSR_WRITE_IMM"},
};

static const struct name svm_others[] = {
	{SVM_EXIT_EXCP_BASE + 2, "NMI excp"},
	{SVM_EXIT_EXCP_BASE + 21, "CP excp"},
	{SVM_EXIT_MWAIT_COND, "mwait_cond"},
	{SVM_EXIT_RDPRU, "rdpru"},
	{0xa0, "invlpgb"},
	{0xa1, "invlpgb_illegal"},
	{SVM_BUS_LOCK, "bus_lock"},
	{SVM_IDLE_HLT, "idle-halt"},
};

/* Names that other tools (trace-cmd's plugin) and earlier versions of this program write. */
static const struct name svm_aliases[] = {
	{SVM_EXIT_INTR, "intr"},
	{SVM_EXIT_IOIO, "ioio"},
	{SVM_EXIT_VMMCALL, "vmmcall"},
	{SVM_EXIT_IDTR_READ, "idtr_read"},
	{SVM_EXIT_IDTR_READ, "sidt_read"},
	{SVM_EXIT_GDTR_READ, "gdtr_read"},
	{SVM_EXIT_GDTR_READ, "gdt_read"},
	{SVM_EXIT_LDTR_READ, "ldtr_read"},
	{SVM_EXIT_LDTR_READ, "ldt_read"},
	{SVM_EXIT_TR_READ, "tr_read"},
	{SVM_EXIT_IDTR_WRITE, "idtr_write"},
	{SVM_EXIT_IDTR_WRITE, "idt_write"},
	{SVM_EXIT_GDTR_WRITE, "gdtr_write"},
	{SVM_EXIT_GDTR_WRITE, "gdt_write"},
	{SVM_EXIT_LDTR_WRITE, "ldtr_write"},
	{SVM_EXIT_LDTR_WRITE, "ldt_write"},
	{SVM_EXIT_TR_WRITE, "tr_write"},
	{SVM_EXIT_EFER_WRITE_TRAP, "efer_write_trap"},
	{SVM_IDLE_HLT, "idle_hlt"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The names of one instruction set, in the order in which they are searched. */
static const struct list {
	const struct name *names;
	size_t n;
} lists[][2] = {
	[KVM_ISA_VMX] = {{vmx_kernel, COUNT(vmx_kernel)}, {vmx_others, COUNT(vmx_others)}},
	[KVM_ISA_SVM] = {{svm_kernel, COUNT(svm_kernel)}, {svm_others, COUNT(svm_others)}},
};

/* Registers: the kernel's list names only those that it intercepts. */
static const struct range {
	uint32_t first, last;
	const char *format;
} svm_ranges[] = {
	{SVM_EXIT_READ_CR0, SVM_EXIT_READ_CR0 + 15, "read_cr%u"},
	{SVM_EXIT_WRITE_CR0, SVM_EXIT_WRITE_CR0 + 15, "write_cr%u"},
	{SVM_EXIT_READ_DR0, SVM_EXIT_READ_DR0 + 15, "read_dr%u"},
	{SVM_EXIT_WRITE_DR0, SVM_EXIT_WRITE_DR0 + 15, "write_dr%u"},
	{SVM_EXIT_CR0_WRITE_TRAP, SVM_EXIT_CR0_WRITE_TRAP + 15, "write_cr%u_trap"},
};

/* What exits mean, and what they show: ranges of reasons, ascending by isa and number. */
static const struct property {
	uint32_t isa, first, last;
	const char *meaning; /* NULL: the name says it */
	enum exit_sign sign;
} properties[] = {
#define RANGE(ISA, FIRST, N, ...)                                                                  \
	{                                                                                          \
		.isa = ISA, .first = FIRST, .last = (FIRST) + (N)-1, __VA_ARGS__                   \
	}
#define VMX(NAME, ...) RANGE(KVM_ISA_VMX, EXIT_REASON_##NAME, 1, __VA_ARGS__)
#define SVM(NAME, ...) RANGE(KVM_ISA_SVM, SVM_EXIT_##NAME, 1, __VA_ARGS__)
	VMX(EXCEPTION_NMI, .meaning = "an exception or an NMI"),
	VMX(EXTERNAL_INTERRUPT, .meaning = "an interrupt of the host"),
	VMX(TRIPLE_FAULT, .meaning = "the guest crashed for good"),
	VMX(INTERRUPT_WINDOW, .meaning = "room for an interrupt"),
	VMX(NMI_WINDOW, .meaning = "room for an NMI"),
	VMX(TASK_SWITCH, .meaning = "task switch"),
	VMX(CPUID, .meaning = "CPUID"),
	VMX(HLT, .meaning = "idles"),
	VMX(INVLPG, .meaning = "flushes its TLB"),
	VMX(RDPMC, .meaning = "reads a performance counter"),
	VMX(RDTSC, .meaning = "reads the TSC"),
	VMX(VMCALL, .meaning = "hypercall"),
	VMX(VMCLEAR, .sign = EXIT_SERVES_GUEST),
	VMX(VMLAUNCH, .sign = EXIT_ENTERS_GUEST),
	VMX(VMPTRLD, .sign = EXIT_SERVES_GUEST),
	VMX(VMREAD, .sign = EXIT_SERVES_GUEST),
	VMX(VMRESUME, .sign = EXIT_ENTERS_GUEST),
	VMX(VMWRITE, .sign = EXIT_SERVES_GUEST),
	VMX(CR_ACCESS, .meaning = "control register"),
	VMX(DR_ACCESS, .meaning = "debug register"),
	VMX(IO_INSTRUCTION, .meaning = "port I/O"),
	VMX(MSR_READ, .meaning = "reads an MSR"),
	VMX(MSR_WRITE, .meaning = "writes an MSR"),
	VMX(MWAIT_INSTRUCTION, .meaning = "waits (MWAIT)"),
	VMX(MONITOR_INSTRUCTION, .meaning = "waits (MONITOR)"),
	VMX(PAUSE_INSTRUCTION, .meaning = "spins (PAUSE)", .sign = EXIT_SPINS),
	VMX(TPR_BELOW_THRESHOLD, .meaning = "task priority"),
	VMX(APIC_ACCESS, .meaning = "APIC register"),
	VMX(EOI_INDUCED, .meaning = "end of interrupt"),
	VMX(GDTR_IDTR, .meaning = "descriptor table"),
	VMX(LDTR_TR, .meaning = "descriptor table"),
	VMX(EPT_VIOLATION, .meaning = "memory not mapped by the host"),
	VMX(EPT_MISCONFIG, .meaning = "device memory"),
	VMX(RDTSCP, .meaning = "reads the TSC"),
	VMX(PREEMPTION_TIMER, .meaning = "timer"),
	VMX(WBINVD, .meaning = "flushes caches"),
	VMX(XSETBV, .meaning = "XSETBV"),
	VMX(APIC_WRITE, .meaning = "APIC register"),
	VMX(RDRAND, .meaning = "random number"),
	VMX(INVPCID, .meaning = "flushes its TLB"),
	VMX(RDSEED, .meaning = "random number"),
	VMX(PML_FULL, .meaning = "dirty page log full"),
	VMX(UMWAIT, .meaning = "waits (UMWAIT)"),
	VMX(TPAUSE, .meaning = "waits (TPAUSE)"),
	VMX(BUS_LOCK, .meaning = "split lock"),
	VMX(NOTIFY, .meaning = "kept the CPU too long without an event"),
	RANGE(KVM_ISA_SVM, SVM_EXIT_READ_CR0, 32, .meaning = "control register"),
	RANGE(KVM_ISA_SVM, SVM_EXIT_READ_DR0, 32, .meaning = "debug register"),
	RANGE(KVM_ISA_SVM, SVM_EXIT_EXCP_BASE, 32, .meaning = "an exception"),
	SVM(INTR, .meaning = "an interrupt of the host"),
	SVM(NMI, .meaning = "an NMI"),
	SVM(SMI, .meaning = "an SMI"),
	SVM(VINTR, .meaning = "room for an interrupt"),
	SVM(RDTSC, .meaning = "reads the TSC"),
	SVM(RDPMC, .meaning = "reads a performance counter"),
	SVM(CPUID, .meaning = "CPUID"),
	SVM(IRET, .meaning = "end of an NMI"),
	SVM(PAUSE, .meaning = "spins (PAUSE)", .sign = EXIT_SPINS),
	SVM(HLT, .meaning = "idles"),
	SVM(INVLPG, .meaning = "flushes its TLB"),
	SVM(IOIO, .meaning = "port I/O"),
	SVM(MSR, .meaning = "MSR"),
	SVM(TASK_SWITCH, .meaning = "task switch"),
	SVM(SHUTDOWN, .meaning = "the guest crashed for good"),
	SVM(VMRUN, .sign = EXIT_ENTERS_GUEST),
	SVM(VMMCALL, .meaning = "hypercall"),
	SVM(VMLOAD, .sign = EXIT_SERVES_GUEST),
	SVM(VMSAVE, .sign = EXIT_SERVES_GUEST),
	SVM(STGI, .sign = EXIT_SERVES_GUEST),
	SVM(RDTSCP, .meaning = "reads the TSC"),
	SVM(WBINVD, .meaning = "flushes caches"),
	SVM(MONITOR, .meaning = "waits (MONITOR)"),
	SVM(MWAIT, .meaning = "waits (MWAIT)"),
	SVM(XSETBV, .meaning = "XSETBV"),
	RANGE(KVM_ISA_SVM, SVM_EXIT_CR0_WRITE_TRAP, 16, .meaning = "control register"),
	SVM(INVPCID, .meaning = "flushes its TLB"),
	RANGE(KVM_ISA_SVM, SVM_BUS_LOCK, 1, .meaning = "split lock"),
	RANGE(KVM_ISA_SVM, SVM_IDLE_HLT, 1, .meaning = "idles"),
	SVM(NPF, .meaning = "memory not mapped by the host, or device memory"),
	SVM(AVIC_INCOMPLETE_IPI, .meaning = "interrupt to a CPU that does not run"),
	SVM(AVIC_UNACCELERATED_ACCESS, .meaning = "APIC register"),
	SVM(VMGEXIT, .meaning = "encrypted guest asks"),
#undef RANGE
#undef VMX
#undef SVM
};

static int property_compare(const void *key, const void *item)
{
	const struct property *wanted = key, *p = item;

	if (wanted->isa != p->isa)
		return wanted->isa < p->isa ? -1 : 1;
	return (wanted->first > p->last) - (wanted->first < p->first);
}

static const struct property *property_find(uint32_t isa, uint32_t reason)
{
	const struct property wanted = {.isa = isa, .first = reason};

	return bsearch(&wanted, properties, COUNT(properties), sizeof(properties[0]),
		       property_compare);
}

/* Writes the name of a reason. Returns false if it has none. */
static bool name_write(uint32_t isa, uint32_t reason, char *text, size_t bytes)
{
	for (size_t l = 0; isa && isa < COUNT(lists) && l < COUNT(lists[0]); l++) {
		const struct list *list = &lists[isa][l];

		for (size_t i = 0; i < list->n; i++) {
			if ((uint32_t)list->names[i].number != reason)
				continue;
			snprintf(text, bytes, "%s", list->names[i].text);
			return true;
		}
	}
	for (size_t i = 0; isa == KVM_ISA_SVM && i < COUNT(svm_ranges); i++) {
		const struct range *r = &svm_ranges[i];

		if (reason < r->first || reason > r->last)
			continue;
		snprintf(text, bytes, r->format, reason - r->first);
		return true;
	}
	return false;
}

struct exit_name exit_name(uint32_t isa, uint32_t reason)
{
	const struct property *p = property_find(isa, reason);
	struct exit_name name = {.meaning = p && p->meaning ? p->meaning : ""};

	if (!name_write(isa, reason, name.text, sizeof(name.text))) {
		snprintf(name.text, sizeof(name.text), "0x%x", reason);
		name.meaning = "";
	}
	return name;
}

bool exit_name_known(uint32_t isa, uint32_t reason)
{
	char text[sizeof(((struct exit_name *)0)->text)];

	return name_write(isa, reason, text, sizeof(text));
}

enum exit_sign exit_sign(uint32_t isa, uint32_t reason)
{
	const struct property *p = property_find(isa, reason);

	return p ? p->sign : EXIT_NO_SIGN;
}

enum kvm_isa exit_name_isa(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (islower((unsigned char)name[i]))
			return KVM_ISA_SVM;
	}
	return KVM_ISA_VMX;
}

static bool text_equal(const char *text, const char *name, size_t len)
{
	size_t i = 0;

	while (i < len && text[i] &&
	       (tolower((unsigned char)text[i]) == tolower((unsigned char)name[i]) ||
		(text[i] == ' ' && name[i] == '_')))
		i++;
	return i == len && !text[i];
}

static bool list_find(const struct list *list, const char *name, size_t len, uint32_t *reason)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!text_equal(list->names[i].text, name, len))
			continue;
		*reason = (uint32_t)list->names[i].number;
		return true;
	}
	return false;
}

static bool range_find(const char *name, size_t len, uint32_t *reason)
{
	for (size_t i = 0; i < COUNT(svm_ranges); i++) {
		const struct range *r = &svm_ranges[i];

		for (uint32_t at = r->first; at <= r->last; at++) {
			char text[32];

			snprintf(text, sizeof(text), r->format, at - r->first);
			if (!text_equal(text, name, len))
				continue;
			*reason = at;
			return true;
		}
	}
	return false;
}

bool exit_name_find(uint32_t isa, const char *name, size_t len, uint32_t *reason)
{
	static const struct list aliases = {svm_aliases, COUNT(svm_aliases)};

	if (!isa || isa >= COUNT(lists))
		return false;
	for (size_t l = 0; l < COUNT(lists[0]); l++) {
		if (list_find(&lists[isa][l], name, len, reason))
			return true;
	}
	return isa == KVM_ISA_SVM &&
	       (list_find(&aliases, name, len, reason) || range_find(name, len, reason));
}

const char *exit_name_alias(uint32_t isa, uint32_t reason, size_t index)
{
	for (size_t i = 0; isa == KVM_ISA_SVM && i < COUNT(svm_aliases); i++) {
		if (svm_aliases[i].number == reason && !index--)
			return svm_aliases[i].text;
	}
	return NULL;
}
