/* SPDX-License-Identifier: GPL-2.0-only */
/* What systemd is told (Type=notify, WatchdogSec=): sd_notify(3)'s protocol, one datagram each.
 * Without systemd (no NOTIFY_SOCKET) nothing happens. */
#ifndef DAEMON_NOTIFY_H
#define DAEMON_NOTIFY_H

#include <stdint.h>

/* "READY=1", "STOPPING=1", "RELOADING=1", "WATCHDOG=1", "STATUS=.."; lines may be joined by \n. */
void notify_send(const char *state);
/* How often WATCHDOG=1 is wanted, in ms (half of what systemd waits); 0: not at all. */
uint64_t notify_watchdog_ms(void);

#endif
