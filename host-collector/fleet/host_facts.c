/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/host_facts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum { SHA256_BYTES = 32, PATH_BYTES = 512 };

static void hex_write(const uint8_t *bytes, size_t n, char *out)
{
	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

void fleet_hash(const void *data, size_t bytes, char out[HOST_ID_BYTES])
{
	uint8_t digest[SHA256_BYTES] = {0};

	gnutls_hash_fast(GNUTLS_DIG_SHA256, data, bytes, digest);
	hex_write(digest, SHA256_BYTES / 2, out);
}

int fleet_file_hash(const char *path, char out[65], uint64_t *bytes)
{
	uint8_t buffer[65536], digest[SHA256_BYTES];
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	gnutls_hash_hd_t hash = NULL;
	ssize_t n = 0;
	int err = fd < 0 ? -errno : 0;

	*bytes = 0;
	if (!err && gnutls_hash_init(&hash, GNUTLS_DIG_SHA256))
		err = -ENOMEM;
	while (!err && (n = read(fd, buffer, sizeof(buffer))) > 0) {
		gnutls_hash(hash, buffer, (size_t)n);
		*bytes += (uint64_t)n;
	}
	if (!err && n < 0)
		err = -errno;
	if (hash)
		gnutls_hash_deinit(hash, digest);
	if (fd >= 0)
		close(fd);
	if (!err)
		hex_write(digest, SHA256_BYTES, out);
	return err;
}

/* The first line of a file; "" if there is none. */
static void line_read(const char *root, const char *file, char *out, size_t out_bytes)
{
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s%s", root, file);
	proc_file_line(path, out, out_bytes);
}

/* Hexadecimal digits of `text`, in lower case and without hyphens; false: not 32 of them. */
static bool id_take(const char *text, char out[HOST_ID_BYTES])
{
	size_t n = 0;

	for (; *text; text++) {
		if (*text == '-')
			continue;
		if (!isxdigit((unsigned char)*text) || n == HOST_ID_BYTES - 1)
			return false;
		out[n++] = (char)tolower((unsigned char)*text);
	}
	out[n] = 0;
	return n == HOST_ID_BYTES - 1;
}

static void cpu_read(const char *root, struct host_facts *out)
{
	char path[PATH_BYTES], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/cpuinfo", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && line[0] != '\n') {
		const char *value = strchr(line, ':');

		if (!value)
			continue;
		value += strspn(value, ": \t");
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "model name", 10))
			snprintf(out->cpu_model, sizeof(out->cpu_model), "%.64s", value);
		else if (!strncmp(line, "microcode", 9))
			snprintf(out->microcode, sizeof(out->microcode), "%.31s", value);
	}
	if (f)
		fclose(f);
}

void host_facts_read(const char *root, struct host_facts *out)
{
	char text[128];
	struct utsname u;

	memset(out, 0, sizeof(*out));
	if (!uname(&u)) {
		snprintf(out->name, sizeof(out->name), "%.64s", u.nodename);
		snprintf(out->kernel, sizeof(out->kernel), "%.64s", u.release);
	}
	line_read(root, "/etc/machine-id", text, sizeof(text));
	if (!id_take(text, out->id))
		fleet_hash(out->name, strlen(out->name), out->id);
	line_read(root, "/proc/sys/kernel/random/boot_id", text, sizeof(text));
	if (!id_take(text, out->boot_id))
		fleet_hash(text, strlen(text), out->boot_id);
	cpu_read(root, out);
}

int host_numa_node(const char *root, unsigned pcpu)
{
	char path[PATH_BYTES];
	struct dirent *entry;
	int node = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u", root, pcpu);
	dir = opendir(path);
	while (dir && node < 0 && (entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "node", 4) && isdigit((unsigned char)entry->d_name[4]))
			node = (int)strtol(entry->d_name + 4, NULL, 10);
	}
	if (dir)
		closedir(dir);
	return node;
}

uint64_t host_clock_error_ns(void)
{
	struct timex t = {0};

	if (adjtimex(&t) == TIME_ERROR || t.status & STA_UNSYNC)
		return UINT64_MAX;
	return (uint64_t)t.maxerror * 1000;
}
