/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns the kernel's counts of VM-exits into messages. Contains only the totals that changed since
 * the last message. */
#ifndef RECORD_EXIT_COUNTS_H
#define RECORD_EXIT_COUNTS_H

#include "bpf/capture/capture.h"
#include "proto/message.h"

struct exit_counts;

struct exit_counts *exit_counts_new(void); /* NULL on ENOMEM */
void exit_counts_free(struct exit_counts *x);
/* Adds a total of the vCPU with index `vcpu`, which exit->tid runs, if it changed. Ignores totals
 * beyond VS_EXIT_CELLS_MAX. */
void exit_counts_add(struct exit_counts *x, uint32_t vcpu, const struct capture_exit *exit);
/* Returns the changed totals that were added since the last call, and their number in *n. Borrowed
 * until the next exit_counts_add() or exit_counts_take(). */
const struct message_exit_cell *exit_counts_take(struct exit_counts *x, size_t *n);

#endif
