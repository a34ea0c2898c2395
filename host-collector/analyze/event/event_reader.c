// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/analyze/event/event_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/model/exit_name.h"
#include "host-collector/model/guest_cpu.h"
#include "proto/event_fields.h"

/* What is known of a CPU after its newest event. */
struct cpu_track {
	struct host_ns last;
	bool lost_open;     /* between a LOST event and the next event */
	int32_t task;       /* host: the task on the CPU; -1: unknown */
	uint32_t stack_tid; /* guest: the task whose stack was taken last, and the time */
	uint32_t kernel_stack, user_stack;
	struct host_ns stack_t;
};

struct side_track {
	uint32_t source;
	struct cpu_track *cpus; /* VS_CPUS_MAX */
};

/* The stack of a hit. The stack's event comes right before the hit. */
struct hit_stack {
	uint64_t number; /* as the hit has it; 0: free */
	int32_t tid;
	uint32_t id;
};

enum {
	TEXTS = 4,         /* number of values of texts that are valid at the same time */
	HIT_STACKS = 1024, /* by number: the newest are kept */
};

struct event_reader {
	const struct model *model;
	struct user_hits *hits;
	char texts[TEXTS][VS_USER_TEXT_MAX + 1];
	unsigned n_texts;
	uint32_t boot; /* of the guest whose event is taken */
	struct hit_stack hit_stacks[HIT_STACKS];
	const struct event_choices *choices;
	struct event_sink sink;
	size_t n_sides, side_at;
	struct side_track sides[MODEL_VMS_MAX + 1];
};

/* Returns NULL without memory, or if there are too many VMs. */
static struct cpu_track *track_of(struct event_reader *r, uint32_t source, uint16_t cpu)
{
	struct side_track *s;

	if (r->side_at >= r->n_sides || r->sides[r->side_at].source != source) {
		for (r->side_at = 0; r->side_at < r->n_sides; r->side_at++) {
			if (r->sides[r->side_at].source == source)
				break;
		}
	}
	if (r->side_at == r->n_sides) {
		if (r->n_sides == MODEL_VMS_MAX + 1)
			return NULL;
		s = &r->sides[r->n_sides];
		s->source = source;
		s->cpus = calloc(VS_CPUS_MAX, sizeof(*s->cpus));
		if (!s->cpus)
			return NULL;
		for (size_t i = 0; i < VS_CPUS_MAX; i++)
			s->cpus[i].task = -1;
		r->n_sides++;
	}
	return &r->sides[r->side_at].cpus[cpu];
}

static const struct cpu_track *track_find(const struct event_row *row)
{
	return track_of(row->reader, row->source, row->event->cpu);
}

/* A LOST event has the time at which the loss began, and the loss ends at the next event of its
 * CPU. A few LOST events have the time of the end. */
static void lost_pass(struct event_reader *r, const struct event_row *row, struct cpu_track *track)
{
	const struct vs_event *e = row->event;
	const struct host_ns never = {INT64_MIN};
	struct event_loss loss = {
		.source = row->source,
		.cpu = e->cpu,
		.count = ev_lost_count(e),
		.t = row->t,
		.since = loss_since(e, row->t, track ? track->last : never),
		.until = row->t,
	};

	if (ev_lost_gap_us(e))
		loss.until.ns += (ev_lost_gap_us(e) + 1) * 1000ll;
	else if (!loss.count || e->time < ev_lost_end(e))
		loss.until.ns = INT64_MAX;
	if (r->sink.lost)
		r->sink.lost(r->sink.context, &loss);
	if (!track)
		return;
	track->lost_open |= loss.until.ns == INT64_MAX;
	track->task = -1;
}

static void lost_end(struct event_reader *r, const struct event_row *row, struct cpu_track *track)
{
	track->lost_open = false;
	if (r->sink.lost_over)
		r->sink.lost_over(r->sink.context, row->source, row->event->cpu, row->t);
}

static bool choice_takes(struct event_row *row)
{
	const struct event_choice *c = row->choice;
	uint32_t vm;

	if (row->hit &&
	    (c->schema->source != row->source || c->schema->id != ev_user_id(row->event)))
		return false;
	if (c->schema->by_constant && event_constant(row->event) != c->schema->constant)
		return false;
	if (c->vmm) {
		int32_t tid = event_row_task(row);

		if (tid < 0 || model_vm_of_thread(row->reader->model, tid, &vm))
			return false;
	}
	return !c->filter.n || expr_is_true(event_row_eval(row, &c->filter));
}

static void row_pass(struct event_reader *r, struct event_row *row, bool guest)
{
	const uint8_t first = row->event->type < VS_EVENT_TYPE_LIMIT
				      ? r->choices->first[guest][row->event->type]
				      : 0;

	for (uint8_t i = first; i; i = r->choices->next[i - 1]) {
		row->number = i - 1u;
		row->choice = &r->choices->items[i - 1];
		if (choice_takes(row))
			r->sink.row(r->sink.context, row);
	}
}

/* Remembers what later events of this CPU need. */
static void track_event(struct cpu_track *track, const struct event_row *row)
{
	const struct vs_event *e = row->event;

	track->last = row->t;
	if (e->type == VS_EVENT_SCHED_SWITCH)
		track->task = ev_sched_switch_in(e);
	else if (event_names_host_current(e->type))
		track->task = e->pid;
	if (e->type != VS_EVENT_TASK_STACK)
		return;
	track->stack_t = row->t;
	track->stack_tid = (uint32_t)e->pid;
	track->kernel_stack = ev_task_stack_kernel(e);
	track->user_stack = ev_task_stack_user(e);
}

static void stack_keep(struct event_reader *r, const struct vs_event *e)
{
	const uint64_t number = ev_stack_wait_ns(e);

	if (ev_stack_role(e) == VS_STACK_HIT)
		r->hit_stacks[number % HIT_STACKS] =
			(struct hit_stack){number, e->pid, (uint32_t)ev_stack_id(e)};
}

/* Takes an event that a user chose, after all its records have come. */
static void on_hit(void *context, const struct user_hit *hit)
{
	struct event_reader *r = context;
	struct event_row row = {
		.reader = r,
		.t = {hit->t_ns},
		.err_ns = hit->err_ns,
		.source = hit->source,
		.boot = r->boot,
		.event = &hit->head,
		.hit = hit,
	};

	if (hit->event && hit->head.type == VS_EVENT_USER)
		row_pass(r, &row, row.source != VS_SOURCE_HOST);
}

static bool is_part_of_hit(uint16_t type)
{
	return type == VS_EVENT_USER || type == VS_EVENT_USER_MORE ||
	       type == VS_EVENT_USER_LIMITED || type == VS_EVENT_LOST;
}

static void event_take(struct event_reader *r, struct event_row *row)
{
	const uint16_t type = row->event->type;
	struct cpu_track *track;

	if (row->event->cpu >= VS_CPUS_MAX)
		return;
	r->boot = row->boot;
	if (type == VS_EVENT_STACK)
		stack_keep(r, row->event);
	if (is_part_of_hit(type))
		user_hits_take(r->hits, row->source, row->event, row->t.ns, row->err_ns);
	track = track_of(r, row->source, row->event->cpu);
	if (type == VS_EVENT_LOST)
		lost_pass(r, row, track);
	else if (track && track->lost_open)
		lost_end(r, row, track);
	if (type != VS_EVENT_USER)
		row_pass(r, row, row->source != VS_SOURCE_HOST);
	if (track)
		track_event(track, row);
}

static void on_host_instant(void *context, const struct host_instant *i)
{
	struct event_row row = {
		.reader = context,
		.t = i->t,
		.err_ns = i->err_ns,
		.source = VS_SOURCE_HOST,
		.event = &i->event,
	};

	event_take(context, &row);
}

static void on_guest_instant(void *context, const struct guest_instant *i)
{
	struct event_row row = {
		.reader = context,
		.t = i->t,
		.err_ns = i->err_ns,
		.source = i->vm,
		.boot = i->boot,
		.event = &i->event,
		.placed = true,
		.vm_known = true,
		.vm = i->vm,
		.vcpu_known = i->has_vcpu,
		.vcpu = i->vcpu,
	};

	event_take(context, &row);
}

/* Types with an event for which another event of its CPU may have to say which task was there. */
static bool needs_track(bool guest, uint16_t type)
{
	return guest ? type == VS_EVENT_SCHED_SWITCH : !event_names_host_current(type);
}

static bool choices_show_stacks(const struct event_choices *choices)
{
	bool show = false;

	for (size_t i = 0; i < choices->n; i++)
		show |= choices->items[i].stack && choices->items[i].schema->stacks;
	return show;
}

/* Sets the types of one side that the choices and the reader need. */
static void types_request(const struct event_choices *choices, bool guest, struct event_set *set)
{
	bool track = false;

	*set = EVENT_SET(VS_EVENT_LOST, VS_EVENT_USER, VS_EVENT_USER_MORE, VS_EVENT_USER_LIMITED);
	for (uint16_t type = 1; type < VS_EVENT_TYPE_LIMIT; type++) {
		const struct event_set one = EVENT_SET(type);

		if (!choices->first[guest][type])
			continue;
		event_set_add(set, &one);
		track |= needs_track(guest, type);
	}
	if (!guest && choices_show_stacks(choices)) {
		const struct event_set stacks = EVENT_SET(VS_EVENT_STACK);

		event_set_add(set, &stacks);
	}
	for (uint16_t type = 1; track && type < VS_EVENT_TYPE_LIMIT; type++) {
		const struct event_set one = EVENT_SET(type);

		if (guest ? type == VS_EVENT_TASK_STACK : event_names_host_current(type))
			event_set_add(set, &one);
	}
}

struct event_reader *event_reader_new(struct model *m, const struct event_choices *choices,
				      const struct event_sink *sink)
{
	struct event_reader *r = calloc(1, sizeof(*r));
	struct model_observer observer = {
		.host_instant = on_host_instant,
		.guest_instant = on_guest_instant,
		.context = r,
	};

	if (!r)
		return NULL;
	r->model = m;
	r->choices = choices;
	r->sink = *sink;
	types_request(choices, false, &observer.host_types);
	types_request(choices, true, &observer.guest_types);
	r->hits = user_hits_new(model_user_events(m), on_hit, r);
	if (r->hits && !model_observe(m, &observer))
		return r;
	event_reader_free(r);
	return NULL;
}

void event_reader_free(struct event_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_sides; i++)
		free(r->sides[i].cpus);
	user_hits_free(r->hits);
	free(r);
}

const struct model *event_reader_model(const struct event_reader *r)
{
	return r->model;
}

/* ---- what an event concerns ---- */

int32_t event_row_task(const struct event_row *row)
{
	const struct cpu_track *track;
	struct guest_span span;
	const struct vs_event *e = row->event;

	switch ((enum event_current)event_type_of(e->type)->current) {
	case EVENT_CURRENT_PID:
	case EVENT_CURRENT_SWITCH:
		return e->pid;
	case EVENT_CURRENT_PID2_OF_GUEST:
		if (row->source != VS_SOURCE_HOST)
			return e->pid2;
		break;
	case EVENT_CURRENT_NONE:
		if (row->hit)
			return e->pid;
		break;
	}
	if (row->source == VS_SOURCE_HOST) {
		track = track_find(row);
		return track ? track->task : -1;
	}
	if (model_guest_current(row->reader->model, row->source, e->cpu, &span) ||
	    span.state == GUEST_CPU_UNKNOWN)
		return -1;
	return span.pid;
}

/* Sets *id to the APIC id of the CPU that the event addresses. Returns false if it names none. */
static bool apic_id_of(const struct vs_event *e, uint32_t *id)
{
	uint64_t address;
	uint32_t destination;

	switch (e->type) {
	case VS_EVENT_KVM_ACCEPT_IRQ:
		*id = ev_kvm_apic_accept_irq_apic_id(e);
		return true;
	case VS_EVENT_KVM_APICV_ACCEPT_IRQ:
		*id = ev_kvm_apicv_accept_irq_apic_id(e);
		return true;
	case VS_EVENT_KVM_EOI:
		*id = ev_kvm_eoi_apic_id(e);
		return true;
	case VS_EVENT_KVM_PV_EOI:
		*id = ev_kvm_pv_eoi_apic_id(e);
		return true;
	case VS_EVENT_KVM_MSI:
		/* Intel SDM 3A, 11.11.1: bits 12 to 19 are the destination, bit 2 says that it is
		 * a set of CPUs. Bits 40 to 63 extend it (KVM's x2APIC format). */
		address = ev_kvm_msi_set_irq_address(e);
		destination = (uint32_t)(address >> 12 & 0xff) | (uint32_t)(address >> 40) << 8;
		*id = destination;
		if (!(address & 4))
			return destination != 0xff;
		/* The flat model of up to 8 CPUs: one bit for each. */
		if (destination > 0xff || !destination || destination & (destination - 1))
			return false;
		*id = (uint32_t)__builtin_ctz(destination);
		return true;
	default:
		return false;
	}
}

/* An interrupted task of another process may have emitted the event. Then its VM is the only VM
 * that has a vCPU with this APIC id, if there is only one. */
static bool vm_only(const struct model *m, uint32_t apic_id, uint32_t *vm)
{
	uint32_t vms[MODEL_VMS_MAX], vcpu;
	size_t n = model_vms(m, vms, MODEL_VMS_MAX), found = 0;

	for (size_t i = 0; i < n && i < MODEL_VMS_MAX; i++) {
		if (model_vcpu_of_apic_id(m, vms[i], apic_id, &vcpu))
			continue;
		*vm = vms[i];
		found++;
	}
	return found == 1;
}

static void place_host(struct event_row *row)
{
	const struct model *m = row->reader->model;
	const struct vs_event *e = row->event;
	const int32_t tid = event_row_task(row);
	uint32_t apic_id;

	if (apic_id_of(e, &apic_id)) {
		row->vm_known =
			!model_vm_of_thread(m, tid, &row->vm) || vm_only(m, apic_id, &row->vm);
		row->vcpu_known =
			row->vm_known && !model_vcpu_of_apic_id(m, row->vm, apic_id, &row->vcpu);
		return;
	}
	/* A wake-up, a migration and a signal belong to the task that they name. */
	row->vcpu_known = !model_vcpu_of_thread(m, e->pid, &row->vm, &row->vcpu) ||
			  (e->type == VS_EVENT_SCHED_SWITCH &&
			   !model_vcpu_of_thread(m, ev_sched_switch_in(e), &row->vm, &row->vcpu));
	row->vm_known = row->vcpu_known || !model_vm_of_thread(m, e->pid, &row->vm) ||
			(tid > 0 && !model_vm_of_thread(m, tid, &row->vm));
}

static void place(struct event_row *row)
{
	row->placed = true;
	if (row->source == VS_SOURCE_HOST) {
		place_host(row);
		return;
	}
	row->vm_known = true;
	row->vm = row->source;
	row->vcpu_known =
		!model_vcpu_of_guest_cpu(row->reader->model, row->vm, row->event->cpu, &row->vcpu);
}

bool event_row_vcpu(struct event_row *row)
{
	if (!row->placed)
		place(row);
	return row->vcpu_known;
}

const char *event_row_task_name(const struct event_row *row, int32_t tid)
{
	const struct model *m = row->reader->model;
	const char *name;

	if (row->source == VS_SOURCE_HOST)
		name = model_task_name(m, VS_SOURCE_HOST, tid);
	else
		name = model_task_name_in(m, row->source, row->boot, tid);
	return !*name && !tid ? "swapper" : name;
}

/* ---- values ---- */

static struct expr_value no_value(void)
{
	return (struct expr_value){.type = EXPR_NONE};
}

static struct expr_value number_value(enum expr_type type, uint64_t n)
{
	return (struct expr_value){.type = type, .number = n};
}

static struct expr_value text_value(const char *text)
{
	return *text ? (struct expr_value){.type = EXPR_TEXT, .text = text} : no_value();
}

static struct expr_value guest_task(struct event_row *row)
{
	const struct model *m = row->reader->model;
	struct guest_span span;
	uint16_t cpu;

	if (!event_row_vcpu(row) || model_guest_cpu_of_vcpu(m, row->vm, row->vcpu, &cpu) ||
	    model_guest_current(m, row->vm, cpu, &span) || span.state == GUEST_CPU_UNKNOWN)
		return no_value();
	return number_value(EXPR_SIGNED, (uint64_t)(int64_t)span.pid);
}

static struct expr_value vcpu_state(struct event_row *row)
{
	struct vcpu_span span;

	if (!event_row_vcpu(row) ||
	    model_vcpu_current(row->reader->model, row->vm, row->vcpu, &span))
		return no_value();
	return text_value(vcpu_state_name(span.state));
}

static struct expr_value process_value(const struct event_row *row, int32_t tid)
{
	int32_t process = tid > 0 ? model_task_process(row->reader->model, row->source, tid) : tid;

	return process < 0 || (tid && !process)
		       ? no_value()
		       : number_value(EXPR_SIGNED, (uint64_t)(int64_t)process);
}

static struct expr_value common_value(struct event_row *row, uint16_t index)
{
	const struct model *m = row->reader->model;
	int32_t tid;

	switch (index) {
	case EVENT_COMMON_CPU:
		return number_value(EXPR_UNSIGNED, row->event->cpu);
	case EVENT_COMMON_TID:
		tid = event_row_task(row);
		return tid < 0 ? no_value() : number_value(EXPR_SIGNED, (uint64_t)(int64_t)tid);
	case EVENT_COMMON_PID:
		return process_value(row, event_row_task(row));
	case EVENT_COMMON_COMM:
		tid = event_row_task(row);
		return tid < 0 ? no_value() : text_value(event_row_task_name(row, tid));
	case EVENT_COMMON_VM:
		event_row_vcpu(row);
		return row->vm_known ? text_value(model_vm_name(m, row->vm)) : no_value();
	case EVENT_COMMON_VCPU:
		return event_row_vcpu(row) ? number_value(EXPR_UNSIGNED, row->vcpu) : no_value();
	case EVENT_COMMON_GTASK:
		return guest_task(row);
	case EVENT_COMMON_STATE:
		return vcpu_state(row);
	default:
		return no_value();
	}
}

static struct expr_value hit_value(const struct event_row *row, size_t field)
{
	const struct event_schema_field *f = &row->choice->schema->fields[field];
	uint64_t number;
	char *text;

	if (f->type != EXPR_TEXT)
		return user_hit_number(row->hit, field, &number) ? number_value(f->type, number)
								 : no_value();
	text = row->reader->texts[row->reader->n_texts++ % TEXTS];
	user_hit_text(row->hit, field, text, sizeof(row->reader->texts[0]));
	return (struct expr_value){.type = EXPR_TEXT, .text = text};
}

struct expr_value event_row_field(const struct event_row *row, size_t field)
{
	const struct event_schema *schema = row->choice->schema;
	const struct event_schema_field *f;

	if (field >= schema->n_fields)
		return no_value();
	f = &schema->fields[field];
	if (f->place)
		return number_value(f->type, event_field_get(f->place, row->event));
	return row->hit ? hit_value(row, field) : no_value();
}

static struct expr_value field_value(void *context, uint16_t index)
{
	struct event_row *row = context;

	return index >= EVENT_COMMON_BASE ? common_value(row, index) : event_row_field(row, index);
}

static struct expr_value call_value(void *context, enum expr_function function,
				    const struct expr_value *args)
{
	static _Thread_local struct exit_name name;
	const struct event_row *row = context;

	if (function == EXPR_COMM_GET)
		return text_value(event_row_task_name(row, (int32_t)args[0].number));
	name = exit_name((uint32_t)args[0].number, (uint32_t)args[1].number);
	return text_value(name.text);
}

struct expr_value event_row_eval(struct event_row *row, const struct expr *e)
{
	const struct expr_source source = {field_value, call_value, row};

	return expr_eval(e, &source);
}

/* ---- for people ---- */

/* Returns the letters that ps uses for the state in which a task left its CPU. */
static char state_letter(uint64_t state)
{
	static const struct {
		uint32_t bit;
		char letter;
	} letters[] = {
		{VS_TASK_INTERRUPTIBLE, 'S'}, {VS_TASK_IDLE, 'I'},   {VS_TASK_UNINTERRUPTIBLE, 'D'},
		{VS_TASK_STOPPED, 'T'},       {VS_TASK_TRACED, 't'}, {VS_TASK_DEAD, 'X'},
		{VS_TASK_EXIT, 'Z'},          {VS_TASK_PARKED, 'P'}};

	for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++) {
		if (state & letters[i].bit)
			return letters[i].letter;
	}
	return 'R';
}

static bool task_meaning(const struct event_row *row, uint64_t tid, char *out, size_t out_bytes)
{
	const char *name = tid ? event_row_task_name(row, (int32_t)tid) : "";
	const size_t len = strnlen(name, out_bytes - 1);

	memcpy(out, name, len);
	out[len] = 0;
	return len;
}

bool event_row_field_meaning(const struct event_row *row, const struct event_schema_field *f,
			     char *out, size_t out_bytes)
{
	const struct vs_event *e = row->event;
	const uint64_t value = f->place ? event_field_get(f->place, e) : 0;

	if (!f->place)
		return false;
	if (!f->base)
		return strcmp(f->name, "common_pid") != 0 &&
		       task_meaning(row, value, out, out_bytes);
	switch (e->type) {
	case VS_EVENT_KVM_EXIT:
		if (strcmp(f->name, "exit_reason") != 0)
			return false;
		snprintf(out, out_bytes, "%s",
			 exit_name(ev_kvm_exit_isa(e), ev_kvm_exit_reason(e)).text);
		return true;
	case VS_EVENT_SCHED_SWITCH:
		if (strcmp(f->name, "prev_state") != 0)
			return false;
		out[0] = state_letter(value);
		out[1] = 0;
		return true;
	case VS_EVENT_SOFTIRQ_ENTRY:
	case VS_EVENT_SOFTIRQ_EXIT:
		interrupt_name(GUEST_CPU_SOFTIRQ, false, (uint32_t)value, out, out_bytes);
		return true;
	case VS_EVENT_BLOCK_ISSUE:
	case VS_EVENT_BLOCK_COMPLETE:
		if (strcmp(f->name, "dev") != 0)
			return false;
		snprintf(out, out_bytes, "%u:%u", (unsigned)(value >> 20),
			 (unsigned)(value & 0xfffff));
		return true;
	default:
		return false;
	}
}

bool event_field_is_hex(const struct event_schema_field *f, const struct expr_value *value)
{
	if (value->type == EXPR_TEXT || value->type == EXPR_NONE)
		return false;
	return f->base == 16 || (value->type != EXPR_SIGNED && value->number > INT64_MAX);
}

const char *event_row_field_text(const struct event_row *row, size_t field, char *out,
				 size_t out_bytes)
{
	const struct event_schema_field *f = &row->choice->schema->fields[field];
	const struct expr_value value = event_row_field(row, field);
	char number[32], name[64];

	if (event_field_is_hex(f, &value))
		snprintf(number, sizeof(number), "0x%" PRIx64, value.number);
	else
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)value.number);
	if (value.type == EXPR_TEXT || value.type == EXPR_NONE)
		snprintf(out, out_bytes, "%s", value.type == EXPR_TEXT ? value.text : "?");
	else if (event_row_field_meaning(row, f, name, sizeof(name)))
		snprintf(out, out_bytes, "%s(%s)", number, name);
	else
		snprintf(out, out_bytes, "%s", number);
	return out;
}

static const struct stack *guest_stack(const struct event_row *row, uint32_t kernel, uint32_t user,
				       int32_t process)
{
	const struct model *m = row->reader->model;
	const struct stack *s = kernel ? model_guest_stack_of(m, row->source, 0, kernel) : NULL;

	return s || !user ? s : model_guest_stack_of(m, row->source, process, user);
}

static const struct stack *hit_stack(const struct event_row *row)
{
	const struct event_schema *schema = row->choice->schema;
	const struct hit_stack *s;
	uint64_t number;

	if (!schema->stacks || !user_hit_number(row->hit, schema->n_fields - 1, &number) || !number)
		return NULL;
	s = &row->reader->hit_stacks[number % HIT_STACKS];
	return s->number == number && s->tid == row->event->pid
		       ? model_stack_of(row->reader->model, s->id)
		       : NULL;
}

const struct stack *event_row_stack(const struct event_row *row)
{
	const struct vs_event *e = row->event;
	const struct cpu_track *track;

	if (e->type == VS_EVENT_STACK)
		return model_stack_of(row->reader->model, (uint32_t)ev_stack_id(e));
	if (row->hit && row->source == VS_SOURCE_HOST)
		return hit_stack(row);
	if (row->source == VS_SOURCE_HOST)
		return NULL;
	if (e->type == VS_EVENT_TASK_STACK)
		return guest_stack(row, ev_task_stack_kernel(e), ev_task_stack_user(e),
				   ev_task_stack_process(e));
	/* The stack of a wait is taken right before the switch that begins the wait. */
	track = track_find(row);
	if (e->type != VS_EVENT_SCHED_SWITCH || !track ||
	    track->stack_tid != (uint32_t)ev_sched_switch_out(e) ||
	    track->last.ns != track->stack_t.ns)
		return NULL;
	return guest_stack(row, track->kernel_stack, track->user_stack,
			   model_task_process(row->reader->model, row->source, e->pid));
}

bool event_row_selected(struct event_row *row, const struct narrow *n)
{
	int32_t task;

	if (!narrow_has_time(n, row->t))
		return false;
	if (!narrow_rows(n))
		return true;
	event_row_vcpu(row);
	if (n->vm && (!row->vm_known || !narrow_has_vm(n, row->reader->model, row->vm)))
		return false;
	if (n->vcpu >= 0 && (!row->vcpu_known || n->vcpu != (int64_t)row->vcpu))
		return false;
	task = event_row_task(row);
	return narrow_has_task(n, task < 0 ? "" : event_row_task_name(row, task), task);
}
