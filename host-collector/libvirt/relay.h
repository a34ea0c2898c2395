/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connects the agent's channel through libvirt (virDomainOpenChannel()) to a descriptor, for a
 * channel whose socket this host's daemon cannot reach.
 */
#ifndef LIBVIRT_RELAY_H
#define LIBVIRT_RELAY_H

#include <stddef.h>

/* Copies bytes in both directions until one side ends. fd: a stream socket, which is made
 * non-blocking and stays the caller's. No other code may run libvirt's event loop. Returns 0, or -1
 * with one line in `why`. */
int relay_run(const char *uri, const char *uuid, int fd, char *why, size_t why_bytes);

#endif
