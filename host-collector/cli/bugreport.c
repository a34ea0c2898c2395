/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope bugreport`: collects what a report of a fault needs, in one tar archive. Each file of
 * the archive is a row of `sections` and is made in an unnamed file, so that nothing remains if the
 * program is stopped. Nothing is copied as it is: the configuration without what is private
 * (daemon/config_public.h), and frames of the recording without names (redact.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host-collector/cli/archive.h"
#include "host-collector/cli/commands.h"
#include "host-collector/cli/cut.h"
#include "host-collector/cli/narrow_options.h"
#include "host-collector/cli/redact.h"
#include "host-collector/daemon/config_public.h"
#include "host-collector/util/paths.h"
#include "proto/proc_file.h"
#include "proto/program/output.h"
#include "proto/unnamed_file.h"

#define FOLDER "vcpuscope-bugreport"

enum {
	PROGRAM_TIME_S = 60,
	PROGRAM_BYTES = 1 << 20, /* of a program's output */
	CONFIG_BYTES = 1 << 20,
	LINE_BYTES = 4096,
};

struct bugreport_arguments {
	const char *recording, *config, *output;
	bool names;
	struct narrow_arguments narrow;
};

static const struct option_spec bugreport_option_table[] = {
	{.name = "RUN.vcs",
	 .type = OPTION_OPERAND,
	 .offset = offsetof(struct bugreport_arguments, recording),
	 .help = "a recording that shows the fault; a part of it is added"},
	{.name = "from",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct bugreport_arguments, narrow.from),
	 .value = "TIME",
	 .help = "of the recording, only the time from TIME on: since its start, as +8.5s, or "
		 "wall-clock time, as 10:34:57.5 (default: its last 30 s)"},
	{.name = "to",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct bugreport_arguments, narrow.to),
	 .value = "TIME",
	 .help = "only the time before TIME, written as for --from"},
	{.name = "around",
	 .type = OPTION_NUMBER,
	 .offset = offsetof(struct bugreport_arguments, narrow.around),
	 .value = "N",
	 .help = "only the time of stall number N of `vcpuscope report`, extended on each side by "
		 "the length of the stall (at least 100ms, at most 1s)",
	 .min = 1,
	 .max = UINT32_MAX},
	{.name = "names",
	 .type = OPTION_FLAG,
	 .offset = offsetof(struct bugreport_arguments, names),
	 .help = "keep the names of tasks, VMs and cgroups, the guest's log and the values of chosen "
		 "events; by default names become task-a, vm-b and so on, and the rest is removed"},
	{.name = "config",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct bugreport_arguments, config),
	 .value = "FILE",
	 .help = "the daemon's configuration (default " DAEMON_CONFIG_PATH ")"},
	{.name = "output",
	 .letter = 'o',
	 .type = OPTION_STRING,
	 .offset = offsetof(struct bugreport_arguments, output),
	 .value = "FILE",
	 .help = "the archive to write, a new file; - is standard output (default " FOLDER ".tar)"},
};

struct bugreport {
	const struct bugreport_arguments *arguments;
	struct redactor *redactor; /* NULL: names stay */
	struct narrow narrow;
	char lacks[4096]; /* a line for each thing that is missing */
};

static void __attribute__((format(printf, 2, 3))) lack(struct bugreport *b, const char *format, ...)
{
	const size_t len = strlen(b->lacks);
	va_list args;

	va_start(args, format);
	vsnprintf(b->lacks + len, sizeof(b->lacks) - len, format, args);
	va_end(args);
	if (strlen(b->lacks) + 1 < sizeof(b->lacks))
		strcat(b->lacks, "\n");
}

/* ---- programs ---- */

/* Runs a program with its output in `to`, without this program's environment, with limits on its
 * time and output. It ends with this program. Returns its exit code, 127 if it cannot be started,
 * 128 + the signal that ended it, or -errno. */
static int program_run(const char *const *words, int to)
{
	char *const environment[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
	const struct rlimit size = {PROGRAM_BYTES, PROGRAM_BYTES};
	const pid_t self = getpid();
	int status, nothing;
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (getppid() != self || nothing < 0 || dup2(nothing, 0) < 0 || dup2(to, 1) < 0 ||
		    dup2(nothing, 2) < 0)
			_exit(127);
		setrlimit(RLIMIT_FSIZE, &size);
		alarm(PROGRAM_TIME_S);
		execvpe(words[0], (char *const *)words, environment);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- sections ---- */

static void line_copy(FILE *out, const char *label, const char *path)
{
	char line[256];

	if (!proc_file_line(path, line, sizeof(line)))
		fprintf(out, "%s: %s\n", label, line);
}

/* The first line of each key. */
static void lines_copy(FILE *out, const char *path, const char *const *keys, size_t n)
{
	char line[LINE_BYTES];
	FILE *from = fopen(path, "re");
	unsigned int seen = 0;

	while (from && fgets(line, sizeof(line), from)) {
		for (size_t i = 0; i < n; i++) {
			if (seen & 1u << i || strncmp(line, keys[i], strlen(keys[i])) != 0)
				continue;
			seen |= 1u << i;
			fprintf(out, "%.*s\n", (int)strcspn(line, "\n"), line);
		}
	}
	if (from)
		fclose(from);
}

static int versions_write(struct bugreport *b, FILE *out)
{
	static const char *const release[] = {"PRETTY_NAME=", "ID=", "VERSION_ID="};
	static const char *const cpu[] = {"vendor_id", "model name", "microcode"};
	static const char *const kvm[] = {"kvm/parameters/halt_poll_ns",
					  "kvm_intel/parameters/ept",
					  "kvm_intel/parameters/nested",
					  "kvm_intel/parameters/enable_apicv",
					  "kvm_intel/parameters/preemption_timer",
					  "kvm_amd/parameters/npt",
					  "kvm_amd/parameters/nested",
					  "kvm_amd/parameters/avic"};
	static const char *const programs[][3] = {{"qemu-system-x86_64", "--version"},
						  {"/usr/libexec/qemu-kvm", "--version"},
						  {"qemu-system-aarch64", "--version"},
						  {"libvirtd", "--version"},
						  {"virtqemud", "--version"}};
	struct utsname u;

	fprintf(out, "vcpuscope: %s\n", VCPUSCOPE_VERSION);
	if (!uname(&u))
		fprintf(out, "kernel: %s %s %s %s\n", u.sysname, u.release, u.version, u.machine);
	lines_copy(out, "/etc/os-release", release, sizeof(release) / sizeof(release[0]));
	lines_copy(out, "/proc/cpuinfo", cpu, sizeof(cpu) / sizeof(cpu[0]));
	line_copy(out, "clocksource",
		  "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	line_copy(out, "kvm version", "/sys/module/kvm/version");
	fprintf(out, "/dev/kvm: %s\n", access("/dev/kvm", F_OK) ? "no" : "yes");
	for (size_t i = 0; i < sizeof(kvm) / sizeof(kvm[0]); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/sys/module/%s", kvm[i]);
		line_copy(out, kvm[i], path);
	}
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		fprintf(out, "%s:\n", programs[i][0]);
		fflush(out);
		if (program_run(programs[i], fileno(out)) == 127)
			fputs("not found\n", out);
	}
	if (geteuid())
		lack(b,
		     "versions.txt, doctor.txt: not made as root: both show what an ordinary user "
		     "sees; run it with sudo for more");
	return 0;
}

static int doctor_write(struct bugreport *b, FILE *out)
{
	const char *const words[] = {"/proc/self/exe", "doctor", b->redactor ? "--no-names" : NULL,
				     NULL};
	int code = program_run(words, fileno(out));

	if (code == 128 + SIGALRM)
		lack(b, "doctor.txt: `vcpuscope doctor` did not end within %d s", PROGRAM_TIME_S);
	else if (code < 0 || code > COMMAND_UNSUPPORTED)
		lack(b, "doctor.txt: `vcpuscope doctor` ended with code %d", code);
	return 0;
}

static const char *vm_name(void *context, const char *name, char *out, size_t out_bytes)
{
	return redactor_vm(context, name, out, out_bytes);
}

/* A file that does not end, or waits for a writer, is no configuration. */
static int config_read(const char *path, char text[CONFIG_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = 0;
	struct stat st;
	size_t len = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	else if (st.st_size >= CONFIG_BYTES)
		err = -EFBIG;
	while (!err && n && len < CONFIG_BYTES - 1) {
		n = read(fd, text + len, CONFIG_BYTES - 1 - len);
		if (n >= 0)
			len += (size_t)n;
		else if (errno != EINTR)
			err = -errno;
	}
	text[len] = 0;
	close(fd);
	return err;
}

static int config_write(struct bugreport *b, FILE *out)
{
	const char *path = b->arguments->config ? b->arguments->config : DAEMON_CONFIG_PATH;
	char *text = malloc(CONFIG_BYTES);
	int err = text ? config_read(path, text) : -ENOMEM;

	if (!err) {
		fputs("; The daemon's configuration as `vcpuscope bugreport` shows it.\n", out);
		err = config_public_write(text, b->redactor ? vm_name : NULL, b->redactor, out);
	} else if (err != -ENOMEM && b->arguments->config) {
		fprintf(stderr, "vcpuscope bugreport: --config %s: %s%s\n", path, strerror(-err),
			err == -EACCES ? ": run it as root, or leave the option out" : "");
	} else if (err != -ENOMEM) {
		lack(b, "vcpuscope.conf: %s: %s%s", path, strerror(-err),
		     err == -EACCES ? "; run it as root" : "");
		fprintf(out, "; missing: %s\n", strerror(-err));
		err = 0;
	}
	free(text);
	return err;
}

static int recording_write(struct bugreport *b, FILE *out)
{
	const struct bugreport_arguments *a = b->arguments;
	struct cut_request request = {
		.recording = a->recording, .narrow = &b->narrow, .redactor = b->redactor};
	struct cut_result result;
	char path[64], why[512];
	int err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fileno(out));
	err = cut_write(&request, path, &result, why, sizeof(why));
	if (err)
		fprintf(stderr, "vcpuscope bugreport: %s\n", why);
	else if (result.clipped)
		lack(b,
		     "run.vcs: the first part of this time: it would exceed %d MiB; choose "
		     "less with --from, --to or --around",
		     CUT_MOST_MIB);
	if (!err && result.left_out)
		lack(b, "run.vcs: %llu frames that this version cannot read",
		     (unsigned long long)result.left_out);
	return err;
}

static int contents_write(struct bugreport *b, FILE *out);

/* The last one is made last and lists what the others lack. */
static const struct section {
	const char *file, *content;
	/* 0, or -errno if the archive cannot be made; it has printed why unless it is -ENOMEM */
	int (*write)(struct bugreport *b, FILE *out);
	bool of_recording;
} sections[] = {
	{"versions.txt", "versions of vcpuscope, the kernel, KVM, QEMU and libvirt", versions_write,
	 false},
	{"doctor.txt", "what `vcpuscope doctor` printed", doctor_write, false},
	{"vcpuscope.conf",
	 "the daemon's configuration: numbers and choices; all other texts are removed, such as "
	 "paths, commands, keys, users and labels",
	 config_write, false},
	{"run.vcs", "a part of a recording", recording_write, true},
	{"README.txt", "this list", contents_write, false},
};
enum { N_SECTIONS = sizeof(sections) / sizeof(sections[0]) };

static bool section_is_wanted(const struct bugreport *b, const struct section *s)
{
	return b->arguments->recording || !s->of_recording;
}

static int contents_write(struct bugreport *b, FILE *out)
{
	fputs("Files of this archive, made by `vcpuscope bugreport`:\n\n", out);
	for (size_t i = 0; i < N_SECTIONS; i++) {
		if (section_is_wanted(b, &sections[i]))
			fprintf(out, "%s: %s\n", sections[i].file, sections[i].content);
	}
	if (!b->arguments->recording)
		lack(b, "run.vcs: no recording was named; name one that shows the fault");
	if (*b->lacks)
		fprintf(out, "\nMissing:\n\n%s", b->lacks);
	if (b->redactor)
		fputs("\nNames of VMs, tasks and cgroups are replaced by others, the same for the same "
		      "name;\nthreads of kernels and of QEMU keep theirs. The guest's log, "
		      "notes, names of functions of programs\nother than QEMU and libc, and values "
		      "of chosen events are removed. Process and thread ids, times,\nversions and "
		      "names of kernel functions remain.\n",
		      out);
	else
		fputs("\nMade with --names: the recording has all names, the guest's log and all "
		      "values.\n",
		      out);
	return 0;
}

/* ---- the archive ---- */

/* Returns the section's file, which has no name, or -errno. */
static int section_make(struct bugreport *b, const struct section *s)
{
	int fd = unnamed_file_open(), of = fd < 0 ? -1 : dup(fd), err = fd < 0 ? fd : 0;
	FILE *out = of < 0 ? NULL : fdopen(of, "w");

	if (!err && !out)
		err = -errno;
	if (err) {
		fprintf(stderr,
			"vcpuscope bugreport: no temporary file: %s; set TMPDIR to a folder with "
			"space on a local disk\n",
			strerror(-err));
	} else {
		err = s->write(b, out);
		if (err == -ENOMEM)
			fprintf(stderr, "vcpuscope bugreport: out of memory\n");
	}
	if (out && output_close(out) && !err) {
		err = -EIO;
		fprintf(stderr,
			"vcpuscope bugreport: %s: cannot write a temporary file; set TMPDIR to a "
			"folder with space\n",
			s->file);
	}
	if (!out && of >= 0)
		close(of);
	if (err && fd >= 0)
		close(fd);
	return err ? err : fd;
}

static int parts_write(const int parts[N_SECTIONS], FILE *to)
{
	const time_t now = time(NULL);
	char name[100];
	int err = 0;

	/* The list comes first. */
	for (size_t i = 0; i < N_SECTIONS && !err; i++) {
		const size_t k = (i + N_SECTIONS - 1) % N_SECTIONS;

		snprintf(name, sizeof(name), FOLDER "/%s", sections[k].file);
		if (parts[k] >= 0)
			err = archive_add(to, name, parts[k], now);
	}
	archive_end(to);
	return err;
}

/* Only its owner may read the file, and it is new: nothing is replaced, no link is followed. A
 * signal waits until it is complete. Returns 0 or -errno. */
static int archive_write(const int parts[N_SECTIONS], const char *path)
{
	sigset_t stopping, before;
	int err, closed, fd;
	FILE *to = stdout;

	if (output_is_stdout(path)) {
		err = parts_write(parts, to);
		closed = output_close(to);
		return err ? err : closed;
	}
	sigemptyset(&stopping);
	sigaddset(&stopping, SIGINT);
	sigaddset(&stopping, SIGTERM);
	sigaddset(&stopping, SIGHUP);
	sigprocmask(SIG_BLOCK, &stopping, &before);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	to = fd < 0 ? NULL : fdopen(fd, "w");
	err = to ? 0 : -errno;
	if (to) {
		err = parts_write(parts, to);
		closed = output_close(to);
		err = err ? err : closed;
	}
	if (err && fd >= 0)
		unlink(path);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Returns an exit code. */
static int output_check(const char *path)
{
	struct stat st;

	if (output_is_stdout(path) && isatty(STDOUT_FILENO)) {
		fprintf(stderr, "vcpuscope bugreport: --output -: standard output is a terminal; "
				"send it to a file: > " FOLDER ".tar\n");
		return COMMAND_USAGE;
	}
	if (output_is_stdout(path) || lstat(path, &st))
		return COMMAND_OK;
	fprintf(stderr,
		"vcpuscope bugreport: %s exists already; remove it, or name another file with "
		"--output\n",
		path);
	return COMMAND_TROUBLE;
}

/* Returns an exit code. */
static int bugreport_make(struct bugreport *b)
{
	const char *output = b->arguments->output;
	int parts[N_SECTIONS], err = 0;

	for (size_t i = 0; i < N_SECTIONS; i++)
		parts[i] = -1;
	for (size_t i = 0; i < N_SECTIONS && !err; i++) {
		if (!section_is_wanted(b, &sections[i]))
			continue;
		parts[i] = section_make(b, &sections[i]);
		err = parts[i] < 0 ? parts[i] : 0;
	}
	if (!err) {
		err = archive_write(parts, output);
		if (err)
			fprintf(stderr, "vcpuscope bugreport: %s: cannot write: %s\n",
				output_name(output), strerror(-err));
	}
	for (size_t i = 0; i < N_SECTIONS; i++) {
		if (parts[i] >= 0)
			close(parts[i]);
	}
	return command_exit_of(err);
}

static int bugreport_run(const struct command *self, int argc, char **argv)
{
	struct bugreport_arguments a = {.output = FOLDER ".tar", .narrow = NARROW_ARGUMENTS("to")};
	struct bugreport b = {.arguments = &a, .narrow = NARROW_NOTHING};
	const struct narrow_stalls stalls = {0};
	int result;

	if (options_read(self, argc, argv, &a))
		return COMMAND_USAGE;
	if (!a.recording && narrow_is_given(&a.narrow)) {
		fprintf(stderr, "vcpuscope bugreport: --from, --to and --around select a part of "
				"a recording; name it: RUN.vcs\n");
		return COMMAND_USAGE;
	}
	result = output_check(a.output);
	if (!result && a.recording)
		result = narrow_read(self->name, &a.narrow, a.recording, &stalls, &b.narrow);
	if (result)
		return result;
	b.redactor = a.names ? NULL : redactor_new();
	if (!a.names && !b.redactor) {
		fprintf(stderr, "vcpuscope bugreport: out of memory\n");
		return COMMAND_TROUBLE;
	}
	result = bugreport_make(&b);
	redactor_free(b.redactor);
	if (result)
		return result;
	for (char *line = b.lacks, *end; (end = strchr(line, '\n')); line = end + 1)
		fprintf(stderr, "vcpuscope bugreport: missing: %.*s\n", (int)(end - line), line);
	fprintf(stderr, "vcpuscope bugreport: wrote %s; read it before you send it to others\n",
		output_name(a.output));
	return COMMAND_OK;
}

const struct command command_bugreport = {
	.name = "bugreport",
	.summary = "collect what a fault report needs in one archive, without secrets",
	.options = bugreport_option_table,
	.n_options = sizeof(bugreport_option_table) / sizeof(bugreport_option_table[0]),
	.examples =
		"  sudo vcpuscope bugreport run.vcs --around 2 -o - >stall.tar   # your file, not root's\n"
		"  sudo vcpuscope bugreport             # without a recording\n"
		"  tar -xOf stall.tar vcpuscope-bugreport/README.txt   # what it contains\n",
	.run = bugreport_run,
};
