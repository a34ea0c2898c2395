/* SPDX-License-Identifier: GPL-2.0-only */
/* What message.c and message_host.c share: parsing into an arena, packing, bounded texts. */
#ifndef PROTO_MESSAGE_WIRE_H
#define PROTO_MESSAGE_WIRE_H

#include "proto/arena.h"
#include "proto/buffer.h"
#include "proto/message.h"
#include "wire.pb-c.h"

#define WIRE(name) Vcpuscope__Wire__##name

/* Parses `payload` into `a`, which this initialises. 0 or as arena_unpack or -ENOMEM. Whatever it
 * returns, arena_fini(a) afterwards. */
int wire_unpack(struct arena *a, const ProtobufCMessageDescriptor *type, const uint8_t *payload,
		size_t len, void *message);
/* The parts of a pvclock line and back; false if they mean nothing. */
void wire_pvclock_fill(WIRE(VmClockPvclock) * w, const struct message_vm_clock_pvclock *m);
bool wire_pvclock_read(const WIRE(VmClockPvclock) * w, struct message_vm_clock_pvclock *m);
/* Appends the packed message. 0 or -ENOMEM. */
int wire_pack(const ProtobufCMessage *message, struct byte_buffer *out);

#endif
