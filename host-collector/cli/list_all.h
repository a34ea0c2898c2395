/* SPDX-License-Identifier: GPL-2.0-only */
/* `vcpuscope list --all`: lists all VMs of this machine, and which of them the daemon watches. */
#ifndef CLI_LIST_ALL_H
#define CLI_LIST_ALL_H

/* Writes the list to standard output. control: the daemon's socket; NULL: the default socket, where
 * no daemon needs to answer. format: "text" or "json". Returns enum command_exit. */
int list_all(const char *control, const char *format);

#endif
