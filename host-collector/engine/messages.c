/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes each kind of frame: the table `kinds` has one row per kind. A kind that only the host
 * side may send (frame_kind_senders) is accepted only from source 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/engine/internal.h"

static int models_vm(struct pipeline *p, const struct message_vm_info *info)
{
	int err = model_vm(pipeline_model(p), info);

	if (!err && p->options.early)
		err = model_vm(p->options.early, info);
	return err;
}

/* If the host's stream has no VM_INFO of a guest, the guest gets its name here. */
int stream_announce(struct pipeline *p, struct stream *s)
{
	struct message_vm_info *info = &p->in.vm_info;
	int err;

	if (s->announced || stream_is_host(s))
		return 0;
	memset(info, 0, sizeof(*info));
	info->vm = s->id;
	memcpy(info->name, s->name, sizeof(info->name));
	err = models_vm(p, info);
	s->announced = !err;
	return err;
}

int stream_handlers_emit(struct pipeline *p, struct stream *s)
{
	if (!s->handlers_counted || s->handlers_known || !s->announced)
		return 0;
	s->handlers_known = true;
	return model_handlers_counted(pipeline_model(p), s->id);
}

static int on_hello(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_hello *m = &p->in.hello;
	int err = 0;

	s->hello = true;
	s->reading.known = false; /* the guest may have booted since */
	s->channel_down = false;
	s->greeted_ns = s->promised_ns;
	/* From now on the merge waits for this source: when its clock becomes known, its first
	 * events may be old. */
	if (p->options.live)
		err = stream_join(p, s);
	if (stream_is_host(s)) {
		s->look_period_ns = m->look_period_ns;
		memcpy(s->look_when, m->look_when, sizeof(s->look_when));
		p->hold_ticks = m->clock_hz / 1000 * HOLD_MS;
		return err;
	}
	if (continuity_hello(&s->continuity, s->session_id, m->boot_id) && !err) {
		s->anew_session = s->session_id; /* stream_reboot() ends all CPUs now */
		err = stream_reboot(p, s, arrival_tsc);
	}
	s->boot = s->continuity.boots.current;
	if (!err)
		err = stream_announce(p, s);
	if (!err)
		err = stream_handlers_emit(p, s);
	if (!err)
		err = model_guest_cpus(pipeline_model(p), s->id, m->cpus, m->n_cpus);
	if (!err)
		err = model_guest_tick(pipeline_model(p), s->id, m->tick_hz);
	if (!err)
		err = model_guest_watchdog(pipeline_model(p), s->id, m->watchdog_s);
	if (!err && p->options.early)
		err = model_guest_cpus(p->options.early, s->id, m->cpus, m->n_cpus);
	return err;
}

static int learn_hello(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)arrival_tsc;
	memcpy(s->kernel_release, p->in.hello.kernel_release, sizeof(s->kernel_release));
	memcpy(s->program_version, p->in.hello.program_version, sizeof(s->program_version));
	s->suspended_ns = p->in.hello.suspended_ns;
	if (!stream_is_host(s)) {
		boots_hello(&s->learn_boots, s->session_id, p->in.hello.boot_id);
		s->learn_boot = s->learn_boots.current;
	}
	return clock_book_hello(p->clocks, s->id, s->learn_boot, &p->in.hello);
}

static int check_hello(const struct pipeline *p, const struct stream *s)
{
	const enum stream_role role = stream_is_host(s) ? STREAM_ROLE_HOST : STREAM_ROLE_GUEST;

	return p->in.hello.role == role ? 0 : -EBADMSG;
}

static int learn_sample(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)arrival_tsc;
	return stream_is_host(s) ? clock_book_host_sample(p->clocks, &p->in.clock_sample) : 0;
}

static int check_sample(const struct pipeline *p, const struct stream *s)
{
	(void)s;
	return clock_sample_in_range(&p->in.clock_sample) ? 0 : -ERANGE;
}

static int learn_echo(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)s;
	(void)arrival_tsc;
	return clock_book_echo(p->clocks, &p->in.echo_observation);
}

static int check_echo(const struct pipeline *p, const struct stream *s)
{
	(void)s;
	return p->in.echo_observation.vm == VS_SOURCE_HOST ? -EBADMSG : 0;
}

/* Returns true if the line is known. An agent that starts again reads the log from its begin. */
static bool log_is_repeated(const struct stream *s, const struct message_log_line *line)
{
	uint64_t first = s->n_log > PIPELINE_LOG_LINES ? s->n_log - PIPELINE_LOG_LINES : 0;

	for (uint64_t i = s->n_log; i-- > first;) {
		const struct pipeline_log *l = &s->log[i % PIPELINE_LOG_LINES];

		if (l->boot != s->boot)
			break;
		if (l->session_id != s->session_id && l->line.dmesg_us == line->dmesg_us &&
		    !strcmp(l->line.text, line->text))
			return true;
	}
	return false;
}

static int on_log(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_kernel_log *m = &p->in.kernel_log;
	struct host_ns t;

	if (stream_is_host(s) && clock_book_host_ns(p->clocks, arrival_tsc, &t)) {
		for (size_t i = 0; i < m->n_lines; i++) {
			model_host_log(pipeline_model(p), t, m->lines[i].text);
			if (p->options.early)
				model_host_log(p->options.early, t, m->lines[i].text);
		}
	}
	if (!s->log) {
		s->log = malloc(PIPELINE_LOG_LINES * sizeof(*s->log));
		if (!s->log)
			return -ENOMEM;
	}
	for (size_t i = 0; i < m->n_lines; i++) {
		if (!log_is_repeated(s, &m->lines[i]))
			s->log[s->n_log++ % PIPELINE_LOG_LINES] =
				(struct pipeline_log){m->lines[i], s->session_id, s->boot};
	}
	return 0;
}

static int on_vm_info(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_vm_info *m = &p->in.vm_info;
	struct host_ns followed;
	struct stream *guest;
	int err = stream_get(p, m->vm, &guest);

	(void)s;
	if (err || !guest)
		return err;
	if (m->name[0])
		memcpy(guest->name, m->name, sizeof(guest->name));
	err = models_vm(p, m);
	guest->announced |= !err;
	/* The collector sends it after its capture follows all threads that it names. */
	if (!err && arrival_tsc && clock_book_host_ns(p->clocks, arrival_tsc, &followed)) {
		model_vm_followed(pipeline_model(p), m->vm, followed);
		if (p->options.early)
			model_vm_followed(p->options.early, m->vm, followed);
	}
	return err;
}

static int learn_vm_info(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)s;
	(void)arrival_tsc;
	return clock_book_protect(p->clocks, p->in.vm_info.vm, p->in.vm_info.protection);
}

static int check_vm_info(const struct pipeline *p, const struct stream *s)
{
	(void)s;
	return p->in.vm_info.vm == VS_SOURCE_HOST ? -EBADMSG : 0;
}

static int on_stack(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	int err = model_stack(pipeline_model(p), &p->in.stack);

	(void)s;
	(void)arrival_tsc;
	if (!err && p->options.early)
		err = model_stack(p->options.early, &p->in.stack);
	return err;
}

static int on_guest_stack(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	int err = stream_announce(p, s);

	(void)arrival_tsc;
	return err ? err : model_guest_stack(pipeline_model(p), s->id, &p->in.stack);
}

static int check_guest_stack(const struct pipeline *p, const struct stream *s)
{
	(void)p;
	return stream_is_host(s) ? -EBADMSG : 0;
}

static void pause_take(struct pipeline *p, const struct message_note *m)
{
	struct pause pause = {.vm = m->vm, .kind = m->kind};

	if (!clock_book_host_ns(p->clocks, m->host_tsc, &pause.t))
		return;
	pauses_add(&p->pauses, pipeline_model(p), &pause);
	if (p->options.early)
		pauses_add(&p->early_pauses, p->options.early, &pause);
}

static int on_note(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_note *m = &p->in.note;
	struct stream *guest = m->vm == VS_SOURCE_HOST ? NULL : stream_find(p, m->vm);

	(void)s;
	(void)arrival_tsc;
	if (m->kind == NOTE_VM_PAUSED || m->kind == NOTE_VM_RESUMED || m->kind == NOTE_MIGRATION ||
	    m->kind == NOTE_MIGRATION_OVER)
		pause_take(p, m);
	if (guest && m->kind == NOTE_VM_EVENT)
		reboots_note(&guest->reboots, m);
	if (m->kind == NOTE_SIMULATED)
		p->simulated = true;
	if (m->kind == NOTE_IMPORTED)
		p->imported = true;
	/* Live, this ends the guest's stream (pipeline.c). Offline its later events will come. */
	if (guest && (m->kind == NOTE_CHANNEL_DOWN || m->kind == NOTE_VM_GONE))
		guest->channel_down = true;
	if (guest && m->kind == NOTE_CHANNEL_UP)
		guest->channel_down = false;
	if (p->options.note)
		p->options.note(p->options.context, m);
	return 0;
}

/* A pause stops the guest's clock, so what was known of the clock ends here. */
static int learn_note(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_note *m = &p->in.note;

	(void)s;
	(void)arrival_tsc;
	if (m->kind == NOTE_VM_PAUSED || m->kind == NOTE_VM_RESUMED)
		clock_book_break(p->clocks, m->vm, (struct host_tsc){m->host_tsc},
				 m->kind == NOTE_VM_PAUSED);
	if (m->kind == NOTE_IMPORTED && !p->options.live)
		clock_book_imported(p->clocks);
	return 0;
}

static int learn_vm_clock(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)s;
	(void)arrival_tsc;
	return clock_book_vm_clock(p->clocks, &p->in.vm_clock);
}

static int check_vm_clock(const struct pipeline *p, const struct stream *s)
{
	(void)s;
	return p->in.vm_clock.vm == VS_SOURCE_HOST ? -EBADMSG : 0;
}

static int on_exit_summary(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)s;
	(void)arrival_tsc;
	model_exits_counted(pipeline_model(p), &p->in.exit_summary);
	free(p->in.exit_summary.cells);
	p->in.exit_summary.cells = NULL;
	return 0;
}

/* Adds one reading for each vCPU. `reading` holds what the vCPUs have in common. */
static int quotas_add_all(struct quotas *q, struct model *to, const struct message_cpu_quota *m,
			  struct quota_reading *reading)
{
	int err = 0;

	/* The name of the cgroup is needed only if it was throttled. */
	reading->cgroup = 0;
	if (m->throttled_ns)
		err = model_cgroup(to, m->cgroup, m->quota_us, m->period_us, &reading->cgroup);
	for (size_t i = 0; i < m->n_vcpus && !err; i++) {
		reading->vcpu = m->vcpus[i];
		err = quotas_add(q, to, reading);
	}
	return err;
}

static int on_cpu_quota(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_cpu_quota *m = &p->in.cpu_quota;
	struct quota_reading reading = {
		.vm = m->vm,
		.n_vcpus = (uint32_t)m->n_vcpus,
		.throttled_ns = m->throttled_ns > INT64_MAX ? INT64_MAX : (int64_t)m->throttled_ns};
	int err = 0;

	(void)s;
	(void)arrival_tsc;
	if (!clock_book_host_ns(p->clocks, m->from, &reading.from) ||
	    !clock_book_host_ns(p->clocks, m->until, &reading.until))
		return 0;
	err = quotas_add_all(&p->quotas, pipeline_model(p), m, &reading);
	if (!err && p->options.early)
		err = quotas_add_all(&p->early_quotas, p->options.early, m, &reading);
	return err;
}

static int origin_emit(struct model *to, const struct pipeline *p, struct message_task_origin *m)
{
	struct task_origin origin = {.tid = m->tid,
				     .tgid = m->tgid,
				     .vcpu_known = m->vcpu_known,
				     .vcpu = m->vcpu,
				     .claimed = m->claimed,
				     .uid = m->uid};

	if (!clock_book_host_ns(p->clocks, m->seen, &origin.seen) ||
	    !clock_book_host_ns(p->clocks, m->began, &origin.began))
		return 0;
	if (*m->vm)
		origin.vm = m->vm;
	if (model_cgroup(to, m->cgroup, 0, 0, &origin.cgroup))
		return -ENOMEM;
	return model_task_origin_set(to, &origin);
}

/* Passed on at once: the message contains the time from which it holds. */
static int on_task_origins(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	struct model *m = pipeline_model(p);
	int err = 0;

	(void)s;
	(void)arrival_tsc;
	for (size_t i = 0; i < p->in.task_origins.n && !err; i++) {
		err = origin_emit(m, p, &p->in.task_origins.tasks[i]);
		if (!err && p->options.early)
			err = origin_emit(p->options.early, p, &p->in.task_origins.tasks[i]);
	}
	return err;
}

/* Passed on at once: in a stream, an id never changes its meaning. */
static int on_user_events(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	int err =
		user_events_learn(model_user_events(pipeline_model(p)), s->id, &p->in.user_events);

	(void)arrival_tsc;
	if (!err && p->options.early)
		err = user_events_learn(model_user_events(p->options.early), s->id,
					&p->in.user_events);
	return err;
}

static int learn_config_reply(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	(void)arrival_tsc;
	s->handlers_counted |= p->in.config_reply.in_force.level == GUEST_LEVEL_SUMMARY;
	return 0;
}

static int on_config_reply(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	s->config = p->in.config_reply;
	s->config_known = true;
	learn_config_reply(p, s, arrival_tsc);
	return stream_is_host(s) ? 0 : stream_handlers_emit(p, s);
}

/* One row for each kind of frame that the pipeline processes. */
#define IN(message) offsetof(struct pipeline, in.message)
static const struct kind {
	size_t in; /* offset of the unpacked message in struct pipeline */
	/* Returns 0, or -errno if this source must not send this content. NULL: no check. */
	int (*check)(const struct pipeline *p, const struct stream *s);
	/* Processes what the message says about clocks. NULL: nothing. */
	int (*learn)(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
	int (*take)(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
} kinds[FRAME_KIND_LIMIT] = {
	[FRAME_HELLO] = {IN(hello), check_hello, learn_hello, on_hello},
	[FRAME_HEARTBEAT] = {IN(heartbeat), heartbeat_check, heartbeat_learn, heartbeat_take},
	[FRAME_CLOCK_SAMPLE] = {IN(clock_sample), check_sample, learn_sample, NULL},
	[FRAME_KERNEL_LOG] = {IN(kernel_log), NULL, NULL, on_log},
	[FRAME_GUEST_STACK] = {IN(stack), check_guest_stack, NULL, on_guest_stack},
	[FRAME_CONFIG_REPLY] = {IN(config_reply), NULL, learn_config_reply, on_config_reply},
	[FRAME_USER_EVENTS] = {IN(user_events), NULL, NULL, on_user_events},
	[FRAME_VM_INFO] = {IN(vm_info), check_vm_info, learn_vm_info, on_vm_info},
	[FRAME_ECHO_OBSERVATION] = {IN(echo_observation), check_echo, learn_echo, echo_take},
	[FRAME_STACK] = {IN(stack), NULL, NULL, on_stack},
	[FRAME_NOTE] = {IN(note), NULL, learn_note, on_note},
	[FRAME_EXIT_SUMMARY] = {IN(exit_summary), NULL, NULL, on_exit_summary},
	[FRAME_VM_CLOCK] = {IN(vm_clock), check_vm_clock, learn_vm_clock, NULL},
	[FRAME_CPU_QUOTA] = {IN(cpu_quota), NULL, NULL, on_cpu_quota},
	[FRAME_TASK_ORIGINS] = {IN(task_origins), NULL, NULL, on_task_origins},
};

static int unpack(struct pipeline *p, const struct stream *s, uint8_t kind, const uint8_t *payload,
		  size_t len)
{
	const struct kind *k = &kinds[kind];
	int err = message_unpack(frame_kind_row(kind)->message, payload, len, (char *)p + k->in);

	return !err && k->check ? k->check(p, s) : err;
}

bool message_has_clock_facts(uint8_t kind)
{
	return kind < FRAME_KIND_LIMIT && kinds[kind].learn;
}

int message_take(struct pipeline *p, struct stream *s, uint8_t kind, uint64_t arrival_tsc,
		 const uint8_t *payload, size_t len)
{
	const struct kind *k = &kinds[kind < FRAME_KIND_LIMIT ? kind : 0];
	int err;

	if (kind == FRAME_BATCH)
		return batch_take(p, s, arrival_tsc, payload, len);
	if (!frame_kind_senders(kind))
		s->unknown_frames++;
	/* The pipeline ignores echo frames, the recording's end and kinds that it does not know. */
	if (!k->take && !(k->learn && p->options.live))
		return 0;
	err = unpack(p, s, kind, payload, len);
	if (!err && k->learn && p->options.live)
		err = k->learn(p, s, arrival_tsc);
	if (!err && k->take)
		err = k->take(p, s, arrival_tsc);
	return err;
}

int message_learn(struct pipeline *p, struct stream *s, uint8_t kind, uint64_t arrival_tsc,
		  const uint8_t *payload, size_t len)
{
	int err = unpack(p, s, kind, payload, len);

	return err ? err : kinds[kind].learn(p, s, arrival_tsc);
}
