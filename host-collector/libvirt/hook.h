/* SPDX-License-Identifier: GPL-2.0-only */
/* What libvirt's hook for QEMU domains does (deploy/libvirt/qemu). */
#ifndef LIBVIRT_HOOK_H
#define LIBVIRT_HOOK_H

/*
 * Tells the daemon at this control socket to look for domains at once. libvirt waits for its hook
 * and starts no domain if it fails: whatever happens, it is over at once and well, and the process
 * ends with status 0 after 40 ms at the latest. Nothing is read: neither a domain's XML nor an
 * answer.
 */
void hook_tell(const char *control_path);

#endif
