/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/vm/vm.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/vm/qmp.h"
#include "host-collector/vm/threads.h"
#include "host-collector/vm/vcpu_threads.h"
#include "host-collector/vm/vmm_socket.h"

enum { QMP_LIMIT_MS = 3000 };

struct vm {
	struct vm_options options;
	struct message_vm_info info, scratch;
	struct vm_identity identity;
	struct vcpu_threads vcpus;
	struct qmp *qmp;
	size_t n_named; /* vCPUs that QMP named at the start; their rows in `named` */
	struct message_vm_thread *named;
	bool paused, migrates; /* when it was opened; paused is kept up by events */
	bool released;         /* the monitor was asked, and given back */
	char version[QMP_VERSION_BYTES];
};

const struct message_vm_info *vm_info(const struct vm *vm)
{
	return &vm->info;
}

const struct vm_identity *vm_identity(const struct vm *vm)
{
	return &vm->identity;
}

const char *vm_version(const struct vm *vm)
{
	return vm->version;
}

static size_t vcpus_count(const struct message_vm_info *info)
{
	size_t n = 0;

	for (size_t i = 0; i < info->n_threads; i++)
		n += info->threads[i].is_vcpu;
	return n;
}

size_t vm_n_vcpus(const struct vm *vm)
{
	return vcpus_count(&vm->info);
}

static int64_t field_int(struct json_object *object, const char *name, int64_t otherwise)
{
	struct json_object *field;

	return json_object_object_get_ex(object, name, &field) ? json_object_get_int64(field)
							       : otherwise;
}

static bool field_true(struct json_object *object, const char *name)
{
	struct json_object *field;

	return json_object_object_get_ex(object, name, &field) && json_object_get_boolean(field);
}

/* The states of a migration in which QEMU is not at it; in every other it may pause the VM for it.
 */
static bool migration_runs(const char *status)
{
	static const char *const over[] = {"none", "completed", "failed", "cancelled"};

	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
		if (strcmp(status, over[i]) == 0)
			return false;
	}
	return true;
}

static const char *field_text(struct json_object *object, const char *name)
{
	struct json_object *field;
	const char *text = NULL;

	if (object && json_object_object_get_ex(object, name, &field))
		text = json_object_get_string(field);
	return text ? text : "";
}

static bool apic_id_ask(struct qmp *qmp, struct json_object *cpu, uint32_t *apic_id)
{
	struct json_object *path, *arguments, *result = NULL;
	int64_t value = -1;

	if (!json_object_object_get_ex(cpu, "qom-path", &path))
		return false;
	arguments = json_object_new_object();
	json_object_object_add(arguments, "path", json_object_get(path));
	json_object_object_add(arguments, "property", json_object_new_string("apic-id"));
	if (qmp_execute(qmp, "qom-get", arguments, &result))
		return false;
	if (json_object_is_type(result, json_type_int))
		value = json_object_get_int64(result);
	json_object_put(result);
	if (value < 0 || value > UINT32_MAX)
		return false;
	*apic_id = (uint32_t)value;
	return true;
}

/* Fills vm->named from query-cpus-fast. */
static int vcpus_ask(struct vm *vm, char *why, size_t why_bytes)
{
	struct json_object *cpus = NULL;
	int err = qmp_execute(vm->qmp, "query-cpus-fast", NULL, &cpus);
	size_t n;

	if (err) {
		snprintf(why, why_bytes, "%s: query-cpus-fast: %s", vm->options.qmp_path,
			 strerror(-err));
		return err;
	}
	n = json_object_is_type(cpus, json_type_array) ? json_object_array_length(cpus) : 0;
	if (!n || n > VS_CPUS_MAX) {
		snprintf(why, why_bytes, "%s: query-cpus-fast names %zu CPUs, want 1 to %d",
			 vm->options.qmp_path, n, VS_CPUS_MAX);
		err = -EBADMSG;
		goto out;
	}
	free(vm->named);
	vm->named = calloc(n, sizeof(*vm->named));
	vm->n_named = 0;
	if (!vm->named) {
		err = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < n; i++) {
		struct json_object *cpu = json_object_array_get_idx(cpus, i);
		struct message_vm_thread *row = &vm->named[vm->n_named];
		int64_t tid = field_int(cpu, "thread-id", 0);
		int64_t index = field_int(cpu, "cpu-index", (int64_t)i);

		if (tid <= 0 || tid > INT32_MAX || index < 0 || index >= VS_CPUS_MAX)
			continue;
		row->tid = (int32_t)tid;
		row->is_vcpu = true;
		row->vcpu = (uint32_t)index;
		row->apic_id_known = apic_id_ask(vm->qmp, cpu, &row->apic_id);
		vm->n_named++;
	}
out:
	json_object_put(cpus);
	return err;
}

static void name_ask(struct vm *vm)
{
	struct json_object *result = NULL;

	if (!qmp_execute(vm->qmp, "query-name", NULL, &result) && *field_text(result, "name"))
		snprintf(vm->info.name, sizeof(vm->info.name), "%s", field_text(result, "name"));
	json_object_put(result);
}

static void state_ask(struct vm *vm)
{
	struct json_object *result = NULL;

	if (!qmp_execute(vm->qmp, "query-status", NULL, &result)) {
		vm->paused = !field_true(result, "running");
		/* It waits for a migration to bring the VM. */
		vm->migrates = strcmp(field_text(result, "status"), "inmigrate") == 0;
	}
	json_object_put(result);
}

/* QEMU announces migrations only once it is asked to, which changes nothing else. */
static void migration_ask(struct vm *vm)
{
	struct json_object *capability = json_object_new_object(), *list = json_object_new_array(),
			   *arguments = json_object_new_object(), *result = NULL;

	json_object_object_add(capability, "capability", json_object_new_string("events"));
	json_object_object_add(capability, "state", json_object_new_boolean(true));
	json_object_array_add(list, capability);
	json_object_object_add(arguments, "capabilities", list);
	/* It says no while a migration runs: then whoever started it decided. */
	qmp_execute(vm->qmp, "migrate-set-capabilities", arguments, &result);
	json_object_put(result);
	result = NULL;
	if (!qmp_execute(vm->qmp, "query-migrate", NULL, &result))
		vm->migrates |= *field_text(result, "status") &&
				migration_runs(field_text(result, "status"));
	json_object_put(result);
}

static void accelerator_ask(struct vm *vm)
{
	struct json_object *result = NULL;

	if (!qmp_execute(vm->qmp, "query-kvm", NULL, &result))
		snprintf(vm->info.accelerator, sizeof(vm->info.accelerator), "%s",
			 field_true(result, "enabled") ? "kvm" : "tcg");
	json_object_put(result);
}

/* What QMP and KVM know beyond the thread names, put on a fresh scan. */
static void info_complete(struct vm *vm, struct message_vm_info *info, bool first)
{
	for (size_t i = 0; i < vm->n_named; i++) {
		struct message_vm_thread *thread = threads_by_tid(info, vm->named[i].tid);

		/* With one thread for all CPUs the first row wins. */
		if (!thread || (thread->is_vcpu && thread->apic_id_known))
			continue;
		thread->is_vcpu = true;
		thread->vcpu = vm->named[i].vcpu;
		thread->apic_id = vm->named[i].apic_id;
		thread->apic_id_known = vm->named[i].apic_id_known;
	}
	vcpu_threads_apply(&vm->vcpus, info, first);
}

/*
 * Which process the monitor speaks for is the kernel's word, not the monitor's: the one that made
 * its socket listen. QEMU does that itself, also with a socket that libvirt hands to it. *pid: 0,
 * or what the caller gave, which must be the same.
 */
static int process_find(const struct vm *vm, pid_t *pid, char *why, size_t why_bytes)
{
	const char *path = vm->options.qmp_path;
	pid_t peer = qmp_peer(vm->qmp);
	char comm[16];

	if (peer < 0) {
		snprintf(why, why_bytes,
			 "%s: the process that serves it is in a PID namespace that is not visible "
			 "here; run vcpuscope on the host",
			 path);
		return peer;
	}
	threads_comm(vm->options.proc, peer, comm);
	if (*pid && *pid != peer) {
		snprintf(why, why_bytes, "%s is served by process %d (%s), not by --pid %d", path,
			 peer, comm, *pid);
		return -EINVAL;
	}
	*pid = peer;
	return 0;
}

/* QMP names threads by the ids that QEMU sees. Turns them into those of /proc, and refuses a thread
 * that is not one of this process. */
static int threads_prove(struct vm *vm, pid_t pid, char *why, size_t why_bytes)
{
	struct thread_ids *ids = calloc(VS_THREADS_MAX, sizeof(*ids));
	ssize_t n = ids ? threads_ids(vm->options.proc, pid, ids, VS_THREADS_MAX) : -ENOMEM;
	char comm[16];
	int err = 0;

	for (size_t i = 0; i < vm->n_named && n > 0 && !err; i++) {
		ssize_t at = 0;

		while (at < n && ids[at].own != vm->named[i].tid)
			at++;
		if (at < n) {
			vm->named[i].tid = ids[at].tid;
			continue;
		}
		threads_comm(vm->options.proc, pid, comm);
		snprintf(why, why_bytes,
			 "%s: its vCPU thread %d is no thread of process %d (%s), which serves it; "
			 "give the monitor of QEMU itself",
			 vm->options.qmp_path, vm->named[i].tid, pid, comm);
		err = -ESRCH;
	}
	if (n < 0) {
		err = (int)n;
		snprintf(why, why_bytes, "%s: the threads of process %d, which serves it: %s",
			 vm->options.qmp_path, pid, strerror(-err));
	}
	free(ids);
	return err;
}

/* A monitor names threads of its own process, of which KVM says that they run no vCPU. */
static int threads_refute(const struct vm *vm, char *why, size_t why_bytes)
{
	for (size_t i = 0; i < vm->n_named; i++) {
		if (!vcpu_threads_refute(&vm->vcpus, vm->named[i].tid))
			continue;
		snprintf(
			why, why_bytes,
			"%s: it calls thread %d of process %d a vCPU, and KVM says that this thread "
			"runs none: use --pid %d alone",
			vm->options.qmp_path, vm->named[i].tid, vm->info.qemu_pid,
			vm->info.qemu_pid);
		return -EBADMSG;
	}
	return 0;
}

static int vcpus_missing(const struct vm *vm, char *why, size_t why_bytes)
{
	const struct kvm_files *held = &vm->vcpus.files;
	const char *vmm = vm_identity_vmm(&vm->identity);
	const int pid = vm->info.qemu_pid;
	char comm[16];

	if (held->n_vcpus) {
		snprintf(
			why, why_bytes,
			"%s %d holds %zu vCPUs of KVM, and which of its threads run them cannot be "
			"seen: as root, and once the VM runs, it can",
			vmm, pid, held->n_vcpus);
		return -ENODATA;
	}
	threads_comm(vm->options.proc, pid, comm);
	if (vm->identity.kind != VMM_QEMU && strncmp(comm, "qemu", 4) && strcmp(comm, "kvm")) {
		snprintf(
			why, why_bytes,
			"process %d is %s, no QEMU, and holds no vCPU of KVM; `vcpuscope list --all` "
			"shows VMs",
			pid, *comm ? comm : "unnamed");
		return -ENOEXEC;
	}
	snprintf(why, why_bytes,
		 "QEMU %d has no thread named as a vCPU: give its monitor with --qmp PATH, or "
		 "start it with -name %s,debug-threads=on",
		 pid, vm->info.name);
	return -ENODATA;
}

/* The process's threads, and which of them are vCPUs. */
static int process_read(struct vm *vm, pid_t pid, char *why, size_t why_bytes)
{
	int err = threads_scan(vm->options.proc, pid, &vm->info);

	if (!err)
		err = vm_identity_read(vm->options.proc, pid, &vm->identity);
	if (err) {
		snprintf(why, why_bytes,
			 err == -ESRCH ? "no process %d; `vcpuscope list --all` shows VMs"
				       : "process %d: its threads cannot be listed; run as root",
			 pid);
		return err;
	}
	vm->info.vm = vm->options.number;
	vm_identity_name(&vm->identity, pid, vm->info.name, sizeof(vm->info.name));
	info_complete(vm, &vm->info, true);
	if (vm->vcpus.several) {
		snprintf(why, why_bytes,
			 "process %d runs several VMs: their vCPUs cannot be distinguished", pid);
		return -ENOTUNIQ;
	}
	if (!vm_n_vcpus(vm))
		return vcpus_missing(vm, why, why_bytes);
	return vm->qmp ? threads_refute(vm, why, why_bytes) : 0;
}

/* The monitor of a process that is known may be in its container. */
static int monitor_open(struct vm *vm, char *why, size_t why_bytes)
{
	const struct vm_options *o = &vm->options;
	char reason[192] = "";
	int fd = -ENOENT, err;

	if (o->pid && vmm_root_differs(o->proc, o->pid))
		fd = vmm_socket_connect(o->proc, o->pid, o->qmp_path, QMP_LIMIT_MS);
	if (fd == -ENOENT)
		return qmp_open(o->qmp_path, QMP_LIMIT_MS, &vm->qmp, why, why_bytes);
	if (fd < 0) {
		snprintf(why, why_bytes, "%s of process %d, in its container: %s", o->qmp_path,
			 o->pid,
			 fd == -EPERM   ? "another process serves it"
			 : fd == -ELOOP ? "a link that leads out of it"
					: strerror(-fd));
		return fd;
	}
	err = qmp_open_fd(fd, QMP_LIMIT_MS, &vm->qmp, reason, sizeof(reason));
	if (err)
		snprintf(why, why_bytes, "%s: %s", o->qmp_path, reason);
	return err;
}

/* Proxmox's own daemons use the one socket that its QEMU has: who keeps it stops them. */
static void monitor_release(struct vm *vm)
{
	if (strcmp(vm->identity.manager, "proxmox") != 0)
		return;
	qmp_close(vm->qmp);
	vm->qmp = NULL;
	vm->released = true;
	/* Nobody would say when it ends. */
	vm->paused = vm->migrates = false;
}

bool vm_qmp_released(const struct vm *vm)
{
	return vm->released;
}

int vm_open(const struct vm_options *options, struct vm **out, char *why, size_t why_bytes)
{
	struct vm *vm = calloc(1, sizeof(*vm));
	pid_t pid = options->pid;
	int err = -ENOMEM;

	if (!vm) {
		snprintf(why, why_bytes, "out of memory");
		return err;
	}
	vm->options = *options;
	vm->options.proc = options->proc ? options->proc : "/proc";
	vm->options.debugfs = options->debugfs ? options->debugfs : "/sys/kernel/debug";
	vcpu_threads_init(&vm->vcpus, vm->options.proc, vm->options.debugfs, !options->proc);
	if (!threads_ids_global(vm->options.proc)) {
		err = -EXDEV;
		snprintf(why, why_bytes,
			 "vcpuscope runs in a PID namespace of its own, where threads have other "
			 "ids than in the kernel's events: run it in the host's (in a container: "
			 "--pid=host)");
		goto fail;
	}
	if (options->qmp_path) {
		err = monitor_open(vm, why, why_bytes);
		if (err)
			goto fail;
		err = process_find(vm, &pid, why, why_bytes);
		if (!err)
			err = vcpus_ask(vm, why, why_bytes);
		if (!err)
			err = threads_prove(vm, pid, why, why_bytes);
		if (err)
			goto fail;
	}
	err = process_read(vm, pid, why, why_bytes);
	if (err)
		goto fail;
	if (vm->qmp) {
		snprintf(vm->version, sizeof(vm->version), "%s", qmp_version(vm->qmp));
		name_ask(vm);
		accelerator_ask(vm);
		state_ask(vm);
		migration_ask(vm);
		monitor_release(vm);
	}
	*out = vm;
	return 0;
fail:
	vm_close(vm);
	return err;
}

void vm_close(struct vm *vm)
{
	if (!vm)
		return;
	qmp_close(vm->qmp);
	vcpu_threads_fini(&vm->vcpus);
	free(vm->named);
	free(vm);
}

void vm_protect(struct vm *vm, enum vm_protection protection)
{
	vm->info.protection = protection;
}

static bool threads_equal(const struct message_vm_info *a, const struct message_vm_info *b)
{
	if (a->n_threads != b->n_threads)
		return false;
	for (size_t i = 0; i < a->n_threads; i++) {
		const struct message_vm_thread *x = &a->threads[i], *y = &b->threads[i];

		if (x->tid != y->tid || x->is_vcpu != y->is_vcpu || x->vcpu != y->vcpu ||
		    x->apic_id_known != y->apic_id_known || x->apic_id != y->apic_id ||
		    strcmp(x->comm, y->comm))
			return false;
	}
	return true;
}

int vm_rescan(struct vm *vm)
{
	struct message_vm_info *now = &vm->scratch;
	int err = threads_scan(vm->options.proc, vm->info.qemu_pid, now);

	if (err)
		return err;
	info_complete(vm, now, false);
	/* A QEMU that died but was not reaped keeps its first thread for ever. */
	if (!vcpus_count(now))
		return -ESRCH;
	if (threads_equal(now, &vm->info))
		return 0;
	vm->info.n_threads = now->n_threads;
	memcpy(vm->info.threads, now->threads, now->n_threads * sizeof(now->threads[0]));
	return 1;
}

bool vm_threads_stay(const struct vm *vm)
{
	return threads_stay(vm->options.proc, &vm->info);
}

int vm_qmp_fd(const struct vm *vm)
{
	return vm->qmp ? qmp_fd(vm->qmp) : -1;
}

bool vm_paused(const struct vm *vm)
{
	return vm->paused;
}

bool vm_migrates(const struct vm *vm)
{
	return vm->migrates;
}

static enum note_kind on_stop(struct vm *vm, struct json_object *data)
{
	(void)data;
	vm->paused = true;
	return NOTE_VM_PAUSED;
}

static enum note_kind on_resume(struct vm *vm, struct json_object *data)
{
	(void)data;
	vm->paused = false;
	return NOTE_VM_RESUMED;
}

static enum note_kind on_shutdown(struct vm *vm, struct json_object *data)
{
	(void)vm;
	(void)data;
	return NOTE_VM_GONE;
}

static enum note_kind on_migration(struct vm *vm, struct json_object *data)
{
	(void)vm;
	return migration_runs(field_text(data, "status")) ? NOTE_MIGRATION : NOTE_MIGRATION_OVER;
}

static enum note_kind on_other(struct vm *vm, struct json_object *data)
{
	(void)vm;
	(void)data;
	return NOTE_VM_EVENT;
}

/* What QEMU announces that a reader of a stall needs to know. `detail` names the member of the
 * event's data that says more. */
static const struct qmp_note {
	const char *event;
	enum note_kind (*take)(struct vm *vm, struct json_object *data);
	const char *text, *detail;
} qmp_notes[] = {
	{"STOP", on_stop, "QEMU stopped the VM", NULL},
	{"RESUME", on_resume, "QEMU resumed the VM", NULL},
	{"SHUTDOWN", on_shutdown, "QEMU shuts the VM down", "reason"},
	{"MIGRATION", on_migration, "QEMU migrates the VM", "status"},
	{"RESET", on_other, "QEMU reset the VM", "reason"},
	{"POWERDOWN", on_other, "QEMU asked the guest to power down", NULL},
	{"SUSPEND", on_other, "the guest suspended itself", NULL},
	{"WAKEUP", on_other, "the guest woke from its suspension", NULL},
	{"WATCHDOG", on_other, "the VM's watchdog device fired", "action"},
	{"GUEST_PANICKED", on_other, "the guest's kernel panicked", "action"},
	{"BLOCK_IO_ERROR", on_other, "QEMU's block layer met an I/O error", "reason"},
	{"BLOCK_JOB_READY", on_other, "a block job is ready to complete", "device"},
	{"BLOCK_JOB_COMPLETED", on_other, "a block job completed", "device"},
	{"BLOCK_JOB_CANCELLED", on_other, "a block job was cancelled", "device"},
	{"BLOCK_JOB_ERROR", on_other, "a block job met an error", "device"},
};

struct event_context {
	struct vm *vm;
	vm_note note;
	void *context;
};

static void event_seen(void *context, const char *name, uint64_t realtime_ns,
		       struct json_object *data)
{
	struct event_context *e = context;

	for (size_t i = 0; i < sizeof(qmp_notes) / sizeof(qmp_notes[0]); i++) {
		const struct qmp_note *row = &qmp_notes[i];
		const char *detail = row->detail ? field_text(data, row->detail) : "";
		char text[VS_TEXT_MAX];

		if (strcmp(name, row->event))
			continue;
		snprintf(text, sizeof(text), "%s (QMP %s%s%s)", row->text, row->event,
			 *detail ? ": " : "", detail);
		e->note(e->context, row->take(e->vm, data), realtime_ns, text);
	}
}

int vm_qmp_events(struct vm *vm, vm_note note, void *context)
{
	struct event_context e = {vm, note, context};
	int err = vm->qmp ? qmp_events(vm->qmp, event_seen, &e) : -EPIPE;

	if (err) {
		qmp_close(vm->qmp);
		vm->qmp = NULL;
	}
	return err;
}
