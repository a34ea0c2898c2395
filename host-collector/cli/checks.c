/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/checks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/capture/kernel_support.h"
#include "bpf/capture/tracepoint_format.h"
#include "bpf/capture/tracepoint_losses.h"
#include "bpf/perf/perf_probe.h"
#include "bpf/symbols/kernel_symbols.h"
#include "host-collector/vm/discover.h"
#include "host-collector/vm/vm.h"
#include "proto/proc_file.h"

#define TRACEFS "/sys/kernel/tracing"

enum { PERF_WINDOW_MS = 50 };

static void __attribute__((format(printf, 2, 3)))
answer_yes(struct check_result *result, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->detail, sizeof(result->detail), format, args);
	va_end(args);
	result->answer = CHECK_YES;
	result->remedy[0] = 0;
}

static void __attribute__((format(printf, 3, 4)))
answer_no(struct check_result *result, const char *remedy, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->detail, sizeof(result->detail), format, args);
	va_end(args);
	result->answer = CHECK_NO;
	snprintf(result->remedy, sizeof(result->remedy), "%s", remedy);
}

static void probe_kernel(struct check_result *result)
{
	struct utsname name;

	if (uname(&name))
		answer_no(result, "", "uname: %s", strerror(errno));
	else
		answer_yes(result, "Linux %s %s", name.release, name.machine);
}

static void support_probe(struct check_result *result, enum kernel_support_kind kind)
{
	struct kernel_support support;

	kernel_support_read("", CAPTURE_HOST, kind, &support);
	if (support.works) {
		answer_yes(result, "%s", support.found);
		return;
	}
	answer_no(result, support.remedy, "%s", support.found);
	snprintf(result->without, sizeof(result->without), "%s", support.without);
}

static void probe_rights(struct check_result *result)
{
	support_probe(result, KERNEL_SUPPORT_RIGHTS);
}

static void probe_btf(struct check_result *result)
{
	support_probe(result, KERNEL_SUPPORT_BTF);
}

static void probe_tracefs(struct check_result *result)
{
	support_probe(result, KERNEL_SUPPORT_TRACEFS);
}

static void probe_lockdown(struct check_result *result)
{
	support_probe(result, KERNEL_SUPPORT_LOCKDOWN);
}

static int tracepoint_id(const char *name, int *id)
{
	char path[256], line[32];
	int err;

	snprintf(path, sizeof(path), TRACEFS "/events/%s/id", name);
	err = proc_file_line(path, line, sizeof(line));
	if (!err)
		*id = atoi(line);
	return err;
}

static const char *remedy_for_rights(void)
{
	return geteuid()
		       ? "run as root"
		       : "this root user lacks rights: run it on the machine itself, not in a container";
}

/* Returns what to do if a path of the kernel cannot be read. */
static const char *remedy_for(int err, const char *if_absent)
{
	return err == -EACCES || err == -EPERM ? remedy_for_rights() : if_absent;
}

static void capture_try(struct check_result *result, enum capture_kind kind,
			enum backend_choice backend)
{
	const struct capture_options options = {
		.kind = kind, .backend = backend, .stacks = kind == CAPTURE_HOST};
	struct capture *capture = NULL;
	struct timespec begin, end;
	char why[400] = "";
	int err;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	err = capture_open(&options, &capture, why, sizeof(why));
	clock_gettime(CLOCK_MONOTONIC, &end);
	if (err) {
		answer_no(result, "", "%s", why);
		return;
	}
	answer_yes(result, "%s attaches in %ld ms%s%s%s%s", capture_backend_name(capture),
		   (long)((end.tv_sec - begin.tv_sec) * 1000 +
			  (end.tv_nsec - begin.tv_nsec) / 1000000),
		   *capture_left_out(capture) ? ", without " : "", capture_left_out(capture),
		   *capture_notice(capture) ? "; " : "", capture_notice(capture));
	tracepoint_losses(kind, capture_left_out(capture), result->without,
			  sizeof(result->without));
	capture_close(capture);
}

static void probe_host_capture(struct check_result *result)
{
	capture_try(result, CAPTURE_HOST, CAPTURE_BY_ANY);
}

static void probe_host_perf(struct check_result *result)
{
	capture_try(result, CAPTURE_HOST, CAPTURE_BY_PERF);
}

static void probe_guest_capture(struct check_result *result)
{
	capture_try(result, CAPTURE_GUEST, CAPTURE_BY_ANY);
}

static void probe_kallsyms(struct check_result *result)
{
	struct kallsyms *k = NULL;
	int err = kallsyms_load(NULL, &k);

	if (err)
		answer_no(result, "run as root, or sysctl kernel.kptr_restrict=0",
			  "/proc/kallsyms: %s",
			  err == -EACCES ? "addresses are hidden" : strerror(-err));
	else
		answer_yes(result, "%zu code symbols", kallsyms_count(k));
	kallsyms_free(k);
}

static void probe_perf(struct check_result *result)
{
	struct perf_probe_result seen;
	char why[192] = "";
	const int err = perf_probe_tracepoint("sched", "sched_switch", PERF_WINDOW_MS, &seen, why,
					      sizeof(why));

	if (err == -ENOTSUP)
		answer_no(result, "use a build with libperf, if BPF does not work here", "%s", why);
	else if (err == -ENOENT)
		answer_no(result, "mount -t tracefs tracefs " TRACEFS, "%s", why);
	else if (err)
		answer_no(result,
			  remedy_for(err,
				     "check tracefs above, and sysctl "
				     "kernel.perf_event_paranoid, which limits the use of perf"),
			  "%s", why);
	else if (seen.strange)
		answer_no(result, "report this bug: the kernel's records differ from their format",
			  "%" PRIu64 " of %" PRIu64 " sched_switch records are malformed",
			  seen.strange, seen.events);
	else
		answer_yes(result, "%" PRIu64 " sched_switch in %d ms", seen.events,
			   PERF_WINDOW_MS);
}

static void probe_kvm(struct check_result *result)
{
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0) {
		answer_no(result,
			  errno == ENOENT ? "load kvm_intel or kvm_amd; in a VM, enable nesting"
					  : "run as root or join group kvm",
			  "/dev/kvm: %s", strerror(errno));
		return;
	}
	close(fd);
	answer_yes(result, "/dev/kvm opens");
}

static void probe_kvm_events(struct check_result *result)
{
	int id, err = tracepoint_id("kvm/kvm_exit", &id);
	char missing[512] = "";

	tracepoint_rows_missing(tracepoint_format_read, true, missing, sizeof(missing));
	tracepoint_losses(CAPTURE_HOST, missing, result->without, sizeof(result->without));
	if (err)
		answer_no(result, remedy_for(err, "load kvm_intel or kvm_amd, and check tracefs"),
			  "kvm:kvm_exit: %s", strerror(-err));
	else
		answer_yes(result, "kvm:kvm_exit is event %d%s%s", id, *missing ? ", without " : "",
			   missing);
}

static void probe_kvm_debugfs(struct check_result *result)
{
	if (access("/sys/kernel/debug/kvm", R_OK | X_OK))
		answer_no(result,
			  remedy_for(-errno,
				     "mount -t debugfs debugfs /sys/kernel/debug, and load kvm"),
			  "/sys/kernel/debug/kvm: %s", strerror(errno));
	else
		answer_yes(result, "/sys/kernel/debug/kvm");
}

static void probe_libvirt(struct check_result *result)
{
	static const char *const sockets[] = {"/run/libvirt/libvirt-sock",
					      "/run/libvirt/virtqemud-sock"};

	for (size_t i = 0; i < sizeof(sockets) / sizeof(sockets[0]); i++) {
		if (!access(sockets[i], F_OK)) {
			answer_yes(result, "%s", sockets[i]);
			return;
		}
	}
	answer_no(result, "", "libvirt's daemon is not running");
}

static void probe_vsock(struct check_result *result)
{
	if (access("/dev/vhost-vsock", F_OK))
		answer_no(result, "", "/dev/vhost-vsock: %s", strerror(errno));
	else
		answer_yes(result, "/dev/vhost-vsock");
}

static void probe_vms(struct check_result *result)
{
	enum { SHOWN = 16 };
	const struct vm_wanted all = {.emulated = true};
	struct vm_finder *finder = vm_finder_new(NULL);
	struct vm_found vms[SHOWN];
	size_t n = finder ? vm_finder_look(finder, &all, vms, SHOWN) : 0, refused = 0;
	char text[sizeof(result->detail)] = "";

	for (size_t i = 0; i < n; i++) {
		struct vm_options options = {.number = 1, .pid = vms[i].pid};
		size_t len = strlen(text);
		struct vm *vm = NULL;
		char why[256];

		if (vm_open(&options, &vm, why, sizeof(why))) {
			refused++;
			snprintf(text + len, sizeof(text) - len,
				 "%spid %d, %s: its vCPU threads are unknown", i ? "; " : "",
				 vms[i].pid,
				 result->no_names && vms[i].identity.kind == VMM_OTHER
					 ? "another VMM"
					 : vm_identity_vmm(&vms[i].identity));
			continue;
		}
		snprintf(text + len, sizeof(text) - len, "%spid %d: %.40s%s%s, %zu vCPU%s",
			 i ? "; " : "", vms[i].pid, result->no_names ? "" : vm_info(vm)->name,
			 result->no_names ? "" : ", ", vm_info(vm)->accelerator, vm_n_vcpus(vm),
			 vm_n_vcpus(vm) == 1 ? "" : "s");
		vm_close(vm);
	}
	vm_finder_free(finder);
	if (!n)
		answer_no(result, "start a VM; record needs a running one",
			  "no process has a KVM vCPU, and none is QEMU");
	else if (refused)
		answer_no(result, "use --qmp PATH, or start QEMU with -name X,debug-threads=on",
			  "%s", text);
	else
		answer_yes(result, "%s", text);
}

const struct check check_table[] = {
	{"kernel", "the kernel of this machine", false, probe_kernel},
	{"rights", "tracing of all threads, reading QEMU's memory map", false, probe_rights},
	{"btf", "BPF programs that match this kernel's structures", false, probe_btf},
	{"lockdown", "a kernel that lets BPF read its memory", false, probe_lockdown},
	{"host capture", "the host side of recordings", true, probe_host_capture},
	{"host by perf", "the host side where BPF does not work: record --backend perf", false,
	 probe_host_perf},
	{"guest capture", "vcpuscope-agent on this machine, if it is a guest", false,
	 probe_guest_capture},
	{"kallsyms", "names of kernel functions in stacks", false, probe_kallsyms},
	{"tracefs", "names and formats of tracepoints", false, probe_tracefs},
	{"perf", "tracepoints without BPF", false, probe_perf},
	{"kvm", "hardware virtualisation on this machine", false, probe_kvm},
	{"kvm events", "time in the guest, in KVM and in QEMU, separately", false,
	 probe_kvm_events},
	{"kvm debugfs", "the thread of each vCPU, TSC offsets", false, probe_kvm_debugfs},
	{"vms", "VMs to record", false, probe_vms},
	{"libvirt", "libvirt domains that the daemon watches automatically", false, probe_libvirt},
	{"vsock", "the channel of VMs without a virtio-serial port", false, probe_vsock},
};
const size_t check_table_len = sizeof(check_table) / sizeof(check_table[0]);
