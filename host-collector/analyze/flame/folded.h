/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A set of weighted stacks, what flame graphs are drawn from: equal stacks are one, their weights
 * added up. It is bounded: what does not fit any more is kept in FOLDED_OVERFLOW, so that the total
 * stays true. Text that a guest chose is made safe when it comes in.
 *
 * Cost of an addition: one hash lookup per frame and one per stack.
 */
#ifndef FLAME_FOLDED_H
#define FLAME_FOLDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FOLDED_STACKS_MAX = 1 << 18,
	FOLDED_FRAMES_MAX = 1 << 17, /* different ones */
	FOLDED_DEPTH_MAX = 640,      /* a guest's and a host's stack, a waker's, and what we add */
	FOLDED_NAME_MAX = 256,       /* with the final NUL; longer names are cut */
};

enum folded_kind {
	FOLDED_TASK = 1, /* a thread's name, the root of most stacks; also a waker or a VM */
	FOLDED_GUEST_USER,
	FOLDED_GUEST_KERNEL,
	FOLDED_HOST_USER,
	FOLDED_HOST_KERNEL,
	FOLDED_ANNOTATION, /* what we say: `running`, `[vCPU runnable: pCPU held by X]` */
	FOLDED_SEPARATOR,  /* `--` between a target's stack and its waker's */
	FOLDED_LATER,      /* a guest's stack that is not told yet (flame_frames.c); never drawn */
};

struct folded_frame {
	const char *name;
	enum folded_kind kind;
	bool waker; /* of the stack of who ended the wait */
};

struct folded_stack {
	uint64_t weight_ns;
	size_t n_frames;
	/* Root first. Of one set, frames are equal if and only if their addresses are. */
	const struct folded_frame *const *frames;
};

/* The one frame of the stack that takes what the set has no room for. */
#define FOLDED_OVERFLOW "[too many stacks]"
/* Stands at the end of a stack deeper than FOLDED_DEPTH_MAX. */
#define FOLDED_CUT "[cut]"

struct folded;

/* NULL on ENOMEM. */
struct folded *folded_new(void);
void folded_free(struct folded *f);
/*
 * Adds a weight to a stack of at least one frame, root first. Names are copied: a semicolon becomes
 * a colon, characters that do more than show are spelled out (util/escape.h), and a name never ends
 * in a blank and a number, which readers of folded text take for a weight. 0, -EINVAL (no frame),
 * -ENOMEM.
 */
int folded_add(struct folded *f, const struct folded_frame *frames, size_t n, uint64_t weight_ns);
/* How many different stacks there are. */
size_t folded_count(const struct folded *f);
/* Number `index` in the order of their names, frame by frame from the root (bytes compared), NULL
 * past the last. Valid until the next folded_add. */
const struct folded_stack *folded_at(struct folded *f, size_t index);
/* The sum of all weights, and what of it is in FOLDED_OVERFLOW. */
uint64_t folded_total_ns(const struct folded *f);
uint64_t folded_overflow_ns(const struct folded *f);

#endif
