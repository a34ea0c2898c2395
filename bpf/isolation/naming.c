/* SPDX-License-Identifier: GPL-2.0-only */
#include "bpf/isolation/naming.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bpf/isolation/confine.h"
#include "bpf/isolation/packet.h"

enum { FILES_MAX = 480 };

struct naming {
	int socket;
	struct naming_place *place;
	struct {
		struct naming_task head;
		uint8_t rest[NAMING_ADDRESSES_MAX * sizeof(uint64_t) + NAMING_DATA_MAX];
	} task;
	struct naming_modules modules;
	struct naming_frames frames;
};

/* On any error of the socket, the opener has ended or serves this process no more: exits. */
static void ask(struct naming *n, const void *bytes, size_t len)
{
	if (packet_send(n->socket, bytes, len, -1))
		_exit(NAMING_OVER);
}

static size_t answer(struct naming *n, void *bytes, size_t max, int *fd)
{
	long len = packet_receive(n->socket, bytes, max, fd);

	if (len < (long)sizeof(struct naming_head))
		_exit(NAMING_OVER);
	return (size_t)len;
}

const struct naming_module *naming_modules(struct naming *n, uint32_t *list, size_t *count)
{
	const struct naming_head get = {NAMING_GET_MODULES, *list};

	ask(n, &get, sizeof(get));
	answer(n, &n->modules, sizeof(n->modules), NULL);
	if (n->modules.head.kind != NAMING_MODULES || n->modules.n > NAMING_MODULES_MAX)
		_exit(NAMING_OVER);
	*list = n->modules.head.argument;
	*count = n->modules.n;
	return n->modules.of;
}

static int file_get(struct naming *n, const void *get, size_t bytes, struct file_id *id)
{
	struct naming_file file;
	int fd = -1;

	ask(n, get, bytes);
	if (answer(n, &file, sizeof(file), &fd) != sizeof(file) || file.head.kind != NAMING_FILE)
		_exit(NAMING_OVER);
	*id = file.id;
	if (fd >= 0)
		return fd;
	return file.head.argument ? -(int)file.head.argument : -EMFILE;
}

int naming_open(struct naming *n, size_t index, struct file_id *id)
{
	const struct naming_head get = {NAMING_GET_FILE, (uint32_t)index};

	naming_at(n, index);
	return file_get(n, &get, sizeof(get), id);
}

int naming_open_debug(struct naming *n, const uint8_t *build_id, size_t bytes, struct file_id *id)
{
	struct naming_build_id get = {.head = {NAMING_GET_DEBUG, (uint32_t)bytes}};

	if (bytes > sizeof(get.bytes))
		return -EINVAL;
	memcpy(get.bytes, build_id, bytes);
	return file_get(n, &get, sizeof(get), id);
}

void naming_at(struct naming *n, size_t index)
{
	atomic_store_explicit(&n->place->module, (uint32_t)index, memory_order_relaxed);
}

static void stack_serve(struct naming *n, const struct naming_body *body, void *state)
{
	const struct naming_task *head = &n->task.head;
	const struct naming_stack stack = {
		.pid = head->pid,
		.start_time = head->start_time,
		.n_addresses = head->n_addresses,
		.data_bytes = head->data_bytes,
		.addresses = (const uint64_t *)n->task.rest,
		.data = n->task.rest + head->n_addresses * sizeof(uint64_t),
	};
	size_t count;

	count = body->name(state, n, &stack, n->frames.of, VS_STACK_FRAMES_MAX);
	naming_at(n, NAMING_NO_MODULE);
	n->frames.head = (struct naming_head){NAMING_FRAMES, (uint32_t)count};
	ask(n, &n->frames, sizeof(n->frames.head) + count * sizeof(n->frames.of[0]));
}

static bool is_full(const struct naming_body *body)
{
	const struct mallinfo2 info = mallinfo2();

	return info.arena + info.hblkhd > body->memory_bytes;
}

int naming_serve(const struct naming_body *body, int socket, struct naming_place *place,
		 pid_t opener)
{
	const struct confinement limits = {.keep = socket + 1,
					   .memory_bytes = body->memory_bytes / 2 * 3,
					   .parent = opener,
					   .files = FILES_MAX};
	struct naming *n = calloc(1, sizeof(*n));
	void *state = body->begin();
	const char *step;

	if (!n || !state)
		return NAMING_FULL; /* `n` goes with the process. NOLINT(clang-analyzer-*) */
	n->socket = socket;
	n->place = place;
	if (confine(&limits, &step))
		return NAMING_UNCONFINED;
	for (;;) {
		size_t len = answer(n, &n->task, sizeof(n->task), NULL);
		const struct naming_task *t = &n->task.head;

		if (len < sizeof(*t) || t->head.kind != NAMING_TASK ||
		    t->n_addresses > NAMING_ADDRESSES_MAX || t->data_bytes > NAMING_DATA_MAX ||
		    len != sizeof(*t) + t->n_addresses * sizeof(uint64_t) + t->data_bytes)
			return NAMING_OVER;
		stack_serve(n, body, state);
		if (is_full(body))
			return NAMING_FULL;
	}
}
