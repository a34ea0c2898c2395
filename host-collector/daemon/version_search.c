/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/version_search.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/vm/vmm_version.h"

enum { KNOWN = 4 }; /* programs whose version is remembered; after an upgrade, two are in use */

struct known {
	struct vmm_program program;
	char version[64];
};

struct version_search {
	uv_loop_t *loop;
	uv_work_t work;
	const char *proc;
	bool busy, over;
	struct version_wanted *wanted; /* NULL: nobody waits for the result any more */
	/* Only the thread uses these while `busy`. */
	pid_t pid;
	struct known known[KNOWN];
	size_t next;
	char version[64];
};

static void program_read(struct version_search *s, int fd, const struct vmm_program *program)
{
	struct known *at = &s->known[s->next];

	for (size_t i = 0; i < KNOWN; i++) {
		if (!memcmp(&s->known[i].program, program, sizeof(*program))) {
			memcpy(s->version, s->known[i].version, sizeof(s->version));
			return;
		}
	}
	(void)vmm_version_read(fd, s->version, sizeof(s->version)); /* without one, it is "" */
	at->program = *program;
	memcpy(at->version, s->version, sizeof(at->version));
	s->next = (s->next + 1) % KNOWN;
}

static void on_thread(uv_work_t *work)
{
	struct version_search *s = work->data;
	struct vmm_program program;
	const int fd = vmm_program_open(s->proc, s->pid, &program);

	s->version[0] = '\0';
	if (fd < 0)
		return;
	program_read(s, fd, &program);
	close(fd);
}

static void on_over(uv_work_t *work, int status)
{
	struct version_search *s = work->data;

	s->busy = false;
	if (s->wanted && !status)
		memcpy(s->wanted->version, s->version, sizeof(s->version));
	s->wanted = NULL;
	if (s->over)
		free(s);
}

struct version_search *version_search_new(uv_loop_t *loop, const char *proc)
{
	struct version_search *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->loop = loop;
	s->proc = proc;
	s->work.data = s;
	return s;
}

void version_search_free(struct version_search *s)
{
	if (!s)
		return;
	s->wanted = NULL;
	s->over = true;
	if (s->busy)
		uv_cancel((uv_req_t *)&s->work); /* works if it has not begun */
	else
		free(s);
}

bool version_ask(struct version_search *s, struct version_wanted *w, pid_t pid)
{
	if (w->asked)
		return true;
	if (s->busy)
		return false;
	w->asked = true;
	s->pid = pid;
	s->busy = !uv_queue_work(s->loop, &s->work, on_thread, on_over);
	s->wanted = s->busy ? w : NULL;
	return true;
}

void version_forget(struct version_search *s, struct version_wanted *w)
{
	if (s->wanted == w)
		s->wanted = NULL;
	*w = (struct version_wanted){0};
}
