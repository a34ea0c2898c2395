// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/import/trace_dat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <trace-cmd.h>
#include <unistd.h>

#include "host-collector/import/event_row.h"
#include "host-collector/import/event_text.h"
#include "host-collector/import/line.h"
#include "host-collector/model/exit_name.h"

/* A message of the reading process: one record, or the end. If the record is a LINE_OTHER, its hit
 * follows. */
struct parcel {
	enum line_kind kind;
	bool end;
	struct import_record r;
};

/* ---- in the reading process ---- */

struct reader {
	FILE *out;
	const struct gather *g; /* as it was when the process began: the options */
	struct other_hit hit;   /* of LINE_OTHER */
};

struct source {
	struct tep_event *event;
	struct tep_record *record;
};

static bool number(const struct source *s, const char *field, uint64_t *out)
{
	unsigned long long value;

	if (tep_get_field_val(NULL, s->event, field, s->record, &value, 0))
		return false;
	*out = value;
	return true;
}

static bool task(const struct source *s, const char *pid_field, const char *comm_field,
		 struct import_task *out)
{
	uint64_t pid;
	const char *comm;
	int len = 0;

	if (!number(s, pid_field, &pid) || pid > INT32_MAX)
		return false;
	comm = tep_get_field_raw(NULL, s->event, comm_field, s->record, &len, 0);
	out->known = true;
	out->tid = (int32_t)pid;
	if (comm && len > 0)
		event_text_comm(out, comm, strnlen(comm, (size_t)len));
	return true;
}

/* The kernel's numbers of 4.14 and later; a bit above them says that it was preempted. */
static uint64_t state_of(uint64_t prev_state)
{
	enum { KNOWN_BITS = 0x7f, IDLE_BIT = 0x80 };

	if (prev_state & IDLE_BIT)
		return VS_TASK_UNINTERRUPTIBLE | VS_TASK_IDLE;
	return prev_state & KNOWN_BITS;
}

static bool on_switch(const struct source *s, struct import_record *r)
{
	uint64_t state, out, in;

	if (!task(s, "prev_pid", "prev_comm", &r->named[0]) ||
	    !task(s, "next_pid", "next_comm", &r->named[1]) || !number(s, "prev_state", &state) ||
	    !number(s, "prev_prio", &out) || !number(s, "next_prio", &in))
		return false;
	r->e.pid = r->named[0].tid;
	r->e.pid2 = r->named[1].tid;
	ev_set_sched_switch_state(&r->e, state_of(state));
	ev_set_sched_switch_out_prio(&r->e, (int32_t)out);
	ev_set_sched_switch_in_prio(&r->e, (int32_t)in);
	return true;
}

/* The value of a field by one of its kernels' names. */
static bool field_number(const struct source *s, const struct event_field *field, uint64_t *value)
{
	char name[EVENT_FIELD_NAME_BYTES];

	for (size_t part = 0; event_field_kernel_name(field, part, name); part++) {
		if (number(s, name, value))
			return true;
	}
	return false;
}

/* Takes each field that the catalogue gives a name in the record; all of them must be there. Of
 * what KVM does for a vCPU, only the first must: older kernels have fewer. */
static bool on_fields(const struct source *s, struct import_record *r)
{
	size_t n;
	const struct event_field *fields = event_fields(r->e.type, &n);
	const bool is_kvm = r->e.type >= VS_EVENT_KVM_ENTRY;
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		char name[EVENT_FIELD_NAME_BYTES];
		uint64_t value;

		if (!event_field_kernel_name(&fields[i], 0, name))
			continue;
		if (!strcmp(name, "common_pid")) {
			value = (uint64_t)r->task.tid;
		} else if (fields[i].base == 0) {
			if (!task(s, name, "comm", &r->named[0]))
				return false;
			value = (uint64_t)r->named[0].tid;
		} else if (field_number(s, &fields[i], &value)) {
			any = true;
		} else if (is_kvm && any) {
			continue;
		} else {
			return false;
		}
		event_field_set(&fields[i], &r->e, value);
	}
	return true;
}

/* The record does not say whose thread it is; a signal to a process names its first. */
static bool on_signal(const struct source *s, struct import_record *r)
{
	if (!on_fields(s, r))
		return false;
	ev_set_signal_process(&r->e, (uint64_t)r->e.pid);
	return true;
}

static void vcpu_take(const struct source *s, struct import_record *r)
{
	uint64_t vcpu;

	if (!number(s, "vcpu_id", &vcpu) || vcpu > UINT32_MAX)
		return;
	r->vcpu_known = true;
	r->vcpu = (uint32_t)vcpu;
}

static bool on_entry(const struct source *s, struct import_record *r)
{
	uint64_t rip;

	vcpu_take(s, r);
	r->e.pid = r->task.tid;
	if (number(s, "rip", &rip)) /* kernels before 5.8 have none */
		ev_set_kvm_entry_rip(&r->e, rip);
	return r->vcpu_known;
}

static bool on_kvm_exit(const struct source *s, struct import_record *r)
{
	uint64_t isa = KVM_ISA_VMX, reason, rip = 0;

	vcpu_take(s, r);
	r->e.pid = r->task.tid;
	number(s, "isa", &isa);
	number(s, "guest_rip", &rip);
	ev_set_kvm_exit_rip(&r->e, rip);
	if (!number(s, "exit_reason", &reason))
		return false;
	/* VMX: the upper half holds flags. */
	ev_set_kvm_exit_reason(&r->e, (uint32_t)(isa == KVM_ISA_VMX ? reason & 0xffff : reason));
	ev_set_kvm_exit_isa(&r->e, (uint32_t)isa);
	r->reason_unknown = !exit_name_known(ev_kvm_exit_isa(&r->e), ev_kvm_exit_reason(&r->e));
	return true;
}

static bool on_userspace_exit(const struct source *s, struct import_record *r)
{
	uint64_t reason, error;

	r->e.pid = r->task.tid;
	if (!number(s, "reason", &reason) || !number(s, "errno", &error))
		return false;
	ev_set_kvm_userspace_exit_reason(&r->e, reason);
	ev_set_kvm_userspace_exit_error(&r->e, (int32_t)error);
	return true;
}

typedef bool (*record_taker)(const struct source *s, struct import_record *r);

/* The others are taken by on_fields(). */
static const record_taker takers[VS_EVENT_TYPE_LIMIT] = {
	[VS_EVENT_SCHED_SWITCH] = on_switch,
	[VS_EVENT_SIGNAL] = on_signal,
	[VS_EVENT_KVM_ENTRY] = on_entry,
	[VS_EVENT_KVM_EXIT] = on_kvm_exit,
	[VS_EVENT_KVM_USERSPACE_EXIT] = on_userspace_exit,
};

/* A text in the record, or one that the record says where it is. */
static void text_take(const struct source *s, struct tep_format_field *f, struct other_hit *hit)
{
	int len = 0;
	const char *text = tep_get_field_raw(NULL, s->event, f->name, s->record, &len, 0);

	if (text && len > 0)
		other_hit_text(hit, f->name, text, (size_t)len);
}

static void number_take(const struct source *s, struct tep_format_field *f, struct other_hit *hit)
{
	const bool is_signed = f->flags & TEP_FIELD_IS_SIGNED;
	unsigned long long value;

	if (f->size < 1 || f->size > 8 || tep_read_number_field(f, s->record->data, &value))
		return;
	if (is_signed && f->size < 8)
		value = (uint64_t)((int64_t)(value << (64 - 8 * f->size)) >> (64 - 8 * f->size));
	other_hit_number(hit, f->name,
			 f->flags & TEP_FIELD_IS_POINTER ? USER_HEX
			 : is_signed                     ? USER_SIGNED
							 : USER_UNSIGNED,
			 value);
}

/* The fields by the format in the file: numbers and texts; other arrays are left out. */
static enum line_kind other_take(const struct source *s, struct other_hit *hit)
{
	memset(hit, 0, sizeof(*hit));
	snprintf(hit->system, sizeof(hit->system), "%s", s->event->system);
	snprintf(hit->name, sizeof(hit->name), "%s", s->event->name);
	for (struct tep_format_field *f = s->event->format.fields; f; f = f->next) {
		if (f->offset < 0 || f->size < 0 || f->offset + f->size > s->record->size)
			continue;
		if (f->flags & TEP_FIELD_IS_STRING)
			text_take(s, f, hit);
		else if (!(f->flags & TEP_FIELD_IS_ARRAY))
			number_take(s, f, hit);
	}
	return LINE_OTHER;
}

static enum line_kind record_take(struct tep_handle *tep, const struct source *s,
				  struct reader *reader, struct import_record *r)
{
	const int pid = tep_data_pid(tep, s->record);
	const char *comm = pid >= 0 ? tep_data_comm_from_pid(tep, pid) : NULL;
	const struct event_tracepoint *row;
	record_taker taker;

	if (!s->event) {
		strcpy(r->event, "without a format");
		reader->hit = (struct other_hit){0};
		return LINE_OTHER;
	}
	snprintf(r->event, sizeof(r->event), "%s", s->event->name);
	r->task.known = pid >= 0;
	r->task.tid = pid;
	if (comm)
		event_text_comm(&r->task, comm, strlen(comm));
	row = event_row_find(s->event->name);
	if (!row || !gather_has_type(reader->g, row->type))
		return other_take(s, &reader->hit);
	event_begin(&r->e, row);
	taker = takers[row->type] ? takers[row->type] : on_fields;
	return taker(s, r) ? LINE_EVENT : LINE_MALFORMED;
}

static int on_record(struct tracecmd_input *handle, struct tep_record *record, int cpu,
		     void *context)
{
	struct tep_handle *tep = tracecmd_get_tep(handle);
	const struct source s = {tep_find_event_by_record(tep, record), record};
	struct reader *reader = context;
	struct parcel p = {0};

	(void)cpu; /* counted through all buffers; the record knows its own */
	p.r.cpu_known = record->cpu >= 0 && record->cpu < GATHER_CPUS;
	p.r.cpu = (uint16_t)record->cpu;
	if (record->missed_events && p.r.cpu_known) {
		p.kind = LINE_LOST;
		ev_set_lost_count(&p.r.e,
				  record->missed_events > 0 ? (uint64_t)record->missed_events : 0);
		if (fwrite(&p, sizeof(p), 1, reader->out) != 1)
			return -1;
		ev_set_lost_count(&p.r.e, 0);
	}
	p.r.time = record->ts;
	p.r.ticks = reader->g->options.tick_hz;
	p.r.unit = 1;
	p.kind = record_take(tep, &s, reader, &p.r);
	if (fwrite(&p, sizeof(p), 1, reader->out) != 1)
		return -1;
	if (p.kind != LINE_OTHER)
		return 0;
	return fwrite(&reader->hit, sizeof(reader->hit), 1, reader->out) == 1 ? 0 : -1;
}

/* All buffers in one order of time. */
static int file_read(const char *path, struct reader *reader)
{
	struct tracecmd_input *handle = tracecmd_open(path, TRACECMD_FL_LOAD_NO_PLUGINS);
	struct tracecmd_input **all;
	const struct parcel end = {.end = true};
	int n_buffers, n = 0, err;

	if (!handle)
		return -1;
	n_buffers = tracecmd_buffer_instances(handle);
	all = calloc((size_t)n_buffers + 1, sizeof(struct tracecmd_input *));
	if (!all)
		return -1;
	all[n++] = handle;
	for (int i = 0; i < n_buffers; i++) {
		all[n] = tracecmd_buffer_instance_handle(handle, i);
		n += all[n] != NULL;
	}
	err = tracecmd_iterate_events_multi(all, n, on_record, reader);
	/* What remains is freed with the process. */
	if (!err && fwrite(&end, sizeof(end), 1, reader->out) != 1)
		err = -1;
	return err;
}

static void child_run(const char *path, int fd, const struct gather *g)
{
	struct reader reader = {.out = fdopen(fd, "w"), .g = g};
	const int null = open("/dev/null", O_RDWR);
	int err;

	/* The library talks of what it finds; the parent does that. */
	if (null >= 0) {
		dup2(null, 1);
		dup2(null, 2);
	}
	if (!reader.out)
		_exit(2);
	tracecmd_set_loglevel(TEP_LOG_NONE);
	err = file_read(path, &reader);
	_exit(fclose(reader.out) || err ? 1 : 0);
}

/* ---- in the importer ---- */

bool trace_dat_is(const char *path)
{
	static const char magic[] = "\027\010\104tracing";
	char begin[sizeof(magic) - 1];
	FILE *f = fopen(path, "rb");
	bool is;

	if (!f)
		return false;
	is = fread(begin, sizeof(begin), 1, f) == 1 && !memcmp(begin, magic, sizeof(begin));
	fclose(f);
	return is;
}

static void texts_end(struct import_record *r)
{
	r->event[sizeof(r->event) - 1] = 0;
	r->system[sizeof(r->system) - 1] = 0;
	r->task.comm[sizeof(r->task.comm) - 1] = 0;
	for (size_t i = 0; i < 2; i++)
		r->named[i].comm[sizeof(r->named[i].comm) - 1] = 0;
}

static void hit_end(struct other_hit *hit)
{
	hit->system[sizeof(hit->system) - 1] = 0;
	hit->name[sizeof(hit->name) - 1] = 0;
	if (hit->n > VS_USER_FIELDS_MAX)
		hit->n = 0;
	for (size_t i = 0; i < hit->n; i++) {
		hit->values[i].name[sizeof(hit->values[i].name) - 1] = 0;
		if (hit->values[i].type < USER_UNSIGNED || hit->values[i].type > USER_TEXT)
			hit->values[i].type = USER_UNSIGNED;
	}
}

static int parcel_take(struct gather *g, struct parcel *p, struct other_hit *hit)
{
	char source[GATHER_EXAMPLE_BYTES];
	const bool placed = p->r.cpu_known && p->r.cpu < GATHER_CPUS;

	texts_end(&p->r);
	p->r.architecture = NULL; /* what the child says is no pointer of ours */
	p->r.text = NULL;
	if (p->kind == LINE_LOST)
		return placed ? gather_lost(g, p->r.cpu, ev_lost_count(&p->r.e)) : 0;
	g->lines++;
	snprintf(source, sizeof(source), "%s on CPU %u at %llu", p->r.event, p->r.cpu,
		 (unsigned long long)p->r.time);
	if (p->kind == LINE_OTHER) {
		hit_end(hit);
		p->r.cpu_known = placed;
		return gather_other(g, &p->r, hit, source);
	}
	if (p->kind == LINE_EVENT && placed)
		return gather_record(g, &p->r, source);
	if (p->kind == LINE_MALFORMED && placed && import_record_is_torn(&p->r))
		return gather_torn(g, &p->r, source);
	gather_malformed(g, source);
	return 0;
}

int trace_dat_gather(struct gather *g, const char *path, char *why, size_t why_bytes)
{
	struct other_hit hit;
	struct parcel p = {0};
	int pipes[2], status, err = 0;
	FILE *in;
	pid_t pid;

	fflush(NULL);
	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (pid < 0) {
		err = -errno;
		close(pipes[0]);
		close(pipes[1]);
		return err;
	}
	if (pid == 0) {
		close(pipes[0]);
		child_run(path, pipes[1], g);
	}
	close(pipes[1]);
	in = fdopen(pipes[0], "r");
	if (!in) {
		close(pipes[0]);
		err = -ENOMEM;
	}
	while (!err && fread(&p, sizeof(p), 1, in) == 1 && !p.end) {
		if (p.kind == LINE_OTHER && fread(&hit, sizeof(hit), 1, in) != 1)
			break;
		err = parcel_take(g, &p, &hit);
	}
	if (in)
		fclose(in);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (err || (p.end && WIFEXITED(status) && !WEXITSTATUS(status)))
		return err;
	if (WIFSIGNALED(status))
		snprintf(why, why_bytes,
			 "is damaged: libtracecmd died of signal %d; %llu events before that are "
			 "kept",
			 WTERMSIG(status), (unsigned long long)g->lines);
	else
		snprintf(why, why_bytes,
			 "is damaged: libtracecmd could not read it to its end; %llu events are "
			 "kept",
			 (unsigned long long)g->lines);
	return -EBADMSG;
}
