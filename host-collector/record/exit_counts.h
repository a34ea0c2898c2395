/* SPDX-License-Identifier: GPL-2.0-only */
/* What the kernel counted of VM-exits, as messages: those totals that changed since the last. */
#ifndef RECORD_EXIT_COUNTS_H
#define RECORD_EXIT_COUNTS_H

#include "bpf/capture/capture.h"
#include "proto/message.h"

struct exit_counts;

struct exit_counts *exit_counts_new(void); /* NULL on ENOMEM */
void exit_counts_free(struct exit_counts *x);
/* A total; `vcpu` is the index of the vCPU that exit->tid runs. What is beyond VS_EXIT_CELLS_MAX is
 * left out. */
void exit_counts_add(struct exit_counts *x, uint32_t vcpu, const struct capture_exit *exit);
/* What was added since the last call and had changed. Borrowed until the next call of either. */
const struct message_exit_cell *exit_counts_take(struct exit_counts *x, size_t *n);

#endif
