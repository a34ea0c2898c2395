/* SPDX-License-Identifier: GPL-2.0-only */
/* The classes of guest events. BPF programs include this header. The wire format contains the
 * numbers: never change one. */
#ifndef PROTO_MESSAGE_CONFIG_CLASSES_H
#define PROTO_MESSAGE_CONFIG_CLASSES_H

/* X(number, NAME, "name", what): classes of guest events that a host can request. */
#define VS_EVENT_CLASSES(X)                                                                        \
	X(0, SWITCHES, "switches", "task switches, ends and names; never off")                     \
	X(1, WAKEUPS, "wakeups", "wake-ups and migrations of tasks")                               \
	X(2, IRQS, "irqs", "handlers of devices' interrupts")                                      \
	X(3, SOFTIRQS, "softirqs", "softirqs")                                                     \
	X(4, VECTORS, "vectors", "the local timer, reschedule and function call interrupts")       \
	X(5, KERNEL_LOG, "kernel-log", "lines of the kernel's log")

enum event_class {
#define X(number, NAME, ...) EVENT_CLASS_##NAME = number,
	VS_EVENT_CLASSES(X)
#undef X
		EVENT_CLASSES
};
enum { EVENT_CLASSES_ALL = (1 << EVENT_CLASSES) - 1 };

#endif
