/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of exit reasons and what they mean for the guest: basic exit reasons of VMX (Intel SDM
 * volume 3, appendix C) and exit codes of SVM (AMD APM volume 2, appendix C). Most are spelled as
 * in the kernel's trace output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "host-collector/tables/exits.h"

struct reason {
	uint32_t number;
	const char *name;
	const char *meaning; /* "" where the name says it */
};

/* Ascending. */
static const struct reason vmx_reasons[] = {
	{0, "EXCEPTION_NMI", "an exception or an NMI"},
	{1, "EXTERNAL_INTERRUPT", "an interrupt of the host"},
	{2, "TRIPLE_FAULT", "the guest crashed for good"},
	{3, "INIT_SIGNAL", ""},
	{4, "SIPI_SIGNAL", ""},
	{5, "IO_SMI", ""},
	{6, "OTHER_SMI", ""},
	{7, "INTERRUPT_WINDOW", "room for an interrupt"},
	{8, "NMI_WINDOW", "room for an NMI"},
	{9, "TASK_SWITCH", "task switch"},
	{10, "CPUID", "CPUID"},
	{11, "GETSEC", ""},
	{12, "HLT", "idles"},
	{13, "INVD", ""},
	{14, "INVLPG", "flushes its TLB"},
	{15, "RDPMC", "reads a performance counter"},
	{16, "RDTSC", "reads the TSC"},
	{17, "RSM", ""},
	{18, "VMCALL", "hypercall"},
	{19, "VMCLEAR", ""},
	{20, "VMLAUNCH", ""},
	{21, "VMPTRLD", ""},
	{22, "VMPTRST", ""},
	{23, "VMREAD", ""},
	{24, "VMRESUME", ""},
	{25, "VMWRITE", ""},
	{26, "VMOFF", ""},
	{27, "VMON", ""},
	{28, "CR_ACCESS", "control register"},
	{29, "DR_ACCESS", "debug register"},
	{30, "IO_INSTRUCTION", "port I/O"},
	{31, "MSR_READ", "reads an MSR"},
	{32, "MSR_WRITE", "writes an MSR"},
	{33, "INVALID_STATE", ""},
	{34, "MSR_LOAD_FAIL", ""},
	{36, "MWAIT_INSTRUCTION", "waits (MWAIT)"},
	{37, "MONITOR_TRAP_FLAG", ""},
	{39, "MONITOR_INSTRUCTION", "waits (MONITOR)"},
	{40, "PAUSE_INSTRUCTION", "spins (PAUSE)"},
	{41, "MCE_DURING_VMENTRY", ""},
	{43, "TPR_BELOW_THRESHOLD", "task priority"},
	{44, "APIC_ACCESS", "APIC register"},
	{45, "EOI_INDUCED", "end of interrupt"},
	{46, "GDTR_IDTR", "descriptor table"},
	{47, "LDTR_TR", "descriptor table"},
	{48, "EPT_VIOLATION", "memory not mapped by the host"},
	{49, "EPT_MISCONFIG", "device memory"},
	{50, "INVEPT", ""},
	{51, "RDTSCP", "reads the TSC"},
	{52, "PREEMPTION_TIMER", "timer"},
	{53, "INVVPID", ""},
	{54, "WBINVD", "flushes caches"},
	{55, "XSETBV", "XSETBV"},
	{56, "APIC_WRITE", "APIC register"},
	{57, "RDRAND", "random number"},
	{58, "INVPCID", "flushes its TLB"},
	{59, "VMFUNC", ""},
	{60, "ENCLS", ""},
	{61, "RDSEED", "random number"},
	{62, "PML_FULL", "dirty page log full"},
	{63, "XSAVES", ""},
	{64, "XRSTORS", ""},
	{66, "SPP", ""},
	{67, "UMWAIT", "waits (UMWAIT)"},
	{68, "TPAUSE", "waits (TPAUSE)"},
	{74, "BUS_LOCK", "split lock"},
	{75, "NOTIFY", "kept the CPU too long without an event"},
};

static const struct reason svm_reasons[] = {
	{0x060, "interrupt", "an interrupt of the host"},
	{0x061, "nmi", "an NMI"},
	{0x062, "smi", "an SMI"},
	{0x063, "init", ""},
	{0x064, "vintr", "room for an interrupt"},
	{0x065, "cr0_sel_write", ""},
	{0x066, "sidt_read", ""},
	{0x067, "gdt_read", ""},
	{0x068, "ldt_read", ""},
	{0x069, "tr_read", ""},
	{0x06a, "idt_write", ""},
	{0x06b, "gdt_write", ""},
	{0x06c, "ldt_write", ""},
	{0x06d, "tr_write", ""},
	{0x06e, "rdtsc", "reads the TSC"},
	{0x06f, "rdpmc", "reads a performance counter"},
	{0x070, "pushf", ""},
	{0x071, "popf", ""},
	{0x072, "cpuid", "CPUID"},
	{0x073, "rsm", ""},
	{0x074, "iret", "end of an NMI"},
	{0x075, "swint", ""},
	{0x076, "invd", ""},
	{0x077, "pause", "spins (PAUSE)"},
	{0x078, "hlt", "idles"},
	{0x079, "invlpg", "flushes its TLB"},
	{0x07a, "invlpga", ""},
	{0x07b, "io", "port I/O"},
	{0x07c, "msr", "MSR"},
	{0x07d, "task_switch", "task switch"},
	{0x07e, "ferr_freeze", ""},
	{0x07f, "shutdown", "the guest crashed for good"},
	{0x080, "vmrun", ""},
	{0x081, "vmmcall", "hypercall"},
	{0x082, "vmload", ""},
	{0x083, "vmsave", ""},
	{0x084, "stgi", ""},
	{0x085, "clgi", ""},
	{0x086, "skinit", ""},
	{0x087, "rdtscp", "reads the TSC"},
	{0x088, "icebp", ""},
	{0x089, "wbinvd", "flushes caches"},
	{0x08a, "monitor", "waits (MONITOR)"},
	{0x08b, "mwait", "waits (MWAIT)"},
	{0x08c, "mwait_cond", ""},
	{0x08d, "xsetbv", "XSETBV"},
	{0x08e, "rdpru", ""},
	{0x08f, "efer_write_trap", ""},
	{0x0a0, "invlpgb", ""},
	{0x0a1, "invlpgb_illegal", ""},
	{0x0a2, "invpcid", "flushes its TLB"},
	{0x0a5, "bus_lock", "split lock"},
	{0x0a6, "idle_hlt", "idles"},
	{0x400, "npf", "memory not mapped by the host, or device memory"},
	{0x401, "avic_incomplete_ipi", "interrupt to a CPU that does not run"},
	{0x402, "avic_unaccelerated_access", "APIC register"},
	{0x403, "vmgexit", "encrypted guest asks"},
};

/* Codes that carry a number: registers and exceptions. */
static const struct range {
	uint32_t first, last;
	const char *format, *meaning;
} svm_ranges[] = {
	{0x000, 0x00f, "read_cr%u", "control register"},
	{0x010, 0x01f, "write_cr%u", "control register"},
	{0x020, 0x02f, "read_dr%u", "debug register"},
	{0x030, 0x03f, "write_dr%u", "debug register"},
	{0x090, 0x09f, "write_cr%u_trap", "control register"},
};

static const char *const exceptions[32] = {
	[0] = "DE",  [1] = "DB",  [2] = "NMI", [3] = "BP",  [4] = "OF",  [5] = "BR",  [6] = "UD",
	[7] = "NM",  [8] = "DF",  [10] = "TS", [11] = "NP", [12] = "SS", [13] = "GP", [14] = "PF",
	[16] = "MF", [17] = "AC", [18] = "MC", [19] = "XF", [21] = "CP",
};

enum { ISA_VMX = 1, ISA_SVM = 2, SVM_EXCEPTIONS = 0x40 };

static int reason_compare(const void *key, const void *item)
{
	uint32_t number = *(const uint32_t *)key, at = ((const struct reason *)item)->number;

	return (number > at) - (number < at);
}

static const struct reason *reason_find(uint32_t isa, uint32_t number)
{
	const struct reason *list = isa == ISA_VMX ? vmx_reasons : svm_reasons;
	size_t n = isa == ISA_VMX   ? sizeof(vmx_reasons) / sizeof(vmx_reasons[0])
		   : isa == ISA_SVM ? sizeof(svm_reasons) / sizeof(svm_reasons[0])
				    : 0;

	return bsearch(&number, list, n, sizeof(*list), reason_compare);
}

/* Fills `name` if the code carries a number. */
static bool numbered(uint32_t reason, struct exit_name *name)
{
	for (size_t i = 0; i < sizeof(svm_ranges) / sizeof(svm_ranges[0]); i++) {
		const struct range *r = &svm_ranges[i];

		if (reason < r->first || reason > r->last)
			continue;
		snprintf(name->text, sizeof(name->text), r->format, reason - r->first);
		name->meaning = r->meaning;
		return true;
	}
	if (reason < SVM_EXCEPTIONS || reason >= SVM_EXCEPTIONS + 32 ||
	    !exceptions[reason - SVM_EXCEPTIONS])
		return false;
	snprintf(name->text, sizeof(name->text), "%s_excp", exceptions[reason - SVM_EXCEPTIONS]);
	name->meaning = "an exception";
	return true;
}

struct exit_name exit_name(uint32_t isa, uint32_t reason)
{
	const struct reason *found = reason_find(isa, reason);
	struct exit_name name = {.meaning = ""};

	if (found) {
		snprintf(name.text, sizeof(name.text), "%s", found->name);
		name.meaning = found->meaning;
	} else if (isa != ISA_SVM || !numbered(reason, &name)) {
		snprintf(name.text, sizeof(name.text), "0x%x", reason);
	}
	return name;
}
