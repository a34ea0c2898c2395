// SPDX-License-Identifier: GPL-2.0-only
#include "host-collector/simulate/jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proto/array.h"

enum { JOB_ISSUE = 1, JOB_DONE = 2 };
enum { JOB_AGAIN_NS = 50000 }; /* the guest does not run: later */

static void describe(struct sim_jobs *j, struct sim_capture *c, uint32_t id, const char *name)
{
	struct message_user_events *m = calloc(1, sizeof(*m));

	if (!m) {
		j->engine->error = -ENOMEM;
		return;
	}
	m->n = 1;
	m->events[0] = (struct message_user_event){
		.id = id,
		.kind = USER_TRACEPOINT,
		.system = "jobs",
		.n_fields = 2,
		.fields = {{"job", USER_UNSIGNED, 8}, {"slot", USER_UNSIGNED, 4}},
	};
	snprintf(m->events[0].name, sizeof(m->events[0].name), "%s", name);
	snprintf(m->events[0].spec, sizeof(m->events[0].spec), "jobs:%s", name);
	sim_capture_message(c, FRAME_USER_EVENTS, message_user_events_pack(m, &c->payload));
	free(m);
}

static bool emit(struct sim_capture *c, uint16_t cpu, uint32_t id, int32_t tid,
		 const struct job_slot *s)
{
	struct vs_event e = {.type = VS_EVENT_USER, .pid = tid};

	ev_set_user_id(&e, id);
	ev_set_user_first(&e, s->job);
	ev_set_user_second(&e, s->slot);
	return sim_capture_event(c, cpu, e);
}

static struct sim_job *job_new(struct sim_jobs *j)
{
	if (ARRAY_RESERVE(&j->done, j->n, &j->capacity, 1024)) {
		j->engine->error = -ENOMEM;
		return NULL;
	}
	return &j->done[j->n++];
}

static void issue(void *object, uint64_t argument);

static void finish(void *object, uint64_t argument)
{
	struct job_slot *s = object;
	struct sim_jobs *j = s->jobs;
	const uint32_t vcpu = s->slot % j->n_vcpus;

	(void)argument;
	if (!vcpu_sim_in_guest(&j->vcpus[vcpu])) {
		engine_at(j->engine, j->engine->now + JOB_AGAIN_NS, finish, s, 0);
		return;
	}
	j->done[s->job].end = j->engine->now;
	j->done[s->job].done_delivered = emit(j->guest, (uint16_t)vcpu, JOB_DONE, 0, s);
	engine_at(j->engine, j->engine->now + engine_between(j->engine, 300000, 1500000), issue, s,
		  0);
}

static void issue(void *object, uint64_t argument)
{
	struct job_slot *s = object;
	struct sim_jobs *j = s->jobs;
	const uint16_t cpu = (uint16_t)engine_between(j->engine, 0, j->host->o.n_cpus - 1);
	struct sim_job *job = job_new(j);

	(void)argument;
	if (!job)
		return;
	s->job = j->n - 1;
	*job = (struct sim_job){.begin = j->engine->now, .slot = s->slot};
	job->issue_delivered = emit(j->host, cpu, JOB_ISSUE, j->tid, s);
	engine_at(j->engine, j->engine->now + engine_between(j->engine, 5000, 400000), finish, s,
		  0);
}

void jobs_init(struct sim_jobs *j, struct engine *e, struct sim_capture *host,
	       struct sim_capture *guest, struct sim_vcpu *vcpus, uint32_t n_vcpus, int32_t tid)
{
	*j = (struct sim_jobs){.engine = e,
			       .host = host,
			       .guest = guest,
			       .vcpus = vcpus,
			       .n_vcpus = n_vcpus,
			       .tid = tid};
	describe(j, host, JOB_ISSUE, "job_issue");
	describe(j, guest, JOB_DONE, "job_done");
	for (uint32_t i = 0; i < JOB_SLOTS; i++) {
		j->slots[i] = (struct job_slot){.jobs = j, .slot = i};
		engine_at(e, engine_between(e, 100000000, 102000000), issue, &j->slots[i], 0);
	}
}

void jobs_fini(struct sim_jobs *j)
{
	free(j->done);
}
