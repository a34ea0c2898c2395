// SPDX-License-Identifier: GPL-2.0-only
/* A guest that takes interrupts and stamps them: the first instructions of every handler read
 * the TSC, and so do the last ones before it returns. It does nothing else, so its log contains
 * every interrupt. */
#include "irq_guest.h"

enum {
	MSR_APIC_BASE = 0x1b,
	MSR_TSC_DEADLINE = 0x6e0,
	MSR_X2APIC_TPR = 0x808,
	MSR_X2APIC_EOI = 0x80b,
	MSR_X2APIC_SPURIOUS = 0x80f,
	MSR_X2APIC_ICR = 0x830,
	MSR_X2APIC_LVT_TIMER = 0x832,
	MSR_X2APIC_LVT_LINT0 = 0x835,
	APIC_BASE_X2APIC = 1 << 10,
	LVT_MASKED = 1 << 16,
	LVT_TSC_DEADLINE = 2 << 17,
	SPURIOUS_ENABLE = 1 << 8 | 0xff,
	VECTORS = 256,
	STUB_BYTES = 16,
	GATE_INTERRUPT = 0x8e,
};

struct gate {
	uint16_t offset_low, selector;
	uint8_t stack, type;
	uint16_t offset_middle;
	uint32_t offset_high, reserved;
};

struct __attribute__((packed)) descriptor {
	uint16_t limit;
	uint64_t base;
};

extern char stubs[];

static uint64_t rdtsc(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
}

static uint64_t rdmsr(uint32_t msr)
{
	uint32_t low, high;

	__asm__ volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
	return (uint64_t)high << 32 | low;
}

static void wrmsr(uint32_t msr, uint64_t value)
{
	__asm__ volatile("wrmsr"
			 :
			 : "c"(msr), "a"((uint32_t)value), "d"((uint32_t)(value >> 32))
			 : "memory");
}

static void out(uint16_t port, uint32_t value)
{
	__asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port) : "memory");
}

static volatile struct irq_guest_cpu *cpu_of(uint32_t vcpu)
{
	return (volatile struct irq_guest_cpu *)(uintptr_t)IRQ_GUEST_SHARED + vcpu;
}

static void command_do(volatile struct irq_guest_cpu *cpu, volatile struct irq_guest_entry *log)
{
	if (cpu->command == IRQ_GUEST_SEND_IPI) {
		wrmsr(MSR_X2APIC_ICR, cpu->argument);
	} else if (cpu->command == IRQ_GUEST_ARM_TIMER) {
		wrmsr(MSR_X2APIC_LVT_TIMER, LVT_TSC_DEADLINE | cpu->vector);
		log->deadline = rdtsc() + cpu->argument;
		wrmsr(MSR_TSC_DEADLINE, log->deadline);
	}
	cpu->command = IRQ_GUEST_NOTHING;
}

/* Called with interrupts off. The stack says which vCPU this is. */
__attribute__((used)) static void handler(uint64_t vector, uint64_t entry, uint64_t stack)
{
	/* vCPU n's stack ends at IRQ_GUEST_STACK + n * IRQ_GUEST_PER_STACK. */
	uint32_t vcpu =
		(uint32_t)((stack + IRQ_GUEST_PER_STACK - IRQ_GUEST_STACK) / IRQ_GUEST_PER_STACK);
	volatile struct irq_guest_cpu *cpu = cpu_of(vcpu);
	volatile struct irq_guest_entry *log = &cpu->log[cpu->n_log % IRQ_GUEST_LOG_MAX];

	if (vector < 32)
		out(IRQ_PORT_EXCEPTION, (uint32_t)vector);
	log->vector = vector;
	log->entry = entry;
	log->deadline = 0;
	if (vector == IRQ_VECTOR_COMMAND)
		command_do(cpu, log);
	else if (vector == IRQ_VECTOR_LEVEL)
		out(IRQ_PORT_DEASSERT, vcpu);
	wrmsr(MSR_X2APIC_EOI, 0);
	log->exit = rdtsc();
	cpu->n_log++;
	cpu->runs[vector]++;
}

static void idt_fill(void)
{
	struct gate *idt = (struct gate *)(uintptr_t)IRQ_GUEST_IDT;
	const struct descriptor table = {VECTORS * sizeof(*idt) - 1, IRQ_GUEST_IDT};

	for (uint32_t i = 0; i < VECTORS; i++) {
		uint32_t stub = (uint32_t)(uintptr_t)stubs + i * STUB_BYTES;

		idt[i].offset_low = (uint16_t)stub;
		idt[i].offset_middle = (uint16_t)(stub >> 16);
		idt[i].selector = IRQ_GUEST_CODE_SELECTOR;
		idt[i].type = GATE_INTERRUPT;
	}
	__asm__ volatile("lidt %0" : : "m"(table));
}

static void apic_enable(void)
{
	wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | APIC_BASE_X2APIC);
	wrmsr(MSR_X2APIC_SPURIOUS, SPURIOUS_ENABLE);
	wrmsr(MSR_X2APIC_LVT_LINT0, LVT_MASKED); /* it resets to what the PIC says */
	wrmsr(MSR_X2APIC_TPR, 0);
}

__attribute__((noreturn, used)) static void guest(uint32_t vcpu)
{
	volatile struct irq_guest_cpu *cpu = cpu_of(vcpu);

	idt_fill();
	apic_enable();
	out(IRQ_PORT_READY, vcpu);
	for (;;) {
		uint32_t mode = cpu->mode;

		__asm__ volatile("cli");
		cpu->mode_seen = mode;
		if (mode == IRQ_GUEST_CLOSED)
			while (cpu->mode == IRQ_GUEST_CLOSED)
				;
		else if (mode == IRQ_GUEST_HALT && cpu->mode == IRQ_GUEST_HALT)
			__asm__ volatile("sti; hlt" : : : "memory");
		else
			__asm__ volatile("sti; nop; nop; nop; nop" : : : "memory");
	}
}

/* Vectors with an error code end the test anyway, so all stubs are alike. */
__asm__(".section .text.start, \"ax\"\n"
	"	.globl _start\n"
	"_start: call guest\n"
	".text\n"
	"	.balign 16\n"
	"stubs:\n"
	"	.set n, 0\n"
	"	.rept 256\n"
	"	.balign 16\n"
	"	pushq $n\n"
	"	jmp common\n"
	"	.set n, n + 1\n"
	"	.endr\n"
	"	.balign 16\n"
	"common:\n"
	"	push %rax\n"
	"	push %rdx\n"
	"	rdtsc\n"
	"	push %rcx\n"
	"	push %rsi\n"
	"	push %rdi\n"
	"	push %r8\n"
	"	push %r9\n"
	"	push %r10\n"
	"	push %r11\n"
	"	shl $32, %rdx\n"
	"	mov %rdx, %rsi\n"
	"	or %rax, %rsi\n"
	"	mov 72(%rsp), %rdi\n"
	"	mov %rsp, %rdx\n"
	"	cld\n"
	"	call handler\n"
	"	pop %r11\n"
	"	pop %r10\n"
	"	pop %r9\n"
	"	pop %r8\n"
	"	pop %rdi\n"
	"	pop %rsi\n"
	"	pop %rcx\n"
	"	pop %rdx\n"
	"	pop %rax\n"
	"	add $8, %rsp\n"
	"	iretq\n");
