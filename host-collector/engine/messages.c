/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes each kind of frame: the table `kinds` has one row per kind. A kind that only the host
 * side may send (frame_kind_senders) is accepted only from source 0.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/engine/internal.h"

static const int64_t arrival_unseen_ns = 5000000000;

static int models_vm(struct pipeline *p, const struct message_vm_info *info)
{
	int err = model_vm(pipeline_model(p), info);

	if (!err && p->options.early)
		err = model_vm(p->options.early, info);
	return err;
}

/* A guest without a VM_INFO (the host's stream is missing) gets a name too. */
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

/* Before its events, if that was learned. */
static int handlers_emit(struct pipeline *p, struct stream *s)
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
	s->reading.known = false; /* its machine may have booted since */
	s->channel_down = false;
	s->greeted_ns = s->promised_ns;
	/* From now on it is waited for: its first events may be old when its clock is known. */
	if (p->options.live)
		err = stream_join(p, s);
	if (stream_is_host(s)) {
		p->hold_ticks = m->clock_hz / 1000 * HOLD_MS;
		return err;
	}
	if (continuity_hello(&s->continuity, s->session_id, m->boot_id) && !err) {
		s->anew_session = s->session_id; /* all CPUs end now */
		err = stream_reboot(p, s, arrival_tsc);
	}
	s->boot = s->continuity.boots.current;
	if (!err)
		err = stream_announce(p, s);
	if (!err)
		err = handlers_emit(p, s);
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

int64_t stream_latest_ns(const struct pipeline *p, const struct stream *s, uint64_t arrival_tsc)
{
	/* An arrival of 0: the time is unknown, but it was soon after the previous frame. */
	uint64_t tsc = arrival_tsc ? arrival_tsc : p->last_tsc;
	struct host_ns arrival;

	if (stream_is_host(s) || !clock_book_host_ns(p->clocks, tsc, &arrival))
		return INT64_MAX;
	return arrival_tsc ? arrival.ns : arrival.ns + arrival_unseen_ns;
}

static void promise(struct pipeline *p, struct stream *s, uint64_t stream_time,
		    uint64_t arrival_tsc)
{
	int64_t limit = stream_latest_ns(p, s, arrival_tsc);
	struct host_time until;

	if (!clock_book_to_ns(p->clocks, s->id, s->boot, stream_time, 0, &until)) {
		s->malformed += clock_book_knows(p->clocks, s->id, s->boot); /* out of range */
		return;
	}
	/* Of vCPUs whose TSCs are apart, another one's stamp may be smaller and later. */
	if (!stream_is_host(s))
		until.t.ns -= (int64_t)clock_book_apart_ns(p->clocks, s->id);
	if (until.t.ns > limit)
		until.t.ns = limit;
	if (until.t.ns > s->promised_ns)
		s->promised_ns = until.t.ns;
	timeline_promise(p->timeline, s->id, until.t);
	if (p->early && stream_is_host(s))
		timeline_promise(p->early, s->id, until.t);
}

/* `earlier` cannot be later than `later` by more than `err_ns`. If it is, the map is wrong. */
static void audit_order(struct stream *s, struct host_ns earlier, struct host_ns later,
			uint64_t err_ns)
{
	const bool violated =
		earlier.ns > later.ns && (uint64_t)earlier.ns - (uint64_t)later.ns > err_ns;

	s->pairs++;
	s->violations += violated;
	audit_add(&s->audit, violated, AUDIT_WINDOW);
}

void stream_audit(struct pipeline *p, struct stream *s, uint64_t stream_time, uint64_t arrival_tsc)
{
	struct host_time sent;
	struct host_ns arrival;

	if (arrival_tsc && !stream_is_host(s) &&
	    clock_book_to_ns(p->clocks, s->id, s->boot, stream_time, 0, &sent) &&
	    clock_book_host_ns(p->clocks, arrival_tsc, &arrival))
		audit_order(s, sent.t, arrival, sent.err_ns);
}

/* The host TSC when something was sent, and the guest's stamp when it had it. */
static void audit_reached(struct pipeline *p, struct stream *s, uint64_t sent_tsc,
			  uint64_t stream_time)
{
	struct host_time received;
	struct host_ns sent;

	if (clock_book_to_ns(p->clocks, s->id, s->boot, stream_time, 0, &received) &&
	    clock_book_host_ns(p->clocks, sent_tsc, &sent))
		audit_order(s, sent, received.t, received.err_ns);
}

/* Places the steal time that the guest's kernel accounts on the timeline. Readings that cannot
 * be placed are left out. */
static int steal_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_steal *m = &p->in.heartbeat.steal;
	int64_t limit = stream_latest_ns(p, s, arrival_tsc);
	struct host_time read;
	int err = 0;

	if (!m->known || stream_is_host(s) ||
	    !clock_book_to_ns(p->clocks, s->id, s->boot, m->time, m->err, &read) ||
	    read.t.ns > limit)
		return 0;
	err = stream_announce(p, s);
	for (size_t i = 0; i < m->n_cpus && !err; i++) {
		const struct guest_steal steal = {
			.vm = s->id,
			.cpu = (uint16_t)m->cpus[i].cpu,
			.t = read.t,
			.err_ns = read.err_ns,
			.steal_ns = m->cpus[i].steal_ns,
			.unit_ns = m->unit_ns,
			.clock = m->clock,
		};

		err = model_guest_steal(pipeline_model(p), &steal);
	}
	return err;
}

/* Clocks that go at a steady rate may differ by so much: a guest that measured its own badly. */
enum { READING_RATE_PPM = 2500, READING_SLACK_NS = 5000000, READING_EXACT_NS = 10000 };

/* Whether the host's word of when both readings arrived shows most of the step, too. The stamp of a
 * reading is the guest's own word, whatever converts it: a guest that sends false stamps makes a
 * step of the stamps alone. */
static bool arrivals_show(const struct clock_reading *before, const struct clock_reading *now,
			  int64_t step_ns)
{
	int64_t theirs = (int64_t)(now->raw_ns - before->raw_ns), off;

	if (!before->arrival_known || !now->arrival_known)
		return false;
	off = theirs - (now->arrival.ns - before->arrival.ns) - step_ns;
	return (off < 0 ? -off : off) < (step_ns < 0 ? -step_ns : step_ns) / 2;
}

/* The time that the guest's kernel reports must advance as the host's does. */
static int reading_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_clock_sample *m = &p->in.heartbeat.sample;
	const struct clock_reading before = s->reading;
	struct guest_clock_reading reported = {.vm = s->id};
	struct host_time t;
	int64_t ours, theirs;
	double may_differ;

	if (!m->raw_ns || !clock_book_to_ns(p->clocks, s->id, s->boot, m->tsc, m->tsc_width, &t))
		return 0;
	s->reading = (struct clock_reading){
		.known = true, .t = t.t, .err_ns = t.err_ns, .raw_ns = m->raw_ns};
	s->reading.arrival_known =
		arrival_tsc && clock_book_host_ns(p->clocks, arrival_tsc, &s->reading.arrival);
	reported.t = t.t;
	ours = t.t.ns - before.t.ns;
	theirs = (int64_t)(m->raw_ns - before.raw_ns);
	may_differ = (double)t.err_ns + (double)before.err_ns +
		     (double)ours * (READING_RATE_PPM / 1e6) + READING_SLACK_NS;
	if (before.known && ((double)(theirs - ours) > may_differ || theirs < 0))
		reported.step_ns = theirs - ours;
	/* Round trips depend on what the guest sends, as its clock does. Their bound is never
	 * that small. */
	reported.proven = t.err_ns < READING_EXACT_NS && before.err_ns < READING_EXACT_NS &&
			  arrivals_show(&before, &s->reading, reported.step_ns);
	return model_guest_clock(pipeline_model(p), &reported);
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Totals of one class; a sender that began anew counts from 0. Whether it has counted since. */
static bool aggregated_add(struct message_aggregated *sum, struct message_aggregated *before,
			   const struct message_aggregated *now, bool known)
{
	bool grew;

	if (now->count < before->count || now->total_ns < before->total_ns)
		*before = (struct message_aggregated){0};
	grew = known && now->count > before->count;
	if (grew) {
		sum->count = sum_of(sum->count, now->count - before->count);
		sum->total_ns = sum_of(sum->total_ns, now->total_ns - before->total_ns);
		/* It may have been before we listened, but none is longer than all of them. */
		sum->max_ns = now->max_ns > sum->max_ns ? now->max_ns : sum->max_ns;
		if (sum->max_ns > sum->total_ns)
			sum->max_ns = sum->total_ns;
	}
	*before = *now;
	return grew;
}

static int aggregated_take(struct pipeline *p, struct stream *s)
{
	const struct message_heartbeat *m = &p->in.heartbeat;

	for (size_t i = 0; i < EVENT_CLASSES; i++)
		s->handlers_counted |= aggregated_add(&s->aggregated[i], &s->aggregated_before[i],
						      &m->aggregated[i], s->aggregated_known);
	s->aggregated_known = true;
	return stream_is_host(s) ? 0 : handlers_emit(p, s);
}

static int on_heartbeat(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_heartbeat *m = &p->in.heartbeat;
	int err = clock_book_knows(p->clocks, s->id, s->boot) ? stream_join(p, s) : 0;

	/* A sender that began anew counts from 0; what it missed before we listened is not ours. */
	if (m->missed < s->missed_before)
		s->missed_before = 0;
	if (s->missed_known)
		s->missed += m->missed - s->missed_before;
	s->missed_before = m->missed;
	s->missed_known = true;
	if (!err)
		err = aggregated_take(p, s);
	if (!err && m->watchdog && !stream_is_host(s) && s->announced)
		err = model_guest_watchdog(pipeline_model(p), s->id, m->watchdog - 1);
	if (!err)
		err = batches_missed(p, s, m->time, m->emitted);
	stream_audit(p, s, m->time, arrival_tsc);
	promise(p, s, m->time, arrival_tsc);
	if (!err && !stream_is_host(s))
		err = reading_take(p, s, arrival_tsc);
	return err ? err : steal_take(p, s, arrival_tsc);
}

/* Of an agent that counts by its owner's request no reply tells. What it counted at some time
 * before is no sign that it does now. */
static void aggregated_learn(struct stream *s, const struct message_aggregated *aggregated)
{
	uint64_t count = 0;

	for (size_t i = 0; i < EVENT_CLASSES; i++)
		count = sum_of(count, aggregated[i].count);
	s->handlers_counted |= s->aggregated_learned && count > s->aggregated_count;
	s->aggregated_learned = true;
	s->aggregated_count = count;
}

static int learn_heartbeat(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_heartbeat *m = &p->in.heartbeat;
	int err;

	if (stream_is_host(s))
		return clock_book_host_sample(p->clocks, &m->sample);
	aggregated_learn(s, m->aggregated);
	err = arrival_tsc
		      ? clock_book_arrival(p->clocks, s->id, s->learn_boot, m->time, arrival_tsc)
		      : 0;
	if (!err && m->pvclock.known)
		err = clock_book_guest_page(p->clocks, s->id, &m->pvclock);
	return err ? err : clock_book_dmesg(p->clocks, s->id, s->learn_boot, &m->dmesg);
}

static int check_heartbeat(const struct pipeline *p, const struct stream *s)
{
	(void)s;
	return clock_sample_in_range(&p->in.heartbeat.sample) ? 0 : -ERANGE;
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

static int on_echo(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_echo_observation *m = &p->in.echo_observation;
	struct stream *guest;
	int err = stream_get(p, m->vm, &guest);

	(void)s;
	(void)arrival_tsc;
	if (err || !guest)
		return err;
	guest->boot = guest->continuity.boots.current;
	audit_reached(p, guest, m->host_sent, m->guest_received);
	stream_audit(p, guest, m->guest_sent, m->host_received);
	return 0;
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

/* An agent that starts again reads its kernel's log from the beginning. */
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
	/* It is sent when the capture follows all threads that it names. */
	if (!err && arrival_tsc && clock_book_host_ns(p->clocks, arrival_tsc, &followed)) {
		model_vm_followed(pipeline_model(p), m->vm, followed);
		if (p->options.early)
			model_vm_followed(p->options.early, m->vm, followed);
	}
	return err;
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
	/* Live, its half ends there (pipeline.c); offline its later events are known to come. */
	if (guest && (m->kind == NOTE_CHANNEL_DOWN || m->kind == NOTE_VM_GONE))
		guest->channel_down = true;
	if (guest && m->kind == NOTE_CHANNEL_UP)
		guest->channel_down = false;
	if (p->options.note)
		p->options.note(p->options.context, m);
	return 0;
}

/* The guest's clock stands still while it is paused: what was known of it ends here. */
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

/* One reading for each vCPU. `reading`: what they share. */
static int quotas_add_all(struct quotas *q, struct model *to, const struct message_cpu_quota *m,
			  struct quota_reading *reading)
{
	int err = 0;

	/* Only a reading that says something has a use for the name. */
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

static int origin_emit(struct model *to, const struct pipeline *p,
		       const struct message_task_origin *m)
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
	memcpy(origin.vm, m->vm, sizeof(origin.vm));
	if (model_cgroup(to, m->cgroup, 0, 0, &origin.cgroup))
		return -ENOMEM;
	return model_task_origin_set(to, &origin);
}

/* At once: it says when it holds. */
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

/* At once: an id has one meaning in a stream. */
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
	return stream_is_host(s) ? 0 : handlers_emit(p, s);
}

/* A row for each kind that says something to the pipeline. */
#define IN(message) offsetof(struct pipeline, in.message)
static const struct kind {
	size_t in; /* offset of the unpacked message in struct pipeline */
	/* Returns 0, or -errno for what this source must not send; NULL: all is well. */
	int (*check)(const struct pipeline *p, const struct stream *s);
	/* Processes what the message says about clocks. */
	int (*learn)(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
	int (*take)(struct pipeline *p, struct stream *s, uint64_t arrival_tsc);
} kinds[FRAME_KIND_LIMIT] = {
	[FRAME_HELLO] = {IN(hello), check_hello, learn_hello, on_hello},
	[FRAME_HEARTBEAT] = {IN(heartbeat), check_heartbeat, learn_heartbeat, on_heartbeat},
	[FRAME_CLOCK_SAMPLE] = {IN(clock_sample), check_sample, learn_sample, NULL},
	[FRAME_KERNEL_LOG] = {IN(kernel_log), NULL, NULL, on_log},
	[FRAME_GUEST_STACK] = {IN(stack), check_guest_stack, NULL, on_guest_stack},
	[FRAME_CONFIG_REPLY] = {IN(config_reply), NULL, learn_config_reply, on_config_reply},
	[FRAME_USER_EVENTS] = {IN(user_events), NULL, NULL, on_user_events},
	[FRAME_VM_INFO] = {IN(vm_info), check_vm_info, NULL, on_vm_info},
	[FRAME_ECHO_OBSERVATION] = {IN(echo_observation), check_echo, learn_echo, on_echo},
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
	/* Echo frames and the recording's end say nothing to us; nor do kinds of a newer peer. */
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
