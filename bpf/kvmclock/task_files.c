/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/kvmclock/task_files.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>

enum { RECORD_BYTES_MAX = 256 };

static int iterator_open(struct bpf_program *program, pid_t pid, struct bpf_link **link)
{
	union bpf_iter_link_info info = {.task.pid = (__u32)pid};
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &info,
		    .link_info_len = sizeof(info));
	int fd, error;

	*link = pid ? bpf_program__attach_iter(program, &options) : NULL;
	if (!*link) /* before 6.1: through everybody's files, which the program filters */
		*link = bpf_program__attach_iter(program, NULL);
	if (!*link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(*link));
	if (fd >= 0)
		return fd;
	error = -errno;
	bpf_link__destroy(*link);
	return error;
}

static int records_read(int fd, size_t bytes, int (*record)(void *context, const void *data),
			void *context)
{
	uint64_t data[RECORD_BYTES_MAX / sizeof(uint64_t)];
	size_t have = 0;
	int error = 0;

	while (!error) {
		ssize_t n = read(fd, (char *)data + have, bytes - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return have ? -EIO : 0;
		have += (size_t)n;
		if (have < bytes)
			continue;
		have = 0;
		error = record(context, data);
	}
	return error;
}

int task_files_read(struct bpf_program *program, pid_t pid, size_t bytes,
		    int (*record)(void *context, const void *data), void *context)
{
	struct bpf_link *link;
	int fd, error;

	if (!bytes || bytes > RECORD_BYTES_MAX)
		return -EINVAL;
	fd = iterator_open(program, pid, &link);
	if (fd < 0)
		return fd;
	error = records_read(fd, bytes, record, context);
	close(fd);
	bpf_link__destroy(link);
	return error;
}
