/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's configuration: an INI file with one section [daemon] and one [vm NAME] for each VM
 * that it attaches by itself. Every key is a row of a table (config.c) and of docs/daemon.md.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "host-collector/daemon/trigger.h"
#include "host-collector/decode/decoder.h"
#include "host-collector/util/paths.h"

enum {
	DAEMON_VMS_MAX = 64,
	DAEMON_NAME_MAX = 64,  /* with the final NUL */
	DAEMON_PATH_MAX = 256, /* a control socket's must be shorter, sockaddr_un has 108 */
};

struct vm_config {
	char name[DAEMON_NAME_MAX]; /* letters, digits, . _ - only: it becomes a folder */
	uint64_t pid;               /* 0: by QMP */
	char qmp[DAEMON_PATH_MAX], channel[DAEMON_PATH_MAX]; /* "": none */
	bool record;                                         /* from the beginning */
	enum capture_level level;
	enum capture_way way;
	uint64_t stacks_over_ns;
	enum capture_level guest_level;  /* detail: as the agent has it */
	uint64_t guest_handlers_over_ns; /* 0: the same */
	uint64_t detail_rate; /* host events per second; beyond it detail is shed; 0: never */
	bool flight;          /* the last seconds are kept (flight.h) */
	uint64_t flight_ns, flight_bytes; /* how many, and the memory they may take */
	uint64_t stall_ns;                /* stalls from this length on get a folder */
	uint64_t triggers[TRIGGER_COUNT]; /* limits of what else does: daemon/trigger.h */
	char psk[DAEMON_PATH_MAX], psk_identity[DAEMON_NAME_MAX]; /* struct link_security */
	bool insecure_plain_tcp;
	uint64_t bytes_per_s, memory_bytes, cpu_permille; /* struct decoder_budget */
};

struct daemon_config {
	char control[DAEMON_PATH_MAX];
	char agents[DAEMON_PATH_MAX];         /* agents_door.h; "": agents.sock beside `control` */
	char libvirt[DAEMON_PATH_MAX];        /* "auto", "no", or a URI (libvirt_feed.h) */
	char discover[DAEMON_PATH_MAX];       /* a list of "libvirt" and "kvm" (kvm_feed.h) */
	char discover_users[DAEMON_PATH_MAX]; /* whose VMs "kvm" finds: names and numbers */
	uint64_t discover_per_user;           /* and how many of each */
	char metrics[DAEMON_PATH_MAX];      /* listen:tcp:HOST:PORT or listen:unix:PATH; "": none */
	char metrics_file[DAEMON_PATH_MAX]; /* for node_exporter; "": none */
	char directory[DAEMON_PATH_MAX];    /* of recordings: DIRECTORY/VM/VM-TIME.vcs */
	uint64_t disk_budget_bytes;         /* of all recordings, in shares: disk.h */
	uint64_t disk_reserve_bytes;        /* that stay free on that disk, whoever fills it */
	uint64_t file_bytes, file_ns; /* a recording that reaches either is followed by a new one */
	uint64_t incidents_budget_bytes;   /* of all incidents' folders, in shares: disk.h */
	uint64_t incident_gap_ns;          /* between two folders of one VM, at least */
	uint64_t report_jobs;              /* processes that make reports, at a time */
	char on_incident[DAEMON_PATH_MAX]; /* a shell command, "": none */
	size_t n_vms;
	struct vm_config vms[DAEMON_VMS_MAX];
};

/* What docs/daemon.md names as defaults; without VMs, without names. */
void daemon_config_default(struct daemon_config *out);
void vm_config_default(struct vm_config *out);
/* Reads and checks the file. 0, or -EINVAL or -errno of open with one line in `why`:
 * "FILE:LINE: KEY: what is wrong; what to write". */
int daemon_config_read(const char *path, struct daemon_config *out, char *why, size_t why_bytes);
/* Does `discover` name it ("libvirt", "kvm")? */
bool daemon_config_discovers(const struct daemon_config *c, const char *what);
/* Sets one key of a VM from its text, as in the file. 0 or -EINVAL with `why`. */
int vm_config_set(struct vm_config *vm, const char *key, const char *value, char *why,
		  size_t why_bytes);
/* Is there all that attaching needs? 0 or -EINVAL with `why`. */
int vm_config_check(const struct vm_config *vm, char *why, size_t why_bytes);
/* Can both be watched? Not if each would take the same guests' connections. 0 or -EINVAL with
 * `why`. */
int vm_configs_check(const struct vm_config *a, const struct vm_config *b, char *why,
		     size_t why_bytes);

#endif
