/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpuscope-hook [--control PATH] [arguments of libvirt's hooks]: does the same as `vcpuscope
 * hook`, but needs only libc. Loading the libraries of vcpuscope takes 8 ms, and much longer while
 * the start of a domain uses all CPUs.
 */
#include <string.h>

#include "host-collector/libvirt/hook.h"
#include "host-collector/util/paths.h"

int main(int argc, char **argv)
{
	hook_tell(argc > 2 && !strcmp(argv[1], "--control") ? argv[2] : DAEMON_CONTROL_PATH);
	return 0;
}
