/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The catalogue of frame kinds: one row per kind. The numbers are part of the format: never change
 * or reuse one.
 */
#ifndef PROTO_FRAME_KINDS_H
#define PROTO_FRAME_KINDS_H

#include <stdint.h>

struct message_layout;

/* Bits: the programs that may send a kind. A recording has the frames of the collector in source 0
 * and those of an agent in the source of its VM. */
enum frame_sender { FRAME_BY_AGENT = 1, FRAME_BY_COLLECTOR = 2, FRAME_BY_BOTH = 3 };

/* What the flight recorder's ring does with a frame that becomes too old. */
enum frame_keeping {
	FRAME_DROP = 0,
	FRAME_KEEP_NEWEST = 1, /* it stays until a newer one of its kind and source is too old */
	FRAME_KEEP_ALL = 2,    /* it stays while there is memory */
	/* Its sender says the same again after VS_REPEAT_S if it is still needed: it stays that
	 * much longer. */
	FRAME_KEEP_REPEATED = 3,
};

enum { VS_REPEAT_S = 30 };

/* X(number, NAME, message, senders, keeping). message: see message_fields.h. */
#define VS_FRAME_KINDS(X)                                                                          \
	X(1, HELLO, hello, BY_BOTH, KEEP_NEWEST)                                                   \
	X(2, BATCH, batch, BY_BOTH, DROP)                                                          \
	X(3, HEARTBEAT, heartbeat, BY_BOTH, DROP)                                                  \
	X(4, ECHO_REQUEST, echo_request, BY_COLLECTOR, DROP)                                       \
	X(5, ECHO_REPLY, echo_reply, BY_AGENT, DROP)                                               \
	X(6, CLOCK_SAMPLE, clock_sample, BY_BOTH, DROP)                                            \
	X(7, KERNEL_LOG, kernel_log, BY_BOTH, DROP)                                                \
	/* The id of its Stack is in the guest's TASK_STACK events. */                             \
	X(8, GUEST_STACK, stack, BY_AGENT, KEEP_ALL)                                               \
	X(9, CONFIG, config, BY_COLLECTOR, DROP) /* to the agent */                                \
	X(10, CONFIG_REPLY, config_reply, BY_AGENT, DROP)                                          \
	/* Each has all user events of the stream. Sent repeatedly, for readers that join late. */ \
	X(11, USER_EVENTS, user_events, BY_BOTH, KEEP_NEWEST)                                      \
	X(16, VM_INFO, vm_info, BY_COLLECTOR, KEEP_NEWEST)                                         \
	X(17, ECHO_OBSERVATION, echo_observation, BY_COLLECTOR, DROP)                              \
	X(18, STACK, stack, BY_COLLECTOR, KEEP_ALL)                                                \
	X(19, NOTE, note, BY_COLLECTOR, DROP)                                                      \
	X(20, RECORDING_END, recording_end, BY_COLLECTOR, DROP)                                    \
	X(21, VM_CLOCK, vm_clock, BY_COLLECTOR, KEEP_ALL)                                          \
	X(22, CPU_QUOTA, cpu_quota, BY_COLLECTOR, KEEP_NEWEST)                                     \
	X(23, EXIT_SUMMARY, exit_summary, BY_COLLECTOR, DROP)                                      \
	X(24, TASK_ORIGINS, task_origins, BY_COLLECTOR, KEEP_REPEATED)

/* X(message): the messages that have a struct message_<message>. Each has a layout
 * message_<message>_layout (message_fields.h) and functions message_<message>_pack() and _unpack().
 */
#define VS_MESSAGES(X)                                                                             \
	X(hello)                                                                                   \
	X(heartbeat)                                                                               \
	X(echo_request)                                                                            \
	X(echo_reply)                                                                              \
	X(clock_sample)                                                                            \
	X(kernel_log)                                                                              \
	X(stack)                                                                                   \
	X(config)                                                                                  \
	X(config_reply)                                                                            \
	X(user_events)                                                                             \
	X(vm_info)                                                                                 \
	X(echo_observation)                                                                        \
	X(note)                                                                                    \
	X(recording_end)                                                                           \
	X(vm_clock)                                                                                \
	X(cpu_quota)                                                                               \
	X(exit_summary)                                                                            \
	X(task_origins)

enum frame_kind {
#define X(number, NAME, ...) FRAME_##NAME = (number),
	VS_FRAME_KINDS(X)
#undef X
	/* One more than the largest. */
	FRAME_KIND_LIMIT
};

struct frame_kind_row {
	const struct message_layout *message; /* NULL: this version does not know the kind */
	uint8_t senders;                      /* bits of enum frame_sender */
	uint8_t keeping;                      /* enum frame_keeping */
};

/* Returns the row of a kind; of an unknown kind one that is all 0. */
const struct frame_kind_row *frame_kind_row(uint8_t kind);

/* Returns bits of enum frame_sender; 0 if this version does not know the kind. */
static inline unsigned int frame_kind_senders(uint8_t kind)
{
	return frame_kind_row(kind)->senders;
}

#endif
