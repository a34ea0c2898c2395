// SPDX-License-Identifier: GPL-2.0-only
/* Tests events that the user chose on the running kernel: names and fields are resolved, hits
 * are those that tracefs shows, filters keep the hits for which their expression is true, a flood
 * is limited and counted, and tasks of no VM can be watched. With the argument "perf", tests the
 * perf backend instead of BPF. Needs root; skips otherwise. */
#include "tests/unit/capture_log.h"
#include "tests/unit/usdt_probe.h"

#include <pthread.h>
#include <sys/stat.h>

#include "bpf/backend/capture_shared.h"
#include "bpf/capture/capture_event.h"
#include "proto/query/expr.h"
#include "bpf/chosen/chosen_events.h"
#include "proto/event_fields.h"
#include "proto/user_event.h"

enum { VM = 7, IDS_MAX = 8, INSTANCE_BYTES = 1 << 20 };

static const struct variant *variant;

static bool by_perf(void)
{
	return variant->backend == CAPTURE_BY_PERF;
}

/* A capture with events, and their hits. */
struct watch {
	struct capture *capture;
	struct log *log;
	struct chosen_events *chosen;
	struct user_events *known;
	uint32_t ids[IDS_MAX];
	struct user_hit *hits;
	size_t n_hits, capacity;
};

static void watch_begin(struct watch *w, const char *text, uint32_t rate)
{
	const struct capture_options options = {.kind = CAPTURE_HOST,
						.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints,
						.stacks = !by_perf()};
	struct message_user_events *m = calloc(1, sizeof(*m));
	struct expr_error error = {0};
	char why[256];

	*w = (struct watch){.log = log_new(),
			    .chosen = calloc(1, sizeof(*w->chosen)),
			    .known = user_events_new()};
	assert_true(m && w->chosen && w->known);
	if (capture_open(&options, &w->capture, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	if (chosen_events_add(w->chosen, NULL, text, &error))
		fail_msg("%s: %s", text, error.text);
	assert_in_range(w->chosen->n, 1, IDS_MAX);
	m->n = w->chosen->n;
	for (size_t i = 0; i < m->n; i++) {
		w->chosen->events[i].capture.rate = rate;
		assert_int_equal(
			capture_event_add(w->capture, &w->chosen->events[i].capture, &w->ids[i]),
			0);
		m->events[i] = w->chosen->events[i].description;
		m->events[i].id = w->ids[i];
	}
	assert_int_equal(user_events_learn(w->known, 0, m), 0);
	free(m);
}

static void on_hit(void *context, const struct user_hit *hit)
{
	struct watch *w = context;

	if (w->n_hits == w->capacity) {
		w->capacity = w->capacity ? 2 * w->capacity : 1024;
		w->hits = realloc(w->hits, w->capacity * sizeof(*w->hits));
		assert_non_null(w->hits);
	}
	w->hits[w->n_hits++] = *hit;
}

/* All hits, of each CPU in order. */
static void watch_read(struct watch *w)
{
	struct user_hits *hits;

	drain(w->capture, w->log);
	hits = user_hits_new(w->known, on_hit, w);
	assert_non_null(hits);
	for (size_t i = 0; i < w->log->n; i++) {
		const struct vs_event *e = &w->log->events[i];

		user_hits_take(hits, 0, e, (int64_t)e->time, 0);
	}
	user_hits_flush(hits);
	user_hits_free(hits);
}

/* Nothing was lost. perf leaves out switches of some kernels' idle tasks and counts each as a loss
 * (docs/backends.md). */
static void gaps_check(const struct watch *w)
{
	for (size_t cpu = 0; cpu < capture_n_cpus(w->capture) && !by_perf(); cpu++)
		assert_int_equal(w->log->gaps[cpu], 0);
}

static void watch_end(struct watch *w)
{
	capture_close(w->capture);
	log_free(w->log);
	user_events_free(w->known);
	free(w->chosen);
	free(w->hits);
}

static uint64_t number_of(const struct user_hit *hit, const char *name)
{
	uint64_t value;
	size_t i;

	assert_non_null(hit->event);
	assert_true(user_event_field(hit->event, name, &i));
	assert_true(user_hit_number(hit, i, &value));
	return value;
}

static const char *text_of(const struct user_hit *hit, const char *name)
{
	static char text[VS_USER_TEXT_MAX + 1];
	size_t i;

	assert_true(user_event_field(hit->event, name, &i));
	return user_hit_text(hit, i, text, sizeof(text));
}

/* ---- tracefs, as a witness ---- */

static const char instance[] = "/sys/kernel/tracing/instances/vcpuscope-test";

static void instance_write(const char *file, const char *text)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", instance, file);
	fd = open(path, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* Returns false if this machine does not let us. */
static bool instance_begin(void)
{
	rmdir(instance);
	if (mkdir(instance, 0700))
		return false;
	instance_write("events/sched/sched_process_exec/enable", "1");
	return true;
}

static bool instance_has(const char *line)
{
	char path[200], *text = calloc(1, INSTANCE_BYTES + 1);
	size_t n = 0;
	ssize_t got;
	bool found;
	int fd;

	assert_non_null(text);
	snprintf(path, sizeof(path), "%s/trace", instance);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	while ((got = read(fd, text + n, INSTANCE_BYTES - n)) > 0)
		n += (size_t)got;
	close(fd);
	found = strstr(text, line) != NULL;
	free(text);
	return found;
}

/* ---- the tests ---- */

static pid_t run_true(const int *go)
{
	const pid_t pid = fork();
	char byte;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (go && read(*go, &byte, 1) != 1)
		_exit(1);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

static void hits_are_those_that_tracefs_shows(void **state)
{
	struct watch w;
	pid_t followed, other;
	const bool witness = instance_begin();
	size_t of_followed = 0, of_any = 0;
	char line[128];
	int go[2];

	(void)state;
	watch_begin(&w, "sched:sched_process_exec,host:sched:sched_process_exec//untraced/", 0);
	assert_int_equal(pipe(go), 0);
	followed = run_true(&go[0]);
	assert_int_equal(capture_add_thread(w.capture, followed, followed, VM, false), 0);
	other = run_true(NULL);
	drain_until_exit(w.capture, w.log, other);
	assert_int_equal(write(go[1], "", 1), 1);
	drain_until_exit(w.capture, w.log, followed);
	watch_read(&w);
	for (size_t i = 0; i < w.n_hits; i++) {
		const struct user_hit *hit = &w.hits[i];
		const pid_t pid = (pid_t)number_of(hit, "pid");

		if (ev_user_id(&hit->head) == w.ids[0]) {
			assert_int_equal(pid, followed);
			of_followed++;
		}
		if (pid != followed && pid != other)
			continue;
		of_any += ev_user_id(&hit->head) == w.ids[1];
		assert_int_equal(hit->head.pid, pid);
		assert_int_equal(number_of(hit, "old_pid"), pid);
		assert_string_equal(text_of(hit, "filename"), "/bin/true");
	}
	assert_int_equal(of_followed, 1);
	assert_int_equal(of_any, 2);
	snprintf(line, sizeof(line), "sched_process_exec: filename=/bin/true pid=%d old_pid=%d",
		 followed, followed);
	if (witness)
		assert_true(instance_has(line));
	if (witness)
		assert_int_equal(rmdir(instance), 0);
	assert_int_equal(w.log->time_inversions, 0);
	close(go[0]);
	close(go[1]);
	watch_end(&w);
}

/* ---- filters ---- */

static bool hit_field(const void *context, const char *name, uint16_t *index, enum expr_type *type)
{
	const struct message_user_event *e = context;
	size_t i;

	if (!user_event_field(e, name, &i))
		return false;
	*index = (uint16_t)i;
	*type = e->fields[i].type == USER_TEXT     ? EXPR_TEXT
		: e->fields[i].type == USER_SIGNED ? EXPR_SIGNED
						   : EXPR_UNSIGNED;
	return true;
}

static const char *no_name(const void *context, size_t i)
{
	(void)context;
	(void)i;
	return NULL;
}

static struct expr_value hit_value(void *context, uint16_t index)
{
	static char text[VS_USER_TEXT_MAX + 1];
	struct user_hit *hit = context;
	struct expr_value value = {.type = EXPR_TEXT};

	if (hit->event->fields[index].type == USER_TEXT) {
		value.text = user_hit_text(hit, index, text, sizeof(text));
		return value;
	}
	value.type = hit->event->fields[index].type == USER_SIGNED ? EXPR_SIGNED : EXPR_UNSIGNED;
	assert_true(user_hit_number(hit, index, &value.number));
	return value;
}

/* Removes the hits of `id` on this CPU for which the expression is not true; the hits of each event
 * and CPU, in order. */
static size_t select_hits(const struct watch *w, uint32_t id, uint16_t cpu, const struct expr *expr,
			  struct user_hit *out)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_hits; i++) {
		struct expr_source source = {.field = hit_value, .context = &w->hits[i]};

		if (w->hits[i].head.type != VS_EVENT_USER || w->hits[i].head.cpu != cpu ||
		    ev_user_id(&w->hits[i].head) != id)
			continue;
		if (!expr || expr_is_true(expr_eval(expr, &source)))
			out[n++] = w->hits[i];
	}
	return n;
}

static void filters_keep_what_their_expression_is_true_for(void **state)
{
	static const char *const filters[] = {
		"prev_state == 0 || prev_prio < 120",
		"prev_comm ~ \"swapper*\" && next_pid > 1",
		"!(next_comm == \"chosen-test\") && (prev_state & 3) != 0 && 120 <= next_prio",
		"next_pid & 1",
		"prev_pid < 1000",
		"prev_pid == 0 || next_pid == 0"};
	const size_t n_filters = sizeof(filters) / sizeof(*filters);
	char text[1024], go = 0;
	struct watch w;
	pid_t child;
	size_t compared = 0;
	int attached[2];

	(void)state;
	assert_int_equal(pipe(attached), 0);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "chosen-test");
		if (read(attached[0], &go, 1) != 1)
			_exit(1);
		for (int i = 0; i < 200; i++)
			sleep_ms(1);
		_exit(0);
	}
	/* Only the child's switches: those of a busy machine fill the rings. */
	snprintf(text, sizeof(text),
		 "host:sched:sched_switch/prev_pid == %d || next_pid == %d/untraced/", child,
		 child);
	for (size_t i = 0; i < n_filters; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 ",host:sched:sched_switch/(prev_pid == %d || next_pid == %d) && "
			 "(%s)/untraced/",
			 child, child, filters[i]);
	watch_begin(&w, text, 0);
	assert_int_equal(write(attached[1], &go, 1), 1);
	drain_until_exit(w.capture, w.log, child);
	watch_read(&w);
	for (size_t i = 0; i < n_filters; i++) {
		const struct message_user_event *e = user_events_find(w.known, 0, w.ids[0]);
		const struct expr_scope scope = {hit_field, no_name, e};
		struct user_hit *all = calloc(w.n_hits, sizeof(*all));
		struct user_hit *kept = calloc(w.n_hits, sizeof(*kept));
		struct expr expr;
		struct expr_error error;

		assert_true(all && kept);
		assert_int_equal(expr_parse(filters[i], strlen(filters[i]), &scope, &expr, &error),
				 0);
		for (uint16_t cpu = 0; cpu < capture_n_cpus(w.capture); cpu++) {
			size_t n = select_hits(&w, w.ids[0], cpu, &expr, all);
			size_t m = select_hits(&w, w.ids[1 + i], cpu, NULL, kept);

			/* The first event was attached before the others, and its program runs
			 * before theirs: it may have one more at the end. */
			if (n && m && !by_perf() && all[n - 1].t_ns > kept[m - 1].t_ns)
				n--;
			/* perf runs it after theirs: it may have one less. */
			if (n && m && by_perf() && all[n - 1].t_ns < kept[m - 1].t_ns)
				m--;
			assert_true(n >= m);
			for (size_t k = 1; k <= m; k++)
				assert_memory_equal(all[n - k].values, kept[m - k].values,
						    sizeof(all[0].values));
			/* None is missing since they were attached. */
			for (size_t k = 0; k < n - m && m; k++)
				assert_true(all[k].t_ns < kept[0].t_ns);
			compared += m;
		}
		free(all);
		free(kept);
	}
	assert_true(compared > 100);
	gaps_check(&w);
	watch_end(&w);
	close(attached[0]);
	close(attached[1]);
}

/* Its texts are where no 8 bytes are aligned. */
static void texts_at_odd_places_are_whole(void **state)
{
	const char *const old = "chosen-old-name", *const new = "chosen-new-name";
	struct watch w;
	size_t found = 0;

	(void)state;
	watch_begin(&w,
		    "host:task:task_rename/oldcomm == \"chosen-old-name\" && newcomm ~ "
		    "\"chosen-new*\"/untraced/",
		    0);
	prctl(PR_SET_NAME, old);
	prctl(PR_SET_NAME, new);
	prctl(PR_SET_NAME, old);
	drain(w.capture, w.log);
	watch_read(&w);
	for (size_t i = 0; i < w.n_hits; i++) {
		if (w.hits[i].head.pid != getpid())
			continue;
		assert_string_equal(text_of(&w.hits[i], "oldcomm"), old);
		assert_string_equal(text_of(&w.hits[i], "newcomm"), new);
		found++;
	}
	assert_int_equal(found, 1);
	gaps_check(&w);
	watch_end(&w);
}

/* ---- floods ---- */

static void a_flood_is_limited_and_counted(void **state)
{
	enum { CALLS = 50000, RATE = 1000 };
	struct capture_event_state now;
	uint64_t kept = 0, limited = 0;
	struct watch w;

	(void)state;
	watch_begin(&w, "task:task_rename/newcomm ~ \"chosen*\"/untraced/", RATE);
	for (int i = 0; i < CALLS; i++) {
		prctl(PR_SET_NAME, i % 2 ? "chosen-odd" : "chosen-even");
		if (i % 1000 == 999)
			drain(w.capture, w.log);
	}
	/* The last skipped hits are reported with the next one that is not skipped. */
	sleep_ms(300);
	prctl(PR_SET_NAME, "chosen-last");
	prctl(PR_SET_NAME, "test");
	watch_read(&w);
	assert_int_equal(capture_event_state_get(w.capture, w.ids[0], 0, &now), 0);
	assert_int_equal(now.kept + now.limited, CALLS + 1);
	assert_true(now.limited > CALLS / 2);
	assert_false(now.detached);
	for (size_t i = 0; i < w.n_hits; i++) {
		const struct vs_event *e = &w.hits[i].head;

		if (e->type == VS_EVENT_USER_LIMITED) {
			limited += ev_user_limited_count(e);
			assert_in_range(ev_user_limited_ago_ns(e), 1, 10000000000);
			continue;
		}
		kept++;
		assert_int_equal(number_of(&w.hits[i], "pid"), getpid());
		assert_true(!strncmp(text_of(&w.hits[i], "newcomm"), "chosen-", 7));
	}
	assert_int_equal(kept, now.kept);
	/* What other CPUs skipped is reported there when they have a hit again. */
	assert_true(limited <= now.limited);
	watch_end(&w);
}

/* ---- the end ---- */

static void the_last_count_is_what_was_drained(void **state)
{
	struct capture_event_state now;
	struct watch w;
	pid_t child;
	size_t hits = 0;

	(void)state;
	watch_begin(&w, "task:task_rename/newcomm ~ \"endless*\"/untraced/", 1000000);
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned i = 0;; i++) {
			prctl(PR_SET_NAME, i % 2 ? "endless-odd" : "endless-even");
			usleep(100);
		}
	}
	/* On a busy machine they come slowly. */
	for (int i = 0; i < 20 || (w.log->n < 500 && i < 2000); i++) {
		sleep_ms(5);
		drain(w.capture, w.log);
	}
	/* Hits do not end; their counting does. */
	capture_event_stop(w.capture, w.ids[0]);
	watch_read(&w);
	sleep_ms(20);
	assert_int_equal(capture_event_state_get(w.capture, w.ids[0], 0, &now), 0);
	for (size_t i = 0; i < w.n_hits; i++)
		hits += w.hits[i].head.type == VS_EVENT_USER;
	assert_true(hits > 100);
	gaps_check(&w);
	assert_int_equal(hits, now.kept);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	watch_end(&w);
}

/* ---- stacks ---- */

static const struct capture_stack *stack_of(const struct log *log, uint64_t number)
{
	for (size_t i = 0; i < log->n_stacks; i++) {
		const struct capture_stack *s = &log->stacks[i].s;

		if (s->role == VS_STACK_HIT && s->wait_ns == number)
			return s;
	}
	return NULL;
}

/* Each stack is that of the task that hit the event, right before the hit. Those above the limit
 * have none. */
static void hits_have_the_stacks_of_their_tasks(void **state)
{
	enum { HITS = 400 };
	size_t with = 0, without = 0, others = 0;
	uint64_t last = 0;
	struct watch w;

	(void)state;
	watch_begin(&w,
		    "task:task_rename/newcomm ~ \"stack*\"/untraced,stack/,"
		    "host:task:task_rename/newcomm ~ \"stack*\"/untraced/",
		    0);
	for (int i = 0; i < HITS; i++)
		prctl(PR_SET_NAME, "stack-test");
	prctl(PR_SET_NAME, "test");
	watch_read(&w);
	for (size_t i = 0; i < w.n_hits; i++) {
		const struct user_hit *hit = &w.hits[i];
		const struct capture_stack *s;
		uint64_t number;

		assert_int_equal(hit->head.pid, getpid());
		if (ev_user_id(&hit->head) == w.ids[1]) {
			assert_int_equal(hit->event->flags, USER_UNTRACED);
			others++;
			continue;
		}
		assert_int_equal(hit->event->flags, USER_UNTRACED | USER_STACKS);
		number = number_of(hit, "stack_number");
		without += !number;
		if (!number)
			continue;
		with++;
		assert_true(number > last);
		last = number;
		s = stack_of(w.log, number);
		assert_non_null(s);
		assert_int_equal(s->tid, getpid());
		assert_int_equal(s->tgid, getpid());
		assert_int_equal(s->explains, 0);
		assert_int_equal(s->event, w.ids[0]);
		assert_int_equal(s->cpu, hit->head.cpu);
		assert_in_range(s->time, hit->head.time - 10000000, hit->head.time);
		assert_true(s->n_kernel && s->has_user && s->user.copied_bytes);
	}
	assert_int_equal(others, HITS);
	assert_int_equal(with + without, HITS);
	/* 16 in each window of 34 ms, of which the hits take a few at most. */
	assert_in_range(with, 1, HITS - 1);
	gaps_check(&w);
	watch_end(&w);
}

/* The two users of one capture: only the one that chose the event gets its stacks. */
static void the_stack_of_a_hit_is_for_those_who_get_the_hit(void **state)
{
	const struct capture_options options = {.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints,
						.stacks = true};
	struct chosen_events *chosen = calloc(1, sizeof(*chosen));
	struct log *of_a = log_new(), *of_b = log_new();
	struct capture_shared *shared;
	struct expr_error error = {0};
	struct capture *a, *b;
	char why[256];
	uint32_t id;

	(void)state;
	assert_non_null(chosen);
	if (capture_shared_open(&options, &shared, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(chosen_events_add(chosen, NULL,
					   "task:task_rename/newcomm ~ \"stack*\"/untraced,stack/",
					   &error),
			 0);
	assert_int_equal(capture_shared_join(shared, 0, &a), 0);
	assert_int_equal(capture_shared_join(shared, 0, &b), 0);
	assert_int_equal(capture_event_add(a, &chosen->events[0].capture, &id), 0);
	prctl(PR_SET_NAME, "stack-test");
	prctl(PR_SET_NAME, "test");
	drain(a, of_a);
	drain(b, of_b);
	assert_int_equal(of_a->n_stacks, 1);
	assert_int_equal(of_a->stacks[0].s.role, VS_STACK_HIT);
	assert_int_equal(of_a->stacks[0].s.event, id);
	assert_int_equal(of_b->n_stacks, 0);
	capture_close(a);
	capture_close(b);
	capture_shared_close(shared);
	log_free(of_a);
	log_free(of_b);
	free(chosen);
}

/* ---- several VMs ---- */

static size_t count_of(struct capture *c, uint32_t id, pid_t pid)
{
	struct log *log = log_new();
	size_t n = 0;

	drain(c, log);
	for (size_t i = 0; i < log->n; i++)
		n += log->events[i].type == VS_EVENT_USER && log->events[i].pid == pid &&
		     ev_user_id(&log->events[i]) == id;
	log_free(log);
	return n;
}

static void users_of_one_capture_share_an_event(void **state)
{
	const struct capture_options options = {.backend = variant->backend,
						.raw_tracepoints = variant->raw_tracepoints};
	struct chosen_events *chosen = calloc(1, sizeof(*chosen));
	const struct capture_watch watch = {CAPTURE_WATCH_THREAD, getpid(), "thread"};
	struct capture_shared *shared;
	struct expr_error error = {0};
	struct capture *a, *b;
	uint32_t a_any, b_any, a_own;
	char why[256];
	pid_t of_a, other;
	int go[2];

	(void)state;
	assert_non_null(chosen);
	if (capture_shared_open(&options, &shared, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(chosen_events_add(chosen, NULL,
					   "host:sched:sched_process_exec//untraced/,"
					   "host:sched:sched_process_exec",
					   &error),
			 0);
	assert_int_equal(capture_shared_join(shared, 0, &a), 0);
	assert_int_equal(capture_shared_join(shared, 0, &b), 0);
	assert_int_equal(capture_event_watch(a, &watch), -ENOTSUP);
	assert_int_equal(capture_event_add(a, &chosen->events[0].capture, &a_any), 0);
	assert_int_equal(capture_event_add(b, &chosen->events[0].capture, &b_any), 0);
	assert_int_equal(capture_event_add(a, &chosen->events[1].capture, &a_own), 0);
	assert_int_equal(a_any, b_any);
	assert_int_not_equal(a_any, a_own);
	assert_int_equal(pipe(go), 0);
	of_a = run_true(&go[0]);
	assert_int_equal(capture_add_thread(a, of_a, of_a, VM, false), 0);
	assert_int_equal(write(go[1], "", 1), 1);
	assert_int_equal(waitpid(of_a, NULL, 0), of_a);
	assert_int_equal(count_of(b, b_any, of_a), 1);
	/* Both events of A, in one reading. */
	{
		struct log *log = log_new();
		size_t any = 0, own = 0;

		drain(a, log);
		for (size_t i = 0; i < log->n; i++) {
			const struct vs_event *e = &log->events[i];

			if (e->type != VS_EVENT_USER || e->pid != of_a)
				continue;
			any += ev_user_id(e) == a_any;
			own += ev_user_id(e) == a_own;
		}
		assert_int_equal(any, 1);
		assert_int_equal(own, 1);
		log_free(log);
	}
	/* One leaves; the other goes on. */
	capture_close(a);
	other = run_true(NULL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(count_of(b, b_any, other), 1);
	capture_close(b);
	capture_shared_close(shared);
	close(go[0]);
	close(go[1]);
	free(chosen);
}

/* ---- tasks of no VM ---- */

static void *exec_of_thread(void *unused)
{
	(void)unused;
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* Starts two children when it is allowed to: one ends at once, the other calls execve() in a thread
 * that is not its first. Returns its id. */
static pid_t run_family(const int *go)
{
	const pid_t pid = fork();
	pthread_t thread;
	char byte;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	if (read(*go, &byte, 1) != 1)
		_exit(1);
	if (!fork())
		_exit(0);
	if (!fork()) {
		pthread_create(&thread, NULL, exec_of_thread, NULL);
		pthread_join(thread, NULL);
		_exit(1);
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

static void hits_of_watched_tasks_count(void **state)
{
	struct capture_watch process = {CAPTURE_WATCH_PROCESS, 0, "process"},
			     thread = {CAPTURE_WATCH_THREAD, 0, "thread"},
			     no_cgroup = {CAPTURE_WATCH_CGROUP, -1, "cgroup"};
	size_t execs = 0, ends = 0, switches = 0, of_thread = 0;
	pid_t family, single, other;
	struct watch w;
	int go[2];

	(void)state;
	watch_begin(&w,
		    "sched:sched_process_exec,host:sched:sched_process_exit,"
		    "host:sched:sched_switch/prev_state == 16 || prev_state == 32/",
		    0);
	assert_int_equal(pipe(go), 0);
	process.id = family = run_family(&go[0]);
	thread.id = single = run_true(&go[0]);
	assert_int_equal(capture_event_watch(w.capture, &process), 0);
	assert_int_equal(capture_event_watch(w.capture, &thread), 0);
	assert_int_equal(capture_event_watch(w.capture, &no_cgroup), -EBADF);
	other = run_true(&go[0]);
	assert_int_equal(write(go[1], "abc", 3), 3);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(waitpid(single, NULL, 0), single);
	assert_int_equal(waitpid(family, NULL, 0), family);
	sleep_ms(50);
	watch_read(&w);
	for (size_t i = 0; i < w.n_hits; i++) {
		const struct user_hit *hit = &w.hits[i];
		const uint32_t id = ev_user_id(&hit->head);

		assert_int_not_equal(hit->head.pid, other);
		if (hit->head.pid == single) {
			of_thread++;
			continue;
		}
		execs += id == w.ids[0];
		ends += id == w.ids[1];
		switches += id == w.ids[2];
	}
	assert_int_equal(execs, 1);
	/* Of three processes, and of the thread that execve() ended. */
	assert_int_equal(ends, 4);
	assert_int_equal(switches, 4);
	assert_int_equal(of_thread, 3);
	assert_int_equal(capture_event_unwatched(w.capture), 0);
	/* Nobody's, once the event has stopped. */
	process.id = family = run_family(&go[0]);
	assert_int_equal(capture_event_watch(w.capture, &process), 0);
	for (size_t i = 0; i < w.chosen->n; i++)
		capture_event_stop(w.capture, w.ids[i]);
	w.n_hits = w.log->n = 0;
	assert_int_equal(write(go[1], "a", 1), 1);
	assert_int_equal(waitpid(family, NULL, 0), family);
	watch_read(&w);
	assert_int_equal(w.n_hits, 0);
	close(go[0]);
	close(go[1]);
	watch_end(&w);
}

/* ---- programs ---- */

long chosen_target(long number, int negative);

__attribute__((noinline)) long chosen_target(long number, int negative)
{
	volatile short in_memory = -5;

	USDT_PROBE("chosen", "target", "8@%0 -4@%1 -2@%2 4@$77", "r"(number), "r"(negative),
		   "m"(in_memory));
	return number + negative + in_memory;
}

static void functions_and_probes_of_programs_have_their_arguments(void **state)
{
	enum { CALLS = 50 };
	char self[200], text[1024];
	const ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t calls = 0, probes = 0, few = 0;
	struct watch w;

	(void)state;
	assert_true(len > 0);
	self[len] = 0;
	/* perf reads no memory of a process, where arg3 is. */
	snprintf(text, sizeof(text),
		 "uprobe:chosen_target@\"%s\"//untraced/,"
		 "usdt:chosen:target@\"%s\"//%suntraced/,"
		 "usdt:chosen:target@\"%s\"/arg2 < -40 && arg4 == 77/%suntraced/",
		 self, self, by_perf() ? "fields=arg1 arg2 arg4," : "", self,
		 by_perf() ? "fields=arg1 arg2 arg4," : "");
	watch_begin(&w, text, 0);
	assert_int_equal(w.chosen->n, 3);
	for (int i = 0; i < CALLS; i++)
		chosen_target(1000 + i, -i);
	watch_read(&w);
	for (size_t i = 0; i < w.n_hits; i++) {
		const struct user_hit *hit = &w.hits[i];
		const uint32_t id = ev_user_id(&hit->head);

		assert_int_equal(hit->head.pid, getpid());
		if (id == w.ids[0]) {
			assert_int_equal(number_of(hit, "arg1"), 1000 + calls);
			assert_int_equal((int32_t)number_of(hit, "arg2"), -(int32_t)calls);
			calls++;
			continue;
		}
		if (id == w.ids[1]) {
			assert_int_equal(number_of(hit, "arg1"), 1000 + probes);
			assert_int_equal((int64_t)number_of(hit, "arg2"), -(int64_t)probes);
			probes++;
		}
		few += id == w.ids[2];
		if (!by_perf())
			assert_int_equal((int64_t)number_of(hit, "arg3"), -5);
		assert_int_equal(number_of(hit, "arg4"), 77);
	}
	assert_int_equal(calls, CALLS);
	assert_int_equal(probes, CALLS);
	assert_int_equal(few, CALLS - 41);
	watch_end(&w);
}

/* Tasks of no VM, arguments in memory, and the name of the task where the kernel's filter does not
 * compare it. */
static void what_perf_cannot_do_is_refused(void **state)
{
	static const struct {
		const char *text;
		int error;
	} cases[] = {
		{"usdt:chosen:target@\"/proc/self/exe\"//untraced/", -ENOTSUP},
		{"usdt:chosen:target@\"/proc/self/exe\"/arg3 < 0/fields=arg1,untraced/", -ENOTSUP},
		{"uprobe:chosen_target@\"/proc/self/exe\"/comm == \"a\"/untraced/", -ENOTSUP},
		{"task:task_rename/comm == \"a\" || (pid & 1) == 1/", -ENOTSUP},
		{"task:task_rename//stack/", -ENOTSUP},
		{"task:task_rename/comm == \"a\" || tid == 5/", 0},
		{"task:task_rename/(pid & 1) == 1 && cpu < 4/", 0},
	};
	const struct capture_options options = {.kind = CAPTURE_HOST, .backend = variant->backend};
	const struct capture_watch watch = {CAPTURE_WATCH_THREAD, getpid(), "thread"};
	struct capture *capture;
	char why[256];

	(void)state;
	if (capture_open(&options, &capture, why, sizeof(why)))
		fail_msg("capture_open: %s", why);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct chosen_events *c = calloc(1, sizeof(*c));
		struct expr_error error = {0};
		uint32_t id;

		assert_non_null(c);
		if (chosen_events_add(c, NULL, cases[i].text, &error))
			fail_msg("%s: %s", cases[i].text, error.text);
		if (capture_event_add(capture, &c->events[0].capture, &id) != cases[i].error)
			fail_msg("%s", cases[i].text);
		free(c);
	}
	assert_int_equal(capture_event_watch(capture, &watch), -ENOTSUP);
	capture_close(capture);
}

static void what_does_not_exist_is_named(void **state)
{
	static const struct {
		const char *text, *says;
		size_t at;
	} wrong[] = {
		{"sched:sched_swich", "did you mean sched:sched_switch?", 0},
		{"shed:sched_switch", "did you mean 'sched'?", 0},
		{"task:task_rename,sched:sched_process_exce", "sched:sched_process_exec?", 17},
		{"task:task_rename/newcom == \"a\"/", "did you mean 'newcomm'?", 17},
		{"task:task_rename//fields=pid oldcom/", "did you mean 'oldcomm'?", 25},
		{"guest:sched:sched_switch", "cannot be chosen here", 0},
		{"sched:*", "name each event", 0},
		{"uprobe:chosen_targe@/proc/self/exe", "did you mean chosen_target?", 0},
		{"usdt:chosen:targets@/proc/self/exe", "did you mean target?", 0},
		{"uprobe:main@/proc/self/status", "is no program", 0},
		{"uprobe:main@/no/such/file", "cannot be read: No such file", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct chosen_events *c = calloc(1, sizeof(*c));
		struct expr_error error = {0};

		assert_non_null(c);
		assert_true(chosen_events_add(c, NULL, wrong[i].text, &error) < 0);
		if (!strstr(error.text, wrong[i].says) || error.at != wrong[i].at)
			fail_msg("%s: %zu: %s", wrong[i].text, error.at, error.text);
		free(c);
	}
}

/* They are for the guest's kernel to resolve. */
static void events_of_guests_become_a_request(void **state)
{
	static const char text[] =
		"guest:block:block_rq_issue/nr_sector > 8/key=sector,fields=dev sector/,"
		"host:sched:sched_process_exec//untraced/,"
		"guest:kprobe:no_such_function, guest:no:such_event";
	static const struct {
		const char *text, *says;
		size_t at;
	} wrong[] = {
		{"guest:uprobe:main@/bin/sh", "programs cannot be chosen", 0},
		{"guest:sched:*", "name each event", 0},
		{"guest:sched:sched_switch//stack/",
		 "'stack' cannot be recorded in a guest: its owner's policy allows no stacks", 0},
	};
	struct chosen_events *c = calloc(1, sizeof(*c));
	struct message_config *guest = calloc(1, sizeof(*guest));
	struct expr_error error = {0};

	(void)state;
	assert_true(c && guest);
	if (chosen_events_add(c, guest, text, &error))
		fail_msg("%s", error.text);
	assert_int_equal(c->n, 1);
	assert_string_equal(c->events[0].description.spec,
			    "host:sched:sched_process_exec//untraced/");
	assert_int_equal(guest->asks, 1u << CONFIG_EVENTS);
	assert_int_equal(guest->n_events, 3);
	assert_int_equal(guest->events[0].kind, USER_TRACEPOINT);
	assert_string_equal(guest->events[0].system, "block");
	assert_string_equal(guest->events[0].name, "block_rq_issue");
	assert_string_equal(guest->events[0].filter, "nr_sector > 8");
	assert_string_equal(guest->events[0].fields, "dev sector");
	assert_string_equal(
		guest->events[0].spec,
		"guest:block:block_rq_issue/nr_sector > 8/key=sector,fields=dev sector/");
	assert_int_equal(guest->events[1].kind, USER_KPROBE);
	assert_string_equal(guest->events[1].system, "kprobe");
	assert_string_equal(guest->events[1].name, "no_such_function");
	assert_string_equal(guest->events[2].spec, "guest:no:such_event");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_true(chosen_events_add(c, guest, wrong[i].text, &error) < 0);
		if (!strstr(error.text, wrong[i].says) || error.at != wrong[i].at)
			fail_msg("%s: %zu: %s", wrong[i].text, error.at, error.text);
	}
	guest->n_events = VS_CONFIG_EVENTS_MAX;
	assert_int_equal(chosen_events_add(c, guest, "guest:irq:softirq_raise", &error), -E2BIG);
	free(guest);
	free(c);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest only_bpf[] = {
		cmocka_unit_test(hits_of_watched_tasks_count),
		cmocka_unit_test(hits_have_the_stacks_of_their_tasks),
		cmocka_unit_test(the_stack_of_a_hit_is_for_those_who_get_the_hit),
	};
	const struct CMUnitTest only_perf[] = {
		cmocka_unit_test(what_perf_cannot_do_is_refused),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hits_are_those_that_tracefs_shows),
		cmocka_unit_test(filters_keep_what_their_expression_is_true_for),
		cmocka_unit_test(texts_at_odd_places_are_whole),
		cmocka_unit_test(a_flood_is_limited_and_counted),
		cmocka_unit_test(the_last_count_is_what_was_drained),
		cmocka_unit_test(users_of_one_capture_share_an_event),
		cmocka_unit_test(functions_and_probes_of_programs_have_their_arguments),
		cmocka_unit_test(what_does_not_exist_is_named),
		cmocka_unit_test(events_of_guests_become_a_request),
	};
	const bool perf = argc > 1 && !strcmp(argv[1], "perf");
	int failed = 0, ran = 0;

	for (size_t i = 0; i < N_VARIANTS; i++) {
		if ((variants[i].backend == CAPTURE_BY_PERF) != perf)
			continue;
		variant = &variants[i];
		if (!variant_works(variant, CAPTURE_HOST))
			continue;
		cmocka_set_test_filter(argc > 1 + perf ? argv[1 + perf] : NULL);
		failed += cmocka_run_group_tests_name(variant->name, tests, NULL, NULL);
		failed += perf ? cmocka_run_group_tests(only_perf, NULL, NULL)
			       : cmocka_run_group_tests(only_bpf, NULL, NULL);
		ran++;
	}
	return ran ? failed : 77;
}
