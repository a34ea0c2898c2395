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
