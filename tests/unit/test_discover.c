/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the search for VMs by the descriptors of processes, in a simulated /proc: the thread of
 * each vCPU, and the name that the VMM gives the VM. */
#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/vm/discover.h"
#include "host-collector/vm/kvm_files.h"
#include "host-collector/vm/vm.h"

struct tree {
	char root[64], proc[80], debugfs[80];
};

static void folders_make(char *full, size_t from)
{
	for (char *slash = full + from; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
}

static void put(const struct tree *t, const char *text, size_t bytes, const char *path)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", t->root, path);
	folders_make(full, strlen(t->root) + 1);
	f = fopen(full, "w");
	assert_non_null(f);
	fwrite(text, 1, bytes, f);
	fclose(f);
}

static void put_text(const struct tree *t, int pid, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "proc/%d/%s", pid, file);
	put(t, text, strlen(text), path);
}

static void put_link(const struct tree *t, int pid, const char *file, const char *to)
{
	char full[256];

	snprintf(full, sizeof(full), "%s/proc/%d/%s", t->root, pid, file);
	folders_make(full, strlen(t->root) + 1);
	assert_int_equal(symlink(to, full), 0);
}

static void put_thread(const struct tree *t, int pid, int tid, const char *comm, const char *call)
{
	char file[64];

	snprintf(file, sizeof(file), "task/%d/comm", tid);
	put_text(t, pid, file, comm);
	snprintf(file, sizeof(file), "task/%d/syscall", tid);
	put_text(t, pid, file, call);
}

/* A process with its first thread, of this user. */
static void put_process(const struct tree *t, int pid, const char *exe, int uid)
{
	char text[256];

	put_link(t, pid, "exe", exe);
	snprintf(text, sizeof(text), "Name:\tx\nUid:\t%d\t0\t0\t0\n", uid);
	put_text(t, pid, "status", text);
	snprintf(text, sizeof(text),
		 "%d (a) b) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 4 0 77%d 1\n", pid, pid);
	put_text(t, pid, "stat", text);
	put_text(t, pid, "comm", "renamed\n");
	put_thread(t, pid, pid, "renamed\n", "7 0x7ff 0x1 0x5 0x0 0x0 0x0 0x7ff 0x400\n");
}

#define RUNS(fd) "16 " fd " 0xae80 0x0 0x4a 0x1 0x0 0x7f7a 0x438\n"

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));

	snprintf(t->root, sizeof(t->root), "/tmp/test_discover.XXXXXX");
	if (!mkdtemp(t->root))
		return -1;
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->root);
	snprintf(t->debugfs, sizeof(t->debugfs), "%s/debug", t->root);
	/* A VMM whose threads have no names: vCPUs 0 and 6. */
	put_process(t, 500, "/usr/bin/firecracker-v1.7 (deleted)", 0);
	put_link(t, 500, "fd/4", "anon_inode:kvm-vm");
	put_link(t, 500, "fd/5", "anon_inode:kvm-vcpu:0");
	put_link(t, 500, "fd/6", "anon_inode:kvm-vcpu:6");
	put_link(t, 500, "fd/7", "anon_inode:kvm-vcpu:6"); /* a second descriptor of the same */
	put_link(t, 500, "fd/8", "/tmp/anon_inode:kvm-vcpu:9");
	put_link(t, 500, "fd/9", "anon_inode:kvm-vcpu:9x");
	/* The kernel's own thread in the process shows what it inherited, without a stack. */
	put_thread(t, 500, 501, "kvm-nx-lpage-re\n", "16 0x5 0xae80 0x0 0x4a 0x1 0x0 0x0 0x0\n");
	put_thread(t, 500, 502, "a\n", RUNS("0x5"));
	put_thread(t, 500, 503, "b\n", RUNS("0x6"));
	put_thread(t, 500, 504, "c\n", RUNS("0x4"));
	put_thread(t, 500, 505, "d\n", "16 0x5 0xae81 0x0 0x4a 0x1 0x0 0x7f7a 0x438\n");
	put_thread(t, 500, 506, "e\n", "running\n");
	/* Another, of another user, that runs: only names tell. */
	put_process(t, 600, "/bin/crosvm", 1000);
	put_link(t, 600, "fd/11", "anon_inode:kvm-vcpu:0");
	put_link(t, 600, "fd/12", "anon_inode:kvm-vcpu:1");
	put_thread(t, 600, 601, "crosvm_vcpu1\n", "running\n");
	put_thread(t, 600, 602, "crosvm_vcpu0\n", "running\n");
	put_thread(t, 600, 603, "crosvm_vcpu2\n", "running\n"); /* KVM has no such vCPU */
	/* No VMM, whatever its threads are called. */
	put_process(t, 700, "/bin/bash", 0);
	put_link(t, 700, "fd/0", "/dev/null");
	put_thread(t, 700, 701, "vcpu0\n", "running\n");
	*state = t;
	return 0;
}

static int file_remove(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s, (void)type, (void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct tree *t = *state;

	nftw(t->root, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static int find(const struct tree *t, pid_t pid, struct vm **vm, char why[256])
{
	const struct vm_options options = {
		.number = 1, .pid = pid, .proc = t->proc, .debugfs = t->debugfs};

	why[0] = 0;
	return vm_open(&options, vm, why, 256);
}

static void is_vcpu(const struct vm *vm, int32_t tid, int vcpu)
{
	const struct message_vm_info *info = vm_info(vm);

	for (size_t i = 0; i < info->n_threads; i++) {
		if (info->threads[i].tid != tid)
			continue;
		assert_int_equal(info->threads[i].is_vcpu, vcpu >= 0);
		if (vcpu >= 0)
			assert_int_equal(info->threads[i].vcpu, vcpu);
		return;
	}
	fail_msg("no thread %d", tid);
}

static void test_threads_by_their_system_calls(void **state)
{
	struct tree *t = *state;
	struct vm *vm = NULL;
	char why[256];

	assert_int_equal(find(t, 500, &vm, why), 0);
	assert_int_equal(vm_n_vcpus(vm), 2);
	is_vcpu(vm, 502, 0);
	is_vcpu(vm, 503, 6);
	assert_string_equal(vm_info(vm)->accelerator, "kvm");
	assert_string_equal(vm_info(vm)->name, "firecracker-500");
	assert_string_equal(vm_identity_vmm(vm_identity(vm)), "Firecracker");
	vm_close(vm);
}

static void test_names_of_threads_count_for_vcpus_that_exist(void **state)
{
	struct tree *t = *state;
	struct vm *vm = NULL;
	char why[256];

	assert_int_equal(find(t, 600, &vm, why), 0);
	assert_int_equal(vm_n_vcpus(vm), 2);
	is_vcpu(vm, 601, 1);
	is_vcpu(vm, 602, 0);
	is_vcpu(vm, 603, -1);
	vm_close(vm);
	assert_int_equal(find(t, 700, &vm, why), -ENOEXEC);
	assert_non_null(strstr(why, "holds no vCPU of KVM"));
}

/* KVM's word about every vCPU: a thread that is merely called one is none. */
static void test_kvm_counts_more_than_names(void **state)
{
	struct tree *t = *state;
	struct vm *vm = NULL;
	char why[256];

	put_process(t, 800, "/usr/bin/qemu-system-x86_64", 0);
	put_link(t, 800, "fd/5", "anon_inode:kvm-vcpu:0");
	put_link(t, 800, "fd/6", "anon_inode:kvm-vcpu:2");
	put_thread(t, 800, 801, "CPU 0/KVM\n", "running\n");
	put_thread(t, 800, 802, "CPU 1/KVM\n", "running\n");
	put_thread(t, 800, 803, "CPU 2/KVM\n", "running\n");
	assert_int_equal(find(t, 800, &vm, why), 0);
	assert_int_equal(vm_n_vcpus(vm), 3); /* nobody knows better */
	vm_close(vm);
	/* By whichever thread it was created. */
	put(t, "801\n", 4, "debug/kvm/803-12/vcpu0/pid");
	put(t, "802\n", 4, "debug/kvm/803-12/vcpu2/pid");
	assert_int_equal(find(t, 800, &vm, why), 0);
	assert_int_equal(vm_n_vcpus(vm), 2);
	is_vcpu(vm, 802, 1); /* QEMU's index, of the APIC id 2 */
	is_vcpu(vm, 803, -1);
	vm_close(vm);
	put(t, "803\n", 4, "debug/kvm/800-13/vcpu0/pid");
	assert_int_equal(find(t, 800, &vm, why), -ENOTUNIQ);
	assert_non_null(strstr(why, "several VMs"));
}

static void test_all_that_hold_vcpus_are_found(void **state)
{
	static const uint32_t root[] = {0};
	struct vm_wanted wanted = {0};
	struct tree *t = *state;
	struct vm_finder *f = vm_finder_new(t->proc);
	struct vm_found found[4];

	put_process(t, 900, "/usr/bin/qemu-system-x86_64", 0);
	put_text(t, 900, "comm", "qemu-system-x86\n");
	assert_int_equal(vm_finder_look(f, &wanted, found, 4), 2);
	assert_false(vm_finder_by_bpf(f));
	assert_int_equal(found[0].pid, 500);
	assert_int_equal(found[0].n_vcpus, 2);
	assert_int_equal(found[0].identity.uid, 0);
	assert_int_equal(found[0].identity.started, 77500);
	assert_int_equal(found[1].pid, 600);
	assert_int_equal(found[1].identity.kind, VMM_CROSVM);
	assert_int_equal(found[1].identity.uid, 1000);
	wanted.emulated = true;
	assert_int_equal(vm_finder_look(f, &wanted, found, 4), 3);
	assert_false(found[2].kvm);
	assert_int_equal(vm_finder_look(f, &wanted, found, 2), 2);
	wanted.uids = root;
	wanted.n_uids = 1;
	assert_int_equal(vm_finder_look(f, &wanted, found, 4), 2);
	assert_int_equal(found[0].pid, 500);
	assert_int_equal(found[1].pid, 900);
	wanted.n_uids = 0; /* of nobody */
	assert_int_equal(vm_finder_look(f, &wanted, found, 4), 0);
	vm_finder_free(f);
}

#define POD  "0a1b2c3d-0123-4567-89ab-0123456789ab"
#define UUID "11111111-2222-3333-4444-555555555555"

static void test_each_vmm_keeps_its_name_elsewhere(void **state)
{
	static const struct {
		const char *program, *line, *cgroup; /* words of the line: apart by | */
		const char *vmm, *name, *manager;
		uint32_t vmid;
		bool uuid, pod;
	} cases[] = {
		{"qemu-system-x86_64", "q|-name|guest=web1,debug-threads=on|-uuid|" UUID,
		 "0::/machine.slice/machine-qemu\\x2d1\\x2dweb1.scope", "QEMU", "web1", "libvirt",
		 0, true, false},
		{"qemu-system-x86_64", "/usr/bin/kvm|-id|104|-name|db,debug-threads=on|-smbios|x",
		 "0::/qemu.slice/104.scope", "QEMU", "db", "proxmox", 104, false, false},
		{"kvm", "kvm|-id|4x|-uuid|" UUID "0", "", "QEMU", "", "", 0, false, false},
		{"qemu-kvm", "q|-name|", "", "QEMU", "", "", 0, false, false},
		{"firecracker", "f|--id=fc-7|--api-sock|/run/x.sock", "", "Firecracker", "fc-7", "",
		 0, false, false},
		{"firecracker", "f|--api-sock|/srv/vms/web.2/firecracker.socket", "", "Firecracker",
		 "web.2", "", 0, false, false},
		{"cloud-hyperviso", "c|--api-socket|/run/web3.sock|--kernel|x", "",
		 "Cloud Hypervisor", "web3", "", 0, false, false},
		{"cloud-hypervisor", "c|--api-socket|path=/run/vc/vm/5ab/clh-api.sock,x=y",
		 "0::/kata_overhead/5ab", "Cloud Hypervisor", "5ab", "kata", 0, false, false},
		{"cloud-hypervisor", "c|--api-socket|/api.sock", "", "Cloud Hypervisor", "", "", 0,
		 false, false},
		{"qemu-system-x86_64", "q|-name|sandbox-9f,debug-threads=on",
		 "0::/kubepods/pod" POD "/kata_9f", "QEMU", "9f", "kata", 0, false, true},
		{"qemu-kvm", "q|-name|guest=default_vm1",
		 "0::/kubepods.slice/kubepods-burstable-pod0a1b2c3d_0123_4567_89ab_0123456789ab."
		 "slice/cri-containerd-1.scope",
		 "QEMU", "default_vm1", "kubernetes", 0, false, true},
		{"crosvm", "crosvm|run|--socket|/tmp/a.sock|--name|droid", "", "crosvm", "droid",
		 "", 0, false, false},
		{"crosvm", "crosvm|run|-s|/tmp/a.sock", "", "crosvm", "a", "", 0, false, false},
		{"lkvm", "lkvm|run|--name|k1", "", "kvmtool", "k1", "", 0, false, false},
		{"containerd-shim-kata-v2", "s|-namespace|k8s.io|-id|77", "", "Kata", "77", "", 0,
		 false, false},
		{"containerd-shim-runc-v2", "s|-id|77", "", "containerd-shim-runc-v2", "", "", 0,
		 false, false},
		{"myvmm", "m|--name|x|-id|4", "", "myvmm", "", "", 0, false, false},
		{"firecracker", "f|--id", "0::/pod0a1b2c3d", "Firecracker", "", "", 0, false,
		 false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vm_identity id = {.kind = vm_identity_kind(cases[i].program)};
		const size_t bytes = strlen(cases[i].line) + 1;
		char *line = strdup(cases[i].line); /* to the byte: a read behind it is seen */

		snprintf(id.program, sizeof(id.program), "%s", cases[i].program);
		for (size_t at = 0; at < bytes; at++)
			line[at] = cases[i].line[at] == '|' ? 0 : cases[i].line[at];
		vm_identity_cgroup(cases[i].cgroup, &id);
		vm_identity_command_line(line, bytes, &id);
		free(line);
		if (strcmp(vm_identity_vmm(&id), cases[i].vmm) || strcmp(id.name, cases[i].name) ||
		    strcmp(id.manager, cases[i].manager) || id.vmid != cases[i].vmid ||
		    strcmp(id.uuid, cases[i].uuid ? UUID : "") ||
		    strcmp(id.pod_uid, cases[i].pod ? POD : ""))
			fail_msg("`%s`: %s `%s` by `%s` %u %s %s", cases[i].line,
				 vm_identity_vmm(&id), id.name, id.manager, id.vmid, id.uuid,
				 id.pod_uid);
	}
}

/* A command line that ends in the middle of a word, or is one word. */
static void test_a_cut_command_line_is_read_to_its_end(void **state)
{
	static const char words[] = "q\0-name\0web1\0-uuid\0" UUID;

	(void)state;
	for (size_t bytes = 0; bytes <= sizeof(words); bytes++) {
		struct vm_identity id = {.kind = VMM_QEMU};
		char *cut = malloc(bytes ? bytes : 1);

		memcpy(cut, words, bytes);
		vm_identity_command_line(cut, bytes, &id);
		free(cut);
		/* A word counts only whole. */
		assert_string_equal(id.name, bytes > 12 ? "web1" : "");
		assert_string_equal(id.uuid, bytes >= sizeof(words) ? UUID : "");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_threads_by_their_system_calls, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_names_of_threads_count_for_vcpus_that_exist,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_kvm_counts_more_than_names, setup, teardown),
		cmocka_unit_test_setup_teardown(test_all_that_hold_vcpus_are_found, setup,
						teardown),
		cmocka_unit_test(test_each_vmm_keeps_its_name_elsewhere),
		cmocka_unit_test(test_a_cut_command_line_is_read_to_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
