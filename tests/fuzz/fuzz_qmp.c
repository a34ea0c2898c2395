// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the QMP client with a QEMU that sends any bytes on its monitor: all of them are there
 * at the connection, then it closes. A VM that is found is always valid in a recording. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/vm/qmp.h"
#include "host-collector/vm/vm.h"

enum { SAID_MAX = 32 * 1024 }; /* fits into the socket's buffer */

/* A /proc of one QEMU, process 7 with the threads 7, 8 and 9. */
static char proc[] = "/tmp/vcpuscope-fuzz-qmp-XXXXXX";
static const struct {
	const char *path, *text; /* no text: a folder */
} files[] = {
	{"7", NULL},
	{"7/task", NULL},
	{"7/task/7", NULL},
	{"7/task/8", NULL},
	{"7/task/9", NULL},
	{"7/comm", "qemu-system-x86\n"},
	{"7/task/7/comm", "qemu-system-x86\n"},
	{"7/task/8/comm", "CPU 0/KVM\n"},
	{"7/task/9/comm", "worker\n"},
	{"7/task/7/status", "Name:\tx\nNSpid:\t7\n"},
	{"7/task/8/status", "Name:\tx\nNSpid:\t8\n"},
	{"7/task/9/status", "Name:\tx\nNSpid:\t9\n"},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };

static const uint8_t *said;
static size_t said_bytes;

static void proc_remove(void)
{
	char path[128];

	for (size_t i = N_FILES; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", proc, files[i].path);
		remove(path);
	}
	rmdir(proc);
}

static void proc_make(void)
{
	char path[128];

	FUZZ_CHECK(mkdtemp(proc));
	atexit(proc_remove);
	for (size_t i = 0; i < N_FILES; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", proc, files[i].path);
		if (!files[i].text) {
			FUZZ_CHECK(!mkdir(path, 0700));
			continue;
		}
		f = fopen(path, "w");
		FUZZ_CHECK(f);
		fputs(files[i].text, f);
		fclose(f);
	}
}

/* In the place of connecting to a path. */
int __wrap_qmp_open(const char *path, int limit_ms, struct qmp **out, char *why, size_t why_bytes);
int __wrap_qmp_open(const char *path, int limit_ms, struct qmp **out, char *why, size_t why_bytes)
{
	static int peer = -1;
	int pair[2];

	(void)path;
	if (peer >= 0)
		close(peer);
	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	FUZZ_CHECK(write(pair[1], said, said_bytes) == (ssize_t)said_bytes);
	shutdown(pair[1], SHUT_WR);
	peer = pair[1];
	return qmp_open_fd(pair[0], limit_ms, out, why, why_bytes);
}

pid_t __wrap_qmp_peer(const struct qmp *q);
pid_t __wrap_qmp_peer(const struct qmp *q)
{
	(void)q;
	return 7;
}

static void on_note(void *context, enum note_kind kind, uint64_t realtime_ns, const char *text)
{
	(void)context, (void)realtime_ns;
	FUZZ_CHECK(kind >= NOTE_CHANNEL_UP && kind <= (int)NOTE_KIND_LAST);
	FUZZ_CHECK(*text && strlen(text) < VS_TEXT_MAX);
}

static void info_check(const struct message_vm_info *info)
{
	static struct message_vm_info again;
	struct byte_buffer packed = {0};

	FUZZ_CHECK(!message_vm_info_pack(info, &packed));
	FUZZ_CHECK(!message_vm_info_unpack(packed.data, packed.len, &again));
	FUZZ_CHECK(again.qemu_pid == 7 && again.n_threads == info->n_threads);
	byte_buffer_fini(&packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct vm_options options = {
		.number = 1, .qmp_path = "socket", .proc = proc, .debugfs = "/nonexistent"};
	char why[256] = "";
	struct vm *vm = NULL;

	if (proc[sizeof(proc) - 2] == 'X')
		proc_make();
	said = data;
	said_bytes = len < SAID_MAX ? len : SAID_MAX;
	if (vm_open(&options, &vm, why, sizeof(why))) {
		FUZZ_CHECK(*why && !vm);
		return 0;
	}
	info_check(vm_info(vm));
	while (!vm_qmp_events(vm, on_note, NULL))
		;
	FUZZ_CHECK(vm_rescan(vm) >= 0);
	info_check(vm_info(vm));
	vm_close(vm);
	return 0;
}
