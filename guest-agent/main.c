// SPDX-License-Identifier: GPL-2.0-only
/* vcpuscope-agent: arguments, signals, exit codes. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "bpf/backend/capture_open.h"
#include "bpf/capture/capture.h"
#include "bpf/capture/tracepoint_losses.h"
#include "guest-agent/agent.h"
#include "guest-agent/arguments.h"
#include "guest-agent/doctor.h"
#include "guest-agent/symbols_body.h"
#include "bpf/isolation/opener.h"
#include "proto/codec.h"
#include "proto/log_writer.h"
#include "proto/program/main_loop.h"
#include "proto/tls_psk.h"

enum exit_code {
	EXIT_AS_ASKED = 0,
	EXIT_INTERNAL = 1,
	EXIT_WRONG_USAGE = 2,
	EXIT_NO_CHANNEL = 3,
	EXIT_NO_CAPTURE = 4,
};

enum { LOG_FLUSH_MS = 1000 };

/* Waiting events of one CPU that are worth a drain before the next heartbeat: a quarter of its
 * ring, at most the largest batch. Larger batches cost less CPU time and fewer bytes for each
 * event. `ring_bytes` are for all CPUs, in case that the capture does not know. */
static uint64_t drain_events(const struct capture *capture, size_t ring_bytes)
{
	const size_t n_cpus = capture_n_cpus(capture) ? capture_n_cpus(capture) : 1;
	size_t quarter = capture_ring_events(capture) / 4;

	if (!quarter)
		quarter = ring_bytes / sizeof(struct vs_event) / n_cpus / 8;
	return quarter < VS_BATCH_EVENTS_MAX ? quarter : VS_BATCH_EVENTS_MAX;
}

struct program {
	struct main_loop loop;
	struct agent *agent;
};

/* context: the log_writer. A slow reader of the log must not hold up the rings. */
static void say(void *context, const char *line)
{
	log_writer_line(context, "vcpuscope-agent: %s", line);
}

/* Behind what the agent has said before. */
static void __attribute__((format(printf, 2, 3)))
line_say(const struct agent_options *options, const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	options->say(options->context, line);
}

/* Rings must be emptied when the guest is busiest, and an echo answered at once is a tighter clock.
 * The lowest real-time priority does it: without, a guest with more tasks than CPUs lets us wait
 * for 80 ms, and the rings overflow. Where it is not allowed, the best nice value must do. */
static void on_urgent(void *context, bool urgent)
{
	const struct sched_param lowest = {.sched_priority = sched_get_priority_min(SCHED_RR)};
	const struct sched_param none = {0};
	static bool said;

	if (!urgent) {
		sched_setscheduler(0, SCHED_OTHER, &none);
		return;
	}
	if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) < 0 &&
	    setpriority(PRIO_PROCESS, 0, -20) < 0 && !said) {
		said = true;
		say(context, "running at normal priority: a busy guest may overflow its rings "
			     "(losses are counted)");
	}
}

/* The loop ends when the agent's handles are closed. */
static void on_stop(void *context)
{
	struct program *p = context;

	agent_stop(p->agent);
}

static enum exit_code program_run(struct capture *capture, const struct arguments *arguments,
				  const struct agent_options *agent_options)
{
	struct program p = {0};
	enum exit_code code = EXIT_AS_ASKED;
	int err;

	err = main_loop_open(&p.loop, &p, on_stop);
	if (err) {
		line_say(agent_options, "cannot start: %s", strerror(-err));
		return EXIT_INTERNAL;
	}
	err = agent_start(&p.loop.uv, capture, agent_options, &p.agent);
	if (!err)
		err = main_loop_stop_on_signals(&p.loop);
	if (!err)
		err = main_loop_stop_after(&p.loop, arguments->run_for_ns);
	if (err) {
		line_say(agent_options, "cannot start: %s", strerror(-err));
		code = EXIT_INTERNAL;
		goto out;
	}
	main_loop_run(&p.loop);
	err = agent_result(p.agent);
	if (err == -ENODEV) {
		line_say(agent_options,
			 "no virtio-serial port '%s' in /sys/class/virtio-ports%s: add a "
			 "virtserialport of that name to the VM, or load virtio_console",
			 agent_options->address.name,
			 agent_options->address.carrier == &channel_carrier_auto
				 ? ", and no /dev/vsock"
				 : "");
		code = EXIT_NO_CHANNEL;
	} else if (err) {
		code = EXIT_INTERNAL;
	}
out:
	main_loop_close(&p.loop);
	agent_free(p.agent);
	return code;
}

/* Refuses an address that crosses a network unencrypted, unless the user allowed it. */
static int transport_check(const struct arguments *arguments, struct channel_address *address,
			   char *why, size_t why_bytes)
{
	struct tls_psk psk;
	int err = 0;

	if (address->carrier == &channel_carrier_tls) {
		if (!arguments->psk) {
			snprintf(why, why_bytes, "%s needs a key: give --psk FILE", address->text);
			return -EINVAL;
		}
		err = tls_psk_read(arguments->psk, NULL, &psk, why, why_bytes);
		explicit_bzero(&psk, sizeof(psk));
		if (!err)
			err = channel_tls_check(why, why_bytes);
		address->psk_path = arguments->psk;
	} else if (arguments->psk) {
		snprintf(why, why_bytes, "--psk is for tls:ADDRESS:PORT, not for %s",
			 address->text);
		err = -EINVAL;
	} else if (channel_address_is_exposed(address) && !arguments->insecure_plain_tcp) {
		snprintf(
			why, why_bytes,
			"%s would carry this guest's events unencrypted: use tls: with --psk, or say "
			"--insecure-plain-tcp",
			address->text);
		err = -EINVAL;
	}
	return err;
}

static void limits_from_arguments(const struct arguments *arguments, struct limits *out)
{
	*out = (struct limits){
		.no_host_config = arguments->no_host_config,
		.classes = EVENT_CLASSES_ALL,
		.sample_hz = (uint32_t)arguments->sample_hz,
		.sample_hz_max = arguments->no_host_config ? 0 : (uint32_t)arguments->max_sample_hz,
		.handler_over_ns = arguments->handlers_over_ns,
	};
	if (out->sample_hz_max < out->sample_hz)
		out->sample_hz_max = out->sample_hz;
	if (arguments->no_kernel_log)
		out->classes &= ~(1ull << EVENT_CLASS_KERNEL_LOG);
}

/* A file that was not named may be missing. */
static int policy_from_arguments(const struct arguments *arguments, struct event_policy *out,
				 char *why, size_t why_bytes)
{
	const char *path = arguments->policy ? arguments->policy : EVENT_POLICY_PATH;
	char what[256];
	int err;

	event_policy_default(out);
	err = event_policy_read(out, path, what, sizeof(what));
	if (err == -ENOENT && !arguments->policy)
		return 0;
	if (err)
		snprintf(why, why_bytes, "%s: %s", path, what);
	return err;
}

static int capture_try(enum backend_choice backend, char *said, size_t said_bytes, char *lost,
		       size_t lost_bytes)
{
	const struct capture_options options = {.kind = CAPTURE_GUEST, .backend = backend};
	struct capture *capture = NULL;
	const int err = capture_open(&options, &capture, said, said_bytes);

	if (err)
		return err;
	snprintf(said, said_bytes, "%s attaches%s%s", capture_backend_name(capture),
		 capture_left_out(capture)[0] ? ", without " : "", capture_left_out(capture));
	tracepoint_losses(CAPTURE_GUEST, capture_left_out(capture), lost, lost_bytes);
	capture_close(capture);
	return 0;
}

int main(int argc, char **argv)
{
	struct capture_options capture_options = {.kind = CAPTURE_GUEST};
	struct agent_options agent_options = {.say = say};
	struct capture *capture = NULL;
	struct log_writer *log = NULL;
	struct arguments arguments;
	enum exit_code code;
	char why[512] = "";
	int err;

	if (opener_is_meant(argc, argv))
		_exit(opener_main(&symbols_body));
	if (argc == 2 && !strcmp(argv[1], "--dump-options")) {
		options_dump(&agent_command, stdout);
		return EXIT_AS_ASKED;
	}
	if (options_answer(&agent_command, argc, argv))
		return EXIT_AS_ASKED;
	arguments_default(&arguments);
	if (options_read(&agent_command, argc, argv, &arguments))
		return EXIT_WRONG_USAGE;
	if (arguments.doctor)
		return doctor_print(stdout, "", capture_try) ? EXIT_AS_ASKED : EXIT_NO_CAPTURE;
	backend_choice_parse(arguments.backend, &capture_options.backend);
	err = channel_address_parse(arguments.connect, &agent_options.address, why, sizeof(why));
	if (!err)
		err = transport_check(&arguments, &agent_options.address, why, sizeof(why));
	if (!err)
		err = policy_from_arguments(&arguments, &agent_options.events, why, sizeof(why));
	if (err) {
		fprintf(stderr, "vcpuscope-agent: %s\n", why);
		return EXIT_WRONG_USAGE;
	}
	/* main_loop_open() does it too late for the processes that start with the capture. */
	signal(SIGPIPE, SIG_IGN);
	limits_from_arguments(&arguments, &agent_options.limits);
	capture_options.ring_bytes = arguments.ring_bytes;
	capture_options.sample_hz = (uint32_t)arguments.sample_hz;
	capture_options.sample_hz_max = agent_options.limits.sample_hz_max;
	capture_options.sample_except = getpid();
	err = capture_open(&capture_options, &capture, why, sizeof(why));
	if (err) {
		fprintf(stderr, "vcpuscope-agent: %s\n", why[0] ? why : strerror(-err));
		return EXIT_NO_CAPTURE;
	}
	if (capture_notice(capture)[0])
		fprintf(stderr, "vcpuscope-agent: %s\n", capture_notice(capture));
	if (capture_left_out(capture)[0]) {
		tracepoint_losses(CAPTURE_GUEST, capture_left_out(capture), why, sizeof(why));
		fprintf(stderr, "vcpuscope-agent: this kernel lacks %s\n", why);
	}
	if (!arguments.no_realtime)
		agent_options.urgent = on_urgent;
	agent_options.drain_events = drain_events(capture, capture_options.ring_bytes);
	agent_options.interval_ms = (unsigned int)(arguments.interval_ns / 1000000);
	agent_options.backlog_bytes = arguments.backlog_bytes;
	agent_options.cpu_permille = (unsigned int)arguments.max_cpu_percent * 10;
	agent_options.memory_bytes = arguments.max_memory_bytes;
	log_writer_new(STDERR_FILENO, &log); /* without, lines are written at once */
	agent_options.context = log;
	code = program_run(capture, &arguments, &agent_options);
	log_writer_free(log, LOG_FLUSH_MS);
	capture_close(capture);
	return code;
}
