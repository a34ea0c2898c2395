/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon's configuration: an INI file with one section [daemon]. It has a section [vm NAME] for
 * each VM to attach at the start, and a section [pair NAME] for each pair of events to count in all
 * VMs. config_keys.c has a table with one row for each key; docs/daemon.md describes the keys.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/capture/capture.h"
#include "host-collector/analyze/event/pair_definition.h"
#include "host-collector/daemon/trigger.h"
#include "host-collector/decode/decoder.h"
#include "host-collector/util/paths.h"

enum {
	DAEMON_VMS_MAX = 512,
	DAEMON_NAME_MAX = 64,  /* with the final NUL */
	DAEMON_PATH_MAX = 256, /* the path of a socket must fit sockaddr_un, which has 108 bytes */
};

struct vm_config {
	char owner[2 * DAEMON_NAME_MAX];   /* in records: whose VM it is; "": unknown */
	char manager[DAEMON_NAME_MAX / 2]; /* in records: what manages the VM; "": unknown */
	char name[DAEMON_NAME_MAX]; /* only letters, digits, '.', '_' and '-': it becomes the name
				       of a folder */
	uint64_t pid;               /* 0: the VM is found by its QMP socket */
	char qmp[DAEMON_PATH_MAX], channel[DAEMON_PATH_MAX]; /* "": none */
	bool record; /* start recording when the VM is attached */
	enum capture_level level;
	enum backend_choice backend;
	uint64_t stacks_over_ns;
	char events[DAEMON_PATH_MAX];    /* events to capture as well (docs/events.md); "": none */
	enum capture_level guest_level;  /* CAPTURE_DETAIL: the agent keeps its own level */
	uint64_t guest_handlers_over_ns; /* 0: the agent keeps its own threshold */
	uint64_t detail_rate; /* limit of host events per second, above which the level becomes
				 summary; 0: none */
	bool flight;          /* keep the last seconds in memory (flight.h) */
	uint64_t flight_ns, flight_bytes; /* length of that history; limit of its memory */
	uint64_t stall_ns;                /* shortest stall that gets an incident folder */
	uint64_t triggers[TRIGGER_COUNT]; /* limits of the triggers (trigger.h) */
	char psk[DAEMON_PATH_MAX], psk_identity[DAEMON_NAME_MAX]; /* see struct link_security */
	bool insecure_plain_tcp;
	uint64_t bytes_per_s, memory_bytes, cpu_permille; /* see struct decoder_budget */
};

struct daemon_config {
	char control[DAEMON_PATH_MAX];
	char agents[DAEMON_PATH_MAX];  /* socket of agents_listener.h; "": agents.sock beside the
					  control socket */
	char libvirt[DAEMON_PATH_MAX]; /* "auto", "no" or a URI (libvirt_feed.h) */
	char libvirt_attach[DAEMON_NAME_MAX]; /* domains that get the agent's channel: "no", "all"
						 or "labelled" (libvirt_feed.h) */
	char discover[DAEMON_PATH_MAX];       /* a list of "libvirt" and "kvm" (kvm_feed.h) */
	char discover_users[DAEMON_PATH_MAX]; /* user names and uids whose VMs "kvm" finds */
	uint64_t discover_per_user;           /* largest number of such VMs per user */
	char metrics[DAEMON_PATH_MAX];      /* listen:tcp:HOST:PORT or listen:unix:PATH; "": none */
	char metrics_file[DAEMON_PATH_MAX]; /* file for node_exporter; "": none */
	bool metrics_vm;                    /* series of each VM, not only sums of the host */
	char page[DAEMON_PATH_MAX];         /* address of incident_page.h; "": none */
	char page_token[DAEMON_PATH_MAX];   /* file with its token; "": none */
	char page_hosts[DAEMON_PATH_MAX];   /* further names of this host for it */
	char directory[DAEMON_PATH_MAX];    /* of the recordings: DIRECTORY/VM/VM-TIME.vcs */
	uint64_t disk_budget_bytes;         /* limit for all recordings, shared as in disk.h */
	uint64_t disk_reserve_bytes;        /* space to leave free on that file system */
	uint64_t file_bytes, file_ns;       /* size and age at which a new recording starts */
	uint64_t incidents_budget_bytes;   /* limit for all incident folders, shared as in disk.h */
	uint64_t incident_gap_ns;          /* shortest time between two incident folders of a VM */
	uint64_t report_jobs;              /* number of reports to make concurrently */
	char on_incident[DAEMON_PATH_MAX]; /* shell command to notify of an incident; "": none */
	bool outbox;                       /* write records to DIRECTORY/outbox (records.h) */
	bool outbox_guest_text;            /* records may contain names and texts of guests */
	uint64_t outbox_budget_bytes;      /* limit for the outbox */
	uint64_t outbox_keep_ns;           /* how long a delivered segment is kept */
	uint64_t outbox_rate; /* incidents per minute that get a record each; more are summed */
	/* How often the figures of a VM are written; 0: never; UINT64_MAX: the default, never if
	 * `ship` is empty. Read it with daemon_config_figures_ns(). */
	uint64_t figures_every_ns;
	char labels[DAEMON_PATH_MAX];    /* of the host, in each record: "zone=a, rack=b" */
	char ship[DAEMON_PATH_MAX];      /* command that delivers a segment; "": none */
	char ship_user[DAEMON_NAME_MAX]; /* user that runs it */
	uint64_t ship_timeout_ns;        /* time limit of the command */
	bool ship_evidence;              /* recordings of incidents are delivered, too */
	size_t n_pairs;
	struct pair_definition pairs[PAIR_WATCH_MAX];
	size_t n_vms; /* at most DAEMON_VMS_MAX */
	struct vm_config *vms;
};

/* Sets the defaults that docs/daemon.md gives; no VM, or a VM without a name. */
void daemon_config_default(struct daemon_config *out);
void vm_config_default(struct vm_config *out);
/* Frees the VMs. */
void daemon_config_fini(struct daemon_config *c);
/* Copies `from` with its VMs. Returns 0 or -ENOMEM; `out` then has no VM. */
int daemon_config_copy(const struct daemon_config *from, struct daemon_config *out);
/* Reads and checks the file. Call daemon_config_fini(out) in any case. Returns 0, or with one line
 * in `why` -EINVAL ("FILE:LINE: KEY: what is wrong; what to write") or the -errno of opening the
 * file. */
int daemon_config_read(const char *path, struct daemon_config *out, char *why, size_t why_bytes);
/* Writes the path of the socket of agents_listener.h. */
void daemon_config_agents(const struct daemon_config *c, char *out, size_t out_bytes);
/* Returns the interval of figures, or 0 if none are wanted. */
uint64_t daemon_config_figures_ns(const struct daemon_config *c);
/* Returns whether the key `discover` lists `what` ("libvirt" or "kvm"). */
bool daemon_config_discovers(const struct daemon_config *c, const char *what);
/* Sets one key of a VM to a value written as in the file. Returns 0, or -EINVAL with one line in
 * `why`. */
int vm_config_set(struct vm_config *vm, const char *key, const char *value, char *why,
		  size_t why_bytes);
/* Checks that the VM's values are valid and sufficient to attach it. Returns 0, or -EINVAL with one
 * line in `why`. */
int vm_config_check(const struct vm_config *vm, char *why, size_t why_bytes);
/* Checks that two VMs do not wait for the same guests on vsock (equal port and CID). Returns 0, or
 * -EINVAL with one line in `why`. */
int vm_configs_check(const struct vm_config *a, const struct vm_config *b, char *why,
		     size_t why_bytes);

#endif
