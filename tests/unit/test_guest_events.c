// SPDX-License-Identifier: GPL-2.0-only
/* Tests events that a host requests of an agent: the effect of the policy and of this kernel,
 * with a simulated capture and with a real one. Names and fields come from this kernel's tracefs;
 * skips without it. */
#include "tests/unit/capture_log.h"

#include "bpf/capture/capture_event.h"
#include "clock/sample.h"
#include "guest-agent/guest_events.h"
#include "proto/event_fields.h"
#include "proto/user_event.h"

enum { EVENTS_MAX = 32 };

/* A capture that remembers what is attached. */
struct play {
	struct guest_events *g;
	struct capture_event added[EVENTS_MAX];
	struct capture_event_state states[EVENTS_MAX];
	bool attached[EVENTS_MAX];
	size_t n_added, n_attached, n_removed;
	int error; /* of the next ones */
	uint64_t now_ms;
};

static int on_add(void *context, const struct capture_event *event, uint32_t *id)
{
	struct play *p = context;

	if (p->error)
		return p->error;
	assert_in_range(p->n_added, 0, EVENTS_MAX - 1);
	p->added[p->n_added] = *event;
	p->attached[p->n_added++] = true;
	p->n_attached++;
	*id = (uint32_t)p->n_added;
	return 0;
}

static int on_state(void *context, uint32_t id, uint64_t now_ms, struct capture_event_state *out)
{
	struct play *p = context;

	(void)now_ms;
	assert_in_range(id, 1, p->n_added);
	*out = p->states[id - 1];
	return 0;
}

static void on_remove(void *context, uint32_t id)
{
	struct play *p = context;

	assert_in_range(id, 1, p->n_added);
	assert_true(p->attached[id - 1]);
	p->attached[id - 1] = false;
	p->n_attached--;
	p->n_removed++;
}

static void play_begin(struct play *p, const char *policy_text)
{
	const struct guest_events_source source = {on_add, on_state, on_remove, p};
	struct event_policy policy;
	char why[128];

	*p = (struct play){.now_ms = 100000};
	event_policy_default(&policy);
	assert_int_equal(
		event_policy_parse(&policy, policy_text, strlen(policy_text), why, sizeof(why)), 0);
	assert_int_equal(guest_events_new_from(&policy, &source, &p->g), 0);
}

static void ask(struct message_config *config, enum user_event_kind kind, const char *system,
		const char *name, const char *filter, const char *fields)
{
	struct message_config_event *e = &config->events[config->n_events++];

	e->kind = kind;
	snprintf(e->system, sizeof(e->system), "%s", system);
	snprintf(e->name, sizeof(e->name), "%s", name);
	snprintf(e->filter, sizeof(e->filter), "%s", filter);
	snprintf(e->fields, sizeof(e->fields), "%s", fields);
	snprintf(e->spec, sizeof(e->spec), "guest:%s:%s", system, name);
}

static void ask_tracepoint(struct message_config *config, const char *system, const char *name)
{
	ask(config, USER_TRACEPOINT, system, name, "", "");
}

static const struct message_user_events *described(struct play *p)
{
	const struct message_user_events *m = guest_events_step(p->g, p->now_ms, 1);

	assert_non_null(m);
	return m;
}

static void a_request_is_resolved_within_the_policy(void **state)
{
	static struct message_config config;
	static const struct {
		const char *system, *name, *filter, *fields, *why;
	} cases[] = {
		{"timer", "hrtimer_start", "", "", NULL},
		{"block", "block_rq_issue", "nr_sector > 8", "dev sector", NULL},
		{"kmem", "kmalloc", "", "", "the guest's owner does not allow it"},
		{"sched", "sched_swich", "", "", "did you mean sched:sched_switch?"},
		{"sched", "sched_switch", "prev_comm == \"a\"", "", "a text"},
		{"sched", "sched_switch", "comm == \"a\"", "", "a text"},
		{"sched", "sched_switch", "", "prev_comm", "'prev_comm' is a text"},
		{"timer", "hrtimer_start", "hrtimer > 5", "", "'hrtimer' is a pointer"},
		{"timer", "hrtimer_start", "!function", "", "'function' is a pointer"},
		{"timer", "hrtimer_start", "expirs > 5", "", "did you mean 'expires'?"},
		{"timer", "hrtimer_start", "expires >", "", "expected"},
		{"timer", "hrtimer_start", "vcpu == 1", "", "the kernel does not know 'vcpu'"},
		{"timer", "hrtimer_start", "", "expirs", "did you mean 'expires'?"},
	};
	const struct message_user_events *m;
	struct play p;

	(void)state;
	play_begin(&p, "");
	memset(&config, 0, sizeof(config));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ask(&config, USER_TRACEPOINT, cases[i].system, cases[i].name, cases[i].filter,
		    cases[i].fields);
	ask(&config, USER_KPROBE, "kprobe", "vfs_read", "", "");
	guest_events_set(p.g, &config);
	m = described(&p);
	assert_int_equal(m->n, config.n_events);
	assert_int_equal(p.n_attached, 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct message_user_event *e = &m->events[i];

		assert_string_equal(e->system, cases[i].system);
		assert_string_equal(e->name, cases[i].name);
		assert_string_equal(e->spec, config.events[i].spec);
		if (!!(e->flags & USER_FAILED) != !!cases[i].why ||
		    (cases[i].why && !strstr(e->why, cases[i].why)))
			fail_msg("case %zu: %x %s", i, e->flags, e->why);
	}
	assert_non_null(strstr(m->events[13].why, "allows no functions"));
	/* Pointers are marked, texts are not there; what was asked for, in its order. */
	assert_int_equal(m->events[0].flags, USER_UNTRACED | USER_HASHED);
	assert_string_equal(m->events[0].fields[0].name, "hrtimer");
	assert_int_equal(m->events[0].fields[0].type, USER_HEX);
	assert_int_equal(m->events[1].flags, USER_UNTRACED);
	assert_int_equal(m->events[1].n_fields, 2);
	assert_string_equal(m->events[1].fields[1].name, "sector");
	assert_true(p.added[0].untraced);
	assert_int_equal(p.added[0].rate, 20000);
	assert_int_equal(p.added[1].n_tests, 1);
	for (size_t i = 0; i < m->n; i++) {
		for (size_t k = 0; k < m->events[i].n_fields; k++)
			assert_int_not_equal(m->events[i].fields[k].type, USER_TEXT);
	}
	guest_events_free(p.g);
	/* An owner who allows texts. */
	play_begin(&p, "strings = yes\n");
	memset(&config, 0, sizeof(config));
	ask(&config, USER_TRACEPOINT, "sched", "sched_switch", "prev_comm == \"a\"", "prev_comm");
	guest_events_set(p.g, &config);
	assert_int_equal(described(&p)->events[0].fields[0].type, USER_TEXT);
	guest_events_free(p.g);
}

static void what_is_asked_for_again_goes_on(void **state)
{
	static struct message_config config;
	struct play p;

	(void)state;
	play_begin(&p, "max_events = 2\n");
	memset(&config, 0, sizeof(config));
	ask_tracepoint(&config, "irq", "softirq_raise");
	ask_tracepoint(&config, "timer", "hrtimer_start");
	ask_tracepoint(&config, "timer", "hrtimer_cancel");
	guest_events_set(p.g, &config);
	assert_int_equal(p.n_attached, 2);
	assert_non_null(strstr(described(&p)->events[2].why, "allows 2 events"));
	assert_null(guest_events_step(p.g, p.now_ms, 1));
	/* A host that came back gets the descriptions again; later readers do, too. */
	assert_non_null(guest_events_step(p.g, p.now_ms, 2));
	p.now_ms += GUEST_EVENTS_AGAIN_MS;
	assert_non_null(guest_events_step(p.g, p.now_ms, 2));
	guest_events_set(p.g, &config);
	assert_int_equal(p.n_added, 2);
	assert_int_equal(p.n_removed, 0);
	/* One goes, and its room is the third's. */
	memmove(&config.events[0], &config.events[1], 2 * sizeof(config.events[0]));
	config.n_events = 2;
	guest_events_set(p.g, &config);
	assert_int_equal(p.n_removed, 1);
	assert_false(p.attached[0]);
	assert_true(p.attached[1] && p.attached[2]);
	assert_string_equal(p.added[2].name, "hrtimer_cancel");
	/* Nothing is asked for any more. */
	config.n_events = 0;
	guest_events_set(p.g, &config);
	assert_int_equal(p.n_attached, 0);
	assert_null(guest_events_step(p.g, p.now_ms, 3));
	guest_events_free(p.g);
}

static void what_cannot_be_attached_is_said(void **state)
{
	static struct message_config config;
	const struct message_user_event *e;
	struct play p;

	(void)state;
	play_begin(&p, "");
	memset(&config, 0, sizeof(config));
	ask_tracepoint(&config, "irq", "softirq_raise");
	p.error = -ENOTSUP;
	guest_events_set(p.g, &config);
	e = &described(&p)->events[0];
	assert_non_null(strstr(e->why, "through perf"));
	assert_int_equal(e->flags & USER_FAILED, USER_FAILED);
	guest_events_free(p.g);
}

static void a_flood_is_detached_counted_and_described(void **state)
{
	static struct message_config config;
	const struct message_user_events *m;
	struct play p;

	(void)state;
	play_begin(&p, "rate = 1000\n");
	memset(&config, 0, sizeof(config));
	ask_tracepoint(&config, "irq", "softirq_raise");
	ask_tracepoint(&config, "timer", "hrtimer_start");
	guest_events_set(p.g, &config);
	described(&p);
	/* A burst alone is no flood; nor is one that has more hits below the limit than above. */
	for (int second = 0; second < 20; second++) {
		p.states[0].kept += 10;
		p.states[0].limited += second % 2 ? 0 : 5000;
		p.states[1].kept += 1000;
		p.states[1].limited += 1000;
		p.now_ms += 1000;
		guest_events_step(p.g, p.now_ms, 1);
	}
	assert_int_equal(p.n_attached, 2);
	p.states[0].limited += 10; /* it suffers from the other */
	p.states[1].limited += 100000;
	p.now_ms += 1000;
	guest_events_step(p.g, p.now_ms, 1);
	assert_int_equal(p.n_attached, 2);
	p.states[1].limited += 100000;
	p.now_ms += 1000;
	m = described(&p);
	assert_int_equal(p.n_attached, 1);
	assert_true(p.attached[0]);
	assert_int_equal(m->events[1].flags & USER_DETACHED, USER_DETACHED);
	assert_non_null(strstr(m->events[1].why, "allows 1000 per second and CPU"));
	assert_int_equal(m->events[1].limited, 220000);
	assert_int_equal(m->events[0].flags & USER_DETACHED, 0);
	assert_int_equal(guest_events_hits(p.g),
			 20 * 10 + 10 * 5000 + 10 + 20 * 1000 + 20 * 1000 + 200000);
	/* A budget that is used up. */
	guest_events_stop(p.g, "the agent's CPU was used up (--max-cpu)");
	assert_int_equal(p.n_attached, 0);
	m = described(&p);
	assert_string_equal(m->events[0].why, "the agent's CPU was used up (--max-cpu)");
	assert_non_null(strstr(m->events[1].why, "allows 1000"));
	guest_events_free(p.g);
}

static void pointers_of_unknown_events_do_not_leave(void **state)
{
	static struct message_config config;
	struct vs_event events[4] = {{.type = VS_EVENT_USER, .pid2 = 1},
				     {.type = VS_EVENT_USER_MORE, .pid2 = 1 | 1 << 16},
				     {.type = VS_EVENT_USER, .pid2 = 9},
				     {.type = VS_EVENT_SCHED_SWITCH, .pid2 = 9}};
	struct play p;

	(void)state;
	play_begin(&p, "");
	memset(&config, 0, sizeof(config));
	/* hrtimer function expires softexpires ... */
	ask(&config, USER_TRACEPOINT, "timer", "hrtimer_start", "",
	    "hrtimer function expires softexpires");
	guest_events_set(p.g, &config);
	for (size_t i = 0; i < 4; i++) {
		events[i].arg0 = 0xffff888012345678;
		events[i].arg1 = 0xffffffff81000000;
	}
	guest_events_hash(p.g, events, 4);
	assert_int_not_equal(events[0].arg0, 0);
	assert_int_equal(events[0].arg0 >> 48, 0);
	assert_int_equal(events[0].arg1 >> 48, 0);
	assert_true(events[1].arg0 == 0xffff888012345678); /* a signed number */
	assert_int_equal(events[2].arg0, 0);
	assert_int_equal(events[2].arg1, 0);
	assert_true(events[3].arg0 == 0xffff888012345678);
	guest_events_free(p.g);
}

/* ---- with this kernel's events ---- */

static const struct variant *variant;

struct hits {
	uint64_t started[4096];
	size_t n_started, n_expired, n_matched;
};

static void on_hit(void *context, const struct user_hit *hit)
{
	struct hits *h = context;
	uint64_t timer;
	size_t field;

	if (!hit->event || hit->head.type != VS_EVENT_USER)
		return;
	assert_true(user_event_field(hit->event, "hrtimer", &field));
	if (!user_hit_number(hit, field, &timer))
		return;
	assert_int_not_equal(timer, 0);
	assert_int_equal(timer >> 48, 0);
	if (!strcmp(hit->event->name, "hrtimer_start")) {
		if (h->n_started < 4096)
			h->started[h->n_started++] = timer;
		return;
	}
	h->n_expired++;
	for (size_t i = 0; i < h->n_started; i++) {
		if (h->started[i] == timer) {
			h->n_matched++;
			return;
		}
	}
}

static void pairs_by_pointer_survive_the_hash(void **state)
{
	static struct message_config config;
	static struct hits hits;
	const struct capture_options options = {.kind = CAPTURE_GUEST,
						.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints};
	struct user_events *known = user_events_new();
	const struct message_user_events *m;
	struct log *log = log_new();
	struct event_policy policy;
	struct user_hits *collector;
	struct guest_events *g;
	struct capture *c;
	char why[256];

	(void)state;
	memset(&hits, 0, sizeof(hits));
	event_policy_default(&policy);
	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(guest_events_new(&policy, c, &g), 0);
	memset(&config, 0, sizeof(config));
	ask(&config, USER_TRACEPOINT, "timer", "hrtimer_start", "", "hrtimer expires");
	ask(&config, USER_TRACEPOINT, "timer", "hrtimer_expire_entry", "", "hrtimer now");
	guest_events_set(g, &config);
	m = guest_events_step(g, 1000, 1);
	assert_non_null(m);
	for (size_t i = 0; i < 2; i++) {
		if (m->events[i].flags & USER_FAILED)
			fail_msg("%s: %s", m->events[i].name, m->events[i].why);
	}
	assert_int_equal(user_events_learn(known, 5, m), 0);
	for (int i = 0; i < 20; i++)
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
	drain(c, log);
	guest_events_hash(g, log->events, log->n);
	collector = user_hits_new(known, on_hit, &hits);
	for (size_t i = 0; i < log->n; i++)
		user_hits_take(collector, 5, &log->events[i], (int64_t)log->events[i].time, 0);
	user_hits_flush(collector);
	user_hits_free(collector);
	assert_true(hits.n_started >= 20);
	assert_true(hits.n_expired >= 20);
	assert_true(hits.n_matched >= 20);
	/* When it is asked for no longer, nothing of it comes. */
	config.n_events = 0;
	guest_events_set(g, &config);
	drain(c, log);
	log->n = 0;
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	drain(c, log);
	for (size_t i = 0; i < log->n; i++)
		assert_int_not_equal(log->events[i].type, VS_EVENT_USER);
	guest_events_free(g);
	capture_close(c);
	log_free(log);
	user_events_free(known);
}

/* A host that asks for everything at once. */
static void all_events_together_stay_within_the_rate(void **state)
{
	enum { RATE = 800, SLEEPS = 3000 };
	static struct message_config config;
	const struct capture_options options = {.kind = CAPTURE_GUEST,
						.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints};
	struct log *log = log_new();
	struct event_policy policy;
	const uint64_t window_ns = 1ull << VS_USER_WINDOW_LOG2_NS;
	size_t heads[VS_CPU_COLLECTOR] = {0}, n_cpus, sum = 0;
	uint64_t begin_ns, windows;
	struct guest_events *g;
	struct capture *c;
	char why[256];

	(void)state;
	event_policy_default(&policy);
	policy.rate = RATE;
	if (capture_open(&options, &c, why, sizeof(why)))
		fail_msg("%s", why);
	n_cpus = capture_n_cpus(c);
	assert_int_equal(guest_events_new(&policy, c, &g), 0);
	memset(&config, 0, sizeof(config));
	ask_tracepoint(&config, "sched", "sched_switch");
	ask_tracepoint(&config, "sched", "sched_waking");
	ask_tracepoint(&config, "timer", "hrtimer_start");
	ask_tracepoint(&config, "timer", "hrtimer_cancel");
	begin_ns = clock_monotonic_ns();
	guest_events_set(g, &config);
	for (int i = 0; i < SLEEPS; i++)
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	guest_events_step(g, 10000, 1);
	drain(c, log);
	windows = (clock_monotonic_ns() - begin_ns) / window_ns + 2;
	for (size_t i = 0; i < log->n; i++)
		heads[log->events[i].cpu] += log->events[i].type == VS_EVENT_USER;
	for (size_t i = 0; i < n_cpus; i++) {
		assert_true(heads[i] <= windows * (RATE * window_ns / 1000000000));
		sum += heads[i];
	}
	/* There were more, and they were counted. */
	assert_true(sum > 0);
	assert_true(guest_events_hits(g) > 2 * sum);
	guest_events_free(g);
	capture_close(c);
	log_free(log);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_resolved_within_the_policy),
		cmocka_unit_test(what_is_asked_for_again_goes_on),
		cmocka_unit_test(what_cannot_be_attached_is_said),
		cmocka_unit_test(a_flood_is_detached_counted_and_described),
		cmocka_unit_test(pointers_of_unknown_events_do_not_leave),
	};
	const struct CMUnitTest real[] = {
		cmocka_unit_test(pairs_by_pointer_survive_the_hash),
		cmocka_unit_test(all_events_together_stay_within_the_rate),
	};
	int failed = 0;

	(void)argc;
	(void)argv;
	if (access("/sys/kernel/tracing/events/timer/hrtimer_start/format", R_OK) &&
	    access("/sys/kernel/debug/tracing/events/timer/hrtimer_start/format", R_OK)) {
		puts("skip: tracefs cannot be read");
		return 77;
	}
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	for (size_t i = 0; i < N_VARIANTS && !failed; i++) {
		variant = &variants[i];
		if (variant->backend == CAPTURE_BY_BPF && variant_works(variant, CAPTURE_GUEST))
			failed = cmocka_run_group_tests_name(variant->name, real, NULL, NULL);
	}
	return failed;
}
