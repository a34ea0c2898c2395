/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which boot of a guest's kernel a session belongs to: each HELLO names the kernel's boot id
 * (/proc/sys/kernel/random/boot_id). A reboot, a reset, a panic and a kexec all end a boot: its
 * clocks, task ids, CPUs and log end with it. Boots are counted from 0.
 */
#ifndef TIMELINE_BOOTS_H
#define TIMELINE_BOOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/event.h"
#include "proto/message.h"

enum { BOOTS_SESSIONS = 8 }; /* whose HELLOs are remembered; held frames come behind them */

/* All zero: no HELLO yet. */
struct boots {
	char id[VS_TEXT_MAX]; /* of the newest HELLO that named one; "": none did */
	uint32_t current;
	size_t n_sessions; /* ever */
	struct boots_session {
		uint64_t id;
		uint32_t boot;
	} sessions[BOOTS_SESSIONS]; /* a ring */
};

/* A session's HELLO. True if another boot begins with it. */
bool boots_hello(struct boots *b, uint64_t session_id, const char *boot_id);
/* The boot of this session; `otherwise` if its HELLO is not known. */
uint32_t boots_of(const struct boots *b, uint64_t session_id, uint32_t otherwise);

#endif
