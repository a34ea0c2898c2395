/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `vcpuscope clock --pid`: shows the current clock parameters of a running VM, as the host's KVM
 * has them.
 */
#ifndef CLI_CLOCK_LIVE_H
#define CLI_CLOCK_LIVE_H

#include <stdio.h>
#include <sys/types.h>

/* Prints each parameter with its source. If the sources agree, prints each vCPU's clocks at one
 * instant. Returns COMMAND_OK, or COMMAND_TROUBLE if the sources disagree or, with a line on
 * stderr, if the parameters cannot be read. */
int clock_live_show(pid_t pid, FILE *out);

#endif
