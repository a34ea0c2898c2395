/* SPDX-License-Identifier: GPL-2.0-only */
/* For a build without libmicrohttpd. */
#include "host-collector/daemon/http_server.h"

#include <errno.h>

int http_server_open(uv_loop_t *loop, const struct http_options *options, struct http_server **out,
		     char *why, size_t why_bytes)
{
	(void)loop;
	*out = NULL;
	snprintf(why, why_bytes,
		 "%s: this build has no libmicrohttpd and cannot serve %s: remove the key, or "
		 "build with -DVCPUSCOPE_METRICS=ON",
		 options->address, options->what);
	return -ENOTSUP;
}

void http_server_close(struct http_server *s)
{
	(void)s;
}

void http_server_tick(struct http_server *s)
{
	(void)s;
}

void http_answer_plain(struct http_answer *answer, unsigned code, const char *text)
{
	(void)text;
	answer->code = code;
}
