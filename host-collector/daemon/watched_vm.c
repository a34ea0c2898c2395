/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/watched_vm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/daemon/governor.h"
#include "host-collector/daemon/vm_search.h"
#include "host-collector/decode/config_text.h"

enum { ATTACH_AGAIN_MS = 5000, ATTACH_SILENT_AGAIN_MS = 60000 };

struct watched_vm {
	uv_loop_t *loop;
	struct vm_config config;
	struct watched_vm_events events;
	struct host_captures *captures;
	struct vm_search *search;    /* by its monitor; NULL: none in progress */
	struct collector *collector; /* NULL: none runs */
	struct frame_tap *taps;
	struct governor governor;
	struct chosen_events *chosen; /* for the collector; NULL: none */
	enum watched_state state;
	char why[256], said[256];
	uint64_t since_ms, try_ms, again_ms, runs;
	bool ended; /* the collector reported its end; it is closed outside its callback */
};

static void state_set(struct watched_vm *vm, enum watched_state state)
{
	vm->state = state;
	vm->since_ms = uv_now(vm->loop);
}

static void on_frame(void *context, uint32_t source, uint64_t arrival_tsc, struct frame_item *frame)
{
	struct watched_vm *vm = context;
	struct frame_tap *next;

	for (struct frame_tap *tap = vm->taps; tap; tap = next) {
		next = tap->next; /* a tap may remove itself */
		if (tap->frame)
			tap->frame(tap->context, source, arrival_tsc, frame);
	}
}

static void on_say(void *context, const char *line)
{
	struct watched_vm *vm = context;

	vm->events.say(vm->events.context, vm->config.name, line);
}

static void on_ended(void *context, const char *why)
{
	struct watched_vm *vm = context;

	snprintf(vm->why, sizeof(vm->why), "%s", why);
	vm->ended = true;
}

static void taps_begin(struct watched_vm *vm)
{
	struct frame_tap *next;

	for (struct frame_tap *tap = vm->taps; tap; tap = next) {
		next = tap->next;
		if (tap->begin)
			tap->begin(tap->context);
	}
}

static uint64_t host_events(const struct watched_vm *vm)
{
	return collector_host_events(vm->collector);
}

/* Starts the governor, unless the VM is captured at level summary anyway. */
static void governor_start(struct watched_vm *vm)
{
	governor_begin(&vm->governor,
		       vm->config.level == CAPTURE_DETAIL ? vm->config.detail_rate : 0,
		       uv_now(vm->loop), host_events(vm));
}

static void govern(struct watched_vm *vm, uint64_t now_ms)
{
	enum governor_advice advice = governor_tick(&vm->governor, now_ms, host_events(vm));
	char line[160];
	int err;

	if (advice == GOVERNOR_STAY)
		return;
	err = collector_level(vm->collector,
			      advice == GOVERNOR_SHED ? CAPTURE_SUMMARY : CAPTURE_DETAIL);
	if (err) {
		vm->governor.limit = 0; /* this capture has no summary: its rings drop, and count */
		vm->governor.shed = false;
		snprintf(line, sizeof(line), "detail cannot be shed: %s", strerror(-err));
	} else if (advice == GOVERNOR_SHED) {
		snprintf(line, sizeof(line),
			 "more than %" PRIu64
			 " host events/s (detail_rate): short VM-exits are only "
			 "counted for %" PRIu64 " s",
			 vm->config.detail_rate, vm->governor.pause_ms / 1000);
	} else {
		snprintf(line, sizeof(line), "in detail again");
	}
	on_say(vm, line);
}

static void run_refused(struct watched_vm *vm, int err)
{
	if (vm->state != WATCHED_WAITING)
		state_set(vm, WATCHED_WAITING);
	if (strcmp(vm->said, vm->why))
		on_say(vm, vm->why);
	snprintf(vm->said, sizeof(vm->said), "%s", vm->why);
	uv_update_time(vm->loop);
	vm->try_ms = uv_now(vm->loop);
	/* Few threads search. A VM whose monitor does not answer must not occupy them often. */
	if (err == -ETIMEDOUT)
		vm->again_ms = ATTACH_SILENT_AGAIN_MS;
}

/* Resolves the chosen events. If this kernel does not have one of them, reports it and captures the
 * VM without chosen events. */
static void events_resolve(struct watched_vm *vm, struct message_config *guest)
{
	struct expr_error error = {0};
	char line[400];

	free(vm->chosen);
	vm->chosen = *vm->config.events ? calloc(1, sizeof(*vm->chosen)) : NULL;
	if (!vm->chosen || !chosen_events_add(vm->chosen, guest, vm->config.events, &error))
		return;
	vm->chosen->n = guest->n_events = 0;
	guest->asks &= ~(1u << CONFIG_EVENTS);
	snprintf(line, sizeof(line),
		 "events, at character %zu: %s; the VM is captured without the events of `events`",
		 error.at + 1, error.text);
	on_say(vm, line);
}

/* found: the VM, if it was found by its monitor; NULL: it is found by its pid. */
static void run_open(struct watched_vm *vm, struct vm *found)
{
	const struct collector_sink sink = {
		.frame = on_frame, .say = on_say, .ended = on_ended, .context = vm};
	const struct vm_config *config = &vm->config;
	const struct decoder_budget budget = {.bytes_per_s = config->bytes_per_s,
					      .memory_bytes = config->memory_bytes,
					      .cpu_permille = (uint32_t)config->cpu_permille};
	struct message_config request = {0};
	struct collector_options options = {
		.pid = (pid_t)config->pid,
		.qmp_path = config->qmp[0] ? config->qmp : NULL,
		.vm = found,
		.channel = config->channel[0] ? config->channel : NULL,
		.channel_can_wait = true,
		.vsock_handed = true,
		.wait_threshold_ns = config->stacks_over_ns,
		.level = config->level,
		.security = {.psk_path = config->psk[0] ? config->psk : NULL,
			     .psk_identity = config->psk_identity[0] ? config->psk_identity : NULL,
			     .insecure_plain_tcp = config->insecure_plain_tcp},
		.backend = config->backend,
		.budget = &budget,
		.request = &request,
	};
	int err;

	if (config->guest_level == CAPTURE_SUMMARY) /* which was checked */
		config_level_parse("summary", config->guest_handlers_over_ns, &request, vm->why,
				   sizeof(vm->why));
	events_resolve(vm, &request);
	options.events = vm->chosen;
	taps_begin(vm);
	options.shared =
		host_captures_get(vm->captures, config->backend, &err, vm->why, sizeof(vm->why));
	options.names = host_captures_names(vm->captures);
	options.origins = host_captures_origins(vm->captures);
	options.maker = host_captures_maker(vm->captures);
	options.tsc_hz = host_captures_tsc_hz(vm->captures);
	if (!err)
		err = collector_open(vm->loop, &options, &sink, &vm->collector, vm->why,
				     sizeof(vm->why));
	else
		vm_close(found);
	if (err) {
		vm->collector = NULL;
		run_refused(vm, err);
		return;
	}
	vm->runs++;
	vm->why[0] = vm->said[0] = 0;
	state_set(vm, WATCHED_RUNNING);
	governor_start(vm);
}

static void on_found(void *context, struct vm *found, int err, const char *why)
{
	struct watched_vm *vm = context;

	vm->search = NULL;
	if (found) {
		vm->events.process(vm->events.context, vm, vm_info(found)->qemu_pid);
		run_open(vm, found);
		return;
	}
	snprintf(vm->why, sizeof(vm->why), "%s", why);
	run_refused(vm, err);
}

static void run_begin(struct watched_vm *vm)
{
	const struct vm_config *config = &vm->config;
	const struct vm_options options = {
		.number = COLLECTOR_VM, .pid = (pid_t)config->pid, .qmp_path = config->qmp};
	const struct vm_search_events events = {.done = on_found, .context = vm};
	int err;

	vm->ended = false;
	vm->try_ms = uv_now(vm->loop);
	vm->again_ms = ATTACH_AGAIN_MS;
	if (!config->qmp[0]) {
		run_open(vm, NULL);
		return;
	}
	err = vm_search_begin(vm->loop, &options, &events, &vm->search);
	if (!err)
		return;
	snprintf(vm->why, sizeof(vm->why), "%s", strerror(-err));
	run_refused(vm, err);
}

static void run_end(struct watched_vm *vm, const char *why)
{
	struct frame_tap *next;

	if (!vm->collector)
		return;
	collector_stop(vm->collector); /* the taps still receive the last events */
	for (struct frame_tap *tap = vm->taps; tap; tap = next) {
		next = tap->next;
		if (tap->end)
			tap->end(tap->context, why);
	}
	collector_close(vm->collector);
	vm->collector = NULL;
	state_set(vm, WATCHED_WAITING);
}

struct watched_vm *watched_vm_new(uv_loop_t *loop, const struct vm_config *config,
				  struct host_captures *captures,
				  const struct watched_vm_events *events)
{
	struct watched_vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return NULL;
	vm->loop = loop;
	vm->config = *config;
	vm->events = *events;
	vm->captures = captures;
	state_set(vm, WATCHED_WAITING);
	return vm;
}

void watched_vm_detach(struct watched_vm *vm)
{
	vm_search_forget(vm->search);
	vm->search = NULL;
	run_end(vm, "detached");
}

void watched_vm_close(struct watched_vm *vm)
{
	if (!vm)
		return;
	watched_vm_detach(vm);
	free(vm->chosen);
	free(vm);
}

void watched_vm_tick(struct watched_vm *vm, uint64_t now_ms)
{
	if (vm->ended && vm->collector) {
		on_say(vm, vm->why);
		run_end(vm, vm->why);
		/* A pid never belongs to this VM again. A monitor's path may. */
		state_set(vm, vm->config.pid ? WATCHED_GONE : WATCHED_WAITING);
		return;
	}
	if (vm->collector)
		govern(vm, now_ms);
}

bool watched_vm_is_due(const struct watched_vm *vm, uint64_t now_ms)
{
	return !vm->collector && !vm->search && vm->state == WATCHED_WAITING &&
	       (!vm->try_ms || now_ms - vm->try_ms >= vm->again_ms);
}

void watched_vm_try(struct watched_vm *vm)
{
	if (!vm->collector && !vm->search)
		run_begin(vm);
}

bool watched_vm_is_sought(const struct watched_vm *vm)
{
	return vm->search != NULL;
}

void watched_vm_restart(struct watched_vm *vm)
{
	if (!vm->collector || vm->ended)
		return;
	run_end(vm, "begins anew");
	run_begin(vm);
}

const struct vm_config *watched_vm_config(const struct watched_vm *vm)
{
	return &vm->config;
}

void watched_vm_tap(struct watched_vm *vm, struct frame_tap *tap)
{
	tap->next = vm->taps;
	vm->taps = tap;
}

void watched_vm_untap(struct watched_vm *vm, struct frame_tap *tap)
{
	for (struct frame_tap **at = &vm->taps; *at; at = &(*at)->next) {
		if (*at != tap)
			continue;
		*at = tap->next;
		return;
	}
}

int watched_vm_level(struct watched_vm *vm, enum capture_level level)
{
	int err = vm->collector ? collector_level(vm->collector, level) : 0;

	if (err)
		return err;
	vm->config.level = level;
	if (vm->collector)
		governor_start(vm);
	return 0;
}

void watched_vm_status_get(const struct watched_vm *vm, struct watched_vm_status *out)
{
	*out = (struct watched_vm_status){.state = vm->state,
					  .why = vm->why,
					  .since_ms = vm->since_ms,
					  .runs = vm->runs,
					  .shed = vm->governor.shed,
					  .sheds = vm->governor.sheds};
	if (vm->collector)
		collector_status_get(vm->collector, &out->collector);
}

pid_t watched_vm_pid(const struct watched_vm *vm)
{
	return vm->collector ? collector_pid(vm->collector) : 0;
}

const char *watched_vm_version(const struct watched_vm *vm)
{
	return vm->collector ? collector_vmm_version(vm->collector) : "";
}

void watched_vm_adopt(struct watched_vm *vm, int fd)
{
	if (vm->collector)
		collector_adopt(vm->collector, fd);
	else
		close(fd);
}
