/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/incident_record.h"

#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock/sample.h"
#include "host-collector/util/json_add.h"
#include "host-collector/util/json_string.h"
#include "host-collector/view/culprit_text.h"
#include "host-collector/view/finding_text.h"

/* A line keeps its bounds also if each byte of a text is escaped with six. */
enum { TEXT_MAX = 511 };

/* At most `max` bytes, without half a character at the end; "" is null. */
static void add_text(struct json_object *to, const char *key, const char *text, size_t max)
{
	char cut[TEXT_MAX + 1];
	size_t len = text ? strnlen(text, max + 1) : 0;

	if (len > max) {
		len = max;
		while (len && ((unsigned char)text[len] & 0xc0) == 0x80)
			len--;
	}
	if (!len) {
		json_add(to, key, NULL);
		return;
	}
	snprintf(cut, sizeof(cut), "%.*s", (int)len, text);
	json_add_text(to, key, cut);
}

static void add_bound(struct json_object *to, const char *key, uint64_t ns)
{
	if (ns == UINT64_MAX)
		json_add(to, key, NULL);
	else
		json_add_uint(to, key, ns);
}

static void add_known(struct json_object *to, const char *key, bool known, uint64_t n)
{
	add_bound(to, key, known ? n : UINT64_MAX);
}

static void nulls_add(struct json_object *to, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		json_object_object_add(to, keys[i], NULL);
}
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- host and VM ---- */

void record_host_add(struct json_object *to, const struct host_facts *host)
{
	struct json_object *labels = json_object_new_object();

	json_add_text(to, "vcpuscope_version", VCPUSCOPE_VERSION);
	json_add_text(to, "host_id", host->id);
	json_add_text(to, "host_boot_id", host->boot_id);
	json_add_text(to, "host_name", host->name);
	json_add_text(to, "host_kernel", host->kernel);
	add_text(to, "host_cpu_model", host->cpu_model, 64);
	add_text(to, "host_cpu_microcode", host->microcode, 31);
	for (size_t i = 0; labels && i < host->n_labels; i++)
		json_add_text(labels, host->labels[i].key, host->labels[i].value);
	json_add(to, "labels", labels);
}

void record_vm_add(struct json_object *to, const struct vm_facts *vm)
{
	static const struct vm_facts none = {.clock_error_ns = UINT64_MAX};

	if (!vm)
		vm = &none;
	add_text(to, "vm_name", vm->name, 63);
	add_text(to, "vm_uuid", vm->uuid, 36);
	add_text(to, "vm_vmm", vm->vmm, 31);
	add_text(to, "vm_vmm_version", vm->vmm_version, 63);
	add_text(to, "vm_machine_type", vm->machine_type, 63);
	add_text(to, "vm_cgroup", vm->cgroup, 255);
	add_text(to, "vm_manager", vm->manager, 31);
	add_text(to, "vm_owner", vm->owner, 127);
	add_text(to, "vm_pod_uid", vm->pod_uid, 36);
	add_text(to, "guest_kernel", vm->guest_kernel, 64);
	add_text(to, "agent_version", vm->agent_version, 31);
	add_text(to, "clock_method", vm->clock_method, 15);
	add_bound(to, "clock_error_ns", vm->clock_error_ns);
}

/* ---- parts of an incident ---- */

static struct json_object *causes_json(const struct incident *i)
{
	struct json_object *all = json_object_new_array();

	for (size_t c = 0; all && i && c < i->n_causes; c++) {
		struct json_object *one = json_object_new_object();

		json_add_text(one, "verdict", verdict_name(i->causes[c].verdict));
		json_add_int(one, "share_ns", i->causes[c].ns);
		json_object_array_add(all, one);
	}
	return all;
}

static struct json_object *breakdown_json(const struct incident *i)
{
	struct json_object *all = json_object_new_object();

	for (int s = 0; all && i && s < VCPU_STATE_COUNT; s++)
		json_add_int(all, vcpu_state_name((enum vcpu_state)s), i->breakdown_ns[s]);
	return all;
}

static struct json_object *missing_json(const struct incident *i)
{
	struct json_object *all = json_object_new_array();

	for (int m = 0; all && i && m < MISSING_COUNT; m++) {
		if (i->missing >> m & 1)
			json_object_array_add(all, json_object_new_string(missing_data_name(
							   (enum missing_data)m)));
	}
	return all;
}

static struct json_object *culprit_json(const struct report_culprit *c,
					const struct record_culprit *more, bool guest_text)
{
	struct json_object *o = json_object_new_object();
	const bool one = c->host && c->pid && c->n_tasks <= 1;

	json_add_text(o, "side", c->host ? "host" : "guest");
	json_add_text(o, "role", culprit_role_text(c));
	json_add_text(o, "cause", verdict_name(c->cause));
	json_add_int(o, "share_ns", c->share_ns);
	json_add_int(o, "tasks", c->n_tasks);
	add_known(o, "pid", one, (uint64_t)c->pid);
	add_text(o, "comm", c->host || guest_text ? c->comm : NULL, 15);
	add_text(o, "vm_name", c->vm.name, 63);
	add_text(o, "vm_uuid", more ? more->vm_uuid : NULL, 36);
	add_known(o, "vm_vcpu", c->vm.name[0] && c->vm.vcpu_known, c->vm.vcpu);
	add_known(o, "vm_claimed_by_uid", c->vm.name[0] && c->vm.claimed, c->vm.uid);
	add_text(o, "cgroup", c->cgroup, 255);
	add_text(o, "unit", more ? more->unit : NULL, 127);
	return o;
}

static struct json_object *culprits_json(const struct incident_record *r)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; all && r->incident && i < r->incident->n_culprits; i++)
		json_object_array_add(all, culprit_json(&r->incident->culprits[i],
							r->culprits ? &r->culprits[i] : NULL,
							r->guest_text));
	return all;
}

static void storage_add(struct json_object *to, const struct storage *s)
{
	static const struct storage none;

	if (!s)
		s = &none;
	add_text(to, "storage_driver", s->driver, 31);
	add_text(to, "storage_server", s->server, 127);
	add_text(to, "storage_pool", s->pool, 127);
	add_text(to, "storage_source", s->source, 255);
	add_text(to, "storage_mount", s->mount, 255);
	add_text(to, "storage_device", s->device, 15);
}

/* ---- records ---- */

void incident_record_id(const struct incident_record *r, char out[HOST_ID_BYTES])
{
	char text[512];
	const int len =
		snprintf(text, sizeof(text), "%s %s %s %s %u %lld %s", r->host->id,
			 r->host->boot_id, r->vm->uuid, r->vm->name,
			 r->incident ? r->incident->vcpu : 0, (long long)r->begin_ns, r->trigger);

	fleet_hash(text, (size_t)len, out);
}

/* The members that come first in each record. */
static struct json_object *record_begin(const char *kind, const char *id, uint64_t count)
{
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_add_text(o, "schema", "vcpuscope.incident/2");
	json_add_text(o, "record", kind);
	json_add_text(o, "incident_id", id);
	json_add_int(o, "seq", 0);
	json_add_uint(o, "count", count);
	return o;
}

static void times_add(struct json_object *o, int64_t begin_ns, int64_t end_ns, int64_t length_ns)
{
	json_add_int(o, "begin_realtime_ns", begin_ns);
	json_add_int(o, "end_realtime_ns", end_ns);
	json_add_int(o, "duration_ns", length_ns);
}

static void evidence_nulls_add(struct json_object *o)
{
	static const char *const keys[] = {"evidence_folder", "evidence_key", "evidence_bytes",
					   "evidence_sha256"};

	nulls_add(o, keys, COUNT(keys));
}

/* The last members: those of sums and losses are null in a record of an incident. */
static void others_add(struct json_object *o)
{
	static const char *const keys[] = {"vms", "lost_incidents", "lost_figures", "lost_evidence",
					   "loss_reason"};

	json_add(o, "verdicts", json_object_new_object());
	nulls_add(o, keys, COUNT(keys));
	json_add_bool(o, "truncated", false);
}

static void verdict_add(struct json_object *o, const struct incident *i)
{
	json_add_text(o, "kind", i ? guest_cpu_state_name(i->kind) : NULL);
	json_add_text(o, "verdict", i ? verdict_name(i->verdict) : NULL);
	json_add_text(o, "confidence", i ? confidence_name(i->confidence) : NULL);
	json_add_text(o, "runner_up",
		      i && i->runner_up != VERDICT_UNDETERMINED ? verdict_name(i->runner_up)
								: NULL);
}

struct json_object *incident_record_json(const struct incident_record *r, const char *id)
{
	const struct incident *i = r->incident;
	struct json_object *o = record_begin("incident", id, 1);
	const bool guest = i && i->kind != GUEST_CPU_UNKNOWN && r->guest_text;

	if (!o)
		return NULL;
	times_add(o, r->begin_realtime_ns, r->end_realtime_ns, r->duration_ns);
	add_bound(o, "time_error_ns", r->time_error_ns);
	add_bound(o, "host_clock_error_ns", r->host_clock_error_ns);
	json_add_int(o, "written_realtime_ns", clock_realtime_ns());
	json_add_bool(o, "ongoing", i && i->ongoing);
	record_host_add(o, r->host);
	add_known(o, "host_pcpu", i && i->pcpu_known, i ? i->pcpu : 0);
	add_known(o, "host_numa_node", r->numa_node >= 0, (uint64_t)r->numa_node);
	record_vm_add(o, r->vm);
	add_known(o, "vcpu", i, i ? i->vcpu : 0);
	add_known(o, "guest_cpu", i, i ? i->guest_cpu : 0);
	json_add_text(o, "trigger", r->trigger);
	verdict_add(o, i);
	json_add(o, "causes", causes_json(i));
	json_add(o, "breakdown_ns", breakdown_json(i));
	json_add(o, "missing", missing_json(i));
	add_known(o, "host_events", r->counts_known, r->host_events);
	add_known(o, "host_events_lost", r->counts_known, r->host_events_lost);
	add_known(o, "guest_events", r->guest_counts_known, r->guest_events);
	add_known(o, "guest_events_lost", r->guest_counts_known, r->guest_events_lost);
	json_add(o, "culprits", culprits_json(r));
	storage_add(o, r->storage);
	evidence_nulls_add(o);
	add_text(o, "guest_text",
		 !r->guest_text ? NULL
		 : i            ? because_text(i).text
				: r->text,
		 TEXT_MAX);
	add_text(o, "guest_task", guest ? i->task_comm : NULL, 15);
	others_add(o);
	return o;
}

static void replace(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value); /* keeps the member's place */
}

void incident_record_seq(struct json_object *record, unsigned seq, bool ongoing)
{
	replace(record, "seq", json_object_new_int64(seq));
	replace(record, "ongoing", json_object_new_boolean(ongoing));
	replace(record, "written_realtime_ns", json_object_new_int64(clock_realtime_ns()));
}

void incident_record_evidence(struct json_object *record, const struct record_evidence *e)
{
	replace(record, "evidence_folder", e->folder ? json_string_new(e->folder) : NULL);
	replace(record, "evidence_key", e->key ? json_string_new(e->key) : NULL);
	replace(record, "evidence_bytes", json_object_new_uint64(e->bytes));
	replace(record, "evidence_sha256", e->sha256 ? json_string_new(e->sha256) : NULL);
}

/* A record that is of no VM. */
static struct json_object *host_record(const char *kind, const struct host_facts *host,
				       const char *id, uint64_t count, int64_t begin_ns,
				       int64_t end_ns)
{
	static const char *const before[] = {"host_pcpu", "host_numa_node"};
	static const char *const after[] = {"vcpu",    "guest_cpu",  "trigger",  "kind",
					    "verdict", "confidence", "runner_up"};
	static const char *const counts[] = {"host_events", "host_events_lost", "guest_events",
					     "guest_events_lost"};
	static const char *const texts[] = {"guest_text", "guest_task"};
	struct json_object *o = record_begin(kind, id, count);

	if (!o)
		return NULL;
	times_add(o, begin_ns, end_ns, end_ns > begin_ns ? end_ns - begin_ns : 0);
	json_add_int(o, "time_error_ns", 0);
	add_bound(o, "host_clock_error_ns", host_clock_error_ns());
	json_add_int(o, "written_realtime_ns", clock_realtime_ns());
	json_add_bool(o, "ongoing", false);
	record_host_add(o, host);
	nulls_add(o, before, COUNT(before));
	record_vm_add(o, NULL);
	nulls_add(o, after, COUNT(after));
	json_add(o, "causes", json_object_new_array());
	json_add(o, "breakdown_ns", json_object_new_object());
	json_add(o, "missing", json_object_new_array());
	nulls_add(o, counts, COUNT(counts));
	json_add(o, "culprits", json_object_new_array());
	storage_add(o, NULL);
	evidence_nulls_add(o);
	nulls_add(o, texts, COUNT(texts));
	others_add(o);
	return o;
}

static void host_record_id(const struct host_facts *host, const char *kind, int64_t number,
			   char out[HOST_ID_BYTES])
{
	char text[256];
	const int len =
		snprintf(text, sizeof(text), "%s %s %s %lld", host->id,
			 !strcmp(kind, "sum") ? host->boot_id : "", kind, (long long)number);

	fleet_hash(text, (size_t)len, out);
}

struct json_object *incident_sum_json(const struct host_facts *host, const struct incident_sum *s)
{
	struct json_object *verdicts = json_object_new_object(), *o;
	char id[HOST_ID_BYTES];

	host_record_id(host, "sum", s->begin_realtime_ns, id);
	o = host_record("sum", host, id, s->count, s->begin_realtime_ns, s->end_realtime_ns);
	if (!o || !verdicts) {
		json_object_put(o);
		json_object_put(verdicts);
		return NULL;
	}
	for (int v = 0; v < VERDICT_COUNT; v++) {
		if (s->by_verdict[v])
			json_add_uint(verdicts, verdict_name((enum verdict)v), s->by_verdict[v]);
	}
	if (s->triggers)
		json_add_uint(verdicts, "trigger", s->triggers);
	replace(o, "verdicts", verdicts);
	replace(o, "vms", json_object_new_uint64(s->vms));
	return o;
}

struct json_object *incident_loss_json(const struct host_facts *host,
				       const struct outbox_loss *loss)
{
	static const char *const keys[SEGMENT_KINDS] = {"lost_incidents", "lost_figures",
							"lost_evidence"};
	const int64_t now = clock_realtime_ns();
	struct json_object *o;
	char id[HOST_ID_BYTES];

	host_record_id(host, "loss", (int64_t)loss->number, id);
	o = host_record("loss", host, id, loss->n[SEGMENT_INCIDENTS], now, now);
	for (int k = 0; o && k < SEGMENT_KINDS; k++)
		replace(o, keys[k], json_object_new_uint64(loss->n[k]));
	if (o)
		replace(o, "loss_reason",
			json_object_new_string(loss->full ? "disk_full" : "budget"));
	return o;
}

/* Makes the record shorter: a culprit, or else a text, the least needed first. False: nothing is
 * left. */
static bool shorten(struct json_object *record)
{
	static const char *const texts[] = {
		"guest_text",     "vm_cgroup",      "storage_mount", "evidence_folder",
		"storage_source", "storage_server", "storage_pool",  "vm_owner",
	};
	struct json_object *value = NULL;
	size_t n = 0;

	if (json_object_object_get_ex(record, "culprits", &value))
		n = json_object_array_length(value);
	if (n) {
		json_object_array_del_idx(value, n - 1, 1);
		return true;
	}
	for (size_t i = 0; i < COUNT(texts); i++) {
		if (!json_object_object_get_ex(record, texts[i], &value) || !value)
			continue;
		replace(record, texts[i], NULL);
		return true;
	}
	if (!json_object_object_get_ex(record, "labels", &value) ||
	    !json_object_object_length(value))
		return false;
	replace(record, "labels", json_object_new_object());
	return true;
}

size_t incident_record_line(struct json_object *record, char *out, size_t bytes)
{
	while (record) {
		const char *text = json_object_to_json_string_ext(record, JSON_C_TO_STRING_PLAIN);
		const size_t len = text ? strlen(text) : SIZE_MAX;

		if (len < bytes) {
			memcpy(out, text, len + 1);
			return len;
		}
		if (!text || !shorten(record))
			return 0;
		if (json_object_object_get_ex(record, "truncated", NULL))
			replace(record, "truncated", json_object_new_boolean(true));
	}
	return 0;
}
