/* SPDX-License-Identifier: GPL-2.0-only */
/* The kinds of events that a user can choose, and of their fields, and their limits. The wire
 * format contains the numbers: append new ones, never change one. */
#ifndef PROTO_USER_EVENT_KIND_H
#define PROTO_USER_EVENT_KIND_H

enum {
	VS_USER_EVENTS_MAX = 32, /* events that the user chose, per stream */
	VS_USER_FIELDS_MAX = 16,
	VS_USER_VALUES_MAX = 16, /* of all fields of an event */
	VS_USER_TEXT_MAX = 64,
	VS_USER_ID_MAX = 0xffff,
};

/* How an event that the user chose is captured. A newer peer may have other kinds. */
enum user_event_kind {
	USER_TRACEPOINT = 1,
	USER_KPROBE = 2,    /* entry of a function of the kernel */
	USER_KRETPROBE = 3, /* its return */
	USER_UPROBE = 4,    /* a function of a program or library */
	USER_USDT = 5,      /* a probe that a program or library defines */
	USER_URETPROBE = 6,
};

/* Bits of message_user_event.flags. */
enum user_event_flag {
	USER_UNTRACED = 1, /* hits of any task; otherwise of the VM's threads, or of the guest */
	/* It had too many hits: they are neither counted nor recorded any more. */
	USER_DETACHED = 2,
	USER_FAILED = 4, /* it could not be attached, or the guest's owner does not allow it */
	USER_HASHED = 8, /* values of USER_HEX fields are keyed hashes of the guest's pointers */
	/* The last field is the number of the hit's stack (VS_STACK_HIT); 0: none was taken. */
	USER_STACKS = 16,
};

enum user_field_type {
	USER_UNSIGNED = 1,
	USER_SIGNED = 2,
	USER_HEX = 3,  /* an address or a mask */
	USER_TEXT = 4, /* characters; ends at the first NUL */
};

#endif
