/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Provides the frames for a live command. If the daemon watches the VM, the daemon owns the VM's
 * channel and sends the frames through its control socket (daemon/streams.h). Otherwise the command
 * runs a collector. The sink receives the same frames in both cases.
 */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "proto/program/options.h"
#include "host-collector/daemon/config.h"
#include "host-collector/record/collector.h"

/* The options that select the VM. */
struct feed_arguments {
	const char *vm, *qmp, *control;
	uint64_t pid;
};

#define FEED_PID_HELP "the process ID of the VM's VMM (any VMM)"
#define FEED_QMP_HELP "the path of the VM's QMP socket, instead of --pid or in addition to it"
#define FEED_VM_HELP  "the name of the VM in the daemon, or in the output of `list --all`"
#define FEED_CONTROL_HELP                                                                          \
	"the daemon's control socket (default " DAEMON_CONTROL_PATH                                \
	"); the events of a VM that the daemon watches come from it"

/* at: offset of a struct feed_arguments in the command's struct */
#define FEED_OPTION_ROWS(at)                                                                       \
	{.name = "pid",                                                                            \
	 .letter = 'p',                                                                            \
	 .type = OPTION_NUMBER,                                                                    \
	 .offset = (at) + offsetof(struct feed_arguments, pid),                                    \
	 .value = "N",                                                                             \
	 .help = FEED_PID_HELP},                                                                   \
		{.name = "qmp",                                                                    \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct feed_arguments, qmp),                            \
		 .value = "PATH",                                                                  \
		 .help = FEED_QMP_HELP},                                                           \
		{.name = "vm",                                                                     \
		 .type = OPTION_STRING,                                                            \
		 .offset = (at) + offsetof(struct feed_arguments, vm),                             \
		 .value = "NAME",                                                                  \
		 .help = FEED_VM_HELP},                                                            \
	{                                                                                          \
		.name = "control", .type = OPTION_STRING,                                          \
		.offset = (at) + offsetof(struct feed_arguments, control), .value = "PATH",        \
		.help = FEED_CONTROL_HELP                                                          \
	}

/* The source that feed_find() selected. */
struct feed_place {
	bool by_daemon;
	char control[DAEMON_PATH_MAX];
	char vm[64];    /* if by_daemon: the VM's name in the daemon */
	char level[16]; /* if by_daemon: its level, "detail" or "summary" */
	/* If not by_daemon: pid: process id of the VM, 0: use qmp. qmp: path of the QMP socket, or
	 * NULL. 0 and NULL: there is no VM, only collector_options.tasks. */
	pid_t pid;
	const char *qmp;
};

/* Returns "" or the error in the arguments, for the user. */
const char *feed_arguments_check(const struct feed_arguments *a);
/* Selects the source: asks the daemon, if it runs, whether it watches the VM; otherwise finds a VM
 * by its name. Returns 0, or -errno with one line in `why`: -ENOENT (no VM, or several, with this
 * name), -EAGAIN (the daemon waits for the VM). */
int feed_find(const struct feed_arguments *a, struct feed_place *out, char *why, size_t why_bytes);

enum { FEED_VMS_MAX = 64 };

struct feed;

/* Opens the source, and raises this process's limit of open files. `options` configures the
 * collector as in collector_open(). A VM of the daemon keeps the daemon's settings, and the guest's
 * frames arrive even if options->channel is NULL, unless no_guest is set. Returns 0 or -errno with
 * one line in `why`. */
int feed_open(uv_loop_t *loop, const struct feed_place *place,
	      const struct collector_options *options, bool no_guest,
	      const struct collector_sink *sink, struct feed **out, char *why, size_t why_bytes);
/* Adds another VM to a source that this process captures, before the loop runs: its events are in
 * the same host stream, and the frames of its guest have the next number as their source
 * (collector_options.beside). channel: address of its channel, NULL: none. The other options must
 * be those of feed_open(). Lines for the user then begin with the name of their VM. The source ends
 * when all its VMs have ended. Returns 0, -ENOSPC beyond FEED_VMS_MAX, or the errors of
 * feed_open(). */
int feed_add(struct feed *f, uv_loop_t *loop, const struct feed_place *place, const char *channel,
	     const struct collector_options *options, char *why, size_t why_bytes);
/* Like the functions of collector.h. For a VM of the daemon, the status counts from feed_open()
 * on. */
void feed_stop(struct feed *f);
void feed_close(struct feed *f); /* NULL is allowed */
int feed_level(struct feed *f, enum capture_level level);
/* With several VMs, `out->vm` is the first one; feed_status_add() defines the rest. */
void feed_status_get(struct feed *f, struct collector_status *out);
/* Adds the status of another VM of the same host stream: adds up the counts of vCPUs and of the
 * guests; the state of channel and clock becomes that of the VM where it is worst. A VM that has
 * ended adds only counts, unless all have ended. */
void feed_status_add(struct collector_status *sum, const struct collector_status *s);
/* Gets the status of the VM at `index`, from 0, of a source that this process captures. Returns
 * false if there are fewer VMs. */
bool feed_vm_status_get(struct feed *f, size_t index, struct collector_status *out);
/* Writes the state of the guest side for the user, for example "agent ok", "agent silent for 25 s"
 * or "no agent yet". */
void feed_guest_text(const struct collector_status *s, char *out, size_t out_bytes);

#endif
