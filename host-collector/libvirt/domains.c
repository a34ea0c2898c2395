/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/libvirt/domains.h"

#include <dirent.h>
#include <json.h>
#include <libvirt/virterror.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-collector/libvirt/domain_xml.h"

/* Any other call of libvirt's forgets it: first of all after a failure. */
static void error_take(char *out, size_t out_bytes)
{
	const char *text = virGetLastErrorMessage();

	snprintf(out, out_bytes, "%s", text ? text : "unknown error");
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

/* The channel's element in the running machine's XML or the definition's, to free(); NULL if there
 * is none. */
static char *channel_xml(virDomainPtr domain, bool live)
{
	char *text = virDomainGetXMLDesc(domain, live ? 0 : VIR_DOMAIN_XML_INACTIVE);
	char *out = text ? domain_xml_channel_element(text) : NULL;

	free(text);
	return out;
}

/* The running machine and the definition, one at a time: one may be as wanted already. xml: of the
 * channel to attach; NULL: detach what there is. */
static int channel_change(virDomainPtr domain, const char *xml, char *why, size_t why_bytes)
{
	static const unsigned int half[] = {VIR_DOMAIN_AFFECT_LIVE, VIR_DOMAIN_AFFECT_CONFIG};
	unsigned int flags = affected(domain);
	int done = 0, err = 0;
	char error[256];

	for (size_t i = 0; i < 2 && !err; i++) {
		char *there = flags & half[i] ? channel_xml(domain, !i) : NULL;

		if (!(flags & half[i]) || !there == !xml) {
			free(there);
			continue;
		}
		err = xml ? virDomainAttachDeviceFlags(domain, xml, half[i])
			  : virDomainDetachDeviceFlags(domain, there, half[i]);
		if (err)
			error_take(error, sizeof(error));
		free(there);
		done++;
	}
	if (err)
		snprintf(why, why_bytes, "%s: %s", virDomainGetName(domain), error);
	else if (!done)
		snprintf(why, why_bytes, "%s: it has %s", virDomainGetName(domain),
			 xml ? "the channel already" : "no such channel");
	return err || !done ? -1 : 0;
}

int domain_channel_attach(virDomainPtr domain, const char *socket, char *why, size_t why_bytes)
{
	char xml[1024];

	if (snprintf(xml, sizeof(xml),
		     "<channel type='unix'><source mode='connect' path='%s'>"
		     "<reconnect enabled='yes' timeout='1'/></source>"
		     "<target type='virtio' name='" DOMAIN_PORT_NAME "'/></channel>",
		     socket ? socket : DOMAIN_AGENTS_SOCKET) >= (int)sizeof(xml)) {
		snprintf(why, why_bytes, "the socket's path is too long");
		return -1;
	}
	return channel_change(domain, xml, why, why_bytes);
}

int domain_channel_detach(virDomainPtr domain, char *why, size_t why_bytes)
{
	return channel_change(domain, NULL, why, why_bytes);
}
