/* SPDX-License-Identifier: GPL-2.0-only */
#include "tests/e2e/storms/slow_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NODE = 2, REQUEST_BYTES = 1 << 17, WRITE_BYTES = 1 << 16, PAGE = 4096 };

static struct {
	char folder[32];
	int fd;
	uint8_t *data;
	size_t bytes;
	long read_us;
	bool direct;
	pthread_t thread;
} files = {.fd = -1};

static void answer(uint64_t unique, int error, const void *data, size_t bytes)
{
	struct fuse_out_header header = {.len = (uint32_t)(sizeof(header) + (error ? 0 : bytes)),
					 .error = error,
					 .unique = unique};
	const struct iovec parts[] = {{&header, sizeof(header)}, {(void *)(uintptr_t)data, bytes}};

	(void)!writev(files.fd, parts, error || !bytes ? 1 : 2);
}

static struct fuse_attr attributes(uint64_t node)
{
	return (struct fuse_attr){.ino = node,
				  .size = node == NODE ? files.bytes : 0,
				  .mode = node == NODE ? S_IFREG | 0644 : S_IFDIR | 0555,
				  .nlink = 1,
				  .blksize = PAGE};
}

/* How much of `bytes` at `offset` the file has. */
static size_t within(uint64_t offset, size_t bytes)
{
	size_t left = offset < files.bytes ? files.bytes - offset : 0;

	return bytes < left ? bytes : left;
}

static void read_slowly(const struct fuse_in_header *in, const struct fuse_read_in *wanted)
{
	const struct timespec t = {files.read_us / 1000000, files.read_us % 1000000 * 1000};
	size_t bytes = within(wanted->offset, wanted->size);

	nanosleep(&t, NULL);
	answer(in->unique, 0, files.data + wanted->offset, bytes);
}

static void write_at_once(const struct fuse_in_header *in, const struct fuse_write_in *wanted)
{
	const struct fuse_write_out out = {.size = (uint32_t)within(wanted->offset, wanted->size)};

	memcpy(files.data + wanted->offset, wanted + 1, out.size);
	answer(in->unique, 0, &out, sizeof(out));
}

static void serve_one(const struct fuse_in_header *in)
{
	const void *argument = in + 1;

	switch (in->opcode) {
	case FUSE_INIT: {
		const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
						  .minor = 31,
						  .max_readahead = PAGE,
						  .max_background = 16,
						  .max_write = WRITE_BYTES,
						  .time_gran = 1};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_LOOKUP: {
		const struct fuse_entry_out out = {.nodeid = NODE,
						   .entry_valid = 60,
						   .attr_valid = 60,
						   .attr = attributes(NODE)};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_GETATTR: {
		const struct fuse_attr_out out = {.attr_valid = 60, .attr = attributes(in->nodeid)};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_OPEN: {
		/* What was written must not be read back from the page cache. */
		const struct fuse_open_out out = {.fh = 1,
						  .open_flags = files.direct ? FOPEN_DIRECT_IO : 0};

		answer(in->unique, 0, &out, sizeof(out));
		break;
	}
	case FUSE_READ:
		read_slowly(in, argument);
		break;
	case FUSE_WRITE:
		write_at_once(in, argument);
		break;
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_RELEASE:
		answer(in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* want no answer */
	default:
		answer(in->unique, -ENOSYS, NULL, 0);
	}
}

static void *serve(void *unused)
{
	static uint8_t request[REQUEST_BYTES] __attribute__((aligned(8)));

	prctl(PR_SET_NAME, "slow-disk");
	for (;;) {
		ssize_t n = read(files.fd, request, sizeof(request));

		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			return unused;
		serve_one((const struct fuse_in_header *)request);
	}
}

int slow_file_open(size_t bytes, long read_us, bool writable)
{
	char options[96], path[64];

	files.data = calloc(1, bytes);
	if (!files.data)
		return -1;
	files.bytes = bytes;
	files.read_us = read_us;
	files.direct = writable;
	snprintf(files.folder, sizeof(files.folder), "/tmp/slow-file.XXXXXX");
	files.fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (files.fd < 0 || !mkdtemp(files.folder))
		return -1;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", files.fd);
	if (mount("slow-file", files.folder, "fuse", MS_NOSUID | MS_NODEV, options) ||
	    pthread_create(&files.thread, NULL, serve, NULL)) {
		rmdir(files.folder);
		return -1;
	}
	snprintf(path, sizeof(path), "%s/file", files.folder);
	return open(path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC);
}

void slow_file_close(void)
{
	umount2(files.folder, MNT_DETACH);
	pthread_join(files.thread, NULL);
	close(files.fd);
	rmdir(files.folder);
	free(files.data);
}
