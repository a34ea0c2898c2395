/* SPDX-License-Identifier: GPL-2.0-only */
/* The commands of the control socket: one table row and one function for each. */
#include <errno.h>
#include <json.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/daemon/control.h"
#include "host-collector/daemon/daemon.h"
#include "host-collector/daemon/flight.h"
#include "host-collector/daemon/kvm_feed.h"
#include "host-collector/daemon/spool.h"
#include "host-collector/daemon/streams.h"
#include "host-collector/util/json_add.h"
#include "host-collector/util/json_get.h"

/* The VM that the request names, or NULL with `why`. */
static struct watched_vm *vm_of(struct vm_daemon *d, struct json_object *request, char *why,
				size_t why_bytes)
{
	const char *name = json_get_string(request, "vm");
	struct watched_vm *vm = vm_daemon_find(d, name);

	if (!vm)
		snprintf(why, why_bytes,
			 "VM %.60s: not attached; `vcpuscope ctl list` shows who is",
			 *name ? name : "?");
	return vm;
}

/* ---- list and status ---- */

static const char *state_text(const struct watched_vm_status *s)
{
	static const char *const states[] = {[WATCHED_WAITING] = "waiting",
					     [WATCHED_RUNNING] = "running",
					     [WATCHED_GONE] = "gone"};

	return states[s->state];
}

static const char *channel_text(const struct watched_vm_status *s)
{
	static const char *const states[] = {[LINK_DOWN] = "down",
					     [LINK_SILENT] = "silent",
					     [LINK_TALKING] = "ok",
					     [LINK_REFUSED] = "refused"};

	if (s->state != WATCHED_RUNNING || !s->collector.has_channel)
		return "none";
	return states[s->collector.link.state];
}

/* Returns the carrier of a channel's address. */
static const char *carrier_text(const char *address)
{
	static const struct {
		const char *prefix, *carrier;
	} rows[] = {{"vsock:", "vsock"},
		    {"listen:vsock:", "vsock"},
		    {"tcp:", "tcp"},
		    {"listen:tcp:", "tcp"},
		    {"listen:tls:", "tls"},
		    {"listen:unix:", "unix"},
		    {"hybrid:", "hybrid vsock"},
		    {"hybrid-connect:", "hybrid vsock"},
		    {"", "virtio-serial"}};
	size_t i = 0;

	if (!*address)
		return "none";
	while (strncmp(address, rows[i].prefix, strlen(rows[i].prefix)) != 0)
		i++;
	return rows[i].carrier;
}

static struct json_object *channel_describe(const struct guest_link_stats *l)
{
	struct json_object *o = json_object_new_object();
	const struct record_stats *r = &l->decoder;

	json_add_uint(o, "connections", l->connections);
	json_add_uint(o, "bytes", r->session.bytes);
	json_add_uint(o, "frames", l->frames);
	json_add_uint(o, "damaged_frames", r->session.damaged);
	json_add_uint(o, "skipped_bytes", r->session.skipped_bytes);
	json_add_uint(o, "replayed_frames", r->session.replayed);
	json_add_uint(o, "lost_frames", r->session.lost);
	json_add_uint(o, "refused_frames", r->session.refused + r->malformed + l->refused_records);
	json_add_uint(o, "decoder_pid", (uint64_t)l->decoder_pid);
	json_add_uint(o, "decoder_deaths", l->decoder_deaths);
	json_add_uint(o, "decoder_cpu_ns", r->cpu_ns);
	json_add_uint(o, "held_ms", r->held_ms);
	json_add_uint(o, "blocked_ms", r->blocked_ms);
	return o;
}

static struct json_object *flight_describe(const struct flight_status *f)
{
	struct json_object *o = json_object_new_object();

	json_add_uint(o, "bytes", f->bytes);
	json_add_uint(o, "early_frames", f->early);
	json_add_uint(o, "stalls", f->incidents);
	json_add_uint(o, "triggers", f->triggered);
	json_add_uint(o, "folders", f->folders);
	json_add_uint(o, "stalls_without_folder", f->suppressed);
	return o;
}

static struct json_object *vm_describe(struct vm_daemon *d, const struct watched_vm *vm)
{
	const struct vm_config *config = watched_vm_config(vm);
	struct json_object *o = json_object_new_object();
	static const char *const origins[] = {[VM_BY_CTL] = "ctl",
					      [VM_BY_FILE] = "configuration",
					      [VM_BY_LIBVIRT] = "libvirt",
					      [VM_BY_KVM] = "kvm"};
	struct watched_vm_status s;
	struct flight_status flight;
	struct spool_status spool;
	const char *trouble;

	watched_vm_status_get(vm, &s);
	json_add_text(o, "origin", origins[vm_daemon_origin(d, vm)]);
	if (vm_daemon_origin(d, vm) == VM_BY_KVM)
		kvm_feed_describe(vm_daemon_kvm_feed(d), config->name, o);
	spool_status_get(vm_daemon_spool(d), vm, &spool);
	json_add_text(o, "vm", config->name);
	json_add_text(o, "state", state_text(&s));
	if (s.why[0])
		json_add_text(o, "why", s.why);
	json_add_uint(o, "runs", s.runs);
	json_add_text(o, "level",
		      config->level == CAPTURE_SUMMARY || s.shed ? "summary" : "detail");
	json_add_uint(o, "sheds", s.sheds);
	json_add_text(o, "channel", channel_text(&s));
	json_add_text(o, "carrier", carrier_text(config->channel));
	trouble = vm_daemon_channel_trouble(d, vm);
	if (s.state == WATCHED_RUNNING && s.collector.link.trouble[0])
		trouble = s.collector.link.trouble;
	if (*trouble)
		json_add_text(o, "channel_error", trouble);
	if (config->qmp[0])
		json_add_text(o, "qmp", config->qmp);
	json_object_object_add(o, "recording", json_object_new_boolean(spool.recording));
	if (spool.recording) {
		json_add_text(o, "file", spool.path);
		json_add_uint(o, "file_bytes", spool.bytes);
		json_add_uint(o, "files", spool.files);
		json_add_uint(o, "refused_frames", spool.refused_frames);
		if (spool.error)
			json_add_text(o, "recording_error", strerror(-spool.error));
	}
	flight_status_get(vm_daemon_flight(d), vm, &flight);
	if (flight.clock_method[0]) {
		json_add_text(o, "clock", flight.clock_method);
		json_add_uint(o, "clock_error_ns", flight.clock_error_ns);
	}
	if (flight.on)
		json_object_object_add(o, "flight", flight_describe(&flight));
	if (s.state != WATCHED_RUNNING)
		return o;
	json_add_uint(o, "qemu_pid", (uint64_t)s.collector.vm->qemu_pid);
	json_add_text(o, "name", s.collector.vm->name);
	json_add_text(o, "backend", s.collector.backend);
	json_object_object_add(o, "kernel_names",
			       json_object_new_boolean(s.collector.host.kernel_names));
	json_add_uint(o, "stacks", s.collector.host.stacks.named);
	json_add_uint(o, "stacks_without_names", s.collector.host.stacks.bare);
	json_add_uint(o, "vcpus", s.collector.n_vcpus);
	json_object_object_add(o, "paused", json_object_new_boolean(s.collector.paused));
	json_add_uint(o, "host_emitted", s.collector.host.events.emitted);
	json_add_uint(o, "host_dropped",
		      s.collector.host.events.dropped_kernel +
			      s.collector.host.events.dropped_user + s.collector.host.missed);
	/* Part of host_dropped: losses that cannot be assigned to a VM. */
	json_add_uint(o, "host_lost_shared", s.collector.host.lost_shared);
	if (!s.collector.has_channel)
		return o;
	json_add_uint(o, "agent_silent_ms", s.collector.agent_silent_ms);
	json_add_uint(o, "guest_emitted", s.collector.guest_emitted);
	json_add_uint(o, "guest_dropped", s.collector.guest_dropped);
	if (s.collector.link.agent_version[0])
		json_add_text(o, "agent", s.collector.link.agent_version);
	json_object_object_add(o, "link", channel_describe(&s.collector.link));
	return o;
}

struct json_object *control_vm_describe(struct vm_daemon *daemon, const struct watched_vm *vm)
{
	return vm_describe(daemon, vm);
}

static int do_list(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		   char *why, size_t why_bytes)
{
	struct json_object *list = json_object_new_array();

	(void)request, (void)why, (void)why_bytes;
	for (size_t i = 0; i < vm_daemon_n_vms(d); i++)
		json_object_array_add(list, vm_describe(d, vm_daemon_vm(d, i)));
	json_object_object_add(reply, "vms", list);
	return 0;
}

/* Losses in the host's rings belong to no VM. They are listed here, once. */
static struct json_object *captures_describe(const struct host_captures *captures)
{
	struct json_object *o = json_object_new_object();
	struct capture_shared_stats s;

	json_add_uint(o, "captures", host_captures_stats(captures, &s));
	json_add_uint(o, "vms", s.users);
	json_add_uint(o, "emitted", s.emitted);
	json_add_uint(o, "dropped", s.dropped_kernel);
	json_add_uint(o, "missed", s.missed);
	json_add_uint(o, "unclaimed", s.unclaimed);
	return o;
}

/* Returns NULL if there is no outbox. */
static struct json_object *outbox_describe(const struct records *r)
{
	static const char *const written[SEGMENT_KINDS] = {"incidents_written", "figures_written",
							   "evidence_written"};
	static const char *const lost[SEGMENT_KINDS] = {"incidents_lost", "figures_lost",
							"evidence_lost"};
	struct outbox_stats s;
	struct json_object *o;

	if (!records_stats(r, &s))
		return NULL;
	o = json_object_new_object();
	for (int k = 0; o && k < SEGMENT_KINDS; k++) {
		json_object_object_add(o, written[k], json_object_new_uint64(s.written[k]));
		json_object_object_add(o, lost[k], json_object_new_uint64(s.lost[k]));
	}
	json_add_uint(o, "delivered", s.delivered);
	json_add_uint(o, "waiting", s.waiting);
	json_add_uint(o, "bytes", s.bytes);
	json_add_text(o, "error", s.error ? strerror(-s.error) : NULL);
	json_add_uint(o, "refused", s.refused);
	json_add_text(o, "refused_error", s.refused_error ? strerror(-s.refused_error) : NULL);
	return o;
}

static int do_status(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	uint64_t deaths = 0;
	struct incident_store_stats incidents;
	struct vitals v;

	(void)request, (void)why, (void)why_bytes;
	vm_daemon_vitals(d, &v);
	for (size_t i = 0; i < vm_daemon_n_vms(d); i++) {
		struct watched_vm_status s;

		watched_vm_status_get(vm_daemon_vm(d, i), &s);
		deaths += s.collector.link.decoder_deaths;
	}
	json_add_text(reply, "version", VCPUSCOPE_VERSION);
	json_add_uint(reply, "uptime_ms", vm_daemon_uptime_ms(d));
	json_add_uint(reply, "vms", vm_daemon_n_vms(d));
	json_add_uint(reply, "cpu_ns", v.cpu_ns);
	json_add_uint(reply, "rss_bytes", v.rss_bytes);
	json_add_uint(reply, "descriptors", v.descriptors);
	json_add_uint(reply, "loop_lag_ms", v.lag_max_ms);
	json_add_uint(reply, "loop_lag_ever_ms", v.lag_ever_ms);
	json_add_uint(reply, "loop_lag_own_ms", v.lag_own_max_ms);
	json_add_uint(reply, "loop_lag_own_ever_ms", v.lag_own_ever_ms);
	json_add_uint(reply, "decoder_deaths", deaths);
	flight_queue_get(vm_daemon_flight(d), &incidents);
	json_add_uint(reply, "incidents_waiting", incidents.waiting);
	json_add_uint(reply, "reports_running", incidents.running);
	json_object_object_add(reply, "outbox", outbox_describe(vm_daemon_records(d)));
	json_object_object_add(reply, "capture", captures_describe(vm_daemon_captures(d)));
	json_add_text(reply, "directory", vm_daemon_config(d)->directory);
	json_add_uint(reply, "recordings_bytes", spool_bytes(vm_daemon_spool(d)));
	return 0;
}

/* ---- changes ---- */

static int do_attach(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	struct vm_config config;

	(void)reply;
	vm_config_default(&config);
	snprintf(config.name, sizeof(config.name), "%s", json_get_string(request, "vm"));
	json_object_object_foreach(request, key, value)
	{
		if (!strcmp(key, "command") || !strcmp(key, "vm"))
			continue;
		if (!json_object_is_type(value, json_type_string)) {
			snprintf(why, why_bytes, "%.40s: write it as a string", key);
			return -EINVAL;
		}
		if (vm_config_set(&config, key, json_object_get_string(value), why, why_bytes))
			return -EINVAL;
	}
	return vm_daemon_attach(d, &config, VM_BY_CTL, why, why_bytes);
}

static int do_detach(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	(void)reply;
	if (!vm_of(d, request, why, why_bytes))
		return -ENOENT;
	return vm_daemon_detach(d, json_get_string(request, "vm"));
}

static int do_record(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	struct watched_vm *vm = vm_of(d, request, why, why_bytes);
	const char *what = json_get_string(request, "what");
	int err;

	(void)reply;
	if (!vm)
		return -ENOENT;
	if (!strcmp(what, "start"))
		err = spool_begin(vm_daemon_spool(d), vm);
	else if (!strcmp(what, "stop"))
		err = spool_end(vm_daemon_spool(d), vm);
	else
		err = -EINVAL;
	if (err == -EINVAL)
		snprintf(why, why_bytes, "record: what? start or stop");
	else if (err)
		snprintf(why, why_bytes, "VM %s: %s", watched_vm_config(vm)->name,
			 err == -EALREADY ? "it is being recorded already"
			 : err == -ENOENT ? "it is not being recorded"
					  : strerror(-err));
	return err;
}

static int do_level(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		    char *why, size_t why_bytes)
{
	struct watched_vm *vm = vm_of(d, request, why, why_bytes);
	struct vm_config config = {0};
	int err;

	(void)reply;
	if (!vm)
		return -ENOENT;
	if (vm_config_set(&config, "level", json_get_string(request, "what"), why, why_bytes))
		return -EINVAL;
	err = watched_vm_level(vm, config.level);
	if (err)
		snprintf(why, why_bytes, "VM %s: %s", watched_vm_config(vm)->name, strerror(-err));
	return err;
}

static int do_snapshot(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		       char *why, size_t why_bytes)
{
	struct watched_vm *vm = vm_of(d, request, why, why_bytes);
	char path[512];
	int err;

	if (!vm)
		return -ENOENT;
	err = flight_snapshot(vm_daemon_flight(d), vm, path, sizeof(path));
	if (err)
		snprintf(why, why_bytes, "VM %s: %s", watched_vm_config(vm)->name,
			 err == -ENOENT    ? "its flight recorder is off (flight = no)"
			 : err == -ENODATA ? "nothing is known of it: it has not run yet, or ended "
					     "more than 10 s ago"
					   : strerror(-err));
	else
		json_add_text(reply, "directory", path);
	return err;
}

/* The VM's frames follow the answer (streams.h), unless the request fails. */
static int do_stream(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	struct watched_vm *vm = vm_of(d, request, why, why_bytes);

	(void)reply;
	return vm ? streams_check(vm, why, why_bytes) : -ENOENT;
}

static int do_reload(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	(void)request, (void)reply;
	return vm_daemon_reload(d, why, why_bytes);
}

static int do_rescan(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		     char *why, size_t why_bytes)
{
	(void)request, (void)reply, (void)why, (void)why_bytes;
	vm_daemon_rescan(d);
	return 0;
}

static struct json_object *vcpu_describe(const struct activity_row *row)
{
	struct json_object *o = json_object_new_object(), *states = json_object_new_array();

	json_add_uint(o, "vcpu", row->vcpu);
	json_add_uint(o, "tid", (uint64_t)row->tid);
	json_add_text(o, "now", vcpu_state_name(row->now));
	for (size_t i = 0; i < VCPU_STATE_COUNT; i++)
		json_object_array_add(states, json_object_new_int64(row->state_ns[i]));
	json_object_object_add(o, "state_ns", states);
	json_add_uint(o, "exits", row->exits);
	if (row->steal_known) {
		json_add_uint(o, "steal_ns", (uint64_t)row->steal_ns);
		json_add_uint(o, "steal_span_ns", (uint64_t)row->steal_span_ns);
	}
	if (row->latency_known)
		json_add_uint(o, "latency_ns", (uint64_t)row->latency_ns);
	return o;
}

static struct json_object *stall_describe(const struct flight_stall *last)
{
	struct json_object *o = json_object_new_object();

	json_add_text(o, "verdict", last->verdict);
	if (*last->culprit)
		json_add_text(o, "culprit", last->culprit);
	json_add_uint(o, "guest_cpu", last->guest_cpu);
	json_add_uint(o, "duration_ns", (uint64_t)last->duration_ns);
	if (last->wall_ns)
		json_add_uint(o, "realtime_ns", (uint64_t)last->wall_ns);
	return o;
}

/* Answers with the activity of every vCPU in the last second, and the last stall of each VM. */
static int do_top(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		  char *why, size_t why_bytes)
{
	struct json_object *list = json_object_new_array();

	(void)request, (void)why, (void)why_bytes;
	for (size_t i = 0; i < vm_daemon_n_vms(d); i++) {
		const struct watched_vm *vm = vm_daemon_vm(d, i);
		struct json_object *o = json_object_new_object();
		struct json_object *vcpus = json_object_new_array();
		struct flight_activity activity;
		struct watched_vm_status status;

		flight_activity_get(vm_daemon_flight(d), vm, &activity);
		json_add_text(o, "vm", watched_vm_config(vm)->name);
		json_object_object_add(o, "seconds", json_object_new_double(activity.seconds));
		json_add_uint(o, "ongoing", activity.ongoing);
		watched_vm_status_get(vm, &status);
		json_add_text(o, "state", state_text(&status));
		if (status.why[0])
			json_add_text(o, "why", status.why);
		if (activity.last)
			json_object_object_add(o, "last_stall", stall_describe(activity.last));
		for (size_t k = 0; k < activity.n_rows; k++)
			json_object_array_add(vcpus, vcpu_describe(&activity.rows[k]));
		json_object_object_add(o, "vcpus", vcpus);
		json_object_array_add(list, o);
	}
	json_object_object_add(reply, "vms", list);
	return 0;
}

static int do_stop(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		   char *why, size_t why_bytes)
{
	(void)request, (void)reply, (void)why, (void)why_bytes;
	vm_daemon_stop(d);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(struct vm_daemon *d, struct json_object *request, struct json_object *reply,
		   char *why, size_t why_bytes);
} rows[] = {
	{"list", do_list},     {"status", do_status}, {"attach", do_attach},
	{"detach", do_detach}, {"record", do_record}, {"level", do_level},
	{"reload", do_reload}, {"stop", do_stop},     {"snapshot", do_snapshot},
	{"top", do_top},       {"rescan", do_rescan}, {"stream", do_stream},
};

int control_command(struct vm_daemon *daemon, struct json_object *request,
		    struct json_object *reply, char *why, size_t why_bytes)
{
	const char *name = json_get_string(request, "command");

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!strcmp(rows[i].name, name))
			return rows[i].run(daemon, request, reply, why, why_bytes);
	}
	snprintf(why, why_bytes, "%.40s: no such command", *name ? name : "?");
	return -ENOSYS;
}
