/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/fleet/storage.h"

#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/proc_file.h"

enum { MINOR_BITS = 20, PATH_BYTES = 512, LINE_BYTES = 4096 };

/* Returns false if the first line is empty, or cannot be read. */
static bool line_read(const char *path, char *out, size_t out_bytes)
{
	return !proc_file_line(path, out, out_bytes) && out[0];
}

/* "vg0-web1" of /dev/mapper: group and volume, each with its hyphens doubled. */
static void volume_group_take(const char *name, char *out, size_t out_bytes)
{
	size_t n = 0;

	for (; *name && n + 1 < out_bytes; name++) {
		if (name[0] == '-' && name[1] != '-')
			break;
		if (name[0] == '-')
			name++;
		out[n++] = *name;
	}
	out[n] = 0;
}

static void mapper_take(const char *folder, struct storage *out)
{
	char path[PATH_BYTES + 16], uuid[160], name[128];

	snprintf(path, sizeof(path), "%s/dm/uuid", folder);
	if (!line_read(path, uuid, sizeof(uuid)))
		return;
	snprintf(path, sizeof(path), "%s/dm/name", folder);
	line_read(path, name, sizeof(name));
	snprintf(out->driver, sizeof(out->driver), "%s",
		 !strncmp(uuid, "LVM-", 4)     ? "lvm"
		 : !strncmp(uuid, "mpath-", 6) ? "multipath"
		 : !strncmp(uuid, "CRYPT-", 6) ? "crypt"
					       : "dm");
	if (!strcmp(out->driver, "lvm"))
		volume_group_take(name, out->pool, sizeof(out->pool));
	snprintf(out->source, sizeof(out->source), "/dev/mapper/%s", name);
}

/* The driver, from where the device is in the machine. */
static void driver_take(const char *target, const char *name, struct storage *out)
{
	static const struct {
		const char *part, *driver;
	} drivers[] = {{"/rbd", "rbd"},   {"/session", "iscsi"}, {"/nbd", "nbd"},
		       {"/nvme", "nvme"}, {"/virtio", "virtio"}, {"/loop", "loop"},
		       {"/zram", "zram"}, {"/md", "md"},         {"/drbd", "drbd"}};

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strstr(target, drivers[i].part)) {
			snprintf(out->driver, sizeof(out->driver), "%s", drivers[i].driver);
			break;
		}
	}
	if (!out->driver[0])
		snprintf(out->driver, sizeof(out->driver), "block");
	snprintf(out->source, sizeof(out->source), "/dev/%.200s", name);
}

/* rbd: the kernel shows pool and image. */
static void rbd_take(const char *root, const char *name, struct storage *out)
{
	char path[PATH_BYTES], image[100];

	if (strcmp(out->driver, "rbd") != 0)
		return;
	snprintf(path, sizeof(path), "%s/sys/bus/rbd/devices/%s/pool", root, name + 3);
	line_read(path, out->pool, sizeof(out->pool));
	snprintf(path, sizeof(path), "%s/sys/bus/rbd/devices/%s/name", root, name + 3);
	if (line_read(path, image, sizeof(image)))
		snprintf(out->source, sizeof(out->source), "%s", image);
}

/* The file system on the device: "36 35 98:0 /root /mnt opts - ext4 /dev/sda1 rw". */
static void mount_take(const char *root, struct storage *out)
{
	char path[PATH_BYTES], line[LINE_BYTES];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", root);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char device[16], mount[256];

		if (sscanf(line, "%*d %*d %15s %*s %255s", device, mount) == 2 &&
		    !strcmp(device, out->device)) {
			snprintf(out->mount, sizeof(out->mount), "%s", mount);
			break;
		}
	}
	if (f)
		fclose(f);
}

void storage_find(const char *root, uint32_t device, struct storage *out)
{
	char path[PATH_BYTES], target[PATH_MAX];
	const char *name;
	ssize_t len;

	memset(out, 0, sizeof(*out));
	snprintf(out->device, sizeof(out->device), "%u:%u", device >> MINOR_BITS,
		 device & ((1u << MINOR_BITS) - 1));
	snprintf(path, sizeof(path), "%s/sys/dev/block/%s", root, out->device);
	len = readlink(path, target, sizeof(target) - 1);
	if (len > 0) {
		target[len] = 0;
		name = strrchr(target, '/');
		driver_take(target, name ? name + 1 : target, out);
		rbd_take(root, name ? name + 1 : target, out);
		mapper_take(path, out);
	}
	mount_take(root, out);
}
