/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Assigns the sessions of an agent to the boots of its guest's kernel. Each HELLO carries the
 * kernel's boot id (/proc/sys/kernel/random/boot_id). A reboot, a reset, a panic and a kexec each
 * end a boot, and with it its clocks, task ids, CPUs and log. Boots are counted from 0.
 */
#ifndef TIMELINE_BOOTS_H
#define TIMELINE_BOOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

/* The number of sessions that are remembered: frames may be held and processed after a newer
 * HELLO. */
enum { BOOTS_SESSIONS = 8 };

/* Must be all zero before the first HELLO. */
struct boots {
	char id[VS_TEXT_MAX]; /* from the newest HELLO that has one, else "" */
	uint32_t current;
	size_t n_sessions; /* total number of HELLOs */
	struct boots_session {
		uint64_t id;
		uint32_t boot;
	} sessions[BOOTS_SESSIONS]; /* a ring */
};

/* Takes the HELLO of a session. Returns true if it begins another boot. An empty boot_id never
 * does. */
bool boots_hello(struct boots *b, uint64_t session_id, const char *boot_id);
/* Returns the boot of a session, or `otherwise` if its HELLO is unknown or forgotten. */
uint32_t boots_of(const struct boots *b, uint64_t session_id, uint32_t otherwise);

#endif
