// SPDX-License-Identifier: GPL-2.0-only
/* Fuzzes the page of incidents. The lines of the input are the path, the Host, the Authorization
 * and the summary of the incident. The page returns only the report of a folder, only for a Host
 * that names this machine and with the token, and no text of the summary becomes markup. */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-collector/daemon/incident_page.h"

#define ONE   "incidents/web1-20261123T101500Z-vm_paused"
#define TOKEN "0123456789abcdef"

enum { FIELDS = 4 };

static char root[] = "/tmp/vcpuscope-fuzz-page-XXXXXX";
static const char report[] = "<html>a report</html>", secret[] = "the secret of another file";
static const struct {
	const char *path, *text; /* no text: a folder */
	const char *to;          /* a link */
} files[] = {
	{.path = "incidents"},
	{.path = ONE},
	{.path = ONE "/incident.json", .text = "{}"},
	{.path = ONE "/report.html", .text = report},
	{.path = ONE "/run.vcs", .text = secret},
	{.path = ONE ".part"},
	{.path = ONE ".part/report.html", .text = secret},
	{.path = "incidents/b-20261123T101501Z-x"},
	{.path = "incidents/b-20261123T101501Z-x/report.html", .to = "../../secret"},
	{.path = "incidents/c-20261123T101502Z-x", .to = ".."},
	{.path = "report.html", .text = secret},
	{.path = "secret", .text = secret},
};
enum { N_FILES = sizeof(files) / sizeof(files[0]) };

static void file_write(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	FUZZ_CHECK(f && fputs(text, f) >= 0 && !fclose(f));
}

static void files_remove(void)
{
	char path[160];

	for (size_t i = N_FILES; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", root, files[i].path);
		remove(path);
	}
	rmdir(root);
}

static void files_make(void)
{
	char path[160];

	FUZZ_CHECK(mkdtemp(root));
	atexit(files_remove);
	for (size_t i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", root, files[i].path);
		if (files[i].to)
			FUZZ_CHECK(!symlink(files[i].to, path));
		else if (files[i].text)
			file_write(path, files[i].text);
		else
			FUZZ_CHECK(!mkdir(path, 0700));
	}
}

static size_t count(const struct http_answer *a, char what)
{
	size_t n = 0;

	for (size_t i = 0; i < a->bytes; i++)
		n += a->text[i] == what;
	return n;
}

/* Answers with the right token, and checks that without it there is no answer. */
static void answer_get(struct incident_page *page, const struct http_request *request,
		       struct http_answer *answer)
{
	struct http_answer refused = {.fd = -1};

	page->token[0] = 0;
	*answer = (struct http_answer){.fd = -1};
	incident_page_answer(page, request, answer);
	snprintf(page->token, sizeof(page->token), TOKEN);
	incident_page_answer(page, request, &refused);
	if (refused.code == 200)
		FUZZ_CHECK(!strcasecmp(request->authorization, "Bearer " TOKEN) ||
			   !strncasecmp(request->authorization, "Basic ", 6));
	else
		FUZZ_CHECK(refused.fd < 0 && (refused.code == 401 || refused.code == answer->code));
	if (refused.fd >= 0)
		close(refused.fd);
	free(refused.text);
}

static void host_check(const char *host)
{
	static const char *const own[] = {"localhost", "127.0.0.1", "[::1]", "host1.example"};
	bool is = false;

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		const size_t len = strlen(own[i]);

		is |= !strncasecmp(host, own[i], len) && (!host[len] || host[len] == ':');
	}
	FUZZ_CHECK(is);
}

static void report_check(int fd)
{
	char text[64];
	const ssize_t n = read(fd, text, sizeof(text));

	FUZZ_CHECK(n == (ssize_t)strlen(report) && !memcmp(text, report, (size_t)n));
}

static void list_check(const struct http_answer *a)
{
	static size_t tags, quotes;

	FUZZ_CHECK(a->policy && strstr(a->policy, "default-src 'none'"));
	if (!tags) { /* the first summary is empty */
		tags = count(a, '<');
		quotes = count(a, '"');
	}
	FUZZ_CHECK(count(a, '<') == tags && count(a, '>') == tags && count(a, '"') == quotes);
	FUZZ_CHECK(!count(a, '\'') && !count(a, '\x1b') && !count(a, 0));
}

static void page_try(struct incident_page *page, const struct http_request *request)
{
	struct http_answer answer;

	answer_get(page, request, &answer);
	FUZZ_CHECK(answer.code == 200 || answer.code == 403 || answer.code == 404);
	if (answer.code == 200)
		host_check(request->host);
	if (answer.fd >= 0) {
		FUZZ_CHECK(answer.code == 200 && answer.policy);
		report_check(answer.fd);
		close(answer.fd);
	} else if (answer.code == 200 && !strcmp(request->path, "/")) {
		list_check(&answer);
	}
	free(answer.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct daemon_config config = {.page = "listen:unix:/x",
					      .page_hosts = "host1.example"};
	static struct incident_page page = {.config = &config};
	static char summary[160];
	const struct http_request list = {"/", "localhost", ""};
	char *text = malloc(len + 1), *fields[FIELDS], *rest = text;

	FUZZ_CHECK(text);
	if (len)
		memcpy(text, data, len);
	text[len] = 0;
	if (!config.directory[0]) {
		files_make();
		snprintf(config.directory, sizeof(config.directory), "%s", root);
		snprintf(summary, sizeof(summary), "%s/" ONE "/incident.json", root);
		page_try(&page, &list);
	}
	for (int i = 0; i < FIELDS; i++) {
		fields[i] = rest;
		rest += strcspn(rest, i < FIELDS - 1 ? "\n" : "");
		if (*rest)
			*rest++ = 0;
	}
	file_write(summary, fields[FIELDS - 1]);
	page_try(&page, &(struct http_request){fields[0], fields[1], fields[2]});
	page_try(&page, &list);
	free(text);
	return 0;
}
