// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtio-serial ports. The port is found by its name in sysfs: an initramfs has no udev, so it has
 * no /dev/virtio-ports. The device stays open while hosts connect and disconnect.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "guest-agent/channel.h"
#include "proto/proc_file.h"

#define PORTS_FOLDER "/sys/class/virtio-ports"

static int port_parse(const char *rest, struct channel_address *address, char *why,
		      size_t why_bytes)
{
	if (!*rest || strlen(rest) >= sizeof(address->name)) {
		snprintf(why, why_bytes,
			 "port: needs the name given to the VM's virtserialport, or its /dev path");
		return -EINVAL;
	}
	strcpy(address->name, rest);
	return 0;
}

/* Returns true if the first line of a small file equals `name`. */
static bool file_says(const char *path, const char *name)
{
	char text[256];

	return !proc_file_line(path, text, sizeof(text)) && !strcmp(text, name);
}

/* -ENODEV: no such port (yet). */
static int port_find(const char *name, char *device, size_t device_bytes)
{
	struct dirent *entry;
	int err = -ENODEV;
	DIR *folder;

	if (name[0] == '/') {
		snprintf(device, device_bytes, "%s", name);
		return 0;
	}
	folder = opendir(PORTS_FOLDER);
	if (!folder)
		return -ENODEV;
	while (err && (entry = readdir(folder))) {
		char path[sizeof(PORTS_FOLDER) + sizeof(entry->d_name) + sizeof("//name")];

		snprintf(path, sizeof(path), PORTS_FOLDER "/%s/name", entry->d_name);
		if (entry->d_name[0] == '.' || !file_says(path, name))
			continue;
		snprintf(device, device_bytes, "/dev/%s", entry->d_name);
		err = 0;
	}
	closedir(folder);
	return err;
}

static int port_dial(struct channel_address *address)
{
	char device[512];
	int fd, err;

	err = port_find(address->name, device, sizeof(device));
	if (err)
		return err;
	fd = open(device, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	return fd < 0 ? -errno : fd;
}

static int port_probe(int fd)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

	if (poll(&poll_fd, 1, 0) < 0)
		return -errno;
	if (poll_fd.revents & (POLLERR | POLLNVAL))
		return -ENODEV; /* unplugged */
	return !(poll_fd.revents & POLLHUP);
}

const struct channel_carrier channel_carrier_port = {
	.prefix = "port:",
	.parse = port_parse,
	.dial = port_dial,
	.probe = port_probe,
	.keep_fd = true,
	.retry_min_ms = 100,
	.retry_max_ms = 100,
};
