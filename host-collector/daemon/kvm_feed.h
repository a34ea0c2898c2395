/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Attaches VMs that are found by KVM's descriptors (vm/discover.h), if the configuration has
 * `discover = kvm`. A worker thread searches every 3 s. A VM is attached when it was found twice
 * and detached when it is gone.
 *
 * Any user who can open /dev/kvm can create such processes and give them any name. Therefore only
 * VMs of the users in `discover_users` count, at most `discover_per_user` of each. A claimed name
 * that another VM has is not used. A VM is detached as soon as libvirt, the configuration or ctl
 * attaches a VM of the same name or process.
 */
#ifndef DAEMON_KVM_FEED_H
#define DAEMON_KVM_FEED_H

#include <sys/types.h>
#include <uv.h>

#include "host-collector/daemon/vm_source.h"

struct json_object;
struct kvm_feed;

/* Copies `source`. Returns NULL if there is no memory. */
struct kvm_feed *kvm_feed_new(uv_loop_t *loop, const struct vm_source *source);
/* Stops the search; detaches no VM. The loop must run until a search in progress ends. NULL is
 * allowed. */
void kvm_feed_close(struct kvm_feed *f);
/* Call it every 100 ms. */
void kvm_feed_tick(struct kvm_feed *f);
/* Reports that the daemon is about to detach `vm` in favor of another origin. NULL is allowed. */
void kvm_feed_yield(struct kvm_feed *f, const char *vm);
/* Adds the VMM, the uid and the claims of a VM that this feed attached to `out`. NULL is
 * allowed. */
void kvm_feed_describe(const struct kvm_feed *f, const char *vm, struct json_object *out);

#endif
