/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Notifies systemd of the daemon's state (Type=notify, WatchdogSec=) with the protocol of
 * sd_notify(3). Does nothing without NOTIFY_SOCKET in the environment.
 */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

/* Sends one datagram: "READY=1", "STOPPING=1", "RELOADING=1", "WATCHDOG=1" or "STATUS=..."; several
 * lines are separated by \n. */
void notify_send(const char *state);
/* Returns the interval at which to send WATCHDOG=1, in ms: half of systemd's timeout; 0: never. */
uint64_t notify_watchdog_ms(void);

#endif
