/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * VMs that hold vCPUs of KVM's (vm/discover.h), as VMs of the daemon, if its configuration says
 * `discover = kvm`: attached a few seconds after they begin, detached when they are gone. Anybody
 * who may open /dev/kvm can make such processes and call them what he likes, so only those of
 * `discover_users` count, no more than `discover_per_user` of each; a name that another VM has is
 * refused, and a VM gives way as soon as libvirt, the configuration or `ctl` attaches one of its
 * name or process.
 *
 * A worker thread looks, every 3 s.
 */
#ifndef DAEMON_KVM_FEED_H
#define DAEMON_KVM_FEED_H

#include <sys/types.h>
#include <uv.h>

struct json_object;
struct kvm_feed;
struct vm_daemon;

struct kvm_feed_options {
	struct vm_daemon *daemon;
	/* vm: "" for none in particular. */
	void (*say)(void *context, const char *vm, const char *line);
	void *context;
};

/* NULL on ENOMEM. */
struct kvm_feed *kvm_feed_new(uv_loop_t *loop, const struct kvm_feed_options *options);
/* Detaches nothing. The loop must run until a look that is under way is over. NULL is allowed. */
void kvm_feed_close(struct kvm_feed *f);
/* Call it every 100 ms. */
void kvm_feed_tick(struct kvm_feed *f);
/* The daemon takes its VM `vm` from it, for somebody else's. NULL is allowed. */
void kvm_feed_yield(struct kvm_feed *f, const char *vm);
/* Adds to `out` what is claimed of a VM that it attached: vmm, uid and more. NULL is allowed. */
void kvm_feed_describe(const struct kvm_feed *f, const char *vm, struct json_object *out);

#endif
