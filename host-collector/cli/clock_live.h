/* SPDX-License-Identifier: GPL-2.0-only */
/* vcpuscope clock --pid: a running VM's clock parameters, as its host's KVM has them now. */
#ifndef CLI_CLOCK_LIVE_H
#define CLI_CLOCK_LIVE_H

#include <stdio.h>
#include <sys/types.h>

/* Prints every parameter with its source, each vCPU's clocks at one instant, and whether the
 * sources agree. An enum command_status: COMMAND_TROUBLE if they do not, or with a line on stderr.
 */
int clock_live_show(pid_t pid, FILE *out);

#endif
