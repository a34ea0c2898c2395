/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/metrics_export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock/sample.h"

enum { FILE_MS = 5000 };

/* Writes the page to a stream or, if that is NULL, to a file. */
static int page_make(const struct metrics_export *m, FILE *to, const char *path)
{
	struct metrics_part parts[DAEMON_VMS_MAX];
	struct metrics_host host;
	struct metrics_page_options options = {.now_tsc = clock_tsc_read(),
					       .vms = m->config->metrics_vm,
					       .sums = true,
					       .host = &host};
	const size_t n = flight_metrics(m->flight, parts, DAEMON_VMS_MAX, &options.past);

	records_host_get(m->records, &host);
	return to ? metrics_page_write(parts, n, &options, to)
		  : metrics_page_save(parts, n, &options, path);
}

static void on_request(void *context, const struct http_request *request,
		       struct http_answer *answer)
{
	FILE *to;
	int err;

	if (strcmp(request->path, "/metrics") != 0) {
		http_answer_plain(answer, 404, "the metrics are at /metrics\n");
		return;
	}
	to = open_memstream(&answer->text, &answer->bytes);
	err = to ? page_make(context, to, NULL) : -ENOMEM;
	if (to && fclose(to) && !err)
		err = -ENOMEM;
	if (!err) {
		answer->code = 200;
		answer->type = "text/plain; version=0.0.4; charset=utf-8";
		return;
	}
	free(answer->text);
	http_answer_plain(answer, 503, "out of memory\n");
}

int metrics_export_open(uv_loop_t *loop, struct metrics_export *m, char *why, size_t why_bytes)
{
	const struct http_options options = {.what = "metrics",
					     .address = m->config->metrics,
					     .answer = on_request,
					     .context = m};

	return *m->config->metrics ? http_server_open(loop, &options, &m->server, why, why_bytes)
				   : 0;
}

void metrics_export_close(struct metrics_export *m)
{
	http_server_close(m->server);
	m->server = NULL;
	/* Counters that no longer change would look like VMs that do nothing. */
	if (m->config && *m->config->metrics_file)
		unlink(m->config->metrics_file);
}

void metrics_export_tick(struct metrics_export *m, uint64_t now_ms)
{
	int err;

	http_server_tick(m->server);
	if (!*m->config->metrics_file || now_ms - m->file_ms < FILE_MS)
		return;
	m->file_ms = now_ms;
	err = page_make(m, NULL, m->config->metrics_file);
	if (err)
		m->say(m->context, "metrics_file", strerror(-err));
}
