/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/top_daemon.h"

#include <errno.h>
#include <json.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/daemon/control.h"

static struct json_object *part_of(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(o, name, &value);
	return value;
}

static int64_t number_of(struct json_object *o, const char *name)
{
	return json_object_get_int64(part_of(o, name)); /* 0 of NULL */
}

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
	struct json_object *states = part_of(o, "state_ns");
	size_t n = states ? json_object_array_length(states) : 0;

	*row = (struct activity_row){
		.vm = vm,
		.vcpu = (uint32_t)number_of(o, "vcpu"),
		.tid = (int32_t)number_of(o, "tid"),
		.now = state_of(json_object_get_string(part_of(o, "now"))),
		.exits = (uint64_t)number_of(o, "exits"),
		.steal_known = part_of(o, "steal_ns") != NULL,
		.steal_ns = number_of(o, "steal_ns"),
		.steal_span_ns = number_of(o, "steal_span_ns"),
		.latency_known = part_of(o, "latency_ns") != NULL,
		.latency_ns = number_of(o, "latency_ns"),
	};
	for (size_t i = 0; i < n && i < VCPU_STATE_COUNT; i++)
		row->state_ns[i] = json_object_get_int64(json_object_array_get_idx(states, i));
}

static struct top_stall stall_read(struct json_object *o)
{
	struct top_stall s = {.known = o != NULL};
	const char *text;

	if (!o)
		return s;
	text = json_object_get_string(part_of(o, "verdict"));
	snprintf(s.verdict, sizeof(s.verdict), "%s", text ? text : "");
	text = json_object_get_string(part_of(o, "culprit"));
	snprintf(s.culprit, sizeof(s.culprit), "%s", text ? text : "");
	s.guest_cpu = (uint32_t)number_of(o, "guest_cpu");
	s.duration_ns = number_of(o, "duration_ns");
	s.wall_known = part_of(o, "realtime_ns") != NULL;
	s.wall_ns = number_of(o, "realtime_ns");
	return s;
}

static void absence_read(struct json_object *o, char *out, size_t out_bytes)
{
	const char *state = json_object_get_string(part_of(o, "state"));
	const char *why = json_object_get_string(part_of(o, "why"));

	*out = '\0';
	if (state && strcmp(state, "running") != 0)
		snprintf(out, out_bytes, "%s%s%s", state, why ? ": " : "", why ? why : "");
}

static void vm_read(struct json_object *o, struct top_answer *out, size_t max_rows)
{
	struct top_vm *vm = &out->vms[out->n_vms];
	const char *name = json_object_get_string(part_of(o, "vm"));
	struct json_object *vcpus = part_of(o, "vcpus");
	size_t n = vcpus ? json_object_array_length(vcpus) : 0;
	double seconds = json_object_get_double(part_of(o, "seconds"));

	snprintf(vm->name, sizeof(vm->name), "%s", name ? name : "");
	vm->open = (uint64_t)number_of(o, "ongoing");
	vm->last = stall_read(part_of(o, "last_stall"));
	absence_read(o, vm->absent, sizeof(vm->absent));
	if (seconds > out->seconds)
		out->seconds = seconds;
	for (size_t i = 0; i < n && out->n_rows < max_rows; i++)
		row_read(json_object_array_get_idx(vcpus, i), (uint32_t)out->n_vms,
			 &out->rows[out->n_rows++]);
	out->n_vms++;
}

int top_daemon_ask(const char *control, struct top_answer *out, size_t max_rows, size_t max_vms,
		   char *why, size_t why_bytes)
{
	struct json_object *request = json_object_new_object(), *reply = NULL, *vms;
	int err;

	json_object_object_add(request, "command", json_object_new_string("top"));
	err = control_ask(control, request, &reply, why, why_bytes);
	json_object_put(request);
	if (err)
		return err;
	out->seconds = 0;
	out->n_rows = out->n_vms = 0;
	vms = part_of(reply, "vms");
	if (!vms) {
		snprintf(why, why_bytes, "%s: who answers there is no daemon of this version",
			 control);
		err = -EPROTO;
	}
	for (size_t i = 0; !err && i < json_object_array_length(vms) && out->n_vms < max_vms; i++)
		vm_read(json_object_array_get_idx(vms, i), out, max_rows);
	json_object_put(reply);
	return err;
}
