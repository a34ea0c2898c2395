/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope list --all`: every VM of this machine, whoever runs it, and which of them the daemon
 * watches. */
#ifndef CLI_LIST_ALL_H
#define CLI_LIST_ALL_H

/* control: the daemon's socket, NULL: the default, where nobody needs to answer. format: "text" or
 * "json". An exit code. */
int list_all(const char *control, const char *format);

#endif
