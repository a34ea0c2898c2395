/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/records.h"

#include <errno.h>
#include <json.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/sample.h"
#include "host-collector/daemon/disk.h"
#include "host-collector/daemon/figures_interval.h"
#include "host-collector/daemon/incident_jobs.h"
#include "host-collector/daemon/record_facts.h"
#include "host-collector/daemon/version_search.h"
#include "host-collector/fleet/incident_record.h"
#include "host-collector/fleet/thread_owners.h"

enum {
	/* Records of a VM that may be written again: all that are ongoing, and some others. */
	KEPT = LIVE_ONGOING_MAX + 8,
	KEPT_LOOK_MS = 1000,  /* how often they are checked */
	KEPT_MS = 120000,     /* how long one is kept; its recording is saved long before that */
	SUM_MS = 1000,        /* how often the sum above the rate is written */
	SUM_LASTS_MS = 60000, /* how long one sum counts; then another begins */
	OPEN_MAX_MS = 60000,  /* an ongoing incident is closed after this time without news */
};

/* A record that may be written again. */
struct kept {
	struct json_object *record; /* NULL: free */
	char id[HOST_ID_BYTES];
	bool stall, ongoing;
	uint32_t vcpu;
	int64_t begin_ns, end_ns;
	unsigned seq;
	uint64_t written_ms;
};

struct records_vm {
	struct records *records;
	struct watched_vm *vm;
	const struct live *live; /* NULL: no run */
	const struct metrics *metrics;
	struct vm_facts facts;
	struct version_wanted version;
	struct kept kept[KEPT];
	size_t n_kept;
	size_t newest_firing; /* index of a kept record; KEPT: none */
	struct figures_interval figures;
	bool summed; /* this VM is counted in the sum */
	struct records_vm *next;
};

struct records {
	struct records_options options;
	uv_loop_t *loop;
	struct outbox *outbox; /* NULL: none */
	struct host_facts host;
	struct record_labels labels; /* of the host */
	struct record_numa numa;
	struct thread_owners *owners;
	struct version_search *versions;
	struct records_vm *vms;
	bool facts_wanted;         /* a VM's process or its VMM's version is not known yet */
	uint64_t figures_first_ms; /* no interval of figures in progress began before this */
	double tokens;
	uint64_t tokens_ms;
	struct incident_sum sum;
	unsigned sum_seq;
	bool sum_changed;
	uint64_t sum_begin_ms, sum_ms, kept_ms;
	size_t n_jobs; /* hashes in progress */
	bool closing;
};

static void line_add(struct records *r, struct json_object *record)
{
	char line[INCIDENT_LINE_MAX];
	const size_t len = incident_record_line(record, line, sizeof(line));

	if (len)
		outbox_add(r->outbox, SEGMENT_INCIDENTS, line, len);
}

static size_t on_loss_line(void *context, const struct outbox_loss *loss, char *out, size_t bytes)
{
	const struct records *r = context;
	struct json_object *record = incident_loss_json(&r->host, loss);
	const size_t len = incident_record_line(record, out, bytes);

	json_object_put(record);
	return len;
}

/* ---- the rate ---- */

static bool token_take(struct records *r)
{
	const uint64_t now = clock_monotonic_ms();
	const double rate = (double)r->options.config->outbox_rate;

	r->tokens += (double)(now - r->tokens_ms) * rate / 60000;
	r->tokens_ms = now;
	if (r->tokens > rate)
		r->tokens = rate;
	if (r->tokens < 1)
		return false;
	r->tokens -= 1;
	return true;
}

static void sum_write(struct records *r)
{
	struct json_object *record = incident_sum_json(&r->host, &r->sum);

	if (record) {
		incident_record_seq(record, r->sum_seq++, false);
		line_add(r, record);
	}
	json_object_put(record);
	r->sum_changed = false;
	r->sum_ms = clock_monotonic_ms();
}

static void sum_add(struct records_vm *v, const struct incident *incident)
{
	struct records *r = v->records;

	if (!r->sum.count) {
		r->sum.begin_realtime_ns = clock_realtime_ns();
		r->sum_begin_ms = r->sum_ms = clock_monotonic_ms();
	}
	r->sum.end_realtime_ns = clock_realtime_ns();
	r->sum.count++;
	r->sum.vms += !v->summed;
	v->summed = true;
	if (incident)
		r->sum.by_verdict[incident->verdict]++;
	else
		r->sum.triggers++;
	r->sum_changed = true;
}

/* The same record is written again, with more, for a minute; then a new one begins. */
static void sum_tick(struct records *r, uint64_t now_ms)
{
	if (r->sum_changed && now_ms - r->sum_ms >= SUM_MS)
		sum_write(r);
	if (r->sum.count && !r->sum_changed && now_ms - r->sum_begin_ms > SUM_LASTS_MS) {
		r->sum = (struct incident_sum){0};
		r->sum_seq = 0;
		for (struct records_vm *v = r->vms; v; v = v->next)
			v->summed = false;
	}
}

/* ---- content of a record ---- */

/* The UUID of the VM that a thread of the host works for. */
static void culprit_vm(const struct records *r, const struct report_culprit *c,
		       struct record_culprit *out)
{
	const struct records_options *o = &r->options;
	const pid_t process = thread_owners_process(r->owners, c->pid, clock_monotonic_ms());
	const struct watched_vm *vm = process ? o->vm_find(o->context, process, NULL) : NULL;

	if (!vm)
		vm = o->vm_find(o->context, 0, c->vm.name);
	for (const struct records_vm *v = r->vms; vm && v; v = v->next) {
		if (v->vm == vm)
			snprintf(out->vm_uuid, sizeof(out->vm_uuid), "%s", v->facts.uuid);
	}
	if (!out->vm_uuid[0] && process)
		thread_owners_uuid(r->owners, process, out->vm_uuid);
}

static void culprits_fill(const struct records *r, const struct incident *i,
			  struct record_culprit *out)
{
	memset(out, 0, REPORT_CULPRITS_MAX * sizeof(*out));
	for (size_t k = 0; k < i->n_culprits; k++) {
		if (!i->culprits[k].host)
			continue;
		cgroup_unit(i->culprits[k].cgroup, out[k].unit, sizeof(out[k].unit));
		if (i->culprits[k].vm.name[0])
			culprit_vm(r, &i->culprits[k], &out[k]);
	}
}

/* Converts a time of the host's timeline to CLOCK_REALTIME. */
static int64_t wall_ns(const struct records_vm *v, struct host_ns t)
{
	int64_t offset;

	return pipeline_wall_offset(live_pipeline(v->live), t, &offset) ? t.ns + offset
									: clock_realtime_ns();
}

static void kept_forget(struct records_vm *v, struct kept *k)
{
	v->n_kept -= k->record != NULL;
	json_object_put(k->record);
	if (v->newest_firing == (size_t)(k - v->kept))
		v->newest_firing = KEPT;
	*k = (struct kept){0};
}

/* Returns a free place. If there is none, forgets the oldest record that needs no further line. */
static struct kept *kept_new(struct records_vm *v)
{
	struct kept *k = v->kept;

	for (size_t i = 1; i < KEPT && k->record; i++) {
		struct kept *at = &v->kept[i];

		if (!at->record || (k->ongoing && !at->ongoing) ||
		    (k->ongoing == at->ongoing && at->written_ms < k->written_ms))
			k = at;
	}
	kept_forget(v, k);
	return k;
}

/* Returns the record of the same incident that was written while it lasted, or NULL. */
static struct kept *kept_ongoing(struct records_vm *v, const struct incident *i)
{
	for (size_t k = 0; v->n_kept && k < KEPT; k++) {
		struct kept *at = &v->kept[k];

		if (at->record && at->ongoing && at->vcpu == i->vcpu && i->begin.ns <= at->end_ns &&
		    i->end.ns >= at->begin_ns)
			return at;
	}
	return NULL;
}

/* Writes the record, and keeps it. before: an earlier record of the same incident, or NULL. */
static void record_write(struct records_vm *v, const struct incident_record *record,
			 struct kept *before)
{
	struct kept *k = before ? before : kept_new(v);
	struct json_object *json;

	if (!before)
		incident_record_id(record, k->id);
	json = incident_record_json(record, k->id);
	if (!json)
		return;
	v->n_kept += !k->record;
	json_object_put(k->record);
	k->record = json;
	if (before)
		k->seq++;
	k->stall = record->incident;
	k->ongoing = record->incident && record->incident->ongoing;
	if (record->incident) {
		k->vcpu = record->incident->vcpu;
		k->end_ns = record->incident->end.ns;
	}
	k->begin_ns = record->begin_ns;
	k->written_ms = clock_monotonic_ms();
	incident_record_seq(json, k->seq, k->ongoing);
	line_add(v->records, json);
	if (!k->stall)
		v->newest_firing = (size_t)(k - v->kept);
}

/* ---- incidents ---- */

void records_incident(struct records_vm *v, const struct incident *i)
{
	struct record_culprit culprits[REPORT_CULPRITS_MAX];
	struct incident_record record = {.incident = i, .trigger = "stall"};
	struct storage storage;
	struct kept *before;

	if (!v || !v->records->outbox || !v->live)
		return;
	before = kept_ongoing(v, i);
	if (!before && !token_take(v->records)) {
		if (!i->ongoing)
			sum_add(v, i);
		return;
	}
	record_vm_facts(v->vm, v->live, v->version.version, &v->facts);
	culprits_fill(v->records, i, culprits);
	record.host = &v->records->host;
	record.vm = &v->facts;
	record.begin_ns = before ? before->begin_ns : i->begin.ns;
	record.begin_realtime_ns = wall_ns(v, i->begin);
	record.duration_ns = i->end.ns - i->begin.ns;
	record.end_realtime_ns = wall_ns(v, i->end);
	record.time_error_ns = i->err_ns;
	record.host_clock_error_ns = host_clock_error_ns();
	record.culprits = culprits;
	record.numa_node = record_numa_node(&v->records->numa, v->records->options.root, i);
	if (record_storage(v->records->options.root, v->vm, i, &storage))
		record.storage = &storage;
	record.guest_text = v->records->options.config->outbox_guest_text;
	record_counts(v->live, &record);
	record_write(v, &record, before);
}

void records_firing(struct records_vm *v, const struct trigger_firing *firing)
{
	struct incident_record record = {
		.trigger = trigger_name(firing->trigger), .text = firing->text, .numa_node = -1};

	if (!v || !v->records->outbox || !v->live)
		return;
	if (!token_take(v->records)) {
		sum_add(v, NULL);
		return;
	}
	record_vm_facts(v->vm, v->live, v->version.version, &v->facts);
	record.host = &v->records->host;
	record.vm = &v->facts;
	record.begin_realtime_ns = record.end_realtime_ns = clock_realtime_ns();
	record.begin_ns = (int64_t)clock_monotonic_ms() * 1000000;
	record.time_error_ns = UINT64_MAX; /* the condition is older than its report */
	record.host_clock_error_ns = host_clock_error_ns();
	record.guest_text = v->records->options.config->outbox_guest_text;
	record_counts(v->live, &record);
	record_write(v, &record, NULL);
}

/* ---- evidence ---- */

struct hashing {
	uv_work_t work;
	struct records *records;
	struct json_object *record; /* the job holds a reference */
	char id[HOST_ID_BYTES];
	unsigned seq;
	bool ongoing;
	char path[DISK_PATH_MAX + 16], name[192];
	char sha256[65];
	uint64_t bytes;
	int err;
};

static void records_free(struct records *r)
{
	outbox_close(r->outbox);
	thread_owners_free(r->owners);
	version_search_free(r->versions);
	free(r);
}

static void on_hash(uv_work_t *work)
{
	struct hashing *h = work->data;

	h->err = fleet_file_hash(h->path, h->sha256, &h->bytes);
}

static void on_hashed(uv_work_t *work, int status)
{
	struct hashing *h = work->data;
	struct records *r = h->records;
	char key[2 * HOST_ID_BYTES + 8];
	struct record_evidence evidence = {
		.folder = h->name, .bytes = h->bytes, .sha256 = h->sha256};

	snprintf(key, sizeof(key), "%s/%s.vcs", r->host.id, h->id);
	if (!status && !h->err) {
		const struct daemon_config *c = r->options.config;

		if (!r->closing && c->ship_evidence && *c->ship) {
			if (outbox_evidence(r->outbox, h->path, h->id))
				r->options.say(r->options.context, "",
					       "the evidence cannot be put into the outbox");
			else
				evidence.key = key;
		}
		incident_record_evidence(h->record, &evidence);
		incident_record_seq(h->record, h->seq, h->ongoing);
		line_add(r, h->record);
	}
	json_object_put(h->record);
	free(h);
	if (--r->n_jobs == 0 && r->closing)
		records_free(r);
}

static struct kept *kept_saved(struct records_vm *v, const struct incident *i)
{
	if (!i)
		return v->newest_firing < KEPT ? &v->kept[v->newest_firing] : NULL;
	for (size_t k = 0; k < KEPT; k++) {
		struct kept *at = &v->kept[k];

		if (at->record && at->stall && at->vcpu == i->vcpu && at->end_ns == i->end.ns)
			return at;
	}
	return NULL;
}

void records_saved(struct records_vm *v, const struct incident *i, const char *folder)
{
	struct kept *k = v && v->records->outbox ? kept_saved(v, i) : NULL;
	const char *name = strrchr(folder, '/');
	struct hashing *h = k && k->record ? calloc(1, sizeof(*h)) : NULL;

	if (!h)
		return;
	h->records = v->records;
	h->record = json_object_get(k->record);
	memcpy(h->id, k->id, sizeof(h->id));
	h->seq = ++k->seq;
	h->ongoing = k->ongoing;
	snprintf(h->path, sizeof(h->path), "%s" INCIDENT_UNFINISHED "/run.vcs", folder);
	snprintf(h->name, sizeof(h->name), "%s", name ? name + 1 : folder);
	h->work.data = h;
	v->records->n_jobs++;
	if (!uv_queue_work(v->records->loop, &h->work, on_hash, on_hashed))
		return;
	v->records->n_jobs--;
	json_object_put(h->record);
	free(h);
}

/* ---- figures ---- */

static void figures_write(struct records_vm *v)
{
	const struct figures_of of = {.host = &v->records->host,
				      .facts = &v->facts,
				      .vm = v->vm,
				      .live = v->live,
				      .metrics = v->metrics};
	char *line = malloc(OUTBOX_LINE_MAX);
	size_t len;

	if (!line)
		return;
	record_vm_facts(v->vm, v->live, v->version.version, &v->facts);
	len = figures_interval_line(&v->figures, &of, line, OUTBOX_LINE_MAX);
	if (len)
		outbox_add(v->records->outbox, SEGMENT_FIGURES, line, len);
	free(line);
}

bool records_want_figures(const struct records *r)
{
	return r->outbox && daemon_config_figures_ns(r->options.config);
}

/* Writes the line of one VM in each tick, because its histograms must be summed up for it. */
static void figures_tick(struct records *r, uint64_t now_ms)
{
	const uint64_t every_ms = daemon_config_figures_ns(r->options.config) / 1000000;
	uint64_t first_ms = now_ms;

	if (!every_ms || now_ms - r->figures_first_ms < every_ms)
		return;
	for (struct records_vm *v = r->vms; v; v = v->next) {
		if (!v->live || !v->metrics)
			continue;
		if (now_ms - v->figures.begin_ms >= every_ms) {
			figures_write(v);
			return;
		}
		if (v->figures.begin_ms < first_ms)
			first_ms = v->figures.begin_ms;
	}
	r->figures_first_ms = first_ms;
}

/* ---- VMs ---- */

struct records_vm *records_vm_new(struct records *r, struct watched_vm *vm)
{
	struct records_vm *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->records = r;
	v->vm = vm;
	v->newest_firing = KEPT;
	v->next = r->vms;
	r->vms = v;
	return v;
}

void records_vm_begin(struct records_vm *v, const struct live *live, const struct metrics *metrics)
{
	const struct vm_config *config = watched_vm_config(v->vm);

	records_vm_end(v);
	if (!live)
		return;
	v->live = live;
	v->metrics = records_want_figures(v->records) ? metrics : NULL;
	v->facts = (struct vm_facts){.clock_error_ns = UINT64_MAX};
	snprintf(v->facts.owner, sizeof(v->facts.owner), "%s", config->owner);
	snprintf(v->facts.manager, sizeof(v->facts.manager), "%s", config->manager);
	v->records->facts_wanted = true;
	figures_interval_begin(&v->figures);
}

void records_vm_end(struct records_vm *v)
{
	if (v->live && v->metrics && clock_monotonic_ms() > v->figures.begin_ms)
		figures_write(v);
	figures_interval_fini(&v->figures);
	version_forget(v->records->versions, &v->version);
	v->live = NULL;
	v->metrics = NULL;
}

/* Writes the last line of an incident that was reported while it lasted, and whose end was not
 * reported. */
static void kept_close(struct records_vm *v, struct kept *k)
{
	k->ongoing = false;
	incident_record_seq(k->record, ++k->seq, false);
	line_add(v->records, k->record);
	k->written_ms = clock_monotonic_ms();
}

void records_vm_free(struct records_vm *v)
{
	struct records_vm **at;

	if (!v)
		return;
	records_vm_end(v);
	for (size_t k = 0; k < KEPT; k++) {
		if (v->kept[k].record && v->kept[k].ongoing)
			kept_close(v, &v->kept[k]);
		json_object_put(v->kept[k].record);
	}
	for (at = &v->records->vms; *at != v; at = &(*at)->next)
		;
	*at = v->next;
	free(v);
}

/* Closes incidents whose end was not reported: the guest's side may have shown that they were none,
 * or the run ended. Forgets records that will not be written again. */
static void kept_tick(struct records_vm *v, uint64_t now_ms)
{
	size_t left = v->n_kept;

	for (struct kept *at = v->kept; left; at++) {
		const uint64_t age_ms = now_ms - at->written_ms;

		if (!at->record)
			continue;
		left--;
		if (at->ongoing && age_ms >= OPEN_MAX_MS &&
		    !(v->live && live_ongoing(v->live, COLLECTOR_VM)))
			kept_close(v, at);
		if (!at->ongoing && age_ms >= KEPT_MS)
			kept_forget(v, at);
	}
}

/* ---- life ---- */

/* Completes what was not known when a run began: the process, for example. */
static bool facts_known(struct records_vm *v)
{
	if (!v->facts.vmm[0])
		record_vm_facts(v->vm, v->live, v->version.version, &v->facts);
	return v->facts.vmm[0] &&
	       (*watched_vm_version(v->vm) ||
		version_ask(v->records->versions, &v->version, watched_vm_pid(v->vm)));
}

static void facts_tick(struct records *r)
{
	r->facts_wanted = false;
	for (struct records_vm *v = r->vms; v; v = v->next)
		r->facts_wanted |= v->live && !facts_known(v);
}

void records_tick(struct records *r)
{
	const uint64_t now_ms = clock_monotonic_ms();
	const bool kept_look = now_ms - r->kept_ms >= KEPT_LOOK_MS;

	record_labels(&r->labels, r->options.config->labels, &r->host);
	if (!r->outbox)
		return;
	outbox_configure(r->outbox, r->options.config->outbox_budget_bytes,
			 *r->options.config->ship);
	sum_tick(r, now_ms);
	figures_tick(r, now_ms);
	if (r->facts_wanted)
		facts_tick(r);
	for (struct records_vm *v = kept_look ? r->vms : NULL; v; v = v->next)
		kept_tick(v, now_ms);
	if (kept_look)
		r->kept_ms = now_ms;
	outbox_tick(r->outbox, now_ms);
}

void records_host_get(const struct records *r, struct metrics_host *out)
{
	const struct host_facts *host = &r->host;

	*out = (struct metrics_host){.kernel = host->kernel,
				     .cpu_model = host->cpu_model,
				     .microcode = host->microcode,
				     .n_labels = host->n_labels};
	for (size_t i = 0; i < host->n_labels; i++) {
		out->labels[i].key = host->labels[i].key;
		out->labels[i].value = host->labels[i].value;
	}
}

bool records_stats(const struct records *r, struct outbox_stats *out)
{
	if (r->outbox)
		outbox_stats_get(r->outbox, out);
	return r->outbox;
}

/* The shipper's group reads the outbox. */
static gid_t shipper_group(const struct daemon_config *config)
{
	const struct passwd *user =
		geteuid() || !*config->ship ? NULL : getpwnam(config->ship_user);

	return user ? user->pw_gid : (gid_t)-1;
}

static void on_outbox_say(void *context, const char *line)
{
	const struct records *r = context;

	r->options.say(r->options.context, "", line);
}

static void outbox_begin(struct records *r)
{
	const struct daemon_config *c = r->options.config;
	char folder[DAEMON_PATH_MAX + 16], why[512];
	const struct outbox_options outbox = {
		.folder = folder,
		.host_id = r->host.id,
		.boot_id = r->host.boot_id,
		.budget_bytes = c->outbox_budget_bytes,
		.keep_s = c->outbox_keep_ns / 1000000000,
		.shipped = *c->ship,
		.group = shipper_group(c),
		.loss_line = on_loss_line,
		.say = on_outbox_say,
		.context = r,
	};

	snprintf(folder, sizeof(folder), "%s/outbox", c->directory);
	r->outbox = outbox_open(&outbox);
	if (*c->ship && !geteuid() && outbox.group == (gid_t)-1) {
		snprintf(why, sizeof(why), "ship_user: there is no user %s: nothing is delivered",
			 c->ship_user);
		r->options.say(r->options.context, "", why);
	}
}

struct records *records_new(uv_loop_t *loop, const struct records_options *options)
{
	struct records *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->options = *options;
	r->loop = loop;
	r->tokens = (double)options->config->outbox_rate;
	r->tokens_ms = clock_monotonic_ms();
	host_facts_read(options->root, &r->host);
	r->owners = thread_owners_new("/proc");
	r->versions = version_search_new(loop, "/proc");
	if (r->owners && r->versions && options->config->outbox)
		outbox_begin(r);
	if (!r->owners || !r->versions || (options->config->outbox && !r->outbox)) {
		records_free(r);
		return NULL;
	}
	return r;
}

void records_close(struct records *r)
{
	if (!r)
		return;
	if (r->outbox && r->sum_changed)
		sum_write(r);
	while (r->vms)
		records_vm_free(r->vms);
	r->closing = true;
	if (!r->n_jobs)
		records_free(r);
}
