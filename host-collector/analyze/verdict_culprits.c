/* SPDX-License-Identifier: GPL-2.0-only */
#include <string.h>

#include "host-collector/analyze/describe.h"
#include "host-collector/analyze/verdict_parts.h"

static void culprit_add(struct incident *out, const struct model *m, uint32_t source, int32_t pid,
			const char *role, int64_t ns)
{
	struct report_culprit c = {.host = source == VS_SOURCE_HOST, .pid = pid, .share_ns = ns};
	size_t at;

	for (size_t i = 0; i < out->n_culprits; i++) {
		struct report_culprit *same = &out->culprits[i];

		if (same->host == c.host && same->pid == pid && strcmp(same->role, role) == 0) {
			c.share_ns += same->share_ns;
			memmove(same, same + 1, (--out->n_culprits - i) * sizeof(*same));
			break;
		}
	}
	describe(c.comm, sizeof(c.comm), "%s", model_task_name(m, source, pid));
	describe(c.role, sizeof(c.role), "%s", role);
	if (out->n_culprits == REPORT_CULPRITS_MAX) {
		if (out->culprits[REPORT_CULPRITS_MAX - 1].share_ns >= c.share_ns)
			return;
		out->n_culprits--;
	}
	for (at = out->n_culprits++; at > 0 && out->culprits[at - 1].share_ns < c.share_ns; at--)
		out->culprits[at] = out->culprits[at - 1];
	out->culprits[at] = c;
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
			culprit_add(out, m, VS_SOURCE_HOST, s->signal_pid, "sent the stop signal",
				    span_ns(s));
		else if (s->state == VCPU_STOPPED && s->asker_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->asker_pid, "wrote to QEMU's monitor",
				    span_ns(s));
		else if (s->state == VCPU_STOPPED && s->task_state & VS_TASK_TRACED && s->waker_pid)
			/* Nobody but its tracer wakes who is traced. */
			culprit_add(out, m, VS_SOURCE_HOST, s->waker_pid, "traced the vCPU thread",
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

	/* Threads of this name are vCPUs, and each is somebody else's. */
	if (strstr(a, "/KVM"))
		return false;
	return *a && len == stem_length(b) && !strncmp(a, b, len);
}

struct crowd {       /* tasks of one kind */
	int32_t pid; /* the first, who had most */
	unsigned n;
	int64_t ns;
};

static void crowd_add(const struct crowd *c, const struct model *m, struct incident *out)
{
	int32_t process = model_task_process(m, VS_SOURCE_HOST, c->pid);
	uint32_t vm, vcpu;

	culprit_add(out, m, VS_SOURCE_HOST, c->pid, "held the pCPU", c->ns);
	for (size_t i = 0; i < out->n_culprits; i++) {
		struct report_culprit *x = &out->culprits[i];

		if (!x->host || x->pid != c->pid || strcmp(x->role, "held the pCPU") != 0)
			continue;
		if (!model_vcpu_of_thread(m, c->pid, &vm, &vcpu))
			describe(x->what, sizeof(x->what), "vCPU %u of VM %s", vcpu,
				 model_vm_name(m, vm));
		else if (c->n > 1)
			describe(x->what, sizeof(x->what), "%u tasks of such names", c->n);
		else if (process && process != c->pid)
			describe(x->what, sizeof(x->what), "of process %d (%s)", process,
				 model_task_name(m, VS_SOURCE_HOST, process));
	}
}

/* The tasks that had the pCPU, those of one kind as one; and what all of them together had beyond
 * those that were kept by themselves. */
void culprits_holders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	struct crowd crowds[FACTS_HOLDERS];
	unsigned n = 0;
	int64_t named = 0;

	for (unsigned i = 0; i < f->n_holders; i++) {
		const struct facts_holder *h = &f->holders[i];
		char comm[16];
		unsigned k = 0;

		describe(comm, sizeof(comm), "%s", model_task_name(m, VS_SOURCE_HOST, h->pid));
		while (k < n && !same_kind(comm, model_task_name(m, VS_SOURCE_HOST, crowds[k].pid)))
			k++;
		if (k == n)
			crowds[n++] = (struct crowd){.pid = h->pid};
		crowds[k].n++;
		crowds[k].ns += h->ns;
		named += h->ns;
	}
	for (unsigned k = 0; k < n; k++)
		crowd_add(&crowds[k], m, out);
	if (n && (f->pcpu_busy_ns - named) * 5 > f->pcpu_busy_ns &&
	    out->n_culprits < REPORT_CULPRITS_MAX)
		out->culprits[out->n_culprits++] =
			(struct report_culprit){.host = true,
						.role = "held the pCPU",
						.what = "all other tasks",
						.share_ns = f->pcpu_busy_ns - named};
}

static void wakers_of(const struct stall_facts *f, const struct model *m, enum wait_class class,
		      const char *role, struct incident *out)
{
	for (unsigned i = 0; i < f->n_spans; i++) {
		const struct vcpu_span *s = &f->spans[i];

		if (s->state == VCPU_BLOCKED && s->wait_class == class && s->waker_pid)
			culprit_add(out, m, VS_SOURCE_HOST, s->waker_pid, role, span_ns(s));
	}
}

void culprits_lock_holders(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	/* Who wakes a waiter of a lock has just released it. */
	wakers_of(f, m, WAIT_VMM_LOCK, "held QEMU's big lock", out);
}

void culprits_page_providers(const struct stall_facts *f, const struct model *m,
			     struct incident *out)
{
	wakers_of(f, m, WAIT_USERFAULT, "provided the page", out);
}

static void peer_holder(const struct facts_peer *peer, const struct model *m, int64_t ns,
			struct incident *out)
{
	static const char *const roles[KEEPER_COUNT] = {
#define X(NAME, role, ...) [KEEPER_##NAME] = role,
		KEEPERS(X)
#undef X
	};

	if (peer->pid)
		culprit_add(out, m, VS_SOURCE_HOST, peer->pid, roles[peer->keeper], ns);
}

/* The guest's task that had what this one waited for, as far as that can be told. */
static void guest_peer(const struct stall_facts *f, const struct model *m, struct incident *out)
{
	const struct facts_guest_peer *p = &f->guest_peer;
	const char *role = p->kind == GUEST_CPU_TASK ? "kept the other CPU"
						     : "was interrupted on the other CPU";

	if (!p->known)
		return;
	culprit_add(out, m, f->vm, p->pid, role, p->ns);
	for (size_t i = 0; i < out->n_culprits; i++) {
		struct report_culprit *c = &out->culprits[i];

		if (!c->host && c->pid == p->pid && !strcmp(c->role, role))
			describe(c->what, sizeof(c->what), "on CPU %u", p->cpu);
	}
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
	if (!f->guest_peer.known || f->guest_peer.unsure)
		culprit_add(out, m, f->vm, f->pid,
			    f->kind == GUEST_CPU_TASK ? "kept the CPU" : "was interrupted",
			    facts_denied_by_guest(f));
	if (spin_may_be_wait(f))
		peer_holder(&f->waits.peer_kept, m, f->waits.peer_surely_kept_ns, out);
}
