/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Removes data that identifies people and their work from the frames of a recording. Each name of a
 * task, VM or cgroup and each id of a boot is replaced by task-a, task-b and so on; equal names get
 * the same replacement. Other texts become empty, except those that contain nothing private:
 * versions, symbols of kernels and of QEMU. Values of events that the user chose, and fields that
 * this version does not know, are removed. Ids of processes, times and counts stay.
 */
#ifndef CLI_REDACT_H
#define CLI_REDACT_H

#include <stddef.h>
#include <stdint.h>

#include "proto/frame.h"

struct redactor;

struct redactor *redactor_new(void);    /* NULL if out of memory */
void redactor_free(struct redactor *r); /* NULL is allowed */

/* Makes the redacted copy of a frame, with its session and number; `out` is valid until the next
 * call. Returns 0, -ENODATA (nothing of it can be shown: malformed, or of a newer version),
 * -ENOMEM or an error of frame_write(). */
int redactor_frame(struct redactor *r, const struct frame_view *frame, struct frame_view *out);

/* Writes the name that replaces the name of a VM in the frames to `out`. Returns `out`. */
const char *redactor_vm(struct redactor *r, const char *name, char *out, size_t out_bytes);

#endif
