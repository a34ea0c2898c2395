/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon. It owns the channels and captures of many VMs, manages their recordings and
 * incidents, and serves the control socket (control.h). It runs on one thread with one loop; long
 * operations run in other processes or on worker threads.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "host-collector/daemon/config.h"
#include "host-collector/daemon/vitals.h"
#include "host-collector/daemon/watched_vm.h"

struct vm_daemon;

struct vm_daemon_options {
	const char *config_path;            /* vm_daemon_reload() reads it again; NULL: none */
	const struct daemon_config *config; /* copied */
	void (*say)(void *context, const char *line);
	/* Reports, once, that each configured VM was tried. May be NULL. */
	void (*ready)(void *context);
	void *context;
};

/* Opens the daemon's sockets. The loop then attaches the configured VMs, one in each turn. Returns
 * 0, or -errno with one line in `why`. */
int vm_daemon_open(uv_loop_t *loop, const struct vm_daemon_options *options, struct vm_daemon **out,
		   char *why, size_t why_bytes);
/* Detaches all VMs and closes everything. The loop must run until its handles are closed. */
void vm_daemon_close(struct vm_daemon *d);

/* Stops the loop (`vcpuscope ctl stop`). */
void vm_daemon_stop(struct vm_daemon *d);
/* Reads the configuration file again. Attaches VMs that are new, detaches VMs that were removed,
 * detaches and attaches again VMs whose values changed, and does not touch the others. Returns 0,
 * or -errno with one line in `why` and no change. */
int vm_daemon_reload(struct vm_daemon *d, char *why, size_t why_bytes);
/* What attached a VM: ctl, the configuration file, libvirt or the search for KVM's descriptors. */
enum vm_origin { VM_BY_CTL, VM_BY_FILE, VM_BY_LIBVIRT, VM_BY_KVM };

/* Adds a VM; the loop tries to attach it before it waits for events. A VM with origin VM_BY_KVM is
 * detached when another origin adds a VM of the same name or process. Returns 0, or with one line
 * in `why` -EEXIST, -ENOSPC (DAEMON_VMS_MAX), -EINVAL or -ENOMEM. */
int vm_daemon_attach(struct vm_daemon *d, const struct vm_config *config, enum vm_origin origin,
		     char *why, size_t why_bytes);
/* Removes a VM. Returns 0 or -ENOENT. */
int vm_daemon_detach(struct vm_daemon *d, const char *name);

/* Returns the number of VMs, and the VM at an index below it. The daemon owns the VM, which is
 * valid until it is detached. */
size_t vm_daemon_n_vms(const struct vm_daemon *d);
struct watched_vm *vm_daemon_vm(const struct vm_daemon *d, size_t index);
struct watched_vm *vm_daemon_find(const struct vm_daemon *d, const char *name); /* or NULL */
/* Requests the list of domains from libvirt again; does nothing if libvirt is not followed. */
void vm_daemon_rescan(struct vm_daemon *d);
enum vm_origin vm_daemon_origin(const struct vm_daemon *d, const struct watched_vm *vm);
/* The search for VMs by KVM's descriptors; may be NULL. */
const struct kvm_feed *vm_daemon_kvm_feed(const struct vm_daemon *d);
struct streams *vm_daemon_streams(const struct vm_daemon *d);
const struct host_captures *vm_daemon_captures(const struct vm_daemon *d);
struct records *vm_daemon_records(const struct vm_daemon *d);
struct flight *vm_daemon_flight(const struct vm_daemon *d);
struct spool *vm_daemon_spool(const struct vm_daemon *d); /* the recordings */
/* Returns the error of the VM's vsock listener, or "" if there is none. */
const char *vm_daemon_channel_trouble(const struct vm_daemon *d, const struct watched_vm *vm);
const struct daemon_config *vm_daemon_config(const struct vm_daemon *d);
void vm_daemon_vitals(const struct vm_daemon *d, struct vitals *out);
uint64_t vm_daemon_uptime_ms(const struct vm_daemon *d);

#endif
