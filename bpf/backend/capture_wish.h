/* SPDX-License-Identifier: GPL-2.0-only */
/* capture_guest_set() by BPF: the programs' struct vs_guest_wish, changed while they run. */
#ifndef BACKEND_CAPTURE_WISH_H
#define BACKEND_CAPTURE_WISH_H

#include "bpf/backend/capture_bpf.h"
#include "bpf/prog/guest_wish.h"
#include "proto/message_config.h"

/* Finds the wish in the programs' globals, which are mapped. 0 or -EINVAL. */
int capture_wish_find(struct capture_bpf *c, struct bpf_object *object);
/* Once handlers of classes that were switched off have had time to end, their exits are no longer
 * captured either. To be called regularly. */
void capture_wish_settle(struct capture_bpf *c);
/* As in capture.h. */
uint32_t capture_wish_fields(const struct capture *base);
int capture_wish_set(struct capture *base, const struct message_config *config);
uint64_t capture_wish_stacks(const struct capture *base);

#endif
