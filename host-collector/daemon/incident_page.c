/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/daemon/incident_page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <inttypes.h>
#include <json.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host-collector/daemon/incident_jobs.h"
#include "host-collector/util/escape.h"
#include "host-collector/util/json_get.h"

enum {
	ENTRIES_MAX = 100000, /* entries of the folder that are read at most */
	NAME_BYTES = 192,
	SUMMARY_BYTES_MAX = 64 << 10,
	JSON_DEPTH_MAX = 8,
	OK = 200,
	UNAUTHORIZED = 401,
	FORBIDDEN = 403,
	NOT_FOUND = 404,
	UNAVAILABLE = 503,
};

static const char list_policy[] = "default-src 'none'; style-src 'self'; base-uri 'none'; "
				  "form-action 'none'; frame-ancestors 'none'";
/* The report's scripts run in an origin of their own and cannot load or send anything. */
static const char report_policy[] =
	"sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; "
	"script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
static const char style[] =
	"body{font:14px/1.4 sans-serif;margin:2em;color:#222;background:#fff}"
	"table{border-collapse:collapse}th,td{text-align:left;padding:.3em 1em .3em 0;"
	"border-bottom:1px solid #ddd;vertical-align:top}td.length{text-align:right}\n";

/* ---- authentication ---- */

/* The name of "NAME", "NAME:PORT", "[ADDRESS]:PORT"; returns its length. */
static size_t host_name(const char *host)
{
	const char *end = *host == '[' ? strchr(host, ']') : strchr(host, ':');

	if (*host == '[')
		return end ? (size_t)(end - host) + 1 : 0;
	return end ? (size_t)(end - host) : strlen(host);
}

static bool is_name(const char *host, size_t len, const char *name, size_t name_len)
{
	return len && len == name_len && !strncasecmp(host, name, len);
}

static bool host_allowed(const struct daemon_config *c, const char *host)
{
	static const char *const own[] = {"localhost", "127.0.0.1", "[::1]"};
	static const char tcp[] = "listen:tcp:";
	const size_t len = host_name(host);

	if (host[len] &&
	    (host[len] != ':' || strspn(host + len + 1, "0123456789") != strlen(host + len + 1)))
		return false;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (is_name(host, len, own[i], strlen(own[i])))
			return true;
	}
	if (!strncmp(c->page, tcp, sizeof(tcp) - 1)) {
		const char *name = c->page + sizeof(tcp) - 1;

		if (*name != '*' && is_name(host, len, name, host_name(name)))
			return true;
	}
	for (const char *at = c->page_hosts; *(at += strspn(at, ", \t"));
	     at += strcspn(at, ", \t")) {
		if (is_name(host, len, at, strcspn(at, ", \t")))
			return true;
	}
	return false;
}

static bool token_is(const struct incident_page *p, const char *text, size_t len)
{
	return len == strlen(p->token) && !gnutls_memcmp(text, p->token, len);
}

/* "Bearer TOKEN", or "Basic BASE64" of "ANY:TOKEN", which browsers send. */
static bool token_given(const struct incident_page *p, const char *authorization)
{
	static const char bearer[] = "Bearer ", basic[] = "Basic ";
	gnutls_datum_t in, out = {0};
	const char *colon;
	bool is = false;

	if (!strncasecmp(authorization, bearer, sizeof(bearer) - 1))
		return token_is(p, authorization + sizeof(bearer) - 1,
				strlen(authorization) - (sizeof(bearer) - 1));
	if (strncasecmp(authorization, basic, sizeof(basic) - 1) ||
	    strlen(authorization) > 4 * (size_t)PAGE_TOKEN_MAX)
		return false;
	in.data = (unsigned char *)(uintptr_t)(authorization + sizeof(basic) - 1);
	in.size = (unsigned)(strlen(authorization) - (sizeof(basic) - 1));
	if (!in.size || gnutls_base64_decode2(&in, &out) < 0)
		return false;
	colon = memchr(out.data, ':', out.size);
	if (colon)
		is = token_is(p, colon + 1,
			      out.size - (size_t)(colon + 1 - (const char *)out.data));
	gnutls_free(out.data);
	return is;
}

/* ---- the folders ---- */

struct folder {
	char name[NAME_BYTES];
	const char *stamp; /* in the name */
};

struct folders {
	struct folder all[PAGE_LISTED_MAX];
	struct folder *newest[PAGE_LISTED_MAX]; /* the newest first */
	size_t n, seen;
};

/* VM-YYYYMMDDTHHMMSSZ-WHAT: returns the stamp in a name. NULL: it is no such name, or that of a
 * folder whose reports are not made yet. */
static const char *stamp_of(const char *name)
{
	static const char form[] = "-00000000T000000Z-", unfinished[] = INCIDENT_UNFINISHED;
	const char *found = NULL;
	const size_t len = strlen(name);

	if (len >= NAME_BYTES || *name == '.' ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") !=
		    len)
		return NULL;
	if (len >= sizeof(unfinished) && !strcmp(name + len - (sizeof(unfinished) - 1), unfinished))
		return NULL;
	for (const char *at = strchr(name + !!*name, '-'); at; at = strchr(at + 1, '-')) {
		size_t i = 0;

		while (form[i] && at[i] &&
		       (form[i] == '0' ? at[i] >= '0' && at[i] <= '9' : at[i] == form[i]))
			i++;
		if (!form[i] && at[i])
			found = at + 1;
	}
	return found;
}

/* The newest first; of the same second in the order of their names. */
static bool is_before(const char *name, const char *stamp, const struct folder *other)
{
	const int order = strncmp(other->stamp, stamp, sizeof("YYYYMMDDTHHMMSSZ") - 1);

	return order ? order < 0 : strcmp(name, other->name) < 0;
}

/* Keeps only the newest, because the daemon waits while the page is made. */
static void folder_add(struct folders *f, const char *name, const char *stamp)
{
	struct folder *to;
	size_t at = f->n;

	f->seen++;
	while (at && is_before(name, stamp, f->newest[at - 1]))
		at--;
	if (at == PAGE_LISTED_MAX)
		return;
	to = f->n < PAGE_LISTED_MAX ? &f->all[f->n++] : f->newest[PAGE_LISTED_MAX - 1];
	memmove(&f->newest[at + 1], &f->newest[at], (f->n - 1 - at) * sizeof(f->newest[0]));
	memcpy(to->name, name, strlen(name) + 1); /* stamp_of() has checked the length */
	to->stamp = to->name + (stamp - name);
	f->newest[at] = to;
}

static int root_open(const struct daemon_config *c)
{
	char path[DAEMON_PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/incidents", c->directory);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A folder that does not exist counts as an empty one. */
static void folders_read(int root, struct folders *f)
{
	const int fd = root < 0 ? -1 : openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (int i = 0; i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
		const char *stamp = stamp_of(entry->d_name);

		if ((entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) && stamp)
			folder_add(f, entry->d_name, stamp);
	}
	closedir(dir);
}

/* Opens a regular file of a folder. Follows no links and does not wait. Returns a descriptor or
 * -errno.
 */
static int file_open(int root, const char *folder, const char *file)
{
	const int dir = openat(root, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int fd;

	if (dir < 0)
		return -errno;
	fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	close(dir);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		return -EACCES;
	}
	return fd < 0 ? -ENOENT : fd;
}

/* Reads incident.json. Returns an object that the caller owns, or NULL. */
static struct json_object *summary_read(int root, const char *folder)
{
	struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX);
	struct json_object *o = NULL;
	char *text = malloc(SUMMARY_BYTES_MAX);
	const int fd = file_open(root, folder, "incident.json");
	const ssize_t n = text && fd >= 0 ? read(fd, text, SUMMARY_BYTES_MAX) : -1;

	if (tokener && n > 0)
		o = json_tokener_parse_ex(tokener, text, (int)n);
	if (o && !json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		o = NULL;
	}
	if (fd >= 0)
		close(fd);
	if (tokener)
		json_tokener_free(tokener);
	free(text);
	return o;
}

/* ---- the list ---- */

static void html_write(const char *text, FILE *to)
{
	const struct escaped safe = escape(text);

	for (const char *c = safe.text; *c; c++) {
		if (strchr("&<>\"'", *c))
			fprintf(to, "&#%d;", *c);
		else
			fputc(*c, to);
	}
}

static void cell_write(const char *text, FILE *to)
{
	fputs("<td>", to);
	html_write(text, to);
	fputs("</td>", to);
}

/* Converts the stamp in a folder's name to a date for people. */
static void stamp_write(const char *s, FILE *to)
{
	fprintf(to, "<td>%.4s-%.2s-%.2s %.2s:%.2s:%.2s UTC</td>", s, s + 4, s + 6, s + 9, s + 11,
		s + 13);
}

static void row_write(int root, const struct folder *folder, FILE *to)
{
	const char *name = folder->name;
	struct json_object *summary = summary_read(root, name);
	const int report = file_open(root, name, "report.html");
	const char *cause = json_get_string(summary, "verdict");

	fputs("<tr>", to);
	stamp_write(folder->stamp, to);
	cell_write(json_get_string(summary, "vm"), to);
	cell_write(*cause ? cause : json_get_string(summary, "trigger"), to);
	cell_write(json_get_string(summary, "confidence"), to);
	fputs("<td class=\"length\">", to);
	if (json_get(summary, "duration_ns"))
		fprintf(to, "%.0f ms", (double)json_get_int(summary, "duration_ns") / 1e6);
	fputs("</td>", to);
	cell_write(json_get_string(summary, "because"), to);
	/* The name consists of characters that need no escape. */
	if (report >= 0)
		fprintf(to, "<td><a href=\"/incidents/%s/report.html\">report</a></td>", name);
	else
		fputs("<td>no report</td>", to);
	fputs("</tr>\n", to);
	if (report >= 0)
		close(report);
	json_object_put(summary);
}

static void list_write(int root, const struct folders *f, FILE *to)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	      "<title>vcpuscope: incidents</title>"
	      "<link rel=\"stylesheet\" href=\"/page.css\"></head><body>\n<h1>Incidents</h1>\n",
	      to);
	if (f->n < f->seen)
		fprintf(to, "<p>The newest %zu of %zu.</p>\n", f->n, f->seen);
	if (!f->n) {
		fputs("<p>There are none.</p>\n</body></html>\n", to);
		return;
	}
	fputs("<table><tr><th>when</th><th>VM</th><th>cause</th><th>confidence</th>"
	      "<th>length</th><th>why</th><th></th></tr>\n",
	      to);
	for (size_t i = 0; i < f->n; i++)
		row_write(root, f->newest[i], to);
	fputs("</table>\n</body></html>\n", to);
}

static void list_answer(const struct incident_page *p, struct http_answer *answer)
{
	const int root = root_open(p->config);
	struct folders *folders = calloc(1, sizeof(*folders));
	FILE *to = folders ? open_memstream(&answer->text, &answer->bytes) : NULL;

	if (to) {
		folders_read(root, folders);
		list_write(root, folders, to);
		if (!fclose(to)) {
			answer->code = OK;
			answer->type = "text/html; charset=utf-8";
			answer->policy = list_policy;
		}
	}
	if (answer->code != OK) {
		free(answer->text);
		http_answer_plain(answer, UNAVAILABLE, "out of memory\n");
	}
	if (root >= 0)
		close(root);
	free(folders);
}

/* ---- answers ---- */

/* Returns whether the path is that of a report; copies the folder's name. */
static bool report_path(const char *path, char name[NAME_BYTES])
{
	static const char before[] = "/incidents/", after[] = "/report.html";
	const size_t len = strlen(path), around = sizeof(before) + sizeof(after) - 2;

	if (len <= around || len - around >= NAME_BYTES ||
	    strncmp(path, before, sizeof(before) - 1) != 0 ||
	    strcmp(path + len - (sizeof(after) - 1), after) != 0)
		return false;
	snprintf(name, NAME_BYTES, "%.*s", (int)(len - around), path + sizeof(before) - 1);
	return stamp_of(name);
}

static void report_answer(const struct incident_page *p, const char *name,
			  struct http_answer *answer)
{
	const int root = root_open(p->config);
	const int fd = root < 0 ? -1 : file_open(root, name, "report.html");

	if (root >= 0)
		close(root);
	if (fd < 0) {
		http_answer_plain(answer, NOT_FOUND, "there is no such report\n");
		return;
	}
	answer->code = OK;
	answer->fd = fd;
	answer->type = "text/html; charset=utf-8";
	answer->policy = report_policy;
}

void incident_page_answer(const struct incident_page *p, const struct http_request *request,
			  struct http_answer *answer)
{
	char name[NAME_BYTES];

	if (!host_allowed(p->config, request->host)) {
		http_answer_plain(answer, FORBIDDEN,
				  "this host name is not in page_hosts of the configuration\n");
	} else if (*p->token && !token_given(p, request->authorization)) {
		http_answer_plain(answer, UNAUTHORIZED, "the token is missing or wrong\n");
		answer->authenticate = "Basic realm=\"vcpuscope: the password is the token\"";
	} else if (!strcmp(request->path, "/")) {
		list_answer(p, answer);
	} else if (!strcmp(request->path, "/page.css")) {
		http_answer_plain(answer, OK, style);
		answer->type = "text/css";
	} else if (report_path(request->path, name)) {
		report_answer(p, name, answer);
	} else {
		http_answer_plain(answer, NOT_FOUND, "the list of incidents is at /\n");
	}
}

/* ---- life ---- */

/* From a file that only its owner can read. */
static int token_read(const char *path, char token[PAGE_TOKEN_MAX + 1], char *why, size_t why_bytes)
{
	const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char text[PAGE_TOKEN_MAX + 3] = "";
	struct stat st;
	ssize_t n = -1;
	size_t len;

	if (fd < 0) {
		const int err = -errno;

		snprintf(why, why_bytes, "page_token: %s: %s", path, strerror(errno));
		return err;
	}
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && !(st.st_mode & 077))
		n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0) {
		snprintf(why, why_bytes,
			 "page_token: %s: other users can read it, or it is no file: chmod 600",
			 path);
		return -EACCES;
	}
	len = strcspn(text, "\r\n");
	text[len] = 0;
	if (len < PAGE_TOKEN_MIN || len > PAGE_TOKEN_MAX) {
		snprintf(why, why_bytes,
			 "page_token: %s: write %d to %d characters on one line "
			 "(openssl rand -hex 16)",
			 path, PAGE_TOKEN_MIN, PAGE_TOKEN_MAX);
		return -EINVAL;
	}
	memcpy(token, text, len + 1);
	return 0;
}

static void on_request(void *context, const struct http_request *request,
		       struct http_answer *answer)
{
	incident_page_answer(context, request, answer);
}

int incident_page_open(uv_loop_t *loop, const struct daemon_config *config,
		       struct incident_page *page, char *why, size_t why_bytes)
{
	const struct http_options options = {.what = "the page",
					     .address = config->page,
					     .is_private = true,
					     .answer = on_request,
					     .context = page};
	int err = 0;

	*page = (struct incident_page){.config = config};
	if (!*config->page)
		return 0;
	if (*config->page_token)
		err = token_read(config->page_token, page->token, why, why_bytes);
	return err ? err : http_server_open(loop, &options, &page->server, why, why_bytes);
}

void incident_page_close(struct incident_page *page)
{
	http_server_close(page->server);
	page->server = NULL;
}

void incident_page_tick(struct incident_page *page)
{
	http_server_tick(page->server);
}
