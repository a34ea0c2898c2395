/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/bad_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int bad_files_create(void)
{
	int fd = memfd_create("bad-files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int err;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, sizeof(struct bad_files)) &&
	    !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

struct bad_files *bad_files_map(int fd)
{
	void *memory =
		mmap(NULL, sizeof(struct bad_files), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void bad_files_unmap(struct bad_files *b)
{
	if (b)
		munmap(b, sizeof(*b));
}

static size_t kept(uint32_t ever, size_t max)
{
	return ever < max ? ever : max;
}

static struct bad_owner *owner_find(struct bad_files *b, uid_t owner)
{
	for (size_t i = 0; i < kept(b->n_owners, BAD_OWNERS_MAX); i++) {
		if (b->owners[i].uid == owner)
			return &b->owners[i];
	}
	return NULL;
}

void bad_files_add(struct bad_files *b, const struct file_id *id, uid_t owner)
{
	struct bad_owner *o;

	b->files[b->n++ % BAD_FILES_MAX] = *id;
	if (!owner)
		return;
	o = owner_find(b, owner);
	if (!o) {
		o = &b->owners[b->n_owners++ % BAD_OWNERS_MAX];
		*o = (struct bad_owner){.uid = owner};
	}
	o->files++;
}

/* No file has such a size. */
enum { UNOPENED_BYTES = 1, PROCESS_BYTES = 2 };

struct file_id bad_files_unopened(uint64_t device, uint64_t inode)
{
	return (struct file_id){
		.device = device, .inode = inode, .size_bytes = UINT64_MAX - UNOPENED_BYTES};
}

struct file_id bad_files_process(pid_t pid, uint64_t start_time)
{
	return (struct file_id){.inode = (uint64_t)pid,
				.mtime_ns = start_time,
				.size_bytes = UINT64_MAX - PROCESS_BYTES};
}

bool bad_files_has(const struct bad_files *b, const struct file_id *id, uid_t owner)
{
	const struct bad_owner *o = owner ? owner_find((struct bad_files *)b, owner) : NULL;
	const size_t enough = id->size_bytes == UINT64_MAX - PROCESS_BYTES ? 2 : 1;
	size_t times = 0;

	if (o && o->files >= BAD_OWNER_FILES)
		return true;
	for (size_t i = 0; i < kept(b->n, BAD_FILES_MAX); i++)
		times += !memcmp(&b->files[i], id, sizeof(*id));
	return times >= enough;
}

void bad_files_blame(struct bad_files *b)
{
	if (b->current.inode)
		bad_files_add(b, &b->current, 0);
	b->current = (struct file_id){0};
}
