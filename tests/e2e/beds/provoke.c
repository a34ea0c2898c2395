/* SPDX-License-Identifier: GPL-2.0-only */
/* Provokes one real stall, or one healthy load, and prints the times that it measured around its
 * own calls as one JSON line. Tests compare reports with this line. The program is static, so that
 * it runs in any machine of a bed. Each action names its task, because reports name the culprit. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum { HOG_PRIORITY = 50 };

struct instant {
	uint64_t raw_ns; /* CLOCK_MONOTONIC_RAW */
	uint64_t tsc;
};

static struct instant instant_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (struct instant){.raw_ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec,
				.tsc = __rdtsc()};
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {.tv_sec = (time_t)(ns / 1000000000),
				.tv_nsec = (long)(ns % 1000000000)};

	while (nanosleep(&left, &left) && errno == EINTR)
		;
}

static void burn_ms(long ms)
{
	uint64_t end = instant_now().raw_ns + (uint64_t)ms * 1000000;

	while (instant_now().raw_ns < end)
		;
}

static int cpu_pin(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) ? -errno : 0;
}

/* The CPU that an argument names behind '@'; 0 if it names none. */
static long cpu_of(const char *argument)
{
	const char *at = strchr(argument, '@');

	return at ? atol(at + 1) : 0;
}

struct interval {
	struct instant begin, end;
	uint64_t lasted_ns; /* 0: all of it */
};

static int act_sigstop(char **argument, struct interval *t)
{
	pid_t pid = atoi(argument[0]);

	t->begin = instant_now();
	if (kill(pid, SIGSTOP))
		return -errno;
	sleep_ns((uint64_t)atol(argument[1]) * 1000000);
	if (kill(pid, SIGCONT))
		return -errno;
	t->end = instant_now();
	return 0;
}

static int act_hog(char **argument, struct interval *t)
{
	struct sched_param param = {.sched_priority = HOG_PRIORITY};
	int err;

	/* Before it goes to the CPU: behind a vCPU with a priority of its own it would get there
	 * only when that sleeps, so at moments of the guest's choice. */
	if (mlockall(MCL_CURRENT) || sched_setscheduler(0, SCHED_FIFO, &param))
		return -errno;
	err = cpu_pin(atol(argument[0]));
	if (err)
		return err;
	t->begin = instant_now();
	burn_ms(atol(argument[1]));
	t->end = instant_now();
	return 0;
}

/*
 * The interval is the module's own: once it enables preemption again, whoever waited runs first, so
 * the time around our write would be longer than the stall.
 */
static int act_stall(char **argument, struct interval *t)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%s %ld 0", argument[0], atol(argument[1]));
	int err = cpu_pin(cpu_of(argument[1]));
	FILE *f;

	if (err)
		return err;
	f = fopen("/proc/stall", "r+");
	if (!f)
		return -errno;
	if (write(fileno(f), line, (size_t)len) != len)
		err = -errno;
	else if (fscanf(f, "%*s %lu %lu %lu %lu", &t->begin.raw_ns, &t->end.raw_ns, &t->begin.tsc,
			&t->end.tsc) != 4)
		err = -EBADMSG;
	fclose(f);
	return err;
}

static int act_compute(char **argument, struct interval *t)
{
	int err = cpu_pin(0);

	t->begin = instant_now();
	burn_ms(atol(argument[0]));
	t->end = instant_now();
	return err;
}

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int tick_on(long cpu, uint64_t period_ns, struct interval *t)
{
	int err = cpu_pin(cpu);

	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	t->begin = instant_now();
	while (!stopped)
		sleep_ns(period_ns);
	t->end = instant_now();
	return err;
}

static int act_ticker(char **argument, struct interval *t)
{
	return tick_on(0, (uint64_t)atol(argument[0]) * 1000, t);
}

static int act_heartbeat(char **argument, struct interval *t)
{
	return tick_on(atol(argument[0]), (uint64_t)atol(argument[1]) * 1000, t);
}

/* A line to /proc/stall-lock from a CPU; the interval is the module's own. */
static int lock_say(long cpu, const char *line, struct interval *t)
{
	int err = cpu_pin(cpu);
	FILE *f;

	if (err)
		return err;
	f = fopen("/proc/stall-lock", "r+");
	if (!f)
		return -errno;
	if (write(fileno(f), line, strlen(line)) != (ssize_t)strlen(line))
		err = -errno;
	else if (fscanf(f, "%lu %lu %lu %lu", &t->begin.raw_ns, &t->end.raw_ns, &t->begin.tsc,
			&t->end.tsc) != 4)
		err = -EBADMSG;
	fclose(f);
	return err;
}

static int act_lock_hold(char **argument, struct interval *t)
{
	char line[64];

	snprintf(line, sizeof(line), "hold %s %s", argument[1], argument[2]);
	return lock_say(atol(argument[0]), line, t);
}

static int act_lock_take(char **argument, struct interval *t)
{
	char line[64];

	snprintf(line, sizeof(line), "take %s", argument[1]);
	return lock_say(atol(argument[0]), line, t);
}

static int act_call(char **argument, struct interval *t)
{
	char line[64];

	snprintf(line, sizeof(line), "call %s %s", argument[2], argument[1]);
	return lock_say(atol(argument[0]), line, t);
}

static int act_ptrace_stop(char **argument, struct interval *t)
{
	pid_t tid = atoi(argument[0]);

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL))
		return -errno;
	t->begin = instant_now();
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) || waitpid(tid, NULL, __WALL) != tid)
		return -errno;
	sleep_ns((uint64_t)atol(argument[1]) * 1000000);
	if (ptrace(PTRACE_DETACH, tid, NULL, NULL))
		return -errno;
	t->end = instant_now();
	return 0;
}

static int file_write(const char *folder, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (!f)
		return -errno;
	fputs(text, f);
	return fclose(f) ? -errno : 0;
}

static int act_freeze(char **argument, struct interval *t)
{
	int err;

	t->begin = instant_now();
	err = file_write(argument[0], "cgroup.freeze", "1");
	if (err)
		return err;
	sleep_ns((uint64_t)atol(argument[1]) * 1000000);
	err = file_write(argument[0], "cgroup.freeze", "0");
	t->end = instant_now();
	return err;
}

/* How long a cgroup's tasks have been throttled, by its own account. */
static uint64_t throttled_ns(const char *cgroup)
{
	static const struct {
		const char *format;
		uint64_t unit_ns;
	} lines[] = {{"throttled_usec %lu", 1000}, {"throttled_time %lu", 1}};
	char path[256], line[128];
	uint64_t ns = 0, n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/cpu.stat", cgroup);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
			if (sscanf(line, lines[i].format, &n) == 1)
				ns = n * lines[i].unit_ns;
		}
	}
	if (f)
		fclose(f);
	return ns;
}

/* A cgroup's quota: 10 ms of the second, or none. */
static int quota_set(const char *cgroup, int limited)
{
	char v1_file[256];
	int err;

	snprintf(v1_file, sizeof(v1_file), "%s/cpu.cfs_quota_us", cgroup);
	if (access(v1_file, F_OK))
		return file_write(cgroup, "cpu.max", limited ? "10000 1000000" : "max");
	err = limited ? file_write(cgroup, "cpu.cfs_period_us", "1000000") : 0;
	return err ? err : file_write(cgroup, "cpu.cfs_quota_us", limited ? "10000" : "-1");
}

/*
 * A busy thread is throttled until the quota is lifted, unless others take the pCPU from it for so
 * long that it cannot use its quota up: then another try.
 */
static int act_quota(char **argument, struct interval *t)
{
	const char *cgroup = argument[0];
	int err = 0, tries;

	for (tries = 5; !err && !t->lasted_ns && tries; tries--) {
		const uint64_t before_ns = throttled_ns(cgroup);

		t->begin = instant_now();
		err = quota_set(cgroup, 1);
		if (err)
			return err;
		sleep_ns((uint64_t)atol(argument[1]) * 1000000);
		err = quota_set(cgroup, 0);
		t->end = instant_now();
		t->lasted_ns = throttled_ns(cgroup) - before_ns;
	}
	return !err && !t->lasted_ns ? -EAGAIN : err;
}

/* A command to QEMU; waits for its answer if `answered`, events before it are skipped. */
static int qmp_say(FILE *qmp, const char *command, int answered)
{
	char line[4096];

	if (fprintf(qmp, "%s\n", command) < 0 || fflush(qmp))
		return -errno;
	while (answered) {
		if (!fgets(line, sizeof(line), qmp))
			return -EPIPE;
		if (!strncmp(line, "{\"error\"", 8))
			return -EBADMSG;
		if (!strncmp(line, "{\"return\"", 9))
			break;
	}
	return 0;
}

/* A session with the QEMU at this socket, past its greeting. */
static int qmp_open(const char *path, FILE **qmp)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	int err;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return -errno;
	*qmp = fdopen(fd, "r+");
	if (!*qmp)
		return -errno;
	setvbuf(*qmp, NULL, _IONBF, 0);
	err = qmp_say(*qmp, "{\"execute\":\"qmp_capabilities\"}", 1);
	return err;
}

static int act_pause(char **argument, struct interval *t)
{
	FILE *qmp;
	int err = qmp_open(argument[0], &qmp);

	if (err)
		return err;
	t->begin = instant_now();
	err = qmp_say(qmp, "{\"execute\":\"stop\"}", 1);
	sleep_ns((uint64_t)atol(argument[1]) * 1000000);
	if (!err)
		err = qmp_say(qmp, "{\"execute\":\"cont\"}", 1);
	t->end = instant_now();
	fclose(qmp);
	return err;
}

static int act_qmp(char **argument, struct interval *t)
{
	FILE *qmp;
	int err = qmp_open(argument[0], &qmp);

	if (err)
		return err;
	t->begin = instant_now();
	err = qmp_say(qmp, argument[1], 1);
	t->end = instant_now();
	fclose(qmp);
	return err;
}

/* A socket for QEMU to send the VM to. */
static int migration_listen(const char *path, int *listener)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	*listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (*listener < 0 || bind(*listener, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(*listener, 1))
		return -errno;
	return 0;
}

/* Takes what QEMU sends until it says that it has stopped the VM. */
static int migration_until_stop(FILE *qmp, int stream)
{
	static char taken[1 << 16], line[4096];
	struct pollfd p[] = {{.fd = fileno(qmp), .events = POLLIN},
			     {.fd = stream, .events = POLLIN}};

	while (poll(p, 2, 20000) > 0) {
		if (p[0].revents) {
			if (!fgets(line, sizeof(line), qmp))
				return -EPIPE;
			if (strstr(line, "\"STOP\""))
				return 0;
		} else if (read(stream, taken, sizeof(taken)) <= 0) {
			return -EPIPE;
		}
	}
	return -ETIMEDOUT;
}

/*
 * A migration whose receiver takes nothing for a while once the VM is stopped for the last of its
 * memory; then the VM goes on here. Such a downtime is what QEMU is allowed here.
 */
static int act_migrate(char **argument, struct interval *t)
{
	static char taken[1 << 16];
	char path[64], command[256];
	int listener = -1, stream = -1, err;
	FILE *qmp = NULL;

	snprintf(path, sizeof(path), "/tmp/provoke.%d", getpid());
	snprintf(command, sizeof(command),
		 "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"unix:%s\"}}", path);
	err = migration_listen(path, &listener);
	if (!err)
		err = qmp_open(argument[0], &qmp);
	if (!err)
		err = qmp_say(qmp,
			      "{\"execute\":\"migrate-set-parameters\",\"arguments\":"
			      "{\"downtime-limit\":20000,\"max-bandwidth\":100000000000}}",
			      1);
	if (!err)
		err = qmp_say(qmp, command, 1);
	if (!err) {
		stream = accept(listener, NULL, NULL);
		err = stream < 0 ? -errno : migration_until_stop(qmp, stream);
	}
	t->begin = instant_now();
	if (!err)
		sleep_ns((uint64_t)atol(argument[1]) * 1000000);
	while (!err && read(stream, taken, sizeof(taken)) > 0)
		;
	/* It refuses until it has tidied up after the migration. */
	for (int i = 0; !err && i < 500 && qmp_say(qmp, "{\"execute\":\"cont\"}", 1); i++)
		sleep_ns(2000000);
	t->end = instant_now();
	if (qmp)
		fclose(qmp);
	if (stream >= 0)
		close(stream);
	if (listener >= 0)
		close(listener);
	unlink(path);
	return err;
}

/* Skips what QEMU says up to the event of this name. */
static int qmp_event_wait(FILE *qmp, const char *event)
{
	char line[4096];

	while (fgets(line, sizeof(line), qmp)) {
		if (strstr(line, event))
			return 0;
	}
	return -EPIPE;
}

/* So slow that most of the memory is still to come when the sender stops. */
#define POSTCOPY_BYTES_PER_S "1000000"
/* The guest has come up on the receiving side, and waits for page after page. */
enum { POSTCOPY_SETTLE_MS = 700 };

/*
 * A postcopy migration whose sender stands still for a while: the receiver's vCPU waits for the
 * page that it touches next. Leaves the migration under way.
 */
static int act_postcopy(char **argument, struct interval *t)
{
	static const char ram[] = "{\"execute\":\"migrate-set-capabilities\",\"arguments\":{"
				  "\"capabilities\":[{\"capability\":\"postcopy-ram\","
				  "\"state\":true}]}}";
	pid_t sender_pid = atoi(argument[3]);
	FILE *sender = NULL, *receiver = NULL;
	char command[256];
	int err = qmp_open(argument[0], &sender);

	if (!err)
		err = qmp_open(argument[1], &receiver);
	if (!err)
		err = qmp_say(sender, ram, 1);
	if (!err)
		err = qmp_say(receiver, ram, 1);
	if (!err)
		err = qmp_say(sender,
			      "{\"execute\":\"migrate-set-parameters\",\"arguments\":{"
			      "\"max-postcopy-bandwidth\":" POSTCOPY_BYTES_PER_S
			      ",\"max-bandwidth\":" POSTCOPY_BYTES_PER_S "}}",
			      1);
	snprintf(command, sizeof(command),
		 "{\"execute\":\"migrate\",\"arguments\":{\"uri\":\"unix:%s\"}}", argument[2]);
	if (!err)
		err = qmp_say(sender, command, 1);
	sleep_ns(POSTCOPY_SETTLE_MS * 1000000ull);
	if (!err)
		err = qmp_say(sender, "{\"execute\":\"migrate-start-postcopy\"}", 1);
	if (!err)
		err = qmp_event_wait(receiver, "\"RESUME\"");
	sleep_ns(POSTCOPY_SETTLE_MS * 1000000ull);
	t->begin = instant_now();
	if (!err && kill(sender_pid, SIGSTOP))
		err = -errno;
	sleep_ns((uint64_t)atol(argument[4]) * 1000000);
	if (!err && kill(sender_pid, SIGCONT))
		err = -errno;
	t->end = instant_now();
	if (sender)
		fclose(sender);
	if (receiver)
		fclose(receiver);
	return err;
}

/* Touches page after page of that much memory, which a migration then has to bring. */
static int act_touch(char **argument, struct interval *t)
{
	size_t bytes = (size_t)atol(argument[0]) << 20;
	volatile char *memory = malloc(bytes);
	int err = memory ? cpu_pin(0) : -ENOMEM;

	signal(SIGTERM, on_signal);
	t->begin = instant_now();
	while (!err && !stopped) {
		for (size_t at = 0; at < bytes && !stopped; at += 4096)
			memory[at]++;
	}
	t->end = instant_now();
	return err;
}

/* QEMU opens the FIFO with its big lock held, and waits there until somebody reads it. */
static int act_biglock(char **argument, struct interval *t)
{
	char fifo[64], command[256], drained[4096];
	FILE *qmp;
	int fd, err;

	snprintf(fifo, sizeof(fifo), "/tmp/provoke.%d", getpid());
	snprintf(command, sizeof(command),
		 "{\"execute\":\"pmemsave\",\"arguments\":{\"val\":0,\"size\":4096,"
		 "\"filename\":\"%s\"}}",
		 fifo);
	if (mkfifo(fifo, 0600))
		return -errno;
	err = qmp_open(argument[0], &qmp);
	if (err)
		goto out;
	t->begin = instant_now();
	err = qmp_say(qmp, command, 0);
	sleep_ns((uint64_t)atol(argument[1]) * 1000000);
	t->end = instant_now();
	fd = open(fifo, O_RDONLY);
	if (fd < 0)
		err = -errno;
	while (fd >= 0 && read(fd, drained, sizeof(drained)) > 0)
		;
	close(fd);
	fclose(qmp);
out:
	unlink(fifo);
	return err;
}

/*
 * Reads a PCI register all the time, which QEMU answers with its big lock held. The kernel does it
 * for us: a program's own port access, though ioperm allowed it, is a fault in bed B's guest,
 * because QEMU 7.2's TCG asks the I/O bitmap of a TSS only if it is not marked busy, and KVM marks
 * it.
 */
static int act_device_read(char **argument, struct interval *t)
{
	uint64_t end_ns = instant_now().raw_ns + (uint64_t)atol(argument[0]) * 1000000;
	int err = cpu_pin(0), fd = open("/sys/bus/pci/devices/0000:00:00.0/config", O_RDONLY);
	uint32_t id;

	if (!err && fd < 0)
		err = -errno;
	t->begin = instant_now();
	while (!err && instant_now().raw_ns < end_ns) {
		if (pread(fd, &id, sizeof(id), 0) != sizeof(id))
			err = -EIO;
	}
	t->end = instant_now();
	if (fd >= 0)
		close(fd);
	return err;
}

static int act_now(char **argument, struct interval *t)
{
	(void)argument;
	t->begin = t->end = instant_now();
	return 0;
}

static const struct action {
	const char *name;
	int n_arguments;
	const char *comm;
	int (*act)(char **argument, struct interval *t);
	const char *help;
} actions[] = {
	{"sigstop", 2, "vm-stopper", act_sigstop, "PID MS: SIGSTOP, wait, SIGCONT"},
	{"hog", 2, "cpu-hog", act_hog, "CPU MS: SCHED_FIFO busy loop on a CPU"},
	{"stall", 2, "guest-spinner", act_stall,
	 "MODE MS[@CPU]: through /proc/stall, in one of its modes"},
	{"compute", 1, "compute", act_compute, "MS: burns CPU 0"},
	{"ticker", 1, "ticker", act_ticker, "PERIOD_US: wakes up on CPU 0 until SIGTERM"},
	{"heartbeat", 2, "heartbeat", act_heartbeat,
	 "CPU PERIOD_US: wakes up on a CPU until SIGTERM"},
	{"lock-hold", 3, "lock-owner", act_lock_hold,
	 "CPU KIND MS: computes with a lock of the test module"},
	{"lock-take", 2, "lock-waiter", act_lock_take, "CPU KIND: takes such a lock once"},
	{"call", 3, "ipi-sender", act_call,
	 "CPU TO MS: calls another CPU again and again, and waits for it"},
	{"ptrace-stop", 2, "thread-stopper", act_ptrace_stop, "TID MS: stops one thread"},
	{"freeze", 2, "freezer", act_freeze, "CGROUP MS: freezes a cgroup (v2)"},
	{"quota", 2, "quota-setter", act_quota, "CGROUP MS: gives it 1 % of a CPU"},
	{"pause", 2, "vm-pauser", act_pause, "SOCKET MS: QMP stop, wait, cont"},
	{"qmp", 2, "vm-manager", act_qmp, "SOCKET COMMAND: one command to QEMU, in JSON"},
	{"migrate", 2, "vm-mover", act_migrate, "SOCKET MS: a migration with so long a downtime"},
	{"postcopy", 5, "vm-mover", act_postcopy,
	 "SOCKET RECEIVERS_SOCKET MIGRATION_SOCKET PID MS: the sender stands still so long"},
	{"touch", 1, "page-toucher", act_touch, "MIB: touches so much memory until SIGTERM"},
	{"biglock", 2, "lock-keeper", act_biglock, "SOCKET MS: keeps QEMU's big lock taken"},
	{"device-read", 1, "device-reader", act_device_read,
	 "MS: reads a PCI register all the time"},
	{"now", 0, "now", act_now, ": nothing, only tells the time"},
};

enum { N_ACTIONS = sizeof(actions) / sizeof(actions[0]) };

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < N_ACTIONS; i++) {
		const struct action *a = &actions[i];
		struct interval t = {0};
		int err;

		if (strcmp(argv[1], a->name) || argc != 2 + a->n_arguments)
			continue;
		prctl(PR_SET_NAME, a->comm);
		err = a->act(argv + 2, &t);
		if (err) {
			fprintf(stderr, "provoke %s: %s\n", a->name, strerror(-err));
			return 1;
		}
		printf("{\"action\":\"%s\",\"argument\":\"%s\",\"pid\":%d,\"comm\":\"%s\","
		       "\"begin_raw_ns\":%lu,\"end_raw_ns\":%lu,\"begin_tsc\":%lu,\"end_tsc\":%lu,"
		       "\"duration_ns\":%lu}\n",
		       a->name, a->n_arguments ? argv[2] : "", getpid(), a->comm, t.begin.raw_ns,
		       t.end.raw_ns, t.begin.tsc, t.end.tsc,
		       t.lasted_ns ? t.lasted_ns : t.end.raw_ns - t.begin.raw_ns);
		return 0;
	}
	fprintf(stderr, "usage: provoke ACTION ...\n");
	for (size_t i = 0; i < N_ACTIONS; i++)
		fprintf(stderr, "  %s %s\n", actions[i].name, actions[i].help);
	return 2;
}
