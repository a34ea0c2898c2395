/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/identity.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum {
	CMDLINE_MAX = 64 * 1024,
	CGROUP_MAX = 16 * 1024,
	STAT_STARTED = 22, /* the field of /proc/PID/stat, proc(5) */
};

/* By how a program's name begins; as the kernel cuts it at 15 characters. */
static const struct {
	const char *begins, *short_name, *shown;
	enum vmm_kind kind;
	bool whole;
} vmms[] = {
	{"qemu-system", "qemu", "QEMU", VMM_QEMU, false},
	{"qemu-kvm", "qemu", "QEMU", VMM_QEMU, false},
	{"kvm", "qemu", "QEMU", VMM_QEMU, true},
	{"cloud-hyperviso", "cloud-hypervisor", "Cloud Hypervisor", VMM_CLOUD_HYPERVISOR, false},
	{"firecracker", "firecracker", "Firecracker", VMM_FIRECRACKER, false},
	{"crosvm", "crosvm", "crosvm", VMM_CROSVM, false},
	{"lkvm", "kvmtool", "kvmtool", VMM_KVMTOOL, false},
	{"containerd-shim-kata", "kata", "Kata", VMM_KATA, false},
};
enum { N_VMMS = sizeof(vmms) / sizeof(vmms[0]) };

enum vmm_kind vm_identity_kind(const char *program)
{
	for (size_t i = 0; i < N_VMMS; i++) {
		if (vmms[i].whole ? !strcmp(program, vmms[i].begins)
				  : !strncmp(program, vmms[i].begins, strlen(vmms[i].begins)))
			return vmms[i].kind;
	}
	return VMM_OTHER;
}

static size_t vmm_row(enum vmm_kind kind)
{
	size_t i = 0;

	while (i < N_VMMS && vmms[i].kind != kind)
		i++;
	return i;
}

const char *vm_identity_vmm(const struct vm_identity *i)
{
	size_t row = vmm_row(i->kind);

	if (row < N_VMMS)
		return vmms[row].shown;
	return i->program[0] ? i->program : "VMM";
}

/* ---- the command line ---- */

static void text_take(char *out, size_t bytes, const char *from, size_t len)
{
	snprintf(out, bytes, "%.*s", (int)(len < bytes ? len : bytes - 1), from);
}

static void plain_take(struct vm_identity *i, const char *value)
{
	text_take(i->name, sizeof(i->name), value, strlen(value));
}

/* QEMU's -name: "guest=web,debug-threads=on" or "web,process=x". */
static void qemu_name_take(struct vm_identity *i, const char *value)
{
	if (!strncmp(value, "guest=", 6))
		value += 6;
	text_take(i->name, sizeof(i->name), value, strcspn(value, ","));
	/* Kata's QEMU is "sandbox-ID". */
	if (i->manager[0] && !strcmp(i->manager, "kata") && !strncmp(i->name, "sandbox-", 8))
		memmove(i->name, i->name + 8, strlen(i->name + 8) + 1);
}

static bool uuid_is_good(const char *text)
{
	for (size_t at = 0; at < IDENTITY_UUID_BYTES - 1; at++) {
		const bool dash = at == 8 || at == 13 || at == 18 || at == 23;

		if (dash ? text[at] != '-' && text[at] != '_' : !isxdigit((unsigned char)text[at]))
			return false;
	}
	return true;
}

static void uuid_take(struct vm_identity *i, const char *value)
{
	if (strlen(value) == IDENTITY_UUID_BYTES - 1 && uuid_is_good(value))
		memcpy(i->uuid, value, IDENTITY_UUID_BYTES);
}

/* Proxmox starts its QEMU with "-id 104". */
static void vmid_take(struct vm_identity *i, const char *value)
{
	const int id = proc_id_of(value);

	if (!id)
		return;
	i->vmid = (uint32_t)id;
	if (!i->manager[0])
		snprintf(i->manager, sizeof(i->manager), "proxmox");
}

/* A socket's file is often called alike for all VMs; then its folder has the name. */
static bool stem_is_common(const char *stem, size_t len)
{
	static const char *const common[] = {"api",         "clh-api", "ch",     "cloud-hypervisor",
					     "firecracker", "crosvm",  "socket", "control",
					     "vmm",         "vm",      "ch-api"};

	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++) {
		if (strlen(common[i]) == len && !strncmp(common[i], stem, len))
			return true;
	}
	return false;
}

/* "/run/vms/web1.sock", "/run/vms/web1/api.sock", "path=/run/x/web1.sock,..": web1. */
static void socket_take(struct vm_identity *i, const char *value)
{
	const char *end, *stem;
	bool folder = false;
	size_t len;

	if (i->name[0])
		return; /* a name that was given counts more */
	if (!strncmp(value, "path=", 5))
		value += 5;
	len = strcspn(value, ",");
	for (;;) {
		while (len && value[len - 1] == '/')
			len--;
		end = value + len;
		stem = end;
		while (stem > value && stem[-1] != '/')
			stem--;
		len = (size_t)(stem - value); /* of its folder */
		for (const char *dot = end - 1; dot > stem && !folder; dot--) {
			if (*dot == '.') {
				end = dot;
				break;
			}
		}
		folder = true;
		if (stem == end || !stem_is_common(stem, (size_t)(end - stem)))
			break;
	}
	text_take(i->name, sizeof(i->name), stem, (size_t)(end - stem));
}

static const struct {
	enum vmm_kind kind;
	const char *option; /* with one or two dashes, its value behind "=" or in the next word */
	void (*take)(struct vm_identity *i, const char *value);
} options[] = {
	{VMM_QEMU, "name", qemu_name_take},
	{VMM_QEMU, "uuid", uuid_take},
	{VMM_QEMU, "id", vmid_take},
	{VMM_FIRECRACKER, "id", plain_take},
	{VMM_FIRECRACKER, "api-sock", socket_take},
	{VMM_CLOUD_HYPERVISOR, "api-socket", socket_take},
	{VMM_CROSVM, "name", plain_take},
	{VMM_CROSVM, "socket", socket_take},
	{VMM_CROSVM, "s", socket_take},
	{VMM_KVMTOOL, "name", plain_take},
	{VMM_KVMTOOL, "n", plain_take},
	{VMM_KATA, "id", plain_take},
};

static void option_take(struct vm_identity *i, const char *word, const char *next)
{
	const char *name = word + strspn(word, "-"), *equals = strchr(name, '=');
	const size_t len = equals ? (size_t)(equals - name) : strlen(name);

	for (size_t o = 0; o < sizeof(options) / sizeof(options[0]); o++) {
		if (options[o].kind != i->kind || strlen(options[o].option) != len ||
		    strncmp(options[o].option, name, len))
			continue;
		if (equals || (next && *next))
			options[o].take(i, equals ? equals + 1 : next);
		return;
	}
}

void vm_identity_command_line(const char *argv, size_t bytes, struct vm_identity *out)
{
	size_t at = strnlen(argv, bytes) + 1; /* the program */

	while (at < bytes) {
		const size_t len = strnlen(argv + at, bytes - at);
		const size_t next = at + len + 1;

		if (at + len == bytes)
			return; /* cut off */
		if (argv[at] == '-')
			option_take(out, argv + at,
				    next < bytes && memchr(argv + next, 0, bytes - next)
					    ? argv + next
					    : NULL);
		at = next;
	}
}

/* ---- the cgroup ---- */

/* "..-pod0123_..": a pod's UID, which systemd writes with _ for -. */
static void pod_take(const char *text, struct vm_identity *out)
{
	for (const char *at = text; (at = strstr(at, "pod")); at += 3) {
		if (strnlen(at + 3, IDENTITY_UUID_BYTES - 1) < IDENTITY_UUID_BYTES - 1 ||
		    !uuid_is_good(at + 3))
			continue;
		text_take(out->pod_uid, sizeof(out->pod_uid), at + 3, IDENTITY_UUID_BYTES - 1);
		for (char *c = out->pod_uid; *c; c++)
			*c = *c == '_' ? '-' : *c;
		return;
	}
}

void vm_identity_cgroup(const char *text, struct vm_identity *out)
{
	static const struct {
		const char *part, *manager;
	} managers[] = {{"/kata_", "kata"},
			{"kubepods", "kubernetes"},
			{"/qemu.slice/", "proxmox"},
			{"machine-qemu", "libvirt"},
			{"libvirt-qemu", "libvirt"}};

	pod_take(text, out);
	for (size_t i = 0; i < sizeof(managers) / sizeof(managers[0]) && !out->manager[0]; i++) {
		if (strstr(text, managers[i].part))
			snprintf(out->manager, sizeof(out->manager), "%s", managers[i].manager);
	}
}

/* ---- the process ---- */

static void program_read(const char *proc, pid_t pid, char out[32])
{
	static const char deleted[] = " (deleted)";
	char path[512], file[PATH_MAX], comm[64];
	const char *base;
	ssize_t len;

	snprintf(path, sizeof(path), "%s/%d/exe", proc, pid);
	len = readlink(path, file, sizeof(file) - 1);
	if (len > 0) {
		file[len] = 0;
		if ((size_t)len > strlen(deleted) && !strcmp(file + len - strlen(deleted), deleted))
			file[(size_t)len - strlen(deleted)] = 0;
		base = strrchr(file, '/');
		base = base ? base + 1 : file;
		text_take(out, 32, base, strlen(base));
		return;
	}
	snprintf(path, sizeof(path), "%s/%d/comm", proc, pid);
	if (proc_file_read(path, comm, sizeof(comm)) > 0)
		text_take(out, 32, comm, strcspn(comm, "\n"));
}

static uint32_t uid_read(const char *proc, pid_t pid)
{
	char path[512], status[4096], *line;
	unsigned int uid;

	snprintf(path, sizeof(path), "%s/%d/status", proc, pid);
	if (proc_file_read(path, status, sizeof(status)) <= 0)
		return UINT32_MAX;
	/* The first line is the process's name, in which a line's end is escaped. */
	line = strstr(status, "\nUid:\t");
	return line && sscanf(line + 6, "%u", &uid) == 1 ? uid : UINT32_MAX;
}

static uint64_t started_read(const char *proc, pid_t pid)
{
	char path[512], stat[1024], *at;
	int field = 2;

	snprintf(path, sizeof(path), "%s/%d/stat", proc, pid);
	if (proc_file_read(path, stat, sizeof(stat)) <= 0)
		return 0;
	at = strrchr(stat, ')'); /* the name may hold anything */
	while (at && field < STAT_STARTED) {
		at = strchr(at + 1, ' ');
		field++;
	}
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static bool pids_differ(const char *proc, pid_t pid)
{
	char path[512], own[64], its[64];
	ssize_t n, m;

	snprintf(path, sizeof(path), "%s/self/ns/pid", proc);
	n = readlink(path, own, sizeof(own));
	snprintf(path, sizeof(path), "%s/%d/ns/pid", proc, pid);
	m = readlink(path, its, sizeof(its));
	return n > 0 && m > 0 && (n != m || memcmp(own, its, (size_t)n) != 0);
}

int vm_identity_read(const char *proc, pid_t pid, struct vm_identity *out)
{
	char path[512], *text = malloc(CMDLINE_MAX);
	ssize_t len;

	memset(out, 0, sizeof(*out));
	out->uid = UINT32_MAX;
	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	if (!text || access(path, F_OK)) {
		free(text);
		return text ? -ESRCH : -ENOMEM;
	}
	program_read(proc, pid, out->program);
	out->kind = vm_identity_kind(out->program);
	out->uid = uid_read(proc, pid);
	out->started = started_read(proc, pid);
	out->own_pids = pids_differ(proc, pid);
	snprintf(path, sizeof(path), "%s/%d/cgroup", proc, pid);
	if (proc_file_read(path, text, CGROUP_MAX) > 0)
		vm_identity_cgroup(text, out);
	snprintf(path, sizeof(path), "%s/%d/cmdline", proc, pid);
	len = proc_file_read(path, text, CMDLINE_MAX);
	if (len > 0)
		vm_identity_command_line(text, (size_t)len, out);
	free(text);
	return 0;
}

void vm_identity_name(const struct vm_identity *i, pid_t pid, char *out, size_t out_bytes)
{
	const size_t row = vmm_row(i->kind);

	if (i->name[0])
		snprintf(out, out_bytes, "%s", i->name);
	else
		snprintf(out, out_bytes, "%s-%d",
			 row < N_VMMS    ? vmms[row].short_name
			 : i->program[0] ? i->program
					 : "vm",
			 pid);
}
