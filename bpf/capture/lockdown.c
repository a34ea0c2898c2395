// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/capture/lockdown.h"

#include <errno.h>
#include <string.h>

#include "proto/proc_file.h"

bool lockdown_explains(const char *path, const char *complaint)
{
	char line[128];
	const int err = proc_file_line(path, line, sizeof(line));

	if (err && err != -ENODATA)
		return strstr(complaint, "unknown func bpf_probe_read") != NULL;
	return strstr(line, "[confidentiality]") != NULL;
}
