// SPDX-License-Identifier: GPL-2.0-only
/*
 * The formats are those of arch/x86/kvm/trace.h and include/trace/events/kvm.h of Linux 4.18
 * to 6.18: numbers with a word before them, and words that stand for numbers. Linux 4.4 prints the
 * vector of a kvm_msi_set_irq in hex without a mark; one with a letter is refused. A message's
 * address and data are printed decoded; they are composed again as the processor's manual defines
 * them.
 */
#include "host-collector/import/kvm_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/event_catalog.h"
#include "proto/event_fields.h"

/* A number of the text: it follows `before`. Several rows of a field are alternatives. */
struct printed_number {
	uint16_t type;
	const char *field, *before;
	int base;
};

/* clang-format off */
static const struct printed_number numbers[] = {
	{VS_EVENT_KVM_PAGE_FAULT, "address", "address ", 16},
	{VS_EVENT_KVM_PAGE_FAULT, "error_code", "error_code ", 16},
	{VS_EVENT_KVM_MMIO, "address", "gpa ", 16},
	{VS_EVENT_KVM_MMIO, "bytes", "len ", 10},
	{VS_EVENT_KVM_PIO, "port", "at ", 16},
	{VS_EVENT_KVM_PIO, "bytes", "size ", 10},
	{VS_EVENT_KVM_PIO, "count", "count ", 10},
	{VS_EVENT_KVM_MSR, "number", "msr_read ", 16},
	{VS_EVENT_KVM_MSR, "number", "msr_write ", 16},
	{VS_EVENT_KVM_MSR, "value", "= ", 16},
	{VS_EVENT_KVM_HYPERCALL, "number", "nr ", 16},
	{VS_EVENT_KVM_HYPERCALL, "argument", "a0 ", 16},
	{VS_EVENT_KVM_HALT_POLL, "new_ns", "halt_poll_ns ", 10},
	{VS_EVENT_KVM_HALT_POLL, "old_ns", "(grow ", 10},
	{VS_EVENT_KVM_HALT_POLL, "old_ns", "(shrink ", 10},
	{VS_EVENT_KVM_WAKEUP, "halted_ns", "time ", 10},
	{VS_EVENT_KVM_SET_IRQ, "gsi", "gsi ", 10},
	{VS_EVENT_KVM_SET_IRQ, "level", "level ", 10},
	{VS_EVENT_KVM_SET_IRQ, "source", "source ", 10},
	{VS_EVENT_KVM_IPI, "destination", "dst ", 16},
	{VS_EVENT_KVM_ACCEPT_IRQ, "apic_id", "apicid ", 16},
	{VS_EVENT_KVM_ACCEPT_IRQ, "vector", "vec ", 10},
	{VS_EVENT_KVM_APICV_ACCEPT_IRQ, "apic_id", "apicid ", 16},
	{VS_EVENT_KVM_APICV_ACCEPT_IRQ, "vector", "vec ", 10},
	{VS_EVENT_KVM_INJECT, "vector", "IRQ ", 16},      /* "IRQ 0x27" */
	{VS_EVENT_KVM_INJECT, "vector", "Soft/INTn ", 16},
	{VS_EVENT_KVM_INJECT, "vector", "irq ", 10},      /* older kernels: "irq 39" */
	{VS_EVENT_KVM_EOI, "apic_id", "apicid ", 16},
	{VS_EVENT_KVM_EOI, "vector", "vector ", 10},
	{VS_EVENT_KVM_PV_EOI, "apic_id", "apicid ", 16},
	{VS_EVENT_KVM_PV_EOI, "vector", "vector ", 10},
	{VS_EVENT_KVM_ACK_IRQ, "pin", "pin ", 10},
};
/* clang-format on */

/* A word of the text that stands for a value of a field. */
struct printed_word {
	uint16_t type;
	const char *field, *word;
	uint64_t value;
};

static const struct printed_word words[] = {
	{VS_EVENT_KVM_MMIO, "kind", "mmio read ", 1},
	{VS_EVENT_KVM_MMIO, "kind", "mmio write ", 2},
	{VS_EVENT_KVM_PIO, "write", "pio_write ", 1},
	{VS_EVENT_KVM_MSR, "write", "msr_write ", 1},
	{VS_EVENT_KVM_WAKEUP, "slept", "wait time ", 1},
	{VS_EVENT_KVM_WAKEUP, "valid", "polling valid", 1},
	{VS_EVENT_KVM_INJECT, "soft", "Soft/INTn ", 1},
	{VS_EVENT_KVM_INJECT, "again", "[reinjected]", 1},
	{VS_EVENT_KVM_ACCEPT_IRQ, "level", "|level", 1},
	{VS_EVENT_KVM_APICV_ACCEPT_IRQ, "level", "|level", 1},
	{VS_EVENT_KVM_ACK_IRQ, "chip", "PIC slave", 1},
	{VS_EVENT_KVM_ACK_IRQ, "chip", "IOAPIC", 2},
};

/* The local APIC's delivery modes, in KVM's words. */
static bool delivery_mode(const char *text, uint64_t *mode)
{
	static const char *const names[] = {"(Fixed|", "(LowPrio|", "(SMI|",  "(Res3|",
					    "(NMI|",   "(INIT|",    "(SIPI|", "(ExtINT|"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strstr(text, names[i])) {
			*mode = i;
			return true;
		}
	}
	return false;
}

/* The number that follows `before`, where that begins the text or follows a blank. All of the word
 * is the number. */
static bool number_after(const char *text, const char *before, int base, uint64_t *out)
{
	char *end;

	for (const char *at = strstr(text, before); at; at = strstr(at + 1, before)) {
		const char *digits = at + strlen(before);

		if (at != text && at[-1] != ' ')
			continue;
		errno = 0;
		*out = strtoull(digits, &end, base);
		return end != digits && !errno && *digits != '+' && *digits != ' ' &&
		       !isalnum((unsigned char)*end);
	}
	return false;
}

static const struct event_field *field_find(uint16_t type, const char *name)
{
	size_t n;
	const struct event_field *fields = event_fields(type, &n);

	for (size_t i = 0; i < n; i++) {
		if (!strcmp(fields[i].name, name))
			return &fields[i];
	}
	return NULL;
}

/* "dst 1 vec 39 (Fixed|physical|edge)": the address and the data of an MSI. */
static bool msi_parse(struct vs_event *e, const char *text)
{
	uint64_t dst, vec, mode;

	if (!number_after(text, "dst ", 16, &dst) || !number_after(text, "vec ", 10, &vec) ||
	    vec > 0xff || dst > UINT32_MAX || !delivery_mode(text, &mode))
		return false;
	ev_set_kvm_msi_set_irq_address(e, 0xfee00000 | (dst & 0xff) << 12 | (dst & ~0xffull) << 32 |
						  (uint64_t)(strstr(text, "|logical") != NULL)
							  << 2 |
						  (uint64_t)(strstr(text, "|rh") != NULL) << 3);
	ev_set_kvm_msi_set_irq_data(e, vec | mode << 8 |
					       (uint64_t)(strstr(text, "|level") != NULL) << 15);
	return true;
}

/* "dst 1 vec 251 (Fixed|physical|assert|edge|dst)": the low half of the APIC's ICR. */
static bool ipi_parse(struct vs_event *e, const char *text)
{
	uint64_t vec, mode, shorthand = 0;

	if (!number_after(text, "vec ", 10, &vec) || vec > 0xff || !delivery_mode(text, &mode))
		return false;
	if (strstr(text, "|all-but-self)"))
		shorthand = 3;
	else if (strstr(text, "|all)"))
		shorthand = 2;
	else if (strstr(text, "|self)"))
		shorthand = 1;
	ev_set_kvm_apic_ipi_icr_low(
		e,
		(uint32_t)(vec | mode << 8 | (uint64_t)(strstr(text, "|logical|") != NULL) << 11 |
			   (uint64_t)(strstr(text, "|assert|") != NULL) << 14 |
			   (uint64_t)(strstr(text, "|level|") != NULL) << 15 | shorthand << 18));
	return true;
}

static bool accept_parse(struct vs_event *e, const char *text)
{
	const struct event_field *delivery = field_find(e->type, "delivery");
	uint64_t mode;

	if (!delivery_mode(text, &mode))
		return false;
	event_field_set(delivery, e, mode << 8);
	return true;
}

bool kvm_text_knows(uint16_t type)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (numbers[i].type == type)
			return true;
	}
	return type == VS_EVENT_KVM_MSI;
}

bool kvm_text_parse(struct vs_event *e, const char *text)
{
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]);) {
		const struct printed_number *first = &numbers[i];
		bool found = false;

		for (; i < sizeof(numbers) / sizeof(numbers[0]) && numbers[i].type == first->type &&
		       !strcmp(numbers[i].field, first->field);
		     i++) {
			uint64_t value;

			if (numbers[i].type != e->type || found ||
			    !number_after(text, numbers[i].before, numbers[i].base, &value))
				continue;
			event_field_set(field_find(e->type, numbers[i].field), e, value);
			found = true;
		}
		if (first->type == e->type && !found)
			return false;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].type == e->type && strstr(text, words[i].word))
			event_field_set(field_find(e->type, words[i].field), e, words[i].value);
	}
	if (e->type == VS_EVENT_KVM_MSI)
		return msi_parse(e, text);
	if (e->type == VS_EVENT_KVM_IPI)
		return ipi_parse(e, text);
	if (e->type == VS_EVENT_KVM_ACCEPT_IRQ || e->type == VS_EVENT_KVM_APICV_ACCEPT_IRQ)
		return accept_parse(e, text);
	return true;
}
