/* SPDX-License-Identifier: GPL-2.0-only */
#include "host-collector/libvirt/domain_xml.h"

#include <json.h>
#include <libxml/parser.h>
#include <libxml/xpath.h>
#include <stdio.h>
#include <string.h>

#include "host-collector/libvirt/domains.h"

#define CHANNEL                                                                                    \
	"/domain/devices/channel[target/@type='virtio'][target/@name='" DOMAIN_PORT_NAME "']"

/* Without network, and without entities beyond the five that every XML has. */
static xmlDocPtr xml_parse(const char *text)
{
	xmlDocPtr doc = xmlReadMemory(text, (int)strlen(text), "domain.xml", NULL,
				      XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);

	if (doc && xmlGetIntSubset(doc)) { /* libvirt writes none: it could grow without bound */
		xmlFreeDoc(doc);
		return NULL;
	}
	return doc;
}

/* The first node of a query; NULL: none. To be freed in any case. */
struct found {
	xmlDocPtr doc;
	xmlXPathContextPtr context;
	xmlXPathObjectPtr object;
	xmlNodePtr node;
};

static struct found node_find(const char *text, const char *query)
{
	struct found f = {.doc = xml_parse(text)};

	f.context = f.doc ? xmlXPathNewContext(f.doc) : NULL;
	f.object = f.context ? xmlXPathEvalExpression((const xmlChar *)query, f.context) : NULL;
	if (f.object && f.object->nodesetval && f.object->nodesetval->nodeNr > 0)
		f.node = f.object->nodesetval->nodeTab[0];
	return f;
}

static void found_free(struct found *f)
{
	xmlXPathFreeObject(f->object);
	xmlXPathFreeContext(f->context);
	xmlFreeDoc(f->doc);
}

void domain_xml_channel(const char *text, struct json_object *out)
{
	struct found f = node_find(text, CHANNEL "/source");

	if (f.node) {
		xmlChar *mode = xmlGetProp(f.node, (const xmlChar *)"mode");
		xmlChar *path = xmlGetProp(f.node, (const xmlChar *)"path");
		struct json_object *channel = json_object_new_object();

		json_object_object_add(channel, "mode",
				       json_object_new_string(mode ? (const char *)mode : ""));
		json_object_object_add(channel, "path",
				       json_object_new_string(path ? (const char *)path : ""));
		json_object_object_add(out, "channel", channel);
		xmlFree(mode);
		xmlFree(path);
	}
	found_free(&f);
}

void domain_xml_settings(const char *text, struct json_object *out)
{
	xmlDocPtr doc = xml_parse(text);
	xmlNodePtr root = doc ? xmlDocGetRootElement(doc) : NULL;
	struct json_object *settings;

	if (root) {
		settings = json_object_new_object();
		for (xmlAttrPtr a = root->properties; a; a = a->next) {
			xmlChar *value = xmlNodeListGetString(doc, a->children, 1);

			json_object_object_add(
				settings, (const char *)a->name,
				json_object_new_string(value ? (const char *)value : ""));
			xmlFree(value);
		}
		json_object_object_add(out, "settings", settings);
	}
	xmlFreeDoc(doc);
}

/* Its text or, if that is empty, its attribute `uuid`; to be freed with xmlFree(). */
static xmlChar *node_name(const char *text, const char *query)
{
	struct found f = node_find(text, query);
	xmlChar *name = f.node ? xmlNodeGetContent(f.node) : NULL;

	if (f.node && (!name || !*name)) {
		xmlFree(name);
		name = xmlGetProp(f.node, (const xmlChar *)"uuid");
	}
	found_free(&f);
	return name;
}

static void owner_add(struct json_object *out, const char *manager, const char *first,
		      const char *second)
{
	char owner[128];

	snprintf(owner, sizeof(owner), "%.63s%s%.63s", first, *second ? "/" : "", second);
	json_object_object_add(out, "manager", json_object_new_string(manager));
	json_object_object_add(out, "owner", json_object_new_string(owner));
}

#define NOVA                                                                                       \
	"/domain/metadata/*[local-name()='instance' and starts-with(namespace-uri(), "             \
	"'http://openstack.org/xmlns/libvirt/nova/')]/*[local-name()='owner']/"

void domain_xml_owner(const char *text, struct json_object *out)
{
	xmlChar *project = node_name(text, NOVA "*[local-name()='project']");
	xmlChar *user = node_name(text, NOVA "*[local-name()='user']");
	xmlChar *name = NULL;
	struct found kubevirt = {0};

	if (project || user) {
		owner_add(out, "nova", project ? (const char *)project : "",
			  user ? (const char *)user : "");
	} else {
		kubevirt = node_find(text, "/domain/metadata/*[local-name()='kubevirt' and "
					   "namespace-uri()='http://kubevirt.io']");
		name = kubevirt.node ? node_name(text, "/domain/name") : NULL;
	}
	if (name) { /* NAMESPACE_NAME: neither has a '_' */
		char *second = strchr((char *)name, '_');

		if (second)
			*second++ = 0;
		owner_add(out, "kubevirt", (const char *)name, second ? second : "");
	}
	found_free(&kubevirt);
	xmlFree(name);
	xmlFree(project);
	xmlFree(user);
}

char *domain_xml_channel_element(const char *text)
{
	struct found f = node_find(text, CHANNEL);
	xmlBufferPtr buffer = f.node ? xmlBufferCreate() : NULL;
	char *out = NULL;

	if (buffer && xmlNodeDump(buffer, f.doc, f.node, 0, 0) > 0)
		out = strdup((const char *)xmlBufferContent(buffer));
	if (buffer)
		xmlBufferFree(buffer);
	found_free(&f);
	return out;
}
