/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The daemon: owns the VMs' channels and captures, keeps their recordings, answers its control
 * socket (control.h). One thread, one loop; whatever runs for long belongs into a process of its
 * own.
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
	const char *config_path;            /* read again at daemon_reload(); NULL: none */
	const struct daemon_config *config; /* copied */
	void (*say)(void *context, const char *line);
	/* Every configured VM was tried once; called once. May be NULL. */
	void (*ready)(void *context);
	void *context;
};

/* Opens the control socket; the configured VMs are attached by the loop, one in each turn. 0 or
 * -errno with one line in `why`. */
int vm_daemon_open(uv_loop_t *loop, const struct vm_daemon_options *options, struct vm_daemon **out,
		   char *why, size_t why_bytes);
/* Detaches everything. The loop must run until its handles are closed. */
void vm_daemon_close(struct vm_daemon *d);

/* The loop is to end: `ctl stop`. */
void vm_daemon_stop(struct vm_daemon *d);
/* Reads the configuration again: new VMs are attached, those that are no longer in it detached,
 * those with other values attached anew, the others left alone. 0, or -errno with `why` and nothing
 * changed. */
int vm_daemon_reload(struct vm_daemon *d, char *why, size_t why_bytes);
/* Who says that a VM is to be watched. */
enum vm_origin { VM_BY_CTL, VM_BY_FILE, VM_BY_LIBVIRT, VM_BY_KVM };

/* It is tried before the loop waits for anything. What was found by KVM's descriptors alone gives
 * way to anybody else's VM of its name or process. 0, -EEXIST, -ENOSPC (DAEMON_VMS_MAX), -EINVAL,
 * -ENOMEM with `why`. */
int vm_daemon_attach(struct vm_daemon *d, const struct vm_config *config, enum vm_origin origin,
		     char *why, size_t why_bytes);
/* 0 or -ENOENT. */
int vm_daemon_detach(struct vm_daemon *d, const char *name);

/* The VMs that it watches; index: below their number. Borrowed until it is detached. */
size_t vm_daemon_n_vms(const struct vm_daemon *d);
struct watched_vm *vm_daemon_vm(const struct vm_daemon *d, size_t index);
struct watched_vm *vm_daemon_find(const struct vm_daemon *d, const char *name); /* or NULL */
/* Asks libvirt for its domains again, if it is followed. */
void vm_daemon_rescan(struct vm_daemon *d);
enum vm_origin vm_daemon_origin(const struct vm_daemon *d, const struct watched_vm *vm);
/* What finds VMs by KVM's descriptors; it may be NULL. */
const struct kvm_feed *vm_daemon_kvm_feed(const struct vm_daemon *d);
struct streams *vm_daemon_streams(const struct vm_daemon *d);
const struct host_captures *vm_daemon_captures(const struct vm_daemon *d);
struct flight *vm_daemon_flight(const struct vm_daemon *d);
struct spool *vm_daemon_spool(const struct vm_daemon *d); /* its recordings */
/* Why nothing can be heard on the VM's channel, whose port is the daemon's; "": it can. */
const char *vm_daemon_channel_trouble(const struct vm_daemon *d, const struct watched_vm *vm);
const struct daemon_config *vm_daemon_config(const struct vm_daemon *d);
void vm_daemon_vitals(const struct vm_daemon *d, struct vitals *out);
uint64_t vm_daemon_uptime_ms(const struct vm_daemon *d);

#endif
