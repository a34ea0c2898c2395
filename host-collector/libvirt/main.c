/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * vcpuscope-libvirt: uses libvirt's library in a process of its own, because calls of libvirt may
 * hang and because the library loads OpenSSL.
 *
 * `follow URI` reports running domains on standard output, one JSON object per line, until standard
 * input ends: {"event": "domain", ...} (domains.h), {"event": "gone", "uuid"}, {"event": "note",
 * "uuid", "trigger", "text"}, {"event": "connected"}, {"event": "disconnected", "why"}. A byte on
 * standard input requests all domains again.
 *
 * `attach URI DOMAIN [SOCKET]` adds the agent's channel and `detach URI DOMAIN` removes it. `plug
 * URI UUID SOCKET` adds it to the running machine alone; exit code 3 says that this can be tried
 * again. `list URI` writes the running domains once. `relay URI UUID` connects the agent's channel
 * to standard input, which is a socket (relay.h).
 */
#include <errno.h>
#include <json.h>
#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>
#include <libxml/parser.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-collector/libvirt/domains.h"
#include "host-collector/libvirt/relay.h"

enum { RETRY_MS = 2000, KEEPALIVE_S = 5, KEEPALIVE_MISSES = 3 };
enum { AGAIN = 3 }; /* exit code: it can be tried again (daemon/libvirt_plug.c) */

struct follower {
	const char *uri;
	virConnectPtr connection; /* NULL: not connected */
	bool over, closed;
	char said[256]; /* the last reason that was printed for a missing connection */
};

static void on_libvirt_error(void *context, virErrorPtr error)
{
	(void)context, (void)error; /* the caller that got the error reports it */
}

/* Takes `o` over. */
static void send(struct json_object *o)
{
	puts(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	fflush(stdout);
	json_object_put(o);
}

static struct json_object *event_new(const char *event)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "event", json_object_new_string(event));
	return o;
}

static void domain_send(virDomainPtr domain)
{
	struct json_object *o = domain_describe(domain);

	if (!o)
		return;
	json_object_object_add(o, "event", json_object_new_string("domain"));
	send(o);
}

static void uuid_add(struct json_object *o, virDomainPtr domain)
{
	char uuid[VIR_UUID_STRING_BUFLEN];

	if (!virDomainGetUUIDString(domain, uuid))
		json_object_object_add(o, "uuid", json_object_new_string(uuid));
}

static int all_send(virConnectPtr connection)
{
	virDomainPtr *domains = NULL;
	int n = virConnectListAllDomains(connection, &domains, VIR_CONNECT_LIST_DOMAINS_ACTIVE);

	for (int i = 0; i < n; i++) {
		domain_send(domains[i]);
		virDomainFree(domains[i]);
	}
	free(domains);
	return n < 0 ? -1 : 0;
}

/* ---- events ---- */

/* trigger: of the flight recorder, see daemon/trigger.h. */
static void note_send(virDomainPtr domain, const char *trigger, const char *text)
{
	struct json_object *o = event_new("note");

	uuid_add(o, domain);
	json_object_object_add(o, "trigger", json_object_new_string(trigger));
	json_object_object_add(o, "text", json_object_new_string(text));
	send(o);
}

static int on_lifecycle(virConnectPtr connection, virDomainPtr domain, int event, int detail,
			void *context)
{
	struct json_object *o;

	(void)connection, (void)context;
	/* STOPPED follows unless the domain is to be kept for a debugger. */
	if (event == VIR_DOMAIN_EVENT_CRASHED && detail == VIR_DOMAIN_EVENT_CRASHED_PANICKED) {
		note_send(domain, "libvirt_panic", "the guest panicked");
		return 0;
	}
	if (event == VIR_DOMAIN_EVENT_STARTED || event == VIR_DOMAIN_EVENT_RESUMED) {
		domain_send(domain);
	} else if (event == VIR_DOMAIN_EVENT_STOPPED || event == VIR_DOMAIN_EVENT_CRASHED) {
		o = event_new("gone");
		uuid_add(o, domain);
		send(o);
	}
	return 0;
}

static void on_watchdog(virConnectPtr connection, virDomainPtr domain, int action, void *context)
{
	(void)connection, (void)action, (void)context;
	note_send(domain, "libvirt_watchdog", "the guest's watchdog device fired");
}

static void on_io_error(virConnectPtr connection, virDomainPtr domain, const char *path,
			const char *alias, int action, void *context)
{
	char text[256];

	(void)connection, (void)alias, (void)action, (void)context;
	snprintf(text, sizeof(text), "I/O error on %s", path);
	note_send(domain, "libvirt_io_error", text);
}

/* A channel came or went with its device. */
static void on_device(virConnectPtr connection, virDomainPtr domain, const char *alias,
		      void *context)
{
	(void)connection, (void)alias, (void)context;
	domain_send(domain);
}

static void on_closed(virConnectPtr connection, int reason, void *context)
{
	struct follower *f = context;

	(void)connection, (void)reason;
	f->closed = true;
}

static void events_register(struct follower *f)
{
	static const struct {
		int id;
		virConnectDomainEventGenericCallback call;
	} events[] = {
		{VIR_DOMAIN_EVENT_ID_LIFECYCLE, VIR_DOMAIN_EVENT_CALLBACK(on_lifecycle)},
		{VIR_DOMAIN_EVENT_ID_WATCHDOG, VIR_DOMAIN_EVENT_CALLBACK(on_watchdog)},
		{VIR_DOMAIN_EVENT_ID_IO_ERROR, VIR_DOMAIN_EVENT_CALLBACK(on_io_error)},
		{VIR_DOMAIN_EVENT_ID_DEVICE_ADDED, VIR_DOMAIN_EVENT_CALLBACK(on_device)},
		{VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, VIR_DOMAIN_EVENT_CALLBACK(on_device)},
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		virConnectDomainEventRegisterAny(f->connection, NULL, events[i].id, events[i].call,
						 f, NULL);
	virConnectRegisterCloseCallback(f->connection, on_closed, f, NULL);
	virConnectSetKeepAlive(f->connection, KEEPALIVE_S, KEEPALIVE_MISSES);
}

static void disconnected_send(struct follower *f, const char *why)
{
	struct json_object *o;

	if (!strcmp(f->said, why))
		return;
	snprintf(f->said, sizeof(f->said), "%s", why);
	o = event_new("disconnected");
	json_object_object_add(o, "why", json_object_new_string(why));
	send(o);
}

static void on_retry(int timer, void *context)
{
	struct follower *f = context;
	const char *why;

	(void)timer;
	if (f->closed) {
		virConnectClose(f->connection);
		f->connection = NULL;
		f->closed = false;
		disconnected_send(f, "the connection broke");
	}
	if (f->connection)
		return;
	f->connection = virConnectOpenReadOnly(f->uri);
	if (!f->connection) {
		why = virGetLastErrorMessage();
		disconnected_send(f, why ? why : "unknown error");
		return;
	}
	f->said[0] = '\0';
	events_register(f);
	send(event_new("connected"));
	all_send(f->connection);
}

static void on_input(int watch, int fd, int events, void *context)
{
	struct follower *f = context;
	char bytes[64];

	(void)watch, (void)events;
	if (read(fd, bytes, sizeof(bytes)) <= 0)
		f->over = true;
	else if (f->connection)
		all_send(f->connection);
}

static int follow(const char *uri)
{
	struct follower f = {.uri = uri};

	if (virEventRegisterDefaultImpl() ||
	    virEventAddHandle(STDIN_FILENO,
			      VIR_EVENT_HANDLE_READABLE | VIR_EVENT_HANDLE_HANGUP |
				      VIR_EVENT_HANDLE_ERROR,
			      on_input, &f, NULL) < 0 ||
	    virEventAddTimeout(RETRY_MS, on_retry, &f, NULL) < 0)
		return 1;
	on_retry(0, &f);
	while (!f.over && !virEventRunDefaultImpl())
		;
	return 0;
}

/* ---- single commands ---- */

static int trouble(const char *what, const char *why)
{
	fprintf(stderr, "vcpuscope: %s: %s\n", what, why ? why : "unknown error");
	return 1;
}

/* libvirt's own words name a socket, and nobody knows what to do with that. */
static int unreachable(const char *uri)
{
	const char *why = virGetLastErrorMessage();

	fprintf(stderr, "vcpuscope: %s: %s; does libvirtd run? another one: --connect URI\n", uri,
		why ? why : "unknown error");
	return 1;
}

static int channel(const char *uri, const char *name, bool attach, const char *socket)
{
	virConnectPtr connection = virConnectOpen(uri);
	virDomainPtr domain = connection ? virDomainLookupByName(connection, name) : NULL;
	char why[512] = "";
	int err;

	if (connection && !domain)
		domain = virDomainLookupByUUIDString(connection, name);
	if (!connection)
		return unreachable(uri);
	if (!domain) {
		err = trouble(name,
			      "libvirt knows no such domain; `virsh list --all` shows who is");
		goto out;
	}
	err = attach ? domain_channel_attach(domain, socket, why, sizeof(why))
		     : domain_channel_detach(domain, why, sizeof(why));
	if (err)
		err = trouble(attach ? "attach" : "detach", why);
	virDomainFree(domain);
out:
	virConnectClose(connection);
	return err;
}

/* The daemon's: for a domain that has just started. A domain that has ended is no trouble. */
static int plug(const char *uri, const char *uuid, const char *socket)
{
	virConnectPtr connection = virConnectOpen(uri);
	virDomainPtr domain = connection ? virDomainLookupByUUIDString(connection, uuid) : NULL;
	char why[512] = "";
	int err;

	if (!connection)
		return AGAIN;
	err = domain ? domain_channel_plug(domain, socket, why, sizeof(why)) : -ENOENT;
	if (err == -EINVAL)
		trouble("libvirt_attach", why);
	if (domain)
		virDomainFree(domain);
	virConnectClose(connection);
	return err == -EINVAL ? 1 : err == -EAGAIN ? AGAIN : 0;
}

static int relay(const char *uri, const char *uuid)
{
	char why[512];

	return relay_run(uri, uuid, STDIN_FILENO, why, sizeof(why)) ? trouble(uuid, why) : 0;
}

static int list(const char *uri)
{
	virConnectPtr connection = virConnectOpenReadOnly(uri);
	int err;

	if (!connection)
		return trouble(uri, virGetLastErrorMessage());
	err = all_send(connection);
	virConnectClose(connection);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int result = 2;

	signal(SIGPIPE, SIG_IGN);
	virSetErrorFunc(NULL, on_libvirt_error);
	if (!strcmp(what, "follow") && argc == 3)
		result = follow(argv[2]);
	else if (!strcmp(what, "list") && argc == 3)
		result = list(argv[2]);
	else if (!strcmp(what, "relay") && argc == 4)
		result = relay(argv[2], argv[3]);
	else if (!strcmp(what, "attach") && (argc == 4 || argc == 5))
		result = channel(argv[2], argv[3], true, argc == 5 ? argv[4] : NULL);
	else if (!strcmp(what, "plug") && argc == 5)
		result = plug(argv[2], argv[3], argv[4]);
	else if (!strcmp(what, "detach") && argc == 4)
		result = channel(argv[2], argv[3], false, NULL);
	else
		fprintf(stderr,
			"vcpuscope-libvirt: vcpuscope starts it; see `vcpuscope attach --help`\n");
	xmlCleanupParser();
	return result;
}
