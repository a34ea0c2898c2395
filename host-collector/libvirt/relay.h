/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent's channel by way of libvirt (virDomainOpenChannel), for a channel whose socket cannot
 * be reached from here: carries its bytes to and from a descriptor.
 */
#ifndef LIBVIRT_RELAY_H
#define LIBVIRT_RELAY_H

#include <stddef.h>

/* Runs until either side ends, which is 0; or -1 with one line in `why`. fd: a stream socket, made
 * non-blocking; stays the caller's. libvirt's event loop must not run elsewhere. */
int relay_run(const char *uri, const char *uuid, int fd, char *why, size_t why_bytes);

#endif
