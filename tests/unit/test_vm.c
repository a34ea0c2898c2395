/* SPDX-License-Identifier: GPL-2.0-only */
/* Tests the search for a VM: by thread names in a simulated /proc, by a scripted QMP monitor,
 * and the message if it is not found. */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-collector/vm/qmp.h"
#include "host-collector/vm/threads.h"
#include "host-collector/vm/vm.h"

/* ---- a made-up /proc and debugfs ---- */

struct tree {
	char root[64];
	char proc[80], debugfs[80], qmp[80];
};

static void put(const char *root, const char *path, const void *bytes, size_t len)
{
	char full[256];
	FILE *f;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(full, 0755);
		*slash = '/';
	}
	f = fopen(full, "w");
	assert_non_null(f);
	fwrite(bytes, 1, len, f);
	fclose(f);
}

static void put_text(const char *root, const char *path, const char *text)
{
	put(root, path, text, strlen(text));
}

static void thread_put(struct tree *t, int pid, int tid, const char *comm)
{
	char path[128];

	snprintf(path, sizeof(path), "proc/%d/task/%d/comm", pid, tid);
	put_text(t->root, path, comm);
}

static int tree_setup(void **state)
{
	static const char cmdline[] = "/usr/bin/qemu-system-x86_64\0-machine\0pc\0-name\0"
				      "guest=web1,debug-threads=on\0-m\00012";
	static const struct {
		int tid;
		const char *comm;
	} named[] = {{700, "qemu-system-x86\n"}, {702, "CPU 1/KVM\n"}, {701, "CPU 0/KVM\n"},
		     {703, "vnc_worker\n"},      {704, "CPU x/KVM\n"}, {705, "CPU 2/KVMx\n"},
		     {706, "IO iothread1\n"}};
	struct tree *t = calloc(1, sizeof(*t));

	snprintf(t->root, sizeof(t->root), "/tmp/test_vm.XXXXXX");
	if (!mkdtemp(t->root))
		return -1;
	snprintf(t->proc, sizeof(t->proc), "%s/proc", t->root);
	snprintf(t->debugfs, sizeof(t->debugfs), "%s/debug", t->root);
	snprintf(t->qmp, sizeof(t->qmp), "%s/qmp", t->root);
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++)
		thread_put(t, 700, named[i].tid, named[i].comm);
	put_text(t->root, "proc/700/comm", "qemu-system-x86\n");
	put(t->root, "proc/700/cmdline", cmdline, sizeof(cmdline));
	/* a QEMU without thread names, and something else */
	put_text(t->root, "proc/800/comm", "qemu-system-x86\n");
	thread_put(t, 800, 800, "qemu-system-x86\n");
	thread_put(t, 800, 801, "qemu-system-x86\n");
	thread_put(t, 800, 802, "qemu-system-x86\n");
	put_text(t->root, "proc/900/comm", "bash\n");
	thread_put(t, 900, 900, "bash\n");
	*state = t;
	return 0;
}

static int file_remove(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s, (void)type, (void)ftw;
	return remove(path);
}

static int tree_teardown(void **state)
{
	struct tree *t = *state;

	nftw(t->root, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(t);
	return 0;
}

static int find(struct tree *t, pid_t pid, bool qmp, struct vm **vm, char why[256])
{
	struct vm_options options = {.number = 3,
				     .pid = pid,
				     .qmp_path = qmp ? t->qmp : NULL,
				     .proc = t->proc,
				     .debugfs = t->debugfs};

	why[0] = 0;
	return vm_open(&options, vm, why, 256);
}

/* ---- a scripted monitor ---- */

struct script {
	const char *const
		*lines; /* "<" wants this in the next request, ">" sends a line, "!" closes */
	int listener;
	const char *failed;
};

static void *script_run(void *context)
{
	struct script *s = context;
	int fd = accept(s->listener, NULL, NULL);
	FILE *f = fdopen(fd, "r+");
	char request[1024];

	setvbuf(f, NULL, _IONBF, 0);
	for (size_t i = 0; s->lines[i] && !s->failed; i++) {
		const char *line = s->lines[i] + 1;

		if (s->lines[i][0] == '>') {
			fprintf(f, "%s\r\n", line);
		} else if (s->lines[i][0] == '<') {
			/* answers must carry the id of their request: the script reads it */
			if (!fgets(request, sizeof(request), f) || !strstr(request, line))
				s->failed = line;
		} else {
			char *id = strstr(request, "\"id\":");

			fprintf(f, "{\"id\": %d, %s}\r\n", id ? atoi(id + 5) : -1, line);
		}
	}
	/* wait for the other side to finish, so that nothing is cut off */
	while (!s->failed && fgets(request, sizeof(request), f))
		;
	fclose(f);
	return NULL;
}

static void script_start(struct tree *t, struct script *s, pthread_t *thread)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", t->qmp);
	unlink(t->qmp);
	s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(s->listener, 1), 0);
	pthread_create(thread, NULL, script_run, s);
}

static void script_end(struct script *s, pthread_t thread)
{
	pthread_join(thread, NULL);
	close(s->listener);
	if (s->failed)
		fail_msg("the monitor was not asked `%s`", s->failed);
}

/* ---- properties ---- */

static void test_thread_names(void **state)
{
	static const struct {
		const char *comm, *accelerator;
		uint32_t vcpu;
	} cases[] = {
		{"CPU 0/KVM", "kvm", 0},
		{"CPU 17/TCG", "tcg", 17},
		{"CPU 1023/KVM", "kvm", 1023},
		{"ALL CPUs/TCG", "tcg", 0},
		{"CPU 1024/KVM", NULL, 0},
		{"CPU /KVM", NULL, 0},
		{"CPU 1/KVMx", NULL, 0},
		{"xCPU 1/KVM", NULL, 0},
		{"CPU 1/HVF", NULL, 0},
		{"", NULL, 0},
		{"CPU 1", NULL, 0},
		{"ALL CPUs/TCGx", NULL, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *accelerator = "";
		uint32_t vcpu = 0;

		assert_int_equal(thread_name_is_vcpu(cases[i].comm, &vcpu, &accelerator),
				 cases[i].accelerator != NULL);
		assert_int_equal(vcpu, cases[i].vcpu);
		assert_string_equal(accelerator, cases[i].accelerator ? cases[i].accelerator : "");
	}
}

static void test_pid_with_thread_names(void **state)
{
	struct tree *t = *state;
	const struct message_vm_info *info;
	struct vm *vm = NULL;
	char why[256];

	assert_int_equal(find(t, 700, false, &vm, why), 0);
	info = vm_info(vm);
	assert_int_equal(info->vm, 3);
	assert_int_equal(info->qemu_pid, 700);
	assert_string_equal(info->name, "web1");
	assert_string_equal(info->accelerator, "kvm");
	assert_int_equal(info->n_threads, 7);
	assert_int_equal(vm_n_vcpus(vm), 2);
	assert_int_equal(info->threads[1].tid, 701);
	assert_true(info->threads[1].is_vcpu);
	assert_int_equal(info->threads[2].vcpu, 1);
	assert_false(info->threads[1].apic_id_known);
	assert_int_equal(vm_qmp_fd(vm), -1);

	/* threads come and go; then QEMU goes */
	assert_int_equal(vm_rescan(vm), 0);
	assert_true(vm_threads_stay(vm));
	thread_put(t, 700, 720, "CPU 2/KVM\n");
	assert_false(vm_threads_stay(vm));
	assert_int_equal(vm_rescan(vm), 1);
	assert_true(vm_threads_stay(vm));
	assert_int_equal(vm_n_vcpus(vm), 3);
	thread_put(t, 700, 720, "worker\n");
	assert_int_equal(vm_rescan(vm), 1);
	assert_int_equal(vm_n_vcpus(vm), 2);
	/* dead but not reaped: the vCPU threads are gone, the first thread is not */
	thread_put(t, 700, 701, "qemu-system-x86\n");
	thread_put(t, 700, 702, "qemu-system-x86\n");
	assert_int_equal(vm_rescan(vm), -ESRCH);
	thread_put(t, 700, 701, "CPU 0/KVM\n");
	assert_int_equal(vm_rescan(vm), 1);
	{
		char path[160];

		snprintf(path, sizeof(path), "%s/700/task/720", t->proc);
		nftw(path, file_remove, 8, FTW_DEPTH | FTW_PHYS);
		assert_false(vm_threads_stay(vm)); /* one thread less */
		snprintf(path, sizeof(path), "%s/700", t->proc);
		nftw(path, file_remove, 8, FTW_DEPTH | FTW_PHYS);
	}
	assert_false(vm_threads_stay(vm));
	assert_int_equal(vm_rescan(vm), -ESRCH);
	vm_close(vm);
}

static void test_debugfs_knows_vcpus_and_apic_ids(void **state)
{
	struct tree *t = *state;
	struct vm *vm = NULL;
	char why[256];

	put_text(t->root, "debug/kvm/800-12/vcpu0/pid", "801\n");
	put_text(t->root, "debug/kvm/800-12/vcpu6/pid", "802\n");
	put_text(t->root, "debug/kvm/800-12/vcpux/pid", "800\n");
	put_text(t->root, "debug/kvm/8001-12/vcpu9/pid", "800\n");
	assert_int_equal(find(t, 800, false, &vm, why), 0);
	assert_int_equal(vm_n_vcpus(vm), 2);
	assert_true(vm_info(vm)->threads[2].apic_id_known);
	assert_int_equal(vm_info(vm)->threads[2].apic_id, 6);
	assert_string_equal(vm_info(vm)->accelerator, "kvm");
	assert_string_equal(vm_info(vm)->name, "qemu-800");
	vm_close(vm);
}

/* Whoever is in a PID namespace of its own would follow threads of others. */
static void test_ids_are_those_of_the_kernels_events(void **state)
{
	struct tree *t = *state;
	struct vm *vm = NULL;
	char path[128], why[256];

	snprintf(path, sizeof(path), "%s/self", t->proc);
	mkdir(path, 0755);
	strcat(path, "/ns");
	mkdir(path, 0755);
	strcat(path, "/pid");
	assert_int_equal(symlink("pid:[4026531836]", path), 0);
	assert_int_equal(find(t, 700, false, &vm, why), 0);
	vm_close(vm);
	unlink(path);
	assert_int_equal(symlink("pid:[4026532201]", path), 0);
	assert_int_equal(find(t, 700, false, &vm, why), -EXDEV);
	assert_non_null(strstr(why, "--pid=host"));
}

static void test_errors_say_what_to_do(void **state)
{
	static const struct {
		pid_t pid;
		int err;
		const char *says;
	} cases[] = {
		{12345, -ESRCH, "no process 12345; `vcpuscope list --all` shows VMs"},
		{900, -ENOEXEC, "process 900 is bash, no QEMU"},
		{800, -ENODATA, "-name qemu-800,debug-threads=on"},
		{800, -ENODATA, "--qmp PATH"},
	};
	struct vm *vm = NULL;
	char why[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(find(*state, cases[i].pid, false, &vm, why), cases[i].err);
		if (!strstr(why, cases[i].says))
			fail_msg("says `%s`, want `%s`", why, cases[i].says);
	}
	assert_int_equal(find(*state, 0, true, &vm, why), -ENOENT);
	assert_non_null(strstr(why, "/qmp: No such file"));
}

static void test_qemu_processes_are_listed(void **state)
{
	struct tree *t = *state;
	pid_t pids[8];

	assert_int_equal(threads_find_qemu(t->proc, pids, 8), 2);
	assert_int_equal(pids[0], 700);
	assert_int_equal(pids[1], 800);
	assert_int_equal(threads_find_qemu(t->proc, pids, 1), 1);
}

#define GREETING  ">{\"QMP\": {\"version\": {}, \"capabilities\": [\"oob\"]}}"
#define NEGOTIATE "<\"execute\":\"qmp_capabilities\"", "=\"return\": {}"

struct seen {
	char reset[VS_TEXT_MAX];
	char text[256];
};

static void note_seen(void *context, enum note_kind kind, uint64_t realtime_ns, const char *text)
{
	struct seen *seen = context;
	size_t len = strlen(seen->text);

	if (kind == NOTE_VM_EVENT && !*seen->reset)
		snprintf(seen->reset, sizeof(seen->reset), "%s", text);
	if (kind == NOTE_VM_RESUMED)
		assert_int_equal(realtime_ns, 1700000000000123000);
	snprintf(seen->text + len, sizeof(seen->text) - len, "%d ", kind);
}

/* The scripted monitor is this process's, so this is the QEMU: in two PID namespaces of its own, in
 * which its vCPU threads 811 and 812 are 801 and 802. */
static void qemu_put(struct tree *t)
{
	const int pid = getpid();
	char path[128], text[256];

	snprintf(path, sizeof(path), "proc/%d/comm", pid);
	put_text(t->root, path, "qemu-system-x86\n");
	thread_put(t, pid, pid, "qemu-system-x86\n");
	for (int tid = 811; tid <= 812; tid++) {
		thread_put(t, pid, tid, "qemu-system-x86\n");
		snprintf(path, sizeof(path), "proc/%d/task/%d/status", pid, tid);
		snprintf(text, sizeof(text),
			 "Name:\tqemu\nTgid:\t%d\nNSpid:\t%d\t30\t%d\nThreads:\t3\n", pid, tid,
			 tid - 10);
		put_text(t->root, path, text);
	}
}

static const struct message_vm_thread *thread_of(const struct message_vm_info *info, int32_t tid)
{
	for (size_t i = 0; i < info->n_threads; i++) {
		if (info->threads[i].tid == tid)
			return &info->threads[i];
	}
	fail_msg("no thread %d", tid);
	return NULL;
}

static void test_qmp_names_vcpus(void **state)
{
	static const char *const lines[] = {
		GREETING,
		NEGOTIATE,
		"<query-cpus-fast",
		">{\"event\": \"STOP\", \"timestamp\": {}}",
		"=\"return\": [{\"thread-id\": 801, \"cpu-index\": 0, \"qom-path\": \"/m/a\"},"
		"{\"thread-id\": 802, \"cpu-index\": 1, \"qom-path\": \"/m/b\"}]",
		"<\"property\":\"apic-id\"",
		"=\"return\": 0",
		"<\"path\":\"\\/m\\/b\"",
		"=\"return\": 73",
		"<query-name",
		"=\"return\": {\"name\": \"db\"}",
		"<query-kvm",
		">{\"id\": 99999, \"return\": {\"enabled\": true}}",
		"=\"return\": {\"enabled\": false, \"present\": true}",
		"<query-status",
		"=\"return\": {\"running\": false, \"status\": \"paused\"}",
		"<\"capability\":\"events\"",
		">{\"event\": \"MIGRATION\", \"data\": {\"status\": \"setup\"}}",
		"=\"return\": {}",
		"<query-migrate",
		"=\"return\": {\"status\": \"active\"}",
		">{\"event\": \"MIGRATION\", \"data\": {\"status\": \"completed\"}}",
		">{\"event\": \"RESET\", \"data\": {\"guest\": true, \"reason\": \"guest-reset\"}}",
		">{\"event\": \"SHUTDOWN\", \"data\": 7}",
		">not json",
		">{\"event\": \"BLOCK_JOB_READY\"}",
		">{\"event\": \"NIC_RX_FILTER_CHANGED\"}",
		">{\"event\": \"RESUME\", "
		"\"timestamp\": {\"seconds\": 1700000000, \"microseconds\": 123}}",
		NULL,
	};
	struct tree *t = *state;
	struct script script = {.lines = lines};
	struct seen seen = {.text = ""};
	const struct message_vm_thread *vcpu;
	const struct message_vm_info *info;
	struct vm *vm = NULL;
	pthread_t thread;
	char why[256];

	qemu_put(t);
	script_start(t, &script, &thread);
	assert_int_equal(find(t, 0, true, &vm, why), 0);
	info = vm_info(vm);
	assert_int_equal(info->qemu_pid, getpid());
	assert_string_equal(info->name, "db");
	assert_string_equal(info->accelerator, "tcg");
	assert_int_equal(vm_n_vcpus(vm), 2);
	vcpu = thread_of(info, 812); /* which calls itself 802 */
	assert_true(vcpu->is_vcpu);
	assert_int_equal(vcpu->vcpu, 1);
	assert_true(vcpu->apic_id_known);
	assert_int_equal(vcpu->apic_id, 73);
	assert_true(vm_paused(vm));
	assert_true(vm_qmp_fd(vm) >= 0);
	for (int i = 0; i < 200 && vm_paused(vm); i++) {
		assert_int_equal(vm_qmp_events(vm, note_seen, &seen), 0);
		usleep(5000);
	}
	assert_false(vm_paused(vm));
	/* What came between answers was kept. */
	assert_string_equal(seen.text, "7 10 11 12 3 12 8 ");
	assert_string_equal(seen.reset, "QEMU reset the VM (QMP RESET: guest-reset)");
	assert_true(vm_migrates(vm));
	assert_int_equal(vm_rescan(vm), 0); /* QMP's knowledge survives a scan */
	vm_close(vm);
	script_end(&script, thread);
}

/* Proxmox's daemons need the monitor that its QEMU has. */
static void test_qmp_of_proxmox_is_given_back(void **state)
{
	static const char *const lines[] = {
		GREETING,
		NEGOTIATE,
		"<query-cpus-fast",
		"=\"return\": [{\"thread-id\": 801, \"cpu-index\": 0}]",
		"<query-name",
		"=\"return\": {\"name\": \"db\"}",
		"<query-kvm",
		"=\"return\": {\"enabled\": true}",
		"<query-status",
		"=\"return\": {\"running\": false, \"status\": \"paused\"}",
		"<\"capability\":\"events\"",
		"=\"return\": {}",
		"<query-migrate",
		"=\"return\": {}",
		NULL,
	};
	static const char cmdline[] = "/usr/bin/kvm\0-id\000104\0-name\0web";
	struct tree *t = *state;
	struct script script = {.lines = lines};
	struct vm *vm = NULL;
	pthread_t thread;
	char why[256], path[128];

	qemu_put(t);
	snprintf(path, sizeof(path), "proc/%d/cmdline", getpid());
	put(t->root, path, cmdline, sizeof(cmdline));
	script_start(t, &script, &thread);
	assert_int_equal(find(t, 0, true, &vm, why), 0);
	script_end(&script, thread); /* which waits until we are gone */
	assert_true(vm_qmp_released(vm));
	assert_int_equal(vm_qmp_fd(vm), -1);
	assert_int_equal(vm_identity(vm)->vmid, 104);
	assert_int_equal(vm_n_vcpus(vm), 1); /* what it said stays */
	assert_false(vm_paused(vm));         /* nobody would say when that ends */
	assert_int_equal(vm_rescan(vm), 0);
	assert_int_equal(vm_n_vcpus(vm), 1);
	vm_close(vm);
}

static void test_qmp_trouble(void **state)
{
	static const char *const elsewhere[] = {
		GREETING, NEGOTIATE, "<query-cpus-fast",
		"=\"return\": [{\"thread-id\": 4242, \"cpu-index\": 0}]", NULL};
	/* Process 800 has this thread; the monitor is not its. */
	static const char *const another[] = {
		GREETING, NEGOTIATE, "<query-cpus-fast",
		"=\"return\": [{\"thread-id\": 800, \"cpu-index\": 0}]", NULL};
	/* As /proc calls the thread, but not as QEMU does. */
	static const char *const outer[] = {GREETING, NEGOTIATE, "<query-cpus-fast",
					    "=\"return\": [{\"thread-id\": 811, \"cpu-index\": 0}]",
					    NULL};
	static const char *const greets[] = {GREETING, NEGOTIATE, NULL};
	static const char *const stranger[] = {">{\"hello\": 1}", NULL};
	static const char *const garbage[] = {">SSH-2.0-OpenSSH_9.2", NULL};
	static const char *const number[] = {">1", NULL};
	static const char *const refuses[] = {GREETING, NEGOTIATE, "<query-cpus-fast",
					      "=\"error\": {\"class\": \"X\"}", NULL};
	static const struct {
		const char *const *lines;
		pid_t pid;
		int err;
		const char *says;
	} cases[] = {
		{elsewhere, 0, -ESRCH, "its vCPU thread 4242 is no thread of process "},
		{another, 0, -ESRCH, "its vCPU thread 800 is no thread of process "},
		{outer, 0, -ESRCH, "its vCPU thread 811 is no thread of process "},
		{greets, 700, -EINVAL, "(qemu-system-x86), not by --pid 700"},
		{stranger, 0, -EBADMSG, "is not a QMP monitor"},
		{garbage, 0, -EBADMSG, "no greeting"},
		{number, 0, -EBADMSG, "no greeting"},
		{refuses, 0, -EREMOTEIO, "query-cpus-fast"},
	};
	struct tree *t = *state;

	qemu_put(t);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct script script = {.lines = cases[i].lines};
		struct vm *vm = NULL;
		pthread_t thread;
		char why[256];

		script_start(t, &script, &thread);
		assert_int_equal(find(t, cases[i].pid, true, &vm, why), cases[i].err);
		script_end(&script, thread);
		if (!strstr(why, cases[i].says))
			fail_msg("says `%s`, want `%s`", why, cases[i].says);
	}
}

static void test_busy_monitor_is_said(void **state)
{
	struct qmp *q = NULL;
	char why[256];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(qmp_open_fd(pair[0], 50, &q, why, sizeof(why)), -ETIMEDOUT);
	assert_non_null(strstr(why, "another client holds this monitor"));
	close(pair[1]);
}

/* Others wait already, as many as the kernel keeps: we must not join them for ever. */
static void test_a_full_monitor_is_said(void **state)
{
	enum { OTHERS = 4 };
	struct tree *t = *state;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), others[OTHERS];
	struct qmp *q = NULL;
	char why[256];

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", t->qmp);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 0), 0);
	for (int i = 0; i < OTHERS; i++) {
		others[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(others[i], (struct sockaddr *)&address, sizeof(address));
	}
	alarm(20); /* it must end */
	assert_int_equal(qmp_open(t->qmp, 100, &q, why, sizeof(why)), -ETIMEDOUT);
	alarm(0);
	assert_non_null(strstr(why, "other clients wait for this monitor"));
	for (int i = 0; i < OTHERS; i++)
		close(others[i]);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_thread_names),
		cmocka_unit_test_setup_teardown(test_pid_with_thread_names, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_debugfs_knows_vcpus_and_apic_ids, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_ids_are_those_of_the_kernels_events,
						tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_errors_say_what_to_do, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_qemu_processes_are_listed, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_qmp_names_vcpus, tree_setup, tree_teardown),
		cmocka_unit_test_setup_teardown(test_qmp_of_proxmox_is_given_back, tree_setup,
						tree_teardown),
		cmocka_unit_test_setup_teardown(test_qmp_trouble, tree_setup, tree_teardown),
		cmocka_unit_test(test_busy_monitor_is_said),
		cmocka_unit_test_setup_teardown(test_a_full_monitor_is_said, tree_setup,
						tree_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
