/* SPDX-License-Identifier: GPL-2.0-only */
#include <stdlib.h>
#include <string.h>

#include "host-collector/analyze/stall/describe.h"
#include "host-collector/analyze/stall/verdict_parts.h"

/* Adds ns to a culprit, or a new one. Returns it; NULL if the list has larger ones only. */
static struct report_culprit *culprit_add(struct incident *out, const struct model *m,
					  uint32_t source, int32_t pid, enum culprit_role role,
					  int64_t ns)
{
	struct report_culprit c = {
		.host = source == VS_SOURCE_HOST, .pid = pid, .role = role, .share_ns = ns};
	size_t at;

	for (size_t i = 0; i < out->n_culprits; i++) {
		struct report_culprit *same = &out->culprits[i];

		if (same->host == c.host && same->pid == pid && same->role == role) {
			c.share_ns += same->share_ns;
			memmove(same, same + 1, (--out->n_culprits - i) * sizeof(*same));
			break;
		}
	}
	describe(c.comm, sizeof(c.comm), "%s", model_task_name(m, source, pid));
	if (out->n_culprits == REPORT_CULPRITS_MAX) {
		if (out->culprits[REPORT_CULPRITS_MAX - 1].share_ns >= c.share_ns)
			return NULL;
		out->n_culprits--;
	}
	for (at = out->n_culprits++; at > 0 && out->culprits[at - 1].share_ns < c.share_ns; at--)
		out->culprits[at] = out->culprits[at - 1];
	out->culprits[at] = c;
	return &out->culprits[at];
}

static int64_t span_ns(const struct vcpu_span *s)
{
	return s->end.ns - s->begin.ns;
}

void culprits_senders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_STOPPED && s->signal_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->signal_pid, CULPRIT_SENT_STOP_SIGNAL,
				    span_ns(s));
		else if (s->state == VCPU_STOPPED && s->asker_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->asker_pid, CULPRIT_WROTE_TO_MONITOR,
				    span_ns(s));
		else if (s->state == VCPU_STOPPED && s->task_state & VS_TASK_TRACED && s->waker_pid)
			/* A traced thread is woken by its tracer only. */
			culprit_add(out, m, VS_SOURCE_HOST, s->waker_pid, CULPRIT_TRACED,
				    span_ns(s));
	}
}

/* "batch-job-12" and "batch-job-7" are of one kind; so are "make" and "make". */
static size_t stem_length(const char *comm)
{
	size_t len = strlen(comm);

	while (len && strchr("0123456789", comm[len - 1]))
		len--;
	while (len && strchr("-_.:/#", comm[len - 1]))
		len--;
	return len ? len : strlen(comm);
}

static bool same_kind(const char *a, const char *b)
{
	size_t len = stem_length(a);

	/* Threads with this name are vCPUs, usually each of another VM. */
	if (strstr(a, "/KVM"))
		return false;
	return *a && len == stem_length(b) && !strncmp(a, b, len);
}

enum {
	NAMED_SHARE = 50
}; /* a task with less than a 50th of the time is part of "all other tasks" */

/* All tasks of one kind, or of one cgroup. */
struct crowd {
	int32_t pid; /* the task with the largest share */
	int64_t most_ns;
	unsigned n;
	int64_t ns;
	uint32_t cgroup; /* what all of them have in common; 0: unknown, or different */
};

/* Adds a holder to `c`. fresh: `c` is empty. */
static void crowd_take(struct crowd *c, bool fresh, const struct facts_holder *h, uint32_t cgroup)
{
	if (fresh)
		*c = (struct crowd){.cgroup = cgroup};
	if (c->cgroup != cgroup)
		c->cgroup = 0;
	if (h->ns > c->most_ns) {
		c->pid = h->pid;
		c->most_ns = h->ns;
	}
	c->n++;
	c->ns += h->ns;
}

/* Returns 0 also for a task in the root cgroup. */
static uint32_t cgroup_of(const struct stall_facts *f, const struct model *m, int32_t pid)
{
	const struct task_origin *origin = model_task_origin(m, pid, f->end);
	const struct cgroup *cgroup = model_cgroup_of(m, origin ? origin->cgroup : 0);

	return cgroup && strcmp(cgroup->path, "/") != 0 ? origin->cgroup : 0;
}

static int crowd_order(const void *a, const void *b)
{
	const struct crowd *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* Groups the holders by kind, or by cgroup as far as their cgroups are known; largest share first.
 * Returns the number of groups. */
static unsigned crowds_make(const struct stall_facts *f, const struct model *m, bool by_cgroup,
			    struct crowd crowds[FACTS_HOLDERS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n_holders; i++) {
		const struct facts_holder *h = &f->holders[i];
		const uint32_t cgroup = cgroup_of(f, m, h->pid);
		char comm[16];
		unsigned k = 0;

		if (by_cgroup && !cgroup)
			continue;
		describe(comm, sizeof(comm), "%s", model_task_name(m, VS_SOURCE_HOST, h->pid));
		while (k < n && !(by_cgroup ? crowds[k].cgroup == cgroup
					    : same_kind(comm, model_task_name(m, VS_SOURCE_HOST,
									      crowds[k].pid))))
			k++;
		n += k == n;
		crowd_take(&crowds[k], !crowds[k].n, h, cgroup);
	}
	qsort(crowds, n, sizeof(*crowds), crowd_order);
	return n;
}

static void crowd_describe(const struct stall_facts *f, const struct crowd *c,
			   const struct model *m, struct incident *out)
{
	const struct cgroup *cgroup = model_cgroup_of(m, c->cgroup);
	int32_t process = model_task_process(m, VS_SOURCE_HOST, c->pid);

	struct report_culprit *x =
		culprit_add(out, m, VS_SOURCE_HOST, c->pid, CULPRIT_HELD_PCPU, c->ns);

	if (!x)
		return;
	x->n_tasks = c->n;
	if (cgroup)
		describe(x->cgroup, sizeof(x->cgroup), "%s", cgroup->path);
	model_thread_vm(m, c->pid, f->end, &x->vm);
	if (process && process != c->pid)
		x->process = finding_task(m, VS_SOURCE_HOST, process);
}

static void groups_fill(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct crowd crowds[FACTS_HOLDERS] = {0};
	unsigned n = crowds_make(f, m, true, crowds);

	out->n_groups = 0;
	for (unsigned k = 0; k < n && out->n_groups < REPORT_GROUPS_MAX; k++) {
		struct report_group *g = &out->groups[out->n_groups];
		const struct cgroup *cgroup = model_cgroup_of(m, crowds[k].cgroup);

		if (crowds[k].ns < f->pcpu_busy_ns / NAMED_SHARE)
			break;
		out->n_groups++;
		*g = (struct report_group){.n_tasks = crowds[k].n, .share_ns = crowds[k].ns};
		if (cgroup)
			describe(g->cgroup, sizeof(g->cgroup), "%s", cgroup->path);
	}
}

/* Adds the share of all tasks that are not named, if it is at least a tenth of the whole. */
static void others_add(const struct stall_facts *f, struct incident *out)
{
	struct report_culprit *others;
	int64_t left = f->pcpu_busy_ns;

	for (size_t i = 0; i < out->n_culprits; i++) {
		if (out->culprits[i].role == CULPRIT_HELD_PCPU)
			left -= out->culprits[i].share_ns;
	}
	if (left * 10 <= f->pcpu_busy_ns)
		return;
	if (out->n_culprits == REPORT_CULPRITS_MAX) {
		others = &out->culprits[--out->n_culprits];
		left += others->role == CULPRIT_HELD_PCPU ? others->share_ns : 0;
	}
	others = &out->culprits[out->n_culprits++];
	*others =
		(struct report_culprit){.host = true, .role = CULPRIT_HELD_PCPU, .share_ns = left};
}

/* Adds the tasks that held the pCPU: one culprit for each kind, their shares by cgroup, and the
 * share of all tasks that are not named. */
void culprits_holders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct crowd crowds[FACTS_HOLDERS] = {0};
	unsigned n = crowds_make(f, m, false, crowds);

	for (unsigned k = n; k-- > 0;) {
		if (!k || crowds[k].ns >= f->pcpu_busy_ns / NAMED_SHARE)
			crowd_describe(f, &crowds[k], m, out);
	}
	if (n)
		others_add(f, out);
	groups_fill(f, m, out);
}

bool culprits_largest(const struct stall_facts *f, const struct model *m, bool by_cgroup,
		      struct culprits_sum *out)
{
	struct crowd crowds[FACTS_HOLDERS] = {0};
	unsigned n = crowds_make(f, m, by_cgroup, crowds);

	if (!n)
		return false;
	*out = (struct culprits_sum){.pid = crowds[0].pid,
				     .n = crowds[0].n,
				     .ns = crowds[0].ns,
				     .most_ns = crowds[0].most_ns,
				     .cgroup = crowds[0].cgroup};
	return true;
}

static void wakers_of(const struct stall_facts *f, const struct model *m, enum wait_class class,
		      enum culprit_role role, struct incident *out)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_BLOCKED && s->wait_class == class && s->waker_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->waker_pid, role, span_ns(s));
	}
}

void culprits_lock_holders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	/* The task that wakes a waiter has just released the lock. */
	wakers_of(f, m, WAIT_VMM_LOCK, CULPRIT_HELD_BIG_LOCK, out);
}

void culprits_page_providers(const struct stall_facts *f, const struct model *m,
			     struct incident *out)
{
	wakers_of(f, m, WAIT_USERFAULT, CULPRIT_PROVIDED_PAGE, out);
}

static void peer_holder(const struct facts_peer *peer, const struct model *m, int64_t ns,
			struct incident *out)
{
	static const enum culprit_role roles[KEEPER_COUNT] = {
#define X(NAME, ROLE) [KEEPER_##NAME] = CULPRIT_##ROLE,
		KEEPERS(X)
#undef X
	};

	if (peer->pid)
		culprit_add(out, m, VS_SOURCE_HOST, peer->pid, roles[peer->keeper], ns);
}

/* The guest task that held what this one waited for, if it is known. */
static void guest_peer(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const struct facts_guest_peer *p = &f->guest_peer;
	struct report_culprit *c;

	if (!p->known)
		return;
	c = culprit_add(out, m, f->vm, p->pid,
			p->kind == GUEST_CPU_TASK ? CULPRIT_KEPT_PEER_CPU
						  : CULPRIT_INTERRUPTED_ON_PEER,
			p->ns);
	if (c)
		c->cpu = p->cpu;
}

void culprits_of_lock_owner(const struct stall_facts *f, const struct model *m,
			    struct incident *out)
{
	peer_holder(&f->waits.lock_owner, m, f->waits.lock_ns, out);
}

void culprits_of_call_target(const struct stall_facts *f, const struct model *m,
			     struct incident *out)
{
	peer_holder(&f->waits.call_target, m, f->waits.call_ns, out);
}

void culprits_guest_task(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	guest_peer(f, m, out);
	if ((!f->guest_peer.known || f->guest_peer.unsure) && f->kind != GUEST_CPU_IDLE)
		culprit_add(out, m, f->vm, f->pid,
			    f->kind == GUEST_CPU_TASK ? CULPRIT_KEPT_CPU : CULPRIT_INTERRUPTED,
			    facts_denied_by_guest(f));
	if (spin_may_be_wait(f))
		peer_holder(&f->waits.peer_kept, m, f->waits.peer_surely_kept_ns, out);
}
