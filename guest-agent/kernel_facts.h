/* SPDX-License-Identifier: GPL-2.0-only */
/* Reads settings of this guest's kernel from /proc. */
#ifndef AGENT_KERNEL_FACTS_H
#define AGENT_KERNEL_FACTS_H

#include <stdint.h>

/* Returns after how many seconds the kernel calls a stall a soft lockup; 0: never. */
uint32_t kernel_watchdog_s(void);
/* Returns the number of ticks per second; 0 if it is not known. */
uint32_t kernel_tick_hz(void);

#endif
