/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/metrics/metrics_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/metrics/metrics_text.h"
#include "proto/self_cost.h"

enum { NAME_MAX_BYTES = 256, VMS_MAX = 2 * MODEL_VMS_MAX };
static const int64_t silent_after_ns = 1000000000;

struct label {
	char text[NAME_MAX_BYTES];
};

/* A page in the making. */
struct gathering {
	struct metrics_vm vms[VMS_MAX];
	struct label labels[VMS_MAX];
	struct metrics_source sources[2 * VMS_MAX];
	struct metrics_vm_pair *pairs; /* of all parts */
	struct metrics_page page;
	struct metrics_sum sum;
	const struct metrics_page_options *options;
};

static int sum_add(struct metrics_sum *to, const struct metrics_sum *from)
{
	to->vms += from->vms;
	to->agents += from->agents;
	to->agents_up += from->agents_up;
	for (int side = 0; side < 2; side++) {
		to->events[side] += from->events[side];
		to->lost[side] += from->lost[side];
	}
	return metrics_vm_add(&to->vm, &from->vm);
}

void metrics_sum_fini(struct metrics_sum *sum)
{
	metrics_vm_fini(&sum->vm);
	*sum = (struct metrics_sum){0};
}

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

	while (!err && n < VMS_MAX) {
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

/* Adds the VMs and sources of a part. now_tsc: as in metrics_page_options. */
static int part_add(struct metrics_sum *to, const struct metrics_part *part, uint64_t now_tsc)
{
	struct metrics_vm vm;
	struct pipeline_source s;
	int err = 0;

	for (size_t i = 0; !err; i++) {
		err = metrics_vm_get(part->metrics, i, &vm);
		if (!err)
			err = metrics_vm_add(&to->vm, &vm);
		metrics_vm_fini(&vm);
		to->vms += !err;
	}
	for (size_t i = 0; !pipeline_source_get(part->pipeline, i, &s); i++) {
		const bool host = s.source == VS_SOURCE_HOST;

		to->events[host] += s.delivered;
		to->lost[host] += s.missing;
		to->agents += !host;
		to->agents_up += !host && is_heard(&s, part->pipeline, now_tsc);
	}
	return err == -ENOENT ? 0 : err;
}

int metrics_past_add(struct metrics_sum *past, const struct metrics_part *part)
{
	const int err = part_add(past, part, 0);

	past->vms = past->agents = past->agents_up = 0;
	past->vm.vcpus = 0;
	return err;
}

/* Sources of a part. The host's side belongs to its VM if it has only one. */
static void sources_gather(struct gathering *g, const struct metrics_part *part, size_t first)
{
	const struct pipeline *p = part->pipeline;
	struct pipeline_source s;

	for (size_t i = 0; g->page.n_sources < 2 * VMS_MAX && !pipeline_source_get(p, i, &s); i++) {
		struct metrics_source *to = &g->sources[g->page.n_sources++];
		size_t of = first;

		*to = (struct metrics_source){
			.host = s.source == VS_SOURCE_HOST,
			.up = is_heard(&s, p, g->options->now_tsc),
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

static int part_gather(struct gathering *g, const struct metrics_part *part)
{
	size_t first = g->page.n_vms;
	int err = 0;

	if (g->options->vms) {
		err = vms_gather(g, part, first);
		if (!err) {
			sources_gather(g, part, first);
			pairs_gather(g, part, first);
		}
	}
	if (!err && g->options->sums)
		err = part_add(&g->sum, part, g->options->now_tsc);
	return err;
}

int metrics_page_write(const struct metrics_part *parts, size_t n,
		       const struct metrics_page_options *options, FILE *to)
{
	struct gathering *g = calloc(1, sizeof(*g));
	struct self_cost cost;
	int err;

	if (!g)
		return -ENOMEM;
	err = gathering_init(g, parts, n);
	g->options = options;
	if (options->sums) {
		g->page.sum = &g->sum;
		g->page.host = options->host;
		if (!err && options->past)
			err = sum_add(&g->sum, options->past);
	}
	for (size_t i = 0; i < n && !err; i++)
		err = part_gather(g, &parts[i]);
	if (options->now_tsc) {
		self_cost_read(&cost);
		g->page.cpu_s = (double)cost.cpu_time_ns / 1e9;
		g->page.resident_bytes = cost.rss_bytes;
	}
	if (!err)
		err = metrics_write(&g->page, to);
	for (size_t i = 0; i < g->page.n_vms; i++)
		metrics_vm_fini(&g->vms[i]);
	free(g->pairs);
	metrics_sum_fini(&g->sum);
	free(g);
	return err;
}

int metrics_page_save(const struct metrics_part *parts, size_t n,
		      const struct metrics_page_options *options, const char *path)
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
		err = metrics_page_write(parts, n, options, to);
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
