/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The reboots of one guest: when the last event of one boot happened, when the first frame of the
 * next boot arrived, and the reason that QEMU (QMP RESET, GUEST_PANICKED) or the guest's log gives.
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
	uint32_t boot; /* the boot that began; 0 is the first known boot, which is no reboot */
	struct host_ns after; /* time of the last event of the previous boot */
	struct host_ns until; /* arrival of the first frame of this boot */
	bool reset_known;
	struct host_ns reset;     /* time at which QEMU reset the VM */
	char why[REBOOT_WHY_MAX]; /* reasons from QEMU and the guest's log; "": unknown */
};

/* Must be all zero at first. */
struct stream_reboots {
	size_t n; /* total number; the first REBOOTS_KEPT are kept */
	struct reboot kept[REBOOTS_KEPT];
	bool due; /* the model was not yet notified of the newest reboot */
	struct host_ns due_at;
	/* Host TSC of QEMU's newest reset since the newest boot began; 0: none. */
	uint64_t reset_tsc;
	char reset[VS_TEXT_MAX], panic[VS_TEXT_MAX];
};

/* Returns true if the note says that QEMU reset the VM. */
bool note_is_reset(const struct message_note *m);
/* Takes a note of QEMU about the VM (NOTE_VM_EVENT). */
void reboots_note(struct stream_reboots *r, const struct message_note *m);

#endif
