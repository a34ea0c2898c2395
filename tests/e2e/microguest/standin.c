// SPDX-License-Identifier: GPL-2.0-only
/*
 * Imitates a VMM that is not installed: runs a VM with two vCPUs, each in its own thread, which
 * halts and is interrupted 200 times a second. If this program is copied under the name of a VMM
 * and started with the options of that VMM, the host cannot distinguish it from the VMM, because
 * its descriptors of KVM are real. The program itself reads no option. It ends when its standard
 * input ends.
 *
 * These environment variables change it:
 *
 *   STANDIN_THREAD  name of the vCPU threads, before their number; "": no name
 *   STANDIN_QMP     path of a socket on which it imitates a QMP monitor that calls its first
 *                   thread vCPU 0
 *   STANDIN_UID     the user to which it changes after it has created the VM
 *   STANDIN_PAUSE   firecracker, cloud-hypervisor or crosvm: the VMM whose pause it imitates.
 *                   At SIGUSR1, the vCPU threads leave KVM_RUN and sleep in functions with the
 *                   names of that VMM's functions. SIGUSR2 ends the pause
 *   STANDIN_CHILD   if set, a child process inherits the descriptors and does not use them
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "irq_machine.h"

enum { EVERY_MS = 5, VCPU_0_EVERY = 10 };

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 4))
		return -errno;
	return fd;
}

/* The number that follows "id": of a request. */
static long id_of(const char *request)
{
	const char *id = strstr(request, "\"id\":");

	return id ? strtol(id + 5, NULL, 10) : -1;
}

/* One client, to its end. */
static void *monitor_main(void *argument)
{
	const int listener = (int)(intptr_t)argument;

	for (;;) {
		int fd = accept(listener, NULL, NULL);
		FILE *client = fd < 0 ? NULL : fdopen(fd, "r+");
		char line[4096];

		if (!client)
			return NULL;
		setvbuf(client, NULL, _IONBF, 0);
		fputs("{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n", client);
		while (fgets(line, sizeof(line), client)) {
			if (strstr(line, "query-cpus-fast"))
				fprintf(client,
					"{\"id\": %ld, \"return\": [{\"thread-id\": %d, "
					"\"cpu-index\": 0}]}\r\n",
					id_of(line), getpid());
			else
				fprintf(client, "{\"id\": %ld, \"return\": {}}\r\n", id_of(line));
		}
		fclose(client);
	}
}

static int monitor_start(const char *path)
{
	int fd = listen_at(path);
	pthread_t thread;

	if (fd < 0)
		return fd;
	return -pthread_create(&thread, NULL, monitor_main, (void *)(intptr_t)fd);
}

/* ---- pauses ---- */

static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t resumed = PTHREAD_COND_INITIALIZER;
static bool paused;                            /* under the lock */
static volatile sig_atomic_t wanted = SIGUSR2; /* the latest of the two signals */

/* The names that Rust's compiler gives to the functions of these VMMs
 * (host-collector/model/wait_class.c). No function may be inlined or end in a jump. */
#define PLAYED(function, symbol)                                                                   \
	static void function(void) __asm__(symbol) __attribute__((noinline, used))

PLAYED(firecracker_paused, "_ZN3vmm6vstate4vcpu4Vcpu6paused17h0123456789abcdefE");
PLAYED(hypervisor_vcpu, "_ZN3vmm3cpu10CpuManager10start_vcpu17h0123456789abcdefE");
PLAYED(hypervisor_park, "_ZN3std6thread4park17h0123456789abcdefE");
PLAYED(crosvm_vcpu, "_ZN6crosvm6crosvm3sys5linux4vcpu9vcpu_loop17h0123456789abcdefE");
PLAYED(crosvm_wait, "_ZN3std4sync7condvar7Condvar4wait17h0123456789abcdefE");

static inline __attribute__((always_inline)) void resume_wait(void)
{
	pthread_mutex_lock(&pause_lock);
	while (paused)
		pthread_cond_wait(&resumed, &pause_lock);
	pthread_mutex_unlock(&pause_lock);
	__asm__ volatile("");
}

static void firecracker_paused(void)
{
	resume_wait();
}

static void hypervisor_park(void)
{
	resume_wait();
}

static void hypervisor_vcpu(void)
{
	hypervisor_park();
	__asm__ volatile("");
}

static void crosvm_wait(void)
{
	resume_wait();
}

static void crosvm_vcpu(void)
{
	crosvm_wait();
	__asm__ volatile("");
}

static const struct {
	const char *name;
	void (*wait)(void);
} pauses[] = {{"firecracker", firecracker_paused},
	      {"cloud-hypervisor", hypervisor_vcpu},
	      {"crosvm", crosvm_vcpu}};

static void (*pause_play)(void);

static void on_interrupted(struct irq_machine_vcpu *v)
{
	v->run->immediate_exit = 0;
	pause_play();
}

static void on_request(int number)
{
	wanted = number;
}

static void on_kick(int number)
{
	(void)number; /* it ends KVM_RUN */
}

static int pauses_prepare(struct irq_machine *m, const char *name)
{
	/* Without SA_RESTART: the request ends poll(), too. */
	const struct sigaction request = {.sa_handler = on_request}, kick = {.sa_handler = on_kick};

	for (size_t i = 0; i < sizeof(pauses) / sizeof(pauses[0]); i++) {
		if (!strcmp(pauses[i].name, name))
			pause_play = pauses[i].wait;
	}
	if (!pause_play)
		return -EINVAL;
	m->interrupted = on_interrupted;
	return sigaction(SIGUSR1, &request, NULL) || sigaction(SIGUSR2, &request, NULL) ||
			       sigaction(SIGRTMIN, &kick, NULL)
		       ? -errno
		       : 0;
}

/* As the latest request wants it. Returns whether the VM is paused. */
static bool pause_serve(struct irq_machine *m)
{
	const bool pause = wanted == SIGUSR1;

	if (pause == paused)
		return paused;
	pthread_mutex_lock(&pause_lock);
	paused = pause;
	pthread_cond_broadcast(&resumed);
	pthread_mutex_unlock(&pause_lock);
	for (size_t i = 0; pause && i < IRQ_VMM_VCPUS; i++) {
		m->vcpus[i].run->immediate_exit = 1;
		pthread_kill(m->vcpus[i].thread, SIGRTMIN);
	}
	return paused;
}

/* KVM opens its descriptors so that they are closed when a program is executed, not by fork(). */
static void child_start(void)
{
	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/* Until standard input ends. */
static int play(struct irq_machine *m)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char byte;

	for (uint32_t turn = 0;; turn++) {
		const uint32_t vcpu = turn % VCPU_0_EVERY != 0;
		int error = poll(&in, 1, EVERY_MS);

		if (error > 0 && read(STDIN_FILENO, &byte, 1) <= 0)
			return 0;
		if (pause_serve(m))
			continue;
		/* Only a test of interrupts needs the log. */
		irq_machine_cpu(m, vcpu)->n_log = 0;
		error = irq_machine_raise(m, IRQ_KIND_MSI, vcpu, IRQ_VECTOR_MSI);
		if (error || m->truth->error[0])
			return error ? error : -EIO;
	}
}

int main(void)
{
	static struct irq_truth truth;
	struct irq_machine machine = {0};
	uint8_t *memory = mmap(NULL, IRQ_GUEST_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error;

	machine.thread_name = getenv("STANDIN_THREAD");
	machine.thread_name_end = "";
	error = memory == MAP_FAILED ? -ENOMEM : 0;
	if (!error && getenv("STANDIN_PAUSE"))
		error = pauses_prepare(&machine, getenv("STANDIN_PAUSE"));
	if (!error)
		error = irq_machine_create(&machine, memory, &truth);
	if (!error && getenv("STANDIN_QMP"))
		error = monitor_start(getenv("STANDIN_QMP"));
	if (!error && getenv("STANDIN_UID") && setuid((uid_t)atoi(getenv("STANDIN_UID"))))
		error = -errno;
	if (!error && getenv("STANDIN_CHILD"))
		child_start();
	if (!error) {
		puts("ready");
		fflush(stdout);
		error = play(&machine);
	}
	if (error)
		fprintf(stderr, "standin: %s %s\n", strerror(-error), truth.error);
	return error ? 1 : 0;
}
