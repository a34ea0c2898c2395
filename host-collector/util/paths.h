/* SPDX-License-Identifier: GPL-2.0-only */
/* Paths of the daemon's files, for the daemon and for the programs that connect to it. */
#ifndef UTIL_PATHS_H
#define UTIL_PATHS_H

#define DAEMON_CONFIG_PATH  "/etc/vcpuscope/vcpuscope.conf"
#define DAEMON_CONTROL_PATH "/run/vcpuscope/control.sock"

#endif
