/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/cli/metrics_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/record/self_cost.h"
#include "host-collector/view/metrics.h"

enum { NAME_MAX_BYTES = 256 };
static const int64_t silent_after_ns = 1000000000;

struct label {
	char text[NAME_MAX_BYTES];
};

/* A VM's name, made unique: the same series twice would spoil the whole page. */
static void label_make(struct label *labels, size_t i, const struct metrics_vm *vm)
{
	snprintf(labels[i].text, NAME_MAX_BYTES, "%s", vm->name);
	for (size_t j = 0; j < i || !*labels[i].text; j++) {
		if (*labels[i].text && strcmp(labels[i].text, labels[j].text))
			continue;
		snprintf(labels[i].text, NAME_MAX_BYTES, "%.200s#%u", vm->name, vm->vm);
		break;
	}
}

static void source_fill(struct metrics_source *out, const struct pipeline_source *s,
			const struct metrics_page *page, const struct pipeline *p, uint64_t now_tsc)
{
	struct host_ns heard, now;

	out->host = s->source == VS_SOURCE_HOST;
	out->vm = s->name;
	for (size_t i = 0; i < page->n_vms; i++) {
		if (page->vms[i].vm == s->source)
			out->vm = page->vms[i].name;
	}
	out->up = s->hello && !s->channel_down;
	if (now_tsc && out->up &&
	    !(pipeline_host_ns(p, s->heard_tsc, &heard) && pipeline_host_ns(p, now_tsc, &now) &&
	      now.ns - heard.ns < silent_after_ns))
		out->up = false;
	out->delivered = s->delivered;
	out->lost = s->missing;
	out->clock_known = s->clock_error_median_ns != UINT64_MAX && s->delivered;
	out->clock_error_s = (double)s->clock_error_median_ns / 1e9;
}

int metrics_page_write(const struct metrics *x, const struct pipeline *p, uint64_t now_tsc,
		       FILE *to)
{
	struct metrics_vm *vms = calloc(MODEL_VMS_MAX, sizeof(*vms));
	struct label *labels = calloc(MODEL_VMS_MAX, sizeof(*labels));
	struct metrics_source *sources = calloc(MODEL_VMS_MAX + 1, sizeof(*sources));
	struct metrics_page page = {.vms = vms, .sources = sources};
	struct pipeline_source s;
	struct self_cost cost;
	int err = vms && labels && sources ? 0 : -ENOMEM;

	while (!err && page.n_vms < MODEL_VMS_MAX) {
		err = metrics_vm_get(x, page.n_vms, &vms[page.n_vms]);
		if (err)
			break;
		label_make(labels, page.n_vms, &vms[page.n_vms]);
		vms[page.n_vms].name = labels[page.n_vms].text;
		page.n_vms++;
	}
	if (err == -ENOENT)
		err = 0;
	for (size_t i = 0; !err && i <= MODEL_VMS_MAX && !pipeline_source_get(p, i, &s); i++)
		source_fill(&sources[page.n_sources++], &s, &page, p, now_tsc);
	if (now_tsc) {
		self_cost_read(&cost);
		page.cpu_s = (double)cost.cpu_time_ns / 1e9;
		page.resident_bytes = cost.rss_bytes;
	}
	if (!err)
		err = metrics_write(&page, to);
	for (size_t i = 0; vms && i < MODEL_VMS_MAX; i++)
		metrics_vm_fini(&vms[i]);
	free(vms);
	free(labels);
	free(sources);
	return err;
}

int metrics_page_save(const struct metrics *x, const struct pipeline *p, uint64_t now_tsc,
		      const char *path)
{
	size_t len = strlen(path) + sizeof(".XXXXXX");
	char *partial = malloc(len);
	FILE *to = NULL;
	int fd = -1, err = 0;

	if (!partial)
		return -ENOMEM;
	snprintf(partial, len, "%s.XXXXXX", path);
	fd = mkstemp(partial);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	to = fdopen(fd, "w");
	if (!to)
		err = -errno;
	/* The reader is another user; there is nothing secret in it. */
	if (!err && fchmod(fd, 0644))
		err = -errno;
	if (!err)
		err = metrics_page_write(x, p, now_tsc, to);
	if (to ? fclose(to) : close(fd)) {
		if (!err)
			err = -errno;
	}
	if (!err && rename(partial, path))
		err = -errno;
	if (err)
		unlink(partial);
out:
	free(partial);
	return err;
}
