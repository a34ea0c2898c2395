/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a domain's XML says that we want to know. The texts come from libvirt, what stands in them
 * from whoever may define domains.
 */
#ifndef LIBVIRT_DOMAIN_XML_H
#define LIBVIRT_DOMAIN_XML_H

struct json_object;

/* Adds "channel": {"mode", "path"} to `out` if the domain has our port. */
void domain_xml_channel(const char *text, struct json_object *out);
/* Adds "settings": {KEY: VALUE} to `out`, of <vcpuscope:settings KEY="VALUE" ../>; nothing if the
 * text is no XML. */
void domain_xml_settings(const char *text, struct json_object *out);
/* The channel's element as text, to free(); NULL if the domain has none. */
char *domain_xml_channel_element(const char *text);

#endif
