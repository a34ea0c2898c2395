/* SPDX-License-Identifier: GPL-2.0-only */
/* The user of the VMM controls the command line. So texts are cut, and no file that it names is
 * opened. */
#include "host-collector/fleet/vm_disks.h"

#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/util/json_get.h"
#include "proto/proc_file.h"

enum {
	CMDLINE_MAX = 256 * 1024,
	MOUNTS_MAX = 256 * 1024,
	OPTION_MAX = 1024,
	DEPTH_MAX = 16,
};

#define COPY(to, from) snprintf(to, sizeof(to), "%s", from)

/* ---- file systems of the network ---- */

/* "nfs1:/export", "[fd00::1]:/export", "//server/share", "10.0.0.1:6789,10.0.0.2:6789:/": the
 * server. */
static void server_take(const char *source, char *out, size_t out_bytes)
{
	const char *end;

	if (!strncmp(source, "//", 2)) {
		source += 2;
		end = strchr(source, '/');
	} else {
		end = strstr(source, ":/");
	}
	if (end)
		snprintf(out, out_bytes, "%.*s", (int)(end - source), source);
}

/* mountinfo writes blanks and backslashes as \ooo. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
		    at[3] >= '0' && at[3] <= '7') {
			*to = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = 0;
}

/* The VMM's process. It may have its own mounts. They are read once, for the first file. */
struct vmm {
	const char *root;
	pid_t pid;
	bool mounts_read;
	char *mounts; /* lines, each with a final NUL */
	size_t mounts_bytes;
};

static void mounts_read(struct vmm *vmm)
{
	char path[512], *text = malloc(MOUNTS_MAX + 1);
	ssize_t n;

	snprintf(path, sizeof(path), "%s/proc/%d/mountinfo", vmm->root, vmm->pid);
	n = text ? proc_file_read(path, text, MOUNTS_MAX) : -1;
	vmm->mounts_read = true;
	vmm->mounts = text;
	vmm->mounts_bytes = n > 0 ? (size_t)n : 0;
	for (size_t i = 0; i < vmm->mounts_bytes; i++)
		text[i] = text[i] == '\n' ? 0 : text[i];
	if (text)
		text[vmm->mounts_bytes] = 0;
}

/* Finds the mount that contains a file of the VMM. Returns false if this is not a network file
 * system. */
static bool file_take(struct vmm *vmm, const char *file, struct storage *out)
{
	static const char *const types[] = {"nfs",  "nfs4",           "ceph",          "cifs",
					    "smb3", "fuse.glusterfs", "fuse.sshfs",    "9p",
					    "afs",  "lustre",         "fuse.ceph-fuse"};
	size_t longest = 0, len;
	bool network = false;

	if (!vmm->mounts_read)
		mounts_read(vmm);
	for (size_t at = 0; at < vmm->mounts_bytes; at += strlen(vmm->mounts + at) + 1) {
		const char *line = vmm->mounts + at, *rest = strstr(line, " - ");
		char mount[256], type[32], source[256];

		if (!rest || sscanf(line, "%*d %*d %*s %*s %255s", mount) != 1 ||
		    sscanf(rest, " - %31s %255s", type, source) != 2)
			continue;
		unescape(mount);
		len = strcmp(mount, "/") ? strlen(mount) : 0;
		if (len < longest || strncmp(file, mount, len) != 0 || file[len] != '/')
			continue;
		longest = len;
		network = false;
		for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++)
			network |= !strcmp(type, types[t]);
		if (!network)
			continue;
		unescape(source);
		*out = (struct storage){0};
		snprintf(out->driver, sizeof(out->driver), "%s",
			 !strcmp(type, "nfs4")        ? "nfs"
			 : !strncmp(type, "fuse.", 5) ? type + 5
						      : type);
		COPY(out->source, source);
		COPY(out->mount, mount);
		server_take(source, out->server, sizeof(out->server));
	}
	return network;
}

/* ---- -blockdev and -drive ---- */

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *value = json_get(o, key);

	return json_object_is_type(value, json_type_string) ||
			       json_object_is_type(value, json_type_int)
		       ? json_object_get_string(value)
		       : "";
}

/* The servers of a disk: one object, or an array of them. */
static void servers_take(struct json_object *o, char *out, size_t out_bytes)
{
	struct json_object *server;
	size_t len = 0;

	if (!json_object_object_get_ex(o, "server", &server))
		return;
	if (!json_object_is_type(server, json_type_array)) {
		const char *host = text_of(server, "host");

		snprintf(out, out_bytes, "%s", *host ? host : text_of(server, "path"));
		return;
	}
	for (size_t i = 0; i < json_object_array_length(server) && len < out_bytes; i++) {
		const char *host = text_of(json_object_array_get_idx(server, i), "host");

		if (*host)
			len += (size_t)snprintf(out + len, out_bytes - len, "%s%s", len ? "," : "",
						host);
	}
}

/* {"driver":"rbd","pool":..}; formats and filters contain it as "file". */
static bool node_take(struct vmm *vmm, struct json_object *o, struct storage *out)
{
	static const char *const network[] = {"rbd",     "iscsi", "nfs",   "nbd",
					      "gluster", "http",  "https", "ftp",
					      "ftps",    "ssh",   "curl",  "nvme-io_uring"};
	const char *driver = text_of(o, "driver"), *filename = text_of(o, "filename");
	struct json_object *inner;

	for (int depth = 0; depth < DEPTH_MAX && json_object_object_get_ex(o, "file", &inner) &&
			    json_object_is_type(inner, json_type_object);
	     depth++) {
		o = inner;
		driver = text_of(o, "driver");
		filename = text_of(o, "filename");
	}
	*out = (struct storage){0};
	if (!strcmp(driver, "file"))
		return *filename == '/' && file_take(vmm, filename, out);
	for (size_t i = 0; i < sizeof(network) / sizeof(network[0]); i++) {
		if (strcmp(driver, network[i]) != 0)
			continue;
		COPY(out->driver, driver);
		servers_take(o, out->server, sizeof(out->server));
		if (!out->server[0])
			COPY(out->server, text_of(o, "portal"));
		if (!out->server[0])
			COPY(out->server, text_of(o, "host"));
		COPY(out->pool, text_of(o, "pool"));
		if (!out->pool[0])
			COPY(out->pool, text_of(o, "volume"));
		COPY(out->source, text_of(o, "image"));
		if (!out->source[0])
			COPY(out->source, text_of(o, "target"));
		if (!out->source[0])
			COPY(out->source, text_of(o, "export"));
		if (!out->source[0])
			COPY(out->source, text_of(o, "path"));
		return true;
	}
	return false;
}

static bool blockdev_take(struct vmm *vmm, const char *value, struct storage *out)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *o = NULL;
	bool is = false;

	if (tokener)
		o = json_tokener_parse_ex(tokener, value, (int)strlen(value) + 1);
	if (o && json_object_is_type(o, json_type_object))
		is = node_take(vmm, o, out);
	json_object_put(o);
	if (tokener)
		json_tokener_free(tokener);
	return is;
}

/* The value of `key` in "a=b,key=value,.."; "" if there is none. A comma in a value is doubled. */
static void option_get(const char *options, const char *key, char out[OPTION_MAX])
{
	const size_t len = strlen(key);
	const char *at = options;

	out[0] = 0;
	while (at) {
		const bool is = !strncmp(at, key, len) && at[len] == '=';
		size_t n = 0;

		if (is)
			at += len + 1;
		while (*at && (*at != ',' || at[1] == ',')) {
			at += *at == ',';
			if (is && n + 1 < OPTION_MAX)
				out[n++] = *at;
			at++;
		}
		if (is) {
			out[n] = 0;
			return;
		}
		at = *at ? at + 1 : NULL;
	}
}

/* "rbd:pool/image[@snapshot][:option=value]..", "iscsi://[user@]portal/target/lun",
 * "nbd://host:port/export", "nbd:host:port", "nfs://server/path". */
static bool name_take(const char *name, struct storage *out)
{
	static const char *const schemes[] = {"iscsi", "nbd",  "nfs",  "gluster",
					      "ssh",   "http", "https"};
	size_t len;

	*out = (struct storage){0};
	if (!strncmp(name, "rbd:", 4)) {
		const char *hosts = strstr(name, "mon_host=");

		COPY(out->driver, "rbd");
		len = strcspn(name + 4, "/");
		snprintf(out->pool, sizeof(out->pool), "%.*s", (int)len, name + 4);
		if (name[4 + len] == '/')
			snprintf(out->source, sizeof(out->source), "%.*s",
				 (int)strcspn(name + 5 + len, ":@"), name + 5 + len);
		for (size_t n = 0; hosts && hosts[9 + n] && n + 1 < sizeof(out->server); n++) {
			/* Up to the next ":option="; "\:" belongs to an address, "\;" parts them.
			 */
			if (hosts[9 + n] == ':' && hosts[8 + n] != '\\')
				break;
			out->server[n] = hosts[9 + n];
		}
		return true;
	}
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		const char *at = name, *user;

		len = strlen(schemes[i]);
		if (strncmp(at, schemes[i], len) != 0 || (at[len] != ':' && at[len] != '+'))
			continue;
		COPY(out->driver, schemes[i]);
		at = strstr(at, "://");
		if (!at)
			return true;
		at += 3;
		len = strcspn(at, "/");
		user = memchr(at, '@', len); /* and perhaps a password */
		if (user) {
			len -= (size_t)(user + 1 - at);
			at = user + 1;
		}
		snprintf(out->server, sizeof(out->server), "%.*s", (int)len, at);
		if (at[len])
			snprintf(out->source, sizeof(out->source), "%.*s",
				 (int)strcspn(at + len + 1, "?"), at + len + 1);
		return true;
	}
	return false;
}

static bool drive_take(struct vmm *vmm, const char *value, struct storage *out)
{
	char name[OPTION_MAX];

	option_get(value, "file", name);
	if (!name[0])
		option_get(value, "filename", name);
	if (name_take(name, out))
		return true;
	return *name == '/' && file_take(vmm, name, out);
}

size_t vm_disks_read(const char *root, pid_t pid, struct storage out[VM_DISKS_MAX])
{
	struct vmm vmm = {.root = root, .pid = pid};
	char path[512], *text = malloc(CMDLINE_MAX + 1);
	size_t n = 0;
	ssize_t bytes;

	snprintf(path, sizeof(path), "%s/proc/%d/cmdline", root, pid);
	bytes = text && pid > 0 ? proc_file_read(path, text, CMDLINE_MAX) : -1;
	if (bytes > 0)
		text[bytes] = 0;
	for (ssize_t at = 0; at < bytes && n < VM_DISKS_MAX;) {
		const char *word = text + at, *value;
		bool is = false;

		at += (ssize_t)strlen(word) + 1;
		if (at >= bytes)
			break;
		value = text + at;
		word += *word == '-' && word[1] == '-';
		if (!strcmp(word, "-blockdev"))
			is = *value == '{' ? blockdev_take(&vmm, value, &out[n])
					   : drive_take(&vmm, value, &out[n]);
		else if (!strcmp(word, "-drive"))
			is = drive_take(&vmm, value, &out[n]);
		n += is;
	}
	free(vmm.mounts);
	free(text);
	return n;
}

bool vm_disks_common(const struct storage *disks, size_t n, struct storage *out)
{
	if (!n)
		return false;
	*out = disks[0];
	for (size_t i = 1; i < n; i++) {
		if (strcmp(disks[i].driver, out->driver) != 0 ||
		    strcmp(disks[i].server, out->server) != 0 ||
		    strcmp(disks[i].pool, out->pool) != 0)
			return false;
		if (strcmp(disks[i].source, out->source) != 0)
			out->source[0] = 0;
		if (strcmp(disks[i].mount, out->mount) != 0)
			out->mount[0] = 0;
	}
	return true;
}
