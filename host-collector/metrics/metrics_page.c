/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/metrics/metrics_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/util/self_cost.h"
#include "host-collector/metrics/metrics_text.h"

enum { NAME_MAX_BYTES = 256 };
static const int64_t silent_after_ns = 1000000000;

struct label {
	char text[NAME_MAX_BYTES];
};

/* A page in the making. */
struct gathering {
	struct metrics_vm vms[MODEL_VMS_MAX];
	struct label labels[MODEL_VMS_MAX];
	struct metrics_source sources[2 * MODEL_VMS_MAX];
	struct metrics_vm_pair *pairs; /* of all parts */
	struct metrics_page page;
	uint64_t now_tsc;
};

/* A VM's name, made unique: the same series twice would spoil the whole page. */
static void label_make(struct gathering *g, size_t i, const char *name)
{
	char *text = g->labels[i].text;
	bool taken = !*name;

	for (size_t j = 0; j < i; j++)
		taken |= !strcmp(name, g->labels[j].text);
	if (taken)
		snprintf(text, NAME_MAX_BYTES, "%.200s#%zu", name, i + 1);
	else
		snprintf(text, NAME_MAX_BYTES, "%s", name);
}

/* The VMs of a part, of which page.vms from `first` on are. */
static int vms_gather(struct gathering *g, const struct metrics_part *part, size_t first)
{
	size_t n = first;
	int err = 0;

	while (!err && n < MODEL_VMS_MAX) {
		err = metrics_vm_get(part->metrics, n - first, &g->vms[n]);
		if (err)
			break;
		label_make(g, n, part->name ? part->name : g->vms[n].name);
		g->vms[n].name = g->labels[n].text;
		g->page.n_vms = ++n;
	}
	if (err)
		metrics_vm_fini(&g->vms[n]);
	return err == -ENOENT ? 0 : err;
}

static bool is_heard(const struct pipeline_source *s, const struct pipeline *p, uint64_t now_tsc)
{
	struct host_ns heard, now;

	if (!s->hello || s->channel_down || !now_tsc)
		return s->hello && !s->channel_down;
	return pipeline_host_ns(p, s->heard_tsc, &heard) && pipeline_host_ns(p, now_tsc, &now) &&
	       now.ns - heard.ns < silent_after_ns;
}

/* Sources of a part. The host's side belongs to its VM if it has only one. */
static void sources_gather(struct gathering *g, const struct metrics_part *part, size_t first)
{
	const struct pipeline *p = part->pipeline;
	struct pipeline_source s;

	for (size_t i = 0; g->page.n_sources < 2 * MODEL_VMS_MAX && !pipeline_source_get(p, i, &s);
	     i++) {
		struct metrics_source *to = &g->sources[g->page.n_sources++];
		size_t of = first;

		*to = (struct metrics_source){
			.host = s.source == VS_SOURCE_HOST,
			.up = is_heard(&s, p, g->now_tsc),
			.delivered = s.delivered,
			.lost = s.missing,
			.clock_known = s.delivered && s.clock_error_median_ns != UINT64_MAX,
			.clock_error_s = (double)s.clock_error_median_ns / 1e9,
		};
		if (to->host)
			of = g->page.n_vms - first == 1 ? first : g->page.n_vms;
		else
			while (of < g->page.n_vms && g->vms[of].vm != s.source)
				of++;
		to->vm = of < g->page.n_vms ? g->vms[of].name : "";
		/* A guest that no VM is known for yet has no name to go by. */
		if (!to->host && !*to->vm)
			g->page.n_sources--;
	}
}

static void pairs_gather(struct gathering *g, const struct metrics_part *part, size_t first)
{
	if (first == g->page.n_vms)
		return; /* no VM is known yet */
	for (size_t i = 0; i < part->n_pairs; i++)
		g->pairs[g->page.n_pairs++] =
			(struct metrics_vm_pair){g->vms[first].name, &part->pairs[i]};
}

static int gathering_init(struct gathering *g, const struct metrics_part *parts, size_t n)
{
	size_t n_pairs = 0;

	for (size_t i = 0; i < n; i++)
		n_pairs += parts[i].n_pairs;
	g->pairs = n_pairs ? calloc(n_pairs, sizeof(*g->pairs)) : NULL;
	g->page.vms = g->vms;
	g->page.sources = g->sources;
	g->page.pairs = g->pairs;
	return n_pairs && !g->pairs ? -ENOMEM : 0;
}

int metrics_page_write(const struct metrics_part *parts, size_t n, uint64_t now_tsc, FILE *to)
{
	struct gathering *g = calloc(1, sizeof(*g));
	struct self_cost cost;
	int err;

	if (!g)
		return -ENOMEM;
	err = gathering_init(g, parts, n);
	g->now_tsc = now_tsc;
	for (size_t i = 0; i < n && !err; i++) {
		size_t first = g->page.n_vms;

		err = vms_gather(g, &parts[i], first);
		if (!err) {
			sources_gather(g, &parts[i], first);
			pairs_gather(g, &parts[i], first);
		}
	}
	if (now_tsc) {
		self_cost_read(&cost);
		g->page.cpu_s = (double)cost.cpu_time_ns / 1e9;
		g->page.resident_bytes = cost.rss_bytes;
	}
	if (!err)
		err = metrics_write(&g->page, to);
	for (size_t i = 0; i < g->page.n_vms; i++)
		metrics_vm_fini(&g->vms[i]);
	free(g->pairs);
	free(g);
	return err;
}

int metrics_page_save(const struct metrics_part *parts, size_t n, uint64_t now_tsc,
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
		err = metrics_page_write(parts, n, now_tsc, to);
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
