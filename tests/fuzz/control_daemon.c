// SPDX-License-Identifier: GPL-2.0-only
#include "tests/fuzz/control_daemon.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/daemon/daemon.h"
#include "host-collector/daemon/flight.h"
#include "host-collector/daemon/host_captures.h"
#include "host-collector/daemon/kvm_feed.h"
#include "host-collector/daemon/records.h"
#include "host-collector/daemon/spool.h"
#include "host-collector/daemon/streams.h"
#include "tests/fuzz/fuzz.h"

enum { VMS = 3 };

struct watched_vm {
	struct vm_config config;
	bool recording;
};

struct vm_daemon {
	struct daemon_config config;
	struct watched_vm vms[VMS];
	size_t n_vms;
};

struct vm_daemon *control_daemon(void)
{
	static struct vm_daemon d;

	daemon_config_default(&d.config);
	return &d;
}

/* ---- daemon.h ---- */

const char *vm_daemon_channel_trouble(const struct vm_daemon *d, const struct watched_vm *vm)
{
	(void)d, (void)vm;
	return "";
}

const struct host_captures *vm_daemon_captures(const struct vm_daemon *d)
{
	(void)d;
	return NULL;
}

size_t host_captures_stats(const struct host_captures *h, struct capture_shared_stats *out)
{
	(void)h;
	*out = (struct capture_shared_stats){0};
	return 0;
}

struct streams *vm_daemon_streams(const struct vm_daemon *d)
{
	(void)d;
	return NULL;
}

/* ---- streams.h ---- */

int streams_check(const struct watched_vm *vm, char *why, size_t why_bytes)
{
	snprintf(why, why_bytes, "VM %s: waited for", watched_vm_config(vm)->name);
	return -EAGAIN;
}

int streams_begin(struct streams *s, struct watched_vm *vm, uv_stream_t *pipe,
		  void (*over)(void *context), void *context)
{
	(void)s, (void)vm, (void)pipe, (void)over, (void)context;
	return -ENOMEM;
}

void streams_end(struct streams *s, const uv_stream_t *pipe)
{
	(void)s, (void)pipe;
}

void vm_daemon_stop(struct vm_daemon *d)
{
	d->n_vms = 0;
}

int vm_daemon_reload(struct vm_daemon *d, char *why, size_t why_bytes)
{
	(void)d;
	snprintf(why, why_bytes, "no configuration");
	return -ENOENT;
}

enum vm_origin vm_daemon_origin(const struct vm_daemon *d, const struct watched_vm *vm)
{
	return vm == &d->vms[0] ? VM_BY_KVM : VM_BY_CTL;
}

const struct kvm_feed *vm_daemon_kvm_feed(const struct vm_daemon *d)
{
	(void)d;
	return NULL;
}

void kvm_feed_describe(const struct kvm_feed *f, const char *vm, struct json_object *out)
{
	(void)f, (void)vm, (void)out;
}

int vm_daemon_attach(struct vm_daemon *d, const struct vm_config *config, enum vm_origin origin,
		     char *why, size_t why_bytes)
{
	FUZZ_CHECK(origin == VM_BY_CTL);
	int err = vm_config_check(config, why, why_bytes);

	if (err)
		return err;
	FUZZ_CHECK(memchr(config->channel, 0, sizeof(config->channel)));
	FUZZ_CHECK(memchr(config->qmp, 0, sizeof(config->qmp)));
	if (vm_daemon_find(d, config->name) || d->n_vms == VMS) {
		snprintf(why, why_bytes, "VM %s: there is no room", config->name);
		return -EEXIST;
	}
	d->vms[d->n_vms++] = (struct watched_vm){.config = *config};
	return 0;
}

int vm_daemon_detach(struct vm_daemon *d, const char *name)
{
	struct watched_vm *vm = vm_daemon_find(d, name);

	if (!vm)
		return -ENOENT;
	*vm = d->vms[--d->n_vms];
	return 0;
}

size_t vm_daemon_n_vms(const struct vm_daemon *d)
{
	return d->n_vms;
}

struct watched_vm *vm_daemon_vm(const struct vm_daemon *d, size_t index)
{
	FUZZ_CHECK(index < d->n_vms);
	return (struct watched_vm *)&d->vms[index];
}

struct watched_vm *vm_daemon_find(const struct vm_daemon *d, const char *name)
{
	for (size_t i = 0; i < d->n_vms; i++) {
		if (!strcmp(d->vms[i].config.name, name))
			return vm_daemon_vm(d, i);
	}
	return NULL;
}

void vm_daemon_rescan(struct vm_daemon *d)
{
	(void)d;
}

struct records *vm_daemon_records(const struct vm_daemon *d)
{
	(void)d;
	return NULL;
}

bool records_stats(const struct records *r, struct outbox_stats *out)
{
	(void)r;
	*out = (struct outbox_stats){.bytes = 1 << 20};
	return true;
}

struct flight *vm_daemon_flight(const struct vm_daemon *d)
{
	(void)d;
	return NULL;
}

struct spool *vm_daemon_spool(const struct vm_daemon *d)
{
	(void)d;
	return NULL;
}

const struct daemon_config *vm_daemon_config(const struct vm_daemon *d)
{
	return &d->config;
}

void vm_daemon_vitals(const struct vm_daemon *d, struct vitals *out)
{
	(void)d;
	*out = (struct vitals){.rss_bytes = 1 << 20};
}

uint64_t vm_daemon_uptime_ms(const struct vm_daemon *d)
{
	(void)d;
	return 1000;
}

/* ---- watched_vm.h ---- */

const struct vm_config *watched_vm_config(const struct watched_vm *vm)
{
	return &vm->config;
}

int watched_vm_level(struct watched_vm *vm, enum capture_level level)
{
	vm->config.level = level;
	return vm->config.record ? 0 : -EOPNOTSUPP;
}

void watched_vm_status_get(const struct watched_vm *vm, struct watched_vm_status *out)
{
	static const struct message_vm_info info = {.qemu_pid = 7};

	*out = (struct watched_vm_status){
		.state = vm->config.pid % 3 == 0 ? WATCHED_WAITING : WATCHED_RUNNING,
		.why = "\x1b[2J it \xff waits",
		.collector = {
			.vm = &info, .backend = "BPF", .has_channel = *vm->config.channel != 0}};
	snprintf(out->collector.link.agent_version, sizeof(out->collector.link.agent_version),
		 "1\x1b[1m\xc3");
}

/* ---- spool.h ---- */

int spool_begin(struct spool *s, struct watched_vm *vm)
{
	(void)s;
	if (vm->recording)
		return -EALREADY;
	vm->recording = true;
	return 0;
}

int spool_end(struct spool *s, struct watched_vm *vm)
{
	(void)s;
	if (!vm->recording)
		return -ENOENT;
	vm->recording = false;
	return 0;
}

void spool_status_get(const struct spool *s, const struct watched_vm *vm, struct spool_status *out)
{
	(void)s;
	*out = (struct spool_status){.recording = vm->recording, .path = "x.vcs", .error = -ENOSPC};
}

uint64_t spool_bytes(const struct spool *s)
{
	(void)s;
	return 0;
}

/* ---- flight.h ---- */

int flight_snapshot(struct flight *f, struct watched_vm *vm, char *path, size_t path_bytes)
{
	(void)f;
	snprintf(path, path_bytes, "/x");
	return vm->config.flight ? 0 : -ENOENT;
}

void flight_activity_get(const struct flight *f, const struct watched_vm *vm,
			 struct flight_activity *out)
{
	static const struct activity_row row = {.tid = 8, .exits = 1};

	(void)f;
	*out = (struct flight_activity){.rows = &row, .n_rows = vm->config.flight, .seconds = 1};
}

void flight_queue_get(const struct flight *f, struct incident_store_stats *out)
{
	(void)f;
	*out = (struct incident_store_stats){0};
}

void flight_status_get(const struct flight *f, const struct watched_vm *vm,
		       struct flight_status *out)
{
	(void)f;
	*out = (struct flight_status){.on = vm->config.flight};
}

/* ---- what else those files need ---- */

const char *vcpu_state_name(enum vcpu_state state)
{
	(void)state;
	return "guest";
}

int backend_choice_parse(const char *text, enum backend_choice *out)
{
	*out = 0;
	return strcmp(text, "auto") ? -EINVAL : 0;
}

void decoder_budget_fill(struct decoder_budget *budget)
{
	budget->bytes_per_s = budget->memory_bytes = 1 << 20;
}
