/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests that the texts of KVM's tracepoints become the fields of these tracepoints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "host-collector/import/kvm_text.h"
#include "proto/event_catalog.h"

#define HIGH(n) ((uint64_t)(n) << 32)

static void each_text_gives_the_fields_of_its_tracepoint(void **state)
{
	static const struct {
		uint16_t type;
		const char *text;
		uint64_t arg0, arg1;
	} cases[] = {
		{VS_EVENT_KVM_PAGE_FAULT,
		 "vcpu 0 rip 0xffffffff81000000 address 0x00000000fee00000 error_code 0x200000182",
		 0xfee00000, 0x200000182},
		{VS_EVENT_KVM_PAGE_FAULT, "address fee00000 error_code 182", 0xfee00000, 0x182},
		{VS_EVENT_KVM_MMIO, "mmio unsatisfied-read len 4 gpa 0xfebc1008 val 0x0",
		 0xfebc1008, HIGH(4)},
		{VS_EVENT_KVM_MMIO, "mmio read len 4 gpa 0xfebc1008 val 0x10", 0xfebc1008,
		 1 | HIGH(4)},
		{VS_EVENT_KVM_MMIO, "mmio write len 2 gpa 0xfebc1008 val 0x10", 0xfebc1008,
		 2 | HIGH(2)},
		{VS_EVENT_KVM_PIO, "pio_write at 0x3f8 size 1 count 1 val 0x41 ", 0x3f8 | HIGH(1),
		 1 | HIGH(1)},
		{VS_EVENT_KVM_PIO, "pio_read at 0x1f0 size 2 count 256 val 0x0 (...)",
		 0x1f0 | HIGH(2), HIGH(256)},
		{VS_EVENT_KVM_MSR, "msr_write 6e0 = 0x123456789a", 0x6e0 | HIGH(1), 0x123456789a},
		{VS_EVENT_KVM_MSR, "msr_read c0000080 = 0x0 (#GP)", 0xc0000080, 0},
		{VS_EVENT_KVM_HYPERCALL, "nr 0xa a0 0x1 a1 0x2 a2 0x3 a3 0x4", 10, 1},
		{VS_EVENT_KVM_HALT_POLL, "vcpu 3: halt_poll_ns 10000 (grow 0)", 10000, 0},
		{VS_EVENT_KVM_HALT_POLL, "vcpu 3: halt_poll_ns 0 (shrink 200000)", 0, 200000},
		{VS_EVENT_KVM_SET_IRQ, "gsi 24 level 1 source 0", 24 | HIGH(1), 0},
		{VS_EVENT_KVM_SET_IRQ, "gsi 4 level 0 source -1", 4, UINT64_MAX},
		{VS_EVENT_KVM_MSI, "dst 3 vec 39 (Fixed|physical|edge)", 0xfee03000, 39},
		{VS_EVENT_KVM_MSI, "dst 1ff vec 251 (LowPrio|logical|level|rh)",
		 0xfeeff000 | 0x100ull << 32 | 4 | 8, 251 | 1 << 8 | 1 << 15},
		{VS_EVENT_KVM_IPI, "dst 2 vec 253 (Fixed|physical|assert|edge|dst)", 253 | 1 << 14,
		 2},
		{VS_EVENT_KVM_IPI, "dst ff vec 0 (INIT|logical|de-assert|level|all-but-self)",
		 5 << 8 | 1 << 11 | 1 << 15 | 3 << 18, 0xff},
		{VS_EVENT_KVM_IPI, "dst 0 vec 2 (NMI|physical|assert|edge|self)",
		 2 | 4 << 8 | 1 << 14 | 1 << 18, 0},
		{VS_EVENT_KVM_IPI, "dst 0 vec 2 (Fixed|physical|assert|edge|all)",
		 2 | 1 << 14 | 2 << 18, 0},
		{VS_EVENT_KVM_ACCEPT_IRQ, "apicid 1f vec 236 (Fixed|edge)", 236 | HIGH(0x1f), 0},
		{VS_EVENT_KVM_ACCEPT_IRQ, "apicid 0 vec 49 (LowPrio|level) (coalesced)", 49,
		 1 << 8 | HIGH(1)},
		{VS_EVENT_KVM_APICV_ACCEPT_IRQ, "apicid 2 vec 242 (ExtINT|level)", 242 | HIGH(2),
		 7 << 8 | HIGH(1)},
		{VS_EVENT_KVM_INJECT, "IRQ 0x27", 0x27, 0},
		{VS_EVENT_KVM_INJECT, "IRQ 0xec [reinjected]", 0xec, HIGH(1)},
		{VS_EVENT_KVM_INJECT, "Soft/INTn 0x80", 0x80, 1},
		{VS_EVENT_KVM_INJECT, "irq 39", 39, 0},
		{VS_EVENT_KVM_EOI, "apicid a vector 39", 10, 39},
		{VS_EVENT_KVM_EOI, "apicid 0 vector -1", 0, UINT64_MAX},
		{VS_EVENT_KVM_PV_EOI, "apicid 1 vector 236", 1, 236},
		{VS_EVENT_KVM_ACK_IRQ, "irqchip PIC master pin 4", 0, 4},
		{VS_EVENT_KVM_ACK_IRQ, "irqchip PIC slave pin 4", 1, 4},
		{VS_EVENT_KVM_ACK_IRQ, "irqchip IOAPIC pin 11", 2, 11},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vs_event e = {.type = cases[i].type};

		if (!kvm_text_parse(&e, cases[i].text))
			fail_msg("refused: %s", cases[i].text);
		if (e.arg0 != cases[i].arg0 || e.arg1 != cases[i].arg1)
			fail_msg("%s: 0x%llx 0x%llx", cases[i].text, (unsigned long long)e.arg0,
				 (unsigned long long)e.arg1);
	}
}

static void a_wake_up_says_how_the_vcpu_waited(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns, slept, valid;
	} cases[] = {
		{"wait time 81234 ns, polling valid", 81234, 1, 1},
		{"poll time 812 ns, polling invalid", 812, 0, 0},
		{"wait time 5 ns", 5, 1, 0}, /* 4.4 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vs_event e = {.type = VS_EVENT_KVM_WAKEUP};

		assert_true(kvm_text_parse(&e, cases[i].text));
		assert_int_equal(ev_kvm_vcpu_wakeup_halted_ns(&e), cases[i].ns);
		assert_int_equal(ev_kvm_vcpu_wakeup_slept(&e), cases[i].slept);
		assert_int_equal(ev_kvm_vcpu_wakeup_valid(&e), cases[i].valid);
	}
}

static void a_text_without_all_fields_is_refused(void **state)
{
	static const struct {
		uint16_t type;
		const char *text;
	} cases[] = {
		{VS_EVENT_KVM_PAGE_FAULT, "address fee00000"},
		{VS_EVENT_KVM_MMIO, "mmio read len 4"},
		{VS_EVENT_KVM_PIO, "pio_read at 0xe9"},
		{VS_EVENT_KVM_MSR, "msr_write 6e0"},
		{VS_EVENT_KVM_MSR, "msr_write zz = 0x1"},
		{VS_EVENT_KVM_HYPERCALL, "nr 0xa"},
		{VS_EVENT_KVM_HALT_POLL, "vcpu 3: halt_poll_ns 10000"},
		{VS_EVENT_KVM_WAKEUP, "wait"},
		{VS_EVENT_KVM_SET_IRQ, "gsi 24 level 1"},
		{VS_EVENT_KVM_SET_IRQ, "gsi 99999999999999999999 level 1 source 0"},
		{VS_EVENT_KVM_MSI, "dst 3 vec 39"},
		{VS_EVENT_KVM_MSI, "dst 3 vec 300 (Fixed|physical|edge)"},
		{VS_EVENT_KVM_MSI, "dst 3 vec 3b (Fixed|physical|edge)"}, /* hex: 4.4 */
		{VS_EVENT_KVM_MSI, "dst 3 vec b1 (Fixed|physical|edge)"},
		{VS_EVENT_KVM_MSI, "dst 100000000 vec 39 (Fixed|physical|edge)"},
		{VS_EVENT_KVM_IPI, "dst 3 vec 39 (Unheard|physical|assert|edge|dst)"},
		{VS_EVENT_KVM_ACCEPT_IRQ, "apicid 0 vec 49"},
		{VS_EVENT_KVM_INJECT, "IRQ"},
		{VS_EVENT_KVM_EOI, "apicid 0 vector"},
		{VS_EVENT_KVM_ACK_IRQ, "irqchip IOAPIC"},
		{VS_EVENT_KVM_ACK_IRQ, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vs_event e = {.type = cases[i].type};

		if (kvm_text_parse(&e, cases[i].text))
			fail_msg("taken: %s", cases[i].text);
	}
}

/* A tracepoint that `import` takes by its type needs a parser of its text: the generic one expects
 * name=value, which KVM does not print. */
static void each_kvm_tracepoint_that_is_taken_has_its_text_here(void **state)
{
	size_t n, seen = 0;
	const struct event_tracepoint *all = event_tracepoints(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		if (!(all[i].users & BY_IMPORT) || strcmp(all[i].system, "kvm") ||
		    all[i].type <= VS_EVENT_KVM_USERSPACE_EXIT)
			continue;
		if (!kvm_text_knows(all[i].type))
			fail_msg("no text of %s", all[i].name);
		seen++;
	}
	assert_int_equal(seen, 16);
	assert_false(kvm_text_knows(VS_EVENT_KVM_ENTRY));
	assert_false(kvm_text_knows(VS_EVENT_SCHED_SWITCH));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_text_gives_the_fields_of_its_tracepoint),
		cmocka_unit_test(a_wake_up_says_how_the_vcpu_waited),
		cmocka_unit_test(a_text_without_all_fields_is_refused),
		cmocka_unit_test(each_kvm_tracepoint_that_is_taken_has_its_text_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
