/* SPDX-License-Identifier: GPL-2.0-only */
/* Implements capture_guest_set() for BPF: changes the struct vs_guest_request of the running
 * programs. */
#ifndef BACKEND_CAPTURE_REQUEST_H
#define BACKEND_CAPTURE_REQUEST_H

#include "bpf/backend/capture_bpf.h"
#include "bpf/prog/guest_request.h"
#include "proto/message_config.h"

/* Finds the variable `request` in the mapped globals of the programs. Returns 0 or -EINVAL. */
int capture_request_find(struct capture_bpf *c, struct bpf_object *object);
/* Disables the exit events of a class one second after the class was disabled. So a handler that
 * ran when the class was disabled still gets its exit event. Each drain calls this function. */
void capture_request_settle(struct capture_bpf *c);
/* Implement the functions of capture.h: capture_guest_fields(), capture_guest_set() and
 * capture_guest_stacks_taken(). */
uint32_t capture_request_fields(const struct capture *base);
int capture_request_set(struct capture *base, const struct message_config *config);
uint64_t capture_request_stacks(const struct capture *base);

#endif
