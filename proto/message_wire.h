/* SPDX-License-Identifier: GPL-2.0-only */
/* Helpers that the files message*.c share: parsing into an arena, packing, kvmclock lines. */
#ifndef PROTO_MESSAGE_WIRE_H
#define PROTO_MESSAGE_WIRE_H

#include "proto/arena.h"
#include "proto/buffer.h"
#include "proto/message.h"
#include "wire.pb-c.h"

#define WIRE(name) Vcpuscope__Wire__##name

/* Initialises `a` and parses `payload` into it. Returns 0 or an error of arena_unpack(). Call
 * arena_fini(a) afterwards, also after an error. */
int wire_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		size_t len, void *message);
/* Convert a kvmclock line to the wire and back. wire_pvclock_read() returns false if the values
 * are invalid. */
void wire_pvclock_fill(WIRE(VmClockPvclock) * w, const struct message_vm_clock_pvclock *m);
bool wire_pvclock_read(const WIRE(VmClockPvclock) * w, struct message_vm_clock_pvclock *m);
/* Appends the packed message to `out`. Returns 0 or -ENOMEM. */
int wire_pack(const ProtobufCMessage *message, struct byte_buffer *out);

#endif
