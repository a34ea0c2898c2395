/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes heartbeats and observed echoes: the sender's promise, its counters, and the clocks that
 * it read. Each pair of times whose order is known audits the clock map of its stream.
 */
#include <errno.h>

#include "host-collector/engine/internal.h"

static const int64_t arrival_unseen_ns = 5000000000;

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
	/* If the vCPUs' TSCs differ, another vCPU's event may be later although its stamp is
	 * smaller. */
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

/* Audits the order of two times: the host TSC when something was sent to the guest, and the guest's
 * stamp when the guest received it. */
static void audit_reached(struct pipeline *p, struct stream *s, uint64_t sent_tsc,
			  uint64_t stream_time)
{
	struct host_time received;
	struct host_ns sent;

	if (clock_book_to_ns(p->clocks, s->id, s->boot, stream_time, 0, &received) &&
	    clock_book_host_ns(p->clocks, sent_tsc, &sent))
		audit_order(s, sent, received.t, received.err_ns);
}

/* Passes the guest's steal time on to the model. Leaves out readings that have no place on the
 * timeline. */
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
		const struct handover_fact steal = {
			.kind = HANDOVER_STEAL,
			.steal = {.vm = s->id,
				  .cpu = (uint16_t)m->cpus[i].cpu,
				  .t = read.t,
				  .err_ns = read.err_ns,
				  .steal_ns = m->cpus[i].steal_ns,
				  .unit_ns = m->unit_ns,
				  .clock = m->clock},
		};

		err = m->cpus[i].cpu < VS_CPUS_MAX ? pipeline_give(p, &steal) : -EINVAL;
	}
	return err;
}

/* By how much two steady clocks may differ: a guest may have measured the rate of its TSC badly. */
enum { READING_RATE_PPM = 2500, READING_SLACK_NS = 5000000, READING_EXACT_NS = 10000 };

/* Returns true if the times at which both readings arrived at the host show most of the step, too.
 * The guest itself reports the stamps of its readings. So a guest that sends false stamps makes a
 * step of the stamps only. */
static bool arrivals_show(const struct clock_reading *before, const struct clock_reading *now,
			  int64_t step_ns)
{
	int64_t theirs = (int64_t)(now->raw_ns - before->raw_ns), off;

	if (!before->arrival_known || !now->arrival_known)
		return false;
	off = theirs - (now->arrival.ns - before->arrival.ns) - step_ns;
	return (off < 0 ? -off : off) < (step_ns < 0 ? -step_ns : step_ns) / 2;
}

/* Compares how far the guest's clock and the host's advanced since the previous reading. Passes the
 * reading and the step, if there is one, on to the model. */
static int reading_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_clock_sample *m = &p->in.heartbeat.sample;
	const struct clock_reading before = s->reading;
	struct handover_fact fact = {.kind = HANDOVER_CLOCK, .clock = {.vm = s->id}};
	struct guest_clock_reading *reported = &fact.clock;
	struct host_time t;
	int64_t ours, theirs;
	double may_differ;

	if (!m->raw_ns || !clock_book_to_ns(p->clocks, s->id, s->boot, m->tsc, m->tsc_width, &t))
		return 0;
	s->reading = (struct clock_reading){
		.known = true, .t = t.t, .err_ns = t.err_ns, .raw_ns = m->raw_ns};
	s->reading.arrival_known =
		arrival_tsc && clock_book_host_ns(p->clocks, arrival_tsc, &s->reading.arrival);
	reported->t = t.t;
	ours = t.t.ns - before.t.ns;
	theirs = (int64_t)(m->raw_ns - before.raw_ns);
	may_differ = (double)t.err_ns + (double)before.err_ns +
		     (double)ours * (READING_RATE_PPM / 1e6) + READING_SLACK_NS;
	if (before.known && ((double)(theirs - ours) > may_differ || theirs < 0))
		reported->step_ns = theirs - ours;
	/* A bound from round trips depends on what the guest sends, so it proves nothing here. Such
	 * a bound is never that small. */
	reported->proven = t.err_ns < READING_EXACT_NS && before.err_ns < READING_EXACT_NS &&
			   arrivals_show(&before, &s->reading, reported->step_ns);
	return s->announced ? pipeline_give(p, &fact) : -ENOENT;
}

static uint64_t sum_of(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* Adds to *sum what one class counted since `before`. A sender that started again counts from 0.
 * Returns true if the class has counted since. */
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
		/* The longest may have been before the recording, but it is not longer than all
		 * together. */
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
	return stream_is_host(s) ? 0 : stream_handlers_emit(p, s);
}

int heartbeat_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
{
	const struct message_heartbeat *m = &p->in.heartbeat;
	int err = clock_book_knows(p->clocks, s->id, s->boot) ? stream_join(p, s) : 0;

	/* A sender that started again counts from 0. What it missed before the collector connected
	 * is not counted. */
	if (m->missed < s->missed_before)
		s->missed_before = 0;
	if (s->missed_known)
		s->missed += m->missed - s->missed_before;
	s->missed_before = m->missed;
	s->missed_known = true;
	if (!err)
		err = aggregated_take(p, s);
	if (!err && m->watchdog && !stream_is_host(s) && s->announced)
		err = pipeline_give(p,
				    &(struct handover_fact){.kind = HANDOVER_WATCHDOG,
							    .watchdog = {s->id, m->watchdog - 1}});
	if (!err)
		err = batches_missed(p, s, m->time, m->emitted);
	stream_audit(p, s, m->time, arrival_tsc);
	promise(p, s, m->time, arrival_tsc);
	if (!err && !stream_is_host(s))
		err = reading_take(p, s, arrival_tsc);
	return err ? err : steal_take(p, s, arrival_tsc);
}

/* If the agent's owner made it count handlers, no reply shows that, so a count that grows does.
 * That it counted at some time before proves nothing. */
static void aggregated_learn(struct stream *s, const struct message_aggregated *aggregated)
{
	uint64_t count = 0;

	for (size_t i = 0; i < EVENT_CLASSES; i++)
		count = sum_of(count, aggregated[i].count);
	s->handlers_counted |= s->aggregated_learned && count > s->aggregated_count;
	s->aggregated_learned = true;
	s->aggregated_count = count;
}

int heartbeat_learn(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
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

int heartbeat_check(const struct pipeline *p, const struct stream *s)
{
	(void)s;
	return clock_sample_in_range(&p->in.heartbeat.sample) ? 0 : -ERANGE;
}

int echo_take(struct pipeline *p, struct stream *s, uint64_t arrival_tsc)
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
