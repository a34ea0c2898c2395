/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a live command's frames come from: a collector of its own, or the daemon, if it watches the
 * VM already: then it owns the channel, and hands on what comes through its control socket
 * (daemon/streams.h). Either way the same frames reach the same sink.
 */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/cli/options.h"
#include "host-collector/daemon/config.h"
#include "host-collector/record/collector.h"

/* Which VM, as the user says it. */
struct feed_arguments {
	const char *vm, *qmp, *control;
	uint64_t pid;
};

/* at: the offset of a struct feed_arguments */
#define FEED_OPTION_ROWS(at)                                                                       \
	{"pid",                                                                                    \
	 OPTION_NUMBER,                                                                            \
	 (at) + offsetof(struct feed_arguments, pid),                                              \
	 "N",                                                                                      \
	 "the VM's process, whatever the VMM",                                                     \
	 false},                                                                                   \
		{"qmp",                                                                            \
		 OPTION_STRING,                                                                    \
		 (at) + offsetof(struct feed_arguments, qmp),                                      \
		 "PATH",                                                                           \
		 "the VM's QMP socket, instead of --pid or beside it",                             \
		 false},                                                                           \
		{"vm",                                                                             \
		 OPTION_STRING,                                                                    \
		 (at) + offsetof(struct feed_arguments, vm),                                       \
		 "NAME",                                                                           \
		 "the VM by its name: the daemon's, or else the one that `list --all` shows",      \
		 false},                                                                           \
	{                                                                                          \
		"control", OPTION_STRING, (at) + offsetof(struct feed_arguments, control), "PATH", \
			"the daemon's control socket (default " DAEMON_CONTROL_PATH                \
			"): what it watches comes from it",                                        \
			false                                                                      \
	}

/* What the arguments stand for now. */
struct feed_place {
	bool by_daemon;
	char control[DAEMON_PATH_MAX];
	char vm[64];     /* by_daemon: its name there */
	char level[16];  /* and its level, "detail" or "summary" */
	pid_t pid;       /* else: 0, or what the name stands for */
	const char *qmp; /* else: NULL, or the path */
};

/* "" or what is wrong with the arguments, for a person. */
const char *feed_arguments_check(const struct feed_arguments *a);
/* Asks the daemon, if it runs, whose the VM is. 0, or -errno with one line in `why`: -ENOENT (no VM
 * of that name), -EAGAIN (the daemon waits for it). */
int feed_find(const struct feed_arguments *a, struct feed_place *out, char *why, size_t why_bytes);

struct feed;

/* As collector_open(), from the place. options: for a collector of our own; of a daemon's VM its
 * settings count, and `options->channel` NULL still brings the guest's frames unless no_guest. */
int feed_open(uv_loop_t *loop, const struct feed_place *place,
	      const struct collector_options *options, bool no_guest,
	      const struct collector_sink *sink, struct feed **out, char *why, size_t why_bytes);
/* As those of collector.h; of the daemon's counts, what it counted since feed_open(). */
void feed_stop(struct feed *f);
void feed_close(struct feed *f); /* NULL is allowed */
int feed_level(struct feed *f, enum capture_level level);
void feed_status_get(struct feed *f, struct collector_status *out);
/* What is to be said of the guest's side: "agent ok", "agent silent for 25 s", "no agent yet". */
void feed_guest_text(const struct collector_status *s, char *out, size_t out_bytes);

#endif
