/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints every chain of a recording, as the tables of the report count them, one JSON object per
 * line: the chains that are joined to their handlers, and those that are called lost.
 *
 *   list_chains RUN.vcs
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/analyze/chain/chain.h"
#include "host-collector/engine/replay.h"

static void chain_print(const char *what, const struct chain *c)
{
	printf("{\"what\": \"%s\", \"vcpu\": %u, \"vector\": %u, \"source\": \"%s\", \"accept_ns\": %" PRId64
	       ", \"handler_ns\": %" PRId64 ", \"error_ns\": %" PRIu64 "}\n",
	       what, c->vcpu, c->vector, chain_source_name(c->source),
	       chain_saw(c, CHAIN_ACCEPT) ? c->at[CHAIN_ACCEPT].ns : 0,
	       chain_saw(c, CHAIN_HANDLER) ? c->at[CHAIN_HANDLER].ns : 0,
	       (uint64_t)c->host_err_ns + c->guest_err_ns);
}

static void on_closed(void *context, const struct chain *c)
{
	(void)context;
	if (chain_saw(c, CHAIN_HANDLER))
		chain_print("joined", c);
}

static void on_trouble(void *context, const struct chain_trouble *t)
{
	(void)context;
	if (t->kind == CHAIN_LOST)
		chain_print("lost", &t->chain);
}

int main(int argc, char **argv)
{
	const struct chain_options options = {.closed = on_closed, .trouble = on_trouble};
	struct pipeline_options pipeline_options = {.model = model_new()};
	struct model *m = pipeline_options.model;
	struct chains *x = m ? chains_new(m, &options) : NULL;
	struct pipeline *p = x ? pipeline_new(&pipeline_options) : NULL;
	struct recording_info info;
	char why[256] = "out of memory";
	int err = argc != 2 || !p || replay_run(p, argv[1], &info, why, sizeof(why));

	if (err)
		fprintf(stderr, "list_chains: %s\n",
			argc == 2 ? why : "usage: list_chains RUN.vcs");
	else
		chains_finish(x);
	pipeline_free(p);
	chains_free(x);
	model_free(m);
	return err;
}
