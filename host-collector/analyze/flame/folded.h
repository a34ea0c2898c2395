/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A set of weighted stacks, from which flame graphs are drawn. The weights of equal stacks are
 * added up. The set is bounded: further stacks are counted in FOLDED_OVERFLOW, so that the total
 * stays correct. Names that a guest chose are escaped when they are added.
 *
 * An addition costs one hash lookup for each frame and one for the stack.
 */
#ifndef FLAME_FOLDED_H
#define FLAME_FOLDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	FOLDED_STACKS_MAX = 1 << 18,
	FOLDED_FRAMES_MAX = 1 << 17, /* distinct frames */
	/* Frames of a guest's, a host's and a waker's stack, and annotations. */
	FOLDED_DEPTH_MAX = 640,
	FOLDED_NAME_MAX = 256, /* including the NUL; longer names are cut */
};

enum folded_kind {
	FOLDED_TASK = 1, /* name of a thread, the root of most stacks; also a waker or a VM */
	FOLDED_GUEST_USER,
	FOLDED_GUEST_KERNEL,
	FOLDED_HOST_USER,
	FOLDED_HOST_KERNEL,
	FOLDED_ANNOTATION, /* text of vcpuscope: `running`, `[vCPU runnable: pCPU held by X]` */
	FOLDED_SEPARATOR,  /* `--` between a stack and its waker's stack */
	FOLDED_LATER, /* a guest stack whose names have not arrived (flame_frames.c); never drawn */
};

struct folded_frame {
	const char *name;
	enum folded_kind kind;
	bool waker; /* belongs to the waker's stack */
};

struct folded_stack {
	uint64_t weight_ns;
	size_t n_frames;
	/* Root first. Within a set, two frames are equal if and only if their addresses are. */
	const struct folded_frame *const *frames;
};

/* The only frame of the stack that counts all stacks for which the set has no room. */
#define FOLDED_OVERFLOW "[too many stacks]"
/* Last frame of a stack deeper than FOLDED_DEPTH_MAX. */
#define FOLDED_CUT "[cut]"

struct folded;

/* Allocates an empty set. Returns NULL on ENOMEM. */
struct folded *folded_new(void);
void folded_free(struct folded *f);
/*
 * Adds a weight to a stack of at least one frame, root first. Copies the names: a semicolon becomes
 * a colon, and unsafe characters are escaped (util/escape.h). A name never ends in a blank and a
 * number, which readers of folded text would take as a weight. Returns 0, -EINVAL (no frame) or
 * -ENOMEM.
 */
int folded_add(struct folded *f, const struct folded_frame *frames, size_t n, uint64_t weight_ns);
/* Returns the stack that the last folded_add() added to; NULL if that failed, or if the stack is
 * not kept by itself. Valid as long as `f`. */
struct kept_stack *folded_newest(const struct folded *f);
/* Adds a weight to a stack that folded_newest() returned. Its frames need not be built again. */
void folded_add_again(struct folded *f, struct kept_stack *stack, uint64_t weight_ns);
/* Returns the number of distinct stacks. */
size_t folded_count(const struct folded *f);
/* Returns stack number `index`, sorted by the names of the frames from the root (compared as
 * bytes); NULL past the last. Valid until the next folded_add(). */
const struct folded_stack *folded_at(struct folded *f, size_t index);
/* Returns the sum of all weights. */
uint64_t folded_total_ns(const struct folded *f);

#endif
