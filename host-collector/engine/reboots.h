/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reboots of one guest: when one boot's last word came and when the next one's agent was heard
 * first, and what QEMU (QMP RESET, GUEST_PANICKED) or the guest's log said of the reason.
 */
#ifndef ENGINE_REBOOTS_H
#define ENGINE_REBOOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/types.h"
#include "proto/message.h"

enum { REBOOTS_KEPT = 64, REBOOT_WHY_MAX = 256 };

struct reboot {
	uint32_t boot;        /* that began; the first one heard of is 0 and no reboot */
	struct host_ns after; /* the last word of the boot before */
	struct host_ns until; /* the first of this one */
	bool reset_known;
	struct host_ns reset;     /* by QEMU's word: when this boot began */
	char why[REBOOT_WHY_MAX]; /* what QEMU and the guest's log say; "": nothing */
};

/* All zero: none. */
struct stream_reboots {
	size_t n; /* ever; the first REBOOTS_KEPT are kept */
	struct reboot kept[REBOOTS_KEPT];
	bool due; /* the model has not heard of the newest */
	struct host_ns due_at;
	uint64_t reset_tsc; /* of QEMU's newest word since the newest boot was heard of; 0 none */
	char reset[VS_TEXT_MAX], panic[VS_TEXT_MAX];
};

/* QEMU says that it reset the VM. */
bool note_is_reset(const struct message_note *m);
/* What QEMU says of the VM (NOTE_VM_EVENT). */
void reboots_note(struct stream_reboots *r, const struct message_note *m);

#endif
