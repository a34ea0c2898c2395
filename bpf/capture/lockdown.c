// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/capture/lockdown.h"

#include <stdio.h>
#include <string.h>

bool lockdown_explains(const char *path, const char *complaint)
{
	char line[128] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return strstr(complaint, "unknown func bpf_probe_read") != NULL;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	return strstr(line, "[confidentiality]") != NULL;
}
