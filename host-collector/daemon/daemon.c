/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "clock/sample.h"
#include "host-collector/daemon/agents_listener.h"
#include "host-collector/daemon/control.h"
#include "host-collector/daemon/flight.h"
#include "host-collector/daemon/host_captures.h"
#include "host-collector/daemon/kvm_feed.h"
#include "host-collector/daemon/libvirt_feed.h"
#include "host-collector/daemon/incident_page.h"
#include "host-collector/daemon/metrics_export.h"
#include "host-collector/daemon/spool.h"
#include "host-collector/daemon/streams.h"
#include "host-collector/decode/turns.h"
#include "host-collector/link/address.h"
#include "host-collector/link/socket_file.h"
#include "host-collector/link/vsock_listeners.h"

enum {
	TICK_MS = 100,
	METRICS_FILE_MS = 5000,
	LIBVIRT_LOOK_MS = 5000,
	PUMP_MS = 20,
	QUIET_PUMP_MS = 100, /* instead, after QUIET_AFTER_MS without any event */
	QUIET_AFTER_MS = 1000,
};

struct vm_daemon {
	uv_loop_t *loop;
	struct vm_daemon_options options;
	char *config_path; /* NULL: none */
	struct daemon_config config;
	struct control *control;
	struct host_captures *captures;
	struct spool *spool;
	struct records *records;
	struct flight *flight;
	struct streams *streams;
	struct metrics_export metrics;
	struct incident_page page;
	struct agents_listener *listener;
	struct vsock_listeners *vsock;
	struct libvirt_feed *libvirt; /* NULL: libvirt is not followed */
	uint64_t libvirt_look_ms;     /* when the daemon last looked for libvirt */
	bool libvirt_missing_said;
	struct kvm_feed *kvm;
	uv_timer_t timer;
	uv_timer_t pump;     /* drains the host's events */
	uint64_t pumped_ms;  /* the last time that there were events */
	uv_idle_t attaching; /* active while a VM waits to be attached */
	bool ready_reported;
	struct lag_meter lag;
	uint64_t tidied_ms;
	uint64_t start_ms;
	size_t n_vms;
	struct watched_vm *vms[DAEMON_VMS_MAX];
	enum vm_origin origins[DAEMON_VMS_MAX];
};

static void say(const struct vm_daemon *d, const char *line)
{
	d->options.say(d->options.context, line);
}

/* vm: "" for lines about the daemon itself. */
static void on_say(void *context, const char *vm, const char *line)
{
	struct vm_daemon *d = context;
	char text[640];

	snprintf(text, sizeof(text), "%s%s%s", vm, *vm ? ": " : "", line);
	say(d, text);
	if (*vm && d->streams)
		streams_say(d->streams, vm, line);
}

static struct json_object *on_describe(void *context, const struct watched_vm *vm)
{
	return control_vm_describe(context, vm);
}

/* ---- VMs ---- */

static size_t index_of(const struct vm_daemon *d, const char *name)
{
	size_t i = 0;

	while (i < d->n_vms && strcmp(watched_vm_config(d->vms[i])->name, name))
		i++;
	return i;
}

/* Reports that the daemon is ready, once it has tried to attach every VM. */
static void ready_report(struct vm_daemon *d)
{
	for (size_t i = 0; i < d->n_vms && !d->ready_reported; i++) {
		if (watched_vm_is_sought(d->vms[i]))
			return;
	}
	if (!d->ready_reported && d->options.ready)
		d->options.ready(d->options.context);
	d->ready_reported = true;
}

/*
 * Attaches one VM in each turn of the loop, because an attempt takes some ms. So many VMs at once
 * (at the start, after a reload, when libvirt comes back) delay neither events nor the control
 * socket.
 */
static void on_attaching(uv_idle_t *idle)
{
	struct vm_daemon *d = idle->data;
	size_t i = 0;

	while (i < d->n_vms && !watched_vm_is_due(d->vms[i], uv_now(d->loop)))
		i++;
	if (i < d->n_vms) {
		watched_vm_try(d->vms[i]);
		return;
	}
	uv_idle_stop(idle);
	ready_report(d);
}

static void attaching_start(struct vm_daemon *d)
{
	uv_idle_start(&d->attaching, on_attaching);
}

static void on_process(void *context, const struct watched_vm *vm, pid_t pid);

static int vm_add(struct vm_daemon *d, const struct vm_config *config, enum vm_origin origin)
{
	const struct watched_vm_events events = {
		.say = on_say, .process = on_process, .context = d};
	struct watched_vm *vm = watched_vm_new(d->loop, config, d->captures, &events);

	if (!vm)
		return -ENOMEM;
	d->origins[d->n_vms] = origin;
	if (flight_begin(d->flight, vm)) {
		watched_vm_close(vm);
		return -ENOMEM;
	}
	d->vms[d->n_vms++] = vm;
	if (config->record)
		spool_begin(d->spool, vm);
	attaching_start(d);
	return 0;
}

static void vm_remove(struct vm_daemon *d, size_t i)
{
	spool_end(d->spool, d->vms[i]);
	watched_vm_detach(d->vms[i]); /* before the receivers of its frames are removed */
	streams_leave(d->streams, d->vms[i]);
	flight_end(d->flight, d->vms[i]);
	watched_vm_close(d->vms[i]);
	d->n_vms--;
	memmove(&d->vms[i], &d->vms[i + 1], (d->n_vms - i) * sizeof(d->vms[0]));
	memmove(&d->origins[i], &d->origins[i + 1], (d->n_vms - i) * sizeof(d->origins[0]));
}

/* Removes VMs that were found by KVM's descriptors, but whose name or process now belongs to a VM
 * from a better source. */
static void claims_yield(struct vm_daemon *d, const char *name, uint64_t pid)
{
	for (size_t i = d->n_vms; i-- > 0;) {
		const struct vm_config *its = watched_vm_config(d->vms[i]);

		if (d->origins[i] != VM_BY_KVM ||
		    (strcmp(its->name, name) != 0 && (!pid || its->pid != pid)))
			continue;
		on_say(d, its->name,
		       "found by KVM alone: gives way to a VM of this name or process");
		kvm_feed_yield(d->kvm, its->name);
		vm_remove(d, i);
	}
}

static void on_process(void *context, const struct watched_vm *vm, pid_t pid)
{
	struct vm_daemon *d = context;

	if (vm_daemon_origin(d, vm) != VM_BY_KVM)
		claims_yield(d, "", (uint64_t)pid);
}

int vm_daemon_attach(struct vm_daemon *d, const struct vm_config *config, enum vm_origin origin,
		     char *why, size_t why_bytes)
{
	int err = vm_config_check(config, why, why_bytes);

	if (err)
		return err;
	if (origin != VM_BY_KVM)
		claims_yield(d, config->name, config->pid);
	for (size_t i = 0; i < d->n_vms && !err; i++)
		err = vm_configs_check(watched_vm_config(d->vms[i]), config, why, why_bytes);
	if (err)
		return err;
	if (index_of(d, config->name) < d->n_vms) {
		snprintf(why, why_bytes, "VM %s: attached already", config->name);
		return -EEXIST;
	}
	if (d->n_vms == DAEMON_VMS_MAX) {
		snprintf(why, why_bytes, "%d VMs are attached already: that is the limit",
			 DAEMON_VMS_MAX);
		return -ENOSPC;
	}
	err = vm_add(d, config, origin);
	if (err)
		snprintf(why, why_bytes, "VM %s: %s", config->name, strerror(-err));
	return err;
}

int vm_daemon_detach(struct vm_daemon *d, const char *name)
{
	size_t i = index_of(d, name);

	if (i == d->n_vms)
		return -ENOENT;
	vm_remove(d, i);
	return 0;
}

static const struct vm_config *config_of(const struct daemon_config *c, const char *name)
{
	for (size_t i = 0; i < c->n_vms; i++) {
		if (!strcmp(c->vms[i].name, name))
			return &c->vms[i];
	}
	return NULL;
}

/* Replaces the VMs of the old file by those of `next`. Keeps a VM that ctl attached under such a
 * name.
 */
static void vms_follow(struct vm_daemon *d, const struct daemon_config *next)
{
	for (size_t i = d->n_vms; i-- > 0;) {
		const char *name = watched_vm_config(d->vms[i])->name;
		const struct vm_config *before = config_of(&d->config, name);
		const struct vm_config *now = config_of(next, name);

		if (d->origins[i] == VM_BY_FILE &&
		    (!now || !before || memcmp(before, now, sizeof(*now))))
			vm_remove(d, i);
	}
	for (size_t i = 0; i < next->n_vms; i++) {
		const struct vm_config *vm = &next->vms[i];

		claims_yield(d, vm->name, vm->pid);
		if (index_of(d, vm->name) < d->n_vms)
			continue;
		if (d->n_vms == DAEMON_VMS_MAX || vm_add(d, vm, VM_BY_FILE))
			on_say(d, vm->name, "cannot be attached: too many VMs, or no memory");
	}
}

int vm_daemon_reload(struct vm_daemon *d, char *why, size_t why_bytes)
{
	struct daemon_config *next;
	int err;

	if (!d->config_path) {
		snprintf(why, why_bytes, "no configuration file was given");
		return -ENOENT;
	}
	next = calloc(1, sizeof(*next));
	if (!next) {
		snprintf(why, why_bytes, "out of memory");
		return -ENOMEM;
	}
	err = daemon_config_read(d->config_path, next, why, why_bytes);
	if (!err &&
	    (strcmp(next->control, d->config.control) || strcmp(next->metrics, d->config.metrics) ||
	     strcmp(next->page, d->config.page) ||
	     strcmp(next->page_token, d->config.page_token))) {
		snprintf(why, why_bytes,
			 "%s: control, metrics, page, page_token: change with a restart only",
			 d->config_path);
		err = -EINVAL;
	}
	if (!err) {
		vms_follow(d, next);
		daemon_config_fini(&d->config);
		d->config = *next;
	} else {
		daemon_config_fini(next);
	}
	free(next);
	return err;
}

/* ---- functions for other modules ---- */

static int on_go_on(void *context, const struct watched_vm *vm, size_t max_bytes,
		    struct recording_writer *out, struct flight_places **places)
{
	struct vm_daemon *d = context;

	return flight_continue(d->flight, vm, max_bytes, out, places);
}

static size_t on_past_bytes(void *context, const struct watched_vm *vm)
{
	const struct vm_daemon *d = context;
	struct flight_status status;

	flight_status_get(d->flight, vm, &status);
	return status.bytes;
}

static bool on_watches(void *context, const char *vm)
{
	return vm_daemon_find(context, vm) != NULL;
}

static struct watched_vm *on_vm_find(void *context, pid_t pid, const char *name)
{
	const struct vm_daemon *d = context;

	for (size_t i = 0; pid && i < d->n_vms; i++) {
		if (watched_vm_pid(d->vms[i]) == pid)
			return d->vms[i];
	}
	return pid ? NULL : vm_daemon_find(d, name);
}

/* ---- vsock: one port for all VMs ---- */

/* Returns the VM of a guest: one that names its CID, or else one that takes any. */
static struct watched_vm *vsock_vm(const struct vm_daemon *d, uint32_t port, uint32_t cid)
{
	struct watched_vm *any = NULL;

	for (size_t i = 0; i < d->n_vms; i++) {
		uint32_t vms_port, vms_cid;

		if (!link_address_vsock(watched_vm_config(d->vms[i])->channel, &vms_port,
					&vms_cid) ||
		    vms_port != port)
			continue;
		if (vms_cid == cid)
			return d->vms[i];
		if (vms_cid == VMADDR_CID_ANY && !any)
			any = d->vms[i];
	}
	return any;
}

static bool on_vsock(void *context, uint32_t port, uint32_t cid, int fd)
{
	struct watched_vm *vm = vsock_vm(context, port, cid);

	if (vm)
		watched_vm_adopt(vm, fd);
	return vm != NULL;
}

static void on_vsock_say(void *context, const char *line)
{
	say(context, line);
}

static void vsock_tick(struct vm_daemon *d)
{
	uint32_t ports[DAEMON_VMS_MAX], cid;
	size_t n = 0;

	for (size_t i = 0; i < d->n_vms; i++)
		n += link_address_vsock(watched_vm_config(d->vms[i])->channel, &ports[n], &cid);
	vsock_listeners_keep(d->vsock, ports, n);
}

const char *vm_daemon_channel_trouble(const struct vm_daemon *d, const struct watched_vm *vm)
{
	uint32_t port, cid;
	int err = link_address_vsock(watched_vm_config(vm)->channel, &port, &cid)
			  ? vsock_listeners_error(d->vsock, port)
			  : 0;

	return err ? socket_file_error(err) : "";
}

/* ---- libvirt ---- */

static bool libvirt_is_here(void)
{
	static const char *const sockets[] = {"/run/libvirt/libvirt-sock",
					      "/run/libvirt/virtqemud-sock"};

	return !access(sockets[0], F_OK) || !access(sockets[1], F_OK);
}

static void libvirt_start(struct vm_daemon *d)
{
	const bool automatic = !strcmp(d->config.libvirt, "auto");
	const struct vm_source source = {.daemon = d, .say = on_say, .context = d};

	if (!daemon_config_discovers(&d->config, "libvirt") || !strcmp(d->config.libvirt, "no") ||
	    (automatic && !libvirt_is_here()))
		return;
	if (!libvirt_feed_possible()) {
		if (!d->libvirt_missing_said)
			say(d,
			    "libvirt: the package vcpuscope-libvirt is not installed: without it "
			    "libvirt's domains are not found. A build has it with "
			    "-DVCPUSCOPE_LIBVIRT=ON");
		d->libvirt_missing_said = true;
		return;
	}
	d->libvirt = libvirt_feed_new(d->loop, automatic ? "qemu:///system" : d->config.libvirt,
				      &source);
}

/* libvirt may start after the daemon, or be installed later. */
static void libvirt_tick(struct vm_daemon *d, uint64_t now_ms)
{
	if (!d->libvirt && !strcmp(d->config.libvirt, "auto") &&
	    now_ms - d->libvirt_look_ms >= LIBVIRT_LOOK_MS) {
		d->libvirt_look_ms = now_ms;
		libvirt_start(d);
	}
	libvirt_feed_tick(d->libvirt);
}

/* ---- life ---- */

static void on_timer(uv_timer_t *timer)
{
	struct vm_daemon *d = timer->data;
	uint64_t now_ms;

	lag_meter_tick(&d->lag, uv_hrtime() / 1000000, TICK_MS, run_delay_read());
	memory_tidy(&d->tidied_ms, uv_hrtime() / 1000000);
	now_ms = uv_now(d->loop);
	for (size_t i = 0; i < d->n_vms; i++) {
		watched_vm_tick(d->vms[i], now_ms);
		if (watched_vm_is_due(d->vms[i], now_ms))
			attaching_start(d);
	}
	if (!uv_is_active((uv_handle_t *)&d->attaching))
		ready_report(d);
	host_captures_tidy(d->captures);
	spool_tick(d->spool);
	flight_tick(d->flight);
	records_tick(d->records);
	streams_tick(d->streams);
	metrics_export_tick(&d->metrics, now_ms);
	incident_page_tick(&d->page);
	agents_listener_tick(d->listener);
	vsock_tick(d);
	libvirt_tick(d, now_ms);
	kvm_feed_tick(d->kvm);
}

/* At the same moments as the collectors, so that the loop wakes up once for all. */
static void on_pump(uv_timer_t *timer)
{
	struct vm_daemon *d = timer->data;
	const uint64_t now_ms = uv_now(d->loop);
	uint64_t period_ms;

	if (host_captures_pump(d->captures))
		d->pumped_ms = now_ms;
	period_ms = now_ms - d->pumped_ms < QUIET_AFTER_MS ? PUMP_MS : QUIET_PUMP_MS;
	uv_timer_start(timer, on_pump, period_ms - now_ms % period_ms, 0);
}

static void daemon_freed(uv_handle_t *handle)
{
	struct vm_daemon *d = handle->data;

	free(d->config_path);
	daemon_config_fini(&d->config);
	free(d);
}

static int listener_open(struct vm_daemon *d, char *why, size_t why_bytes)
{
	char path[DAEMON_PATH_MAX];

	daemon_config_agents(&d->config, path, sizeof(path));
	return agents_listener_open(d->loop, path, d, &d->listener, why, why_bytes);
}

int vm_daemon_open(uv_loop_t *loop, const struct vm_daemon_options *options, struct vm_daemon **out,
		   char *why, size_t why_bytes)
{
	struct vm_daemon *d = calloc(1, sizeof(*d));
	struct spool_options spool = {.say = on_say,
				      .go_on = on_go_on,
				      .past_bytes = on_past_bytes,
				      .watches = on_watches};
	struct incident_store_options flight = {.say = on_say, .watches = on_watches};
	struct records_options records = {.root = "", .say = on_say, .vm_find = on_vm_find};
	struct streams_options streams = {.describe = on_describe, .context = d};
	const struct vsock_listeners_events vsock = {on_vsock, on_vsock_say, d};
	const struct vm_source source = {.daemon = d, .say = on_say, .context = d};
	int err = -ENOMEM;

	snprintf(why, why_bytes, "out of memory");
	if (!d)
		return err;
	d->loop = loop;
	d->options = *options;
	err = daemon_config_copy(options->config, &d->config);
	if (!err)
		err = turns_open(loop);
	d->start_ms = uv_now(loop);
	uv_timer_init(loop, &d->timer);
	uv_timer_init(loop, &d->pump);
	uv_idle_init(loop, &d->attaching);
	d->timer.data = d->pump.data = d->attaching.data = d;
	spool.config = &d->config;
	spool.context = d;
	d->spool = spool_new(&spool);
	if (options->config_path)
		d->config_path = strdup(options->config_path);
	flight.config = &d->config;
	flight.context = d;
	records.config = &d->config;
	records.context = d;
	d->records = records_new(loop, &records);
	d->flight = d->records ? flight_new(loop, &flight, d->records) : NULL;
	d->captures = host_captures_new();
	streams.flight = d->flight;
	d->streams = streams_new(&streams);
	d->vsock = vsock_listeners_new(loop, NULL, &vsock);
	d->kvm = kvm_feed_new(loop, &source);
	if (err || !d->captures || !d->kvm || !d->streams || !d->vsock || !d->spool || !d->flight ||
	    (options->config_path && !d->config_path)) {
		err = -ENOMEM;
		goto fail;
	}
	err = control_open(loop, d->config.control, d, &d->control, why, why_bytes);
	if (err)
		goto fail;
	d->metrics = (struct metrics_export){.config = &d->config,
					     .flight = d->flight,
					     .records = d->records,
					     .say = on_say,
					     .context = d};
	err = metrics_export_open(loop, &d->metrics, why, why_bytes);
	if (!err)
		err = incident_page_open(loop, &d->config, &d->page, why, why_bytes);
	if (!err)
		err = listener_open(d, why, why_bytes);
	if (err)
		goto fail;
	for (size_t i = 0; i < d->config.n_vms; i++) {
		err = vm_add(d, &d->config.vms[i], VM_BY_FILE);
		if (err)
			goto fail;
	}
	attaching_start(d);
	libvirt_start(d);
	uv_timer_start(&d->timer, on_timer, TICK_MS, TICK_MS);
	uv_timer_start(&d->pump, on_pump, PUMP_MS, 0);
	*out = d;
	return 0;
fail:
	vm_daemon_close(d);
	return err;
}

void vm_daemon_close(struct vm_daemon *d)
{
	if (!d)
		return;
	libvirt_feed_close(d->libvirt);
	kvm_feed_close(d->kvm);
	d->kvm = NULL;
	while (d->n_vms)
		vm_remove(d, d->n_vms - 1);
	metrics_export_close(&d->metrics);
	incident_page_close(&d->page);
	host_captures_free(d->captures);
	spool_free(d->spool);
	flight_close(d->flight);
	records_close(d->records);
	agents_listener_close(d->listener);
	vsock_listeners_free(d->vsock);
	control_close(d->control);
	streams_free(d->streams);
	turns_close(d->loop);
	uv_close((uv_handle_t *)&d->attaching, NULL);
	uv_close((uv_handle_t *)&d->pump, NULL);
	uv_close((uv_handle_t *)&d->timer, daemon_freed);
}

void vm_daemon_stop(struct vm_daemon *d)
{
	uv_stop(d->loop);
}

size_t vm_daemon_n_vms(const struct vm_daemon *d)
{
	return d->n_vms;
}

struct watched_vm *vm_daemon_vm(const struct vm_daemon *d, size_t index)
{
	return d->vms[index];
}

enum vm_origin vm_daemon_origin(const struct vm_daemon *d, const struct watched_vm *vm)
{
	size_t i = 0;

	while (i < d->n_vms && d->vms[i] != vm)
		i++;
	return i < d->n_vms ? d->origins[i] : VM_BY_CTL;
}

const struct kvm_feed *vm_daemon_kvm_feed(const struct vm_daemon *d)
{
	return d->kvm;
}

struct watched_vm *vm_daemon_find(const struct vm_daemon *d, const char *name)
{
	size_t i = index_of(d, name);

	return i < d->n_vms ? d->vms[i] : NULL;
}

void vm_daemon_rescan(struct vm_daemon *d)
{
	libvirt_feed_rescan(d->libvirt);
}

const struct host_captures *vm_daemon_captures(const struct vm_daemon *d)
{
	return d->captures;
}

struct streams *vm_daemon_streams(const struct vm_daemon *d)
{
	return d->streams;
}

struct records *vm_daemon_records(const struct vm_daemon *d)
{
	return d->records;
}

struct flight *vm_daemon_flight(const struct vm_daemon *d)
{
	return d->flight;
}

struct spool *vm_daemon_spool(const struct vm_daemon *d)
{
	return d->spool;
}

const struct daemon_config *vm_daemon_config(const struct vm_daemon *d)
{
	return &d->config;
}

void vm_daemon_vitals(const struct vm_daemon *d, struct vitals *out)
{
	vitals_read(&d->lag, out);
}

uint64_t vm_daemon_uptime_ms(const struct vm_daemon *d)
{
	return uv_now(d->loop) - d->start_ms;
}
