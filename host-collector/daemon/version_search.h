/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the versions of VMMs from their programs (vm/vmm_version.h) on a worker thread. There is
 * one search at a time, so a disk that hangs blocks only one thread of the loop's pool. A program
 * that many VMs run is read once.
 */
#ifndef DAEMON_VERSION_SEARCH_H
#define DAEMON_VERSION_SEARCH_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct version_search;

/* The version of one run of a VM's VMM. All zero: not asked for. */
struct version_wanted {
	bool asked;
	char version[64]; /* for example "QEMU 7.2.15"; "": unknown, or not found yet */
};

/* Allocates the object. proc: "/proc"; it must stay valid. Returns NULL if there is no memory. */
struct version_search *version_search_new(uv_loop_t *loop, const char *proc);
/* Frees it. A search in progress ends in the loop, without a result. NULL is allowed. */
void version_search_free(struct version_search *s);
/* Begins to find the version of a process if that was not asked yet. `w` must stay valid until the
 * version is found or version_forget(). Returns false if another search is in progress: ask again
 * later. */
bool version_ask(struct version_search *s, struct version_wanted *w, pid_t pid);
/* Clears `w`: another run of the VM may follow. */
void version_forget(struct version_search *s, struct version_wanted *w);

#endif
