/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the two sources of VMs: libvirt (libvirt_feed.h) and the search for KVM's descriptors
 * (kvm_feed.h). Each finds candidates by itself; here they are attached, detached and reported.
 */
#ifndef DAEMON_VM_SOURCE_H
#define DAEMON_VM_SOURCE_H

#include <stdbool.h>

#include "host-collector/daemon/daemon.h"

/* The daemon to which a source of VMs attaches them, and the receiver of its lines for the user. */
struct vm_source {
	struct vm_daemon *daemon;
	/* Receives a line for the user. vm: "" if the line concerns no attached VM. */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

/* A VM that a source found. Starts as all 0. */
struct candidate {
	bool attached;
	bool reported;            /* why it is not attached; reset when it is */
	char vm[DAEMON_NAME_MAX]; /* attached: its name in the daemon */
};

void vm_source_say(const struct vm_source *s, const char *vm, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Reports why the candidate is not attached, unless that was reported before. */
void candidate_report(const struct vm_source *s, struct candidate *c, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Attaches the candidate, or reports why not. what: the candidate in that line, for example "QEMU
 * 4711". Returns whether it is attached. */
bool candidate_attach(const struct vm_source *s, struct candidate *c,
		      const struct vm_config *config, enum vm_origin origin, const char *what);
/* Detaches it if it is attached. */
void candidate_detach(const struct vm_source *s, struct candidate *c);
/* Sets config->name. Returns whether it can be a VM's name; a long one is cut. */
bool candidate_name(struct vm_config *config, const char *name);

#endif
