/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/model/narrow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/util/escape.h"

enum { VMS_NAMED = 8 };

bool narrow_rows(const struct narrow *n)
{
	return n && (n->vm || n->vcpu >= 0 || n->task || n->pid);
}

static bool is_number(const char *text, int64_t number)
{
	char digits[24];

	snprintf(digits, sizeof(digits), "%" PRId64, number);
	return !strcmp(text, digits);
}

bool narrow_has_vm(const struct narrow *n, const struct model *m, uint32_t vm)
{
	return !n || !n->vm || is_number(n->vm, vm) || !strcmp(n->vm, model_vm_name(m, vm));
}

bool narrow_has_vcpu(const struct narrow *n, const struct model *m, uint32_t vm, uint32_t vcpu)
{
	return narrow_has_vm(n, m, vm) && (!n || n->vcpu < 0 || n->vcpu == (int64_t)vcpu);
}

bool narrow_has_guest_cpu(const struct narrow *n, const struct model *m, uint32_t vm, uint16_t cpu)
{
	uint32_t vcpu;

	if (!n || n->vcpu < 0)
		return narrow_has_vm(n, m, vm);
	return !model_vcpu_of_guest_cpu(m, vm, cpu, &vcpu) && narrow_has_vcpu(n, m, vm, vcpu);
}

bool narrow_has_task(const struct narrow *n, const char *comm, int32_t pid)
{
	if (!n)
		return true;
	if (n->task && !is_number(n->task, pid) && strcmp(n->task, comm) != 0)
		return false;
	return !n->pid || n->pid == pid;
}

bool narrow_clip(const struct narrow *n, struct host_ns *begin, struct host_ns *end)
{
	if (!n || !n->cut)
		return true;
	if (begin->ns == end->ns)
		return narrow_has_time(n, *begin);
	if (begin->ns < n->from.ns)
		*begin = n->from;
	if (end->ns > n->until.ns)
		*end = n->until;
	return begin->ns < end->ns;
}

bool narrow_has_time(const struct narrow *n, struct host_ns t)
{
	return !n || !n->cut || (t.ns >= n->from.ns && t.ns < n->until.ns);
}

int64_t narrow_ns(const struct narrow *n, struct host_ns begin, struct host_ns end)
{
	return narrow_clip(n, &begin, &end) ? end.ns - begin.ns : 0;
}

struct host_ns narrow_begin(const struct narrow *n, const struct model *m)
{
	return n && n->cut ? n->from : model_begin(m);
}

struct host_ns narrow_end(const struct narrow *n, const struct model *m)
{
	return n && n->cut ? n->until : model_now(m);
}

static void __attribute__((format(printf, 3, 4)))
append(char *out, size_t out_bytes, const char *format, ...)
{
	size_t used = strlen(out);
	va_list args;

	va_start(args, format);
	vsnprintf(out + used, out_bytes - used, format, args);
	va_end(args);
}

void narrow_describe(const struct narrow *n, char *out, size_t out_bytes)
{
	out[0] = '\0';
	if (!n)
		return;
	if (n->vm)
		append(out, out_bytes, "VM %s", n->vm);
	if (n->vcpu >= 0)
		append(out, out_bytes, "%svCPU %" PRId64, *out ? ", " : "", n->vcpu);
	if (n->task)
		append(out, out_bytes, "%stask %s", *out ? ", " : "", n->task);
	if (n->pid)
		append(out, out_bytes, "%spid %" PRId32, *out ? ", " : "", n->pid);
}

static bool vcpu_exists(const struct narrow *n, const struct model *m, uint32_t vm)
{
	uint32_t vcpus[VS_CPUS_MAX];
	size_t count = model_vcpus(m, vm, vcpus, VS_CPUS_MAX);

	for (size_t i = 0; i < count && i < VS_CPUS_MAX; i++) {
		if (n->vcpu == (int64_t)vcpus[i])
			return true;
	}
	return false;
}

int narrow_check(const struct narrow *n, const struct model *m, char *why, size_t why_bytes)
{
	uint32_t vms[MODEL_VMS_MAX];
	size_t count = model_vms(m, vms, MODEL_VMS_MAX);
	bool vm = false, vcpu = false;

	if (!n || (!n->vm && n->vcpu < 0))
		return 0;
	for (size_t i = 0; i < count && i < MODEL_VMS_MAX; i++) {
		if (!narrow_has_vm(n, m, vms[i]))
			continue;
		vm = true;
		vcpu |= n->vcpu < 0 || vcpu_exists(n, m, vms[i]);
	}
	if (vm && vcpu)
		return 0;
	if (vm) {
		snprintf(why, why_bytes, "%s%s has no vCPU %" PRId64,
			 n->vm ? "VM " : "this recording", n->vm ? n->vm : "", n->vcpu);
		return -ENOENT;
	}
	snprintf(why, why_bytes, "no VM '%s' in this recording; it has", n->vm ? n->vm : "");
	for (size_t i = 0; i < count && i < VMS_NAMED; i++)
		append(why, why_bytes, "%s '%s'", i ? "," : "",
		       escape(model_vm_name(m, vms[i])).text);
	if (!count || count > VMS_NAMED)
		append(why, why_bytes, count ? " and more" : " none");
	return -ENOENT;
}
