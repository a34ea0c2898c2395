// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/import/event_text.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/import/event_row.h"
#include "host-collector/import/kvm_text.h"
#include "host-collector/import/reason.h"
#include "proto/program/value.h"

void event_text_comm(struct import_task *task, const char *comm, size_t len)
{
	memset(task->comm, 0, sizeof(task->comm));
	if (len == 5 && !memcmp(comm, "<...>", 5))
		return;
	if (len >= sizeof(task->comm))
		len = sizeof(task->comm) - 1;
	memcpy(task->comm, comm, len);
}

/* "S", "R+", "D|K": enum vs_task_state. false: no letter of it is known. */
static bool event_text_state(const char *text, size_t len, uint64_t *state)
{
	static const struct {
		char letter;
		uint32_t bits;
	} letters[] = {
		{'R', VS_TASK_RUNNING},
		{'S', VS_TASK_INTERRUPTIBLE},
		{'D', VS_TASK_UNINTERRUPTIBLE},
		{'I', VS_TASK_UNINTERRUPTIBLE |
			      VS_TASK_IDLE},    /* idle kernel thread: uninterruptible, no load */
		{'W', VS_TASK_UNINTERRUPTIBLE}, /* how trace-cmd's plugin calls the same */
		{'T', VS_TASK_STOPPED},
		{'t', VS_TASK_TRACED},
		{'X', 0x10},
		{'x', 0x10},
		{'Z', 0x20},
		{'P', VS_TASK_PARKED},
	};
	bool known = false;

	*state = 0;
	for (size_t i = 0; i < len; i++) {
		for (size_t k = 0; k < sizeof(letters) / sizeof(letters[0]); k++) {
			if (letters[k].letter != text[i])
				continue;
			*state |= letters[k].bits;
			known = true;
		}
	}
	return known;
}

/* A decimal number that fits an int32_t; *end is behind it. */
static bool int32_read(const char *text, int64_t *out, const char **end)
{
	const bool negative = *text == '-';
	const size_t len = strspn(text + negative, "0123456789");
	uint64_t value;

	if (digits_parse(text + negative, len, &value) || value > INT32_MAX + (uint64_t)negative)
		return false;
	*out = negative ? -(int64_t)value : (int64_t)value;
	*end = text + negative + len;
	return true;
}

/* The number behind `key`, which begins the text or follows a space. */
static bool key_number(const char *text, const char *key, int64_t *out)
{
	const char *end;

	for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
		if (at == text || at[-1] == ' ')
			return int32_read(at + strlen(key), out, &end);
	}
	return false;
}

static uint64_t key_hex(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 16) : 0;
}

static const char *last_of(const char *text, const char *what)
{
	const char *last = NULL;

	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		last = at;
	return last;
}

static bool task_set(struct import_task *task, const char *comm, size_t len, int64_t tid)
{
	if (tid < 0)
		return false;
	task->known = true;
	task->tid = (int32_t)tid;
	event_text_comm(task, comm, len);
	return true;
}

/* "comm=x pid=1 prio=2": comm may hold spaces. */
static bool task_by_keys(const char *text, struct import_task *task, int64_t *prio)
{
	static const char comm_key[] = "comm=", pid_key[] = " pid=";
	const char *comm = strstr(text, comm_key), *pid = comm ? strstr(comm, pid_key) : NULL, *end;
	int64_t tid;

	if (!pid || !int32_read(pid + strlen(pid_key), &tid, &end))
		return false;
	if (!key_number(end, "prio=", prio))
		*prio = 0;
	comm += strlen(comm_key);
	return task_set(task, comm, (size_t)(pid - comm), tid);
}

/* "comm:1 [120]" in text[0..len), as plugins print it; *rest is behind the bracket. */
static bool task_by_plugin(const char *text, size_t len, struct import_task *task, int64_t *prio,
			   const char **rest)
{
	const char *open = NULL, *colon = NULL, *end;
	int64_t tid;

	for (size_t i = 0; i + 1 < len; i++) {
		if (text[i] == ' ' && text[i + 1] == '[')
			open = text + i;
	}
	for (const char *at = text; open && at < open; at++) {
		if (*at == ':')
			colon = at;
	}
	if (!colon || !int32_read(colon + 1, &tid, &end) || end != open ||
	    !int32_read(open + 2, prio, &end) || *end != ']')
		return false;
	*rest = end + 1;
	return task_set(task, text, (size_t)(colon - text), tid);
}

static enum import_use verdict(bool understood)
{
	return understood ? IMPORT_USED : IMPORT_MALFORMED;
}

static bool switch_by_keys(struct import_record *r, const char *text, int64_t prio[2],
			   uint64_t *state)
{
	static const char out_comm[] = "prev_comm=", out_pid[] = " prev_pid=",
			  out_state[] = " prev_state=", in_comm[] = " ==> next_comm=",
			  in_pid[] = " next_pid=";
	const char *arrow = strstr(text, in_comm), *pid[2], *at, *end, *comm;
	int64_t tid[2];

	if (strncmp(text, out_comm, strlen(out_comm)) || !arrow)
		return false;
	pid[0] = strstr(text, out_pid);
	at = strstr(text, out_state);
	pid[1] = last_of(arrow, in_pid);
	if (!pid[0] || !at || !pid[1] || pid[0] > arrow || at > arrow ||
	    !int32_read(pid[0] + strlen(out_pid), &tid[0], &end) ||
	    !int32_read(pid[1] + strlen(in_pid), &tid[1], &end) ||
	    !key_number(text, "prev_prio=", &prio[0]) || !key_number(arrow, "next_prio=", &prio[1]))
		return false;
	at += strlen(out_state);
	comm = text + strlen(out_comm);
	arrow += strlen(in_comm);
	return event_text_state(at, strcspn(at, " "), state) && pid[1] >= arrow &&
	       task_set(&r->named[0], comm, (size_t)(pid[0] - comm), tid[0]) &&
	       task_set(&r->named[1], arrow, (size_t)(pid[1] - arrow), tid[1]);
}

static bool switch_by_plugin(struct import_record *r, const char *text, int64_t prio[2],
			     uint64_t *state)
{
	static const char arrow[] = " ==> ";
	const char *middle = last_of(text, arrow), *rest;

	if (!middle ||
	    !task_by_plugin(text, (size_t)(middle - text), &r->named[0], &prio[0], &rest))
		return false;
	rest += strspn(rest, " ");
	if (rest >= middle || !event_text_state(rest, (size_t)(middle - rest), state))
		return false;
	middle += strlen(arrow);
	return task_by_plugin(middle, strlen(middle), &r->named[1], &prio[1], &rest);
}

static enum import_use on_switch(struct import_record *r, const char *text)
{
	int64_t prio[2] = {0, 0};
	uint64_t state = 0;

	if (!switch_by_keys(r, text, prio, &state) && !switch_by_plugin(r, text, prio, &state))
		return IMPORT_MALFORMED;
	r->e.pid = r->named[0].tid;
	r->e.pid2 = r->named[1].tid;
	ev_set_sched_switch_state(&r->e, state);
	ev_set_sched_switch_out_prio(&r->e, (int32_t)prio[0]);
	ev_set_sched_switch_in_prio(&r->e, (int32_t)prio[1]);
	return IMPORT_USED;
}

static enum import_use on_wakeup(struct import_record *r, const char *text)
{
	int64_t prio = 0, cpu = 0;
	const char *rest = text;
	bool plugin = !task_by_keys(text, &r->named[0], &prio);

	if (plugin && !task_by_plugin(text, strlen(text), &r->named[0], &prio, &rest))
		return IMPORT_MALFORMED;
	r->e.pid = r->named[0].tid;
	r->e.pid2 = r->task.tid;
	ev_set_sched_wakeup_prio(&r->e, (int32_t)prio);
	if (!key_number(rest, plugin ? "CPU:" : "target_cpu=", &cpu))
		return IMPORT_MALFORMED;
	ev_set_sched_wakeup_cpu(&r->e, (uint64_t)cpu);
	return verdict(cpu >= 0);
}

/* Takes each field that the catalogue gives a name in the record, printed as "name=number"; all of
 * them must be there. */
static enum import_use on_fields(struct import_record *r, const char *text)
{
	size_t n;
	const struct event_field *fields = event_fields(r->e.type, &n);

	for (size_t i = 0; i < n; i++) {
		char name[EVENT_FIELD_NAME_BYTES], key[EVENT_FIELD_NAME_BYTES + 1];
		int64_t value = 0;

		if (!event_field_kernel_name(&fields[i], 0, name))
			continue;
		snprintf(key, sizeof(key), "%s=", name);
		if (!strcmp(name, "common_pid"))
			value = r->task.tid;
		else if (fields[i].base == 0 && task_by_keys(text, &r->named[0], &value))
			value = r->named[0].tid;
		else if (fields[i].base == 0 || !key_number(text, key, &value) || value < 0)
			return IMPORT_MALFORMED;
		event_field_set(&fields[i], &r->e, (uint64_t)value);
	}
	return IMPORT_USED;
}

static enum import_use on_irq(struct import_record *r, const char *text)
{
	int64_t irq = 0;
	bool known = key_number(text, "irq=", &irq) && irq >= 0;

	r->e.pid = r->task.tid;
	ev_set_irq_exit_number(&r->e, (uint64_t)irq);
	ev_set_irq_exit_result(&r->e,
			       r->e.type == VS_EVENT_IRQ_EXIT && strstr(text, "ret=handled"));
	return verdict(known);
}

static enum import_use on_signal(struct import_record *r, const char *text)
{
	int64_t prio, sig = 0;

	if (!key_number(text, "sig=", &sig) || sig < 0 || !task_by_keys(text, &r->named[0], &prio))
		return IMPORT_MALFORMED;
	r->e.pid = r->named[0].tid;
	r->e.pid2 = r->task.tid;
	ev_set_signal_number(&r->e, (uint64_t)sig);
	/* The text does not say whose thread it is; a signal to a process names its first. */
	ev_set_signal_process(&r->e, (uint64_t)r->e.pid);
	return IMPORT_USED;
}

static void vcpu_take(struct import_record *r, const char *text)
{
	int64_t vcpu;

	if (!key_number(text, "vcpu ", &vcpu) || vcpu < 0)
		return;
	r->vcpu_known = true;
	r->vcpu = (uint32_t)vcpu;
}

static enum import_use on_entry(struct import_record *r, const char *text)
{
	vcpu_take(r, text);
	r->e.pid = r->task.tid;
	ev_set_kvm_entry_rip(&r->e, key_hex(text, "rip 0x"));
	return verdict(r->vcpu_known);
}

/* The reason may hold a space ("PF excp"), and flags may follow it ("... FAILED_VMENTRY"). */
static enum import_use on_kvm_exit(struct import_record *r, const char *text)
{
	static const char key[] = "reason ";
	const char *reason = strstr(text, key), *end;

	if (!reason)
		return IMPORT_MALFORMED;
	reason += strlen(key);
	end = strstr(reason, " rip ");
	if (!end)
		end = reason + strcspn(reason, " ");
	if (end == reason)
		return IMPORT_MALFORMED;
	vcpu_take(r, text);
	r->e.pid = r->task.tid;
	ev_set_kvm_exit_rip(&r->e, key_hex(text, "rip 0x"));
	r->reason_unknown = !import_reason_parse(reason, (size_t)(end - reason), &r->e) &&
			    !import_reason_parse(reason, strcspn(reason, " "), &r->e);
	return IMPORT_USED;
}

static enum import_use on_userspace_exit(struct import_record *r, const char *text)
{
	const char *open = last_of(text, "("), *end;
	bool failed = strstr(text, "reason restart") || strstr(text, "reason error");
	int64_t number;

	if (!open || !int32_read(open + 1, &number, &end) || *end != ')')
		return IMPORT_MALFORMED;
	r->e.pid = r->task.tid;
	/* Where it failed, KVM prints the error's number in the reason's place. */
	if (failed)
		ev_set_kvm_userspace_exit_error(&r->e, number > 0 ? -number : number);
	else
		ev_set_kvm_userspace_exit_reason(&r->e, (uint64_t)number);
	return IMPORT_USED;
}

typedef enum import_use (*text_parser)(struct import_record *r, const char *text);

/* The others are taken by on_fields(). */
static const text_parser parsers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_SCHED_SWITCH] = on_switch,
	[VS_EVENT_SCHED_WAKEUP] = on_wakeup,
	[VS_EVENT_SCHED_WAKEUP_NEW] = on_wakeup,
	[VS_EVENT_IRQ_ENTRY] = on_irq,
	[VS_EVENT_IRQ_EXIT] = on_irq,
	[VS_EVENT_SIGNAL] = on_signal,
	[VS_EVENT_KVM_ENTRY] = on_entry,
	[VS_EVENT_KVM_EXIT] = on_kvm_exit,
	[VS_EVENT_KVM_USERSPACE_EXIT] = on_userspace_exit,
};

enum import_use event_text_parse(struct import_record *r, const char *text)
{
	const struct event_tracepoint *row = event_row_find(r->event);
	text_parser parser;

	memset(&r->e, 0, sizeof(r->e));
	if (!row)
		return IMPORT_UNUSED;
	event_begin(&r->e, row);
	if (kvm_text_knows(row->type)) {
		r->e.pid = r->task.tid;
		vcpu_take(r, text);
		return verdict(kvm_text_parse(&r->e, text));
	}
	parser = parsers[row->type] ? parsers[row->type] : on_fields;
	return parser(r, text);
}

const char *event_text_architecture(const char *text)
{
	/* How the arguments of kvm_entry and kvm_exit begin there (arch/ARCH/kvm/trace*.h). */
	static const struct {
		const char *begins, *name;
	} rows[] = {
		{"PC: 0x", "arm64"},   {"TRAP: ", "arm64"},   {"IRQ: HSR_EC", "arm64"},
		{"IRQ: PC", "arm64"},  {"HSR_EC: ", "arm"},   {"SEPC: 0x", "RISC-V"},
		{"SEPC:0x", "RISC-V"}, {"PC: ", "LoongArch"}, {"VCPU ", "PowerPC"},
		{"exit=", "PowerPC"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strncmp(text, rows[i].begins, strlen(rows[i].begins)))
			return rows[i].name;
	}
	return NULL;
}
