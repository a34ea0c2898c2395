/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/libvirt/domains.h"

#include <dirent.h>
#include <errno.h>
#include <json.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/libvirt/domain_xml.h"

/* Returns what to do about libvirt's latest error; "" if that is not known. */
static const char *remedy(const virError *error)
{
	static const struct {
		int code;
		const char *part; /* of libvirt's text; "": any */
		const char *remedy;
	} rows[] = {
		/* libvirt cannot plug a controller. */
		{VIR_ERR_INTERNAL_ERROR, "no virtio-serial controller",
		 "; `vcpuscope attach` adds one to the definition, for the domain's next start"},
		{VIR_ERR_SYSTEM_ERROR, "unable to stat",
		 "; start `vcpuscope daemon`, or name the daemon's socket with --socket"},
		{VIR_ERR_OPERATION_DENIED, "", "; only root or a user of libvirt's group may"},
		{VIR_ERR_AUTH_FAILED, "", "; only root or a user of libvirt's group may"},
		{VIR_ERR_ACCESS_DENIED, "", "; only root or a user of libvirt's group may"},
		{VIR_ERR_OPERATION_TIMEOUT, "", "; libvirt is busy with the domain: try again"},
	};

	for (size_t i = 0; error && error->message && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].code == error->code && strstr(error->message, rows[i].part))
			return rows[i].remedy;
	}
	return "";
}

/* Any other call of libvirt's forgets it: first of all after a failure. */
static void error_take(char *out, size_t out_bytes)
{
	const virError *error = virGetLastError();

	snprintf(out, out_bytes, "%s%s", error && error->message ? error->message : "unknown error",
		 remedy(error));
}

/* ---- its process ---- */

/* Is PID a process whose command line names the domain's UUID? */
static bool process_is(long pid, const char *uuid)
{
	char path[64], line[16384];
	size_t n, len = strlen(uuid);
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	for (size_t i = 0; i + len <= n; i++) {
		if (!memcmp(line + i, uuid, len))
			return true;
	}
	return false;
}

static long pid_from_file(const char *name, const char *uuid)
{
	static const char *const folders[] = {"/run/libvirt/qemu", "/var/run/libvirt/qemu"};
	long pid = 0;

	for (size_t i = 0; i < 2 && !pid; i++) {
		char path[512];
		FILE *f;

		if (snprintf(path, sizeof(path), "%s/%s.pid", folders[i], name) >=
		    (int)sizeof(path))
			continue;
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%ld", &pid) != 1 || pid <= 0 || !process_is(pid, uuid))
			pid = 0;
		fclose(f);
	}
	return pid;
}

static long pid_from_proc(const char *uuid)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	long found = 0;

	while (proc && !found && (entry = readdir(proc))) {
		char path[300], comm[32] = "";
		long pid = strtol(entry->d_name, NULL, 10);
		FILE *f;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fgets(comm, sizeof(comm), f) && !strncmp(comm, "qemu", 4) &&
		    process_is(pid, uuid))
			found = pid;
		fclose(f);
	}
	if (proc)
		closedir(proc);
	return found;
}

/* ---- all together ---- */

static void settings_read(virDomainPtr domain, struct json_object *out)
{
	char *text = virDomainGetMetadata(domain, VIR_DOMAIN_METADATA_ELEMENT, DOMAIN_METADATA_URI,
					  VIR_DOMAIN_AFFECT_CURRENT);

	if (text)
		domain_xml_settings(text, out);
	free(text);
}

struct json_object *domain_describe(virDomainPtr domain)
{
	char uuid[VIR_UUID_STRING_BUFLEN], *text = virDomainGetXMLDesc(domain, 0);
	const char *name = virDomainGetName(domain);
	struct json_object *out;
	long pid;

	if (!text || !name || virDomainGetUUIDString(domain, uuid)) {
		free(text);
		return NULL;
	}
	pid = pid_from_file(name, uuid);
	if (!pid)
		pid = pid_from_proc(uuid);
	out = json_object_new_object();
	json_object_object_add(out, "name", json_object_new_string(name));
	json_object_object_add(out, "uuid", json_object_new_string(uuid));
	json_object_object_add(out, "pid", json_object_new_int64(pid));
	domain_xml_channel(text, out);
	domain_xml_owner(text, out);
	settings_read(domain, out);
	free(text);
	return out;
}

/* ---- the channel's device ---- */

static unsigned int affected(virDomainPtr domain)
{
	unsigned int flags = 0;

	if (virDomainIsActive(domain) > 0)
		flags |= VIR_DOMAIN_AFFECT_LIVE;
	if (virDomainIsPersistent(domain) > 0)
		flags |= VIR_DOMAIN_AFFECT_CONFIG;
	return flags;
}

/* Returns the channel's element in the XML of the running machine, or in that of its definition.
 * Returns NULL if it has no channel. The caller frees it with free(). */
static char *channel_xml(virDomainPtr domain, bool live)
{
	char *text = virDomainGetXMLDesc(domain, live ? 0 : VIR_DOMAIN_XML_INACTIVE);
	char *out = text ? domain_xml_channel_element(text) : NULL;

	free(text);
	return out;
}

/* Brings the running machine (VIR_DOMAIN_AFFECT_LIVE) or the definition (.._CONFIG) to where it has
 * the channel, or, with xml NULL, has none. Returns 1 if it was so already, 0 or -1. */
static int half_change(virDomainPtr domain, const char *xml, unsigned int half)
{
	char *there = channel_xml(domain, half == VIR_DOMAIN_AFFECT_LIVE);
	int err = 1;

	if (!there == !!xml)
		err = xml ? virDomainAttachDeviceFlags(domain, xml, half)
			  : virDomainDetachDeviceFlags(domain, there, half);
	free(there);
	return err;
}

/* The running machine and the definition, one at a time: one may be as wanted already. xml: of the
 * channel to attach; NULL: detach what there is. */
static int channel_change(virDomainPtr domain, const char *xml, char *why, size_t why_bytes)
{
	const char *name = virDomainGetName(domain);
	const unsigned int flags = affected(domain);
	int live = 1, config = 1;
	char error[512] = "";

	if (flags & VIR_DOMAIN_AFFECT_LIVE)
		live = half_change(domain, xml, VIR_DOMAIN_AFFECT_LIVE);
	if (live < 0)
		error_take(error, sizeof(error));
	if (flags & VIR_DOMAIN_AFFECT_CONFIG && (live >= 0 || xml)) {
		config = half_change(domain, xml, VIR_DOMAIN_AFFECT_CONFIG);
		if (config < 0)
			error_take(error, sizeof(error));
		else if (live < 0)
			snprintf(error + strlen(error), sizeof(error) - strlen(error),
				 "; the definition has the channel now: shut the domain down and "
				 "start it again");
	}
	if (live < 0 || config < 0)
		snprintf(why, why_bytes, "%s: %s", name, error);
	else if (live && config)
		snprintf(why, why_bytes, "%s: it has %s", name,
			 xml ? "the channel already" : "no such channel");
	return live < 0 || config < 0 || (live && config) ? -1 : 0;
}

/* Returns 0, or -1 with one line in `why`. */
static int channel_write(const char *socket, char *xml, size_t xml_bytes, char *why,
			 size_t why_bytes)
{
	if (socket[strcspn(socket, "<>&'\"")]) {
		snprintf(why, why_bytes, "the socket's path must not have any of < > & ' \"");
		return -1;
	}
	if (snprintf(xml, xml_bytes,
		     "<channel type='unix'><source mode='connect' path='%s'>"
		     "<reconnect enabled='yes' timeout='1'/></source>"
		     "<target type='virtio' name='" DOMAIN_PORT_NAME "'/></channel>",
		     socket) < (int)xml_bytes)
		return 0;
	snprintf(why, why_bytes, "the socket's path is too long");
	return -1;
}

int domain_channel_attach(virDomainPtr domain, const char *socket, char *why, size_t why_bytes)
{
	char xml[1024];

	if (channel_write(socket ? socket : DOMAIN_AGENTS_SOCKET, xml, sizeof(xml), why, why_bytes))
		return -1;
	return channel_change(domain, xml, why, why_bytes);
}

int domain_channel_plug(virDomainPtr domain, const char *socket, char *why, size_t why_bytes)
{
	char xml[1024], error[512];
	int code;

	if (channel_write(socket, xml, sizeof(xml), why, why_bytes))
		return -EINVAL;
	if (half_change(domain, xml, VIR_DOMAIN_AFFECT_LIVE) >= 0)
		return 0;
	code = virGetLastError() ? virGetLastError()->code : 0;
	error_take(error, sizeof(error));
	snprintf(why, why_bytes, "%s: %s", virDomainGetName(domain), error);
	if (virDomainIsActive(domain) == 0)
		return -ENOENT;
	return code == VIR_ERR_OPERATION_TIMEOUT ? -EAGAIN : -EINVAL;
}

int domain_channel_detach(virDomainPtr domain, char *why, size_t why_bytes)
{
	return channel_change(domain, NULL, why, why_bytes);
}
