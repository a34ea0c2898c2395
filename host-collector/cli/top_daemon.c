/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/top_daemon.h"

#include <errno.h>
#include <json.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/daemon/control.h"
#include "host-collector/util/json_get.h"

static enum vcpu_state state_of(const char *name)
{
	for (size_t i = 0; name && i < VCPU_STATE_COUNT; i++) {
		if (!strcmp(vcpu_state_name((enum vcpu_state)i), name))
			return (enum vcpu_state)i;
	}
	return VCPU_UNKNOWN;
}

static void row_read(struct json_object *o, uint32_t vm, struct activity_row *row)
{
	const size_t n = json_get_length(o, "state_ns");

	*row = (struct activity_row){
		.vm = vm,
		.vcpu = (uint32_t)json_get_int(o, "vcpu"),
		.tid = (int32_t)json_get_int(o, "tid"),
		.now = state_of(json_object_get_string(json_get(o, "now"))),
		.exits = (uint64_t)json_get_int(o, "exits"),
		.steal_known = json_get(o, "steal_ns") != NULL,
		.steal_ns = json_get_int(o, "steal_ns"),
		.steal_span_ns = json_get_int(o, "steal_span_ns"),
		.latency_known = json_get(o, "latency_ns") != NULL,
		.latency_ns = json_get_int(o, "latency_ns"),
	};
	for (size_t i = 0; i < n && i < VCPU_STATE_COUNT; i++)
		row->state_ns[i] = json_object_get_int64(json_get_element(o, "state_ns", i));
}

static struct top_stall stall_read(struct json_object *o)
{
	struct top_stall s = {.known = o != NULL};

	if (!o)
		return s;
	snprintf(s.verdict, sizeof(s.verdict), "%s", json_get_text(o, "verdict"));
	snprintf(s.culprit, sizeof(s.culprit), "%s", json_get_text(o, "culprit"));
	s.guest_cpu = (uint32_t)json_get_int(o, "guest_cpu");
	s.duration_ns = json_get_int(o, "duration_ns");
	s.wall_known = json_get(o, "realtime_ns") != NULL;
	s.wall_ns = json_get_int(o, "realtime_ns");
	return s;
}

static void absence_read(struct json_object *o, char *out, size_t out_bytes)
{
	const char *state = json_get_text(o, "state"), *why = json_get_text(o, "why");

	*out = '\0';
	if (*state && strcmp(state, "running") != 0)
		snprintf(out, out_bytes, "%s%s%s", state, *why ? ": " : "", why);
}

static void vm_read(struct json_object *o, struct top_answer *out, size_t max_rows)
{
	struct top_vm *vm = &out->vms[out->n_vms];
	const size_t n = json_get_length(o, "vcpus");
	double seconds = json_object_get_double(json_get(o, "seconds"));

	snprintf(vm->name, sizeof(vm->name), "%s", json_get_text(o, "vm"));
	vm->open = (uint64_t)json_get_int(o, "ongoing");
	vm->last = stall_read(json_get(o, "last_stall"));
	absence_read(o, vm->absent, sizeof(vm->absent));
	if (seconds > out->seconds)
		out->seconds = seconds;
	for (size_t i = 0; i < n && out->n_rows < max_rows; i++)
		row_read(json_get_element(o, "vcpus", i), (uint32_t)out->n_vms,
			 &out->rows[out->n_rows++]);
	out->n_vms++;
}

int top_daemon_ask(const char *control, struct top_answer *out, size_t max_rows, size_t max_vms,
		   char *why, size_t why_bytes)
{
	struct json_object *request = json_object_new_object(), *reply = NULL;
	int err;

	json_object_object_add(request, "command", json_object_new_string("top"));
	err = control_ask(control, request, &reply, why, why_bytes);
	json_object_put(request);
	if (err)
		return err;
	out->seconds = 0;
	out->n_rows = out->n_vms = 0;
	if (!json_get(reply, "vms")) {
		snprintf(why, why_bytes, "%s: the process there is not a daemon of this version",
			 control);
		err = -EPROTO;
	}
	for (size_t i = 0; !err && i < json_get_length(reply, "vms") && out->n_vms < max_vms; i++)
		vm_read(json_get_element(reply, "vms", i), out, max_rows);
	json_object_put(reply);
	return err;
}
