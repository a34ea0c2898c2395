/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpuscope-hook [--control PATH] [what libvirt tells its hooks]: `vcpuscope hook` with no library
 * but libc. Those of vcpuscope take 8 ms to load, and many times that where a domain's start keeps
 * all CPUs busy.
 */
#include <string.h>

#include "host-collector/libvirt/hook.h"
#include "host-collector/util/paths.h"

int main(int argc, char **argv)
{
	hook_tell(argc > 2 && !strcmp(argv[1], "--control") ? argv[2] : DAEMON_CONTROL_PATH);
	return 0;
}
